"""Texts without words, such as "***", "a)" or "12,345.67": they come through as they are, but for
how the target's language writes numbers."""

from __future__ import annotations

import re
from collections import Counter

from tmnmt.codes.record import Source
from tmnmt.filters.contract import Filter, Undo
from tmnmt.numbers import NUMBER, is_well_formed, missing_numbers

_LETTERS = re.compile(r"[^\W\d_]+")
_NO_SIGN = re.compile(r"[\s(]+")


class NonLinguistic(Filter, Undo):
    """Leaves a text without words as it is where the model wrote other signs or numbers."""

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        return source, self

    def refuses(self, output: str, model_text: str) -> bool:
        return is_non_linguistic(model_text) and preserve_signs(model_text, output) != output


def is_non_linguistic(text: str) -> bool:
    """Whether no letter of a text stands beside another, and each is one of A to Z.

    text: the text."""
    return all(len(run) == 1 and run.isascii() for run in _LETTERS.findall(text))


def preserve_signs(model_text: str, output: str) -> str:
    """What a model wrote for a text without words, where that has the same signs, and its numbers,
    each well formed; else the text itself.

    model_text: the text.
    output: what the model wrote."""
    signs_match = _signs(model_text) == _signs(output) and not missing_numbers(model_text, output)
    well_formed = all(map(is_well_formed, NUMBER.findall(output)))
    return (
        output
        if signs_match and well_formed and not missing_numbers(output, model_text)
        else model_text
    )


def _signs(text: str) -> Counter[str]:
    """All that stands between numbers, but for white space, and the bracket that opens "(a)", which
    some languages leave out."""
    return Counter(_NO_SIGN.sub("", NUMBER.sub("", text)))
