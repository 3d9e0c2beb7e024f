"""Lexical consistency: is a term that comes again in a document translated as before? (Lyu et al.
2021)

LTCR is the share of pairs of a term's occurrences in a document that are translated alike, LTCR-1
the share of occurrences after the first that agree with the first; pairs and occurrences of all
documents are counted together. The translation of an occurrence is the target word that an aligner
gives it, the same aligner for every system and for the reference. A term is a word of three letters
or more that is none of the commonest words (ours: the paper tags parts of speech). The variant by
strings needs no aligner: a term counts as translated alike in the segments whose outputs share a
word, the one that most of them share and that is no commoner elsewhere in the document; so it is an
upper figure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from tmnmt.eval.measures.align import Aligner, tokens

COMMONEST = 150  # words are taken for function words
LETTERS = 3


@dataclass(frozen=True)
class Consistency:
    """Shares in [0, 1], None where no term comes again."""

    ltcr: float | None
    ltcr_1: float | None
    pairs: int  # of occurrences compared


def function_words(texts: Iterable[Sequence[str]]) -> set[str]:
    """The COMMONEST words of texts in tokens."""
    return {
        word for word, _ in Counter(word for text in texts for word in text).most_common(COMMONEST)
    }


def is_term(word: str, common: Set[str]) -> bool:
    """Whether a word, lower-cased, carries a subject."""
    return len(word) >= LETTERS and word.isalpha() and word not in common


class Terms:
    """The documents' sources with the terms that come again in a document.

    documents: the document of every segment; `common`: function words of both languages."""

    def __init__(self, sources: Sequence[str], documents: Sequence[str], common: Set[str]) -> None:
        self.common = common
        self.sources = [tokens(src) for src in sources]
        # (segment, position), in order
        places_of: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for segment, (words, document) in enumerate(zip(self.sources, documents, strict=True)):
            for position, word in enumerate(words):
                if is_term(word, common):
                    places_of[document, word].append((segment, position))
        self.repeated = {key: places for key, places in places_of.items() if len(places) > 1}
        self.segments_of: dict[str, list[int]] = defaultdict(list)
        for segment, document in enumerate(documents):
            self.segments_of[document].append(segment)

    def by_alignment(self, outputs: Sequence[str], aligner: Aligner) -> Consistency:
        """LTCR and LTCR-1 by an aligner; an occurrence that it gives no word to is left out."""
        words = [tokens(output) for output in outputs]
        segments = {segment for places in self.repeated.values() for segment, _ in places}
        aligned = {
            segment: aligner.translations(self.sources[segment], words[segment])
            for segment in segments
        }
        groups = []
        for places in self.repeated.values():
            positions = [(segment, aligned[segment][position]) for segment, position in places]
            groups.append([words[segment][j] for segment, j in positions if j is not None])
        return consistency(groups)

    def by_strings(self, outputs: Sequence[str]) -> Consistency:
        """LTCR alone, by the word that most of the outputs share."""
        words = [
            {word for word in tokens(output) if is_term(word, self.common)} for output in outputs
        ]
        frequency = {
            document: Counter(word for segment in segments for word in words[segment])
            for document, segments in self.segments_of.items()
        }
        alike = pairs = 0
        for (document, _), places in self.repeated.items():
            segments = {segment for segment, _ in places}
            if len(segments) < 2:
                continue
            inside = Counter(word for segment in segments for word in words[segment])
            counts = [n for word, n in inside.items() if frequency[document][word] - n <= n]
            alike += _two_of(max(counts, default=0))
            pairs += _two_of(len(segments))
        return Consistency(alike / pairs if pairs else None, None, pairs)


def consistency(groups: Iterable[Sequence[str]]) -> Consistency:
    """LTCR and LTCR-1 of the translations of each term's occurrences in a document, in order."""
    alike = pairs = agreeing = later = 0
    for group in groups:
        alike += sum(map(_two_of, Counter(group).values()))
        pairs += _two_of(len(group))
        agreeing += sum(word == group[0] for word in group[1:])
        later += max(len(group) - 1, 0)
    return Consistency(alike / pairs if pairs else None, agreeing / later if later else None, pairs)


def _two_of(n: int) -> int:
    return n * (n - 1) // 2
