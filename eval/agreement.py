"""How often the translation that is taken of an exact match is right, by how far the memory agrees.

    python memories/make.py DATA --whole-law FILE.tmx.gz
    python eval/agreement.py FILE.tmx.gz [--documents N] [--seed S] [--output FILE.json]

Of the documents of a memory some are kept out, by the seed; the rest is the memory of these. Each
source of theirs that the memory holds comes once. What is taken is what `tmnmt.engine.full_match`
takes; it is right where TER is 0.1 or less. One half of the documents fits the regression that
`tmnmt.explain.confidence` has as AGREEMENT. On the other half it is measured how right that one
is."""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from tmnmt.engine.full_match import worth_most
from tmnmt.eval.measures.ter import edits
from tmnmt.explain.confidence import agreement_signs, of_agreement
from tmnmt.formats import read_memory
from tmnmt.index.match_value import FULL
from tmnmt.segments import Agreement, Match, Segment, Worth
from tmnmt.text import normalise

RIGHT = 0.1  # TER, at most
BANDS = (0.0, 0.5, 0.7, 0.8, 0.9, 1.0)  # of the confidence
Outcome = tuple[Agreement, bool]  # of what is taken; whether it is right


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("memory", type=Path)
    parser.add_argument("--documents", type=int, default=400, help="kept out")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    segments = list(read_memory(options.memory, "en", "fr"))
    names = sorted({segment.document for segment in segments})
    random.Random(options.seed).shuffle(names)
    kept_out = names[: options.documents]
    memory = by_source(segments, frozenset(kept_out))
    halves = [frozenset(kept_out[half::2]) for half in range(2)]
    fitting, testing = (outcomes(segments, memory, half) for half in halves)
    weights = fit(fitting)
    told = json.dumps({"fitted": weights, "measured": measured(testing)}, indent=1)
    print(told)
    if options.output:
        options.output.write_text(told + "\n", encoding="utf-8")


def by_source(segments: Sequence[Segment], kept_out: frozenset[str]) -> dict[str, list[Match]]:
    """The exact matches of every source, without those of the documents that are kept out."""
    memory = defaultdict[str, list[Match]](list)
    for number, segment in enumerate(segments, 1):
        if segment.document not in kept_out:
            match = Match(replace(segment, id=number), 1.0, 0, Worth(FULL))
            memory[normalise(segment.src)].append(match)
    return memory


def outcomes(
    segments: Sequence[Segment], memory: dict[str, list[Match]], documents: frozenset[str]
) -> list[Outcome]:
    found = dict[str, Outcome]()
    for segment in segments:
        source = normalise(segment.src)
        if segment.document not in documents or source in found:
            continue
        match = worth_most(memory.get(source, []), FULL)
        if match is not None and match.agreement is not None:
            found[source] = match.agreement, is_right(match.tgt, segment.tgt)
    return [*found.values()]


def is_right(written: str, reference: str) -> bool:
    words = reference.split()
    return edits(written.split(), words) <= RIGHT * len(words)


def fit(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Logistic regression by Newton's method."""
    signs = [agreement_signs(agreement) for agreement, _ in outcomes]
    names = [*signs[0]]
    x = np.array([[1.0, *(one[name] for name in names)] for one in signs])
    y = np.array([right for _, right in outcomes], float)
    weights = np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ weights))
        weights -= np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x, x.T @ (p - y))
    return {
        name: round(float(weight), 2)
        for name, weight in zip(["bias", *names], weights, strict=True)
    }


def measured(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    """How many are right, by what `of_agreement` says, and of those that are contradicted."""
    every = [(of_agreement(agreement), agreement, right) for agreement, right in outcomes]
    groups = {
        f"{least} to {most}": [one for one in every if least <= one[0] < most]
        for least, most in pairwise(BANDS)
    }
    groups["contradicted"] = [one for one in every if one[1].rivals]
    return [
        {
            "confidence": name,
            "sources": len(group),
            "mean confidence": round(float(np.mean([one[0] for one in group])), 3),
            "right": round(float(np.mean([one[2] for one in group])), 3),
        }
        for name, group in groups.items()
        if group
    ]


if __name__ == "__main__":
    main()
