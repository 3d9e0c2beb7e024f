"""Neighbours beside base and copy: BLEU and CPU seconds a sentence, by kind of search over the
keys; and kNN's tuning.

    python eval/neighbours.py --test memories/held-out/law.test.en-fr.tsv.gz \\
        --memory memories/canadian-law.en-fr.tmx.gz --work FOLDER --kinds flat ivf hnsw
    python eval/neighbours.py --tune --test DEV.tsv.gz --memory memories/canadian-law.en-fr.tmx.gz
    --work FOLDER

`--segments` of the test file are translated, every n-th. FOLDER keeps index and keys. `--tune`
prints the loss of the references (nats a subword, </s> too) of p = w p_knn + (1 - w) p_model for
every k, T and w: it is for dev documents. Dev documents are picked out of a corpus by `--columns`
and `--documents`, as in `choose_alpha.py`. """

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import torch

from tmnmt.config.options import MODES
from tmnmt.engine.loading import load_layers
from tmnmt.engine.settings import Settings
from tmnmt.eval.measures.scores import score
from tmnmt.formats import parse_columns, read_memories
from tmnmt.index import MemoryIndex, build
from tmnmt.keys.compute import compute, header_of, longest, plan
from tmnmt.keys.files import KeyFiles
from tmnmt.keys.layout import Array
from tmnmt.keys.pair_keys import encode_pair, force_all
from tmnmt.models.decoding import for_decoding
from tmnmt.models.folder import Model, load_model
from tmnmt.papers.knn import AdaptiveKNN, nearest
from tmnmt.progress import Progress
from tmnmt.segments import Segment
from tmnmt.trained_layers.datastore import Datastore
from tmnmt.trained_layers.faiss_index import KINDS, update_faiss
from tmnmt.translator import Translator
from tmnmt.vocab import BOS

ROOT = Path(__file__).resolve().parent.parent
COUNT = MODES["knn"].neighbours
KS, TEMPERATURES = (4, 8, 16, 32), (1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)
WEIGHTS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


def main() -> None:
    options = arguments()
    if options.threads:
        torch.set_num_threads(options.threads)
    model = load_model(options.model)
    with index_with_keys(model, options) as index:
        segments = sample(options, index)
        print(
            f"{len(segments)} segments of {options.test[0].name}; {options.memory.name}; model "
            f"{model.hash}",
            flush=True,
        )
        if options.tune:
            tune(index, model, segments)
        else:
            compare(index, model, segments, options)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--test", type=Path, nargs="+", required=True)
    parser.add_argument("--columns", help="of a test file in TSV without a header")
    parser.add_argument("--documents", type=Path, help="only these of the test file, one a line")
    parser.add_argument("--tag", help="only segments of this origin, as in origin=3 of --columns")
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=ROOT / "models/law.en-fr")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--segments", type=int, default=300)
    parser.add_argument(
        "--below", type=float, help="only segments whose best match in the memory scores less"
    )
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=["flat"])
    parser.add_argument("--neighbours", type=int, nargs="+", default=[8])
    parser.add_argument("--knn-weight", type=float, default=Settings.knn_weight)
    parser.add_argument("--knn-temperature", type=float, default=Settings.knn_temperature)
    parser.add_argument(
        "--knn-adaptive", type=Path, help="a file of tmnmt adapt-knn, to be compared, too"
    )
    parser.add_argument("--beam", type=int, default=Settings.beam)
    parser.add_argument("--only", nargs="+", help="systems, by name")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--threads", type=int)
    return parser.parse_args()


def sample(options: argparse.Namespace, index: MemoryIndex) -> list[Segment]:
    """Every n-th segment of the test documents, `--segments` of them; with `--below` of those that
    the memory has no such match for."""
    columns = parse_columns(options.columns) if options.columns else None
    wanted = (
        set(options.documents.read_text(encoding="utf-8").split()) if options.documents else None
    )
    every = [
        s
        for s in read_memories(options.test, "en", "fr", columns=columns)
        if (wanted is None or s.document in wanted) and options.tag in (None, s.origin)
    ]
    if options.below is not None:
        found = index.search([s.src for s in every], 1, options.below)
        every = [s for s, matches in zip(every, found, strict=True) if not matches]
    count = min(options.segments, len(every))
    return [every[n * len(every) // count] for n in range(count)]


def index_with_keys(model: Model, options: argparse.Namespace) -> MemoryIndex:
    path = options.work / options.memory.name.split(".")[0]
    if not (path / "manifest.json").exists():
        path.mkdir(parents=True, exist_ok=True)
        build(path, read_memories([options.memory], "en", "fr"), "en", "fr")
    index = MemoryIndex.open(path)
    wanted = plan(index, header_of(model), model.vocab)
    with Progress("computing keys", "positions", wanted.positions) as progress:
        files = compute(index, model, wanted, progress=progress.advance)
    print(f"{files.positions:,} keys", flush=True)
    return index


def compare(
    index: MemoryIndex, model: Model, segments: Sequence[Segment], options: argparse.Namespace
) -> None:
    """The table: systems that read no neighbours once, the others with every kind of search."""
    memories = load_layers(model, "cpu")
    files = KeyFiles.open(index.path, model.hash)
    knn = {"knn_weight": options.knn_weight, "knn_temperature": options.knn_temperature}
    plain = Settings(beam=options.beam, verbatim=0)
    copy = replace(plain, mode="copy")
    systems = [("base", plain, ""), ("copy", copy, "")]
    for kind in options.kinds:
        systems += [
            (f"copy, {k} neighbours", replace(copy, neighbours=k), kind) for k in options.neighbours
        ]
        systems += [
            (
                f"kNN, {COUNT} neighbours",
                replace(plain, mode="knn", neighbours=COUNT, **knn),
                kind,
            )
        ]
        if options.knn_adaptive:
            adaptive = AdaptiveKNN.load(options.knn_adaptive, model.hash)
            settings = replace(
                plain, mode="knn", neighbours=adaptive.k, knn_adaptive=str(options.knn_adaptive)
            )
            systems += [
                (f"adaptive kNN, {adaptive.k} neighbours", settings, kind),
                ("copy, adaptive kNN", replace(settings, mode="copy"), kind),
            ]
        systems += [
            (f"{k} neighbours alone", replace(copy, neighbours=k, top_k=0), kind)
            for k in options.neighbours
        ]
    print("| system | search | BLEU | chrF | CPU seconds a sentence |\n|---|---|---|---|---|")
    made = None
    for name, settings, kind in systems:
        if options.only and name not in options.only:
            continue
        if kind and kind != made:
            update_faiss(files, KINDS[kind])
            made = kind
        translator = Translator(model, memories, [index], settings)
        start = time.process_time()
        found = translator.stream([[segment.src for segment in segments]])
        lines = [translation.tgt for translation in found]
        seconds = (time.process_time() - start) / len(segments)
        scores = score(lines, [segment.tgt for segment in segments])
        print(
            f"| {name} | {kind} | {scores.bleu:.2f} | {scores.chrf:.2f} | {seconds:.3f} |",
            flush=True,
        )
    print(f"\n{scores.bleu_signature}")


def tune(index: MemoryIndex, model: Model, segments: Sequence[Segment]) -> None:
    """The loss of the references by k, T and w."""
    datastore = Datastore.open([index], model.hash, torch.get_num_threads())
    log_p, same, distances = told(datastore, model, segments)
    print(f"{len(log_p):,} subwords; model alone: {-log_p.mean():.4f} nats a subword")
    print(f"the nearest is the right word for {same[:, 0].mean():.3f}")
    rows = []
    for k, temperature in product(KS, TEMPERATURES):
        shares = np.exp(-(distances[:, :k] - distances[:, :1]) / temperature)
        p_knn = (shares * same[:, :k]).sum(1) / shares.sum(1)
        for weight in WEIGHTS:
            loss = -np.log(weight * p_knn + (1 - weight) * np.exp(log_p)).mean()
            rows.append((loss, k, temperature, weight))
    print("| loss | k | T | w |\n|---|---|---|---|")
    for loss, *said in sorted(min(row for row in rows if row[1] == k) for k in KS):
        print(f"| {loss:.4f} | {' | '.join(map(str, said))} |")


def told(
    datastore: Datastore, model: Model, segments: Sequence[Segment]
) -> tuple[Array, Array, Array]:
    """Of every subword of the references (n,): log p by the model; of its neighbours (n, most k),
    nearest first: whether they hold it, and D."""
    pairs = [encode_pair((s.src, s.tgt), model.vocab, 2 * longest(model)) for s in segments]
    backbone, parts = for_decoding(model.backbone), []
    with Progress("searching", "segments", len(pairs)) as progress, torch.inference_mode():
        for pair, keys in zip(pairs, force_all(backbone, pairs, "cpu"), strict=True):
            prev = torch.tensor([BOS, *pair[1][:-1]])
            log_p = backbone.readout(prev, keys.hiddens, keys.contexts).log_softmax(-1)
            gold = log_p.gather(1, keys.ids[:, None])[:, 0]
            near = nearest(datastore, max(KS), keys.hiddens, keys.contexts)
            same = (near.ids == keys.ids[:, None]) & (near.positions >= 0)
            parts.append([x.numpy() for x in (gold, same, near.distances)])
            progress.advance()
    datastore.forget()
    said, held, apart = (np.concatenate(column) for column in zip(*parts, strict=True))
    return said, held, apart


if __name__ == "__main__":
    main()
