"""DeepL: /deepl or the root, its translation of texts and documents, languages, usage, and
translation memories, which are read alone. Every translation has `billed_characters`, without which
its library fails.

A translation memory has the name under which it is served as its id. Where a request names one, the
model reads that one alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.dialects import dialect_answers as answers
from tmnmt.serve.dialects.deepl_documents import DOCUMENTS
from tmnmt.serve.dialects.deepl_order import ORDER, order_of
from tmnmt.serve.dialects.deepl_resources import ROUTES
from tmnmt.serve.dialects.weblate import answer_of
from tmnmt.serve.fields import NAMES, TEXTS, Field, read
from tmnmt.serve.http_error import Refused
from tmnmt.serve.languages import Language
from tmnmt.serve.markup import Form
from tmnmt.serve.memories import Memory, count
from tmnmt.serve.routes import Dialect, Route, RouteAnswer
from tmnmt.serve.service import Answer, Request, Service

_UNLIMITED = 10**12  # characters that may be translated: nothing is billed
_TEXT = (
    Field("text", "texts", "What to translate.", required=True, entries=TEXTS, is_single=True),
    Field("ignore_tags", "names", "Elements that stay as they are.", default=[], entries=NAMES),
    Field("tag_handling", "text", "What tags are.", choices=("xml", "html")),
)
_FIELDS = (*_TEXT, *ORDER)
_PAGE = (
    Field("page", "whole", "From 0.", default=0, minimum=0),
    Field("page_size", "whole", "Memories of a page.", default=10, minimum=1, maximum=100),
)
_TYPE = (Field("type", "text", "Of the languages: source or target.", default=""),)
_RESOURCE = (Field("resource", "text", "What is served.", default="translate_text"),)


def request_of(values: Mapping[str, Any]) -> Request:
    """Raises Refused, also for what changes a translation and is not served here."""
    order = order_of(values)
    fields = read(values, _TEXT, strict=False)
    form: Form = fields["tag_handling"] or "text"
    return Request(
        tuple(fields["text"]),
        order.source,
        order.target,
        form,
        tuple(fields["ignore_tags"]),
        memories=order.memories,
        options=order.options,
        terms=order.terms,
        hard_terms=order.has_terms,
    )


def answered(request: Request, answer: Answer) -> dict[str, Any]:
    source = answer.model.languages[0].language.upper()
    translations = [
        {"detected_source_language": source, "text": result.text, "billed_characters": len(text)}
        for text, result in zip(request.texts, answer.texts, strict=True)
    ]
    return {"translations": translations}


async def translate(service: Service, call: ApiRequest) -> Any:
    asks = request_of(call.values)
    return answered(asks, await answer_of(service, call, asks))


async def languages(service: Service, call: ApiRequest) -> Any:
    """Its library sends the query as a form."""
    side = 1 if read(call.values, _TYPE, strict=False)["type"] == "target" else 0
    return [
        {"language": language.code.upper(), "name": language.name, "supports_formality": False}
        for language in _languages(service, side)
    ]


async def resource_languages(service: Service, call: ApiRequest) -> Any:
    """Of translation and glossaries; none of another resource."""
    resource = read(call.values, _RESOURCE, strict=False)["resource"]
    if resource not in ("translate_text", "glossary"):
        return []
    sources, targets = (_languages(service, side) for side in (0, 1))
    return [
        {
            "lang": language.code,
            "name": language.name,
            "usable_as_source": language in sources,
            "usable_as_target": language in targets,
            "features": {},
        }
        for language in dict.fromkeys([*sources, *targets])
    ]


def _languages(service: Service, side: int) -> Sequence[Language]:
    return list(dict.fromkeys(model.languages[side] for model in service.models))


async def usage(service: Service, call: ApiRequest) -> Any:
    """Nothing is billed."""
    return {"character_count": 0, "character_limit": _UNLIMITED}


async def memories(service: Service, call: ApiRequest) -> Any:
    fields = read(call.query, _PAGE, strict=False)
    visible_memories, size = service.memories.visible(call.caller), fields["page_size"]
    first = fields["page"] * size
    listed = [_memory(memory) for memory in visible_memories[first : first + size]]
    return {"translation_memories": listed, "total_count": len(visible_memories)}


async def memory(service: Service, call: ApiRequest) -> Any:
    return _memory(service.memories.get(call.path["id"], call.caller))


def _memory(memory: Memory) -> dict[str, Any]:
    source, target = memory.languages
    return {
        "translation_memory_id": memory.name,
        "name": memory.name,
        "source_language": source.code,
        "target_languages": [target.code],
        "segment_count": count(memory) or 0,
    }


def refusal(refused: Refused) -> tuple[int, Mapping[str, Any]]:
    status = 403 if refused.status == 401 else refused.status
    return status, {"message": refused.message}


_TRANSLATIONS = RouteAnswer(answers.DeeplTranslations)
_LISTED = RouteAnswer(list[answers.DeeplLanguage])
_OF_RESOURCE = RouteAnswer(list[answers.DeeplResourceLanguage])
DEEPL = Dialect(
    "DeepL",
    ("/deepl", ""),  # its library for Python leaves out a path that does not end in a slash
    (
        Route("POST", "/v2/translate", translate, fields=_FIELDS, answer=_TRANSLATIONS),
        Route(
            "GET", "/v2/translate", translate, fields=_FIELDS, answer=_TRANSLATIONS
        ),  # as deep-translator asks
        Route("GET", "/v2/languages", languages, "read", _TYPE, answer=_LISTED),
        Route("GET", "/v3/languages", resource_languages, "read", _RESOURCE, answer=_OF_RESOURCE),
        Route("GET", "/v2/usage", usage, "read", answer=RouteAnswer(answers.DeeplUsage)),
        Route(
            "GET",
            "/v3/translation_memories",
            memories,
            "read",
            _PAGE,
            answer=RouteAnswer(answers.DeeplMemories),
        ),
        Route(
            "GET",
            "/v3/translation_memories/{id}",
            memory,
            "read",
            answer=RouteAnswer(answers.DeeplMemory),
        ),
        *ROUTES,
        *DOCUMENTS,
    ),
    refusal,
)
OLDER = Dialect(
    "DeepL v1",
    ("/deepl",),
    (
        Route("POST", "/v1/translate", translate, fields=_FIELDS, answer=_TRANSLATIONS),
        Route("GET", "/v1/languages", languages, "read", _TYPE, answer=_LISTED),
    ),
    refusal,
)
