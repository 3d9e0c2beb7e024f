"""Damaged files for every reader, of memories and of files that are translated: real ones cut
small, mutated by a seed, read in processes that are watched.

    python tests/fuzz_files.py 50000 [--seed 1] [--first 0]    # so many cases; failures are told

A case is right when its file is read with counts that add up, or refused by one TmnmtError of one
line that names the file. A file that is translated must come back to the byte where nothing is put
in, and be read again where every source is put in as target; where that is refused, no output is
there. Anything else fails, and so do more than SECONDS of processor time or
MEMORY more than at the start. Cases run in batches, each in a process of its own: one that hangs or
dies is told by its number, and the rest of its batch goes on.
Case N of a seed is the same everywhere: `python tests/fuzz_files.py 1 --first N`.
"""

from __future__ import annotations

import argparse
import gzip
import io
import lzma
import os
import random
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from places import MEMORIES, TESTS

from tmnmt.errors import TmnmtError
from tmnmt.files.office import OfficeFile
from tmnmt.files.opening import kind_of
from tmnmt.files.paragraphs import ParagraphFile
from tmnmt.files.sentences import sentences
from tmnmt.files.unit import Filling, TranslatableFile, Unit
from tmnmt.formats import read_memory
from tmnmt.formats.atomic import writing_bytes
from tmnmt.formats.text import read_document_lines

SECONDS = 3.0  # of processor time for a case; its files have 40 KB or less
FILE_SECONDS = 10.0  # of it for a file that is translated, which is read ten times
HANGS = 120.0  # seconds without an end of a case: the machine may be busy
MEMORY = 300 << 20  # bytes that a batch may need beyond what it begins with
BATCH = 500

DATA = TESTS / "data"

Files = dict[str, bytes]  # by name; the first is read


@dataclass(frozen=True)
class Failure:
    case: int
    kind: str
    what: str

    def __str__(self) -> str:
        return f"case {self.case} ({self.kind}): {self.what}"


# --- whole files


@cache
def seeds() -> dict[str, Files]:
    """Small whole files of every kind, from real ones that ship with the project."""
    tmx = {path.stem: path.read_bytes() for path in sorted((DATA / "formats").glob("*.tmx"))}
    law = _first_units(
        gzip.decompress((MEMORIES / "canadian-law.en-fr.tmx.gz").read_bytes()).decode(), 6
    )
    found: dict[str, Files] = {
        name: {f"{name}.tmx": _short_tmx(data)} for name, data in tmx.items()
    }
    for encoding in ("utf-8", "utf-16", "utf-32", "iso-8859-1", "shift_jis", "utf-16-le"):
        found[f"tmx {encoding}"] = {
            "m.tmx": law.replace("UTF-8", encoding).encode(encoding, "replace")
        }
    table = "\n".join((DATA / "jrc-acquis.en-fr.tsv").read_text().splitlines()[:20]) + "\n"
    described = (
        "src\ttgt\tdoc\tpos\tcreated\tproperties\n"
        'one\tun\td\t7\t2020-01-31T00:00:00Z\t[["note", "a\\u00e9"]]\n"two\n'
        'lines"\tdeux\td\t8\t\t[]\n'
    )
    for encoding in ("utf-8", "utf-16"):
        found[f"tsv {encoding}"] = {"m.tsv": table.encode(encoding)}
    found["tsv described"] = {"m.tsv": described.encode()}
    english, french = (
        b"".join(
            (MEMORIES / "held-out" / f"jrc32002L0085.{language}.txt")
            .read_bytes()
            .splitlines(True)[:12]
        )
        for language in ("en", "fr")
    )
    ids = b"en/1970/a-en.xml.gz\tfr/1970/a-fr.xml.gz\t1\t1\n" * 12
    found["moses"] = {"m": b"", "m.en": english, "m.fr": french, "m.ids": ids}
    excerpt = gzip.decompress((DATA / "formats" / "jrc-acquis-excerpt.en-fr.xml.gz").read_bytes())
    alignment = (
        excerpt[: excerpt.index(b"</link>", 4000) + 7] + b"</linkGrp></div></body></text></TEI.2>"
    )
    found["jrc"] = {"m.xml": alignment}
    found["jrc pointing"] = _pointing()
    with zipfile.ZipFile(DATA / "formats" / "dgt-tm-two.zip") as archive:
        member = archive.read(archive.namelist()[0])
    found["dgt"] = {"m.tmx": _short_tmx(member)}
    for packing, pack in PACKINGS.items():
        found[packing] = {f"m.tsv.{packing}": pack(table.encode())}
    found["zip"] = {
        "m.zip": _zip(
            {"a.tmx": law.encode(), "b.tsv": table.encode(), "c.xml": alignment, "README": b"x"}
        )
    }
    found["zip of packed"] = {
        "m.zip": _zip({"a.tmx.gz": gzip.compress(law.encode()), "p.en": english, "p.fr": french})
    }
    return found | translated_seeds()


def translated_seeds() -> dict[str, Files]:
    """Small whole files of every kind that is translated."""
    files = {path.name: path.read_bytes() for path in sorted((DATA / "files").glob("okapi-*"))}
    files |= {name: text.encode() for name, text in WRITTEN.items()}
    files["notice utf-16.md"] = WRITTEN["notice.md"].encode("utf-16")
    files["notice utf-16.xlf"] = files["okapi-segmented.xlf"].decode().encode("utf-16")
    return {f"file {name}": {name: data} for name, data in files.items()}


WRITTEN = {
    "notice.html": '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><'
    'title>A</title></head><body><p class="x">The <b>permit</b> i'
    's <a href="#" title="Valid">valid</a>.<br>Two &amp; <code>x<'
    '/code></p><pre>One\ntwo</pre><img alt="A picture"><textarea>R'
    "aw</textarea></body></html>",
    "notice.md": "---\ntitle: A\n---\nimport T from 'x';\n\n# A *notice*\n\nThe **per"
    'mit** is [valid](a.md "t").\nTwo `x` &amp; \\* <b>three</b>.\n\n'
    "- [x] Item\n\n| A | B |\n|---|---|\n| x | y |\n\n<p>Block</p>\n\n[r]"
    ": http://x.org\n\n> See [r] and ![alt](b.png).\n",
    "notice.json": '{"a": "The permit", "b": {"c": ["Two %s", "{n, plural, one {'
    '# file} other {# files}}"]}, "d": 1, "e": "\\u00e9 <b>x</b>"}'
    "\n",
    "notice.arb": '{"@@locale": "en", "a": "The {x}", "@a": {"description": "d"}}',
    "notice.properties": "# c\na = The permit\nb: Two \\\n  lines {0} it''s\nc=\\u00e9\n",
    "notice.txt": "The permit is valid. It is two\nyears old.\n\n- One\n- Two\n",
    "notice.po": 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\'
    'n"\n"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n#, fuzzy\n'
    'msgctxt "c"\nmsgid "A %s"\nmsgstr ""\n\nmsgid "one"\nmsgid_plural'
    ' "%d many"\nmsgstr[0] ""\nmsgstr[1] ""\n',
    "notice.xlf": '<?xml version="1.0"?>\n<!DOCTYPE xliff PUBLIC "-//XLIFF//DTD '
    'XLIFF//EN" "http://x/y.dtd">\n<xliff version="1.1"><file orig'
    'inal="a" source-language="en" target-language="fr" datatype='
    '"x"><body><trans-unit id="1"><source>A <g id="1">b <x id="2"'
    '/></g> <mrk mtype="protected">c</mrk></source></trans-unit><'
    "/body></file></xliff>",
    "notice.ts": """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" sourcelanguage="en">
<context>
  <name>A</name>
  <message id="a" numerus="yes">
    <source>%n &lt;b&gt;one&lt;/b&gt;</source>
    <translation type="unfinished"><numerusform/></translation>
  </message>
  <message><source>The %1</source><comment>c</comment></message>
</context>
</TS>
""",
    "notice.xcstrings": """{
  "sourceLanguage" : "en",
  "strings" : {
    "The %@" : {

    },
    "n" : {
      "comment" : "c",
      "localizations" : {
        "en" : {
          "variations" : {"plural" : {
            "one" : {"stringUnit" : {"state" : "new", "value" : "One"}},
            "other" : {"stringUnit" : {"state" : "new", "value" : "%lld"}}
          }}
        }
      }
    }
  },
  "version" : "1.0"
}""",
    "notice.stringsdict": """<?xml version="1.0"?>
<!DOCTYPE plist PUBLIC "-//A" "http://x/y.dtd">
<plist version="1.0"><dict>
<key>n</key><dict><key>NSStringLocalizedFormatKey</key><string>%#@n@ in</string>
<key>n</key><dict>
<key>one</key><string>One</string>
<key>other</key><string>%d files</string></dict></dict></dict></plist>
""",
    "strings.xml": r"""<resources>
<!-- c -->
<string name="a">It\'s <b>x</b></string>
<plurals name="p">
<item quantity="one">One</item>
<item quantity="other">%d</item></plurals></resources>
""",
    "notice.resx": '<root><data name="a"><value>The {0}</value><comment>c</comment></data></root>',
    "notice.strings": r"""/* c */
"a" = "The \"permit\"";
b = "Two %@";
""",
    "en.yml": """# c
en: &e
  # d
  a: The permit # e
  b: "Say %{name}"
  c: 'It''s'
  p:
    one: One
    other: Many
  d: |
    Two
    lines
  e: >-
    Two
    words
  f: [a b, {other: x}]
  g: *e
""",
    "notice.ftl": """## G
# c
a = The { -b } permit
    .label = Two
-b = Acme
n = In { $n ->
    [0] none
    [one] one day
   *[other] { $n } days
  } left.
l =
    Two
    lines
""",
    "notice.php": r"""<?php
// c
return [
  'a' => 'It\'s :name', "b" => "Two\n\x41 \u{e9}",
  'c' => array('d' => ['One|:n many']), 'e' => 'x' . f('y'),
];
""",
    "lang.php": """<?php
$lang['a']['b'] = 'The permit';
$lang = ['c' => "{0} None|[1,*] Some"];
""",
    "notice.ass": r"""[Script Info]
Title: x
[Events]
Format: Layer, Start, End, Name, Text
Dialogue: 0,0:00:01.00,0:00:02.00,Anna,{\an8}- The {\i1}permit{\i0}\N- is void\hnow
""",
    "notice.srt": r"""1
00:00:01,000 --> 00:00:02,000
- The <i>permit</i>
- {\b1}is{\b0} void
""",
    "notice.vtt": """WEBVTT

00:01.000 --> 00:02.000
<v Anna>The permit &amp; all
""",
}


def _first_units(text: str, count: int) -> str:
    head, *units = re.split(r"(?=<tu[ >])", text)
    return head + "".join(units[:count]) + "</body></tmx>"


def _short_tmx(data: bytes) -> bytes:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1"
    return _first_units(data.decode(encoding), 6).encode(encoding)


def _pointing() -> Files:
    """Links without text, and the archives of texts that they point to."""
    links = b'<link type="1:1" xtargets="1;1"/><link type="2:1" xtargets="1 2;2"/>'
    alignment = b'<TEI.2 select="en fr"><text><body><div n="31970L0001"><linkGrp>' + links
    files = {"m.xml": alignment + b"</linkGrp></div></body></text></TEI.2>"}
    for language in ("en", "fr"):
        body = b'<head n="1">' + language.encode() + b'</head><p n="2">%quot%caf%eacute%%quot%</p>'
        document = (
            b'<?xml version="1.0"?><TEI.2 n="31970L0001"><text><body>'
            + body
            + b"</body></text></TEI.2>"
        )
        packed = io.BytesIO()
        form = tarfile.GNU_FORMAT if language == "en" else tarfile.PAX_FORMAT
        with tarfile.open(fileobj=packed, mode="w", format=form) as archive:
            member = tarfile.TarInfo(f"{language}/1970/{'long' * 30}/jrc31970L0001.xml")
            member.size = len(document)
            archive.addfile(member, io.BytesIO(document))
        files[f"jrc-{language}.tgz"] = gzip.compress(packed.getvalue())
    return files


def _zip(members: Files) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for at, (name, data) in enumerate(members.items()):
            archive.writestr(
                zipfile.ZipInfo(name), data, zipfile.ZIP_STORED if at % 2 else zipfile.ZIP_DEFLATED
            )
    return packed.getvalue()


PACKINGS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "xz": lzma.compress}

# --- mutations

# What parsers stumble on, thrown into files at any place.
TOKENS = (
    b"<!--",
    b"-->",
    b"<![CDATA[",
    b"]]>",
    b"<?",
    b"<tu>",
    b"</tu>",
    b"<tu/>",
    b"<seg>",
    b"</seg>",
    b"<hi>" * 300,
    b"<!DOCTYPE tmx [",
    b"<TEI.2 select='en'>",
    b"<div n='x'>",
    b"<link xtargets='1;1'/>",
    b"xtargets='9;9 9'",
    b"&#xD800;",
    b"&#0;",
    b"&#" + b"9" * 5000 + b";",
    b"&e;",
    b"\x00",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b'"\\ud800"',
    b"[" * 5000,
    b"9" * 5000,
    b"\t",
    b"\n",
    b"\r",
    b'"',
    b"'",
    b" " * 3000,
    "e\u0301\u0316".encode() * 500,
    b"%eacute%",
    b"x-position",
    b"x-document",
    b"xml:lang='fr'",
    b"lang='en'",
    b'<?xml version="1.0" encoding="hex"?>',
    b"\x1f\x8b\x08",
    b"\xfd7zXZ\x00",
    b"PK\x03\x04",
    b"PK\x01\x02",
    b"xmlns:a='b'",
    b"<a:b/>",
    b"&#10;",
    b"&#x1b;[31m",
    b'<!DOCTYPE xliff PUBLIC "-//XLIFF//DTD XLIFF//EN" "http://x.org/xliff.dtd">',
    b'<!DOCTYPE x SYSTEM "x.dtd" [<!ENTITY e "x">]>',
    b"&nbsp;",
    b"\x00\xd8",
    b"\xd8\x00",
    b"\\ud800",
    b"\x1c[a]: b",
    b"[a](b",
    b"![",
    b"```",
    b"<a " * 300,
    b"> " * 300,
    b"*" * 300,
    b"\n- " * 300,
    b"| " * 300,
    b"<!",
    b"</",
    b'msgid "',
    b'msgstr[9] ""',
    b"{n, plural, one {",
    b"import {",
    b"export const a = {",
    b"<numerusform>",
    b"<translation>",
    b"<key>other</key>",
    b"- &a [*a, *a]\n",
    b"other: x\n",
    b"{ $a ->",
    b"*[other]",
    b"<<<EOT",
    b"'a' => ",
    b"\\N{\\p1}",
    b"Dialogue: ",
)
NESTED = (
    ("<g id='%d'>", "</g>"),
    ("<mrk mtype='protected' mid='%d'>", "</mrk>"),
    ("<pc id='%d'>", "</pc>"),
    ("<hi x='%d'>", "</hi>"),
    ("<ph x='%d'><sub>", "</sub></ph>"),
    ("<b id='%d'>", "</b>"),
    ("<div id='%d'>", "</div>"),
    ('{"a%d": ', "}"),
    ("[%d, ", "]"),
    ("[a%d ![", "](b)](c)"),
    ("*a%d **", "***"),
    ("{n%d, select, other {", "}}"),
    ("{ $n%d -> *[o] ", "}"),
    ("a%d: {", "}"),
    ("'a%d' => [", "]"),
    ("<message id='%d'>", "</message>"),
)
ENCODINGS = (
    "hex",
    "base64",
    "zlib",
    "bz2",
    "rot13",
    "uu",
    "quopri",
    "punycode",
    "idna",
    "unicode_escape",
    "undefined",
    "mbcs",
    "\x00",
    "utf-7",
    "utf-8",
    "utf-16",
    "utf-32",
    "ascii",
    "latin-1",
    "cp1252",
    "koi8-r",
    "gb18030",
    "shift_jis",
    "euc-kr",
    "big5",
    "iso-2022-jp",
    "hz",
    "oem",
    "x" * 300,
    "",
    "../x",
    "utf_8_sig",
    "raw_unicode_escape",
    "cp037",
)
EDGES = (b"\x00", b"\xff", b"\x7f", b"\x80", b"\x01")


def mutated(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """`data` after one to four changes."""
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 4))):
        data = draw.choice(MUTATIONS)(data, draw, others)
    return data[:40_000]


def _flipped(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8, 64)) if data else 0):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _cut(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    start, end = _range(data, draw)
    return data[:start] if draw.random() < 0.5 else data[:start] + data[end:]


def _doubled(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    start, end = _range(data, draw)
    return data[:end] + data[start:end] * draw.choice((1, 1, 2, 20)) + data[end:]


def _lengths(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """One, two, four or eight bytes become a number at an edge, as a length or an
    offset might be."""
    at, width = draw.randrange(len(data) + 1), draw.choice((1, 2, 4, 8))
    return data[:at] + draw.choice(EDGES) * width + data[at + width :]


def _numbers(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """A number of digits becomes another, or two change places."""
    found = list(re.finditer(rb"\d+", data))
    if not found:
        return data
    one, other = draw.choice(found), draw.choice(found)
    new = draw.choice((other[0], b"0", b"-1", b"99999999999", b"00000000001"))
    return data[: one.start()] + new + data[one.end() :]


def _spliced(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    other = draw.choice(others)
    (start, end), (other_start, other_end) = _range(data, draw), _range(other, draw)
    return (
        data[:start] + other[other_start:other_end] + data[end if draw.random() < 0.5 else start :]
    )


def _token(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(TOKENS) * draw.choice((1, 1, 1, 3)) + data[at:]


def _declared(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    declaration = f'<?xml version="1.0" encoding="{draw.choice(ENCODINGS)}"?>'.encode()
    return declaration + re.sub(rb"^\s*<\?xml[^>]*\?>", b"", data)


def _nested(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Elements inside one another around some bytes, to a depth at which a stack may end."""
    start, end = _range(data, draw)
    opening, closing = draw.choice(NESTED)
    depth = draw.choice((60, 99, 101, 150, 300, 500))
    before = "".join(opening % n for n in range(depth)).encode()
    return data[:start] + before + data[start:end] + closing.encode() * depth + data[end:]


def _long(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """A long paragraph: many short lines, or one long line."""
    at = draw.randrange(len(data) + 1)
    line = draw.choice((b"a b\n", b"word\n", b"*a* [b](c)\n", b"A b. ", b"`a", b"a\\\n", b"<b>a"))
    return data[:at] + line * draw.choice((300, 2000, 5000)) + data[at:]


def _encoded(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """The same text in another encoding, with or without a byte-order mark, at times with half of a
    surrogate pair, or in bytes that are cut."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    name = draw.choice(
        ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "latin-1", "cp1252")
    )
    at = draw.randrange(len(text) + 1)
    if name.startswith("utf-16") and draw.random() < 0.5:
        text = text[:at] + draw.choice(("\ud800", "\udc00", "\udfff")) + text[at:]
    encoded = text.encode(name, "surrogatepass" if name.startswith("utf") else "replace")
    return encoded[: -draw.choice((1, 2, 3))] if draw.random() < 0.2 else encoded


def _range(data: bytes, draw: random.Random) -> tuple[int, int]:
    start = draw.randrange(len(data) + 1)
    return start, min(len(data), start + draw.choice((1, 4, 30, 300, 3000)))


MUTATIONS = (
    _flipped,
    _flipped,
    _cut,
    _doubled,
    _lengths,
    _numbers,
    _spliced,
    _token,
    _token,
    _declared,
    _nested,
    _long,
    _encoded,
)


PLACES = (
    "pipe",
    "folder",
    "loop",
)  # what may stand where the file that is read should: a named pipe with its bytes


def case(seed: int, number: int) -> tuple[str, Files, str]:
    """The kind and the files of one case, one of them mutated, before or after it is packed; and
    what the first is in place of a file: one of PLACES, or ""."""
    draw = random.Random(f"{seed}/{number}")
    kinds = seeds()
    kind = draw.choice(sorted(kinds))
    files = dict(kinds[kind])
    name = draw.choice(sorted(name for name in files if files[name]))
    others = [data for each in kinds.values() for data in each.values() if data]
    how = draw.random()
    if how < 0.6 and name.endswith((".gz", ".tgz", ".xz", ".zip")):
        files[name] = _inside(name, files[name], draw, others)
    else:
        files[name] = mutated(files[name], draw, others)
        if how > 0.9:
            files[name] = draw.choice((_gzip_quickly, lzma.compress))(files[name])
    place = (
        draw.choice(("pipe", *PLACES)) if draw.random() < 0.04 and files[next(iter(files))] else ""
    )
    return kind + (place and f" as {place}"), files, place


def _inside(name: str, data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """What is packed, mutated and packed again."""
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {member: archive.read(member) for member in archive.namelist()}
        one = draw.choice(sorted(members))
        packed = one.endswith(".gz")
        members[one] = (
            _inside(one, members[one], draw, others)
            if packed
            else mutated(members[one], draw, others)
        )
        return _zip(members)
    if name.endswith(".tgz") and draw.random() < 0.5:
        return _gzip_quickly(_summed(gzip.decompress(data), draw))
    unpack, pack = (
        (lzma.decompress, lzma.compress)
        if name.endswith(".xz")
        else (gzip.decompress, _gzip_quickly)
    )
    return pack(mutated(unpack(data), draw, others))


def _gzip_quickly(data: bytes) -> bytes:
    return gzip.compress(data, 1)


def _summed(archive: bytes, draw: random.Random) -> bytes:
    """A tar archive with a changed header whose sum is right, so that what it says is believed."""
    record = 512 * draw.randrange(min(6, len(archive) // 512))
    header = bytearray(archive[record : record + 512])
    for _ in range(draw.choice((1, 1, 2, 4))):
        at = draw.choice((draw.randrange(512), 156, draw.randrange(124, 136)))
        header[at] = draw.choice((0, 0x80, 0xFF, *b"01LSxgK7", draw.randrange(256)))
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 256 + sum(header[156:]))
    return archive[:record] + bytes(header) + archive[record + 512 :]


# --- running


def wrong(files: Files, folder: Path, place: str) -> str:
    """What is wrong with the reading of these files; "" when nothing is."""
    for name, data in files.items():
        if data:
            (folder / name).write_bytes(data)
    path = folder / next(iter(files))
    if place:
        path.unlink()
        _make(place, path)
    fed = files[path.name] if place == "pipe" else None
    started, is_translated = time.process_time(), False
    try:
        with _feeding(path, fed):
            problem = _wrong_memory(path)
        if not problem and (place or path.exists()):
            with _feeding(path, fed):
                problem = _wrong_text(path)
        if not problem and not place and path.exists():
            is_translated = True
            problem = _wrong_file(path)
    except Exception as error:
        trace = error.__traceback__
        while trace and trace.tb_next:
            trace = trace.tb_next
        where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else ""
        problem = f"{type(error).__name__} at {where}: {str(error)[:200]!r}"
    used, most = time.process_time() - started, SECONDS + FILE_SECONDS * is_translated
    if place == "folder":
        path.rmdir()
    for name in files:
        (folder / name).unlink(missing_ok=True)
    return problem or (f"took {used:.1f} s" if used > most else "")


def _make(place: str, path: Path) -> None:
    if place == "pipe":
        os.mkfifo(path)
    elif place == "folder":
        path.mkdir()
    else:
        path.symlink_to(path)


@contextmanager
def _feeding(path: Path, data: bytes | None) -> Iterator[None]:
    """Writes `data` once into the named pipe `path` for who reads it inside the block; None: it is
    none."""

    def write() -> None:
        with suppress(BrokenPipeError):  # where it is refused by its beginning
            path.write_bytes(data or b"")

    if data is None:
        yield
        return
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield
    finally:
        while writer.is_alive():  # nobody opened it, or not to its end
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            writer.join(0.01)


def _wrong_memory(path: Path) -> str:
    reader = read_memory(path, "en", "fr")
    try:
        segments = list(reader)
    except TmnmtError as error:
        return _wrong_error(error, path)
    report = reader.report
    if report.retained + report.total_skipped != report.units or report.retained != len(segments):
        return f"counts do not add up: {report.lines()[0]}, {len(segments)} given"
    for segment in segments:  # what an index takes
        texts = (segment.src, segment.tgt, segment.document, segment.origin, segment.user)
        "".join(texts + tuple(part for pair in segment.properties for part in pair)).encode()
        if (
            not 0 <= segment.position < 2**63
            or not (segment.src and segment.tgt)
            or any("\n" in text for text in texts)
        ):
            return f"no segment: {segment!r:.200}"
    return next(
        (f"{len(line):,} characters in the report" for line in report.lines() if _no_line(line)), ""
    )


def _wrong_text(path: Path) -> str:
    try:
        for _ in read_document_lines(path):
            pass
    except TmnmtError as error:
        return _wrong_error(error, path)
    return ""


def _wrong_file(path: Path) -> str:
    """The file as one that is translated, whole and, where it can be, by sentences."""
    try:
        kind = kind_of(path) or (ParagraphFile if path.suffix == ".txt" else None)
    except TmnmtError as error:
        return _wrong_error(error, path)
    if kind is None or kind is OfficeFile:
        return ""
    ways = {kind.sentences, kind.has_running_text}
    return next((what for by_sentence in ways if (what := _wrong_way(path, kind, by_sentence))), "")


def _wrong_way(path: Path, kind: type[TranslatableFile], by_sentence: bool) -> str:
    to = path.parent / f"out {path.name}"
    try:
        with writing_bytes(to) as out:
            _opened(path, kind, by_sentence).write(
                out, [None] * len(_units(path, kind, by_sentence))
            )
        if to.read_bytes() != path.read_bytes():
            return "does not come back to the byte"
        to.unlink()
        units_read = _units(path, kind, by_sentence)
        file = _opened(path, kind, by_sentence)
        with writing_bytes(to) as out:
            file.write(out, [_filling(file, unit) for unit in units_read])
        again = _units(to, kind, by_sentence)
        if kind.is_bilingual and len(again) != len(units_read):
            return f"{len(units_read)} units, and {len(again)} when it is filled in"
    except TmnmtError as error:
        return _wrong_error(error, path) or (f"an output, and {error}" if to.exists() else "")
    finally:
        to.unlink(missing_ok=True)
    return ""


def _opened(path: Path, kind: type[TranslatableFile], by_sentence: bool) -> TranslatableFile:
    file = kind(path)
    file.src_lang, file.tgt_lang = file.src_lang or "en", file.tgt_lang or "fr"
    file.sentences = by_sentence
    if by_sentence:
        file.src_lang = "en"
    return file


def _units(path: Path, kind: type[TranslatableFile], by_sentence: bool) -> list[Unit]:
    documents = _opened(path, kind, by_sentence).documents()
    return [unit for document in documents for unit in document.units]


def _filling(file: TranslatableFile, unit: Unit) -> Filling | None:
    """The source as its own translation, where there is something to translate."""
    is_open = unit.state != "locked" and unit.source.plain.strip()
    return (
        Filling(unit.source, "model") if is_open and not file.refused(unit, unit.source) else None
    )


def _wrong_error(error: TmnmtError, path: Path) -> str:
    text = str(error)
    named = path.name in text or any(text.startswith(str(other)) for other in path.parent.iterdir())
    return (
        ""
        if named and not _no_line(text)
        else f"an error without its file or on more than one line: {text[:300]!r}"
    )


def _no_line(text: str) -> bool:
    return len(text) > 3000 or len(text.splitlines()) > 1


def run_batch(seed: int, first: int, count: int) -> None:
    """What a process does: tells on standard output every case that it begins, and what is wrong
    with it."""
    warnings.simplefilter("error")
    sentences("One. Two.", "en")  # its rules take seconds to load
    limited = False
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + count):
            print(f"case {number}", flush=True)
            kind, files, place = case(seed, number)
            if problem := wrong(files, Path(folder), place):
                print(f"wrong {kind}\t{problem}".replace("\n", " "), flush=True)
            if not limited:  # when all is loaded
                limited = True
                used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    print("done", flush=True)


def failures(seed: int, first: int, count: int) -> Iterator[Failure]:
    """Runs the cases in batches, one process after another, and gives those that fail."""
    end = first + count
    while first < end:
        size = min(BATCH, end - first)
        reached = first
        kind = "?"
        command = [
            sys.executable,
            __file__,
            str(size),
            "--seed",
            str(seed),
            "--first",
            str(first),
            "--batch",
        ]
        with (
            tempfile.TemporaryFile("w+") as told,
            subprocess.Popen(
                command, stdout=told, stderr=subprocess.STDOUT, env=os.environ
            ) as process,
        ):
            ended = _watch(process, told.fileno())
            told.seek(0)
            lines = told.read().splitlines()
        for line in lines:
            if line.startswith("case "):
                reached = int(line[5:])
            elif line.startswith("wrong "):
                kind, _, problem = line[6:].partition("\t")
                yield Failure(reached, kind, problem)
        if lines[-1:] == ["done"]:
            first += size
            continue
        kind = case(seed, reached)[0]
        yield Failure(
            reached,
            kind,
            "hangs" if not ended else f"the process died ({process.returncode}): {lines[-1]}",
        )
        first = reached + 1


def _watch(process: subprocess.Popen[bytes], output: int) -> bool:
    """Whether the process ended by itself; one that tells nothing for HANGS seconds is killed."""
    size, since = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(0.05)
        if (now := os.fstat(output).st_size) != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > HANGS:
            process.kill()
            process.wait()
            return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--batch", action="store_true", help="in this process, told case by case")
    options = parser.parse_args()
    if options.batch:
        run_batch(options.seed, options.first, options.cases)
        return
    found = 0
    for failure in failures(options.seed, options.first, options.cases):
        found += 1
        print(failure, flush=True)
    print(f"{options.cases:,} cases of seed {options.seed} from {options.first}: {found} failed")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
