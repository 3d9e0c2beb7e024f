"""Several sentences in one text, or a label before its text: a model may lose one of them. Then
they are translated one by one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tmnmt.codes.record import Source, plain_of
from tmnmt.filters.contract import Filter, Undo
from tmnmt.filters.sentence_ends import WORDS, sentences, words

# as "Note: The fee is payable"; a capital follows the colon
_LABEL = re.compile(
    r"\s*([^\W\d_][^:：.!?]{0,39}[:：])\s+(?=[\"'“‘«(\[]?([^\W\d_]))(.+)", re.DOTALL
)
_COLON = re.compile(r"\w\s?[:：]\s*\W{0,2}\w")  # with text behind it


class LostSentences(Filter):
    """Translates sentences, or a label and its text, one by one where a translation lacks one."""

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        text = plain_of(source)
        parts = sentences(text)
        if len(parts) > 1:
            return source, OneByOne(parts)
        parts = label_and_text(text)
        return source, LabelAndText(parts) if parts else None


class OneByOne(Undo):
    """Counts the sentences of what was written."""

    def __init__(self, parts: Sequence[str]) -> None:
        """parts: the sentences, which may be translated one by one."""
        self.parts = parts

    def retry(self, output: str) -> Sequence[str]:
        return self.parts if len(sentences(output)) < len(self.parts) else ()


class LabelAndText(Undo):
    """Looks for a label and a text in what was written."""

    def __init__(self, parts: Sequence[str]) -> None:
        """parts: the label and the text, which may be translated one by one."""
        self.parts = parts

    def retry(self, output: str) -> Sequence[str]:
        return () if _COLON.search(output) else self.parts


def label_and_text(text: str) -> list[str]:
    """A label with its colon, and the text behind it; nothing where a text has no label, or hardly
    anything stands behind it.

    text: the text, in a language with capitals."""
    label = _LABEL.fullmatch(text)
    if label is None or not label[2].isupper() or words(label[3]) < WORDS:
        return []
    return [label[1].strip(), label[3].strip()]
