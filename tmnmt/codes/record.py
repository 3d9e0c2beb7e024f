"""A text with codes at places. Readers of every format make these records, and writers take them.

    <bpt i="1">&lt;b></bpt>Save<ept i="1">&lt;/b></ept> %s      in the file, here a TMX
    Save %s                                                 plain: what is searched and translated
    open at 0, close at 4, placeholder at 5 that covers 2   the codes

Plain text and codes together are the whole text: `parts` takes it apart in order, and `joined` puts
it together again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args
from xml.sax.saxutils import unescape

# what a code is, as `Code.kind` explains
Kind = Literal["open", "close", "standalone", "placeholder", "blank"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TMX = "tmx"  # the form of codes whose markup is an inline element of TMX, or one tag of it
_LINE_END = re.compile("\r\n?")
_OTHER_SPACE = re.compile(r"[^\n\t]")
_ELEMENT = re.compile(r"<(?:\w+:)?(?:bpt|ept|ph|it|ut)(?:\s[^<>]*)?>([^<]+)</[^<>]+>")


@dataclass(frozen=True, slots=True)
class Code:
    """What stands in a text beside its words, such as a tag or a placeholder.

    at: the place of the code in the plain text, in characters from its beginning.
    kind: "open" or "close" for the ends of a span; "standalone"; "placeholder" for what stands for
    words, such as %s; "blank" for white space that the plain text has in another form, or that it
    does not have at its ends.
    markup: the code as it stands in the file. Only a writer of the same format looks into it.
    pair: a name that the two codes of a span share; "" where the other half is elsewhere.
    form: the format that the markup belongs to, such as "tmx"; "" where it is text.
    covers: how many characters of the plain text, from `at` on, stand for the code itself. They are
    not written beside it.
    movable: whether the code may change places with other codes.
    droppable: whether a translation may do without it."""

    at: int
    kind: Kind
    markup: str
    pair: str = ""
    form: str = ""
    covers: int = 0
    movable: bool = True
    droppable: bool = False


Part = str | tuple[Code, str]  # words; or a code with the plain text that it covers


@dataclass(frozen=True, slots=True)
class Text:
    """A plain text with its codes.

    plain: the text without its codes.
    codes: the codes, in the order in which they stand.

    Raises ValueError where the place of a code is outside the text, or before the end of the code
    that precedes it."""

    plain: str
    codes: tuple[Code, ...] = ()

    def __post_init__(self) -> None:
        end = 0
        for code in self.codes:
            if code.at < end or code.covers < 0:
                raise ValueError(f"code {code.markup[:40]!r} is at {code.at}, before {end}")
            end = code.at + code.covers
        if end > len(self.plain):
            raise ValueError(f"a code ends at {end} of {len(self.plain)} characters")

    def parts(self) -> Iterator[Part]:
        """The words and the codes of the text, in order. Each code comes with the plain text that
        it covers, and no words are empty."""
        end = 0
        for code in self.codes:
            if code.at > end:
                yield self.plain[end : code.at]
            end = code.at + code.covers
            yield code, self.plain[code.at : end]
        if end < len(self.plain):
            yield self.plain[end:]

    def full_text(self) -> str:
        """The text with the markup of its codes in their places."""
        return "".join(part if isinstance(part, str) else part[0].markup for part in self.parts())


@dataclass(frozen=True, slots=True)
class Placed(Text):
    """A text of a file with what a memory may know its place by.

    previous: the text before it; "" where there is none.
    next: the text behind it; "" where there is none.
    id: its name in the file; "" where it has none.
    note: what the file says of it for translators; "" where that is nothing."""

    previous: str = ""
    next: str = ""
    id: str = ""
    note: str = ""


Source = str | Text  # what is to be translated: a plain text, or one with codes
Pair = tuple[Source, Source]  # a source and its translation
Beside = tuple[str, str] | tuple[str, str, str]  # the texts before and after it; its id


def plain_of(text: Source) -> str:
    """The text without its codes.

    text: the text."""
    return text.plain if isinstance(text, Text) else text


def surroundings(texts: Sequence[Source]) -> list[Beside]:
    """What stands beside every text of a document: what its file says, else the texts there.

    texts: the texts of the document, in order."""
    plain = ["", *map(plain_of, texts), ""]
    return [
        (text.previous, text.next, text.id) if isinstance(text, Placed) else (preceding, following)
        for text, preceding, following in zip(texts, plain, plain[2:], strict=False)
    ]


def join_parts(parts: Iterable[Part]) -> Text:
    """The text that some parts make. Where their codes stood before does not count.

    parts: the words and the codes, in order."""
    plain = ""
    codes = list[Code]()
    for part in parts:
        if isinstance(part, str):
            plain += part
        else:
            code, covered = part
            codes.append(replace(code, at=len(plain), covers=len(covered)))
            plain += covered
    return Text(plain, tuple(codes))


def equal_codes(codes: Sequence[Code], reference: Sequence[Code]) -> bool:
    """Whether two texts have the same codes, wherever these stand. Blanks do not count.

    codes: the codes of one text.
    reference: the codes of the other text."""
    return _count_codes(codes) == _count_codes(reference)


_TAGS = "", "html"  # forms whose markup is what its format has


def native(code: Code) -> str:
    """What stands for a code in the format that its text is from, such as <b>, which a file may
    have as text or inside a bpt. "" where its element does not say it.

    code: the code."""
    if code.form in _TAGS:
        return code.markup
    element = _ELEMENT.fullmatch(code.markup)
    return unescape(element[1]) if element else ""


def alike(codes: Sequence[Code], reference: Sequence[Code]) -> bool:
    """Whether two texts have the same inline codes, as their own format has them: <b> as text is
    the same as in a bpt of TMX or XLIFF. Blanks do not count, but for lines as in `same_lines`.

    codes: the codes of one text.
    reference: the codes of the other text."""
    ours, theirs = (_count_codes(map(_bare, without_spaces(side))) for side in (codes, reference))
    return ours == theirs and same_lines(codes, reference)


def is_space(code: Code) -> bool:
    """Whether a code stands for white space: a blank, or a line break of a format that keeps lines.

    code: the code."""
    return code.kind == "blank" or (not code.form and code.markup.isspace())


def without_spaces(codes: Sequence[Code]) -> list[Code]:
    """The inline codes that do not stand for white space.

    codes: the codes."""
    return [code for code in inline(codes) if not is_space(code)]


def same_lines(codes: Sequence[Code], reference: Sequence[Code]) -> bool:
    """Whether the line breaks and tabs that are codes of one text stand in the other, too. There
    they may be mere white space, which one format keeps as it is and another does not.

    codes: the codes of one text.
    reference: the codes of the other text."""
    fixed, of_any_kind = (
        [
            Counter(lines_of(code) for code in side if is_space(code) and code.kind in kinds)
            for side in (codes, reference)
        ]
        for kinds in (frozenset(KINDS) - {"blank"}, frozenset(KINDS))
    )
    return fixed[0] <= of_any_kind[1] and fixed[1] <= of_any_kind[0]


def lines_of(code: Code) -> str:
    """The line ends and tabs of white space.

    code: the code that stands for the white space."""
    return _OTHER_SPACE.sub("", _LINE_END.sub("\n", code.markup))


def _bare(code: Code) -> Code:
    return (
        replace(code, form="", markup=native_markup)
        if code.form and (native_markup := native(code))
        else code
    )


def is_text(code: Code) -> bool:
    """Whether a code is written as it stands in the plain text, as %s is.

    code: the code."""
    return code.kind == "placeholder" and not code.form and code.covers > 0


def inline(codes: Sequence[Code]) -> list[Code]:
    """The codes that are not written in the plain text, and are no blanks.

    codes: the codes."""
    return [code for code in codes if code.kind != "blank" and not is_text(code)]


def _count_codes(codes: Iterable[Code]) -> Counter[tuple[str, str, str]]:
    return Counter((code.kind, code.form, code.markup) for code in codes if code.kind != "blank")


def pairs(codes: Sequence[Code]) -> dict[int, int]:
    """The spans: for the place in the list of each code that opens one, the place of the code that
    closes it. A code whose other half is missing is not there.

    codes: the codes of a text."""
    waiting: dict[str, list[int]] = {}
    partners = {}
    for index, code in enumerate(codes):
        if code.kind == "open" and code.pair:
            waiting.setdefault(code.pair, []).append(index)
        elif code.kind == "close" and waiting.get(code.pair):
            partners[waiting[code.pair].pop()] = index
    return partners
