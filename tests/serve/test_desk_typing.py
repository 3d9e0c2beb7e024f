"""What a person types on the page, in Chromium and in Firefox, on a fast and on a slow line: it is
where it was typed, until somebody discards it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser
from firefox import Firefox
from serving import Server, tiny_server
from slow_line import Line
from tiny_model import PAIRS
from typed_texts import LATENCIES, Course

Page = Browser | Firefox
NUMBERS = "It shall apply from 3 May 1997."
AT = "document.querySelector('.active .number')?.textContent === '{}'"
OFFERED = "document.querySelector('#offer .word')"
FIELD = "document.getElementById('target')"
READY = "document.getElementById('pair').options.length"


@pytest.fixture(params=["browser", "firefox"])
def page(request: pytest.FixtureRequest) -> Page:
    found: Page = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def line() -> Line:
    return Line()


@pytest.fixture(scope="module")
def slow(folder: Path, line: Line) -> Iterator[Server]:
    """A server at the end of the line, whose sessions write to no memory."""
    with tiny_server(folder, ("law=law",), between=line.between) as server:
        yield server


@pytest.fixture(autouse=True)
def _as_new(line: Line) -> None:
    line.seconds, line.host = 0.0, ""
    line.refusals.clear()
    line.confirmations.clear()


def begin(page: Page, server: Server, *texts: str) -> None:
    """A document of these segments."""
    page.open(server.url + "/")
    page.until(READY)
    page.run("document.getElementById('sentences').checked = false")
    page.run(f"document.getElementById('pasted').value = {json.dumps(chr(10).join(texts))}")
    page.run("document.getElementById('go').click()")
    page.until(f"{AT.format(1)} && {OFFERED}")


def text(page: Page, selector: str) -> str:
    return str(page.run(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''"))


def field(page: Page) -> str:
    return str(page.run(f"{FIELD}.value"))


@pytest.mark.parametrize("seconds", LATENCIES)
def test_nothing_that_is_typed_is_lost_or_moved(
    page: Page, slow: Server, line: Line, tmp_path: Path, seconds: float
) -> None:
    found = Course(page, slow, line, tmp_path).run(seconds)
    assert found.total == 0, vars(found)


def test_what_the_checks_find_is_confirmed_by_a_new_press_alone(
    page: Page, slow: Server, line: Line
) -> None:
    begin(page, slow, NUMBERS, "All is void.")
    page.type("Rien.")
    page.hold("Enter", "Control", times=20)
    page.until("document.querySelector('.active[data-checks]')")
    page.settle()
    assert text(page, "#found-wrong li") == "numbers: 3, 1997"
    assert "numbers: 3, 1997" in text(page, "#problem")
    assert text(page, "#confirm").startswith("Confirm all the same")
    assert [one["on_checks"] for one in line.confirmations] == ["refuse"]
    assert field(page) == "Rien." and text(page, "#count") == "0 of 2"
    page.type(" Non.")  # another text is checked anew
    page.press("Enter", "Control")
    page.until("document.getElementById('found-wrong').children.length")
    assert [one["on_checks"] for one in line.confirmations] == ["refuse", "refuse"]
    page.press("Enter", "Control")
    page.until(AT.format(2))
    assert [one["on_checks"] for one in line.confirmations] == ["refuse", "refuse", "tell"]
    row = "document.querySelector('.row[data-state=translated]')"
    assert page.run(f"{row}.hasAttribute('data-checks')") is True
    assert "the checks found something" in page.run(f"{row}.firstElementChild.ariaLabel")
    assert text(page, "#problem") == ""


def test_of_a_segment_that_is_confirmed_again_the_latest_text_alone_is_there(
    page: Page, slow: Server, line: Line
) -> None:
    """Half a sentence was confirmed, as somebody typed on meanwhile."""
    begin(page, slow, "All is void", "Nothing is void.")
    line.seconds = 1.0
    page.type("Tout est")
    page.press("Enter", "Control")
    page.type(" nul")
    page.until("document.querySelector('.row .state')?.textContent.includes('~')")
    page.until("document.getElementById('count').textContent === '0 of 2'")
    page.settle()
    line.seconds = 0.0
    assert field(page) == "Tout est nul" and confirmations(page, slow) == ["Tout est"]
    page.press("Enter", "Control")
    page.until(AT.format(2))
    assert confirmations(page, slow) == ["Tout est nul"]
    page.type("Rien n'est nul.")
    page.press("Enter", "Control")
    page.until("document.getElementById('count').textContent === '2 of 2'")
    assert confirmations(page, slow) == ["Tout est nul", "Rien n'est nul."]
    for expected in (["Tout est nul"], []):
        page.press("Enter", "Control", "Shift")
        page.settle()
        assert confirmations(page, slow) == expected


def test_what_was_taken_back_elsewhere_is_so_here(page: Page, slow: Server) -> None:
    begin(page, slow, "All is void.", "Nothing is void.")
    for number, typed in enumerate(("Tout est nul.", "Rien n'est nul."), 1):
        page.type(typed)
        page.press("Enter", "Control")
        page.until(f"document.getElementById('count').textContent === '{number} of 2'")
    document = str(page.run("location.pathname")).partition("/d/")[2]
    assert slow.ask("POST", f"/v1/desk/{document}/undo", {"number": 2}).status == 200
    page.until("document.getElementById('count').textContent === '1 of 2'")
    page.press("Enter", "Control", "Shift")
    page.until("document.getElementById('count').textContent === '0 of 2'")
    assert confirmations(page, slow) == []


def confirmations(page: Page, server: Server) -> list[str]:
    """What is confirmed in the session of the page."""
    session = str(page.run("document.getElementById('review').href")).partition("#")[2]
    pairs = server.get(f"/v1/sessions/{session}/confirmed")["pairs"]
    return [pair["tgt"] for pair in pairs]


def test_a_button_that_is_held_is_pressed_once(page: Page, slow: Server, line: Line) -> None:
    begin(page, slow, NUMBERS, "All is void.")
    page.type("Rien.")
    page.press("Escape")
    page.press("Tab")
    assert page.run("document.activeElement.id") == "confirm"
    page.hold("Enter", times=20)
    page.until("document.querySelector('.active[data-checks]')")
    page.settle()
    assert len(line.confirmations) == 1


def test_a_reason_stays_until_it_is_dismissed_or_the_text_changes(
    page: Page, slow: Server, line: Line
) -> None:
    refusal = (400, {"error": {"code": "bad", "message": "that is refused"}})
    begin(page, slow, "All is void.", "All is void 2.")
    for ends in ("typing", "dismissing"):
        line.refusals.append(refusal)
        page.type("Nul")
        page.press("Enter", "Control")
        page.until("document.getElementById('problem').textContent")
        page.press("ArrowDown", "Alt")
        page.until(f"{AT.format(2)} && {OFFERED}")
        page.settle()
        assert "Segment 1 is not confirmed: that is refused" in text(page, "#problem")
        page.press("ArrowUp", "Alt")
        page.until(f"{AT.format(1)} && {OFFERED}")
        assert "that is refused" in text(page, "#problem")
        if ends == "typing":
            page.press("End")
            page.type(".")
        else:
            page.run("document.querySelector('#problem button').click()")
        assert text(page, "#problem") == ""


def test_the_concordance_is_inserted_where_the_caret_is(page: Page, slow: Server) -> None:
    begin(page, slow, "All is void.")
    page.type("Avant après")
    page.run(f"{FIELD}.setSelectionRange(6, 6)")
    page.press("k", "Control")
    page.type("enter into force")
    page.press("Enter")
    page.until("document.querySelector('#found button')")
    page.run("document.querySelector('#found button').click()")
    assert field(page) == f"Avant {PAIRS[1][1]}après"
    assert page.run("document.activeElement.id") == "target"
    page.press("z", "Control")
    assert field(page) == "Avant après"


def test_tab_leaves_the_field_after_escape_alone(page: Page, slow: Server) -> None:
    begin(page, slow, PAIRS[0][0])
    page.hold("Tab", times=30)  # a key that is held is one press
    assert field(page) == PAIRS[0][1].split()[0]
    for _ in range(20):
        page.press("Tab")
        assert page.run("document.activeElement.id") == "target"
    assert field(page) == PAIRS[0][1]
    page.press("Escape")
    page.type(" ")  # writing goes on: Tab is at work again
    page.press("Tab")
    assert page.run("document.activeElement.id") == "target"
    page.press("Escape")
    page.press("Tab")
    assert page.run("document.activeElement.id") == "confirm"


def test_alt_and_a_digit_take_so_many_words(page: Page, slow: Server) -> None:
    begin(page, slow, PAIRS[0][0])
    words = PAIRS[0][1].split()
    page.press("2", "Alt")
    assert field(page) == " ".join(words[:2])
    page.press("9", "Alt")  # more than there are
    assert field(page) == PAIRS[0][1] and page.run("document.activeElement.id") == "target"


def test_the_field_stays_where_it_is(page: Page, slow: Server, line: Line) -> None:
    begin(page, slow, *[f"{source} " * 6 for source, _ in PAIRS])
    line.seconds = 0.5
    place = f"(box => [box.top, box.left, box.width])({FIELD}.getBoundingClientRect())"
    for number in (2, 3, 4):
        page.press("ArrowDown", "Alt")
        page.until(AT.format(number))
        before, empty = page.run(place), not page.run(OFFERED + " !== null")
        page.until(f"{OFFERED} && document.querySelector('#matches li')")
        page.settle()
        assert empty and page.run(place) == before


def test_drafts_are_in_the_list_and_can_be_discarded(page: Page, slow: Server) -> None:
    begin(page, slow, "All is void.", "All is void 2.")
    page.type("Un brouillon.")
    page.press("ArrowDown", "Alt")
    page.until(AT.format(2))
    row = "document.querySelector('.row')"
    assert page.run(f"[{row}.dataset.state, {row}.querySelector('.target').textContent]") == [
        "draft",
        "Un brouillon.",
    ]
    page.press("ArrowUp", "Alt")
    page.until(f"{AT.format(1)} && {OFFERED}")
    assert field(page) == "Un brouillon."
    page.run("document.getElementById('discard').click()")
    assert field(page) == "" and page.run(f"{row}.dataset.state") == "new"
    page.press("z", "Control")
    assert field(page) == "Un brouillon."


def test_a_tab_is_closed_without_a_question_as_the_browser_keeps_what_waits(
    page: Page, slow: Server, line: Line
) -> None:
    asks = (
        "(event => (dispatchEvent(event), event.defaultPrevented))"
        "(new Event('beforeunload', {cancelable: true}))"
    )
    begin(page, slow, "All is void.", "All is void 2.")
    line.seconds = 2
    page.type("Un brouillon.")
    assert page.run(asks) is False
    line.seconds = 0
    page.open(str(page.run("location.href")))
    page.until(f"{AT.format(1)} && {OFFERED}")
    assert field(page) == "Un brouillon."
    page.run("(() => { Storage.prototype.setItem = () => { throw new Error('full'); }; })()")
    line.seconds = 2
    page.type(" Encore.")
    assert page.run(asks) is True
    assert "This browser keeps nothing" in text(page, "#problem")


def test_what_is_written_while_a_segment_is_taken_back_stays(
    page: Page, slow: Server, line: Line
) -> None:
    begin(page, slow, "All is void.", "All is void 2.")
    page.type("Nul.")
    page.press("Enter", "Control")
    page.until(f"{AT.format(2)} && {OFFERED}")
    line.seconds = 0.5
    page.press("Enter", "Control", "Shift")
    page.hold("Enter", "Control", "Shift", times=20)
    page.type("Encore.")
    page.until("document.querySelector('.row').dataset.state === 'draft'")
    page.until("document.getElementById('count').textContent === '0 of 2'")
    assert page.run(AT.format(2)) is True and field(page) == "Encore."
    assert page.run("document.querySelector('.row .target').textContent") == "Nul."
    line.seconds = 0
    page.press("ArrowUp", "Alt")
    page.until(f"{AT.format(1)} && {OFFERED}")
    assert field(page) == "Nul."


def test_keys_work_on_a_french_keyboard_and_with_caps_lock(page: Page, slow: Server) -> None:
    begin(page, slow, PAIRS[0][0])

    def press(key: str, code: str) -> None:
        given = json.dumps({"key": key, "code": code, "ctrlKey": True, "bubbles": True})
        page.run(f"{FIELD}.dispatchEvent(new KeyboardEvent('keydown', {given}))")

    press("&", "Digit1")
    assert field(page) == text(page, ".match .read")
    press("K", "KeyK")
    assert page.run("document.getElementById('finder').open") is True


def test_two_tabs_of_one_document_keep_both_texts(page: Page, slow: Server) -> None:
    begin(page, slow, "All is void.", "All is void 2.", "All is void 3.")
    first, address = page.tab, str(page.run("location.href"))
    page.type("de A")
    page.until(SENT)
    second = page.new_tab()
    try:
        page.open(address)
        page.until(f"{AT.format(1)} && {OFFERED}")
        assert field(page) == "de A"
        page.until("document.getElementById('people').textContent.includes('in segment 1')")
        assert text(page, "#here").startswith("Also in this segment: ")
        page.press("End")
        page.type(" et B")
        page.until(SENT)
        page.switch(first)
        page.until("document.getElementById('people').textContent.includes('Also here')")
        assert field(page) == "de A"
        page.until("document.querySelector('#others .text')?.textContent === 'de A et B'")
        page.press("End")
        page.type(", encore")
        page.press("ArrowDown", "Alt")
        page.type("A2")
        page.until(f"{SENT}")
        page.switch(second)
        page.until("document.querySelector('#others .text')?.textContent === 'de A, encore'")
        assert field(page) == "de A et B"
        page.until("document.querySelectorAll('.row .target')[1].textContent === 'A2'")
    finally:
        page.close_tab(second)
        page.switch(first)
    page.open(address)
    page.until(f"{AT.format(1)} && {OFFERED}")
    both = [field(page), text(page, "#others .text")]
    assert sorted(both) == ["de A et B", "de A, encore"]
    assert "A2" in text(page, "#list")


SENT = """Object.entries(localStorage).every(([name, value]) =>
  !name.startsWith(`tmnmt ${location.pathname.split('/d/')[1]} `)
  || JSON.parse(value).text === undefined)"""


@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_of_two_who_write_at_once_nobody_loses_a_text(
    page: Page, slow: Server, line: Line, seconds: float
) -> None:
    begin(page, slow, "All is void.", "All is void 2.")
    document = str(page.run("location.pathname")).partition("/d/")[2]
    line.seconds = seconds
    page.type("de A")
    change = {"number": 1, "version": 0, "text": "de B"}
    told = slow.ask("POST", f"/v1/desk/{document}/segments", {"changes": [change]}).json
    page.press("ArrowDown", "Alt")
    line.seconds = 0
    if told["conflicts"]:  # the page was quicker
        assert told["conflicts"][0]["text"] == "de A"
        return
    page.press("ArrowUp", "Alt")
    page.until("document.querySelector('#others .text')?.textContent === 'de B'")
    assert field(page) == "de A"
    page.press("Enter", "Control")
    page.settle()
    page.until(f"{AT.format(2)} || document.querySelector('#problem').textContent")
    assert "⇄" in text(page, ".row .state")  # the other's text stands beside it until it is dropped


@pytest.mark.parametrize("host", ["127.0.0.1", "example.org"])
def test_the_page_says_what_is_wrong_behind_a_proxy(
    page: Page, slow: Server, line: Line, host: str
) -> None:
    line.host = host  # as nginx tells it by `Host $host`: without the port
    page.open(slow.url + "/")
    page.until("document.getElementById('problem').textContent")
    told = text(page, "#problem")
    address = slow.url.removeprefix("http://")
    assert f"Your browser has this page at {address}, but the server is told {host}." in told
    assert "proxy_set_header Host $http_host;" in told
