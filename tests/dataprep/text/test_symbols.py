"""The inventory: fixed, without collisions, and wide enough for everything that can be emitted."""

from pypinyin import Style, lazy_pinyin
from pypinyin.contrib.tone_convert import to_finals_tone3, to_initials, to_tone3
from pypinyin.phrases_dict import phrases_dict
from pypinyin.pinyin_dict import pinyin_dict

from dataprep.text import SYMBOLS
from dataprep.text.letter_to_sound import letter_to_sound
from dataprep.text.lexicon import lexicon
from dataprep.text.mandarin import read_han, split_syllable
from dataprep.text.symbols import ENGLISH, INTERLEAVED_BLANK, MANDARIN, PADDING, PAUSES

VERSION_1_DIGEST = "0bf53263f90dbea1e5fbe657539182d46383f4bac35a27c4ae1c7a409687874e"


def test_version_1_never_changes() -> None:
    assert SYMBOLS.version == 1
    assert SYMBOLS.digest() == VERSION_1_DIGEST, "ids of trained voices would change: append in a new version instead"


def test_padding_is_id_0_and_no_name_stands_twice() -> None:
    assert SYMBOLS.symbols[0] == PADDING
    assert SYMBOLS.symbols[1] == INTERLEAVED_BLANK
    assert len(set(SYMBOLS.symbols)) == len(SYMBOLS.symbols)
    assert not {symbol.lower() for symbol in PAUSES} & {symbol.lower() for symbol in (*MANDARIN, *ENGLISH)}
    assert all(symbol.islower() for symbol in MANDARIN)
    assert all(symbol.isupper() for symbol in ENGLISH)


def test_every_character_that_pypinyin_knows_has_its_symbols() -> None:
    for code in pinyin_dict:
        (syllable,) = read_han(chr(code))
        assert set(split_syllable(syllable)) <= set(SYMBOLS.symbols), chr(code)


def test_every_reading_in_pypinyins_dictionaries_has_its_symbols() -> None:
    written = {reading for readings in pinyin_dict.values() for reading in readings.split(",")}
    written |= {reading for phrase in phrases_dict.values() for readings in phrase for reading in readings}
    for reading in written:
        syllable = to_tone3(reading, neutral_tone_with_five=True)
        assert set(split_syllable(syllable)) <= set(SYMBOLS.symbols), reading


def test_splitting_agrees_with_pypinyins_own_strict_initials_and_finals() -> None:
    for code in pinyin_dict:
        (syllable,) = lazy_pinyin(chr(code), style=Style.TONE3, neutral_tone_with_five=True)
        theirs = (
            to_initials(syllable, strict=True),
            to_finals_tone3(syllable, strict=True, neutral_tone_with_five=True),
        )
        if theirs[1][:-1] and not syllable.startswith(("ê", "yo1", "yo5")):
            assert split_syllable(syllable) == tuple(part for part in theirs if part), syllable


def test_the_lexicon_and_the_guesses_use_only_our_phones() -> None:
    used = {phone for phones in lexicon().values() for phone in phones}
    used |= {phone for chunk in letter_to_sound().chunks for phone in chunk.split()}
    assert used <= set(ENGLISH)
    assert len(ENGLISH) == 24 + 15 * 3
