"""A document, its session and its memory agree, whichever call fails and whenever a process is
killed."""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tmnmt.errors import ServerError
from tmnmt.index import build
from tmnmt.segments import Segment
from tmnmt.serve.documents import Upload
from tmnmt.serve.keys import ANYBODY
from tmnmt.serve.running import service_of
from tmnmt.serve.service import Service
from tmnmt.serve.sessions import SessionSetup
from tmnmt.serve.workspace import confirmations
from tmnmt.serve.workspace.confirmations import Confirming
from tmnmt.serve.workspace.documents import Edit
from tmnmt.serve.workspace.opening import read_file
from tmnmt.serve.workspace.segment import WorkSegment

TEXT = "Close\nOpen\nClose\nClose\n"
ID = "document-1"
NEVER = 10**9
STORAGE_CALLS = ("intend", "share", "append", "withdraw", "settle", "cancel", "drop", "put")


class Killed(BaseException):
    """The process ends here."""


class Faults:
    """Which call fails, by its number from 0, and whether it is done before; all that follow fail,
    too, where the process is killed."""

    def __init__(self, number: int, is_done: bool, error: type[BaseException]) -> None:
        self.number, self.is_done, self.error = number, is_done, error
        self.count = 0

    def call(self, work: Callable[[], Any]) -> Any:
        number, self.count = self.count, self.count + 1
        fails = number == self.number or (self.error is Killed and number > self.number)
        if fails and not (self.is_done and number == self.number):
            raise self.error("failed")
        answer = work()
        if fails:
            raise self.error("failed")
        return answer


class Faulty:
    def __init__(self, place: Any, faults: Faults) -> None:
        self._place, self._faults = place, faults

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._place, name)
        if name not in STORAGE_CALLS:
            return found
        return lambda *given, **more: self._faults.call(lambda: found(*given, **more))


class Desk:
    """A document of a server without a model, which may be started again."""

    def __init__(self, folder: Path, states: str, write_to: str | None) -> None:
        build(folder / "law", [Segment("It was there.", "Il y était.")], "en", "fr")
        self._folder, self._states = folder, states
        self.service = self._started()
        content = base64.b64encode(TEXT.encode()).decode()
        file = read_file(Upload("a.txt", content, "en", "fr", False))
        memories = ("law", "own") if write_to else ("law",)
        setup = SessionSetup(memories, write_to, name="a.txt", document=ID)
        model = self.service.pairs[0]
        session = self.service.begin(model, ANYBODY, setup, file.background)
        head = {"name": "a.txt", "session": session.record, "unprepared": None}
        self.service.documents.make(ID, ANYBODY, head, TEXT.encode(), file.segments)

    def _started(self) -> Service:
        own = [f"own={self._folder / 'own'}"]
        return service_of([], [f"law={self._folder / 'law'}"], own, sessions=self._states)

    def start_again(self) -> None:
        self.service.stop()
        for memory in self.service.memories:
            index: Any = memory.index
            index.close()
        self.service = self._started()
        self.service.confirmations.settle(ID, self._session(), ANYBODY)

    def _session(self) -> Any:
        document = self.service.documents.get(ID, ANYBODY)
        model = self.service.pairs[0]

        def create(_: str, setup: SessionSetup, pairs: Any) -> Any:
            return model, self.service._view(model, ANYBODY, setup)[1]

        return self.service.sessions.get(document.head["session"]["id"], ANYBODY, create)

    def fail(self, faults: Faults) -> None:
        documents, sessions = self.service.documents, self.service.sessions
        documents._storage = Faulty(self.service.storage.documents, faults)
        faulty: Any = Faulty(self.service.storage.sessions, faults)
        sessions._storage = sessions._intentions._storage = faulty

    def work_again(self) -> None:
        documents, sessions = self.service.documents, self.service.sessions
        documents._storage = self.service.storage.documents
        sessions._storage = sessions._intentions._storage = self.service.storage.sessions

    def confirm(self, text: str, version: int = NEVER) -> None:
        wish = Confirming(version, text, repetitions=True, request=f"r {text}")
        self.service.confirmations.confirm(ID, self._session(), ANYBODY, 1, wish)

    def undo(self) -> None:
        self.service.confirmations.undo(ID, self._session(), ANYBODY, None)

    def segments(self) -> dict[int, WorkSegment]:
        documents = self.service.documents
        return documents.segments(documents.get(ID, ANYBODY))

    def check(self) -> list[str | None]:
        """What is confirmed in the document; the session and the memory hold the same."""
        session = self._session()
        pairs = self.service.sessions.confirmed_pairs(session)
        names = [entry["segment"] for entry in self.service.sessions.feedback(session)]
        in_session = {int(n): pair.tgt for n, pair in zip(names, pairs, strict=True)}
        segments = self.segments()
        confirmed = {n: s.confirmed for n, s in segments.items() if s.confirmed is not None}
        assert confirmed == in_session and len(names) == len(in_session)
        assert not any(segment.pending for segment in segments.values())
        own = next(memory for memory in self.service.memories if memory.name == "own")
        targets = sorted(segment.tgt for segment in own.index.segments())
        expected = sorted({*in_session.values()}) if session.setup.write_to else []
        assert targets == expected
        return [segments[number].confirmed for number in sorted(segments)]


@pytest.fixture(params=["own", None], ids=["memory", "session"])
def desk(
    request: pytest.FixtureRequest, tmp_path: Path, states: str, monkeypatch: pytest.MonkeyPatch
) -> Desk:
    monkeypatch.setattr(confirmations, "ABANDONED", -1.0)  # nobody else is about it
    return Desk(tmp_path, states, request.param)


def begin(desk: Desk) -> None:
    """As it stood before a call failed."""
    for _ in range(9):
        if not any(segment.confirmed for segment in desk.segments().values()):
            return
        desk.undo()


@pytest.mark.parametrize("error", [Killed, ServerError])
@pytest.mark.parametrize("work", ["confirm", "again", "undo"])
def test_whichever_call_fails_document_session_and_memory_agree(
    desk: Desk, work: str, error: type[BaseException]
) -> None:
    counted, number = Faults(NEVER, False, error), -1
    while number < counted.count:
        for is_done in (False, True):
            begin(desk)
            if work != "confirm":
                desk.confirm("Fermer")
            faults = Faults(number, is_done, error) if number >= 0 else counted
            desk.fail(faults)
            with suppress(error):
                if work == "undo":
                    desk.undo()
                else:
                    desk.confirm("Clore" if work == "again" else "Fermer")
            desk.work_again()
            if error is Killed:
                desk.start_again()
            else:
                desk.service.confirmations.settle(ID, desk._session(), ANYBODY)
                desk.service.sessions._intentions._mend_pending()
            texts = desk.check()
            assert {*texts} <= {None, "Fermer", "Clore"} and texts[1] is None
            if work == "confirm":
                desk.confirm("Fermer")  # the request comes again
                assert desk.check() == ["Fermer", None, "Fermer", "Fermer"]
        number += 1
    assert counted.count >= 7


def test_a_draft_that_is_written_while_it_is_confirmed_stays(desk: Desk) -> None:
    documents = desk.service.documents
    settle, session = desk.service.sessions.confirm, desk._session()

    def meanwhile(*given: Any, **more: Any) -> None:
        settle(*given, **more)

        def write(segments: Any) -> Any:
            return [Edit(segments[1].write("Fermer !", "person", None, ()), "draft")]

        documents.change(ID, ANYBODY, [1], write)

    desk.service.sessions.confirm = meanwhile  # type: ignore[method-assign]
    wish = Confirming(99, "Fermer", request="r")
    done = desk.service.confirmations.confirm(ID, session, ANYBODY, 1, wish).segment
    assert (done.confirmed, done.text, done.state) == ("Fermer", "Fermer !", "draft")
