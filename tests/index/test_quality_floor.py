"""`build-index --floor`: pairs that a property calls bad are left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tmnmt.errors import FormatError, UsageError
from tmnmt.formats.tsv import write_tsv
from tmnmt.index import MemoryIndex
from tmnmt.index.from_files import QualityFloor, build_from_files

TMX = """<tmx version="1.4"><header srclang="en"/><body>{}</body></tmx>"""
UNIT = """<tu>{}<tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="fr"><seg>{}</seg></tuv></tu>"""
SCORE = '<prop type="score-bicleaner">{}</prop>'


def test_pairs_below_the_floor_are_left_out_and_those_without_a_score_are_taken(
    tmp_path: Path,
) -> None:
    path = tmp_path / "web.tmx"
    scores = [("0.71", "good"), ("0.7", "edge"), ("0.69", "bad"), ("-1e9", "worse"), (" ", "odd")]
    units = [UNIT.format(SCORE.format(score), text, text) for score, text in scores]
    path.write_text(TMX.format("".join([*units, UNIT.format("", "own", "own")])), encoding="utf-8")
    floor = QualityFloor("score-bicleaner=0.7")
    counts, _ = build_from_files(tmp_path / "index", [path], "en", "fr", floor=floor)
    with MemoryIndex.open(tmp_path / "index") as index:
        assert [segment.src for segment in index.segments()] == ["good", "edge", "odd", "own"]
    assert (counts.segments, floor.excluded_count, floor.unscored_count) == (4, 2, 2)
    assert str(floor) == ("2 pairs with a score-bicleaner below 0.7 left out; 2 without one taken")
    with pytest.raises(FormatError, match=r"nothing to index: 1 pair, all with a score below 0\.9"):
        build_from_files(
            tmp_path / "none", [table(tmp_path)], "en", "fr", floor=QualityFloor("score=0.9")
        )
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("score", ["0,95", "90%", "high", "nan", "inf"])
def test_a_score_that_is_no_number_is_refused_with_its_place(tmp_path: Path, score: str) -> None:
    path = table(tmp_path)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"Thanks\tMerci\t\nYes\tOui\t{score}\n")
    error = f"{path}, line 4: the score {score!r} is no number; allowed: a number such as 0.7, or "
    with pytest.raises(FormatError, match=re.escape(error)):
        build_from_files(tmp_path / "m", [path], "en", "fr", floor=QualityFloor("score=0.5"))
    assert not (tmp_path / "m").exists()


def test_a_floor_by_a_property_that_no_pair_has_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "web.tmx"
    units = [UNIT.format(SCORE.format(0.5), text, text) for text in ("one", "two")]
    path.write_text(TMX.format("".join(units)), encoding="utf-8")
    error = "none of 2 pairs has a number as its Score; properties that there are: score-bicleaner"
    with pytest.raises(FormatError, match=rf"^{error}$"):
        build_from_files(tmp_path / "m", [path], "en", "fr", floor=QualityFloor("Score=0.4"))
    assert not (tmp_path / "m").exists()
    path.write_text(TMX.format(UNIT.format("", "one", "un")), encoding="utf-8")
    with pytest.raises(FormatError, match=r"^none of 1 pair has .*; properties .*: none$"):
        build_from_files(tmp_path / "m", [path], "en", "fr", floor=QualityFloor("score=0.4"))


def test_blanks_around_the_name_and_the_number_are_no_part_of_them() -> None:
    floor = QualityFloor(" score-bicleaner = 0.7 ")
    assert (floor.property, floor.minimum) == ("score-bicleaner", 0.7)


def table(folder: Path) -> Path:
    path = folder / "web.tsv"
    path.write_text("source\ttarget\tscore\nHello\tBonjour\t0.8\n", encoding="utf-8")
    return path


def test_a_table_may_have_a_column_of_scores(tmp_path: Path) -> None:
    build_from_files(
        tmp_path / "index", [table(tmp_path)], "en", "fr", floor=QualityFloor("score=0.8")
    )
    with MemoryIndex.open(tmp_path / "index") as index:
        assert [segment.properties for segment in index.segments()] == [(("score", "0.8"),)]


@pytest.mark.parametrize(
    "text", ["", "score", "score=", "=0.7", "score=high", "score=nan", "s>=0.7", "s<=1", " =1"]
)
def test_what_is_no_floor_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no floor; write PROPERTY=NUMBER"):
        QualityFloor(text)


def test_a_score_stands_among_the_properties_of_a_table_that_is_written(tmp_path: Path) -> None:
    build_from_files(tmp_path / "index", [table(tmp_path)], "en", "fr")
    with MemoryIndex.open(tmp_path / "index") as index:
        write_tsv(tmp_path / "out.tsv", index.segments())
    counts, _ = build_from_files(
        tmp_path / "again", [tmp_path / "out.tsv"], "en", "fr", floor=QualityFloor("score=0.8")
    )
    assert counts.segments == 1
