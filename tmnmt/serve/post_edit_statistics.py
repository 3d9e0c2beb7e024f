"""What was confirmed in a session against what was suggested before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rapidfuzz.distance import Indel, Levenshtein

from tmnmt.formats.dates import iso_utc
from tmnmt.segments import ConfirmedPair
from tmnmt.text import match_tokens


@dataclass(frozen=True)
class Reviewed:
    """A confirmed pair, as the client told of it.

    src: the source.
    tgt: the target.
    time: when it was confirmed, in UTC by ISO 8601.
    suggested: what the client had shown for the source; None where it does not say.
    keys: how many keystrokes there were; None where the client did not count them.
    segment: the name of its segment in the document; None where the client does not say.
    person: who confirmed it; "" where that is not known."""

    src: str
    tgt: str
    time: str
    suggested: str | None = None
    keys: int | None = None
    segment: str | None = None
    person: str = ""

    @classmethod
    def build(cls, pair: ConfirmedPair, feedback: Mapping[str, Any]) -> Reviewed:
        """A pair with what the client told of it.

        pair: the pair.
        feedback: what the client told, {"suggested", "keys", "segment", "by"}."""
        time = iso_utc(pair.changed) or ""
        names = ("suggested", "keys", "segment")
        values = {name: feedback.get(name) for name in names}
        return cls(pair.src, pair.tgt, time, **values, person=feedback.get("by", ""))

    def record(self) -> dict[str, Any]:
        """With "edits", the least match tokens to be put in, taken out or changed to come from the
        suggestion to what was confirmed; "tokens" and "characters" of that; and "typed": keys, or
        where they were not counted the least characters to be typed and deleted."""
        suggested = self.suggested or ""
        confirmed = match_tokens(self.tgt)
        distance = Indel.distance(suggested, self.tgt)
        return {
            "src": self.src,
            "suggested": self.suggested,
            "tgt": self.tgt,
            "at": self.time,
            "edits": Levenshtein.distance(match_tokens(suggested), confirmed),
            "tokens": len(confirmed),
            "characters": len(self.tgt),
            "typed": distance if self.keys is None else self.keys,
            "counted": self.keys is not None,
            "segment": self.segment,
            "by": self.person,
        }
