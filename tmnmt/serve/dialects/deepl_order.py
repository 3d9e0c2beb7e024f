"""What DeepL lets a client say of a translation, of texts and of documents alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tmnmt.serve.fields import NAMES, Field, read
from tmnmt.serve.http_error import wrong

_FORMALITIES = ("default", "prefer_more", "prefer_less")  # wishes; "more" and "less" are orders
_LOWEST = 30  # per cent: what is less like the text is of no use
_UNSUPPORTED = ("style_id", "custom_instructions")
ORDER = (
    Field("target_lang", "text", "Code of a language.", required=True),
    Field("source_lang", "text", "Code of a language.", default=""),
    Field("glossary_id", "text", "The glossary that is kept to.", default=""),
    Field("glossary_ids", "names", "More of them.", default=[], entries=NAMES, distinct=True),
    Field("style_id", "text", "Which is not served."),
    Field("custom_instructions", "texts", "Which are not served.", entries=NAMES, is_single=True),
    Field("formality", "text", "How to address people.", choices=_FORMALITIES),
    Field("translation_memory_id", "text", "The memory that is read."),
    Field("translation_memory_threshold", "whole", "Per cent.", default=50, minimum=0, maximum=100),
)


@dataclass(frozen=True)
class Order:
    """What is wanted.

    source: the code of the source language; "" where it is not said.
    target: the code of the target language.
    memories: the names of the memories that are read; None: all.
    terms: the ids of glossaries; None: the server's own lists.
    options: options of the translation."""

    source: str
    target: str
    memories: tuple[str, ...] | None = None
    terms: tuple[str, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_terms(self) -> bool:
        """Whether glossaries are named: what is in them comes as it stands there."""
        return self.terms is not None


def order_of(values: Mapping[str, Any]) -> Order:
    """What a request wants. Weblate sends an empty formality where none is chosen.

    values: the fields of the request.

    Raises Refused for what is no such field, and for what changes a translation and is not served
    here."""
    formality = values.get("formality") or "default"
    fields = read({**values, "formality": formality}, ORDER, strict=False)
    unsupported = [name for name in _UNSUPPORTED if fields[name]]
    if unsupported:
        raise wrong(f"{unsupported[0]} is not served")
    memory = fields["translation_memory_id"]
    threshold = max(fields["translation_memory_threshold"], _LOWEST) / 100
    ids = [*fields["glossary_ids"], *filter(None, [fields["glossary_id"]])]
    return Order(
        fields["source_lang"],
        fields["target_lang"],
        (memory,) if memory is not None else None,
        tuple(dict.fromkeys(ids)) or None,
        {"threshold": threshold} if memory is not None else {},
    )
