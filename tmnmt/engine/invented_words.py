"""Words of a translation that nothing knows: a model writes them subword by subword, and may invent
some."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from tmnmt.checks import Check
from tmnmt.codes.form import BY_FORM
from tmnmt.dictionaries import dictionary_for
from tmnmt.index.base import BuiltIndex, Index, WritableIndex
from tmnmt.index.concordance import Phrase
from tmnmt.segments import Translation
from tmnmt.vocab import Vocabulary

SHORTEST = 4  # letters of a word that is looked at
FEWEST_SEGMENTS = 30_000  # of memories, together: with 10,000, 2.6 % of sound texts were flagged
_LETTERS = r"[^\W\d_]+"
_WORD = re.compile(rf"(?<![\w-]){_LETTERS}(?:['’]{_LETTERS})*(?![\w-])")
# of new words in most languages, before a word of five letters or more
_PREFIX = re.compile(
    r"(?:anti|auto|bio|contr[ae]|d[eé]s?|electro|extra|hiper|hyper|infra|inter|macro|meta|micro|mini"
    r"|mono|multi|non|photo|pol[iy]|pr[eé]|pseudo|r[eé]|retro|rétro|sem[io]|sobre|sous|sub|super|sur"
    r"|tel[eé]|télé|trans|ultra|uni)(?=[^\W\d_]{5})",
    re.IGNORECASE,
)
_LIGATURES = re.compile("oe|ae")
_SENTENCE_START = re.compile(r"(?:^|[.!?…]\s)[^\w]*\Z")

Knows = Callable[[str], bool]


@dataclass(frozen=True)
class InventedWords:
    """Finds the words that neither the source of a translation, nor its matches, nor anything else
    knows.

    sources: each says whether it knows a word, the quickest first."""

    sources: tuple[Knows, ...]

    def checks(self, translation: Translation) -> list[Check]:
        """The check that names such words in what the model wrote.

        translation: the translation, with its matches."""
        if translation.origin != "model":
            return []
        texts = [translation.src, *(match.tgt for match in translation.matches)]
        context_words = {word.casefold() for text in texts for word in re.findall(_LETTERS, text)}
        unknown_words = (
            word for word in prose_words(translation.tgt) if not self._is_known(word, context_words)
        )
        names = ", ".join(dict.fromkeys(unknown_words))
        return [Check("words", names)] if names else []

    def _is_known(self, word: str, context_words: set[str]) -> bool:
        """Whether a word is known, or each of its parts with apostrophes between them."""
        parts = [part for part in re.split("['’]", word) if len(part) >= SHORTEST]
        unknown = [part for part in parts if not _is_near(part.casefold(), context_words)]
        return not unknown or self._has(word.replace("’", "'")) or all(map(self._has, unknown))

    def _has(self, word: str) -> bool:
        """Whether a source knows a word, or what stands in it behind a prefix."""
        spellings = [*_spellings(word)]
        if prefix := _PREFIX.match(word):
            spellings += _spellings(word[prefix.end() :])
        return any(knows(spelling) for spelling in spellings for knows in self.sources)


def _spellings(word: str) -> Iterator[str]:
    """A word with two letters for a ligature, and with the ligature."""
    yield word
    if _LIGATURES.search(word):
        yield word.replace("oe", "œ").replace("ae", "æ")


def _is_near(word: str, context_words: set[str]) -> bool:
    """Whether a word, or the singular for its plural, is one of those near by."""
    return word in context_words or (word.endswith("s") and word[:-1] in context_words)


def prose_words(text: str) -> Iterator[str]:
    """The words of a text that are no names: in small letters, but for the first of a sentence, and
    no part of what is copied for its form.

    text: the text."""
    spans = BY_FORM.placeholders(text)
    for place in _WORD.finditer(text):
        word, (start, end) = place[0], place.span()
        preceding_text = text[max(0, start - SHORTEST) : start]
        is_prose = word.islower() or (
            word.capitalize() == word and _SENTENCE_START.search(preceding_text if start else "")
        )
        if is_prose and len(word) >= SHORTEST and all(a >= end or b <= start for a, b in spans):
            yield word


def invented_words(
    language: str, vocab: Vocabulary, indexes: Sequence[Index]
) -> InventedWords | None:
    """What finds invented words in a language. None where no dictionary of it is installed, or the
    memories are smaller than `FEWEST_SEGMENTS`: texts of one field have many words that no
    dictionary knows.

    language: the code of the target language.
    vocab: the vocabulary of the model. What it has as one subword was a word of the training text.
    indexes: the memories, whose translations know words, too."""
    dictionary = dictionary_for(language)
    if dictionary is None:
        return None
    memories = [cast(BuiltIndex, index) for index in indexes if hasattr(index, "concordance")]
    if sum(len(memory) for memory in memories) < FEWEST_SEGMENTS:
        return None
    knowing = [words_of(index) for index in memories]
    return InventedWords((lambda word: len(vocab.encode(word)) == 1, dictionary.knows, *knowing))


def words_of(index: WritableIndex) -> Knows:
    """What says whether a translation of a memory has a word.

    index: the memory."""
    return lambda word: bool(index.concordance(Phrase(word, "target"), 1))
