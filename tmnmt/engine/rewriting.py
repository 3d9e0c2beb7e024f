"""A translation that is written once more with terms in it, word for word as it was but for them.

The decoder is led through the translation part by part (`Writer`):

    Fixed    stays as it was
    Either   a word behind a term: as it was, or in the form that the decoder finds likelier now
    Insert   a form of a term, and before it the small words that go with it: les droits becomes
             la redevance

For an `Insert` a small beam looks for the likeliest small words and form. What it finds is ranked
by its probability here and by how well the two go together: by how likely the form is
behind the last of them, for a decoder that has read no source. One that has read the source expects
another word than the term, and tells little of which article this one has (OURS).

Nothing else is ever written: no words are lost, doubled or said otherwise."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tmnmt.engine.beam_search import NEVER, Hypothesis
from tmnmt.engine.unread import Ids, Unread
from tmnmt.layers.combine import MemoryLayers, Ready, Stepped
from tmnmt.layers.trace import Trace
from tmnmt.models.base import Backbone
from tmnmt.vocab import BOS, EOS, UNK, Vocabulary

WIDTH = 8  # hypotheses of one kind that are followed
WASTE = 1.5  # rows at most, to one that is asked for, where all sentences have as many
NEAR = 10.0  # nats: those so far behind the best are not ranked
OTHER, NONE = 1.0, 4.0  # nats: what other small words than were there stand behind, and none
HERE = 0.3  # of the log probability of a form that it has here, where small words go with it
STAYS = 1.5  # nats: how much likelier another form of a word has to be
APOSTROPHES = ("'", "’")
Chances = NDArray[np.float32]
_FIRST = re.compile(r"[^\s']+'?")


class Form(NamedTuple):
    """The subwords of a form. `inside`: it does not begin with a blank, as behind an apostrophe.
    `cost`: in nats, what it stands behind the others."""

    ids: tuple[int, ...]
    inside: bool
    cost: float = 0.0


@dataclass(frozen=True)
class Fixed:
    """Subwords that stay."""

    ids: tuple[int, ...]


@dataclass(frozen=True)
class Either:
    """One of several, the first of which is what was there."""

    choices: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Insert:
    """One of `forms`, after up to `small` small words; `was`: the subwords of those that were
    there."""

    forms: tuple[Form, ...]
    small: int = 0
    was: tuple[int, ...] = ()


Part = Fixed | Either | Insert


class Spelling:
    """What a vocabulary's subwords say of where words begin and end."""

    def __init__(
        self, vocab: Vocabulary, small: Mapping[str, frozenset[str]] = MappingProxyType({})
    ) -> None:
        self._small = small
        self._vocab = vocab
        pieces = [vocab.piece(number) for number in range(len(vocab))]
        self.goes_on = torch.tensor([piece[:1].isalnum() for piece in pieces])  # the word before
        self.is_open = [not piece[-1:].isalnum() for piece in pieces]  # a word may follow at once
        self.is_open[BOS] = False
        self.is_cut = [piece.endswith(APOSTROPHES) for piece in pieces]  # one must
        self._written = {
            self.ids(word.removesuffix("'")): sorts
            for one, sorts in small.items()
            for word in (one, one.capitalize())
        }
        # the last subwords of those that an apostrophe follows
        self.elided = {
            self.ids(word.removesuffix("'"))[-1]
            for one in small
            for word in (one, one.capitalize())
            if one.endswith("'")
        }
        self.apostrophes = [at for at, piece in enumerate(pieces) if piece in APOSTROPHES]

    def forms(self, text: str, cost: float = 0.0) -> list[Form]:
        """A text as it is written after a blank, and after an apostrophe where one may stand
        before it; none where the vocabulary cannot write it."""
        forms = [Form(tuple(self._vocab.encode(text)), False, cost)]
        for opened in ("l'", "l’") if _is_elided(text) else ():
            before, ids = self._vocab.encode(opened), self._vocab.encode(opened + text)
            if ids[: len(before)] == before and self.is_open[before[-1]]:
                forms.append(Form(tuple(ids[len(before) :]), True, cost))
        return [form for form in dict.fromkeys(forms) if form.ids and UNK not in form.ids]

    def small_behind(self, ids: tuple[int, ...], was: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The small words that may follow: first those with a preposition of those that were there,
        then, behind a preposition, those without one."""
        if not ids:
            return self._of_sorts(self.sorts(was) if was else None)
        return self._of_sorts(frozenset([""])) if "" not in self.sorts(ids) else []

    def _of_sorts(self, sorts: frozenset[str] | None) -> list[tuple[int, ...]]:
        return [
            ids for ids, own in self._written.items() if sorts is None or not own.isdisjoint(sorts)
        ]

    def last_word(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The subwords of the last word, with its apostrophe."""
        starts = [at for at, one in enumerate(ids) if self._vocab.piece(one)[:1] == "▁"]
        return ids[starts[-1] :] if starts else ids

    def stem(self, ids: tuple[int, ...]) -> str:
        """What small words are alike by: without an apostrophe or e or a at their ends le, la and
        l' are one, and so are un and une."""
        text = self._vocab.decode(ids).lower()
        return " ".join(word.strip("'’").rstrip("ea") for word in text.split())

    def sorts(self, ids: Sequence[int]) -> frozenset[str]:
        """The prepositions that small words may begin with."""
        text = self._vocab.decode(ids).lower().replace("’", "'")
        word = _FIRST.match(text)
        return self._small.get(word[0] if word else "", frozenset([""]))

    def ids(self, word: str) -> tuple[int, ...]:
        """A word after a blank."""
        return tuple(self._vocab.encode(word))


def _is_elided(text: str) -> bool:
    """Whether a small word before a text may end in an apostrophe, as in l'avis."""
    return unicodedata.normalize("NFD", text[:1]).casefold().startswith(tuple("aeiouyhœæ"))


@dataclass
class _Way:
    """How far a translation is written: what is decided, and of the word that is chosen now what
    may still come."""

    left: list[Part]
    decided: list[int] = field(default_factory=list)
    choices: list[tuple[int, ...]] = field(default_factory=list)  # what is left of each
    own: bool = True  # the first of them is what was there
    at: int = 0  # how many subwords the decoder has read

    def asks(self) -> bool:
        """Whether the next subword is still to be chosen."""
        while self._is_read and not self.choices and isinstance(self.left[0], Fixed):
            self.decided += self.left.pop(0).ids  # type: ignore[union-attr]
        return self._is_read

    @property
    def _is_read(self) -> bool:
        return self.at == len(self.decided)

    @property
    def last(self) -> int:
        """What the decoder read last."""
        return self.decided[self.at - 1] if self.at else BOS

    def begin_behind(self, ids: Sequence[int]) -> int:
        """Takes what stays at its beginning as read, where the translation `ids` begins so; how
        many subwords that is."""
        first = self.left[0]
        if isinstance(first, Fixed) and first.ids == (*ids[: len(first.ids)],):
            self.decided += first.ids
            self.left.pop(0)
            self.at = len(first.ids)
        return self.at

    @property
    def is_open(self) -> bool:
        """Whether anything is left to choose."""
        return bool(self.choices) or not all(isinstance(part, Fixed) for part in self.left)


@dataclass
class _Noted:
    """What is kept of the steps of a sentence, where it is asked for."""

    contexts: list[Tensor] = field(default_factory=list)
    hiddens: list[Tensor] = field(default_factory=list)
    probabilities: list[float] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)

    def take(self, step: Stepped, row: int, token: int) -> None:
        """What a step gives of its row for the subword `token`."""
        self.contexts.append(step.at.context[row])
        self.hiddens.append(step.at.hidden[row])
        if step.trace is not None:
            index = torch.tensor([row]), torch.tensor([token])
            self.probabilities.append(float(step.log_probs[row, token].exp()))
            self.traces.append(step.trace.at(*index).chosen(row, 0))


class Writer:
    """Writes the parts of every sentence, to its end."""

    def __init__(
        self,
        parts: Sequence[Sequence[Part]],
        spelling: Spelling,
        backbone: Backbone,
        layers: MemoryLayers | None,
        unread: Unread | None = None,
    ) -> None:
        self._ways = [_Way([*way, Fixed((EOS,))]) for way in parts]
        self._spelling = spelling
        self._backbone, self._layers = backbone, layers or MemoryLayers()
        self._unread = unread or Unread(backbone)

    def written(
        self,
        encoded: Any,
        ready: Ready,
        before: Sequence[Hypothesis],
        keep_states: bool = False,
        explain: bool = False,
    ) -> list[Hypothesis]:
        """The translations, of as many rows of `encoded` and `ready`. Their scores are those of
        what was found `before`: the model would not have chosen what is put in.

        Only what has to be chosen is read out. A sentence with nothing left to choose leaves,
        unless its states are to be kept or it is explained. Else, and where no memory is read, none
        is written before its first choice, as far as the states until there were noted."""
        with torch.inference_mode():
            notes = [_Noted() for _ in self._ways] if keep_states or explain else []
            self._write(encoded, ready, before, notes, explain)
        hypotheses = list[Hypothesis]()
        for number, (way, was) in enumerate(zip(self._ways, before, strict=True)):
            rest = [one for part in way.left if isinstance(part, Fixed) for one in part.ids]
            ids = tuple([*way.decided, *rest][:-1])
            made = Hypothesis(ids, was.score, was.log_prob, True, before=was)
            hypotheses.append(_with_notes(made, notes[number]) if notes else made)
        return hypotheses

    def _write(
        self,
        encoded: Any,
        ready: Ready,
        before: Sequence[Hypothesis],
        notes: Sequence[_Noted],
        explain: bool,
    ) -> None:
        """Steps through all sentences at once, one row each."""
        live = [number for number, way in enumerate(self._ways) if notes or way.is_open]
        device = encoded.mask.device
        index = torch.tensor(live, dtype=torch.long, device=device)
        encoded, ready = encoded.rows(index), ready.rows(index)
        state = self._backbone.start(encoded)
        if not notes and not ready.layers:
            state = self._behind_what_stays(state, live, before)
        while live:
            ways = [self._ways[number] for number in live]
            asking = [row for row, way in enumerate(ways) if way.asks()]
            prev = torch.tensor([way.last for way in ways], device=device)
            rows = None if explain else torch.tensor(asking, dtype=torch.long, device=device)
            step = self._layers.step(self._backbone, prev, state, encoded, ready, explain, rows)
            step.log_probs.index_fill_(1, NEVER.to(device), -torch.inf)
            says = step.log_probs[asking] if explain else step.log_probs
            own = {row: (ways[row], one) for row, one in zip(asking, says, strict=True)}
            self._decide(own, step, encoded)
            for row, (way, number) in enumerate(zip(ways, live, strict=True)):
                way.at += 1
                if notes and way.last != EOS:
                    notes[number].take(step, row, way.last)
            on = [row for row, way in enumerate(ways) if _goes_on(way, bool(notes))]
            index = torch.tensor(on, dtype=torch.long, device=device)
            if on and len(on) < len(live):  # no longer than the longest that is left
                encoded = encoded.rows(index)
                encoded = encoded.cut(int(encoded.mask.sum(1).max()))
            live = [live[row] for row in on]
            state, ready = self._backbone.reordered(step.state, index), step.ready.rows(index)

    def _behind_what_stays(
        self, state: Any, live: Sequence[int], before: Sequence[Hypothesis]
    ) -> Any:
        """The state of every row behind what stays at the beginning of its translation, where all
        of them are known."""
        along = [one.along for number in live if (one := before[number].looked) is not None]
        known = [one.state for one in along if one is not None]
        if not known or len(known) < len(live):
            return state
        begun = [self._ways[number].begin_behind(before[number].ids) for number in live]
        rows = zip(begun, known, state, strict=True)
        return torch.stack([own[at - 1] if at else start for at, own, start in rows])

    def _decide(
        self, asking: Mapping[int, tuple[_Way, Tensor]], step: Stepped, encoded: Any
    ) -> None:
        """Takes what comes next in every row that is asking, by its log p (V,); forms are looked
        for in all rows at once."""
        places = [
            _Place(part, row, log_probs, way.last)
            for row, (way, log_probs) in asking.items()
            if (part := self._until_form(way, log_probs)) is not None
        ]
        for place, ids in zip(places, self._inserted(places, step, encoded), strict=True):
            way, _ = asking[place.row]
            way.decided += ids

    def _until_form(self, way: _Way, log_probs: Tensor) -> Insert | None:
        """Takes the next subword, of words that were there; None where it is of a form, which is
        given."""
        while way.asks():
            if way.choices:
                self._choose(way, log_probs)
                continue
            part = way.left.pop(0)
            if isinstance(part, Insert):
                return part
            if isinstance(part, Either):
                way.choices = [*part.choices]
                way.own = True
        return None

    def _choose(self, way: _Way, log_probs: Tensor) -> None:
        """One subword of a word that may have several forms; what was there is chosen unless
        another is far likelier."""
        first = way.choices[0][:1]
        worth = {(choice[:1]): self._chance(choice[:1], way, log_probs) for choice in way.choices}
        if way.own:
            worth[first] += STAYS
        best = max(worth, key=lambda one: worth[one])
        way.own = way.own and best == first
        way.choices = [choice[1:] for choice in way.choices if choice[:1] == best]
        way.decided += best
        if len(way.choices) == 1 or not best:
            way.decided += way.choices[0]
            way.choices = []

    def _chance(self, token: tuple[int, ...], way: _Way, log_probs: Tensor) -> float:
        """log p of a subword; of none: that the word ends here."""
        if token:
            return float(log_probs[token[0]])
        part = way.left[0]
        if isinstance(part, Insert):
            return self._ends(log_probs)
        following = [part.ids] if isinstance(part, Fixed) else part.choices
        return max(float(log_probs[ids[0]]) for ids in following)

    def _ends(self, log_probs: Tensor) -> float:
        """log p that the word before ends."""
        on = self._spelling.goes_on.to(log_probs.device)
        return float(log_probs.masked_fill(on, -torch.inf).logsumexp(0))

    def _inserted(self, places: Sequence[_Place], step: Stepped, encoded: Any) -> list[Ids]:
        """The subwords of what fits best in every place."""
        sure = [self._only(place) for place in places]
        rest = [place for place, ids in zip(places, sure, strict=True) if not ids]
        near = [*map(_near, self._tries(rest, step, encoded))]
        ranked = [many if place.part.small else [] for place, many in zip(rest, near, strict=True)]
        self._unread.chances([pair for many in ranked for pair in self._pairs(many)])  # at once
        best = (self._best(*one) for one in zip(rest, near, strict=True))
        return [ids or next(best) for ids in sure]

    def _only(self, place: _Place) -> Ids:
        """The form that comes where nothing is to be chosen; else nothing."""
        fitting = [form for form in place.part.forms if self._fits(form, place.prev)]
        return fitting[0].ids if not place.part.small and len(fitting) == 1 else ()

    def _best(self, place: _Place, near: Sequence[_Tried]) -> Ids:
        if not near:  # what stands before it fits none of its forms
            return min(place.part.forms, key=lambda form: form.cost).ids
        if place.part.small and len(near) > 1:
            fits = self._fit(near)
            near = [
                one._replace(score=HERE * one.score + (1 - HERE) * one.small_score + fit)
                for one, fit in zip(near, fits, strict=True)
            ]
        return max(near, key=lambda one: one.score).ids

    def _tries(self, places: Sequence[_Place], step: Stepped, encoded: Any) -> list[list[_Tried]]:
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
            chance = float(chances[rest[0]]) if rest else self._ends(log_probs)
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
        chances = self._unread.chances(pairs)
        most = dict[Ids, float]()
        for (_, form), chance in zip(pairs, chances, strict=True):
            most[form] = max(chance, most.get(form, -torch.inf))
        return [chance - most[form] / 2 for (_, form), chance in zip(pairs, chances, strict=True)]


def _goes_on(way: _Way, to_its_end: bool) -> bool:
    return way.last != EOS if to_its_end else way.is_open


def _with_notes(made: Hypothesis, noted: _Noted) -> Hypothesis:
    contexts, hiddens = (torch.stack(steps) for steps in (noted.contexts, noted.hiddens))
    return replace(
        made,
        contexts=contexts,
        hiddens=hiddens,
        probabilities=tuple(noted.probabilities),
        traces=tuple(noted.traces),
    )


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


class _Place(NamedTuple):
    """Where a form is to stand."""

    part: Insert
    row: int  # of the step that has read what stands before it
    log_probs: Tensor  # (V,) of that row
    prev: int


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
