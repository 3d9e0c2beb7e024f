"""TMX 1.4b (Savourel 2004, OSCAR recommendation): the reader. The writer is tmx_writer.

What the standard leaves to the tool is decided so:
- Inline elements become codes beside the text (`tmx_codes`), and so does white space that cleaning
  changes. A text with more than 1,000 of them is too long.
- Several tuv in one language: see `languages.rank`; of equals the first.
- Dates and user are those of the target's tuv, or else of the tu; changeid before creationid.
- The document is the unit's or else the header's property with one of the names in
DOCUMENT_PROPERTIES, or else the
  file's name. The position counts the document's units in the file, those skipped too, so that it
  is the same for every language pair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import partial
from io import BufferedReader

from lxml import etree

from tmnmt.codes.record import Text
from tmnmt.formats.clean import clean_name
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.formats.dates import iso_utc
from tmnmt.formats.elements import Malformed, elements, parsed, undeclared
from tmnmt.formats.encoding import is_misread, utf8, xml_encoding
from tmnmt.formats.languages import NO_RANK, PairRanks, listed
from tmnmt.formats.report import MALFORMED, TOO_LONG, WRONG_LANGUAGE, Report
from tmnmt.formats.stream import Source
from tmnmt.formats.tmx_codes import excess, text_of
from tmnmt.formats.tmx_writer import DOCUMENT_PROPERTY, ORIGIN_PROPERTY, POSITION_PROPERTY
from tmnmt.segments import Segment

# What tools call it: this project, Euramis (DGT-TM), Okapi and Olifant, OmegaT, Déjà Vu, memoQ;
# compared in lower case.
DOCUMENT_PROPERTIES = (
    DOCUMENT_PROPERTY,
    "document",
    "txt::document",
    "txt::doc. no.",
    "x-doc",
    "doc",
    "celex",
    "file",
    "filename",
    "txt::filename",
    "x-filename",
    "x-file",
)

_RESERVED = {name: ("document", rank) for rank, name in enumerate(DOCUMENT_PROPERTIES)} | {
    POSITION_PROPERTY: ("position", 0),
    ORIGIN_PROPERTY: ("origin", 0),
}
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
NAMESPACE = re.compile(rb"\sxmlns:([^\s=:<>\"'/]+)")
_PREFIX = re.compile(rb"[<\s/]([^\s=:<>\"'/]+):")
# digits; more are no place in a document, and no number that an index can hold
_MOST_PREFIXES = 100  # that are told of
_LONGEST_POSITION = 18
_LONGEST_LANGUAGE = 100

Properties = list[tuple[str, str]]


def read_tmx(
    stream: BufferedReader, source: Source, src_lang: str, tgt_lang: str, report: Report
) -> Iterator[tuple[int, Segment]]:
    """The units that have both languages, with the line each starts at. The others go to the
    report.

    stream: the bytes of the file.
    source: the file, for names and messages.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    report: counts the units, and says what is wrong with those that are skipped."""
    encoding, mark_length = xml_encoding(stream.peek(1), source.label)
    reader = _TmxReader(source, src_lang, tgt_lang, report, encoding.upper())
    is_complete = False
    content = utf8(stream, encoding, mark_length)
    for line, name, data, problem, _ in elements(content, (b"header", b"tu"), (b"tmx", b"/tmx")):
        if name == b"tu":
            if problem:
                report.skip(MALFORMED, line, problem)
            elif (segment := reader.unit(line, data)) is not None:
                yield line, segment
        elif name == b"tmx":
            reader.prefixes = frozenset(NAMESPACE.findall(data))
        elif name == b"header":
            reader.header(data, line)
        else:
            is_complete = True
    if not is_complete:
        report.is_cut_off = True
        report.warnings.append(
            f"{source.label}: the file ends without </tmx>: it may have been cut off"
        )
    if is_misread(content):
        report.warn_of_encoding(encoding.upper())
    report.end_file(encoding.upper())


class _TmxReader:
    def __init__(
        self, source: Source, src_lang: str, tgt_lang: str, report: Report, encoding: str
    ) -> None:
        self._source, self._report, self._encoding = source, report, encoding
        self._languages = PairRanks(src_lang, tgt_lang)
        self._document = source.stem
        self._srclang = ""
        self._units_of: dict[int, int] = {}  # by the hash of a document's name, which may take 4 KB
        self.prefixes: frozenset[bytes] = frozenset()  # of namespaces that the root declares
        self._undeclared_prefixes = set[str]()  # prefixes that are not declared

    def header(self, data: bytes, line: int) -> None:
        """Takes the source language and the document from the header."""
        try:
            header, _ = parsed_unit(data, self.prefixes, partial(self._undeclared, line))
        except Malformed as error:
            self._report.warnings.append(
                f"{self._source.label}, line {line}: the header cannot be read: {error}"
            )
            return
        self._srclang = header.get("srclang", "")[:_LONGEST_LANGUAGE]
        reserved = _reserved(
            [(prop.get("type") or "", prop.text or "") for prop in header.iterfind("prop")]
        )
        self._document = clean_name(reserved.get("document", self._document))

    def _undeclared(self, line: int, prefix: str) -> None:
        """Warns of a prefix, of each once."""
        if (
            prefix not in self._undeclared_prefixes
            and len(self._undeclared_prefixes) < _MOST_PREFIXES
        ):
            self._undeclared_prefixes.add(prefix)
            self._report.warnings.append(f"{self._source.label}, line {line}: {undeclared(prefix)}")

    def unit(self, line: int, data: bytes) -> Segment | None:
        """The unit's pair; None when it was skipped, which the report then knows."""
        try:
            tu, repaired = parsed_unit(data, self.prefixes, partial(self._undeclared, line))
        except Malformed as error:
            if error.undecodable:
                self._report.skip_undecodable(line, self._encoding)
            else:
                self._report.skip(MALFORMED, line, str(error))
            return None
        self._report.cleaned += repaired
        src, tgt, codes, properties = self._children(tu)
        reserved = _reserved(properties) if properties else {}
        document = clean_name(reserved.get("document", self._document))
        position = self._units_of.get(hash(document), 0)
        self._units_of[hash(document)] = position + 1
        if src is None or tgt is None or src is tgt:
            self._report.skip(WRONG_LANGUAGE, line, self._missing(src, tgt, codes))
            return None
        src_seg, tgt_seg = src.find("seg"), tgt.find("seg")
        if src_seg is None or tgt_seg is None:
            self._report.skip(MALFORMED, line, "a language without <seg>")
            return None
        if problem := excess(src_seg) or excess(tgt_seg):
            self._report.skip(TOO_LONG, line, problem)
            return None
        pair = self._text(src_seg), self._text(tgt_seg)
        if reserved or properties or len(tu.attrib) or len(tgt.attrib) > 1 or len(tgt) > 1:
            return self._described(pair, document, position, tu, tgt, reserved, properties)
        src_text, tgt_text = pair
        return Segment(
            src_text.plain,
            tgt_text.plain,
            document,
            position,
            0,
            self._source.name,
            src_codes=src_text.codes,
            tgt_codes=tgt_text.codes,
        )

    def _children(
        self, tu: etree._Element
    ) -> tuple[etree._Element | None, etree._Element | None, list[str], Properties]:
        src = tgt = None
        best_src = best_tgt = NO_RANK
        srclang = tu.get("srclang", "")[:_LONGEST_LANGUAGE] or self._srclang
        cached_ranks = self._languages.cached_ranks(srclang)
        codes: list[str] = []
        has_variants = False  # of a side
        properties: Properties = []
        for child in tu:
            tag = child.tag
            if tag == "tuv":
                code = child.get(_XML_LANG) or child.get("lang") or "?"
                codes.append(code)
                ranks = (
                    cached_ranks[code]
                    if code in cached_ranks
                    else self._languages.ranks(code, srclang)
                )
                if ranks is None:
                    continue
                if (src is not None and ranks[0] < NO_RANK) or (
                    tgt is not None and ranks[1] < NO_RANK
                ):
                    has_variants = True
                if ranks[0] < best_src:
                    src, best_src = child, ranks[0]
                if ranks[1] < best_tgt:
                    tgt, best_tgt = child, ranks[1]
            elif tag == "prop":
                properties.append((child.get("type") or "", child.text or ""))
            elif tag == "note":
                properties.append(("note", child.text or ""))
        self._report.note_languages(codes)
        if has_variants:
            self._report.note_variants(codes)
        return src, tgt, codes, properties

    def _missing(
        self, src: etree._Element | None, tgt: etree._Element | None, codes: list[str]
    ) -> str:
        sides = ((self._languages.src, src), (self._languages.tgt, tgt))
        missing = [code for code, tuv in sides if tuv is None]
        problem = f"no {' and no '.join(missing)}" if missing else "source and target are one"
        return f"{problem}; the unit has: {listed(codes, 6)}"

    def _text(self, seg: etree._Element) -> Text:
        text, cleaned = clean_codes(text_of(seg))
        self._report.cleaned += cleaned
        return text

    def _described(
        self,
        pair: tuple[Text, Text],
        document: str,
        position: int,
        tu: etree._Element,
        tgt: etree._Element,
        reserved: dict[str, str],
        properties: Properties,
    ) -> Segment:
        """The segment with dates, user and properties: the tu's, its tuid first, then the target's
        own."""
        if len(tgt) > 1:
            properties += [
                (prop.get("type") or "", prop.text or "") for prop in tgt.iterfind("prop")
            ]
        created = self._date(tu, tgt, "creationdate", properties)
        changed = self._date(tu, tgt, "changedate", properties)
        if tuid := tu.get("tuid"):
            properties.insert(0, ("tuid", tuid))
        position_text = reserved.get("position", "")
        return Segment(
            pair[0].plain,
            pair[1].plain,
            document,
            int(position_text)
            if position_text.isdecimal() and len(position_text) <= _LONGEST_POSITION
            else position,
            0,
            reserved.get("origin", self._source.name),
            created,
            changed,
            _attribute(tu, tgt, "changeid") or _attribute(tu, tgt, "creationid"),
            tuple(properties),
            pair[0].codes,
            pair[1].codes,
        )

    def _date(
        self, tu: etree._Element, tgt: etree._Element, name: str, properties: Properties
    ) -> str:
        value = _attribute(tu, tgt, name)
        date = iso_utc(value) if value else ""
        if date is None:
            properties.append((name, value))
        return date or ""


def parsed_unit(
    data: bytes, prefixes: Collection[bytes], on_undeclared: Callable[[str], object]
) -> tuple[etree._Element, bool]:
    """A unit or the header of a TMX file, and whether it had characters illegal in XML.

    data: its bytes, in UTF-8.
    prefixes: the prefixes that the root declares.
    on_undeclared: called with every prefix that is used and declared nowhere. What has it is read
    all the same.

    Raises Malformed where the bytes are no XML."""
    all_prefixes = frozenset(prefixes)
    while True:
        try:
            return parsed(data, declarations(data, all_prefixes))
        except Malformed as error:
            prefix = error.prefix.encode()
            if not prefix or prefix in all_prefixes:
                raise
            all_prefixes |= {prefix}
            on_undeclared(error.prefix)


def declarations(data: bytes, prefixes: frozenset[bytes]) -> bytes:
    """Declarations of the prefixes that a unit uses; of what they stand for nothing is read.

    data: the bytes of the unit.
    prefixes: the prefixes that may be declared."""
    if not prefixes:
        return b""
    required = prefixes.intersection(_PREFIX.findall(data))
    return b" ".join(b'xmlns:%b="urn:%b"' % (prefix, prefix) for prefix in sorted(required))


def _attribute(tu: etree._Element, tgt: etree._Element, name: str) -> str:
    return tgt.get(name) or tu.get(name) or ""


def _reserved(properties: Properties) -> dict[str, str]:
    """Document, position and origin out of the properties: of each the best-named, then first; it
    is removed there."""
    best: dict[str, tuple[int, int]] = {}
    for index, (name, _) in enumerate(properties):
        entry = _RESERVED.get(name) or _RESERVED.get(name.lower())
        if entry is not None:
            field, rank = entry
            if field not in best or rank < best[field][0]:
                best[field] = rank, index
    values = {field: properties[index][1] for field, (_, index) in best.items()}
    for index in sorted((index for _, index in best.values()), reverse=True):
        del properties[index]
    return values
