"""A pair of a memory as a model reads it beside a text with masks: with the same masks.

    Delete 901 files?              what the model reads of "Delete {count} files?"
    Delete %d files of 2024?       a pair
    Supprimer %d fichiers de 2024 ?
    Delete 901 files of 2024?      what it reads of the pair
    Supprimer 901 fichiers de 2024 ?

So the model copies a mask from a pair as it copies words, whatever stood there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tmnmt.codes.form import READ_AS, Copied
from tmnmt.filters.masks import alone

Spans = list[tuple[int, int, str]]  # start, end and mask, in the order of the text


@dataclass(frozen=True)
class MaskedPair:
    """Both texts with masks; `spans`: what they stand for in the target that the pair has."""

    src: str
    tgt: str
    spans: Spans

    def original(self, position: int) -> int:
        """Where in the pair's target a character stands; the first one of what a mask stands for.

        position: the place of the character in `tgt`."""
        longer = 0  # characters of what the masks so far stand for, beyond their own
        for start, end, name in self.spans:
            begins = start - longer
            if position < begins:
                break
            if position < begins + len(name):
                return start
            longer += end - start - len(name)
        return position + longer


def masked_pair(masks: Mapping[str, str], src: str, tgt: str, copied: Copied) -> MaskedPair:
    """A pair with a mask for every placeholder that it has in common with the source; and, where it
    has as many others, for those in their order.

    masks: for each mask what it stands for in the source, in the order of the source.
    src: the source of the pair.
    tgt: its target.
    copied: finds what counts as a placeholder besides."""
    names = [name for name in masks if name not in src and name not in tgt]
    spans: tuple[Spans, Spans] = [], []
    unmatched = [n for n in names if not _cover(src, tgt, masks[n], n, spans)]
    unmasked = _unmasked(src, copied, spans[0]) if unmatched else []
    if len(unmatched) == len(unmasked):
        for name, covered in zip(unmatched, unmasked, strict=True):
            _cover(src, tgt, covered, name, spans)
    for side in spans:
        side.sort()
    return MaskedPair(_insert_masks(src, spans[0]), _insert_masks(tgt, spans[1]), spans[1])


def _unmasked(text: str, copied: Copied, spans: Spans) -> list[str]:
    """The placeholders of a text that have no mask yet."""
    places = copied.placeholders(text)
    free = [text[start:end] for start, end in places if _is_free(start, end, spans)]
    return [covered for covered in free if covered not in READ_AS]


def _cover(src: str, tgt: str, covered: str, name: str, spans: tuple[Spans, Spans]) -> bool:
    """Covers the first free place of a placeholder on both sides, where both have one."""
    pattern = alone(covered)
    places = [_place(pattern, text, side) for text, side in zip((src, tgt), spans, strict=True)]
    if None in places:
        return False
    for place, side in zip(places, spans, strict=True):
        if place is not None:
            side.append((*place, name))
    return True


def _place(pattern: re.Pattern[str], text: str, spans: Spans) -> tuple[int, int] | None:
    places = (match.span() for match in pattern.finditer(text))
    return next((place for place in places if _is_free(*place, spans)), None)


def _is_free(start: int, end: int, spans: Spans) -> bool:
    return all(end <= first or last <= start for first, last, _ in spans)


def _insert_masks(text: str, spans: Spans) -> str:
    parts = list[str]()
    offset = 0
    for start, end, name in spans:
        parts += text[offset:start], name
        offset = end
    return "".join(parts) + text[offset:]
