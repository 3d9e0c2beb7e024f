"""Every bilingual file is a memory, and knows the places of its segments: in the next version of
the same file a segment in the same place is worth 102, another of its text 100."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir

import pytest

from tmnmt.batch.analyse import Analysis, queries_of_units
from tmnmt.errors import FormatError
from tmnmt.files.as_memory import SUFFIXES, read_memories
from tmnmt.files.opening import open_translatable
from tmnmt.index import MemoryIndex, build
from tmnmt.index.match_value import Query

PAIRS = [("Open", "Ouvrir"), ("Save", "Enregistrer"), ("Close", "Fermer"), ("Save", "Épargner")]
SPACES = (
    'xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0" xmlns:mq="MQXliff" '
    'xmlns:m="http://www.memsource.com/mxlf/2.0"'
)
XLIFF = (
    f'<xliff version="1.2" {SPACES}><file original="a" source-language="en" '
    'target-language="fr" datatype="x"><body>{}</body></file></xliff>'
)
XLIFF2 = (
    '<xliff version="2.1" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" '
    'trgLang="fr"><file id="f">{}</file></xliff>'
)


TABLES = (".csv", ".tsv")  # which nobody translates in place


def unit(said: str) -> str:
    return (
        f'<trans-unit id="u{{0}}"{said}><source>{{1}}</source><target>{{2}}</target></trans-unit>'
    )


TRADOS = (
    '<trans-unit id="u{0}"><source>{1}</source><seg-source><mrk mtype="seg" mid="1">{1}</mrk>'
    '</seg-source><target><mrk mtype="seg" mid="1">{2}</mrk></target><sdl:seg-defs>'
    '<sdl:seg id="1" conf="Translated"/></sdl:seg-defs></trans-unit>'
)
FILES = {
    "a.xlf": (XLIFF, unit(' approved="yes"')),
    "2.xlf": (
        XLIFF2,
        '<unit id="u{0}"><segment state="final"><source>{1}</source><target>{2}</target>'
        "</segment></unit>",
    ),
    "a.sdlxliff": (XLIFF, TRADOS),
    "a.mqxliff": (XLIFF, unit(' mq:status="ManuallyConfirmed"')),
    "a.mxliff": (XLIFF, unit(' m:confirmed="1"')),
    "a.po": (
        'msgid ""\nmsgstr "Language: fr\\n"\n\n{}',
        'msgctxt "u{0}"\nmsgid "{1}"\nmsgstr "{2}"\n\n',
    ),
    "a.ts": (
        '<!DOCTYPE TS>\n<TS version="2.1" language="fr" sourcelanguage="en">{}</TS>\n',
        "<context><name>u{0}</name><message><source>{1}</source><translation>{2}</translation>"
        "</message></context>",
    ),
    "a.xcstrings": (
        '{{"sourceLanguage":"en","strings":{{{}"z":{{}}}},"version":"1.0"}}',
        '"u{0}":{{"localizations":{{"en":{{"stringUnit":{{"state":"translated","value":"{1}"}}}},'
        '"fr":{{"stringUnit":{{"state":"translated","value":"{2}"}}}}}}}},',
    ),
    "a.csv": ("id,en,fr\n{}", 'u{0},"{1}","{2}"\n'),
    "a.tsv": ("en\tfr\n{}", "{1}\t{2}\n"),
    "a.tmx": (
        '<tmx version="1.4"><header srclang="en"/><body>{}</body></tmx>',
        '<tu tuid="u{0}"><prop type="x-document">d</prop><tuv xml:lang="en"><seg>{1}</seg></tuv>'
        '<tuv xml:lang="fr"><seg>{2}</seg></tuv></tu>',
    ),
}


def memory(folder: Path, name: str, pairs: Sequence[tuple[str, str]] = PAIRS) -> Path:
    whole, entry = FILES[name]
    entries = [entry.format(number, *pair) for number, pair in enumerate(pairs)]
    path = folder / name
    path.write_text(whole.format("".join(entries)), encoding="utf-8")
    return path


def packed(path: Path, way: str) -> Path:
    """The file as it is, or packed in this way."""
    if not way:
        return path
    if way == ".gz":
        packed_path = path.with_name(f"{path.name}.gz")
        packed_path.write_bytes(gzip.compress(path.read_bytes()))
    else:
        packed_path = path.with_suffix(".zip")
        with zipfile.ZipFile(packed_path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(path, f"deep/{path.name}")
            archive.writestr("read me.pdf", "%PDF")
    path.unlink()
    return packed_path


@pytest.mark.parametrize("way", ["", ".gz", ".zip"])
@pytest.mark.parametrize("name", FILES)
def test_the_next_version_of_a_file_finds_its_places(tmp_path: Path, name: str, way: str) -> None:
    reader = read_memories([packed(memory(tmp_path, name), way)], "en", "fr")
    build(tmp_path / "index", reader, "en", "fr")
    queries = [
        Query("Save", None, "Open", "Close"),  # in the same place
        Query("Save", None, "Quite", "Other"),  # the same text elsewhere
        Query("Save", None, "Close", "Other"),
    ]
    with MemoryIndex.open(tmp_path / "index") as index:
        assert [(s.src, s.tgt) for s in index.segments()] == PAIRS
        assert Analysis([index])._values(queries) == [102, 100, 101]


def test_every_bilingual_kind_is_tried() -> None:
    tried = {suffix for name in FILES for suffix in [Path(name).suffix]}
    assert {*SUFFIXES} - tried == {".xliff", ".pot"}  # other names of what is tried


def test_members_of_an_archive_are_called_by_their_names(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(memory(tmp_path, "a.po"), "../../fr/a.po")
        archive.write(memory(tmp_path, "a.xlf"), "a.xlf")
        archive.write(memory(tmp_path, "a.tmx"), "a.tmx")
    reader = read_memories([tmp_path / "all.zip"], "en", "fr")
    segments = [*reader]
    zipped = f"{tmp_path}/all.zip"
    documents = [*dict.fromkeys(segment.document for segment in segments)]
    assert documents == [f"{zipped}: ../../fr/a.po", f"{zipped}: a.xlf", "d"]
    assert [*dict.fromkeys(segment.origin for segment in segments)] == ["a.po", "a.xlf", "a.tmx"]
    assert reader.report.files == 3 and reader.report.retained == 12


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.po", b'msgid "a"\nmsgstr "b"\nmsgid\n', "m.zip: a.po, line 3: "),
        ("a.xlf", b'<xliff version="1.2"><file>', "m.zip: a.xlf, line 1: "),
        ("a.xlf", b" " * 20_000_000, "unpacks to more than 100 times its size"),
        ("a.xlf", b"no XLIFF", "m.zip: a.xlf, line 1: broken XML"),
        ("a.ts", b"export const one = 1;\n", "no memory among its 1 member"),
        ("a.xlsx", b"PK no workbook", "m.zip: a.xlsx: "),
    ],
)
def test_what_is_wrong_in_an_archive_is_one_line_with_its_member(
    tmp_path: Path, name: str, content: bytes, told: str
) -> None:
    with zipfile.ZipFile(tmp_path / "m.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    with pytest.raises(FormatError) as error:
        list(read_memories([tmp_path / "m.zip"], "en", "fr"))
    message = str(error.value)
    assert told in message and message.startswith(f"{tmp_path}/m.zip") and "\n" not in message
    assert gettempdir() + "/tmnmt-" not in message


def test_sources_beside_a_pair_count_where_they_are_no_pairs(tmp_path: Path) -> None:
    pairs = [("Open", ""), ("Save", "Enregistrer"), ("Close", "")]
    path = memory(tmp_path, "a.po", pairs)
    build(tmp_path / "index", read_memories([path], "en", "fr"), "en", "fr")
    with MemoryIndex.open(tmp_path / "index") as index:
        assert Analysis([index])._values([Query("Save", None, "Open", "Close")]) == [102]


@pytest.mark.parametrize("name", [name for name in FILES if Path(name).suffix not in TABLES])
def test_the_name_of_a_unit_counts_as_its_place(tmp_path: Path, name: str) -> None:
    path = memory(tmp_path, name)
    build(tmp_path / "index", read_memories([path], "en", "fr"), "en", "fr")
    file = open_translatable(path)
    file.src_lang, file.tgt_lang = "en", "fr"
    (document,) = file.documents()
    names = [query.id for query in queries_of_units([*document.units])][:4]
    assert all(names) and names[1] != names[2]
    queries = [Query("Close", None, "", "", names[2]), Query("Close", None, "", "", names[1])]
    with MemoryIndex.open(tmp_path / "index") as index:
        assert Analysis([index])._values(queries) == [101, 100]


def test_the_id_of_a_row_counts_as_its_place(tmp_path: Path) -> None:
    path = memory(tmp_path, "a.csv")
    build(tmp_path / "index", read_memories([path], "en", "fr"), "en", "fr")
    with MemoryIndex.open(tmp_path / "index") as index:
        assert Analysis([index])._values([Query("Close", None, "", "", "u2")]) == [101]
