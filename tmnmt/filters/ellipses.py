"""Labels with an ellipsis, as menus have them: to a model that has learned from sentences they are
sentences that break off, and it goes on with one of its own.

    Save as…    the source
    Save as     what the model reads"""

from __future__ import annotations

import re
from dataclasses import replace

from tmnmt.codes.record import Source, Text, plain_of
from tmnmt.ends import has_few_words
from tmnmt.filters.contract import Filter, ModelOutput, Undo

_LABEL = re.compile(r"(?P<label>.*\w)(?P<ellipsis>\s?(?:\.{3}|…))\s*", re.DOTALL)


class LabelEllipses(Filter):
    """Reads a label of a few words without the ellipsis at its end."""

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        match = _LABEL.fullmatch(plain_of(source))
        if match is None or not has_few_words(match["label"], self.reader.lang):
            return source, None
        undo = EllipsisUndo(match["ellipsis"])
        if not isinstance(source, Text):
            return match["label"], undo
        end = match.end("label")
        if any(code.covers and code.at + code.covers > end for code in source.codes):
            return source, None
        codes = tuple(replace(code, at=min(code.at, end)) for code in source.codes)
        return Text(match["label"], codes), undo


class EllipsisUndo(Undo):
    """Puts an ellipsis behind a translation."""

    def __init__(self, ellipsis: str) -> None:
        """ellipsis: the ellipsis as the source has it."""
        self._ellipsis = ellipsis

    def restore_piece(self, output: ModelOutput) -> str:
        has_one = output.text.rstrip().endswith(("...", "…"))
        return output.text if has_one else output.text.rstrip() + self._ellipsis
