"""Options of the commands that choose among the pairs found."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

SELECT = Annotated[
    Literal["topk", "greedy", "walk", "contrastive"],
    typer.Option(
        help="Which pairs are taken. topk: the best. greedy: the best, then always the one that "
        "covers most words not "
        "covered yet, until none does. walk: down the ranked list, all that cover a word not "
        "covered yet. "
        "contrastive: the best, then always the most like the text and the least like those "
        "taken. All but topk choose "
        "from the 100 best."
    ),
]
SIMILARITY = Annotated[
    Literal["fuzzy", "bleu"],
    typer.Option(
        help="What ranks the pairs, and is shown as their score. bleu: sentence BLEU over the "
        "100 best by fuzzy score, "
        "not exact: a pair that is not among those is not seen. --threshold is of the fuzzy "
        "score either way."
    ),
]
ALPHA = Annotated[
    float | None,
    typer.Option(
        help="Of contrastive: how much likeness to the pairs taken counts against likeness to "
        "the text; 0.1."
    ),
]
