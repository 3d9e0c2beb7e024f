"""Beam search over any backbone with any memory layers, in steps that can be tested alone.

    n: sentences still live    b: beam    R = n b: rows    V: vocabulary
    W = 2 b: candidates kept of a sentence at every step

A step extends every row, keeps the W best candidates of each sentence (`continuations`), takes
those among the first b that end in </s> as finished (`Finished.take`), and lets the b best others
live on. A sentence leaves the batch when none that lives can still win (`_decided`), or at its
maximal length. Contexts, hidden states and traces are gathered at the end along the back-pointers
of the winner (`_WalkBack`), never decoded a second time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from tmnmt.compiled import kernels
from tmnmt.layers.combine import LayerInputs, MemoryLayers, Stepped
from tmnmt.layers.trace import Trace
from tmnmt.models.base import Backbone, Encoded, StepRecord
from tmnmt.vocab import BOS, EOS, PAD, UNK

NEVER = torch.tensor([PAD, BOS, UNK])  # what no translation holds
BLOCK = 64  # words compared by their maximum alone before any is looked at


@dataclass(frozen=True)
class SearchSettings:
    """How a search decodes.

    beam: how many hypotheses of a sentence are kept at every step.
    length_penalty: a score is log probability / length ** length_penalty, and the length counts
    </s>.
    keep_states: whether the result has its contexts and hidden states, which the session cache
    needs.
    explain: whether the result has its probabilities and what the layers did.
    n_best: how many of the best finished hypotheses are given. The search never finds more than the
    beam is wide."""

    beam: int = 5
    # score = log probability / length ** length_penalty, length counting </s>
    length_penalty: float = 1.0
    keep_states: bool = False
    explain: bool = False
    n_best: int = 1


@dataclass(frozen=True)
class Hypothesis:
    """The best translation that a search has found.

    ids: its subwords, without </s>.
    score: its log probability over its length to the power of the option `length_penalty`.
    log_prob: its log probability in nats, </s> included where it is finished.
    finished: whether it ended by itself; otherwise it was cut at the maximal length.
    contexts: (T, l), the c_t that preceded each of T ids; None where they are not kept.
    hiddens: (T, d), the s_t that preceded each id; None where they are not kept.
    probabilities: p of each id, where an explanation was asked for.
    traces: what the layers did for each id, where an explanation was asked for.
    original: what was found before terms were put into it; None where none were.
    alternatives: the next best hypotheses, where more than one was asked for, best first.
    rows: for each id, where its step was read among those of all sentences.
    evidence: what its steps have noted, where it lacks terms."""

    ids: tuple[int, ...]
    score: float
    log_prob: float
    finished: bool
    contexts: Tensor | None = None
    hiddens: Tensor | None = None
    probabilities: tuple[float, ...] = ()
    traces: tuple[Trace, ...] = ()
    original: Hypothesis | None = None
    alternatives: tuple[Hypothesis, ...] = ()
    rows: tuple[int, ...] = ()
    evidence: DecoderTrace | None = None

    @property
    def per_subword(self) -> float:
        """The log probability, in nats, divided by the number of subwords. Where terms were put
        into the translation, this is the value of the translation before that, because the model
        would not have chosen the terms."""
        if self.original is not None:
            return self.original.per_subword
        return self.log_prob / max(len(self.ids) + self.finished, 1)


class DecoderTrace(NamedTuple):
    """What a translation was found by, for whoever goes on from it."""

    encoded: Encoded  # its source alone, before anything of its document is read
    notes: StepRecord | None  # of its T steps; None where the backbone notes nothing


@dataclass(frozen=True)
class SearchStart:
    """Where a search begins: behind subwords that are decided, of which every sentence has as many.
    All tensors have N rows.

    prev: (N,), the last of these subwords, or <s>.
    state: the state of the backbone behind them.
    encoded: the sources, as `Backbone.for_beam` gives them.
    memory: what the memory layers read.
    log_prob: the log probability of what is decided.
    length: how many subwords are decided."""

    prev: Tensor
    state: Any
    encoded: Encoded
    memory: LayerInputs
    log_prob: float = 0.0
    length: int = 0

    @classmethod
    def at_start(cls, backbone: Backbone, encoded: Encoded, memory: LayerInputs) -> SearchStart:
        """The start of a search in which nothing is decided.

        backbone: the model that decodes.
        encoded: the encoded sources, in N rows.
        memory: what the layers read for them, in N rows, or empty."""
        prev = torch.full(encoded.mask.shape[:1], BOS, device=encoded.mask.device)
        return cls(prev, backbone.start(encoded), backbone.for_beam(encoded), memory)


class Leader(Protocol):
    """What leads a search, so that the translations hold what they have to hold.

    compares_all_words: whether it takes the columns of log p for the numbers of words."""

    compares_all_words: bool

    def bar(self, live: Live, step: Stepped, position: int) -> None:
        """Leaves in log p (R, V) only what may come at a step.

        live: the rows that are still decoded.
        step: what the step gave; its log p are changed in place.
        position: the number of the step, from 0."""

    def advance(self, rows: Tensor, tokens: Tensor) -> None:
        """Follows the rows of the beam.

        rows: (R',) which row each of the next rows was.
        tokens: (R',) the subword that each of them has got."""


@dataclass
class Live:
    """The rows that are still decoded: b consecutive rows a sentence.

    sentence: (n,), which of the batch's sentences they are.
    max_len: (n,), the longest output, </s> included.
    shortest: the least of `max_len`.
    scores: (n, b), the log probability so far; -inf where there is no hypothesis.
    prev: (R,), the last subword of each row.
    state: the state of the backbone, of R rows.
    encoded: n rows of the sources, or R where the backbone wants one for each.
    memory: what the memory layers read."""

    sentence: Tensor
    max_len: Tensor
    shortest: int
    scores: Tensor
    prev: Tensor
    state: Any
    encoded: Encoded
    memory: LayerInputs


@dataclass
class Candidates:
    """The W best extensions of every live sentence, best first.

    scores: (n, W), their log probabilities.
    parents: (n, W), the row that is extended, from 0 to R - 1.
    columns: (n, W), the column of the next subword in log p."""

    scores: Tensor
    parents: Tensor
    columns: Tensor


@dataclass
class Step:
    """What a step leaves for the way back. There are C = n W candidates, R rows before the step and
    R' after it."""

    parents: Tensor  # (C,)
    tokens: Tensor  # (C,)
    live: Tensor  # (R',) the candidate each next row came from
    contexts: Tensor | None  # (R, l)
    hiddens: Tensor | None  # (R, d)
    probabilities: Tensor | None  # (C,)
    trace: Trace | None  # of the candidates


class Finished:
    """The k best hypotheses of every sentence so far, the best first: their scores, and the step
    and the candidate at which each ended. All tensors are (N, k), except `count` (N,), which counts
    all hypotheses that were found. A score of -inf is no hypothesis."""

    def __init__(self, sentences: int, k: int, device: torch.device) -> None:
        """sentences: N, the sentences of the batch.
        k: how many hypotheses of each are kept.
        device: where the tensors lie."""
        shape = sentences, k
        self.score = torch.full(shape, -torch.inf, device=device)
        self.log_prob = torch.full(shape, -torch.inf, device=device)
        self.step = torch.zeros(shape, dtype=torch.long, device=device)
        self.candidate = torch.zeros(shape, dtype=torch.long, device=device)
        self.count = torch.zeros(sentences, dtype=torch.long, device=device)
        self.ended = torch.zeros(shape, dtype=torch.bool, device=device)
        self.empty = True

    def take(
        self,
        live: Live,
        continued: Candidates,
        ends: Tensor,
        position: int,
        length_penalty: float,
        eos: bool,
    ) -> None:
        """Notes candidates as hypotheses that end at a step. Of equal scores the earlier one stays
        first.

        live: the rows that are still decoded.
        continued: the candidates of the step.
        ends: (n, W) bool, which of the candidates end here.
        position: the number of the step, from 0.
        length_penalty: the power of the length by which a log probability is divided.
        eos: whether they end in </s>; otherwise they were cut at the maximal length."""
        self.empty = False
        log_prob = continued.scores.masked_fill(~ends, -torch.inf)
        sentences, k = live.sentence, self.score.shape[1]
        # (n, k + W)
        scores = torch.cat([self.score[sentences], log_prob / (position + 1) ** length_penalty], 1)
        self.score[sentences], best = (
            part[:, :k] for part in scores.sort(dim=1, descending=True, stable=True)
        )
        candidates = torch.arange(ends.numel(), device=ends.device).view_as(ends)
        for stored, new in (
            (self.log_prob, log_prob),
            (self.step, torch.full_like(candidates, position)),
            (self.candidate, candidates),
            (self.ended, torch.full_like(ends, eos)),
        ):
            stored[sentences] = torch.cat([stored[sentences], new], 1).gather(1, best)
        self.count[sentences] += (ends & continued.scores.isfinite()).sum(1)


def beam_search(
    backbone: Backbone,
    layers: MemoryLayers | None,
    encoded: Encoded,
    memory: LayerInputs,
    max_len: Sequence[int],
    settings: SearchSettings,
    lead: Leader | None = None,
) -> list[Hypothesis]:
    """Searches for the best hypothesis of every sentence. <s>, padding and unk are never produced,
    and neither is a translation without a subword. Where all others run into the longest length, as
    one that repeats itself does, a translation without a subword would be the only one that has
    ended.

    backbone: the model that decodes.
    layers: the memory layers; None for the plain model.
    encoded: the encoded sources, in N rows.
    memory: what the layers read, with one row a sentence; or empty.
    max_len: (N,) the longest output that is allowed, in subwords, </s> included; at least 1.
    settings: how the search decodes.
    lead: what leads the search; None where nothing does."""
    with torch.inference_mode():
        beginning = SearchStart.at_start(backbone, encoded, memory)
        return search_on(backbone, layers, beginning, max_len, settings, lead)


def search_on(
    backbone: Backbone,
    layers: MemoryLayers | None,
    beginning: SearchStart,
    max_len: Sequence[int],
    settings: SearchSettings,
    lead: Leader | None = None,
) -> list[Hypothesis]:
    """Searches as `beam_search` does, but from a start behind decided subwords. The hypotheses hold
    what comes behind these; their scores are of the whole.

    backbone: the model that decodes.
    layers: the memory layers; None for the plain model.
    beginning: the start, in N rows.
    max_len: (N,) the longest output that is allowed, in subwords, of the whole, </s> included.
    settings: how the search decodes.
    lead: what leads the search; None where nothing does."""
    with torch.inference_mode():
        layers = MemoryLayers() if layers is None else layers
        live = _begin(backbone, beginning, max_len, settings.beam)
        finished = Finished(len(max_len), settings.n_best, beginning.prev.device)
        history: list[Step] = []
        names = backbone.columns
        if lead is not None and lead.compares_all_words and names is not None:
            raise ValueError("a search that is led compares all words")
        while live.sentence.numel():
            stepped = predict(backbone, layers, live, settings.explain)
            log_probs, trace = stepped.log_probs, stepped.trace
            if not beginning.length and not history:
                log_probs[:, EOS] = -torch.inf
            if lead is not None:
                lead.bar(live, stepped, len(history))
            candidates = continuations(live.scores, log_probs, 2 * settings.beam)
            parents, columns = candidates.parents.flatten(), candidates.columns.flatten()
            tokens = columns if names is None else names.words.index_select(0, columns)
            step = Step(
                parents=parents,
                tokens=tokens,
                live=tokens.new_empty(0),
                contexts=stepped.step.context if settings.keep_states else None,
                hiddens=stepped.step.hidden if settings.keep_states else None,
                probabilities=log_probs[parents, columns].exp() if settings.explain else None,
                trace=trace.select(parents, columns) if trace is not None else None,
            )
            live = _survivors(
                backbone,
                live,
                stepped.state,
                stepped.ready,
                candidates,
                finished,
                step,
                beginning.length + len(history),
                settings,
            )
            if lead is not None:
                lead.advance(parents[step.live], tokens[step.live])
            history.append(step)
        return _results(history, finished, beginning.length)


def predict(backbone: Backbone, layers: MemoryLayers, live: Live, explain: bool) -> Stepped:
    """One step of all rows, in which what can never be produced has a log probability of -inf.

    backbone: the model that decodes.
    layers: the memory layers.
    live: the rows, R in all.
    explain: whether the step says what the layers did."""
    stepped = layers.step(backbone, live.prev, live.state, live.encoded, live.memory, explain)
    never = NEVER.to(stepped.log_probs.device)
    stepped.log_probs.index_fill_(1, never, -torch.inf)
    return stepped


def continuations(scores: Tensor, log_probs: Tensor, width: int) -> Candidates:
    """The best extensions of each sentence among all b V of them, each as a tensor (n, width).

    scores: (n, b) fp32, the log probabilities of the hypotheses so far.
    log_probs: (R, V) the log probabilities of the next subword, for R = n b rows.
    width: how many extensions of a sentence are kept.

    Raises ValueError for scores that are not in fp32, or that have other rows."""
    if not log_probs.is_cpu or log_probs.dtype != torch.float32:
        return _sorted_out(scores, log_probs, width)
    return Candidates(*kernels.best_words(scores.contiguous(), log_probs.contiguous(), width))


def _sorted_out(scores: Tensor, log_probs: Tensor, width: int) -> Candidates:
    """The same extensions, computed by torch on any device. The result is exact: the best `width`
    words lie in the `width` blocks with the greatest maxima, so only these blocks are searched."""
    (n, beam), last = scores.shape, log_probs.shape[1] - 1
    padding = -log_probs.shape[1] % BLOCK
    if padding:
        log_probs = F.pad(log_probs, (0, padding), value=-torch.inf)
    blocks = log_probs.view(n, -1, BLOCK)  # (n, b V / BLOCK, BLOCK)
    per_row = blocks.shape[1] // beam
    heads = blocks.amax(-1).view(n, beam, per_row) + scores[..., None]
    best_blocks = heads.flatten(1).topk(min(width, beam * per_row)).indices  # (n, <= width)
    words = (
        blocks.gather(1, best_blocks[..., None].expand(-1, -1, BLOCK))
        + scores.gather(1, best_blocks // per_row)[..., None]
    )
    best, positions = words.flatten(1).topk(width)
    word = (
        best_blocks.gather(1, positions // BLOCK) * BLOCK + positions % BLOCK
    )  # counted through the rows
    size = per_row * BLOCK
    row = word // size + _starts(n, beam, scores.device)
    word %= size
    if padding:
        word.clamp_max_(last)  # beyond it where nothing is left
    return Candidates(best, row, word)


@lru_cache(maxsize=256)
def _starts(n: int, size: int, device: torch.device) -> Tensor:
    """Where each of n groups of `size` begins: (n, 1)."""
    return torch.arange(n, device=device)[:, None] * size


@lru_cache(maxsize=256)
def _first(n: int, count: int, device: torch.device) -> Tensor:
    """The first `count` numbers for each of n sentences: (n, each)."""
    return torch.arange(count, device=device).repeat(n, 1)


@lru_cache(maxsize=256)
def _firsts(n: int, count: int, width: int, device: torch.device) -> Tensor:
    """Which of n times `width` are the first `count` of their sentence: (n each,)."""
    return (_first(n, count, device) + _starts(n, width, device)).flatten()


def _begin(backbone: Backbone, beginning: SearchStart, max_len: Sequence[int], beam: int) -> Live:
    n, device = len(max_len), beginning.prev.device
    sentence = torch.arange(n, device=device)
    rows = sentence.repeat_interleave(beam)
    scores = torch.full((n, beam), -torch.inf, device=device)
    # all rows of a sentence are the same at first: one of them may be extended
    scores[:, 0] = beginning.log_prob
    state, encoded = backbone.reordered(beginning.state, rows), beginning.encoded
    if not backbone.shares_encoded:
        encoded = encoded.rows(rows)
    limits = torch.tensor(max_len, device=device)
    prev = beginning.prev.index_select(0, rows)
    memory = beginning.memory.rows(rows)
    return Live(sentence, limits, min(max_len, default=0), scores, prev, state, encoded, memory)


def _survivors(
    backbone: Backbone,
    live: Live,
    state: Any,
    memory: LayerInputs,
    continued: Candidates,
    finished: Finished,
    step: Step,
    position: int,
    settings: SearchSettings,
) -> Live:
    """Note what is finished and move on to the rows that live; writes their back-pointers to
    `step.live`."""
    beam, (n, width) = settings.beam, continued.scores.shape
    ends = continued.columns == EOS  # special words have their own columns
    if ends.any():
        order = ends.long().argsort(dim=1, stable=True)[:, :beam]  # (n, b) the best that go on
        ends[:, beam:] = False  # an end that is not among the b best is no hypothesis
        finished.take(live, continued, ends, position, settings.length_penalty, eos=True)
        scores = continued.scores.gather(1, order)
        step.live = (order + _starts(n, width, order.device)).flatten()
    else:
        order = _first(n, beam, ends.device)
        scores = continued.scores[:, :beam].contiguous()
        step.live = _firsts(n, beam, width, ends.device)
    leaving = _leaving(live, continued, order, scores[:, 0], finished, position, settings)
    encoded, remaining = live.encoded, (live.sentence, live.max_len, live.shortest, scores)
    if leaving is None or not leaving.any():
        rows = step.parents.index_select(0, step.live)
        memory = memory.reordered(rows)
    else:
        keep = (~leaving).nonzero()[:, 0]
        step.live = step.live.view(n, beam)[keep].flatten()
        rows = step.parents.index_select(0, step.live)
        encoded, memory = _keep_encoded(encoded, keep, beam, n), memory.rows(rows)
        limits = live.max_len[keep]
        shortest = int(limits.min()) if len(limits) else 0
        remaining = live.sentence[keep], limits, shortest, scores[keep]
    prev = step.tokens.index_select(0, step.live)
    return Live(*remaining, prev, backbone.reordered(state, rows), encoded, memory)


def _leaving(
    live: Live,
    continued: Candidates,
    order: Tensor,
    best: Tensor,
    finished: Finished,
    position: int,
    settings: SearchSettings,
) -> Tensor | None:
    """The sentences (n,) that leave the batch, because they are at their maximal length or decided;
    None where none does. Where nothing has ended until its maximal length, the best is cut
    there."""
    last = live.max_len <= position + 1 if live.shortest <= position + 1 else None
    if last is not None:
        cut = last & (finished.count[live.sentence] == 0)
        first = torch.zeros_like(continued.columns, dtype=torch.bool)
        first.scatter_(1, order[:, :1], cut[:, None])
        finished.take(live, continued, first, position, settings.length_penalty, eos=False)
    if finished.empty:
        return None
    decided = _decided(live, best, finished, position, settings)
    return decided if last is None else last | decided


def _decided(
    live: Live, best: Tensor, finished: Finished, position: int, settings: SearchSettings
) -> Tensor:
    """The sentences (n,) that no live hypothesis can win any more. `best` (n,) is the log
    probability of the best live hypothesis of each.

    Log probabilities only fall, so a live hypothesis can reach at most its present one over its
    length at the end. That length is at most the maximal length, of which callers leave twice what
    is likely. Therefore, once b hypotheses are finished, the best is compared with what ends within
    half of the maximal length, or at the next step. To end at b finished ones, whatever lives, is
    wrong: where one hypothesis is nearly certain, as in copying, the other rows hold junk, and junk
    ends early."""
    power, ends = settings.length_penalty, live.sentence
    soon = (live.max_len / 2).clamp_min(position + 2)
    likely = (finished.count[ends] >= settings.beam) & (
        finished.score[ends, 0] >= best / soon**power
    )
    return likely | (finished.score[ends, -1] >= best / live.max_len**power)


def _keep_encoded(encoded: Encoded, keep: Tensor, beam: int, n: int) -> Encoded:
    """The sentences `keep` of n, and no longer than the longest of them."""
    if encoded.mask.shape[0] != n:  # one row for each of the beam
        keep = (keep[:, None] * beam + torch.arange(beam, device=keep.device)).flatten()
    shorter = encoded.rows(keep)
    length = int(shorter.mask.sum(1).max()) if len(keep) else 0
    return shorter.cut(length)


def _results(history: list[Step], finished: Finished, first: int) -> list[Hypothesis]:
    """Gives the hypotheses of all sentences. `first` is the position of the first step."""
    walk = _WalkBack(history)
    columns = (
        finished.step - first,
        finished.candidate,
        finished.score,
        finished.log_prob,
        finished.ended,
    )
    results = []
    for sentence in zip(*(x.tolist() for x in columns), strict=True):
        best, *rest = zip(*sentence, strict=True)
        alternatives = [_hypothesis(history, walk, *end) for end in rest if end[2] > -math.inf]
        results.append(replace(_hypothesis(history, walk, *best), alternatives=tuple(alternatives)))
    return results


def _hypothesis(
    history: list[Step],
    walk: _WalkBack,
    position: int,
    candidate: int,
    score: float,
    log_prob: float,
    ended: bool,
) -> Hypothesis:
    way = walk.path(position, candidate)
    if ended:
        way.pop()
    rows = [row for row, _ in way]
    ids = tuple(walk.tokens[t][c] for t, (_, c) in enumerate(way))
    contexts, hiddens = (
        _pick([getattr(s, name) for s in history], rows) for name in ("contexts", "hiddens")
    )
    probabilities, traces = [], []
    for step, (row, c) in zip(history, way, strict=False):
        if step.probabilities is not None and step.trace is not None:
            probabilities.append(float(step.probabilities[c]))
            traces.append(step.trace.pick(row, c))
    return Hypothesis(
        ids,
        score,
        log_prob,
        ended,
        contexts,
        hiddens,
        tuple(probabilities),
        tuple(traces),
        rows=tuple(rows),
    )


class _WalkBack:
    """The back-pointers of all steps as Python lists."""

    def __init__(self, history: list[Step]) -> None:
        self.parents: list[list[int]] = [step.parents.tolist() for step in history]
        self.tokens: list[list[int]] = [step.tokens.tolist() for step in history]
        self.live: list[list[int]] = [step.live.tolist() for step in history]

    def path(self, position: int, candidate: int) -> list[tuple[int, int]]:
        """The row that was extended and the candidate chosen at every step 0..at on the way to
        `candidate`."""
        way = [(self.parents[position][candidate], candidate)]
        for t in range(position - 1, -1, -1):
            previous = self.live[t][way[-1][0]]
            way.append((self.parents[t][previous], previous))
        return way[::-1]


def _pick(steps: list[Tensor | None], rows: list[int]) -> Tensor | None:
    """One row of every step, (T, ...); None where nothing was kept."""
    tensors = [step for step in steps if step is not None]
    if tensors and rows:
        return torch.stack([step[row] for step, row in zip(tensors, rows, strict=False)])
    return tensors[0][:0] if tensors else None
