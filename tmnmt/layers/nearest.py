"""One memory of positions, with nothing learned: the words behind the positions whose state is
nearest to this step's (OURS; after Dai et al. 2023, "Simple and scalable nearest neighbor machine
translation", with a share of the distance, and of how sure the model is).

    distance     D = (2 - 2 cos(s, z')) / f + g max(0, p' - p(y')) + penalty beta
    attention    q = softmax(-D / T) over the K nearest positions, by D / tau
    share        zeta = max(0, 1 - min D / (tau (1 - SURE max p)))
    copy         p'(y) = zeta (sum of q over positions that hold y) + (1 - zeta) p(y)
    coverage     beta += max(0, 1 - min D / tau) q

    s            this step's state, before the last norm
    z'           the state before a word y' of a retrieved pair, or of a confirmed segment, of which
                 the direction is kept (`keys/nibbles.py`)
    tau, T       how far a position is read, and how sharply: two numbers of each source
    f            the fuzzy score of a pair that is like the text; 1 of all others
    p            of the model with the layers before this one
    p'           how likely the model found y' at its position; 0 where nobody knows
    g            how much a change of mind counts, a number of each source

Sources differ in trust: the pairs of a memory, and what was confirmed earlier in the document. A
step that is near nothing has a share of 0, and is the plain model's, bit for bit. Where the model
is sure of a word, only positions of almost its own state say something: others do harm there.
Where it was sure of y' at a position and is not now, the texts differ in what matters, however near
the states are: "O ficheiro" is no reason to begin "The page" with "O".

R: rows (sentences x beam)   N: sentences   P: positions of pairs   C: positions of the session"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from tmnmt.compiled.kernels import NEAREST, NearestRead, can_be_compiled, narrow_shares
from tmnmt.config.options import ModelOptions
from tmnmt.keys.nibbles import directions, rotate, width
from tmnmt.keys.pair import CERTAIN, codes_of
from tmnmt.keys.pair_keys import PairKeys
from tmnmt.layers.collated import Pairs, Recent
from tmnmt.layers.contract import Collated, HistoryLayer, LayerOutput, StepState, Words
from tmnmt.layers.packed import Packed, Panels, Stretch
from tmnmt.layers.pool_sources import sources_of_pool
from tmnmt.layers.reach import SentenceReach
from tmnmt.layers.traced import LayerTrace, TracedSource
from tmnmt.layers.view import Positions, first_of
from tmnmt.models.base import Backbone, Columns
from tmnmt.vocab import BOS, EOS, PAD

MOST_POSITIONS = 8192  # of a session's segments: the newest stay
FULL = 1.0 - 1e-6  # a share at most, so that its logit is finite
SURE = 0.5  # of tau that is lost where the model is sure of a word (chosen on dev)


class SessionPositions:
    """The positions of a document's confirmed segments, oldest first, at most MOST_POSITIONS:
    their codes."""

    needs_states = False

    def __init__(self, hidden_size: int, device: torch.device | str = "cpu") -> None:
        """hidden_size: how many numbers a hidden state has, d.
        device: where the positions lie."""
        self.codes = torch.empty(0, width(hidden_size) + 1, dtype=torch.uint8, device=device)
        self.ids = torch.empty(0, dtype=torch.int64, device=device)
        # the same for compiled code, which is not packed anew for every sentence
        self.panels = Panels(2 * width(hidden_size)) if self.ids.is_cpu else None

    def __len__(self) -> int:
        return len(self.ids)

    def write(self, hiddens: Tensor, ids: Tensor) -> None:
        """Adds a segment of which nobody knows how likely the model found its words.

        hiddens: (T, d), the states before its words.
        ids: (T,) int64, the words."""
        self.write_codes(codes_of(hiddens.detach(), torch.zeros_like(ids)), ids)

    def write_codes(self, codes: Tensor, ids: Tensor) -> None:
        """Adds a segment by its codes.

        codes: (T, w + 1) uint8, the codes of its positions.
        ids: (T,) int64, the words."""
        codes, ids = codes.to(self.codes), ids.to(self.ids)
        self.codes = torch.cat([self.codes, codes])[-MOST_POSITIONS:]
        self.ids = torch.cat([self.ids, ids])[-MOST_POSITIONS:]
        if self.panels is not None:
            self.panels.add(codes, ids)
            self.panels.keep_newest(MOST_POSITIONS)


def collate_recent(
    contents: Sequence[SessionPositions | None], device: torch.device | str = "cpu"
) -> Recent | None:
    """The positions of N documents side by side; None where there are none.

    contents: the positions of every document; None where it has none.
    device: where the result lies."""
    lengths = [0 if positions is None else len(positions) for positions in contents]
    longest = max(lengths, default=0)
    if not longest:
        return None
    stretches = [
        p.panels.stretch if p is not None and p.panels is not None else None for p in contents
    ]
    if len(contents) == 1 and contents[0] is not None:
        codes, ids = contents[0].codes[None].to(device), contents[0].ids[None].to(device)
        return Recent(codes, ids, torch.ones_like(ids, dtype=torch.bool), stretches)
    size = next(len(p.codes[0]) for p in contents if p is not None and len(p))
    codes = torch.zeros(len(contents), longest, size, dtype=torch.uint8, device=device)
    ids = torch.full((len(contents), longest), PAD, device=device)
    for row, positions in enumerate(contents):
        if positions is not None and len(positions):
            codes[row, : len(positions)] = positions.codes.to(device)
            ids[row, : len(positions)] = positions.ids.to(device)
    mask = torch.arange(longest, device=device) < torch.tensor(lengths, device=device)[:, None]
    return Recent(codes, ids, mask, stretches)


class _Part(NamedTuple):
    """The positions of one source."""

    codes: Tensor  # (N, P, w + 1)
    ids: Tensor  # (N, P)
    mask: Tensor  # (N, P)
    numbers: Tensor  # (N, P, 4)
    stretches: Sequence[Stretch | None] = ()  # the same for compiled code, where it is packed

    def packed(self) -> Sequence[Stretch | None]:
        """The positions of every sentence for compiled code."""
        return self.stretches or [
            self._panels(*own) for own in zip(self.codes, self.ids, self.mask, strict=True)
        ]

    def _panels(self, codes: Tensor, ids: Tensor, mask: Tensor) -> Stretch:
        panels = Panels(2 * codes.shape[-1] - 2, len(ids), has_places=True)
        panels.add(codes, ids, mask)
        return panels.stretch


@dataclass(frozen=True, eq=False)
class _Source:
    """What the sentences of a batch read, and by which numbers."""

    pairs: Pairs | None
    recent: Recent | None
    reaches: Sequence[SentenceReach]

    @property
    def device(self) -> torch.device:
        """Where the positions are."""
        if self.pairs is not None and self.pairs.as_keys is not None:
            return torch.device("cpu")
        ids: Tensor = (self.pairs or self.recent).ids  # type: ignore[union-attr]
        return ids.device

    @cached_property
    def parts(self) -> tuple[_Part, ...]:
        """The positions of each source, laid out."""
        parts = _of_pairs(self.pairs, self.reaches), _of_session(self.recent, self.reaches)
        return tuple(part for part in parts if part is not None)

    @property
    def penalised_positions(self) -> int:
        """How many positions there are of a sentence; 0 where nothing is penalised."""
        numbers = (part for reach in self.reaches for part in (*reach.pairs, reach.session))
        if not any(reach.penalty for reach in numbers):
            return 0
        return sum(part.ids.shape[1] for part in self.parts)

    def packed(self) -> Packed:
        """All of it for compiled code."""
        keys = self.pairs.as_keys if self.pairs is not None else None
        if keys is None:
            return Packed.build([(part.packed(), part.numbers) for part in self.parts])
        packed = [(_stretches(keys), _numbers(keys, self.reaches))]
        of_session = _of_session(self.recent, self.reaches)
        if of_session is not None:
            packed.append((of_session.packed(), of_session.numbers))
        return Packed.build(packed)


def _stretches(keys: Sequence[Sequence[PairKeys]]) -> Sequence[Stretch | None]:
    """The positions of every sentence's pairs, one pair after the other."""
    result = list[Stretch | None]()
    for pairs in keys:
        codes = [pair.codes for pair in pairs if pair.codes is not None]
        if not codes:
            result.append(None)
            continue
        ids = torch.cat([pair.ids for pair in pairs])
        panels = Panels(2 * codes[0].shape[-1] - 2, len(ids))
        panels.add(torch.cat(codes), ids)
        result.append(panels.stretch)
    return result


def _numbers(keys: Sequence[Sequence[PairKeys]], reaches: Sequence[SentenceReach]) -> Tensor:
    """tau, T, the penalty and the doubt (N, P, 4) of every position."""
    lengths = [[len(pair.ids) for pair in pairs] for pairs in keys]
    numbers = np.ones((len(keys), max(map(sum, lengths)), 4), np.float32)
    for row, (of_pairs, reach) in enumerate(zip(lengths, reaches, strict=True)):
        if of_pairs:
            values = np.array([pair.numbers for pair in reach.pairs], np.float32)
            numbers[row, : sum(of_pairs)] = np.repeat(values, of_pairs, 0)
    return torch.from_numpy(numbers)


@dataclass(frozen=True)
class Pool(Positions):
    """The positions of all sources, one after the other; `keys` are their codes, `values` is
    (N, P + C, 4): tau, T, the penalty and the doubt of each."""

    @cached_property
    def numbers(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """tau, T, the penalty and the doubt as the rows see them, (R, P + C) each."""
        tau, temperature, penalty, doubt = self.values[self.sentence].unbind(-1)
        return tau, temperature, penalty, doubt

    @cached_property
    def certainties(self) -> Tensor:
        """How likely the model found the words, as the rows see them, (R, P + C)."""
        return (self.keys[..., -1].float() / CERTAIN)[self.sentence]


@dataclass(frozen=True)
class PoolReady:
    """The positions of every sentence, and what its rows have copied of them."""

    source: _Source
    packed: Packed | None  # the same for compiled code, which reads it by `sentence`
    pool: Pool | None  # the same laid out for torch, where there is no compiled code
    sentence: Tensor  # (R,) int64
    coverage: Tensor  # (R, P + C); (R, 0) where nothing is penalised

    def rows(self, index: Tensor) -> PoolReady:
        """These rows, in their order.

        index: (R',) int64, the numbers of the rows."""
        return replace(
            self,
            pool=self.pool.rows(index) if self.pool is not None else None,
            sentence=self.sentence.index_select(0, index),
            coverage=self.coverage.index_select(0, index),
        )

    def reordered(self, index: Tensor) -> PoolReady:
        """The same rows in another order, in which every row takes the place of one of its own
        sentence.

        index: (R,) int64, the number of the row that comes to each place."""
        if not self.is_penalised:
            return self
        return replace(self, coverage=self.coverage.index_select(0, index))

    @property
    def is_penalised(self) -> bool:
        """Whether what was copied counts against being copied again."""
        return self.coverage.shape[1] > 0

    @property
    def laid_out(self) -> Pool:
        """The pool of the rows."""
        return self.pool if self.pool is not None else pool_of(self.source.parts, self.sentence)


class NearestPositions(HistoryLayer[PoolReady, SessionPositions]):
    """It has no parameters: the numbers of each source say all, and a batch brings them."""

    modes: tuple[str, ...] = ("nearest",)

    @classmethod
    def traced_sources(
        cls, name: str, trace: LayerTrace, collated: Collated, sentence: int, word: int
    ) -> list[TracedSource]:
        return sources_of_pool(trace, collated, sentence, word)

    def new_history(
        self, options: ModelOptions, backbone: Backbone, device: torch.device | str
    ) -> SessionPositions | None:
        """A session cache with slots keeps the words of a document instead."""
        if options.mode not in self.modes or options.cache:
            return None
        return SessionPositions(backbone.hidden_size, device)

    def write(self, history: SessionPositions, keys: PairKeys) -> None:
        """All subwords but </s>, because where one segment ends says nothing about where another
        does."""
        words = keys.ids != EOS
        if keys.codes is None:
            history.write(keys.hiddens[words], keys.ids[words])
        else:
            history.write_codes(keys.codes[words], keys.ids[words])

    def collate(
        self, histories: Sequence[SessionPositions | None], device: torch.device | str
    ) -> Recent | None:
        return collate_recent(histories, device)

    def ready(
        self, collated: Collated, backbone: Backbone, mode: str, compiled: bool = True
    ) -> PoolReady | None:
        """compiled: read by compiled code, where that can be."""
        recent: Recent | None = collated.histories.get("nearest")
        has_positions = collated.pairs is not None or recent is not None
        if mode not in self.modes or not has_positions or not collated.reaches:
            return None
        source = _Source(collated.pairs, recent, collated.reaches)
        packed = pool = None
        sentence = torch.arange(len(collated.reaches), device=source.device)
        if compiled and sentence.is_cpu:
            packed = source.packed()
        else:
            pool = pool_of(source.parts, sentence)
        coverage = torch.zeros(len(sentence), source.penalised_positions, device=source.device)
        return PoolReady(source, packed, pool, sentence, coverage)

    def fuse(
        self, step: StepState, hidden: Tensor, ready: PoolReady
    ) -> tuple[Tensor, LayerOutput[PoolReady]]:
        """Nothing is blended into the state. Where something is penalised, what is near counts as
        read; `mix` reads by what counted before."""
        if not ready.is_penalised:
            return hidden, LayerOutput(ready, ready.coverage)
        if ready.packed is not None and can_be_compiled(step.hidden):
            coverage = ready.coverage.clone()
            ready.packed.read(step.hidden, ready.sentence, coverage)
        else:
            nearest = self.search_pool(step.hidden, ready, ready.coverage)
            mass = nearest.logit.sigmoid()[:, None] * nearest.q
            coverage = ready.coverage.scatter_add(1, nearest.places, mass)
        return hidden, LayerOutput(replace(ready, coverage=coverage), ready.coverage)

    def mix(
        self, step: StepState, log_probs: Tensor, reading: LayerOutput[PoolReady]
    ) -> tuple[Tensor, LayerOutput[PoolReady]]:
        """Reads by the raw state, and by what the model says; then mixes the words in, by a share
        that is less where the model is sure of a word."""
        ready, coverage, columns = reading.ready, reading.weights, step.columns
        if ready.packed is not None and can_be_compiled(step.hidden):
            nearest = ready.packed.mix_(
                log_probs,
                step.hidden,
                ready.sentence,
                coverage.clone() if ready.is_penalised else coverage,
                None if columns is None else columns.table,
                SURE,
                FULL,
            )
            return log_probs, _output(ready, nearest)
        nearest = self.search_pool(step.hidden, ready, coverage, (log_probs, columns))
        if can_be_compiled(log_probs) and log_probs.is_contiguous():
            logit = narrow_shares(log_probs, nearest.logit.contiguous(), SURE, FULL)
        else:
            logit = narrowed(nearest.logit, log_probs.amax(-1))
        return super().mix(step, log_probs, _output(ready, nearest._replace(logit=logit)))

    def search_pool(
        self,
        hidden: Tensor,
        ready: PoolReady,
        coverage: Tensor,
        model: tuple[Tensor, Columns | None] | None = None,
    ) -> NearestRead:
        """What compiled code reads of the pool, by torch.

        hidden: (R, d), the states of the step.
        ready: what the rows read.
        coverage: (R, P + C), how much was copied of each position; (R, 0) where nothing is
        penalised.
        model: log p (R, V), and its columns; None where nothing is doubted."""
        pool = ready.laid_out
        distance = self.distances(hidden, pool, coverage)  # (R, P + C)
        tau, temperature, _, doubt = pool.numbers
        if model is not None:
            log_probs, columns = model
            ids = pool.words[0] if columns is None else columns.of_word[pool.words[0]]
            change = pool.certainties - log_probs.gather(1, ids).exp()
            distance = distance + doubt * change.clamp_min(0.0)
        scaled = distance / tau
        closest, places = scaled.topk(min(NEAREST, scaled.shape[1]), largest=False)  # nearest first
        energy = -(distance / temperature).gather(1, places)
        share = (1.0 - closest[:, 0]).clamp(0.0, FULL)
        real = closest.isfinite() & (share > 0)[:, None]
        q = torch.softmax(energy.masked_fill(~real, torch.finfo(energy.dtype).min), -1) * real
        places = torch.where(real, places, places[:, :1])
        words = pool.words[0].gather(1, places)
        logit = torch.where(share > 0, torch.logit(share), -torch.inf)
        return NearestRead(q, words, first_of(words), places, logit)

    def distances(self, hidden: Tensor, pool: Pool, coverage: Tensor) -> Tensor:
        """The distances D (R, P + C), infinite where there is no position.

        hidden: (R, d), the states of the step.
        pool: the positions.
        coverage: (R, P + C), how much was copied of each position; (R, 0) where nothing is
        penalised."""
        view = pool.view
        state = rotate(view.pick(hidden))
        keys = directions(pool.keys[..., :-1]).to(state.dtype)
        distance = 2.0 - 2.0 * view.rows.dot(state, keys)
        if view.mask is not None:
            distance = distance.masked_fill(~view.mask, torch.inf)
        distance = view.put(distance.clamp_min(0.0), torch.inf)
        if coverage.shape[1]:
            distance = distance + pool.numbers[2] * coverage
        return distance


def _output(ready: PoolReady, nearest: NearestRead) -> LayerOutput[PoolReady]:
    words = Words(nearest.words, nearest.first, nearest.logit)
    return LayerOutput(ready, nearest.q, words=words, positions=nearest.places)


def narrowed(logit: Tensor, log_best: Tensor) -> Tensor:
    """The logit of the share where tau is narrowed to tau (1 - SURE p); -inf where nothing is left
    of the share. Both parameters are of one shape.

    logit: the logit of the share.
    log_best: log p, p being the probability that the model by itself gives the word it finds
    likeliest."""
    share = (1.0 - torch.sigmoid(-logit) / (1.0 - SURE * log_best.exp())).clamp(0.0, FULL)
    return torch.where(share > 0, torch.logit(share), -torch.inf)


def pool_of(parts: Sequence[_Part], sentence: Tensor) -> Pool:
    """The positions of all sources side by side.

    parts: the positions of each source.
    sentence: (R,) int64, which sentence each row reads."""
    columns = zip(*(part[:4] for part in parts), strict=True)
    codes, words, mask, numbers = (torch.cat(column, 1) for column in columns)
    return Pool(
        keys=codes,
        ids=words,
        previous_ids=torch.full_like(words, BOS),
        mask=mask,
        first=words,
        values=numbers,
        worth=None,
        sentence=sentence,
    )


def _of_pairs(pairs: Pairs | None, reaches: Sequence[SentenceReach]) -> _Part | None:
    if pairs is None:
        return None
    rows = [torch.tensor([each.numbers for each in reach.pairs]).view(-1, 4) for reach in reaches]
    values = pad_sequence(rows, batch_first=True, padding_value=1.0).to(pairs.ids.device)
    numbers = values.gather(1, pairs.pair[..., None].expand(*pairs.pair.shape, 4))
    codes = pairs.codes
    if codes is None:
        unknown = torch.zeros_like(pairs.ids).flatten()
        codes = codes_of(pairs.hiddens.flatten(0, 1), unknown).view(*pairs.ids.shape, -1)
    return _Part(codes, pairs.ids, pairs.mask, numbers)


def _of_session(recent: Recent | None, reaches: Sequence[SentenceReach]) -> _Part | None:
    if recent is None:
        return None
    values = torch.tensor([reach.session.numbers for reach in reaches], device=recent.ids.device)
    numbers = values[:, None].expand(*recent.ids.shape, 4)
    return _Part(recent.codes, recent.ids, recent.mask, numbers, recent.stretches)
