"""`tmnmt shortlist`: the words that every source word may become, for a model with a large
vocabulary."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from tmnmt.cli.options import MODEL
from tmnmt.config.bounds import MOST_WORDS_EACH

PAIRS = 30_000  # at least that are learned from, evenly spaced, where there are so many


def shortlist(
    model: MODEL,
    memory: Annotated[
        str,
        typer.Option("--memory", help="Built index, its address on a server, or memory file."),
    ],
    each: Annotated[
        int,
        typer.Option("--each", min=1, max=MOST_WORDS_EACH, help="Target words of a source word."),
    ] = 50,
    frequent: Annotated[
        int, typer.Option(min=10, max=100_000, help="Frequent words that are always compared.")
    ] = 500,
) -> None:
    """Learn which target words every source word may become, from the pairs of a memory, and put
    the list into the model folder.

    `tmnmt translate --shortlist` then compares these words alone, which pays for a model with some
    ten thousand subwords or more. Pairs of general text are best, and some ten thousand of them.
    Words of the memory's matches are compared in any case. Prints how many words it has."""
    from tmnmt.index.opening import open_memory
    from tmnmt.models.folder import load_model
    from tmnmt.progress import Progress
    from tmnmt.training.shortlist import learn

    loaded = load_model(model)
    languages = loaded.config["src_lang"], loaded.config["tgt_lang"]
    with Progress("indexing", "segments", lazy=True) as progress:
        index = open_memory(memory, *languages, progress.advance)
    with index:
        sample = islice(index.segments(), 0, None, max(1, len(index) // PAIRS))
        result = learn(sample, loaded.vocab, each, frequent)
    result.save(model)
    listed = result.of_source > 0
    print(
        f"{int(listed.any(1).sum()):,} source words have {int(listed.sum()):,} target words; "
        f"{len(result.always):,} are of all"
    )
