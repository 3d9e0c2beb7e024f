"""The server's own interface, under /v1, and what watches the server: /health, /ready, /metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from tmnmt.engine.confirmed import confirmable
from tmnmt.engine.session import Session
from tmnmt.errors import UsageError
from tmnmt.formats.clean import clean_name
from tmnmt.records import match_record, translation_record
from tmnmt.segments import Match, Segment
from tmnmt.serve.asked import Asked
from tmnmt.serve.fields import Field, read
from tmnmt.serve.markup import FORMS
from tmnmt.serve.memories import Memory, count
from tmnmt.serve.metrics import exposed
from tmnmt.serve.openapi import document
from tmnmt.serve.refused import Refused, wrong
from tmnmt.serve.routes import Dialect, Route
from tmnmt.serve.service import Answer, Model, Service, Translated, Wanted
from tmnmt.serve.sessions import Open

MOST_ADDED = 10_000  # segments of one request

_TEXTS = Field("texts", "texts", "The texts to translate, in order.", needed=True)
_FORM = Field("format", "text", "What the texts are.", default="text", choices=FORMS)
_IGNORED = Field(
    "ignore_tags", "texts", "Of format xml: elements whose content stays as it is.", default=[]
)
_EXPLAIN = Field("explain", "flag", "With the origin of every token.", default=False)
_SOURCE = Field("source", "text", "Language of the texts; not given, the only one.", default="")
_TARGET = Field("target", "text", "Language wanted; not given, the only one.", default="")
_MEMORIES = Field("memories", "texts", "Names of the memories to read; not given, all of the pair.")
_SRC = Field("src", "text", "The source text.", needed=True)
_TGT = Field("tgt", "text", "Its translation.", needed=True)
TRANSLATE = (
    _TEXTS,
    _SOURCE,
    _TARGET,
    _FORM,
    _IGNORED,
    _EXPLAIN,
    _MEMORIES,
    Field(
        "options",
        "object",
        "Options of tmnmt translate by name: mode, verbatim, beam, length_penalty, top_k, "
        "threshold, short_threshold.",
        default={},
    ),
    Field(
        "priority",
        "text",
        "interactive goes first; not given, interactive for up to 32 segments.",
        choices=("interactive", "batch"),
    ),
)
BEGIN = (
    _SOURCE,
    _TARGET,
    _MEMORIES,
    Field("write_to", "text", "Name of the memory that confirmed pairs are added to, for good."),
)
IN_SESSION = (_TEXTS, _FORM, _IGNORED, _EXPLAIN)
COMPLETE = (
    Field("text", "text", "The text that is translated, one segment.", needed=True),
    Field(
        "prefix",
        "text",
        "What is typed of its translation; its last word may be half a word.",
        default="",
    ),
    _SOURCE,
    _TARGET,
    _MEMORIES,
    Field("session", "text", "The session that the text is of; it says which memories are read."),
)
CONFIRM = (_SRC, _TGT)
SEARCH = (
    Field("texts", "texts", "What to look for.", needed=True),
    Field("k", "whole", "At most so many pairs for a text.", default=5, least=1, most=100),
    Field("threshold", "number", "Smallest fuzzy score.", default=0.5, least=0.3, most=1),
)
ADD = (
    Field(
        "segments",
        "objects",
        "The pairs to add.",
        needed=True,
        inside=(_SRC, _TGT, Field("document", "text", "Where they are from.", default="")),
    ),
)


def wanted(values: Mapping[str, Any]) -> Wanted:
    """A request for a translation. Raises Refused."""
    fields = read(values, TRANSLATE)
    memories = fields["memories"]
    priority = fields["priority"]
    return Wanted(
        tuple(fields["texts"]),
        fields["source"],
        fields["target"],
        fields["format"],
        tuple(fields["ignore_tags"]),
        fields["explain"],
        tuple(memories) if memories is not None else None,
        fields["options"],
        None if priority is None else priority == "interactive",
    )


def answered(answer: Answer) -> dict[str, Any]:
    """Its answer: for every text the whole, and its segments as `tmnmt translate --json` has
    them."""
    return {"model": answer.model.name, "translations": _texts(answer.texts)}


def _texts(texts: Sequence[Translated]) -> list[dict[str, Any]]:
    return [
        {"text": one.text, "segments": [translation_record(each) for each in one.segments]}
        for one in texts
    ]


async def translate(service: Service, asked: Asked) -> Any:
    """Translates texts, with matches, and on demand the origin of every token."""
    return answered(await service.translate(wanted(asked.body), asked.caller))


async def models(service: Service, asked: Asked) -> Any:
    """The models, and the languages of each."""
    return {"models": [_model(model) for model in service.models]}


def _model(model: Model) -> dict[str, Any]:
    source, target = model.languages
    modes = model.translator.layers.modes if model.translator.layers is not None else ("off",)
    return {
        "name": model.name,
        "source": source.code,
        "target": target.code,
        "modes": [mode for mode in modes if mode != "knn"],
    }


async def languages(service: Service, asked: Asked) -> Any:
    """The pairs of languages that are served."""
    pairs = dict.fromkeys(model.languages for model in service.models)
    return {"pairs": [{"source": source.code, "target": target.code} for source, target in pairs]}


async def memories(service: Service, asked: Asked) -> Any:
    """The memories that this key sees."""
    return {"memories": [_memory(memory) for memory in service.memories.of(asked.caller)]}


def _memory(memory: Memory) -> dict[str, Any]:
    source, target = memory.languages
    return {
        "name": memory.name,
        "source": source.code,
        "target": target.code,
        "writable": memory.writable is not None,
        "segments": count(memory),
    }


async def search(service: Service, asked: Asked) -> Any:
    """The pairs of a memory that are worth most for each text."""
    fields = read(asked.body, SEARCH)
    memory = service.memories.get(asked.path["memory"], asked.caller)
    service.check_size(fields["texts"])
    every = await service.search([memory], fields["texts"], fields["k"], fields["threshold"])
    return {"results": [_result(*each) for each in zip(fields["texts"], every, strict=True)]}


def _result(query: str, matches: Sequence[Match]) -> dict[str, Any]:
    return {"query": query, "matches": [match_record(match) for match in matches]}


async def add(service: Service, asked: Asked) -> Any:
    """Adds pairs to a memory; they are on disk when this is answered."""
    given = read(asked.body, ADD)["segments"]
    memory = service.memories.get(asked.path["memory"], asked.caller)
    return {"ids": await service.add(memory, segments(given))}


def segments(given: Sequence[Mapping[str, Any]]) -> list[Segment]:
    """Pairs as a memory holds them. Raises Refused for what it cannot hold."""
    if len(given) > MOST_ADDED:
        raise Refused(413, "too_large", f"a request may add {MOST_ADDED:,} segments")
    return [_segment(one["src"], one["tgt"], one.get("document", "")) for one in given]


def _segment(src: str, tgt: str, document: str) -> Segment:
    try:
        source, target = confirmable(src, tgt)
    except UsageError as error:
        raise wrong(str(error)) from error
    return Segment(source.plain, target.plain, clean_name(document), origin="server")


async def begin(service: Service, asked: Asked) -> Any:
    """Begins a session: one document, which learns from every pair that is confirmed in it."""
    fields = read(asked.body, BEGIN)
    model = service.model(fields["source"], fields["target"])
    to = None
    if fields["write_to"] is not None:
        to = service.memories.writable(fields["write_to"], model.languages, asked.caller)
    view = service.view(model, asked.caller, fields["memories"], {}, to)
    chosen = service.memories.chosen(fields["memories"], model.languages, asked.caller)
    names = dict.fromkeys([*(m.name for m in chosen), *([to.name] if to is not None else [])])
    written = to.name if to is not None else None
    return _session(
        service.sessions.begin(asked.caller, model, Session(view), written, tuple(names))
    )


def _session(one: Open) -> dict[str, Any]:
    source, target = one.model.languages
    return {
        "id": one.id,
        "source": source.code,
        "target": target.code,
        "memories": list(one.memories),
        "write_to": one.memory,
        "confirmed": sum(bool(entry.tgt) for entry in one.session.done),
    }


async def session(service: Service, asked: Asked) -> Any:
    """What a session reads and writes, and how much was confirmed in it."""
    return _session(service.sessions.get(asked.path["session"], asked.caller))


async def in_session(service: Service, asked: Asked) -> Any:
    """Translates the next texts of a session's document."""
    fields = read(asked.body, IN_SESSION)
    one = service.sessions.get(asked.path["session"], asked.caller)
    given = {"form": fields["format"], "ignored": tuple(fields["ignore_tags"])}
    texts = Wanted(tuple(fields["texts"]), explain=fields["explain"], **given)
    done = await service.translated(one.model, one.session, texts)
    return {"model": one.model.name, "translations": _texts(done)}


async def complete(service: Service, asked: Asked) -> Any:
    """Goes on from what is typed of a translation: the best whole one that begins with it."""
    fields = read(asked.body, COMPLETE)
    pair = fields["source"], fields["target"]
    if fields["session"] is None:
        model, session = service.idle(*pair, fields["memories"], asked.caller)
    else:
        one = service.sessions.get(fields["session"], asked.caller)
        model, session = one.model, one.session
        if fields["memories"] is not None:
            raise wrong("a session has its memories: leave memories out")
        if any(pair) and service.model(*pair) is not model:
            raise wrong("the session is of other languages")
    done = await service.completed(model, session, fields["text"], fields["prefix"])
    return {"model": model.name, "text": done.tgt} | translation_record(done)


async def confirm(service: Service, asked: Asked) -> Any:
    """Confirms a pair: the next text of the session knows it. In a session with write_to it is on
    disk when this is answered."""
    fields = read(asked.body, CONFIRM)
    one = service.sessions.get(asked.path["session"], asked.caller)
    if one.memory is not None:
        asked.caller.check("write")
    try:
        source, target = confirmable(fields["src"], fields["tgt"])
    except UsageError as error:
        raise wrong(str(error)) from error
    service.sessions.check_room(one)
    await service.called(one.model, lambda: one.session.confirm(source, target))
    service.counts["confirmed",] += 1
    return _session(one)


async def undo(service: Service, asked: Asked) -> Any:
    """Takes the pair that was confirmed last back, out of the memory, too."""
    read(asked.body, ())
    one = service.sessions.get(asked.path["session"], asked.caller)
    if one.memory is not None:
        asked.caller.check("write")
    if not one.session.done:
        raise Refused(409, "nothing_confirmed", "nothing was confirmed in this session")
    try:
        taken = await service.called(one.model, one.session.undo)
    except UsageError as error:
        raise Refused(409, "nothing_confirmed", "nothing was confirmed in this session") from error
    return _session(one) | {"undone": {"src": taken.src, "tgt": taken.tgt}}


async def end(service: Service, asked: Asked) -> Any:
    """Forgets a session. What was written to a memory stays there."""
    service.sessions.end(asked.path["session"], asked.caller)
    return Response(status_code=204)


async def openapi(service: Service, asked: Asked) -> Any:
    """This interface as an OpenAPI document."""
    return document(OWN)


async def health(service: Service, asked: Asked) -> Any:
    """Whether the server runs."""
    return {"status": "ok"}


async def ready(service: Service, asked: Asked) -> Any:
    """Whether it takes requests: not while it stops."""
    return JSONResponse({"ready": service.ready}, 200 if service.ready else 503)


async def metrics(service: Service, asked: Asked) -> Any:
    """Counters for Prometheus."""
    return PlainTextResponse(exposed(service), media_type="text/plain; version=0.0.4")


def refusal(refused: Refused) -> tuple[int, Mapping[str, Any]]:
    return refused.status, {"error": {"code": refused.code, "message": refused.message}}


OWN = Dialect(
    "own",
    ("",),
    (
        Route("POST", "/v1/translate", translate, "translate", TRANSLATE),
        Route("POST", "/v1/complete", complete, "translate", COMPLETE),
        Route("GET", "/v1/models", models, "read"),
        Route("GET", "/v1/languages", languages, "read"),
        Route("GET", "/v1/memories", memories, "read"),
        Route("POST", "/v1/memories/{memory}/search", search, "read", SEARCH),
        Route("POST", "/v1/memories/{memory}/segments", add, "write", ADD),
        Route("POST", "/v1/sessions", begin, "translate", BEGIN),
        Route("GET", "/v1/sessions/{session}", session, "translate"),
        Route("DELETE", "/v1/sessions/{session}", end, "translate"),
        Route("POST", "/v1/sessions/{session}/translate", in_session, "translate", IN_SESSION),
        Route("POST", "/v1/sessions/{session}/confirm", confirm, "translate", CONFIRM),
        Route("POST", "/v1/sessions/{session}/undo", undo, "translate"),
        Route("GET", "/v1/openapi.json", openapi, None),
        Route("GET", "/health", health, None),
        Route("GET", "/ready", ready, None),
        Route("GET", "/metrics", metrics, "admin"),
    ),
    refusal,
)
