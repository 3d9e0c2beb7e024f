"""Terms in a text: token by token, inflected forms too, the longest first.

No lemmas are known. A word is a form of another where only their ends differ (`is_form`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tmnmt.terms.term import Term
from tmnmt.text import match_tokens, token_spans

INFLECTED = 4  # letters: shorter words have no form but one with s
DERIVED = {"al", "or"}  # endings of other words: refusal, inspector


@dataclass(frozen=True, slots=True)
class TermPlace:
    """A term, and the characters of the text where it stands."""

    term: Term
    start: int
    end: int


class Finder:
    """Finds many terms at once: from word to word only those are followed whose next word begins as
    that of the text does."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self._root = _Node()
        for term in terms:
            node = self._root
            tokens = match_tokens(term.source)
            for word in map(str.casefold, tokens):
                node = node.next[_start(word)][word]
            if tokens:
                node.terms.append((tuple(tokens), term))

    def find(self, text: str) -> list[TermPlace]:
        """The terms of a text, which is in NFC, in its order; none overlaps another. Of those
        that do the longest counts, in words; then what is written as the term is, then the
        first."""
        spans = token_spans(text)
        words = [text[start:end] for start, end in spans]
        folded = [word.casefold() for word in words]
        there = [
            (-length, inexact, at, number, term)
            for at in range(len(words))
            for number, (length, inexact, term) in enumerate(self._at(words, folded, at))
        ]
        taken, occurrences = set[int](), list[TermPlace]()
        for length, _, at, _, term in sorted(there, key=lambda one: one[:4]):
            places = range(at, at - length)
            if taken.isdisjoint(places):
                taken.update(places)
                occurrences.append(TermPlace(term, spans[at][0], spans[places[-1]][1]))
        return sorted(occurrences, key=lambda one: one.start)

    def _at(
        self, words: Sequence[str], folded: Sequence[str], at: int
    ) -> Iterator[tuple[int, int, Term]]:
        """The terms that begin at a word: of how many words each is, how many of these stand there
        otherwise, and the term."""
        reached = [(0, self._root)]
        for end in range(at, len(words)):
            reached = [
                (inexact + (word != folded[end]), node)
                for inexact, before in reached
                for start in _starts(folded[end])
                for word, node in before.next.get(start, {}).items()
                if is_form(folded[end], word)
            ]
            if not reached:
                return
            here = words[at : end + 1]
            for inexact, node in reached:
                for own, term in node.terms:
                    if _has_case(here, own, term):
                        yield len(own), inexact, term


class _Node:
    """What may follow the words of terms so far, by its beginning; and the terms that end here,
    with their words."""

    __slots__ = ("next", "terms")

    def __init__(self) -> None:
        self.next: defaultdict[str, defaultdict[str, _Node]] = defaultdict(
            lambda: defaultdict(_Node)
        )
        self.terms: list[tuple[tuple[str, ...], Term]] = []


def _start(word: str) -> str:
    return word[:INFLECTED]


def _starts(word: str) -> list[str]:
    """The beginnings of its forms."""
    if len(word) == INFLECTED and word.endswith("s"):
        return [word, word[:-1]]
    return [word, word + "s"] if len(word) == INFLECTED - 1 else [_start(word)]


def _has_case(here: Sequence[str], own: Sequence[str], term: Term) -> bool:
    """Whether the words of a text have the capitals that the term asks for."""
    if term.case:
        return tuple(here) == own
    acronyms = (pair for pair in zip(here, own, strict=True) if _is_acronym(pair[1]))
    return all(word.startswith(mine) for word, mine in acronyms)


def _is_acronym(word: str) -> bool:
    return len(word) > 1 and word.isupper()


def is_form(one: str, other: str) -> bool:
    """Whether two words in small letters are the same, or differ in their last letters as forms of
    one word do: report and reports, policy and policies, use and using, but not report and
    reporter's, nor form and former, nor refuse and refusal, nor lessee and lessor."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    if len(short) < INFLECTED:
        return len(short) == INFLECTED - 1 and short.isalpha() and long == short + "s"
    if not (one.isalpha() and other.isalpha()):
        return False
    letters = enumerate(zip(one, other, strict=False))
    same = next((at for at, (a, b) in letters if a != b), len(short))
    ends = {one[same:].removesuffix("s"), other[same:].removesuffix("s")}
    less, more = sorted((len(one) - same, len(other) - same))
    if same < INFLECTED or ends & DERIVED or ends == {"e", "r"}:
        return False
    if less == 0:
        return more == 1 or (more == 2 and same > INFLECTED)
    return less + more <= INFLECTED and (less == 1 or same > INFLECTED)
