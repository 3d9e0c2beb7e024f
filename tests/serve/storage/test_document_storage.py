"""What every storage promises of documents, held by a file of SQLite and by a Redis. Two of one
place see the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from tmnmt.serve.storage.base import Storage
from tmnmt.serve.storage.opening import open_storage, place_of
from tmnmt.serve.storage.records import Person, StoredDocument

DOCUMENT = StoredDocument("one", "a", 1, 500, {"name": "é.po", "states": {"new": 3}})
SEGMENTS = [{"source": f"Où {number} ?", "text": None} for number in (1, 2, 3)]
CONTENT = b"\x00\xff as it came \r\n"
Two = tuple[Storage, Storage]


@pytest.fixture
def two(states: str) -> Iterator[Two]:
    with (
        closing(open_storage(place_of(states))) as one,
        closing(open_storage(place_of(states))) as other,
    ):
        yield one, other


def test_documents_are_made_listed_and_deleted(two: Two) -> None:
    one, other = (storage.documents for storage in two)
    assert one.make(DOCUMENT, CONTENT, SEGMENTS, 2)
    assert other.make(replace(DOCUMENT, id="two", size=7), b"", [], 2)
    assert not one.make(replace(DOCUMENT, id="three"), CONTENT, SEGMENTS, 2)
    assert one.get("a", "three") is None and one.segments("a", "three", [1]) == {}
    assert one.make(replace(DOCUMENT, id="three", tenant="b"), CONTENT, SEGMENTS, 2)
    assert other.get("a", "one") == DOCUMENT and other.content("a", "one") == CONTENT
    assert other.segments("a", "one", range(1, 9)) == dict(enumerate(SEGMENTS, 1))
    assert other.segments("a", "one", [3, 1]) == {1: SEGMENTS[0], 3: SEGMENTS[2]}
    assert {document.id for document in other.tenant_documents("a")} == {"one", "two"}
    assert two[0].size("a") == 507 and two[1].size("b") == 500 and two[0].size("c") == 0
    assert other.delete("a", "one") and not one.delete("a", "one")
    assert one.get("a", "one") is None and one.content("a", "one") is None
    assert one.segments("a", "one", [1]) == {} and two[0].size("a") == 7


@pytest.mark.parametrize("id", ["one", "", "x:y", "one:one", "no"])
def test_a_tenant_finds_nothing_of_another_nor_what_is_no_id(two: Two, id: str) -> None:
    storage = two[0].documents
    assert storage.make(DOCUMENT, CONTENT, SEGMENTS, 2)
    put = replace(DOCUMENT, id="one", tenant="b", version=2)
    assert not storage.put(put, {1: SEGMENTS[1]}, {(1, 0): {}})
    storage.note("b", id, Person("Ann", "", 1, 1.0, 1.0), 0.0)
    assert storage.get("b", id) is None and storage.content("b", id) is None
    assert storage.segments("b", id, [1]) == {} and storage.changes("b", id, 0) == []
    assert storage.history("b", id, 1, 9) == [] == storage.people("b", id)
    assert not storage.delete("b", id)
    assert storage.get("a", "one") == DOCUMENT and storage.people("a", "one") == []
    assert storage.segments("a", "one", [1]) == {1: SEGMENTS[0]}


def test_of_two_changes_of_one_version_the_later_is_not_made(two: Two) -> None:
    one, other = (storage.documents for storage in two)
    assert one.make(DOCUMENT, CONTENT, SEGMENTS, 2)
    first = replace(DOCUMENT, version=2, size=600, head={"name": "b"})
    changed = {2: {"source": "Où 2 ?", "text": "Là."}}
    assert one.put(first, changed, {(2, 0): {"text": "Là."}})
    assert not other.put(replace(first, head={"name": "c"}), {1: {}}, {(1, 0): {}})
    assert other.get("a", "one") == first and two[1].size("a") == 600
    assert other.segments("a", "one", [1, 2]) == {1: SEGMENTS[0]} | changed
    assert other.changes("a", "one", 1) == [2] and other.changes("a", "one", 2) == []
    assert other.changes("a", "one", 0) == [1, 2, 3]
    assert other.put(replace(first, version=3), {3: {"text": ""}, 1: {"text": "a"}}, {})
    assert one.changes("a", "one", 1) == [1, 2, 3] and one.changes("a", "one", 2) == [1, 3]
    assert one.history("a", "one", 2, 5) == [{"text": "Là."}] and not one.history("a", "one", 1, 5)
    assert not one.put(replace(first, id="no", version=4), {}, {})


def test_a_slot_of_a_history_has_what_was_noted_last(two: Two) -> None:
    one, other = (storage.documents for storage in two)
    assert one.make(DOCUMENT, CONTENT, SEGMENTS, 2)
    notes = {(1, 0): {"n": 0}, (1, 1): {"n": 1}, (2, 0): {"n": 2}}
    assert one.put(replace(DOCUMENT, version=2), {}, notes)
    assert one.put(replace(DOCUMENT, version=3), {}, {(1, 0): {"n": 3}})
    found = sorted(entry["n"] for entry in other.history("a", "one", 1, 5))
    assert found == [1, 3] and other.history("a", "one", 2, 5) == [{"n": 2}]


def test_people_are_noted_and_forgotten(two: Two) -> None:
    one, other = (storage.documents for storage in two)
    assert one.make(DOCUMENT, CONTENT, SEGMENTS, 2)
    ann, ben = Person("Ann", "t1", 3, 10.5, 10.5), Person("Ben", "t1", None, 11.0, 20.0)
    second_tab = Person("Ann", "t2", 1, 12.0, 12.0)
    for person in (ben, ann, second_tab):
        one.note("a", "one", person, 0.0)
    assert other.people("a", "one") == [ann, second_tab, ben]
    moved = replace(ann, number=4, since=21.0, seen=21.0)
    other.note("a", "one", moved, 15.0)
    assert one.people("a", "one") == [moved, ben]
    one.note("a", "no", ann, 0.0)
    assert other.delete("a", "one") and one.people("a", "one") == []
