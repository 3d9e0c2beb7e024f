"""Codes of languages as BCP 47 understands them."""

from __future__ import annotations

from pathlib import Path

import pytest
from babel.core import get_global

from tmnmt.errors import UsageError
from tmnmt.formats import read_memory
from tmnmt.formats.languages import SCRIPTS, is_same_language, rank

FILES = Path(__file__).parents[1] / "data" / "scripts"


@pytest.mark.parametrize(
    ("code", "requested", "wanted"),
    [
        ("iw", "he", 0),
        ("in", "id", 0),
        ("eng", "en", 0),
        ("eng-us", "en-us", 0),
        ("nb", "no", 2),
        ("nn", "no", 3),
        ("no", "nb", 3),
        ("nn", "nb", None),
        ("zh-cn", "zh-hans", 2),
        ("zh-hans", "zh-cn", 3),
        ("zh-hans-cn", "zh-cn", 0),
        ("zh-tw", "zh-hans", None),
        ("zh-hant-tw", "zh-tw", 0),
        ("zh-hk", "zh-tw", None),
        ("cmn-hans", "zh-cn", 3),
        ("sr-latn", "sr", 2),
        ("sr-latn", "sr-cyrl", None),
        ("fr-ca", "fr", 2),
        ("fr-ca", "fr-fr", None),
        ("fr", "fr-ca", 3),
        ("de-1996", "de", 2),
        ("ca-valencia", "ca-es", None),
        ("pt", "en", None),
    ],
)
def test_a_code_serves_what_it_means(code: str, requested: str, wanted: int | None) -> None:
    assert rank(code, requested) == wanted


def test_scripts_of_regions_are_those_of_cldr() -> None:
    likely = get_global("likely_subtags")
    for language, (usual, by_region) in SCRIPTS.items():
        scripts = {
            tag.split("_")[1]: full.split("_")[1].lower()
            for tag, full in likely.items()
            if tag.startswith(f"{language}_") and len(tag.split("_")[1]) == 2
        }
        assert likely[language].split("_")[1].lower() == usual
        others = {region: script for region, script in scripts.items() if script != usual}
        assert {region.upper(): script for region, script in by_region.items()} == others


def test_regions_in_any_spelling_are_read() -> None:
    segments = [*read_memory(FILES / "regions.tmx", "en", "pt")]
    assert [segment.src for segment in segments] == [
        "Check the color of the cable.",
        "Close the cover.",
        "Open the cover.",
        "Remove the screw.",
        "Turn the knob.",
        "Press the button.",
    ]
    assert [*read_memory(FILES / "h2e.tmx", "he", "en")][1].tgt == "Close the window."


@pytest.mark.parametrize(("requested", "count"), [("zh-Hans", 3), ("zh-CN", 3), ("zh-Hant", 2)])
def test_one_script_of_chinese_is_read(requested: str, count: int) -> None:
    assert len([*read_memory(FILES / "zh-variants.tmx", "en", requested)]) == count


def test_two_scripts_of_a_language_are_asked_about() -> None:
    with pytest.raises(UsageError, match="zh-Hans or zh-Hant"):
        [*read_memory(FILES / "zh-variants.tmx", "en", "zh")]


def test_units_in_several_variants_are_counted() -> None:
    reader = read_memory(FILES / "regions.tmx", "en", "pt")
    assert len([*reader]) == 6
    assert reader.report.with_variants == 1
    assert any("1 unit in several variants" in line for line in reader.report.lines())


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("no", "nb", True),
        ("nn", "nb", False),
        ("zh-CN", "zh-TW", False),
        ("zh", "zh-TW", True),
        ("iw", "he-IL", True),
        ("en_US", "eng", True),
    ],
)
def test_languages_of_an_index_and_of_a_request_are_compared(
    first: str, second: str, is_same: bool
) -> None:
    assert is_same_language(first, second) is is_same
