"""`tmnmt memory` as a user runs it, on an index in a folder and on one at an address."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from elastic_server import Running

from tmnmt.cli import run
from tmnmt.formats import read_memory
from tmnmt.index.back_ends import is_address, open_index
from tmnmt.index.from_files import build_at
from tmnmt.segments import Segment

PAIRS = [
    Segment(
        "The permit & the fee",
        "Le permis <et> les droits",
        "doc/1",
        3,
        0,
        "law.tmx",
        "2026-01-01T00:00:00Z",
        "2026-01-02T03:04:05Z",
        "me",
        (("note", 'x "y"'), ("note", "é")),
    ),
    Segment("One", "Un", "doc/2", 0, 0, "", "2025-01-01T00:00:00Z", "2025-01-01T00:00:00Z", "you"),
    Segment("Two", "Deux", "doc/2", 1, 0, "other"),
]


class Memory:
    """Runs `tmnmt memory COMMAND --index INDEX ...` and keeps what it says."""

    def __init__(self, index: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.index, self._capsys = index, capsys

    def __call__(self, command: str, *arguments: str, code: int = 0) -> str:
        assert run(["memory", command, "--index", self.index, *arguments]) == code
        out, self.err = self._capsys.readouterr()
        return out

    def ids(self, *filters: str) -> list[int]:
        return [json.loads(line)["id"] for line in self("list", "--json", *filters).splitlines()]


NUMBER = count(1)


@pytest.fixture(scope="module", params=["folder", "address"])
def unchanged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """PAIRS in an index for tests that change nothing."""
    return a_place(request, tmp_path_factory.mktemp("unchanged"), PAIRS)


@pytest.fixture(params=["folder", "address"])
def memory(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Memory:
    """PAIRS in an index of one's own."""
    return Memory(a_place(request, tmp_path, PAIRS), capsys)


def a_place(request: pytest.FixtureRequest, folder: Path, segments: list[Segment]) -> str:
    where = str(folder / "index")
    if request.param == "address":
        where = str(request.getfixturevalue("server").address(f"memory-{next(NUMBER)}-cli"))
    build_at(where, segments, "en", "fr")
    return where


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ([], [1, 2, 3]),
        (["--document", "doc/2"], [2, 3]),
        (["--document", "doc/2", "--origin", "other"], [3]),
        (["--user", "me"], [1]),
        (["--since", "2026-01-02"], [1]),
        (["--before", "20260102T030405Z"], [2, 3]),
        (["--property", "note"], [1]),
        (["--property", "note=é"], [1]),
        (["--property", "note=z"], []),
        (["--limit", "2"], [1, 2]),
    ],
)
def test_filters_choose_segments(
    unchanged: str, capsys: pytest.CaptureFixture[str], filters: list[str], ids: list[int]
) -> None:
    assert Memory(unchanged, capsys).ids(*filters) == ids


def test_a_segment_is_a_line_or_json_with_every_field(
    unchanged: str, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = Memory(unchanged, capsys)
    assert (
        memory("list", "--limit", "1")
        == "1\tThe permit & the fee\tLe permis <et> les droits\tdoc/1\n"
    )
    assert json.loads(memory("list", "--json", "-n", "1")) == {
        "id": 1,
        "src": "The permit & the fee",
        "tgt": "Le permis <et> les droits",
        "document": "doc/1",
        "position": 3,
        "origin": "law.tmx",
        "created": "2026-01-01T00:00:00Z",
        "changed": "2026-01-02T03:04:05Z",
        "user": "me",
        "properties": [["note", 'x "y"'], ["note", "é"]],
        "src_codes": [],
        "tgt_codes": [],
    }


def test_a_pair_is_added_corrected_and_deleted(memory: Memory) -> None:
    assert (
        memory("add", "--src", " Three\n", "--tgt", "Trois", "--user", "me", "--property", "a=b=c")
        == "4\n"
    )
    shown = memory("edit", "4", "3", "--tgt", "corrected", "--document", "d")
    assert shown.splitlines() == ["#4  - Trois", "#4  + corrected", "#3  - Deux", "#3  + corrected"]
    assert "2 segments corrected" in memory.err
    assert memory("edit", "4", "--tgt", "corrected") == ""  # as it was
    assert memory("list", "--document", "d") == "3\tTwo\tcorrected\td\n4\tThree\tcorrected\td\n"
    memory("edit", "4", "--property", "x=y", "--property", "x=z")
    with open_index(memory.index) as index:
        (segment,) = index.get([4])
        assert (segment.user, segment.properties) == ("me", (("x", "y"), ("x", "z")))
    memory("delete", "4", "2")
    assert "2 segments deleted" in memory.err and memory.ids() == [1, 3]
    memory("delete", "--user", "me")
    assert memory.ids() == [3]


def test_properties_are_removed_by_their_names(memory: Memory) -> None:
    memory(
        "edit",
        "2",
        "--property",
        "a=1",
        "--property",
        "b=2",
        "--property",
        "a=3",
        "--property",
        "c=",
    )
    memory("edit", "1", "2", "--no-property", "note", "--no-property", "a", "--user", "you")
    assert "2 segments corrected" in memory.err
    with open_index(memory.index) as index:
        first, second = index.get([1, 2])
    assert first == replace(PAIRS[0], id=1, user="you", changed=first.changed, properties=())
    assert (second.user, second.properties) == ("you", (("b", "2"), ("c", "")))
    memory("edit", "2", "--no-property", "a")  # as an edit to the text that is there
    assert "1 segment corrected" in memory.err
    with open_index(memory.index) as index:
        assert index.get([2]) == [replace(second, changed=index.get([2])[0].changed)]
    memory("edit", "2", "--no-property", "b", "--property", "d=4", code=2)
    assert "give one of them" in memory.err and memory.err.count("\n") == 1


def test_a_memory_file_is_added_whole(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "more.tsv").write_text("en\tfr\nThree\tTrois\nFour\tQuatre\n\tx\n")
    memory("add", str(tmp_path / "more.tsv"), "--user", "importer")
    assert "2 segments added, 5 in all" in memory.err and "empty: 1" in memory.err
    assert memory.ids("--user", "importer", "--origin", "more.tsv") == [4, 5]


@pytest.mark.parametrize("name", ["m.tmx", "m.tsv", "m.tmx.gz", "m.TSV.xz"])
def test_an_export_gives_back_what_came_in(memory: Memory, tmp_path: Path, name: str) -> None:
    memory("export", "-o", str(tmp_path / name))
    assert "3 segments" in memory.err
    with open_index(memory.index) as index:
        held = [replace(segment, id=0) for segment in index.segments()]
    assert held == PAIRS
    assert list(read_memory(tmp_path / name, "en", "fr")) == held
    memory("add", str(tmp_path / name))
    memory("dedupe")
    assert memory.ids() == [
        1,
        2,
        6,
    ]  # what had no date got one when it was added, and is the newer copy


def test_a_text_on_two_lines_is_kept_and_is_no_tsv(memory: Memory, tmp_path: Path) -> None:
    with open_index(memory.index) as index:
        assert index.add([Segment("a\nb", "c\td", "doc/3", 1)]) == [4]
        (held,) = index.get([4])
        assert (held.src, held.tgt) == ("a\nb", "c\td")
        assert index.search(["a b"], 1)[0][0].segment == held
    (tmp_path / "m.tsv").write_text("as before")
    memory("export", "-o", str(tmp_path / "m.tsv"), code=1)
    assert "segment 4, document 'doc/3', position 1: its src has a tab or a line end" in memory.err
    assert (
        memory.err.rstrip().endswith("; correct it, or write TMX instead")
        and memory.err.count("\n") == 1
    )
    assert (tmp_path / "m.tsv").read_text() == "as before" and len(
        list(tmp_path.glob("m.tsv*"))
    ) == 1
    memory("export", "-o", str(tmp_path / "m.tmx"))
    assert "2 texts cleaned: on one line" in memory.err
    assert [(s.src, s.tgt) for s in read_memory(tmp_path / "m.tmx", "en", "fr")][3:] == [
        ("a b", "c d")
    ]
    memory("edit", "4", "--src", "a b", "--tgt", "c d")
    memory("export", "-o", str(tmp_path / "m.tsv"))
    assert [(s.src, s.tgt) for s in read_memory(tmp_path / "m.tsv", "en", "fr")][3:] == [
        ("a b", "c d")
    ]


def test_an_export_can_be_filtered_and_has_dates_to_the_second(
    memory: Memory, tmp_path: Path
) -> None:
    with open_index(memory.index) as index:
        index.edit([2], lambda segment: replace(segment, changed="2026-01-01T00:00:00.25Z"))
    memory("export", "-o", str(tmp_path / "m.tmx"), "--user", "you")
    assert list(read_memory(tmp_path / "m.tmx", "en", "fr")) == [
        replace(PAIRS[1], changed="2026-01-01T00:00:00Z")
    ]


def test_reverse_makes_an_index_of_the_other_direction(memory: Memory, tmp_path: Path) -> None:
    memory("reverse", "-o", str(tmp_path / "reversed"))
    assert "3 segments, fr to en" in memory.err
    with open_index(tmp_path / "reversed", "fr", "en") as index:
        assert [replace(s, id=0, src=s.tgt, tgt=s.src) for s in index.segments()] == PAIRS
        assert index.search(["Deux"], 1)[0][0].segment.tgt == "Two"


def test_dedupe_says_what_it_would_delete(memory: Memory) -> None:
    memory("add", "--src", "Two", "--tgt", "Deux")
    assert memory("dedupe", "--dry-run") == "3\n" and memory.ids() == [1, 2, 3, 4]
    assert memory("dedupe", "--dry-run", "--within-documents") == ""
    memory("dedupe", "--by", "source")
    assert "1 duplicate deleted, 3 segments left" in memory.err and memory.ids() == [1, 2, 4]


def test_stats_dedupe_and_reverse_take_only_what_options_choose(
    memory: Memory, tmp_path: Path
) -> None:
    memory("add", "--src", "Two", "--tgt", "Deux", "--document", "doc/3")
    memory("add", "--src", "Two", "--tgt", "Deux", "--document", "doc/3")
    told = json.loads(memory("stats", "--json", "--document", "doc/3"))
    assert (told["segments"], told["documents"], told["added"]) == (2, 1, 2)
    assert memory("dedupe", "--dry-run", "--document", "doc/2") == ""
    memory("dedupe", "--document", "doc/3")
    assert "1 duplicate deleted" in memory.err and len(memory.ids("--document", "doc/3")) == 1
    memory("reverse", "-o", str(tmp_path / "reversed"), "--user", "me")
    assert "1 segment, fr to en" in memory.err


def test_an_index_is_reversed_into_any_other_place_but_its_own(
    memory: Memory, server: Running, tmp_path: Path
) -> None:
    there = (
        str(server.address("memory-reversed"))
        if not is_address(memory.index)
        else str(tmp_path / "there")
    )
    memory("reverse", "-o", there)
    with open_index(there, "fr", "en") as index:
        assert [replace(s, id=0, src=s.tgt, tgt=s.src) for s in index.segments()] == PAIRS
    memory("reverse", "-o", memory.index, "--force", code=2)
    assert "needs a place of its own" in memory.err and memory.ids() == [1, 2, 3]


def test_compact_and_stats_tell_what_they_found(memory: Memory) -> None:
    memory("delete", "1")
    memory("add", "--src", "Three", "--tgt", "Trois")
    memory("edit", "2", "4", "--tgt", "corrected")
    told = json.loads(memory("stats", "--json"))
    assert [told[name] for name in ("segments", "added", "corrected", "deleted")] == [3, 1, 1, 1]
    assert told["documents"] == 1 and told["without_document"] == 1 and told["generation"] == 1
    assert 100 < told["bytes"] < 1_000_000
    memory("compact")
    assert "3 segments (1 added, 1 corrected, 1 deleted since" in memory.err
    assert "users: you 1, - 2" in memory("stats") or "users: - 2, you 1" in memory("stats")
    memory("verify")
    assert "3 segments, everything as it was written" in memory.err


def test_verify_tells_of_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build_at(str(tmp_path / "index"), PAIRS, "en", "fr")
    memory = Memory(str(tmp_path / "index"), capsys)
    store = next(tmp_path.rglob("segments.db"))
    content = store.read_bytes()
    store.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    memory("verify", code=1)
    assert "segments.db: content differs" in memory.err


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (["add"], 2, "give memory files, or one pair"),
        (["add", "--src", "x"], 2, "give memory files, or one pair"),
        (["add", "--src", "x", "--tgt", " "], 2, "a text on both sides"),
        (["add", "--src", "x", "--tgt", "y", "--property", "n"], 2, "write NAME=VALUE"),
        (
            ["add", "--src", "x", "--tgt", "y", "--property", "=v"],
            2,
            "property '=v' has no name; write NAME=VALUE",
        ),
        (
            ["edit", "1", "--property", "a=", "--property", "="],
            2,
            "property '=' has no name; write NAME=VALUE",
        ),
        (["add", "missing.tmx"], 1, "missing.tmx: no such file"),
        (["edit", "1"], 2, "nothing to correct"),
        (["edit", "9", "--tgt", "x"], 1, "there is no segment 9"),
        (["delete"], 2, "give ids, or options"),
        (["delete", "1", "--user", "me"], 2, "give ids, or options"),
        (["delete", "9"], 1, "there is no segment 9"),
        (["list", "--since", "soon"], 2, "'soon' is no date"),
        (["export", "-o", "m.docx"], 2, "allowed: .tmx, .tsv"),
        (["export", "-o", "-"], 2, "- is standard output, to which this cannot be written"),
        (["reverse", "-o", "-"], 2, "- is standard output"),
        (["dedupe", "--by", "hash"], 2, "hash"),
    ],
)
def test_errors_are_one_line_and_change_nothing(
    unchanged: str, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, named: str
) -> None:
    memory = Memory(unchanged, capsys)
    assert memory(*arguments, code=code) == ""
    assert memory.err.count("\n") == 1 and named in memory.err
    assert memory.ids() == [1, 2, 3]


HUGE = "99999999999999999999999"


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (["edit", HUGE, "--tgt", "x"], 1, f"there is no segment {HUGE}"),
        (["delete", "9223372036854775808"], 1, "there is no segment 9223372036854775808"),
        (["list", "-n", HUGE], 2, "--limit"),
        (["list", "--document", "\udcff"], 2, "no UTF-8 text"),
        (["delete", "--user", "\udcff"], 2, "no UTF-8 text"),
        (["add", "--src", "\udcff", "--tgt", "x"], 2, "no UTF-8 text"),
        (
            ["add", "--src", "a " * 1001, "--tgt", "x"],
            2,
            "--src has 1,001 tokens; at most 1,000 are allowed",
        ),
        (
            ["edit", "1", "--tgt", "a " * 1001],
            2,
            "--tgt has 1,001 tokens; at most 1,000 are allowed",
        ),
        (["add", "--src", "a", "--tgt", "x", "--document", "d\te"], 2, "--document 'd\\te'"),
        (["edit", "1", "--user", "a\nb"], 2, "--user 'a\\nb'"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, named: str
) -> None:
    build_at(str(tmp_path / "index"), PAIRS, "en", "fr")
    memory = Memory(str(tmp_path / "index"), capsys)
    memory(*arguments, code=code)
    assert named in memory.err and memory.err.count("\n") == 1
    assert memory.ids() == [1, 2, 3]
