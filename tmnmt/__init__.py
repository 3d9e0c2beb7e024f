"""Translation that remembers: translation-memory retrieval and a neural decoder that reads it.

    from tmnmt import Translator
    translator = Translator.load(...)

docs/design.md tells how a sentence travels and where things live.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# Threads of GNU OpenMP, which torch computes with, wait for each other by counting; some 300,000
# times before they sleep. Where another program has a core, the one that is waited for cannot run
# meanwhile: a translation of 5 s takes 60. Nothing is lost by sleeping early. Read when torch is
# imported.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")

if TYPE_CHECKING:
    from tmnmt.checks import Check, OnChecks
    from tmnmt.codes.record import Code, Pair, Source, Text
    from tmnmt.config.options import TranslationOptions
    from tmnmt.errors import TmnmtError
    from tmnmt.index.base import Index
    from tmnmt.index.named_memories import Named
    from tmnmt.progress import ReadProgress
    from tmnmt.segments import (
        Agreement,
        Alternative,
        CacheSource,
        ConfirmedPair,
        Match,
        MemorySource,
        Other,
        Provenance,
        ReadSource,
        Reason,
        Rival,
        SearchWork,
        Segment,
        Token,
        Translation,
        Word,
        Work,
        Worth,
    )
    from tmnmt.session import Session
    from tmnmt.translator import Translator

__version__ = "0.1.0"
__all__ = [
    "Agreement",
    "Alternative",
    "CacheSource",
    "Check",
    "Code",
    "ConfirmedPair",
    "Index",
    "Match",
    "MemorySource",
    "Named",
    "OnChecks",
    "Other",
    "Pair",
    "Provenance",
    "ReadProgress",
    "ReadSource",
    "Reason",
    "Rival",
    "SearchWork",
    "Segment",
    "Session",
    "Source",
    "Text",
    "TmnmtError",
    "Token",
    "Translation",
    "TranslationOptions",
    "Translator",
    "Word",
    "Work",
    "Worth",
    "__version__",
]

# `import tmnmt` is part of every command's start: torch comes in only with the first use of
# `Translator` or `Session`.
_HOMES = {
    "tmnmt.checks": ("Check", "OnChecks"),
    "tmnmt.codes.record": ("Code", "Pair", "Source", "Text"),
    "tmnmt.config.options": ("TranslationOptions",),
    "tmnmt.session": ("Session",),
    "tmnmt.translator": ("Translator",),
    "tmnmt.errors": ("TmnmtError",),
    "tmnmt.index.base": ("Index",),
    "tmnmt.index.named_memories": ("Named",),
    "tmnmt.progress": ("ReadProgress",),
    "tmnmt.segments": (
        "Agreement",
        "Alternative",
        "CacheSource",
        "ConfirmedPair",
        "Match",
        "MemorySource",
        "Other",
        "Provenance",
        "ReadSource",
        "Reason",
        "Rival",
        "SearchWork",
        "Segment",
        "Token",
        "Translation",
        "Word",
        "Work",
        "Worth",
    ),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'tmnmt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
