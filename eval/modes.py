"""The ways to read pairs, each with its coverage penalty and without, on dev segments.

python eval/modes.py --tsv jrc-acquis.en-fr-de-es.tsv.gz --columns src=3,tgt=4,doc=1
    --dev eval/splits/jrc-acquis.dev.txt --memory memories/jrc-acquis.en-fr.tmx.gz
    [--model models/law-transformer.en-fr] [--segments 120] [--output FILE.json]

Of the dev documents the segments of 5 to 40 words are taken that have a match of 0.5 or more and
below 1, evenly spread. Copy and fusion have learned their penalty: it is put to 0. The nearest
positions have none by default: it is put to 0.2. Full matches are not taken as they stand."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from sacrebleu import corpus_bleu, corpus_chrf

from tmnmt.config.options import TranslationOptions
from tmnmt.formats import parse_columns, read_memory
from tmnmt.index.opening import open_memory
from tmnmt.layers.reach import STANDARD, Reaches
from tmnmt.segments import Segment
from tmnmt.translator import Translator, restrict

PENALTY = 0.2  # of a distance, for what was copied of a position
WORDS = range(5, 41)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tsv", type=Path, required=True)
    parser.add_argument("--columns", required=True)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=Path("models/law-transformer.en-fr"))
    parser.add_argument("--segments", type=int, default=120)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    documents = set(options.dev.read_text(encoding="utf-8").split("\n"))
    columns = parse_columns(options.columns)
    read = read_memory(options.tsv, "en", "fr", columns=columns)
    dev = [s for s in read if s.document in documents and len(s.src.split()) in WORDS]
    some = _with_matches(dev, options.memory, options.segments)
    rows = [
        {"mode": mode, "penalty": penalty, **_scores(options, some, mode, penalty)}
        for mode, penalty in _ways()
    ]
    for row in rows:
        print(*row.values(), sep="\t", flush=True)
    if options.output is not None:
        figures = {"segments": len(some), "rows": rows}
        options.output.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _ways() -> Iterator[tuple[str, bool]]:
    yield "off", False
    modes: tuple[str, ...] = ("copy", "fusion", "both", "nearest")
    for mode in modes:
        yield from ((mode, False), (mode, True))


def _with_matches(dev: list[Segment], memory: Path, count: int) -> list[Segment]:
    with open_memory(memory, "en", "fr") as index:
        matches = index.search([segment.src for segment in dev], k=1, threshold=0.5)
    similar = [
        segment
        for segment, own in zip(dev, matches, strict=True)
        if own and own[0].score < 1 and segment.src != segment.tgt
    ]
    return similar[:: max(1, len(similar) // count)][:count]


def _scores(
    options: argparse.Namespace, segments: list[Segment], mode: str, penalty: bool
) -> dict[str, float]:
    translator = Translator.load(
        options.model, [options.memory], TranslationOptions(mode=mode, verbatim=0, cache=0)
    )
    layers = translator.layers
    if mode == "nearest" and penalty:
        translator = restrict(
            translator,
            translator.pipeline.lookup.retriever.indexes,
            (),
            translator.settings,
            reaches=_penal(),
        )
    elif not penalty and layers is not None and layers.tm is not None:
        weight = layers.tm.coverage.weight
        if weight is not None:
            weight.data.zero_()
    hypotheses = [t.tgt for t in translator.translate([s.src for s in segments])]
    references = [[s.tgt for s in segments]]
    return {
        "BLEU": round(corpus_bleu(hypotheses, references).score, 1),
        "chrF2++": round(corpus_chrf(hypotheses, references, word_order=2).score, 1),
    }


def _penal() -> Reaches:
    return Reaches(
        *(
            replace(reach, penalty=PENALTY)
            for reach in (STANDARD.pairs, STANDARD.session, STANDARD.fragments)
        )
    )


if __name__ == "__main__":
    main()
