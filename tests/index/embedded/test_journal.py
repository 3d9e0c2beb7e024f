"""The journal gives back what was acknowledged, steps over what a killed writer left, and reports
damage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tmnmt.errors import DataError, MemoryIndexError
from tmnmt.index.embedded.journal import Change, Journal, encoded
from tmnmt.segments import Segment

FULL = Segment(
    "a\u0000b 'quoted' \U0001f600",
    "é\u2028\n",
    "doc/1",
    7,
    4,
    "origin",
    "2026-01-01T00:00:00Z",
    "2026-01-02T00:00:00Z",
    "me",
    (("note", 'x "y"\n'), ("note", "é")),
)
FIRST: list[Change] = [(4, FULL), (2, None)]
SECOND: list[Change] = [(5, Segment("x", "y", id=5))]
LONG: list[Change] = [(5, Segment("x" * 500, "y" * 500, id=5))]  # in three sectors


def _append(path: Path, changes: list[Change]) -> None:
    writer = Journal(path)
    writer.read()
    writer.append(encoded(changes))


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


def test_ids_that_leave_others_out_are_damage_and_stay_unread(path: Path) -> None:
    _append(path, [(5, SECOND[0][1]), (6, None), (2**31, None)])
    reader = Journal(path)
    for _ in range(2):
        with pytest.raises(
            MemoryIndexError,
            match=r"changes.log: damaged \(segment 2147483648 follows segment 6\); take",
        ):
            reader.read(4)
    assert reader.offset == 0 and Journal(path).read(2**31 - 1)[-1] == (2**31, None)


@pytest.mark.parametrize(("ids", "last"), [([7], 5), ([5, 6, 8], 4), ([5, 7, 6], 4)])
def test_a_single_id_that_is_left_out_is_damage(
    path: Path, tmp_path: Path, ids: list[int], last: int
) -> None:
    for number, name in enumerate(("whole.log", "gap.log")):
        (tmp_path / name).touch()
        numbers = range(last + 1, last + 1 + len(ids)) if number == 0 else ids
        _append(tmp_path / name, [(one, None) for one in numbers])
    assert len(Journal(tmp_path / "whole.log").read(last)) == len(ids)
    with pytest.raises(MemoryIndexError, match=r"damaged \(segment \d follows segment \d\)"):
        Journal(tmp_path / "gap.log").read(last)


def test_a_file_that_is_missing_is_damage(path: Path) -> None:
    reader = Journal(path)
    assert reader.read() == FIRST
    path.unlink()
    for journal in (reader, Journal(path)):
        with pytest.raises(
            MemoryIndexError,
            match=r"changes.log: is missing; take the file from a backup, or put an em",
        ):
            journal.read()
        with pytest.raises(MemoryIndexError, match="cannot be written to"):
            journal.append(encoded(SECOND))
    path.touch()
    assert Journal(path).read() == []


@pytest.mark.parametrize("content", [b"", b"hello", b"\0" * 600])
def test_a_link_is_refused_and_what_it_leads_to_stays(path: Path, content: bytes) -> None:
    reader = Journal(path)
    assert reader.read() == FIRST
    path.unlink()
    victim = path.with_name("victim")
    path.symlink_to(victim)
    victim.write_bytes(content)
    for journal in (reader, Journal(path)):
        with pytest.raises(
            MemoryIndexError,
            match=r"changes.log: is a link, which no journal may be; take the file fro",
        ):
            journal.read()
        with pytest.raises(
            MemoryIndexError,
            match=r"changes.log: is a link, which no journal may be; take the file fro",
        ):
            journal.append(encoded(SECOND))
    assert victim.read_bytes() == content


def test_a_pipe_is_refused_and_not_waited_for(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)
    for use in (Journal.read, lambda journal: journal.append(encoded(SECOND))):
        with pytest.raises(
            MemoryIndexError,
            match=r"changes.log: is no regular file, which no journal may be; take th",
        ):
            use(Journal(path))


def test_a_frame_cut_off_anywhere_was_never_there_and_is_overwritten(path: Path) -> None:
    whole = path.stat().st_size
    _append(path, SECOND)
    content = path.read_bytes()
    for end in range(whole, len(content)):
        path.write_bytes(content[:end])
        reader = Journal(path)
        assert (
            reader.read() == FIRST and reader.offset == whole and reader.unfinished == end - whole
        )
    _append(path, SECOND)
    assert path.read_bytes() == content
    assert reader.read() == SECOND and reader.unfinished == 0


def test_zeros_that_a_power_cut_left_were_never_there_and_are_overwritten(path: Path) -> None:
    whole = path.stat().st_size
    _append(path, LONG)
    content = path.read_bytes()
    for end in (whole, 512, 1024):  # where a sector begins that was never written
        for size in (len(content) - 1, len(content), 4096):
            path.write_bytes(content[:end].ljust(size, b"\0"))
            reader = Journal(path)
            assert reader.read() == FIRST and reader.unfinished == size - whole
    _append(path, LONG)
    assert path.read_bytes() == content


def test_zeros_that_begin_within_a_sector_are_damage(path: Path) -> None:
    whole = path.stat().st_size
    _append(path, LONG)
    content = path.read_bytes()
    for end in set(range(whole + 1, len(content))) - {512, 1024}:
        path.write_bytes(content[:end].ljust(len(content), b"\0"))
        with pytest.raises(MemoryIndexError, match=f"damaged at byte {end:,};"):
            Journal(path).read()


@pytest.mark.parametrize("changes", [SECOND, LONG])
def test_every_flipped_byte_is_found(path: Path, changes: list[Change]) -> None:
    _append(path, changes)
    content = path.read_bytes()
    for at, byte in enumerate(content):
        for other in {byte ^ 1, byte ^ 0x20, byte ^ 0x80, 0, 0xFF}:
            path.write_bytes(content[:at] + bytes([other]) + content[at + 1 :])
            with pytest.raises(MemoryIndexError, match="damaged at byte"):
                Journal(path).read()


def test_a_last_byte_that_became_zero_is_found_wherever_the_frame_ends(tmp_path: Path) -> None:
    path = tmp_path / "changes.log"
    path.touch()
    _append(path, [(1, Segment("", "y", id=1))])
    alone = (
        513 - path.stat().st_size
    ) % 512  # so many more bytes, and the last one begins a sector
    for length in (alone - 1, alone, alone + 1):
        changes: list[Change] = [(1, Segment("x" * length, "y", id=1))]
        path.write_bytes(b"")
        _append(path, changes)
        assert Journal(path).read() == changes
        path.write_bytes(path.read_bytes()[:-1] + b"\0")
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
