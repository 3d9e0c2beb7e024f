"""What a session cache does while documents are translated: which slots are read, and how far its
gate opens.

Seen on the best hypotheses, from the contexts and hidden states that are about to be written;
nothing is decoded twice."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from tmnmt.engine.beam_search import Hypothesis
from tmnmt.engine.decoder import Decoded, Decoder
from tmnmt.engine.patches import Dictation
from tmnmt.engine.piece import Piece
from tmnmt.engine.settings import Settings
from tmnmt.engine.writer import DocumentMemory
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.contract import Collated, StepState
from tmnmt.models.folder import Model
from tmnmt.trained_layers.cache import SessionCache, Slots
from tmnmt.translator import Translator
from tmnmt.vocab import BOS

FREQUENT = 100  # words that count as frequent
FREQUENT_WORD, OTHER_WORD, NUMBER, PUNCTUATION = CLASSES = (
    "frequent word",
    "other word",
    "number",
    "punctuation",
)
_PARTS = re.compile(r"(?P<word>[^\W\d_]+)|(?P<number>\d+)|\S")


@dataclass
class Mean:
    """Of numbers that come one after another."""

    total: float = 0.0
    count: int = 0

    def add(self, total: float, count: int = 1) -> None:
        self.total, self.count = self.total + total, self.count + count

    @property
    def value(self) -> float:
        return self.total / self.count if self.count else 0.0


@dataclass(frozen=True)
class Matrix:
    """P_m of one sentence: `weights` (T, C) of its subwords over the slots, the one written last
    first."""

    words: list[int]
    slots: list[int]  # the subword of every slot
    weights: Tensor


@dataclass
class Watched:
    """What was seen of subwords that had a filled cache to read."""

    # P_m by age: how many slots were written later
    matching: list[Mean] = field(default_factory=list)
    # class, has it a slot
    gates: dict[tuple[str, bool], Mean] = field(default_factory=lambda: defaultdict(Mean))
    by_segment: dict[int, Mean] = field(default_factory=lambda: defaultdict(Mean))  # gate
    matrix: Matrix | None = None  # of the sentence seen last


@dataclass
class _Watched(Decoder):
    """A decoder that shows what it has decoded."""

    observe: Callable[[Sequence[Piece], Collated, Sequence[Hypothesis]], None]

    latest: Sequence[list[int]] = ()  # slots of every piece's document, before it is translated

    def decoded(
        self,
        pieces: Sequence[Piece],
        documents: Sequence[DocumentMemory],
        explain: bool = False,
    ) -> list[Decoded]:
        caches = [document.histories.get("cache") for document in documents]
        self.latest = [cache.latest if cache is not None else [] for cache in caches]
        return super().decoded(pieces, documents, explain)

    def decode(
        self,
        pieces: Sequence[Piece],
        collated: Collated,
        documents: Sequence[DocumentMemory],
        explain: bool = False,
        dictation: Dictation | None = None,
    ) -> list[Hypothesis]:
        hypotheses = super().decode(pieces, collated, documents, explain, dictation)
        self.observe(pieces, collated, hypotheses)
        return hypotheses


class Watching(Translator):
    """A translator without translation memory that fills `watched`.

    frequent: the words of the first class. `tally.seconds["watch"]` is the time it takes
    to watch, apart from "decode"."""

    def __init__(
        self, model: Model, layers: MemoryLayers | None, settings: Settings, frequent: Set[str]
    ) -> None:
        super().__init__(model, layers, [], settings)
        self.frequent, self.watched = frequent, Watched()
        self._decoder = _Watched(**vars(self.pipeline.decoder), observe=self._observe)
        writer = replace(self.pipeline.search, decoder=self._decoder)
        self.pipeline = replace(self.pipeline, writer=writer)

    def _observe(
        self, pieces: Sequence[Piece], collated: Collated, hypotheses: Sequence[Hypothesis]
    ) -> None:
        cache = self.layers.cache if self.layers is not None else None
        slots = collated.histories.get("cache")
        if cache is not None and slots is not None:
            with self.tally.timed("watch"), torch.inference_mode():
                self._watch(pieces, hypotheses, cache, slots)

    def _watch(
        self,
        pieces: Sequence[Piece],
        hypotheses: Sequence[Hypothesis],
        cache: SessionCache,
        slots: Slots,
    ) -> None:
        """P_m and lambda of every subword of the best hypotheses, once more, all at once."""
        lengths = torch.tensor([len(best.ids) for best in hypotheses])
        contexts = torch.cat([best.contexts for best in hypotheses if best.contexts is not None])
        hiddens = torch.cat([best.hiddens for best in hypotheses if best.hiddens is not None])
        previous_ids = [
            BOS if not position else best.ids[position - 1]
            for best in hypotheses
            for position in range(len(best.ids))
        ]
        prev = torch.tensor(previous_ids, dtype=torch.int64, device=contexts.device)
        sentence = torch.arange(len(hypotheses)).repeat_interleave(lengths).to(contexts.device)
        rows = cache.laid_out(slots, self.pipeline.backbone.embed).rows(sentence)
        _, reading = cache.fuse(StepState(prev, hiddens, contexts), hiddens, rows)
        of_each = (torch.split(x, lengths.tolist()) for x in (reading.weights, reading.openness))
        for piece, best, latest, ids, weight, gate in zip(
            pieces, hypotheses, self._decoder.latest, slots.ids, *of_each, strict=True
        ):
            if latest and best.ids:
                self._note(
                    piece.segment.number,
                    Matrix(list(best.ids), ids[latest].tolist(), weight[:, latest]),
                    gate.tolist(),
                )

    def _note(self, segment: int, matrix: Matrix, gates: list[float]) -> None:
        watched, slots = self.watched, set(matrix.slots)
        watched.matrix = matrix
        watched.by_segment[segment].add(sum(gates), len(gates))
        watched.matching += [Mean() for _ in range(len(matrix.slots) - len(watched.matching))]
        for mean, total in zip(watched.matching, matrix.weights.sum(0).tolist(), strict=False):
            mean.add(total, len(gates))
        subwords = [self.vocab.piece(word) for word in matrix.words]
        for word, kind, gate in zip(
            matrix.words, classes(subwords, self.frequent), gates, strict=True
        ):
            watched.gates[kind, word in slots].add(gate)


def frequent_words(texts: Iterable[str], limit: int = FREQUENT) -> frozenset[str]:
    """The `limit` most frequent words of letters, in lower case; of equals the first in the
    alphabet.

    OURS: they stand for function words, since they are found for any language without a list."""
    counts = Counter(
        part[0].lower() for text in texts for part in _PARTS.finditer(text) if part["word"]
    )
    return frozenset(sorted(counts, key=lambda word: (-counts[word], word))[:limit])


def classes(subwords: Sequence[str], frequent: Set[str]) -> list[str]:
    """The class of the word, number or mark that each subword of a sentence begins in; a bare space
    is punctuation."""
    text = "".join(subwords).replace("▁", " ")
    class_at = dict[int, str]()
    for part in _PARTS.finditer(text):
        word = FREQUENT_WORD if part[0].lower() in frequent else OTHER_WORD
        kind = word if part["word"] else NUMBER if part["number"] else PUNCTUATION
        class_at |= dict.fromkeys(range(*part.span()), kind)
    kinds = []
    offset = 0
    for subword in subwords:
        begins = offset + (subword.startswith("▁") and len(subword) > 1)
        kinds.append(class_at.get(begins, PUNCTUATION))
        offset += len(subword)
    return kinds
