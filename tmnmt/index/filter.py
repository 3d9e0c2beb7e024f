"""Which segments of a memory are meant: by document, origin, user, date and property."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Literal

from tmnmt.segments import Segment

_OPERATORS = {"=": operator.eq, ">=": operator.ge, "<": operator.lt}


@dataclass(frozen=True)
class Filter:
    """Every condition that is given has to hold; none: every segment is meant. Dates are ISO 8601
    in UTC, or a beginning of one ("2026-01"); a segment without a date is before every date."""

    document: str | None = None
    origin: str | None = None
    user: str | None = None
    since: str | None = None  # `changed` is this date or later
    before: str | None = None  # `changed` is earlier
    property: tuple[str, str | None] | None = None  # its name, and its value where that matters

    def __bool__(self) -> bool:
        """Whether any condition is given."""
        return self != Filter()

    def keeps(self, segment: Segment) -> bool:
        """Whether `segment` is meant."""
        return all(
            _OPERATORS[sign](getattr(segment, name), value)
            for name, sign, value in self._conditions()
        ) and (
            self.property is None
            or any(
                name == self.property[0] and self.property[1] in (None, value)
                for name, value in segment.properties
            )
        )

    def sql(self) -> tuple[str, list[str]]:
        """A condition that holds for every row that `keeps` keeps, and its values; properties are
        not in it."""
        conditions = self._conditions()
        where = " AND ".join(f"{name} {sign} ?" for name, sign, _ in conditions)
        return where or "TRUE", [value for _, _, value in conditions]

    def _conditions(self) -> list[tuple[str, Literal["=", ">=", "<"], str]]:
        conditions: list[tuple[str, Literal["=", ">=", "<"], str | None]] = [
            ("document", "=", self.document),
            ("origin", "=", self.origin),
            ("user", "=", self.user),
            ("changed", ">=", self.since),
            ("changed", "<", self.before),
        ]
        return [(name, sign, value) for name, sign, value in conditions if value is not None]


EVERYTHING = Filter()
