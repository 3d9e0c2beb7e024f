"""What a session has confirmed, as its next sentences find it."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from tmnmt.errors import UsageError
from tmnmt.formats.clean import check_length, clean
from tmnmt.index.embedded.delta import Delta
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens, normalise

_HALF = re.compile("[\ud800-\udfff]")  # of a surrogate pair: no character


@dataclass(frozen=True)
class Done:
    """A segment that a session has finished."""

    src: str  # "": here a new document began
    tgt: str  # as confirmed; "": passed over
    # of the segment in the memory it was written to, negative in the session's own; 0: in none
    id: int = 0
    changed: str = ""  # when it was confirmed, as segments carry it
    memory: str = ""  # the `place` of the memory that the id is of; "": of none

    @property
    def segment(self) -> Segment:
        """As memories hold it."""
        return Segment(self.src, self.tgt, id=self.id, created=self.changed, changed=self.changed)

    def is_in(self, segment: Segment) -> bool:
        """Whether a memory's segment is this very pair, whatever its id: confirmed at the same
        microsecond."""
        return (segment.src, segment.tgt, segment.changed) == (self.src, self.tgt, self.changed)


def confirmed_now(src: str, tgt: str) -> Done:
    """A pair that no memory holds yet."""
    # to the microsecond: the last word is the newest
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return Done(src, tgt, changed=now)


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

    def add(self, entry: Done, in_index: bool) -> None:
        """A pair that is found from now on; `in_index`: in a memory that is searched, too. One that
        is not gets an id of its own here: ids of several memories may be the same."""
        segment = entry.segment
        if not in_index:
            self._lowest = self.new_id()
            segment = replace(segment, id=self._lowest)
            self.similar.add(segment)
        self._by_source[normalise(entry.src)].append(segment)

    def remove(self, entry: Done) -> None:
        """A pair that is found no more."""
        same = self._by_source[normalise(entry.src)]
        at = max(at for at, segment in enumerate(same) if entry.is_in(segment))
        self.similar.remove(same.pop(at).id)

    def exact(self, text: str) -> Match | None:
        """The latest pair whose source has the match tokens of `text`; None: there is none."""
        same = self._by_source.get(normalise(text))
        return Match(same[-1], 1.0, 0) if same else None


def confirmable(src: object, tgt: object) -> tuple[str, str]:
    """Both sides as they are confirmed. Raises UsageError where they cannot be."""
    pair = clean(text_of(src))[0], clean(text_of(tgt))[0]
    for side, text in zip(("the source", "the translation"), pair, strict=True):
        if not match_tokens(text):
            raise UsageError(
                f"a confirmed pair needs a text on both sides, and {side} has nothing that can "
                "be seen"
            )
        check_length(side, text)
    return pair


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
