"""Neighbours: at every step the keys of the whole memory that are nearest to the row's query
(docs/neighbours.md).

    copy, fusion    the k keys nearest to [c; s] are further positions
                    beside those of the pairs, under one softmax
    nearest         those nearest to the states of a greedy draft, and the words behind
                    them, are one more pair, which is found once for a sentence
    knn             the words of the k nearest keys are mixed into the model's
                    probabilities, by a layer of a plug-in

    R: rows    N: sentences    k: neighbours of a row
    H: neighbours of its steps so far    W: see `Coverage`
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from tmnmt.engine.settings import Settings
from tmnmt.errors import UsageError
from tmnmt.index.base import Index
from tmnmt.index.fuzzy import edit_distance, fuzzy_score
from tmnmt.keys.layout import Array
from tmnmt.keys.pair import PairKeys, codes_of, directions_of
from tmnmt.layers.collated import Pairs
from tmnmt.layers.contract import NearDraft
from tmnmt.models.folder import Model
from tmnmt.registry import Registry
from tmnmt.segments import Match
from tmnmt.text import match_tokens
from tmnmt.trained_layers.datastore import Datastore
from tmnmt.vocab import BOS, EOS

FOLLOWING = 4  # words behind a neighbour of a draft that are read with it (chosen on dev)


class NeighbourQuery:
    """What the sentences of one batch ask of the datastore, as it is when the batch begins.

    sources: what is translated; pairs: what is read of each sentence anyway, and is no neighbour
    once more; voting: how the words of neighbours are mixed in, where they are no further
    positions; left_out: the numbers of pairs that are not found."""

    def __init__(
        self,
        datastore: Datastore,
        k: int,
        sources: Sequence[str],
        pairs: Sequence[Sequence[tuple[str, str]]],
        voting: object | None = None,
        left_out: Iterable[int] = (),
    ) -> None:
        self._known_pairs = datastore.forget(left_out)
        self.voting = voting
        self.datastore, self.k = datastore, k
        self._sources = [match_tokens(source) for source in sources]
        pair_numbers = [
            [number for pair in own_pairs for number in datastore.pair_of(*pair)]
            for own_pairs in pairs
        ]
        self._pair_numbers = np.full(
            (len(pair_numbers), max(map(len, pair_numbers), default=0)), -1
        )  # (N, pairs)
        for row, numbers in zip(self._pair_numbers, pair_numbers, strict=True):
            row[: len(numbers)] = numbers
        self._counts = np.zeros((len(pair_numbers), 2), np.int64)  # lookups, neighbours
        self._tokens: dict[int, list[str]] = {}  # of a pair's source
        self._scores: dict[tuple[int, int], float] = {}  # of sentence and pair

    def find(self, context: Tensor, hidden: Tensor, sentence: Tensor) -> tuple[Tensor, Pairs]:
        """The keys nearest to c (R, l) and s (R, d): where they stand (R, k), and what every row
        has found, as if each row were a sentence of its own."""
        queries = torch.cat([context, hidden], 1)
        _, positions = self.datastore.search(queries.float().cpu().numpy(), self.k)
        row_sentences = sentence.cpu().numpy()
        entries = self.datastore.entries(positions)
        mask = (positions >= 0) & ~(
            entries.pairs[:, :, None] == self._pair_numbers[row_sentences][:, None]
        ).any(-1)
        sentences = len(self._counts)
        self._counts[:, 0] += np.bincount(row_sentences, minlength=sentences)
        found_sentences = row_sentences[np.nonzero(mask)[0]]
        self._counts[:, 1] += np.bincount(found_sentences, minlength=sentences)
        fuzzy = self._fuzzy(entries.pairs, row_sentences, mask)

        def make_tensor(array: Array) -> Tensor:
            return torch.from_numpy(array).to(context.device)

        ids, previous_ids = make_tensor(entries.ids), make_tensor(entries.previous_ids)
        scores = make_tensor(fuzzy)
        return make_tensor(positions), Pairs(
            contexts=make_tensor(entries.contexts),
            hiddens=make_tensor(entries.hiddens),
            ids=ids,
            previous_ids=previous_ids.where(previous_ids >= 0, BOS),
            mask=make_tensor(mask),
            pair=torch.zeros_like(ids),
            position=torch.zeros_like(ids),
            marks=torch.stack([scores, (scores >= 1).to(scores.dtype)], -1),
        )

    def near_drafts(self, drafts: Sequence[PairKeys]) -> list[NearDraft]:
        """The keys nearest to the states of the draft of every sentence, with the words behind
        them, as one pair without the ends of pairs."""
        states = [torch.cat([draft.contexts, draft.hiddens], 1) for draft in drafts]
        _, neighbours = self.datastore.search(torch.cat(states).float().cpu().numpy(), self.k)
        results = []
        ends = np.cumsum([*map(len, states)])
        for sentence, rows in enumerate(np.split(neighbours, ends[:-1])):
            nearest = rows[rows >= 0]
            self._counts[sentence] += len(rows), len(nearest)
            positions = self.datastore.with_following(nearest, FOLLOWING)
            positions = positions[self.datastore.words(positions) != EOS]
            hiddens, words = map(torch.from_numpy, self.datastore.states(positions))
            draft = drafts[sentence]
            codes = codes_of(hiddens, torch.zeros(len(hiddens)))
            sizes = draft.contexts.shape[1], draft.hiddens.shape[1]
            keys = directions_of(*sizes, words.to(draft.hiddens.device), codes)
            results.append(NearDraft(keys, torch.from_numpy(positions), self, sentence))
        return results

    @property
    def sentences(self) -> int:
        """N"""
        return len(self._sources)

    def ids(self, positions: Tensor) -> Tensor:
        """The subwords at positions (k,) of the datastore; PAD where they are -1."""
        return torch.from_numpy(self.datastore.words(positions.cpu().numpy()))

    def place(self, position: int) -> tuple[int, int]:
        """The number of a position's pair, and which of its subwords it is."""
        return self.datastore.place(position)

    def match(self, sentence: int, pair: int) -> Match:
        """A pair that was found, as a match of a sentence of the batch, whatever another batch has
        asked since."""
        segment = self.datastore.segment(pair, self._known_pairs)
        tokens = self._sources[sentence], match_tokens(segment.src)
        return Match(segment, fuzzy_score(*tokens), edit_distance(*tokens))

    def counts(self, sentence: int) -> tuple[int, int]:
        """How many times rows of a sentence have looked for neighbours, and how many they found."""
        lookups, neighbours = self._counts[sentence].tolist()
        return lookups, neighbours

    def _fuzzy(self, pairs: Array, sentence: Array, mask: Array) -> Array:
        """(R, k) float32: the fuzzy score of every neighbour's pair with the row's sentence, 0
        where there is none."""
        rows = np.broadcast_to(sentence[:, None], pairs.shape)[mask]
        questions, inverse = np.unique(
            np.stack([rows, pairs[mask]], 1), axis=0, return_inverse=True
        )
        scores = np.zeros(pairs.shape, np.float32)
        scores[mask] = np.array(
            [self._score(*question) for question in questions.tolist()], np.float32
        )[inverse.reshape(-1)]
        return scores

    def _score(self, sentence: int, pair: int) -> float:
        """The fuzzy score of a sentence and a pair's source, computed once."""
        score = self._scores.get((sentence, pair))
        if score is None:
            if pair not in self._tokens:
                self._tokens[pair] = match_tokens(self.datastore.segment(pair).src)
            score = self._scores[sentence, pair] = fuzzy_score(
                self._sources[sentence], self._tokens[pair]
            )
        return score


@dataclass(frozen=True)
class Neighbours:
    """What is read of the whole memory: `k` neighbours of a word. `voting`: how their words are
    mixed in; None: they are further positions beside the pairs. `is_drafted`: whether they are
    those of a draft's words, found once. `left_out`: the numbers of pairs that are not found then.
    """

    datastore: Datastore
    k: int
    voting: object | None
    is_drafted: bool = False
    left_out: frozenset[int] = frozenset()

    def excluding(self, pairs: Iterable[tuple[str, str]]) -> Neighbours:
        """The same without some pairs, each of source and target, near to drafts."""
        numbers = {number for pair in pairs for number in self.datastore.pair_of(*pair)}
        return replace(self, left_out=self.left_out | numbers)

    def near_drafts(self, sources: Sequence[str], drafts: Sequence[PairKeys]) -> list[NearDraft]:
        """The positions near to the draft of each of the sources."""
        nothing_else = [()] * len(sources)
        query = NeighbourQuery(
            self.datastore, self.k, sources, nothing_else, left_out=self.left_out
        )
        return query.near_drafts(drafts)

    def query(
        self, sources: Sequence[str], pairs: Sequence[Sequence[tuple[str, str]]]
    ) -> NeighbourQuery:
        """What the sentences of one batch ask, of which `pairs` are read anyway."""
        return NeighbourQuery(self.datastore, self.k, sources, pairs, self.voting)


class NeighbourSearch:
    """How a translator finds neighbours (`tmnmt.engine.settings.SEARCHES`)."""

    @staticmethod
    def check(settings: Settings, model: Model) -> None:
        """Raises UsageError where the settings of neighbours do not go with the mode, and the
        errors of a `VotingMaker`."""
        if settings.neighbours and settings.mode == "off":
            raise UsageError(
                "neighbours are read in the modes nearest, copy, fusion, both and knn; the mode "
                "is off"
            )
        if settings.mode == "knn" and not settings.neighbours:
            raise UsageError("mode knn needs neighbours, 1 or more")
        if not settings.top_k and not settings.neighbours:
            raise UsageError(
                "top-k is 0, so nothing is read of the memory; it must be at least 1 without "
                "neighbours"
            )
        voting_of(settings, model, "cpu")

    @staticmethod
    def open(
        settings: Settings, model: Model, indexes: Sequence[Index], device: str
    ) -> Neighbours | None:
        """The neighbours in all memories; None where none are read. Raises MemoryIndexError where
        a memory has no keys of the model."""
        if not settings.neighbours:
            return None
        datastore = Datastore.open(indexes, model.states_hash, torch.get_num_threads())
        for search in datastore.searches:
            search.files.check_words(search.files.ids, len(model.vocab))
        voting = voting_of(settings, model, device)
        is_drafted = settings.mode == "nearest" and voting is None
        return Neighbours(datastore, settings.neighbours, voting, is_drafted)


class VotingMaker(Protocol):
    """A function that says how the words of neighbours are mixed in with some settings, or None
    where its plug-in mixes none in. It raises UsageError for settings that do not go together, and
    ModelError for a file that is wrong."""

    def __call__(self, settings: Settings, model: Model, device: str) -> object | None: ...


VOTINGS: Registry[VotingMaker] = Registry("voting", {})


def voting_of(settings: Settings, model: Model, device: str) -> object | None:
    """How the words of neighbours are mixed in; None where they are not. Raises the errors of a
    `VotingMaker`."""
    ways = (make(settings, model, device) for make in VOTINGS.values())
    return next((way for way in ways if way is not None), None)


@dataclass(frozen=True)
class NeighbourState:
    """What was read of neighbours so far: a row may find the same one again at a later step."""

    search: NeighbourQuery
    sentence: Tensor  # (R,) int64: which of the N each row belongs to
    positions: Tensor  # (R, H) int64: what every step found
    coverage: Tensor  # (R, H, W) what was read of it by then, see `Coverage`

    @classmethod
    def start(
        cls, search: NeighbourQuery, width: int, device: torch.device | str = "cpu"
    ) -> NeighbourState:
        """The start: one row a sentence; `width` is W."""
        sentences = search.sentences
        empty = torch.zeros(sentences, 0, dtype=torch.int64, device=device)
        return cls(
            search,
            torch.arange(sentences, device=device),
            empty,
            torch.zeros(sentences, 0, width, device=device),
        )

    def rows(self, index: Tensor) -> NeighbourState:
        """The rows `index` (R',) in that order."""
        return replace(
            self,
            sentence=self.sentence.index_select(0, index),
            positions=self.positions.index_select(0, index),
            coverage=self.coverage.index_select(0, index),
        )

    def covered(self, positions: Tensor) -> Tensor:
        """(R, k, W): what was last kept of the positions (R, k); zero where they come for the first
        time."""
        zeros = self.coverage.new_zeros(len(positions), 1, self.coverage.shape[2])
        steps = torch.arange(1, self.positions.shape[1] + 1, device=positions.device)
        matches = self.positions[:, None] == positions[..., None]  # (R, k, H)
        latest = (
            (matches * steps).amax(-1) if len(steps) else torch.zeros_like(positions)
        )  # 0: never
        return torch.cat([zeros, self.coverage], 1).gather(
            1, latest[..., None].expand(-1, -1, zeros.shape[2])
        )

    def extended(self, positions: Tensor, coverage: Tensor) -> NeighbourState:
        """After a step that found `positions` (R, k) and left `coverage` (R, k, W) of them."""
        return replace(
            self,
            positions=torch.cat([self.positions, positions], 1),
            coverage=torch.cat([self.coverage, coverage], 1),
        )


def join_neighbours(pairs: Pairs, neighbours: Pairs, sentence: Tensor) -> Pairs:
    """The pairs of every row's `sentence` (R,), and what the row has found behind them: every row
    is a sentence of its own."""
    tensors = {
        field.name: torch.cat(
            [getattr(pairs, field.name)[sentence], getattr(neighbours, field.name)], 1
        )
        for field in fields(Pairs)
        if getattr(pairs, field.name) is not None
    }
    return Pairs(**tensors)
