"""The analyses of Fu et al. 2019 for models side by side: parameters and speed (table 3), BLEU and
ratio of lengths by length of the source (figure 3), and example translations (table 4).

    python eval/reference_analysis.py MODEL MODEL ... --segments FILE [--show 5] [--beam 5]

FILE is a memory file whose targets are the references. The first MODEL is what the others are
compared with. Every model is read without memory and session cache; speed is that of one process
with `--threads` threads, after some segments that do not count. BLEU is sacrebleu's, of the
segments of one group of lengths; a group of few segments says little, so their number stands beside
it. A model that reads the segments before reads those of FILE in the same document; with --most
these are the ones that were chosen.

Of every model with a network one more table says what it reads (`tmnmt.papers.reading`): the loss
in nats a subword with the network, with nothing fed, with its mean and with a shuffle of what it
feeds; the share of what is fed that varies; how many anchors, or words, its weights are spread
over; and by how much it is better than its mean and its shuffle, with 95 % intervals. It reads
where both leave 0 out. With --only-reading that table alone is made."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import sacrebleu

from tmnmt import Translator
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import TmnmtError
from tmnmt.formats import read_memories
from tmnmt.models.folder import load_model, parameters
from tmnmt.models.injected import Injected
from tmnmt.papers.network_adaptation import reading_of_model
from tmnmt.segments import Segment

BOUNDS = (10, 20, 30, 40, 50)  # words of the source, as in figure 3; the last group has more
WARMING = 8  # segments before the clock starts


class Group(NamedTuple):
    """The segments of one group of lengths."""

    name: str
    segments: int
    bleu: float
    ratio: float  # words of the translations by words of the references


class Run(NamedTuple):
    """What a model made of the segments."""

    model: Path
    parameters: int
    seconds: float
    hypotheses: list[str]


def by_length(
    sources: Sequence[str], references: Sequence[str], hypotheses: Sequence[str]
) -> Iterator[Group]:
    """The groups that have segments, shortest first, and all of them at the end."""
    lengths = [len(source.split()) for source in sources]
    ends = [*BOUNDS, max([*lengths, BOUNDS[-1] + 1])]
    starts = [0, *BOUNDS]
    names = [*(f"{a + 1}-{b}" for a, b in zip(starts, BOUNDS, strict=False)), f"> {BOUNDS[-1]}"]
    groups = list(zip(names, starts, ends, strict=True))
    for name, start, end in [*groups, ("all", -1, ends[-1])]:
        chosen = [i for i, length in enumerate(lengths) if start < length <= end]
        if not chosen:
            continue
        said, right = ([texts[i] for i in chosen] for texts in (hypotheses, references))
        words = [sum(len(text.split()) for text in texts) for texts in (said, right)]
        bleu = sacrebleu.corpus_bleu(said, [right]).score
        yield Group(name, len(chosen), bleu, words[0] / max(words[1], 1))


def translated(model: Path, segments: Sequence[Segment], beam: int, threads: int) -> Run:
    """A model's translations, and the seconds that they took."""
    documents = [
        [segment.src for segment in document]
        for _, document in groupby(segments, key=lambda segment: segment.document)
    ]
    translator = Translator.load(
        model, options=TranslationOptions(mode="off", beam=beam, cache=0, threads=threads)
    )
    translator.translate([segment.src for segment in segments[:WARMING]])
    start = time.perf_counter()
    hypotheses = [each.tgt for each in translator.stream(documents)]
    seconds = time.perf_counter() - start
    return Run(model, parameters(load_model(model).backbone), seconds, hypotheses)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--segments", type=Path, required=True)
    parser.add_argument("--most", type=int, default=10**9, help="segments, evenly spaced")
    parser.add_argument("--show", type=int, default=0, help="examples that differ")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only-reading", action="store_true", help="translate nothing")
    options = parser.parse_args()
    config = load_model(options.models[0]).config
    whole = list(read_memories([options.segments], config["src_lang"], config["tgt_lang"]))
    print_reading(options.models, whole, options.most)
    if options.only_reading:
        return
    segments = whole[:: max(len(whole) // options.most, 1)][: options.most]
    sources, references = [s.src for s in segments], [s.tgt for s in segments]
    runs = [translated(model, segments, options.beam, options.threads) for model in options.models]
    print("| model | parameters | added | words/s |\n|---|---|---|---|")
    for run in runs:
        added = 100 * (run.parameters / runs[0].parameters - 1)
        words = sum(len(text.split()) for text in run.hypotheses) / run.seconds
        print(f"| {run.model.name} | {run.parameters:,} | {added:.1f} % | {words:.1f} |")
    print("\n| model | source words | segments | BLEU | length ratio |\n|---|---|---|---|---|")
    for run in runs:
        for group in by_length(sources, references, run.hypotheses):
            print(f"| {run.model.name} | {' | '.join(told(group))} |")
    differing = [
        i
        for i, said in enumerate(zip(*(run.hypotheses for run in runs), strict=True))
        if len(set(said)) > 1
    ]
    for i in differing[: options.show]:
        print(f"\nsource     {sources[i]}\nreference  {references[i]}")
        for run in runs:
            print(f"{run.model.name:<10} {run.hypotheses[i]}")


def print_reading(models: Sequence[Path], segments: Sequence[Segment], most: int) -> None:
    """The table of what the networks of models read, where any has one."""
    loaded = [load_model(path) for path in models]
    having = [model for model in loaded if isinstance(model.backbone, Injected)]
    if not having:
        return
    documents = [
        list(document) for _, document in groupby(segments, key=lambda segment: segment.document)
    ]
    print(
        "| model | loss | off | mean | shuffled | varies | anchors | over its mean | over its "
        "shuffle | reads |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    for model in having:
        reading = reading_of_model(model, documents, most)
        losses = (reading.loss, reading.off, reading.mean, reading.shuffled)
        anchors = "" if reading.entropy is None else f"{math.exp(reading.entropy):.1f}"
        gains = [
            f"{gain.value:.4f} ({gain.low:.4f} to {gain.high:.4f})"
            for gain in (reading.over_mean, reading.over_shuffle)
        ]
        cells = [model.folder.name, *(f"{loss:.4f}" for loss in losses)]
        cells += [f"{100 * reading.varying:.1f} %", anchors, *gains]
        print(f"| {' | '.join(cells)} | {'yes' if reading.reads else 'no'} |")
    print()


def told(group: Group) -> tuple[str, str, str, str]:
    """A group as cells of the table."""
    return group.name, f"{group.segments:,}", f"{group.bleu:.2f}", f"{group.ratio:.3f}"


if __name__ == "__main__":
    try:
        main()
    except (TmnmtError, OSError) as error:
        raise SystemExit(f"reference_analysis: {error}") from error
