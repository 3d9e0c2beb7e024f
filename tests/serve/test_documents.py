"""What the page needs beside translation: files read and filled, phrases found, sessions listed,
reviewed and written as TMX."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import Any

import pytest
from file_units import units
from places import TESTS
from serving import Server, tiny_server
from tiny_model import PAIRS

from tmnmt.files.opening import open_translatable
from tmnmt.files.texts import text_of
from tmnmt.formats.reader import read_memory
from tmnmt.serve.keys import Keys, new_key
from tmnmt.serve.service import Limits
from tmnmt.serve.tagged import Tags

FILES = sorted(path for path in (TESTS / "data" / "files").iterdir() if path.suffix != ".md")
PO = 'msgid ""\nmsgstr ""\n"Language: fr\\n"\n\nmsgid "Save <b>all</b> %s"\nmsgstr ""\n'


def post(server: Server, path: str, **body: Any) -> Any:
    reply = server.ask("POST", path, body)
    assert reply.status == 200, reply.body
    return reply.json


def coded(content: bytes | str) -> str:
    return base64.b64encode(content.encode() if isinstance(content, str) else content).decode()


def fill(server: Server, content: bytes | str, targets: list[str], name: str = "") -> bytes:
    body = {"name": name, "content": coded(content), "targets": targets}
    reply = server.ask("POST", "/v1/documents/fill", body)
    assert reply.status == 200, reply.body
    return reply.body


def said(server: Server, path: str, **body: Any) -> str:
    reply = server.ask("POST", path, body)
    assert 400 <= reply.status < 500, reply.body
    return str(reply.json["error"]["message"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_codes_of_a_file_are_short_tags_and_these_the_codes_again(path: Path) -> None:
    for unit in units(open_translatable(path)):
        tags = Tags(unit.source, unit.target)
        again = tags.read(tags.source)
        assert again.plain == unit.source.plain
        marks = [c.markup for c in unit.source.codes if c.kind != "blank"]
        assert [c.markup for c in again.codes if c.kind != "blank" and not is_words(c)] == [
            mark for mark, c in zip(marks, no_blanks(unit), strict=True) if not is_words(c)
        ]
        if unit.target is not None:
            assert tags.read(tags.target(unit.target)).plain == unit.target.plain


def no_blanks(unit: Any) -> list[Any]:
    return [code for code in unit.source.codes if code.kind != "blank"]


def is_words(code: Any) -> bool:
    return code.kind == "placeholder" and not code.form


def test_what_looks_like_a_tag_is_a_word_and_tags_may_move() -> None:
    text = text_of("A <b>file</b> &lt;g1> or <x>\nmore ")
    tags = Tags(text)
    assert tags.source == "A <tg1>file</tg1> &amp;lt;g1&gt; or &lt;x&gt; <tx3/>more"
    assert tags.read(tags.source).full_text() == text.full_text()
    assert tags.read("<tx3/>x <tg1>y</tg1> &lt;g1&gt;").full_text() == "\nx <b>y</b> <g1> "


def test_a_catalogue_is_read_and_filled(served: Server) -> None:
    sent = {"name": "../../etc/x.po", "content": coded(PO)}
    found = post(served, "/v1/documents/segments", **sent)
    (one,) = found["segments"]
    assert found["kind"] == "po" and one["source"] == "Save <g1>all</g1> %s"
    assert one["state"] == "new" and one["target"] is None
    done = fill(served, PO, ["<g1>Tout</g1> &amp; %s"], "x.po").decode()
    assert done == PO.replace('%s"\nmsgstr ""', '%s"\nmsgstr "<b>Tout</b> & %s"')
    assert fill(served, PO, [""], "x.po").decode() == PO
    wrong = {**sent, "targets": ["<g7>Tout</g7>"]}
    told = said(served, "/v1/documents/fill", **wrong)
    assert told == "segment 1: <g7> is no tag of this segment; its tags: <g1>, </g1>"
    assert "1 segment" in said(served, "/v1/documents/fill", **sent, targets=[])


def test_every_target_that_a_file_cannot_take_is_named(served: Server) -> None:
    units = "".join(
        f"<trans-unit id='{n}'><source>The <g id='1'>vessel</g>.</source></trans-unit>"
        for n in (1, 2, 3)
    )
    xliff = (
        "<xliff version='1.2' xmlns='urn:oasis:names:tc:xliff:document:1.2'><file original='a' "
        "source-language='en' target-language='fr' datatype='x-a'><body>"
        f"{units}</body></file></xliff>"
    )
    doubled = "Le <g1>navire</g1> <g1>apte</g1>."
    body = {"name": "a.xlf", "content": coded(xliff)}
    targets = [doubled, "Le <g1>navire</g1>.", "Le <g7>navire</g7>."]
    reply = served.ask("POST", "/v1/documents/fill", {**body, "targets": targets})
    assert reply.status == 400
    first, last = reply.json["refused"]
    assert (first["segment"], last["segment"]) == (1, 3)
    assert "is not in its source, or not so often" in first["reason"]
    template = "the code {code} is not in its source, or not so often"  # for other languages
    assert first["template"] == template and set(first["values"]) == {"code"}
    assert last["reason"] == "<g7> is no tag of this segment; its tags: <g1>, </g1>"
    told = f"segment 1: {first['reason']}; 1 other segment cannot be filled either"
    assert reply.json["error"]["message"] == told
    done = fill(served, xliff, ["", targets[1], ""], "a.xlf").decode()
    assert done.count("</target>") == 1 and "Le <g id='1'>navire</g>." in done


def test_lines_are_segments_and_the_others_stay(served: Server) -> None:
    text = "\ufeff  One <b> & two.\r\n\r\nThree.\n"
    found = post(served, "/v1/documents/segments", content=coded(text), name="a.txt")
    sources = [one["source"] for one in found["segments"]]
    assert found["kind"] == "text" and sources == ["One &lt;b&gt; &amp; two.", "Three."]
    done = fill(served, text, ["Un &lt;b&gt;.", ""]).decode()
    assert done == "\ufeff  Un <b>.\r\n\r\nThree.\n"
    assert found["sentences"] is False


def test_running_text_is_cut_into_sentences_unless_it_is_told_not_to_be(served: Server) -> None:
    text = "One is. Two are!\n\nThree. Four.\n"
    for given, sources in (
        ({}, ["One is.", "Two are!", "Three.", "Four."]),
        ({"sentences": True}, ["One is.", "Two are!", "Three.", "Four."]),
        ({"sentences": False}, ["One is. Two are!", "Three. Four."]),
    ):
        sent = {"content": coded(text), "name": "a.txt", **given}
        answer = post(served, "/v1/documents/segments", **sent)
        assert [one["source"] for one in answer["segments"]] == sources
        assert answer["sentences"] == (len(sources) == 4)
        filled = served.ask("POST", "/v1/documents/fill", {**sent, "targets": sources})
        assert filled.body.decode() == text
    page = {"content": coded("<p>One is. Two are!</p>"), "name": "a.html"}
    answer = post(served, "/v1/documents/segments", **page)
    assert [one["source"] for one in answer["segments"]] == ["One is.", "Two are!"]
    po = 'msgid ""\nmsgstr ""\n\nmsgid "One is. Two are!"\nmsgstr ""\n'
    answer = post(served, "/v1/documents/segments", content=coded(po), name="a.po")
    assert [one["source"] for one in answer["segments"]] == ["One is. Two are!"]
    assert answer["sentences"] is False


def test_a_message_that_lacks_a_plural_form_is_a_draft(served: Server) -> None:
    """It is no longer one when its other form comes, too."""
    plurals = '"Plural-Forms: nplurals=2; plural=(n > 1);\\n"\n'
    message = 'msgid "a"\nmsgid_plural "as"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    po = f'msgid ""\nmsgstr ""\n{plurals}\n{message}'
    half = fill(served, po, ["b", ""], "a.po").decode()
    assert half == po.replace('msgid "a"', '#, fuzzy\nmsgid "a"').replace('[0] ""', '[0] "b"')
    states = post(served, "/v1/documents/segments", content=coded(half), name="a.po")["segments"]
    assert [one["state"] for one in states] == ["draft", "new"]
    whole = fill(served, half, ["b", "bs"], "a.po").decode()
    assert whole == po.replace('[0] ""', '[0] "b"').replace('[1] ""', '[1] "bs"')


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"PK\x03\x04 a zip", "no plain text"),
        (b"\x1f\x8b\x08\x00", "packed"),
        (b"\xff\xfe\xff", "not UTF-16"),
        (b"<xliff version='1.2'><file", "the document"),
        (b'msgid ""\nmsgstr ""\n"Language: de\\n"\n\nmsgid "A"\nmsgstr ""\n', "language is de"),
        (b"", "empty"),
    ],
)
def test_what_cannot_be_read_is_told_without_a_path(
    served: Server, content: bytes, why: str
) -> None:
    name = "x.po" if content.startswith(b"msgid") else "x"
    told = said(served, "/v1/documents/segments", content=coded(content), name=name)
    assert why.lower() in told.lower() and tempfile.gettempdir() not in told
    assert "base64" in said(served, "/v1/documents/segments", content="§")


UNREAD = sorted((TESTS / "data" / "unread").iterdir())


@pytest.mark.parametrize("path", UNREAD, ids=lambda path: path.name)
def test_a_format_that_is_not_read_is_no_text_unless_the_request_says_so(
    served: Server, path: Path
) -> None:
    sent = {"name": path.name, "content": coded(path.read_bytes())}
    for more in ({}, {"sentences": True}):
        told = said(served, "/v1/documents/segments", **sent, **more)
        assert "the document: no plain text, but " in told and '"format": "text"' in told
    assert "no plain text" in said(served, "/v1/documents/fill", **sent, targets=[])
    found = post(served, "/v1/documents/segments", **sent, format="text", sentences=False)
    assert found["kind"] == "text"
    odd = {**sent, "name": f"a.{'x' * 30}~", "content": coded("One.\n")}
    assert "a format that is not read" in said(served, "/v1/documents/segments", **odd)


def test_each_tag_says_what_it_is_in_the_file(served: Server) -> None:
    page = f'<p>All is <b class="{"x" * 300}">void</b> on<br/>it.</p>'
    (one,) = post(served, "/v1/documents/segments", name="a.html", content=coded(page))["segments"]
    assert one["source"] == "All is <g1>void</g1> on <x3/>it."
    told = one["markup"]
    assert list(told) == ["<g1>", "</g1>", "<x3/>"]
    assert (told["</g1>"], told["<x3/>"]) == ("</b>", "<br/>")
    assert told["<g1>"] == ('<b class="' + "x" * 300)[:200]


def test_a_segment_that_is_nested_too_deep_is_locked_with_the_reason(served: Server) -> None:
    source = "<g id='1'>" * 500 + "One" + "</g>" * 500
    xliff = (
        "<xliff version='1.2' xmlns='urn:oasis:names:tc:xliff:document:1.2'><file original='a' "
        "source-language='en' target-language='fr'><body><trans-unit id='1'><source>"
        f"{source}</source></trans-unit><trans-unit id='2'><source>Two</source></trans-unit></body>"
        "</file></xliff>"
    )
    found = post(served, "/v1/documents/segments", name="a.xlf", content=coded(xliff))
    deep, plain = found["segments"]
    assert (deep["state"], plain["state"]) == ("locked", "new")
    assert deep["problem"] == "more than 100 elements inside one another in its text"
    done = fill(served, xliff, ["", "Deux"], "a.xlf").decode()
    assert f"<source>{source}</source></trans-unit>" in done and ">Deux</target>" in done


def test_a_document_may_be_larger_than_another_request(folder: Path) -> None:
    with tiny_server(folder, limits=Limits(body=1000)) as server:
        text = coded("A line of text.\n" * 200)
        assert len(post(server, "/v1/documents/segments", content=text)["segments"]) == 200
        told = said(server, "/v1/documents/segments", content=text * 4)
        assert "10,000 bytes" in told


def test_a_phrase_is_found_in_either_side(served: Server) -> None:
    path = "/v1/memories/law/concordance"
    (one,) = post(served, path, text="enter into force")["matches"]
    assert one["src"] == PAIRS[1][0] and one["places"] == [[22, 38]]
    found = post(served, path, text="états mem*", **{"in": "target"})
    assert len(found["matches"]) == 2 and found["in"] == "target"
    assert "no word" in said(served, path, text=" ")


def test_what_was_confirmed_is_reviewed_and_written_as_tmx(served: Server, tmp_path: Path) -> None:
    begun = post(served, "/v1/sessions", memories=["law"], write_to="", name="a <b>\nfile")
    path = f"/v1/sessions/{begun['id']}"
    pair = {"src": "The <g1>notice</g1> &amp; it.", "tgt": "L’<g1>avis</g1> &amp; lui."}
    told = {"suggested": "L’avis et lui.", "keys": 7}
    assert post(served, f"{path}/confirm", format="xml", **pair, **told)["confirmed"] == 1
    post(served, f"{path}/confirm", src="No.", tgt="Non.", suggested="Nom.")
    post(served, f"{path}/confirm", src="Two.", tgt="Deux.")
    post(served, f"{path}/undo")
    listed = served.get("/v1/sessions")["sessions"][0]
    assert (listed["id"], listed["name"], listed["confirmed"]) == (begun["id"], "a <b> file", 2)
    first, second = served.get(f"{path}/review")["segments"]
    assert (first["src"], first["tgt"]) == ("The notice & it.", "L’avis & lui.")
    assert (first["edits"], first["tokens"], first["typed"], first["counted"]) == (1, 6, 7, True)
    assert (second["edits"], second["typed"], second["counted"]) == (1, 2, False)
    memory = tmp_path / "done.tmx"
    memory.write_bytes(served.ask("GET", f"{path}/tmx").body)
    written = list(read_memory(memory, "en", "fr"))
    assert [(s.src, s.tgt, s.document) for s in written] == [
        ("The notice & it.", "L’avis & lui.", "a <b> file"),
        ("No.", "Non.", "a <b> file"),
    ]
    assert [code.kind for code in written[0].tgt_codes] == ["open", "close"]
    assert "no XML" in said(served, f"{path}/confirm", format="xml", src="<g1>a", tgt="b")
    assert "nothing" in said(served, f"{path}/confirm", format="xml", src="<x1/>", tgt="b")


def test_sessions_of_another_tenant_are_not_listed(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    keys = {name: new_key(file, name, "translate", name, ["law"]) for name in ("anna", "bert")}
    with tiny_server(folder, ("law=law",), keys=Keys.load(file)) as server:
        begun = server.ask("POST", "/v1/sessions", {}, key=keys["anna"]).json
        listed = {
            name: server.ask("GET", "/v1/sessions", key=keys[name]).json["sessions"]
            for name in keys
        }
        assert [one["id"] for one in listed["anna"]] == [begun["id"]] and listed["bert"] == []
        for tail in ("review", "tmx"):
            path = f"/v1/sessions/{begun['id']}/{tail}"
            assert server.ask("GET", path, key=keys["bert"]).status == 404
