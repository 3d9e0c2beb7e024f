"""Where a phrase stands in a memory, for people and as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tmnmt.cli.matches import has_colour
from tmnmt.cli.streams import console as console_of
from tmnmt.index.concordance import Occurrence, Phrase
from tmnmt.index.pairs import concordance_pairs, count_copies
from tmnmt.segments import Match
from tmnmt.text import Span

if TYPE_CHECKING:
    from rich.text import Text

    from tmnmt.index.base import WritableIndex

PHRASE_STYLE = "bold green"


def show_concordance(index: WritableIndex, phrase: Phrase, limit: int, as_json: bool) -> None:
    """Prints the newest `limit` pairs that have the phrase, each with how many times it stands in
    the memory; and whether there are more."""
    pairs = concordance_pairs(index, phrase, limit + 1)
    occurrences, is_truncated = pairs[:limit], len(pairs) > limit
    times = count_copies(index, [Match(occurrence.segment, 1.0, 0) for occurrence in occurrences])
    if as_json:
        print(json_line(phrase, occurrences, times, is_truncated))
    else:
        _print(phrase, occurrences, times, is_truncated)


def json_line(
    phrase: Phrase, occurrences: Sequence[Occurrence], times: Sequence[int], is_truncated: bool
) -> str:
    """{"query", "in", "matches": [{"id", "src", "tgt", "document", "changed", "user", "places":
    [[begin, end], ...]}], "more"}; places in characters of the side looked at, "times" where a pair
    stands in several places."""
    records: list[dict[str, Any]] = []
    for (segment, places), count in zip(occurrences, times, strict=True):
        names = ("id", "src", "tgt", "document", "changed", "user")
        record = {name: getattr(segment, name) for name in names}
        records.append(record | {"places": places} | ({"times": count} if count > 1 else {}))
    line = {"query": phrase.text, "in": phrase.side, "matches": records, "more": is_truncated}
    return json.dumps(line, ensure_ascii=False)


def _print(
    phrase: Phrase, occurrences: Sequence[Occurrence], times: Sequence[int], is_truncated: bool
) -> None:
    from rich.text import Text

    console = console_of(sys.stdout)
    marks = ("", "") if has_colour(console) else ("[", "]") if console.is_terminal else None
    console.print(Text(phrase.text, style="bold"))
    for (segment, places), count in zip(occurrences, times, strict=True):
        often = f"({count:,} times)" if count > 1 else ""
        day = segment.changed.partition("T")[0]
        details = "  ".join(filter(None, (f"#{segment.id}", segment.document, day, often)))
        console.print(Text(f"  {details}"))
        for side, text in (("source", segment.src), ("target", segment.tgt)):
            is_marked = side == phrase.side and marks is not None
            line = _marked(text, places, marks) if is_marked and marks else Text(text)
            console.print(Text("    ") + line)
    if not occurrences:
        console.print(f"  not in any {phrase.side}")
    if is_truncated:
        console.print("  and more: --max-count says how many are shown")


def _marked(text: str, places: Sequence[Span], marks: tuple[str, str]) -> Text:
    """The text with the places in colour, or between marks where these are not empty."""
    from rich.text import Text

    result = Text()
    offset = 0
    for begin, end in places:
        result.append(text[offset:begin])
        result.append(f"{marks[0]}{text[begin:end]}{marks[1]}", "" if any(marks) else PHRASE_STYLE)
        offset = end
    return result.append(text[offset:])
