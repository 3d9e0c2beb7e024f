"""Comments of people go into files that have a place for them, and come back; other tools read
them, and where nothing is said no byte is another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from file_units import units, untouched, written
from translate.storage.po import pofile
from translate.storage.tmx import tmxfile
from translate.storage.xliff import xlifffile
from translate.storage.xliff2 import Xliff2File

from tmnmt.codes.record import Text
from tmnmt.files import tool_comments
from tmnmt.files.opening import open_translatable
from tmnmt.files.unit import Comment, Filling, TranslatableFile

PO = """msgid ""
msgstr ""
"Language: fr\\n"
"Content-Type: text/plain; charset=ISO-8859-1\\n"
"Plural-Forms: nplurals=2; plural=(n > 1);\\n"

#. on a button
#: a.c:1
msgid "One"
msgstr "Un"

# a verb
# or a noun
#
# see 5
#, c-format
msgid "Two"
msgid_plural "Twos"
msgstr[0] ""
msgstr[1] ""
"""
UNIT1 = '<trans-unit id="1">\n  <source>One</source>{}\n</trans-unit>'
UNIT2 = '<unit id="1">\n  {}<segment><source>One</source>{}</segment>\n</unit>'
FILE1 = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n<file original="a" '
    'source-language="en" target-language="fr" datatype="html"><body>{}</body></file></xliff>\n'
)
FILE2 = (
    '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" '
    'trgLang="fr">\n<file id="f">{}</file></xliff>'
)
SPACE = "urn:oasis:names:tc:xliff:document:2.0"
TARGET = "<target>Un</target>"
TMX = """<tmx version="1.4"><header srclang="en"/><body>
<tu><note>of the unit</note><tuv xml:lang="en"><seg>One</seg></tuv>
<tuv xml:lang="fr">
  <seg>Un</seg>
</tuv></tu>
<tu><tuv xml:lang="en"><seg>Two</seg></tuv></tu>
</body></tmx>
"""
SAID = (Comment("Is it <b> & so?\nNo.", "Ann", "2026-11-27T10:00:00Z"), Comment("Éh"))


def opened(path: Path, content: str, encoding: str = "utf-8") -> TranslatableFile:
    path.write_bytes(content.encode(encoding))
    file = open_translatable(path)
    file.src_lang, file.tgt_lang = "en", "fr"
    return file


def commented(file: TranslatableFile, path: Path, comments: Any = SAID) -> TranslatableFile:
    """The file with comments in its first unit, and nothing else."""
    fillings = [Filling(Text(""), "", (), comments), *[None] * (len(units(file)) - 1)]
    path.write_bytes(written(file, fillings))
    again = open_translatable(path)
    again.src_lang, again.tgt_lang = "en", "fr"
    return again


def test_comments_of_po(tmp_path: Path) -> None:
    file = opened(tmp_path / "a.po", PO, "latin-1")
    assert [c.text for c in units(file)[1].comments] == ["a verb\nor a noun", "see 5"]
    assert units(file)[0].notes == ("on a button",) and units(file)[0].comments == ()
    assert units(file)[1].all_notes == ("a verb\nor a noun", "see 5")
    assert untouched(file) == PO.encode()
    again = commented(file, tmp_path / "b.po")
    said = [Comment("Ann: Is it <b> & so?\nNo."), Comment("Éh")]
    assert list(units(again)[0].comments) == said
    for extracted in ("#. on", "#: a.c"):  # they stand in front of what there is
        text = (tmp_path / "b.po").read_text("latin-1")
        assert text.index("# Ann: Is") < text.index("#\n# Éh") < text.index(extracted)
    assert text.replace("# Ann: Is it <b> & so?\n# No.\n#\n# Éh\n", "") == PO
    # it reads the comments right behind a header in UTF-8, whatever that says
    toolkit = pofile.parsestring(text.replace("ISO-8859-1", "UTF-8").encode()).units[1]
    assert toolkit.getnotes("translator") == "Ann: Is it <b> & so?\nNo.\n\nÉh"
    assert toolkit.target == "Un"
    behind = written(file, [None, None, Filling(Text("Deux"), "model", (), SAID[:1])])
    assert "# see 5\n#\n# Ann: Is it" in behind.decode("latin-1")
    euro = commented(file, tmp_path / "c.po", (Comment("5 €"),))
    assert units(euro)[0].comments == (Comment("5 &#8364;"),)  # which the character set lacks


@pytest.mark.parametrize("target", ["", "\n  " + TARGET, "\n  " + TARGET + "<note>general</note>"])
def test_comments_of_xliff_1(tmp_path: Path, target: str) -> None:
    content = FILE1.format(UNIT1.format(target))
    file = opened(tmp_path / "a.xlf", content)
    assert untouched(file) == content.encode()
    again = commented(file, tmp_path / "b.xlf")
    said = [Comment(comment.text, comment.author) for comment in SAID]
    assert list(units(again)[0].comments) == said
    assert units(again)[0].notes == units(file)[0].notes
    (toolkit,) = xlifffile.parsefile(str(tmp_path / "b.xlf")).units
    assert toolkit.getnotes("Ann") == SAID[0].text.replace("\n", " ")  # as it reads white space
    filled = written(file, [Filling(Text("Deux"), "confirmed", (), SAID)])
    (tmp_path / "c.xlf").write_bytes(filled)
    (unit,) = units(open_translatable(tmp_path / "c.xlf"))
    assert (unit.target, list(unit.comments)) == (Text("Deux"), said)
    (toolkit,) = xlifffile.parsefile(str(tmp_path / "c.xlf")).units
    assert toolkit.target == "Deux" and "Éh" in toolkit.getnotes()


TRADOS = """<xliff xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0" \
xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
<doc-info xmlns="http://sdl.com/FileTypes/SdlXliff/1.0"><cmt-defs>
<cmt-def id="c1"><Comments xmlns=""><Comment severity="Low" user="Ann" \
date="2014-10-29T15:16:15.3366393+00:00" version="1.0">Is it &lt;b&gt; &amp; so?</Comment>
<Comment severity="High" user="Bo" version="1.0">No.</Comment></Comments></cmt-def>
<cmt-def id="c2"><Comments><Comment>nobody's</Comment><Comment> </Comment></Comments></cmt-def>
</cmt-defs></doc-info>
<file original="a" source-language="en" target-language="fr" datatype="x-sdlfilterframework2"><body>
<trans-unit id="u"><source>One. Two. Six.</source>
<seg-source><mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two.</mrk> \
<mrk mtype="seg" mid="3"><mrk mtype="x-sdl-comment" sdl:cid="c2">Six</mrk>.</mrk></seg-source>
<target><mrk mtype="seg" mid="1"><mrk mtype="x-sdl-comment" sdl:cid="c1">U</mrk>\
<mrk sdl:cid="c1" mtype="x-sdl-comment">n</mrk>.</mrk> <mrk mtype="seg" mid="2">\
<mrk mtype="x-sdl-comment" sdl:cid="gone">Deux.</mrk></mrk> <mrk mtype="seg" mid="3"/></target>
<sdl:seg-defs><sdl:seg id="1" conf="Draft"/><sdl:seg id="2" conf="Draft"/><sdl:seg id="3"/>\
</sdl:seg-defs></trans-unit></body></file></xliff>
"""
MEMOQ = """<xliff xmlns:mq="MQXliff" xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
<file original="a" source-language="en" target-language="fr" datatype="x-memoq"><body>
<trans-unit id="1" mq:status="ManuallyConfirmed"><source>One</source><target>Un</target>
<note>of the unit</note>
<mq:comments><mq:comment id="a" creatoruser="Ann" time="2018-01-02T03:04:05Z" deleted="false" \
category="0" appliesto="Target">Is it &amp; so?</mq:comment>
<mq:comment id="b" creatoruser="Bo" deleted="true">taken back</mq:comment>
<mq:comment id="c">No.</mq:comment><mq:comment id="d"/></mq:comments></trans-unit>
<trans-unit id="2" mq:status="NotStarted"><source>Two</source></trans-unit></body></file></xliff>
"""


def test_comments_of_trados_are_read(tmp_path: Path) -> None:
    file = opened(tmp_path / "a.sdlxliff", TRADOS)
    of_one = Comment("Is it <b> & so?", "Ann", "2014-10-29T15:16:15.3366393+00:00")
    first, second, third = units(file)
    assert first.comments == (of_one, Comment("No.", "Bo"))
    assert (second.comments, third.comments) == ((), (Comment("nobody's"),))
    assert second.target is not None and second.target.plain == "Deux."
    assert untouched(file) == TRADOS.encode()


def test_more_in_front_of_a_file_than_is_looked_at_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tool_comments, "MAX_BYTES", 100)
    assert not any(unit.comments for unit in units(opened(tmp_path / "a.sdlxliff", TRADOS)))
    assert "in front of <file>: no comments are read" in caplog.text


def test_comments_of_memoq_are_read(tmp_path: Path) -> None:
    file = opened(tmp_path / "a.mqxliff", MEMOQ)
    first, second = units(file)
    said = (Comment("Is it & so?", "Ann", "2018-01-02T03:04:05Z"), Comment("No."))
    assert (first.comments, first.notes) == (said, ("of the unit",))
    assert second.comments == ()
    assert untouched(file) == MEMOQ.encode()


@pytest.mark.parametrize("notes", ["", "<notes/>", "<notes><note>general</note></notes>\n  "])
def test_comments_of_xliff_2(tmp_path: Path, notes: str) -> None:
    content = FILE2.format(UNIT2.format(notes, TARGET))
    file = opened(tmp_path / "a.xlf", content)
    assert untouched(file) == content.encode()
    again = commented(file, tmp_path / "b.xlf")
    assert units(again)[0].comments == SAID and units(again)[0].notes == units(file)[0].notes
    (toolkit,) = Xliff2File.parsefile(str(tmp_path / "b.xlf")).units
    assert toolkit.target == "Un"
    (unit,) = fromstring((tmp_path / "b.xlf").read_text("utf-8")).iter(f"{{{SPACE}}}unit")
    first, _ = unit  # the notes stand in front of the segment, as the schema wants it
    assert first.tag == f"{{{SPACE}}}notes" and [note.text for note in first][-2:] == [
        comment.text for comment in SAID
    ]
    more = commented(again, tmp_path / "c.xlf", (Comment("Third"),))
    assert units(more)[0].comments == (*SAID, Comment("Third"))


def test_comments_of_tmx(tmp_path: Path) -> None:
    file = opened(tmp_path / "a.tmx", TMX)
    assert untouched(file) == TMX.encode()
    again = commented(file, tmp_path / "b.tmx")
    said = [Comment(comment.line) for comment in SAID]
    assert list(units(again)[0].comments) == said and units(again)[0].notes == ("of the unit",)
    text = (tmp_path / "b.tmx").read_text("utf-8")
    note = "<note>Ann: Is it &lt;b&gt; &amp; so?\nNo.</note>\n  <note>Éh</note>\n  "
    assert text.replace(note, "") == TMX
    assert tmxfile.parsefile(str(tmp_path / "b.tmx")).units[0].target == "Un"
    new = [None, Filling(Text("Deux"), "confirmed", (), SAID)]
    (tmp_path / "c.tmx").write_bytes(written(file, new))
    second = units(commented(opened_again(tmp_path / "c.tmx"), tmp_path / "d.tmx", ()))[1]
    assert (second.target, list(second.comments)) == (Text("Deux"), said)
    # no place for them before there is a target
    assert written(file, [None, Filling(Text(""), "", (), SAID)]) == TMX.encode()


def opened_again(path: Path) -> TranslatableFile:
    return opened(path, path.read_text("utf-8"))


def test_a_file_of_another_tool_stays_as_it_is(tmp_path: Path) -> None:
    """A CAT tool has its own place for comments in its XLIFF."""
    unit = UNIT1.format(TARGET).replace(
        ' id="1"', ' id="1" mq:status="NotStarted" xmlns:mq="MQXliff"'
    )
    content = FILE1.format(unit)
    file = opened(tmp_path / "a.mqxliff", content)
    commented(file, tmp_path / "b.mqxliff")
    assert (tmp_path / "b.mqxliff").read_bytes() == content.encode()
