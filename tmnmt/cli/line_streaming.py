"""The translations of several inputs in order: files at once, a pipe or a terminal as its lines
come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tmnmt.formats.text import DocumentLines
    from tmnmt.segments import Translation
    from tmnmt.translator import Translator

SMALL_BATCH = 32  # lines, a batch: with fewer, threads wait for each other longer than they work


class Computing:
    """How many threads compute: those that were asked for; else one to load and for few lines, all
    for many."""

    def __init__(self, requested: int | None) -> None:
        import torch

        self._set = torch.set_num_threads
        self._available = torch.get_num_threads()
        self._requested = requested
        self.use_for(0)

    def use_for(self, lines: int) -> None:
        self._set(self._requested or (1 if lines <= SMALL_BATCH else self._available))

    def give_back(self) -> None:
        """As many as before this was made."""
        self._set(self._available)


def translations(
    translator: Translator,
    inputs: Sequence[DocumentLines],
    explain: bool,
    computing: Computing,
    tag: str = "",
    finished: Callable[[], None] = lambda: None,
) -> Iterator[Translation]:
    """What was translated of all inputs, in order. Lines of a pipe that have come are translated
    together, before more are waited for.

    `tag` and `finished`: as in `Translator.stream`."""
    from tmnmt.formats.text import documents

    for trickles, group in groupby(inputs, lambda text: text.trickles):
        if trickles:
            for text in group:
                yield from _as_they_come(translator, text, explain, computing, tag, finished)
        else:
            lines = chain.from_iterable(map(documents, group))
            first = list(islice(lines, SMALL_BATCH + 1))
            computing.use_for(sum(map(len, first)))
            yield from translator.stream(chain(first, lines), explain, tag=tag, finished=finished)


def _as_they_come(
    translator: Translator,
    text: DocumentLines,
    explain: bool,
    computing: Computing,
    tag: str,
    finished: Callable[[], None],
) -> Iterator[Translation]:
    from tmnmt.engine.schedule import SORTED_BATCHES
    from tmnmt.formats.text import documents

    settings = translator.settings
    session = translator.session()
    for lines in text.as_they_come(settings.batch * SORTED_BATCHES):
        computing.use_for(len(lines))
        if tag or not settings.remembers:
            yield from translator.stream(documents(lines), explain, tag=tag, finished=finished)
            continue
        for line in lines:  # each needs those before it in its document
            yield session.translate(line, explain)
            finished()
            if not line.strip():
                session = translator.session()
