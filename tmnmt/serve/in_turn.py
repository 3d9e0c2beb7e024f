"""The segments of a long document through the queue of a model, some at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tmnmt.batch.pretranslate import best_matches
from tmnmt.codes.record import Source, plain_of
from tmnmt.serve.http_error import Refused
from tmnmt.serve.queue import Job
from tmnmt.session import Session
from tmnmt.translator import Translator, in_region, with_memory

if TYPE_CHECKING:
    from tmnmt.index.base import Index
    from tmnmt.segments import Match, Translation
    from tmnmt.serve.served_model import Model

RETRY_SECONDS = 0.5  # seconds after which a job that was refused comes again
Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class InTurn:
    """Translates segments for a thread that is not the model's, after all that somebody waits for.

    session: what the segments are translated in.
    view: the translator that they are translated by, with all memories.
    seconds: after so many a job is given up.
    follow: has the session learn what was confirmed by now; called in the thread of the model.
    spend: counts characters that are translated. Raises Refused where there may be no more."""

    model: Model
    session: Session
    view: Translator
    tenant: str
    seconds: float
    follow: Callable[[], None] = lambda: None
    spend: Callable[[int], None] = lambda _: None

    def with_memory(self, memory: Index) -> InTurn:
        """The same with one more memory, which the document has itself."""
        return replace(self, view=with_memory(self.view, memory))

    def in_region(self, code: str) -> InTurn:
        """The same, which sets what is written as the region of a document does; `code`: the
        document's target language."""
        return replace(self, view=in_region(self.view, code))

    def best_matches(self, texts: Sequence[Source]) -> list[Match | None]:
        """For every text the match of all memories that is worth most."""
        return best_matches(self.view.pipeline.lookup.retriever, texts)

    def __call__(self, sources: Sequence[Source], pairs: Pairs = ()) -> Sequence[Translation]:
        """The translations of segments that stand near by. `pairs`: what is confirmed beside them
        in the document, what counts most last. Raises Refused for what is refused for good."""
        self.spend(sum(len(plain_of(source)) for source in sources))
        while True:
            try:
                session = self._session_with(pairs)
                job = Job(
                    session,
                    sources,
                    urgent=False,
                    seconds=self.seconds,
                    follow=self.follow,
                    tenant=self.tenant,
                )
                return self.model.queue.submit(job).result()
            except Refused as refused:
                if refused.status not in (429, 503) or refused.code == "stopping":
                    raise
                time.sleep(RETRY_SECONDS)

    def _session_with(self, pairs: Pairs) -> Session:
        """The session, or one that reads what was confirmed in it, and knows these pairs and the
        memory of the document, too."""
        if not pairs and self.session.translator is self.view:
            return self.session

        def open_session() -> Session:
            self.follow()
            session = Session(self.view)
            session.confirmed = self.session.confirmed
            confirmed = [(entry.src, entry.tgt) for entry in self.session.done if entry.tgt]
            session.learn_background([*pairs, *confirmed])
            return session

        cost = sum(len(src) + len(tgt) for src, tgt in pairs)
        return self.model.queue.call(open_session, self.tenant, cost).result()
