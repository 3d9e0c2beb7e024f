"""A build that was interrupted goes on behind the last part that is whole."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from full_disk import files_of_at_most

from tmnmt.errors import FormatError, MemoryIndexError
from tmnmt.index import MemoryIndex, build
from tmnmt.index.embedded import new_parts
from tmnmt.index.embedded.build import SEGMENTS_A_WRITE
from tmnmt.index.embedded.rows import OtherSegmentsError
from tmnmt.index.from_files import build_from_files
from tmnmt.segments import Segment

RUNS = 7


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tmnmt.index.embedded.build.SEGMENTS_A_WRITE", 20)
    monkeypatch.setattr(new_parts, "SEGMENTS_A_PART", 40)


def segments(word: str = "word", count: int = 20 * RUNS - 7) -> list[Segment]:
    return [Segment(f"{word} {i} of {i % 9}", f"mot {i}", f"d{i % 3}") for i in range(count)]


def interrupted(count: int) -> Iterator[Segment]:
    yield from islice(segments(), count)
    raise KeyboardInterrupt


def leave(folder: Path, count: int) -> Path:
    """The folder of the generation that a build has left which was interrupted after so many
    segments."""
    with pytest.raises(KeyboardInterrupt):
        build(folder, interrupted(count), "en", "fr", resumes=True)
    return folder / "generation-1"


def test_the_index_is_that_of_a_build_in_one_go(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = build(tmp_path / "whole", segments(), "en", "fr")
    for count in (40, 85, 120, 133):
        left = leave(tmp_path / f"after-{count}", count)
        # what a kill leaves beside it: half a part, rows of no part, half a transaction
        number = count // 40
        (left / f"postings-{number + 1}").mkdir(exist_ok=True)
        (left / "segments.db").write_bytes(b"half")
        with (left / "segments.rows").open("ab") as rows:
            rows.write(b"half a row")
        first = (left / "postings-1" / "tokens.npy").stat()
        with caplog.at_level(logging.INFO):
            again = build(tmp_path / f"after-{count}", segments(), "en", "fr", resumes=True)
        assert f"going on after {40 * number} segments" in caplog.text
        assert again.files == whole.files
        assert (again.segments, again.sources, again.tokens, again.postings) == (
            whole.segments,
            whole.sources,
            whole.tokens,
            whole.postings,
        )
        assert os.path.samestat((left / "postings-1" / "tokens.npy").stat(), first)
        assert {path.name for path in left.parent.iterdir()} == {
            "generation-1",
            "manifest.json",
            ".lock",
        }
        with MemoryIndex.open(left.parent) as index:
            assert index.verify() == len(segments())
        caplog.clear()


def test_a_full_disk_leaves_what_is_finished(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    many = segments(count=300)
    said = "the same command goes on behind the parts that are finished"
    for size in (16_000, 8_000):  # while the parts are built, and as soon as it goes on
        with files_of_at_most(size), pytest.raises(MemoryIndexError, match=said):
            build(tmp_path / "m", many, "en", "fr", resumes=True)
    with caplog.at_level(logging.INFO):
        manifest = build(tmp_path / "m", many, "en", "fr", resumes=True)
    assert "going on after 1" in caplog.text
    assert manifest.files == build(tmp_path / "whole", many, "en", "fr").files


def test_a_faulty_segment_leaves_what_is_finished(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def faulty() -> Iterator[Segment]:
        yield from islice(segments(), 100)
        raise FormatError("m.tsv, line 101: a fault")

    with pytest.raises(FormatError, match="line 101"):
        build(tmp_path / "m", faulty(), "en", "fr", resumes=True)
    with caplog.at_level(logging.INFO):
        build(tmp_path / "m", segments(), "en", "fr", resumes=True)
    assert "going on after" in caplog.text
    with pytest.raises(FormatError):
        build(tmp_path / "none", faulty(), "en", "fr")
    assert not (tmp_path / "none").exists()


def test_of_other_segments_nothing_is_taken_over(tmp_path: Path) -> None:
    for other in (segments("wort"), segments(count=30)):
        leave(tmp_path / "m", 100)
        with pytest.raises(OtherSegmentsError):
            build(tmp_path / "m", other, "en", "fr", resumes=True)
        assert not [*tmp_path.glob("m/generation-*")]
        build(tmp_path / "m", other, "en", "fr", resumes=True)
        with MemoryIndex.open(tmp_path / "m") as index:
            assert [segment.src for segment in index.segments()] == [one.src for one in other]
        shutil.rmtree(tmp_path / "m")


def test_files_that_were_changed_since_are_built_anew(tmp_path: Path) -> None:
    leave(tmp_path / "m", 100)
    lines = [f"{segment.src}\t{segment.tgt}\n" for segment in segments("wort")]
    (tmp_path / "m.tsv").write_text("en\tfr\n" + "".join(lines), encoding="utf-8")
    counts, report = build_from_files(tmp_path / "m", [tmp_path / "m.tsv"], "en", "fr")
    assert counts.segments == report.retained == len(lines)


def test_a_file_that_is_missing_is_named_before_anything_begins(tmp_path: Path) -> None:
    left = leave(tmp_path / "m", 100)
    lines = [f"{segment.src}\t{segment.tgt}\n" for segment in segments()]
    paths = [tmp_path / "m.tsv", tmp_path / "none.tmx"]
    paths[0].write_text("en\tfr\n" + "".join(lines), encoding="utf-8")
    units: list[int] = []
    with pytest.raises(FormatError, match=rf"^{paths[1]}: no such file$"):
        build_from_files(
            tmp_path / "m", paths, "en", "fr", progress=lambda count, _: units.append(count)
        )
    assert not units and (left / "checkpoint.json").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [("checkpoint.json", b"{"), ("checkpoint.json", b"[]"), ("postings-1/tokens.npy", b"")],
)
def test_what_is_damaged_is_built_anew(tmp_path: Path, name: str, content: bytes) -> None:
    (leave(tmp_path / "m", 100) / name).write_bytes(content)
    build(tmp_path / "m", segments(), "en", "fr", resumes=True)
    with MemoryIndex.open(tmp_path / "m") as index:
        assert index.verify() == len(segments())


def test_what_was_there_before_answers_meanwhile_and_other_languages_take_nothing(
    tmp_path: Path,
) -> None:
    build(tmp_path / "m", segments("wort"), "en", "fr")
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "m", interrupted(100), "en", "fr", resumes=True, force=True)
    with MemoryIndex.open(tmp_path / "m") as index:
        assert len(index.search(["wort 3 of 3"], 1, 1.0)[0]) == 1
    manifest = build(tmp_path / "m", segments(), "en", "de", resumes=True, force=True)
    assert (manifest.generation, manifest.tgt_lang) == (2, "de")


@pytest.mark.parametrize("compacts", [0, 1, 2])
def test_changes_of_the_old_index_leave_a_build_that_can_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, compacts: int
) -> None:
    path = tmp_path / "m"
    build(path, segments("wort"), "en", "fr")
    with pytest.raises(KeyboardInterrupt):
        build(path, interrupted(100), "en", "fr", resumes=True, force=True)
    with MemoryIndex.open(path) as index:
        for _ in range(max(compacts, 1)):
            index.add([Segment("added", "ajouté")])
            if compacts:
                index.compact()
        with caplog.at_level(logging.INFO):
            build(path, segments(), "en", "fr", resumes=True, force=True)
        assert "going on after 80 segments" in caplog.text
        assert [segment.src for segment in index.segments()] == [one.src for one in segments()]
        assert index.verify() == len(segments())
        assert len([*path.glob("generation-*")]) == 1


def test_a_build_that_does_not_resume_leaves_nothing(tmp_path: Path) -> None:
    assert SEGMENTS_A_WRITE > 20  # the imported one
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "m", interrupted(100), "en", "fr")
    assert not (tmp_path / "m").exists()
