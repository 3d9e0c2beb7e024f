"""TMX 1.4 from segments: UTF-8, one unit after another in constant memory, the file replaced as a
whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tmnmt.codes.record import Code, Text
from tmnmt.errors import FormatError
from tmnmt.formats.atomic import REPORT_EVERY, WriteReport, writing
from tmnmt.formats.clean import clean
from tmnmt.formats.dates import iso_utc, tmx_date
from tmnmt.formats.xml_text import escaped, escaped_attribute
from tmnmt.segments import Segment

DOCUMENT_PROPERTY, POSITION_PROPERTY, ORIGIN_PROPERTY = "x-document", "x-position", "x-origin"
# How many inline codes a segment had in a file that tmnmt read before it kept them.
CODES_PROPERTY = "x-inline-codes"
_HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4">
<header creationtool="tmnmt" creationtoolversion="1" segtype="sentence" o-tmf="tmnmt" \
adminlang="en" srclang="{src_lang}" datatype="plaintext"/>
<body>
"""


def write_tmx(
    path: Path,
    segments: Iterable[Segment],
    src_lang: str,
    tgt_lang: str,
    *,
    progress: Callable[[int], None] | None = None,
) -> WriteReport:
    """Writes segments to a file, which replaces an existing one at the end, atomically.

    Reading the file again gives equal segments, `id` excepted, which is the store's: document,
    position and origin travel as properties x-document, x-position, x-origin. Source and target are
    written as `clean` leaves them, with their codes; how many that changed is in the result.

    path: the file: .tmx, .tmx.gz or .tmx.xz.
    segments: the segments.
    src_lang: the code of their source language.
    tgt_lang: the code of their target language.
    progress: is called with the number of segments that were written since the last call; None
    tells nobody.

    Raises FormatError for a date that is not ISO 8601, a code that is no XML, or a file that cannot
    be written."""
    count = cleaned = 0
    with tmx_writer(path, src_lang, tgt_lang) as write:
        for segment in segments:
            cleaned += write(segment)
            count += 1
            if progress and count % REPORT_EVERY == 0:
                progress(REPORT_EVERY)
    if progress and count % REPORT_EVERY:
        progress(count % REPORT_EVERY)
    return WriteReport(count, cleaned)


@contextmanager
def tmx_writer(path: Path, src_lang: str, tgt_lang: str) -> Iterator[Callable[[Segment], int]]:
    """Gives a function that writes one segment after another into a file as `write_tmx` does, and
    says how many of a segment's two texts were cleaned.

    path: the file: .tmx, .tmx.gz or .tmx.xz.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language."""
    src_start = f'<tuv xml:lang="{escaped_attribute(src_lang)}"><seg>'
    tgt_start = f'<tuv xml:lang="{escaped_attribute(tgt_lang)}"><seg>'
    with writing(path) as file:
        file.write(_HEADER.format(src_lang=escaped_attribute(src_lang)))

        def write(segment: Segment) -> int:
            src, src_changed = _seg(segment, segment.src, segment.src_codes)
            tgt, tgt_changed = _seg(segment, segment.tgt, segment.tgt_codes)
            file.write(
                f"<tu{_dates(segment)}>\n{_properties(segment)}"
                f"{src_start}{src}</seg></tuv>\n{tgt_start}{tgt}</seg></tuv>\n</tu>\n"
            )
            return src_changed + tgt_changed

        yield write
        file.write("</body>\n</tmx>\n")


def _seg(segment: Segment, plain: str, codes: tuple[Code, ...]) -> tuple[str, bool]:
    if not codes:
        whole = clean(plain)[0]
        return escaped(whole), whole != plain
    from tmnmt.formats.clean_codes import clean_codes
    from tmnmt.formats.tmx_codes import seg_of

    text, _ = clean_codes(Text(plain, codes))
    try:
        return seg_of(text), text.plain != plain
    except FormatError as error:
        raise FormatError(f"{_place(segment)}: {error}") from error


def _place(segment: Segment) -> str:
    return f"document {segment.document!r}, position {segment.position}"


def _dates(segment: Segment) -> str:
    attributes = []
    for name, value in (("creationdate", segment.created), ("changedate", segment.changed)):
        if value:
            if iso_utc(value) != value:
                raise FormatError(
                    f"{_place(segment)}: {value!r} is no date of a segment; "
                    'allowed: ISO 8601 in UTC, "2026-01-31T12:00:00Z"'
                )
            attributes.append(f' {name}="{tmx_date(value)}"')
    if segment.user:
        attributes.append(f' changeid="{escaped_attribute(segment.user)}"')
    return "".join(attributes)


def _properties(segment: Segment) -> str:
    fields = (
        (DOCUMENT_PROPERTY, segment.document),
        (POSITION_PROPERTY, str(segment.position)),
        (ORIGIN_PROPERTY, segment.origin),
    )
    return "".join(
        f'<prop type="{escaped_attribute(name)}">{escaped(value)}</prop>\n'
        for name, value in (*fields, *segment.properties)
    )
