"""Words of scripts without blanks, counted by ICU."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from required import absent

from tmnmt.batch.icu_words import icu_counter
from tmnmt.cli import run
from tmnmt.text import words


@pytest.fixture
def icu() -> None:
    try:
        import icu4py.breakers  # noqa: F401
    except ImportError:
        absent("icu", "icu4py is not installed")


@pytest.mark.usefixtures("icu")
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("สวัสดีครับยินดีต้อนรับ", 4),
        ("ຂ້ອຍຮັກພາສາລາວ", 4),
        ("ខ្ញុំស្រលាញ់ភាសាខ្មែរ", 3),
        ("မြန်မာဘာသာစကား", 2),
        ("今天天气很好。", 3),
        ("これは日本語の文です。", 6),
        ("Press ยินดี now, don't wait", 5),
        ("12 words-with hyphens", 3),
        ("", 0),
    ],
)
def test_words_of_each_script(text: str, count: int) -> None:
    assert icu_counter()(text) == count
    if text.isascii():
        assert words(text) == count


@pytest.mark.usefixtures("icu")
def test_analyse_counts_so_where_it_is_asked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("今天天气很好\n")
    totals = {}
    for name in ("blanks", "icu"):
        assert run(["analyse", "--words-by", name, "--json", str(path)]) == 0
        totals[name] = json.loads(capsys.readouterr().out)["total"]["words"]
    assert totals == {"blanks": 6, "icu": 3}


def test_without_the_library_it_says_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    path = tmp_path / "a.txt"
    path.write_text("今天天气很好\n")
    assert run(["analyse", "--words-by", "icu", str(path)]) == 2
    assert "which is not installed: pip install 'tmnmt[icu]'" in capsys.readouterr().err
