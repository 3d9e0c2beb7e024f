"""What every storage promises, held by a file of SQLite and by a Redis. Two of one place see the
same."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from tmnmt.codes.record import Text
from tmnmt.engine.confirmed import confirmed_now
from tmnmt.segments import ConfirmedPair
from tmnmt.serve.storage.base import Storage
from tmnmt.serve.storage.opening import open_storage, place_of
from tmnmt.serve.storage.records import (
    Dictionary,
    Glossary,
    Intention,
    Job,
    StoredSession,
)

SESSION = StoredSession("one", "a", "model", {"memories": ["law"], "options": {"beam": 2}}, 100.25)
JOB = Job("job-1", "import", {"file": "é.tmx"}, "awaiting", 0, None, {}, False, 100.0)
TERMS = Dictionary("en", "fr", (("State", "État"), ("permit", "permis")))
GLOSSARY = Glossary("8f-2", "mine: é", "2026-01-01T00:00:00.000001Z", (TERMS,))
Two = tuple[Storage, Storage]


@pytest.fixture
def two(states: str) -> Iterator[Two]:
    with (
        closing(open_storage(place_of(states))) as one,
        closing(open_storage(place_of(states))) as other,
    ):
        yield one, other


def pair(number: int) -> ConfirmedPair:
    return confirmed_now(Text(f"Source {number}."), Text(f"Cible « {number} »."))


def test_sessions_are_made_listed_and_deleted(two: Two) -> None:
    one, other = (storage.sessions for storage in two)
    assert one.make(SESSION, 0.0, 2) and other.make(replace(SESSION, id="two"), 0.0, 2)
    assert not one.make(replace(SESSION, id="three"), 0.0, 2)
    assert one.make(replace(SESSION, id="three", tenant="b"), 0.0, 2)
    assert other.get("a", "one") == SESSION and other.get("b", "one") is None
    assert other.get("a", "three") is None and other.get("a", "x:y") is None
    assert other.get("a", "") is None and other.count() == 3
    assert [session.id for session, _ in one.tenant_sessions("a")] == ["one", "two"]
    assert not other.delete("b", "one") and not other.delete("a", "") and one.count() == 3
    assert other.delete("a", "one") and not one.delete("a", "one")
    assert one.get("a", "one") is None and one.count() == 2


def test_a_session_keeps_what_was_confirmed_before_it(two: Two) -> None:
    one, other = (storage.sessions for storage in two)
    pairs = [pair(1), pair(2)]
    assert one.make(SESSION, 0.0, 2, pairs) and one.make(replace(SESSION, id="two"), 0.0, 2)
    assert other.background("a", "one") == pairs == one.background("a", "one")
    assert one.background("b", "one") == [] == one.background("a", "two")
    assert other.background("a", "x:y") == [] and other.pairs("a", "one") == []
    assert other.confirmed("a", "one") == 0 and other.get("a", "one") == SESSION
    assert two[0].size("a") > len(pairs[0].src)
    assert other.delete("a", "one") and one.background("a", "one") == []


def test_sessions_that_nobody_used_go_with_their_pairs_whosever_they_are(two: Two) -> None:
    one, other = (storage.sessions for storage in two)
    for id, tenant in (("old", "a"), ("older", "b"), ("used", "a")):
        assert one.make(replace(SESSION, id=id, tenant=tenant), 0.0, 9)
        assert one.append(tenant, id, pair(1), {}, "n") is not None
    other.touch("a", "used", 200.5)
    other.touch("b", "old", 300.0)  # there is no such session
    assert one.make(replace(SESSION, id="new", last_access=300.0), 200.0, 2)
    assert [(session.id, session.last_access) for session, _ in other.tenant_sessions("a")] == [
        ("new", 300.0),
        ("used", 200.5),
    ]
    assert other.tenant_sessions("b") == [] and other.count() == 2
    assert other.pairs("b", "older") == [] == other.pairs("a", "old")
    assert len(other.pairs("a", "used")) == 1


def test_pairs_are_seen_by_the_other_and_taken_back(two: Two) -> None:
    one, other = (storage.sessions for storage in two)
    one.make(SESSION, 0.0, 9)
    pairs = [pair(number) for number in range(4)]
    assert one.changes("a", "one", ()) is None
    assert one.append("a", "one", pairs[0], {"suggested": "Où ?", "keys": 3}, "n") is not None
    assert other.append("a", "one", pairs[1], {}, "n") is not None
    assert other.append("b", "one", pairs[2], {}, "n") is None
    assert one.append("a", "no", pairs[2], {}, "n") is None
    first = one.changes("a", "one", ())
    assert first is not None and (first.retained, list(first.new)) == (0, pairs[:2])
    assert other.changes("a", "one", first.numbers) is None
    assert other.reviews("a", "one") == [
        (pairs[0], {"suggested": "Où ?", "keys": 3}),
        (pairs[1], {}),
    ]
    assert other.reviews("a", "one", 1) == [(pairs[1], {})]
    assert other.reviews("a", "one", 9) == other.reviews("a", "one")
    assert [(session.id, count) for session, count in other.tenant_sessions("a")] == [("one", 2)]
    assert other.withdraw("b", "one", "t") is None
    assert other.withdraw("a", "one", "t") == pairs[1]
    assert one.append("a", "one", pairs[2], {}, "n") is not None
    assert one.append("a", "one", pairs[3], {}, "n") is not None
    second = other.changes("a", "one", first.numbers)
    assert second is not None and (second.retained, list(second.new)) == (1, pairs[2:])
    assert second.numbers[-1] > first.numbers[-1] and one.confirmed("a", "one") == 3
    for expected in (pairs[3], pairs[2], pairs[0], None):
        assert one.withdraw("a", "one", secrets.token_hex(4)) == expected
    third = other.changes("a", "one", second.numbers)
    assert third is not None and (third.retained, third.new, third.numbers) == (0, [], [])
    assert one.confirmed("b", "one") == 0 == len(one.pairs("a", "one"))


def test_an_intention_to_confirm_is_no_pair_until_it_is_settled(two: Two) -> None:
    one, other = (storage.sessions for storage in two)
    one.make(SESSION, 0.0, 9)
    before, after = pair(1), replace(pair(1), id=7)
    assert not one.intend("b", "one", "t", before, {}) and not one.intend(
        "a", "no", "t", before, {}
    )
    assert other.intentions() == []
    assert one.intend("a", "one", "t", before, {"keys": 3})
    assert other.pairs("a", "one") == [] and other.changes("a", "one", ()) is None
    assert other.intentions() == [Intention("t", before)]
    assert other.settle("t", after) == [] and one.settle("t", after) is None
    assert one.reviews("a", "one") == [(after, {"keys": 3})] and one.intentions() == []
    assert one.cancel("t", 1.0) is None


def test_a_pair_that_is_withdrawn_can_be_put_back(two: Two) -> None:
    one, other = (storage.sessions for storage in two)
    one.make(SESSION, 0.0, 9)
    one.append("a", "one", pair(1), {}, "n")
    last = pair(2)
    one.append("a", "one", last, {"suggested": "é, ["}, "n")
    before = other.changes("a", "one", ())
    assert other.withdraw("a", "one", "t") == last and one.confirmed("a", "one") == 1
    assert one.intentions() == [Intention("t", last)]
    assert one.settle("t") is not None and other.reviews("a", "one")[-1] == (
        last,
        {"suggested": "é, ["},
    )
    assert before is not None
    after = other.changes("a", "one", before.numbers)
    assert after is not None and (after.retained, list(after.new)) == (1, [last])


def test_what_is_cancelled_is_never_settled(two: Two) -> None:
    one, other = (storage.sessions for storage in two)
    one.make(SESSION, 0.0, 9)
    first, second = pair(1), pair(2)
    one.append("a", "one", first, {}, "n")
    one.intend("a", "one", "t", second, {})
    one.withdraw("a", "one", "u")
    for token in ("t", "u"):
        assert other.cancel(token, 12.5) is not None is not other.cancel(token, 99.0)
        assert one.settle(token) is None is one.settle(token, second)
    tokens = sorted(one.intentions(), key=lambda intention: intention.token)
    assert tokens == [Intention("t", second, 12.5), Intention("u", first, 12.5)]
    other.drop("t")
    other.drop("none")
    assert one.intentions() == [Intention("u", first, 12.5)] and one.confirmed("a", "one") == 0


def test_nothing_is_settled_in_a_session_that_is_gone(two: Two) -> None:
    one, other = (storage.sessions for storage in two)
    one.make(SESSION, 0.0, 9)
    one.intend("a", "one", "t", pair(1), {})
    other.delete("a", "one")
    assert one.settle("t", pair(1)) is None and len(one.intentions()) == 1
    assert one.confirmed("a", "one") == 0 and one.cancel("t", 1.0) is not None


def test_a_pair_takes_the_place_of_the_one_of_its_segment(two: Two) -> None:
    one, other = (storage.sessions for storage in two)
    one.make(SESSION, 0.0, 9)
    one.make(replace(SESSION, id="two"), 0.0, 9)
    pairs = [pair(number) for number in range(6)]
    written = replace(pairs[1], id=7, memory="M")
    for each, segment in ((pairs[0], "a"), (written, "b"), (pairs[2], "c"), (pairs[3], None)):
        feedback = {} if segment is None else {"segment": segment}
        assert one.append("a", "one", each, feedback, "t") == []
    assert one.append("a", "two", pairs[4], {"segment": "b"}, "t") == []
    before = other.changes("a", "one", ())
    assert before is not None
    assert one.append("a", "one", pairs[4], {"segment": "a"}, "t") == []
    (gone,) = other.append("a", "one", pairs[5], {"segment": "b"}, "t") or []
    assert gone.token.startswith("t.") and gone.pair == written
    assert one.intentions() == [gone]
    assert one.pairs("a", "one") == [*pairs[2:4], *pairs[4:]]
    after = other.changes("a", "one", before.numbers)
    assert after is not None and (after.retained, list(after.new)) == (0, pairs[2:])
    assert other.changes("a", "one", after.numbers) is None
    assert other.withdraw("a", "one", "u", "c") == pairs[2]
    assert other.withdraw("a", "one", "v", "c") is None
    last = one.changes("a", "one", after.numbers)
    assert last is not None and (last.retained, list(last.new)) == (0, pairs[3:])
    assert other.settle("u") == []
    assert other.withdraw("a", "one", "v", "c") == pairs[2]
    assert other.pairs("a", "two") == [pairs[4]]


def test_an_intention_takes_the_place_of_the_pair_of_its_segment(two: Two) -> None:
    one, other = (storage.sessions for storage in two)
    one.make(SESSION, 0.0, 9)
    first, second = (replace(pair(number), id=number, memory="M") for number in (1, 2))
    one.append("a", "one", first, {"segment": "a"}, "t")
    one.intend("a", "one", "u", replace(second, id=0), {"segment": "a", "keys": 2})
    assert one.pairs("a", "one") == [first]
    (gone,) = other.settle("u", second) or []
    assert gone.pair == first and one.intentions() == [gone]
    assert one.reviews("a", "one") == [(second, {"segment": "a", "keys": 2})]


def test_a_segment_of_a_memory_stays_until_the_last_pair_that_holds_it_is_taken_back(
    two: Two,
) -> None:
    one, other = (storage.sessions for storage in two)
    for id in ("one", "two", "three"):
        one.make(replace(SESSION, id=id), 0.0, 9)
    added = replace(pair(1), id=7, memory="M")
    holders = [replace(pair(1), id=-7, memory="M", changed=f"later {n}") for n in range(2)]
    one.append("a", "one", added, {}, "n")
    one.append("a", "one", replace(pair(2), id=-7, memory="N"), {}, "n")  # of another memory
    other.append("a", "two", holders[0], {"segment": "x"}, "n")
    other.append("a", "three", holders[1], {}, "n")
    assert (one.withdraw("a", "one", "t") or added).id == -7  # the memory had it before
    assert one.withdraw("a", "one", "u") == replace(added, id=-7)
    assert one.settle("u") is not None and one.pairs("a", "one") == [added]
    assert one.withdraw("a", "one", "u") == replace(added, id=-7)
    # the same pair once more in the same segment holds it from before
    assert other.append("a", "two", holders[1], {"segment": "x"}, "n") == []
    assert other.withdraw("a", "three", "v") == holders[1]
    last = one.withdraw("a", "two", "w")
    assert last == replace(holders[1], id=7, changed=added.changed)
    assert one.settle("w") is not None and one.pairs("a", "two") == [holders[1]]
    assert one.withdraw("a", "two", "w") == last


@pytest.mark.parametrize("way", ["deleted", "unused"])
def test_what_a_session_held_that_is_deleted_stays_in_the_memory(two: Two, way: str) -> None:
    one, other = (storage.sessions for storage in two)
    for id in ("one", "two", "three"):
        one.make(replace(SESSION, id=id), 0.0, 9)
    adders = [replace(pair(number), id=number, memory="M") for number in (1, 2)]
    for added, (first, second) in zip(adders, (("one", "two"), ("two", "one")), strict=True):
        one.append("a", first, added, {}, "n")
        one.append("a", second, replace(added, id=-added.id, changed="later"), {}, "n")
    one.append("a", "three", replace(adders[0], id=-1, changed="latest"), {}, "n")
    if way == "deleted":
        assert other.delete("a", "two")
    else:
        for id in ("one", "three"):
            other.touch("a", id, 300.0)
        assert other.make(replace(SESSION, id="new", last_access=300.0), 200.0, 9)
    assert one.get("a", "two") is None
    assert (one.withdraw("a", "one", "t") or pair(0)).id == -2
    assert (one.withdraw("a", "one", "u") or pair(0)).id == -1
    assert (one.withdraw("a", "three", "v") or pair(0)).id == -1


def test_a_pair_on_its_way_holds_the_segment_that_it_found(two: Two) -> None:
    one, other = (storage.sessions for storage in two)
    one.make(SESSION, 0.0, 9)
    one.make(replace(SESSION, id="two"), 0.0, 9)
    added = replace(pair(1), id=7, memory="M")
    found = replace(pair(1), id=-7, memory="M")
    one.append("a", "one", added, {}, "n")
    other.intend("a", "two", "t", replace(found, id=0), {})
    assert other.share("t", found)
    assert one.withdraw("a", "one", "u") == replace(added, id=-7)
    assert other.cancel("t", 1.0) == replace(found, id=7, changed=added.changed)
    assert other.cancel("t", 2.0) == replace(found, id=7, changed=added.changed)
    assert not other.share("t", found) and other.settle("t", found) is None


def test_what_somebody_is_deleting_is_not_shared(two: Two) -> None:
    one, other = (storage.sessions for storage in two)
    one.make(SESSION, 0.0, 9)
    added = replace(pair(1), id=7, memory="M")
    found = replace(pair(1), id=-7, memory="M")
    one.append("a", "one", added, {}, "n")
    assert one.withdraw("a", "one", "u") == added
    other.intend("a", "one", "t", replace(found, id=0), {})
    assert not other.share("t", found)
    one.drop("u")
    assert other.share("t", found)


def test_many_who_take_back_and_confirm_at_once_lose_nothing(two: Two) -> None:
    two[0].sessions.make(SESSION, 0.0, 9)
    undone = list[ConfirmedPair]()

    def work(storage: Storage, thread: int) -> None:
        for number in range(10):
            assert (
                storage.sessions.append("a", "one", pair(10 * thread + number), {}, "n") is not None
            )
            if number % 2:
                last = storage.sessions.withdraw("a", "one", f"{thread}-{number}")
                assert last is not None
                undone.append(last)

    threads = [threading.Thread(target=work, args=(two[n % 2], n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    left = two[0].sessions.pairs("a", "one")
    assert len(undone) == len(left) == 20
    assert {one.src for one in [*undone, *left]} == {f"Source {n}." for n in range(40)}


def test_jobs_are_made_followed_and_forgotten(two: Two) -> None:
    one, other = (storage.jobs for storage in two)
    assert one.make(JOB, "a", 0.0, 1) and not one.make(replace(JOB, id="2"), "a", 0.0, 1)
    assert other.get(JOB.id, "a") == JOB == other.get(JOB.id, None)
    assert other.get(JOB.id, "b") is None and other.get("no:such", None) is None
    assert [other.claim(JOB.id), one.claim(JOB.id), one.claim("none")] == [True, False, False]
    assert one.advance(JOB.id, 5, 10, 200.5) and one.file(JOB.id) is None
    at_work = replace(JOB, state="working", done=5, total=10, changed=200.5)
    assert other.get(JOB.id, "a") == at_work
    made = bytes(range(256))
    one.finish(JOB.id, "done", {"added": 1, "file": "é"}, made, 300.0)
    assert other.file(JOB.id) == made
    ended = replace(
        at_work, state="done", result={"added": 1, "file": "é"}, has_file=True, changed=300.0
    )
    assert other.get(JOB.id, "a") == ended
    assert one.make(replace(JOB, id="other", changed=400.0), "b", 0.0, 1)
    assert not one.delete(JOB.id, "b") and one.delete(JOB.id, "a") and not one.delete(JOB.id, "a")
    assert one.file(JOB.id) is None and not one.advance(JOB.id, 1, None, 1.0)
    one.finish(JOB.id, "done", {}, made, 1.0)
    assert one.get(JOB.id, None) is None is one.file(JOB.id)
    assert one.make(replace(JOB, changed=600.0), "b", 500.0, 1) and one.get("other", None) is None


def test_glossaries_are_made_changed_and_deleted(two: Two) -> None:
    one, other = (storage.glossaries for storage in two)
    empty = replace(GLOSSARY, id="0", created="2026-01-02T00:00:00.000000Z", dictionaries=())
    assert one.make(empty, "a", 2) and one.make(GLOSSARY, "a", 2)
    assert not one.make(replace(GLOSSARY, id="3"), "a", 2)
    assert other.tenant_glossaries("a") == [GLOSSARY, empty] and other.tenant_glossaries("b") == []
    assert other.get("a", GLOSSARY.id) == GLOSSARY and other.get("b", GLOSSARY.id) is None
    german = Dictionary("en", "de", (("State", "Staat"),))
    new = replace(TERMS, entries=(("State", "état"),))
    assert other.change("a", GLOSSARY.id, "new", [german, new])
    assert one.change("a", GLOSSARY.id, None, []) and not one.change("b", GLOSSARY.id, "x", [new])
    changed = replace(GLOSSARY, name="new", dictionaries=(german, new))
    assert one.get("a", GLOSSARY.id) == changed and not one.change("a", "no:such", "x", [])
    assert one.delete_dictionary("a", GLOSSARY.id, "en", "de")
    assert not one.delete_dictionary("a", GLOSSARY.id, "en", "de")
    assert not one.delete_dictionary("b", GLOSSARY.id, "en", "fr")
    assert not one.delete("b", GLOSSARY.id) and one.delete("a", GLOSSARY.id)
    assert not one.delete("a", GLOSSARY.id) and other.tenant_glossaries("a") == [empty]
