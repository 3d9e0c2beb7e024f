"""Which meaning of a word a text has, where a list of terms gives several, each with a note or a
context: that whose words stand in the text, or else in the texts around it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from tmnmt.checks import Check
from tmnmt.errors import UsageError
from tmnmt.languages import data_for
from tmnmt.terms.find import TermPlace, is_form
from tmnmt.terms.term import Term
from tmnmt.text import match_tokens

MIN_LETTERS = 3  # of a word of a note that says something of a text
CACHE_SIZE = 1024


def in_sense(term: Term, texts: Iterable[str], lang: str) -> Term:
    """A term with the targets of one meaning, if a text decides which. Otherwise the term as it is.

    term: the term.
    texts: the text that it stands in, and what stands around this. The first that has more words
    of one note than of any other decides.
    lang: the language of the texts."""
    if not term.senses:
        return term
    for text in texts:
        counts = [_shared_words(note, text, term.source, lang) for _, note in term.senses]
        best = max(counts)
        notes = {
            note for (_, note), count in zip(term.senses, counts, strict=True) if count == best
        }
        if best and len(notes) == 1:
            return replace(
                term,
                targets=tuple(target for target, note in term.senses if note in notes),
                senses=(),
            )
    return term


def term_at(place: TermPlace, text: str, lang: str) -> Term:
    """A term with the targets that it may have where it stands, as far as its own text says. What
    is not translated keeps the capitals and small letters of the text, but for a capital with which
    a text begins.

    place: the place of the term.
    text: the text.
    lang: the language of the text."""
    if place.term.verbatim:
        return replace(place.term, targets=_verbatim_targets(place, text))
    return in_sense(place.term, [text], lang)


def _verbatim_targets(place: TermPlace, text: str) -> tuple[str, ...]:
    word, source = text[place.start : place.end], place.term.source
    is_first = not any(map(str.isalnum, text[: place.start]))
    if is_first and word != source and word[1:] == source[1:]:
        return word, source
    return (word,)


def in_domain(terms: Sequence[Term], domain: str, lang: str) -> list[Term]:
    """The terms, of which those of several meanings have the one that belongs to a domain, where
    its note or context names the domain.

    terms: the terms.
    domain: the domain of what is translated, as "finance".
    lang: the language of the domain's name and of the notes.

    Raises UsageError where no meaning of any term belongs to the domain."""
    narrowed_terms = [in_sense(term, [domain], lang) for term in terms]
    has_meanings = any(term.senses for term in terms)
    if has_meanings and all(a is b for a, b in zip(narrowed_terms, terms, strict=True)):
        raise UsageError(
            f"domain {domain!r}: no term of several meanings names it in its context or note"
        )
    return narrowed_terms


def open_questions(terms: Sequence[Term]) -> list[Check]:
    """What a person has to decide: the terms whose meaning nothing has decided.

    terms: the terms of a source, each in its meaning where this is known."""
    questions = [
        f"{term.source}: {' or '.join(f'{target} ({note})' for target, note in term.senses)}"
        for term in dict.fromkeys(terms)
        if term.senses
    ]
    return [Check("meaning", "; ".join(questions))] if questions else []


def _shared_words(note: str, text: str, source: str, lang: str) -> int:
    words = {*map(str.casefold, match_tokens(text))}
    return sum(
        any(is_form(word, text_word) for text_word in words) for word in _words(note, source, lang)
    )


@lru_cache(maxsize=CACHE_SIZE)
def _words(note: str, source: str, lang: str) -> tuple[str, ...]:
    """The words of a note that say something: no small ones, and not those of the term."""
    data = data_for(lang)
    small = {*data.connectives.split(), *map(str.casefold, match_tokens(source))}
    words = dict.fromkeys(map(str.casefold, match_tokens(note)))
    return tuple(word for word in words if len(word) >= MIN_LETTERS and word not in small)
