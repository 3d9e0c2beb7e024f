"""Matches as a line of JSON, or for people with the words that differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, TextIO

from tmnmt.cli.streams import console as console_of
from tmnmt.quantities import quantity
from tmnmt.records import match_record
from tmnmt.segments import Match, Worth
from tmnmt.text import match_tokens, token_spans

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from tmnmt.index.select import Coverage

ONLY_MEMORY, ONLY_QUERY = "red strike", "green"
MARKS = {
    "": ("", ""),
    ONLY_MEMORY: ("[-", "-]"),
    ONLY_QUERY: ("{+", "+}"),
}  # where there is no colour
COVERED = "green"
REASONS = {
    "numbers": "other numbers",
    "case": "another case",
    "punctuation": "other punctuation",
    "codes": "other codes",
    "placeholders": "other placeholders",
    "domain": "another domain",
    "machine": "made by a machine",
    "alignment": "made by alignment",
    "old": "old",
    "memory": "of this memory",
    "weight": "the memory's weight",
    "previous": "the same segment before it",
    "next": "the same segment after it",
    "id": "the same id",
}  # what a worth goes by, in words


def json_line(
    query: str, matches: Sequence[Match], times: Sequence[int], explain: bool = False
) -> str:
    """{"query", "matches": [match_record]}, with "times" where a pair stands in several places
    (`times`, for each).

    explain: also "tokens" of the query, and for every match the positions of those that it covers
    ("covered") and that none before it does ("new")."""
    records = [
        match_record(m) | ({"times": n} if n > 1 else {})
        for m, n in zip(matches, times, strict=True)
    ]
    line: dict[str, Any] = {"query": query}
    if explain:
        from tmnmt.index.select import coverage

        line["tokens"] = match_tokens(query)
        records = [
            record | part._asdict()
            for record, part in zip(records, coverage(query, matches), strict=True)
        ]
    return json.dumps(line | {"matches": records}, ensure_ascii=False)


def printer(
    stream: TextIO, threshold: float, explain: bool = False
) -> Callable[[str, Sequence[Match], Sequence[int]], None]:
    """Prints a query, its matches and how many times each stands in the index to `stream`, on a
    terminal with the word diff and what its colours (or marks) mean. explain: with the tokens that
    every match covers."""
    from rich.text import Text

    from tmnmt.index.select import coverage

    console = console_of(stream)
    colour = has_colour(console)
    if console.is_terminal:
        console.print(legend(colour))

    def show(query: str, matches: Sequence[Match], times: Sequence[int]) -> None:
        console.print(Text(query, style="bold"))
        for match, n, part in zip(matches, times, coverage(query, matches), strict=True):
            segment = match.segment
            often = f"  ({n:,} times)" if n > 1 else ""
            console.print(
                f"  {match.score:.3f}{per_cent(match)}  #{segment.id}  {segment.document}".rstrip()
                + often
            )
            console.print(
                Text("    ")
                + (diff(query, segment.src, colour) if console.is_terminal else Text(segment.src))
            )
            console.print(Text("    " + segment.tgt))
            if match.tgt != segment.tgt:
                console.print(Text("    → " + match.tgt))
            if explain:
                if match.worth is not None:
                    console.print(Text(f"      {why(match.worth)}"))
                for line in coverage_lines(match_tokens(query), part, colour):
                    console.print(Text("      ") + line)
        if not matches:
            console.print(
                f"  no match of {threshold:g} or more; --concordance PHRASE shows where words stand"
            )

    return show


def per_cent(match: Match) -> str:
    """What a match is worth, to stand behind its score; "" where nobody asked."""
    return "" if match.worth is None else f"  {match.worth.value} %"


def why(worth: Worth) -> str:
    """The reasons of a worth in words."""
    if not worth.reasons:
        return f"worth {worth.value}: {'the same text' if worth.value == 100 else 'as the score'}"
    sure = "put in" if worth.tgt else "and the translation is right for it"
    reasons = [
        f"{REASONS[reason]} {points:+}" if points else f"{REASONS[reason]}, {sure}"
        for reason, points in worth.reasons
    ]
    return f"worth {worth.value}: {'; '.join(reasons)}"


def has_colour(console: Console) -> bool:
    """Whether what is printed is coloured: on a terminal that can, unless NO_COLOR is set."""
    return console.color_system is not None and not console.no_color


def legend(colour: bool) -> Text:
    """What the diff's colours or marks mean."""
    from rich.text import Text

    return Text("  ").join(
        [
            _marked("only in the memory", ONLY_MEMORY, colour),
            _marked("only in the text searched for", ONLY_QUERY, colour),
        ]
    )


def _marked(words: str, style: str, colour: bool) -> Text:
    from rich.text import Text

    opening, closing = ("", "") if colour else MARKS[style]
    return Text(opening + words + closing, style if colour else "")


def coverage_lines(tokens: Sequence[str], part: Coverage, colour: bool) -> Iterator[Text]:
    """The query's tokens with those that a pair covers in colour or in brackets; and those that it
    covers first."""
    from rich.text import Text

    covered, result = set(part.covered), Text()
    for inside, run in groupby(range(len(tokens)), key=lambda i: i in covered):
        words = " ".join(tokens[i] for i in run)
        result.append(" " if result else "")
        result.append(
            words if colour or not inside else f"[{words}]", COVERED if inside and colour else ""
        )
    yield Text(f"covers {len(covered)} of {quantity(len(tokens), 'token')}: ") + result
    new = " ".join(tokens[i] for i in part.new)
    yield (
        Text(f"new {len(part.new)}: ") + Text(new, COVERED if colour else "")
        if new
        else Text("nothing new")
    )


def diff(query: str, source: str, colour: bool = True) -> Text:
    """The source as it is written, words that the query lacks struck, and the query's own words
    where they differ; without colour all of these are in marks."""
    from rich.text import Text

    from tmnmt.index.fuzzy import word_edits

    words, spans = match_tokens(query), token_spans(source)
    result = Text()
    offset = 0
    for tag, start, end, source_start, source_end in word_edits(words, match_tokens(source)):
        if source_end > source_start:
            first, last = spans[source_start][0], spans[source_end - 1][1]
            result.append(source[offset:first])
            result.append(
                _marked(source[first:last], "" if tag == "equal" else ONLY_MEMORY, colour)
            )
            offset = last
        if tag != "equal" and end > start:
            result.append(" " if offset else "")
            result.append(_marked(" ".join(words[start:end]), ONLY_QUERY, colour))
            result.append(" " if not offset else "")
    return result.append(source[offset:])
