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
from tmnmt.serve.fields import Field, read
from tmnmt.serve.languages import Language
from tmnmt.serve.markup import Form
from tmnmt.serve.memories import Memory, count
from tmnmt.serve.refused import Refused, wrong
from tmnmt.serve.routes import Dialect, Route
from tmnmt.serve.service import Answer, Request, Service

_UNLIMITED = 10**12  # characters that may be translated: nothing is billed
_FORMALITIES = ("default", "prefer_more", "prefer_less")  # wishes; "more" and "less" are orders
_FIELDS = (
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
_LOWEST = 30  # per cent: what is less like the text is of no use


def request_of(values: Mapping[str, Any]) -> Request:
    """Raises Refused, also for what changes a translation and is not served here. Weblate sends an
    empty formality where none is chosen."""
    formality = values.get("formality") or "default"
    fields = read({**values, "formality": formality}, _FIELDS, strict=False)
    given = [name for name in _REFUSED if values.get(name)]
    if given:
        raise wrong(f"{given[0]} is not served")
    texts = _list(values.get("text"), "text")
    ignored = _list(values.get("ignore_tags") or [], "ignore_tags")
    form: Form = fields["tag_handling"] or "text"
    memory, glossaries = fields["translation_memory_id"], _glossaries(values)
    least = max(fields["translation_memory_threshold"], _LOWEST) / 100
    return Request(
        tuple(texts),
        fields["source_lang"],
        fields["target_lang"],
        form,
        tuple(name.strip() for names in ignored for name in names.split(",")),
        memories=(memory,) if memory is not None else None,
        options={"threshold": least} if memory is not None else {},
        terms=glossaries,
        hard_terms=glossaries is not None,  # what is in a glossary comes as it stands there
    )


def _glossaries(values: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The ids of glossaries; None where none is named: then the server's own lists are kept to."""
    one, several = values.get("glossary_id"), values.get("glossary_ids")
    named = _list(several or [], "glossary_ids") + (_list(one, "glossary_id") if one else [])
    return tuple(named) or None


def _list(value: Any, name: str) -> list[str]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise wrong(f"{name} must be a text, or a list of texts")
    return listed


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
    side = 1 if asked.values.get("type") == "target" else 0
    return [
        {"language": one.code.upper(), "name": one.name, "supports_formality": False}
        for one in _languages(service, side)
    ]


async def resource_languages(service: Service, asked: Asked) -> Any:
    """Of translation and glossaries; none of another resource."""
    if asked.values.get("resource", "translate_text") not in ("translate_text", "glossary"):
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
        Route("POST", "/v2/translate", translate),
        Route("GET", "/v2/languages", languages, "read"),
        Route("GET", "/v3/languages", resource_languages, "read"),
        Route("GET", "/v2/usage", usage, "read"),
        Route("GET", "/v3/translation_memories", memories, "read"),
        Route("GET", "/v3/translation_memories/{id}", memory, "read"),
        *ROUTES,
    ),
    refusal,
)
OLDER = Dialect(
    "DeepL v1",
    ("/deepl",),
    (
        Route("POST", "/v1/translate", translate),
        Route("GET", "/v1/languages", languages, "read"),
    ),
    refusal,
)
