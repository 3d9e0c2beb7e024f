"""Options by their names, as the groups that `Translator.load` takes."""

from __future__ import annotations

from typing import Any

from tmnmt.config.option import Options, options_of
from tmnmt.config.options import Decoding, Neighbours, Penalties, Remembering, Search, Selection

GROUPS: dict[str, type[Options]] = {
    "search": Search,
    "selection": Selection,
    "remembering": Remembering,
    "neighbours": Neighbours,
    "decoding": Decoding,
    "worth": Penalties,
}


def grouped(**options: Any) -> dict[str, Any]:
    """Keywords of `Translator.load`; a name that is in no group stays as it is."""
    made: dict[str, Any] = {}
    for keyword, group in GROUPS.items():
        names = [each.name for each in options_of(group) if each.name in options]
        if names:
            made[keyword] = group(**{name: options.pop(name) for name in names})
    return made | options
