"""EPUB and IDML through Okapi's filters: what comes out, what goes in, what is refused."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest
from file_units import units
from okapi_jars import okapi_jars
from required import absent

from tmnmt.codes.record import Text
from tmnmt.errors import FormatError
from tmnmt.files.opening import open_translatable
from tmnmt.files.publications import EpubFile, IdmlFile
from tmnmt.files.unit import Filling, TranslatableFile

EPUBCHECK = "TMNMT_EPUBCHECK"  # names a folder with the jars of org.w3c:epubcheck
CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="{path}" media-type="{type}"/></rootfiles></container>"""
PACKAGE = """<?xml version="1.0" encoding="UTF-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">urn:uuid:1</dc:identifier>
<dc:title>The permit</dc:title><dc:language>en</dc:language>
<meta property="dcterms:modified">2020-01-01T00:00:00Z</meta></metadata>
<manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/>
<item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="s" href="s.css" media-type="text/css"/></manifest>
<spine><itemref idref="c"/></spine></package>"""
CHAPTER = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en" lang="en">
<head><title>The permit</title><link rel="stylesheet" href="s.css"/></head>
<body><h1>The notice</h1><p>The owner sends a <b>notice</b> to us. The permit is valid.</p>
<pre><code>untouched</code></pre></body></html>"""
CONTENTS = """<?xml version="1.0" encoding="UTF-8"?>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops">
<head><title>Contents</title></head><body><nav epub:type="toc"><ol><li><a href="c.xhtml">The
notice</a></li></ol></nav></body></html>"""
BOOK = {
    "META-INF/container.xml": CONTAINER.format(
        path="OEBPS/content.opf", type="application/oebps-package+xml"
    ),
    "OEBPS/content.opf": PACKAGE,
    "OEBPS/c.xhtml": CHAPTER,
    "OEBPS/nav.xhtml": CONTENTS,
    "OEBPS/s.css": "p { color: red }",
}
_SPACE = 'xmlns:idPkg="http://ns.adobe.com/AdobeInDesign/idml/1.0/packaging" DOMVersion="7.5"'
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_RANGE = '<CharacterStyleRange AppliedCharacterStyle="CharacterStyle/a"'
STORY = f"""{_XML}<idPkg:Story {_SPACE}><Story Self="u1" AppliedTOCStyle="n" TrackChanges="false"
StoryTitle="$ID/" AppliedNamedGrid="n">
<ParagraphStyleRange AppliedParagraphStyle="ParagraphStyle/b">
{_RANGE}><Content>The owner sends a </Content></CharacterStyleRange>
{_RANGE} FontStyle="Bold"><Content>notice</Content></CharacterStyleRange>
{_RANGE}><Content> to us.</Content><Br/><Content>The permit.</Content></CharacterStyleRange>
</ParagraphStyleRange></Story></idPkg:Story>"""
STYLES = f"""{_XML}<idPkg:Styles {_SPACE}>
<RootCharacterStyleGroup Self="g1"><CharacterStyle Self="CharacterStyle/a" Name="a"/>
</RootCharacterStyleGroup><RootParagraphStyleGroup Self="g2">
<ParagraphStyle Self="ParagraphStyle/b" Name="b"/></RootParagraphStyleGroup>
<RootCellStyleGroup Self="g3"/><RootTableStyleGroup Self="g4"/>
<RootObjectStyleGroup Self="g5"/></idPkg:Styles>"""
_RESOURCES = ("Graphic", "Fonts", "Styles", "Preferences")
DESIGN = {
    "designmap.xml": f"""{_XML}<?aid style="50" type="document" readerVersion="6.0"
featureSet="257" product="7.5(142)" ?>
<Document {_SPACE} Self="d" StoryList="u1" Name="a.indd" ActiveLayer="ub">
{"".join(f'<idPkg:{name} src="Resources/{name}.xml"/>' for name in _RESOURCES)}
<Layer Self="ub" Name="Layer 1" Visible="true" Locked="false"/>
<idPkg:Spread src="Spreads/Spread_us.xml"/><idPkg:Story src="Stories/Story_u1.xml"/></Document>""",
    **{
        f"Resources/{name}.xml": f"{_XML}<idPkg:{name} {_SPACE}></idPkg:{name}>"
        for name in _RESOURCES
    },
    "Resources/Styles.xml": STYLES,
    "Resources/Preferences.xml": f"""{_XML}<idPkg:Preferences {_SPACE}>
<StoryPreference OpticalMarginAlignment="false" StoryDirection="LeftToRightDirection"/>
</idPkg:Preferences>""",
    "Spreads/Spread_us.xml": f"""{_XML}<idPkg:Spread {_SPACE}><Spread Self="us" PageCount="1"
ItemTransform="1 0 0 1 0 0"><Page Self="p1" Name="1" ItemTransform="1 0 0 1 0 0"/>
<TextFrame Self="t1" ParentStory="u1" PreviousTextFrame="n" NextTextFrame="n" ContentType="TextType"
ItemLayer="ub" Visible="true" ItemTransform="1 0 0 1 0 0"/></Spread></idPkg:Spread>""",
    "Stories/Story_u1.xml": STORY,
    "META-INF/container.xml": CONTAINER.format(path="designmap.xml", type="text/xml"),
}


def archive(path: Path, mimetype: str, parts: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("mimetype", mimetype, zipfile.ZIP_STORED)
        for name, content in parts.items():
            made.writestr(name, content, zipfile.ZIP_DEFLATED)
    return path


def book(path: Path, parts: dict[str, str] = BOOK) -> Path:
    return archive(path, EpubFile.mimetype.decode(), parts)


def design(path: Path) -> Path:
    return archive(path, IdmlFile.mimetype.decode(), DESIGN)


def file_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> TranslatableFile:
    monkeypatch.setenv("TMNMT_OKAPI", str(okapi_jars()))
    file = open_translatable(path)
    file.src_lang, file.tgt_lang = "en", "fr"
    return file


def translated(source: Text) -> Text:
    return Text(source.plain.replace("notice", "cenoti"), source.codes)


def fill(file: TranslatableFile, path: Path, is_filled: bool = True) -> zipfile.ZipFile:
    with path.open("wb") as stream:
        file.write(
            stream,
            [Filling(translated(u.source), "model") if is_filled else None for u in units(file)],
        )
    return zipfile.ZipFile(path)


def test_a_book_comes_back_translated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = file_of(book(tmp_path / "a.epub"), monkeypatch)
    assert [unit.source.plain for unit in units(file)] == [
        *("The permit", "The notice", "The owner sends a notice to us.", "The permit is valid."),
        *("untouched", "Contents", "The notice"),
    ]
    with fill(file, tmp_path / "b.epub") as new:
        assert new.namelist() == ["mimetype", *BOOK]
        assert new.getinfo("mimetype").compress_type == zipfile.ZIP_STORED
        assert new.read("OEBPS/s.css").decode() == BOOK["OEBPS/s.css"]
        package = new.read("OEBPS/content.opf").decode()
        assert package == PACKAGE.replace("<dc:language>en", "<dc:language>fr")
        chapter = new.read("OEBPS/c.xhtml").decode()
    expected = CHAPTER.replace("notice", "cenoti").replace('lang="en"', 'lang="fr"')
    assert chapter == expected
    again = file_of(tmp_path / "b.epub", monkeypatch)
    assert units(again)[1].source.plain == "The cenoti"


def test_a_translated_book_is_as_valid_as_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = os.environ.get(EPUBCHECK, "")
    if not folder:
        absent("epubcheck", f"{EPUBCHECK} names no folder with the jars of epubcheck")
    fill(file_of(book(tmp_path / "a.epub"), monkeypatch), tmp_path / "b.epub").close()
    for name in ("a.epub", "b.epub"):
        command = ["java", "-cp", f"{folder}/*", "com.adobe.epubcheck.tool.Checker"]
        process = subprocess.run([*command, tmp_path / name], capture_output=True, text=True)
        assert process.returncode == 0, process.stdout + process.stderr


def test_a_design_comes_back_translated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = file_of(design(tmp_path / "a.idml"), monkeypatch)
    assert [unit.source.plain for unit in units(file)] == [
        *("The owner sends a notice to us.", "The permit.")
    ]
    with fill(file, tmp_path / "b.idml") as new:
        assert new.namelist() == ["mimetype", *DESIGN]
        assert new.getinfo("mimetype").compress_type == zipfile.ZIP_STORED
        for name in DESIGN:
            if not name.startswith(("Stories", "designmap")):
                assert new.read(name).decode() == DESIGN[name]
        assert ">cenoti</Content>" in new.read("Stories/Story_u1.xml").decode()
    again = file_of(tmp_path / "b.idml", monkeypatch)
    assert units(again)[0].source.plain == "The owner sends a cenoti to us."


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entity = '<!DOCTYPE html [<!ENTITY a "b">]>'
    hidden = (
        '<encryption><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>'
    )
    refused = {
        "bomb": BOOK | {"x": " " * 20_000_000},
        "declares entities": BOOK | {"OEBPS/c.xhtml": CHAPTER.replace("<!DOCTYPE html>", entity)},
        "encrypted": BOOK | {"META-INF/encryption.xml": hidden},
    }
    for reason, parts in refused.items():
        with pytest.raises(FormatError, match=reason):
            open_translatable(book(tmp_path / "a.epub", parts))
    with pytest.raises(FormatError, match="no IDML: its mimetype says otherwise"):
        open_translatable(book(tmp_path / "a.idml"))
    (tmp_path / "b.epub").write_bytes(b"PK")
    with pytest.raises(FormatError, match="no file of EPUB, or a damaged one"):
        open_translatable(tmp_path / "b.epub")
