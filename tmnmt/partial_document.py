"""A document of which a part is translated already: what remains, and the confirmed pairs around
it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, overload

from tmnmt.codes.record import Source


class ConfirmedNeighbour(NamedTuple):
    """A pair of the document that is confirmed before anything else of it is translated.

    place: how many of the texts that remain stand before it."""

    src: str
    tgt: str
    place: int


class PartialDocument(Sequence[Source]):
    """The texts of a document that are to be translated, in order."""

    def __init__(self, texts: Sequence[Source], pairs: Sequence[ConfirmedNeighbour] = ()) -> None:
        """texts: the texts.
        pairs: the confirmed pairs before, between and behind them, in order."""
        self.texts, self.pairs = texts, pairs

    @overload
    def __getitem__(self, index: int) -> Source: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Source]: ...

    def __getitem__(self, index: int | slice) -> Source | Sequence[Source]:
        return self.texts[index]

    def __len__(self) -> int:
        return len(self.texts)
