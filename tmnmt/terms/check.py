"""Whether a translation has the terms that it should, and none that is forbidden."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tmnmt.checks import Check
from tmnmt.terms.find import Finder, TermPlace
from tmnmt.terms.term import Term
from tmnmt.text import match_tokens

THERE = 1024  # answers that are kept: each is asked for several times


def term_checks(places: Sequence[TermPlace], tgt: str) -> list[Check]:
    """What is wrong in `tgt` with the terms found in its source. Another form of a target counts as
    the target; a forbidden one that is part of a longer target is none."""
    lacking, made = list[str](), list[str]()
    for term in dict.fromkeys(one.term for one in places):
        there = {one.term.source for one in _there(term, tgt)}
        if term.targets and there.isdisjoint(term.targets):
            lacking.append(f"{' / '.join(term.targets)} for {term.source}")
        made += [f"{form} for {term.source}" for form in term.forbidden if form in there]
    by_kind = {"terms": lacking, "forbidden": made}
    return [Check(name, "; ".join(what)) for name, what in by_kind.items() if what]


def where(term: Term, tgt: str, exact: bool) -> list[tuple[int, int]]:
    """Where targets of a term stand in `tgt`, in whatever form; `exact`: as they are given, but for
    capitals."""
    there = [at for at in _there(term, tgt) if at.term.source in term.targets]
    return [(at.start, at.end) for at in there if not exact or _is_given(at, tgt)]


def chosen(term: Term, tgt: str) -> str | None:
    """Which of its targets a translation has for a term, in whatever form; None where it has none
    of them, or several."""
    there = {one.term.source for one in _there(term, tgt)}.intersection(term.targets)
    return there.pop() if len(there) == 1 else None


def _is_given(at: TermPlace, tgt: str) -> bool:
    own, here = (match_tokens(text) for text in (at.term.source, tgt[at.start : at.end]))
    return [*map(str.casefold, own)] == [*map(str.casefold, here)]


@lru_cache(maxsize=THERE)
def _there(term: Term, tgt: str) -> tuple[TermPlace, ...]:
    """Where the forms of a term stand, each found as the term that it is the source of."""
    return tuple(Finder(Term(form, ()) for form in (*term.targets, *term.forbidden)).find(tgt))
