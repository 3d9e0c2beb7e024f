"""What is known of some target languages, without a dictionary: regular endings, and the small
words that change with the noun behind them. Of others nothing is known, and words stay as they
are."""

from __future__ import annotations

from tmnmt.languages import data_for

MIN_LETTERS = 4  # letters: shorter words have no other form here


def small_words(lang: str) -> dict[str, frozenset[str]]:
    """Articles, what has one in it, and the like, in small letters, those that stand before an
    apostrophe with it; and the prepositions that each may stand for, "" for none."""
    sorts = data_for(lang).small_words
    words = {word for listed in sorts.values() for word in listed.split()}
    return {
        word: frozenset(name for name, listed in sorts.items() if word in listed.split())
        for word in words
    }


def forms_of_word(word: str, lang: str) -> list[str]:
    """Other forms of any word."""
    irregular = data_for(lang).irregular_forms
    siblings = [form for forms in irregular if word in forms for form in forms if form != word]
    return siblings or (_inflect(word, lang) if _is_long(word) else [])


def other_forms(text: str, lang: str) -> list[str]:
    """Other forms of a term in a language: its first word with other endings; the words behind it,
    up to the first small one, follow it in whether they end in s. None where the language is not
    known here."""
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
