"""The positions of a whole memory that are near to a draft, as one more pair of the pool of nearest
positions: which vectors find them, and what they are worth beside fragments.

    python eval/whole_memory.py DEV.tsv.gz --memory INDEX --model MODEL [--segments 300] [--beam 1]

DEV.tsv.gz has document, source and target of segments that are kept out of the memory. Those
without a match of 0.5, of 4 to 60 words, are translated with what the pool reads by default, and
then beside the positions that are nearest to the states of a greedy draft, by cosine of contexts
c', states z', or both. Positions near to the states of the references are an upper bound, and
positions drawn by chance a control. Intervals are those of paired bootstrap draws (95 %)."""

from __future__ import annotations

import argparse
import csv
import gzip
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from tmnmt.config.options import TranslationOptions
from tmnmt.engine.piece import NO_MATCHES, Piece
from tmnmt.engine.pipeline import Pipeline
from tmnmt.eval.measures.metrics import count, metrics
from tmnmt.eval.measures.significance import Scored
from tmnmt.index.base import BuiltIndex
from tmnmt.index.opening import open_memory
from tmnmt.keys.pair import codes_of, directions_of
from tmnmt.keys.pair_keys import PairKeys, encode_pair, force_all
from tmnmt.layers.contract import NearDraft
from tmnmt.models.base import Backbone
from tmnmt.models.folder import load_model
from tmnmt.progress import Progress
from tmnmt.trained_layers.faiss_index import load_faiss
from tmnmt.translator import Translator
from tmnmt.vocab import EOS, Vocabulary

WORDS = range(4, 61)  # of a segment that is drawn
LISTS, PROBES = 1024, 16  # inverted lists, and those that are searched
NEAREST, FOLLOWING = 8, 4  # positions of a state, and words behind each
SEARCHED = {"c'": ["contexts"], "z'": ["hiddens"], "both": ["contexts", "hiddens"]}
PAIRS_FORCED = 500

Array = np.ndarray[Any, Any]
NOTHING: Any = None  # in place of a search: nothing is explained


@dataclass(frozen=True)
class Memory:
    """All positions of a memory but the ends of its pairs."""

    contexts: Array  # (P, l) float16, of length 1
    hiddens: Array  # (P, d) float16, of length 1
    codes: Tensor  # (P, w + 1)
    ids: Tensor  # (P,)
    pair: Tensor  # (P,) the number of the pair, ascending

    @classmethod
    def of_index(
        cls, index: BuiltIndex, backbone: Backbone, vocab: Vocabulary, longest: int
    ) -> Memory:
        """Forces all pairs of an index."""
        pairs = [*dict.fromkeys((segment.src, segment.tgt) for segment in index.segments())]
        parts = list[tuple[Any, ...]]()
        with Progress("forcing", "pairs", len(pairs)) as progress:
            for start in range(0, len(pairs), PAIRS_FORCED):
                texts = pairs[start : start + PAIRS_FORCED]
                coded = [encode_pair(pair, vocab, longest) for pair in texts]
                for number, keys in enumerate(force_all(backbone, coded, "cpu"), start):
                    length = len(keys.ids) - 1
                    codes = codes_of(keys.hiddens, torch.zeros(length + 1))
                    vectors = (normalize(part) for part in (keys.contexts, keys.hiddens))
                    row = *(part.half() for part in vectors), codes, keys.ids
                    parts.append((*(part[:length] for part in row), torch.full((length,), number)))
                progress.advance(len(texts))
        contexts, hiddens, codes, ids, pair = map(torch.cat, zip(*parts, strict=True))
        return cls(contexts.numpy(), hiddens.numpy(), codes, ids, pair)

    def vectors(self, kind: str, rows: Array | slice = slice(None)) -> Array:
        """What is searched of positions, (n, size) float32, of length 1."""
        parts = [getattr(self, name)[rows].astype(np.float32) for name in SEARCHED[kind]]
        return np.concatenate(parts, 1) / np.float32(len(parts) ** 0.5)

    def nearest(self, kind: str, states: Sequence[PairKeys], k: int) -> list[Tensor]:
        """Of every sentence the positions nearest to its states, (T, k), by inverted lists."""
        names = SEARCHED[kind]
        vectors = self.vectors(kind)
        lists = load_faiss().index_factory(vectors.shape[1], f"IVF{LISTS},SQfp16")
        lists.train(vectors[np.random.default_rng(1).permutation(len(vectors))[: 64 * LISTS]])
        lists.add(vectors)
        lists.nprobe = PROBES
        queries = [
            normalize(torch.cat([getattr(of_sentence, name) for of_sentence in states]))
            for name in names
        ]
        _, places = lists.search(torch.cat(queries, 1).numpy() / len(names) ** 0.5, k)
        lengths = [len(of_sentence.ids) for of_sentence in states]
        return [*torch.from_numpy(places).split(lengths)]

    def window(self, places: Tensor, behind: int) -> PairKeys:
        """Some positions, each once, with those behind them in their pairs, as one pair."""
        found = places.reshape(-1, 1) + torch.arange(behind + 1)
        found = found.clamp(max=len(self.ids) - 1)
        inside = self.pair[found] == self.pair[places.reshape(-1, 1)]
        chosen = found[inside].unique()
        sizes = self.contexts.shape[1], self.hiddens.shape[1]
        return directions_of(*sizes, self.ids[chosen], self.codes[chosen])


@dataclass(frozen=True)
class Sample:
    """Segments without a match, one piece each, with what the pool reads of them today."""

    translator: Translator
    pieces: list[Piece]
    references: list[str]

    def translated(self, beam: int, extra: Sequence[PairKeys] = ()) -> tuple[list[str], float]:
        """The translations, where given beside one more pair of every piece, and the seconds of
        a core."""
        pipeline, session = with_beam(self.translator, beam), self.translator.session()
        pieces = [beside(*both) for both in zip(self.pieces, extra, strict=True)] if extra else None
        begin = time.process_time()
        results = pipeline.translate(pieces or self.pieces, [session] * len(self.pieces))
        return [translation.tgt for translation, _ in results], time.process_time() - begin

    def drafts(self) -> list[PairKeys]:
        """The states of greedy drafts."""
        decoder = with_beam(self.translator, 1).decoder
        found = decoder.decoded(self.pieces, [self.translator.session()] * len(self.pieces))
        sources = [[*piece.ids, EOS] for piece in self.pieces]
        coded = [(src, [*one.best.ids, EOS]) for src, one in zip(sources, found, strict=True)]
        return force_all(decoder.backbone, coded, "cpu")

    def of_references(self) -> list[PairKeys]:
        """The states of the references."""
        vocab, backbone = self.translator.vocab, self.translator.pipeline.backbone
        sources = [[*piece.ids, EOS] for piece in self.pieces]
        targets = [[*vocab.encode(text), EOS] for text in self.references]
        return force_all(backbone, [*zip(sources, targets, strict=True)], "cpu")


def with_beam(translator: Translator, beam: int) -> Pipeline:
    """What translates with another beam."""
    pipeline = translator.pipeline
    writer = pipeline.search
    decoder = replace(writer.decoder, settings=replace(writer.decoder.settings, beam=beam))
    return replace(pipeline, writer=replace(writer, decoder=decoder))


def beside(piece: Piece, keys: PairKeys) -> Piece:
    """A piece that reads positions as one more pair."""
    retrieved = piece.retrieved or NO_MATCHES
    near = NearDraft(keys, keys.ids, NOTHING, 0)
    return replace(piece, retrieved=replace(retrieved, neighbours=near))


def sample_of(options: argparse.Namespace, translator: Translator, index: BuiltIndex) -> Sample:
    """The segments that are translated, drawn by the seed, the shortest first."""
    with gzip.open(options.dev, "rt", encoding="utf-8", newline="") as file:
        rows = [*csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    targets = {src: tgt for _, src, tgt in rows if len(src.split()) in WORDS and src != tgt}
    found = index.search([*targets], 1, 0.5)
    sources = [src for src, matches in zip(targets, found, strict=True) if not matches]
    random.Random(options.seed).shuffle(sources)
    passage, session = translator.pipeline.passage(), translator.session()
    opened = [(src, passage.open(src)) for src in sources[: options.segments]]
    chosen = [(pieces[0], src) for src, pieces in opened if len(pieces) == 1]
    chosen.sort(key=lambda entry: len(entry[0].ids))
    pieces = translator.pipeline.retrieve([p for p, _ in chosen], [session] * len(chosen))
    return Sample(translator, pieces, [targets[src] for _, src in chosen])


def show(outputs: dict[str, tuple[list[str], float]], sample: Sample, language: str) -> None:
    """Prints the table; the first row is what the others are compared with."""
    measured = [metric for metric in metrics(language) if metric.name in ("BLEU", "chrF2++")]
    cells = {name: list[str]() for name in outputs}
    for metric in measured:
        texts = [texts for texts, _ in outputs.values()]
        scored = [Scored(metric, part) for part in count(metric, [sample.references], texts)]
        for name, score in zip(outputs, scored, strict=True):
            apart = score.resampled - scored[0].resampled
            low, high = np.quantile(apart, [0.025, 0.975])
            gain = f"{score.score - scored[0].score:+.2f} ({low:+.2f} to {high:+.2f})"
            cells[name] += [f"{score.score:.2f}", gain]
    for name, (_, seconds) in outputs.items():
        print(f"| {name} | {' | '.join(cells[name])} | {seconds:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("dev", type=Path)
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--segments", type=int, default=300)
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    load_faiss().omp_set_num_threads(1)
    config = load_model(options.model).config
    index = open_memory(options.memory, config["src_lang"], config["tgt_lang"])
    settings = TranslationOptions(mode="nearest", verbatim=0, cache=0)
    translator = Translator.load(options.model, [index], settings)
    sample = sample_of(options, translator, index)
    longest = translator.pipeline.keys.max_subwords
    memory = Memory.of_index(index, translator.pipeline.backbone, translator.vocab, longest)
    print(f"{len(sample.pieces)} segments, {len(memory.ids):,} positions")
    drafts, references = sample.drafts(), sample.of_references()
    chance = torch.Generator().manual_seed(options.seed)
    found = {
        "by chance": [
            torch.randint(len(memory.ids), (len(draft.ids), NEAREST), generator=chance)
            for draft in drafts
        ]
    }
    for kind in SEARCHED:
        nearest = memory.nearest(kind, [*drafts, *references], NEAREST)
        found[f"draft, {kind}"] = nearest[: len(drafts)]
        found[f"reference, {kind}"] = nearest[len(drafts) :]
    outputs = {"what is read by default": sample.translated(options.beam)}
    for name, places in found.items():
        keys = [memory.window(of_sentence, FOLLOWING) for of_sentence in places]
        outputs[name] = sample.translated(options.beam, keys)
    print("| | BLEU | | chrF2++ | | seconds |\n|---|---|---|---|---|---|")
    show(outputs, sample, config["tgt_lang"])


if __name__ == "__main__":
    main()
