"""The JRC-Acquis alignment files with text (Steinberger et al. 2006): TEI.2, one <div n="celex"> a document.

    <TEI.2 select="en fr"> ... <div n="31958D1006(01)"> ... <link type="1:1"><s1>..</s1><s2>..</s2></link>

s1 is in the first language of `select`, s2 in the second; either may be the source. Several paragraphs on one side
(type 2:1) are joined by a space. The corpus writes its own escapes, %quot% %amp% %gt% %lt% %apos%: they are resolved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from io import BufferedReader

from lxml import etree

from tmnmt.errors import FormatError
from tmnmt.formats.clean import clean
from tmnmt.formats.elements import Malformed, elements, parsed
from tmnmt.formats.encoding import utf8, xml_encoding
from tmnmt.formats.languages import normal_code, rank
from tmnmt.formats.report import MALFORMED, Report
from tmnmt.formats.stream import Source
from tmnmt.segments import Segment

_ATTRIBUTE = re.compile(rb"""\s([\w.:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_ESCAPE = re.compile("%(quot|amp|gt|lt|apos)%")
_CHARACTERS = {"quot": '"', "amp": "&", "gt": ">", "lt": "<", "apos": "'"}


def read_jrc(
    stream: BufferedReader, source: Source, src_lang: str, tgt_lang: str, report: Report
) -> Iterator[tuple[int, Segment]]:
    """Every link's pair with its line; the document is the CELEX number, the position the link's place in it.

    FormatError when the file aligns other languages.
    """
    encoding, mark_length = xml_encoding(stream.peek(1), source.shown)
    document, position, sides = source.stem, 0, None
    for line, name, data, problem in elements(utf8(stream, encoding, mark_length), (b"link",), (b"TEI.2", b"div")):
        if name == b"TEI.2":
            sides = _sides(_attributes(data), src_lang, tgt_lang, source.shown)
        elif name == b"div":
            document, position = _attributes(data).get("n", source.stem), 0
        else:
            position += 1
            pair = _pair(data, problem, line, encoding.upper(), report)
            if pair is not None and sides is not None:
                yield line, Segment(pair[sides[0]], pair[sides[1]], document, position - 1, 0, source.name)
    report.end_file(encoding.upper())


def _attributes(tag: bytes) -> dict[str, str]:
    return {
        name.decode(): unescape((double or single).decode("utf-8", "replace"))
        for name, double, single in _ATTRIBUTE.findall(tag)
    }


def _sides(attributes: dict[str, str], src_lang: str, tgt_lang: str, shown: str) -> tuple[int, int]:
    """Which of (s1, s2) is the source and which the target."""
    codes = [normal_code(code) for code in attributes.get("select", "").split()]
    places = []
    for wanted in (normal_code(src_lang), normal_code(tgt_lang)):
        ranked = [(r, at) for at, code in enumerate(codes[:2]) if (r := rank(code, wanted)) is not None]
        if not ranked:
            raise FormatError(f"{shown}: no {wanted}; languages in the file: {', '.join(codes) or 'none'}")
        places.append(min(ranked)[1])
    return places[0], places[1]


def _pair(data: bytes, problem: str, line: int, encoding: str, report: Report) -> tuple[str, str] | None:
    if problem:
        report.skip(MALFORMED, line, problem)
        return None
    try:
        link, repaired = parsed(data)
    except Malformed as error:
        if error.undecodable:
            report.skip_undecodable(line, encoding)
        else:
            report.skip(MALFORMED, line, str(error))
        return None
    s1, s2 = link.find("s1"), link.find("s2")
    if s1 is None or s2 is None:
        report.skip(MALFORMED, line, "a link without text: only alignment files with text can be read")
        return None
    (text1, cleaned1), (text2, cleaned2) = clean(_text(s1)), clean(_text(s2))
    report.cleaned += repaired + cleaned1 + cleaned2
    return text1, text2


def _text(side: etree._Element) -> str:
    text = " ".join("".join(map(str, part.itertext())) for part in side) if len(side) else side.text or ""
    return _ESCAPE.sub(lambda escape: _CHARACTERS[escape[1]], text) if "%" in text else text
