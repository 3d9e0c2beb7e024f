"""PO and XLIFF files are memories: of what is finished in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmnmt.cli import run
from tmnmt.files.as_memory import read_memories
from tmnmt.formats.report import DRAFT, EMPTY, WRONG_LANGUAGE

PO = r"""
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Language: pt_BR\n"
"Plural-Forms: nplurals=2; plural=(n > 1);\n"

msgctxt "menu"
msgid "Open the file."
msgstr "Abrir o arquivo."

#, fuzzy
msgid "Close the file."
msgstr "Abrir o arquivo."

msgid "Not translated."
msgstr ""

#, python-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d arquivo"
msgstr[1] "%d arquivos"

msgid ""
"Two lines, "
"<b>bold</b>.\n"
msgstr ""
"Duas linhas, "
"<b>negrito</b>.\n"
"""
XLIFF = """<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" target-language="fr" original="a" datatype="plaintext"><body>
<trans-unit id="1" approved="yes"><source>The rule.</source><target state="final">La règle.</target>
</trans-unit>
<trans-unit id="2"><source>A draft.</source>
<target state="needs-review-translation">Un brouillon.</target></trans-unit>
</body></file></xliff>
"""


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    path = tmp_path / "library.po"
    path.write_text(PO, encoding="utf-8")
    return path


def test_what_is_finished_in_a_catalog_is_read(catalog: Path) -> None:
    reader = read_memories([catalog], "en", "pt-BR")
    segments = list(reader)
    assert [(s.src, s.tgt) for s in segments] == [
        ("Open the file.", "Abrir o arquivo."),
        ("%d file", "%d arquivo"),
        ("%d files", "%d arquivos"),
        ("Two lines, bold.", "Duas linhas, negrito."),
    ]
    assert {s.document for s in segments} == {catalog.as_posix()}
    assert segments[0].properties == (
        ("x-context", "menu"),
        ("x-context-post", "Close the file."),
    )
    assert [code.markup for code in segments[3].src_codes if code.markup.strip()] == ["<b>", "</b>"]
    report = reader.report
    assert (report.skipped[DRAFT], report.skipped[EMPTY]) == (1, 1)
    assert report.retained + report.total_skipped == report.units == 6
    assert f"{catalog}, line 13: somebody has to look at it" in str(report)


def test_an_xliff_is_read_beside_other_memories(tmp_path: Path) -> None:
    (tmp_path / "my.xlf").write_text(XLIFF, encoding="utf-8")
    (tmp_path / "my.tsv").write_text("en\tfr\nOne.\tUn.\n", encoding="utf-8")
    reader = read_memories([tmp_path / "my.xlf", tmp_path / "my.tsv"], "en", "fr-CA")
    assert [s.src for s in reader] == ["The rule.", "One."]
    assert reader.report.files == 2 and reader.report.skipped[DRAFT] == 1


def test_a_catalog_of_another_language_is_one_error(
    catalog: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = str(tmp_path / "index")
    command = ["build-index", str(catalog), "--index", index, "--src-lang", "en", "--tgt-lang"]
    assert run([*command, "fr"]) == 1
    error = capsys.readouterr().err
    assert "none of its 6 units has both en and fr; languages in the file: en, pt-br" in error
    reader = read_memories([catalog], "en", "de")
    with pytest.raises(Exception, match="none of its 6 units"):
        list(reader)
    assert reader.report.skipped[WRONG_LANGUAGE] == 6
    assert run([*command, "pt"]) == 0
    assert "4 segments" in capsys.readouterr().err
