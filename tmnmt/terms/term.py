"""The record of a term, and what every kind of term file shares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tmnmt.errors import FormatError
from tmnmt.formats.clean import clean
from tmnmt.formats.encoding import MARK

MOST_TERMS = 500_000
LONGEST = 500  # characters of one form
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class Term:
    """A source term. One of `targets` is to stand for it, none of `forbidden`; one of the two may
    be empty. `case`: it is found only with its own capitals. `context`: where it is used, such as a
    domain or a definition. `verbatim`: it is not translated. `senses`: for a word of several
    meanings, its targets, each with what is said of the meaning."""

    source: str
    targets: tuple[str, ...]
    forbidden: tuple[str, ...] = ()
    case: bool = False
    note: str = ""
    context: str = ""
    verbatim: bool = False
    senses: tuple[tuple[str, str], ...] = ()

    @property
    def gloss(self) -> str:
        """What is said of its meaning."""
        return "; ".join(filter(None, (self.context, self.note)))


def check_text(text: str, place: str) -> None:
    """Checks a line or unit of a term file for what no good one has.

    text: the line or unit.
    place: what messages call it.

    Raises FormatError where it cannot be decoded, or has a byte-order mark."""
    if MARK in text:
        raise FormatError(f"{place}: cannot be decoded; allowed: UTF-8, or UTF-16 with its mark")
    if _BYTE_ORDER_MARK in text:
        raise FormatError(
            f"{place}: a byte-order mark in the middle of the file, as where files were joined; "
            "take it out"
        )


def form(text: str, place: str) -> str:
    """One form of a term, cleaned.

    text: the form as it is written.
    place: what messages call the place where it stands.

    Raises FormatError where it is too long."""
    cleaned = clean(text)[0].strip()
    if len(cleaned) > LONGEST:
        raise FormatError(
            f"{place}: a term of {len(cleaned):,} characters; {LONGEST} at most are allowed"
        )
    return cleaned


def merged(terms: Iterable[Term], label: str) -> list[Term]:
    """The terms, of which those of one source, and one rule of case, are made one; their targets
    stay in their order. What is forbidden in one of them is so in all. Where each says something
    else of its meaning, they are meanings of one word.

    terms: the terms.
    label: what messages call the file.

    Raises FormatError for too many terms."""
    merged_terms: dict[tuple[str, bool], Term] = {}
    for term in terms:
        key = term.source, term.case
        existing = merged_terms.get(key)
        merged_terms[key] = term if existing is None else _merge(existing, term)
        if len(merged_terms) > MOST_TERMS:
            raise FormatError(f"{label}: more than {MOST_TERMS:,} terms, the most that are read")
    return [_without_forbidden(term) for term in merged_terms.values()]


def _without_forbidden(term: Term) -> Term:
    targets = tuple(target for target in term.targets if target not in term.forbidden)
    senses = tuple((target, gloss) for target, gloss in term.senses if target in targets)
    has_meanings = len({gloss for _, gloss in senses}) > 1
    return replace(term, targets=targets, senses=senses if has_meanings else ())


def _senses(term: Term) -> dict[str, str]:
    return dict(term.senses or ((target, term.gloss) for target in term.targets))


def _merge(first: Term, second: Term) -> Term:
    senses = _senses(first) | _senses(second) | _senses(first)  # in the order of the targets
    return replace(
        first,
        verbatim=first.verbatim or second.verbatim,
        senses=tuple(senses.items()) if all(senses.values()) else (),
        context="; ".join(dict.fromkeys(filter(None, (first.context, second.context)))),
        targets=tuple(dict.fromkeys(first.targets + second.targets)),
        forbidden=tuple(dict.fromkeys(first.forbidden + second.forbidden)),
        note="; ".join(dict.fromkeys(filter(None, (first.note, second.note)))),
    )
