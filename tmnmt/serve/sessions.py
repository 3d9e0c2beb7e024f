"""Sessions by their ids, as long as the server runs; each is of one tenant."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tmnmt.engine.session import Session
from tmnmt.serve.keys import Caller
from tmnmt.serve.refused import Refused, unknown

if TYPE_CHECKING:
    from tmnmt.serve.service import Model

IDLE = 24 * 3600.0  # seconds after which a session that nobody used is forgotten
MOST_CONFIRMED = 20_000  # in one session


@dataclass
class Open:
    """A session that a client has begun. `memory`: the name of the one that is written to."""

    id: str
    tenant: str
    model: Model
    session: Session
    memory: str | None
    memories: tuple[str, ...]  # names of all that it reads
    used: float = field(default_factory=time.monotonic)


class Sessions:
    """For one thread, that of the loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str, Open] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(
        self,
        caller: Caller,
        model: Model,
        session: Session,
        memory: str | None,
        memories: tuple[str, ...],
    ) -> Open:
        """Raises Refused where there are too many."""
        now = time.monotonic()
        self._open = {id: one for id, one in self._open.items() if now - one.used < IDLE}
        if len(self._open) >= self._most:
            raise Refused(429, "busy", "there are too many sessions; delete some", 60)
        one = Open(secrets.token_urlsafe(16), caller.tenant, model, session, memory, memories)
        self._open[one.id] = one
        return one

    def get(self, id: str, caller: Caller) -> Open:
        """Raises Refused for a session that is not there, or another tenant's: which of both is not
        told."""
        one = self._open.get(id)
        if one is None or one.tenant != caller.tenant:
            raise unknown("there is no such session")
        if not all(caller.sees(name) for name in one.memories):
            raise unknown("there is no such session")
        one.used = time.monotonic()
        return one

    def end(self, id: str, caller: Caller) -> None:
        one = self._open.pop(self.get(id, caller).id)
        one.session.forget_work()

    @staticmethod
    def check_room(one: Open) -> None:
        """Raises Refused where so much was confirmed in a session that it takes no more."""
        if len(one.session.done) >= MOST_CONFIRMED:
            raise Refused(
                409, "full", f"a session holds {MOST_CONFIRMED:,} confirmed pairs; begin another"
            )
