"""What all dialects do in the end: translate, search, add, confirm; for a caller, within limits."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tmnmt.codes.record import Text
from tmnmt.config.option import options_of
from tmnmt.config.options import MODES, Decoding, Search
from tmnmt.config.serving import TenantLimits
from tmnmt.engine.history import MOST_PAIRS
from tmnmt.engine.retrieve import Retriever
from tmnmt.errors import TmnmtError, UsageError
from tmnmt.index.back_ends import local_path
from tmnmt.index.embedded.in_memory import InMemoryIndex
from tmnmt.index.match_value import PRECEDING
from tmnmt.serve.bodies import Readers, Room
from tmnmt.serve.clock import Clock
from tmnmt.serve.durations import Durations
from tmnmt.serve.fields import TEXTS
from tmnmt.serve.holdings import Holdings, bound_holdings
from tmnmt.serve.http_error import Refused, unknown, wrong
from tmnmt.serve.in_turn import InTurn
from tmnmt.serve.jobs import Jobs
from tmnmt.serve.keys import ANYBODY, Caller, Keys
from tmnmt.serve.languages import Language, language, nearest
from tmnmt.serve.markup import Form, Markup, markup
from tmnmt.serve.memories import Memories, Memory, added, matches_of
from tmnmt.serve.modelless import MemoryPair, no_model
from tmnmt.serve.queue import Job
from tmnmt.serve.quota import Quota, size_of_folder
from tmnmt.serve.sessions import OpenSession, Sessions, SessionSetup
from tmnmt.serve.site import Site
from tmnmt.serve.terms import Served, TermLists
from tmnmt.serve.usage import Kind, TenantTable, Usage
from tmnmt.serve.workspace.confirmations import Confirmations
from tmnmt.serve.workspace.documents import Documents
from tmnmt.session import Session
from tmnmt.translator import Translator, restrict, with_memory

if TYPE_CHECKING:
    from tmnmt.engine.settings import Settings
    from tmnmt.index.base import Index, WritableIndex
    from tmnmt.segments import ConfirmedPair, Match, Segment, Translation
    from tmnmt.serve.served_model import Model
    from tmnmt.serve.storage.base import Storage

SEARCHERS = 4  # threads that look up
MOST_COMPLETED = 5_000  # characters of a segment that somebody types the translation of
MOST_SEARCHES = 64  # that wait for one of them
WRITERS = 16  # threads that write, which is mostly waiting for the disk, together
MOST_WRITES = 512  # that wait for one of them
VIEWS = 256  # translators for sets of memories and options that are kept
# The options of a translation that a request may set, and the most that it may ask for.
OPTIONS = {
    "mode",
    "verbatim",
    "beam",
    "length_penalty",
    "nbest",
    "top_k",
    "threshold",
    "short_threshold",
    "fragments",
}
LIMITS = {"beam": 20, "nbest": 20, "top_k": 32, "fragments": 32}
SHARES = 2  # a tenant may have one part of so many of the room for bodies
log = logging.getLogger("tmnmt.serve")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Limits:
    """What a request may ask for."""

    body: int = 2_000_000  # bytes
    file: int = 50_000_000  # bytes of a document, or a memory that is read in
    texts: int = TEXTS  # of one request
    text: int = 50_000  # characters
    waiting: int = 200_000  # characters of one tenant that wait for a model
    seconds: float = 60.0
    sessions: int = 1_000
    bodies: int = 200_000_000  # bytes of all bodies that are held at a time
    tenant: int = 10_000_000_000  # bytes of all that is kept for one


@dataclass(frozen=True)
class Request:
    """A translation that is asked for. `source`, `target`: codes as they came; "": what is served.
    `model`: by its name; "": by these languages.
    `memories`, `terms`: None: all that the caller sees. `options`: by their names."""

    texts: tuple[str, ...]
    source: str = ""
    target: str = ""
    form: Form = "text"
    ignored: tuple[str, ...] = ()
    explain: bool = False
    memories: tuple[str, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    urgent: bool | None = None
    terms: tuple[str, ...] | None = None
    hard_terms: bool = False
    model: str = ""
    terms_domain: str = ""


@dataclass(frozen=True)
class Translated:
    """What came of one text: the whole, and its segments."""

    text: str
    segments: tuple[Translation, ...]


@dataclass(frozen=True)
class Answer:
    """The translations, and the model that made them."""

    model: Model
    texts: tuple[Translated, ...]


class Service:
    """Models, memories, sessions and keys of one server. Its methods are for the loop of asyncio;
    what takes time is done in threads."""

    def __init__(
        self,
        models: Sequence[Model],
        memories: Sequence[Memory],
        storage: Storage,
        keys: Keys | None = None,
        limits: Limits = Limits(),
        terms: Sequence[Served] = (),
        site: Site = Site(),
    ) -> None:
        self._holdings = Holdings(models, memories, TermLists(terms, storage.glossaries), keys)
        self.limits, self.site = limits, site
        self.counts: Counter[tuple[str, ...]] = Counter()
        self.durations = Durations()
        self.started = time.time()
        self.ready = False
        # reads again what is served, and gives what came of it; None where that cannot be done
        self.reload: Callable[[], Mapping[str, Any]] | None = None
        self.room = Room(limits.bodies, SHARES if keys is not None else 1)
        self.readers = Readers()
        self.storage = storage
        self.clock = Clock(storage.clock)
        self.tenants = TenantTable(TenantLimits(tenant_bytes=limits.tenant))
        self.quota = Quota(lambda tenant: self.tenants.limits(tenant).tenant_bytes, self._size_of)
        self.usage = Usage(storage.usage, lambda tenant: self.tenants.limits(tenant))
        writable = writable_indexes(memories)
        self.sessions = Sessions(storage.sessions, limits.sessions, writable, self.clock)
        self.sessions.mend()
        self.documents = Documents(storage.documents)
        self.confirmations = Confirmations(self.documents, self.sessions)
        self.jobs = Jobs(storage.jobs, self.clock)
        self._tasks: dict[str, asyncio.Task[None]] = {}  # beside the requests, by their names
        self._lock = threading.Lock()
        self._search = _Pool("search", SEARCHERS, MOST_SEARCHES)
        self._write = _Pool("write", WRITERS, MOST_WRITES)

    @property
    def holdings(self) -> Holdings:
        """What is served: as the request sees it that is being answered, else as it is now."""
        return bound_holdings() or self._holdings

    @property
    def latest(self) -> Holdings:
        """What is served now, whatever a request sees."""
        return self._holdings

    @property
    def models(self) -> list[Model]:
        return self.holdings.models

    @property
    def pairs(self) -> list[Model]:
        """The models; where there are none, the pairs of languages of memories."""
        return self.holdings.pairs

    @property
    def memories(self) -> Memories:
        return self.holdings.memories

    @property
    def terms(self) -> TermLists:
        return self.holdings.terms

    @property
    def keys(self) -> Keys | None:
        return self.holdings.keys

    def bound(self) -> AbstractContextManager[None]:
        """What is done in the block sees what is served now, whatever is served later."""
        return self._holdings.bound()

    def warm_up(self, models: Sequence[Model]) -> None:
        """Starts models, and has each translate and search once, so that the first request does
        not wait for what is compiled then."""
        for model in models:
            model.queue.start()
        for model in models:
            setup = SessionSetup(
                tuple(m.name for m in self.memories.select(None, model.languages, ANYBODY))
            )
            model.queue.submit(Job(self._view(model, ANYBODY, setup)[1], ["1."])).result()

    def change(self, holdings: Holdings) -> None:
        """Serves something else from now on. What was taken ends as it began; then what is not
        served any more is let go.

        holdings: what is served, with models that run."""
        former, self._holdings = self._holdings, holdings
        self.sessions.serve(writable_indexes(holdings.memories))

        def close() -> None:
            former.close(holdings)
            _settle()

        threading.Thread(target=close, name="close", daemon=True).start()

    def start(self) -> None:
        """Starts everything."""
        self.clock.start()
        self.warm_up(self.models)
        _settle()
        self.ready = True

    def close(self) -> None:
        """Begins to end: who watches a job is told so."""
        self.ready = False

    def stop(self) -> None:
        """Finishes what was taken."""
        self.close()
        self.clock.stop()
        self.jobs.stop()
        for model in self.models:
            model.queue.stop()
        self._search.stop()
        self._write.stop()
        self.readers.stop()
        self.storage.close()
        gc.unfreeze()

    def _size_of(self, tenant: str) -> int:
        """Bytes of all that is kept for a tenant; a memory at an address has no size here."""
        keys = self.keys
        folders = [
            folder
            for memory in self.memories
            if memory.writable is not None and (folder := local_path(memory.writable.place))
            if keys is None or keys.is_of(memory.name, tenant)
        ]
        return self.storage.size(tenant) + sum(map(size_of_folder, folders))

    async def keep(self, caller: Caller, size: int) -> None:
        """So many bytes more are kept for the caller's tenant. Raises Refused where it has no room
        for them."""
        await self.write(lambda: self.quota.take(caller.tenant, size))

    async def take(self, tenant: str, kind: Kind, amount: int) -> None:
        """Counts what a tenant has. Raises Refused where it would be more than it may have."""
        if self.usage.limit(tenant, kind) is not None:
            await self.write(lambda: self.usage.take(tenant, kind, amount))

    def caller(self, key: str) -> Caller:
        """Who a key is of. Raises Refused."""
        return ANYBODY if self.keys is None else self.keys.caller(key)

    @property
    def names(self) -> list[str]:
        """Of the models."""
        return [model.name for model in self.models]

    def model(self, source: str, target: str, name: str = "") -> Model:
        """The model of this name; "": the first of a pair of languages, as near as there is one. Of
        these "" and "auto" are the only one that is served. Raises Refused for a name that is not
        served, or is of other languages."""
        if name:
            return self._find_model(name, source, target)
        sources = {model.languages[0] for model in self.pairs}
        if _is_any(source):
            aimed = [m for m in self.pairs if not target or self._serves(m, None, target)]
            sources = {model.languages[0] for model in aimed} or sources
            if len(sources) > 1:
                raise wrong("languages are not detected here: name the source language")
            source_language = next(iter(sources))
        else:
            source_language = language(source)
        if not target:
            targets = {m.languages[1] for m in self.pairs if self._serves(m, source_language, None)}
            if len(targets) != 1:
                raise wrong("name the target language")
        pair = source_language, language(target) if target else next(iter(targets))
        served = nearest(pair, [(model.languages, model) for model in self.pairs])
        if not served:
            raise Refused(
                400,
                "wrong_language",
                "{source} to {target} is not served",
                values={"source": pair[0].code, "target": pair[1].code},
            )
        return served[0]

    def _find_model(self, name: str, source: str, target: str) -> Model:
        model = next((model for model in self.models if model.name == name), None)
        if model is None:
            raise unknown("there is no such model")
        if not self.serves(model, source, target, name):
            raise Refused(400, "wrong_language", "the model is of other languages")
        return model

    def serves(self, model: Model, source: str, target: str, name: str) -> bool:
        """Whether a request for these languages, or this name, may go to the model; "": any."""
        source_language = None if _is_any(source) else language(source)
        return name in ("", model.name) and self._serves(model, source_language, target)

    @staticmethod
    def _serves(model: Model, source: Language | None, target: str | None) -> bool:
        languages = model.languages
        pair = (source or languages[0], language(target) if target else languages[1])
        return bool(nearest(pair, [(languages, model)]))

    async def translate(self, request: Request, caller: Caller) -> Answer:
        """Raises Refused, and what a memory raises that cannot be searched."""
        caller.check("translate")
        model = self.model(request.source, request.target, request.model)
        setup = self.resolve_setup(
            model,
            caller,
            request.memories,
            None,
            request.terms,
            request.hard_terms,
            request.options,
            request.terms_domain,
        )
        session = await self._idle(model, caller, setup)
        return Answer(model, await self._translated(model, session, request, caller.tenant))

    async def in_session(
        self, open_session: OpenSession, request: Request
    ) -> tuple[Translated, ...]:
        """The next texts of a session's document."""
        return await self._translated(
            open_session.model,
            open_session.session,
            request,
            open_session.tenant,
            lambda: self.sessions.follow(open_session),
        )

    async def _translated(
        self,
        model: Model,
        session: Session,
        request: Request,
        tenant: str,
        follow: Callable[[], None] = lambda: None,
    ) -> tuple[Translated, ...]:
        self.check_size(request.texts)
        await self.take(tenant, "characters", sum(map(len, request.texts)))
        marked = await self._marked(request)
        sources = [source for markup_text in marked for source in markup_text.sources]
        job = Job(
            session, sources, request.explain, request.urgent, self.limits.seconds, follow, tenant
        )
        translations = await self._answered(model.queue.submit(job)) if sources else []
        remaining = iter(translations)
        self.counts["texts",] += len(request.texts)
        self.counts["characters",] += sum(map(len, request.texts))
        return tuple(
            Translated(
                markup_text.filled([target_of(translation) for translation in segments]), segments
            )
            for markup_text in marked
            for segments in [tuple(next(remaining) for _ in markup_text.sources)]
        )

    def idle(
        self, model: Model, memories: Sequence[str] | None, caller: Caller
    ) -> tuple[Model, Session]:
        """The model, and a session in which nothing is ever confirmed. Raises Refused."""
        caller.check("translate")
        return model, self._view(model, caller, self.resolve_setup(model, caller, memories))[1]

    async def at_work(
        self, model: Model, caller: Caller, text: str, prefix: str, work: Callable[[], Result]
    ) -> Result:
        """What is done, in the thread of a model, with a text whose translation somebody types;
        given up where nobody waits for it."""
        if len(text) > MOST_COMPLETED or len(prefix) > MOST_COMPLETED:
            raise _too_large("here a text may have {limit} characters", MOST_COMPLETED)
        self.counts["completions",] += 1
        cost = model.translator.settings.beam * (len(text) + len(prefix))
        call = model.queue.call(partial(_outcome, work), caller.tenant, cost)
        return await self._answered(call)

    async def in_turn(self, model: Model, caller: Caller, setup: SessionSetup) -> InTurn:
        """What translates the segments of a long document for a thread of its own, some at a time,
        after all that somebody waits for."""
        return self._in_turn(model, await self._idle(model, caller, setup), caller.tenant)

    def in_turn_of(self, open_session: OpenSession) -> InTurn:
        """The same in a session, with what is confirmed in it by then."""
        follow = partial(self.sessions.follow, open_session)
        return self._in_turn(open_session.model, open_session.session, open_session.tenant, follow)

    def _in_turn(
        self,
        model: Model,
        session: Session,
        tenant: str,
        follow: Callable[[], None] = lambda: None,
    ) -> InTurn:
        if not model.translates:
            raise no_model()
        view = cast(Translator, session.translator)
        spend = partial(self.usage.take, tenant, "characters")
        return InTurn(model, session, view, tenant, self.limits.seconds, follow, spend)

    def check_size(self, texts: Sequence[str]) -> None:
        """Raises Refused for more texts, or longer ones, than a request may have."""
        if len(texts) > self.limits.texts:
            raise _too_large("a request may have {limit} texts", self.limits.texts)
        self.check_lengths(texts)

    def check_lengths(self, texts: Iterable[str]) -> None:
        """Raises Refused for a text that is longer than one may be, translated or added."""
        if max(map(len, texts), default=0) > self.limits.text:
            raise _too_large("a text may have {limit} characters", self.limits.text)

    async def _marked(self, request: Request) -> list[Markup]:
        def read() -> list[Markup]:
            return [markup(text, request.form, request.ignored) for text in request.texts]

        # tags may take a while, in which the loop has others to answer
        return read() if request.form == "text" else await self.in_thread(read)

    async def _answered(self, future: Future[Result]) -> Result:
        """What the thread of a model gives; cancelled there where nobody waits here any more, or no
        longer than a request may take."""
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.limits.seconds)
        except TimeoutError as error:
            raise Refused(503, "too_slow", "the time for a request is over", 2) from error

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """What is looked up beside the models. Raises Refused where too many wait."""
        return await self._search.do(work)

    def do_later(self, name: str, step: Callable[[], bool]) -> None:
        """Does some work beside the requests, one step after another, until a step says that there
        is no more. Where work of this name is under way, nothing is begun."""

        holdings = self.holdings

        async def steps() -> None:
            try:
                with holdings.bound():
                    while self.ready and await self.in_thread(step):
                        pass
            except (Refused, TmnmtError) as error:  # whoever asks for it again begins it anew
                log.warning("work in the background has ended: %s", type(error).__name__)
            finally:
                self._tasks.pop(name, None)

        if name not in self._tasks:
            self._tasks[name] = asyncio.ensure_future(steps())

    async def write(self, work: Callable[[], Result]) -> Result:
        """What is written beside the models, whole whoever waits for it; short, but for the disk.
        Raises Refused where too many wait."""
        return await self._write.do(work)

    async def search(
        self, memories: Sequence[Memory], texts: Sequence[str], k: int, threshold: float
    ) -> list[list[Match]]:
        self.counts["searches",] += len(texts)
        return await self.in_thread(lambda: matches_of(memories, texts, k, threshold))

    async def add(self, memory: Memory, segments: Sequence[Segment]) -> list[int]:
        """Their ids; they are on disk then. Raises Refused for a text that is too long."""
        for segment in segments:
            self.check_lengths((segment.src, segment.tgt))
        ids = await self.write(lambda: added(memory, segments))
        self.counts["added",] += len(ids)
        return ids

    def begin(
        self,
        model: Model,
        caller: Caller,
        setup: SessionSetup,
        background: Sequence[ConfirmedPair] = (),
    ) -> OpenSession:
        """A session of one document. For a thread. `background`: what is confirmed in the document
        already. Raises Refused."""
        self._check_domain(model, caller, setup)
        view, _ = self._view(model, caller, setup)
        session = session_with(view, setup.name, background)
        return self.sessions.begin(caller, model, setup, session, background, self.holdings)

    def end(self, id: str, caller: Caller, document: str = "") -> None:
        """Forgets a session, with the terms that were added in it. For a thread. `document`: the id
        of the document whose session it is, which goes, too. Raises Refused."""
        self.sessions.end(id, caller, document)
        self.terms.end_session(id, caller)

    def retriever(
        self, open_session: OpenSession, caller: Caller, background: Sequence[ConfirmedPair]
    ) -> Retriever:
        """What looks texts up in all memories of a session, and in what its document had confirmed
        before. For a thread."""
        model, setup = open_session.model, open_session.setup
        memories = self.memories.select(setup.memories, model.languages, caller)
        indexes: list[Index] = [memory.index for memory in memories]
        trust = [memory.trust for memory in memories]
        if background:
            indexes, trust = [_index(setup.name, background), *indexes], [PRECEDING, *trust]
        settings = model.translator.settings
        return Retriever(
            indexes,
            max(settings.top_k, 1),
            settings.threshold,
            penalties=settings.penalties,
            trust=trust,
        )

    async def session(self, id: str, caller: Caller) -> OpenSession:
        """Raises Refused for a session that is not there, or whose model is not served now."""

        def create(
            name: str, setup: SessionSetup, background: Sequence[ConfirmedPair]
        ) -> tuple[Model, Session]:
            model = next((pair for pair in self.pairs if pair.name == name), None)
            if model is None:
                raise Refused(409, "not_served", "the model of this session is not served now")
            names = self.terms.in_session(id, setup.terms, caller)
            view, _ = self._view(model, caller, replace(setup, terms=names))
            return model, session_with(view, setup.name, background)

        def opened() -> OpenSession:
            open_session = self.sessions.get(id, caller, create, self.holdings)
            if self._has_other_terms(open_session, caller):
                self.sessions.close(open_session)
                open_session = self.sessions.get(id, caller, create, self.holdings)
            return open_session

        return await self.write(opened)

    def _has_other_terms(self, open_session: OpenSession, caller: Caller) -> bool:
        """Whether the glossaries of a session were changed since it was opened here."""
        model, setup = open_session.model, open_session.setup
        names = self.terms.in_session(open_session.id, setup.terms, caller)
        if not model.translates or self.terms.are_served(names):
            return False
        is_hard = setup.terms_mode == "hard"
        terms = self.terms.ready(
            model.translator, model.languages, names, caller, is_hard, setup.terms_domain
        )
        return open_session.session.pipeline.extensions.get("terms") is not terms

    def destination(self, model: Model, caller: Caller, name: str | None) -> str | None:
        """The memory that a session writes to, where a request names this one; "": none; None: the
        first of its languages, where there is one that the caller may write to."""
        if name is not None:
            return name or None
        if not caller.may("write"):
            return None
        memories = self.memories.select(None, model.languages, caller)
        return next((memory.name for memory in memories if memory.writable is not None), None)

    def resolve_setup(
        self,
        model: Model,
        caller: Caller,
        memories: Sequence[str] | None = None,
        write_to: str | None = None,
        terms: Sequence[str] | None = None,
        hard_terms: bool = False,
        options: Mapping[str, Any] | None = None,
        terms_domain: str = "",
    ) -> SessionSetup:
        """What a translation goes by, by names; where none are given, all that the caller sees.
        Raises Refused for what is not there."""
        languages = model.languages
        destination = None
        if write_to is not None:
            destination = self.memories.writable(write_to, languages, caller).name
        selected_names = [
            memory.name for memory in self.memories.select(memories, languages, caller)
        ]
        memory_names = dict.fromkeys(
            [*selected_names, *([destination] if destination is not None else [])]
        )
        lists = self.terms.names(caller, languages) if terms is None else terms
        mode = "hard" if hard_terms else "soft"
        return SessionSetup(
            tuple(memory_names),
            destination,
            tuple(lists),
            mode,
            terms_domain.strip(),
            dict(options or {}),
        )

    async def _idle(self, model: Model, caller: Caller, setup: SessionSetup) -> Session:
        """The session of `_view`; in a thread where it has a glossary, which is read anew. Raises
        Refused for a domain that no term has."""

        def idle() -> Session:
            self._check_domain(model, caller, setup)
            return self._view(model, caller, setup)[1]

        return idle() if self.terms.are_served(setup.terms) else await self.write(idle)

    def _check_domain(self, model: Model, caller: Caller, setup: SessionSetup) -> None:
        """Checks the domain of what begins; that of a session stays when its lists change."""
        self.terms.check_domain(model.languages, setup.terms, caller, setup.terms_domain)

    def _view(
        self, model: Model, caller: Caller, setup: SessionSetup
    ) -> tuple[Translator, Session]:
        """The model with what is given alone, and a session in which nothing is ever confirmed."""
        memories = self.memories.select(setup.memories, model.languages, caller)
        destination = next((memory for memory in memories if memory.name == setup.write_to), None)
        writable = destination.writable if destination is not None else None
        if isinstance(model.translator, MemoryPair):
            pair = model.translator.writing_to(writable)
            return pair, Session(pair)
        settings = settings_of(model.translator, setup.options)
        terms = self.terms.ready(
            model.translator,
            model.languages,
            setup.terms,
            caller,
            setup.terms_mode == "hard",
            setup.terms_domain,
        )
        # the list itself is in the key, so that it stays as long as the view
        key = model.name, setup.memories, settings, setup.write_to, terms
        with self._lock:
            if key not in self.holdings.views:
                self._forget_views()
                view = restrict(
                    model.translator,
                    [memory.index for memory in memories],
                    [memory.trust for memory in memories],
                    settings,
                    writable,
                    {"terms": terms} if terms is not None else {},
                )
                idle = Session(view)
                idle.histories = {}  # nothing is written to it
                self.holdings.views[key] = view, idle
            return self.holdings.views[key]

    def _forget_views(self) -> None:
        """Those that were used first, where there are too many, and those of lists of terms that
        are not kept any more."""
        for key in [key for key in self.holdings.views if not self.terms.keeps(key[-1])]:
            del self.holdings.views[key]
        while len(self.holdings.views) >= VIEWS:
            self.holdings.views.pop(next(iter(self.holdings.views)))


def writable_indexes(memories: Iterable[Memory]) -> list[WritableIndex]:
    """The indexes of the memories that are written to."""
    return [memory.writable for memory in memories if memory.writable is not None]


def _settle() -> None:
    """What is loaded stays, and need not be looked through for what is free to go: that stops every
    thread for up to a second."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def session_with(view: Translator, document: str, background: Sequence[ConfirmedPair]) -> Session:
    """A session that knows what was confirmed in its document before: all pairs as a memory, and
    the words of the last ones."""
    if not background or isinstance(view, MemoryPair):
        return Session(view)
    session = Session(with_memory(view, _index(document, background)))
    session.learn_background([(pair.src, pair.tgt) for pair in background[-MOST_PAIRS:]])
    return session


def _index(document: str, background: Sequence[ConfirmedPair]) -> InMemoryIndex:
    """A memory of what was confirmed in a document before."""
    return InMemoryIndex.build(
        replace(pair.segment, document=document, position=position)
        for position, pair in enumerate(background)
    )


def _outcome(work: Callable[[], Result]) -> Result:
    """What `work` gives. An end of an iterator that nobody has caught is a mistake like any other;
    as it stands no future takes it, and whoever waits would wait for ever."""
    try:
        return work()
    except StopIteration as error:
        raise RuntimeError("an iterator has ended") from error


class _Pool:
    """Threads beside the loop, for one kind of work; more than `limit` of it is refused."""

    def __init__(self, name: str, threads: int, limit: int) -> None:
        self._threads = ThreadPoolExecutor(threads, name)
        self._limit, self._waiting = limit, 0

    async def do(self, work: Callable[[], Result]) -> Result:
        """Raises Refused where too much waits. Done whole, whoever waits for it."""
        if self._waiting >= self._limit:
            raise Refused(429, "busy", "too much is waiting; try again later", 1)
        self._waiting += 1
        context = copy_context()  # it sees what the request sees
        future = asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: context.run(_outcome, work)
        )
        future.add_done_callback(lambda _: self._release())
        return await asyncio.shield(future)

    def _release(self) -> None:
        self._waiting -= 1

    def stop(self) -> None:
        self._threads.shutdown()


def _is_any(source: str) -> bool:
    """Whether a code of a source language says that it is not known."""
    return source.strip().lower() in ("", "auto", "autodetect")


def target_of(translation: Translation) -> Text:
    return Text(translation.tgt, translation.tgt_codes)


def settings_of(translator: Translator, options: Mapping[str, Any]) -> Settings:
    """The translator's settings with these options of a request. Raises Refused for an option that
    there is not, or a value that it may not have."""
    if not options:
        return translator.settings
    known_options = {
        option.name: option for group in (Decoding, Search) for option in options_of(group)
    }
    for name, value in options.items():
        if name not in OPTIONS:
            raise wrong(f"options are {', '.join(sorted(OPTIONS))}")
        if isinstance(value, float) and not math.isfinite(value):
            raise wrong(f"option {name}: not a number")
        try:
            known_options[name].check(value, name)
        except UsageError as error:
            raise wrong(f"option {name}: allowed: {known_options[name].allowed}") from error
        if name in LIMITS and value > LIMITS[name]:
            raise wrong(f"option {name}: at most {LIMITS[name]}")
    settings = replace(translator.settings, **options)
    if settings.mode not in translator.pipeline.writer.modes or MODES[settings.mode].neighbours:
        raise wrong("option mode: this model does not serve it")
    if 2 * settings.beam > len(translator.vocab):
        raise wrong(f"option beam: at most {len(translator.vocab) // 2}")
    if settings.nbest > settings.beam:
        raise wrong("option nbest: at most as many as the beam")
    if not settings.top_k:
        raise wrong("option top_k: at least 1; mode off reads no memory")
    return settings


def _too_large(message: str, limit: int) -> Refused:
    return Refused(413, "too_large", message, values={"limit": limit})
