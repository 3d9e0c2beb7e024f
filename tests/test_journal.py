"""The journal gives back what was acknowledged, steps over what a killed writer left, and reports damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmnmt.errors import DataError, MemoryIndexError
from tmnmt.index.journal import Change, Journal
from tmnmt.segments import Segment

FULL = Segment(
    "a\u0000b 'quoted' \U0001f600", "é\u2028\n", "doc/1", 7, 4, "origin", "2026-01-01T00:00:00Z",
    "2026-01-02T00:00:00Z", "me", (("note", 'x "y"\n'), ("note", "é")),
)  # fmt: skip
FIRST: list[Change] = [(4, FULL), (2, None)]
SECOND: list[Change] = [(5, Segment("x", "y", id=5))]


def _append(path: Path, changes: list[Change]) -> None:
    writer = Journal(path)
    writer.read()
    writer.append(changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "changes.log").touch()
    _append(tmp_path / "changes.log", FIRST)
    return tmp_path / "changes.log"


def test_every_field_comes_back_and_only_once(path: Path) -> None:
    reader = Journal(path)
    assert reader.read() == FIRST and reader.read() == []
    _append(path, SECOND)
    assert reader.read() == SECOND


def test_a_file_that_is_missing_is_damage(path: Path) -> None:
    reader = Journal(path)
    assert reader.read() == FIRST
    path.unlink()
    for journal in (reader, Journal(path)):
        with pytest.raises(
            MemoryIndexError, match=r"changes.log: is missing; take the file from a backup, or put an em"
        ):
            journal.read()
        with pytest.raises(MemoryIndexError, match="cannot be written to"):
            journal.append(SECOND)
    path.touch()
    assert Journal(path).read() == []


def test_a_frame_cut_off_anywhere_was_never_there_and_is_overwritten(path: Path) -> None:
    whole = path.stat().st_size
    _append(path, SECOND)
    content = path.read_bytes()
    for end in range(whole, len(content)):
        for zeros in (b"", b"\0" * 99):  # zeros: after a power cut
            path.write_bytes(content[:end] + zeros)
            reader = Journal(path)
            assert reader.read() == FIRST and reader.offset == whole
            assert reader.unfinished == end - whole + len(zeros)
    _append(path, SECOND)
    assert path.read_bytes() == content
    assert reader.read() == SECOND and reader.unfinished == 0


def test_every_flipped_byte_is_found(path: Path) -> None:
    _append(path, SECOND)
    content = path.read_bytes()
    for at in range(len(content)):
        for bits in (1, 0x20, 0x80):
            path.write_bytes(content[:at] + bytes([content[at] ^ bits]) + content[at + 1 :])
            with pytest.raises(MemoryIndexError, match="damaged at byte"):
                Journal(path).read()


def test_a_journal_that_became_shorter_is_damaged(path: Path) -> None:
    reader = Journal(path)
    reader.read()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(MemoryIndexError, match="damaged"):
        reader.read()


def test_what_is_no_text_is_not_written(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(DataError, match="no Unicode text"):
        _append(path, [*SECOND, (6, Segment("lone \ud800", ""))])
    assert path.read_bytes() == before
