"""What a server serves at one moment. A request, and the jobs that it begins, see one state from
beginning to end, also where the server is told meanwhile to serve something else. A state that
nobody sees any more is let go."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from tmnmt.engine.settings import Settings
from tmnmt.serve.memories import Memories, Memory, close
from tmnmt.serve.modelless import NoQueue, memory_pairs
from tmnmt.serve.served_model import Model

if TYPE_CHECKING:
    from tmnmt.serve.keys import Keys
    from tmnmt.serve.terms import TermLists
    from tmnmt.session import Session
    from tmnmt.terms.term_list import TermList
    from tmnmt.translator import Translator

    ViewKey = tuple[str, tuple[str, ...], Settings, str | None, TermList | None]


class Holdings:
    """Models, memories, terms and keys of one state, for any thread.

    models: the models.
    memories: the memories.
    pairs: the models; where there are none, one for each pair of languages of the memories.
    terms: the lists of terms.
    keys: the keys; None lets everybody in.
    views: translators for sets of memories and options that are kept."""

    def __init__(
        self,
        models: Sequence[Model],
        memories: Sequence[Memory],
        terms: TermLists,
        keys: Keys | None = None,
    ) -> None:
        """models: the models.
        memories: the memories.
        terms: the lists of terms.
        keys: the keys; None lets everybody in."""
        self.models, self.memories = list(models), Memories(memories)
        self.pairs = self.models or [
            Model(f"memories.{pair.src_lang}-{pair.tgt_lang}", NoQueue(pair))
            for pair in memory_pairs(memories)
        ]
        self.terms, self.keys = terms, keys
        self.views: dict[ViewKey, tuple[Translator, Session]] = {}
        self._users = 0
        self._unused = threading.Condition()
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Whether it was let go."""
        return self._is_closed

    def retain(self) -> Callable[[], None]:
        """Counts one more who sees this state, and returns what to call in the end."""
        with self._unused:
            self._users += 1

        def release() -> None:
            with self._unused:
                self._users -= 1
                self._unused.notify_all()

        return release

    @contextmanager
    def bound(self) -> Iterator[None]:
        """What is done in the block sees this state, and so does what is begun in it."""
        release, token = self.retain(), _BOUND.set(self)
        try:
            yield
        finally:
            _BOUND.reset(token)
            release()

    def close(self, successor: Holdings) -> None:
        """Waits until nobody sees this state, and lets go of what the next one does not have.

        successor: the next state."""
        with self._unused:
            self._unused.wait_for(lambda: self._users == 0)
            self._is_closed = True
        discard(self, successor)
        self.views.clear()


def discard(holdings: Holdings, other: Holdings | None) -> None:
    """Ends the models of a state and closes its memories, as far as another one lacks them.

    holdings: the state.
    other: the other one; None has nothing."""
    queues = {id(model.queue) for model in other.models} if other is not None else set()
    indexes = {id(memory.index) for memory in other.memories} if other is not None else set()
    for model in holdings.models:
        if id(model.queue) not in queues:
            model.queue.stop()
    for memory in holdings.memories:
        if id(memory.index) not in indexes:
            close(memory)


def bound_holdings() -> Holdings | None:
    """The state that the request sees which is being answered; None where there is none."""
    holdings = _BOUND.get()
    return None if holdings is None or holdings.is_closed else holdings


_BOUND: ContextVar[Holdings | None] = ContextVar("holdings", default=None)
