"""What is no word by its form, in a text of any format: code, names of files, formulas. No
translation may change it, so it comes through as a placeholder does.

    Set _owner_ of a.txt to H2O.
        _______    _____    ___

One table decides, by what a word is made of: signs in front of it or inside it, letters and digits
mixed, a capital behind a small letter, and spans that are marked as code. What prose has, too, is
no such form: e.g., and/or, U.S., 10:30, 12(2)(b), 20-day, 3rd, GENERAL PROVISIONS."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from tmnmt.codes.placeholders import ALL_FINDERS, Finder, Placeholder, by_pattern, with_placeholders
from tmnmt.codes.record import Text

DASHES = "–—―•"  # read as a hyphen by vocabularies that lack them, and put back
TEXTS_KEPT = 1 << 13  # whose placeholders are not searched again: some 5 MB
LABEL = 8  # words at most of a label

# what stands for a character is read as that character; these are no names that are unique
READ_AS = {
    r"\n": " ",
    r"\r": " ",
    r"\t": " ",
    r"\"": '"',
    r"\'": "'",
    "%%": "%",
    "&amp;": "&",
    "&nbsp;": " ",
    "&quot;": '"',
    "&#39;": "'",
    "&apos;": "'",
    "&lt;": "<",
    "&gt;": ">",
}
# what a translation may do without: "the owner&#39;s permit" has no apostrophe in French
DISPENSABLE = frozenset({*DASHES, *(text for text, sign in READ_AS.items() if sign == "'")})

ENTITY = r"&(?:[A-Za-z][A-Za-z0-9]{1,30}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});"  # of HTML
_WORD_START = r"(?<![\w$@#%&~:/\\.-])"  # where a word begins that has a sign in front of it
_NAME = r"[A-Za-z_]\w{0,99}"
_SMALL, _CAPITAL = "a-zß-öø-ÿ", "A-ZÀ-ÖØ-Þ"
_DIGITS = "0123456789"
_STEM = r"[\w~-]{1,100}"  # a part of a path
_ROLE = r"[A-Za-z][\w+.-]{0,40}"  # of reStructuredText
_PROSE = "(?:abbr|doc|dfn|guilabel|menuselection|numref|ref|samp|term)"  # those of words


class Form(NamedTuple):
    """A kind of thing that is copied. `expressions`: each with strings of which all that it matches
    has one, "" where there are none; a string of them is its signs. `exact`: people copy it, too,
    so that a translation without it is told. `in_labels`: also in the few words of a button or a
    menu."""

    name: str
    expressions: tuple[tuple[Sequence[str], str], ...]
    exact: bool = True
    in_labels: bool = True

    @property
    def finders(self) -> tuple[Finder, ...]:
        """What finds it in a text."""
        finders = (by_pattern(pattern, signs=signs) for signs, pattern in self.expressions)
        return tuple(finders) if self.in_labels else tuple(map(_in_sentences, finders))


def _in_sentences(finder: Finder) -> Finder:
    """Finds nothing in a label."""

    def find(text: str) -> Iterable[Placeholder]:
        words = text.removesuffix("...").split()
        is_label = len(words) <= LABEL and words[-1:] != [] and words[-1][-1] not in ".!?;"
        return () if is_label else finder(text)

    return find


FORMS = (
    Form(
        "code",
        (
            ((":`",), rf"(?::(?!{_PROSE}:){_ROLE}){{1,3}}:`[^`]{{1,500}}`"),
            (("``",), r"(?<!`)``(?:[^`]|`(?!`)){1,500}``(?!`)"),
        ),
    ),
    Form(
        "text as code",
        (
            ((":`",), rf"(?::{_ROLE}){{0,2}}:{_PROSE}:`[^`]{{1,500}}`"),
            ("`", r"(?<![\w`])`[^`<>\s](?:[^`<>]{0,200}[^`<>\s])?`_{0,2}(?![\w`])"),
        ),
        exact=False,
    ),
    Form(
        "template",
        (
            ("{", r"\{\{\{[^{}]{1,100}\}\}\}"),
            ("{", r"\{[^{}\s]{1,100}\}"),
            ("%", r"\{%[^{}%]{1,200}%\}"),
            ("%", r"<%[^<>%]{1,200}%>"),
            (
                "<",  # a tag without its other half, which attributes tell from words
                r"<[A-Za-z][\w:-]{0,40}(?:\s{1,9}[\w:.-]{1,60}=(?:\"[^\"<>]{0,300}\"|'[^'<>]{0,300}')){1,20}"
                r"\s{0,9}/?>",
            ),
            ("<", r"<\?(?:[^<>?]{1,200}\?>|[a-z]{1,20}\b)"),
            ("%", r"\[%[^\[\]%]{1,200}%\]"),
            ("{", r"[#%@]\{[^{}]{1,100}\}"),
            ("[", r"\[\[[^\[\]]{1,200}\]\]"),
            ("$", r"\$\w{0,40}\([^()]{1,200}\)"),
            ("$", r"\$[A-Za-z\\][^$\s]{0,100}\$"),
            ("%", r"%<\w{1,100}>(?:[-+#0 ]{0,5}\d{0,9}(?:\.\d{1,9})?[diouxXeEfFgGaAcs])?"),
            ("%", r"(?<![\w%])%L?\d{1,2}(?![\w%])"),
            ("%", r"(?<![\w%])%[-+#0]{0,5}\d{0,9}I(?:32|64)?[dioux]\b"),
            ("%", r"(?<![\w%])%[-+#]{0,3}(?:\[\d{1,2}\])?[\d.]{0,9}[vTtbcdoqxXUeEfFgGsp](?!\w)"),
            ("%", rf"(?<![\w%])%{_NAME}%?"),
            ("%", rf"%%{_NAME}%%"),
        ),
    ),
    Form("entity", (("&", ENTITY),)),
    Form(
        "tags as text",
        (
            (
                ("&lt;",),
                r"(?:(?<!\S)(?:&lt;/?[\w:-]{1,40}/?&gt;){1,9}\w{0,100}(?:&lt;/[\w:-]{1,40}&gt;){1,9})",
            ),
        ),
    ),
    Form(
        "sign in front of a word",
        (
            ("$", rf"{_WORD_START}\$(?:{_NAME})(?:(?:\.|->|::){_NAME}){{0,9}}"),
            ("@", rf"{_WORD_START}@:?{_NAME}(?:[./-]\w{{1,100}}){{0,9}}"),
            ("!#~", rf"{_WORD_START}[#!~]{_NAME}\b"),
            (":", rf"{_WORD_START}:[a-z_]\w{{0,99}}\b(?!:)"),
            ("-", r"(?<![\w/.-])-(?![aI])[A-Za-z](?![\w-])"),  # "-a" begins an item of a list
            (("--",), r"(?<![\w/.-])--[a-z][\w-]{0,60}(?:=[^\s,;)]{1,100})?"),
            (".", r"(?<![\w.])\.(?:[a-z][a-z0-9]{1,15}|[A-Z]{3,6})(?![\w.])"),
        ),
    ),
    Form(
        "sign inside a word",
        (
            (
                "_",
                r"(?<![\w/.])(?:[^\W_]{1,100}_|_(?=\w{0,100}_)(?=_{0,9}[^\W_]))\w{0,100}(?:\(\))?",
            ),
            (("::", "->"), rf"\b{_NAME}(?:(?:::|->|\.){_NAME}){{0,9}}(?:::|->){_NAME}(?:\(\))?"),
            (("()",), rf"\b{_NAME}(?:\.{_NAME}){{0,9}}\(\)"),
            ("=", rf"\b{_NAME}=[^\s,;.)\"']{{1,100}}"),
            ("#+", r"\b[CFJ](?:\+\+|#)(?!\w)"),
            ("/", r"\b[A-Z]{2,8}/\d{1,2}(?:\.\d)?(?![\w/-])"),  # HTTP/2
            ("=", r"(?<!\S)[<>]= ?\d(?:[\d.,]{0,20}\d)?(?![\w.,]\d)"),
            ("&-=>|", r"(?<!\S)(?:[!<>=]=|&&|\|\||[-=]>|<-)(?!\S)"),
        ),
    ),
    Form(
        "sign of an access key",  # of a menu, where the text is a label
        (("&", rf"{_WORD_START}&{_NAME}\b(?!;)"), ("_", r"(?<![\w/.])_[^\W_]{1,100}(?!\w)")),
        in_labels=False,
    ),
    Form(
        "path",
        (
            (
                ":",
                r"\b(?:mailto|tel|urn|sms|geo|ssh|git|ldaps?|data):[^\s,;<>\"]{1,200}[^\s.,;:!?)<>\"]",
            ),
            (
                "/",
                rf"(?:(?<![\w/.:~])~?|(?<![\w/])\.{{1,2}})/{_STEM}(?:\.{_STEM})*(?:/{_STEM}(?:\.{_STEM})*)*/?",
            ),
            ("\\", r"(?<![\w\\])(?:[A-Za-z]:|\.{1,2}|\\)\\[\w.-]{1,100}(?:\\[\w.-]{1,100}){0,20}"),
            (
                ".",
                rf"(?<![\w/.@])(?:{_STEM}/){{0,20}}(?:\w[\w~-]{{1,99}}\.){{1,9}}[a-z]\w{{1,20}}(?![\w@])(?:\(\))?",
            ),
        ),
    ),
    Form(
        "letters and digits",
        (
            (_DIGITS, r"(?<![\w/.,-])[A-Za-z]{1,20}[0-9][A-Za-z0-9]{0,60}(?![\w-])"),
            (_DIGITS, r"(?<![\w/.,-])[0-9]{1,20}[A-Z]{1,9}(?![\w-])"),  # 12a and 3rd are numbers
            (_DIGITS, r"(?<![\w/.,-])[0-9]{1,20}[A-Za-z]{1,20}[0-9][A-Za-z0-9]{0,60}(?![\w-])"),
            (
                "-",
                r"(?<![\w/.,-])[A-Z]{1,8}[A-Za-z0-9]{0,10}-[0-9]{1,9}(?:[-/.][A-Za-z0-9]{1,9}){0,4}(?![\w-])",
            ),
        ),
        exact=False,
    ),
    Form(
        "element of a list",  # not the number of a note, as "permit[1]" has it
        (
            (
                "[",
                r"(?<![\w/.\]-])[A-Za-z_][\w.]{0,60}"
                r"(?:\[(?:0|-1|[ijkn]|\w{0,40}_\w{1,40}|\"[^\"\]\n]{1,40}\"|'[^'\]\n]{1,40}')\]){1,4}(?!\w)",
            ),
            # behind a name that is no word of prose, or before what goes on with it
            (
                "[",
                r"(?<![\w/.\]-])(?:[A-Za-z_]\w{1,60}(?:\.[A-Za-z_]\w{1,60}){1,9}"
                r"|(?=\w{0,60}[_0-9])[A-Za-z_]\w{0,60})(?:\[\d{1,9}\]){1,4}(?!\w)",
            ),
            (
                "[",
                r"(?<![\w/.\]-])[A-Za-z_]\w{0,60}(?:\[\d{1,9}\]){1,4}"
                r"(?:\.[A-Za-z_]\w{0,60}|\[[^\[\]\s]{1,40}\]|(?= [=!+-]?= ))(?:\(\))?",
            ),
        ),
    ),
    Form(
        "case",
        (
            (
                "",
                rf"(?<![\w/.-])[{_CAPITAL}{_SMALL}]{{0,60}}[{_SMALL}][{_CAPITAL}]\w{{0,60}}(?:\(\))?",
            ),
        ),
        exact=False,
    ),
    Form(
        "number",
        (
            (".", r"(?<![\w.-])v?\d{1,9}(?:\.\d{1,9}){2,5}(?:/\d{1,3})?(?![\w.])"),
            (
                "-",
                r"(?<![\w/.-])\d{4}-(?:0\d|1[0-2])-[0-3]\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\w-])",
            ),
            (":", r"(?<![\w:])\d{1,2}:\d\d:\d\d(?![\w:])"),
            ("§", r"(?<![\w§])§{1,2} ?\d{1,9}[a-z]?\b"),
            ("№", r"№ ?\d{1,9}"),
            ("′″", r"(?<![\w.,])\d{1,9}[′″]"),
        ),
        exact=False,
    ),
)


@dataclass(frozen=True)
class Copied:
    """What comes through a translation besides the placeholders that a text's reader has found:
    `first` what the user says, then what other `finders` find."""

    finders: tuple[Finder, ...]
    first: tuple[Finder, ...] = ()

    @cached_property
    def placeholders(self) -> Callable[[str], tuple[tuple[int, int], ...]]:
        """Where placeholders and all of that start and end in a text. What was found in the last
        texts is kept: the same pairs stand beside many segments."""

        def find(text: str) -> tuple[tuple[int, int], ...]:
            codes = with_placeholders(Text(text), [*ALL_FINDERS, *self.finders], self.first).codes
            return tuple((code.at, code.at + code.covers) for code in codes)

        return lru_cache(maxsize=TEXTS_KEPT)(find)

    def tokens(self, text: str) -> list[str]:
        """All of a text that is copied.

        text: the text."""
        codes = with_placeholders(Text(text), self.finders, self.first).codes
        return [text[code.at : code.at + code.covers] for code in codes]


# what every such form has somewhere, so that most texts are told in one look
_SIGN = re.compile(
    r"[_$@#~&%\\{}\[<>|`=§№′″]|!\w|(?<![\w])[:/.-][\w/]|\w[:/.]{1,2}\w|[^\W\d]\d|\d[^\W\d]"
    rf"|\w\+\+|->|\(\)|\d-\d|\w-\d|[{_SMALL}][{_CAPITAL}]"
)


def _guarded(forms: Iterable[Form]) -> Finder:
    """Finds what is of one of these forms."""
    finders = [finder for form in forms for finder in form.finders]

    def find(text: str) -> Iterable[Placeholder]:
        if not _SIGN.search(text):
            return ()
        return (place for finder in finders for place in finder(text))

    return find


BY_FORM = Copied((_guarded(FORMS),))
# what only a text has that says it: none of that is made up
MARKED = Copied(
    (*ALL_FINDERS, _guarded(form for form in FORMS if form.name in ("code", "template")))
)
EXACT = Copied((_guarded(form for form in FORMS if form.exact),))
