"""Labels, as menus have them. To a model that has learned from sentences, one with an ellipsis is a
sentence that breaks off, and it goes on with one of its own. And it writes some as if they stood
within a sentence.

    Save as…    the source
    Save as     what the model reads"""

from __future__ import annotations

import re
from dataclasses import replace

from tmnmt.codes.record import Source, Text, plain_of
from tmnmt.ends import has_few_words
from tmnmt.filters.contract import Filter, ModelOutput, Undo
from tmnmt.filters.letters import WORD, capitalised

_LABEL = re.compile(r"(?P<label>.*\w)(?P<ellipsis>(?:\s?(?:\.{3}|…))?)\s*", re.DOTALL)
_DASH = re.compile(r"\s+[-–—]\s*\Z")  # which nothing follows


class Labels(Filter):
    """Reads a label without its ellipsis, and gives its translation the same ends."""

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        match = _LABEL.fullmatch(plain_of(source))
        if match is None or not has_few_words(match["label"], self.reader.lang):
            return source, None
        undo = LabelUndo(match["ellipsis"], is_capital=_is_capital(match["label"]))
        if not match["ellipsis"]:
            return source, undo
        if not isinstance(source, Text):
            return match["label"], undo
        end = match.end("label")
        if any(code.covers and code.at + code.covers > end for code in source.codes):
            return source, None
        codes = tuple(replace(code, at=min(code.at, end)) for code in source.codes)
        return Text(match["label"], codes), undo


class LabelUndo(Undo):
    """Gives a translation the beginning and the end of its label."""

    def __init__(self, ellipsis: str, is_capital: bool) -> None:
        """ellipsis: the ellipsis as the source has it; "" where it has none.
        is_capital: whether the source begins with a word that has a capital and small letters."""
        self._ellipsis, self._is_capital = ellipsis, is_capital

    def restore_piece(self, output: ModelOutput) -> str:
        text = output.text
        if not output.is_typed:
            text = _DASH.sub("", text)
            first = WORD.match(text)
            if self._is_capital and first is not None and first[0].islower():
                text = capitalised(text)
        has_one = text.rstrip().endswith(("...", "…"))
        return text.rstrip() + self._ellipsis if self._ellipsis and not has_one else text


def _is_capital(label: str) -> bool:
    first = WORD.match(label)
    return first is not None and first[0].istitle()
