"""Quotation marks that the model has left out are put around the words that stand between them in
the source (OURS).

A model that was trained on few definitions writes "inspecteur s'entend …" for “inspector” means …,
with the right word and without its quotes. Where a translation has no quote at all, the words that
look most at the quoted ones get them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tmnmt.codes.record import Source, plain_of
from tmnmt.filters.contract import Filter, ModelOutput, Undo
from tmnmt.filters.target_words import Word, target_words
from tmnmt.quotes import paired
from tmnmt.records import decode_subwords

if TYPE_CHECKING:
    from torch import Tensor

LONGEST = 40  # characters between quotes, which are a term and no sentence
GOOD_PART = 0.3  # of what a word looks at
_QUOTED = re.compile(rf"[“«„]\s?([^“”«»„\"]{{1,{LONGEST}}}?)\s?[”»“]")
_ANY = re.compile('[“”«»„‹›"]')


class _Columns(NamedTuple):
    """Neighbouring subwords of the source: the first, and the one behind the last."""

    first: int
    end: int


class Quotations(Filter, Undo):
    """Puts lost quotation marks around what stands between them in the source."""

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        plain = plain_of(source)
        is_quoted = self.reader.vocab is not None and _ANY.search(plain) is not None
        return source, self if is_quoted and _QUOTED.search(paired(plain)) else None

    def restore_piece(self, output: ModelOutput) -> str:
        vocab, text = self.reader.vocab, output.text
        if vocab is None or output.attention is None or output.is_typed or _ANY.search(text):
            return text
        words = target_words(output.subwords)[:-1]
        if _joined(words) != text:  # a filter has changed it since
            return text
        columns = [*_quoted_columns(decode_subwords(vocab.source_pieces(output.model_text)))]
        attention = output.attention() if columns else None
        for span in columns:
            if attention is not None and (group := _linked(words, span, attention)):
                _put_between(words[group.start : group.stop])
        return _joined(words)


def _quoted_columns(texts: Sequence[str]) -> Iterator[_Columns]:
    """What stands between quotes, in subwords.

    texts: the text of every subword of the source."""
    plain = "".join(texts)
    ends = [len("".join(texts[: number + 1])) for number in range(len(texts))]
    for match in _QUOTED.finditer(paired(plain)):
        start, end = match.span(1)
        inside = [
            number
            for number, stop in enumerate(ends)
            if start < stop <= end and any(map(str.isalnum, texts[number]))
        ]
        if inside:
            yield _Columns(inside[0], inside[-1] + 1)


def _linked(words: Sequence[Word], span: _Columns, attention: Tensor) -> range | None:
    """The neighbouring words that look at the quoted ones most; None where none does.

    words: the words of the target.
    span: the quoted words of the source.
    attention: (T + 1, S + 1), how much every target subword, and </s>, looked at every subword of
    the source and its end."""
    rows = [attention[word.first : word.end].mean(0) for word in words]
    shares = [float(row[span.first : span.end].sum()) for row in rows]

    def looks(number: int) -> bool:
        is_word = any(map(str.isalnum, words[number].text))
        return is_word and span.first <= int(rows[number].argmax()) < span.end

    best = max(filter(looks, range(len(words))), key=shares.__getitem__, default=None)
    if best is None or shares[best] < GOOD_PART:
        return None
    first = last = best
    while first and looks(first - 1):
        first -= 1
    while last + 1 < len(words) and looks(last + 1):
        last += 1
    return range(first, last + 1)


def _put_between(words: Sequence[Word]) -> None:
    """Puts the first and the last of some words between quotes."""
    first, last = words[0], words[-1]
    blank = " " if first.text.startswith(" ") else ""
    first.text = f"{blank}“{first.text.strip()}"
    last.text = f"{last.text}”"


def _joined(words: Sequence[Word]) -> str:
    return " ".join("".join(word.text for word in words).split())
