"""Writes a translation once more with terms in it. Except for the terms, it stays word for word as
it was.

The decoder is led through the translation part by part (`Writer`):

    Fixed           stays as it was
    Alternatives    a word behind a term: as it was, or in the form that the decoder finds
                    likelier now
    Insert          a form of a term, and before it the small words that go with it: les droits
                    becomes la redevance (`tmnmt.terms.insertion`)

Nothing else is ever written, so no words are lost, doubled or said otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from tmnmt.engine.beam_search import NEVER, Hypothesis
from tmnmt.layers.combine import LayerInputs, MemoryLayers, Stepped
from tmnmt.layers.trace import Trace
from tmnmt.models.base import Backbone
from tmnmt.terms.insertion import Insert, Inserter, Place
from tmnmt.terms.subword_forms import Spelling
from tmnmt.terms.target_prior import TargetPrior
from tmnmt.vocab import BOS, EOS

STAYS = 1.5  # nats: how much likelier another form of a word has to be
FOLLOWS = 0.0  # nats: the same behind a word that has taken another form, as in saisie et vendue
PRIOR_WEIGHT = 1.0  # of log p of a form without a source, beside log p with it


@dataclass(frozen=True)
class Fixed:
    """Subwords that stay as they are."""

    ids: tuple[int, ...]


@dataclass(frozen=True)
class Alternatives:
    """One of several words, the first of which is what was there."""

    choices: tuple[tuple[int, ...], ...]


Part = Fixed | Alternatives | Insert


@dataclass
class _Way:
    """How far a translation is written: what is decided, and, for the word that is chosen now, what
    may still come."""

    remaining: list[Part]
    decided: list[int] = field(default_factory=list)
    choices: list[tuple[int, ...]] = field(default_factory=list)  # what is left of each
    has_original: bool = True  # the first of them is what was there
    position: int = 0  # how many subwords the decoder has read
    has_changed: bool = False  # a term has other small words than were there, or may have
    has_agreed: bool = False  # a word behind a term has taken another form

    def asks(self) -> bool:
        """Whether the next subword is still to be chosen."""
        while self._is_read and not self.choices and isinstance(self.remaining[0], Fixed):
            self.decided += self.remaining.pop(0).ids  # type: ignore[union-attr]
        return self._is_read

    @property
    def _is_read(self) -> bool:
        return self.position == len(self.decided)

    @property
    def last(self) -> int:
        """What the decoder read last."""
        return self.decided[self.position - 1] if self.position else BOS

    def begin_behind(self, ids: Sequence[int]) -> int:
        """Takes what stays at its beginning as read, where the translation `ids` begins so; how
        many subwords that is."""
        first = self.remaining[0]
        if isinstance(first, Fixed) and first.ids == (*ids[: len(first.ids)],):
            self.decided += first.ids
            self.remaining.pop(0)
            self.position = len(first.ids)
        return self.position

    @property
    def chooses_word(self) -> bool:
        """Whether a form of a word is to be chosen next, and not one of a term."""
        return bool(self.choices) or isinstance(self.remaining[0], Alternatives)

    def take(self, ids: Sequence[int], is_same: bool) -> None:
        """Takes a form with its small words. Where neither this nor a term before it has other
        small words than were there, the words that follow, up to the next term, stay.

        ids: their subwords.
        is_same: whether the small words are those that were there and show a gender."""
        self.decided += ids
        self.has_changed, self.has_agreed = self.has_changed or not is_same, False
        if not self.has_changed:
            following = [isinstance(part, Insert) for part in self.remaining]
            end = following.index(True) if True in following else len(following)
            self.remaining[:end] = [
                Fixed(part.choices[0]) if isinstance(part, Alternatives) else part
                for part in self.remaining[:end]
            ]

    @property
    def has_words(self) -> bool:
        """Whether a form of a word is still to be chosen, or may be."""
        return bool(self.choices) or any(isinstance(part, Alternatives) for part in self.remaining)

    @property
    def is_open(self) -> bool:
        """Whether anything is left to choose."""
        return bool(self.choices) or not all(isinstance(part, Fixed) for part in self.remaining)


@dataclass
class _StepTrace:
    """What is kept of the steps of a sentence, where it is asked for."""

    contexts: list[Tensor] = field(default_factory=list)
    hiddens: list[Tensor] = field(default_factory=list)
    probabilities: list[float] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)

    def take(self, step: Stepped, row: int, token: int) -> None:
        """What a step gives of its row for the subword `token`."""
        self.contexts.append(step.step.context[row])
        self.hiddens.append(step.step.hidden[row])
        if step.trace is not None:
            index = torch.tensor([row]), torch.tensor([token])
            self.probabilities.append(float(step.log_probs[row, token].exp()))
            self.traces.append(step.trace.select(*index).pick(row, 0))


class Writer:
    """Writes the parts of every sentence, to its end."""

    def __init__(
        self,
        parts: Sequence[Sequence[Part]],
        spelling: Spelling,
        backbone: Backbone,
        layers: MemoryLayers | None,
        prior: TargetPrior | None = None,
    ) -> None:
        """parts: the parts of every sentence.
        spelling: what the subwords say of where words begin and end.
        backbone: the model that decodes.
        layers: its memory layers; None for the plain model.
        prior: the decoder that has read an empty source; None makes one."""
        self._ways = [_Way([*way, Fixed((EOS,))]) for way in parts]
        self._spelling = spelling
        self._backbone, self._layers = backbone, layers or MemoryLayers()
        self._prior = prior or TargetPrior(backbone)
        self._inserter = Inserter(spelling, backbone, self._layers, self._prior)

    def rewrite(
        self,
        encoded: Any,
        ready: LayerInputs,
        originals: Sequence[Hypothesis],
        keep_states: bool = False,
        explain: bool = False,
    ) -> list[Hypothesis]:
        """Writes the translations. They have the scores of the originals, because the model would
        not have chosen what is put in.

        Only what has to be chosen is read out. A sentence with nothing left to choose leaves the
        batch, unless its states are kept or it is explained. Otherwise, and where no memory is
        read, nothing is written before the first choice of a sentence, as far as the states up to
        there were noted.

        encoded: the encoded sources, one row a sentence.
        ready: what the layers read, one row a sentence; or empty.
        originals: the translations that were found without the terms.
        keep_states: whether the result has its contexts and hidden states.
        explain: whether the result says what the layers did."""
        with torch.inference_mode():
            notes = [_StepTrace() for _ in self._ways] if keep_states or explain else []
            self._write(encoded, ready, originals, notes, explain)
        hypotheses = list[Hypothesis]()
        for number, (way, was) in enumerate(zip(self._ways, originals, strict=True)):
            rest = [
                token for part in way.remaining if isinstance(part, Fixed) for token in part.ids
            ]
            ids = tuple([*way.decided, *rest][:-1])
            hypothesis = Hypothesis(ids, was.score, was.log_prob, True, original=was)
            hypotheses.append(_with_notes(hypothesis, notes[number]) if notes else hypothesis)
        return hypotheses

    def _write(
        self,
        encoded: Any,
        ready: LayerInputs,
        originals: Sequence[Hypothesis],
        notes: Sequence[_StepTrace],
        explain: bool,
    ) -> None:
        """Steps through all sentences at once, one row each."""
        live = [number for number, way in enumerate(self._ways) if notes or way.is_open]
        device = encoded.mask.device
        index = torch.tensor(live, dtype=torch.long, device=device)
        encoded, ready = encoded.rows(index), ready.rows(index)
        state = self._backbone.start(encoded)
        if not notes and not ready.layers:
            state = self._behind_what_stays(state, live, originals)
        flexible = [number for number in live if self._ways[number].has_words]
        prior_steps = self._prior.steps(len(flexible)) if flexible else None
        while live:
            ways = [self._ways[number] for number in live]
            asking = [row for row, way in enumerate(ways) if way.asks()]
            prev = torch.tensor([way.last for way in ways], device=device)
            rows = None if explain else torch.tensor(asking, dtype=torch.long, device=device)
            step = self._layers.step(self._backbone, prev, state, encoded, ready, explain, rows)
            step.log_probs.index_fill_(1, NEVER.to(device), -torch.inf)
            says = step.log_probs[asking] if explain else step.log_probs
            without_source = dict[int, Tensor]()
            if prior_steps is not None:
                choosing = [row for row in asking if ways[row].chooses_word]
                prior_rows = [flexible.index(live[row]) for row in choosing]
                prior = prior_steps.log_probs(
                    torch.tensor(prior_rows, dtype=torch.long, device=device)
                )
                without_source = dict(zip(choosing, prior, strict=True))
            open_rows = {
                row: (ways[row], log_probs, without_source.get(row))
                for row, log_probs in zip(asking, says, strict=True)
            }
            self._decide(open_rows, step, encoded)
            for row, (way, number) in enumerate(zip(ways, live, strict=True)):
                way.position += 1
                if notes and way.last != EOS:
                    notes[number].take(step, row, way.last)
            remaining = [row for row, way in enumerate(ways) if _goes_on(way, bool(notes))]
            index = torch.tensor(remaining, dtype=torch.long, device=device)
            if remaining and len(remaining) < len(live):  # no longer than the longest that is left
                encoded = encoded.rows(index)
                encoded = encoded.cut(int(encoded.mask.sum(1).max()))
            live = [live[row] for row in remaining]
            if prior_steps is not None:
                still_flexible = [number for number in live if self._ways[number].has_words]
                last_ids = [self._ways[number].last for number in still_flexible]
                prior_rows = [flexible.index(number) for number in still_flexible]
                prior_steps = prior_steps.follow(prior_rows, last_ids) if prior_rows else None
                flexible = still_flexible
            state, ready = self._backbone.reordered(step.state, index), step.ready.rows(index)

    def _behind_what_stays(
        self, state: Any, live: Sequence[int], originals: Sequence[Hypothesis]
    ) -> Any:
        """The state of every row behind what stays at the beginning of its translation, where all
        of them are known."""
        notes = [
            evidence.notes
            for number in live
            if (evidence := originals[number].evidence) is not None
        ]
        states = [note.state for note in notes if note is not None]
        if not states or len(states) < len(live):
            return state
        positions = [self._ways[number].begin_behind(originals[number].ids) for number in live]
        rows = zip(positions, states, state, strict=True)
        return torch.stack(
            [
                row_states[position - 1] if position else start
                for position, row_states, start in rows
            ]
        )

    def _decide(
        self, asking: Mapping[int, tuple[_Way, Tensor, Tensor | None]], step: Stepped, encoded: Any
    ) -> None:
        """Takes what comes next in every row that is asking, by its log p (V,) with the source and
        without one; forms are looked for in all rows at once."""
        places = [
            Place(part, row, log_probs, way.last)
            for row, (way, log_probs, prior) in asking.items()
            if (part := self._until_form(way, log_probs, prior)) is not None
        ]
        for place, ids in zip(places, self._inserter.choose(places, step, encoded), strict=True):
            is_same = self._spelling.has_same_gender(place.part.was, ids)
            asking[place.row][0].take(ids, is_same)

    def _until_form(self, way: _Way, log_probs: Tensor, prior: Tensor | None) -> Insert | None:
        """Chooses among words that were there. Returns the form that is to be put in, where one
        comes next; otherwise None."""
        while way.asks():
            if way.choices:
                self._choose(way, log_probs if prior is None else log_probs + PRIOR_WEIGHT * prior)
                continue
            part = way.remaining.pop(0)
            if isinstance(part, Insert):
                return part
            if isinstance(part, Alternatives):
                way.choices = [*part.choices]
                way.has_original = True
        return None

    def _choose(self, way: _Way, log_probs: Tensor) -> None:
        """One subword of a word that may have several forms; what was there is chosen unless
        another is far likelier."""
        first = way.choices[0][:1]
        worth = {(choice[:1]): self._chance(choice[:1], way, log_probs) for choice in way.choices}
        if way.has_original:
            worth[first] += FOLLOWS if way.has_agreed else STAYS
        best = max(worth, key=lambda token: worth[token])
        way.has_original = way.has_original and best == first
        way.choices = [choice[1:] for choice in way.choices if choice[:1] == best]
        way.decided += best
        if len(way.choices) == 1 or not best:
            way.decided += way.choices[0]
            way.choices = []
            way.has_agreed = way.has_agreed or not way.has_original

    def _chance(self, token: tuple[int, ...], way: _Way, log_probs: Tensor) -> float:
        """The log probability of a subword; where none is given, that the word ends here."""
        if token:
            return float(log_probs[token[0]])
        part = way.remaining[0]
        if isinstance(part, Insert):
            return self._spelling.ends(log_probs)
        following = [part.ids] if isinstance(part, Fixed) else part.choices
        return max(float(log_probs[ids[0]]) for ids in following)


def _goes_on(way: _Way, to_its_end: bool) -> bool:
    return way.last != EOS if to_its_end else way.is_open


def _with_notes(hypothesis: Hypothesis, notes: _StepTrace) -> Hypothesis:
    contexts, hiddens = (torch.stack(steps) for steps in (notes.contexts, notes.hiddens))
    return replace(
        hypothesis,
        contexts=contexts,
        hiddens=hiddens,
        probabilities=tuple(notes.probabilities),
        traces=tuple(notes.traces),
    )
