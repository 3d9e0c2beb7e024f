"""DeepL: /deepl or the root, its translation of texts, languages, usage, and translation memories,
which are read alone. Every translation has `billed_characters`, without which its library fails.

A translation memory has the name under which it is served as its id. Where a request names one, the
model reads that one alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.dialects.deepl_resources import ROUTES
from tmnmt.serve.dialects.weblate import answer_of
from tmnmt.serve.fields import NAMES, TEXTS, Field, read
from tmnmt.serve.http_error import Refused, wrong
from tmnmt.serve.languages import Language
from tmnmt.serve.markup import Form
from tmnmt.serve.memories import Memory, count
from tmnmt.serve.routes import Dialect, Route
from tmnmt.serve.service import Answer, Request, Service

_UNLIMITED = 10**12  # characters that may be translated: nothing is billed
_FORMALITIES = ("default", "prefer_more", "prefer_less")  # wishes; "more" and "less" are orders
_FIELDS = (
    Field("text", "texts", "What to translate.", required=True, entries=TEXTS, is_single=True),
    Field("ignore_tags", "names", "Elements that stay as they are.", default=[], entries=NAMES),
    Field("glossary_id", "text", "The glossary that is kept to.", default=""),
    Field(
        "glossary_ids",
        "texts",
        "More of them.",
        default=[],
        entries=NAMES,
        distinct=True,
        is_single=True,
    ),
    Field("style_id", "text", "Which is not served."),
    Field("custom_instructions", "texts", "Which are not served.", entries=NAMES, is_single=True),
    Field("target_lang", "text", "Code of a language.", required=True),
    Field("source_lang", "text", "Code of a language.", default=""),
    Field("tag_handling", "text", "What tags are.", choices=("xml", "html")),
    Field("formality", "text", "How to address people.", choices=_FORMALITIES),
    Field("translation_memory_id", "text", "The memory that is read."),
    Field("translation_memory_threshold", "whole", "Per cent.", default=50, minimum=0, maximum=100),
)
_REFUSED = ("style_id", "custom_instructions")
_PAGE = (
    Field("page", "whole", "From 0.", default=0, minimum=0),
    Field("page_size", "whole", "Memories of a page.", default=10, minimum=1, maximum=100),
)
_TYPE = (Field("type", "text", "Of the languages: source or target.", default=""),)
_RESOURCE = (Field("resource", "text", "What is served.", default="translate_text"),)
_LOWEST = 30  # per cent: what is less like the text is of no use


def request_of(values: Mapping[str, Any]) -> Request:
    """Raises Refused, also for what changes a translation and is not served here. Weblate sends an
    empty formality where none is chosen."""
    formality = values.get("formality") or "default"
    fields = read({**values, "formality": formality}, _FIELDS, strict=False)
    unsupported = [name for name in _REFUSED if fields[name]]
    if unsupported:
        raise wrong(f"{unsupported[0]} is not served")
    form: Form = fields["tag_handling"] or "text"
    memory, glossaries = fields["translation_memory_id"], _glossaries(fields)
    threshold = max(fields["translation_memory_threshold"], _LOWEST) / 100
    return Request(
        tuple(fields["text"]),
        fields["source_lang"],
        fields["target_lang"],
        form,
        tuple(fields["ignore_tags"]),
        memories=(memory,) if memory is not None else None,
        options={"threshold": threshold} if memory is not None else {},
        terms=glossaries,
        hard_terms=glossaries is not None,  # what is in a glossary comes as it stands there
    )


def _glossaries(fields: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The ids of glossaries; None where none is named: then the server's own lists are kept to."""
    ids = [*fields["glossary_ids"], *filter(None, [fields["glossary_id"]])]
    return tuple(dict.fromkeys(ids)) or None


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


DEEPL = Dialect(
    "DeepL",
    ("/deepl", ""),  # its library for Python leaves out a path that does not end in a slash
    (
        Route("POST", "/v2/translate", translate, fields=_FIELDS),
        Route("GET", "/v2/languages", languages, "read", _TYPE),
        Route("GET", "/v3/languages", resource_languages, "read", _RESOURCE),
        Route("GET", "/v2/usage", usage, "read"),
        Route("GET", "/v3/translation_memories", memories, "read", _PAGE),
        Route("GET", "/v3/translation_memories/{id}", memory, "read"),
        *ROUTES,
    ),
    refusal,
)
OLDER = Dialect(
    "DeepL v1",
    ("/deepl",),
    (
        Route("POST", "/v1/translate", translate, fields=_FIELDS),
        Route("GET", "/v1/languages", languages, "read", _TYPE),
    ),
    refusal,
)
