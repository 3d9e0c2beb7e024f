"""The server's own interface, under /v1, and what watches the server: /health, /ready, /metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, get_args

from starlette.responses import JSONResponse, PlainTextResponse, Response

from tmnmt.checks import Check, OnChecks
from tmnmt.codes.record import Text
from tmnmt.config.options import MODES
from tmnmt.engine.confirmed import confirmable, confirmed_now
from tmnmt.errors import UsageError
from tmnmt.formats.clean import clean_name
from tmnmt.records import alternative_record, pair_record
from tmnmt.segments import Alternative, ConfirmedPair, Segment, Translation
from tmnmt.serve import answers
from tmnmt.serve.api_admin import ADMIN
from tmnmt.serve.api_desk import DOCUMENTS
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.api_resources import (
    MANAGED,
    MEMORIES,
    MODEL,
    PAIR,
    SAVED,
    SOURCE,
    SRC,
    TARGET,
    TERMS,
    TERMS_DOMAIN,
    TERMS_MODE,
    TGT,
    WRITE_TO,
    pair_of,
)
from tmnmt.serve.api_workbench import DESK, LARGE
from tmnmt.serve.confirming import checks_record, confirmation_of
from tmnmt.serve.events import error_record, event, event_stream
from tmnmt.serve.fields import DOCUMENT, NAMES, SEGMENTS, TEXTS, Field, read
from tmnmt.serve.http_error import Refused, wrong
from tmnmt.serve.keys import Caller
from tmnmt.serve.markup import FORMS, markup, single_text
from tmnmt.serve.match_records import served_match, served_translation
from tmnmt.serve.memories import Memory, count
from tmnmt.serve.metrics import exposed
from tmnmt.serve.modelless import no_model
from tmnmt.serve.routes import EMPTY, EVENTS, FILE, Dialect, Route, RouteAnswer
from tmnmt.serve.served_model import Model
from tmnmt.serve.service import Answer, Request, Service, Translated
from tmnmt.serve.sessions import OpenSession
from tmnmt.serve.storage.records import Entries
from tmnmt.session import Session
from tmnmt.terms.find import TermPlace

STREAMED = 16  # texts that are translated together
RETRY_SECONDS = 0.5  # seconds after which what was refused comes again
Result = TypeVar("Result")

_TEXTS = Field("texts", "texts", "The texts to translate, in order.", required=True, entries=TEXTS)
_STREAMED_TEXTS = replace(_TEXTS, entries=DOCUMENT)
_FORM = Field("format", "text", "What the texts are.", default="text", choices=FORMS)
_IGNORED = Field(
    "ignore_tags",
    "texts",
    "Of format xml: elements whose content stays as it is.",
    default=[],
    entries=NAMES,
    distinct=True,
)
_EXPLAIN = Field("explain", "flag", "With the origin of every token.", default=False)
_OPTIONS = Field(
    "options",
    "object",
    "Options of tmnmt translate by name: mode, verbatim, beam, length_penalty, nbest, top_k, "
    "threshold, short_threshold.",
    default={},
)
TRANSLATE = (
    _TEXTS,
    SOURCE,
    TARGET,
    MODEL,
    _FORM,
    _IGNORED,
    _EXPLAIN,
    MEMORIES,
    TERMS,
    TERMS_DOMAIN,
    TERMS_MODE,
    _OPTIONS,
    Field(
        "priority",
        "text",
        "interactive goes first; not given, interactive for up to 32 segments.",
        choices=("interactive", "batch"),
    ),
)
BEGIN = (
    SOURCE,
    TARGET,
    MODEL,
    MEMORIES,
    WRITE_TO,
    TERMS,
    TERMS_DOMAIN,
    TERMS_MODE,
    _OPTIONS,
    Field("name", "text", "What the document is called, for lists of sessions.", default=""),
    Field(
        "background",
        "objects",
        "Pairs of the document that were confirmed before, in order: they are known, and are not "
        "the work of this session.",
        (),
        entries=SEGMENTS,
        inside=(SRC, TGT),
    ),
    Field("format", "text", "Of these pairs.", "text", choices=("text", "xml")),
)
TERM = (
    Field("source", "text", "A word or words of the source language.", required=True),
    Field(
        "target", "text", "What they are translated by; empty: it is a term no more.", default=""
    ),
)
FIND_TERMS = (Field("text", "text", "The text, one segment, without tags.", required=True),)
IN_SESSION = (_TEXTS, _FORM, _IGNORED, _EXPLAIN)
STREAM = tuple(_STREAMED_TEXTS if field is _TEXTS else field for field in TRANSLATE)
STREAM_IN_SESSION = tuple(_STREAMED_TEXTS if field is _TEXTS else field for field in IN_SESSION)
TYPED = (
    Field("text", "text", "The text that is translated, one segment.", required=True),
    Field(
        "prefix",
        "text",
        "What is typed of its translation; its last word may be half a word.",
        default="",
    ),
    Field(
        "format",
        "text",
        "What the text is; what is typed has no tags.",
        default="text",
        choices=("text", "xml"),
    ),
    SOURCE,
    TARGET,
    MODEL,
    MEMORIES,
    Field("session", "text", "The session that the text is of; it says which memories are read."),
)
COMPLETE = (
    *TYPED,
    Field(
        "whole",
        "flag",
        "False: the next words alone, which come sooner; `text` is all of the answer, without "
        "tags.",
        default=True,
    ),
)
ALTERNATIVES = (
    *TYPED,
    Field("count", "whole", "At most so many words.", default=5, minimum=1, maximum=20),
)
NAME_LENGTH = 200  # characters that the name of a request, or of a segment, may have
CONFIRM = (
    SRC,
    TGT,
    Field("format", "text", "What both are.", default="text", choices=("text", "xml")),
    Field("suggested", "text", "What had been suggested, for the review; of format text."),
    Field(
        "keys", "whole", "Keystrokes that it took, for the review.", minimum=0, maximum=1_000_000
    ),
    Field(
        "on_checks",
        "text",
        "Where checks find something in the translation: tell confirms it and tells them; refuse "
        "confirms nothing and answers with status 409, code checks, and the checks.",
        default="tell",
        choices=get_args(OnChecks),
    ),
    Field(
        "request",
        "text",
        "A name that the client gives this request. Where its answer is lost it can be sent again "
        "under the same name: the same pair is confirmed once.",
    ),
    Field(
        "segment",
        "text",
        "A name that the client gives the segment of its document. What is confirmed takes the "
        "place of what was confirmed in this session under the same name.",
    ),
    Field(
        "resumed",
        "flag",
        "The pair was confirmed before, in a session that is gone: what that one has added to the "
        "memory is this session's from now on.",
        default=False,
    ),
)
UNDO = (
    Field(
        "segment",
        "text",
        "Take back what was confirmed for the segment of this name; without it, what was confirmed "
        "last.",
    ),
)
SEARCH = (
    Field("texts", "texts", "What to look for.", required=True, entries=TEXTS),
    Field("k", "whole", "At most so many pairs for a text.", default=5, minimum=1, maximum=100),
    Field("threshold", "number", "Smallest fuzzy score.", default=0.5, minimum=0.3, maximum=1),
)
ADD = (
    Field(
        "segments",
        "objects",
        "The pairs to add.",
        required=True,
        inside=PAIR,
        entries=SEGMENTS,
    ),
)


def request_of(values: Mapping[str, Any], table: Sequence[Field] = TRANSLATE) -> Request:
    """A request for a translation.

    values: the fields of the request.
    table: what the fields may be.

    Raises Refused for a field that is wrong."""
    fields = read(values, table)
    memories = fields["memories"]
    priority = fields["priority"]
    return Request(
        tuple(fields["texts"]),
        fields["source"],
        fields["target"],
        fields["format"],
        tuple(fields["ignore_tags"]),
        fields["explain"],
        tuple(memories) if memories is not None else None,
        fields["options"],
        None if priority is None else priority == "interactive",
        tuple(fields["terms"]) if fields["terms"] is not None else None,
        fields["terms_mode"] == "hard",
        fields["model"],
        fields["terms_domain"],
    )


def answered(answer: Answer, names: Mapping[str, str]) -> dict[str, Any]:
    """Its answer: for every text the whole, and its segments as `tmnmt translate --json` has
    them, with the memory of each match.

    answer: the translations.
    names: the names of memories by their places."""
    return {"model": answer.model.name, "translations": _texts(answer.texts, names)}


def _texts(texts: Sequence[Translated], names: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "text": result.text,
            "segments": [served_translation(segment, names) for segment in result.segments],
        }
        for result in texts
    ]


async def translate(service: Service, call: ApiRequest) -> Any:
    """Translates texts, with matches, and on demand the origin of every token."""
    answer = await service.translate(request_of(call.body), call.caller)
    return answered(answer, service.memories.names)


async def models(service: Service, call: ApiRequest) -> Any:
    """The models, and the languages of each."""
    return {"models": [_model(model) for model in service.models]}


def _model(model: Model) -> dict[str, Any]:
    source, target = model.languages
    modes = model.translator.pipeline.writer.modes
    return {
        "name": model.name,
        "source": source.code,
        "target": target.code,
        "modes": [mode for mode in modes if not MODES[mode].neighbours],
    }


async def languages(service: Service, call: ApiRequest) -> Any:
    """The pairs of languages that are served, each with the names of its models; a request that
    names none gets the first. Where no model is served, those of the memories, with none."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for model in service.pairs:
        source, target = model.languages
        names = pairs.setdefault((source.code, target.code), [])
        names += [model.name] if model.translates else []
    return {
        "pairs": [
            {"source": source, "target": target, "models": names}
            for (source, target), names in pairs.items()
        ]
    }


async def memories(service: Service, call: ApiRequest) -> Any:
    """The memories that this key sees, and whether it may write to them."""
    caller = call.caller
    return {"memories": [_memory(memory, caller) for memory in service.memories.visible(caller)]}


def _memory(memory: Memory, caller: Caller) -> dict[str, Any]:
    source, target = memory.languages
    return {
        "name": memory.name,
        "source": source.code,
        "target": target.code,
        "writable": memory.writable is not None and caller.may("write"),
        "segments": count(memory),
    }


async def search(service: Service, call: ApiRequest) -> Any:
    """The pairs of a memory that are worth most for each text."""
    fields = read(call.body, SEARCH)
    memory = service.memories.get(call.path["memory"], call.caller)
    service.check_size(fields["texts"])
    results = await service.search([memory], fields["texts"], fields["k"], fields["threshold"])
    names = service.memories.names
    return {
        "results": [
            {"query": query, "matches": [served_match(match, names) for match in matches]}
            for query, matches in zip(fields["texts"], results, strict=True)
        ]
    }


async def add(service: Service, call: ApiRequest) -> Any:
    """Adds pairs to a memory; they are on disk when this is answered."""
    memory = service.memories.get(call.path["memory"], call.caller)
    pairs = await service.in_thread(lambda: segments(read(call.body, ADD)["segments"]))
    return {"ids": await service.add(memory, pairs)}


def segments(records: Sequence[Mapping[str, Any]]) -> list[Segment]:
    """Pairs as a memory holds them.

    records: the pairs, as JSON has them.

    Raises Refused for what it cannot hold."""
    return [pair_of(record["src"], record["tgt"], record.get("document", "")) for record in records]


async def stream(service: Service, call: ApiRequest) -> Any:
    """Translates texts and sends each as soon as it is there, as server-sent events: translation
    (index, text, segments) for every text in order, then done; or error."""
    asks = request_of(call.body, STREAM)
    call.caller.check("translate")
    asks = replace(asks, urgent=bool(asks.urgent))

    async def translated(texts: tuple[str, ...]) -> Sequence[Translated]:
        return (await service.translate(replace(asks, texts=texts), call.caller)).texts

    model = service.model(asks.source, asks.target, asks.model)
    return await _streamed(service, model, asks.texts, translated)


async def stream_in_session(service: Service, call: ApiRequest) -> Any:
    """Translates the next texts of a session's document and sends each as soon as it is there, with
    what is confirmed by then; as /v1/translate/stream does."""
    open_session, asks = await _in_session(service, call, STREAM_IN_SESSION)
    asks = replace(asks, urgent=False)

    async def translated(texts: tuple[str, ...]) -> Sequence[Translated]:
        return await service.in_session(open_session, replace(asks, texts=texts))

    return await _streamed(service, open_session.model, asks.texts, translated)


async def _streamed(
    service: Service,
    model: Model,
    texts: tuple[str, ...],
    translated: Callable[[tuple[str, ...]], Awaitable[Sequence[Translated]]],
) -> Response:
    """Some texts at a time; what is wrong with the first ones is refused as another request."""
    service.check_size(texts[: service.limits.texts])
    service.check_size([max(texts, key=len, default="")])
    parts = [texts[start : start + STREAMED] for start in range(0, len(texts), STREAMED)] or [()]
    first = await translated(parts[0])

    async def events() -> AsyncIterator[str]:
        count, together = 0, first
        for number, part in enumerate(parts):
            if number:
                together = await _patiently(partial(translated, part), service.limits.seconds)
            for record in _texts(together, service.memories.names):
                yield event("translation", {"index": count, **record})
                count += 1
            await asyncio.sleep(0)  # texts that are empty wait for nothing, and others are waiting
        yield event("done", {"model": model.name, "texts": count})

    return event_stream(events())


async def _patiently(work: Callable[[], Awaitable[Result]], seconds: float) -> Result:
    """Comes again where too much was waiting, as long as a request may take."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return await work()
        except Refused as refused:
            if refused.code != "busy" or time.monotonic() > deadline:
                raise
        await asyncio.sleep(RETRY_SECONDS)


async def begin(service: Service, call: ApiRequest) -> Any:
    """Begins a session: one document, which learns from every pair that is confirmed in it."""
    fields = read(call.body, BEGIN)
    model = service.model(fields["source"], fields["target"], fields["model"])
    setup = service.resolve_setup(
        model,
        call.caller,
        fields["memories"],
        service.destination(model, call.caller, fields["write_to"]),
        fields["terms"],
        fields["terms_mode"] == "hard",
        fields["options"],
        fields["terms_domain"],
    )
    setup = replace(setup, name=clean_name(fields["name"]), began=time.time())
    background = await service.in_thread(lambda: _background(service, fields))
    begun = await service.write(lambda: service.begin(model, call.caller, setup, background))
    return _session(begun, 0)


def _background(service: Service, fields: Mapping[str, Any]) -> list[ConfirmedPair]:
    """The pairs that were confirmed before a session begins. Raises Refused for one that cannot
    be."""
    pairs = list[ConfirmedPair]()
    for number, entry in enumerate(fields["background"], 1):
        service.check_lengths([entry["src"], entry["tgt"]])
        source, target = (single_text(entry[side], fields["format"]) for side in ("src", "tgt"))
        try:
            pairs.append(confirmed_now(*confirmable(source, target)))
        except UsageError as error:
            raise wrong(f"background, pair {number:,}: {error}") from error
    return pairs


def _session(open_session: OpenSession, confirmed: int) -> dict[str, Any]:
    return open_session.record | {"confirmed": confirmed}


async def session(service: Service, call: ApiRequest) -> Any:
    """What a session reads and writes, and how much was confirmed in it."""
    open_session = await service.session(call.path["session"], call.caller)
    return _session(open_session, await service.write(lambda: service.sessions.count(open_session)))


async def in_session(service: Service, call: ApiRequest) -> Any:
    """Translates the next texts of a session's document."""
    open_session, asks = await _in_session(service, call)
    return {
        "model": open_session.model.name,
        "translations": _texts(
            await service.in_session(open_session, asks), service.memories.names
        ),
    }


async def _in_session(
    service: Service, call: ApiRequest, table: Sequence[Field] = IN_SESSION
) -> tuple[OpenSession, Request]:
    """The session of the path, and what is to be translated in it. Raises Refused."""
    fields = read(call.body, table)
    open_session = await service.session(call.path["session"], call.caller)
    options = {"form": fields["format"], "ignored": tuple(fields["ignore_tags"])}
    return open_session, Request(tuple(fields["texts"]), explain=fields["explain"], **options)


async def complete(service: Service, call: ApiRequest) -> Any:
    """Goes on from what is typed of a translation: the best whole one that begins with it."""
    fields = read(call.body, COMPLETE)
    model, session, follow = await _at_work(service, fields, call.caller)
    text, prefix, form = fields["text"], fields["prefix"], fields["format"]
    source = single_text(text, form)
    if not fields["whole"]:

        def next_words() -> str:
            follow()
            return session.next_words(source, prefix)

        continuation = await service.at_work(model, call.caller, text, prefix, next_words)
        return {"model": model.name, "text": prefix + continuation}

    def work() -> Translation:
        follow()
        return session.complete(source, prefix, explain=True)

    translation = await service.at_work(model, call.caller, text, prefix, work)
    output = translation.tgt
    if form != "text":
        read_as = markup(text, form)
        targets = [Text(translation.tgt, translation.tgt_codes)] if read_as.sources else []
        output = read_as.filled(targets)
    record = served_translation(translation, service.memories.names)
    return {"model": model.name, "text": output} | record


async def alternatives(service: Service, call: ApiRequest) -> Any:
    """The likeliest words behind what is typed of a translation, with the origin of every token."""
    fields = read(call.body, ALTERNATIVES)
    model, session, follow = await _at_work(service, fields, call.caller)
    text, prefix = fields["text"], fields["prefix"]
    source = single_text(text, fields["format"])

    def work() -> list[Alternative]:
        follow()
        return session.alternatives(source, prefix, fields["count"])

    words = await service.at_work(model, call.caller, text, prefix, work)
    return {
        "model": model.name,
        "alternatives": [alternative_record(alternative) for alternative in words],
    }


async def _at_work(
    service: Service, fields: Mapping[str, Any], caller: Caller
) -> tuple[Model, Session, Callable[[], None]]:
    """The model and the session of a text that somebody types the translation of, and what is done
    first, as of a `Job`."""
    names = fields["source"], fields["target"], fields["model"]
    if fields["session"] is None:
        model = service.model(*names)
        return *service.idle(model, fields["memories"], caller), lambda: None
    open_session = await service.session(fields["session"], caller)
    if fields["memories"] is not None:
        raise wrong("a session has its memories: leave memories out")
    if not service.serves(open_session.model, *names):
        raise wrong("the session is of other languages, or of another model")
    return open_session.model, open_session.session, lambda: service.sessions.follow(open_session)


async def confirm(service: Service, call: ApiRequest) -> Any:
    """Confirms a pair: the next text of the session knows it. It is on disk when this is answered,
    in a session with write_to in that memory, too. The answer has `checks`: what is to be looked
    at in the translation."""
    fields = read(call.body, CONFIRM)
    open_session = await _open_to_write(service, call)
    service.check_lengths([fields[name] or "" for name in ("src", "tgt", "suggested")])
    _check_names(fields, "request", "segment")
    source, target = (single_text(fields[side], fields["format"]) for side in ("src", "tgt"))

    def confirmed() -> tuple[int, Sequence[Check]]:
        session, on_checks = open_session.session, fields["on_checks"]
        pair = confirmation_of(session, source, target, on_checks)
        feedback = {name: fields[name] for name in ("suggested", "keys")}
        feedback |= {
            name: fields[name]
            for name in ("request", "segment", "resumed")
            if fields[name] not in (None, False)
        }
        service.sessions.confirm(open_session, pair.src, pair.tgt, feedback)
        return service.sessions.count(open_session), pair.checks

    count, checks = await service.write(confirmed)
    service.counts["confirmed",] += 1
    return _session(open_session, count) | checks_record(checks)


def _check_names(fields: Mapping[str, Any], *names: str) -> None:
    """Raises Refused for a name that is too long."""
    for name in names:
        if len(fields[name] or "") > NAME_LENGTH:
            raise wrong(f"{name}: at most {NAME_LENGTH} characters")


async def _open_to_write(service: Service, call: ApiRequest) -> OpenSession:
    """The session of the path. Raises Refused where it writes to a memory, and the caller may
    not; and where it is that of a document, which would know nothing of what is written."""
    open_session = await service.session(call.path["session"], call.caller)
    if open_session.setup.document:
        why = "this is the session of a document: confirm and take back its segments"
        raise Refused(409, "in_use", why)
    if open_session.setup.write_to is not None:
        call.caller.check("write")
    return open_session


async def session_terms(service: Service, call: ApiRequest) -> Any:
    """The terms that were added in a session, in the order in which they were."""
    open_session = await service.session(call.path["session"], call.caller)
    return _terms(
        await service.write(lambda: service.terms.session_entries(open_session.id, call.caller))
    )


async def add_session_term(service: Service, call: ApiRequest) -> Any:
    """Adds a term to a session: its next translations have it, in the mode of the session. It
    counts before those of lists. Returns all terms that were added."""
    fields = read(call.body, TERM)
    service.check_lengths([fields["source"], fields["target"]])
    open_session = await service.session(call.path["session"], call.caller)
    pair, texts = open_session.model.languages, (fields["source"], fields["target"])
    add = partial(service.terms.add_in_session, open_session.id, pair, *texts)
    return _terms(await service.write(lambda: add(call.caller)))


async def find_session_terms(service: Service, call: ApiRequest) -> Any:
    """The terms that stand in a text: those that were added in the session, and those of its lists.
    Each has `source`, the place `start` and `end` in the text, in characters,
    `targets`, one of which is to stand for it, `forbidden`, `note`, `context`, and `in_session`,
    whether it was added in the session."""
    fields = read(call.body, FIND_TERMS)
    service.check_lengths([fields["text"]])
    open_session = await service.session(call.path["session"], call.caller)

    def find() -> tuple[list[TermPlace], set[str]]:
        entries = service.terms.session_entries(open_session.id, call.caller)
        setup = open_session.setup
        names = service.terms.in_session(open_session.id, setup.terms, call.caller)
        places = service.terms.find(
            fields["text"], open_session.model.languages, names, call.caller, setup.terms_domain
        )
        return places, {source.casefold() for source, _ in entries}

    places, added = await service.in_thread(find)
    return {"terms": [_term_place(place, added) for place in places]}


def _term_place(place: TermPlace, added: Collection[str]) -> dict[str, Any]:
    term = place.term
    return {
        "source": term.source,
        "start": place.start,
        "end": place.end,
        "targets": [term.source] if term.verbatim else list(term.targets),
        "forbidden": list(term.forbidden),
        "note": term.note,
        "context": term.context,
        "in_session": term.source.casefold() in added,
    }


def _terms(entries: Entries) -> dict[str, Any]:
    return {"terms": [{"source": source, "target": target} for source, target in entries]}


async def undo(service: Service, call: ApiRequest) -> Any:
    """Takes the pair that was confirmed last back, or that of a segment; out of the memory, too,
    where no other session has confirmed it."""
    fields = read(call.body, UNDO)
    open_session = await _open_to_write(service, call)
    _check_names(fields, "segment")

    def undone() -> tuple[ConfirmedPair, int]:
        pair = service.sessions.undo(open_session, fields["segment"])
        return pair, service.sessions.count(open_session)

    undone_pair, count = await service.write(undone)
    return _session(open_session, count) | {"undone": pair_record(undone_pair.segment)}


async def confirmed(service: Service, call: ApiRequest) -> Any:
    """All pairs that were confirmed in a session, in order."""
    open_session = await service.session(call.path["session"], call.caller)
    pairs = await service.write(lambda: service.sessions.confirmed_pairs(open_session))
    return {"pairs": [pair_record(pair.segment) for pair in pairs]}


async def save(service: Service, call: ApiRequest) -> Any:
    """The session as a file, with which Translator.session goes on."""
    open_session = await service.session(call.path["session"], call.caller)
    if not open_session.model.translates:
        raise no_model()
    content = await service.in_thread(lambda: service.sessions.saved(open_session))
    return Response(content, media_type="application/octet-stream", headers=SAVED)


async def end(service: Service, call: ApiRequest) -> Any:
    """Forgets a session. What was written to a memory stays there."""
    await service.write(lambda: service.end(call.path["session"], call.caller))
    return Response(status_code=204)


async def health(service: Service, call: ApiRequest) -> Any:
    """Whether the server runs, and how many models it serves."""
    return {"status": "ok", "models": len(service.models)}


async def ready(service: Service, call: ApiRequest) -> Any:
    """Whether it takes requests: not while it stops."""
    return JSONResponse({"ready": service.ready}, 200 if service.ready else 503)


async def metrics(service: Service, call: ApiRequest) -> Any:
    """Counters for Prometheus."""
    return PlainTextResponse(await exposed(service), media_type="text/plain; version=0.0.4")


def refusal(refused: Refused) -> tuple[int, Mapping[str, Any]]:
    """The status of HTTP, and what is written as JSON, where a request is refused.

    refused: why it is refused."""
    return refused.status, error_record(refused)


_STREAM = RouteAnswer(
    {
        "translation": answers.StreamedTranslation,
        "done": answers.StreamEnd,
        "error": answers.Error,
    },
    media=EVENTS,
)
_TRANSLATIONS = RouteAnswer(answers.Translations)
_SESSION = RouteAnswer(answers.SessionRecord)
_SESSION_TERMS = RouteAnswer(answers.SessionTerms)
_ONE_SESSION = "/v1/sessions/{session}"
_TRANSLATING = (
    Route("POST", "/v1/translate", translate, "translate", TRANSLATE, answer=_TRANSLATIONS),
    Route("POST", "/v1/translate/stream", stream, "translate", STREAM, answer=_STREAM),
    Route(
        "POST",
        "/v1/complete",
        complete,
        "translate",
        COMPLETE,
        answer=RouteAnswer(answers.Completion | answers.NextWords),
    ),
    Route(
        "POST",
        "/v1/alternatives",
        alternatives,
        "translate",
        ALTERNATIVES,
        answer=RouteAnswer(answers.Alternatives),
    ),
)
_LOOKING_UP = (
    Route("GET", "/v1/models", models, "read", answer=RouteAnswer(answers.Models)),
    Route("GET", "/v1/languages", languages, "read", answer=RouteAnswer(answers.LanguagePairs)),
    Route("GET", "/v1/memories", memories, "read", answer=RouteAnswer(answers.Memories)),
    Route(
        "POST",
        "/v1/memories/{memory}/search",
        search,
        "read",
        SEARCH,
        answer=RouteAnswer(answers.SearchResults),
    ),
    Route(
        "POST",
        "/v1/memories/{memory}/segments",
        add,
        "write",
        ADD,
        answer=RouteAnswer(answers.SegmentIds),
    ),
)
_SESSIONS = (
    Route(
        "POST", "/v1/sessions", begin, "translate", BEGIN, room=LARGE, keeps=True, answer=_SESSION
    ),
    Route("GET", _ONE_SESSION, session, "translate", answer=_SESSION),
    Route("DELETE", _ONE_SESSION, end, "translate", answer=EMPTY),
    Route(
        "POST",
        f"{_ONE_SESSION}/translate",
        in_session,
        "translate",
        IN_SESSION,
        answer=_TRANSLATIONS,
    ),
    Route(
        "POST",
        f"{_ONE_SESSION}/translate/stream",
        stream_in_session,
        "translate",
        STREAM_IN_SESSION,
        answer=_STREAM,
    ),
    Route(
        "POST",
        f"{_ONE_SESSION}/confirm",
        confirm,
        "translate",
        CONFIRM,
        keeps=True,
        answer=RouteAnswer(answers.ConfirmedRecord),
    ),
    Route(
        "POST",
        f"{_ONE_SESSION}/undo",
        undo,
        "translate",
        UNDO,
        answer=RouteAnswer(answers.UndoneRecord),
    ),
    Route("GET", f"{_ONE_SESSION}/terms", session_terms, "translate", answer=_SESSION_TERMS),
    Route(
        "POST",
        f"{_ONE_SESSION}/terms",
        add_session_term,
        "translate",
        TERM,
        keeps=True,
        answer=_SESSION_TERMS,
    ),
    Route(
        "POST",
        f"{_ONE_SESSION}/terms/find",
        find_session_terms,
        "translate",
        FIND_TERMS,
        answer=RouteAnswer(answers.TermPlaces),
    ),
    Route(
        "GET",
        f"{_ONE_SESSION}/confirmed",
        confirmed,
        "translate",
        answer=RouteAnswer(answers.ConfirmedPairs),
    ),
    Route("GET", f"{_ONE_SESSION}/save", save, "translate", answer=FILE),
)
_WATCHING = (
    Route("GET", "/health", health, None, answer=RouteAnswer(answers.Health)),
    Route("GET", "/ready", ready, None, answer=RouteAnswer(answers.Ready, other_statuses=(503,))),
    Route("GET", "/metrics", metrics, "admin", answer=RouteAnswer(str, media="text/plain")),
)
API_V1 = Dialect(
    "own",
    ("",),
    (*_TRANSLATING, *_LOOKING_UP, *_SESSIONS, *DESK, *DOCUMENTS, *MANAGED, *_WATCHING, *ADMIN),
    refusal,
    is_strict=True,
)
