"""A translation that is written once more with terms in it, word for word as it was but for them.

The search is led through the translation part by part (`Lead`):

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
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tmnmt.keys.pair_keys import padded
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.base import Backbone
from tmnmt.vocab import BOS, EOS, UNK, Vocabulary

if TYPE_CHECKING:
    from tmnmt.engine.beam_search import Live
    from tmnmt.layers.combine import Stepped

WIDTH = 8  # hypotheses of one kind that are followed
NEAR = 10.0  # nats: those so far behind the best are not ranked
OTHER, NONE = 1.0, 4.0  # nats: what other small words than were there stand behind, and none
HERE = 0.3  # of the log probability of a form that it has here, where small words go with it
STAYS = 1.5  # nats: how much likelier another form of a word has to be
APOSTROPHES = ("'", "’")
Ids = tuple[int, ...]
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

    def longest(self, part: Part) -> int:
        """The subwords that a part has at most."""
        if isinstance(part, Fixed):
            return len(part.ids)
        if isinstance(part, Either):
            return max(map(len, part.choices))
        small = 1 + max(map(len, self._written), default=0)  # and an apostrophe
        return part.small * small + max(len(form.ids) for form in part.forms)

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


class Lead:
    """Leads the search through every sentence's parts, to its end."""

    def __init__(
        self,
        parts: Sequence[Sequence[Part]],
        spelling: Spelling,
        backbone: Backbone,
        layers: MemoryLayers | None,
    ) -> None:
        self._ways = [_Way([*way, Fixed((EOS,))]) for way in parts]
        self.longest = [sum(map(spelling.longest, way)) + 1 for way in parts]  # with </s>
        self._spelling = spelling
        self._backbone, self._layers = backbone, layers or MemoryLayers()
        self._unread: Any = None
        self._alone = dict[tuple[Ids, Ids], float]()  # log p of the second behind the first

    def bar(self, live: Live, step: Stepped, at: int) -> None:
        """Leaves of log p (R, V) at step `at` the one subword that comes. A sentence has one row
        that lives, its first."""
        beam = len(live.prev) // len(live.sentence)
        for place, sentence in enumerate(live.sentence.tolist()):
            row, way = place * beam, self._ways[sentence]
            while at == len(way.decided):
                self._decide(way, live, step, place, row)
            token = way.decided[at]
            only = float(step.log_probs[row, token])
            step.log_probs[row : row + beam] = -torch.inf
            step.log_probs[row, token] = only

    def moved(self, rows: Tensor, tokens: Tensor) -> None:
        """Nothing moves: a sentence has one row."""

    def _decide(self, way: _Way, live: Live, step: Stepped, place: int, row: int) -> None:
        """Takes the next subword, or the next part."""
        if way.choices:
            self._choose(way, step.log_probs[row])
            return
        part = way.left.pop(0)
        if isinstance(part, Fixed):
            way.decided += part.ids
        elif isinstance(part, Either):
            way.choices = [*part.choices]
            way.own = True
        else:
            rows = torch.tensor(
                [place if self._backbone.shares_encoded else row], device=live.prev.device
            )
            encoded = live.encoded.rows(rows)
            way.decided += self._inserted(part, step, row, encoded, int(live.prev[row]))

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

    def _inserted(
        self, part: Insert, step: Stepped, row: int, encoded: Any, prev: int
    ) -> tuple[int, ...]:
        """The subwords of what fits best behind `prev`, which the `row` of a step has read."""
        tried = self._tries(part, step, row, encoded, prev)
        if not tried:  # what stands before it fits none of its forms
            return min(part.forms, key=lambda form: form.cost).ids
        most = max(one.score for one in tried)
        near = [one for one in tried if one.score > most - NEAR]
        if part.small and len(near) > 1:
            fits = self._fit(near)
            near = [
                one._replace(score=HERE * one.score + (1 - HERE) * one.small_score + fit)
                for one, fit in zip(near, fits, strict=True)
            ]
        return max(near, key=lambda one: one.score).ids

    def _tries(
        self, part: Insert, step: Stepped, row: int, encoded: Any, prev: int
    ) -> list[_Tried]:
        """Small words and a form behind them, each with its score."""
        going, finished = [_Tried(0.0, (), row)], list[_Tried]()
        while going:
            chances = step.log_probs.cpu().numpy()  # one number of it takes less time
            more = [
                new
                for one in going
                for new in self._after(one, step.log_probs[one.row], chances[one.row], part, prev)
            ]
            finished += [one for one in more if one.is_whole]
            least = max((one.score for one in finished), default=-torch.inf) - NEAR
            before = [one for one in more if one.form is None]
            within = [one for one in more if one.form is not None and not one.is_whole]
            levels = [[one for one in within if one.at == at] for at in {one.at for one in within}]
            going = [
                one
                for level in (before, *levels)
                for one in sorted(level, key=lambda one: -one.score)[:WIDTH]
                if one.score > least
            ]
            if going:
                step = self._on(step, going, encoded)
                written = [*dict.fromkeys(one.ids for one in going)]
                going = [one._replace(row=written.index(one.ids)) for one in going]
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
        is_open = self._spelling.is_open[last]
        cost = 0.0
        if self._spelling.stem(one.ids) != self._spelling.stem(part.was):
            cost = OTHER if one.ids else NONE
        elided = bool(one.ids) and last in self._spelling.elided
        for form in part.forms if not elided else ():
            if is_open if form.inside else not self._spelling.is_cut[last]:
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

    def _on(self, step: Stepped, going: Sequence[_Tried], encoded: Any) -> Stepped:
        """The next step of these."""
        unfinished = [*{one.ids: one for one in going}.values()]
        if len(unfinished) == len(step.log_probs):  # a state of as many rows would be written over
            unfinished.append(unfinished[0])
        device = step.log_probs.device
        index = torch.tensor([one.row for one in unfinished], device=device)
        prev = torch.tensor([one.ids[-1] for one in unfinished], device=device)
        if not self._backbone.shares_encoded:
            encoded = encoded.rows(torch.zeros_like(index))
        state = self._backbone.reordered(step.state, index)
        return self._layers.step(self._backbone, prev, state, encoded, step.ready.rows(index))

    def _fit(self, tried: Sequence[_Tried]) -> list[float]:
        """log p of every form behind the last of its small words, for a decoder that has read no
        source, beside half of the most that it is behind any."""
        forms = [one.form.ids for one in tried if one.form is not None]
        before = [
            self._spelling.last_word(one.ids[: len(one.ids) - len(form)])
            for one, form in zip(tried, forms, strict=True)
        ]
        asked = [*zip(before, forms, strict=True)]
        if new := [one for one in dict.fromkeys(asked) if one not in self._alone]:
            self._alone |= zip(new, self._chances(new), strict=True)
        chances = [self._alone[one] for one in asked]
        most = dict[tuple[int, ...], float]()
        for form, chance in zip(forms, chances, strict=True):
            most[form] = max(chance, most.get(form, -torch.inf))
        return [chance - most[form] / 2 for form, chance in zip(forms, chances, strict=True)]

    def _chances(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[float]:
        """log p of the second subwords behind the first, without a source."""
        backbone = self._backbone
        device = next(backbone.parameters()).device
        if self._unread is None:
            self._unread = backbone.encode(
                torch.tensor([[EOS]], device=device), torch.tensor([1], device=device)
            )
        tgt = padded([[*first, *second, EOS] for first, second in pairs], device)
        rows = torch.zeros(len(pairs), dtype=torch.long, device=device)
        contexts, hiddens = backbone.forced(self._unread.rows(rows), tgt)
        prev = torch.cat([torch.full_like(tgt[:, :1], BOS), tgt[:, :-1]], 1)
        sizes = [(len(first), len(second)) for first, second in pairs]
        row = [at for at, (_, size) in enumerate(sizes) for _ in range(size)]
        of = [at for first, size in sizes for at in range(first, first + size)]
        logits = backbone.readout(prev[row, of], hiddens[row, of], contexts[row, of]).float()
        chances = logits.log_softmax(-1).gather(1, tgt[row, of][:, None])[:, 0]
        return [float(one.sum()) for one in torch.split(chances, [size for _, size in sizes])]


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
