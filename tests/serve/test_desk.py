"""The page of the server in a real browser: a document from its opening to the saved file, by keys
alone, for everybody, and whatever stands in its texts."""

from __future__ import annotations

import base64
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe import axe, violations
from browser import Browser
from chip_signs import signs
from desk_page import STATES, DeskPage
from places import ROOT
from serving import Server, serving, tiny_server
from tiny_model import PAIRS

from tmnmt.serve.keys import Keys, new_key
from tmnmt.serve.page import PAGE
from tmnmt.serve.running import service_of

HOSTILE = "</script><img src=x onerror='alert(1)'><b>It</b> & \"${1}\" shall &lt;apply."
FRAME = 0.05  # seconds of the processor's time that a task of the page may need


class Desk(DeskPage):
    """The page in Chromium, before anybody has worked there."""

    browser: Browser

    def __init__(self, browser: Browser, server: Server) -> None:
        browser.send("Emulation.setEmulatedMedia", features=[])
        everything = {"origin": server.url, "storageTypes": "indexeddb,local_storage"}
        browser.send("Storage.clearDataForOrigin", **everything)
        for document in server.get("/v1/desk")["documents"]:
            assert server.ask("DELETE", f"/v1/desk/{document['id']}").status == 204
        super().__init__(browser, server)

    def confirm(self, despite: bool = False) -> None:
        """despite: once more, where the checks find something in it."""
        self.press("Enter", "Control")
        if despite:
            self.until("!document.getElementById('found-wrong').hidden")
            self.press("Enter", "Control")

    def choose(self, path: Path) -> None:
        self.begin(path)
        self.until_suggested(1)

    def begin(self, *paths: Path) -> None:
        found = self.browser.send("Runtime.evaluate", expression="document.getElementById('file')")
        to = found["result"]["objectId"]
        self.browser.send("DOM.setFileInputFiles", files=[*map(str, paths)], objectId=to)
        self.run("document.getElementById('go').click()")


@pytest.fixture
def desk(browser: Browser, served: Server) -> Iterator[Desk]:
    made = Desk(browser, served)
    yield made
    # of what the page asks about, or is told of; and of a page that is left before a key is pressed
    expected = ("status of 404", "status of 409", "'beforeunload' confirmation panel")
    assert [one for one in browser.problems if not any(map(one.count, expected))] == []


def test_a_document_is_translated_and_each_segment_knows_what_was_confirmed(
    desk: Desk,
) -> None:
    desk.run("document.getElementById('repeat').checked = false")
    desk.paste(f"All is void.\n\n{PAIRS[0][0]}\nAll is void.\n")
    assert desk.texts(".row .source") == ["All is void.", PAIRS[0][0], "All is void."]
    suggested = desk.text("#offer")
    assert desk.text("#ghost .rest") == suggested and desk.field == ""
    desk.type("Tout est nul.")
    assert desk.text("#ghost .rest").strip("\u200b") == ""
    desk.press("Enter", "Control")
    desk.until_suggested(2)
    assert desk.text("#offer") == PAIRS[0][1]
    assert "exact match" in desk.text("#origin")
    assert set(desk.texts("#offer .word.memory")) == set(PAIRS[0][1].split())
    desk.press("Enter", "Control")  # in an empty field the suggestion is confirmed
    desk.until_suggested(3)
    assert desk.texts("#offer .word.cache") == ["Tout", "est", "nul."]
    assert desk.text(".match .head b.cache").strip() == "100 %"
    assert "confirmed here" in desk.text(".match .head")
    assert desk.text("#count") == "2 of 3"
    assert desk.texts(".row .target")[:2] == ["Tout est nul.", PAIRS[0][1]]
    review = desk.server.get(f"/v1/sessions/{desk.session}/review")["segments"]
    first, second = review
    assert (first["suggested"], first["tgt"], first["typed"]) == (suggested, "Tout est nul.", 13)
    assert (second["edits"], second["typed"], second["counted"]) == (0, 0, True)


NEVER = """(() => {
  const ask = window.fetch;
  const never = new Promise(() => {});
  window.fetch = (path, given) => (path.endsWith("v1/complete") ? never : ask(path, given));
})()"""


def test_what_was_confirmed_is_taken_back_and_what_was_typed_undone(desk: Desk) -> None:
    desk.run("document.getElementById('repeat').checked = false")
    desk.paste("All is void.\nAll is void.")
    desk.run(NEVER)  # the suggestion stays the first one
    suggested = desk.text("#offer")
    desk.type("Nul.")
    desk.press("Enter", "Control")
    desk.until_suggested(2)
    assert desk.text("#offer") == "Nul."
    desk.press("Enter", "Control", "Shift")
    desk.until_suggested(1)
    assert desk.field == "Nul." and desk.text("#offer") == suggested
    assert desk.server.get(f"/v1/sessions/{desk.session}")["confirmed"] == 0
    assert desk.text("#count") == "0 of 2" and desk.texts(".row .target") == ["Nul.", ""]
    desk.press("Enter", "Alt")
    assert desk.field == suggested
    desk.press("z", "Control")
    assert desk.field == "Nul."


def test_keys_alone_are_enough(desk: Desk) -> None:
    desk.run("document.getElementById('pasted').focus()")
    desk.type("It shall apply from 3 May 1997.\nAll is void.\nNo.")
    desk.run("document.getElementById('sentences').focus()")
    desk.press("Tab")
    assert desk.focused() == "go"
    desk.press("Enter")
    desk.until_suggested(1)
    words = desk.text("#offer").split()
    assert len(words) > 2 and desk.focused() == "target"
    desk.press("Tab")
    at = next(at for at, word in enumerate(words) if at and len(word) > 1)
    desk.type(" ".join(["", *words[1:at], words[at][:1]]))
    desk.press("Tab")
    assert desk.field == " ".join(words[: at + 1])
    desk.press("Escape")
    desk.press("Tab")  # is not caught in the field
    assert desk.focused() == "confirm"
    desk.press("Tab", "Shift")
    desk.press("Tab", "Shift")
    assert "word" in desk.focused()
    desk.press("End")
    assert desk.text("#origin").startswith(words[-1])
    desk.press("Enter")
    assert desk.field == " ".join(words) and desk.focused() == "target"
    desk.press("ArrowDown", "Alt")
    desk.until_suggested(2)
    desk.press("ArrowUp", "Alt")
    desk.until_suggested(1)
    assert desk.field == " ".join(words)  # as it was left
    desk.run("document.getElementById('target').value = ''")
    desk.press("1", "Control")
    assert desk.field == desk.run("document.querySelector('.match .read').textContent")
    desk.press("k", "Control")
    assert desk.focused() == "phrase"
    desk.type("enter into force")
    desk.press("Enter")
    desk.until("document.querySelector('#found mark')")
    assert set(desk.texts("#found mark")) == {"enter into force"}  # in one memory, or in both
    desk.press("Escape")
    assert desk.focused() == "target"
    desk.confirm(despite=True)
    desk.until_suggested(2)


def test_the_end_is_told_and_any_segment_reached(desk: Desk) -> None:
    desk.paste("\n".join(f"All is void {at}." for at in range(1, 6)))
    desk.press("g", "Control")
    desk.type("4")
    desk.press("Enter")
    desk.until_suggested(4)
    assert desk.focused() == "target"
    for at in (4, 5, 1, 2, 3):
        desk.until_suggested(at)
        desk.press("Enter", "Control")
    desk.until("document.activeElement.id === 'save'")
    assert desk.text("#said") == "All segments are translated. Save the file."
    desk.press("ArrowUp", "Alt")
    desk.until_suggested(5)


def test_what_to_look_at_stands_below_a_suggestion(desk: Desk) -> None:
    desk.paste("It shall apply from 3 May 1997.")
    checks = [{"name": "repeated", "what": "de la vie"}, {"name": "terms", "what": "a for b"}]
    answer = {"matches": [], "tokens": [], "origin": "model", "low": False}
    segment = answer | {"missing_numbers": ["44", "1997"], "checks": checks}
    told = json.dumps(
        {"translations": [{"text": "Il de la vie de la vie.", "segments": [segment]}]}
    )
    desk.run(
        "(ask => { window.fetch = (path, given) => path.endsWith('/translate')"
        f" ? Promise.resolve(new Response({json.dumps(told)})) : ask(path, given); }})(fetch)"
    )
    desk.press("g", "Control")
    desk.type("1")
    desk.press("Enter")
    desk.until("document.querySelectorAll('#checks li').length === 3")
    wanted = ["missing number: 44, 1997", "said twice: de la vie", "missing term: a for b"]
    assert desk.texts("#checks li") == wanted


def test_a_term_that_is_added_is_in_the_suggestion_at_once(desk: Desk) -> None:
    desk.run("for (const one of document.querySelectorAll('#memories input')) one.checked = false")
    desk.paste(PAIRS[0][0])
    assert desk.text("#offer") == PAIRS[0][1]
    desk.type("La")
    desk.run(
        "document.getElementById('term-source').value = 'Commission';"
        "document.getElementById('term-target').value = 'Directive';"
        "document.getElementById('add-term').requestSubmit()"
    )
    desk.until("document.getElementById('offer').textContent.includes('Directive')")
    assert desk.field == "La"


def test_texts_and_names_stay_texts(desk: Desk, tmp_path: Path) -> None:
    pair = {"src": HOSTILE, "tgt": f"{HOSTILE} fr", "document": "<img src=x onerror=alert(1)>"}
    ids = desk.server.ask("POST", "/v1/memories/own/segments", {"segments": [pair]})
    assert ids.status == 200
    file = tmp_path / "<img src=x onerror=alert(1)>.txt"
    file.write_text(f"{HOSTILE}\n{HOSTILE} Not.\n", encoding="utf-8")
    desk.choose(file)
    assert desk.texts(".row .source") == [HOSTILE, f"{HOSTILE} Not."]
    assert desk.text("#name") == file.name and desk.text("#source") == HOSTILE
    assert desk.text("#offer") == pair["tgt"] and desk.text(".match .read") == pair["tgt"]
    assert desk.text(".match .head .quiet").startswith(f"own · {pair['document']} · 2")
    desk.confirm(despite=True)  # the pair ends otherwise than the text
    desk.until_suggested(2)
    desk.press("k", "Control")
    desk.type("onerror")
    desk.press("Enter")
    desk.until("document.querySelector('#found mark')")
    assert desk.text("#found .tgt") == pair["tgt"]
    assert (
        desk.run("document.querySelectorAll('img, main script, main b:not(.head b)').length") == 0
    )
    (one,) = desk.server.get(f"/v1/sessions/{desk.session}/review")["segments"]
    assert (one["src"], one["tgt"]) == (HOSTILE, pair["tgt"])
    desk.browser.open(f"{desk.server.url}/review#{desk.session}")
    desk.until("document.querySelector('svg')")
    present = "[data-number='1'] .compared > div:last-child .text"
    assert file.name in desk.text("#session") and desk.text(present) == pair["tgt"]
    assert desk.run("document.querySelectorAll('img, main script').length") == 0


def test_a_review_shows_no_more_than_all_words_changed(desk: Desk) -> None:
    desk.paste("It shall apply from 3 May 1997.")
    desk.type("X")
    desk.confirm(despite=True)
    desk.until("document.querySelector('#count').textContent === '1 of 1'")
    (one,) = desk.server.get(f"/v1/sessions/{desk.session}/review")["segments"]
    assert one["edits"] > one["tokens"]
    desk.browser.open(f"{desk.server.url}/review#{desk.session}")
    desk.until("document.querySelector('#rate svg')")
    heights = [float(text.split()[0]) for text in desk.texts("#rate text[text-anchor=end]")[:-1]]
    assert max(heights) == 100


def test_a_file_comes_back_with_what_was_confirmed(desk: Desk, tmp_path: Path) -> None:
    po = (
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
        'msgid "All is <b>void</b> & %s."\nmsgstr ""\n\nmsgid "All is void."\nmsgstr ""\n\n'
        'msgid "Yes."\nmsgstr "Oui."\n'
    )
    (tmp_path / "a.po").write_text(po, encoding="utf-8")
    (tmp_path / "out").mkdir()
    desk.choose(tmp_path / "a.po")
    assert desk.text("#source") == "All is <g1>void</g1> & %s." and desk.text("#count") == "1 of 3"
    desk.type("Tout est <g1>nul</g1> & %s.")
    desk.press("Enter", "Control")
    desk.until_suggested(2)
    to = str(tmp_path / "out")
    desk.browser.send("Page.setDownloadBehavior", behavior="allow", downloadPath=to)
    desk.press("s", "Control")
    expected = po.replace('%s."\nmsgstr ""', '%s."\nmsgstr "Tout est <b>nul</b> & %s."')
    assert downloaded(tmp_path / "out" / "a.po") == expected
    desk.run("document.getElementById('tmx').click()")
    memory = downloaded(tmp_path / "out" / "a.po.en-fr.tmx")
    assert "<tmx" in memory and "Tout est" in memory and "a.po" in memory


def test_the_translations_of_a_file_are_known_to_its_other_segments(
    desk: Desk, tmp_path: Path
) -> None:
    po = (
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
        'msgctxt "a"\nmsgid "The fee schedule."\nmsgstr ""\n\n'
        'msgctxt "b"\nmsgid "The fee schedule."\nmsgstr "Le barème."\n\n'
        '#, fuzzy\nmsgctxt "c"\nmsgid "A draft."\nmsgstr "Un brouillon."\n\n'
        'msgctxt "d"\nmsgid "A draft."\nmsgstr ""\n'
    )
    (tmp_path / "a.po").write_text(po, encoding="utf-8")
    desk.choose(tmp_path / "a.po")
    assert desk.text("#offer") == "Le barème." and "exact match" in desk.text("#origin")
    assert "a.po" in desk.text(".match .head")
    assert desk.server.get(f"/v1/sessions/{desk.session}/confirmed") == {"pairs": []}
    desk.press("Enter", "Control")
    desk.until_suggested(3)
    assert desk.text("#offer") != "Un brouillon."


def test_tags_that_the_segment_does_not_have_so_often_are_refused_for_good(
    desk: Desk, tmp_path: Path
) -> None:
    po = 'msgid ""\nmsgstr ""\n\nmsgid "All is <b>void</b>."\nmsgstr ""\n'
    (tmp_path / "a.po").write_text(po, encoding="utf-8")
    desk.choose(tmp_path / "a.po")
    for typed, reason in (
        (
            "Tout <g1>est</g1> <g7>nul</g7>.",
            "<g7> is no tag of this segment; its tags: <g1>, </g1>.",
        ),
        ("Tout <g1>est</g1> <g1>nul</g1>.", "<g1> comes more often (2)"),
    ):
        desk.run("document.getElementById('target').select()")
        desk.type(typed)
        for _ in range(2):  # a second press does not change it
            desk.confirm()
            desk.until(
                f"document.getElementById('problem').textContent.includes({json.dumps(reason)})"
            )
            assert desk.text("#count") == "0 of 1"
            assert desk.field == signs(typed, "<g1>", "</g1>")
            desk.run("document.querySelector('#problem button').click()")
        desk.browser.problems.clear()  # Chrome tells every 400
    assert desk.server.get(f"/v1/sessions/{desk.session}")["confirmed"] == 0
    desk.run("document.getElementById('target').select()")
    desk.type("Tout <stdio.h> < <g1>nul</g1>.")
    desk.confirm()
    desk.until("document.querySelector('#count').textContent === '1 of 1'")


def test_a_segment_that_the_file_cannot_take_stays_and_the_others_are_saved(
    desk: Desk, tmp_path: Path
) -> None:
    po = (
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=ISO-8859-1\\n"\n\n'
        'msgid "All is void."\nmsgstr ""\n\nmsgid "All is not void."\nmsgstr ""\n'
    )
    (tmp_path / "a.po").write_text(po, encoding="latin-1")
    (tmp_path / "out").mkdir()
    desk.choose(tmp_path / "a.po")
    desk.type("Tout est ŋul.")
    desk.confirm()
    desk.until_suggested(2)
    desk.type("Rien n'est nul.")
    desk.confirm()
    desk.until("document.querySelector('#count').textContent === '2 of 2'")
    to = str(tmp_path / "out")
    desk.browser.send("Page.setDownloadBehavior", behavior="allow", downloadPath=to)
    desk.press("s", "Control")
    expected = po.replace('not void."\nmsgstr ""', 'not void."\nmsgstr "Rien n\'est nul."')
    assert downloaded(tmp_path / "out" / "a.po") == expected
    told = desk.text("#problem")
    assert "segment 1: ISO8859-1 lacks" in told and "segment 2" not in told
    desk.browser.problems.clear()  # Chrome tells every 400


def test_context_plural_form_and_notes_of_a_message_are_shown(desk: Desk, tmp_path: Path) -> None:
    po = (
        'msgid ""\nmsgstr ""\n"Plural-Forms: nplurals=2; plural=(n > 1);\\n"\n\n'
        '#. for programmers\nmsgctxt "menu"\nmsgid "void"\nmsgid_plural "voids"\n'
        'msgstr[0] ""\nmsgstr[1] ""\n'
    )
    (tmp_path / "a.po").write_text(po, encoding="utf-8")
    desk.choose(tmp_path / "a.po")
    told = dict(zip(desk.texts("#facts dt"), desk.texts("#facts dd"), strict=True))
    assert (told["Context"], told["Note"]) == ("menu", "for programmers")
    assert told["Plural form"] == "1 of 2, for 0, 1" and told["Behind it"] == "voids"
    desk.press("ArrowDown", "Alt")
    desk.until_suggested(2)
    assert "2 of 2, for 2, 3, 4, 5, 6, …" in desk.text("#facts")


def test_a_file_is_plain_text_only_where_a_person_says_so(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "a.adoc"
    path.write_text("All is void.\n", encoding="utf-8")
    (tmp_path / "out").mkdir()
    desk.begin(path)
    desk.until("document.body.innerText.includes('a.adoc: no plain text, but AsciiDoc')")
    told = desk.text("#problem span")
    assert told.endswith("is given with the box “Read the file as plain text” ticked")
    assert desk.text("label:has(#plain)").strip().startswith("Read the file as plain text")
    desk.browser.problems.clear()  # Chrome tells every 400
    desk.run("document.getElementById('plain').click()")
    desk.choose(path)
    desk.type("Tout est nul.")
    desk.press("Enter", "Control")
    desk.until("document.querySelector('#count').textContent === '1 of 1'")
    to = str(tmp_path / "out")
    desk.browser.send("Page.setDownloadBehavior", behavior="allow", downloadPath=to)
    desk.press("s", "Control")
    assert downloaded(tmp_path / "out" / "a.fr.adoc") == "Tout est nul.\n"


def downloaded(path: Path) -> str:
    while not path.exists():
        time.sleep(0.02)
    return path.read_text(encoding="utf-8")


def test_the_model_goes_on_from_what_is_written(desk: Desk) -> None:
    desk.paste("It shall apply from 3 May 1997.")
    suggested = desk.text("#offer")
    desk.type("Les ")
    assert not suggested.startswith("Les ")
    desk.until("document.getElementById('offer').textContent.startsWith('Les ')")
    offered = desk.text("#offer")
    assert desk.text("#ghost .rest") == offered.removeprefix("Les ") != ""
    desk.press("Tab")
    assert desk.field == " ".join(offered.split()[:2])
    desk.press("Escape")
    desk.confirm(despite=True)
    desk.until("document.querySelector('#count').textContent === '1 of 1'")
    (one,) = desk.server.get(f"/v1/sessions/{desk.session}/review")["segments"]
    assert one["suggested"] == suggested and one["tgt"] == " ".join(offered.split()[:2])


HELD = """(() => {
  const ask = window.fetch;
  window.asked = [];
  window.fetch = (path, given) => {
    const body = JSON.parse(given.body ?? "{}");
    if (!path.endsWith("v1/complete")) return ask(path, given);
    window.asked.push(body.whole ?? true);
    return body.whole === false ? ask(path, given)
      : new Promise((done) => { window.go = () => done(ask(path, given)); });
  };
})()"""


def test_the_next_words_come_before_the_rest(desk: Desk) -> None:
    desk.paste("It shall apply from 3 May 1997.")
    before = desk.text("#offer")
    desk.run(HELD)
    desk.type("Les ")
    desk.until("document.querySelector('#ghost .rest').textContent.length > 1")
    desk.until("window.asked.includes(true)")
    assert desk.run("window.asked[0]") is False and desk.text("#offer") == before
    words = desk.text("#ghost .rest").split()
    for _ in range(len(words) + 2):  # more than there are: Tab does not leave the field
        desk.press("Tab")
    assert desk.focused() == "target" and desk.field.startswith("Les " + " ".join(words))
    desk.until("window.asked.filter((one) => one).length > 1")
    desk.run("window.go()")
    desk.until("document.getElementById('offer').textContent.startsWith('Les ')")
    assert desk.text("#offer").startswith(desk.field)


def test_the_model_goes_on_in_a_segment_with_tags(desk: Desk, tmp_path: Path) -> None:
    po = 'msgid ""\nmsgstr ""\n\nmsgid "It shall <b>apply</b> from 3 May."\nmsgstr ""\n'
    (tmp_path / "a.po").write_text(po, encoding="utf-8")
    desk.choose(tmp_path / "a.po")
    desk.type("Les <g1")  # no end of it: nothing is asked for
    desk.type(">")
    desk.until("document.getElementById('offer').textContent.startsWith('Les <g1>')")
    offered = desk.text("#offer")
    assert desk.text("#ghost .rest") == signs(offered, "<g1>", "</g1>").removeprefix(desk.field)
    assert offered.count("<g1>") == offered.count("</g1>") == 1
    desk.press("Enter", "Alt")
    desk.confirm(despite=True)
    desk.until("document.querySelector('#count').textContent === '1 of 1'")


def test_tags_that_were_typed_stand_once(desk: Desk) -> None:
    tags = ["<g1>", "</g1>", "<x2/>"]
    cases = [
        ("A ", "<g1>A</g1> b &amp; c<x2/>.", "A <g1></g1>b & c<x2/>."),
        ("A <g1>b", "A b <g1>c</g1> d<x2/>", "A <g1>b c</g1> d<x2/>"),
        ("A<x2/> & ", "A &amp; <g1>c</g1>", "A<x2/> & <g1>c</g1>"),
        ("", "a <g1>b</g1>", "a <g1>b</g1>"),
        ("a <g1>b</g1>", "a <g1>b</g1>", "a <g1>b</g1>"),
    ]
    told = json.dumps([case[:2] for case in cases])
    found = desk.run(
        "import('/page/texts.js').then((t) => "
        f"{told}.map(([typed, xml]) => t.continued(typed, xml, {tags})))"
    )
    assert found == [case[2] for case in cases]


def test_a_wrong_tag_is_told_and_nothing_is_lost(desk: Desk) -> None:
    desk.paste("All is void.")
    desk.run("fetch = () => Promise.reject(new TypeError('gone'))")
    desk.type("Tout <g9>.")
    desk.press("Enter", "Control")
    desk.until("document.getElementById('problem').textContent")
    assert "does not answer" in desk.text("#problem") and desk.field == "Tout <g9>."
    assert desk.text("#count") == "0 of 1"


def test_a_server_that_is_away_is_told_once_and_works_again_by_itself(desk: Desk) -> None:
    desk.paste("All is void.\nIt shall apply.")
    desk.run("window.there = fetch; fetch = () => Promise.reject(new TypeError('gone'))")
    desk.press("ArrowDown", "Alt")
    desk.until("document.querySelector('.active .number').textContent === '2'")
    desk.press("s", "Control")
    desk.type("Il")
    desk.until("document.querySelector('.problem')")
    assert [told[:27] for told in desk.texts(".problem")] == ["The server does not answer."]
    assert not desk.run("document.querySelector('#offer .word')")
    desk.run("fetch = there")
    desk.until("!document.querySelector('.problem') && document.querySelector('#offer .word')")
    assert desk.field == "Il"


def test_a_document_that_was_deleted_says_so_and_leads_to_the_others(desk: Desk) -> None:
    desk.paste("All is void.")
    assert desk.server.ask("DELETE", f"/v1/desk/{desk.id}").status == 204
    desk.type("Nul.")
    desk.until(
        "document.querySelector('.problem')?.textContent.includes('no longer on the server')"
    )
    desk.press("ArrowUp", "Alt")
    assert len(desk.texts(".problem")) == 1 and desk.field == "Nul."
    desk.browser.open(f"{desk.server.url}/d/{desk.id}")
    desk.until("document.querySelector('.problem')")
    assert "There is no document at this address" in desk.text(".problem")
    assert desk.run("document.getElementById('home').checkVisibility()")


def test_it_fits_a_telephone_and_every_reader(desk: Desk) -> None:
    script = axe()
    narrow = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    desk.browser.send("Emulation.setDeviceMetricsOverride", **narrow)

    def look(where: str) -> None:
        wide = desk.run("document.documentElement.scrollWidth")
        assert wide <= 360, f"{where} is {wide} pixels wide"
        for scheme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": scheme}
            desk.browser.send("Emulation.setEmulatedMedia", features=[feature])
            assert violations(desk.browser, script) == [], f"{where}, {scheme}"
        colour = "[...getComputedStyle(document.body).backgroundColor.matchAll(/\\d+/g)]"
        assert max(desk.run(f"{colour}.map(Number)")) < 60

    look("the beginning")
    desk.paste(f"All is void.\n{PAIRS[0][0]} {'Donaudampfschiff' * 9}\n{PAIRS[3][0]}\nOn 3 May.")
    desk.type("Tout est nul.")
    desk.press("Enter", "Control")
    desk.until_suggested(2)
    assert desk.run("document.querySelectorAll('.match').length")
    look("a segment")
    for button, dialog in (("find", "finder"), ("keys", "help")):
        desk.run(f"document.getElementById('{button}').click()")
        if dialog == "finder":
            desk.type("Commission")
            desk.press("Enter")
            desk.until("document.querySelector('#found mark')")
        look(dialog)
        desk.run(f"document.getElementById('{dialog}').close()")
    desk.press("g", "Control")
    look("going to a segment")
    desk.type("4")
    desk.press("Enter")
    desk.until_suggested(4)
    desk.type("Rien.")
    desk.press("Enter", "Control")
    desk.until("document.querySelector('#problem button')")
    look("what the checks have found")
    session = desk.session
    desk.browser.open(f"{desk.server.url}/review#{session}")
    desk.until("document.querySelector('svg')")
    look("the review")


def test_five_thousand_segments_stay_fluid(desk: Desk) -> None:
    """Of the processor's time: what else the machine does counts for nothing."""
    desk.paste("\n".join(f"Article {n} of that Directive is void. " * 3 for n in range(5000)))
    address = f"{desk.server.url}/d/{desk.id}"
    tasks = dict[str, float]()

    def note(name: str) -> None:
        tasks[name] = desk.browser.longest_task()

    desk.browser.start_trace()
    desk.browser.open(address)
    desk.until("document.querySelectorAll('.row').length === 5000")
    desk.until_suggested(1)
    note("opening")
    frame = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
    desk.browser.start_trace()
    for place in (*range(900, 18_000, 900), 200_000, 0):
        desk.run(f"scrollTo(0, {place}); {frame}")
    note("scrolling")
    desk.browser.start_trace()
    for _ in range(10):
        desk.press("ArrowDown", "Alt")
        desk.run(frame)
    desk.until_suggested(11)
    desk.press("g", "Control")
    desk.type("4900")
    desk.press("Enter")
    desk.until_suggested(4900)
    note("going on")
    desk.browser.start_trace()
    for number in (4901, 4902):
        desk.type("L'article.")
        desk.confirm(despite=True)
        desk.until_suggested(number)
    note("confirming")
    assert max(tasks.values()) < FRAME, tasks


def listed(desk: Desk) -> list[str]:
    """The documents that the start page offers to go on with."""
    desk.open()
    return desk.texts("#document-list li > span")


def go_on(desk: Desk, number: int) -> None:
    """Opens the first document of the list, whose segment of that number is at work."""
    desk.browser.follow("document.querySelector('#document-list a').click()")
    desk.until_suggested(number)


def test_a_document_goes_on_where_it_was_left_by_its_address(desk: Desk, tmp_path: Path) -> None:
    desk.paste("All is void.\nIt shall apply.\nNo.")
    id, session = desk.id, desk.session
    desk.type("Nul.")
    desk.press("Enter", "Control")
    desk.until_suggested(2)
    desk.type("N'est")
    desk.until(NOTHING_KEPT)  # the server has it
    desk.browser.open(f"{desk.server.url}/d/{id}")  # as another browser does
    desk.until_suggested(2)
    assert desk.session == session and desk.field == "N'est" and desk.text("#count") == "1 of 3"
    assert listed(desk) == ["text.txt"]
    told = desk.text("#document-list small")
    assert told.startswith("3 of 7 words confirmed, 3 words in drafts, ")
    go_on(desk, 2)
    assert desk.id == id and desk.field == "N'est"
    desk.press("Enter", "Control", "Shift")  # takes back what was confirmed before
    desk.until_suggested(1)
    assert desk.field == "Nul." and desk.text("#count") == "0 of 3"
    desk.browser.follow("history.back()")
    assert desk.texts("#document-list a") == ["text.txt"]
    desk.browser.follow("history.forward()")
    desk.until_suggested(1)
    assert desk.id == id and desk.field == "Nul."
    desk.browser.follow("location.reload()")
    desk.until_suggested(1)
    assert desk.id == id and desk.field == "Nul."


def test_back_from_a_document_that_was_just_begun_leads_to_the_start_page(desk: Desk) -> None:
    desk.paste("All is void.")
    desk.browser.follow("history.back()")
    assert desk.texts("#document-list a") == ["text.txt"]
    assert desk.run("document.getElementById('list').hidden") is True


NOTHING_KEPT = "!Object.keys(localStorage).some((name) => name.startsWith('tmnmt '))"


def test_a_broken_line_loses_nothing_and_all_is_sent_later(desk: Desk) -> None:
    desk.paste("All is void.\nIt shall apply.")
    away = (
        "(() => { window.there = fetch; fetch = () => Promise.reject(new TypeError('gone')); })()"
    )
    desk.run(away)
    desk.type("Nul.")
    desk.press("ArrowDown", "Alt")
    desk.type("Il s'applique.")
    desk.until("document.getElementById('problem').textContent.includes('Nothing is lost')")
    id = desk.id
    segments = f"/v1/desk/{id}/segments"
    assert {one["text"] for one in desk.server.get(segments)["segments"]} == {None}
    desk.browser.open(f"{desk.server.url}/d/{id}")  # the tab was closed meanwhile
    desk.until(NOTHING_KEPT)
    texts = [one["text"] for one in desk.server.get(segments)["segments"]]
    assert texts == ["Nul.", "Il s'applique."] == desk.texts(".row .target")


def test_a_page_that_was_cut_off_goes_on_by_itself(desk: Desk) -> None:
    desk.paste("All is void.\nIt shall apply.")
    desk.run(
        "(() => { window.there = fetch; fetch = () => Promise.reject(new TypeError('gone')); })()"
    )
    desk.type("Nul.")
    desk.until("document.getElementById('problem').textContent.includes('Nothing is lost')")
    desk.run("(() => { fetch = window.there; })()")
    desk.until(NOTHING_KEPT)
    desk.until("!document.getElementById('problem').textContent.includes('Nothing is lost')")
    (first, _) = desk.server.get(f"/v1/desk/{desk.id}/segments")["segments"]
    assert first["text"] == "Nul."


def test_several_files_are_begun_at_once_in_a_project(desk: Desk, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.txt", "b.txt", "c.adoc")]
    for path in paths:
        path.write_text("All is void.\n", encoding="utf-8")
    desk.run("document.getElementById('project').value = 'Law'")
    desk.begin(*paths)
    desk.until("document.querySelectorAll('#document-list a').length === 2")
    assert desk.texts("#document-list h3") == ["Law 0 of 6 words confirmed"]
    assert sorted(desk.texts("#document-list a")) == ["a.txt", "b.txt"]
    assert "c.adoc: no plain text, but AsciiDoc" in desk.text("#problem")
    assert desk.text("#going") == "2 documents of 3 files can be translated now."
    assert desk.run("document.activeElement.matches('#document-list a')") is True
    desk.browser.problems.clear()  # Chrome tells every 400
    go_on(desk, 1)
    assert desk.text("#name") in ("a.txt", "b.txt")


def test_a_document_gets_another_project_and_is_deleted_for_good(desk: Desk) -> None:
    desk.paste("All is void.")
    assert listed(desk) == ["text.txt"]
    desk.run("document.querySelector('#document-list [aria-label^=Project]').click()")
    desk.type("Law")
    desk.press("Enter")
    desk.until("document.querySelector('#document-list h3')?.textContent.startsWith('Law')")
    for told in ("Delete", "Delete it for good, for everybody"):  # the first press asks
        assert desk.texts("#document-list button")[1] == told
        desk.run("document.querySelectorAll('#document-list button')[1].click()")
    desk.until("document.getElementById('documents').hidden")
    assert desk.server.get("/v1/desk") == {"documents": []}


def test_repetitions_are_confirmed_together_and_taken_back_together(desk: Desk) -> None:
    desk.paste("All is void.\nIt shall apply.\nAll is void.\nAll is void.")
    assert "its 2 repetitions" in desk.text("#repeats")
    desk.press("g", "Control")
    desk.type("3")
    desk.press("Enter")
    desk.until_suggested(3)
    desk.type("Rien.")
    desk.press("g", "Control")
    desk.type("1")
    desk.press("Enter")
    desk.until_suggested(1)
    desk.type("Nul.")
    desk.press("Enter", "Control")
    desk.until_suggested(2)
    assert desk.texts(".row .target") == ["Nul.", "", "Rien.", "Nul."]
    assert desk.text("#told") == "One repetition is confirmed with it. Segment 3 has another text."
    desk.press("u", "Control")  # the next that is not confirmed
    desk.until_suggested(3)
    desk.press("Enter", "Control")
    desk.until("document.querySelectorAll('.row[data-state=translated]').length === 3")
    desk.until("document.querySelector('.row .state').textContent.includes('≠')")
    assert "a repetition has another text" in desk.run(
        "document.querySelector('.row').firstElementChild.ariaLabel"
    )
    desk.run("document.querySelector('.row').click()")
    desk.until_suggested(1)
    assert desk.text("#differs .text") == "Rien."
    desk.press("Enter", "Control", "Shift")
    desk.until(f"{STATES}.startsWith('translated new draft')")
    assert desk.texts(".row .target")[:3] == ["Nul.", "", "Rien."]


def test_what_filled_repetitions_is_taken_back_with_them(desk: Desk) -> None:
    desk.paste("All is void.\nIt shall apply.\nAll is void.\nAll is void.")
    desk.type("Nul.")
    desk.press("Enter", "Control")
    desk.until(f"{STATES} === 'translated new translated translated'")
    desk.press("Enter", "Control", "Shift")
    desk.until(f"{STATES} === 'draft new new new'")
    assert desk.texts(".row .target") == ["Nul.", "", "", ""]
    assert desk.server.get(f"/v1/sessions/{desk.session}")["confirmed"] == 0


def test_the_next_segment_with_an_issue_is_reached_by_a_key(desk: Desk) -> None:
    desk.paste("All is void.\nOn 3 May 1997.\nNo.")
    desk.press("ArrowDown", "Alt")
    desk.until_suggested(2)
    desk.type("En mai.")
    desk.until("document.querySelectorAll('.row[data-checks]').length === 1")
    desk.press("ArrowUp", "Alt")
    desk.until_suggested(1)
    desk.press("i", "Control")
    desk.until_suggested(2)


FORMER = """new Promise((done) => {
  const request = indexedDB.open("tmnmt", 1);
  request.onupgradeneeded = () => request.result.createObjectStore("kept");
  request.onsuccess = () => {
    const store = request.result.transaction("kept", "readwrite").objectStore("kept");
    const session = {id: "gone", model: "model", memories: ["law"], terms: [], write_to: null};
    const segments = ["All is <g1>void</g1>.", "It shall apply.", "No."].map((source) => (
      {source, target: null, state: "new", notes: []}));
    const languages = {source: "en", target: "fr"};
    const file = {name: "a.po", content: CONTENT, ...languages, segments, session, at: 1};
    store.put(file, ["document", "gone"]);
    const unit = {confirmed: null, confirmedAt: 0, text: null, checks: [], others: {}, version: 1};
    store.put({...unit, at: 0, confirmed: "Tout <g1>est</g1> <g1>nul</g1>."}, ["unit", "gone", 0]);
    store.put({...unit, at: 1, confirmed: "Il s'applique."}, ["unit", "gone", 1]);
    localStorage.setItem("tmnmt gone 2", JSON.stringify({...unit, at: 2, text: "Non"}));
    store.transaction.oncomplete = () => { request.result.close(); done(1); };
  };
})"""


def test_a_document_that_a_former_page_kept_in_the_browser_comes_to_the_server(
    desk: Desk,
) -> None:
    po = 'msgid ""\nmsgstr ""\n\n' + "\n".join(
        f'msgid "{source}"\nmsgstr ""\n'
        for source in ("All is <b>void</b>.", "It shall apply.", "No.")
    )
    content = base64.b64encode(po.encode()).decode()
    assert desk.run(FORMER.replace("CONTENT", json.dumps(content))) == 1
    desk.open()
    assert desk.texts("#former-list li > span") == ["a.po"]
    desk.run("document.querySelector('#former-list button').click()")
    desk.until_suggested(1)
    # a page of before could confirm a tag twice: what the server refuses is a draft
    assert desk.texts(".row .target") == [
        "Tout <g1>est</g1> <g1>nul</g1>.",
        "Il s'applique.",
        "Non",
    ]
    assert desk.run(STATES) == "draft translated draft"
    assert desk.server.get(f"/v1/sessions/{desk.session}")["confirmed"] == 1
    desk.open()
    assert desk.run("document.getElementById('former').hidden") is True
    desk.browser.problems.clear()  # Chrome tells every 400


LOST_ANSWER = """(() => { const fetched = window.fetch;
  window.fetch = async (address, ...more) => {
    const answer = await fetched(address, ...more);
    if (!String(address).includes("/confirm")) return answer;
    window.fetch = fetched;
    throw new TypeError("the line is broken");
  };
})()"""


def test_a_pair_whose_answer_was_lost_is_confirmed_once(desk: Desk) -> None:
    desk.paste("All is void.\nIt shall apply.")
    desk.run(LOST_ANSWER)
    desk.type("Nul.")
    desk.confirm()
    desk.until("document.querySelector('#count').textContent === '1 of 2'")  # the server tells it
    session = f"/v1/sessions/{desk.session}"
    assert desk.server.get(session)["confirmed"] == 1
    assert desk.text("#problem") == ""
    desk.confirm()
    desk.until_suggested(2)
    assert desk.server.get(session)["confirmed"] == 1


def test_words_that_are_likely_wrong_are_marked(desk: Desk) -> None:
    token = {"origin": "memory", "probability": 0.9, "sources": [], "slots": []}
    tokens = [{**token, "text": f"\u2581{text}"} for text in ("Tout", "est", "nul.")]
    rated = [{"text": "Tout", "confidence": c} for c in (0.9, 0.3, 0.6)]
    segment = {"matches": [], "tokens": tokens, "origin": "model", "low": False, "checks": []}

    def marked(segment: dict[str, Any]) -> list[Any]:
        given = json.dumps({"text": "Tout est nul.", "segments": [segment]})
        offer = f"import('/page/offer.js').then(({{Offer}}) => new Offer({given}, () => false))"
        read = "[o.words.map((word) => word.unsure), o.told(o.words[1]), o.sure]"
        return list(desk.run(f"{offer}.then((o) => {read})"))

    unsure, told, sure = marked({**segment, "words": rated, "confidence": 0.42})
    assert unsure == [False, True, False] and sure == "likely right: 42 %"
    assert told == "est: from the memory · likely right: 30 %"
    assert marked(segment) == [[False] * 3, "est: from the memory · probability 90 %", ""]


def test_texts_go_to_the_server_as_they_are_shown(desk: Desk) -> None:
    texts = [HOSTILE, "a &amp; <g1>b</g1> <x2/> <g3>", "", "<<g1>>", "&#60;g1&#62; é 日 𝒳", "a  b"]
    told = json.dumps(texts)
    tags = "['<g1>', '</g1>', '<x2/>']"
    kept = "filter((one) => one.kind !== '{}').map((one) => one.text).join('')"
    before, after = kept.format("in"), kept.format("out")
    found = desk.run(
        f"import('/page/texts.js').then((t) => {told}.map((text) => ["
        f"t.shown(t.marked(text, {tags})), t.marked(text, []), t.diff(text, 'a &b').{before}, "
        f"t.diff('a &b', text).{after}]))"
    )
    for text, (same, escaped, before, after) in zip(texts, found, strict=True):
        assert same == before == after == text
        assert "<" not in escaped


def test_memories_and_terms_are_chosen(browser: Browser, folder: Path) -> None:
    (folder / "desk.csv").write_text(
        "source,target,context\nvoid,nul,law\nvoid,vide,space\n", encoding="utf-8"
    )
    with tiny_server(folder, ("law=law",), ("mine=mine",), terms=("desk=desk.csv",)) as server:
        desk = Desk(browser, server)
        assert desk.texts("#terms label") == [" desk 1 term"]
        assert desk.texts("#memories label") == [" law 6 segments", " mine 0 segments"]
        desk.run("document.querySelector('#memories input').click()")
        desk.run("document.getElementById('write').value = 'mine'")
        desk.run("document.getElementById('domain').value = 'law'")
        desk.paste("All is void.")
        given = server.get(f"/v1/sessions/{desk.session}")
        assert (given["memories"], given["terms"]) == (["mine"], ["desk"])
        assert given["terms_domain"] == "law"
        assert given["write_to"] == "mine" and browser.problems == []


def test_the_presets_write_to_the_memory_and_cut_running_text(
    browser: Browser, folder: Path
) -> None:
    text = "This Decision is addressed to all. It shall apply today, and all of it is void.\n" * 3
    with tiny_server(folder, ("law=law",), ("kept=kept",)) as server:
        desk = Desk(browser, server)
        browser.open(server.url + "/")  # as a person finds it
        desk.until("document.getElementById('pair').options.length")
        desk.paste(text)
        assert len(desk.texts(".row")) == 6
        assert server.get(f"/v1/sessions/{desk.session}")["write_to"] == "kept"
        desk.open()
        desk.paste(text)
        assert len(desk.texts(".row")) == 3
        assert server.get(f"/v1/sessions/{desk.session}")["write_to"] is None


def test_the_model_is_chosen(browser: Browser, folder: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    shutil.copytree(folder / "model", second)
    models = [folder / "model", second]
    sessions = str(tmp_path / "sessions.db")
    with serving(service_of(models, [], [], threads=1, sessions=sessions)) as server:
        desk = Desk(browser, server)
        assert desk.texts("#pair option") == [
            "English to French (model)",
            "English to French (second)",
        ]
        desk.run("document.getElementById('pair').value = 'second'")
        desk.paste("All is void.")
        assert server.get(f"/v1/sessions/{desk.session}")["model"] == "second"


def test_without_a_model_matches_are_shown_and_what_is_typed_is_confirmed(
    browser: Browser, folder: Path, tmp_path: Path
) -> None:
    places = [f"law={folder / 'law'}"], [f"own={tmp_path / 'own'}"]
    with serving(service_of([], *places, sessions=str(tmp_path / "states.db"))) as server:
        desk = Desk(browser, server)
        assert "no model" in desk.text("#pair option")
        desk.run("document.getElementById('write').value = 'own'")
        desk.run("document.getElementById('repeat').checked = false")
        new = "A text of nobody before."
        pasted = json.dumps("\n".join([new, new, PAIRS[0][0]]))
        desk.run(f"document.getElementById('pasted').value = {pasted}")
        desk.run("document.getElementById('go').click()")
        desk.until("document.querySelector('#matches li')")
        assert "anything like it" in desk.text("#matches")
        desk.type("Un texte.")
        desk.press("Enter", "Control")
        desk.until("document.querySelector('#offer .word')")
        assert desk.text("#offer") == "Un texte." and desk.text("#count") == "1 of 3"
        desk.press("Enter", "Control")
        desk.until(f"document.getElementById('offer').textContent === {json.dumps(PAIRS[0][1])}")
        assert "100 %" in desk.text("#matches .head b")
        desk.press("Enter", "Control")
        desk.until("document.getElementById('count').textContent === '3 of 3'")
        assert desk.text("#problem") == "" and browser.problems == []
        confirmed = server.get(f"/v1/sessions/{desk.session}/confirmed")["pairs"]
        assert [pair["tgt"] for pair in confirmed] == ["Un texte.", "Un texte.", PAIRS[0][1]]


def test_the_key_is_asked_for_and_kept_for_the_tab_alone(
    browser: Browser, folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "keys.toml"
    key = new_key(file, "anna", "translate", None, ["law"])
    with tiny_server(folder, ("law=law",), keys=Keys.load(file)) as server:
        browser.open(server.url + "/")
        for given in ("wrong", key):
            wrong = str(given == key).lower()
            browser.until(
                "document.getElementById('locked')?.open && "
                f"!document.getElementById('wrong-key').hidden === {wrong}"
            )
            browser.run("document.getElementById('key').focus()")
            browser.type(given)
            browser.press("Enter")
        browser.until("document.getElementById('pair').options.length")
        assert browser.run("Object.values(sessionStorage)") == [key]
        assert browser.run("localStorage.length + document.cookie.length") == 0
        assert browser.run("location.href.length + document.title.length") < 60
        problems = [one for one in browser.problems if "401" not in one]
        browser.run("sessionStorage.clear()")
        assert problems == []


def test_the_policy_lets_nothing_else_in(browser: Browser, served: Server) -> None:
    for path in ("/", "/review", "/page/desk.js", "/page/style.css"):
        reply = served.ask("GET", path)
        policy = reply.headers["content-security-policy"]
        assert reply.status == 200 and policy.startswith("default-src 'none'; script-src 'self'; ")
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
    for path in ("/page/", "/page/page.py", "/page/..%2fpage.py", "/page/..", "/page/%00"):
        assert served.ask("GET", path).status == 404
    browser.open(served.url + "/")
    browser.until("document.getElementById('pair').options.length")
    assert browser.problems == []
    with pytest.raises(AssertionError, match="TrustedHTML"):
        browser.run("document.body.innerHTML = '<b>b</b>'")
    browser.run("fetch('https://example.org/').catch(() => 0), 0")
    made = "Object.assign(document.createElement('img'), {src: 'http://127.0.0.2/'})"
    browser.run(f"document.body.append({made}), 0")
    browser.settle()
    assert sum("Content Security Policy" in one for one in browser.problems) >= 2
    parts = (ROOT / "tmnmt" / "serve" / "static").iterdir()
    texts = [path.read_text("utf-8") for path in parts if path.suffix != ".ttf"]
    for unsafe in ("innerHTML", "insertAdjacentHTML", "<style", " style=", "onclick=", "https://"):
        assert not any(unsafe in text for text in texts), unsafe


def test_every_part_of_the_page_is_served_and_ships() -> None:
    import tomllib

    table: Any = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "serve/static/*" in table["tool"]["setuptools"]["package-data"]["tmnmt"]
    assert {route.path for route in PAGE.routes} == {
        "/",
        "/d/{document}",
        "/review",
        "/page/address",
        "/page/typography/{language}",
        "/page/{name}",
    }
