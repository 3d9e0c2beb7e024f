"""Session and memory agree, whichever call of either fails, and whenever a process is killed."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tmnmt.codes.record import Text
from tmnmt.engine.confirmation import written_to
from tmnmt.engine.confirmed import gives_translation, holds_pair
from tmnmt.errors import LockedError, ServerError, TmnmtError
from tmnmt.index import MemoryIndex, build
from tmnmt.segments import ConfirmedPair, Segment
from tmnmt.serve import intentions as module
from tmnmt.serve.http_error import Refused
from tmnmt.serve.intentions import Intentions
from tmnmt.serve.storage.base import Storage
from tmnmt.serve.storage.opening import open_storage, place_of
from tmnmt.serve.storage.records import StoredSession

SESSION = StoredSession("one", "a", "model", {}, 100.0)
ABOUT = "a", "one"
OTHER = replace(SESSION, id="two")
STORAGE_CALLS = ("get", "intend", "share", "withdraw", "settle", "cancel", "drop", "intentions")
MEMORY_CALLS = ("search", "look_up", "add", "get", "delete")


class Killed(BaseException):
    """The process ends here."""


class Faulty:
    """Passes calls on, but for one: it fails before it is done, or only its answer is lost."""

    def __init__(self, place: Any, calls: tuple[str, ...], faults: Faults) -> None:
        self._place, self._calls, self._faults = place, calls, faults

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._place, name)
        if name not in self._calls:
            return found

        def call(*given: Any, **more: Any) -> Any:
            return self._faults.call(name, lambda: found(*given, **more))

        return call


class Faults:
    """`number`: of the call that fails, from 0; `lasts`: so do all that follow."""

    def __init__(self, number: int, after: bool, error: type[BaseException], lasts: bool) -> None:
        self.number, self.after, self.error, self.lasts = number, after, error, lasts
        self.count = 0

    def call(self, name: str, work: Callable[[], Any]) -> Any:
        number, self.count = self.count, self.count + 1
        fails = number == self.number or (self.lasts and number > self.number)
        if fails and not self.after:
            raise self.error(name)
        answer = work()
        if fails:
            raise self.error(name)
        return answer


@pytest.fixture
def storage(states: str) -> Iterator[Storage]:
    with closing(open_storage(place_of(states))) as storage:
        storage.sessions.make(SESSION, 0.0, 9)
        storage.sessions.make(OTHER, 0.0, 9)
        yield storage


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryIndex]:
    build(tmp_path / "memory", [Segment("It was there.", "Il y était.")], "en", "fr")
    with MemoryIndex.open(tmp_path / "memory") as index:
        yield index


def confirm(
    intentions: Intentions, memory: Any, number: int, segment: str = "", session: str = "one"
) -> None:
    texts = Text(f"Notice {number}."), Text(f"Avis {number}.")
    feedback = {"keys": number, **({"segment": segment} if segment else {})}
    intentions.confirm("a", session, memory, texts, feedback)


def pairs(storage: Storage, session: str = "one") -> list[str]:
    return [pair.src for pair in storage.sessions.pairs("a", session)]


def in_memory(memory: MemoryIndex) -> list[str]:
    return sorted(s.src for s in memory.segments() if s.src.startswith("Notice"))


def assert_that_they_agree(storage: Storage, memory: MemoryIndex) -> None:
    """The memory has what any session lists, once, and nothing else."""
    assert sorted({*pairs(storage), *pairs(storage, "two")}) == in_memory(memory)
    assert_that_each_segment_is_held(storage, memory)


def assert_that_each_segment_is_held(storage: Storage, memory: MemoryIndex) -> None:
    """What any session lists is in the memory, and each segment there is that of such a pair."""
    by_id = {segment.id: segment for segment in memory.segments()}
    segment_ids = set[int]()
    for session in ("one", "two"):
        for pair in storage.sessions.pairs("a", session):
            segment = by_id[abs(pair.id)]
            has = gives_translation if pair.id < 0 else holds_pair
            assert has(segment, pair)
            segment_ids.add(segment.id)
    assert {id for id, segment in by_id.items() if segment.src.startswith("Notice")} == segment_ids


def tries(work: Callable[[Faults], bool], error: type[BaseException]) -> None:
    """`work` with every call failing in turn, until it makes no more calls."""
    for after in (False, True):
        for lasts in (False, True):
            number = 0
            while work(Faults(number, after, error, lasts)):
                number += 1
            assert number >= 2


FAILING = pytest.mark.parametrize(
    ("place", "error"),
    [
        ("storage", ServerError),
        ("memory", ServerError),
        ("memory", LockedError),
        ("both", Killed),
    ],
)


@FAILING
def test_whatever_fails_once_a_pair_is_confirmed_in_both_or_in_neither(
    storage: Storage, memory: MemoryIndex, place: str, error: type[BaseException]
) -> None:
    numbers = iter(range(10_000))

    def once(faults: Faults) -> bool:
        places = faulty(storage, memory, faults, place)
        intentions = Intentions(places[0], [places[1]])
        number, before = next(numbers), pairs(storage)
        is_confirmed = True
        try:
            confirm(intentions, places[1], number)
        except (TmnmtError, Refused, Killed):
            is_confirmed = False
        has_failed = faults.count > faults.number
        mended(storage, memory)
        assert_that_they_agree(storage, memory)
        after = [*before, f"Notice {number}."]
        # an answer that is lost for good may be of the last call, and nobody can know
        is_unknown = faults.after and (faults.lasts or faults.error is Killed)
        expected = [after] if is_confirmed else [before, *([after] if is_unknown else [])]
        assert pairs(storage) in expected
        return has_failed

    tries(once, error)


@FAILING
def test_whatever_fails_once_a_pair_is_taken_back_from_both_or_from_neither(
    storage: Storage, memory: MemoryIndex, place: str, error: type[BaseException]
) -> None:
    numbers = iter(range(10_000))
    for _ in range(2):
        confirm(Intentions(storage.sessions, [memory]), memory, next(numbers))

    def once(faults: Faults) -> bool:
        confirm(Intentions(storage.sessions, [memory]), memory, next(numbers))
        places = faulty(storage, memory, faults, place)
        before = pairs(storage)
        is_undone = True
        try:
            Intentions(places[0], [places[1]]).undo(*ABOUT)
        except (TmnmtError, Refused, Killed):
            is_undone = False
        has_failed = faults.count > faults.number
        mended(storage, memory)
        assert_that_they_agree(storage, memory)
        assert pairs(storage) in (before, before[:-1])
        assert not is_undone or pairs(storage) == before[:-1]
        return has_failed

    tries(once, error)


@FAILING
def test_whatever_fails_once_a_pair_takes_the_place_of_another_or_does_not(
    storage: Storage, memory: MemoryIndex, place: str, error: type[BaseException]
) -> None:
    """The pair of a segment, which has been confirmed before with other words."""
    numbers = iter(range(10_000))
    first = Intentions(storage.sessions, [memory])
    confirm(first, memory, next(numbers), "s")
    confirm(first, memory, next(numbers), "other")

    def once(faults: Faults) -> bool:
        places = faulty(storage, memory, faults, place)
        intentions = Intentions(places[0], [places[1]])
        number, before = next(numbers), pairs(storage)
        is_confirmed = True
        try:
            confirm(intentions, places[1], number, "s")
        except (TmnmtError, Refused, Killed):
            is_confirmed = False
        has_failed = faults.count > faults.number
        mended(storage, memory)
        assert_that_they_agree(storage, memory)
        after = sorted(["Notice 1.", f"Notice {number}."])
        # killed behind the settlement, or without an answer of the last call
        is_unknown = faults.error is Killed or (faults.after and faults.lasts)
        expected = [after] if is_confirmed else [before, *([after] if is_unknown else [])]
        assert sorted(pairs(storage)) in [sorted(each) for each in expected]
        return has_failed

    tries(once, error)


@FAILING
def test_whatever_fails_once_what_two_sessions_confirmed_stays_while_one_has_it(
    storage: Storage, memory: MemoryIndex, place: str, error: type[BaseException]
) -> None:
    whole = Intentions(storage.sessions, [memory])

    def once(faults: Faults) -> bool:
        for session in ("one", "two"):
            while pairs(storage, session):
                whole.undo("a", session)
        assert in_memory(memory) == []
        places = faulty(storage, memory, faults, place)
        intentions = Intentions(places[0], [places[1]])
        confirm(whole, memory, 1)
        try:
            confirm(intentions, places[1], 1, session="two")
            assert intentions.undo("a", "one") is not None
            confirm(intentions, places[1], 1, session="one")
            assert intentions.undo("a", "two") is not None
            assert in_memory(memory) == ["Notice 1."]
            assert intentions.undo("a", "one") is not None
        except (TmnmtError, Refused, Killed):
            pass
        mended(storage, memory)
        assert_that_they_agree(storage, memory)
        return faults.count > faults.number

    tries(once, error)


@pytest.mark.parametrize("seed", range(3))
def test_two_who_confirm_and_take_back_the_same_pairs_at_once_agree(
    storage: Storage, memory: MemoryIndex, seed: int
) -> None:
    """Where both confirm the same pair at the same moment each may add a segment of its own, which
    is deleted as its own pair is taken back."""
    failures = list[BaseException]()

    def work(session: str) -> None:
        drawn = random.Random(f"{seed} {session}")
        intentions = Intentions(storage.sessions, [memory])
        try:
            for _ in range(40):
                try:
                    if drawn.random() < 0.6:
                        segment = drawn.choice(("", "s", "t"))
                        confirm(intentions, memory, drawn.randrange(3), segment, session)
                    else:
                        intentions.undo("a", session, drawn.choice((None, "s")))
                except (LockedError, Refused):
                    continue
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(session,)) for session in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures
    mended(storage, memory)
    assert_that_each_segment_is_held(storage, memory)
    for session in ("one", "two"):
        while pairs(storage, session):
            Intentions(storage.sessions, [memory]).undo("a", session)
    assert in_memory(memory) == []


def faulty(storage: Storage, memory: MemoryIndex, faults: Faults, place: str) -> tuple[Any, Any]:
    """The sessions of a storage and a memory, one of which, or both, fail."""
    sessions: Any = storage.sessions
    if place in ("storage", "both"):
        sessions = Faulty(sessions, STORAGE_CALLS, faults)
    return sessions, Faulty(memory, MEMORY_CALLS, faults) if place != "storage" else memory


def mended(storage: Storage, memory: MemoryIndex) -> None:
    """As a server does that is started."""
    Intentions(storage.sessions, [memory]).mend()


def test_a_process_mends_what_it_could_not_before_it_confirms_again(
    storage: Storage, memory: MemoryIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    intentions = Intentions(storage.sessions, [memory])
    sessions: Any = storage.sessions

    def fails(*given: Any) -> Any:
        raise ServerError("locked")

    with monkeypatch.context() as patch:
        patch.setattr(sessions, "settle", fails)
        patch.setattr(sessions, "cancel", fails)
        with pytest.raises(ServerError):
            confirm(intentions, memory, 1)
    assert pairs(storage) == [] and in_memory(memory) == ["Notice 1."]
    confirm(intentions, memory, 2)
    assert pairs(storage) == in_memory(memory) == ["Notice 2."]
    assert storage.sessions.intentions() == []


def test_a_server_that_starts_disturbs_no_other_that_confirms(
    storage: Storage, memory: MemoryIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cancels what the other is about, which tries again."""
    other, draw = Intentions(storage.sessions, [memory]), random.Random(1)
    calls = ("intend", "settle", "cancel", "drop")
    sessions = Interrupted(storage.sessions, calls, lambda: draw.random() < 0.3 and other.mend())
    intentions = Intentions(sessions, [memory])
    for number in range(40):
        try:
            confirm(intentions, memory, number)
        except Refused as refused:
            assert refused.status == 503 and f"Notice {number}." not in pairs(storage)
        else:
            assert pairs(storage)[-1] == f"Notice {number}."
        assert_that_they_agree(storage, memory)
        if number % 3 == 0 and pairs(storage):
            last = pairs(storage)[-1]
            undone = intentions.undo(*ABOUT)
            assert undone is not None and undone.src == last
            assert_that_they_agree(storage, memory)
    assert len(pairs(storage)) > 15


class Interrupted(Faulty):
    """Passes calls on; before each, something else happens."""

    def __init__(self, place: Any, calls: tuple[str, ...], before: Callable[[], object]) -> None:
        self._place, self._calls, self._before = place, calls, before

    def __getattr__(self, name: str) -> Any:
        if name in self._calls:
            self._before()
        return getattr(self._place, name)


def test_what_is_written_after_all_is_found_later_though_it_was_cancelled(
    storage: Storage, memory: MemoryIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was stopped between its intention and the memory, and is killed then."""
    pair = replace(ConfirmedPair("Notice 1.", "Avis 1.", changed="2026-01-01T00:00:00.000001Z"))
    storage.sessions.intend(*ABOUT, "token", replace(pair, memory=memory.place), {})
    mended(storage, memory)
    written_to(memory, pair)
    assert in_memory(memory) == ["Notice 1."]
    mended(storage, memory)
    assert in_memory(memory) == [] and len(storage.sessions.intentions()) == 1
    monkeypatch.setattr(module, "STOPPED", -1.0)
    mended(storage, memory)
    assert storage.sessions.intentions() == []


def test_what_a_killed_process_has_written_is_shared_with_nobody(
    storage: Storage, memory: MemoryIndex
) -> None:
    """Its intention is mended later, and its segment taken out."""
    pair = ConfirmedPair("Notice 1.", "Avis 1.", changed="2026-01-01T00:00:00.000001Z")
    storage.sessions.intend(*ABOUT, "token", replace(pair, memory=memory.place), {})
    written_to(memory, pair)  # and it is killed
    intentions = Intentions(storage.sessions, [memory])
    confirm(intentions, memory, 1, session="two")
    assert_that_they_agree(storage, memory)
    for _ in range(2):
        mended(storage, memory)
        assert in_memory(memory) == ["Notice 1."]
        assert_that_they_agree(storage, memory)


def test_what_a_memory_holds_that_is_not_served_waits_until_it_is(
    storage: Storage, memory: MemoryIndex, caplog: pytest.LogCaptureFixture
) -> None:
    pair = ConfirmedPair("Notice 1.", "Avis 1.", changed="2026-01-01T00:00:00.000001Z")
    written_to(memory, pair)
    storage.sessions.intend(*ABOUT, "token", replace(pair, memory=memory.place), {})
    Intentions(storage.sessions, []).mend()
    assert f"may be left in {memory.place}" in caplog.text and in_memory(memory) == ["Notice 1."]
    mended(storage, memory)
    assert in_memory(memory) == []
