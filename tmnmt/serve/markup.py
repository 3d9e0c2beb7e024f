"""The text of a request as the segments to be translated, and the same text with their
translations in it.

    text    lines; what stands around and between them stays
    tagged  the same, with tags such as <g1>, </g1> and <x2/> as codes, as OmegaT sends them
    html    what `tmnmt.files.html` reads of a page: blocks, with tags as codes
    xml     one segment, with every tag as a code; elements that are ignored stay as they are"""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

from tmnmt.codes.placeholders import arguments
from tmnmt.codes.record import Code, Kind, Part, Source, Text, join_parts
from tmnmt.errors import FormatError
from tmnmt.files.html import HtmlFile
from tmnmt.files.unit import Filling, Unit
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.formats.tmx_codes import MAX_CODES
from tmnmt.serve.http_error import Refused, wrong

Form = Literal["text", "tagged", "html", "xml"]
FORMS: tuple[Form, ...] = ("text", "html", "xml")  # of the own API, where tags are XML
XML = "xml"  # the form of codes whose markup is a tag
_LINE_END = re.compile(r"[\n\r\u2028\u2029](?:(?<=\r)\n)?")  # begins with a set: twice as fast
_TAG = re.compile(
    r"<(?:!--(?P<comment>.*?)-->|!\[CDATA\[(?P<cdata>.*?)\]\]>|\?(?P<instruction>.*?)\?>"
    r"|(?P<end>/)?(?P<name>[A-Za-z_:][\w:.-]{0,200})"
    r"""(?:\s+[\w:.-]{1,200}\s*=\s*(?:"[^"<]*"|'[^'<]*'))*+\s*(?P<empty>/)?>)""",
    re.DOTALL,
)
_SHORT_TAG = re.compile("<(?P<end>/)?(?P<name>[A-Za-z]{1,20}[0-9]{1,9})(?P<empty>/)?>")


class Markup(ABC):
    """One text of a request."""

    @property
    @abstractmethod
    def sources(self) -> Sequence[Source]:
        """What there is to translate, in order."""

    @abstractmethod
    def filled(self, targets: Sequence[Text]) -> str:
        """The text with other texts in place of its segments.

        targets: one for each of `sources`."""


def markup(text: str, form: Form, ignored: Sequence[str] = ()) -> Markup:
    """A text of a request.

    text: the text.
    form: the form that it is in.
    ignored: the names of elements of XML that stay as they are.

    Raises Refused for what is not of this form."""
    if form == "html":
        return _Html(text)
    if form == "xml":
        return _Xml(text, frozenset(ignored))
    return _Tagged(text) if form == "tagged" else _Lines(text)


def single_text(text: str, form: Form) -> Source:
    """A text that is one segment: of XML with its tags as codes.

    text: the text.
    form: the form that it is in.

    Raises Refused for what is no XML."""
    return text if form == "text" else next(iter(markup(text, form).sources), "")


def check_tags(source: Source, target: Source) -> None:
    """Checks the tags of a target for mistakes of the typing, with which no file could be filled: a
    tag whose name no tag of the source has, as <g9>, and one with a number that stands in the
    target more often than in the source. Such a tag is one certain code of the file.

    source: the source.
    target: the target.

    Raises Refused for such tags."""
    tags, of_target = _tags(source), _tags(target)
    names = Counter(tag["name"] for tag in tags if not tag["end"])
    if unknown := [tag[0] for tag in of_target if tag["name"] not in names]:
        allowed = ", ".join(dict.fromkeys(tag[0] for tag in tags)) or "none"
        why = "{tag} is no tag of this segment; its tags: {tags}"
        raise wrong(why, tag=unknown[0][:40], tags=allowed)
    numbered = (tag for tag in of_target if _SHORT_TAG.fullmatch(tag[0]) and not tag["end"])
    for name, times in Counter(tag["name"] for tag in numbered).items():
        if times > names[name]:
            tag = next(tag[0] for tag in of_target if tag["name"] == name)
            why = "{tag} comes more often ({times}) than in the source ({allowed})"
            raise wrong(why, tag=tag[:40], times=times, allowed=names[name])


def _tags(text: Source) -> list[re.Match[str]]:
    """The tags of a text of XML in order."""
    codes = text.codes if isinstance(text, Text) else ()
    tags = (_TAG.match(code.markup) for code in codes if code.form == XML)
    return [tag for tag in tags if tag is not None and tag["name"]]


def _in_lines(text: str) -> list[str]:
    """Lines and, between them, their ends. A line does not end within an argument of ICU."""
    parts, position = list[str](), 0
    spans = iter(arguments(text))
    start, end = next(spans, (len(text), len(text) + 1))
    for line_end in _LINE_END.finditer(text):
        while end <= line_end.start():
            start, end = next(spans, (len(text), len(text) + 1))
        if line_end.start() < start:
            parts += text[position : line_end.start()], line_end[0]
            position = line_end.end()
    return [*parts, text[position:]]


class _Lines(Markup):
    """Lines, without the white space at their ends."""

    def __init__(self, text: str) -> None:
        self._parts = _in_lines(text)
        self._indexes = [
            index for index in range(0, len(self._parts), 2) if self._parts[index].strip()
        ]

    @property
    def sources(self) -> Sequence[Source]:
        return [self._parts[index].strip() for index in self._indexes]

    def filled(self, targets: Sequence[Text]) -> str:
        parts = list(self._parts)
        for index, target in zip(self._indexes, targets, strict=True):
            line = parts[index]
            indent = line[: len(line) - len(line.lstrip())]
            parts[index] = indent + self._render(target) + line[len(line.rstrip()) :]
        return "".join(parts)

    def _render(self, target: Text) -> str:
        return target.plain


class _Tagged(_Lines):
    """Lines, of which those with nothing but tags stay. Where tags are no pairs, as in a line that
    ends within a span, each stands alone."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._indexes = [
            index for index in self._indexes if _SHORT_TAG.sub("", self._parts[index]).strip()
        ]

    @property
    def sources(self) -> Sequence[Source]:
        return [_tagged(str(line)) for line in super().sources]

    def _render(self, target: Text) -> str:
        return _with_tags(target, str)


class _Page(HtmlFile):
    """A page, or a part of one, that is no file."""

    has_front_matter = False

    def __init__(self, text: str) -> None:
        self.__dict__["_decoded"] = text, "utf-8"
        super().__init__(Path("text"))


class _Html(Markup):
    def __init__(self, text: str) -> None:
        self._page = _Page(text)
        try:
            self._units = list[Unit]()
            for document in self._page.documents():
                self._units += document.units
        except FormatError as error:
            reason = str(error).rpartition(": ")[2]
            raise wrong(f"a text is no HTML: {reason}") from error
        if problem := next((unit.problem for unit in self._units if unit.problem), ""):
            raise Refused(413, "too_large", f"a text of HTML has {problem}")

    @property
    def sources(self) -> Sequence[Source]:
        return [unit.source for unit in self._units]

    def filled(self, targets: Sequence[Text]) -> str:
        buffer = io.BytesIO()
        self._page.write(buffer, [Filling(target, "model") for target in targets])
        return buffer.getvalue().decode()


class _Xml(Markup):
    def __init__(self, text: str, ignored: frozenset[str]) -> None:
        parts = list(_xml_parts(text, ignored))
        if len(parts) > 2 * MAX_CODES:
            raise Refused(
                413, "too_large", "a text has more than {limit} tags", values={"limit": MAX_CODES}
            )
        self._text = clean_codes(_paired(parts))[0]

    @property
    def sources(self) -> Sequence[Source]:
        words = [part for part in self._text.parts() if isinstance(part, str)]
        return [self._text] if any(map(str.strip, words)) else []

    def filled(self, targets: Sequence[Text]) -> str:
        return _with_tags(targets[0] if targets else self._text, escape)


def _with_tags(text: Text, words: Callable[[str], str]) -> str:
    """The text with its tags, and all else as `words` writes it."""
    output = ""
    for part in text.parts():
        if isinstance(part, str):
            output += words(part)
        elif part[0].form == XML:
            output += part[0].markup
        else:  # of another form, as of a match; white space; a placeholder found in the words
            output += words(part[1] if part[0].form else part[0].markup)
    return output


def _tagged(line: str) -> Source:
    """The line with its tags as codes; the same line where there are none, or too many."""
    parts, position = list[Part](), 0
    for tag in _SHORT_TAG.finditer(line):
        if tag.start() > position:
            parts.append(line[position : tag.start()])
        kind: Kind = "standalone" if tag["empty"] else "close" if tag["end"] else "open"
        parts.append((Code(0, kind, tag[0], "" if tag["empty"] else tag["name"], XML), ""))
        position = tag.end()
    if not parts or len(parts) > 2 * MAX_CODES:
        return line
    parts.append(line[position:])
    try:
        text = _paired(parts)
    except Refused:
        alone = [part if isinstance(part, str) else _alone(part[0]) for part in parts]
        text = join_parts(alone)
    return clean_codes(text)[0]


def _alone(code: Code) -> Part:
    return Code(0, "standalone", code.markup, "", XML), ""


def _xml_parts(text: str, ignored: frozenset[str]) -> Iterator[Part]:
    """Words and tags in order. Raises Refused where a < or a & begins nothing."""
    position = 0
    while position < len(text):
        if text[position] != "<":
            end = text.find("<", position)
            end = len(text) if end < 0 else end
            yield unescape(text[position:end])
            position = end
            continue
        tag = _TAG.match(text, position)
        if tag is None:
            raise wrong("a text is no XML: a < begins no tag; write it as &lt;")
        position = tag.end()
        if tag["cdata"] is not None:
            yield Code(0, "placeholder", tag[0], "", XML), tag["cdata"]
        elif tag["name"] is None:
            yield Code(0, "standalone", tag[0], "", XML), ""
        elif tag["name"] in ignored and not tag["end"] and not tag["empty"]:
            position = _end_of(text, position, tag["name"])
            words = unescape(_TAG.sub("", text[tag.end() : position]))
            yield (
                Code(
                    0,
                    "placeholder" if words.strip() else "standalone",
                    text[tag.start() : position],
                    "",
                    XML,
                ),
                words,
            )
        elif tag["empty"]:
            yield Code(0, "standalone", tag[0], "", XML), ""
        else:
            yield Code(0, "close" if tag["end"] else "open", tag[0], tag["name"], XML), ""


def _end_of(text: str, position: int, name: str) -> int:
    """Where the element ends whose start tag ends at `position`. Raises Refused where it does
    not."""
    depth = 1
    while (position := text.find("<", position)) >= 0 and (
        tag := _TAG.match(text, position)
    ) is not None:
        position = tag.end()
        if tag["name"] == name and not tag["empty"]:
            depth += -1 if tag["end"] else 1
            if not depth:
                return position
    raise wrong(f"a text is no XML: <{name[:40]}> does not end")


def _paired(parts: Sequence[Part]) -> Text:
    """The parts as a text, every span with a name of its own. Raises Refused where tags cross or
    one of two is missing."""
    open_, paired_parts = list[tuple[int, str]](), list[Part]()
    for number, part in enumerate(parts):
        if isinstance(part, str) or part[0].kind not in ("open", "close"):
            paired_parts.append(part)
            continue
        code = part[0]
        if code.kind == "open":
            open_.append((number + 1, code.pair))
        elif not open_ or open_[-1][1] != code.pair:
            raise wrong(f"a text is no XML: </{code.pair[:40]}> ends nothing that is open")
        pair = str(open_[-1][0] if code.kind == "open" else open_.pop()[0])
        paired_parts.append((Code(0, code.kind, code.markup, pair, XML), ""))
    if open_:
        raise wrong(f"a text is no XML: <{open_[-1][1][:40]}> does not end")
    return join_parts(paired_parts)
