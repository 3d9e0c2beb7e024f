"""DOCX and XLSX through Okapi's filters: what comes out, what goes in, what is refused."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pytest
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml.ns import qn
from docx.oxml.parser import OxmlElement
from okapi_jars import okapi_jars
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont

from tmnmt.cli import run
from tmnmt.codes.record import Text, join_parts
from tmnmt.errors import FormatError, UsageError
from tmnmt.files.office import OfficeFile
from tmnmt.files.opening import kind_of, open_translatable
from tmnmt.files.unit import Filling, TranslatableFile, Unit

WORDS = {"notice": "avis", "permit": "permis", "owner": "propriétaire", "valid": "valide"}


def write_docx(path: Path) -> None:
    """Two sentences with bold inside, one across both, a link, a table, a line break, a header."""
    made = docx.Document()
    made.core_properties.title = "The permit"
    made.add_heading("The notice", 1)
    first = made.add_paragraph("The owner sends a ")
    first.add_run("notice").bold = True
    first.add_run(" to us. The permit is valid.")
    across = made.add_paragraph()
    across.add_run("This permit. And this").italic = True
    across.add_run(" owner & more.")
    linked = made.add_paragraph("See ")
    to = made.part.relate_to("https://example.org/a", RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
    link, inside, text = (OxmlElement(name) for name in ("w:hyperlink", "w:r", "w:t"))
    link.set(qn("r:id"), to)
    text.text = "the permit"
    inside.append(text)
    link.append(inside)
    linked._p.append(link)
    broken = made.add_paragraph("One owner.")
    broken.add_run().add_break()
    broken.add_run("Two permits.")
    cells = made.add_table(1, 2).rows[0].cells
    cells[0].text, cells[1].text = "valid", "12"
    made.sections[0].header.paragraphs[0].text = "A notice"
    made.save(str(path))


def write_xlsx(path: Path) -> None:
    """Texts, one with bold inside, the same one twice, a number and a formula."""
    made = openpyxl.Workbook()
    sheet: Any = made.active
    sheet.title = "Fees"
    sheet["A1"], sheet["B1"], sheet["B2"] = "The permit", 12, "=B1*2"
    sheet["A2"] = sheet["A3"] = "The notice"
    sheet["A4"] = CellRichText("The ", TextBlock(InlineFont(b=True), "owner"), ". A permit.")
    made.save(path)


def changed(text: str) -> str:
    for one, other in WORDS.items():
        text = re.sub(one, other, text)
    return text


def translated(source: Text) -> Text:
    """The source with some of its words in other, longer ones; codes where they were."""
    parts = (part if not isinstance(part, str) else changed(part) for part in source.parts())
    return join_parts(parts)


def units_of(file: TranslatableFile) -> list[Unit]:
    return [unit for document in file.documents() for unit in document.units]


def file_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> TranslatableFile:
    monkeypatch.setenv("TMNMT_OKAPI", str(okapi_jars()))
    file = open_translatable(path)
    file.src_lang, file.tgt_lang = "en", "fr"
    return file


def filled(file: TranslatableFile, path: Path) -> None:
    with path.open("wb") as to:
        file.write(to, [Filling(translated(unit.source), "model") for unit in units_of(file)])


def test_sentences_of_a_docx_come_back_translated_with_their_formats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_docx(tmp_path / "a.docx")
    file = file_of(tmp_path / "a.docx", monkeypatch)
    units = units_of(file)
    assert [unit.source.plain for unit in units] == [
        "The notice",
        "The owner sends a notice to us.",
        "The permit is valid.",
        "This permit.",
        "And this owner & more.",
        "See the permit",
        "One owner.",
        "Two permits.",
        "valid",
        "12",
        "A notice",
    ]
    assert [unit.line for unit in units] == list(range(1, 12))
    assert [code.kind for code in units[1].source.codes] == ["open", "close"]
    filled(file, tmp_path / "b.docx")
    made = docx.Document(str(tmp_path / "b.docx"))
    runs = [[(run.text, run.bold, run.italic) for run in one.runs] for one in made.paragraphs]
    assert runs[0] == [("The avis", None, None)] and made.paragraphs[0].style is not None
    assert made.paragraphs[0].style.name == "Heading 1"
    assert runs[1] == [
        ("The propriétaire sends a ", None, None),
        ("avis", True, None),
        (" to us. The permis is valide.", None, None),
    ]
    assert runs[2] == [
        ("This permis. And this", None, True),
        (" propriétaire & more.", None, None),
    ]
    (link,) = made.paragraphs[3].hyperlinks
    assert (link.text, link.address) == ("the permis", "https://example.org/a")
    assert made.paragraphs[4].text == "One propriétaire.\nTwo permiss."
    assert [cell.text for cell in made.tables[0].rows[0].cells] == ["valide", "12"]
    assert made.sections[0].header.paragraphs[0].text == "A avis"
    assert made.core_properties.title == "The permit"


def test_texts_of_an_xlsx_come_back_translated_and_numbers_and_formulas_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_xlsx(tmp_path / "a.xlsx")
    file = file_of(tmp_path / "a.xlsx", monkeypatch)
    assert [(unit.source.plain, unit.context) for unit in units_of(file)] == [
        ("The permit", "Fees!A1"),
        ("The notice", "Fees!A2"),
        ("The notice", "Fees!A3"),
        ("The owner.", "Fees!A4"),
        ("A permit.", "Fees!A4"),
    ]
    filled(file, tmp_path / "b.xlsx")
    sheet: Any = openpyxl.load_workbook(tmp_path / "b.xlsx", rich_text=True)["Fees"]
    assert [sheet[at].value for at in ("A1", "A2", "A3", "B1", "B2")] == [
        "The permis",
        "The avis",
        "The avis",
        12,
        "=B1*2",
    ]
    rich = sheet["A4"].value
    assert str(rich) == "The propriétaire. A permis."
    assert [str(part) for part in rich if isinstance(part, TextBlock)] == ["propriétaire"]


def test_what_is_not_filled_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_docx(tmp_path / "a.docx")
    file = file_of(tmp_path / "a.docx", monkeypatch)
    fillings: list[Filling | None] = [None] * 11
    fillings[2] = Filling(Text("Le permis est valide."), "model")
    with (tmp_path / "b.docx").open("wb") as to:
        file.write(to, fillings)
    texts = [one.text for one in docx.Document(str(tmp_path / "b.docx")).paragraphs]
    assert texts[:2] == ["The notice", "The owner sends a notice to us. Le permis est valide."]
    assert texts[2] == "This permit. And this owner & more."


def test_tracked_changes_and_broken_parts_are_refused_with_okapis_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = docx.Document()
    inserted, inside, text = (OxmlElement(name) for name in ("w:ins", "w:r", "w:t"))
    inserted.set(qn("w:id"), "1")
    inserted.set(qn("w:author"), "Jane")
    text.text = "new"
    inside.append(text)
    inserted.append(inside)
    made.add_paragraph("What is ")._p.append(inserted)
    path = tmp_path / "a.docx"
    made.save(str(path))
    with pytest.raises(FormatError, match=r"a\.docx: .*it has tracked changes; accept or reject"):
        units_of(file_of(path, monkeypatch))
    write_docx(path)
    rewritten(path, {"word/document.xml": lambda data: data[: len(data) // 2]})
    with pytest.raises(FormatError, match=r"a\.docx: Okapi cannot extract it: .*row,col"):
        units_of(file_of(path, monkeypatch))


def rewritten(path: Path, changes: dict[str, Any], more: dict[str, bytes] | None = None) -> None:
    """The archive with other parts: what a function makes of one; others besides."""
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    parts |= {name: change(parts[name]) for name, change in changes.items()} | (more or {})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in parts.items():
            new.writestr(name, data)


def understated(path: Path, name: str) -> None:
    """The archive says that this part is of 10 bytes, with the check sum of these."""
    with zipfile.ZipFile(path) as archive:
        part = archive.getinfo(name)
        crc = zipfile.crc32(archive.read(name)[:10])  # type: ignore[attr-defined]
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(name.encode()))  # of the directory
    data[at + 16 : at + 20] = crc.to_bytes(4, "little")
    data[at + 24 : at + 28] = (10).to_bytes(4, "little")
    assert part.file_size > 10
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "changes", "more", "reason"),
    [
        ("a.docx", {}, {"word/media/a.bin": b"\0" * (40 << 20)}, "refused as a decompression bomb"),
        ("a.docx", {}, {"word/vbaProject.bin": b"x"}, "it has macros; save it without them"),
        (
            "a.docm",
            {"[Content_Types].xml": lambda data: data.replace(b"main+xml", b"macroEnabled+xml")},
            {},
            "it has macros; save it without them",
        ),
        (
            "a.docx",
            {"word/document.xml": lambda data: b"<!DOCTYPE w [<!ENTITY a 'b'>]>" + data},
            {},
            "word/document.xml has a document type declaration",
        ),
        (
            "a.docx",
            {"word/document.xml": lambda data: ("<!DOCTYPE w>").encode("utf-16-le") + data},
            {},
            "word/document.xml has a document type declaration",
        ),
        (
            "a.docx",
            {"[Content_Types].xml": lambda data: b"<Types/>"},
            {},
            "no file of Word, Excel or PowerPoint",
        ),
    ],
)
def test_what_could_do_harm_is_refused_before_anything_reads_it(
    tmp_path: Path, name: str, changes: dict[str, Any], more: dict[str, bytes], reason: str
) -> None:
    write_docx(tmp_path / name)
    rewritten(tmp_path / name, changes, more)
    with pytest.raises(FormatError, match=re.escape(reason)):
        open_translatable(tmp_path / name)


def test_what_is_no_xml_may_have_what_looks_like_a_document_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As settings of printers have it."""
    monkeypatch.setattr("tmnmt.files.okapi_file.okapi.check", lambda _: None)
    write_docx(tmp_path / "a.docx")
    kind = b'<Default Extension="bin" ContentType="application/vnd.ms-printerSettings"/></Types>'
    more = {"word/printerSettings1.bin": b"<!DOCTYPE plist>"}
    rewritten(tmp_path / "a.docx", {}, more)
    with pytest.raises(FormatError, match=r"printerSettings1\.bin has a document type"):
        open_translatable(tmp_path / "a.docx")
    types = {"[Content_Types].xml": lambda data: data.replace(b"</Types>", kind)}
    rewritten(tmp_path / "a.docx", types)
    assert isinstance(open_translatable(tmp_path / "a.docx"), OfficeFile)


def test_a_part_that_is_longer_than_the_archive_says_is_refused(tmp_path: Path) -> None:
    write_docx(tmp_path / "a.docx")
    understated(tmp_path / "a.docx", "word/document.xml")
    with pytest.raises(FormatError, match="damaged"):
        open_translatable(tmp_path / "a.docx")


def test_what_is_no_archive_of_office_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    for data, reason in (
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "encrypted, or of Office before 2007"),
        (b"Just text.\n", "no file of Office, or a damaged one"),
    ):
        path.write_bytes(data)
        assert kind_of(path) is OfficeFile
        with pytest.raises(FormatError, match=re.escape(f"{path}: {reason}")):
            open_translatable(path)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a.txt", "text")
    path.write_bytes(made.getvalue())
    with pytest.raises(FormatError, match=re.escape("it lacks [Content_Types].xml")):
        open_translatable(path)


def test_without_the_jars_or_java_one_line_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.docx"
    write_docx(path)
    monkeypatch.delenv("TMNMT_OKAPI", raising=False)
    assert run(["analyse", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"tmnmt: error: {path}: it needs Java and the jars of Okapi")
    assert len(said.splitlines()) == 1 and "docs/files-office.md" in said
    monkeypatch.setenv("TMNMT_OKAPI", str(tmp_path))
    with pytest.raises(UsageError, match="the jars of Okapi are not in"):
        open_translatable(path)
    (tmp_path / "Office.class").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(UsageError, match="it needs a Java, and none is installed"):
        open_translatable(path)


def test_a_docx_without_a_known_language_is_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TMNMT_OKAPI", str(okapi_jars()))
    write_docx(tmp_path / "a.docx")
    assert run(["analyse", str(tmp_path / "a.docx")]) == 2
    assert "its language is not known; name it: --src-lang" in capsys.readouterr().err
    assert run(["analyse", str(tmp_path / "a.docx"), "--src-lang", "en"]) == 0
    assert re.search(r"all +11 ", capsys.readouterr().out)
