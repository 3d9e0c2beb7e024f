"""Finds the numbers by which nearest positions are read, by how likely they make held-out
references.

The references of segments that are held out of a memory are forced through the model. Then it is
known, for every position, which word the reference goes on with, how likely the model finds this
word, and how far the nearest positions of every source are. So the loss of any numbers can be
computed at once. The numbers of one source are chosen first and then those of the next, twice over.
A session is simulated: every segment finds those before it in its stretch confirmed.

A likely reference is not yet a good translation. What is found here are candidates, and
`tmnmt.eval.calibrate` translates with them.

S: segments held out   T: subwords of the longest reference   K: nearest positions of one source"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import cycle, product
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from tmnmt.calibration.held_out import Rest, Stretch
from tmnmt.compiled.kernels import NEAREST
from tmnmt.config.options import Search
from tmnmt.engine.lookup import copyable, without_end
from tmnmt.engine.retrieve import Retriever
from tmnmt.errors import DataError
from tmnmt.index.base import FolderIndex, IndexQuery, best_of
from tmnmt.index.embedded.delta import Delta
from tmnmt.index.embedded.prepared import PreparedQuery
from tmnmt.index.pairs import distinct
from tmnmt.keys.compute import header_of, longest, precomputed
from tmnmt.keys.layout import DIRECTIONS
from tmnmt.keys.nibbles import directions, rotate
from tmnmt.keys.pair import CERTAIN
from tmnmt.keys.pair_keys import PairKeys, PairKeyStore, encode_pair, force_all
from tmnmt.layers.mixing import mix_gold
from tmnmt.layers.nearest import FULL, MOST_POSITIONS, narrowed
from tmnmt.layers.reach import LEAST_SCORE, STANDARD, Reach, Reaches
from tmnmt.models.base import Backbone, shift
from tmnmt.models.folder import Model
from tmnmt.models.shortlist import Shortlist
from tmnmt.segments import Match
from tmnmt.text import normalise
from tmnmt.vocab import BOS, Vocabulary

CANDIDATES = 3  # numbers that translations are made with, beside the standard ones
MIN_SEGMENTS = 10  # segments that can be scored: fewer say nothing
TAUS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.2, 1.6)
TEMPERATURES = (0.05, 0.1, 0.2, 0.3)
# numbers that are added to those of a source, where they pay
ADDED = {"penalty": (0.1, 0.2, 0.4), "doubt": (0.05, 0.1, 0.2)}
PAYS = 0.998  # of the loss: one that leaves more of it is left out
CONSIDERED = 4 * NEAREST  # K: with a penalty others can become the nearest
ROUNDS = 2
# of the pairs that are looked up for a segment by `_Sample._read`
ARE_FRAGMENTS = False, True, False, True
KINDS = len(ARE_FRAGMENTS)


class Nearby(NamedTuple):
    """The positions of one source that are nearest to every subword of the references."""

    distance: Tensor  # (S, T, K) over the score of its pair, infinite where there is none
    right: Tensor  # (S, T, K) bool: whether the reference goes on with its word
    place: Tensor  # (S, T, K) int64 among the positions of its source
    change: Tensor  # (S, T, K) how much less likely the model finds its word now than at it
    positions: int  # of the source, at most

    def step(self, t: int) -> Nearby:
        """The positions that are nearest to one subword of every reference, each tensor (S, K).

        t: the number of the subword, from 0."""
        distance, right, place, change, positions = self
        return Nearby(distance[:, t], right[:, t], place[:, t], change[:, t], positions)


@dataclass(frozen=True)
class Forced:
    """References as the model reads them.

    log_gen: (S, T) the log probability that the model itself gives to each subword.
    log_best: (S, T) the log probability that it gives to the likeliest subword there.
    real: (S, T) bool, whether a reference has a subword there.
    sources: the nearest positions of every source, by its name."""

    log_gen: Tensor
    log_best: Tensor
    real: Tensor
    sources: Mapping[str, Nearby]


@dataclass(frozen=True)
class Likelihoods:
    """What forced references say.

    segments: how many segments were scored.
    subwords: how many subwords they have.
    model: the loss of the model alone, in nats a subword.
    standard: the loss with the standard numbers.
    candidates: numbers that make the references likely, the likeliest first, each with its loss
    where the session is simulated."""

    segments: int
    subwords: int
    model: float
    standard: float
    candidates: Sequence[tuple[Reaches, float]]


def likelihoods(
    model: Model,
    index: FolderIndex,
    stretches: Sequence[Stretch],
    device: str = "cpu",
    progress: Callable[[int], None] = lambda count: None,
) -> Likelihoods:
    """Forces references through a model, and finds the numbers that make them likely.

    model: the model.
    index: the index of the memory that the stretches are held out of.
    stretches: the segments that are held out.
    device: what torch computes on.
    progress: a function that is called with the number of segments that are done.

    Raises DataError where too few of the segments can be scored."""
    sample = _Sample(model, index, device)
    conditions = sample.forced(stretches, progress)
    confirmed = conditions[-1]
    scored = int(confirmed.real.any(1).sum())
    if scored < MIN_SEGMENTS:
        raise DataError(
            f"{index.folder}: {scored} segments can be held out and scored; at least "
            f"{MIN_SEGMENTS} are needed. Without a calibration standard numbers hold"
        )
    return Likelihoods(
        segments=scored,
        subwords=int(confirmed.real.sum()),
        model=loss(replace(confirmed, sources={}), STANDARD),
        standard=loss(confirmed, STANDARD),
        candidates=[(reaches, loss(confirmed, reaches)) for reaches in candidates(conditions)],
    )


def candidates(conditions: Sequence[Forced], count: int = CANDIDATES) -> list[Reaches]:
    """Numbers by which the references are likely: first the likeliest, and then the likeliest with
    other temperatures, each temperature the same for all sources. The losses of references prefer a
    low temperature even where translations do not.

    conditions: the references, with and without a session.
    count: how many candidates there are at most."""
    best = choose(conditions)
    alternatives = [
        _of_temperature(conditions, best, temperature)
        for temperature in TEMPERATURES
        if temperature != best.pairs.temperature
    ]
    alternatives.sort(key=lambda reaches: _total(conditions, reaches))
    return [best, *alternatives][:count]


def _of_temperature(conditions: Sequence[Forced], best: Reaches, temperature: float) -> Reaches:
    """The likeliest numbers of one temperature for all sources, found from `best` on."""
    reaches = Reaches(
        **{
            source.name: replace(getattr(best, source.name), temperature=temperature, penalty=0.0)
            for source in fields(Reaches)
        }
    )
    for source in fields(Reaches):
        grid = [replace(getattr(reaches, source.name), tau=tau) for tau in TAUS]
        reaches = _best(conditions, reaches, source.name, grid)
    return reaches


def choose(conditions: Sequence[Forced]) -> Reaches:
    """The numbers of every source by which the references are likeliest over all conditions. Those
    of a source that has nothing for any reference stay as they are by default.

    conditions: the references, with and without a session."""
    reaches = STANDARD
    for _ in range(ROUNDS):
        for source in fields(Reaches):
            grid = [Reach(*numbers) for numbers in product(TAUS, TEMPERATURES)]
            reaches = _best(conditions, reaches, source.name, grid)
    for source in fields(Reaches):
        for name, values in ADDED.items():
            reach: Reach = getattr(reaches, source.name)
            alternatives = [replace(reach, **{name: value}) for value in values]
            alternative = _best(conditions, reaches, source.name, alternatives)
            if _total(conditions, alternative) < PAYS * _total(conditions, reaches):
                reaches = alternative
    return reaches


def loss(forced: Forced, reaches: Reaches) -> float:
    """The loss of the references, in nats a subword, by the model and the nearest positions
    together.

    forced: the references.
    reaches: the numbers by which the positions are read."""
    log_p = mixed(forced, reaches)
    return -float(log_p[forced.real].mean())


def mixed(forced: Forced, reaches: Reaches) -> Tensor:
    """The log probability (S, T) of every subword of the references, as `NearestPositions` would
    give it.

    forced: the references.
    reaches: the numbers by which the positions are read."""
    numbers: list[Reach] = [getattr(reaches, name) for name in forced.sources]
    nearby = [*forced.sources.values()]
    if not nearby:
        return forced.log_gen
    if not any(reach.penalty for reach in numbers):
        distances = [*map(_doubted, nearby, numbers)]
        return _read(forced.log_gen, forced.log_best, nearby, distances, numbers)[0]
    rows, steps = forced.log_gen.shape
    coverage = [torch.zeros(rows, source.positions) for source in nearby]
    columns = []
    for t in range(steps):
        now = [source.step(t) for source in nearby]
        distances = [
            source.distance + reach.penalty * covered.gather(1, source.place)
            for source, reach, covered in zip(now, numbers, coverage, strict=True)
        ]
        model = forced.log_gen[:, t], forced.log_best[:, t]
        log_p, copied = _read(*model, now, distances, numbers)
        if any(reach.doubt for reach in numbers):  # which coverage does not see
            doubted = [
                source._replace(distance=distance)
                for source, distance in zip(now, distances, strict=True)
            ]
            distances = [*map(_doubted, doubted, numbers)]
            log_p, _ = _read(*model, now, distances, numbers)
        for covered, source, mass in zip(coverage, now, copied, strict=True):
            covered.scatter_add_(1, source.place, mass)
        columns.append(log_p)
    return torch.stack(columns, 1)


def _doubted(source: Nearby, reach: Reach) -> Tensor:
    """The distances (...) with what the model has changed its mind about."""
    return source.distance + reach.doubt * source.change


def _read(
    log_gen: Tensor,
    log_best: Tensor,
    nearby: Sequence[Nearby],
    distances: Sequence[Tensor],
    reaches: Sequence[Reach],
) -> tuple[Tensor, list[Tensor]]:
    """The log probabilities (...), and what coverage counts of every position (..., K) of each
    source."""
    pairs = [*zip(distances, reaches, strict=True)]
    scaled = torch.cat([distance / reach.tau for distance, reach in pairs], -1)
    energy = torch.cat([-distance / reach.temperature for distance, reach in pairs], -1)
    right = torch.cat([source.right for source in nearby], -1)
    closest, positions = scaled.topk(min(NEAREST, scaled.shape[-1]), largest=False)
    q = torch.softmax(energy.gather(-1, positions), -1).nan_to_num(0.0)  # NaN: there is no position
    share = (1.0 - closest[..., 0]).clamp(0.0, FULL)
    p_copy = (q * right.gather(-1, positions)).sum(-1)
    copied = torch.zeros_like(scaled).scatter(-1, positions, share[..., None] * q)
    logit = torch.where(share > 0, torch.logit(share), -torch.inf)
    sizes = [distance.shape[-1] for distance in distances]
    log_p = mix_gold(log_gen, p_copy, narrowed(logit, log_best))
    return log_p, [*torch.split_with_sizes(copied, sizes, -1)]


def _best(
    conditions: Sequence[Forced], reaches: Reaches, source: str, grid: Sequence[Reach]
) -> Reaches:
    """The likeliest of the given numbers and those in which a source has one of the grid instead;
    the given ones where none is likelier."""
    candidates = [reaches, *(replace(reaches, **{source: candidate}) for candidate in grid)]
    return min(candidates, key=lambda candidate: _total(conditions, candidate))


def _total(conditions: Sequence[Forced], reaches: Reaches) -> float:
    return sum(loss(forced, reaches) for forced in conditions)


class _Sample:
    """What is forced through one model, with what one memory has for it."""

    def __init__(self, model: Model, index: FolderIndex, device: str) -> None:
        header = header_of(model, DIRECTIONS)
        self.index, self.device, self.vocab = index, device, model.vocab
        self.longest, self.position_limit = longest(model), header.max_subwords
        self.backbone: Backbone = model.decoding
        files = precomputed(index.folder, header)
        self.keys = PairKeyStore(
            self.backbone,
            self.vocab,
            self.position_limit,
            device=device,
            precomputed=[files] if files is not None else [],
            directions=True,
            model=header,
            forcing=model.forcing,
            shortlist=Shortlist.by_default(model),
        )

    def forced(self, stretches: Sequence[Stretch], progress: Callable[[int], None]) -> list[Forced]:
        """The references of all stretches in two conditions: beside the memory alone, and beside
        what was confirmed before them in their stretch, too."""
        log_p = list[tuple[Tensor, Tensor]]()
        nearby: list[list[Nearby]] = [[] for _ in range(KINDS + 1)]
        for stretch in stretches:
            reference_keys = self._reference_keys(stretch)
            lookups = [matches for lookup in self._read(stretch) for matches in lookup]
            scores = [
                [1.0 if are_fragments else match.score for match in matches]
                for are_fragments, matches in zip(cycle(ARE_FRAGMENTS), lookups, strict=False)
            ]
            keys = self._copyable(lookups)
            previous = list[PairKeys]()
            for index, row in enumerate(reference_keys):
                if row is None:
                    continue
                log_probs = self._log_probs(row)
                log_gen = log_probs.gather(1, row.ids[:, None])[:, 0]
                log_p.append((log_gen.cpu(), log_probs.amax(-1).cpu()))
                for kind in range(KINDS):
                    number = index * KINDS + kind
                    nearby[kind].append(_nearby(row, log_probs, keys[number], scores[number]))
                nearby[-1].append(_nearby(row, log_probs, previous, [1.0] * len(previous)))
                previous.append(without_end(row.as_codes(log_gen.exp())))
            progress(len(stretch.segments))
        if not log_p:
            empty = torch.zeros(0, 1)
            return [Forced(empty, empty, empty.bool(), {})]
        real = _padded([torch.ones(len(row), dtype=torch.bool) for row, _ in log_p], False)
        log_gen, log_best = (_padded(rows, 0.0) for rows in zip(*log_p, strict=True))
        cold, cold_fragments, warm, warm_fragments, session = map(_stacked, nearby)
        alone = {"pairs": cold, "fragments": cold_fragments}
        confirmed = {"pairs": warm, "fragments": warm_fragments, "session": session}
        return [Forced(log_gen, log_best, real, sources) for sources in (alone, confirmed)]

    def _reference_keys(self, stretch: Stretch) -> list[PairKeys | None]:
        """The keys of a stretch's references, with None for those that are not scored."""
        coded = [
            encode_pair((s.src, s.tgt), self.vocab, self.position_limit) for s in stretch.segments
        ]
        scored = are_scored(stretch, self.vocab, self.longest)
        rows = [pair for pair, fits in zip(coded, scored, strict=True) if fits]
        keys = iter(force_all(self.backbone, rows, self.device))
        return [next(keys) if fits else None for fits in scored]

    def _read(self, stretch: Stretch) -> list[tuple[Sequence[Match], ...]]:
        """The pairs that are read for every segment: its matches in the memory, with its fragments
        where it has none, and then its matches in memory and session, with its fragments where it
        has none of those."""
        search = Search()
        retriever = Retriever([Rest(self.index, stretch)], search.top_k, search.threshold)
        texts = [segment.src for segment in stretch.segments]
        lookups = list[tuple[Sequence[Match], ...]]()
        confirmed = Delta()
        for segment, matches in zip(stretch.segments, retriever.search(texts), strict=True):
            query = PreparedQuery(IndexQuery(segment.src))
            session_matches = confirmed.search(query, retriever.min_score(segment.src))
            ranked = best_of([*matches, *session_matches], len(matches) + len(session_matches))
            merged = distinct(ranked)[: search.top_k]
            fragments = () if matches else retriever.fragments(segment.src, search.fragments)
            lookups.append((matches, fragments, merged, () if merged else fragments))
            confirmed.add(segment)
        return lookups

    def _copyable(self, match_lists: Sequence[Sequence[Match]]) -> list[list[PairKeys]]:
        """The keys of what `_read` gives, as they are read when texts are translated."""
        texts = [[(m.segment.src, m.segment.tgt) for m in matches] for matches in match_lists]
        segments = {(m.segment.src, m.segment.tgt): m.segment for of in match_lists for m in of}
        keys_of_all = self.keys.keys_of(texts, segments, [self.index])
        return [
            copyable(() if are_fragments else matches, keys)
            for are_fragments, matches, keys in zip(
                cycle(ARE_FRAGMENTS), match_lists, keys_of_all, strict=False
            )
        ]

    def _log_probs(self, row: PairKeys) -> Tensor:
        """The log probabilities (T, V) that the model itself gives all subwords along a
        reference."""
        previous = shift(row.ids[None], BOS)[0]
        with torch.inference_mode():
            return self.backbone.log_readout(previous, row.hiddens, row.contexts).float()


def are_scored(stretch: Stretch, vocab: Vocabulary, max_subwords: int) -> list[bool]:
    """Says of every segment of a stretch whether it is scored. A segment is left out where a side
    has too many subwords, and where it was confirmed before, because then it would be taken as it
    stands.

    stretch: the segments.
    vocab: the vocabulary of the model.
    max_subwords: how many subwords a side may have."""
    seen_sources = set[str]()
    scored = []
    for segment in stretch.segments:
        source = normalise(segment.src)
        sides = encode_pair((segment.src, segment.tgt), vocab, max_subwords + 1)
        fits = max(map(len, sides)) <= max_subwords + 1
        scored.append(fits and bool(source) and source not in seen_sources)
        seen_sources.add(source)
    return scored


def _nearby(
    row: PairKeys, log_probs: Tensor, pairs: Sequence[PairKeys], scores: Sequence[float]
) -> Nearby:
    """The positions of pairs, of these scores, that are nearest to every subword of a reference,
    (T, K) each. log_probs: (T, V), what the model gives all subwords there."""
    steps = len(row.ids)
    if not pairs:
        infinities = torch.full((steps, 1), torch.inf)
        zeros = torch.zeros(steps, 1, dtype=torch.int64)
        return Nearby(infinities, zeros.bool(), zeros, zeros.float(), 1)
    codes = torch.cat([_codes(pair) for pair in pairs])[-MOST_POSITIONS:]
    ids = torch.cat([pair.ids for pair in pairs])[-MOST_POSITIONS:]
    lengths = torch.tensor([len(pair.ids) for pair in pairs])
    score = torch.tensor(scores).repeat_interleave(lengths)[-MOST_POSITIONS:].to(ids.device)
    similar = rotate(row.hiddens.float()) @ directions(codes[:, :-1]).T
    distance = (2.0 - 2.0 * similar).clamp_min(0.0) / score.clamp_min(LEAST_SCORE)
    nearest, place = distance.topk(min(CONSIDERED, len(ids)), largest=False)
    right = ids[place] == row.ids[:, None]
    certainty = codes[:, -1].float()[place] / CERTAIN
    change = (certainty - log_probs.gather(1, ids[place]).exp()).clamp_min(0.0)
    return Nearby(nearest.cpu(), right.cpu(), place.cpu(), change.cpu(), len(ids))


def _codes(keys: PairKeys) -> Tensor:
    """The codes (T, w + 1) of a pair."""
    if keys.codes is None:
        raise ValueError("keys without codes")
    return keys.codes


def _stacked(rows: Sequence[Nearby]) -> Nearby:
    """The segments side by side, padded."""
    width = max(row.distance.shape[1] for row in rows)

    def pad(parts: Sequence[Tensor], filling: float) -> Tensor:
        widened = [
            torch.cat([part, part.new_full((len(part), width - part.shape[1]), filling)], 1)
            for part in parts
        ]
        return _padded(widened, filling)

    return Nearby(
        pad([row.distance for row in rows], torch.inf),
        pad([row.right for row in rows], False),
        pad([row.place for row in rows], 0),
        pad([row.change for row in rows], 0.0),
        max(row.positions for row in rows),
    )


def _padded(rows: Sequence[Tensor], filling: float) -> Tensor:
    return pad_sequence([*rows], batch_first=True, padding_value=filling)
