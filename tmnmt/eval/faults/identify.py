"""Which language a text is in, as far as that can be said so simply: by its script, and by the
common words of languages of one script.

It is made to find a text in a wrong language among many in the right one: where it is not sure it
says nothing."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path

from tmnmt.index.base import primary

TABLE = Path(__file__).with_name("common_words.tsv")
FEWEST_LETTERS = 12  # of a text whose script says anything
FOREIGN_SHARE = 0.6  # of the letters that are of another script
FEWEST_WORDS = 3  # common words of another language that the right one has not
WORD_SHARE = 0.25  # of all words that are such
TIMES_OWN = 3  # so many times as many as words that are common in the right language alone
OWN_SHARE = 0.2  # of the words of prose that are common ones
CODE_BEGINNINGS = (">>>", "$ ", "#!", "# -*-", "...")
CODE_SIGNS = "()[]{}=<>_\\;$|@`"
CODE_SHARE = 0.06  # of the characters of a text that are such, but for blanks
# what a language is written in, where that is not Latin
SCRIPTS = {
    **dict.fromkeys(
        ("ru", "uk", "bg", "be", "mk", "kk", "ky", "mn", "tg"), frozenset(["CYRILLIC"])
    ),
    **dict.fromkeys(("ar", "fa", "ur", "ps"), frozenset(["ARABIC"])),
    **dict.fromkeys(("hi", "mr", "ne"), frozenset(["DEVANAGARI"])),
    **dict.fromkeys(("he", "yi"), frozenset(["HEBREW"])),
    "sr": frozenset(["CYRILLIC", "LATIN"]),
    "el": frozenset(["GREEK"]),
    "bn": frozenset(["BENGALI"]),
    "gu": frozenset(["GUJARATI"]),
    "kn": frozenset(["KANNADA"]),
    "ml": frozenset(["MALAYALAM"]),
    "ta": frozenset(["TAMIL"]),
    "te": frozenset(["TELUGU"]),
    "th": frozenset(["THAI"]),
    "ka": frozenset(["GEORGIAN"]),
    "hy": frozenset(["ARMENIAN"]),
    "ko": frozenset(["HANGUL", "CJK"]),
    "zh": frozenset(["CJK", "BOPOMOFO"]),
    "ja": frozenset(["CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"]),
}
LATIN = frozenset(["LATIN"])
ALIKE = ({"nb", "da"}, {"cs", "sk"}, {"hr", "sl", "sr", "bs"})  # too alike to be told apart here
LANGUAGE_GROUPS = {"no": "nb", "nn": "nb", "bs": "hr", "sr": "hr"}

# letters beside a to z that a language's own words have
LETTERS = {
    "ca": "àçèéíïòóúü",
    "cs": "áčďéěíňóřšťúůýž",
    "da": "åæøé",
    "de": "äöüß",
    "en": "",
    "es": "áéíñóúü",
    "et": "äõöüšž",
    "fi": "äöå",
    "fr": "àâæçèéêëîïôùûüœÿ",
    "hr": "čćđšž",
    "hu": "áéíóöőúüű",
    "it": "àèéìíîòóùú",
    "lt": "ąčęėįšųūž",
    "lv": "āčēģīķļņšūž",
    "nb": "åæøéòô",
    "nl": "áéëïóöü",
    "pl": "ąćęłńóśźż",
    "pt": "àáâãçéêíóôõúü",
    "ro": "ăâîșțşţ",
    "sk": "áäčďéíĺľňóôŕšťúýž",
    "sl": "čšž",
    "sq": "çë",
    "sv": "äåöé",
    "tr": "âçğıîöşüûi̇",
    "vi": "àáâãèéêìíòóôõùúýăđĩũơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
}

_WORD = re.compile(r"\w+")
# code within prose: spans of reStructuredText and Markdown, tags, placeholders
_MARKUP = re.compile(r"``[^`]+``|(?::[\w:.+-]+:)?`[^`]+`_*|</?\w[^<>]*>|\{\w*\}|%\(\w+\)\w")


def is_code(text: str) -> bool:
    """Whether a text is a command or lines of a program, by its signs."""
    if text.startswith(CODE_BEGINNINGS):
        return True
    text = _MARKUP.sub(" ", text)
    solid = sum(not sign.isspace() for sign in text)
    return sum(map(text.count, CODE_SIGNS)) > CODE_SHARE * solid


def is_prose(text: str, lang: str) -> bool:
    """Whether a text is no code and has words that are common in this language; of a language that
    is not known here, whether it is no code."""
    language = LANGUAGE_GROUPS.get(primary(lang), primary(lang))
    if is_code(text):
        return False
    words = _words(text)
    common = sum(language in _languages().get(word, ()) for word in words)
    return language not in _known_languages() or common >= max(1, OWN_SHARE * len(words))


def other_language(text: str, lang: str) -> str:
    """The language, or the script, that a text is in where that is surely not `lang`; else ""."""
    language = LANGUAGE_GROUPS.get(primary(lang), primary(lang))
    if is_code(text):
        return ""
    scripts = SCRIPTS.get(primary(lang), LATIN)
    if script := _other_script(text, scripts):
        return script
    return _other_words(text, language) if "LATIN" in scripts else ""


def _other_script(text: str, scripts: frozenset[str]) -> str:
    if text.isascii() and "LATIN" in scripts:
        return ""
    counts = Counter(_script(letter) for letter in text if letter.isalpha())
    total = sum(counts.values())
    # names, commands and the like are Latin everywhere: a text of nothing else says nothing
    foreign = {name: count for name, count in counts.items() if name not in scripts}
    if total < FEWEST_LETTERS or sum(foreign.values()) < FOREIGN_SHARE * total:
        return ""
    script = max(foreign, key=lambda name: foreign[name])
    if script == "LATIN" and not _other_words(text, ""):
        return ""
    return script.lower()


@cache
def _script(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ")[0]


def _words(text: str) -> list[str]:
    """Those of no name in a program, in lower case."""
    return [word.lower() for word in _WORD.findall(_MARKUP.sub(" ", text)) if word.isalpha()]


def _other_words(text: str, language: str) -> str:
    """The language that most common words are of which are none of `language`."""
    words = _words(text)
    languages = [_languages().get(word) or _by_letters(word) for word in words]
    alien = Counter(lang for codes in languages if language not in codes for lang in codes)
    if language not in _known_languages() or not alien:
        return ""
    counts = Counter(lang for codes in languages for lang in codes)
    lang = max(alien, key=lambda name: (counts[name], alien[name], name))
    native = sum(1 for codes in languages if language in codes and lang not in codes)
    enough = alien[lang] >= FEWEST_WORDS and counts[lang] >= WORD_SHARE * len(words)
    if not enough or alien[lang] < TIMES_OWN * native:
        return ""
    return "" if any({language, lang} <= alike for alike in ALIKE) else lang


@cache
def _languages() -> dict[str, tuple[str, ...]]:
    """For every common word the languages that it is of."""
    languages: dict[str, tuple[str, ...]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        lang, words = line.split("\t")
        for word in words.split():
            languages[word] = (*languages.get(word, ()), lang)
    return languages


def _by_letters(word: str) -> tuple[str, ...]:
    """The languages that have all letters of a word, where some are none of a to z."""
    if word.isascii():
        return ()
    letters = {letter for letter in unicodedata.normalize("NFC", word) if not letter.isascii()}
    return tuple(lang for lang, alphabet in LETTERS.items() if letters.issubset(alphabet))


@cache
def _known_languages() -> frozenset[str]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return frozenset(["", *(line.split("\t")[0] for line in lines)])
