"""Finds the small words and the form with which a term is put into a translation. A beam looks for
the likeliest of them.

What it finds is ranked by its probability at this place, and by how well the small words and the
form go together. The second is how likely the form is behind the last small word for a decoder that
has read no source. A decoder that has read the source expects another word than the term, and tells
little of which article this one has (OURS)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tmnmt.layers.combine import MemoryLayers, Stepped
from tmnmt.models.base import Backbone
from tmnmt.terms.subword_forms import Form, Spelling
from tmnmt.terms.target_prior import Ids, TargetPrior

WIDTH = 8  # hypotheses of one kind that are followed
WASTE = 1.5  # rows at most, to one that is asked for, where all sentences have as many
BEAM_WIDTH_NATS = 10.0  # nats: those so far behind the best are not ranked
OTHER_WORDS_PENALTY, NO_WORDS_PENALTY = (
    1.0,
    4.0,
)  # nats: what other small words than were there stand behind, and none
FORM_WEIGHT = 0.3  # of the log probability of a form that it has here, where small words go with it
EXCLUDED = 8.0  # nats: what a small word stands behind that cannot stand before the form
Chances = NDArray[np.float32]


@dataclass(frozen=True)
class Insert:
    """A part of a translation into which a term is put.

    forms: the forms that the term may have.
    small: how many small words may stand before the form at most.
    was: the subwords of the small words that were there."""

    forms: tuple[Form, ...]
    small: int = 0
    was: tuple[int, ...] = ()


class Place(NamedTuple):
    """A place where a form is to stand."""

    part: Insert
    row: int  # of the step that has read what stands before it
    log_probs: Tensor  # (V,) of that row
    prev: int


class _Trial(NamedTuple):
    """Small words and a form, as far as they are written. `row` is the row of the step that says
    what may follow."""

    score: float
    ids: tuple[int, ...]
    row: int
    small: int = 0
    word: tuple[int, ...] = ()  # what is left of a small word
    form: Form | None = None
    form_offset: int = 0  # subwords of the form; one more with the end of its last word
    small_score: float = 0.0  # of the small words alone
    start_score: float = 0.0  # of these and the first subword of the form


class _Trials:
    """The trials of a place. Of each form only the likeliest is written to its end. What is left of
    a form behind its first subword counts for all as it does there: what differs is how little the
    decoder expects the term, and not which small words go with it."""

    def __init__(self, place: Place) -> None:
        """place: the place."""
        self.going = [_Trial(0.0, (), place.row)]
        self._started = list[_Trial]()  # those that have the first subword of their form
        forms = place.part.forms
        self._is_single = len(forms) == 1  # what is left of it is the same for all
        self._rests = {forms[0]: 0.0} if self._is_single else dict[Form, float]()  # log p

    @property
    def finished(self) -> list[_Trial]:
        """The trials of forms that are known to their ends."""
        return [
            trial._replace(
                score=trial.score + self._rests[trial.form],
                ids=(*trial.ids, *trial.form.ids[1:]),
            )
            for trial in self._started
            if trial.form in self._rests
        ]

    def go_on(self, words: Sequence[_Trial], forms: Sequence[_Trial]) -> None:
        """Goes on with trials.

        words: those that have small words alone. All are followed.
        forms: those that have a part of a form, or all of it. The likeliest of each is followed."""
        self._started += [trial for trial in forms if trial.form_offset == 1]
        likeliest = dict[Form | None, float]()
        for trial in self._started:
            likeliest[trial.form] = max(trial.score, likeliest.get(trial.form, -torch.inf))
        followed = list[_Trial]()
        for trial in () if self._is_single else forms:
            if trial.form is None or trial.start_score < likeliest[trial.form]:
                continue
            if trial.form_offset > len(trial.form.ids):
                self._rests[trial.form] = trial.score - trial.start_score
            else:
                followed.append(trial)
        self.going = [*words, *followed]


class Inserter:
    """Looks for what fits best in places of several sentences at once."""

    def __init__(
        self, spelling: Spelling, backbone: Backbone, layers: MemoryLayers, prior: TargetPrior
    ) -> None:
        """spelling: what the subwords say of where words begin and end.
        backbone: the model that decodes.
        layers: its memory layers.
        prior: the decoder that has read an empty source."""
        self._spelling = spelling
        self._backbone, self._layers, self._prior = backbone, layers, prior

    def choose(self, places: Sequence[Place], step: Stepped, encoded: Any) -> list[Ids]:
        """The subwords of what fits best in every place.

        places: the places.
        step: the step that has read what stands before them.
        encoded: the encoded sources of the sentences."""
        sure = [self._certain_form(place) for place in places]
        rest = [place for place, ids in zip(places, sure, strict=True) if not ids]
        contenders = [*map(_contenders, self._tries(rest, step, encoded))]
        ranked = [
            hypotheses if place.part.small else []
            for place, hypotheses in zip(rest, contenders, strict=True)
        ]
        self._prior.chances(
            [pair for hypotheses in ranked for pair in self._pairs(hypotheses)]
        )  # at once
        best = (self._best(*pair) for pair in zip(rest, contenders, strict=True))
        return [ids or next(best) for ids in sure]

    def _certain_form(self, place: Place) -> Ids:
        """The form that comes where nothing has to be chosen; otherwise nothing."""
        fitting = [form for form in place.part.forms if self._fits(form, place.prev)]
        return fitting[0].ids if not place.part.small and len(fitting) == 1 else ()

    def _best(self, place: Place, contenders: Sequence[_Trial]) -> Ids:
        if not contenders:  # what stands before it fits none of its forms
            return min(place.part.forms, key=lambda form: form.cost).ids
        if place.part.small and len(contenders) > 1:
            fits = self._fit(contenders)
            contenders = [
                hypothesis._replace(
                    score=FORM_WEIGHT * hypothesis.score
                    + (1 - FORM_WEIGHT) * hypothesis.small_score
                    + fit
                )
                for hypothesis, fit in zip(contenders, fits, strict=True)
            ]
        return max(contenders, key=lambda hypothesis: hypothesis.score).ids

    def _tries(self, places: Sequence[Place], step: Stepped, encoded: Any) -> list[list[_Trial]]:
        """The small words with a form behind them, each with its score, for every place."""
        trials = [*map(_Trials, places)]
        says = {place.row: place.log_probs for place in places}  # of the step's rows
        while True:
            # one number of numpy's takes less time
            chances = {row: log_probs.cpu().numpy() for row, log_probs in says.items()}
            for place, of_place in zip(places, trials, strict=True):
                extensions = [
                    new
                    for hypothesis in of_place.going
                    for new in self._extensions(
                        hypothesis,
                        says[hypothesis.row],
                        chances[hypothesis.row],
                        place.part,
                        place.prev,
                    )
                ]
                self._go_on(of_place, extensions, place.part.was)
            if not any(of_place.going for of_place in trials):
                return [of_place.finished for of_place in trials]
            going = [of_place.going for of_place in trials]
            step, going = self._advance(step, going, encoded, [place.row for place in places])
            for of_place, of_step in zip(trials, going, strict=True):
                of_place.going = of_step
            says = dict(enumerate(step.log_probs))

    def _extensions(
        self, hypothesis: _Trial, log_probs: Tensor, chances: Chances, part: Insert, prev: int
    ) -> Iterator[_Trial]:
        """What may follow a trial. `chances` are the log probabilities as numbers."""
        if hypothesis.form is not None:
            rest = hypothesis.form.ids[hypothesis.form_offset : hypothesis.form_offset + 1]
            chance = float(chances[rest[0]]) if rest else self._spelling.ends(log_probs)
            yield hypothesis._replace(
                score=hypothesis.score + chance,
                ids=(*hypothesis.ids, *rest),
                form_offset=hypothesis.form_offset + 1,
            )
            return
        if hypothesis.word:
            token = hypothesis.word[0]
            score = hypothesis.score + float(chances[token])
            yield hypothesis._replace(
                score=score, ids=(*hypothesis.ids, token), word=hypothesis.word[1:]
            )
            return
        last = hypothesis.ids[-1] if hypothesis.ids else prev
        cost = 0.0
        if self._spelling.stem(hypothesis.ids) != self._spelling.stem(part.was):
            cost = OTHER_WORDS_PENALTY if hypothesis.ids else NO_WORDS_PENALTY
        elided = bool(hypothesis.ids) and last in self._spelling.elided
        small = self._spelling.last_word(hypothesis.ids)
        for form in part.forms if not elided else ():
            if self._fits(form, last):
                token = form.ids[0]
                excluded = EXCLUDED * self._spelling.is_excluded(small, form.ids)
                small_score = hypothesis.score - form.cost - cost - excluded
                start_score = small_score + float(chances[token])
                yield hypothesis._replace(
                    score=start_score,
                    ids=(*hypothesis.ids, token),
                    form=form,
                    form_offset=1,
                    small_score=small_score,
                    start_score=start_score,
                )
        if elided:
            for token in self._spelling.apostrophes:
                yield hypothesis._replace(
                    score=hypothesis.score + float(chances[token]), ids=(*hypothesis.ids, token)
                )
        elif hypothesis.small < part.small and not self._spelling.is_cut[last]:
            allowed = self._spelling.small_behind(hypothesis.ids, part.was)
            for ids in allowed:
                yield hypothesis._replace(
                    score=hypothesis.score + float(chances[ids[0]]),
                    ids=(*hypothesis.ids, ids[0]),
                    small=hypothesis.small + 1,
                    word=ids[1:],
                )

    def _fits(self, form: Form, last: int) -> bool:
        """Whether a form may stand behind this subword."""
        return self._spelling.is_open[last] if form.inside else not self._spelling.is_cut[last]

    def _go_on(self, trials: _Trials, extensions: Sequence[_Trial], was: Ids) -> None:
        """Goes on with the best extensions of each kind. Small words that are those that were there
        but for their gender are of a kind of their own."""
        best_score = max((trial.score for trial in trials.finished), default=-torch.inf)
        same, others, starts, forms = (list[_Trial]() for _ in range(4))
        for trial in sorted(extensions, key=lambda trial: -trial.score):
            if trial.form is None and self._spelling.stem(trial.ids) == self._spelling.stem(was):
                same.append(trial)
            elif trial.score > best_score - BEAM_WIDTH_NATS:
                kind = others if trial.form is None else starts if trial.form_offset == 1 else forms
                kind.append(trial)
        trials.go_on([*same[:WIDTH], *others[:WIDTH]], [*starts[:WIDTH], *forms])

    def _advance(
        self,
        step: Stepped,
        going: Sequence[Sequence[_Trial]],
        encoded: Any,
        sentences: Sequence[int],
    ) -> tuple[Stepped, list[list[_Trial]]]:
        """The next step of these trials, with the row of each in it. `sentences` has, for every
        place, the row of `encoded`."""
        rows = [
            {hypothesis.ids: hypothesis.row for hypothesis in hypotheses} for hypotheses in going
        ]
        prefixes, source_rows = self._laid_out(rows, sentences)
        if len(prefixes) == len(step.step.prev):  # a state of as many rows would be written over
            prefixes, source_rows = (
                [*prefixes, prefixes[0]],
                [sentences[number] for number, _ in [*prefixes, prefixes[0]]],
            )
        device = step.step.prev.device
        index = torch.tensor([rows[number][ids] for number, ids in prefixes], device=device)
        prev = torch.tensor([ids[-1] for _, ids in prefixes], device=device)
        encoded_rows = encoded.rows(torch.tensor(source_rows, device=device))
        state = self._backbone.reordered(step.state, index)
        step = self._layers.step(self._backbone, prev, state, encoded_rows, step.ready.rows(index))
        prefix_indices = {prefix: row for row, prefix in enumerate(prefixes)}
        return step, [
            [
                hypothesis._replace(row=prefix_indices[number, hypothesis.ids])
                for hypothesis in hypotheses
            ]
            for number, hypotheses in enumerate(going)
        ]

    def _laid_out(
        self, rows: Sequence[Mapping[Ids, int]], sentences: Sequence[int]
    ) -> tuple[list[tuple[int, Ids]], list[int]]:
        """What is asked of every place, by its number, and the rows of sources that are read. Where
        rows can share a source each place has as many; unless most of them would be for nothing."""
        width, numbers = (
            max(map(len, rows)),
            [number for number, prefix_rows in enumerate(rows) if prefix_rows],
        )
        if self._backbone.shares_encoded and width * len(numbers) <= WASTE * sum(map(len, rows)):
            prefixes = [
                (number, ids) for number in numbers for ids in islice(cycle(rows[number]), width)
            ]
            return prefixes, [sentences[number] for number in numbers]
        prefixes = [(number, ids) for number in numbers for ids in rows[number]]
        return prefixes, [sentences[number] for number, _ in prefixes]

    def _pairs(self, hypotheses: Sequence[_Trial]) -> list[tuple[Ids, Ids]]:
        """The last small word of each trial, with the form behind it."""
        forms = [hypothesis.form.ids for hypothesis in hypotheses if hypothesis.form is not None]
        return [
            (self._spelling.last_word(hypothesis.ids[: len(hypothesis.ids) - len(form)]), form)
            for hypothesis, form in zip(hypotheses, forms, strict=True)
        ]

    def _fit(self, hypotheses: Sequence[_Trial]) -> list[float]:
        """log p of every form behind the last of its small words, for a decoder that has read no
        source, beside half of the most that it is behind any."""
        pairs = self._pairs(hypotheses)
        chances = self._prior.chances(pairs)
        best_chances = dict[Ids, float]()
        for (_, form), chance in zip(pairs, chances, strict=True):
            best_chances[form] = max(chance, best_chances.get(form, -torch.inf))
        return [
            chance - best_chances[form] / 2
            for (_, form), chance in zip(pairs, chances, strict=True)
        ]


def _contenders(hypotheses: Sequence[_Trial]) -> list[_Trial]:
    """The trials that are ranked."""
    best_score = max((hypothesis.score for hypothesis in hypotheses), default=0.0)
    return [
        hypothesis for hypothesis in hypotheses if hypothesis.score > best_score - BEAM_WIDTH_NATS
    ]
