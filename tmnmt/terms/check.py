"""Whether a translation has the terms that it should, and none that is forbidden."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from tmnmt.checks import Check
from tmnmt.terms.find import Finder, TermPlace
from tmnmt.terms.term import Term
from tmnmt.text import match_tokens

CACHE_SIZE = 1024  # answers that are kept: each is asked for several times


def term_checks(terms: Iterable[Term], tgt: str) -> list[Check]:
    """What is wrong in a translation with the terms of its source. Another form of a target counts
    as the target; a forbidden one that is part of a longer target is none.

    terms: the terms of the source.
    tgt: the translation."""
    lacking, forbidden = list[str](), list[str]()
    for term in dict.fromkeys(terms):
        forms = {place.term.source for place in _form_places(term, tgt)}
        if term.targets and not target_spans(term, tgt, exact=False):
            lacking.append(f"{' / '.join(term.targets)} for {term.source}")
        forbidden += [f"{form} for {term.source}" for form in term.forbidden if form in forms]
    by_kind = {"terms": lacking, "forbidden": forbidden}
    return [Check(name, "; ".join(problems)) for name, problems in by_kind.items() if problems]


def target_spans(term: Term, tgt: str, exact: bool) -> list[tuple[int, int]]:
    """Where targets of a term stand in a translation, in characters.

    term: the term.
    tgt: the translation.
    exact: whether only targets count that are written as the list of terms has them, but for
    capitals; otherwise they may have any form. What is not translated has its capitals, too."""
    places = [place for place in _form_places(term, tgt) if place.term.source in term.targets]
    if term.verbatim:
        places = [place for place in places if tgt[place.start : place.end] in term.targets]
    return [(place.start, place.end) for place in places if not exact or _is_given(place, tgt)]


def unique_target(term: Term, tgt: str) -> str | None:
    """Which of its targets a translation has for a term, in whatever form; None where it has none
    of them, or several.

    term: the term.
    tgt: the translation."""
    targets = {place.term.source for place in _form_places(term, tgt)}.intersection(term.targets)
    return targets.pop() if len(targets) == 1 else None


def _is_given(place: TermPlace, tgt: str) -> bool:
    term_words, text_words = (
        match_tokens(text) for text in (place.term.source, tgt[place.start : place.end])
    )
    return [*map(str.casefold, term_words)] == [*map(str.casefold, text_words)]


@lru_cache(maxsize=CACHE_SIZE)
def _form_places(term: Term, tgt: str) -> tuple[TermPlace, ...]:
    """Where the forms of a term stand, each found as the term that it is the source of."""
    return tuple(Finder(Term(form, ()) for form in (*term.targets, *term.forbidden)).find(tgt))
