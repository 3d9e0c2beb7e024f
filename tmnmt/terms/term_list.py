"""Terms on the way of a sentence: what every translation must hold, where it goes, and whether it
is there. `TermList` is the extension of the pipeline that sees to it.

A text is translated freely. Where a term is missing, the words that stand for it are found by what
the decoder looked at, and one of the forms of the term takes their place
(`tmnmt.terms.rewriting`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from tmnmt.codes.form import EXACT
from tmnmt.engine.extension import DecodedPiece, Extension, SearchResults
from tmnmt.engine.links import with_same_words
from tmnmt.engine.loading import languages_of
from tmnmt.spans import piece_spans
from tmnmt.terms.check import target_spans, term_checks, unique_target
from tmnmt.terms.find import Finder, TermPlace
from tmnmt.terms.grammar import agreement, forms_of_word, other_forms, small_words
from tmnmt.terms.homonyms import in_domain, in_sense, open_questions, term_at
from tmnmt.terms.insertion import Insert
from tmnmt.terms.reading import read_terms
from tmnmt.terms.rewriting import Alternatives, Fixed, Part, Writer
from tmnmt.terms.subword_forms import Form, Spelling
from tmnmt.terms.target_prior import TargetPrior
from tmnmt.terms.term import Term
from tmnmt.text import APOSTROPHES, nfc, token_spans
from tmnmt.vocab import UNK, Vocabulary

if TYPE_CHECKING:
    from tmnmt.checks import Check
    from tmnmt.config.options import TranslationOptions
    from tmnmt.engine.beam_search import Hypothesis
    from tmnmt.engine.piece import Piece
    from tmnmt.models.base import Backbone
    from tmnmt.models.folder import Model
    from tmnmt.segments import Token, Translation

Array = NDArray[np.float64]
TermChoices = Mapping[Term, str]  # the target that a document has confirmed for a term of several
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


class TermList(Extension):
    """The terms of a translator. What it learns of a document is the target that was confirmed last
    for each term of several."""

    revises: ClassVar[bool] = True

    def __init__(
        self,
        finder: Finder,
        vocab: Vocabulary,
        hard: bool,
        tgt_lang: str = "",
        src_lang: str = "",
    ) -> None:
        """finder: what finds the terms in a text.
        vocab: the vocabulary of the model.
        hard: whether a given form must come. Otherwise another form of the same words will do.
        tgt_lang: the target language, whose small words and endings are known.
        src_lang: the source language, whose small words say nothing of a meaning."""
        self._finder, self.lang = finder, tgt_lang
        self._find = lru_cache(maxsize=TEXTS_KEPT)(self._find_words)
        self.vocab, self.hard, self._src_lang = vocab, hard, src_lang
        self._situations = dict[str, _Situation]()  # of the texts that were translated last
        self.small = small_words(tgt_lang)
        self._prior: TargetPrior | None = None

    def _find_words(self, text: str) -> list[TermPlace]:
        """The terms of a text. A part of what is copied for its form, such as the name of a role in
        :class:`type`, is no word, so no term either."""
        copied = EXACT.placeholders(text)
        return [
            place
            for place in self._finder.find(text)
            if not any(
                start <= place.start
                and place.end <= end
                and (start, end) != (place.start, place.end)
                for start, end in copied
            )
        ]

    @cached_property
    def spelling(self) -> Spelling:
        """What the subwords say of where words begin and end."""
        return Spelling(self.vocab, self.small, agreement(self.lang))

    def incomplete(
        self,
        pieces: Sequence[Piece],
        knowledge: Sequence[TermChoices | None],
        hypotheses: Sequence[Hypothesis],
    ) -> dict[int, list[TermPlace]]:
        """The rows whose translations lack a target, each with the places of its terms. Of a term
        whose target the document has confirmed, only this target counts."""
        rows = [*zip(pieces, knowledge, hypotheses, strict=True)]
        for piece, choices, _ in rows:
            self._note_situation(piece, choices)
        return {
            row: terms
            for row, (piece, choices, best) in enumerate(rows)
            if (terms := self._lacking(piece, choices, best.ids))
        }

    def _note_situation(self, piece: Piece, choices: TermChoices | None) -> None:
        """Keeps for a while what decides the meanings of the terms of a segment."""
        while len(self._situations) >= TEXTS_KEPT:
            self._situations.pop(next(iter(self._situations)))
        self._situations[nfc(piece.segment.text)] = _situation(piece, choices)

    def revise(self, results: SearchResults) -> list[Hypothesis]:
        """The translations with the terms that they lack."""
        hypotheses = [*results.hypotheses]
        lacking = self.incomplete(results.pieces, results.knowledge, hypotheses)
        parts = dict[int, list[Part]]()
        links = results.links([*lacking]) if lacking else []
        for (row, places), row_links in zip(lacking.items(), links, strict=True):
            piece = results.pieces[row]
            situation = _situation(piece, results.knowledge[row])
            text, ids = nfc(piece.model_text), hypotheses[row].ids
            revision = _Revision(self, text, situation, ids, row_links)
            if row_parts := revision.parts(places):
                parts[row] = row_parts
        if parts:
            for row, best in zip(parts, self._write(results, parts), strict=True):
                hypotheses[row] = best
        return hypotheses

    def _write(
        self, results: SearchResults, parts: Mapping[int, Sequence[Part]]
    ) -> list[Hypothesis]:
        """The translations of some rows, written once more from their parts."""
        backbone, layers = results.backbone, results.layers
        prior = self._prior_of(backbone)
        writer = Writer([*parts.values()], self.spelling, backbone, layers, prior)
        originals, inputs = [results.hypotheses[row] for row in parts], results.inputs([*parts])
        return writer.rewrite(*inputs, originals, results.keep_states, results.explain)

    def _prior_of(self, backbone: Backbone) -> TargetPrior:
        """The decoder that has read an empty source. It is kept, with its answers."""
        if self._prior is None or self._prior.backbone is not backbone:
            self._prior = TargetPrior(backbone)
        return self._prior

    def _lacking(
        self, piece: Piece, choices: TermChoices | None, ids: Sequence[int]
    ) -> list[TermPlace]:
        """The places of terms in a piece for which its translation has less targets."""
        occurrences = self.occurrences(nfc(piece.model_text), _situation(piece, choices))
        translation = nfc(self.vocab.decode(ids)) if occurrences else ""
        lacking = list[TermPlace]()
        for term in dict.fromkeys(place.term for place in occurrences):
            places = [place for place in occurrences if place.term == term]
            if len(target_spans(term, translation, self.is_exact(term))) < len(places):
                lacking += places
        return lacking

    def is_exact(self, term: Term) -> bool:
        """Whether a target of a term must come as the list has it.

        term: the term."""
        return self.hard or term.verbatim

    def occurrences(self, text: str, situation: _Situation | None = None) -> list[TermPlace]:
        """The places of the terms of a text that have a target, each with the targets that may
        stand here.

        text: the text.
        situation: what else decides which these are; None for the text alone."""
        situation = situation or _Situation()
        return [
            replace(place, term=self._term_here(place, text, situation))
            for place in self._find(text)
            if place.term.targets
        ]

    def _term_here(self, place: TermPlace, text: str, situation: _Situation) -> Term:
        """A term with the targets that may stand for it at a place. The meaning that the text
        shows counts most, then what the document has confirmed, then the texts around."""
        term = term_at(place, text, self._src_lang)
        if (target := situation.choices.get(place.term)) in term.targets:
            return replace(term, targets=(target,), senses=())
        return in_sense(term, situation.surroundings, self._src_lang)

    def learn(self, knowledge: TermChoices | None, src: str, tgt: str) -> TermChoices:
        return {**(knowledge or {}), **self.choices(src, tgt)}

    def choices(self, src: str, tgt: str) -> dict[Term, str]:
        """The targets that a translation has for those terms of its source that have several.

        src: the source.
        tgt: its translation."""
        terms = dict.fromkeys(place.term for place in self._find(nfc(src)))
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
            variants = () if self.is_exact(term_place.term) else other_forms(target, self.lang)
            for form, cost in [
                (target, base_cost),
                *((variant, variant_cost) for variant in variants),
            ]:
                if capital and not term_place.term.verbatim:
                    form = form[0].upper() + form[1:]
                yield from self.spelling.forms(form, cost)

    def wordings(self, piece: Piece, knowledge: TermChoices | None) -> list[tuple[str, list[str]]]:
        """The terms of a piece. Of a term whose target the document has confirmed, only this target
        counts."""
        self._note_situation(piece, knowledge)
        text = nfc(piece.model_text)
        places = self.occurrences(text, _situation(piece, knowledge))
        terms = {text[place.start : place.end]: [*place.term.targets] for place in places}
        return [*terms.items()]

    def annotate(self, translation: Translation, decoded: DecodedPiece | None) -> Translation:
        """A translation whose tokens have the origin "term" where they are of a term."""
        if decoded is None or not translation.tokens:
            return translation
        text, ids = decoded.piece.model_text, decoded.hypothesis.ids
        tokens = self._marked(translation.tokens, ids, text)
        return replace(translation, tokens=tokens)

    def _marked(
        self, tokens: tuple[Token, ...], ids: Sequence[int], text: str
    ) -> tuple[Token, ...]:
        """The tokens of a translation, in which those of a term have the origin "term"."""
        terms = dict.fromkeys(place.term for place in self.occurrences(nfc(text)))
        translation = self.vocab.decode(ids)
        spans = piece_spans([self.vocab.piece(i) for i in ids], translation) if terms else []
        of_term = {
            index
            for term in terms
            for a, b in target_spans(term, translation, self.is_exact(term))
            for index in _covered(spans, a, b)
        }
        return tuple(
            replace(token, origin="term") if index in of_term else token
            for index, token in enumerate(tokens)
        )

    def check(self, src: str, tgt: str) -> list[Check]:
        situation = self._situations.get(nfc(src), _Situation())
        return term_checks(self._terms_here(src, replace(situation, choices={})), nfc(tgt))

    def questions(self, src: str) -> list[Check]:
        return open_questions(self._terms_here(src, self._situations.get(nfc(src), _Situation())))

    def _terms_here(self, src: str, situation: _Situation) -> list[Term]:
        """The terms of a source, those without a target, too."""
        text = nfc(src)
        return [self._term_here(place, text, situation) for place in self._find(text)]


@dataclass(frozen=True)
class _Situation:
    """What decides which targets a term may have in a text, besides this.

    choices: the targets that its document has confirmed. A term that has one has that target alone.
    surroundings: the texts around it."""

    choices: TermChoices = field(default_factory=dict)
    surroundings: tuple[str, ...] = ()


def _situation(piece: Piece, choices: TermChoices | None) -> _Situation:
    return _Situation(choices or {}, (" ".join((piece.segment.text, *piece.segment.neighbours)),))


class _Revision:
    """A translation in which terms take the places of words."""

    def __init__(
        self,
        terms: TermList,
        text: str,
        situation: _Situation,
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
            for term in dict.fromkeys(place.term for place in terms.occurrences(text, situation))
            for span in target_spans(term, self._translation, terms.is_exact(term))
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
        is_exact = self._terms.is_exact(term_place.term)
        best = MIN_SHARE - INSIDE if is_exact else 0.0
        for word, gain in enumerate(worth):
            if total <= 0:
                start = word
                total = 0.0
            total += gain
            if total > best:
                best, place = total, (start, word + 1)
        if place or not is_exact or target_spans(term_place.term, self._translation, exact=True):
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
        flexible, word = list[Part](), first
        while word < far:
            end = self._unit_end(word, last)
            if self._first_subword(word) < self._first_subword(end):
                flexible.append(self._unit(word, end))
            word = end
        ids = self._ids[self._first_subword(word) : self._first_subword(last)]
        return [*flexible, Fixed(ids)] if ids else flexible

    def _unit_end(self, word: int, limit: int) -> int:
        """Where the unit that begins with a word ends: behind it, or, where an apostrophe follows,
        behind the word after this, if both are known to have other forms."""
        end = word + 3
        if end <= limit and self._translation[self._words[word + 1][0]] in APOSTROPHES:
            text = self._translation[self._words[word][0] : self._words[end - 1][1]]
            if self._forms_of(text):
                return end
        return word + 1

    def _forms_of(self, text: str) -> list[str]:
        """Other forms of a word, or of two with an apostrophe between them, which stays the same
        sign."""
        sign = next((sign for sign in APOSTROPHES if sign in text), "'")
        forms = forms_of_word(text.replace(sign, "'"), self._terms.lang)
        return [form.replace("'", sign) for form in forms]

    def _unit(self, word: int, end: int) -> Part:
        ids = self._ids[self._first_subword(word) : self._first_subword(end)]
        text = self._translation[self._words[word][0] : self._words[end - 1][1]]
        variants = list[tuple[int, ...]]()
        starts = self._terms.vocab.piece(ids[0])[:1] == "▁"
        if starts and text.islower() and self._term_words.isdisjoint(range(word, end)):
            encoded = map(self._terms.spelling.ids, self._forms_of(text))
            variants = [variant for variant in encoded if variant != ids and UNK not in variant]
        return Alternatives((ids, *variants)) if variants else Fixed(ids)


def load_terms(model: Model, options: TranslationOptions) -> TermList | None:
    """The terms that the options name; None where they name none.

    model: the model.
    options: the options of its translations.

    Raises FormatError for what is no list of terms, and UsageError for languages that are not the
    model's, and for a domain that no term has."""
    if options.terms is None:
        return None
    languages = languages_of(model, options.src_lang, options.tgt_lang)
    src_lang, tgt_lang = model.config["src_lang"], model.config["tgt_lang"]
    terms = read_terms(options.terms, *languages)
    if options.terms_domain is not None:
        terms = in_domain(terms, options.terms_domain, src_lang)
    is_hard = options.terms_mode == "hard"
    return TermList(Finder(terms), model.vocab, is_hard, tgt_lang, src_lang)


def _covered(spans: Sequence[tuple[int, int]], start: int, end: int) -> list[int]:
    """Which of these spans have characters of start to end."""
    return [index for index, (a, b) in enumerate(spans) if a < end and start < b]
