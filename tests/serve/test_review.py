"""The page on which a document is reviewed: read in order, compared, judged and changed, by keys
alone."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe import axe, violations
from browser import Browser
from firefox import Firefox
from serving import Server, tiny_server

SOURCES = ["All is void.", "It shall apply from 3 May.", "No <g1>bold</g1> word.", "The last one."]
PO = 'msgid ""\nmsgstr ""\n\n' + "".join(
    f'msgid "{text}"\nmsgstr ""\n\n'.replace("<g1>", "<b>").replace("</g1>", "</b>")
    for text in SOURCES
)


@pytest.fixture
def server(folder: Path, tmp_path: Path) -> Iterator[Server]:
    with tiny_server(folder, ("law=law",), sessions=tmp_path / "sessions.db") as started:
        yield started


def reviewed_document(server: Server) -> str:
    """A document of four segments, of which three are confirmed; it is named by its address."""
    content = base64.b64encode(PO.encode()).decode()
    body = {"name": "a.po", "content": content, "memories": ["law"], "project": "Act"}
    id = server.ask("POST", "/v1/desk", body).json["id"]
    for number, text, suggested, quality in (
        (1, "Tout est nul.", "Tout est vide.", 0.9),
        (2, "Il s'applique.", "Il s'applique.", 0.3),
        (3, "Pas de mot <g1>gras</g1>.", "Aucun mot gras.", None),
    ):
        path = f"/v1/desk/{id}/segments/{number}"
        version = server.get(f"/v1/desk/{id}/segments?first={number}&count=1")["segments"][0]
        confirmed = {"text": text, "suggested": suggested, "version": version["version"]}
        assert server.ask("POST", f"{path}/confirm", confirmed).status == 200
        if quality is not None:
            assert server.ask("PATCH", path, {"quality": quality}).status == 200
    return str(id)


class Review:
    def __init__(self, browser: Browser | Firefox, server: Server, id: str) -> None:
        self.browser, self.server, self.id = browser, server, id
        browser.open(f"{server.url}/review#{id}")
        self.run, self.press, self.until = browser.run, browser.press, browser.until
        self.until("document.querySelectorAll('#rows li').length > 3")

    def texts(self, selector: str) -> list[str]:
        every = f"[...document.querySelectorAll({json.dumps(selector)})]"
        return list(self.run(f"{every}.map((one) => one.textContent)"))

    def choose(self, id: str, value: str) -> None:
        list_ = f"document.getElementById('{id}')"
        self.run(f"{list_}.value = '{value}', {list_}.dispatchEvent(new Event('change')), 0")

    def segment(self, number: int) -> Any:
        path = f"/v1/desk/{self.id}/segments?first={number}&count=1"
        return self.server.get(path)["segments"][0]

    def until_state(self, number: int, state: str) -> None:
        self.until(
            f"document.querySelector('[data-number=\"{number}\"]').dataset.state === '{state}'"
        )


def test_what_needs_to_be_read_comes_first_beside_what_was_suggested(
    browser: Browser, server: Server
) -> None:
    review = Review(browser, server, reviewed_document(server))
    # a number that is missing, then the least sure; those of which nobody knows at the end
    assert review.texts("#rows .number") == ["2", "1", "3", "4"]
    assert review.texts("[data-number='1'] del") == ["vide"]
    assert review.texts("[data-number='1'] ins") == ["nul"]
    assert "suggestion likely right: 90 %" in review.texts("[data-number='1'] .facts")[0]
    # tags are chips, and none counts as changed where the suggestion was kept without its tags
    assert review.texts("[data-number='3'] .head .chip") == ["<g1>", "</g1>"]
    assert review.texts("[data-number='3'] del") == ["Aucun"]
    assert review.texts("[data-number='3'] ins") == ["Pas", "de "]
    assert review.texts("[data-number='3'] .compared .chip") == ["<g1>", "</g1>"]
    # what was taken as it was suggested has no other version to take
    offered = "[...document.querySelectorAll('[data-action=take]')]"
    assert review.run(f"{offered}.map((one) => one.closest('li').dataset.number)") == ["1", "3"]
    assert "numbers" in review.texts("[data-number='2'] .facts .found")[0]
    review.choose("order", "place")
    assert review.texts("#rows .number") == ["1", "2", "3", "4"]
    review.choose("show", "changed")
    assert review.texts("#rows .number") == ["1", "3"]
    assert review.texts("#rates-tables td")[:3] == ["you", "3", "21 %"]
    assert review.texts("#rates-tables td")[3:] == ["a.po", "3", "21 %"]
    assert browser.problems == []


@pytest.mark.parametrize("name", ["browser", "firefox"])
def test_segments_are_judged_and_changed_by_keys(
    name: str, request: pytest.FixtureRequest, server: Server
) -> None:
    browser = request.getfixturevalue(name)
    review = Review(browser, server, reviewed_document(server))
    review.choose("order", "place")
    review.run("document.querySelector('#rows li').focus()")
    review.press("r")
    review.until_state(1, "reviewed")
    review.until("document.activeElement.dataset.number === '2'")
    review.press("a")
    review.until_state(2, "approved")
    review.until("document.activeElement.dataset.number === '3'")
    assert [review.segment(n)["state"] for n in (1, 2, 3)] == ["reviewed", "approved", "translated"]
    assert review.texts("#read-count") == ["2 of 4 segments are reviewed"]
    review.press("c")
    review.until("document.activeElement.tagName === 'TEXTAREA'")
    # tags are chips, which keys put around what is selected
    assert "<" not in review.run("document.activeElement.value")
    review.run("document.activeElement.select()")
    browser.type("Aucun mot gras.")
    review.run("document.activeElement.setSelectionRange(10, 14)")
    review.press("F8")
    assert review.texts("[data-number='3'] .ghost .chip") != []
    review.press("Enter", "Control")
    review.until_state(3, "reviewed")
    assert review.segment(3)["confirmed"] == "Aucun mot <g1>gras</g1>."
    review.choose("compare", "former")
    review.until("document.querySelector('[data-number=\"3\"] del')")
    assert review.texts("[data-number='3'] del") == ["Pas de"]
    assert review.texts("[data-number='3'] ins") == ["Aucun"]
    review.run("document.querySelector('[data-number=\"3\"]').focus()")
    review.press("o")
    review.until("document.querySelector('[data-number=\"3\"] ins')?.textContent === 'Pas'")
    assert review.segment(3)["confirmed"] == "Pas de mot <g1>gras</g1>."


def test_what_the_checks_find_is_told_and_taken_only_once_more(
    browser: Browser, server: Server
) -> None:
    review = Review(browser, server, reviewed_document(server))
    review.run("document.querySelector('[data-number=\"1\"]').focus()")
    review.press("c")
    review.run("document.activeElement.value = 'Tout  est <g7>nul</g7>'")
    review.press("Enter", "Control")
    review.until("document.getElementById('problem').textContent.includes('<g7> is no tag')")
    review.run("document.activeElement.value = 'Tout est tout est nul'")
    review.press("Enter", "Control")
    review.until("document.getElementById('problem').textContent.includes('Confirm once more')")
    assert review.segment(1)["confirmed"] == "Tout est nul."
    review.press("Enter", "Control")
    review.until_state(1, "reviewed")
    assert review.segment(1)["confirmed"] == "Tout est tout est nul"
    browser.problems.clear()  # Chrome tells every 409


def test_somebody_elses_change_is_shown_and_nothing_is_overwritten(
    browser: Browser, server: Server
) -> None:
    review = Review(browser, server, reviewed_document(server))
    version = review.segment(1)["version"]
    theirs = {"text": "Tout est nul et non avenu.", "version": version}
    assert server.ask("POST", f"/v1/desk/{review.id}/segments/1/confirm", theirs).status == 200
    review.run("document.querySelector('[data-number=\"1\"]').focus()")
    review.press("a")
    review.until("document.getElementById('problem').textContent.startsWith('Segment 1: ')")
    assert "non avenu" in review.texts("[data-number='1'] .compared")[0]
    assert review.segment(1)["state"] == "translated"
    browser.problems.clear()  # Chrome tells every 409


def test_what_somebody_else_changes_comes_without_a_reload(
    browser: Browser, server: Server
) -> None:
    review = Review(browser, server, reviewed_document(server))
    review.run("document.querySelector('[data-number=\"1\"]').focus()")
    review.press("c")
    review.run("document.activeElement.value = 'Tout est vraiment nul.'")
    for number, text in ((4, "Le dernier."), (1, "Tout est nul et non avenu.")):
        body = {"text": text, "version": review.segment(number)["version"], "suggested": "La fin."}
        path = f"/v1/desk/{review.id}/segments/{number}/confirm"
        assert server.ask("POST", path, body).status == 200
        review.until_state(number, "translated")
        now = f'[data-number="{number}"] .compared > div:last-child p:last-child'
        review.until(f"document.querySelector('{now}')?.textContent === {json.dumps(text)}")
    assert review.texts("[data-number='4'] del") == ["La", "fin"]
    assert review.texts("#tiles b")[0] == "4" and review.texts("#rates-tables td")[1] == "4"
    # what is being written stays, and does not overwrite what nobody saw
    assert review.run("document.activeElement.value") == "Tout est vraiment nul."
    review.press("Enter", "Control")
    review.until("document.getElementById('problem').textContent.startsWith('Segment 1: ')")
    assert review.segment(1)["confirmed"] == "Tout est nul et non avenu."
    review.press("Enter", "Control")
    review.until_state(1, "reviewed")
    assert review.segment(1)["confirmed"] == "Tout est vraiment nul."
    assert review.run("document.querySelector('#rows form')") is None
    browser.problems.clear()  # Chrome tells every 409


def test_the_review_fits_a_telephone_and_every_reader(browser: Browser, server: Server) -> None:
    review = Review(browser, server, reviewed_document(server))
    narrow = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    for metrics in (None, narrow):
        if metrics:
            browser.send("Emulation.setDeviceMetricsOverride", **metrics)
        for scheme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": scheme}
            browser.send("Emulation.setEmulatedMedia", features=[feature])
            assert violations(browser, axe()) == []
    assert review.run("document.documentElement.scrollWidth") <= 360
    browser.send("Emulation.clearDeviceMetricsOverride")
    browser.send("Emulation.setEmulatedMedia", features=[])
