"""What is confirmed while a test set is translated: its references, as if a translator confirmed
every segment before the next is translated; or, as a control, what another document was translated
to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from tmnmt.formats.clean import too_long
from tmnmt.text import match_tokens

Pair = tuple[str, str]
# counts up when what is confirmed, or when, gives another translation with the same settings
WRITES = 3


def confirmed_by(
    units: Sequence[Sequence[str]], targets: Iterator[str], elsewhere: bool
) -> list[list[Pair | None]]:
    """For every segment of every unit the pair that is confirmed after it, None where it cannot be;
    `elsewhere`: the pair at its place in the next unit."""
    pairs = [
        [_fit(*pair) for pair in zip(unit, islice(targets, len(unit)), strict=True)]
        for unit in units
    ]
    return at_same_place(pairs) if elsewhere else pairs


def at_same_place(documents: Sequence[Sequence[Pair | None]]) -> list[list[Pair | None]]:
    """For every segment of every document the pair at its place in the next document, after the
    last the first."""
    following = [*documents[1:], *documents[:1]]
    return [
        [
            next_document[position] if position < len(next_document) else None
            for position in range(len(document))
        ]
        for document, next_document in zip(documents, following, strict=True)
    ]


def _fit(src: str, tgt: str) -> Pair | None:
    return (
        (src, tgt)
        if all(match_tokens(text) and not too_long(text) for text in (src, tgt))
        else None
    )
