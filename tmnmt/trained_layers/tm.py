"""The translation memory in the decoder: one attention over the words of all retrieved pairs (Gu et
al. 2018).

    energy      c M c' - lambda beta + mu f + nu e + kappa g + rho r
    attention   q = softmax(energy / eta)    z~ = sum q z'                            eq. 6, 7
    copy        p(y) = zeta (sum of q over positions that hold y) + (1 - zeta) p_gen(y)
    fusion      h = zeta (z~ + sum q E e(y')) + (1 - zeta) s~, read out as usual      eq. 8
    coverage    beta += zeta q: only what was really used counts; others in `coverage.py`

    c, s          this step's context and hidden state
    c', z', y'    contexts, hidden states and words of the pairs
    beta          mass used so far
    f             fuzzy score of the position's pair
    e             1 where the pair has the very same source (f = 1)
    g             1 where the position follows, in its pair, the word just written:
                  y'_{tau-1} = y_{t-1}
    r             g q_{t-1}(tau - 1), the greatest made 1
    E e(y')       a learned map of the word's embedding (`words.py`)

OURS: the energy prefers, as far as training finds it right, better pairs (f), pairs of the very
same source (e), and words that follow the word just written (g). Of those r prefers the one whose
predecessor was just read. Where a subword stands twice in a pair, g alone does not know after which
of the two to go on, and copying skips what is between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.linalg import vecdot
from torch.nn import functional as F
from torch.nn.functional import logsigmoid

from tmnmt.compiled import kernels
from tmnmt.compiled.kernels import can_be_compiled, cover
from tmnmt.layers.collated import Pairs
from tmnmt.layers.contract import Collated, LayerOutput, StepState, Words
from tmnmt.layers.learned import LearnedLayer
from tmnmt.layers.mixing import MIN_PROBABILITY
from tmnmt.layers.traced import LayerTrace, TracedSource
from tmnmt.layers.view import Positions, first_of
from tmnmt.models.base import Backbone
from tmnmt.models.products import ProductsKept
from tmnmt.trained_layers.coverage import Coverage, CoverageKind
from tmnmt.trained_layers.neighbours import NeighbourQuery, NeighbourState, join_neighbours
from tmnmt.trained_layers.reading import MAXIMUM, Energies, blend, read_positions
from tmnmt.trained_layers.words import Embed, with_words, word_map

Matching = Literal["identity", "diagonal", "full"]
FusionGate = Literal["scalar", "elements"]
GATE_WIDTH = 128
COPY_START = -1.0  # sigmoid(-1) = 0.27: the plain model leads until training says otherwise
FUSION_START = -3.0  # 0.05: a blended state says less than a word, so it begins almost closed
# odds of a gate are halved at a fuzzy score of 0.3 and divided by 56 at 0.1, until training says
# otherwise
DOUBTED, DOUBT = 0.3, 20.0
# to begin with: how much a context matches itself at most, and mu, nu, kappa and rho; all are near
# what the layer of models/law.en-fr has learned
MATCHED = 14.0
PREFERRED, POINTED = (3.0, 3.0, 4.0), 3.0
SMALL = 1e-6  # keeps a division by the square of a vanishing state finite


class Reading(NamedTuple):
    """What the rows that have pairs read from them."""

    q: Tensor  # (R', P)
    of_gates: Tensor  # (R', 128 a gate) W z~ of the gates that there are, copy before fusion
    # (R', 5) how far what was read is to be trusted, see `Gate`; (R', 0) where no gate asks
    signs: Tensor


class Gate(nn.Module):
    """zeta = f(c, s, z~) in [0, 1] as logits: a feed-forward net with one layer of 128 tanh units.

    OURS: it is also shown five numbers that a net over the concatenation cannot form: the match c M
    c~ / |c|^2 and the agreement s z~ / |s|^2, near 1 where the pair says the same as the decoder,
    and the means of f, e and g over what is read, sum q f and so on, in [0, 1]. And its odds are
    multiplied by sigmoid(b (sum q f - a)), a and b learned: pairs that are like nothing in the
    sentence are not to be trusted, whatever they look like. Without `signs` it has neither and is
    the net alone, as in the paper. `outputs` is 1 for copy; for fusion it is d, a gate for every
    element (OURS; the paper has a scalar)."""

    def __init__(
        self, context_size: int, hidden_size: int, outputs: int, start: float, signs: bool = True
    ) -> None:
        super().__init__()
        self.context = nn.Linear(context_size, GATE_WIDTH)
        self.hidden = nn.Linear(hidden_size, GATE_WIDTH, bias=False)
        self.value = nn.Linear(hidden_size, GATE_WIDTH, bias=False)
        self.signs = nn.Linear(5, GATE_WIDTH, bias=False) if signs else None
        self.out = nn.Linear(GATE_WIDTH, outputs)
        self.trust = nn.Parameter(torch.tensor([DOUBTED, DOUBT])) if signs else None  # a, b
        nn.init.constant_(self.out.bias, start)
        self._products = ProductsKept()

    def before_at(self, features: Tensor) -> Tensor:
        """`preactivation` of contexts and states side by side (..., l + d), in one product."""
        weights = self.context.weight, self.hidden.weight
        return self._products.build("before", weights, self.context.bias, dim=1)(features)

    def preactivation(self, context: Tensor, hidden: Tensor) -> Tensor:
        """The part that does not depend on what is read: (..., l), (..., d) -> (..., 128)."""
        return plus_linear(self.context(context), hidden, self.hidden)

    def logits(self, preactivation: Tensor, value: Tensor, signs: Tensor) -> Tensor:
        """Logits (..., outputs) of that part, the projected z~ (..., 128) and the signs (..., 5),
        (..., 0) where it has none."""
        inner = preactivation + value
        if self.signs is None or self.trust is None:
            alone: Tensor = self.out(torch.tanh(inner))
            return alone
        logits: Tensor = self.out(torch.tanh(plus_linear(inner, signs, self.signs)))
        doubt, steep = self.trust.unbind()
        return logits + logsigmoid(steep * (signs[..., 2:3] - doubt))

    def openness(self, features: Tensor, value: Tensor, signs: Tensor) -> Tensor:
        """The gate of contexts and states side by side (R, l + d), the projected z~ (R, 128) and
        the signs (R, 5), in as few operations as there are: (R, outputs)."""
        inner = self.before_at(features).add_(value)
        if self.signs is not None:
            inner.addmm_(signs, self.signs.weight.t())
        logits = self._products.build("out", [self.out.weight], self.out.bias)(inner.tanh_())
        if self.trust is not None:
            doubt, steep = self.trust.tolist()
            logits += logsigmoid(steep * (signs[:, 2:3] - doubt))
        return logits.sigmoid_()


# what is done with the pairs in each mode that reads them
OUTPUTS: dict[str, tuple[str, ...]] = {
    "copy": ("copy",),
    "fusion": ("fusion",),
    "both": ("fusion", "copy"),
}
DEFAULT_PARTS = {"pointer": False}  # what a file says nothing of that is older than the pointer


@dataclass(frozen=True)
class TMKind:
    """Which of the variants a translation memory is; the defaults are what is trained and ships."""

    copy: bool = True
    fusion: bool = True
    matching: Matching = "diagonal"  # M
    coverage: CoverageKind = "gated"
    # one for every element of the state, or one scalar as in the paper
    fusion_gate: FusionGate = "elements"
    # gates see f, e, g, match and agreement; False: zeta = f(c, s, z~) as in the paper
    gate_signs: bool = True
    preferences: bool = True  # mu f + nu e + kappa g; False: the paper's energy
    # + rho r; False: of several words that follow the word just written none is preferred
    pointer: bool = True
    words: bool = True  # E e(y'); False: states only, as in the paper


@dataclass(frozen=True)
class PairPositions(Positions):
    """The positions of the pairs. `read` is (N, P, d + ... + 2): z', W z' of every gate, f and e
    side by side; without W z' where W is multiplied with in the step."""

    fusion_values: Tensor  # (N, P, d) what fusion blends of every position


@dataclass(frozen=True)
class PairsReady:
    """The pairs of every sentence, and what its rows have read of them."""

    positions: PairPositions
    coverage: Tensor  # (R, P, W) what was read so far, see `Coverage`
    # (R, P') q of the step before, of the pairs alone; (R, 0) before the first
    last: Tensor
    copy: Gate | None  # the gates in use, which are the layer's own
    fusion: Gate | None
    energies: Energies

    def rows(self, index: Tensor) -> PairsReady:
        """The rows `index` (R',) in that order."""
        return replace(self.reordered(index), positions=self.positions.rows(index))

    def reordered(self, index: Tensor) -> PairsReady:
        """The same, of an `index` (R,) where every row takes the place of one of its own
        sentence."""
        coverage, last = (x.index_select(0, index) for x in (self.coverage, self.last))
        return replace(self, coverage=coverage, last=last)

    def prepare(self, tm: TranslationMemory, context: Tensor, hidden: Tensor) -> PairsReady:
        """What a step at c (R, l) and s (R, d) reads."""
        return self

    def advance(self, coverage: Tensor, q: Tensor) -> TMReady:
        """Once a step has read q (R, P) and left this coverage."""
        return replace(self, coverage=coverage, last=q)

    @property
    def neighbour_positions(self) -> Tensor | None:
        """Where the neighbours stand; None: there are none."""
        return None


@dataclass(frozen=True)
class NeighboursReady:
    """The pairs of every sentence, and what is asked of the whole memory at every step."""

    pairs: Pairs | None  # of N sentences; None: there are none
    fusion_values: Tensor | None  # (N, P, d) what fusion blends of them; None: nothing
    coverage: Tensor  # (R, P, W)
    last: Tensor  # (R, P), or (R, 0) before the first step
    neighbour_state: NeighbourState
    embed: Embed
    copy: Gate | None
    fusion: Gate | None
    energies: Energies

    def rows(self, index: Tensor) -> NeighboursReady:
        """The rows `index` (R',) in that order."""
        coverage, last = (x.index_select(0, index) for x in (self.coverage, self.last))
        return replace(
            self, coverage=coverage, last=last, neighbour_state=self.neighbour_state.rows(index)
        )

    reordered = rows

    def prepare(
        self, tm: TranslationMemory, context: Tensor, hidden: Tensor
    ) -> PairsWithNeighbours:
        """What a step at c (R, l) and s (R, d) reads: the pairs, and the neighbours behind them."""
        neighbour_state = self.neighbour_state
        neighbours, new = neighbour_state.search.find(context, hidden, neighbour_state.sentence)
        pairs = (
            new
            if self.pairs is None
            else join_neighbours(self.pairs, new, neighbour_state.sentence)
        )
        fusion_values = pairs.hiddens
        if self.fusion is not None:
            fusion_values = tm.fusion_values(new, self.embed)
        if self.fusion_values is not None:
            fusion_values = torch.cat(
                [self.fusion_values[neighbour_state.sentence], fusion_values], 1
            )
        return PairsWithNeighbours(
            positions=tm.positions(
                pairs, fusion_values, torch.cat([pairs.hiddens, pairs.marks], -1)
            ).compact(),
            coverage=torch.cat([self.coverage, neighbour_state.covered(neighbours)], 1),
            last=self.last,
            copy=self.copy,
            fusion=self.fusion,
            energies=self.energies,
            neighbours=neighbours,
            origin=self,
        )


@dataclass(frozen=True)
class PairsWithNeighbours(PairsReady):
    """Of one step: the pairs, and the neighbours (R, k) that it has found behind them."""

    neighbours: Tensor
    origin: NeighboursReady

    def advance(self, coverage: Tensor, q: Tensor) -> NeighboursReady:
        pairs = coverage.shape[1] - self.neighbours.shape[1]
        neighbour_state = self.origin.neighbour_state.extended(self.neighbours, coverage[:, pairs:])
        return replace(
            self.origin,
            coverage=coverage[:, :pairs],
            last=q[:, :pairs],
            neighbour_state=neighbour_state,
        )

    @property
    def neighbour_positions(self) -> Tensor:
        return self.neighbours


TMReady = PairsReady | NeighboursReady


class TranslationMemory(LearnedLayer[TMReady]):
    """The parameters M, lambda, mu, nu, kappa, rho, eta, E and the gates of copy and fusion, as far
    as `kind` has them.

    M starts as the identity, eta at 1 (kept positive by its logarithm), the others at 0; `begin`
    has better starts for a base. word_size: of an embedding."""

    kind: TMKind
    stored_alone = ("copy", "fusion")

    def __init__(
        self, context_size: int, hidden_size: int, word_size: int, kind: TMKind = TMKind()
    ) -> None:
        super().__init__()
        self.kind = kind
        starts = {
            "identity": None,
            "diagonal": torch.ones(context_size),
            "full": torch.eye(context_size),
        }
        start = starts[kind.matching]
        self.M = nn.Parameter(start) if start is not None else None
        self.coverage = Coverage(kind.coverage)
        # mu, nu, kappa
        self.preferences = nn.Parameter(torch.zeros(3)) if kind.preferences else None
        # rho
        self.pointer = nn.Parameter(torch.zeros(())) if kind.preferences and kind.pointer else None
        self.log_eta = nn.Parameter(torch.zeros(()))
        outputs = hidden_size if kind.fusion_gate == "elements" else 1
        sizes, signs = (context_size, hidden_size), kind.gate_signs
        self.copy = Gate(*sizes, 1, COPY_START, signs) if kind.copy else None
        self.fusion = Gate(*sizes, outputs, FUSION_START, signs) if kind.fusion else None
        self.word = word_map(word_size, hidden_size) if kind.fusion and kind.words else None

    @classmethod
    def of_kind(cls, sizes: tuple[int, int, int], kind: Mapping[str, Any]) -> TranslationMemory:
        return cls(*sizes, TMKind(**{**DEFAULT_PARTS, **kind}))

    @property
    def modes(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those whose gates it has."""
        gates = {"copy": self.copy, "fusion": self.fusion}
        absent = {name for name, gate in gates.items() if gate is None}
        return tuple(mode for mode, names in OUTPUTS.items() if absent.isdisjoint(names))

    def reads(self, mode: str, has_history: bool) -> bool:
        return mode in OUTPUTS

    def parameters_read(self, mode: str) -> Iterator[tuple[str, Tensor]]:
        unread = {"copy": ("fusion.", "word."), "fusion": ("copy.",)}.get(mode, ())
        for name, value in super().parameters_read(mode):
            if not name.startswith(unread):
                yield name, value

    def kind_read(self, mode: str) -> dict[str, Any]:
        gates = ("copy", "fusion")
        return {name: x for name, x in super().kind_read(mode).items() if name not in gates}

    @classmethod
    def traced_sources(
        cls, name: str, trace: LayerTrace, collated: Collated, sentence: int, word: int
    ) -> list[TracedSource]:
        return [TracedSource("copy", "fusion", "memory", trace, pairs=collated.pairs)]

    @torch.no_grad()
    def begin(self, contexts: Tensor) -> None:
        """Starts training from what suits a base with such contexts (n, l). Those of a Transformer
        match themselves seven times as much as RNNsearch's: by the identity one position would get
        all."""
        if self.M is not None:
            self.M.mul_((MATCHED / vecdot(contexts, contexts).mean()).clamp(max=1))
        if self.preferences is not None:
            self.preferences.copy_(torch.tensor(PREFERRED))
        if self.pointer is not None:
            self.pointer.fill_(POINTED)

    def ready(self, collated: Collated, backbone: Backbone, mode: str) -> TMReady | None:
        outputs, embed = OUTPUTS.get(mode, ()), backbone.embed
        copy = self.copy if "copy" in outputs else None
        fusion = self.fusion if "fusion" in outputs else None
        if copy is None and fusion is None:
            return None
        if isinstance(collated.search, NeighbourQuery) and collated.search.voting is None:
            return self.with_neighbours(collated.pairs, collated.search, embed, copy, fusion)
        if collated.pairs is None:
            return None
        return self.laid_out(collated.pairs, embed, copy, fusion)

    def laid_out(
        self, pairs: Pairs, embed: Embed, copy: Gate | None, fusion: Gate | None
    ) -> PairsReady:
        """The pairs with all that no step changes, one row a sentence, nothing read so far."""
        values = torch.cat([pairs.hiddens, *self.of_gates(pairs.hiddens), pairs.marks], -1)
        fusion_values = self.fusion_values(pairs, embed) if fusion is not None else pairs.hiddens
        rows, length = pairs.ids.shape
        return PairsReady(
            positions=self.positions(pairs, fusion_values, values),
            coverage=pairs.contexts.new_zeros(rows, length, self.coverage.width),
            last=pairs.contexts.new_zeros(rows, 0),
            copy=copy,
            fusion=fusion,
            energies=self.energies(),
        )

    def with_neighbours(
        self,
        pairs: Pairs | None,
        search: NeighbourQuery,
        embed: Embed,
        copy: Gate | None,
        fusion: Gate | None,
    ) -> NeighboursReady:
        """The pairs, where there are any, beside which every step asks for neighbours."""
        neighbour_state = NeighbourState.start(search, self.coverage.width, self.log_eta.device)
        sentences, new_zeros = len(neighbour_state.sentence), neighbour_state.coverage.new_zeros
        fusion_values = (
            self.fusion_values(pairs, embed) if pairs is not None and fusion is not None else None
        )
        return NeighboursReady(
            pairs=pairs,
            fusion_values=fusion_values,
            coverage=new_zeros(
                sentences, 0 if pairs is None else pairs.ids.shape[1], self.coverage.width
            ),
            last=new_zeros(sentences, 0),
            neighbour_state=neighbour_state,
            embed=embed,
            copy=copy,
            fusion=fusion,
            energies=self.energies(),
        )

    def fusion_values(self, pairs: Pairs, embed: Embed) -> Tensor:
        """z' + E e(y') of every position (N, P, d), which fusion blends."""
        return with_words(self.word, pairs.hiddens, pairs.ids, embed)

    def positions(self, pairs: Pairs, fusion_values: Tensor, values: Tensor) -> PairPositions:
        """The positions of the pairs, one row a sentence."""
        return PairPositions(
            keys=pairs.contexts,
            ids=pairs.ids,
            previous_ids=pairs.previous_ids,
            mask=pairs.mask,
            first=first_of(pairs.ids),
            values=values,
            worth=self.worth(pairs),
            sentence=torch.arange(len(pairs.ids), device=pairs.ids.device),
            fusion_values=fusion_values,
        )

    def of_gates(self, values: Tensor) -> list[Tensor]:
        """W z' (..., 128) of z' (..., d) for the gates that there are, copy before fusion."""
        return [gate.value(values) for gate in (self.copy, self.fusion) if gate is not None]

    @property
    def trusts(self) -> list[nn.Parameter]:
        """a and b of the gates that have them."""
        return [
            gate.trust
            for gate in (self.copy, self.fusion)
            if gate is not None and gate.trust is not None
        ]

    def query(self, context: Tensor) -> Tensor:
        """c M: (..., l) -> (..., l). M is folded into the query, so keys are kept raw."""
        if self.M is None:
            return context
        return context * self.M if self.M.dim() == 1 else context @ self.M

    def worth(self, pairs: Pairs) -> Tensor | None:
        """mu f + nu e of every position, (N, P); None where nothing is preferred."""
        return pairs.marks @ self.preferences[:2] if self.preferences is not None else None

    def prefer(self, scores: Tensor, worth: Tensor | None, follows: Tensor) -> Tensor:
        """c M c' + mu f + nu e + kappa g of matching scores (..., P), `worth` and g."""
        if worth is None or self.preferences is None:
            return scores
        return torch.addcmul(scores + worth, follows, self.preferences[2])

    def point(self, preferred: Tensor, last: Tensor, follows: Tensor) -> Tensor:
        """`preferred` + rho r, of what the step before read of the pairs (R, P') and g (R, P);
        neighbours, the last P - P', are no positions side by side, and have no r; P' is 0 before
        the first step. No gradient goes to the step before: through all steps it would grow by
        rho / eta at each."""
        pairs = last.shape[1]
        if self.pointer is None or not pairs:
            return preferred
        came = last.detach().roll(1, 1) * follows[:, :pairs]
        came = came / came.amax(1, keepdim=True).clamp_min(MIN_PROBABILITY)
        return preferred + self.pointer * F.pad(came, (0, follows.shape[1] - pairs))

    def attend(self, preferred: Tensor, coverage: Tensor, mask: Tensor | None) -> Tensor:
        """q = softmax((c M c' + mu f + nu e + kappa g - lambda beta) / eta) over the unmasked
        positions of all pairs, (R, P) (eq. 7), of what was read so far (R, P, W). Zero everywhere
        in a row without any position."""
        energy = (preferred - self.coverage.penalty(coverage)) * torch.exp(-self.log_eta)
        if mask is None:
            return energy.softmax(-1)
        energy = energy.masked_fill(~mask, torch.finfo(energy.dtype).min)
        return energy.softmax(-1) * mask

    def fuse(
        self, step: StepState, hidden: Tensor, ready: TMReady
    ) -> tuple[Tensor, LayerOutput[TMReady]]:
        """Fusion blends z~ into h (eq. 8); of copying, what is to be mixed in (eq. 6, 7). What was
        used is, with both, what was copied."""
        step_pairs = ready.prepare(self, step.context, step.hidden)
        if can_be_compiled(step.hidden) and self.coverage.gru is None:
            return self._fuse_compiled(step, hidden, step_pairs)
        view = step_pairs.positions.view
        gate = None
        words = None
        raw, context = view.pick(step.hidden), view.pick(step.context)
        reading = self.read(view.pick(step.prev), raw, context, step_pairs)
        q = view.put(reading.q)
        share = q.new_zeros(len(q))
        if step_pairs.fusion is not None:
            openness = fusion_gate(step_pairs.fusion, raw, context, reading)
            blended = view.rows.blend(reading.q, step_pairs.positions.fusion_values)
            base = raw if hidden is step.hidden else view.pick(hidden)
            hidden = view.put(torch.lerp(base, blended, openness), hidden)
            gate = view.put(openness)
            share = gate.mean(-1)
        if step_pairs.copy is not None:
            logit = view.put(copy_logit(step_pairs.copy, raw, context, reading), -torch.inf)
            words, share = Words(view.ids, view.first, logit), torch.sigmoid(logit)
        next_ready = step_pairs.advance(self.coverage.update(step_pairs.coverage, share, q), q)
        return hidden, LayerOutput(next_ready, q, gate, words, step_pairs.neighbour_positions)

    def _fuse_compiled(
        self, step: StepState, hidden: Tensor, step_pairs: PairsReady
    ) -> tuple[Tensor, LayerOutput[TMReady]]:
        """The same as `fuse`, of all rows at once, by compiled code."""
        d, positions = step.hidden.shape[1], step_pairs.positions
        covered = step_pairs.coverage if self.coverage.width else None
        query = self.query(step.context)
        reading = read_positions(
            positions, step, query, step_pairs.energies, step_pairs.last, covered, d
        )
        q, blended, facts = reading
        if blended.shape[1] == d + 2:  # W is multiplied with in the step
            of_gates = self.of_gates(blended[:, :d])
            blended = torch.cat([blended[:, :d], *of_gates, blended[:, d:]], -1)
        features = torch.cat([step.context, step.hidden], -1)
        gate = words = None
        coverage = step_pairs.coverage
        if step_pairs.fusion is not None:
            signs = torch.cat([facts[:, :2], blended[:, -2:], facts[:, 2:3]], -1)
            gate = step_pairs.fusion.openness(features, blended[:, -2 - GATE_WIDTH : -2], signs)
            gate *= facts[:, MAXIMUM, None] > 0
            hidden = torch.lerp(hidden, blend(positions, q, positions.fusion_values), gate)
        if step_pairs.copy is not None:
            logit = _copy_logits(step_pairs.copy, features, step.hidden.shape[1], blended, facts)
            words = Words(*positions.words, logit)
            if self.coverage.kind == "gated":
                coverage = cover(coverage, logit, q)
            else:
                coverage = self.coverage.update(coverage, logit, q)
        elif gate is not None:
            coverage = self.coverage.update(coverage, gate.mean(-1), q)
        next_ready = step_pairs.advance(coverage, q)
        return hidden, LayerOutput(next_ready, q, gate, words, step_pairs.neighbour_positions)

    def energies(self) -> Energies:
        """What compiled code is told of the energy."""
        covered = self.coverage.weight
        return Energies(
            follows=self.preferences[2].item() if self.preferences is not None else 0.0,
            pointer=self.pointer.item() if self.pointer is not None else 0.0,
            covered=covered.item() if covered is not None and covered.dim() == 0 else 0.0,
            sharpness=math.exp(-self.log_eta.item()),
        )

    def read(self, prev: Tensor, hidden: Tensor, context: Tensor, ready: PairsReady) -> Reading:
        """What the rows with pairs (R',), (R', d), (R', l) read from them."""
        view, d = ready.positions.view, hidden.shape[1]
        scores = view.rows.dot(self.query(context), ready.positions.keys)  # (R', P)
        follows = (view.previous_ids == prev[:, None]).to(scores.dtype)
        preferred = self.prefer(scores, view.worth, follows)
        pointed = self.point(preferred, view.pick(ready.last), follows)
        q = self.attend(pointed, view.pick(ready.coverage), view.mask)
        blended = view.rows.blend(q, ready.positions.values)
        z_tilde, of_gates, marks = blended.tensor_split((d, -2), -1)
        if not of_gates.shape[1]:
            of_gates = torch.cat(self.of_gates(z_tilde), -1)
        if not self.kind.gate_signs:
            return Reading(q, of_gates, q[:, :0])
        products = torch.stack([vecdot(q, scores), vecdot(hidden, z_tilde)], -1)
        squares = torch.stack([vecdot(context, context), vecdot(hidden, hidden)], -1)
        signs = [products / squares.clamp_min(SMALL), marks, vecdot(q, follows)[:, None]]
        return Reading(q, of_gates, torch.cat(signs, -1))

    def unroll(
        self, gate: Gate, prev: Tensor, hiddens: Tensor, contexts: Tensor, pairs: Pairs
    ) -> tuple[Tensor, Tensor]:
        """`read` and `gate` over whole targets (B, T), (B, T, d), (B, T, l), one row a sentence: q
        (B, T, P), logits (B, T, o). For training: only the coverage needs a loop over t, everything
        else is computed before it."""
        scores = self.query(contexts) @ pairs.contexts.transpose(1, 2)  # (B, T, P)
        follows = (pairs.previous_ids[:, None] == prev[:, :, None]).to(scores.dtype)
        signs = self._signs(scores, hiddens, contexts, follows, pairs)
        worth = self.worth(pairs)
        preferred = self.prefer(scores, worth[:, None] if worth is not None else None, follows)
        preactivation = gate.preactivation(contexts, hiddens)  # (B, T, 128)
        projected = gate.value(pairs.hiddens)  # (B, P, 128)
        coverage = scores.new_zeros(*pairs.ids.shape, self.coverage.width)
        empty = coverage.new_zeros(len(coverage), 0)
        q: list[Tensor] = []
        logits: list[Tensor] = []
        for t in range(contexts.shape[1]):
            pointed = self.point(preferred[:, t], q[-1] if q else empty, follows[:, t])
            q.append(self.attend(pointed, coverage, pairs.mask))
            weights = q[t][:, None]  # (B, 1, P)
            sign = torch.bmm(weights, signs[:, t])[:, 0]
            logits.append(
                gate.logits(preactivation[:, t], torch.bmm(weights, projected)[:, 0], sign)
            )
            coverage = self.coverage.update(coverage, torch.sigmoid(logits[t]).mean(-1), q[t])
        return torch.stack(q, 1), torch.stack(logits, 1)

    def _signs(
        self, scores: Tensor, hiddens: Tensor, contexts: Tensor, follows: Tensor, pairs: Pairs
    ) -> Tensor:
        """What every position would show the gates at every step, were it alone read:
        (B, T, P, 5); (B, T, P, 0) where no gate asks."""
        if not self.kind.gate_signs:
            return scores.new_zeros(*scores.shape, 0)
        z = pairs.hiddens.transpose(1, 2)  # (B, d, P)
        match = scores / _square(contexts)[..., None]
        agreement = hiddens @ z / _square(hiddens)[..., None]
        marks = pairs.marks[:, None].expand(*match.shape, 2)
        return torch.cat([torch.stack([match, agreement], -1), marks, follows[..., None]], -1)


def copy_logit(gate: Gate, hidden: Tensor, context: Tensor, reading: Reading) -> Tensor:
    """The copy gate's logits (R',) of rows with pairs."""
    preactivation, value = gate.preactivation(context, hidden), reading.of_gates[:, :GATE_WIDTH]
    return gate.logits(preactivation, value, reading.signs).squeeze(-1)


def _copy_logits(
    gate: Gate, features: Tensor, state_size: int, blended: Tensor, facts: Tensor
) -> Tensor:
    """`copy_logit` (R,) of all rows, by contexts and states side by side (R, l + d); -inf where
    there is nothing to read."""
    trust: tuple[float, float] | None = None
    if gate.trust is not None:
        trust = gate.trust[0].item(), gate.trust[1].item()
    return kernels.copy_logits(
        gate.before_at(features),
        blended,
        facts,
        state_size,
        gate.signs.weight if gate.signs is not None else None,
        gate.out.weight,
        gate.out.bias.item(),
        trust,
    )


def fusion_gate(gate: Gate, hidden: Tensor, context: Tensor, reading: Reading) -> Tensor:
    """The fusion gate (R', d) or (R', 1) of rows with pairs."""
    preactivation, value = gate.preactivation(context, hidden), reading.of_gates[:, -GATE_WIDTH:]
    return torch.sigmoid(gate.logits(preactivation, value, reading.signs))


def plus_linear(x: Tensor, y: Tensor, layer: nn.Linear) -> Tensor:
    """x + layer(y) of a layer without bias: x (..., o), y (..., i)."""
    if y.dim() == 2:
        return torch.addmm(x, y, layer.weight.t())
    projected: Tensor = layer(y)
    return x + projected


def _square(x: Tensor) -> Tensor:
    return x.square().sum(-1).clamp_min(SMALL)
