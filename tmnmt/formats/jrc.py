"""The JRC-Acquis alignments (Steinberger et al. 2006): TEI.2, one <div n="celex"> a document, with
text or without.

    <TEI.2 select="en fr"> ... <div n="31958D1006(01)"> ...
    <link type="1:1"><s1>..</s1><s2>..</s2></link>    with text
    <link type="2:1" xtargets="20 21;21"/>            without, as published

s1 is in the first language of `select`, s2 in the second; either may be the source. A link without
text points to paragraphs of jrc-<lang>.tgz, which must lie beside the file (`tei.py`). Several
paragraphs on one side are joined by a space."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from lxml import etree

from tmnmt.errors import FormatError
from tmnmt.formats.clean import clean, clean_name, excerpt
from tmnmt.formats.elements import Malformed, elements, parsed
from tmnmt.formats.encoding import is_misread, utf8, xml_encoding
from tmnmt.formats.languages import is_code, listed, normal_code, rank
from tmnmt.formats.report import MALFORMED, Report
from tmnmt.formats.stream import NoMemory, Source, file_source
from tmnmt.formats.tei import Paragraphs, attributes, resolved
from tmnmt.segments import Segment

log = logging.getLogger(__name__)


def read_jrc(
    stream: BufferedReader,
    source: Source,
    src_lang: str,
    tgt_lang: str,
    report: Report,
    folder: Path | None = None,
) -> Iterator[tuple[int, Segment]]:
    """The pair of every link with its line. The document is the CELEX number, the position the
    link's place in it.

    stream: the bytes of the alignment.
    source: the file, for names and messages.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    report: counts the links, and says what is wrong with those that are skipped.
    folder: the folder of the archives that links without text point to; None where there are none.

    Raises FormatError where the file aligns other languages, or an archive is absent or damaged."""
    encoding, mark_length = xml_encoding(stream.peek(1), source.label)
    document = source.stem
    position = 0
    sides = None
    texts = _Texts(source.label, folder, report)
    content = utf8(stream, encoding, mark_length)
    try:
        for line, name, data, problem, _ in elements(content, (b"link",), (b"TEI.2", b"div")):
            if name == b"TEI.2":
                texts.codes = attributes(data).get("select", "").split()
                sides = _sides(texts.codes, src_lang, tgt_lang, source.label)
            elif name == b"div":
                document = clean_name(attributes(data).get("n", source.stem))
                position = 0
            elif sides is None:
                report.skip(MALFORMED, line, "a link before the root element <TEI.2>")
            else:
                position += 1
                pair = _pair(data, problem, line, encoding.upper(), report, texts, document)
                if pair is not None:
                    yield (
                        line,
                        Segment(
                            pair[sides[0]], pair[sides[1]], document, position - 1, 0, source.name
                        ),
                    )
    finally:
        texts.close()
    if is_misread(content):
        report.warn_of_encoding(encoding.upper())
    report.end_file(encoding.upper())


class _Texts:
    """What links point to: read when the first link does."""

    def __init__(self, label: str, folder: Path | None, report: Report) -> None:
        self.codes: list[str] = []
        self._label, self._folder, self._report = label, folder, report
        self._paragraphs: Paragraphs | None = None
        self._document = ""
        self._sides = list[dict[str, str] | None]()

    def pair(self, document: str, targets: str) -> tuple[str, str]:
        """The texts of "20 21;21". Malformed: no two sides, or a paragraph that is not in its
        archive."""
        texts = self._read()
        if document != self._document:
            self._document = document
            self._sides = [texts.document_texts(side, document) for side in (0, 1)]
        numbers = [side.split() for side in targets.split(";")]
        if len(numbers) != 2:
            raise Malformed(
                f"xtargets {excerpt(targets, 40)!r} are no two lists of paragraphs, as in '1;1 2'"
            )
        of_source, of_target = (
            self._text(texts, document, side, side_numbers)
            for side, side_numbers in enumerate(numbers)
        )
        return of_source, of_target

    def _read(self) -> Paragraphs:
        """The paragraphs of both languages, read at the first link."""
        if self._paragraphs is None:
            archives = self._archives()
            self._paragraphs = Paragraphs()
            for side, path in enumerate(archives):
                log.info("%s: reading its texts", path)
                self._paragraphs.load(side, file_source(path))
                self._report.related_files.append(path)
        return self._paragraphs

    def _text(self, texts: Paragraphs, document: str, side: int, numbers: list[str]) -> str:
        paragraphs = self._sides[side]
        if paragraphs is None:
            raise Malformed(f"document {excerpt(document)} is not in jrc-{self.codes[side]}.tgz")
        for number in numbers:
            if number not in paragraphs:
                absence = f"document {excerpt(document)} is not in jrc-{self.codes[side]}.tgz"
                raise Malformed(f"paragraph {excerpt(number)} of {absence}")
        texts.take(side, sum(len(paragraphs[number]) for number in numbers))
        return " ".join(paragraphs[number] for number in numbers)

    def _archives(self) -> list[Path]:
        """Those of both languages. FormatError, which names all that are absent."""
        if len(self.codes) < 2 or not all(map(is_code, self.codes[:2])):
            select = excerpt(" ".join(self.codes))
            raise FormatError(
                f"{self._label}: its links have no text, and select={select!r} names no two "
                "languages"
            )
        names = [f"jrc-{code}.tgz" for code in self.codes[:2]]
        if self._folder is None:
            raise FormatError(
                f"{self._label}: its links have no text; unpack it beside {' and '.join(names)}"
            )
        archives = [self._folder / name for name in names]
        absent = ", ".join(str(path) for path in archives if not path.exists())
        if absent:
            raise FormatError(
                f"{self._label}: its links have no text, and what they point to is absent: {absent}"
            )
        return archives

    def close(self) -> None:
        if self._paragraphs is not None:
            self._paragraphs.close()


def _sides(select: list[str], src_lang: str, tgt_lang: str, label: str) -> tuple[int, int]:
    """Which of (s1, s2) is the source and which the target."""
    codes = [normal_code(code) for code in select]
    places = []
    for lang in (normal_code(src_lang), normal_code(tgt_lang)):
        ranked = [
            (r, index)
            for index, code in enumerate(codes[:2])
            if (r := rank(code, lang)) is not None
        ]
        if not ranked:
            raise NoMemory(label, f"no {lang}; languages in the file: {listed(codes)}")
        places.append(min(ranked)[1])
    return places[0], places[1]


def _pair(
    data: bytes,
    problem: str,
    line: int,
    encoding: str,
    report: Report,
    texts: _Texts,
    document: str,
) -> tuple[str, str] | None:
    if problem:
        report.skip(MALFORMED, line, problem)
        return None
    try:
        link, repaired = parsed(data)
        report.note_link(link.get("type", "")[:20].replace(":", "-"))
        first, second = _link_texts(link, texts, document)
    except Malformed as error:
        if error.undecodable:
            report.skip_undecodable(line, encoding)
        else:
            report.skip(MALFORMED, line, str(error))
        return None
    (text1, cleaned1), (text2, cleaned2) = clean(first), clean(second)
    report.cleaned += repaired + cleaned1 + cleaned2
    return text1, text2


def _link_texts(link: etree._Element, texts: _Texts, document: str) -> tuple[str, str]:
    s1, s2 = link.find("s1"), link.find("s2")
    if s1 is not None and s2 is not None:
        return _text(s1), _text(s2)
    targets = link.get("xtargets")
    if targets is None or s1 is not None or s2 is not None:
        raise Malformed("a link without text on both sides, which points nowhere")
    return texts.pair(document, targets)


def _text(side: etree._Element) -> str:
    text = (
        " ".join("".join(map(str, part.itertext())) for part in side)
        if len(side)
        else side.text or ""
    )
    return resolved(text)
