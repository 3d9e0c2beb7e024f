"""An index on a server that is corrected: as brute force finds it, by two at once, beside a
rebuild; its upkeep."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from brute_force import brute_force, pairs, queries, real_segments
from elastic_server import Running, at_once
from places import ROOT, TESTS

from tmnmt.errors import DataError, MemoryIndexError
from tmnmt.index.base import UnknownIdError
from tmnmt.index.elastic.build import build_elastic
from tmnmt.index.elastic.change import Writer
from tmnmt.index.elastic.generation import read_generation
from tmnmt.index.elastic.index import ElasticIndex
from tmnmt.index.elastic.layout import key
from tmnmt.index.elastic.server import Server
from tmnmt.segments import Segment

PROGRAM = str(TESTS / "kill_editors.py")


def test_search_equals_brute_force_whatever_was_changed(server: Running) -> None:
    address, draw = server.address("changes"), random.Random(4)
    build_elastic(address, real_segments()[:400], "en", "fr", shards=2)
    built = 400
    with ElasticIndex.open(address) as index, ElasticIndex.open(address) as reader:
        alive = {segment.id: segment for segment in index.segments()}
        for step in range(3):
            gone = draw.sample(sorted(alive), 20)
            index.delete(gone)
            edited = index.edit(
                draw.sample(sorted(set(alive) - set(gone)), 20),
                lambda s: replace(s, src=s.src + " x"),
            )
            edited += index.edit(
                [edited[0].id, edited[1].id], lambda s: replace(s, tgt="corrected")
            )
            ids = index.add(draw.sample(real_segments(), 10))
            alive = {number: segment for number, segment in alive.items() if number not in gone}
            alive |= {segment.id: segment for segment in edited} | {s.id: s for s in index.get(ids)}
            if step == 1:
                index.compact()
            segments = sorted(alive.values(), key=lambda segment: segment.id)
            assert (
                list(reader.segments()) == segments
                and len(reader) == len(segments) == index.verify()
            )
            for query in queries(3, step):
                for k, threshold in ((1, 0.5), (5, 0.3), (1000, 0.0)):
                    assert pairs(reader.search([query], k, threshold)[0]) == brute_force(
                        query, segments, k, threshold
                    )
        new = [number for number in alive if number > built]
        old = {segment.id: segment for segment in real_segments()[:built]}
        corrected = [number for number in alive if number <= built and alive[number] != old[number]]
        assert reader.changes() == (len(new), len(corrected), built - (len(alive) - len(new)))


def test_an_unknown_id_and_a_source_that_is_too_long_change_nothing(server: Running) -> None:
    address = server.address("unknown")
    build_elastic(address, real_segments()[:9], "en", "fr")
    with ElasticIndex.open(address) as index:
        index.delete([9])
        before = list(index.segments())
        for change in (
            lambda: index.delete([1, 9]),
            lambda: index.edit([1, 99], lambda s: replace(s, tgt="x")),
        ):
            with pytest.raises(UnknownIdError, match="there is no segment 9"):
                change()
        with pytest.raises(DataError, match="more than 65,535 match tokens"):
            index.edit([1], lambda segment: replace(segment, src="x " * 65_536))
        assert list(index.segments()) == before
        assert index.add([Segment("a", "b")]) == [10]  # 9 is given to nobody again


def test_two_who_correct_a_segment_at_once_leave_it_in_one_place(server: Running) -> None:
    address = server.address("both")
    build_elastic(address, real_segments()[:9], "en", "fr")

    def correct(name: str) -> None:
        with ElasticIndex.open(address) as index:
            for i in range(4):

                def said(segment: Segment, i: int = i) -> Segment:
                    return replace(segment, src=f"{name} has said {i} of {segment.id}")

                index.edit([1, 2], said)

    at_once(correct, "one", "two")
    with ElasticIndex.open(address) as index:
        assert index.verify() == len(index) == 9 and index.changes() == (0, 2, 0)
        now = index.get([1, 2])
        assert [segment.src.split()[3] for segment in now] == ["3", "3"]
        assert [
            [m.segment for m in found] for found in index.search([s.src for s in now], 1, 1.0)
        ] == [[s] for s in now]


def test_of_two_who_correct_a_segment_at_once_the_second_works_on_what_the_first_has_left(
    server: Running,
) -> None:
    address = server.address("properties")
    build_elastic(address, real_segments()[:9], "en", "fr")

    def correct(name: str) -> None:
        with ElasticIndex.open(address) as index:
            for i in range(5):

                def noted(s: Segment, i: int = i) -> Segment:
                    return replace(s, properties=(*s.properties, (name, str(i))))

                def said(s: Segment, i: int = i) -> Segment:
                    return replace(s, src=s.src + f" {name}{i}")

                index.edit([1, 2], noted)
                index.edit([1], said)

    at_once(correct, "one", "two")
    wanted = sorted((name, str(i)) for name in ("one", "two") for i in range(5))
    with ElasticIndex.open(address) as index:
        assert [sorted(segment.properties) for segment in index.get([1, 2])] == [wanted, wanted]
        written = index.get([1])[0].src.removeprefix(real_segments()[0].src).split()
        assert sorted(written) == [name + i for name, i in wanted]
        assert index.verify() == len(index) == 9 and index.changes() == (0, 2, 0)


def test_segments_may_change_places(server: Running) -> None:
    address = server.address("places")
    build_elastic(address, real_segments()[:9], "en", "fr", shards=2)
    sources = [segment.src for segment in real_segments()[:9]]
    with ElasticIndex.open(address, patience=10.0) as index:
        index.edit(
            range(1, 10), lambda s: replace(s, src=sources[s.id % 9])
        )  # each that of the next
        assert [segment.src for segment in index.segments()] == [*sources[1:], sources[0]]
        assert index.verify() == len(index) == 9 and index.changes() == (0, 9, 0)


def test_what_one_deletes_while_another_corrects_it_is_deleted(server: Running) -> None:
    address = server.address("gone")
    build_elastic(address, real_segments()[:29], "en", "fr")

    def change(name: str) -> None:
        with ElasticIndex.open(address) as index:
            for number in range(1, 13):
                if name == "delete":
                    index.delete([number])
                else:
                    with suppress(UnknownIdError):
                        index.edit([number], lambda s: replace(s, src=f"{s.id} is elsewhere now"))

    at_once(change, "delete", "edit")
    with ElasticIndex.open(address) as index:
        assert [segment.id for segment in index.segments()] == list(range(13, 30))
        assert index.verify() == len(index) == 17 and index.changes() == (0, 0, 12)


@pytest.mark.parametrize("what", ["delete", "edit"])
def test_what_comes_into_a_document_that_was_changed_already_is_changed_too(
    server: Running, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    address = server.address("into")
    build_elastic(
        address,
        [Segment("alpha", "a"), Segment("beta", "b"), Segment("gamma", "c")],
        "en",
        "fr",
        force=True,
    )
    real = Writer._write

    def late(writer: Writer, *given: Any) -> set[str]:
        monkeypatch.setattr(Writer, "_write", real)
        with monkeypatch.context() as patched, ElasticIndex.open(address) as other:
            patched.setattr(
                Writer, "_finish", lambda *_: None
            )  # the move is decided, and goes no further
            other.edit([2], lambda segment: replace(segment, src="alpha"))
        return real(writer, *given)

    with ElasticIndex.open(address) as index:
        monkeypatch.setattr(Writer, "_write", late)
        if what == "delete":
            index.delete([1, 2])
        else:
            index.edit([1, 2], lambda segment: replace(segment, tgt="new"))
        left = [] if what == "delete" else [("alpha", "new"), ("alpha", "new")]
        assert [(s.src, s.tgt) for s in index.segments()] == [
            *left,
            ("gamma", "c"),
        ] and index.verify() == len(left) + 1


def test_a_text_that_cannot_be_written_changes_nothing(server: Running) -> None:
    address = server.address("surrogate")
    build_elastic(address, [Segment(f"source {i}", "old") for i in range(501)], "en", "fr")
    with ElasticIndex.open(address) as index:
        with pytest.raises(DataError, match="no Unicode text"):
            index.edit(range(1, 502), lambda s: replace(s, tgt="\ud800" if s.id == 501 else "new"))
        with pytest.raises(DataError, match="no Unicode text"):
            index.add([Segment("source", "\ud800" if i == 500 else "new") for i in range(501)])
        assert [segment.tgt for segment in index.segments()] == ["old"] * 501


def test_editors_killed_at_random_moments_lose_nothing_acknowledged(server: Running) -> None:
    assert _kill(server, seconds=8)["kills"] > 0


@pytest.mark.slow
def test_editors_killed_for_minutes_lose_nothing_acknowledged(server: Running) -> None:
    found = _kill(server, seconds=180)
    assert found["kills"] > 50 and found["edits"] > 50 and found["verified"] > 50


def _kill(server: Running, seconds: int) -> Any:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    seed = random.randrange(10**6)  # another moment every time
    command = [sys.executable, PROGRAM, str(server.address("editors")), str(seconds), str(seed)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert not ended.returncode, f"seed {seed}: {ended.stderr}"
    return json.loads(ended.stdout)


def test_a_change_does_not_reach_the_generation_after(server: Running) -> None:
    address = server.address("next")
    build_elastic(address, real_segments()[:9], "en", "fr")
    late = Server(address)
    writer = Writer(late, read_generation(late))
    build_elastic(address, real_segments()[:9], "en", "fr", force=True)
    some = [replace(real_segments()[0], tgt="late")]
    for change in (lambda: writer.add(some), lambda: writer._add(some), lambda: writer.delete([1])):
        with pytest.raises(
            MemoryIndexError, match="was built anew meanwhile, without this change; make it again"
        ):
            change()
    late.close()
    with ElasticIndex.open(address) as index:
        assert list(index.segments()) == list(real_segments()[:9])
        assert index.generation() == 2


def test_an_index_of_other_languages_in_its_place_is_not_changed(server: Running) -> None:
    address = server.address("languages")
    build_elastic(address, real_segments()[:9], "en", "fr")
    with ElasticIndex.open(address) as index:
        build_elastic(address, real_segments()[:9], "fr", "en", force=True)
        with pytest.raises(MemoryIndexError, match="was replaced by an index from fr to en"):
            index.add([Segment("a", "b")])


def test_compaction_makes_one_part_of_every_shard(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = server.address("compact")
    build_elastic(address, real_segments()[:300], "en", "fr")
    with ElasticIndex.open(address) as index:

        def parts() -> int:
            stats = server.ask("GET", "/compact/_stats/segments")
            return int(stats["_all"]["total"]["segments"]["count"])

        index.add([Segment("a new one", "x")])
        index.delete(range(1, 100))
        before = list(index.segments())
        assert parts() > 1
        index.compact()
        assert parts() == 1 and list(index.segments()) == before
        empty = {"exists": {"field": "emptied"}}  # kept a while, for requests whose answer was lost
        assert server.count("compact", empty) > 9
        monkeypatch.setattr("tmnmt.index.elastic.change.KEPT_EMPTY", "0s")
        index.compact()
        assert server.count("compact", empty) == 0 and list(index.segments()) == before


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (
            [{"src": "another source", "tgt": "x", "id": 1}],
            "its sources are not those it was written for",
        ),
        (
            [{"src": "one more time", "tgt": "x", "id": 7}],
            r"it is found by the ids \[1\] but holds \[7\]",
        ),
        (
            [{"src": "one more time", "tgt": "x", "id": 1}] * 2,
            r"it holds a segment twice: \[1, 1\]",
        ),
        (
            [
                {"src": "one more time", "tgt": "x", "id": 2},
                {"src": "one more time", "tgt": "x", "id": 1},
            ],
            "found by",
        ),
    ],
)
def test_verify_finds_what_somebody_else_has_changed(
    server: Running, held: list[dict[str, object]], said: str
) -> None:
    address = server.address("damaged")
    build_elastic(
        address, [Segment("one more time", "x"), Segment("two", "y")], "en", "fr", force=True
    )
    with ElasticIndex.open(address) as index:
        assert index.verify() == 2
        (hit,) = server.find("damaged", {"term": {"ids": 1}})
        server.put("damaged", hit["_id"], {"n": 3, "ids": [1], "pairs": held})
        with pytest.raises(MemoryIndexError, match=said):
            index.verify()


def test_what_is_there_twice_is_damage_and_a_lie_about_moves_ends_compaction(
    server: Running,
) -> None:
    address = server.address("twice")
    build_elastic(address, [Segment("one more time", "x"), Segment("two", "y")], "en", "fr")
    with ElasticIndex.open(address) as index:
        (hit,) = server.find("twice", {"term": {"ids": 1}})
        again = hit["_source"] | {
            "tokens": "three",
            "n": 1,
            "pairs": [{"src": "three", "tgt": "x", "id": 1}],
        }
        server.put("twice", key("three", 1), again)
        with pytest.raises(
            MemoryIndexError,
            match=r"segment 1 is in the documents \S+ and \S+; build the index again",
        ):
            index.verify()
        for query in ("one more time", "three"):  # a search that meets it twice answers it once
            assert [match.segment.id for match in index.search([query], 9, 0.0)[0]].count(1) == 1
        server.put("twice", hit["_id"], hit["_source"] | {"moving": [1]})
        with pytest.raises(
            MemoryIndexError,
            match=f"document {hit['_id']} is found by a segment that moves, and holds",
        ):
            index.compact()
