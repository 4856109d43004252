"""Han to syllables and symbols."""

import pytest

from dataprep.text.mandarin import read_han, split_syllable
from dataprep.text.words import split_words
from schemas.errors import TextError


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("你好世界", "n i3 h ao3 sh i4 j ie4"),
        ("女绿略虐", "n v3 l v4 l ve4 n ve4"),
        ("居去雪军", "j v1 q v4 x ve3 j vn1"),
        ("一五鱼月", "i1 u3 v2 ve4"),
        ("我要用翁", "uo3 iao4 iong4 ueng1"),
        ("嗯呣噷", "n2 m2 h m5"),
        ("二儿", "er4 er2"),
        ("了的", "l e5 d e5"),
        ("六对顿", "l iou4 d uei4 d uen4"),
        ("〇", "l ing2"),
    ],
)
def test_known_readings(text: str, symbols: str) -> None:
    assert [symbol for syllable in read_han(text) for symbol in split_syllable(syllable)] == symbols.split()


def test_the_longest_phrase_decides_a_polyphone() -> None:
    assert read_han("银行") == ("yin2", "hang2")
    assert read_han("行人") == ("xing2", "ren2")


def test_one_syllable_for_each_character() -> None:
    text = "大学生网购毕业设计作品后赖账卖家举报其作弊"
    assert len(read_han(text)) == len(text)


def test_a_character_without_reading_is_named() -> None:
    with pytest.raises(TextError, match=r"'㐂' \(U\+3402\)"):
        read_han("好㐂")


def test_what_is_no_syllable_is_refused() -> None:
    with pytest.raises(TextError, match="'hao'"):
        split_syllable("hao")


def test_words_join_to_their_text(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = "加强电话销售过程管理"
    words = split_words(text)
    assert "".join(words) == text
    assert "电话" in words
