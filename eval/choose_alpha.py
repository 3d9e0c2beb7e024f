"""Which `--alpha` of `--select contrastive` translates the dev documents best, beside the other
selections.

    python eval/choose_alpha.py DATA/canadian-law/acts.tsv.gz DATA/canadian-law/regs.tsv.gz \\
        --columns doc=1,idx=2,src=5,tgt=6 --documents eval/splits/law.dev.txt --output FOLDER

DATA holds the corpus that the dev documents are part of; the memory that ships has none of them.
Every selection translates the same segments, the first `--segments` of those that have more matches
than can be taken: for the others there is nothing to choose. FOLDER keeps the translations, so that
a run that was stopped goes on. """

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from tmnmt.config.options import Selection
from tmnmt.engine.loading import load_layers
from tmnmt.engine.settings import Settings
from tmnmt.eval.measures.scores import score
from tmnmt.formats import parse_columns, read_memories
from tmnmt.index import Index
from tmnmt.index.opening import open_memory
from tmnmt.index.pairs import search_pairs
from tmnmt.models.folder import load_model
from tmnmt.progress import Progress
from tmnmt.segments import Segment
from tmnmt.translator import Translator

ROOT = Path(__file__).resolve().parent.parent
GROUP = 64  # segments between two notes of what is done


def main() -> None:
    options = arguments()
    model = load_model(options.model)
    parameters = load_layers(model, "cpu")
    with open_memory(options.memory, "en", "fr") as index:
        dev = list(islice(choosable(index, dev_segments(options), options), options.segments))
        rows = []
        for selection in selections(options):
            settings = Settings(
                mode="copy",
                verbatim=0,
                top_k=options.top_k,
                threshold=options.threshold,
                beam=options.beam,
                **asdict(selection),
            )
            name = hashlib.sha256(
                repr((model.hash, settings, [s.src for s in dev])).encode()
            ).hexdigest()[:12]
            translator = Translator(model, parameters, [index], settings)
            rows.append(
                (
                    selection,
                    score(
                        translated(translator, dev, options.output / f"{name}.json"), targets(dev)
                    ),
                )
            )
    print(f"{len(dev):,} segments; model {model.hash}; {rows[0][1].bleu_signature}\n")
    print("| select | similarity | alpha | BLEU | chrF |\n|---|---|---|---|---|")
    for selection, found in rows:
        print(
            f"| {' | '.join(map(str, asdict(selection).values()))} | {found.bleu:.2f} | "
            f"{found.chrf:.2f} |"
        )
    best = max((row for row in rows if row[0].select == "contrastive"), key=lambda row: row[1].bleu)
    print(f"\nbest alpha: {best[0].alpha}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("corpus", nargs="+", type=Path)
    parser.add_argument("--columns", help="of a corpus in TSV without a header")
    parser.add_argument("--documents", type=Path, required=True, help="of dev, one a line")
    parser.add_argument("--memory", type=Path, default=ROOT / "memories/canadian-law.en-fr.tmx.gz")
    parser.add_argument("--model", type=Path, default=ROOT / "models/law.en-fr")
    parser.add_argument(
        "--alphas", type=float, nargs="+", default=[0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0]
    )
    parser.add_argument("--similarity", choices=["fuzzy", "bleu"], default="fuzzy")
    parser.add_argument("--segments", type=int, default=500)
    parser.add_argument("--top-k", type=int, default=4)
    parser.add_argument("--threshold", type=float, default=0.5)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--output", type=Path, required=True)
    return parser.parse_args()


def dev_segments(options: argparse.Namespace) -> Iterator[Segment]:
    documents = set(options.documents.read_text(encoding="utf-8").split("\n")) - {""}
    columns = parse_columns(options.columns) if options.columns else None
    reader = read_memories(options.corpus, "en", "fr", columns=columns)
    return (segment for segment in reader if segment.document in documents)


def choosable(
    index: Index, segments: Iterator[Segment], options: argparse.Namespace
) -> Iterator[Segment]:
    """Those that have more matches than are taken."""
    while some := list(islice(segments, GROUP)):
        found = search_pairs(
            index, [segment.src for segment in some], options.top_k + 1, options.threshold
        )
        yield from (s for s, pairs in zip(some, found, strict=True) if len(pairs) > options.top_k)


def selections(options: argparse.Namespace) -> Iterator[Selection]:
    for select in ("topk", "greedy", "walk"):
        yield Selection(select, options.similarity)
    for alpha in options.alphas:
        yield Selection("contrastive", options.similarity, alpha)


def translated(translator: Translator, segments: list[Segment], path: Path) -> list[str]:
    """The translations of segments, each by itself; those in `path` are not made again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines: list[str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    with Progress(str(translator.settings.selection), "segments", len(segments)) as progress:
        while len(lines) < len(segments):
            some = [[segment.src] for segment in segments[len(lines) : len(lines) + GROUP]]
            lines += [translation.tgt for translation in translator.stream(some)]
            partial = path.with_suffix(".partial")
            partial.write_text(json.dumps(lines, ensure_ascii=False), encoding="utf-8")
            partial.replace(path)
            progress.advance(len(some))
    return lines


def targets(segments: list[Segment]) -> list[str]:
    return [segment.tgt for segment in segments]


if __name__ == "__main__":
    main()
