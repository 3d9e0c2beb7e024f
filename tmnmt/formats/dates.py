"""Dates of units: ISO 8601 in UTC in a Segment, 20260131T120000Z in TMX."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_DATE = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)(?:[T "
    r"](\d\d):?(\d\d)(?::?(\d\d)(?:[.,]\d+)?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.I,
)

_LONGEST = 60  # characters; what is remembered stays small


def iso_utc(text: str) -> str | None:
    """A date as "2026-01-31T12:00:00Z"; None where it is no date. Without a time it is midnight,
    without a zone UTC; a fraction of a second is cut.

    text: a date of TMX or of ISO 8601."""
    return _iso_utc(text) if len(text) <= _LONGEST else None


@lru_cache(maxsize=4096)
def _iso_utc(text: str) -> str | None:
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    try:
        date = datetime(year, month, day, hour, minute, second, tzinfo=UTC) - _offset(match[7])
    except (ValueError, OverflowError):
        return None
    return f"{date.year:04}" + date.strftime("-%m-%dT%H:%M:%SZ")


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone in "Zz":
        return timedelta()
    digits = zone[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -offset if zone[0] == "-" else offset


def tmx_date(iso: str) -> str:
    """A date in the form of TMX: "2026-01-31T12:00:00Z" is "20260131T120000Z".

    iso: the date of a segment."""
    return iso.replace("-", "").replace(":", "")
