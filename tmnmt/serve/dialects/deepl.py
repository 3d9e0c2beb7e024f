"""DeepL: /deepl or the root, its translation of texts, languages, usage, and translation memories,
which are read alone. Every translation has `billed_characters`, without which its library fails.

A translation memory has the name under which it is served as its id. Where a request names one, the
model reads that one alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tmnmt.serve.asked import Asked
from tmnmt.serve.dialects.deepl_kept import ROUTES
from tmnmt.serve.dialects.weblate import answer_of
from tmnmt.serve.fields import NAMES, TEXTS, Field, read
from tmnmt.serve.languages import Language
from tmnmt.serve.markup import Form
from tmnmt.serve.memories import Memory, count
from tmnmt.serve.refused import Refused, wrong
from tmnmt.serve.routes import Dialect, Route
from tmnmt.serve.service import Answer, Request, Service

_UNLIMITED = 10**12  # characters that may be translated: nothing is billed
_FORMALITIES = ("default", "prefer_more", "prefer_less")  # wishes; "more" and "less" are orders
_FIELDS = (
    Field("text", "texts", "What to translate.", needed=True, entries=TEXTS, is_single=True),
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
    Field("target_lang", "text", "Code of a language.", needed=True),
    Field("source_lang", "text", "Code of a language.", default=""),
    Field("tag_handling", "text", "What tags are.", choices=("xml", "html")),
    Field("formality", "text", "How to address people.", choices=_FORMALITIES),
    Field("translation_memory_id", "text", "The memory that is read."),
    Field("translation_memory_threshold", "whole", "Per cent.", default=50, least=0, most=100),
)
_REFUSED = ("style_id", "custom_instructions")
_PAGE = (
    Field("page", "whole", "From 0.", default=0, least=0),
    Field("page_size", "whole", "Memories of a page.", default=10, least=1, most=100),
)
_TYPE = (Field("type", "text", "Of the languages: source or target.", default=""),)
_RESOURCE = (Field("resource", "text", "What is served.", default="translate_text"),)
_LOWEST = 30  # per cent: what is less like the text is of no use


def request_of(values: Mapping[str, Any]) -> Request:
    """Raises Refused, also for what changes a translation and is not served here. Weblate sends an
    empty formality where none is chosen."""
    formality = values.get("formality") or "default"
    fields = read({**values, "formality": formality}, _FIELDS, strict=False)
    given = [name for name in _REFUSED if fields[name]]
    if given:
        raise wrong(f"{given[0]} is not served")
    form: Form = fields["tag_handling"] or "text"
    memory, glossaries = fields["translation_memory_id"], _glossaries(fields)
    least = max(fields["translation_memory_threshold"], _LOWEST) / 100
    return Request(
        tuple(fields["text"]),
        fields["source_lang"],
        fields["target_lang"],
        form,
        tuple(fields["ignore_tags"]),
        memories=(memory,) if memory is not None else None,
        options={"threshold": least} if memory is not None else {},
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
        {"detected_source_language": source, "text": one.text, "billed_characters": len(text)}
        for text, one in zip(request.texts, answer.texts, strict=True)
    ]
    return {"translations": translations}


async def translate(service: Service, asked: Asked) -> Any:
    asks = request_of(asked.values)
    return answered(asks, await answer_of(service, asked, asks))


async def languages(service: Service, asked: Asked) -> Any:
    """Its library sends the query as a form."""
    side = 1 if read(asked.values, _TYPE, strict=False)["type"] == "target" else 0
    return [
        {"language": one.code.upper(), "name": one.name, "supports_formality": False}
        for one in _languages(service, side)
    ]


async def resource_languages(service: Service, asked: Asked) -> Any:
    """Of translation and glossaries; none of another resource."""
    resource = read(asked.values, _RESOURCE, strict=False)["resource"]
    if resource not in ("translate_text", "glossary"):
        return []
    sources, targets = (_languages(service, side) for side in (0, 1))
    return [
        {
            "lang": one.code,
            "name": one.name,
            "usable_as_source": one in sources,
            "usable_as_target": one in targets,
            "features": {},
        }
        for one in dict.fromkeys([*sources, *targets])
    ]


def _languages(service: Service, side: int) -> Sequence[Language]:
    return list(dict.fromkeys(model.languages[side] for model in service.models))


async def usage(service: Service, asked: Asked) -> Any:
    """Nothing is billed."""
    return {"character_count": 0, "character_limit": _UNLIMITED}


async def memories(service: Service, asked: Asked) -> Any:
    fields = read(asked.query, _PAGE, strict=False)
    every, size = service.memories.of(asked.caller), fields["page_size"]
    first = fields["page"] * size
    listed = [_memory(memory) for memory in every[first : first + size]]
    return {"translation_memories": listed, "total_count": len(every)}


async def memory(service: Service, asked: Asked) -> Any:
    return _memory(service.memories.get(asked.path["id"], asked.caller))


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
