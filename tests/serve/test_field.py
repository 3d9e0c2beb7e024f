"""The field in which a translation is written: tags as chips, in Chromium and in Firefox, and what
of it needs no page, in Node."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe import axe, violations
from browser import Browser
from chip_signs import signs
from firefox import Firefox
from places import ROOT
from required import absent
from serving import Server, tiny_server
from slow_line import Line

Page = Browser | Firefox
# all that is said to a screen reader from now on: a suggestion may come at any moment
NOTING = """
(() => {
  window.told = [];
  const said = document.getElementById("said");
  new MutationObserver(() => window.told.push(said.textContent)).observe(said, {childList: true});
})()
"""
FIELD = "document.getElementById('target')"
TAGS = ("<g1>", "</g1>", "<x3/>")
AT = "document.querySelector('.active .number')?.textContent === '{}'"
OFFERED = "document.querySelector('#offer .word')"


@pytest.fixture(params=["browser", "firefox"])
def page(request: pytest.FixtureRequest) -> Page:
    found: Page = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def quiet(folder: Path) -> Iterator[Server]:
    """A server whose sessions write to no memory."""
    with tiny_server(folder, ("law=law",)) as server:
        yield server


@pytest.fixture(scope="module")
def line() -> Line:
    return Line()


@pytest.fixture(scope="module")
def slow(folder: Path, line: Line) -> Iterator[Server]:
    """A server at the end of the line."""
    with tiny_server(folder, ("law=law",), between=line.between) as server:
        yield server


def test_the_field_without_a_page() -> None:
    node = shutil.which("node")
    if node is None:
        absent("node", "no Node is installed: apt-get install -y --no-install-recommends nodejs")
    done = subprocess.run(
        [node, "--test", str(Path(__file__).with_name("field.test.js"))],
        env=os.environ | {"TMNMT_PAGE": str(ROOT / "tmnmt" / "serve" / "static")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout and "# pass 0" not in done.stdout


def begin(page: Page, server: Server, *sources: str, flags: str = "") -> None:
    """A PO file of these messages, which is chosen as by hand; `flags`: of the first."""
    blocks = [f'msgid {json.dumps(source, ensure_ascii=False)}\nmsgstr ""\n' for source in sources]
    blocks[0] = f"#, {flags}\n{blocks[0]}" if flags else blocks[0]
    po = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n' + "\n".join(blocks)
    page.open(server.url + "/")
    page.until("document.getElementById('pair').options.length")
    page.run(
        "(() => { const chosen = new DataTransfer();"
        f" chosen.items.add(new File([{json.dumps(po)}], 'a.po'));"
        " document.getElementById('file').files = chosen.files;"
        " document.getElementById('go').click(); })()"
    )
    page.until(f"{AT.format(1)} && {OFFERED}")


def field(page: Page) -> str:
    return str(page.run(f"{FIELD}.value"))


def select(page: Page, start: int, end: int) -> None:
    page.run(f"({FIELD}.focus(), {FIELD}.setSelectionRange({start}, {end}))")


def clipboard(page: Page, kind: str, text: str = "") -> str:
    """What is on it after such an event, which has this text."""
    return str(
        page.run(
            "(() => { const held = new DataTransfer();"
            f" held.setData('text/plain', '{text}');"
            f" const event = new ClipboardEvent('{kind}', {{clipboardData: held, data: '{text}',"
            " dataType: 'text/plain', cancelable: true});"
            f" {FIELD}.dispatchEvent(event);"
            " return event.clipboardData.getData('text/plain'); })()"
        )
    )


TAGGED = "All is <b>void</b> on <br/> it."


def test_tags_are_chips_that_say_what_they_are(page: Page, quiet: Server) -> None:
    begin(page, quiet, TAGGED)
    chips = "[...document.querySelectorAll('#source .chip')]"
    assert page.run(f"{chips}.map((one) => one.textContent)") == list(TAGS)
    assert page.run(f"{chips}.map((one) => one.ariaLabel)") == [
        "start of tag 1: <b>",
        "end of tag 1: </b>",
        "tag 3: <br/>",
    ]
    assert page.run(f"{chips}[0].title") == "start of tag 1: <b>"
    page.type("Tout <g1>")  # a tag that is written out becomes a chip
    assert field(page) == signs("Tout <g1>", *TAGS)
    inside = "document.querySelector('#ghost .chip.signs')"
    assert page.run(f"{inside}.dataset.label") == "1›"
    width, size = page.run(
        f"[{inside}.getClientRects()[0].width, parseFloat(getComputedStyle({FIELD}).fontSize)]"
    )
    assert abs(width - 1.7 * size) < 1  # as the font has it: it is loaded
    x, y = page.run(f"(r => [r.x + r.width / 2, r.y + r.height / 2])({inside}.getClientRects()[0])")
    page.run(
        f"{FIELD}.dispatchEvent(new PointerEvent('pointermove', {{clientX: {x}, clientY: {y}}}))"
    )
    assert page.run(f"{FIELD}.title") == "start of tag 1: <b>"


def test_a_chip_is_moved_over_and_deleted_as_one_sign(page: Page, quiet: Server) -> None:
    begin(page, quiet, TAGGED)
    page.run(NOTING)
    page.type("A")
    page.press("F8")
    page.type("B")
    assert field(page) == signs("A<g1>B", *TAGS)
    page.press("ArrowLeft")
    page.settle()  # a browser tells two moves within a frame as one
    page.press("ArrowLeft")
    assert page.run(f"{FIELD}.selectionStart") == 1
    page.until("window.told.includes('start of tag 1: <b>')")
    page.press("ArrowRight")
    page.press("Backspace")
    assert field(page) == "AB"
    page.press("z", "Control")
    assert field(page) == signs("A<g1>B", *TAGS)


def test_the_missing_tags_come_by_one_key(page: Page, quiet: Server) -> None:
    begin(page, quiet, TAGGED)
    page.type("a")
    for expected in ("a<g1>", "a<g1></g1>", "a<g1></g1><x3/>", "a<g1></g1><x3/>"):
        page.press("F8")
        assert field(page) == signs(expected, *TAGS)
    assert page.run("document.getElementById('tag').disabled") is True
    for expected in ("a<g1></g1>", "a<g1>", "a"):
        page.press("z", "Control")
        assert field(page) == signs(expected, *TAGS)
    page.type(" b")
    select(page, 2, 3)
    page.press("F8")
    assert field(page) == signs("a <g1>b</g1>", *TAGS)
    page.press("z", "Control")
    assert field(page) == "a b"
    page.press("End")
    page.run("document.querySelectorAll('#source .chip')[2].click()")
    assert field(page) == signs("a b<x3/>", *TAGS)


def test_a_tag_that_was_typed_is_one_undo_away(page: Page, quiet: Server) -> None:
    begin(page, quiet, TAGGED)
    page.type("A <x3/>")
    assert field(page) == signs("A <x3/>", *TAGS)
    page.press("z", "Control")
    assert field(page) == "A <x3/>"
    assert page.run(f"{FIELD}.selectionStart === {FIELD}.selectionEnd") is True
    page.type("B")  # it is a tag of this segment, whatever is typed on
    assert field(page) == signs("A <x3/>B", *TAGS)


def test_chips_are_copied_as_tags_and_pasted_as_chips(page: Page, quiet: Server) -> None:
    begin(page, quiet, TAGGED)
    page.type("a <g1>b</g1> c")
    select(page, 2, 8)
    assert clipboard(page, "cut") == "<g1>b</g1> "
    assert field(page) == "a c"
    clipboard(page, "paste", "x <g1>b</g1>\\n")
    assert field(page) == signs("a x <g1>b</g1> c", *TAGS)
    page.press("z", "Control")
    assert field(page) == "a c"


def test_the_suggestion_goes_on_behind_chips(page: Page, quiet: Server) -> None:
    begin(page, quiet, TAGGED)
    offered = str(page.run("document.getElementById('offer').textContent"))
    assert "<g1>" in offered
    held = signs(offered, *TAGS)
    assert page.run("document.querySelector('#ghost .rest').textContent") == held
    for _ in range(len(offered.split()) + 2):
        page.press("Tab")
    assert field(page) == held
    shown = "document.querySelector('.active .target').textContent"
    assert page.run(shown) == offered


def test_a_wrong_chip_is_marked(page: Page, quiet: Server) -> None:
    begin(page, quiet, TAGGED)
    page.type("a <x3/> <x3/>")
    wrong = "[...document.querySelectorAll('#ghost .chip')].map((one) => one.matches('.wrong'))"
    assert page.run(wrong) == [False, True]


def test_the_field_is_as_high_as_what_is_drawn_behind_it(page: Page, quiet: Server) -> None:
    """So that chips stand where the caret goes, in all lines."""
    begin(page, quiet, TAGGED)
    page.type("<g1>" + "Tout est nul <x3/> et vide</g1>. " * 12)
    page.press("Escape")
    height = f"document.getElementById('ghost').scrollHeight - {FIELD}.scrollHeight"
    assert abs(page.run(height)) <= 1


def test_an_input_method_is_left_alone(browser: Browser, quiet: Server) -> None:
    begin(browser, quiet, TAGGED)
    browser.press("F8")
    for composed in ("に", "にほ", "日本", "日本<x3/>"):
        end = len(composed)
        browser.send("Input.imeSetComposition", text=composed, selectionStart=end, selectionEnd=end)
        assert field(browser) == signs("<g1>", *TAGS) + composed
        assert browser.run("document.querySelector('#ghost span').textContent") == field(browser)
    browser.send("Input.insertText", text="日本")  # what was composed is chosen
    assert field(browser) == signs("<g1>日本", *TAGS)
    browser.press("F8")
    browser.type("e\u0301")
    assert field(browser) == signs("<g1>日本</g1>e\u0301", *TAGS)


def test_what_is_typed_breaks_as_in_the_field(page: Page, quiet: Server) -> None:
    """Whatever stands in grey behind it."""
    begin(page, quiet, TAGGED)
    typed = "document.querySelector('#ghost span')"
    page.run(f"{typed}.parentElement.parentElement.style.maxWidth = '12em'")
    page.press("Tab")
    for _ in range(3):
        page.press("Tab")
        lines = f"new Set([...{typed}.getClientRects()].map((one) => one.top)).size"
        before = page.run(f"[{typed}.textContent, {lines}]")
        assert len(page.run("document.querySelector('#ghost .rest').textContent")) > 1
        page.press("Escape")
        assert page.run(f"[{typed}.textContent, {lines}]") == before
        page.type(" ")
        page.press("Backspace")


def test_the_font_is_what_its_script_writes() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "chip_font.py"))
    written = ROOT / "tmnmt" / "serve" / "static" / "chips.ttf"
    assert script["font"]() == written.read_bytes()


def test_signs_that_nobody_sees_are_inserted_and_shown(page: Page, quiet: Server) -> None:
    begin(page, quiet, TAGGED.replace("it.", "it\u00a0:"))
    page.type("a")
    page.press(" ", "Control", "Shift")
    assert field(page) == "a\u00a0"
    for letter, name in (("n", "narrow no-break space"), ("t", "soft hyphen"), ("r", "right-to")):
        page.press("F9")
        assert page.run("document.getElementById('signs').open") is True
        assert name in str(page.run("document.getElementById('signs').textContent"))
        page.press(letter)
        page.until("!document.getElementById('signs').open")
    page.until(f"{FIELD}.value.length === 5")
    assert field(page) == "a\u00a0\u202f\u00ad\u200f"
    assert page.run("document.activeElement.id") == "target"
    page.press("z", "Control")
    assert field(page) == "a\u00a0\u202f\u00ad"
    marks = "[...document.querySelectorAll('#ghost span .sign')].map((one) => one.dataset.mark)"
    assert page.run(marks) == []
    page.run("document.getElementById('invisible').click()")
    assert page.run(marks) == ["°", "˚", "¬"]
    source = "[...document.querySelectorAll('#source .sign')].map((one) => one.dataset.told ?? '')"
    assert [name for name in page.run(source) if name] == ["no-break space"]
    page.run("document.getElementById('invisible').click()")
    assert page.run(marks) == [] == page.run(source)


def test_an_isolate_stands_around_what_is_selected(page: Page, quiet: Server) -> None:
    begin(page, quiet, TAGGED)
    page.type("abc")
    select(page, 1, 2)
    page.press("F9")
    page.press("i")
    page.until(f"{FIELD}.value.length === 5")
    assert field(page) == "a\u2068b\u2069c"
    page.press("z", "Control")
    assert field(page) == "abc"


def test_quotes_are_those_of_the_language_and_one_undo_away(page: Page, quiet: Server) -> None:
    begin(page, quiet, TAGGED)
    page.type('"a"')
    assert field(page) == '"a"'  # as long as nobody wants them
    page.run(f"{FIELD}.select()")
    page.run("document.getElementById('typographic').click()")
    page.run(f"{FIELD}.focus()")
    page.type('X "oui" l\'')
    assert field(page) == "X «\u00a0oui\u00a0» l’"
    page.press("z", "Control")
    assert field(page) == "X «\u00a0oui\u00a0» l'"
    page.type('eau "')
    assert field(page) == "X «\u00a0oui\u00a0» l'eau «\u00a0"
    page.press("z", "Control")
    page.type("5")
    assert field(page) == "X «\u00a0oui\u00a0» l'eau \"5"
    page.run("document.getElementById('typographic').click()")
    page.run(f"{FIELD}.focus()")
    page.type("'\"")
    assert field(page).endswith("5'\"")


def test_the_limit_of_length_is_shown_while_typing(page: Page, quiet: Server) -> None:
    begin(page, quiet, TAGGED, "All is void.", flags="max-length:6")
    shown = "document.getElementById('length').textContent"
    page.type("é𝒳<x3/>")
    assert page.run(shown) == "2 of 6 characters"  # tags are none
    page.type("abcde")
    assert page.run(shown) == "7 of 6 characters, 1 too many"
    page.press("Backspace")
    assert page.run(shown) == "6 of 6 characters"
    page.press("ArrowDown", "Alt")
    page.until(AT.format(2))
    assert page.run("document.getElementById('length').hidden") is True


def test_the_typography_of_a_language_is_told(quiet: Server) -> None:
    assert quiet.get("/page/typography/fr")["quotes"] == ["«\u00a0", "\u00a0»"]
    assert quiet.get("/page/typography/de-CH")["quotes"] == ["«", "»"]
    assert quiet.get("/page/typography/xx") == {"quotes": None}


def test_a_field_with_chips_fits_a_telephone_and_every_reader(
    browser: Browser, quiet: Server
) -> None:
    script = axe()
    narrow = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    browser.send("Emulation.setDeviceMetricsOverride", **narrow)
    try:
        begin(browser, quiet, TAGGED, f"<b>{'Donaudampfschiff' * 9}</b>")
        browser.type("a <x3/> <x3/> <g1>b")
        browser.run("document.getElementById('invisible').click()")
        for scheme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": scheme}
            browser.send("Emulation.setEmulatedMedia", features=[feature])
            assert browser.run("document.documentElement.scrollWidth") <= 360
            assert violations(browser, script) == []
            browser.press("F9")
            assert violations(browser, script) == []
            browser.press("Escape")
    finally:
        browser.run("document.getElementById('invisible').click()")
        browser.send("Emulation.clearDeviceMetricsOverride")
        browser.send("Emulation.setEmulatedMedia", features=[])


@pytest.mark.parametrize(
    ("typed", "direction"),
    [
        ("<g1>هذا باطل</g1> 5<x3/>", "rtl"),  # a chip has no direction of its own
        ("<x3/>זה <g1>בטל</g1>.", "rtl"),
        ("यह <g1>शून्य</g1> है<x3/>", "ltr"),
        ("e\u0301<g1>e\u0301o\u0308</g1><x3/>", "ltr"),
    ],
)
def test_every_script_stands_beside_chips(
    page: Page, quiet: Server, typed: str, direction: str
) -> None:
    begin(page, quiet, TAGGED)
    page.type(typed)
    expected = signs(typed, *TAGS)
    assert field(page) == expected
    assert page.run("document.querySelector('#ghost span').textContent") == expected
    for element in ("target", "ghost"):
        assert page.run(f"document.getElementById('{element}').matches(':dir({direction})')")
    page.press("F8")
    assert field(page) == expected  # none is missing
    page.press("z", "Control")
    assert field(page) != expected


def test_late_answers_move_nothing(page: Page, slow: Server, line: Line) -> None:
    line.seconds = 0.0
    begin(page, slow, TAGGED)
    line.seconds = 0.4
    typed = ""
    for word in ("Tout ", "<g1>", "est", "</g1>", " nul", "<x3/>", ", oui"):
        page.press("F8") if word in TAGS else page.type(word)
        typed += word
        assert field(page) == signs(typed, *TAGS)
    page.until(
        "document.getElementById('offer').textContent.startsWith('Tout <g1>est</g1> nul<x3/>')"
    )
    page.settle()
    assert field(page) == signs(typed, *TAGS)
    assert page.run(f"{FIELD}.selectionStart") == len(field(page).encode("utf-16-le")) // 2
    offered = str(page.run("document.getElementById('offer').textContent"))
    rest = "document.querySelector('#ghost .rest').textContent"
    assert page.run(rest) == signs(offered.removeprefix(typed), *TAGS)
