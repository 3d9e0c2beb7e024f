"""What a session has confirmed, as its next sentences find it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tmnmt.codes.record import Code, Source, Text, equal_codes
from tmnmt.codes.stored import codes_of, listed
from tmnmt.engine.full_match import agreeing
from tmnmt.errors import UsageError
from tmnmt.formats.clean import check_length, clean
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.index.embedded.delta import Delta
from tmnmt.segments import ConfirmedPair, Match, Segment
from tmnmt.text import match_tokens, normalise

if TYPE_CHECKING:
    from tmnmt.engine.session_file import DoneRecord

_HALF = re.compile("[\ud800-\udfff]")  # of a surrogate pair: no character


def record_of(pair: ConfirmedPair) -> DoneRecord:
    """A pair as a saved session holds it.

    pair: the pair."""
    codes = listed(pair.src, pair.src_codes), listed(pair.tgt, pair.tgt_codes)
    return (pair.src, pair.tgt, pair.id, pair.changed, pair.memory, *codes)


def pair_of(record: DoneRecord) -> ConfirmedPair:
    """Makes a pair of what `record_of` gave.

    record: the record of a saved session.

    Raises ValueError for codes that a text cannot have."""
    src, tgt, number, changed, memory, of_source, of_target = record
    codes = codes_of(of_source, src), codes_of(of_target, tgt)
    return ConfirmedPair(src, tgt, number, changed, memory, *codes)


def have_same_texts(first: ConfirmedPair, second: ConfirmedPair) -> bool:
    """Whether both are the same pair with the same codes, wherever the pairs are kept.

    first: a pair.
    second: the other pair."""
    names = ("src", "tgt", "src_codes", "tgt_codes")
    return all(getattr(first, name) == getattr(second, name) for name in names)


def gives_translation(segment: Segment, pair: ConfirmedPair) -> bool:
    """Whether a segment of a memory gives the translation of a pair already, with the same codes
    where the pair has some.

    segment: the segment.
    pair: the pair."""
    if segment.tgt != pair.tgt or not (pair.src_codes or pair.tgt_codes):
        return segment.tgt == pair.tgt
    codes = (pair.src_codes, segment.src_codes), (pair.tgt_codes, segment.tgt_codes)
    return all(equal_codes(*of_side) for of_side in codes)


def holds_pair(segment: Segment, pair: ConfirmedPair) -> bool:
    """Whether a segment of a memory is this very pair, whatever its id is. It is so where it was
    confirmed in the same microsecond, and its source has the same match tokens.

    segment: the segment.
    pair: the pair."""
    is_same = (segment.tgt, segment.changed) == (pair.tgt, pair.changed)
    return is_same and normalise(segment.src) == normalise(pair.src)


def confirmed_now(src: Text, tgt: Text) -> ConfirmedPair:
    """A pair that is confirmed at this moment and that no memory holds yet.

    src: the source.
    tgt: its translation."""
    # to the microsecond: the last word is the newest
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return ConfirmedPair(
        src.plain, tgt.plain, changed=now, src_codes=src.codes, tgt_codes=tgt.codes
    )


class Confirmed:
    """The pairs of a session. `similar` has those that no memory keeps, so that they can be
    searched. Exact matches are found among all pairs."""

    def __init__(self) -> None:
        self.similar = Delta()
        self._by_source: defaultdict[str, list[Segment]] = defaultdict(list)  # the latest last
        self._lowest = 0

    def new_id(self) -> int:
        """An id for a pair that no memory keeps. It is negative."""
        return self._lowest - 1

    def add(self, entry: ConfirmedPair, in_index: bool) -> None:
        """Adds a pair, which is found from then on. A pair that no searched memory has gets a
        separate id here, because ids of several memories may be the same.

        entry: the pair.
        in_index: whether a memory that is searched has it, too."""
        segment = entry.segment
        if not in_index:
            self._lowest = self.new_id()
            segment = replace(segment, id=self._lowest)
            self.similar.add(segment)
        self._by_source[normalise(entry.src)].append(segment)

    def remove(self, entry: ConfirmedPair) -> None:
        """Takes a pair out, which is not found from then on.

        entry: the pair."""
        segments = self._by_source[normalise(entry.src)]
        position = max(
            index for index, segment in enumerate(segments) if holds_pair(segment, entry)
        )
        self.similar.remove(segments.pop(position).id)

    def exact(self, text: str, codes: Sequence[Code] | None = None) -> Match | None:
        """The latest pair whose source has the match tokens of a text; None where there is none. A
        pair with the same codes goes first.

        text: the text.
        codes: the codes of the text; None where it can have none."""
        matches = [Match(segment, 1.0, 0) for segment in self._by_source.get(normalise(text), ())]
        return agreeing(matches, codes)[-1] if matches else None


def confirmable(src: object, tgt: object) -> tuple[Text, Text]:
    """Both sides of a pair, cleaned as they are confirmed.

    src: the source.
    tgt: its translation.

    Raises UsageError for a side that cannot be confirmed."""
    pair = _confirmable("the source", src), _confirmable("the translation", tgt)
    return pair


def _confirmable(side: str, value: object) -> Text:
    text = source_of(value)
    cleaned = clean_codes(text)[0] if isinstance(text, Text) else Text(clean(text)[0])
    if not match_tokens(cleaned.plain):
        raise UsageError(
            f"a confirmed pair needs a text on both sides, and {side} has nothing that can be seen"
        )
    check_length(side, cleaned.plain)
    return cleaned


def source_of(text: object) -> Source:
    """Gives back a string or a text with codes.

    text: what a caller gave.

    Raises UsageError as `text_of` does."""
    if not isinstance(text, Text):
        return text_of(text)
    for part in (text.plain, *(code.markup for code in text.codes)):
        text_of(part)
    return text


def text_of(text: object) -> str:
    """Gives back a string.

    text: what a caller gave.

    Raises UsageError for what is no text, and for a text that holds half of a surrogate pair, which
    no file can hold."""
    if not isinstance(text, str):
        raise UsageError(f"a text is wanted, not {type(text).__name__}")
    if not text.isprintable() and (half := _HALF.search(text)):
        raise UsageError(
            f"a text is wanted, and character {half.start() + 1} of this one is half of a "
            "surrogate pair"
        )
    return text
