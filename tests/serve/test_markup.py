"""Texts of requests taken apart and put together again."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmnmt.codes.record import Source, Text, join_parts, plain_of
from tmnmt.serve.http_error import Refused
from tmnmt.serve.markup import Form, markup


def texts(sources: list[Source]) -> list[Text]:
    return [source if isinstance(source, Text) else Text(source) for source in sources]


def same(text: str, form: Form, ignored: tuple[str, ...] = ()) -> str:
    """The text with its own segments as targets."""
    marked = markup(text, form, ignored)
    return marked.filled(texts([*marked.sources]))


def upper(text: Text) -> Text:
    """The words in capitals, the codes as they are."""
    return join_parts(part.upper() if isinstance(part, str) else part for part in text.parts())


def changed(text: str, form: Form, ignored: tuple[str, ...] = ()) -> str:
    marked = markup(text, form, ignored)
    return marked.filled([upper(one) for one in texts([*marked.sources])])


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" \n\r\t")))
def test_lines_come_back_as_they_were(text: str) -> None:
    assert same(text, "text") == text


def test_lines_are_segments_and_what_is_around_them_stays() -> None:
    text = "  One two.\r\n\n\tThree \n"
    assert [*markup(text, "text").sources] == ["One two.", "Three"]
    assert changed(text, "text") == "  ONE TWO.\r\n\n\tTHREE \n"


def test_a_line_does_not_end_within_messages() -> None:
    text = "The {n, plural,\n one {it}\n other {they}} is.\n\nHere {n,\nplural}"
    marked = markup(text, "text")
    assert [*marked.sources] == [
        "The {n, plural,\n one {it}\n other {they}} is.",
        "Here {n,",
        "plural}",
    ]
    assert marked.filled([Text("A"), Text("B"), Text("C")]) == "A\n\nB\nC"


SHORT = st.sampled_from(["<g1>", "</g1>", "<x22/>", "<b>", "a", "&", "<", " ", "\n", "é"])


@given(st.lists(SHORT, max_size=12).map("".join))
def test_lines_with_short_tags_come_back_as_they_were(text: str) -> None:
    assert same(text, "tagged") == text


def test_short_tags_are_codes_whether_they_are_pairs_or_not() -> None:
    text = "Go <g1>there</g1> & <b>stop</b><x2/>.\n<x3/>\nthe end</g4>"
    lines = texts([*markup(text, "tagged").sources])
    assert [line.plain for line in lines] == ["Go there & <b>stop</b>.", "the end"]
    assert changed(text, "tagged") == "GO <g1>THERE</g1> & <B>STOP</B><x2/>.\n<x3/>\nTHE END</g4>"
    assert [code.kind for code in lines[0].codes] == ["open", "close", "standalone"]
    assert [code.kind for code in lines[1].codes] == ["standalone"]


TREES: st.SearchStrategy[str] = st.recursive(
    st.text("ab &<>é", max_size=6).map(
        lambda text: text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    )
    | st.sampled_from(['<x id="1"/>', "<!-- - -->", "<b></b>", "<?p i?>"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(
            lambda parts: f"""<g a="1 &gt; 0" b='"'>{"".join(parts)}</g>"""
        )
        | st.lists(inner, max_size=3).map("".join)
    ),
    max_leaves=8,
)


@given(TREES)
def test_xml_comes_back_as_it_was(text: str) -> None:
    assert same(text, "xml") == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Go <x id="0"></x> to <b>town</b>.', 'GO <x id="0"></x> TO <b>TOWN</b>.'),
        ("a<br/>b &amp; c", "A<br/>B &amp; C"),
        ("<p>one</p>", "<p>ONE</p>"),
        ("<title>a &lt; b</title>", "<title>A &lt; B</title>"),
    ],
)
def test_tags_of_xml_stay(text: str, expected: str) -> None:
    assert changed(text, "xml") == expected


def test_elements_that_are_ignored_stay_as_they_are() -> None:
    text = "Press <k>the <b>key</b></k> now, <k/> <k>a&amp;b</k>."
    assert changed(text, "xml", ("k",)) == "PRESS <k>the <b>key</b></k> NOW, <k/> <k>a&amp;b</k>."
    assert not markup("<k>key</k> <b/>", "xml", ("k",)).sources
    assert "key" in plain_of(markup(text, "xml", ("k",)).sources[0])


@pytest.mark.parametrize(
    "text", ["a < b", "<b>a", "a</b>", "<b><i>a</b></i>", "<k>a", "<k><k></k>", "<a b=c>d</a>"]
)
def test_what_is_no_xml_is_refused(text: str) -> None:
    with pytest.raises(Refused) as refused:
        markup(text, "xml", ("k",))
    assert refused.value.status == 400


def test_tags_are_read_in_linear_time() -> None:
    """A search to the end of the text from every one of these would take half a minute."""
    for text in ("<k>" + "<!--" * 60_000, "<k>" + "<?" * 100_000, "<a " + "b='c' " * 40_000):
        start = time.process_time()
        with pytest.raises(Refused):
            markup(text, "xml", ("k",))
        assert time.process_time() - start < 5


def test_html_keeps_its_tags_and_its_code() -> None:
    text = "<p>One <b>two</b>.</p>\n<script>if (a < b) {}</script><p class=notranslate>no</p>three"
    assert same(text, "html") == text
    assert changed(text, "html") == text.replace("One <b>two", "ONE <b>TWO").replace(
        "three", "THREE"
    )


@pytest.mark.parametrize("make", [lambda: markup("a <b", "html"), lambda: markup("<!--", "html")])
def test_what_is_no_html_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(Refused) as refused:
        make()
    assert refused.value.status == 400 and "line" not in refused.value.message


@given(st.text("<>/!-ab= \"'&;\n", max_size=30), st.sampled_from(["html", "xml"]))
def test_anything_is_read_or_refused(text: str, form: Form) -> None:
    try:
        markup(text, form)
    except Refused as refused:
        assert refused.status in (400, 413)
