"""Which segments of a memory are meant: by document, origin, user, date and property."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Literal

from tmnmt.config.options import SegmentFilter
from tmnmt.errors import UsageError
from tmnmt.formats.dates import iso_utc
from tmnmt.segments import Segment

_OPERATORS = {"=": operator.eq, ">=": operator.ge, "<": operator.lt}


@dataclass(frozen=True)
class Filter:
    """Which segments of a memory are meant: those that meet all conditions. Dates are ISO 8601 in
    UTC, or a beginning of one ("2026-01"); a segment without a date is before every date.

    document: the name of the document; None takes any.
    origin: the origin; None takes any.
    user: the user; None takes any.
    since: `changed` is this date or later; None takes any.
    before: `changed` is earlier than this date; None takes any.
    property: the name of a property, and its value, which is None where any value will do; None
    takes any segment."""

    document: str | None = None
    origin: str | None = None
    user: str | None = None
    since: str | None = None
    before: str | None = None
    property: tuple[str, str | None] | None = None

    def __bool__(self) -> bool:
        """Whether any condition is given."""
        return self != Filter()

    def keeps(self, segment: Segment) -> bool:
        """Whether a segment meets all conditions.

        segment: the segment."""
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
        """A condition of SQL that holds for every row that `keeps` keeps, and its values.
        Properties are not in it."""
        conditions = self._conditions()
        clause = " AND ".join(f"{name} {sign} ?" for name, sign, _ in conditions)
        return clause or "TRUE", [value for _, _, value in conditions]

    def _conditions(self) -> list[tuple[str, Literal["=", ">=", "<"], str]]:
        conditions: list[tuple[str, Literal["=", ">=", "<"], str | None]] = [
            ("document", "=", self.document),
            ("origin", "=", self.origin),
            ("user", "=", self.user),
            ("changed", ">=", self.since),
            ("changed", "<", self.before),
        ]
        return [(name, sign, value) for name, sign, value in conditions if value is not None]


NO_FILTER = Filter()


def filter_of(options: SegmentFilter) -> Filter:
    """The filter that some options describe.

    options: the options.

    Raises UsageError for what is no date, or no text."""
    for name in ("document", "origin", "user", "property"):
        _check_text(getattr(options, name))
    name, sign, value = (options.property or "").partition("=")
    pair = (name, value if sign else None) if options.property is not None else None
    dates = _date(options.since), _date(options.before)
    return Filter(options.document, options.origin, options.user, *dates, pair)


def _check_text(text: str | None) -> None:
    """Raises UsageError for bytes that are no text in the locale's encoding, which Python passes on
    as lone surrogates."""
    try:
        (text or "").encode()
    except UnicodeEncodeError:
        raise UsageError(f"{text!r} is no UTF-8 text") from None


def _date(text: str | None) -> str | None:
    date = iso_utc(text) if text is not None else None
    if text is not None and date is None:
        raise UsageError(f"{text!r} is no date; write 2026-01-31 or 2026-01-31T12:00:00Z")
    return date
