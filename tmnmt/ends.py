"""With what mark a text ends, and how a translation ends as its source does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from tmnmt.languages import data_for, listed

MARKS = (".", "!", "?", "…", ":", ";", ",")
LITERAL = "::"  # in reStructuredText: what follows stands as it is written
PHRASE = 6  # words, at most: longer texts without a mark may be beginnings of sentences
_CLOSING = "\"'”’»)]}」』）"
_ENDING = re.compile(r"(?P<blank>\s*)(?P<mark>\S)(?P<closing>[\s\"'”’»)\]}」』）]*)\Z")
_STOPS = re.compile(r"[\s.,;:]*\Z")
_VOWEL = re.compile("[aeiouy]", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_ABBREVIATED = re.compile(r"(?:^|[^\w.])(?:[^\W\d_]|[^\W\d_]+(?:\.[^\W\d_]+)+|\w+-[^\W\d_])\.\Z")
# Of a source's mark, the marks in whose place it is put. Others are left as they are: where English
# law parts items by semicolons, French law ends each with a full stop.
_WRONG = {".": ",;:", "!": ".,;:", "?": ".,;:!", ":": ",;"}


class Ending(NamedTuple):
    """How a text ends.

    mark: the mark, as it is in English; "" where there is none.
    start, end: where it stands, with the blank in front of it.
    closing: what closes quotes and brackets behind it."""

    mark: str
    start: int
    end: int
    closing: str


@dataclass(frozen=True)
class Marks:
    """The marks that end sentences and clauses in one language. `forms`: how each is written."""

    forms: dict[str, str]

    @property
    def of_clauses(self) -> frozenset[str]:
        """All as they are written, but for the full stop, which abbreviations have, too."""
        return frozenset(form for mark, form in self.forms.items() if mark != ".")

    def ending(self, text: str) -> Ending:
        """How a text ends.

        text: the text."""
        match = _ENDING.search(text)
        sign = match["mark"] if match is not None else ""
        mark = next((mark for mark, form in self.forms.items() if sign and form == sign), "")
        if match is None or not mark:
            end = len(text.rstrip())
            return Ending("", end, end, "")
        start = match.start("blank")
        if mark == "." and text[:start].endswith(".."):
            mark, start = "…", start - 2
        return Ending(mark, start, match.end("mark"), match["closing"].strip())


@cache
def marks_of(lang: str) -> Marks:
    """The marks of a language.

    lang: its code."""
    own_forms = data_for(lang).sentence_marks
    return Marks({mark: own_forms.get(mark, mark) for mark in MARKS})


def is_phrase(text: str, lang: str) -> bool:
    """Whether a text of a few words has no mark, and does not go on behind its end, as "the
    vessel" does not, and "the Minister may" does.

    text: the text.
    lang: its language."""
    return has_few_words(text, lang) and not _goes_on(text, lang)


def has_few_words(text: str, lang: str) -> bool:
    """Whether a text is of a few words, without any mark.

    text: the text.
    lang: its language."""
    signs = {*MARKS, *marks_of(lang).forms.values()}
    is_short = len(_WORD.findall(text)) <= PHRASE
    return any(map(str.isalpha, text)) and is_short and signs.isdisjoint(text)


def _goes_on(text: str, lang: str) -> bool:
    """Whether a text ends with a word that a sentence goes on behind."""
    words = _WORD.findall(text)
    return bool(words) and words[-1].lower() in data_for(lang).connectives.split()


def mended_end(src: str, tgt: str, src_lang: str, tgt_lang: str) -> str:
    """A translation that ends with the mark of its source: with that mark where it has none, or one
    that cannot stand for it; with two colons where the source has these; and without a full stop,
    or any mark of a phrase, where the source has none.

    src: the source.
    tgt: its translation.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language."""
    source, marks = marks_of(src_lang).ending(src), marks_of(tgt_lang)
    target = marks.ending(tgt)
    if src.endswith(LITERAL) and any(map(str.isalpha, tgt)):
        is_literal = tgt.endswith(LITERAL) and not tgt.endswith(f":{LITERAL}")
        return tgt if is_literal else _STOPS.sub("", tgt) + LITERAL
    if not any(map(str.isalpha, tgt)) or source.closing or target.closing:
        return tgt
    if source.mark == "." and is_abbreviated(src):
        return tgt
    if source.mark:
        is_missing = not target.mark and tgt[: target.end][-1:].isalnum()
        if is_missing or (target.mark and target.mark in _WRONG.get(source.mark, "")):
            return tgt[: target.start] + marks.forms[source.mark] + tgt[target.end :]
        return tgt
    is_stop = target.mark == "." and not is_abbreviated(tgt[: target.end])
    is_excess = target.mark in (":", ";", ",") and is_phrase(src, src_lang)
    if src[-1:].isalnum() and (is_stop or is_excess) and not _goes_on(src, src_lang):
        return tgt[: target.start] + tgt[target.end :]
    return tgt


def wrong_end(src: str, tgt: str, src_lang: str, tgt_lang: str) -> str:
    """The end of a translation that ends otherwise than its source; "" where it ends as the source
    does, or as the language may have it: items of lists end with semicolons in one language and
    with full stops in another.

    src: the source.
    tgt: its translation.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language."""
    of_list = marks_of(src_lang).ending(src).mark in (";", ",")
    if of_list or marks_of(tgt_lang).ending(tgt).mark == ";":
        return ""
    return tgt[-20:] if mended_end(src, tgt, src_lang, tgt_lang) != tgt else ""


def is_abbreviated(text: str) -> bool:
    """Whether a full stop at the end of a text may be that of an abbreviation.

    text: the text, with the full stop."""
    if _ABBREVIATED.search(text):
        return True
    last = re.search(r"([^\W\d_]+)\.\Z", text)
    if last is None:
        return False
    is_vowelless = last[1].isascii() and not _VOWEL.search(last[1])
    return is_vowelless or last[1].lower() in _abbreviations()


@cache
def _abbreviations() -> frozenset[str]:
    words = (*listed("abbreviations"), *listed("titles"), "etc", "usw", "ltd", "inc", "ltée")
    return frozenset(word.lower() for word in words)
