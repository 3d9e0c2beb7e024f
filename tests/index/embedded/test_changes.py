"""A memory that changes while it is read: corrections, deletions, compaction, kills, a full disk,
damage."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from brute_force import brute_force, pairs, queries, real_segments
from damaged import BYTES, damaged
from full_disk import files_of_at_most
from places import TESTS
from required import absent

import tmnmt
from tmnmt.cli import run
from tmnmt.errors import LockedError, MemoryIndexError
from tmnmt.index import MemoryIndex, build
from tmnmt.index.base import UnknownIdError, corrected, present
from tmnmt.index.dedupe import duplicates
from tmnmt.index.embedded.lock import writing
from tmnmt.index.filter import Filter
from tmnmt.index.stats import stats
from tmnmt.segments import Segment

KILLS = TESTS / "kill_writers.py"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    build(tmp_path / "index", real_segments()[:60], "en", "fr")
    return tmp_path / "index"


def _now(index: MemoryIndex) -> list[Segment]:
    return list(index.segments())


def test_search_equals_brute_force_whatever_was_changed(tmp_path: Path) -> None:
    path, draw = tmp_path / "index", random.Random(4)
    build(path, real_segments()[:400], "en", "fr")
    with MemoryIndex.open(path) as index, MemoryIndex.open(path) as reader:
        alive = {segment.id: segment for segment in index.segments()}
        for step in range(12):
            gone = draw.sample(sorted(alive), 20)
            index.delete(gone)
            edited = index.edit(
                draw.sample(sorted(set(alive) - set(gone)), 20),
                lambda s: replace(s, src=s.src + " x"),
            )
            added = draw.sample(real_segments(), 10)
            ids = index.add(added)
            alive = {number: segment for number, segment in alive.items() if number not in gone}
            alive |= {segment.id: segment for segment in edited} | {s.id: s for s in index.get(ids)}
            if step in (5, 9):
                index.compact()
            segments = sorted(alive.values(), key=lambda segment: segment.id)
            assert list(reader.segments()) == segments and len(reader) == len(segments)
            for query in queries(3, step):
                for k, threshold in ((1, 0.5), (5, 0.3), (1000, 0.0)):
                    assert pairs(reader.search([query], k, threshold)[0]) == brute_force(
                        query, segments, k, threshold
                    )


def test_a_correction_and_a_deletion_are_seen_by_everybody_and_after_reopening(path: Path) -> None:
    with MemoryIndex.open(path) as writer, MemoryIndex.open(path) as reader:
        old = reader.get([5])[0]
        (new,) = writer.edit([5], lambda segment: replace(segment, src="a wholly new sentence"))
        assert new == replace(
            old, src="a wholly new sentence", changed=new.changed
        ) and new.changed.endswith("Z")
        writer.delete([6])
        with MemoryIndex.open(path) as later:
            for index in (writer, reader, later):
                assert [m.segment for m in index.search(["a wholly new sentence"], 1, 0.9)[0]] == [
                    new
                ]
                assert 5 not in {m.segment.id for m in index.search([old.src], 60, 0.9)[0]}
                assert (len(index), index.changes()) == (59, (0, 1, 1))
                with pytest.raises(UnknownIdError, match="there is no segment 6"):
                    index.get([6])


def test_an_unknown_id_changes_nothing(path: Path) -> None:
    with MemoryIndex.open(path) as index:
        before = _now(index)
        for change in (
            lambda: index.delete([1, 99]),
            lambda: index.edit([1, 99], lambda s: replace(s, tgt="x")),
        ):
            with pytest.raises(UnknownIdError, match="no segment 99"):
                change()
        assert _now(index) == before


def test_an_id_is_never_given_twice_even_after_compaction(path: Path) -> None:
    with MemoryIndex.open(path) as index:
        assert index.add([Segment("a", "b")] * 2) == [61, 62]
        index.delete([61, 62])
        manifest = index.compact()
        assert (manifest.segments, manifest.last_id, manifest.generation) == (60, 62, 2)
        assert index.add([Segment("a", "b")]) == [63]


def test_compaction_keeps_every_field_and_does_nothing_twice(path: Path) -> None:
    with MemoryIndex.open(path) as index, MemoryIndex.open(path) as reader:
        index.add(
            [
                Segment(
                    "a",
                    "b",
                    "d",
                    3,
                    0,
                    "o",
                    "2026-01-01T00:00:00Z",
                    "2026-01-02T00:00:00Z",
                    "me",
                    (("n", "v"),),
                )
            ]
        )
        index.edit([1, 2], lambda segment: replace(segment, tgt="corrected"))
        index.delete([3])
        before = _now(index)
        manifest = index.compact()
        assert (
            _now(reader) == before and reader.changes() == (0, 0, 0) and reader.manifest == manifest
        )
        assert index.compact() == manifest
    assert sorted(p.name for p in path.iterdir() if p.name != ".lock") == [
        "generation-2",
        "manifest.json",
    ]


def test_searches_go_on_while_others_change_and_compact(path: Path) -> None:
    found: list[bool] = []
    with MemoryIndex.open(path) as reader, MemoryIndex.open(path) as writer:
        query = real_segments()[0].src
        wanted = {m.segment.id for m in reader.search([query], 9, 1.0)[0]}
        ended = threading.Event()

        def search() -> None:
            while not ended.is_set():
                found.append({m.segment.id for m in reader.search([query], 9, 1.0)[0]} == wanted)

        thread = threading.Thread(target=search)
        thread.start()
        for i in range(8):
            writer.delete(writer.add([Segment(f"another {i}", "x")]))
            writer.compact()
        ended.set()
        thread.join()
    assert len(found) > 8 and all(found)


def test_whoever_cannot_write_is_told_who_does(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tmnmt.index.embedded.index.SECONDS_TO_WAIT", 0.0)
    with MemoryIndex.open(path) as index, writing(path, 0.0):
        changes: list[Callable[[], object]] = [
            lambda: index.delete([1]),
            index.compact,
            lambda: index.edit([1], replace),
        ]
        for change in changes:
            with pytest.raises(LockedError, match=f"process {os.getpid()} is writing to it"):
                change()
        assert len(index) == 60


def test_a_folder_that_is_gone_is_one_clear_error(path: Path) -> None:
    with MemoryIndex.open(path) as index:
        (path / "manifest.json").unlink()
        with pytest.raises(MemoryIndexError, match="the index is gone"):
            index.search(["x"])


def _bulky() -> list[Segment]:
    """Short tokens: the postings need more room than the store, so that either can be what does not
    fit."""
    draw = random.Random(2)
    return [Segment(" ".join(draw.choices("abcdefghij", k=600)), "") for _ in range(60)]


@pytest.mark.parametrize("operation", ["add", "compact", "build"])
def test_a_full_disk_leaves_everything_as_it_was_and_says_so(
    tmp_path: Path, operation: str
) -> None:
    path, many = tmp_path / "index", _bulky()
    build(path, many, "en", "fr")
    with MemoryIndex.open(path) as index:
        index.delete([60])
        before, files = _now(index), sorted(path.rglob("*"))
        changes: dict[str, Callable[[], object]] = {
            "add": lambda: index.add(many),
            "compact": index.compact,
            "build": lambda: build(path, many, "en", "fr", force=True),
        }
        change = changes[operation]
        for size in (0, 100, 4_000, 16_000, 40_000, 60_000):
            with (
                files_of_at_most(size),
                pytest.raises(MemoryIndexError, match=r"not written|nothing was|be written"),
            ):
                change()
            assert _now(index) == before and index.verify() == 59
            assert sorted(path.rglob("*")) == files
        change()
        assert index.verify() == {"add": 119, "compact": 59, "build": 60}[operation]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        absent("disk", "only root may mount a small disk; limited file sizes stand for it above")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("operation", ["add", "edit", "compact", "build"])
def test_a_disk_that_is_full_leaves_everything_as_it_was_and_says_so(
    small_disk: Path, operation: str
) -> None:
    path, many = small_disk / "index", _bulky()
    build(path, many, "en", "fr")
    with MemoryIndex.open(path) as index:
        index.delete([60])
        before, ballast = _now(index), small_disk / "ballast"
        changes: dict[str, Callable[[], object]] = {
            "add": lambda: index.add(many),
            "edit": lambda: index.edit(range(1, 60), lambda s: replace(s, tgt=s.src)),
            "compact": index.compact,
            "build": lambda: build(path, many, "en", "fr", force=True),
        }
        change = changes[operation]
        refused = 0
        for left in (0, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18):
            free = shutil.disk_usage(small_disk).free
            ballast.write_bytes(bytes(max(free - left, 0)))
            try:
                change()
            except MemoryIndexError as error:
                assert "No space left" in str(error) or "disk is full" in str(error), error
                refused += 1
                assert _now(index) == before and index.verify() == 59
                assert {p.name for p in path.iterdir()} == {
                    "manifest.json",
                    "generation-1",
                    ".lock",
                }
            else:
                break
            finally:
                ballast.unlink()
        else:
            change()
        assert refused >= {"add": 2, "edit": 2, "compact": 3, "build": 3}[operation]
        assert index.verify() == {"add": 119, "edit": 59, "compact": 59, "build": 60}[operation]


def test_verify_finds_a_flipped_byte_in_every_part(path: Path) -> None:
    with MemoryIndex.open(path) as index:
        index.delete([1])
        assert index.verify() == 59
        parts = [
            part for part in sorted(path.rglob("*")) if part.is_file() and part.name != ".lock"
        ]
        draw = random.Random(3)
        for part in parts:
            content = part.read_bytes()
            for at in (
                {0, len(content) - 1, *(draw.randrange(len(content)) for _ in range(6))}
                if content
                else ()
            ):
                part.write_bytes(
                    content[:at]
                    + bytes([content[at] ^ draw.choice([1, 32, 128])])
                    + content[at + 1 :]
                )
                with pytest.raises(MemoryIndexError, match=part.name):
                    index.verify()
            part.write_bytes(content)
        assert {"manifest.json", "segments.db", "changes.log", "postings.npy"} <= {
            part.name for part in parts
        }
        assert index.verify() == 59


def test_changes_are_never_lost_in_silence(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal, lost = path / "generation-1" / "changes.log", path / "elsewhere"
    with MemoryIndex.open(path) as index:
        index.add([Segment("a confirmed pair", "une paire")])
        journal.rename(lost)
        uses: list[Callable[[], object]] = [
            lambda: index.search(["x"]),
            lambda: index.add([Segment("x", "y")]),
        ]
        for use in (*uses, index.compact, index.verify):
            with pytest.raises(
                MemoryIndexError, match=r"changes.log: is missing; take the file from a backup"
            ):
                use()
    for command in (
        ["memory", "verify"],
        ["search", "x"],
        ["memory", "add", "--src", "x", "--tgt", "y"],
    ):
        assert run([*command, "--index", str(path)]) == 1
        assert "changes.log: is missing" in capsys.readouterr().err
    lost.rename(journal)
    with MemoryIndex.open(path) as index:
        assert index.verify() == 61


def test_a_change_that_was_not_finished_is_told_and_is_no_damage(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with MemoryIndex.open(path) as index:
        index.add([Segment("a", "b")])
        whole = (path / "generation-1" / "changes.log").read_bytes()
        index.add([Segment("c", "d")])
        (path / "generation-1" / "changes.log").write_bytes(whole + b"0000")
    for told in (True, False):
        assert run(["memory", "verify", "--index", str(path)]) == 0
        err = capsys.readouterr().err
        assert ("changes.log: ends with 4 bytes of a change that was not finished" in err) == told
        assert err.endswith(f"{61 if told else 62} segments, everything as it was written\n")
        assert run(["memory", "add", "--index", str(path), "--src", "e", "--tgt", "f"]) == 0


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undamaged") / "index"
    build(
        folder,
        [replace(segment, document=f"d{segment.id % 7}") for segment in real_segments()],
        "en",
        "fr",
    )
    return folder


POSTINGS = (
    "length_start",
    "token_start",
    "tokens",
    "feature_start",
    "column_of",
    "columns",
    "posting_start",
    "posting_first",
    "posting_header",
    "postings",
    "member_offsets",
    "members",
    "document_of",
    "ids",
    "vocabulary",
    "documents",
)
REFUSED = (
    "length_start",
    "token_start",
    "feature_start",
    "column_of",
    "posting_start",
    "member_offsets",
    "vocabulary",
)


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("name", POSTINGS)
def test_no_damage_of_postings_ends_in_more_than_one_clear_error(
    undamaged: Path, tmp_path: Path, name: str, kind: str
) -> None:
    path = tmp_path / "index"
    damaged(undamaged, path, name, kind)
    try:
        with MemoryIndex.open(path) as index:
            for k, threshold in ((3, 0.5), (2000, 0.0)):
                index.search(queries(20, 6), k, threshold, exclude_documents=["d1"] * 20)
    except MemoryIndexError as error:
        assert name not in REFUSED or f"{name}.npy: damaged" in str(error)
    else:
        assert name not in REFUSED


@pytest.mark.parametrize("name", POSTINGS)
def test_a_damaged_header_of_postings_is_one_clear_error(path: Path, name: str) -> None:
    part, draw = path / f"generation-1/postings-1/{name}.npy", random.Random(name)
    content = part.read_bytes()
    for at in [0, *(draw.randrange(6, 80) for _ in range(20))]:
        part.write_bytes(
            content[:at] + bytes([content[at] ^ draw.choice([1, 2, 16, 128])]) + content[at + 1 :]
        )
        with suppress(MemoryIndexError), MemoryIndex.open(path) as index:  # spaces may change
            index.search(["the"], 3, 0.5)


def _kill(folder: Path, rounds: int, seed: int) -> dict[str, Any]:
    command = [sys.executable, str(KILLS), str(folder), str(rounds), str(seed)]
    environment = os.environ | {
        "PYTHONPATH": str(Path(tmnmt.__file__).parents[1])
    }  # what is tested here, and no other
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_writers_killed_at_random_moments_lose_nothing_acknowledged(tmp_path: Path) -> None:
    seed = random.randrange(10**6)  # another moment every time
    found = _kill(tmp_path / "index", 20, seed)
    assert found["kills"] == 20 and found["done before"] > 0, f"seed {seed}"


@pytest.mark.slow
def test_three_hundred_killed_writers_lose_nothing_acknowledged(tmp_path: Path) -> None:
    found = _kill(tmp_path / "index", 300, 300)
    assert found["kills"] == 300 and found["applied unsaid"] > 0 and found["done before"] > 100
    assert {"add", "edit", "delete", "compact", "build"} <= found["during"].keys()


NEWEST = [
    Segment("the  cat", "le chat", "a", id=1, changed="2026-01-01T00:00:00Z"),
    Segment("the cat", "le  chat", "b", id=2, changed="2026-01-02T00:00:00Z"),
    Segment("the cat", "le chat", "b", id=3, changed="2026-01-02T00:00:00Z"),
    Segment("the cat", "un chat", "a", id=4),
    Segment("The cat", "le chat", "a", id=5),
]


def test_of_duplicates_the_newest_stays() -> None:
    assert sorted(duplicates(NEWEST)) == [1, 3]
    assert sorted(duplicates(reversed(NEWEST))) == [1, 3]
    assert sorted(duplicates(NEWEST, "source")) == [1, 3, 4]
    assert sorted(duplicates(NEWEST, "pair", within_documents=True)) == [3]
    assert sorted(duplicates(NEWEST, "source", within_documents=True)) == [3, 4]


def test_the_chosen_are_deleted_among_additions_too(path: Path) -> None:
    with MemoryIndex.open(path) as index:
        index.add([Segment("a", "b", user="me"), Segment("c", "d", user="you")])
        index.edit([7], lambda segment: replace(segment, user="me"))
        wanted = Filter(user="me")
        assert [segment.id for segment in index.segments(wanted)] == [7, 61]
        assert index.delete_chosen(
            lambda segments: [s.id for s in segments if wanted.keeps(s)]
        ) == [7, 61]
        assert _now(index)[-1].user == "you" and not list(index.segments(wanted))
        assert index.delete_chosen(lambda _: []) == []


def test_stats_count_what_is_there_now(tmp_path: Path) -> None:
    build(tmp_path / "index", NEWEST, "en", "fr")
    with MemoryIndex.open(tmp_path / "index") as index:
        index.delete([5])
        index.add(
            [Segment("x", "y", "", 0, 0, "o", "2027", "2027", "me", (("n", "1"), ("n", "2")))]
        )
        counted = stats(index)
    assert (counted.segments, counted.added, counted.corrected, counted.deleted) == (5, 1, 0, 1)
    assert (counted.documents, counted.without_document, counted.oldest, counted.newest) == (
        2,
        1,
        "2026-01-01T00:00:00Z",
        "2027",
    )
    assert (counted.origins, counted.users, counted.properties) == (
        {"": 4, "o": 1},
        {"": 4, "me": 1},
        {"n": 1},
    )
    assert counted.bytes == sum(
        p.stat().st_size for p in (tmp_path / "index").rglob("generation-1/**/*") if p.is_file()
    )


def test_additions_that_get_postings_of_their_own_are_found_as_by_brute_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.index.embedded.generation.LOOSE", 7)
    monkeypatch.setattr("tmnmt.index.embedded.delta_segments.MOST_MERGED", 30)
    path, draw = tmp_path / "index", random.Random(11)
    build(path, real_segments()[:100], "en", "fr")
    sizes = set()
    with MemoryIndex.open(path) as index, MemoryIndex.open(path) as reader:
        for step in range(40):
            index.add(draw.sample(real_segments(), draw.choice([1, 5, 9])))
            alive = [segment.id for segment in _now(index)]
            index.edit(draw.sample(alive, 4), lambda s: replace(s, src=s.src + " x"))
            index.delete(draw.sample(alive, 3))
            segments = _now(index)
            document = draw.choice(segments).document
            others = [segment for segment in segments if segment.document != document]
            for query in queries(2, step):
                for k, threshold in ((1, 0.5), (5, 0.3), (1000, 0.0)):
                    assert pairs(reader.search([query], k, threshold)[0]) == brute_force(
                        query, segments, k, threshold
                    )
                found = reader.search([query], 9, 0.3, exclude_documents=[document])[0]
                assert pairs(found) == brute_force(query, others, 9, 0.3)
                assert all(match.segment == index.get([match.segment.id])[0] for match in found)
            sizes.add(len(reader._now.parts()))
        reader.threads = 16
        by_many = reader.search(queries(30, 1))
        reader.threads = 1
        assert reader.search(queries(30, 1)) == by_many
    assert max(sizes) > 3 and len(sizes) > 2  # parts came and were merged


def test_without_room_for_postings_additions_are_found_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tmnmt.index.embedded.generation.LOOSE", 5)
    monkeypatch.setattr(tempfile, "tempdir", str(path / "nowhere"))
    with MemoryIndex.open(path) as index:
        for group in "abcdefg":
            index.add([Segment(f"a new sentence of group{group} {j}", "") for j in range(6)])
            assert len(index.search([f"a new sentence of group{group}"], 50, 0.8)[0]) == 6
            assert len(index._now.parts()) == (1 if group < "g" else 2)
            if group == "c":
                monkeypatch.undo()
    assert (
        caplog.text.count("no room for postings") == 2
    )  # with 6 and with 18; tried again with more than 36


def test_opening_and_changing_a_memory_compiles_nothing(path: Path) -> None:
    with MemoryIndex.open(path) as index:
        index.add([Segment(f"sentence {i}", "") for i in range(2000)])
    code = (
        "import sys, pathlib, tmnmt.index.embedded.index as m; x = "
        "m.MemoryIndex.open(pathlib.Path(sys.argv[1]))"
    )
    code += (
        "; x.delete([1]); print(len(list(x.segments())), 'numba' in sys.modules, 'torch' in "
        "sys.modules)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert out.stdout == "2059 False False\n"


def test_a_correction_is_later_than_what_it_corrects() -> None:
    now = present()
    for given, before, after in [
        ("", "2020-01-01T00:00:00Z", now),
        ("2021-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"),
        ("2019-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "2020-01-01T00:00:01Z"),
        ("", "2999-12-31T23:59:59.25Z", "3000-01-01T00:00:00Z"),
        ("", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z~"),
        ("", "29990101T000000Z", "29990101T000000Z~"),
    ]:
        old = Segment("a", "b", id=7, changed=before)
        new = corrected(old, replace(old, tgt="c", changed=given or before))
        assert (
            new.id == 7
            and new.changed > before
            and (new.changed == after or after == now <= new.changed)
        )
