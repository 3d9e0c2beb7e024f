"""A memory's name, and what is set of it behind that."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
from places import TESTS

from tmnmt.config.options import SegmentFilter
from tmnmt.errors import MemoryIndexError, UsageError
from tmnmt.index import MemoryIndex, build
from tmnmt.index.embedded.manifest import FIRST_BUILD_FILE, half_index
from tmnmt.index.match_value import Trust
from tmnmt.index.named_memories import NamedMemory, open_memories, open_to_write, parse_memory
from tmnmt.segments import Segment


@pytest.mark.parametrize(
    ("text", "place", "trust", "readonly"),
    [
        ("a.tmx", "a.tmx", Trust(), False),
        ("a.tmx:penalty=5", "a.tmx", Trust(5), False),
        ("a.tmx:penalty=5,weight=0.9,readonly", "a.tmx", Trust(5, 0.9), True),
        ("a.tmx:readonly", "a.tmx", Trust(), True),
        ("a:b.tmx", "a:b.tmx", Trust(), False),
        ("a:b.tmx:weight=1", "a:b.tmx", Trust(), False),
        ("http://host:9200/name", "http://host:9200/name", Trust(), False),
        ("http://host:9200/name:penalty=7", "http://host:9200/name", Trust(7), False),
        ("a:b=c/d.tmx", "a:b=c/d.tmx", Trust(), False),
        (":readonly", ":readonly", Trust(), False),
    ],
)
def test_a_name_is_a_place_and_settings(
    text: str, place: str, trust: Trust, readonly: bool
) -> None:
    expected = NamedMemory(text) if place == text else NamedMemory(place, trust, readonly)
    assert parse_memory(text) == expected


def test_what_has_the_whole_as_its_name_is_that(tmp_path: Path) -> None:
    (tmp_path / "a:penalty=5").touch()
    assert parse_memory(str(tmp_path / "a:penalty=5")).trust == Trust()
    assert parse_memory(str(tmp_path / "b:penalty=5")).trust == Trust(5)
    assert parse_memory(tmp_path / "b:penalty=5").place == tmp_path / "b:penalty=5"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a.tmx:penalty=x", "a.tmx:penalty=x: penalty=x is wrong; it must be a whole number, 0 to"),
        ("a.tmx:penalty=101", "penalty=101 is wrong; it must be a whole number, 0 to 100"),
        ("a.tmx:weight=2", "weight=2 is wrong; it must be a number, 0 to 1"),
        ("a.tmx:weight=nan", "weight=nan is wrong"),
        ("a.tmx:readonly=1", "readonly=1 is no setting of a memory; allowed: penalty=POINTS"),
        ("a.tmx:penality=5", "penality=5 is no setting of a memory"),
        ("a.tmx:penalty=5,,readonly", "is no setting of a memory"),
        ("a.tmx:watch=1", "watch=1 is no setting of a memory"),
        ("a.tmx:since=May", "'May' is no date"),
    ],
)
def test_a_setting_that_there_is_not_is_told(text: str, told: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_memory(text)
    assert told in str(raised.value) and "\n" not in str(raised.value)


def test_nothing_is_written_to_a_memory_that_is_readonly(tmp_path: Path) -> None:
    path = tmp_path / "m"
    build(path, [], "en", "fr")
    index = MemoryIndex.open(path)
    assert open_to_write(path, [str(path)], [index], "en", "fr") is index
    with pytest.raises(UsageError, match="is readonly, and what is confirmed goes to it"):
        open_to_write(path, [f"{path}:readonly"], [index], "en", "fr")


def test_a_new_memory_is_made_whole_whoever_else_makes_it_and_whenever_its_maker_is_killed(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, str(TESTS / "make_memories.py"), str(tmp_path), "20", "4"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] >= 36, found
    assert (found["failed"], found["refused"]) == (0, 0), done.stderr


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("looks", range(1, 5))
def test_a_first_build_that_goes_on_is_no_half_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int, looks: int
) -> None:
    path = tmp_path / "m"
    note = path / FIRST_BUILD_FILE
    steps: Iterator[Callable[[], object]] = iter(
        [
            path.mkdir,
            note.touch,
            (path / "generation-1").mkdir,
            lambda: note.rename(path / "manifest.json"),
        ]
    )
    for step in islice(steps, before):
        step()
    left = count(looks, -1)

    def goes_on(look: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            found = look(*given)
            found = found if isinstance(found, bool) else iter([*found])
            if next(left) == 1:
                for step in steps:
                    step()
            return found

        return call

    for name in ("exists", "glob"):
        monkeypatch.setattr(Path, name, goes_on(getattr(Path, name)))
    assert half_index(path) is None


def test_a_memory_that_lost_its_manifest_is_not_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "m"
    build(path, [Segment("a", "b")], "en", "fr")
    (path / "manifest.json").unlink()
    with pytest.raises(MemoryIndexError, match=r"half an index.*take manifest.json from a backup"):
        open_to_write(path, [], [], "en", "fr")


def test_which_segments_are_found_is_set_for_all_or_behind_a_name(tmp_path: Path) -> None:
    segments = [Segment("a b c", user, "d", user=user) for user in ("ann", "bob")]
    build(tmp_path / "m", segments, "en", "fr")

    def found(*names: str, meant: SegmentFilter = SegmentFilter()) -> list[list[str]]:
        indexes = open_memories(
            [f"{tmp_path / 'm'}{name}" for name in names], "en", "fr", None, meant
        )
        return [[match.segment.tgt for match in one.search(["a b c"])[0]] for one in indexes]

    assert found("", ":user=ann") == [["ann", "bob"], ["ann"]]
    assert found("", ":user=ann,penalty=5", meant=SegmentFilter(user="bob")) == [["bob"], ["ann"]]
    assert found(":document=d", meant=SegmentFilter(user="bob")) == [["bob"]]
    assert found(":property=x=y") == [[]]
    with pytest.raises(UsageError, match="leave out the filter, or write to another"):
        name = f"{tmp_path / 'm'}:user=ann"
        indexes = open_memories([name], "en", "fr")
        open_to_write(tmp_path / "m", [name], indexes, "en", "fr")
