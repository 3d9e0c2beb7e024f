"""What somebody should look at in a translation, found by its source and itself alone: one list of
checks for what a model wrote, what a person confirms, and what was translated elsewhere."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Text, inline
from tmnmt.errors import UsageError
from tmnmt.languages import data_for, listed

if TYPE_CHECKING:
    from tmnmt.codes.form import Copied

# the bounds were chosen on references: docs/translate.md says how many of those they flag
TIMES_LONGER = 3.0  # than the source, in characters, CJK counted as two
SLACK = 20  # characters more, or less, that never count
SHORT_TIMES = 8.0  # shorter than a source of PROSE words or more, whatever the slack
PROSE = 3  # words
COPIED_WORDS = 2  # of a source that is left as it is
SAME_WORDS = 5  # one after another, as in the source
LONGEST_REPEATED = 12  # words
FEWEST_LETTERS = 3  # of a source that no single letter translates
# letters that are words in one language or another: "and" is y, e, i or а, "from" is z
LETTER_WORDS = frozenset("aeiouyksvwzàáéèíóúавиксоуяєії")
STOPS = ".!?:…"  # what a sentence ends with
NO_CHARACTER = "\ufffd"
CHECKS = (
    *("numbers", "codes", "placeholders", "ends", "length", "untranslated", "repeated"),
    *("spaces", "characters", "unreadable", "brackets"),
)
# what a translation does in which a check finds something
FINDINGS = {
    "empty": "are empty",
    "numbers": "lack a number of the source, or write it otherwise",
    "codes": "have other codes than the source",
    "placeholders": "have other placeholders than the source",
    "ends": "end otherwise than the source",
    "length": "are much longer or shorter than the source",
    "untranslated": "have words of the source untranslated",
    "repeated": "repeat words",
    "spaces": "have blanks where the source has none",
    "characters": "have invisible or private characters that the source does not have",
    "unreadable": "have bytes that are no character",
    "brackets": "have a bracket or quotation mark without its other half",
    "replay": "are the translation of a match, whose source has other words",
    "words": "have a word that no dictionary, memory or source knows",
    "terms": "lack a term that they should have",
    "forbidden": "have a forbidden term",
    "meaning": "have a term of several meanings, and nothing says which one it is",
    "answer": "are answers of the base that break a rule of the prompt",
    "speed": "are to be read faster than viewers read",
    "limit": "have more characters than their file allows",
    "width": "have longer lines than subtitles should have",
    "lines": "have more lines than a subtitle should have",
}
LAYOUT_CHECKS = ("limit", "speed", "width", "lines")  # by what a file says of a text's place
ECHO_AT_MOST = 3  # words from one place of a word to the next
ECHO_LETTERS = 5  # letters of such a word, at least
OFTEN = 50  # places of a word that are looked at

# what is done where a translation is confirmed and the checks find something: it is confirmed and
# that is told, or it is refused
OnChecks = Literal["tell", "refuse"]


class Check(NamedTuple):
    """Something that a person should look at in a translation.

    name: the name of the check that found it.
    what: what is wrong, in words by which a person can find the place."""

    name: str
    what: str


class SubtitleLimits(NamedTuple):
    """What viewers can read.

    speed: characters a second, blanks and marks counted.
    width: characters of a line.
    lines: lines of a cue."""

    speed: float
    width: int
    lines: int


# Netflix, *Timed Text Style Guides*, for adults; "" is what most languages have.
_SUBTITLE_LIMITS = {
    "": SubtitleLimits(17, 42, 2),
    "en": SubtitleLimits(20, 42, 2),
    "ja": SubtitleLimits(4, 13, 2),
    "ko": SubtitleLimits(12, 16, 2),
    "zh": SubtitleLimits(9, 16, 2),
}


def subtitle_limits(language: str) -> SubtitleLimits:
    """What is usual in a language.

    language: its code; "" where it is not known."""
    return _SUBTITLE_LIMITS.get(language.partition("-")[0], _SUBTITLE_LIMITS[""])


def subtitle_checks(lines: Sequence[str], seconds: float, limits: SubtitleLimits) -> list[Check]:
    """What is found in a cue, or in what one speaker says in it.

    lines: its lines as they are shown, without tags.
    seconds: how long it is shown; 0 where that is not known, and then the speed is not checked.
    limits: what viewers can read."""
    count, width = sum(map(len, lines)), max(map(len, lines), default=0)
    speed = count / seconds if seconds else 0.0
    results = (
        ("speed", speed > limits.speed, f"{speed:.1f} characters a second of {limits.speed:g}"),
        ("width", width > limits.width, f"{width} characters in a line of {limits.width}"),
        ("lines", len(lines) > limits.lines, f"{len(lines)} lines of {limits.lines}"),
    )
    return [Check(name, what) for name, is_found, what in results if is_found]


def limit_checks(target: str, limit: int | None) -> list[Check]:
    """What is found where a file says how many characters a translation may have.

    target: the translation without its codes, as a reader sees it.
    limit: how many characters it may have; None where the file does not say it."""
    count = len(target)
    is_over = limit is not None and count > limit
    return [Check("limit", f"{count} characters of {limit}")] if is_over else []


class ChecksError(UsageError):
    """A translation was not confirmed, since the checks found something in it.

    checks: what they found."""

    def __init__(self, checks: Sequence[Check]) -> None:
        """checks: what the checks found."""
        super().__init__(f"not confirmed: {in_words(checks)}")
        self.checks = list(checks)


def in_words(checks: Sequence[Check]) -> str:
    """The checks as one line for people, as in "numbers (30), codes (lost: <g1>)".

    checks: the checks."""
    return ", ".join(f"{name} ({problem})" for name, problem in checks)


class Sides(NamedTuple):
    """A source and its translation, as checks look at them.

    src: the source.
    tgt: its translation.
    src_lang: the code of the source language; "" where it is not known.
    tgt_lang: the code of the target language; "" where it is not known."""

    src: Text
    tgt: Text
    src_lang: str = ""
    tgt_lang: str = ""


def checks(
    src: Text,
    tgt: Text,
    names: Iterable[str] = CHECKS,
    languages: tuple[str, str] = ("", ""),
) -> list[Check]:
    """What the checks find in a translation, one thing of every check at most. Tags and
    placeholders are found in texts without codes, too. The text around the messages of an argument
    belongs to each of them. Nothing is found where the source is blank.

    src: the source.
    tgt: its translation.
    names: the names of the checks, some of CHECKS.
    languages: the languages of the source and of the translation; "" where they are not known.
    Numbers, which may be words, are looked at where these are known, and sentences may end with
    other marks."""
    from tmnmt.codes.messages import in_sentences
    from tmnmt.codes.tags import html_tags, with_tags

    if not src.plain.strip():
        return []
    if not tgt.plain.strip():
        return [Check("empty", src.plain)]
    source, target = (
        in_sentences(with_placeholders(with_tags(text, html_tags))) for text in (src, tgt)
    )
    sides = Sides(source, target, *languages)
    results = ((name, _CHECKS[name](sides)) for name in names)
    return [Check(name, problem) for name, problem in results if problem]


def _numbers(sides: Sides) -> str:
    """The numbers that are lacking, or are others; nothing where the languages are not known, since
    a number may be a word in them."""
    if not sides.tgt_lang:
        return ""
    from tmnmt.number_words import is_written_out
    from tmnmt.numbers import changed_number_words, missing_numbers

    src, tgt = _ORDINAL.sub("", sides.src.plain), sides.tgt.plain
    lacking = [
        number
        for number in missing_numbers(src, tgt)
        if not is_written_out(number, tgt, sides.tgt_lang)
    ]
    return ", ".join([*lacking, *changed_number_words(src, tgt, sides.src_lang, sides.tgt_lang)])


def _ends(sides: Sides) -> str:
    from tmnmt.ends import wrong_end

    src, tgt = sides.src.plain.strip(), sides.tgt.plain.strip()
    return wrong_end(src, tgt, sides.src_lang, sides.tgt_lang)


def _codes(sides: Sides) -> str:
    src, tgt = sides.src, sides.tgt
    return _differ(*([code.markup for code in inline(text.codes)] for text in (src, tgt)))


def _placeholders(sides: Sides) -> str:
    """The placeholders lost or made, and what else is lost that is copied for its form."""
    from tmnmt.codes.form import EXACT

    src, tgt = sides.src, sides.tgt
    theirs, ours = (list(_names(text)) for text in (src, tgt))
    lacking = missing_tokens(src.plain, tgt.plain, EXACT, theirs)
    return _differ([*theirs, *(text for text in lacking if not _COMPARED.fullmatch(text))], ours)


def missing_tokens(
    src: str, tgt: str, copied: Copied, exempt_texts: Sequence[str] = ()
) -> list[str]:
    """What a translation lacks of what is copied from its source, each as often as it lacks it.

    src: the source.
    tgt: the translation.
    copied: what is copied.
    exempt_texts: texts whose parts do not count as lacking."""
    times = Counter(copied.tokens(src))
    target = " ".join(tgt.split())
    return [
        text
        for text, count in times.items()
        if not any(text in exempt_text for exempt_text in exempt_texts)
        for _ in range(count - target.count(_kept_part(" ".join(text.split()))))
    ]


def _kept_part(text: str) -> str:
    """What a translation has of a text that is copied: of a role of reStructuredText with a title,
    as :func:`base name <os.path.basename>`, the target, since the title may be translated."""
    role = _TITLED_ROLE.fullmatch(text)
    return text if role is None else role[1]


_TITLED_ROLE = re.compile(r":[\w:+.-]+:`[^`<>]*[^`<>\s]\s+(<[^`<>]+>`)")
_COMPARED = re.compile(r"[<>]=?\s*[\d.,]+")  # which may be put in words: "5 or more"
_ROLE_NAME = re.compile(r"(?<!\w):[\w:+.-]+:(?=`)")
_ORDINAL = re.compile(r"(?<![\w.,])\d{1,3}(?=(?:st|nd|rd|th)\b)")  # which may become a word


def check_preserved(src: str, tgt: str, copied: Copied) -> list[Check]:
    """What a translation lacks of what the user wants to be kept, as one check at most.

    src: the source.
    tgt: the translation.
    copied: what is copied; what the user wants to be kept comes `first` in it."""
    if not copied.first or not tgt.strip():
        return []
    lacking = missing_tokens(src, tgt, replace(copied, finders=()))
    return [Check("placeholders", f"lost: {' '.join(lacking)}")] if lacking else []


def _names(text: Text) -> Iterator[str]:
    """The placeholders, but for characters that are only written otherwise, such as %% and \\'."""
    for code in text.codes:
        covered = text.plain[code.at : code.at + code.covers]
        if code.kind == "placeholder" and not _ESCAPED.fullmatch(covered):
            yield covered or code.markup


_ESCAPED = re.compile(r"%%|\\[\"'\\]|&(?:#39|apos);")


def _differ(theirs: Sequence[str], ours: Sequence[str]) -> str:
    missing, added = Counter(theirs) - Counter(ours), Counter(ours) - Counter(theirs)
    parts = [
        f"{label}: {' '.join(codes.elements())}"
        for label, codes in (("lost", missing), ("made", added))
        if codes
    ]
    return ", ".join(parts)


def _length(sides: Sides) -> str:
    src, tgt = sides.src, sides.tgt
    source, target = (_long(text.plain.strip()) for text in (src, tgt))
    is_short = source > SHORT_TIMES * target and _prose(src.plain) >= PROSE
    is_long = max(source, target) > TIMES_LONGER * min(source, target) + SLACK
    if not (is_long or is_short or _is_stray_letter(src.plain, tgt.plain.strip())):
        return ""
    return f"{len(tgt.plain)} characters for {len(src.plain)}"


def _is_stray_letter(src: str, tgt: str) -> bool:
    """Whether a translation is a single letter that its source does not have: an x for a test, not
    h for hours. A letter that is a word may translate one word; a sign of Chinese is no letter."""
    letter, source = tgt.casefold(), src.casefold()
    if len(letter) != 1 or not letter.isalpha() or unicodedata.east_asian_width(letter) in "WF":
        return False
    if letter in source or sum(map(str.isalpha, source)) < FEWEST_LETTERS:
        return False
    return len(source.split()) > 1 or letter not in LETTER_WORDS


def _long(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide


def _prose(text: str) -> int:
    """How many words there are that are no sign, number or abbreviation."""
    return sum(map(_is_prose, _words(text)))


_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\S")


def _untranslated(sides: Sides) -> str:
    """The longest stretch of words, with nothing between them, that both have; of a source that is
    left as it is, but for its last stop, all of it; but one word may be a name or a heading."""
    src, tgt = sides.src, sides.tgt
    if copied_source(src.plain, tgt.plain):
        return tgt.plain.strip()
    ours, theirs = _words(src.plain), _words(tgt.plain)
    places: dict[str, list[int]] = {}
    for index, word in enumerate(ours):
        places.setdefault(word, []).append(index)
    best, end = 0, 0
    ending: dict[int, int] = {}  # how many words that both have end at a place of the source
    for index, word in enumerate(theirs):
        positions = places.get(word, []) if _is_prose(word) else []
        ending = {place: ending.get(place - 1, 0) + 1 for place in positions[:OFTEN]}
        longest = max(ending.values(), default=0)
        if longest > best:
            best, end = longest, index + 1
    return " ".join(theirs[end - best : end]) if best >= SAME_WORDS else ""


def copied_source(src: str, tgt: str) -> bool:
    """Whether a source of COPIED_WORDS words or more was left as it is, but for its last stop.

    src: the source.
    tgt: the translation."""
    return _unstopped(src) == _unstopped(tgt) and _prose(src) >= COPIED_WORDS


def _unstopped(text: str) -> list[str]:
    return text.rstrip(f"{STOPS} \t\n\u00a0\u202f").split()


def _is_prose(word: str) -> bool:
    return len(word) > 1 and word[0].isalpha() and not word.isupper()


def _repeated(sides: Sides) -> str:
    """Words that come twice one after another, or with small words between them, where none of the
    source do; a word of `doubled` three times."""
    words, source = (_words(_ROLE_NAME.sub("", x.plain)) for x in (sides.tgt, sides.src))
    stretch = _stretch(words, 4)
    if stretch and not _stretch(source, 1):
        return " ".join(stretch)
    if not _double(source) and (double := _double(words)):
        return " ".join(double)
    return " ".join(_echo(words)) if not _echo(source, ECHO_AT_MOST + 1) else ""


def _echo(words: Sequence[str], distance: int = ECHO_AT_MOST) -> Sequence[str]:
    """The first long word in small letters that is its own genitive, as in "l’avis de l’avis", with
    what stands between."""
    for index, word in enumerate(words):
        if len(word) < ECHO_LETTERS or not word.islower():
            continue
        following = words[index + 1 : index + 1 + distance]
        for place, neighbour in enumerate(following):
            if neighbour == word and place:
                return words[index : index + place + 2]
            if neighbour not in _GENITIVE:
                break
    return ()


def _double(words: Sequence[str]) -> Sequence[str]:
    """The first word that stands twice one after another and hardly ever may: in small letters, but
    for the first letter of a sentence."""
    preceding = (STOPS, *words)  # the word in front of each
    may_double = listed("doubled_words")  # relative pronouns, reflexive verbs
    return next(
        (
            (first, second)
            for stop, first, second in zip(preceding, words, words[1:], strict=False)
            if first == second or (stop[0] in STOPS and first.istitle() and first.lower() == second)
            if len(first) > 1 and second.isalpha() and second.islower() and second not in may_double
        ),
        (),
    )


def _stretch(words: Sequence[str], letters: int) -> Sequence[str]:
    """The shortest such stretch; where it is of several words one must have so many letters: "de la
    de la" may well be."""
    for size in range(1, min(LONGEST_REPEATED, len(words) // 2) + 1):
        times, minimum, run = (3, min(letters, 2), 0) if size == 1 else (2, letters, 0)
        for index in range(size, len(words)):
            run = run + 1 if words[index] == words[index - size] else 0
            stretch = words[index - size + 1 : index + 1]
            if run >= size * (times - 1) and any(
                len(word) >= minimum and word[0].isalpha() for word in stretch
            ):
                return stretch
    return ()


# between a noun and its genitive
_GENITIVE = {"de", "d", "du", "des", "del", "di", "della", "do", "da", "dos", "das", "of", "the"}
_GENITIVE |= {"la", "le", "les", "el", "los", "von", "der", "den"}


def _spaces(sides: Sides) -> str:
    """The first place with two blanks, or with a blank before a full stop or comma, where the
    source has none such. In English two blanks may stand between sentences."""
    is_wide = data_for(sides.tgt_lang).double_sentence_spacing
    for pattern in (_TWO_BLANKS_INSIDE if is_wide else _TWO_BLANKS, _BLANK_BEFORE):
        place = pattern.search(sides.tgt.plain)
        if place and not pattern.search(sides.src.plain):
            return sides.tgt.plain[max(0, place.start() - 10) : place.end() + 10]
    return ""


_TWO_BLANKS = re.compile(r"(?<=\S)[ \u00a0\u202f]{2,}(?=\S)")
_TWO_BLANKS_INSIDE = re.compile(r"(?<=[^\s.!?:…])[ \u00a0\u202f]{2,}(?=\S)")  # of a sentence
_BLANK_BEFORE = re.compile(r"(?<=\w)\s[.,](?=\s|$)")


def _characters(sides: Sides) -> str:
    """The characters that are invisible, private or for control, where the source has none such."""
    source_signs = set(sides.src.plain)
    odd = {sign for sign in sides.tgt.plain if _is_forbidden(sign)} - source_signs
    if any(sign in _JOINERS for sign in source_signs):
        odd -= _JOINERS
    return ", ".join(f"U+{ord(sign):04X}" for sign in sorted(odd))


_JOINERS = frozenset(
    "\u200c\u200d"
)  # letters of Persian and Indian scripts, and of emoji, need them


def _is_forbidden(sign: str) -> bool:
    if sign.isprintable() or sign in "\t\n\r\u00ad\u200e\u200f" or sign in _JOINERS:
        return False
    return unicodedata.category(sign) in ("Cc", "Cf", "Co", "Cs", "Cn")


def _unreadable(sides: Sides) -> str:
    """The words with a sign that stands for bytes that are no character, where the source has none:
    a vocabulary spells rare characters in bytes, and a model may put these together wrongly."""
    src, tgt = sides.src, sides.tgt
    if NO_CHARACTER in src.plain:
        return ""
    return " ".join(word for word in tgt.plain.split() if NO_CHARACTER in word)


def _brackets(sides: Sides) -> str:
    """The brackets and quotation marks without their other half, where the source has none such."""
    from tmnmt.balance import is_part_of_quotation, unbalanced_brackets, unbalanced_quotes

    src, tgt = sides.src.plain, sides.tgt.plain
    brackets = "" if unbalanced_brackets(src) else unbalanced_brackets(tgt)
    return brackets + ("" if is_part_of_quotation(src) else unbalanced_quotes(tgt))


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


_CHECKS: dict[str, Callable[[Sides], str]] = {
    "numbers": _numbers,
    "ends": _ends,
    "spaces": _spaces,
    "characters": _characters,
    "codes": _codes,
    "placeholders": _placeholders,
    "length": _length,
    "untranslated": _untranslated,
    "repeated": _repeated,
    "unreadable": _unreadable,
    "brackets": _brackets,
}
