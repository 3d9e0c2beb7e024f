"""`tmnmt search`: the most similar segments of an index."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from tmnmt.cli.options import readable
from tmnmt.config.bounds import Help, at_least, whole
from tmnmt.config.option import Options, changed
from tmnmt.config.options import Penalties, Search, SegmentFilter, Selection, Threshold
from tmnmt.errors import UsageError

if TYPE_CHECKING:
    from tmnmt.index.base import Index
    from tmnmt.segments import Match

CONCORDANCE = "Concordance"
QUERIES_A_BATCH = 256
BLOCK = 1 << 16  # bytes: what a pipe holds


def search(
    index: Annotated[
        str, typer.Option("--index", help="Folder of the index, or its address on a server.")
    ],
    text: Annotated[
        str | None, typer.Argument(help="What to look for; none: every line of stdin.")
    ] = None,
    k: Annotated[int, at_least(1), Help("At most so many pairs.", everyday=True)] = 5,
    threshold: Threshold = Search.threshold,
    concordance: Annotated[
        str | None,
        typer.Option(
            metavar="PHRASE",
            callback=readable,
            help="Show where these words stand, newest first; a * behind a word: any ending.",
            rich_help_panel=CONCORDANCE,
        ),
    ] = None,
    side: Annotated[
        Literal["source", "target"],
        typer.Option("--in", help="The side it is looked for in.", rich_help_panel=CONCORDANCE),
    ] = "source",
    within: Annotated[
        int | None,
        whole(1, 30),
        Help(
            "In any order, the first and the last at most so many words apart; punctuation marks "
            "count as words.",
            title=CONCORDANCE,
        ),
    ] = None,
    match_case: Annotated[
        bool,
        typer.Option("--match-case", help="Case counts.", rich_help_panel=CONCORDANCE),
    ] = False,
    max_count: Annotated[int, at_least(1), Help("At most so many pairs.", title=CONCORDANCE)] = 20,
    segment_filter: SegmentFilter = SegmentFilter(),
    selection: Selection = Selection(),
    worth: Penalties = Penalties(),
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Show which tokens of the query every pair covers, and which of them first; and "
            "why it is worth what it is.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One line of JSON a query.")] = False,
) -> None:
    """Find the pairs most similar to a text, exactly; a pair that stands in several places is shown
    once, with their number. On a terminal the source shows the words that only the memory has
    (struck, red) and those that only the query has (green).

    Each is shown with its fuzzy score and with what it is worth in per cent: 100 for the same text,
    also where only numbers differ and it is sure how to put in the right ones.

    With --concordance: the pairs that have a phrase, wherever it stands in them."""
    from tmnmt.cli.matches import json_line, printer
    from tmnmt.index.back_ends import open_index, prepare_search
    from tmnmt.index.filter import filter_of
    from tmnmt.index.pairs import count_copies

    of_phrase = {"--in": side != "source", "--within": within is not None}
    of_phrase |= {"--match-case": match_case, "--max-count": max_count != 20}
    if concordance is not None:
        from tmnmt.cli.concordance import show_concordance
        from tmnmt.index.concordance import Phrase

        _check_concordance(text, explain, (selection, worth))
        phrase = Phrase(concordance, side, within, match_case)
        with open_index(index) as memory:
            show_concordance(
                memory.restricted_to(filter_of(segment_filter)), phrase, max_count, json
            )
        return
    if flag := next((option for option, is_given in of_phrase.items() if is_given), None):
        raise UsageError(f"{flag} is of --concordance")

    def as_json(query: str, matches: Sequence[Match], times: Sequence[int]) -> None:
        print(json_line(query, matches, times, explain))

    prepare_search([index])
    show = as_json if json else printer(sys.stdout, threshold, explain)
    with open_index(index) as whole_index:
        memory = whole_index.restricted_to(filter_of(segment_filter))

        def answer(queries: Sequence[str]) -> None:
            matches_of = _matches(memory, queries, k, threshold, selection, worth)
            times = iter(
                count_copies(memory, [match for matches in matches_of for match in matches])
            )
            for query, matches in zip(queries, matches_of, strict=True):
                show(query, matches, [next(times) for _ in matches])
            sys.stdout.flush()

        if text is not None:
            answer([text])
        else:
            answer_lines(cast(io.BufferedReader, sys.stdin.buffer), answer)


def _check_concordance(text: str | None, explain: bool, groups: Sequence[Options]) -> None:
    """Raises UsageError for an option of a search for what is similar."""
    if text is not None:
        raise UsageError(f"--concordance and {text!r} both say what to look for; leave out one")
    flags = ["--explain"] * explain + [option for group in groups for option in changed(group)]
    if flags:
        raise UsageError(f"{flags[0]} is of a search for similar pairs, not of --concordance")


def _matches(
    index: Index,
    queries: Sequence[str],
    k: int,
    threshold: float,
    selection: Selection,
    penalties: Penalties,
) -> list[list[Match]]:
    """The pairs worth most; where they are selected in another way, those, in their order."""
    from tmnmt.index.match_value import Query, valued
    from tmnmt.index.pairs import search_by_worth, search_pairs
    from tmnmt.index.select import candidates, selected

    texts = list(map(Query, queries))
    if selection == Selection():
        return search_by_worth(index, texts, k, threshold, penalties)
    matches_of = search_pairs(index, queries, candidates(selection, k), threshold)
    selections = [
        selected(selection, query, matches, k)
        for query, matches in zip(queries, matches_of, strict=True)
    ]
    pairs = zip(texts, selections, strict=True)
    return [valued(query, matches, None, penalties) for query, matches in pairs]


def answer_lines(stream: io.BufferedReader, answer: Callable[[Sequence[str]], None]) -> None:
    """Answers the lines of a stream in batches. All that has come is answered before more is waited
    for."""
    from tmnmt.formats.text import read_document_lines

    waiting: list[str] = []

    def answer_waiting() -> None:
        queries = waiting.copy()
        waiting.clear()
        if queries:
            answer(queries)

    blocks: io.BufferedReader = io.BufferedReader(_Blocks(stream, answer_waiting), BLOCK)
    for line in read_document_lines(blocks, "standard input"):
        waiting.append(line)
        if len(waiting) == QUERIES_A_BATCH:
            answer_waiting()
    answer_waiting()


class _Blocks(io.RawIOBase):
    """A stream in blocks of what there is of it at a time; `before_block` is called before the next
    one is read, which may have to be waited for. By then every line of the last block has been
    given to the reader."""

    def __init__(self, stream: io.BufferedReader, before_block: Callable[[], None]) -> None:
        self._stream, self._before_block = stream, before_block
        self._block = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._block:
            self._before_block()
            self._block = memoryview(self._stream.read1(BLOCK))
        size = min(len(buffer), len(self._block))
        buffer[:size] = self._block[:size]
        self._block = self._block[size:]
        return size
