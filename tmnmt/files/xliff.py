"""What XLIFF 1 and 2 have in common: files with units in them, read in constant memory, and written
with the bytes of other targets spliced in."""

from __future__ import annotations

import logging
import re
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tmnmt.codes.record import Text
from tmnmt.errors import FormatError, short_repr
from tmnmt.files.unit import Document, Filling, TranslatableFile, Unit
from tmnmt.files.xliff_codes import MAX_CODES, Attributes, Form, refusal
from tmnmt.files.xliff_parts import (
    MAX_NESTED,
    Bytes,
    End,
    Node,
    Output,
    Start,
    Whole,
    check_comes_back,
    encoding_of,
    parts,
)
from tmnmt.formats.clean import MAX_TOKENS, clean_name, too_long
from tmnmt.formats.elements import undeclared
from tmnmt.formats.encoding import byte_order_mark, root_element
from tmnmt.formats.languages import normal_code
from tmnmt.formats.xml_text import escaped_attribute
from tmnmt.segments import Match

XML = "http://www.w3.org/XML/1998/namespace "  # before the name of an attribute

_START_TAG = re.compile(r"""<(?:[^<>"']|"[^<"]*"|'[^<']*')*+""")
_log = logging.getLogger(__name__)
_NAMESPACE = re.compile(rb"urn:oasis:names:tc:xliff:document:(\d\.\d)\b")
_VERSION = re.compile(r"""\sversion\s*=\s*["'](\d+)""")
_ATTRIBUTE = re.compile(rb"""(\s+)([^\s=]+)(\s*=\s*)("[^"]*"|'[^']*')""")
_BLANKS = re.compile(rb"\s*\Z")


class Edit(NamedTuple):
    """Bytes of a unit that others take the place of; where `start` is `end`, they are put in."""

    start: int
    end: int
    data: bytes


@dataclass(frozen=True, slots=True)
class UnitContext:
    """What holds for the units inside a file or a group: whether they are to be translated, why
    they cannot be, and whether the white space of their texts stays as it is."""

    translate: bool = True
    problem: str = ""
    preserves_space: bool = False

    def inside(self, attributes: Mapping[str, str]) -> UnitContext:
        """What holds inside an element.

        attributes: the attributes of the element."""
        translate, space = attributes.get("translate"), attributes.get(f"{XML}space")
        return replace(
            self,
            translate=translate != "no" if translate else self.translate,
            preserves_space=space == "preserve" if space else self.preserves_space,
        )


class UnitElement:
    """An element of a file with one segment or more: these as units, and what is to be changed for
    their fillings. Places are in the bytes of the element."""

    units: tuple[Unit, ...] = ()

    def edits(self, fillings: Sequence[Filling | None]) -> list[Edit]:
        """The bytes that change when the element is filled; none of an element that is locked as a
        whole.

        fillings: one for each of its units, at least one of them not None."""
        return []


class Xliff(TranslatableFile):
    """A file of one version of XLIFF. What is read at once is a unit, of 10 MB at most; a longer
    one is locked."""

    form: Form
    major: str  # of the version
    unit_name: str  # of the elements that hold segments
    marks_drafts = tells_matches = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._undeclared = set[str]()
        self.src_lang = self.tgt_lang = ""
        for part in parts(path, self.unit_name):
            if isinstance(part, Start):
                if part.name == "xliff":
                    self._check_version(part)
                self._take_languages(part)
                if part.name == "file":
                    break
        else:
            raise FormatError(f"{path}: an XLIFF without a <file>")
        self._languages = self.src_lang, self.tgt_lang  # as the file says

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By the version in the root element."""
        version = version_of(head)
        return version == cls.major if version is not None else False

    def documents(self) -> Iterator[Document]:
        """One for every <file>. Units of a document that is left before its end are kept."""
        walk = self._walk()
        number = 0
        for part, _ in walk:
            if isinstance(part, Start) and part.name == "file":
                number += 1
                name = part.attributes.get("original") or part.attributes.get("id") or ""
                units = _Units(walk)
                yield Document(clean_name(name) or f"{self._path.name} {number}", units)
                units.keep()

    def write(self, destination: BinaryIO, fillings: Iterable[Filling | None]) -> None:
        check_comes_back(self._path)
        filling_iterator = iter(fillings)
        untouched = 0
        first: list[Filling | None] = []
        for filling in filling_iterator:
            if filling is not None:
                first = [filling]
                break
            untouched += 1
        remaining = chain((None for _ in range(untouched)), first, filling_iterator)
        encoding = encoding_of(self._path)
        output = Output(destination, encoding)
        for part, element in self._walk():
            if isinstance(part, Bytes):
                output.write(part.data)
            elif isinstance(part, Start):
                output.write(self._with_target_language(part) if first else part.data)
            elif isinstance(part, Whole) and element is not None:
                unit_fillings = [_next(remaining, unit) for unit in element.units]
                if part.data is not None:
                    output.write(self._filled(part.data, element, unit_fillings, encoding.ascii))
        if any(True for _ in remaining):
            raise ValueError(f"more fillings than {self._path} has units")
        output.end()

    def refused(self, unit: Unit, target: Text) -> str:
        """A unit that is locked; codes that it has not, neither in its source nor in its target;
        codes around text that are not nested."""
        if unit.state == "locked":
            return unit.problem or "it is locked"
        source_codes = unit.source.codes
        if unit.target is not None:
            reason = refusal(target, unit.target.codes, self.form)
            return reason and refusal(target, source_codes, self.form)
        return refusal(target, source_codes, self.form)

    # --- what the versions differ in

    @abstractmethod
    def _take_languages(self, start: Start) -> None:
        """Of the root or the first file. Raises FormatError where no source language is said."""

    @abstractmethod
    def _with_target_language(self, start: Start) -> bytes:
        """The tag with `tgt_lang`, where it is the place for it and the file does not say it."""

    @abstractmethod
    def _language_problem(self, start: Start) -> str:
        """Why the units of this file cannot be translated with those of the first."""

    @abstractmethod
    def _element(self, whole: Whole, data: bytes, context: UnitContext) -> UnitElement:
        """Its units and how to fill them."""

    # --- what they share

    def _error(self, line: int, problem: str) -> FormatError:
        return FormatError(
            "{file}, line {line}: {problem}", file=str(self._path), line=str(line), problem=problem
        )

    def _check_version(self, start: Start) -> None:
        version = start.attributes.get("version") or _version_of_namespace(start.data)
        if version.partition(".")[0] != self.major:
            raise self._error(
                start.line, f"XLIFF version {short_repr(version)}; allowed: 1.0 to 1.2, 2.0 to 2.2"
            )

    def _walk(self) -> Iterator[tuple[Bytes | Start | End | Whole, UnitElement | None]]:
        arounds = [UnitContext()]
        for part in parts(self._path, self.unit_name, on_undeclared=self._tell_undeclared):
            if isinstance(part, Start):
                arounds.append(self._inside(part, arounds[-1]))
            elif isinstance(part, End):
                arounds.pop()
            elif isinstance(part, Whole):
                yield part, self._units_of(part, arounds[-1])
                continue
            yield part, None

    def _tell_undeclared(self, prefix: str, line: int) -> None:
        """Warns once of a prefix, however often the file is read."""
        if prefix not in self._undeclared:
            self._undeclared.add(prefix)
            _log.warning("%s, line %d: %s", self._path, line, undeclared(prefix))

    def _inside(self, start: Start, context: UnitContext) -> UnitContext:
        problem = self._language_problem(start) if start.name == "file" else context.problem
        return replace(context.inside(start.attributes), problem=problem)

    def _units_of(self, whole: Whole, context: UnitContext) -> UnitElement:
        if whole.data is not None and whole.node.nested <= MAX_NESTED:
            return self._element(whole, whole.data, context)
        element = UnitElement()
        name = whole.node.attributes.get("id", "")
        problem = f"<{self.unit_name}> is longer than 10 MB"
        if whole.data is not None:
            problem = f"more than {MAX_NESTED} elements inside one another in its text"
        element.units = (
            Unit(Text(""), state="locked", id=name, line=whole.node.line, problem=problem),
        )
        return element

    def _filled(
        self, data: bytes, element: UnitElement, fillings: Sequence[Filling | None], is_ascii: bool
    ) -> bytes:
        for unit, filling in zip(element.units, fillings, strict=True):
            if (
                filling is not None
                and filling.has_target
                and (why := self.refused(unit, filling.target))
            ):
                raise ValueError(f"{self._path}, line {unit.line}: {why}")
        if all(filling is None for filling in fillings):
            return data
        pieces, offset = list[bytes](), 0
        # what is put in stands before what becomes another from the same place on
        for edit in sorted(element.edits(fillings), key=lambda edit: edit[:2]):
            new = edit.data
            if is_ascii and not new.isascii():
                new = new.decode().encode("ascii", "xmlcharrefreplace")
            pieces += (data[offset : edit.start], new)
            offset = edit.end
        return b"".join([*pieces, data[offset:]])


def _next(fillings: Iterator[Filling | None], unit: Unit) -> Filling | None:
    for filling in fillings:
        return filling
    raise ValueError(f"no filling for the unit in line {unit.line}")


class _Units(Iterator[Unit]):
    """The units from here to the end of the file element; `keep` reads those that are left."""

    def __init__(
        self, walk: Iterator[tuple[Bytes | Start | End | Whole, UnitElement | None]]
    ) -> None:
        self._walk, self._depth = walk, 1
        self._queue = deque[Unit]()

    def __next__(self) -> Unit:
        while not self._queue and self._advance():
            pass
        if not self._queue:
            raise StopIteration
        return self._queue.popleft()

    def keep(self) -> None:
        while self._advance():
            pass

    def _advance(self) -> bool:
        if not self._depth:
            return False
        part, element = next(self._walk)
        self._depth += isinstance(part, Start) - isinstance(part, End)
        if element is not None:
            self._queue.extend(element.units)
        return True


def version_of(head: bytes) -> str | None:
    """The first number of the version of an XLIFF; "" where it says none, None where it is no
    XLIFF.

    head: the first bytes of the file."""
    encoding, length = byte_order_mark(head)
    if not length and head[:2] in (b"<\x00", b"\x00<"):
        encoding = "utf-16-le" if head[:1] == b"<" else "utf-16-be"
    text = head[length:].decode(encoding, "replace")
    name = root_element(text)
    if name.rpartition(":")[2] != "xliff":
        return None
    tag = _START_TAG.match(text, text.index(f"<{name}"))
    version = _VERSION.search(tag[0]) if tag else None
    if version is None and tag is not None:
        return _version_of_namespace(tag[0].encode()).partition(".")[0]
    return version[1] if version else ""


def _version_of_namespace(tag: bytes) -> str:
    """The version that the namespace in the root's start tag names, where no attribute says one;
    "" where neither does."""
    namespace = _NAMESPACE.search(tag)
    return namespace[1].decode() if namespace else ""


# --- for the versions


def with_attributes(tag: bytes, values: Attributes) -> bytes:
    """A start tag with some attributes, in the places of those that it has, or behind them.

    tag: the start tag.
    values: the attributes by their names; an empty value takes one away."""
    remaining = dict(values)

    def replacement(match: re.Match[bytes]) -> bytes:
        name = match[2].decode()
        if name not in values:
            return match[0]
        remaining.pop(name, None)
        return match[1] + match[2] + match[3] + _quoted(values[name]) if values[name] else b""

    tag = _ATTRIBUTE.sub(replacement, tag)
    new = b"".join(
        b" " + name.encode() + b"=" + _quoted(remaining[name])
        for name in remaining
        if remaining[name]
    )
    if not new:
        return tag
    close = b"/>" if tag.endswith(b"/>") else b">"
    return tag[: -len(close)].rstrip() + new + close


def _quoted(value: str) -> bytes:
    return b'"' + escaped_attribute(value).encode() + b'"'


def opened_tag(tag: bytes) -> bytes:
    """A start tag for what was perhaps one empty tag, <a/>.

    tag: the tag."""
    return tag[:-2].rstrip() + b">" if tag.endswith(b"/>") else tag


def name_of(tag: bytes) -> bytes:
    """The name in a start tag, with its prefix.

    tag: the start tag."""
    return re.split(rb"[\s/>]", tag[1:], maxsplit=1)[0]


def prefix_of(tag: bytes) -> str:
    """The prefix in a start tag, with its colon; "" where there is none.

    tag: the start tag."""
    prefix, colon, _ = name_of(tag).decode().rpartition(":")
    return prefix + colon


def blanks_before(data: bytes, offset: int) -> bytes:
    """The white space in front of a place.

    data: the bytes.
    offset: the place, in bytes."""
    blanks = _BLANKS.search(data, max(0, offset - 200), offset)
    return blanks[0] if blanks else b""


def target_attributes(source: Node, tgt_lang: str) -> str:
    """The attributes of a new <target>: the language and what is to be done with white space, as
    the source says it of itself.

    source: the <source>.
    tgt_lang: the code of the target language; "" where it is not known."""
    attributes = {}
    if f"{XML}lang" in source.attributes and tgt_lang:
        attributes["xml:lang"] = tgt_lang
    if space := source.attributes.get(f"{XML}space"):
        attributes["xml:space"] = space
    return "".join(f' {name}="{escaped_attribute(value)}"' for name, value in attributes.items())


def source_problem(data: bytes, source: Node) -> str:
    """Why the content of a <source> cannot be written elsewhere; "" where it can.

    data: the bytes of the unit.
    source: the <source>."""
    if b"xmlns" in data[source.start : source.inside]:
        return f"its <{source.name}> declares namespaces of its own"
    return ""


def _text_problem(text: Text) -> str:
    """Why a text cannot be translated, "" where it can."""
    if len(text.codes) > MAX_CODES:
        return f"more than {MAX_CODES:,} codes"
    return f"more than {MAX_TOKENS:,} tokens" if too_long(text.plain) else ""


def locked(unit: Unit, context: UnitContext, problem: str) -> Unit:
    """A unit as it is, or locked where it is not to be translated or cannot be.

    unit: the unit.
    context: what holds where it stands.
    problem: what is wrong with it, in words; "" for nothing."""
    problem = context.problem or problem or _text_problem(unit.source)
    if problem or not context.translate:
        confirmation = "none" if problem else unit.confirmation
        return replace(unit, state="locked", problem=problem, confirmation=confirmation)
    return unit


def has_text(text: Text, source: Text) -> bool:
    """Whether a target has what makes it one: words, or what a source without words has.

    text: the target.
    source: its source."""
    return bool(text.plain) or (not source.plain and len(text.codes) >= len(source.codes))


def copied(source: Text, target: Text) -> bool:
    """Whether a target is its source, and has letters.

    source: the source.
    target: the target."""
    return target == source and any(character.isalpha() for character in source.plain)


def percent(match: Match) -> int:
    """The fuzzy score of a match as CAT tools write it: 100 is exact.

    match: the match."""
    return int(match.score * 100 + 1e-9)


def quality(match: Match) -> int:
    """What a match is worth, where that is known: 100 for the same text, more in the same place.
    Otherwise its fuzzy score in per cent.

    match: the match."""
    return match.worth.value if match.worth is not None else percent(match)


def same_language(first: str, second: str) -> bool:
    """Whether two codes are of one language, whatever the region.

    first: one code; "" stands for any language.
    second: the other code."""
    codes = [normal_code(code).partition("-")[0] for code in (first, second)]
    return codes[0] == codes[1] or "" in codes
