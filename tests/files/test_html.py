"""HTML: texts of blocks are units, tags inside them codes, and the rest of the page stays."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from file_units import echoed, filled, units, untouched
from hypothesis import given
from hypothesis import strategies as st

from tmnmt.codes.record import Code, Text
from tmnmt.errors import FormatError
from tmnmt.files.html import HTML, HtmlFile
from tmnmt.files.opening import open_translatable
from tmnmt.files.unit import Filling

PAGE = """<!DOCTYPE html>
<html lang="en-GB"><head><meta charset="utf-8"><title>A title &amp; more</title>
<meta name="description" content="What it is">
<style>p > b { color: red }</style><script>if (a < b) { alert("<p>no</p>") }</script></head>
<body class=x>
<!-- a comment <p>no</p> -->
<h1><a href="#top">Heading</a></h1>
<p>First <b>bold</b> &eacute; and
   <img src=a.png alt='An image'> more.<br>Next line
<p translate="no">Untouched <b>words</b>
<ul><li>One<li title="Tip">Two <span class="notranslate">Name</span></ul>
<pre>def  f():
  a line</pre>
<input type=submit value=Send><input type=text value=no placeholder="Type here">
<textarea>Text & <more></textarea>
</body></html>
"""


RUNNING = """<p>One word. <b>Two
 words.</b> <i>Three. Four. </i>Five &eacute;t&eacute;.&nbsp;Six<br>
and <b>Seven.</b></p><pre>Left. Alone.</pre>
<p><b>Eight is <u>open.</b> It <i>goes. On</i> here. <img alt="An image. Two."> Ten</p>
"""


def test_sentences_are_units_where_that_is_asked_for(tmp_path: Path) -> None:
    file = page(tmp_path, RUNNING)
    file.sentences, file.src_lang = True, "en"
    written = [" ".join(unit.source.full_text().split()) for unit in units(file)]
    assert written == [
        "One word.",
        "Two words.",  # its tags are around all of it
        *("Three.", "Four.", "Five été."),
        "Six<br> and <b>Seven.</b>",
        "Left. Alone.",
        "Eight is <u>open.",
        "It <i>goes. On</i> here.",  # no span is cut
        "An image. Two.",
        "Ten",
    ]
    assert untouched(file).decode() == RUNNING
    new = filled(file, "Un", "Deux", None, None, "Cinq").decode()
    assert new.startswith(
        "<p>Un <b>Deux</b> <i>Three. Four. </i>Cinq&nbsp;Six<br>\nand <b>Seven.</b></p>"
    )


def page(tmp_path: Path, content: str | bytes) -> HtmlFile:
    path = tmp_path / "a.html"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return HtmlFile(path)


def test_a_page_is_cut_into_units(tmp_path: Path) -> None:
    file = page(tmp_path, PAGE)
    assert file.src_lang == "en-gb"
    assert [(unit.line, unit.source.plain) for unit in units(file)] == [
        (2, "A title & more"),
        (3, "What it is"),
        (7, "Heading"),
        (8, "First bold é and more. Next line"),
        (9, "An image"),
        (11, "One"),
        (11, "Tip"),
        (11, "Two Name"),
        (12, "def  f():"),
        (13, "a line"),
        (14, "Send"),
        (14, "Type here"),
        (15, "Text & <more>"),
    ]
    assert untouched(file).decode() == PAGE


def test_what_is_filled_in_stands_in_its_place(tmp_path: Path) -> None:
    file = page(tmp_path, PAGE)
    data = echoed(file).decode()
    assert "<p>First <b>bold</b> é and\n   <img src=a.png alt='An image'> more.<br>Next" in data
    assert '<input type=submit value="Send">' in data
    assert "<textarea>Text &amp; &lt;more&gt;</textarea>" in data
    again = [unit.source.plain for unit in units(page(tmp_path, data))]
    assert again == [unit.source.plain for unit in units(file)]


def test_codes_are_tags_and_tags_around_a_text_stay_outside(tmp_path: Path) -> None:
    content = "<p> <b><i>a</i> <u>b</u></b> <img src=x></p>"
    [unit] = units(page(tmp_path, content))
    codes = [(code.kind, code.markup, code.pair, code.form) for code in unit.source.codes]
    assert codes == [
        ("open", "<i>", "1", HTML),
        ("close", "</i>", "1", HTML),
        ("open", "<u>", "5", HTML),
        ("close", "</u>", "5", HTML),
    ]
    assert unit.source.full_text() == "<i>a</i> <u>b</u>"


def test_attributes_inside_a_text_go_into_its_tags(tmp_path: Path) -> None:
    content = "<p>a <img alt='x1'> b <img alt='x1'> <a title=t>c</a></p>"
    file = page(tmp_path, content)
    text = units(file)[0].source
    assert filled(file, text, "é'", None, "d d").decode() == (
        "<p>a <img alt='é&#39;'> b <img alt='x1'> <a title=\"d d\">c</a></p>"
    )
    assert filled(file, None, "é'", "f").decode() == (
        "<p>a <img alt='é&#39;'> b <img alt='f'> <a title=t>c</a></p>"
    )


def test_references_and_no_break_spaces(tmp_path: Path) -> None:
    file = page(tmp_path, "<p>a&nbsp;&lt;b&gt;</p><p>c</p>")
    assert units(file)[0].source.plain == "a\u00a0<b>"
    data = filled(file, "x\u00a0<y>", "z\u00a0& https://a.b/?c&d").decode()
    assert data == "<p>x&nbsp;&lt;y&gt;</p><p>z\u00a0&amp; https://a.b/?c&amp;d</p>"


def test_placeholders_and_foreign_codes_are_text(tmp_path: Path) -> None:
    file = page(tmp_path, "<p>{name} <span translate=no>A <b>B</b></span> and %s</p>")
    [unit] = units(file)
    covered = [(code.kind, code.markup, code.covers) for code in unit.source.codes]
    assert covered == [
        ("placeholder", "{name}", 6),
        ("placeholder", "<span translate=no>A <b>B</b></span>", 3),
        ("placeholder", "%s", 2),
    ]
    foreign = Text("a b", (Code(1, "standalone", "<ph/>", form="tmx", covers=1),))
    assert filled(file, foreign) == b"<p>a b</p>"


@pytest.mark.parametrize("charset", ["iso-8859-1", "windows-1252", "shift_jis"])
def test_other_charsets_get_references_for_what_they_lack(tmp_path: Path, charset: str) -> None:
    start = f'<meta charset="{charset}"><p>'
    file = page(tmp_path, start.encode() + "a".encode(charset))
    data = filled(file, "b Ж").decode(charset)
    assert data in (start + "b &#1046;", start + "b Ж")
    assert untouched(file) == (tmp_path / "a.html").read_bytes()


def test_kinds_are_told_by_name_or_beginning(tmp_path: Path) -> None:
    for name, content in [("a.htm", "text"), ("a.x", "\ufeff<!doctype HTML><p>a")]:
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert isinstance(open_translatable(tmp_path / name), HtmlFile)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "a.html: the file is empty"),
        (b"<p>\n<!-- a", "line 2: a comment that does not end"),
        (b"<p>\n\n<a href='x", "line 3: a tag that does not end"),
        (b"<p>\n<script>a", "line 2: <script> without </script>"),
        (b"<p>a\n\xff", "line 2: bytes that are not UTF-8"),
        (b"<meta charset=klingon>", "unknown charset 'klingon'"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, content: bytes, what: str) -> None:
    with pytest.raises(FormatError) as error:
        units(page(tmp_path, content))
    assert what in str(error.value)


def test_what_is_too_long_is_locked(tmp_path: Path) -> None:
    content = "<p>" + "<b>" * 1001 + "a" + "</b> b" * 1001 + "<p>" + "a " * 1001 + "<p>b"
    found = [unit.problem for unit in units(page(tmp_path, content))]
    assert found == ["more than 1,000 codes", "more than 1,000 tokens", ""]


@pytest.mark.parametrize(
    "content",
    [
        "<b>" * 100_000 + "a",
        "<b>" * 50_000 + "a" + "</b>" * 50_000,
        "<!--x-->" * 50_000 + "a" + "<br>" * 50_000,
        "<a b='" * 50_000 + "'>",
        "<" * 100_000,
        "< a" * 50_000,
        "<svg>" * 50_000,
        "&amp" * 100_000,
        "<a " + "b=c " * 50_000 + ">d",
    ],
    ids=range(9),
)
def test_hostile_pages_take_linear_time(tmp_path: Path, content: str) -> None:
    file = page(tmp_path, content)
    assert untouched(file).decode() == content


class _Texts(HTMLParser):
    """All texts of a page, by the standard library."""

    def __init__(self) -> None:
        super().__init__()
        self.found = list[str]()

    def handle_data(self, data: str) -> None:
        self.found.append(data)


PIECES = ["<p>", "</p>", "<b>", "</b>", "<br>", "<i title='t'>", "</i>", "a ", "b", "&lt;", "\n"]
PIECES += ["<img alt='x'>", "<!--c-->", "<pre>", "</pre>", "<li>", "<span translate=no>", "</span>"]


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=25), st.data())
def test_any_page_comes_back(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], data: st.DataObject
) -> None:
    tmp_path = tmp_path_factory.mktemp("html")
    content = "".join(pieces)
    file = page(tmp_path, content)
    before = units(file)
    assert untouched(file).decode() == content
    again = units(page(tmp_path, echoed(file)))
    assert [unit.source for unit in again] == [
        Text(unit.source.plain, unit.source.codes) for unit in before
    ]
    file = page(tmp_path, content)
    targets = [data.draw(st.sampled_from([None, "x y", unit.source])) for unit in before]
    changed = filled(file, *targets).decode()
    texts = _Texts()
    texts.feed(changed)
    assert "".join(texts.found).count("x y") <= sum(target == "x y" for target in targets)


def test_the_page_says_the_language_it_is_filled_in(tmp_path: Path) -> None:
    file = page(tmp_path, '<html xml:lang="en" lang=en><title>A</title><p lang="en">B</p></html>')
    file.tgt_lang = "fr"
    text = filled(file, "Un")
    assert b'<html xml:lang="fr" lang=fr>' in text and b'<p lang="en">' in text
    assert b"fr" not in untouched(file)


def test_a_charset_in_which_its_own_name_could_not_be_read_is_not_believed(tmp_path: Path) -> None:
    path, output = tmp_path / "page.html", tmp_path / "out.html"
    for name in ("cp037", "utf-16", "utf-32-be"):
        path.write_text(f'<?xml version="1.0" encoding="{name}"?><p>Où est-il ?</p>', "utf-8")
        file = HtmlFile(path)
        (unit,) = [unit for document in file.documents() for unit in document.units]
        assert unit.source.plain == "Où est-il ?"
        with output.open("wb") as out:
            file.write(out, [Filling(Text("Là-bas !"), "model")])
        assert "<p>Là-bas !</p>" in output.read_text("utf-8")
