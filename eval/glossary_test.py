"""Makes a glossary test of a parallel corpus: sentences whose noun phrases are tagged as terms.

python eval/glossary_test.py CORPUS.tsv.gz --languages en fr --output FOLDER [--context MEMORY]...

CORPUS and the memories are read as `--memory` reads them. Words are aligned by IBM's model 1 in
both directions over all of them. A term is a noun phrase of one to four words of a source, together
with what its reference has for it:

- It stands between words that belong to no phrase (articles, prepositions, conjunctions, marks),
  not behind a word that a verb follows (must, to, which), and in the corpora it stands twice
  behind an article. It does not end in "ed".
- Its words and those of its target are aligned with one another, in both directions, and with
  nothing else. They are not the same words. The pair stands in the corpora three times or more.

Half of the documents of CORPUS, by the seed, are for work (`dev.SRC`, `dev.TGT`) and half are for
one measurement (`test.SRC`, `test.TGT`). A sentence has two terms at most and a term stands in
two sentences at most. Terms stand in XLIFF's g elements, as `eval/terms.py` reads them."""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from tmnmt.formats import read_memory
from tmnmt.languages import data_for
from tmnmt.segments import Segment
from tmnmt.text import match_tokens, nfc, token_spans

WORDS = range(6, 51)  # of a source that is a test sentence
PHRASE_WORDS = 4  # of a term, at most
PAIR_COUNT, ARTICLE_COUNT = 3, 2
TERM_USES, SENTENCE_TERMS = 2, 2
ITERATIONS = 5
Table = NDArray[np.float64]
Pair = tuple[str, str]
OTHER_WORDS = """
shall will would can could must should be been being do does did not only also more most less there
when what how they it he she you we us them him her itself themselves one ones same other both few
many much several own very too so then thus here now if but nor yet however therefore because since
while until upon within without between among against during before after above below see use used
using given made based including according following"""
BEFORE_VERBS = "must shall may will would can could should to not it they he she who which that"


@dataclass(frozen=True)
class AlignedSentence:
    """A pair of texts with their words and the links between these."""

    segment: Segment
    sides: tuple[tuple[str, ...], tuple[str, ...]]
    links: frozenset[tuple[int, int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--languages", nargs=2, required=True)
    parser.add_argument("--context", type=Path, action="append", default=[])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=300, help="of each half, at most")
    parser.add_argument("--seed", type=int, default=45)
    options = parser.parse_args()
    corpus = [*read_memory(options.corpus, *options.languages)]
    context = [one for path in options.context for one in read_memory(path, *options.languages)]
    sentences = aligned([*corpus, *context])
    phrases = Phrases(sentences, options.languages)
    chance = random.Random(options.seed)
    documents = sorted({segment.document for segment in corpus})
    chance.shuffle(documents)
    options.output.mkdir(parents=True, exist_ok=True)
    for number, half in enumerate(("dev", "test")):
        names = {*documents[number::2]}
        of_half = [one for one in sentences[: len(corpus)] if one.segment.document in names]
        lines = [*phrases.tagged(of_half, options.sentences, chance)]
        for lang, texts in zip(options.languages, zip(*lines, strict=True), strict=True):
            path = options.output / f"{half}.{lang}"
            path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        print(f"{half}: {len(names)} documents, {len(lines)} sentences")


def aligned(segments: Sequence[Segment]) -> list[AlignedSentence]:
    """The pairs with the links that model 1 finds in both directions."""
    sides = [
        tuple(tuple(map(str.casefold, match_tokens(nfc(text)))) for text in (one.src, one.tgt))
        for one in segments
    ]
    forth = model_one([(source, target) for source, target in sides])
    back = model_one([(target, source) for source, target in sides])
    links = (
        frozenset(both) & frozenset((a, b) for b, a in other)
        for both, other in zip(forth, back, strict=True)
    )
    return [
        AlignedSentence(one, (words[0], words[1]), link)
        for one, words, link in zip(segments, sides, links, strict=True)
    ]


def model_one(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[list[tuple[int, int]]]:
    """For every word of a source its likeliest target word, by IBM's model 1 with an empty word
    on the target's side."""
    numbers = dict[str, int]()
    number = [
        tuple(
            np.array([numbers.setdefault(word, len(numbers)) for word in words], dtype=np.int64)
            for words in (source, ["", *target])
        )
        for source, target in pairs
    ]
    size = len(numbers)
    keys, inverse = np.unique(
        np.concatenate([(tgt[:, None] * size + src[None, :]).ravel() for src, tgt in number]),
        return_inverse=True,
    )
    shapes = [(len(tgt), len(src)) for src, tgt in number]
    columns = np.concatenate(  # of every cell, which source word of all it is
        [
            np.tile(np.arange(width), height) + offset
            for (height, width), offset in zip(
                shapes, np.cumsum([0, *(width for _, width in shapes)]), strict=False
            )
        ]
    )
    table = np.ones(len(keys))
    for _ in range(ITERATIONS):
        cells = table[inverse]
        cells /= np.bincount(columns, cells)[columns]
        counts = np.bincount(inverse, cells, len(keys))
        totals = np.bincount(keys // size, counts)
        table = counts / totals[keys // size]
    return [*_likeliest(table[inverse], shapes)]


def _likeliest(cells: Table, shapes: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    start = 0
    for height, width in shapes:
        block = cells[start : start + height * width].reshape(height, width)
        start += height * width
        best = block.argmax(0) if height and width else []
        yield [(column, int(row) - 1) for column, row in enumerate(best) if row]


class Phrases:
    """The noun phrases of corpora, and what stands for them."""

    def __init__(self, sentences: Sequence[AlignedSentence], languages: Sequence[str]) -> None:
        data = [data_for(lang) for lang in languages]
        self._small = [{*"".join(one.connectives).split()} | _articles(one) for one in data]
        self._small[0] |= {*OTHER_WORDS.split()}
        self._determiners = {"a", "an", "the", "any", "each", "every", "this", "these", "such"}
        self._behind_article = Counter[tuple[str, ...]]()
        self._pairs = Counter[Pair]()
        for sentence in sentences:
            words = sentence.sides[0]
            for start, end in self._chunks(words):
                if start and words[start - 1] in self._determiners:
                    self._behind_article[words[start:end]] += 1
                if span := self._target(sentence, start, end):
                    self._pairs[_pair(sentence, (start, end), span)] += 1

    def tagged(
        self, sentences: Sequence[AlignedSentence], most: int, chance: random.Random
    ) -> Iterator[tuple[str, str]]:
        """Sentences with their terms in elements, in an order by chance."""
        order, uses, seen = [*sentences], Counter[Pair](), set[str]()
        chance.shuffle(order)
        for sentence in order:
            if len(seen) == most:
                return
            source = sentence.segment.src
            if len(sentence.sides[0]) not in WORDS or source in seen:
                continue
            terms = [
                (place, span)
                for place, span in self._terms(sentence)
                if uses[_pair(sentence, place, span)] < TERM_USES
            ]
            if terms:
                terms = chance.sample(terms, min(len(terms), SENTENCE_TERMS))
                uses.update(_pair(sentence, *both) for both in terms)
                seen.add(source)
                yield (
                    _tagged(source, [a for a, _ in terms]),
                    _tagged(sentence.segment.tgt, [b for _, b in terms]),
                )

    def _terms(
        self, sentence: AlignedSentence
    ) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        words = sentence.sides[0]
        for start, end in self._chunks(words):
            span = self._target(sentence, start, end)
            if (
                span
                and self._behind_article[words[start:end]] >= ARTICLE_COUNT
                and self._pairs[_pair(sentence, (start, end), span)] >= PAIR_COUNT
                and _is_nominal(words, start, end)
                and not _is_part(sentence.segment.src, start, end)
            ):
                yield (start, end), span

    def _chunks(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """The longest runs of words that may belong to a phrase."""
        start = 0
        for end in range(len(words) + 1):
            if end == len(words) or not self._is_content(words[end], 0):
                if 0 < end - start <= PHRASE_WORDS and any(len(w) > 3 for w in words[start:end]):
                    yield start, end
                start = end + 1

    def _is_content(self, word: str, side: int) -> bool:
        return word.isalpha() and len(word) > 2 and word not in self._small[side]

    def _target(self, sentence: AlignedSentence, start: int, end: int) -> tuple[int, int] | None:
        """The words of the target that are linked with those from start to end alone."""
        inside = {b for a, b in sentence.links if start <= a < end}
        words = sentence.sides[1]
        if (
            words[min(inside, default=0) : max(inside, default=-1) + 1]
            == sentence.sides[0][start:end]
        ):
            return None
        if not inside or len({a for a, _ in sentence.links if start <= a < end}) < end - start:
            return None
        first, last = min(inside), max(inside) + 1
        is_whole = all(
            b in inside if self._is_content(words[b], 1) else words[b].isalpha() or words[b] in "'’"
            for b in range(first, last)
        )
        is_alone = not any(first <= b < last and not start <= a < end for a, b in sentence.links)
        ends = self._is_content(words[first], 1) and self._is_content(words[last - 1], 1)
        return (first, last) if is_whole and is_alone and ends else None


def _is_nominal(words: Sequence[str], start: int, end: int) -> bool:
    """Whether words may be a noun phrase here, and neither a verb nor a participle."""
    return not (
        words[end - 1].endswith("ed") or (start and words[start - 1] in BEFORE_VERBS.split())
    )


def _articles(language: object) -> set[str]:
    sorts = getattr(language, "small_words", {})
    return {word.rstrip("'") for listed in sorts.values() for word in listed.split()}


def _pair(sentence: AlignedSentence, place: tuple[int, int], span: tuple[int, int]) -> Pair:
    source, target = sentence.sides
    return " ".join(source[slice(*place)]), " ".join(target[slice(*span)])


def _is_part(text: str, first: int, last: int) -> bool:
    """Whether words are a part of markup, such as a role of reStructuredText, or of a word with a
    hyphen."""
    places = token_spans(nfc(text))
    before, behind = text[: places[first][0]], text[places[last - 1][1] :]
    return before.count("`") % 2 == 1 or before[-1:] in [*"`_:|*-"] or behind[:1] in [*"`_-"]


def _tagged(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """A text with g elements around words; the number of an element is that of its term."""
    text = nfc(text)
    places, parts, position = token_spans(text), list[str](), 0
    numbered = sorted((span, number) for number, span in enumerate(spans, 1))
    for (first, last), number in numbered:
        start, end = places[first][0], places[last - 1][1]
        parts += [escape(text[position:start]), f'<g id="{number}">', escape(text[start:end])]
        parts.append("</g>")
        position = end
    return "".join([*parts, escape(text[position:])])


if __name__ == "__main__":
    main()
