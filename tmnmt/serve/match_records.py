"""Matches as the server tells them: with the memory that each was found in, and who changed it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tmnmt.formats.dates import iso_utc
from tmnmt.records import match_record, translation_record
from tmnmt.segments import Match, Translation


def served_match(match: Match, names: Mapping[str, str]) -> dict[str, Any]:
    """The record of a match (`tmnmt.records.match_record`), with "memory", the name of the memory
    that it was found in, "user", who made or changed the segment last, and "changed", when that
    was, in UTC by ISO 8601. Each is "" where it is not known; of what was confirmed in a session
    and is in no memory, all are.

    match: the match.
    names: the names of memories by their places (`Memories.names`)."""
    segment = match.segment
    return match_record(match) | {
        "memory": names.get(match.memory, ""),
        "user": segment.user,
        "changed": iso_utc(segment.changed) or "",
    }


def served_translation(translation: Translation, names: Mapping[str, str]) -> dict[str, Any]:
    """The record of a translation (`tmnmt.records.translation_record`), whose matches are those of
    `served_match`.

    translation: the translation.
    names: the names of memories by their places (`Memories.names`)."""
    matches = [served_match(match, names) for match in translation.matches]
    return translation_record(translation) | {"matches": matches}
