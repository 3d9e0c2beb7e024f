"""Which pairs of a memory are read, and by what they are read: measures of similarity and numbers
of pairs, by readers, on dev.

    python eval/retrieval_and_reader.py DEV --memory INDEX --model MODEL [--columns COLUMNS]
        [--documents FILE] [--segments 250] [--seed 1] [--beam 1] [--readers READER...]

DEV is a memory file of segments that are kept out of the memory; `--columns` says what its columns
are where it has no header, and `--documents` names a file with the documents that are taken, one a
line. Its segments of 4 to 60 words are drawn by the seed. Every measure ranks all pairs of the
memory, none is left out for a low score, and equal ranks are parted by the fuzzy score:

    fuzzy       1 - ED / max(|x|, |y|), as `tmnmt` searches
    LCS         tokens of the longest common subsequence of x and y
    delta-LCS   the same, less 0.1 for every other token of y
    n-gram      share of the different n-grams of x, n from 1 to 4, that y has
    BM25        k1 1.2, b 0.75
    chance      pairs drawn by the seed, as a control

x: the text   y: a source of the memory. Such measures are compared by Bouthors et al. 2024,
"Retrieving Examples from Memory for Retrieval Augmented Neural Machine Translation".

The readers are nearest positions, where distances are divided by the fuzzy score ("by score"); the
same, where pairs of a score below 0.5 are read as far as fragments are ("as fragments"); and copy,
which the model has learned. `--readers` names some of these; with none, what is read by default is
compared alone. "As it ships" reads what `tmnmt translate` reads; "without fragments" the matches
of these alone; "nothing" is the base. Nothing is taken as it stands. Gains are over what ships in
the same mode, with intervals of paired bootstrap draws (95 %)."""

from __future__ import annotations

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rapidfuzz import process
from rapidfuzz.distance import LCSseq, Levenshtein

from tmnmt.config.options import TranslationOptions
from tmnmt.engine.lookup import HALF, copyable
from tmnmt.engine.piece import Piece, Retrieved
from tmnmt.eval.measures.metrics import count, metrics
from tmnmt.eval.measures.significance import Scored
from tmnmt.formats import parse_columns, read_memory
from tmnmt.index.base import BuiltIndex
from tmnmt.index.opening import open_memory
from tmnmt.index.pairs import distinct
from tmnmt.models.folder import load_model
from tmnmt.progress import Progress
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens
from tmnmt.translator import Translator

WORDS = range(4, 61)  # of a segment that is drawn
RANKED = 64  # pairs that are looked at, because some of them are equal
MOST = 16  # pairs that are read
TOP = 4  # by default
DELTA = 0.1
ORDER = 4  # of n-grams
K1, B = 1.2, 0.75
READERS = {"by score": (1, 2, 4, 8), "as fragments": (4, 16), "copy": (1, 4)}
COMPARED = 50  # texts that are compared with the memory at once

Array = np.ndarray[Any, Any]
Tokens = list[int]


class Memory:
    """The pairs of a memory, and how like they are to texts."""

    def __init__(self, index: BuiltIndex, texts: Sequence[str], seed: int) -> None:
        """index: the memory. texts: what it is asked for. seed: of the pairs drawn by chance."""
        pairs = {(segment.src, segment.tgt): segment for segment in index.segments()}
        self.segments = [*pairs.values()]
        numbers: dict[str, int] = {}
        self.texts, self.sources = (
            [
                [numbers.setdefault(token, len(numbers)) for token in match_tokens(text)]
                for text in column
            ]
            for column in (texts, (segment.src for segment in self.segments))
        )
        self.lengths = np.array([*map(len, self.sources)], np.float32)
        self.chance = np.random.default_rng(seed)

    def ranked(self) -> dict[str, list[list[Match]]]:
        """By each measure the best pairs of every text, each once, best first."""
        found = dict[str, list[list[Match]]]()
        with Progress("ranking", "texts", len(self.texts)) as progress:
            for start in range(0, len(self.texts), COMPARED):
                texts = self.texts[start : start + COMPARED]
                for name, rows in self._scores(texts).items():
                    found.setdefault(name, []).extend(map(self._best, *rows))
                progress.advance(len(texts))
        return found

    def _scores(self, texts: list[Tokens]) -> dict[str, tuple[Array, Array, Array]]:
        """By each measure the scores of all pairs, the fuzzy scores and the edits, (texts, pairs)
        each."""
        edits = process.cdist(texts, self.sources, scorer=Levenshtein.distance, dtype=np.uint16)
        longer = np.maximum(np.array([*map(len, texts)])[:, None], self.lengths)
        fuzzy = (1 - edits / np.maximum(longer, 1)).astype(np.float32)
        lcs = process.cdist(texts, self.sources, scorer=LCSseq.similarity, dtype=np.float32)
        by_measure = {
            "fuzzy": fuzzy,
            "LCS": lcs,
            "delta-LCS": lcs - DELTA * (self.lengths - lcs),
            "n-gram": self._n_grams(texts),
            "BM25": self._bm25(texts),
            "chance": self.chance.random(fuzzy.shape, np.float32),
        }
        return {name: (scores, fuzzy, edits) for name, scores in by_measure.items()}

    def _n_grams(self, texts: list[Tokens]) -> Array:
        wanted = [set(n_grams(text)) for text in texts]
        rows = defaultdict[tuple[int, ...], list[int]](list)
        for row, grams in enumerate(wanted):
            for gram in grams:
                rows[gram].append(row)
        shares = np.zeros((len(texts), len(self.sources)), np.float32)
        for column, source in enumerate(self.sources):
            for gram in {gram for gram in n_grams(source) if gram in rows}:
                shares[rows[gram], column] += 1
        return shares / np.array([[max(len(grams), 1)] for grams in wanted])

    def _bm25(self, texts: list[Tokens]) -> Array:
        wanted = set().union(*texts)
        postings = defaultdict[int, list[tuple[int, int]]](list)
        for column, source in enumerate(self.sources):
            for token, frequency in Counter(source).items():
                if token in wanted:
                    postings[token].append((column, frequency))
        total = len(self.sources)
        norm = K1 * (1 - B + B * self.lengths / self.lengths.mean())
        scores = np.zeros((len(texts), total), np.float32)
        for row, text in enumerate(texts):
            for token in {*text} & postings.keys():
                columns, frequencies = np.array(postings[token]).T
                idf = np.log(1 + (total - len(columns) + 0.5) / (len(columns) + 0.5))
                part = frequencies * (K1 + 1) / (frequencies + norm[columns])
                scores[row, columns] += idf * part
        return scores

    def _best(self, scores: Array, fuzzy: Array, edits: Array) -> list[Match]:
        columns = np.lexsort((-fuzzy, -scores))[:RANKED]
        matches = [Match(self.segments[c], float(fuzzy[c]), int(edits[c])) for c in columns]
        return distinct(matches)[:MOST]


def n_grams(text: Tokens) -> Iterator[tuple[int, ...]]:
    """All n-grams of a text."""
    for n in range(1, ORDER + 1):
        yield from zip(*(text[start:] for start in range(n)), strict=False)


@dataclass(frozen=True)
class Reading:
    """A model that reads pairs, with the segments that it translates, one piece each."""

    translator: Translator
    index: BuiltIndex
    pieces: list[Piece]

    @classmethod
    def of(cls, translator: Translator, index: BuiltIndex, segments: Sequence[Segment]) -> Reading:
        """What reads pairs for these segments, of one piece each."""
        return cls(translator, index, [own[0] for own in pieces_of(translator, segments)])

    def shipped(self) -> list[str]:
        """The translations beside what `tmnmt translate` reads."""
        pipeline, sessions = self.translator.pipeline, self._sessions()
        return self._translated(pipeline.retrieve(self.pieces, sessions))

    def beside(self, matches: Sequence[Sequence[Match]], as_fragments: bool) -> list[str]:
        """The translations beside these matches of every piece. as_fragments: whether those of a
        score below 0.5 are read as far as fragments are."""
        both = [*zip(self.pieces, matches, strict=True)]
        pairs = [[_as_read(piece, match) for match in of_piece] for piece, of_piece in both]
        segments = {
            pair: match.segment
            for of_piece, as_read in zip(matches, pairs, strict=True)
            for pair, match in zip(as_read, of_piece, strict=True)
        }
        keys = self.translator.pipeline.keys.keys_of(pairs, segments, [self.index])
        is_nearest = self.translator.settings.mode == "nearest"
        pieces = []
        for (piece, of_piece), of_pairs in zip(both, keys, strict=True):
            # the sort is stable, and so is what belongs to what
            order = sorted(range(len(of_piece)), key=lambda n: of_piece[n].score < HALF)
            chosen = [of_piece[n] for n in order]
            alike = sum(match.score >= HALF for match in chosen) if as_fragments else len(chosen)
            ordered = [of_pairs[n] for n in order]
            readable = copyable(chosen[:alike], ordered) if is_nearest else ordered
            retrieved = Retrieved(
                tuple(chosen[:alike]), tuple(chosen[alike:]), None, tuple(readable)
            )
            pieces.append(replace(piece, retrieved=retrieved))
        return self._translated(pieces)

    def _translated(self, pieces: Sequence[Piece]) -> list[str]:
        results = self.translator.pipeline.translate(pieces, self._sessions())
        return [translation.tgt for translation, _ in results]

    def _sessions(self) -> list[Any]:
        return [self.translator.session()] * len(self.pieces)


def _as_read(piece: Piece, match: Match) -> tuple[str, str]:
    masked = piece.segment.source.masked_pair(match.segment)
    return masked.src, masked.tgt


def sample_of(options: argparse.Namespace, languages: tuple[str, str]) -> list[Segment]:
    """The segments that are drawn, each source once."""
    columns = parse_columns(options.columns) if options.columns else None
    documents = options.documents and {*options.documents.read_text(encoding="utf-8").split()}
    segments = {
        segment.src: segment
        for segment in read_memory(options.dev, *languages, columns=columns)
        if len(segment.src.split()) in WORDS
        and segment.src != segment.tgt
        and (documents is None or segment.document in documents)
    }
    drawn = [*segments.values()]
    random.Random(options.seed).shuffle(drawn)
    return drawn


def translator_of(options: argparse.Namespace, mode: str, index: BuiltIndex) -> Translator:
    """The model as it reads pairs in a mode."""
    settings = TranslationOptions(mode=mode, verbatim=0, cache=0, beam=options.beam)
    return Translator.load(options.model, [index], settings)


def pieces_of(translator: Translator, segments: Sequence[Segment]) -> list[list[Piece]]:
    """The pieces of every segment."""
    passage = translator.pipeline.passage()
    return [passage.open(segment.src) for segment in segments]


@dataclass(frozen=True)
class Table:
    """What is compared with what."""

    references: Sequence[str]
    has_match: Array  # (segments,) bool
    language: str

    def show(self, name: str, baseline: Sequence[str], texts: Sequence[str]) -> None:
        """Prints a row: BLEU and what is gained over all segments, over those with a match of 0.5,
        and over the others; and chrF2++ of all with what is gained."""
        cells = list[str]()
        for metric in metrics(self.language):
            parts = {
                "BLEU": (slice(None), self.has_match, ~self.has_match),
                "chrF2++": (slice(None),),
            }.get(metric.name, ())
            counts = count(metric, [self.references], [baseline, texts]) if parts else []
            for rows in parts:
                first, other = (Scored(metric, part[rows]) for part in counts)
                low, high = np.quantile(other.resampled - first.resampled, [0.025, 0.975])
                cells += [f"{other.score:.2f}"] if isinstance(rows, slice) else []
                cells += [f"{other.score - first.score:+.2f} ({low:+.2f} to {high:+.2f})"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("dev", type=Path)
    parser.add_argument("--columns")
    parser.add_argument("--documents", type=Path)
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--segments", type=int, default=250)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--readers", nargs="*", choices=[*READERS], default=[*READERS])
    options = parser.parse_args()
    torch.set_num_threads(1)
    config = load_model(options.model).config
    languages = config["src_lang"], config["tgt_lang"]
    index = open_memory(options.memory, *languages)
    translators = {mode: translator_of(options, mode, index) for mode in ("nearest", "copy")}
    segments = sample_of(options, languages)
    pieces = pieces_of(translators["nearest"], segments)
    segments = [s for s, own in zip(segments, pieces, strict=True) if len(own) == 1]
    segments = segments[: options.segments]
    memory = Memory(index, [segment.src for segment in segments], options.seed)
    ranked = memory.ranked()
    has_match = np.array([matches[0].score >= HALF for matches in ranked["fuzzy"]])
    table = Table([segment.tgt for segment in segments], has_match, languages[1])
    print(
        f"{len(segments)} segments, {has_match.sum()} with a match; {len(memory.segments):,} pairs"
    )
    print(
        "| | BLEU | all | with a match | without | chrF2++ | all |\n|---|---|---|---|---|---|---|"
    )
    readings = {mode: Reading.of(one, index, segments) for mode, one in translators.items()}
    shipped = {mode: reading.shipped() for mode, reading in readings.items()}
    alike = [[m for m in matches[:TOP] if m.score >= HALF] for matches in ranked["fuzzy"]]
    for mode, reading in readings.items():
        table.show(f"{mode}, as it ships", shipped[mode], shipped[mode])
        table.show(f"{mode}, without fragments", shipped[mode], reading.beside(alike, False))
    nothing = readings["nearest"].beside([[]] * len(segments), False)
    table.show("nothing", shipped["nearest"], nothing)
    for reader in options.readers:
        mode = "copy" if reader == "copy" else "nearest"
        for measure, found in ranked.items():
            for k in READERS[reader] if measure != "chance" else (TOP,):
                chosen = [matches[:k] for matches in found]
                texts = readings[mode].beside(chosen, as_fragments=reader == "as fragments")
                table.show(f"{reader}, {measure}, {k}", shipped[mode], texts)


if __name__ == "__main__":
    main()
