"""Terms on their way through the translator: what every translation must hold, where it goes, and
whether it is there.

A text is translated freely. Where a term is missing, the words that stand for it are found by what
the decoder looked at, and one of the forms of the term takes their place
(`tmnmt.engine.rewriting`)."""

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
from tmnmt.engine.rewriting import Alternatives, Fixed, Part
from tmnmt.engine.subword_forms import APOSTROPHES, Form, Spelling
from tmnmt.segments import Token, Translation
from tmnmt.spans import piece_spans
from tmnmt.terms.check import target_spans, term_checks, unique_target
from tmnmt.terms.find import Finder, TermPlace
from tmnmt.terms.grammar import forms_of_word, other_forms, small_words
from tmnmt.terms.term import Term
from tmnmt.text import nfc, token_spans
from tmnmt.vocab import UNK, Vocabulary

Array = NDArray[np.float64]
Searched = Callable[[Sequence[int], Sequence[Sequence[Part]]], list[Hypothesis]]
TermChoices = Mapping[Term, str]  # the target that a document has confirmed for a term of several
Linked = Callable[[Sequence[int]], list[Array]]  # of these rows
MATCH_ORIGINS = ("memory", "adapted", "fuzzy")  # origins that are checked beside the model's own
INSIDE = 0.35  # of what a word comes from, at least, is the term's where it stands for the term
MIN_SHARE = 0.15  # the same, of the one word that does most
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
    """The terms of a translator."""

    def __init__(self, finder: Finder, vocab: Vocabulary, hard: bool, tgt_lang: str = "") -> None:
        """finder: what finds the terms in a text.
        vocab: the vocabulary of the model.
        hard: whether a given form must come. Otherwise another form of the same words will do.
        tgt_lang: the target language, whose small words and endings are known."""
        self._find, self.lang = lru_cache(maxsize=TEXTS_KEPT)(finder.find), tgt_lang
        self.vocab, self.hard = vocab, hard
        self.small = small_words(tgt_lang)
        self.spelling = Spelling(vocab, self.small)

    def put_in(
        self,
        texts: Sequence[str],
        choices: Sequence[TermChoices],
        originals: Sequence[Hypothesis],
        search: Searched,
        link: Linked,
    ) -> list[Hypothesis]:
        """The translations of texts with the terms that they lack.

        texts: the sources.
        choices: for every text, the targets that its document has confirmed.
        originals: the translations that were found freely.
        search: a function that writes the translations of some rows once more, from their parts.
        link: a function that gives the links of the words of some rows."""
        hypotheses, lacking = list(originals), self.lacking(texts, choices, originals)
        if not lacking:
            return hypotheses
        links = link([*lacking])
        parts = {
            row: parts
            for (row, lacking_here), row_links in zip(lacking.items(), links, strict=True)
            if (
                parts := _Rewritten(
                    self, nfc(texts[row]), choices[row], originals[row].ids, row_links
                ).parts(lacking_here)
            )
        }
        if parts:
            for row, best in zip(parts, search([*parts], [*parts.values()]), strict=True):
                hypotheses[row] = best
        return hypotheses

    def lacking(
        self, texts: Sequence[str], choices: Sequence[TermChoices], hypotheses: Sequence[Hypothesis]
    ) -> dict[int, list[TermPlace]]:
        """The rows whose translations lack a target, each with the places of its terms.

        texts: the sources.
        choices: for every text, the targets that its document has confirmed. Only these count.
        hypotheses: the translations."""
        return {
            row: terms
            for row, (text, row_choices, best) in enumerate(
                zip(texts, choices, hypotheses, strict=True)
            )
            if (terms := self._lacking(nfc(text), row_choices, best.ids))
        }

    def _lacking(self, text: str, choices: TermChoices, ids: Sequence[int]) -> list[TermPlace]:
        """The places of terms in a text for which its translation has less targets."""
        occurrences = self.occurrences(text, choices)
        translation = nfc(self.vocab.decode(ids)) if occurrences else ""
        lacking = list[TermPlace]()
        for term in dict.fromkeys(place.term for place in occurrences):
            places = [place for place in occurrences if place.term == term]
            if len(target_spans(term, translation, self.hard)) < len(places):
                lacking += places
        return lacking

    def occurrences(
        self, text: str, choices: TermChoices = MappingProxyType({})
    ) -> list[TermPlace]:
        """The places of the terms of a text that have a target.

        text: the text.
        choices: the targets that its document has confirmed. A term that has one has that target
        alone."""
        return [
            replace(place, term=replace(place.term, targets=(choices[place.term],)))
            if place.term in choices
            else place
            for place in self._find(text)
            if place.term.targets
        ]

    def choices(self, src: str, tgt: str) -> dict[Term, str]:
        """The targets that a translation has for those terms of its source that have several.

        src: the source.
        tgt: its translation."""
        terms = dict.fromkeys(place.term for place in self.occurrences(nfc(src)))
        ambiguous = (term for term in terms if len(term.targets) > 1)
        return {term: target for term in ambiguous if (target := unique_target(term, nfc(tgt)))}

    def forms(
        self, term_place: TermPlace, text: str, capital: bool, is_noun: bool
    ) -> Iterable[Form]:
        """The forms that may stand for a term of a text.

        term_place: the place of the term.
        text: the text.
        capital: whether the form begins with a capital.
        is_noun: whether small words stand before it."""
        inexact = (
            text[term_place.start : term_place.end].casefold() != term_place.term.source.casefold()
        )
        base_cost, variant_cost = (
            (AS_GIVEN, 0.0) if inexact else (0.0, OTHER_FORM + OF_NOUN * is_noun)
        )
        for target in term_place.term.targets:
            variants = () if self.hard else other_forms(target, self.lang)
            for form, cost in [
                (target, base_cost),
                *((variant, variant_cost) for variant in variants),
            ]:
                if capital:
                    form = form[0].upper() + form[1:]
                yield from self.spelling.forms(form, cost)

    def marked(self, tokens: tuple[Token, ...], ids: Sequence[int], text: str) -> tuple[Token, ...]:
        """The tokens of a translation, in which those of a term have the origin "term".

        tokens: the tokens.
        ids: their subwords.
        text: the source."""
        terms = dict.fromkeys(place.term for place in self.occurrences(nfc(text))) if tokens else ()
        translation = self.vocab.decode(ids)
        spans = piece_spans([self.vocab.piece(i) for i in ids], translation) if terms else []
        of_term = {
            index
            for term in terms
            for a, b in target_spans(term, translation, self.hard)
            for index in _covered(spans, a, b)
        }
        return tuple(
            replace(token, origin="term") if index in of_term else token
            for index, token in enumerate(tokens)
        )

    def checked(self, translation: Translation) -> Translation:
        """A translation with what is wrong in it with terms.

        translation: the translation."""
        if translation.origin not in ("model", *MATCH_ORIGINS) or not translation.tgt.strip():
            return translation
        results = self.checks(translation.src, translation.tgt)
        return replace(translation, user_checks=tuple(results))

    def checks(self, src: str, tgt: str) -> list[Check]:
        """What is wrong in a translation with terms.

        src: the source.
        tgt: its translation."""
        return term_checks(self._find(nfc(src)), nfc(tgt))


class _Rewritten:
    """A translation in which terms take the places of words."""

    def __init__(
        self,
        terms: TermList,
        text: str,
        choices: TermChoices,
        ids: tuple[int, ...],
        links: Array,
    ) -> None:
        self._terms, self._text, self._ids = terms, text, ids
        vocab = terms.vocab
        self._translation = vocab.decode(ids)
        self._links = with_same_words(links, text, self._translation)
        self._words, self._spans = token_spans(self._translation), token_spans(text)
        self._pieces = piece_spans([vocab.piece(token) for token in ids], self._translation)
        self._term_words = {  # words that are a term's
            word
            for term in dict.fromkeys(place.term for place in terms.occurrences(text, choices))
            for span in target_spans(term, self._translation, terms.hard)
            for word in _covered(self._words, *span)
        }

    def parts(self, lacking: Sequence[TermPlace]) -> list[Part]:
        """What the translation is made of with the terms that it lacks; nothing where none of them
        has a place."""
        places = list[tuple[int, int, TermPlace]]()
        for term_place in lacking:
            if (place := self._place(term_place)) is not None:
                self._term_words.update(range(*place))
                places.append((*place, term_place))
        parts = list[Part]()
        position = 0
        for first, last, term_place in sorted(places, key=lambda entry: entry[:2]):
            self._insert(parts, position, first, last, term_place)
            position = last
        return (
            [*parts, *self._remaining_parts(position, len(self._words), bool(parts))]
            if parts
            else []
        )

    def _place(self, term_place: TermPlace) -> tuple[int, int] | None:
        """The words that a term takes the place of, first and behind the last: those that come
        most from its source, by the most mass inside minus `INSIDE` for each. None where a target
        stands there, or nothing does; a hard term is then put between words."""
        mass = self._links[:, _covered(self._spans, term_place.start, term_place.end)].sum(1)
        if any(mass[word] > INSIDE for word in self._term_words):
            return None
        worth = [
            float(word_mass) - INSIDE
            if word not in self._term_words and self._translation[self._words[word][0]].isalnum()
            else -1.0
            for word, word_mass in enumerate(mass)
        ]
        place, start, total = None, 0, 0.0
        best = MIN_SHARE - INSIDE if self._terms.hard else 0.0
        for word, gain in enumerate(worth):
            if total <= 0:
                start = word
                total = 0.0
            total += gain
            if total > best:
                best, place = total, (start, word + 1)
        if (
            place
            or not self._terms.hard
            or target_spans(term_place.term, self._translation, exact=True)
        ):
            return place
        return self._behind_neighbour(term_place)

    def _insert(
        self, parts: list[Part], position: int, first: int, last: int, term_place: TermPlace
    ) -> None:
        """Adds the words from `position` on, and a term instead of those from first to last."""
        words, translation = self._words, self._translation
        while last - first > 1 and self._is_small(first):
            first += (
                2 if translation[words[first + 1][0]] in APOSTROPHES and last - first > 2 else 1
            )
        start, small_end = self._small_span(first, position)
        middle, begin = self._first_subword(small_end), self._first_subword(first)
        capital = first < last and translation[words[first][0]].isupper()
        if capital and first:  # not that of the sentence: it may be the source's
            capital = (
                self._text[term_place.start].isupper() and not term_place.term.source[0].isupper()
            )
        forms = [*self._terms.forms(term_place, self._text, capital, start < small_end)]
        if middle < begin:
            inside = self._ids[begin - 1] in self._terms.spelling.apostrophes
            forms = [
                form._replace(ids=(*self._ids[middle:begin], *form.ids), inside=False)
                for form in forms
                if form.inside == inside
            ]
        if forms:
            parts += self._remaining_parts(position, start, bool(parts))
            was = self._ids[self._first_subword(start) : middle]
            parts.append(Insert(tuple(forms), 2 * bool(was or first == last), was))
        else:
            parts += self._remaining_parts(position, last, bool(parts))

    def _behind_neighbour(self, term_place: TermPlace) -> tuple[int, int]:
        """A place between words for a term whose source is not translated at all: behind what is
        said for the words before it, else at the end."""
        first = next(iter(_covered(self._spans, term_place.start, term_place.end)), 0)
        end = len(self._words)
        while end and not self._translation[self._words[end - 1][0]].isalnum():
            end -= 1
        for source in range(first - 1, max(-1, first - 1 - NEIGHBOURS), -1):
            mass = self._links[:, source]
            if mass.size and mass.max() >= SURE:
                end = int(mass.argmax()) + 1
                break
        while 0 < end < len(self._words) and (
            {end - 1, end} <= self._term_words
            or any(
                self._translation[self._words[word][0]] in APOSTROPHES for word in (end - 1, end)
            )
        ):
            end += 1
        return end, end

    def _small_span(self, first: int, limit: int) -> tuple[int, int]:
        """Where the small words before a place begin and end: just before it, or before the word
        that stands there, as une in une deuxième infraction."""
        start = self._small_words(first, limit)
        if start == first and first > limit + 1:
            begin, end = self._words[first - 1]
            if self._translation[begin:end].isalpha() and self._translation[begin - 1].isspace():
                start = self._small_words(first - 1, limit)
                return (start, first - 1) if start < first - 1 else (first, first)
        return start, first

    def _small_words(self, first: int, limit: int) -> int:
        """Where the small words before a word begin."""
        for _ in range(SMALL_WORDS):
            word = first - 1
            if word > limit and self._translation[self._words[word][0]] in APOSTROPHES:
                word -= 1
            if word < limit or not self._is_small(word):
                break
            first = word
        return first

    def _is_small(self, word: int) -> bool:
        start, end = self._words[word]
        mark = "'" * (self._translation[end : end + 1] in APOSTROPHES)
        return self._translation[start:end].lower() + mark in self._terms.small

    def _first_subword(self, word: int) -> int:
        """The first subword of a word."""
        if word == len(self._words):
            return len(self._ids)
        start = self._words[word][0]
        return next(
            (index for index, (_, end) in enumerate(self._pieces) if end > start), len(self._pieces)
        )

    def _remaining_parts(self, first: int, last: int, is_behind: bool) -> list[Part]:
        """The words that stay, behind a term those that are near it in other forms, too."""
        far = min(first + REACH, last) if is_behind else first
        flexible = [
            self._word(word)
            for word in range(first, far)
            if self._first_subword(word) < self._first_subword(word + 1)
        ]
        ids = self._ids[self._first_subword(far) : self._first_subword(last)]
        return [*flexible, Fixed(ids)] if ids else flexible

    def _word(self, index: int) -> Part:
        start, end = self._words[index]
        ids = self._ids[self._first_subword(index) : self._first_subword(index + 1)]
        word = self._translation[start:end]
        variants = list[tuple[int, ...]]()
        starts = self._terms.vocab.piece(ids[0])[:1] == "▁"
        if starts and word.islower() and index not in self._term_words:
            encoded = map(self._terms.spelling.ids, forms_of_word(word, self._terms.lang))
            variants = [variant for variant in encoded if variant != ids and UNK not in variant]
        return Alternatives((ids, *variants)) if variants else Fixed(ids)


def _covered(spans: Sequence[tuple[int, int]], start: int, end: int) -> list[int]:
    """Which of these spans have characters of start to end."""
    return [index for index, (a, b) in enumerate(spans) if a < end and start < b]
