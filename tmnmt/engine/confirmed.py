"""What a session has confirmed, as its next sentences find it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from tmnmt.codes.record import Code, Source, Text, equal_codes
from tmnmt.codes.stored import codes_of, listed
from tmnmt.engine.full_match import agreeing
from tmnmt.errors import UsageError
from tmnmt.formats.clean import check_length, clean
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.index.embedded.delta import Delta
from tmnmt.layers.cache_file import DoneRecord
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens, normalise

_HALF = re.compile("[\ud800-\udfff]")  # of a surrogate pair: no character


@dataclass(frozen=True)
class ConfirmedPair:
    """A segment that a session has finished."""

    src: str  # "": here a new document began
    tgt: str  # as confirmed; "": passed over
    # of the segment in `memory`: positive where the pair has added it, negative where the memory
    # gave the same translation already; without a memory negative in the session, 0: in none
    id: int = 0
    changed: str = ""  # when it was confirmed, as segments carry it
    memory: str = ""  # the `place` of the memory that the id is of; "": of none
    src_codes: tuple[Code, ...] = ()
    tgt_codes: tuple[Code, ...] = ()

    def record(self) -> DoneRecord:
        """As a saved session holds it."""
        codes = listed(self.src, self.src_codes), listed(self.tgt, self.tgt_codes)
        return (self.src, self.tgt, self.id, self.changed, self.memory, *codes)

    def has_texts_of(self, entry: ConfirmedPair) -> bool:
        """Whether both are the same pair, with the same codes, wherever they are."""
        names = ("src", "tgt", "src_codes", "tgt_codes")
        return all(getattr(self, name) == getattr(entry, name) for name in names)

    @classmethod
    def load(cls, record: DoneRecord) -> ConfirmedPair:
        """What `record` gave. Raises ValueError for codes that a text cannot have."""
        src, tgt, number, changed, memory, of_source, of_target = record
        return cls(
            src, tgt, number, changed, memory, codes_of(of_source, src), codes_of(of_target, tgt)
        )

    @property
    def segment(self) -> Segment:
        """As memories hold it."""
        return Segment(
            self.src,
            self.tgt,
            id=self.id,
            created=self.changed,
            changed=self.changed,
            src_codes=self.src_codes,
            tgt_codes=self.tgt_codes,
        )

    def is_given_by(self, segment: Segment) -> bool:
        """Whether a memory's segment gives this translation anyway, codes included where there are
        some."""
        codes = zip(
            (self.src_codes, self.tgt_codes), (segment.src_codes, segment.tgt_codes), strict=True
        )
        coded = bool(self.src_codes or self.tgt_codes)
        return segment.tgt == self.tgt and (
            not coded or all(equal_codes(*code_pair) for code_pair in codes)
        )

    def is_in(self, segment: Segment) -> bool:
        """Whether a memory's segment is this very pair, whatever its id: confirmed at the same
        microsecond, and a source of the same match tokens."""
        is_same = (segment.tgt, segment.changed) == (self.tgt, self.changed)
        return is_same and normalise(segment.src) == normalise(self.src)


def confirmed_now(src: Text, tgt: Text) -> ConfirmedPair:
    """A pair that no memory holds yet."""
    # to the microsecond: the last word is the newest
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return ConfirmedPair(
        src.plain, tgt.plain, changed=now, src_codes=src.codes, tgt_codes=tgt.codes
    )


class Confirmed:
    """The pairs of a session. `similar` is what no memory keeps, to be searched; exact matches are
    of all."""

    def __init__(self) -> None:
        self.similar = Delta()
        self._by_source: defaultdict[str, list[Segment]] = defaultdict(list)  # the latest last
        self._lowest = 0

    def new_id(self) -> int:
        """For a pair that no memory keeps."""
        return self._lowest - 1

    def add(self, entry: ConfirmedPair, in_index: bool) -> None:
        """A pair that is found from now on; `in_index`: in a memory that is searched, too. One that
        is not gets an id of its own here: ids of several memories may be the same."""
        segment = entry.segment
        if not in_index:
            self._lowest = self.new_id()
            segment = replace(segment, id=self._lowest)
            self.similar.add(segment)
        self._by_source[normalise(entry.src)].append(segment)

    def remove(self, entry: ConfirmedPair) -> None:
        """A pair that is found no more."""
        segments = self._by_source[normalise(entry.src)]
        position = max(index for index, segment in enumerate(segments) if entry.is_in(segment))
        self.similar.remove(segments.pop(position).id)

    def exact(self, text: str, codes: Sequence[Code] | None = None) -> Match | None:
        """The latest pair whose source has the match tokens of `text`, and its codes where there is
        one such; None: there is none."""
        matches = [Match(segment, 1.0, 0) for segment in self._by_source.get(normalise(text), ())]
        return agreeing(matches, codes)[-1] if matches else None


def confirmable(src: object, tgt: object) -> tuple[Text, Text]:
    """Both sides as they are confirmed. Raises UsageError where they cannot be."""
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
    """`text`, a string or a text with codes. Raises UsageError as `text_of` does."""
    if not isinstance(text, Text):
        return text_of(text)
    for part in (text.plain, *(code.markup for code in text.codes)):
        text_of(part)
    return text


def text_of(text: object) -> str:
    """`text`, which UsageError says is none where it is none, or holds half of a surrogate pair,
    which no file can."""
    if not isinstance(text, str):
        raise UsageError(f"a text is wanted, not {type(text).__name__}")
    if not text.isprintable() and (half := _HALF.search(text)):
        raise UsageError(
            f"a text is wanted, and character {half.start() + 1} of this one is half of a "
            "surrogate pair"
        )
    return text
