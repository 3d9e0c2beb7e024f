"""ModernMT: /modernmt, translation, languages, and memories as far as they are listed, read and
added to, or made to hold terms. Its library sends everything as a POST that names the method in a
header.

A memory has its place among those of the server, from 1, as its id; what a client has made has an
id that is no number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.api_v1 import segments
from tmnmt.serve.dialects import modernmt_glossaries as glossaries
from tmnmt.serve.dialects.weblate import answer_of
from tmnmt.serve.fields import NAMES, TEXTS, Field, read
from tmnmt.serve.http_error import Refused, unknown, wrong
from tmnmt.serve.languages import language
from tmnmt.serve.markup import Form, markup
from tmnmt.serve.memories import Memory
from tmnmt.serve.routes import Dialect, Handler, Route
from tmnmt.serve.service import Answer, Request, Service

_OVERRIDE = "x-http-method-override"
_FORMS: dict[str, Form] = {"text/plain": "text", "text/html": "html", "text/xml": "xml"}
_TAG, _BARE = re.compile(r"</?[A-Za-z]"), re.compile(r"&(?!#?\w+;)")
_LANGUAGES = (
    Field("source", "text", "Code of a language.", default=""),
    Field("target", "text", "Code of a language.", default=""),
    Field("format", "text", "What the texts are.", choices=(*_FORMS,)),
)
_Q = Field("q", "texts", "What to translate.", required=True, entries=TEXTS, is_single=True)
_GLOSSARIES = Field("glossaries", "names", "Their ids.", default=[], entries=NAMES, distinct=True)
_MEMORIES = (
    Field("hints", "names", "Ids of memories.", default=[], entries=NAMES, distinct=True),
    Field("context_vector", "names", "Ids of memories, with scores.", default=[], entries=NAMES),
)
_FIELDS = (*_LANGUAGES, _Q, _GLOSSARIES)
_PAIR = (
    Field("source", "text", "Code of a language.", required=True),
    Field("target", "text", "Code of a language.", required=True),
    Field("sentence", "text", "The source text.", required=True),
    Field("translation", "text", "Its translation.", required=True),
    Field("tuid", "text", "An id of the client, which is not served."),
)
_ID, _JOB = re.compile(r"\d{1,6}"), re.compile(r"\d{1,6}-\d{1,18}")


def request_of(values: Mapping[str, Any], memories: Sequence[str] | None) -> Request:
    """`memories`: the names of those that the request hints at. Where it does not say what the
    texts are, they are XML if all of them can be and one has a tag. Raises Refused."""
    fields = read(values, _FIELDS, strict=False)
    texts = fields["q"]
    form = _FORMS[fields["format"]] if fields["format"] else _form_of(texts)
    names = tuple(memories) if memories is not None else None
    ids = tuple(fields["glossaries"])
    return Request(
        tuple(texts),
        fields["source"],
        fields["target"],
        form,
        memories=names,
        terms=ids or None,
        hard_terms=bool(ids),  # what is in a glossary comes as it stands there
    )


def _form_of(texts: Sequence[str]) -> Form:
    if not any(map(_TAG.search, texts)) or any(map(_BARE.search, texts)):
        return "text"
    try:
        for text in texts:
            markup(text, "xml")
    except Refused:
        return "text"
    return "xml"


def hinted(values: Mapping[str, Any]) -> list[str] | None:
    """The ids of the memories that a request names, by "hints" or by a context vector."""
    fields = read(values, _MEMORIES, strict=False)
    ids = [entry.partition(":")[0].strip() for entry in fields["hints"] or fields["context_vector"]]
    return list(dict.fromkeys(ids)) or None


def answered(values: Mapping[str, Any], request: Request, answer: Answer) -> Any:
    records = [
        {"translation": result.text, "characters": len(text), "billedCharacters": 0}
        for text, result in zip(request.texts, answer.texts, strict=True)
    ]
    if not read(values, _LANGUAGES, strict=False)["source"]:
        for record in records:
            record["detectedLanguage"] = answer.model.languages[0].code
    return _envelope(records if isinstance(values["q"], list) else records[0])


def _envelope(data: Any) -> dict[str, Any]:
    return {"status": 200, "data": data}


async def translate(service: Service, call: ApiRequest) -> Any:
    ids = hinted(call.values)
    names = None if ids is None else [_memory(service, id, call)[1].name for id in ids]
    asks = await service.in_thread(lambda: request_of(call.values, names))
    return answered(call.values, asks, await answer_of(service, call, asks))


async def languages(service: Service, call: ApiRequest) -> Any:
    codes = [language.code for model in service.models for language in model.languages]
    return _envelope(sorted(set(codes)))


async def pairs(service: Service, call: ApiRequest) -> Any:
    """Target languages by their source language, as Weblate asks for them."""
    targets: dict[str, list[str]] = {}
    for source, target in dict.fromkeys(model.languages for model in service.models):
        targets.setdefault(source.code, []).append(target.code)
    return _envelope(targets)


async def memories(service: Service, call: ApiRequest) -> Any:
    numbers = enumerate(service.memories, 1)
    records = [_record(n, memory) for n, memory in numbers if call.caller.sees(memory.name)]
    return _envelope([*records, *await glossaries.list_glossaries(service, call)])


async def memory(service: Service, call: ApiRequest) -> Any:
    if not _ID.fullmatch(call.path["id"]):
        return _envelope(await glossaries.get(service, call))
    return _envelope(_record(*_memory(service, call.path["id"], call)))


async def add(service: Service, call: ApiRequest) -> Any:
    fields = read(call.values, _PAIR, strict=False)
    if fields["tuid"] is not None:
        raise wrong("tuid is not served: pairs have ids that the memory gives")
    number, memory = _memory(service, call.path["id"], call)
    pair = language(fields["source"]), language(fields["target"])
    destination = service.memories.writable(memory.name, pair, call.caller)
    records = [{"src": fields["sentence"], "tgt": fields["translation"]}]
    (id,) = await service.add(destination, segments(records))
    return _envelope({"id": f"{number}-{id}", "memory": number, "size": 1, "progress": 1})


async def job(service: Service, call: ApiRequest) -> Any:
    """What is added is there at once."""
    id = call.path["id"]
    if not _JOB.fullmatch(id):
        await glossaries.get(service, call)
        return _envelope(glossaries.filled(id, 1))
    number, _ = _memory(service, id.partition("-")[0], call)
    return _envelope({"id": id[:64], "memory": number, "size": 1, "progress": 1})


async def make(service: Service, call: ApiRequest) -> Any:
    """Makes one that can hold terms."""
    return _envelope(await glossaries.make(service, call))


async def fill(service: Service, call: ApiRequest) -> Any:
    if _ID.fullmatch(call.path["id"]):
        raise Refused(403, "forbidden", "terms go into what was made for them, not into a memory")
    return _envelope(await glossaries.fill(service, call))


async def delete(service: Service, call: ApiRequest) -> Any:
    if _ID.fullmatch(call.path["id"]):
        return await not_changed(service, call)
    return _envelope(await glossaries.delete(service, call))


async def not_changed(service: Service, call: ApiRequest) -> Any:
    raise Refused(403, "forbidden", "memories are changed and deleted where the server runs")


def _memory(service: Service, id: str, call: ApiRequest) -> tuple[int, Memory]:
    """Raises Refused for one that is not there, or not for this key."""
    numbered = dict(enumerate(service.memories, 1))
    memory = numbered.get(int(id)) if _ID.fullmatch(id) else None
    if memory is None or not call.caller.sees(memory.name):
        raise unknown("there is no such memory")
    return int(id), memory


def _record(number: int, memory: Memory) -> dict[str, Any]:
    return {"id": number, "name": memory.name, "creationDate": "1970-01-01T00:00:00Z"}


def refusal(refused: Refused) -> tuple[int, Mapping[str, Any]]:
    error = {"type": refused.code, "message": refused.message}
    return refused.status, {"status": refused.status, "error": error}


def _by_header(**handlers: Handler) -> Handler:
    """The handler of the method that the header names, else of POST."""

    async def dispatch(service: Service, call: ApiRequest) -> Any:
        method = call.headers.get(_OVERRIDE, "post").lower()
        if method not in handlers:
            raise Refused(405, "wrong_method", "this address has other methods")
        return await handlers[method](service, call)

    return dispatch


_TRANSLATE = (*_FIELDS, *_MEMORIES)
_OF_ONE: dict[str, Handler] = {"get": memory, "put": not_changed, "delete": delete}
MODERNMT = Dialect(
    "ModernMT",
    ("/modernmt",),
    (
        Route("GET", "/languages", pairs, "read"),
        Route("GET", "/translate/languages", languages, "read"),
        Route("POST", "/translate/languages", _by_header(get=languages), "read"),
        Route("GET", "/translate", translate, fields=_TRANSLATE),
        Route("POST", "/translate", _by_header(get=translate, post=translate), fields=_TRANSLATE),
        Route("GET", "/memories", memories, "read"),
        Route("POST", "/memories", _by_header(get=memories, post=make), "read", glossaries.NAME),
        Route("GET", "/memories/{id}", memory, "read"),
        Route("POST", "/memories/{id}", _by_header(**_OF_ONE), "read"),
        Route("DELETE", "/memories/{id}", delete),
        Route(
            "POST",
            "/memories/{id}/glossary",
            _by_header(post=fill),
            fields=glossaries.TERMS,
            keeps=True,
        ),
        Route("POST", "/memories/{id}/content", _by_header(post=add), "write", _PAIR),
        Route("GET", "/import-jobs/{id}", job, "read"),
        Route("POST", "/import-jobs/{id}", _by_header(get=job), "read"),
    ),
    refusal,
)
