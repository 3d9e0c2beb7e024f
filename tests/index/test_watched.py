"""A memory file that another program rewrites while it is read."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tmnmt.errors import UsageError
from tmnmt.formats import write_tmx
from tmnmt.index.concordance import Phrase
from tmnmt.index.filter import Filter
from tmnmt.index.named_memories import open_memories, open_to_write, to_be_watched
from tmnmt.index.watched import WatchedMemory, watch
from tmnmt.segments import Segment

OPEN, CLOSE = Segment("Open the file", "Ouvrir"), Segment("Close the file", "Fermer")


def rewrite(path: Path, *segments: Segment) -> None:
    """As OmegaT does it: a new file takes the place of the old one."""
    other = path.with_name("other.tmx")
    write_tmx(other, segments, "en", "fr")
    other.replace(path)


def written_over(path: Path, content: bytes) -> None:
    """In its place, with a time that differs from any before."""
    before = path.stat().st_mtime_ns
    path.write_bytes(content)
    os.utime(path, ns=(before + 10**6, before + 10**6))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rewrite(tmp_path / "project_save.tmx", OPEN, CLOSE)
    return tmp_path / "project_save.tmx"


def targets(index: WatchedMemory, text: str = "Open the file") -> list[str]:
    return [match.segment.tgt for match in index.search([text], 9, 0.9)[0]]


def test_what_was_rewritten_is_found_by_the_next_search(path: Path) -> None:
    with watch(path, "en", "fr") as index:
        assert targets(index) == ["Ouvrir"] and len(index) == 2
        rewrite(path, Segment(OPEN.src, "Ouvrez"), CLOSE, Segment("New", "Nouveau"))
        assert targets(index) == ["Ouvrez"] and targets(index, "New") == ["Nouveau"]
        assert index.changes() == (2, 0, 1)  # what stayed was not written again
        rewrite(path)
        assert targets(index) == [] and len(index) == 0
        rewrite(path, OPEN)
        assert targets(index) == ["Ouvrir"]
        assert [one.segment.tgt for one in index.concordance(Phrase("file"))] == ["Ouvrir"]


@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_a_half_written_file_keeps_what_was_there_and_says_so_once(
    path: Path, share: float, caplog: pytest.LogCaptureFixture
) -> None:
    with watch(path, "en", "fr") as index, caplog.at_level(logging.WARNING):
        other = path.with_name("new.tmx")
        write_tmx(other, [Segment(OPEN.src, "Ouvrez"), CLOSE], "en", "fr")
        whole = other.read_bytes()
        for size in (share, share * 0.9):
            written_over(path, whole[: int(len(whole) * size)])
            assert targets(index) == ["Ouvrir"] and targets(index) == ["Ouvrir"]
        (told,) = caplog.messages
        assert str(path) in told and "\n" not in told and "is used until" in told
        written_over(path, whole)
        assert targets(index) == ["Ouvrez"] and len(caplog.messages) == 1


def test_a_file_written_over_an_older_one_is_read_when_it_is_whole(path: Path) -> None:
    with watch(path, "en", "fr") as index:
        old = path.read_bytes()
        other = path.with_name("new.tmx")
        write_tmx(other, [Segment(OPEN.src, "Ouvrez" * 9), CLOSE], "en", "fr")
        new = other.read_bytes()
        written_over(path, new[: len(old) - 90] + old[-90:])
        assert targets(index) in (["Ouvrir"], ["Ouvrez" * 9])
        written_over(path, new)
        assert targets(index) == ["Ouvrez" * 9]


def test_a_deleted_file_keeps_what_was_there_until_it_comes_back(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with watch(path, "en", "fr") as index, caplog.at_level(logging.WARNING):
        path.unlink()
        assert targets(index) == targets(index) == ["Ouvrir"]
        assert len(caplog.messages) == 1 and "no such file" in caplog.messages[0]
        rewrite(path, Segment(OPEN.src, "Ouvrez"))
        assert targets(index) == ["Ouvrez"]


def test_a_restricted_view_follows_the_file_too(path: Path) -> None:
    with watch(path, "en", "fr") as index:
        view = index.restricted_to(Filter(user="ann"))
        assert targets(view) == []
        rewrite(path, OPEN, Segment(OPEN.src, "Ouvrez", user="ann"))
        assert targets(view) == ["Ouvrez"] and len(targets(index)) == 2


def test_a_memory_is_watched_by_its_name_or_by_the_option(path: Path, tmp_path: Path) -> None:
    for opened in (
        open_memories([f"{path}:watch,penalty=5"], "en", "fr"),
        open_memories([to_be_watched(str(path))], "en", "fr"),
    ):
        (index,) = opened
        assert isinstance(index, WatchedMemory)
        with index, pytest.raises(UsageError, match="is watched, so it cannot be written to"):
            open_to_write(path, [path], opened, "en", "fr")
    with pytest.raises(UsageError, match="and this is none"):
        open_memories([f"{tmp_path}:watch"], "en", "fr")
    assert to_be_watched(f"{path}:penalty=5") == f"{path}:penalty=5,watch"
    assert to_be_watched(f"{path}:watch") == f"{path}:watch"
    assert to_be_watched(f"{tmp_path}:penalty=5") == f"{tmp_path}:penalty=5"


def test_the_folder_of_a_watched_memory_goes_with_it(path: Path) -> None:
    index = watch(path, "en", "fr")
    folder = index.path.parent
    assert folder.exists()
    index.close()
    del index
    assert not folder.exists()
