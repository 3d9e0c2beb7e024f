"""Normalisation and match tokens: what two segments are compared by."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import groupby

MAX_TOKEN_CHARS = 200
APOSTROPHES = ("'", "’")
Span = tuple[int, int]  # where something begins and ends in a text, in characters

# Scripts written without spaces are compared character by character.
_CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3040-\u30ff\u3100-\u312f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
# Thai, Lao, Burmese, Khmer, and other scripts of their neighbours without spaces between words
_BY_LETTER = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf"
)
WITHOUT_BLANKS = _CJK + _BY_LETTER  # scripts that put no blanks between words
_MOST_MARKS = 30  # on one letter
_BLOCKS_WITH_MARKS = (  # no others have combining marks, but for those of `_IGNORED`
    *((0x300, 0x3100), (0xA66F, 0xAC00), (0xFB1E, 0xFB1F), (0xFE20, 0xFE30)),
    *((0x101FD, 0x12000), (0x16A00, 0x17000), (0x1BC00, 0x1F000)),
)
# Signs that no reader sees: soft hyphens, joiners, spaces without width, marks of direction,
# selectors of variants.
_IGNORED = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\ufff0-\ufff8\U000e0000-\U000e0fff"
)
# Ligatures, presentation forms of Arabic and Hebrew, signs of half and of full width other than the
# comma and the full stop, which would join numbers.
_COMPATIBLE = (
    "\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufdff\ufe70-\ufefc\uff01-\uff0b\uff0d\uff0f-\uff9f"
    "\uffa1-\uffee"
)
# a hyphen that keeps a line together, an apostrophe that counts as a letter
_SIMILAR = {"\u2011": "-", "\u02bc": "\u2019"}
_SPECIAL = re.compile(f"[{_IGNORED}{_COMPATIBLE}{''.join(_SIMILAR)}]+")
_IS_IGNORED = re.compile(f"[{_IGNORED}]")
# the same where there is nothing else
_ASCII_TOKEN = re.compile(r"[A-Za-z]+|[!-/:-@\[-`{-~]|[0-9]+(?:[.,][0-9]+)*")
_LINE_END = re.compile("[ \t]*[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029][\\s\x1c-\x1e\x85]*")
_WORD = re.compile(rf"[{_CJK}]|[^\s{_CJK}]+")
_LONG_RUN = re.compile(r"[^\w\s]{64,}")


@cache
def _token() -> re.Pattern[str]:
    """A token of a text in its match form. It is made when the first text comes that is not
    ASCII, because this takes some milliseconds."""
    marks = _marks()
    letters = rf"[^\W\d_{_CJK}{_BY_LETTER}]+"
    return re.compile(
        rf"{letters}(?:{marks}{letters})*(?:{marks})?|[^\w\s]|\d+(?:[.,]\d+)*"
        rf"|[{_CJK}](?:{marks})?|[{_BY_LETTER}](?<=\w)(?:{marks})?|_"
    )


def _marks() -> str:
    """A pattern of the combining marks of one letter, at most as many as stand on one in a
    stream-safe text (UAX #15). Those behind U+FFFF stand apart, because a class that has
    many of them is slow for all other texts."""
    classes = ["", ""]
    for first, end in _BLOCKS_WITH_MARKS:
        runs = groupby(range(first, end), key=lambda code: unicodedata.category(chr(code))[0])
        for category, run in runs:
            codes = [*run]
            if category == "M":
                classes[codes[0] > 0xFFFF] += f"{chr(codes[0])}-{chr(codes[-1])}"
    mark = f"(?:[{classes[0]}]|(?=[\U00010000-\U0001ffff])[{classes[1]}])"
    return f"{mark}{{1,{_MOST_MARKS}}}"


def match_tokens(text: str) -> list[str]:
    """The tokens that the fuzzy score counts, with their case: words, numbers, single punctuation
    marks; single characters for CJK, and single letters for Thai, Lao, Khmer and Burmese. Letters
    have their combining marks with them. Control characters separate.

    text: the text, which is read in its match form. A token of it is cut at 200 characters."""
    if text.isascii():
        words: list[str] = _ASCII_TOKEN.findall(text)
        return words if len(text) <= MAX_TOKEN_CHARS else [word[:MAX_TOKEN_CHARS] for word in words]
    form = match_form(text)
    tokens: list[str] = _token().findall(form)
    is_short = len(form) <= MAX_TOKEN_CHARS or max(map(len, tokens), default=0) <= MAX_TOKEN_CHARS
    if is_short and "".join(tokens).isprintable():
        return tokens  # nothing to leave out or to cut
    return [token[:MAX_TOKEN_CHARS] for token in tokens if token.isprintable()]


def match_form(text: str) -> str:
    """The form in which two texts are compared: NFC, without signs that no reader sees, with
    ligatures, presentation forms and signs of half and of full width as usual ones.

    text: the text."""
    return nfc(_SPECIAL.sub(_usual, text) if _SPECIAL.search(text) else text)


def _usual(signs: re.Match[str]) -> str:
    return "".join(map(_usual_sign, signs[0]))


@lru_cache(1 << 10)
def _usual_sign(sign: str) -> str:
    """A sign as the match form has it; "" where no reader sees it."""
    if sign in _SIMILAR:
        return _SIMILAR[sign]
    if _IS_IGNORED.match(sign):
        return ""
    return unicodedata.normalize("NFKC", sign) if _SPECIAL.match(sign) else sign


def located_tokens(text: str) -> list[tuple[str, Span]]:
    """The match tokens of a text, and where each begins and ends in it as it is written, in
    characters.

    text: the text."""
    if text.isascii():
        return [(token[0][:MAX_TOKEN_CHARS], token.span()) for token in _ASCII_TOKEN.finditer(text)]
    form = match_form(text)
    located = [
        (token[0][:MAX_TOKEN_CHARS], token.span())
        for token in _token().finditer(form)
        if token[0].isprintable()
    ]
    if form == text:
        return located
    begins, ends = _places(text)
    return [(token, (begins[begin], ends[end - 1])) for token, (begin, end) in located]


def token_spans(text: str) -> list[Span]:
    """Where the match tokens of a text begin and end in it as it is written, in characters.

    text: the text."""
    return [span for _, span in located_tokens(text)]


def _places(text: str) -> tuple[list[int], list[int]]:
    """Where what became every character of the match form of a text begins and ends in the
    text."""
    begins, ends = list[int](), list[int]()
    for begin, end, prefix in _composed(text):
        length = len(nfc(prefix))
        begins += [begin] * length
        ends += [end] * length
    return begins, ends


def _composed(text: str) -> Iterator[tuple[int, int, str]]:
    """The stretches of a text that become characters of their own in its match form: where each
    begins and ends, and its usual signs."""
    begin = end = 0
    prefix = ""
    for offset, sign in enumerate(text):
        usual = _usual_sign(sign)
        if not usual:
            continue
        if prefix and begins_anew(prefix, usual[0]):
            yield begin, end, prefix
            prefix = ""
        begin, end = begin if prefix else offset, offset + 1
        prefix += usual
    if prefix:
        yield begin, end, prefix


def begins_anew(prefix: str, character: str) -> bool:
    """Whether a character stands for itself in NFC: it neither joins what stands before it nor
    moves into it.

    prefix: what stands before it, at least one character.
    character: the character."""
    if unicodedata.combining(character):
        return False
    last = nfc(prefix)[-1]
    return unicodedata.normalize("NFC", last + character) == unicodedata.normalize(
        "NFC", last
    ) + unicodedata.normalize("NFC", character)


# Letters that count as one where case does not: of Turkish, and of Arabic as Lucene's normaliser of
# Arabic has them.
_ONE_LETTER = str.maketrans(
    {"İ": "i", "ı": "i", "ى": "ي", "ة": "ه", "ـ": "", **dict.fromkeys("آأإٱ", "ا")}
)
_HAS_ACCENTS = re.compile("[\u0370-\u03ff\u1f00-\u1fff\u0590-\u06ff\u08d0-\u08ff]")


def folded(token: str) -> str:
    """A token without what does not count where case does not: Greek without accents, Arabic and
    Hebrew without vowel signs, with one letter for those that are often written for each other, and
    one i for Turkish.

    token: the token, which is not ASCII."""
    plain = token.translate(_ONE_LETTER).casefold()
    if _HAS_ACCENTS.search(plain):
        signs = unicodedata.normalize("NFD", plain)
        plain = "".join(sign for sign in signs if not unicodedata.combining(sign))
    return unicodedata.normalize("NFC", plain)


def is_of_special_signs(text: str) -> bool:
    """Whether a text has any of the signs that count otherwise since combining marks go with their
    letters: such marks, what the match form changes, scripts read letter by letter, and letters
    that `folded` changes beyond their case.

    text: the text."""
    return not text.isascii() and _special_signs().search(text) is not None


@cache
def _special_signs() -> re.Pattern[str]:
    of_one_letter = "".join(map(chr, _ONE_LETTER))
    return re.compile(
        f"{_SPECIAL.pattern}|[{_BY_LETTER}{of_one_letter}]|{_HAS_ACCENTS.pattern}|{_marks()}"
    )


def nfc(text: str) -> str:
    """A text in Normalization Form C (UAX #15), in time linear in its length.

    Python sorts the marks on one letter by insertion, which is quadratic: 80 KB of them took 8
    seconds. So long runs are put into that order before, by a stable sort on the combining class,
    as the form defines it.

    text: the text."""
    if len(text) > 64:
        text = _LONG_RUN.sub(_in_canonical_order, text)
    return unicodedata.normalize("NFC", text)


def _in_canonical_order(run: re.Match[str]) -> str:
    # Mark by mark: normalised together they would be sorted by insertion again.
    marks = "".join([unicodedata.normalize("NFD", character) for character in run[0]])
    runs = groupby(marks, key=lambda mark: unicodedata.combining(mark) > 0)
    return "".join(
        [
            "".join(sorted(characters, key=unicodedata.combining) if sort else characters)
            for sort, characters in runs
        ]
    )


def written_for_tokens(text: str, tokens: Iterable[str] | None = None) -> tuple[bytes, bool]:
    """What compiled code reads the match tokens of a text from, and whether these are tokens. A
    text in ASCII is given as it is; of another text the tokens are given, one a line.

    text: the text.
    tokens: its match tokens, where they are known; None finds them.

    Raises UnicodeEncodeError where the text is no Unicode."""
    if text.isascii():
        return text.encode(), False
    return "\n".join(match_tokens(text) if tokens is None else tokens).encode(), True


def normalise(text: str) -> str:
    """The form under which two sources count as the same: match tokens joined by one space.

    text: the source."""
    return " ".join(match_tokens(text))


def one_line(text: str) -> str:
    """A text with a space for every line end and the blanks around it, so that whoever reads lines
    reads one.

    text: the text."""
    return _LINE_END.sub(" ", text) if not text.isprintable() else text


def words(text: str) -> int:
    """How many words translators are paid for: runs between blanks, and every character of CJK.

    text: the text."""
    return len(_WORD.findall(text))


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where each of the words that `words` counts begins and ends, in characters.

    text: the text."""
    return [word.span() for word in _WORD.finditer(text)]
