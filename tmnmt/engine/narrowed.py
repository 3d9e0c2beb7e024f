"""A translator that reads some of its memories only: what several users share, each with what is
theirs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

from tmnmt.engine.settings import Settings
from tmnmt.engine.terms import TermList
from tmnmt.engine.translator import Translator
from tmnmt.errors import UsageError
from tmnmt.index.base import Index, WritableIndex
from tmnmt.index.worth import Trust


def narrowed(
    translator: Translator,
    indexes: Sequence[Index],
    trust: Sequence[Trust],
    settings: Settings,
    writable: WritableIndex | None = None,
    terms: TermList | None = None,
) -> Translator:
    """The same model, weights, pair keys, lock and counts, with these memories and terms alone, and
    what is confirmed written to `writable`. Batches of several such translators can be decoded by
    any of them once each has retrieved for its own, where their settings and terms are the same.

    Raises UsageError where neighbours are read: those are of all memories."""
    if translator.decoder.datastore is not None:
        raise UsageError("neighbours are read of all memories; they cannot be narrowed to some")
    other = copy.copy(translator)
    other.__dict__.pop("_idle", None)  # a session of the memories of the first
    other.settings = settings
    other.writable = writable
    other.decoder = replace(translator.decoder, settings=settings, terms=terms)
    other.postprocessor = replace(translator.postprocessor, terms=terms, nbest=settings.nbest)
    other.read(indexes, trust)
    return other
