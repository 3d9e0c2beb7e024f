"""Changes of many threads that are put on disk together: one wait for the disk costs as much as
many."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

State = TypeVar("State")

MAX_GROUP = 64  # changes that are put on disk together
PATIENCE = 1.0  # seconds after which a group is ended by whoever waits for it


class _Group(Generic[State]):
    """Changes that nobody has acknowledged yet."""

    def __init__(self, state: State, end: Callable[[State], None]) -> None:
        self.state, self.end, self.size = state, end, 0
        self.ended = threading.Event()
        self.error: BaseException | None = None


class Grouped(Generic[State]):
    """Of one place on disk; for any thread."""

    def __init__(self) -> None:
        self._turn, self._counting = threading.Lock(), threading.Lock()
        self._waiting = self._tries = 0
        self._group: _Group[State] | None = None
        self._failure: tuple[int, BaseException] | None = None  # of the try with this number

    @contextmanager
    def change(self, begin: Callable[[], State], end: Callable[[State], None]) -> Iterator[State]:
        """Gives what a change is made in. The change that is made in the block is on disk when the
        block has ended. One change is made at a time; where others wait, they join the group, and
        the last one ends it. A block that raises must leave the state as it was.

        begin: opens a group, with what its changes are made in.
        end: puts all changes of a group on disk, or none where it raises.

        Raises what `begin` and `end` raise; where `begin` fails, it fails for all that waited for
        it."""
        tries = self._tries
        self._take_turn()
        try:
            if self._group is None:
                self._check_failure(tries)
                self._group = _Group(self._attempt(begin), end)
            group = self._group
            try:
                yield group.state
                group.size += 1
            finally:
                if not self._waiting or group.size >= MAX_GROUP:
                    self._finish(group)
        finally:
            self._turn.release()
        while not group.ended.wait(PATIENCE):  # whoever was to join it did not come
            with self._turn:
                if self._group is group:
                    self._finish(group)
        error = group.error
        try:
            if error is not None:
                raise error
        finally:
            del error, group  # an error that its own frames hold on to would hold on to files

    def _attempt(self, begin: Callable[[], State]) -> State:
        self._tries += 1
        try:
            return begin()
        except Exception as error:
            self._failure = self._tries, copy.copy(error)  # without its frames, which hold files
            raise

    def _check_failure(self, tries: int) -> None:
        """Raises what a try has raised that began after so many others."""
        if self._failure is not None and self._failure[0] > tries:
            raise copy.copy(self._failure[1])

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is changed while the block runs."""
        with self._turn:
            if self._group is not None:
                self._finish(self._group)
            yield

    def _take_turn(self) -> None:
        with self._counting:
            self._waiting += 1
        try:
            self._turn.acquire()
        finally:
            with self._counting:
                self._waiting -= 1

    def _finish(self, group: _Group[State]) -> None:
        self._group = None
        try:
            group.end(group.state)
        except BaseException as error:
            group.error = error
        finally:
            group.ended.set()
            del group
