"""From text to symbols as a whole."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.text import SYMBOLS, Phonemes, phonemize
from dataprep.text.symbols import INTERLEAVED_BLANK, PADDING, PAUSES, WORDLESS_PAUSE
from schemas.errors import LanguageError, TextError

IMPORT_LIMIT_SECONDS = 0.05


@pytest.mark.parametrize(
    ("text", "symbols", "language"),
    [
        ("你好世界", "n i3 h ao3 sh i4 j ie4", "zh"),
        ("你好世界，hello world.", "n i3 h ao3 sh i4 j ie4 , HH AH0 L OW1 W ER1 L D .", "mixed"),
        ("Hello!?", "HH AH0 L OW1 ?", "en"),
        ("...to exit", "T UW1 EH1 G Z IH0 T", "en"),
        ("他说：“好”……", "t a1 sh uo1 , h ao3 …", "zh"),
        ("好——吗？！", "h ao3 — m a5 ?", "zh"),
        ("wait - what", "W EY1 T — W AH1 T", "en"),
        ("(hello) [world]", "HH AH0 L OW1 W ER1 L D", "en"),
        ("I T(番愚路店)", "AY1 T IY1 f an1 v2 l u4 d ian4", "mixed"),
        ("一、二；三", "i1 , er4 , s an1", "zh"),
    ],
)
def test_known_texts(text: str, symbols: str, language: str) -> None:
    found = phonemize(text)
    assert " ".join(found.symbols) == symbols
    assert found.language == language
    assert list(found.ids) == SYMBOLS.encode(found.symbols)
    assert found.warnings == ()


@pytest.mark.parametrize("text", ["", "   ", "……", "?!", "😀", "\ufeff"])
def test_nothing_to_say(text: str) -> None:
    with pytest.raises(TextError, match="nothing pronounceable"):
        phonemize(text)


@pytest.mark.parametrize(
    "text",
    [
        "Ваш микрофон включён.",
        "Κεραία",
        "こんにちは世界",
        "안녕",
        "Una pinya tropical.",
        "La conférence n'est plus en mode discret.",
        "Si prega di riprovare la chiamata più tardi.",
        "Por el momento no hay conferencias vacias.",
        "Een konijn.",
    ],
)
def test_other_languages_are_refused(text: str) -> None:
    with pytest.raises(LanguageError) as caught:
        phonemize(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "Los Angeles",
        "Las Vegas and El Paso",
        "a café au lait",
        "Vincent Van Gogh",
        "想听歌曲Let It Go",
        "索尼Xperia手机和Realme",
        "La La Land",
        "Big Sur",
        "Una Thompson",
        "pour water",
        "um yeah um",
        "Uma Thurman",
    ],
)
def test_names_and_loan_words_are_not_refused(text: str) -> None:
    assert phonemize(text).symbols


def test_signs_that_would_have_to_be_spoken_are_named() -> None:
    with pytest.raises(TextError, match="superscript two"):
        phonemize("10²米")
    with pytest.raises(TextError, match="replacement character"):
        phonemize("你\ufffd好")


def test_pictures_are_a_warning() -> None:
    assert phonemize("你好😀").warnings == ("unspoken_symbol",)


def test_a_guess_is_a_warning() -> None:
    assert phonemize("In 1465 Sweynheim began printing").warnings == ("guessed_word",)


@given(st.text(st.sampled_from("你好中国行〇嗯abcdeXYZ's 0159.,!?，。！？…—-()“”$%&+#@²é😀жか")))
def test_any_text_is_pronounced_or_refused_with_a_reason(text: str) -> None:
    found = _phonemes_or_refusal(text)
    if isinstance(found, TextError):
        assert found.hint
        return
    assert phonemize(text) == found
    assert not {PADDING, INTERLEAVED_BLANK, WORDLESS_PAUSE} & set(found.symbols)
    assert found.symbols[0] not in PAUSES
    pairs = zip(found.symbols, found.symbols[1:], strict=False)
    assert not any(left in PAUSES and right in PAUSES for left, right in pairs)


def _phonemes_or_refusal(text: str) -> Phonemes | TextError:
    try:
        return phonemize(text)
    except TextError as error:
        return error


def test_import_is_quick_and_pulls_in_nothing_heavy() -> None:
    program = (
        "import sys, time; start = time.process_time(); import dataprep.text; "
        "print(time.process_time() - start, *({'jieba', 'pypinyin', 'wetext', 'numpy', 'torch'} & set(sys.modules)))"
    )
    seconds, *heavy = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not heavy
    assert float(seconds) < IMPORT_LIMIT_SECONDS
