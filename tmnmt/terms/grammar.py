"""What is known of some target languages, without a dictionary: regular endings, and the small
words that change with the noun behind them. Of others nothing is known, and words stay as they
are."""

from __future__ import annotations

LEAST = 4  # letters: shorter words have no other form here
# what may stand for the longest ending that a word has
_ENDINGS = {
    "fr": {
        "er": ("e", "ent", "é", "ée", "és", "ées", "era", "eront", "ant"),
        "ir": ("it", "i", "ie", "is", "ies", "ira"),
        "dre": ("d", "du", "due"),
        "al": ("aux", "ale", "ales"),
        "el": ("elle", "els", "elles"),
        "elle": ("el", "els", "elles"),
        "if": ("ive", "ifs", "ives"),
        "ive": ("if", "ifs", "ives"),
        "ée": ("é", "és", "ées"),
        "és": ("é", "ée", "ées"),
        "ées": ("é", "ée", "és"),
        "ue": ("u", "us", "ues"),
        "us": ("u", "ue", "ues"),
        "ues": ("u", "us", "ue"),
        "ie": ("i", "is", "ies"),
        "it": ("ite", "its", "ites"),
        "ite": ("it", "its", "ites"),
        "s": ("",),
        "x": (),
        "z": (),
        "e": ("es",),
        "": ("s", "e", "es"),
    },
    "en": {"y": ("ies", "ied"), "e": ("es", "ed", "ing"), "s": ("",), "": ("s", "ed", "ing", "es")},
    "es": {"ar": ("a", "an", "ado"), "s": ("",), "o": ("os", "a", "as"), "": ("s", "es")},
    "de": {"e": ("en", "es", "er", "em"), "": ("e", "en", "er", "es", "s", "n")},
}
# by the prepositions that are in them
_SMALL = {
    "fr": {
        "": "le la les l' un une des ce cet cette ces son sa ses leur leurs tout toute tous toutes "
        "aucun aucune chaque des",
        "de": "de d' du des",
        "à": "à au aux",
        "se": "s' se",
        "ne": "n' ne",
        "que": "qu' que",
    },
    "en": {"": "a an the"},
    "es": {
        "": "el la los las un una unos unas su sus este esta estos estas",
        "de": "de del",
        "a": "a al",
    },
    "de": {
        "": "der die das den dem des ein eine einen einem einer eines kein keine keinen keinem "
        "keiner jeder jede jedes jeden jedem",
        "zu": "zu zum zur",
        "in": "in im",
        "an": "an am",
        "von": "von vom",
        "bei": "bei beim",
    },
}
# words whose forms have no endings in common
_WORDS = {
    "fr": (
        ("est", "sont"),
        ("a", "ont"),
        ("peut", "peuvent"),
        ("doit", "doivent"),
        ("fait", "font"),
        ("il", "elle", "ils", "elles"),
        ("celui", "celle", "ceux", "celles"),
        ("lequel", "laquelle", "lesquels", "lesquelles"),
        ("auquel", "à laquelle", "auxquels", "auxquelles"),
    ),
}


def small_words(lang: str) -> dict[str, frozenset[str]]:
    """Articles, what has one in it, and the like, in small letters, those that stand before an
    apostrophe with it; and the prepositions that each may stand for, "" for none."""
    sorts = _SMALL.get(_main(lang), {})
    words = {word for listed in sorts.values() for word in listed.split()}
    return {
        word: frozenset(name for name, listed in sorts.items() if word in listed.split())
        for word in words
    }


def forms_of_word(word: str, lang: str) -> list[str]:
    """Other forms of any word."""
    irregular = _WORDS.get(_main(lang), ())
    same = [other for forms in irregular if word in forms for other in forms if other != word]
    return same or (_others(word, lang) if _is_long(word) else [])


def _main(lang: str) -> str:
    return lang.partition("-")[0].lower()


def other_forms(text: str, lang: str) -> list[str]:
    """Other forms of a term in a language: its first word with other endings; the words behind it,
    up to the first small one, follow it in whether they end in s. None where the language is not
    known here."""
    words = text.split(" ")
    inflected = next((at for at, word in enumerate(words) if not _is_long(word)), len(words))
    if not inflected:
        return []
    forms = dict[str, None]()
    for first in _others(words[0], lang):
        behind = [_following(first, word, lang) for word in words[1:inflected]]
        forms[" ".join([first, *behind, *words[inflected:]])] = None
    return [*forms]


def _following(first: str, word: str, lang: str) -> str:
    forms = [word, *_others(word, lang)]
    return next((one for one in forms if one.endswith("s") == first.endswith("s")), word)


def _is_long(word: str) -> bool:
    return len(word) >= LEAST and word.isalpha()


def _others(word: str, lang: str) -> list[str]:
    """A word with other endings."""
    endings = _ENDINGS.get(_main(lang), {})
    mine = [end for end in endings if word.endswith(end) and len(word) - len(end) >= LEAST - 1]
    if not mine or word.isupper():
        return []
    end = max(mine, key=len)
    return [word[: len(word) - len(end)] + other for other in endings[end]]
