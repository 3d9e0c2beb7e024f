"""TMX files that are translated: units in the source language get a target. For TMX as a memory see
`formats/tmx.py`, whose choices of languages and codes hold here too.

A target goes into a new tuv behind the last of its tu, or into the empty one that is there. One
that somebody has to look at says in a property x-origin where it is from, and is a draft when the
file is read again. Comments are notes of its tuv. The file is read unit by unit, once for the
units, and once while it is written. A tu that is no XML stays as it is, and is counted."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tmnmt.codes.record import TMX, Text
from tmnmt.errors import FormatError, UsageError
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.states import STATES
from tmnmt.files.texts import TOO_MANY, limited
from tmnmt.files.unit import (
    Comment,
    Document,
    Filling,
    State,
    TranslatableFile,
    Unit,
    confirmation_of,
)
from tmnmt.files.xliff import Edit
from tmnmt.files.xliff_parts import (
    Decodable,
    Output,
    check_comes_back,
    encoding_of,
    reading,
)
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.formats.elements import START_TAG, Element, Malformed, elements, undeclared
from tmnmt.formats.encoding import BLOCK, Bytes, byte_order_mark, root_element, utf8
from tmnmt.formats.languages import NO_RANK, PairRanks, check_pair, listed
from tmnmt.formats.tmx import NAMESPACE, parsed_unit
from tmnmt.formats.tmx_codes import MAX_CODES, excess, seg_of, text_of
from tmnmt.formats.tmx_writer import ORIGIN_PROPERTY
from tmnmt.formats.xml_text import escaped, escaped_attribute
from tmnmt.quantities import quantity

if TYPE_CHECKING:
    from lxml import etree

_log = logging.getLogger(__name__)
# what codes are read with, so that they are XML without the rest of the file
_READ_AS = re.compile(r' xmlns:([^\s=:<>"]+)="urn:\1"')
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_LANGUAGE = re.compile(rb"""<tuv\s[^<>]*?\blang\s*=\s*["']([A-Za-z0-9_-]{1,40})["']""")
_LOOKED_AT = 1 << 20  # bytes whose languages an error names
_BLANKS = re.compile(rb"\s*\Z")
_LONGEST_BLANKS = 200  # bytes
_DRAFTS = frozenset(state.tmx_origin for state in STATES.values() if state.is_draft)
_OLD_ORIGIN = re.compile(
    rb'\s*<prop type="%b">(?:%b)</prop>'
    % (ORIGIN_PROPERTY.encode(), "|".join(sorted(_DRAFTS)).encode())
)


@dataclass(frozen=True, slots=True)
class _Tu:
    """A unit in the file: its element, which of its tuv are source and target, and how the language
    is written. `unit` makes it."""

    element: Element
    unit: Callable[[], Unit]
    target: int | None
    attribute: bytes


class TmxFile(TranslatableFile):
    """A TMX file, in which the units in `src_lang` get targets in `tgt_lang`; a file has many
    languages, so somebody must set these two."""

    kind = "tmx"
    title = FILE_KINDS["tmx"].title
    is_bilingual = takes_comments = True

    def __init__(self, path: Path, src_lang: str = "", tgt_lang: str = "") -> None:
        """path: the file.
        src_lang: the language of the sources; "" where it is set later.
        tgt_lang: the language of the targets; "" where it is set later.

        Raises FormatError where the file cannot be read."""
        self.path, self.src_lang, self.tgt_lang = path, src_lang, tgt_lang
        encoding_of(path)  # FormatError where it cannot be read
        self._warned = False  # what its units lack, once

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By the root element."""
        encoding, length = byte_order_mark(head)
        if not length and head[:2] in (b"<\x00", b"\x00<"):
            encoding = "utf-16-le" if head[:1] == b"<" else "utf-16-be"
        return root_element(head[length:].decode(encoding, "replace")) == "tmx"

    def documents(self) -> Iterator[Document]:
        """Raises UsageError where the languages are no two languages."""
        self._check_languages()
        yield Document(self.path.name, self._units())

    def _check_languages(self) -> None:
        """Raises UsageError where the languages are no two languages. Where one of them is not
        known, it says which ones the file has."""
        if self.src_lang and self.tgt_lang:
            check_pair(self.src_lang, self.tgt_lang)
            return
        encoding = encoding_of(self.path)
        with reading(self.path) as file:
            stream = utf8(file, encoding.name, len(encoding.mark))
            codes = {code[1].decode() for code in _LANGUAGE.finditer(stream.read(_LOOKED_AT))}
        raise UsageError(
            f"{self.path}: say which languages are meant, by --src-lang and --tgt-lang; the file "
            f"has: {listed(codes)}"
        )

    def write(self, destination: BinaryIO, fillings: Iterable[Filling | None]) -> None:
        self._check_languages()
        check_comes_back(self.path)
        encoding = encoding_of(self.path)
        output = Output(destination, encoding)
        with reading(self.path) as file:
            stream = utf8(file, encoding.name, len(encoding.mark))
            _splice(stream, output, self._edits(fillings, encoding.ascii))
        output.end()

    def refused(self, unit: Unit, target: Text) -> str:
        """Also markup of codes that is no XML in its place."""
        if unit.problem:
            return unit.problem
        if len(target.codes) > MAX_CODES:
            return TOO_MANY
        try:
            seg_of(target)
        except FormatError as error:
            return str(error)
        return ""

    def _units(self) -> Iterator[Unit]:
        reader = _Reader(self)
        yield from (tu.unit() for tu in reader)
        reader.check()
        if not self._warned:
            reader.tell()
        self._warned = True

    def _edits(self, fillings: Iterable[Filling | None], is_ascii: bool) -> Iterator[Edit]:
        """What is replaced: from and to which byte of the file in UTF-8, and by what; with
        `is_ascii`, other characters by their numbers."""
        for tu, filling in zip(_Reader(self), fillings, strict=True):
            if filling is None:
                continue
            if not filling.has_target and tu.target is None:
                continue  # there is no place for comments yet
            if filling.has_target and (why := self.refused(tu.unit(), filling.target)):
                raise ValueError(f"{self.path}, line {tu.element.line}: {why}")
            texts = [f"<note>{escaped(comment.line)}</note>" for comment in filling.comments]
            if filling.has_target:
                texts.append(_READ_AS.sub("", seg_of(filling.target)))
            written = [
                text.encode("ascii", "xmlcharrefreplace") if is_ascii else text.encode()
                for text in texts
            ]
            seg = written.pop() if filling.has_target else None
            origin = STATES[filling.origin].tmx_origin if filling.has_target else ""
            new = _New(seg, origin, written)
            edit = (
                _in_new_tuv(tu, new, self.tgt_lang)
                if tu.target is None
                else _in_its_tuv(tu, tu.target, new)
            )
            offset = tu.element.start
            yield Edit(offset + edit.start, offset + edit.end, edit.data)


@dataclass(frozen=True, slots=True)
class _New:
    """What a tuv gets: the content of its seg, None where that stays, the origin of that, and notes
    as they are written."""

    seg: bytes | None
    origin: str
    notes: Sequence[bytes]


def _splice(stream: Bytes, output: Output, edits: Iterable[Edit]) -> None:
    """Writes the stream with others of its bytes; the edits are in its order."""
    offset, buffer = 0, b""  # what is read and not written, and where it begins
    for start, end, new in edits:
        while offset + len(buffer) < end and (block := stream.read(BLOCK)):
            count = min(len(buffer), start - offset)
            output.write(buffer[:count])
            offset, buffer = offset + count, buffer[count:] + block
        output.write(buffer[: start - offset])
        output.write(new)
        offset, buffer = end, buffer[end - offset :]
    output.write(buffer)
    while block := stream.read(BLOCK):
        output.write(block)


def _in_its_tuv(tu: _Tu, target: int, new: _New) -> Edit:
    """The tuv with another text, and with the origin of that; and with further notes."""
    tuv = list(_children(tu.element.data))[target]
    old = next(elements(io.BytesIO(tuv.data), (b"seg",)))
    prefix, suffix = tuv.data[: old.start], tuv.data[old.start + len(old.data) :]
    blanks = _blanks(prefix)
    if new.seg is not None:
        prefix = _OLD_ORIGIN.sub(b"", prefix)
    properties = [_origin_property(new.origin)] if new.origin else []
    prefix += b"".join(part + blanks for part in [*properties, *new.notes])
    tag = START_TAG.match(old.data)
    if new.seg is None:
        seg = old.data
    elif tag is None or tag[0].endswith(b"/>"):
        seg = b"<seg>" + new.seg + b"</seg>"
    else:
        seg = old.data[: tag.end()] + new.seg + old.data[old.data.rindex(b"</") :]
    return Edit(tuv.start, tuv.start + len(tuv.data), prefix + seg + suffix)


def _origin_property(origin: str) -> bytes:
    return f'<prop type="{ORIGIN_PROPERTY}">{origin}</prop>'.encode()


def _in_new_tuv(tu: _Tu, new: _New, tgt_lang: str) -> Edit:
    """The blanks around tuv and seg are those of the last tuv."""
    data, last = tu.element.data, list(_children(tu.element.data))[-1]
    inside = next(elements(io.BytesIO(last.data), (b"seg",)), None)
    tuv_blanks = _blanks(data[: last.start])
    seg_blanks = (b"", b"")
    if inside is not None:
        end = inside.start + len(inside.data)
        seg_blanks = (
            _blanks(last.data[: inside.start]),
            _blanks(last.data[end : last.data.rindex(b"</")]),
        )
    properties = [_origin_property(new.origin)] if new.origin else []
    prop = b"".join(seg_blanks[0] + part for part in [*properties, *new.notes])
    lang = escaped_attribute(tgt_lang).encode()
    start = b'<tuv %b="%b">' % (tu.attribute, lang)
    offset = last.start + len(last.data)
    whole = (
        tuv_blanks
        + start
        + prop
        + seg_blanks[0]
        + b"<seg>"
        + (new.seg or b"")
        + b"</seg>"
        + seg_blanks[1]
        + b"</tuv>"
    )
    return Edit(offset, offset, whole)


def _children(tu: bytes) -> Iterator[Element]:
    return elements(io.BytesIO(tu), (b"tuv",))


def _seg(tuv: Element) -> Element | None:
    return next(elements(io.BytesIO(tuv.data), (b"seg",)), None)


def _blanks(data: bytes) -> bytes:
    blanks = _BLANKS.search(data, max(0, len(data) - _LONGEST_BLANKS))
    return blanks[0] if blanks else b""


class _Reader:
    """The units of a file that have the source language; iterate once."""

    def __init__(self, file: TmxFile) -> None:
        self._path, self._srclang = file.path, ""
        self._ranks = PairRanks(file.src_lang, file.tgt_lang)
        self._prefixes: frozenset[bytes] = frozenset()
        self._languages = set[str]()
        self._units = 0
        self._problems = list[tuple[int, str]]()  # lines, and what is wrong there
        self._is_complete = False
        self._undeclared = dict[str, int]()  # prefixes, and the lines where they stand first

    def __iter__(self) -> Iterator[_Tu]:
        encoding = encoding_of(self._path)
        with reading(self._path) as file:
            stream = utf8(file, encoding.name, len(encoding.mark))
            content = Decodable(stream, self._path, encoding.name)
            for element in elements(content, (b"header", b"tu"), (b"tmx", b"/tmx")):
                if element.name == b"tu":
                    if (tu := self._tu(element)) is not None:
                        self._units += 1
                        yield tu
                elif element.name == b"tmx":
                    self._prefixes = frozenset(NAMESPACE.findall(element.data))
                elif element.name == b"header":
                    self._header(element)
                else:
                    self._is_complete = True

    def check(self) -> None:
        """Raises FormatError where no unit has the source language, once all is read."""
        if not self._units and self._problems:
            line, why = self._problems[0]
            raise FormatError(f"{self._path}, line {line}: no unit can be read: {why}")
        if not self._units:
            raise FormatError(
                "{file}: no unit has {language}; languages in the file: {languages}",
                **{"file": str(self._path), "language": self._ranks.src},
                languages=listed(self._languages),
            )

    def tell(self) -> None:
        """Warns of what cannot be translated, once all is read."""
        if self._problems:
            count, (line, why) = len(self._problems), self._problems[0]
            stay = "stays as it is" if count == 1 else "stay as they are"
            summary = f"{quantity(count, 'unit')} {stay}; the first in line {line:,}"
            _log.warning("%s: %s: %s", self._path, summary, why)
        for prefix, line in self._undeclared.items():
            _log.warning("%s, line %d: %s", self._path, line, undeclared(prefix))
        if not self._is_complete:
            _log.warning("%s: the file ends without </tmx>: it may have been cut off", self._path)

    def _parsed(self, element: Element) -> tuple[etree._Element, bool]:
        """Raises Malformed where the element is no XML."""
        return parsed_unit(
            element.data,
            self._prefixes,
            lambda prefix: self._undeclared.setdefault(prefix, element.line),
        )

    def _header(self, element: Element) -> None:
        try:
            header, _ = self._parsed(element)
        except Malformed:
            return
        self._srclang = header.get("srclang", "")

    def _tu(self, element: Element) -> _Tu | None:
        try:
            if element.problem:
                raise Malformed(element.problem)
            tu, is_repaired = self._parsed(element)
        except Malformed as error:
            self._problems.append((element.line, str(error)))
            return None
        tuvs = tu.findall("tuv")
        source, target = self._choose_sides(tuvs, tu.get("srclang", "") or self._srclang)
        if source is None or target == source or self._differs(element, tuvs, is_repaired):
            return None
        src = tuvs[source].find("seg")
        tgt = None if target is None else tuvs[target].find("seg")
        if src is None or (target is not None and tgt is None):
            return None
        is_draft = target is not None and _is_draft(tuvs[target])
        notes = [] if target is None else tuvs[target].iterfind("note")
        comments = tuple(Comment(note.text) for note in notes if note.text)
        unit = partial(self._unit, element, tu, (src, tgt), is_draft, comments)
        attribute = b"xml:lang" if tuvs[source].get(_XML_LANG) else b"lang"
        return _Tu(element, unit, target, attribute)

    def _differs(self, element: Element, tuvs: list[etree._Element], is_repaired: bool) -> bool:
        """Whether the element's bytes have other tuv than those: inside comments, deeper, or with
        characters in their tags that had to be taken out before they were tags."""
        if not is_repaired and element.data.count(b"<tuv") == len(tuvs):
            return False
        children = list(_children(element.data))
        if is_repaired and any(_seg(child) is None for child in children):
            return True
        return len(children) != len(tuvs)

    def _choose_sides(
        self, tuvs: list[etree._Element], srclang: str
    ) -> tuple[int | None, int | None]:
        """Which of the tuv are source and target."""
        sides: tuple[int | None, int | None] = None, None
        best = NO_RANK, NO_RANK
        for index, tuv in enumerate(tuvs):
            code = tuv.get(_XML_LANG) or tuv.get("lang") or "?"
            if len(self._languages) < 1000:
                self._languages.add(code)
            ranks = self._ranks.ranks(code, srclang)
            if ranks is None:
                continue
            if ranks[0] < best[0]:
                sides, best = (index, sides[1]), (ranks[0], best[1])
            if ranks[1] < best[1]:
                sides, best = (sides[0], index), (best[0], ranks[1])
        return sides

    def _unit(
        self,
        element: Element,
        tu: etree._Element,
        sides: tuple[etree._Element, etree._Element | None],
        is_draft: bool,
        comments: tuple[Comment, ...],
    ) -> Unit:
        src, tgt = sides
        id, line = tu.get("tuid", ""), element.line
        notes = tuple(note.text for note in tu.iterfind("note") if note.text)
        if problem := excess(src) or (excess(tgt) if tgt is not None else ""):
            return Unit(Text(""), None, "locked", id, "", notes, line, problem)
        source = clean_codes(text_of(src))[0]
        target = None if tgt is None else clean_codes(text_of(tgt))[0]
        if target is None or not (target.plain or any(code.form == TMX for code in target.codes)):
            return limited(Unit(source, None, "new", id, "", notes, line, comments=comments))
        state: State = "draft" if is_draft else "translated"
        confirmation = confirmation_of(state)
        unit = Unit(source, target, state, id, "", notes, line, confirmation=confirmation)
        return limited(replace(unit, comments=comments))


def _is_draft(tuv: etree._Element) -> bool:
    """Whether its property x-origin says that somebody has to look at it."""
    properties = (prop for prop in tuv.iterfind("prop") if prop.get("type") == ORIGIN_PROPERTY)
    return any((prop.text or "").strip() in _DRAFTS for prop in properties)
