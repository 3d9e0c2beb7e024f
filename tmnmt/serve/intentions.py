"""Pairs on their way between a session and the memory that it writes to: two places, each of which
can fail by itself, and a process that can be killed between them.

First the storage of sessions notes the intention, then the memory is changed, then the storage is
told. A pair of an intention is in no session. So where one is left behind, the pair is taken out of
the memory: what was to be confirmed is not confirmed, and what was to be taken back is.

Where the memory has the translation already, nothing is added, and the pair holds the segment that
is there. Such a segment stays until nobody holds it any more (`tmnmt.serve.storage.base`)."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from tmnmt.codes.record import Text
from tmnmt.engine.confirmation import deleted_from, written_to
from tmnmt.engine.confirmed import confirmed_now, holds_pair
from tmnmt.errors import ServerError, TmnmtError
from tmnmt.index.back_ends import same_place
from tmnmt.index.base import UnknownIdError, WritableIndex
from tmnmt.index.pairs import copies
from tmnmt.segments import ConfirmedPair, Segment
from tmnmt.serve.http_error import Refused, unknown
from tmnmt.serve.storage.base import SessionStorage
from tmnmt.serve.storage.records import Feedback, Intention

# Seconds that an intention is kept after another process has cancelled it. Whoever was about it may
# have been stopped meanwhile, write to the memory all the same, and be killed before it is told.
STOPPED = 600.0
TRIES = 3  # of a pair whose intention another process cancels, as each does when it starts

_MICROSECONDS = re.compile(r"\.\d{6}Z$")

log = logging.getLogger("tmnmt.serve")


class Intentions:
    """For any thread."""

    def __init__(self, storage: SessionStorage, memories: Sequence[WritableIndex]) -> None:
        """storage: the storage of sessions.
        memories: all memories that are written to."""
        self._storage, self._memories = storage, memories
        # what could not be mended: tokens, or what they begin with before a dot; and whether
        # nobody but this process is about it
        self._pending = dict[str, bool]()

    def serve(self, memories: Sequence[WritableIndex]) -> None:
        """Takes other memories as those that are written to.

        memories: all of them."""
        self._memories = memories

    def confirm(
        self,
        tenant: str,
        id: str,
        memory: WritableIndex,
        texts: tuple[Text, Text],
        feedback: Feedback,
    ) -> None:
        """Confirms a pair: it is in the session and in the memory then, and the pair of its
        segment, if the feedback names one, is in neither any more.

        tenant: the tenant of the session.
        id: the id of the session.
        memory: the memory.
        texts: the source and the target.
        feedback: what the review is to know of the pair.

        Raises Refused where the session is gone. Raises ServerError for the storage, and what the
        memory raises; then the pair is in neither, or will be once both can be reached."""
        self._mend_pending()
        for _ in range(TRIES):
            # by its time it is known from that of another try, which somebody may be deleting
            if self._is_confirmed(tenant, id, memory, confirmed_now(*texts), feedback):
                return
            if self._storage.get(tenant, id) is None:
                raise unknown("there is no such session")
        raise Refused(503, "busy", "other servers are being started; try again", 1)

    def _is_confirmed(
        self, tenant: str, id: str, memory: WritableIndex, pair: ConfirmedPair, feedback: Feedback
    ) -> bool:
        """False: the session is gone, or another process has cancelled the intention."""
        intention = Intention(secrets.token_hex(16), replace(pair, memory=memory.place))
        is_written = False
        try:
            if not self._storage.intend(tenant, id, intention.token, intention.pair, feedback):
                return False
            stored_pair = written_to(memory, intention.pair)
            is_written = True
            if stored_pair.id > 0 or self._is_shared(intention.token, stored_pair, memory):
                stored_pair = (
                    _taken_over(stored_pair, memory) if feedback.get("resumed") else stored_pair
                )
                replaced = self._storage.settle(intention.token, stored_pair)
                if replaced is not None:
                    self._remove(replaced)
                    return True
        except BaseException:
            if self._is_cancelled(intention) or not is_written:
                raise
            self._pending[intention.token] = True  # of the pair whose place it took, if any
            return True  # the answer of the storage was lost, and nothing else
        self._is_cancelled(intention)
        return False

    def _is_shared(self, token: str, pair: ConfirmedPair, memory: WritableIndex) -> bool:
        """Whether the pair of an intention holds a segment of the memory from now on. Somebody may
        be about to confirm or to delete it, or have been killed: then it is taken out first."""
        segment = _segment(memory, -pair.id)
        if segment is None:
            return False
        rivals = [
            rival
            for rival in self._storage.intentions()
            if rival.token != token
            and rival.pair.memory == pair.memory
            and (
                rival.pair.id == segment.id
                or (not rival.pair.id and holds_pair(segment, rival.pair))
            )
        ]
        for rival in rivals:
            self._mend(rival, begun_here=False)
        is_shared = not rivals and self._storage.share(token, pair)
        return is_shared and _segment(memory, -pair.id) is not None

    def _remove(self, replaced: Sequence[Intention]) -> None:
        """Takes pairs out of their memories whose place others took; where that cannot be done now,
        it is done later."""
        for intention in replaced:
            self._mend(intention, begun_here=True)

    def _is_cancelled(self, intention: Intention) -> bool:
        """Whether an intention that began here could be cancelled, or will be; False: it was
        settled. Its pair is in no memory then."""
        try:
            pair = self._storage.cancel(intention.token, time.time())
        except ServerError:
            self._pending[intention.token] = True
            return True
        if pair is None:
            return False
        self._mend(replace(intention, pair=pair), begun_here=True)
        return True

    def append(self, tenant: str, id: str, pair: ConfirmedPair, feedback: Feedback) -> bool:
        """Adds a pair that no memory keeps to a session, from which the pair of its segment goes.
        Returns False where there is no such session.

        tenant: the tenant of the session.
        id: the id of the session.
        pair: the pair.
        feedback: what the review is to know of the pair."""
        token = secrets.token_hex(16)
        replaced = self._storage.append(tenant, id, pair, feedback, token)
        if replaced is None:
            return False
        self._remove(replaced)
        return True

    def undo(self, tenant: str, id: str, segment: str | None = None) -> ConfirmedPair | None:
        """Takes a pair out of a session, and out of its memory where nobody else holds it, and
        returns it. None where there is none.

        tenant: the tenant of the session.
        id: the id of the session.
        segment: the client's name of the segment whose pair it is; None takes the pair that was
        confirmed last.

        Raises ServerError for the storage, and what the memory raises; then the pair is in both, or
        will be in neither once both can be reached."""
        self._mend_pending()
        token = secrets.token_hex(16)
        try:
            pair = self._storage.withdraw(tenant, id, token, segment)
        except ServerError:
            self._put_back(token)
            raise
        if pair is None:
            return None
        memory = self._memory_of(pair) if pair.id > 0 else None
        try:
            if memory is not None:
                deleted_from(memory, pair)
        except BaseException:
            if memory is None or self._is_kept(token, pair, memory):
                raise
        self._drop(token)
        return pair

    def _is_kept(self, token: str, pair: ConfirmedPair, memory: WritableIndex) -> bool:
        """Whether a memory that failed to delete a pair holds it still, which is put back then, or
        cannot say so."""
        try:
            if not _ids(memory, pair):
                return False
        except TmnmtError:
            self._pending[token] = True
            return True
        self._put_back(token)
        return True

    def _drop(self, token: str) -> None:
        """An intention that is carried out."""
        try:
            self._storage.drop(token)
        except ServerError:
            self._pending[token] = True

    def _put_back(self, token: str) -> None:
        """A pair into its session, where it was withdrawn."""
        try:
            self._storage.settle(token)
        except ServerError:
            self._pending[token] = True

    def mend(self) -> None:
        """Takes the pairs of all intentions that were left behind out of their memories, as far as
        these are served here; a logged warning says what is left. Raises ServerError where the
        storage cannot be read."""
        for intention in self._storage.intentions():
            self._mend(intention, begun_here=False)

    def _mend_pending(self) -> None:
        """The same, of those that could not be mended before."""
        pending = dict(self._pending)
        if not pending:
            return
        with suppress(ServerError):  # then they are left still
            intentions = self._storage.intentions()
            beginnings = {
                intention.token: intention.token.partition(".")[0] for intention in intentions
            }
            for intention in intentions:
                for token in {intention.token, beginnings[intention.token]} & pending.keys():
                    self._mend(intention, pending[token])
            for token in pending.keys() - {*beginnings, *beginnings.values()}:
                self._pending.pop(token, None)

    def _mend(self, intention: Intention, begun_here: bool) -> None:
        """begun_here: nobody else is about it."""
        token, pair, now = intention.token, intention.pair, time.time()
        memory = self._memory_of(pair)
        if pair.memory and memory is None:
            log.warning("a pair that is in no session may be left in %s", pair.memory)
            return
        try:
            cancelled = self._storage.cancel(token, now)
            if cancelled is None:  # somebody has carried it out
                self._pending.pop(token, None)
                return
            pair = cancelled
            if memory is not None and (ids := _ids(memory, pair)):
                with suppress(UnknownIdError):  # somebody else has deleted it
                    memory.delete(ids)
            if begun_here or memory is None or now > (intention.cancelled or now) + STOPPED:
                self._storage.drop(token)
            self._pending.pop(token, None)
        except TmnmtError as error:
            self._pending[token] = begun_here
            log.warning("a pair that is in no session is left in %s: %s", pair.memory, error)

    def _memory_of(self, pair: ConfirmedPair) -> WritableIndex | None:
        """The memory that a pair was written to, where it is written to now."""
        return next(
            (
                memory
                for memory in self._memories
                if pair.memory and same_place(memory.place, pair.memory)
            ),
            None,
        )


def _taken_over(pair: ConfirmedPair, memory: WritableIndex) -> ConfirmedPair:
    """A pair that the memory gives already, as that of the segment, where a confirmation has added
    it: these have no document, and times to the microsecond, which files of other programs have
    not."""
    segment = _segment(memory, -pair.id) if pair.id < 0 else None
    if segment is None or not _MICROSECONDS.search(segment.changed) or segment.document:
        return pair
    return replace(pair, id=segment.id, changed=segment.changed)


def _segment(memory: WritableIndex, id: int) -> Segment | None:
    """None: the memory has none of this id."""
    try:
        return memory.get([id])[0]
    except UnknownIdError:
        return None


def _ids(memory: WritableIndex, pair: ConfirmedPair) -> list[int]:
    """Those of the segments that are this very pair, where they are to be taken out."""
    if pair.id < 0:
        return []
    alike = copies(memory, [pair.src])[pair.src]
    return [match.segment.id for match in alike if holds_pair(match.segment, pair)]
