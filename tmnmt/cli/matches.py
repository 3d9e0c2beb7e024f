"""Matches as a line of JSON, or for people with the words that differ."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from tmnmt.segments import Match
from tmnmt.text import match_tokens

if TYPE_CHECKING:
    from rich.text import Text

ONLY_MEMORY, ONLY_QUERY = "red strike", "green"


def json_line(query: str, matches: Sequence[Match]) -> str:
    """{"query", "matches": [{"id", "src", "tgt", "score", "document"}]}; scores to 8 digits."""
    found = [
        {"id": m.segment.id, "src": m.segment.src, "tgt": m.segment.tgt, "score": round(m.score, 8),
         "document": m.segment.document}
        for m in matches
    ]  # fmt: skip
    return json.dumps({"query": query, "matches": found}, ensure_ascii=False)


def printer(to: TextIO, threshold: float) -> Callable[[str, Sequence[Match]], None]:
    """Prints a query and its matches to `to`, with the word diff in colours on a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=to, highlight=False, soft_wrap=True, markup=False)

    def show(query: str, matches: Sequence[Match]) -> None:
        console.print(Text(query, style="bold"))
        for match in matches:
            segment = match.segment
            console.print(f"  {match.score:.3f}  #{segment.id}  {segment.document}".rstrip())
            console.print(Text("    ") + (diff(query, segment.src) if console.is_terminal else Text(segment.src)))
            console.print(Text("    " + segment.tgt))
        if not matches:
            console.print(f"  no match of {threshold:g} or more")

    return show


def diff(query: str, source: str) -> Text:
    """The source as it is written, words that the query lacks struck, and the query's own words where they differ."""
    from rich.text import Text

    from tmnmt.index.fuzzy import word_edits

    source = unicodedata.normalize("NFC", source)
    words, spans = match_tokens(query), token_spans(source)
    shown, at = Text(), 0
    for tag, start, end, source_start, source_end in word_edits(words, match_tokens(source)):
        if source_end > source_start:
            first, last = spans[source_start][0], spans[source_end - 1][1]
            shown.append(source[at:first])
            shown.append(source[first:last], "" if tag == "equal" else ONLY_MEMORY)
            at = last
        if tag != "equal" and end > start:
            shown.append(" " if at else "")
            shown.append(" ".join(words[start:end]), ONLY_QUERY)
            shown.append(" " if not at else "")
    return shown.append(source[at:])


def token_spans(text: str) -> list[tuple[int, int]]:
    """Where every match token of a text in NFC stands in it: start and end, in characters."""
    spans, at = [], 0
    for token in match_tokens(text):
        start = text.index(token, at)
        at = start + len(token)
        spans.append((start, at))
    return spans
