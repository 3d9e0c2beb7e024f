"""Small words and a form of a term, where a term is put into a translation: a beam looks for the
likeliest of them.

What it finds is ranked by its probability here and by how well the two go together: by how likely
the form is behind the last of them, for a decoder that has read no source. One that has read the
source expects another word than the term, and tells little of which article this one has (OURS)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tmnmt.engine.subword_forms import Form, Spelling
from tmnmt.engine.target_prior import Ids, TargetPrior
from tmnmt.layers.combine import MemoryLayers, Stepped
from tmnmt.models.base import Backbone

WIDTH = 8  # hypotheses of one kind that are followed
WASTE = 1.5  # rows at most, to one that is asked for, where all sentences have as many
NEAR = 10.0  # nats: those so far behind the best are not ranked
OTHER, NONE = 1.0, 4.0  # nats: what other small words than were there stand behind, and none
HERE = 0.3  # of the log probability of a form that it has here, where small words go with it
Chances = NDArray[np.float32]


@dataclass(frozen=True)
class Insert:
    """One of `forms`, after up to `small` small words; `was`: the subwords of those that were
    there."""

    forms: tuple[Form, ...]
    small: int = 0
    was: tuple[int, ...] = ()


class Place(NamedTuple):
    """Where a form is to stand."""

    part: Insert
    row: int  # of the step that has read what stands before it
    log_probs: Tensor  # (V,) of that row
    prev: int


class _Tried(NamedTuple):
    """Small words and a form, as far as they are written. `row`: of the step that says what may
    follow."""

    score: float
    ids: tuple[int, ...]
    row: int
    small: int = 0
    word: tuple[int, ...] = ()  # what is left of a small word
    form: Form | None = None
    at: int = 0  # subwords of the form
    small_score: float = 0.0  # of the small words alone
    is_whole: bool = False  # the form, and the end of its last word


class Inserter:
    """Looks for what fits best in places of several sentences at once."""

    def __init__(
        self, spelling: Spelling, backbone: Backbone, layers: MemoryLayers, prior: TargetPrior
    ) -> None:
        self._spelling = spelling
        self._backbone, self._layers, self._prior = backbone, layers, prior

    def choose(self, places: Sequence[Place], step: Stepped, encoded: Any) -> list[Ids]:
        """The subwords of what fits best in every place."""
        sure = [self._only(place) for place in places]
        rest = [place for place, ids in zip(places, sure, strict=True) if not ids]
        near = [*map(_near, self._tries(rest, step, encoded))]
        ranked = [many if place.part.small else [] for place, many in zip(rest, near, strict=True)]
        self._prior.chances([pair for many in ranked for pair in self._pairs(many)])  # at once
        best = (self._best(*one) for one in zip(rest, near, strict=True))
        return [ids or next(best) for ids in sure]

    def _only(self, place: Place) -> Ids:
        """The form that comes where nothing is to be chosen; else nothing."""
        fitting = [form for form in place.part.forms if self._fits(form, place.prev)]
        return fitting[0].ids if not place.part.small and len(fitting) == 1 else ()

    def _best(self, place: Place, near: Sequence[_Tried]) -> Ids:
        if not near:  # what stands before it fits none of its forms
            return min(place.part.forms, key=lambda form: form.cost).ids
        if place.part.small and len(near) > 1:
            fits = self._fit(near)
            near = [
                one._replace(score=HERE * one.score + (1 - HERE) * one.small_score + fit)
                for one, fit in zip(near, fits, strict=True)
            ]
        return max(near, key=lambda one: one.score).ids

    def _tries(self, places: Sequence[Place], step: Stepped, encoded: Any) -> list[list[_Tried]]:
        """Small words and a form behind them, each with its score, of every place."""
        going = [[_Tried(0.0, (), place.row)] for place in places]
        finished = [list[_Tried]() for _ in places]
        says = {place.row: place.log_probs for place in places}  # of the step's rows
        while any(going):
            # one number of numpy's takes less time
            chances = {row: own.cpu().numpy() for row, own in says.items()}
            for number, place in enumerate(places):
                more = [
                    new
                    for one in going[number]
                    for new in self._after(
                        one, says[one.row], chances[one.row], place.part, place.prev
                    )
                ]
                finished[number] += [one for one in more if one.is_whole]
                going[number] = _kept(more, finished[number])
            if any(going):
                step, going = self._on(step, going, encoded, [place.row for place in places])
                says = dict(enumerate(step.log_probs))
        return finished

    def _after(
        self, one: _Tried, log_probs: Tensor, chances: Chances, part: Insert, prev: int
    ) -> Iterator[_Tried]:
        """What may follow; `chances`: log_probs as numbers."""
        if one.form is not None:
            rest = one.form.ids[one.at : one.at + 1]
            chance = float(chances[rest[0]]) if rest else self._spelling.ends(log_probs)
            yield one._replace(
                score=one.score + chance, ids=(*one.ids, *rest), at=one.at + 1, is_whole=not rest
            )
            return
        if one.word:
            token = one.word[0]
            score = one.score + float(chances[token])
            yield one._replace(score=score, ids=(*one.ids, token), word=one.word[1:])
            return
        last = one.ids[-1] if one.ids else prev
        cost = 0.0
        if self._spelling.stem(one.ids) != self._spelling.stem(part.was):
            cost = OTHER if one.ids else NONE
        elided = bool(one.ids) and last in self._spelling.elided
        for form in part.forms if not elided else ():
            if self._fits(form, last):
                token = form.ids[0]
                score = one.score - form.cost - cost + float(chances[token])
                yield one._replace(
                    score=score,
                    ids=(*one.ids, token),
                    form=form,
                    at=1,
                    small_score=one.score - form.cost - cost,
                )
        if elided:
            for token in self._spelling.apostrophes:
                yield one._replace(score=one.score + float(chances[token]), ids=(*one.ids, token))
        elif one.small < part.small and not self._spelling.is_cut[last]:
            allowed = self._spelling.small_behind(one.ids, part.was)
            for ids in allowed:
                yield one._replace(
                    score=one.score + float(chances[ids[0]]),
                    ids=(*one.ids, ids[0]),
                    small=one.small + 1,
                    word=ids[1:],
                )

    def _fits(self, form: Form, last: int) -> bool:
        """Whether a form may stand behind this subword."""
        return self._spelling.is_open[last] if form.inside else not self._spelling.is_cut[last]

    def _on(
        self,
        step: Stepped,
        going: Sequence[Sequence[_Tried]],
        encoded: Any,
        sentences: Sequence[int],
    ) -> tuple[Stepped, list[list[_Tried]]]:
        """The next step of these, and where each stands in it. `sentences`: of every place, the row
        of `encoded`."""
        rows = [{one.ids: one.row for one in own} for own in going]
        asked, of = self._laid_out(rows, sentences)
        if len(asked) == len(step.at.prev):  # a state of as many rows would be written over
            asked, of = [*asked, asked[0]], [sentences[number] for number, _ in [*asked, asked[0]]]
        device = step.at.prev.device
        index = torch.tensor([rows[number][ids] for number, ids in asked], device=device)
        prev = torch.tensor([ids[-1] for _, ids in asked], device=device)
        own = encoded.rows(torch.tensor(of, device=device))
        state = self._backbone.reordered(step.state, index)
        step = self._layers.step(self._backbone, prev, state, own, step.ready.rows(index))
        at = {one: row for row, one in enumerate(asked)}
        return step, [
            [one._replace(row=at[number, one.ids]) for one in tried]
            for number, tried in enumerate(going)
        ]

    def _laid_out(
        self, rows: Sequence[Mapping[Ids, int]], sentences: Sequence[int]
    ) -> tuple[list[tuple[int, Ids]], list[int]]:
        """What is asked of every place, by its number, and the rows of sources that are read. Where
        rows can share a source each place has as many; unless most of them would be for nothing."""
        width, numbers = max(map(len, rows)), [at for at, own in enumerate(rows) if own]
        if self._backbone.shares_encoded and width * len(numbers) <= WASTE * sum(map(len, rows)):
            asked = [
                (number, ids) for number in numbers for ids in islice(cycle(rows[number]), width)
            ]
            return asked, [sentences[number] for number in numbers]
        asked = [(number, ids) for number in numbers for ids in rows[number]]
        return asked, [sentences[number] for number, _ in asked]

    def _pairs(self, tried: Sequence[_Tried]) -> list[tuple[Ids, Ids]]:
        """The last of the small words, and the form, of each."""
        forms = [one.form.ids for one in tried if one.form is not None]
        return [
            (self._spelling.last_word(one.ids[: len(one.ids) - len(form)]), form)
            for one, form in zip(tried, forms, strict=True)
        ]

    def _fit(self, tried: Sequence[_Tried]) -> list[float]:
        """log p of every form behind the last of its small words, for a decoder that has read no
        source, beside half of the most that it is behind any."""
        pairs = self._pairs(tried)
        chances = self._prior.chances(pairs)
        most = dict[Ids, float]()
        for (_, form), chance in zip(pairs, chances, strict=True):
            most[form] = max(chance, most.get(form, -torch.inf))
        return [chance - most[form] / 2 for (_, form), chance in zip(pairs, chances, strict=True)]


def _near(tried: Sequence[_Tried]) -> list[_Tried]:
    """Those that are ranked."""
    most = max((one.score for one in tried), default=0.0)
    return [one for one in tried if one.score > most - NEAR]


def _kept(tried: Sequence[_Tried], finished: Sequence[_Tried]) -> list[_Tried]:
    """Those that are gone on from: the best of each kind."""
    least = max((one.score for one in finished), default=-torch.inf) - NEAR
    before = [one for one in tried if one.form is None]
    within = [one for one in tried if one.form is not None and not one.is_whole]
    levels = [[one for one in within if one.at == at] for at in {one.at for one in within}]
    return [
        one
        for level in (before, *levels)
        for one in sorted(level, key=lambda one: -one.score)[:WIDTH]
        if one.score > least
    ]
