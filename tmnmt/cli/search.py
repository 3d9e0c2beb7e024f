"""`tmnmt search`: the most similar segments of an index."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader
from itertools import islice
from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from tmnmt.segments import Match

QUERIES_A_BATCH = 256


def search(
    index: Annotated[str, typer.Option("--index", help="Folder or Elasticsearch address of the index.")],
    text: Annotated[str | None, typer.Argument(help="What to look for; none: every line of stdin.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="At most so many matches.")] = 5,
    threshold: Annotated[float, typer.Option(min=0, max=1, help="Smallest fuzzy score of a match.")] = 0.5,
    json: Annotated[bool, typer.Option("--json", help="One line of JSON a query.")] = False,
) -> None:
    """Find the segments most similar to a text, exactly. On a terminal the source shows the words that only the memory
    has (struck, red) and those that only the query has (green)."""
    from tmnmt.cli.matches import json_line, printer
    from tmnmt.index.cached import open_index

    def as_json(query: str, matches: list[Match]) -> None:
        print(json_line(query, matches), flush=interactive)

    interactive = text is None and sys.stdin.isatty()
    show: Callable[[str, list[Match]], None] = as_json if json else printer(sys.stdout, threshold)
    with open_index(index) as opened:
        for queries in _batches(_queries(text), 1 if interactive else QUERIES_A_BATCH):
            for query, matches in zip(queries, opened.search(queries, k, threshold), strict=True):
                show(query, matches)


def _queries(text: str | None) -> Iterable[str]:
    if text is not None:
        return [text]
    from tmnmt.formats.text import read_document_lines

    return read_document_lines(cast(BufferedReader, sys.stdin.buffer))


def _batches(queries: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = iter(queries)
    while some := list(islice(rest, size)):
        yield some
