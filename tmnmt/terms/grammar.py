"""What is known of some target languages, without a dictionary: regular endings, and the small
words that change with the noun behind them. Of others nothing is known, and words stay as they
are."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache

from tmnmt.languages import data_for

MIN_LETTERS = 4  # letters: shorter words have no other form here


def small_words(lang: str) -> dict[str, frozenset[str]]:
    """Articles, what has one in it, and the like, in small letters, those that stand before an
    apostrophe with it; and the prepositions that each may stand for, "" for none.

    lang: the code of the language."""
    sorts = data_for(lang).small_words
    words = {word for listed in sorts.values() for word in listed.split()}
    return {
        word: frozenset(name for name, listed in sorts.items() if word in listed.split())
        for word in words
    }


@dataclass(frozen=True)
class Agreement:
    """Which small words of a language may stand before which nouns.

    feminine, masculine: endings of nouns. The longest that a noun has counts.
    feminine_words, masculine_words: small words that nouns of the other gender do not have.
    masculine_before_consonant: those that a feminine noun has where it begins with a vowel.
    before_vowel: those that have another form before a vowel, without their apostrophe."""

    feminine: frozenset[str] = frozenset()
    masculine: frozenset[str] = frozenset()
    feminine_words: frozenset[str] = frozenset()
    masculine_words: frozenset[str] = frozenset()
    masculine_before_consonant: frozenset[str] = frozenset()
    before_vowel: frozenset[str] = frozenset()

    def excludes(self, small_word: str, noun: str) -> bool:
        """Whether a small word cannot stand before a noun, as far as this is known.

        small_word: the word, with its apostrophe where it has one.
        noun: the noun, or a text that begins with it."""
        small, noun = small_word.casefold(), "".join(noun.casefold().split()[:1])
        is_vowel = unicodedata.normalize("NFD", noun)[:1] in VOWELS
        if is_vowel and small in self.before_vowel:
            return True
        is_feminine = self._is_feminine(noun.removesuffix("s"))
        if is_feminine is None:
            return False
        if is_feminine:
            is_other = small in self.masculine_before_consonant and not is_vowel
            return small in self.masculine_words or is_other
        return small in self.feminine_words

    def shows_gender(self, small_word: str) -> bool:
        """Whether a small word has a gender.

        small_word: the word."""
        return small_word in self.feminine_words or small_word in self.masculine_words

    def _is_feminine(self, noun: str) -> bool | None:
        lengths = [
            max((len(ending) for ending in endings if noun.endswith(ending)), default=0)
            for endings in (self.feminine, self.masculine)
        ]
        return lengths[0] > lengths[1] if any(lengths) else None


NO_AGREEMENT = Agreement()
VOWELS = frozenset("aeiouyœæ")  # that articles are elided before


@cache
def agreement(lang: str) -> Agreement:
    """What is known of a language: nothing where it has no data of this.

    lang: the code of the language."""
    words = data_for(lang).agreement
    return Agreement(**{name: frozenset(listed.split()) for name, listed in words.items()})


def forms_of_word(word: str, lang: str) -> list[str]:
    """Other forms of a word. Prepositions and conjunctions, such as dans, have none.

    word: the word.
    lang: the code of its language."""
    irregular = data_for(lang).irregular_forms
    siblings = [form for forms in irregular if word in forms for form in forms if form != word]
    has_endings = _is_long(word) and word not in _invariable(lang)
    return siblings or (_inflect(word, lang) if has_endings else [])


@cache
def _invariable(lang: str) -> frozenset[str]:
    return frozenset(data_for(lang).connectives.split()) - small_words(lang).keys()


def other_forms(text: str, lang: str) -> list[str]:
    """Other forms of a term in a language: its first word with other endings; the words behind it,
    up to the first small one, follow it in whether they end in s. There are none where the language
    is not known here.

    text: the term.
    lang: the code of its language."""
    words = text.split(" ")
    inflected = next((index for index, word in enumerate(words) if not _is_long(word)), len(words))
    if not inflected:
        return []
    forms = dict[str, None]()
    for first in _inflect(words[0], lang):
        following = [_following(first, word, lang) for word in words[1:inflected]]
        forms[" ".join([first, *following, *words[inflected:]])] = None
    return [*forms]


def _following(first: str, word: str, lang: str) -> str:
    forms = [word, *_inflect(word, lang)]
    return next((form for form in forms if form.endswith("s") == first.endswith("s")), word)


def _is_long(word: str) -> bool:
    return len(word) >= MIN_LETTERS and word.isalpha()


def _inflect(word: str, lang: str) -> list[str]:
    """A word with other endings."""
    endings = data_for(lang).endings
    mine = [
        end for end in endings if word.endswith(end) and len(word) - len(end) >= MIN_LETTERS - 1
    ]
    if not mine or word.isupper():
        return []
    end = max(mine, key=len)
    return [word[: len(word) - len(end)] + ending for ending in endings[end]]
