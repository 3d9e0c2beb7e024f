"""The translation memory in the decoder: one attention over the words of all retrieved pairs (Gu et
al. 2017).

    E = c M c' - lambda beta + mu f + nu e + kappa g + rho r     q = softmax(E / eta)     z~ = sum q
    z'     eq. 6, 7
    copy      p(y) = zeta (sum of q over the positions that hold y) + (1 - zeta) p_gen(y)
    fusion    h = zeta (z~ + sum q E e(y')) + (1 - zeta) s~, read out as usual              eq. 8
    coverage  beta += zeta q: only what was really used counts; other kinds in `coverage.py`

c, s: this step's context and state   c', z', y': keys, states and words of the pairs   beta: mass
used so far
OURS: E prefers, as far as training finds it right, better pairs (f: fuzzy score of the position's
pair), pairs of the
very same source (e: f = 1), and words that follow, in their pair, the word just written (g:
y'_{tau-1} = y_{t-1}). Of
those r prefers the one whose predecessor was just read, r = g q_{t-1}(tau - 1), the greatest made
1: where a subword
stands twice in a pair, g alone does not know after which of the two to go on, and copying skips
what is between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.linalg import vecdot
from torch.nn import functional as F
from torch.nn.functional import logsigmoid
from torch.nn.utils.rnn import pad_sequence

from tmnmt.keys.pair_keys import PairKeys
from tmnmt.layers.base import Embed, TMState
from tmnmt.layers.coverage import Coverage, CoverageKind
from tmnmt.layers.view import first_of, view_of
from tmnmt.layers.words import with_words, word_map
from tmnmt.vocab import BOS

Matching = Literal["identity", "diagonal", "full"]
FusionGate = Literal["scalar", "elements"]
GATE_WIDTH = 128
COPY_START = -1.0  # sigmoid(-1) = 0.27: the plain model leads until training says otherwise
FUSION_START = -3.0  # 0.05: a blended state says less than a word, so it begins almost closed
# odds of a gate are halved at a fuzzy score of 0.3 and divided by 56 at 0.1, until training says
# otherwise
DOUBTED, DOUBT = 0.3, 20.0
SMALL = 1e-6  # keeps a division by the square of a vanishing state finite
LEAST = 1e-37  # a probability whose logarithm, -85, changes no sum that matters


class Read(NamedTuple):
    """What the rows that have pairs read from them."""

    q: Tensor  # (R, P)
    of_gates: Tensor  # (R, 128 a gate) W z~ of the gates that there are, copy before fusion
    signs: (
        Tensor | None
    )  # (R, 5) how far what was read is to be trusted, see `Gate`; None where no gate asks


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

    def before(self, context: Tensor, hidden: Tensor) -> Tensor:
        """The part that does not depend on what is read: (..., l), (..., d) -> (..., 128)."""
        return plus_linear(self.context(context), hidden, self.hidden)

    def after(self, before: Tensor, value: Tensor, signs: Tensor | None) -> Tensor:
        """Logits (..., outputs) of that part, the projected z~ (..., 128) and the signs (..., 5),
        where it has them."""
        inner = before + value
        if self.signs is None or self.trust is None:
            alone: Tensor = self.out(torch.tanh(inner))
            return alone
        assert signs is not None
        logits: Tensor = self.out(torch.tanh(plus_linear(inner, signs, self.signs)))
        doubt, steep = self.trust.unbind()
        return logits + logsigmoid(steep * (signs[..., 2:3] - doubt))


@dataclass(frozen=True)
class TMKind:
    """Which of the variants a translation memory is; the defaults are what is trained and ships."""

    copy: bool = True
    fusion: bool = True
    matching: Matching = "diagonal"  # M
    coverage: CoverageKind = "gated"
    fusion_gate: FusionGate = (
        "elements"  # one for every element of the state, or one scalar as in the paper
    )
    gate_signs: bool = (
        True  # gates see f, e, g, match and agreement; False: zeta = f(c, s, z~) as in the paper
    )
    preferences: bool = True  # mu f + nu e + kappa g; False: the paper's energy
    pointer: bool = (
        True  # + rho r; False: of several words that follow the word just written none is preferred
    )
    words: bool = True  # E e(y'); False: states only, as in the paper


class TranslationMemory(nn.Module):
    """The parameters M, lambda, mu, nu, kappa, rho, eta, E and the gates of copy and fusion, as far
    as `kind` has them.

    M starts as the identity, eta at 1 (kept positive by its logarithm), the others at 0. word_size:
    of an embedding."""

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
        self.preferences = (
            nn.Parameter(torch.zeros(3)) if kind.preferences else None
        )  # mu, nu, kappa
        self.pointer = (
            nn.Parameter(torch.zeros(())) if kind.preferences and kind.pointer else None
        )  # rho
        self.log_eta = nn.Parameter(torch.zeros(()))
        outputs = hidden_size if kind.fusion_gate == "elements" else 1
        sizes, signs = (context_size, hidden_size), kind.gate_signs
        self.copy = Gate(*sizes, 1, COPY_START, signs) if kind.copy else None
        self.fusion = Gate(*sizes, outputs, FUSION_START, signs) if kind.fusion else None
        self.word = word_map(word_size, hidden_size) if kind.fusion and kind.words else None

    def ready(self, state: TMState, embed: Embed) -> TMState:
        """The same with all that no step changes, and nothing read so far."""
        said = (
            with_words(self.word, state.values, state.ids, embed)
            if self.fusion is not None
            else state.values
        )
        nothing = state.coverage.new_zeros(*state.coverage.shape[:2], self.coverage.width)
        read = torch.cat([state.values, *self.of_gates(state.values), state.marks], -1)
        worth, first = self.worth(state), first_of(state.ids)
        return replace(
            state,
            said=said,
            worth=worth,
            read=read,
            first=first,
            coverage=nothing,
            last=None,
            view=None,
        )

    def ready_once(self, state: TMState) -> TMState:
        """The same for one step alone, but for `said`: W is multiplied with what is read, not with
        every position."""
        read = torch.cat([state.values, state.marks], -1)
        return replace(
            state, worth=self.worth(state), read=read, first=first_of(state.ids), view=None
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

    def worth(self, state: TMState) -> Tensor | None:
        """mu f + nu e of every position, (N, P); None where nothing is preferred."""
        return state.marks @ self.preferences[:2] if self.preferences is not None else None

    def prefer(self, scores: Tensor, worth: Tensor | None, follows: Tensor) -> Tensor:
        """c M c' + mu f + nu e + kappa g of matching scores (..., P), `worth` and g."""
        if worth is None or self.preferences is None:
            return scores
        return torch.addcmul(scores + worth, follows, self.preferences[2])

    def point(self, preferred: Tensor, last: Tensor | None, follows: Tensor) -> Tensor:
        """`preferred` + rho r, of what the step before read of the pairs (R, P') and g (R, P);
        neighbours, the last P - P', are no positions side by side, and have no r. No gradient goes
        to the step before: through all steps it would grow by rho / eta at each."""
        if self.pointer is None or last is None:
            return preferred
        pairs = last.shape[1]
        came = last.detach().roll(1, 1) * follows[:, :pairs]
        came = came / came.amax(1, keepdim=True).clamp_min(LEAST)
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

    def read(self, prev: Tensor, hidden: Tensor, context: Tensor, state: TMState) -> Read:
        """What the rows with pairs (R',), (R', d), (R', l) read from them; `state` has
        been seen."""
        view, d = view_of(state), hidden.shape[1]
        assert state.read is not None and view.before is not None
        scores = view.rows.dot(self.query(context), state.keys)  # (R', P)
        follows = (view.before == prev[:, None]).to(scores.dtype)
        last = view.pick(state.last) if state.last is not None else None
        preferred = self.point(self.prefer(scores, view.worth, follows), last, follows)
        q = self.attend(preferred, view.pick(state.coverage), view.mask)
        z_tilde, of_gates, marks = view.rows.blend(q, state.read).tensor_split((d, -2), -1)
        if not of_gates.shape[1]:
            of_gates = torch.cat(self.of_gates(z_tilde), -1)
        if not self.kind.gate_signs:
            return Read(q, of_gates, None)
        found = torch.stack([vecdot(q, scores), vecdot(hidden, z_tilde)], -1)
        squares = torch.stack([vecdot(context, context), vecdot(hidden, hidden)], -1)
        signs = [found / squares.clamp_min(SMALL), marks, vecdot(q, follows)[:, None]]
        return Read(q, of_gates, torch.cat(signs, -1))

    def copy_logit(self, hidden: Tensor, context: Tensor, read: Read) -> Tensor:
        """The copy gate's logits (R,) of rows with pairs."""
        assert self.copy is not None
        before, value = self.copy.before(context, hidden), read.of_gates[:, :GATE_WIDTH]
        return self.copy.after(before, value, read.signs).squeeze(-1)

    def fusion_gate(self, hidden: Tensor, context: Tensor, read: Read) -> Tensor:
        """The fusion gate (R, d) or (R, 1) of rows with pairs."""
        assert self.fusion is not None
        before, value = self.fusion.before(context, hidden), read.of_gates[:, -GATE_WIDTH:]
        return torch.sigmoid(self.fusion.after(before, value, read.signs))

    def unroll(
        self, gate: Gate, prev: Tensor, hiddens: Tensor, contexts: Tensor, state: TMState
    ) -> tuple[Tensor, Tensor]:
        """`read` and `gate` over whole targets (B, T), (B, T, d), (B, T, l), one row a sentence: q
        (B, T, P), logits (B, T, o). For training: only the coverage needs a loop over t, everything
        else is computed before it."""
        scores = self.query(contexts) @ state.keys.transpose(1, 2)  # (B, T, P)
        follows = (state.before[:, None] == prev[:, :, None]).to(scores.dtype)
        signs = (
            self._signs(scores, hiddens, contexts, follows, state) if self.kind.gate_signs else None
        )
        worth = self.worth(state)
        preferred = self.prefer(scores, worth[:, None] if worth is not None else None, follows)
        before, projected = (
            gate.before(contexts, hiddens),
            gate.value(state.values),
        )  # (B, T, 128), (B, P, 128)
        kept = scores.new_zeros(*state.ids.shape, self.coverage.width)
        q: list[Tensor] = []
        logits: list[Tensor] = []
        for t in range(contexts.shape[1]):
            pointed = self.point(preferred[:, t], q[-1] if q else None, follows[:, t])
            q.append(self.attend(pointed, kept, state.mask))
            weights = q[t][:, None]  # (B, 1, P)
            sign = torch.bmm(weights, signs[:, t])[:, 0] if signs is not None else None
            logits.append(gate.after(before[:, t], torch.bmm(weights, projected)[:, 0], sign))
            kept = self.coverage.after(kept, torch.sigmoid(logits[t]).mean(-1), q[t])
        return torch.stack(q, 1), torch.stack(logits, 1)

    @staticmethod
    def _signs(
        scores: Tensor, hiddens: Tensor, contexts: Tensor, follows: Tensor, state: TMState
    ) -> Tensor:
        """What every position would show the gates at every step, were it alone read:
        (B, T, P, 5)."""
        values = state.values.transpose(1, 2)  # (B, d, P)
        match = scores / _square(contexts)[..., None]
        agreement = hiddens @ values / _square(hiddens)[..., None]
        marks = state.marks[:, None].expand(*match.shape, 2)
        return torch.cat([torch.stack([match, agreement], -1), marks, follows[..., None]], -1)


def mix_copy(log_gen: Tensor, q: Tensor, ids: Tensor, first: Tensor, logit: Tensor) -> Tensor:
    """log(zeta p_copy + (1 - zeta) p_gen), (R, V), of log p_gen (R, V), q and words (R, P), where
    each word stands first (R, P) and the gate's logit (R,); of a shallow cache too, with P_m and
    the slots' words.

    A closed gate (logit -inf) gives log p_gen bit for bit. Only the words of the memory cost a
    logarithm. Without gradients it is written in place of log p_gen."""
    p_copy = (
        torch.zeros_like(q).scatter_add_(1, first, q).gather(1, first)
    )  # (R, P) all occurrences of the word
    copied, kept = logsigmoid(logit)[:, None] + safe_log(p_copy), logsigmoid(-logit)[:, None]
    if not (log_gen.requires_grad or copied.requires_grad):
        log_gen += kept
        return log_gen.scatter_(1, ids, torch.logaddexp(log_gen.gather(1, ids), copied))
    scaled = log_gen + kept
    mixed = torch.logaddexp(scaled.gather(1, ids), copied)
    # a word that stands at several positions is written several times: its gradient once
    once = first == torch.arange(ids.shape[1], device=ids.device)
    return scaled.scatter(1, ids, torch.where(once, mixed, mixed.detach()))


def mix_gold(log_gen: Tensor, p_copy: Tensor, logit: Tensor) -> Tensor:
    """The same for one word of each row only: log p of log p_gen, p_copy and the gate's logit, all
    of one shape."""
    return torch.logaddexp(log_gen + logsigmoid(-logit), logsigmoid(logit) + safe_log(p_copy))


def safe_log(p: Tensor) -> Tensor:
    """log p, where it is 0 with a gradient of 0 instead of NaN: -inf, or -85 without gradients,
    since a logarithm of 0 takes eight times as long."""
    if not p.requires_grad:
        return p.clamp_min(LEAST).log()
    positive = p > 0
    return torch.where(positive, torch.where(positive, p, 1.0).log(), -torch.inf)


def collate(
    pairs: list[list[PairKeys]],
    scores: Sequence[Sequence[float]],
    rows_per_sentence: int = 1,
    device: torch.device | str = "cpu",
) -> TMState | None:
    """The retrieved pairs of N sentences side by side, padded, coverage 0; None if no sentence has
    any.

    scores: the fuzzy score of every pair with its sentence. Rows are sentence by sentence,
    `rows_per_sentence` (the beam) of each. Keys kept in half precision become fp32."""
    if not any(pairs):
        return None
    lengths = torch.tensor(
        [sum(len(keys.ids) for keys in sentence) for sentence in pairs], device=device
    )
    ids = _positions(pairs, "ids", device)  # (N, P)
    keys = _positions(pairs, "contexts", device).float()
    values = _positions(pairs, "hiddens", device).float()
    position = _pad([[t for keys in s for t in range(len(keys.ids))] for s in pairs], device)
    fuzzy = _pad(
        [_by_position(s, own) for s, own in zip(pairs, scores, strict=True)], device, torch.float32
    )
    sentence = torch.arange(len(pairs), device=device).repeat_interleave(rows_per_sentence)
    return TMState(
        keys=keys,
        values=values,
        ids=ids,
        before=_before(ids, position),
        mask=torch.arange(ids.shape[1], device=device) < lengths[:, None],
        pair=_pad([[m for m, keys in enumerate(s) for _ in keys.ids] for s in pairs], device),
        position=position,
        marks=torch.stack([fuzzy, (fuzzy >= 1).to(fuzzy.dtype)], -1),
        sentence=sentence,
        coverage=keys.new_zeros(len(sentence), ids.shape[1], 0),
    )


def _positions(pairs: list[list[PairKeys]], name: str, device: torch.device | str) -> Tensor:
    """One field of all pairs, a sentence's pairs one after the other: (N, P, ...)."""
    nothing = next(getattr(keys, name) for sentence in pairs for keys in sentence)[:0]
    joined = [
        torch.cat([nothing, *(getattr(keys, name) for keys in sentence)]) for sentence in pairs
    ]
    return pad_sequence(joined, batch_first=True).to(device)


def _before(ids: Tensor, position: Tensor) -> Tensor:
    """The word before each position in its pair (N, P), <s> before the first."""
    return torch.where(position == 0, BOS, ids.roll(1, 1))


def _by_position(pairs: list[PairKeys], scores: Sequence[float]) -> list[float]:
    return [score for keys, score in zip(pairs, scores, strict=True) for _ in keys.ids]


def _pad(rows: list[Any], device: torch.device | str, dtype: torch.dtype = torch.int64) -> Tensor:
    return pad_sequence([torch.tensor(row, dtype=dtype) for row in rows], batch_first=True).to(
        device
    )


def plus_linear(x: Tensor, y: Tensor, layer: nn.Linear) -> Tensor:
    """x + layer(y) of a layer without bias: x (..., o), y (..., i)."""
    if y.dim() == 2:
        return torch.addmm(x, y, layer.weight.t())
    projected: Tensor = layer(y)
    return x + projected


def _square(x: Tensor) -> Tensor:
    return x.square().sum(-1).clamp_min(SMALL)
