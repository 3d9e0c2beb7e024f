"""Codes in the places that a pair lends, against those by links, the reference forced.

python eval/lent_places.py --src dev.en --tgt dev.fr [--model models/law.en-fr]

Files and measures are those of place_codes.py. Every line has all other lines as memory, with their
codes. Told are the lines with codes among words that have a match of 0.5 or more, how many of their
best matches lend their places, and where the codes of all these lines stand."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import torch
from place_codes import Tally, among_words, lines

from tmnmt.codes.place import place
from tmnmt.codes.record import Text
from tmnmt.codes.transfer import borrowed
from tmnmt.engine.links import Linker, same_words, with_same_words
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.text import match_tokens, token_spans
from tmnmt.translator import Translator

LEAST = 0.5  # fuzzy score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--tgt", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=Path("models/law.en-fr"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    both, _ = lines(options.src, options.tgt)
    tokens = [match_tokens(source.plain) for source, _ in both]
    translator = Translator.load(options.model)
    linker = Linker(translator.pipeline.backbone, translator.vocab)
    tallies, matched, lends = {"links": Tally(), "lent": Tally()}, 0, 0
    for at, (source, reference) in enumerate(both):
        best = _best(at, tokens) if any(among_words(source)) else None
        if best is None:
            continue
        matched += 1
        links = linker.links(source.plain, reference.plain)
        links = with_same_words(links, source.plain, reference.plain)
        words, into = token_spans(source.plain), token_spans(reference.plain)
        placed = place(source, reference.plain, words, into, links)
        lent = _lent(source, both[best], reference.plain)
        lends += lent is not None
        tallies["links"].add(source, reference, placed)
        tallies["lent"].add(source, reference, lent or placed)
    told = {name: tally.summary()["among words"] for name, tally in tallies.items()}
    print(json.dumps({"matched": matched, "lend": lends} | told, indent=1))


def _best(at: int, tokens: Sequence[list[str]]) -> int | None:
    """The line that is most like this one, but not the same."""
    scores = {
        other: fuzzy_score(tokens[at], theirs)
        for other, theirs in enumerate(tokens)
        if 2 * min(len(theirs), len(tokens[at])) >= max(len(theirs), len(tokens[at]))
        and theirs != tokens[at]
    }
    best = max(scores, key=lambda other: scores[other], default=None)
    return best if best is not None and scores[best] >= LEAST else None


def _lent(source: Text, pair: tuple[Text, Text], target: str) -> Text | None:
    theirs = borrowed(source, *pair)
    if theirs is None or fuzzy_score(match_tokens(target), match_tokens(pair[1].plain)) < LEAST:
        return None
    links = same_words(pair[1].plain, target).T
    return place(theirs, target, token_spans(pair[1].plain), token_spans(target), links)


if __name__ == "__main__":
    main()
