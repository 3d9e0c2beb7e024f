"""ModernMT: /modernmt, translation, languages, context vectors, and memories as far as they are
listed, read and added to, or made to hold terms. Its library sends everything as a POST that names
the method in a header.

A memory has its place among those of the server, from 1, as its id; what a client has made has an
id that is no number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tmnmt.config.options import Decoding
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.dialects import dialect_answers as answers
from tmnmt.serve.dialects import modernmt_glossaries as glossaries
from tmnmt.serve.dialects import modernmt_memories as stored
from tmnmt.serve.dialects.weblate import answer_of
from tmnmt.serve.fields import NAMES, TEXTS, Field, read
from tmnmt.serve.http_error import Refused, wrong
from tmnmt.serve.markup import Form, markup
from tmnmt.serve.memories import Memory
from tmnmt.serve.routes import Dialect, Handler, Route, RouteAnswer
from tmnmt.serve.service import Answer, Request, Service, Translated

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
_NEXT_BEST = Field("alt_translations", "whole", "How many more.", default=0, minimum=0, maximum=32)
_ORDER = (
    _NEXT_BEST,
    Field("priority", "text", "background: after others.", choices=("normal", "background")),
    Field("mask_profanities", "flag", "Which is not served.", default=False),
)
_GLOSSARY_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def request_of(values: Mapping[str, Any], memories: Sequence[str] | None) -> Request:
    """`memories`: the names of those that the request hints at. Where it does not say what the
    texts are, they are XML if all of them can be and one has a tag. Raises Refused."""
    fields = read(values, _FIELDS, strict=False)
    texts = fields["q"]
    form = _FORMS[fields["format"]] if fields["format"] else _form_of(texts)
    order = read(values, _ORDER, strict=False)
    if order["mask_profanities"]:
        raise wrong("mask_profanities is not served")
    names = tuple(memories) if memories is not None else None
    ids = tuple(fields["glossaries"])
    return Request(
        tuple(texts),
        fields["source"],
        fields["target"],
        form,
        memories=names,
        options=_next_best(order["alt_translations"]),
        urgent=False if order["priority"] == "background" else None,
        terms=ids or None,
        hard_terms=bool(ids),  # what is in a glossary comes as it stands there
    )


def _next_best(count: int) -> dict[str, Any]:
    """The options of a translation with next best ones."""
    return {"nbest": count + 1, "beam": max(count + 1, Decoding.beam)} if count else {}


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
    if count := read(values, (_NEXT_BEST,), strict=False)["alt_translations"]:
        for record, result in zip(records, answer.texts, strict=True):
            record["altTranslations"] = _alternatives(result)[:count]
    if not read(values, _LANGUAGES, strict=False)["source"]:
        for record in records:
            record["detectedLanguage"] = answer.model.languages[0].code
    return _envelope(records if isinstance(values["q"], list) else records[0])


def _alternatives(result: Translated) -> list[str]:
    """The next best translations of a text that is one segment without tags."""
    if len(result.segments) != 1 or result.segments[0].tgt_codes:
        return []
    return [hypothesis.tgt for hypothesis in result.segments[0].others]


def _envelope(data: Any) -> dict[str, Any]:
    return {"status": 200, "data": data}


async def translate(service: Service, call: ApiRequest) -> Any:
    ids = hinted(call.values)
    names = None
    if ids is not None:
        names = [stored.memory_of(service, id, call)[1].name for id in ids]
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


async def detect(service: Service, call: ApiRequest) -> Any:
    """The only language from which is translated. Raises Refused where there are several."""
    texts = read(call.values, (_Q,), strict=False)["q"]
    record = {"billedCharacters": 0, "detectedLanguage": service.model("", "").languages[0].code}
    return _envelope([record] * len(texts) if isinstance(call.values["q"], list) else record)


async def user(service: Service, call: ApiRequest) -> Any:
    """Whose key it is. Nothing is billed."""
    return _envelope({"name": call.caller.name, "billingPeriod": {"chars": 0}})


async def context_vector(service: Service, call: ApiRequest) -> Any:
    return _envelope(await stored.context_vector(service, call))


async def no_batch(service: Service, call: ApiRequest) -> Any:
    raise Refused(403, "forbidden", "this server calls no address back: use /translate")


async def no_estimate(service: Service, call: ApiRequest) -> Any:
    raise Refused(403, "forbidden", "the quality of given translations is not estimated here")


async def memories(service: Service, call: ApiRequest) -> Any:
    numbers = enumerate(service.memories, 1)
    records = [_record(n, memory) for n, memory in numbers if call.caller.sees(memory.name)]
    return _envelope([*records, *await glossaries.list_glossaries(service, call)])


async def memory(service: Service, call: ApiRequest) -> Any:
    if not stored.ID.fullmatch(call.path["id"]):
        return _envelope(await glossaries.get(service, call))
    return _envelope(_record(*stored.memory_of(service, call.path["id"], call)))


async def add(service: Service, call: ApiRequest) -> Any:
    """Adds a pair, or begins to read a TMX file."""
    return _envelope(await stored.add(service, call))


async def replace_pair(service: Service, call: ApiRequest) -> Any:
    """Corrects a pair."""
    return _envelope(await stored.replace_pair(service, call))


async def job(service: Service, call: ApiRequest) -> Any:
    """A pair, and a glossary, is there at once; a file is read as a job."""
    id = call.path["id"]
    if _GLOSSARY_ID.fullmatch(id):
        await glossaries.get(service, call)
        return _envelope(glossaries.filled(id, 1))
    if match := stored.PAIR_ID.fullmatch(id):
        number, _ = stored.memory_of(service, match[1], call)
        return _envelope({"id": id, "memory": number, "size": 1, "progress": 1})
    return _envelope(await stored.import_status(service, call))


async def make(service: Service, call: ApiRequest) -> Any:
    """Makes one that can hold terms."""
    return _envelope(await glossaries.make(service, call))


async def fill(service: Service, call: ApiRequest) -> Any:
    """Terms of a file in the place of those of their languages, or a term beside the others."""
    if stored.ID.fullmatch(call.path["id"]):
        raise Refused(403, "forbidden", "terms go into what was made for them, not into a memory")
    return _envelope(await glossaries.fill(service, call))


async def edit(service: Service, call: ApiRequest) -> Any:
    if stored.ID.fullmatch(call.path["id"]):
        return await not_changed(service, call)
    return _envelope(await glossaries.rename(service, call))


async def delete(service: Service, call: ApiRequest) -> Any:
    if stored.ID.fullmatch(call.path["id"]):
        return await not_changed(service, call)
    return _envelope(await glossaries.delete(service, call))


async def not_changed(service: Service, call: ApiRequest) -> Any:
    raise Refused(403, "forbidden", "memories are changed and deleted where the server runs")


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


_TRANSLATE = (*_FIELDS, *_MEMORIES, *_ORDER)
_OF_ONE: dict[str, Handler] = {"get": memory, "put": edit, "delete": delete}
_DETECT, _CONTEXT = (_Q,), stored.CONTEXT
_LISTED = RouteAnswer(answers.ModernLanguages)
_TRANSLATED = RouteAnswer(answers.ModernTranslated)
_DETECTED = RouteAnswer(answers.ModernDetected)
_VECTOR = RouteAnswer(answers.ModernContext)
_MEMORY = RouteAnswer(answers.ModernOneMemory)
_IMPORTED = RouteAnswer(answers.ModernImported)
MODERNMT = Dialect(
    "ModernMT",
    ("/modernmt",),
    (
        Route("GET", "/languages", pairs, "read", answer=RouteAnswer(answers.ModernPairs)),
        Route("GET", "/translate/languages", languages, "read", answer=_LISTED),
        Route("POST", "/translate/languages", _by_header(get=languages), "read", answer=_LISTED),
        Route("GET", "/translate", translate, fields=_TRANSLATE, answer=_TRANSLATED),
        Route(
            "POST",
            "/translate",
            _by_header(get=translate, post=translate),
            fields=_TRANSLATE,
            answer=_TRANSLATED,
        ),
        Route("GET", "/translate/detect", detect, "read", _DETECT, answer=_DETECTED),
        Route(
            "POST", "/translate/detect", _by_header(get=detect), "read", _DETECT, answer=_DETECTED
        ),
        Route("POST", "/translate/batch", no_batch, "read"),
        Route("POST", "/translate/batch/key", no_batch, "read"),
        Route("GET", "/translate/qe", no_estimate, "read"),
        Route("POST", "/translate/qe", no_estimate, "read"),
        Route("GET", "/context-vector", context_vector, "read", _CONTEXT, answer=_VECTOR),
        Route(
            "POST",
            "/context-vector",
            _by_header(get=context_vector),
            "read",
            _CONTEXT,
            file_field="content",
            answer=_VECTOR,
        ),
        Route("GET", "/users/me", user, "read", answer=RouteAnswer(answers.ModernUser)),
        Route(
            "POST",
            "/users/me",
            _by_header(get=user),
            "read",
            answer=RouteAnswer(answers.ModernUser),
        ),
        Route("GET", "/memories", memories, "read", answer=RouteAnswer(answers.ModernMemories)),
        Route(
            "POST",
            "/memories",
            _by_header(get=memories, post=make),
            "read",
            glossaries.NAME,
            answer=RouteAnswer(answers.ModernMemories | answers.ModernOneMemory),
        ),
        Route("GET", "/memories/{id}", memory, "read", answer=_MEMORY),
        Route(
            "POST",
            "/memories/{id}",
            _by_header(**_OF_ONE),
            "read",
            glossaries.RENAMED,
            answer=_MEMORY,
        ),
        Route("DELETE", "/memories/{id}", delete, answer=_MEMORY),
        Route(
            "POST",
            "/memories/{id}/glossary",
            _by_header(post=fill, put=fill),
            fields=glossaries.FILL,
            file_field="csv",
            keeps=True,
            answer=_IMPORTED,
        ),
        Route(
            "POST",
            "/memories/{id}/content",
            _by_header(post=add, put=replace_pair),
            "write",
            (*stored.PAIR, stored.COMPRESSION),
            file_field="tmx",
            answer=_IMPORTED,
        ),
        Route("GET", "/import-jobs/{id}", job, "read", answer=_IMPORTED),
        Route("POST", "/import-jobs/{id}", _by_header(get=job), "read", answer=_IMPORTED),
    ),
    refusal,
)
