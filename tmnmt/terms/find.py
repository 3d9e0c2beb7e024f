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
        """terms: the terms that are found."""
        self._root = _Node()
        for term in terms:
            node = self._root
            tokens = match_tokens(term.source)
            for word in map(str.casefold, tokens):
                node = node.next[_start(word)][word]
            if tokens:
                node.terms.append((tuple(tokens), term))

    def find(self, text: str) -> list[TermPlace]:
        """The terms of a text in its order, none of which overlaps another. Of those that do, the
        longest counts, in words; then what is written as the term is, then a term that asks for
        its capitals, then the first.

        text: the text."""
        words, spans = match_tokens(text), token_spans(text)
        folded = [word.casefold() for word in words]
        candidates = [
            (-length, inexact, not term.case, index, number, term)
            for index in range(len(words))
            for number, (length, inexact, term) in enumerate(
                self._match_terms(words, folded, index)
            )
        ]
        covered, occurrences = set[int](), list[TermPlace]()
        for length, *_, index, _, term in sorted(candidates, key=lambda candidate: candidate[:5]):
            places = range(index, index - length)
            if covered.isdisjoint(places):
                covered.update(places)
                occurrences.append(TermPlace(term, spans[index][0], spans[places[-1]][1]))
        return sorted(occurrences, key=lambda place: place.start)

    def _match_terms(
        self, words: Sequence[str], folded: Sequence[str], index: int
    ) -> Iterator[tuple[int, int, Term]]:
        """The terms that begin at a word: of how many words each is, how many of these stand there
        otherwise, and the term."""
        reached = [(0, self._root)]
        for end in range(index, len(words)):
            reached = [
                (inexact + (word != folded[end]), node)
                for inexact, parent in reached
                for start in _starts(folded[end])
                for word, node in parent.next.get(start, {}).items()
                if is_form(folded[end], word)
            ]
            if not reached:
                return
            text_words = words[index : end + 1]
            for inexact, node in reached:
                for term_words, term in node.terms:
                    fits = not (inexact and term.verbatim)
                    if fits and _has_case(text_words, term_words, term):
                        yield len(term_words), inexact, term


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


def _has_case(text_words: Sequence[str], term_words: Sequence[str], term: Term) -> bool:
    """Whether the words of a text have the capitals that the term asks for."""
    if term.case:
        return tuple(text_words) == term_words
    acronyms = (pair for pair in zip(text_words, term_words, strict=True) if _is_acronym(pair[1]))
    return all(word.startswith(mine) for word, mine in acronyms)


def _is_acronym(word: str) -> bool:
    return len(word) > 1 and word.isupper()


def is_form(first: str, second: str) -> bool:
    """Whether two words are the same, or differ in their last letters as forms of one word do:
    report and reports, policy and policies, use and using, but not report and reporter's, nor form
    and former, nor refuse and refusal, nor lessee and lessor.

    first: one word, in small letters.
    second: the other word, in small letters."""
    if first == second:
        return True
    short, long = sorted((first, second), key=len)
    if len(short) < INFLECTED:
        return len(short) == INFLECTED - 1 and short.isalpha() and long == short + "s"
    if not (first.isalpha() and second.isalpha()):
        return False
    letters = enumerate(zip(first, second, strict=False))
    prefix_length = next((index for index, (a, b) in letters if a != b), len(short))
    ends = {first[prefix_length:].removesuffix("s"), second[prefix_length:].removesuffix("s")}
    short_rest, long_rest = sorted((len(first) - prefix_length, len(second) - prefix_length))
    if prefix_length < INFLECTED or ends & DERIVED or ends == {"e", "r"}:
        return False
    if short_rest == 0:
        return long_rest == 1 or (long_rest == 2 and prefix_length > INFLECTED)
    return short_rest + long_rest <= INFLECTED and (short_rest == 1 or prefix_length > INFLECTED)
