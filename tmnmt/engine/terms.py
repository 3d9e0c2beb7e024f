"""Terms on their way through the translator: what every translation must hold, where it goes, and
whether it is there.

A text is translated freely. Where a term is missing the words that stand for it are found by what
the decoder looked at, and one of its forms takes their place (`tmnmt.engine.rewriting`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tmnmt.checks import Check
from tmnmt.engine.beam_search import Hypothesis
from tmnmt.engine.insertion import Insert
from tmnmt.engine.links import with_same_words
from tmnmt.engine.rewriting import Either, Fixed, Part
from tmnmt.engine.subword_forms import APOSTROPHES, Form, Spelling
from tmnmt.segments import Token, Translation
from tmnmt.spans import piece_spans
from tmnmt.terms.check import chosen, term_checks, where
from tmnmt.terms.find import Finder, TermPlace
from tmnmt.terms.grammar import forms_of_word, other_forms, small_words
from tmnmt.terms.term import Term
from tmnmt.text import nfc, token_spans
from tmnmt.vocab import UNK, Vocabulary

Array = NDArray[np.float64]
Searched = Callable[[Sequence[int], Sequence[Sequence[Part]]], list[Hypothesis]]
TermChoices = Mapping[Term, str]  # the target that a document has confirmed for a term of several
Linked = Callable[[Sequence[int]], list[Array]]  # of these rows
TAKEN = ("memory", "adapted", "fuzzy")  # origins that are checked beside the model's own
INSIDE = 0.35  # of what a word comes from, at least, is the term's where it stands for the term
LEAST = 0.15  # the same, of the one word that does most
AS_GIVEN = 3.0  # nats: how much likelier the given form has to be where the source has another
OTHER_FORM = 3.0  # nats: the same of another form where the source has the term as it is
OF_NOUN = 5.0  # nats: that much more where an article stands before it, as verbs have none
SURE = 0.5  # of what a word comes from, where it surely stands for a word
NEIGHBOURS = 4  # words of a source before a term that are looked at where it has no place
# words and marks behind a term that may take other forms: of 320 sentences of law the farthest that
# did was the 13th
REACH = 16
SMALL_WORDS = 2  # before a term, at most, that may be chosen anew
TEXTS_KEPT = 1024  # texts whose terms are kept: each is asked for several times


class TermList:
    """The terms of a translator. `hard`: a given form must come; else another form of the same
    words will do."""

    def __init__(self, finder: Finder, vocab: Vocabulary, hard: bool, tgt_lang: str = "") -> None:
        self._find, self.lang = lru_cache(maxsize=TEXTS_KEPT)(finder.find), tgt_lang
        self.vocab, self.hard = vocab, hard
        self.small = small_words(tgt_lang)
        self.spelling = Spelling(vocab, self.small)

    def put_in(
        self,
        texts: Sequence[str],
        chosen: Sequence[TermChoices],
        said: Sequence[Hypothesis],
        search: Searched,
        link: Linked,
    ) -> list[Hypothesis]:
        """The translations of these texts with the terms that they lack."""
        hypotheses, lacking = list(said), self.lacking(texts, chosen, said)
        if not lacking:
            return hypotheses
        links = link([*lacking])
        parts = {
            row: parts
            for (row, lacking_here), own in zip(lacking.items(), links, strict=True)
            if (
                parts := _Rewritten(self, nfc(texts[row]), chosen[row], said[row].ids, own).parts(
                    lacking_here
                )
            )
        }
        if parts:
            for row, best in zip(parts, search([*parts], [*parts.values()]), strict=True):
                hypotheses[row] = best
        return hypotheses

    def lacking(
        self, texts: Sequence[str], chosen: Sequence[TermChoices], said: Sequence[Hypothesis]
    ) -> dict[int, list[TermPlace]]:
        """The rows whose translations lack a target, each with the places of its terms. `chosen`:
        of every text, the targets that alone count."""
        return {
            row: terms
            for row, (text, own, best) in enumerate(zip(texts, chosen, said, strict=True))
            if (terms := self._lacking(nfc(text), own, best.ids))
        }

    def _lacking(self, text: str, chosen: TermChoices, ids: Sequence[int]) -> list[TermPlace]:
        """The places of terms in a text for which its translation has less targets."""
        occurrences = self.occurrences(text, chosen)
        said = nfc(self.vocab.decode(ids)) if occurrences else ""
        lacking = list[TermPlace]()
        for term in dict.fromkeys(at.term for at in occurrences):
            places = [at for at in occurrences if at.term == term]
            if len(where(term, said, self.hard)) < len(places):
                lacking += places
        return lacking

    def occurrences(self, text: str, chosen: TermChoices = MappingProxyType({})) -> list[TermPlace]:
        """Where the terms stand that have a target; of those that are `chosen` with that alone."""
        return [
            replace(one, term=replace(one.term, targets=(chosen[one.term],)))
            if one.term in chosen
            else one
            for one in self._find(text)
            if one.term.targets
        ]

    def chosen(self, src: str, tgt: str) -> dict[Term, str]:
        """The targets that a translation has for those terms of its source that have several."""
        terms = dict.fromkeys(one.term for one in self.occurrences(nfc(src)))
        several = (term for term in terms if len(term.targets) > 1)
        return {term: one for term in several if (one := chosen(term, nfc(tgt)))}

    def forms(self, at: TermPlace, text: str, capital: bool, is_noun: bool) -> Iterable[Form]:
        """What may stand for a term found in a text. `is_noun`: small words stand before it."""
        inexact = text[at.start : at.end].casefold() != at.term.source.casefold()
        own, other = (AS_GIVEN, 0.0) if inexact else (0.0, OTHER_FORM + OF_NOUN * is_noun)
        for target in at.term.targets:
            others = () if self.hard else other_forms(target, self.lang)
            for form, cost in [(target, own), *((one, other) for one in others)]:
                if capital:
                    form = form[0].upper() + form[1:]
                yield from self.spelling.forms(form, cost)

    def marked(self, tokens: tuple[Token, ...], ids: Sequence[int], text: str) -> tuple[Token, ...]:
        """The tokens of a translation, with those that are of a term of its source."""
        terms = dict.fromkeys(one.term for one in self.occurrences(nfc(text))) if tokens else ()
        said = self.vocab.decode(ids)
        spans = piece_spans([self.vocab.piece(i) for i in ids], said) if terms else []
        of_term = {
            at
            for term in terms
            for a, b in where(term, said, self.hard)
            for at in _covered(spans, a, b)
        }
        return tuple(
            replace(token, origin="term") if at in of_term else token
            for at, token in enumerate(tokens)
        )

    def checked(self, translation: Translation) -> Translation:
        """The translation with what is wrong in it with terms."""
        if translation.origin not in ("model", *TAKEN) or not translation.tgt.strip():
            return translation
        results = self.checks(translation.src, translation.tgt)
        return replace(translation, user_checks=tuple(results))

    def checks(self, src: str, tgt: str) -> list[Check]:
        """What is wrong in a translation of `src` with terms."""
        return term_checks(self._find(nfc(src)), nfc(tgt))


class _Rewritten:
    """A translation in which terms take the places of words."""

    def __init__(
        self,
        terms: TermList,
        text: str,
        chosen: TermChoices,
        ids: tuple[int, ...],
        links: Array,
    ) -> None:
        self._terms, self._text, self._ids = terms, text, ids
        vocab = terms.vocab
        self._said = vocab.decode(ids)
        self._links = with_same_words(links, text, self._said)
        self._words, self._spans = token_spans(self._said), token_spans(text)
        self._pieces = piece_spans([vocab.piece(one) for one in ids], self._said)
        self._taken = {  # words that are a term's
            at
            for term in dict.fromkeys(at.term for at in terms.occurrences(text, chosen))
            for span in where(term, self._said, terms.hard)
            for at in _covered(self._words, *span)
        }

    def parts(self, lacking: Sequence[TermPlace]) -> list[Part]:
        """What the translation is made of with the terms that it lacks; nothing where none of them
        has a place."""
        places = list[tuple[int, int, TermPlace]]()
        for at in lacking:
            if (place := self._place(at)) is not None:
                self._taken.update(range(*place))
                places.append((*place, at))
        made = list[Part]()
        behind = 0
        for first, last, at in sorted(places, key=lambda one: one[:2]):
            self._insert(made, behind, first, last, at)
            behind = last
        return [*made, *self._between(behind, len(self._words), bool(made))] if made else []

    def _place(self, at: TermPlace) -> tuple[int, int] | None:
        """The words that a term takes the place of, first and behind the last: those that come
        most from its source, by the most mass inside minus `INSIDE` for each. None where a target
        stands there, or nothing does; a hard term is then put between words."""
        mass = self._links[:, _covered(self._spans, at.start, at.end)].sum(1)
        if any(mass[word] > INSIDE for word in self._taken):
            return None
        worth = [
            float(one) - INSIDE
            if word not in self._taken and self._said[self._words[word][0]].isalnum()
            else -1.0
            for word, one in enumerate(mass)
        ]
        place, start, total = None, 0, 0.0
        best = LEAST - INSIDE if self._terms.hard else 0.0
        for word, one in enumerate(worth):
            if total <= 0:
                start = word
                total = 0.0
            total += one
            if total > best:
                best, place = total, (start, word + 1)
        if place or not self._terms.hard or where(at.term, self._said, exact=True):
            return place
        return self._behind_neighbour(at)

    def _insert(self, made: list[Part], behind: int, first: int, last: int, at: TermPlace) -> None:
        """Adds the words from `behind` on, and a term instead of those from first to last."""
        words, said = self._words, self._said
        while last - first > 1 and self._is_small(first):
            first += 2 if said[words[first + 1][0]] in APOSTROPHES and last - first > 2 else 1
        start, between = self._before(first, behind)
        middle, begin = self._at(between), self._at(first)
        capital = first < last and said[words[first][0]].isupper()
        if capital and first:  # not that of the sentence: it may be the source's
            capital = self._text[at.start].isupper() and not at.term.source[0].isupper()
        forms = [*self._terms.forms(at, self._text, capital, start < between)]
        if middle < begin:
            inside = self._ids[begin - 1] in self._terms.spelling.apostrophes
            forms = [
                form._replace(ids=(*self._ids[middle:begin], *form.ids), inside=False)
                for form in forms
                if form.inside == inside
            ]
        if forms:
            made += self._between(behind, start, bool(made))
            was = self._ids[self._at(start) : middle]
            made.append(Insert(tuple(forms), 2 * bool(was or first == last), was))
        else:
            made += self._between(behind, last, bool(made))

    def _behind_neighbour(self, at: TermPlace) -> tuple[int, int]:
        """A place between words for a term whose source is not translated at all: behind what is
        said for the words before it, else at the end."""
        first = next(iter(_covered(self._spans, at.start, at.end)), 0)
        end = len(self._words)
        while end and not self._said[self._words[end - 1][0]].isalnum():
            end -= 1
        for source in range(first - 1, max(-1, first - 1 - NEIGHBOURS), -1):
            mass = self._links[:, source]
            if mass.size and mass.max() >= SURE:
                end = int(mass.argmax()) + 1
                break
        while 0 < end < len(self._words) and (
            {end - 1, end} <= self._taken
            or any(self._said[self._words[word][0]] in APOSTROPHES for word in (end - 1, end))
        ):
            end += 1
        return end, end

    def _before(self, first: int, behind: int) -> tuple[int, int]:
        """Where the small words before a place begin and end: just before it, or before the word
        that stands there, as une in une deuxième infraction."""
        start = self._small_words(first, behind)
        if start == first and first > behind + 1:
            begin, end = self._words[first - 1]
            if self._said[begin:end].isalpha() and self._said[begin - 1].isspace():
                start = self._small_words(first - 1, behind)
                return (start, first - 1) if start < first - 1 else (first, first)
        return start, first

    def _small_words(self, first: int, behind: int) -> int:
        """Where the small words before a word begin."""
        for _ in range(SMALL_WORDS):
            at = first - 1
            if at > behind and self._said[self._words[at][0]] in APOSTROPHES:
                at -= 1
            if at < behind or not self._is_small(at):
                break
            first = at
        return first

    def _is_small(self, at: int) -> bool:
        start, end = self._words[at]
        mark = "'" * (self._said[end : end + 1] in APOSTROPHES)
        return self._said[start:end].lower() + mark in self._terms.small

    def _at(self, word: int) -> int:
        """The first subword of a word."""
        if word == len(self._words):
            return len(self._ids)
        start = self._words[word][0]
        return next(
            (at for at, (_, end) in enumerate(self._pieces) if end > start), len(self._pieces)
        )

    def _between(self, first: int, last: int, is_behind: bool) -> list[Part]:
        """The words that stay, behind a term those that are near it in other forms, too."""
        far = min(first + REACH, last) if is_behind else first
        near = [self._word(at) for at in range(first, far) if self._at(at) < self._at(at + 1)]
        ids = self._ids[self._at(far) : self._at(last)]
        return [*near, Fixed(ids)] if ids else near

    def _word(self, at: int) -> Part:
        start, end = self._words[at]
        ids = self._ids[self._at(at) : self._at(at + 1)]
        word = self._said[start:end]
        others = list[tuple[int, ...]]()
        starts = self._terms.vocab.piece(ids[0])[:1] == "▁"
        if starts and word.islower() and at not in self._taken:
            encoded = map(self._terms.spelling.ids, forms_of_word(word, self._terms.lang))
            others = [one for one in encoded if one != ids and UNK not in one]
        return Either((ids, *others)) if others else Fixed(ids)


def _covered(spans: Sequence[tuple[int, int]], start: int, end: int) -> list[int]:
    """Which of these spans have characters of start to end."""
    return [at for at, (a, b) in enumerate(spans) if a < end and start < b]
