"""The page on which a person mends aligned documents: what it changes, by keys alone, and what the
memory gets."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe import axe, violations
from browser import Browser
from places import ROOT
from required import absent
from serving import Server, serving

from tmnmt.alignment.align import Alignment, Link
from tmnmt.alignment.folder import AlignedMemory, AlignmentFolder
from tmnmt.alignment.memory import AlignedDocument
from tmnmt.formats import read_memory
from tmnmt.serve.alignment import Review, review_service
from tmnmt.serve.app import application

SOURCES = ["Title", "It is <b>void</b>.", "The fee is due.", "Pay it.", "See section 12.", "End."]
TARGETS = ["Titre", "C'est nul.", "Les frais sont dus, payez-les.", "Voir l'article 12.", "Fin."]
LINKS = [
    Link((0,), (0,), 0.99),
    Link((1,), (1,), 0.95),
    Link((2,), (), 0.6),
    Link((3,), (2,), 0.4),
    Link((4,), (3,), 0.99),
    Link((5,), (4,), 0.85),
]


@pytest.fixture
def memory(tmp_path: Path) -> AlignedMemory:
    memory = AlignedMemory(
        tmp_path / "memory.tmx", ("en", "fr"), AlignmentFolder(tmp_path / "memory.tmx.alignment")
    )
    document = AlignedDocument(("en", "fr"), SOURCES, TARGETS, Alignment(LINKS))
    memory.put("act", document)
    memory.entries.append(("act.txt", "act"))
    return memory


@pytest.fixture
def review(memory: AlignedMemory, tmp_path: Path) -> Iterator[Server]:
    service = review_service(tmp_path)
    app = application(service, [Review(memory).dialect])
    with serving(service, lambda _: app) as server:
        yield server


def segments(memory: AlignedMemory) -> list[tuple[str, str, str, str]]:
    return [
        (s.src, s.tgt, dict(s.properties)["x-alignment-probability"], s.origin)
        for s in read_memory(memory.path, "en", "fr")
    ]


def change(**values: Any) -> dict[str, Any]:
    joined = {"sources": [2, 3], "targets": [2], "probability": 1, "decision": "accepted"}
    return {"version": 0, "start": 2, "count": 2, "links": [joined]} | values


def test_a_change_is_kept_at_once_and_comes_into_the_memory(
    review: Server, memory: AlignedMemory
) -> None:
    found = review.get("/alignments")["documents"]
    assert [(one["title"], one["doubtful"]) for one in found] == [("act.txt", 3)]
    reply = review.ask("POST", "/alignments/act", change()).json
    assert (reply["version"], reply["doubtful"], reply["decided"]) == (1, 1, 1)
    stored = memory.folder.load("act")
    assert stored is not None and stored.alignment.links[2].sources == (2, 3)
    assert review.ask("POST", "/memory", {}).json["segments"] == 5
    pairs = segments(memory)
    assert pairs[2] == (
        *("The fee is due. Pay it.", "Les frais sont dus, payez-les."),
        *("1.0000", "reviewed alignment"),
    )
    assert pairs[4][2:] == ("0.8500", "alignment")


@pytest.mark.parametrize(
    ("values", "status", "reason"),
    [
        ({"version": 1}, 409, "changed elsewhere"),
        ({"count": 1}, 400, "do not have the sentences"),
        ({"start": 9}, 400, "do not have the sentences"),
        ({"links": []}, 400, "do not have the sentences"),
        ({"links": [{"sources": ["2"], "targets": [], "probability": 1}]}, 400, "whole numbers"),
        ({"links": [{"sources": [2], "targets": [], "probability": 3}]}, 400, "up to 1"),
        ({"links": [change()["links"][0] | {"decision": "sold"}]}, 400, "one of"),
    ],
)
def test_what_is_no_change_is_refused(
    review: Server, values: dict[str, Any], status: int, reason: str
) -> None:
    reply = review.ask("POST", "/alignments/act", change(**values))
    assert reply.status == status and reason in reply.json["error"]["message"]
    assert [*review.get("/alignments/act")["links"][2]["sources"]] == [2]
    assert review.ask("GET", "/alignments/other").status == 404


def test_pages_of_others_are_not_answered(review: Server) -> None:
    headers = {"Origin": "https://example.org", "Sec-Fetch-Site": "cross-site"}
    assert review.ask("POST", "/alignments/act", change(), headers=headers).status == 403
    assert review.ask("GET", "/alignments", headers={"Host": "example.org"}).status == 403
    page = review.ask("GET", "/")
    assert "script-src 'self'" in page.headers["content-security-policy"]


class Page:
    """The page, and what a person does there."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser, self.run, self.press = browser, browser.run, browser.press
        browser.send("Emulation.clearDeviceMetricsOverride")
        browser.send("Emulation.setEmulatedMedia", features=[])
        browser.open(address + "/")
        browser.until("document.activeElement.classList.contains('link')")

    def links(self) -> list[str]:
        return list(
            self.run(
                "[...document.querySelectorAll('.link')].map((one) => [...one.children].slice(0, 3)"
                ".map((part) => part.textContent).join('|'))"
            )
        )

    def settle(self) -> None:
        """Until all changes are kept."""
        self.press("s", "Control")
        self.browser.until("document.getElementById('said').textContent.includes('written')")
        self.run("document.getElementById('said').textContent = ''")

    def text(self, name: str) -> str:
        return str(self.run(f"document.getElementById('{name}').textContent"))

    @property
    def active(self) -> str:
        return str(self.run("document.querySelector('[aria-current]').ariaLabel"))


@pytest.fixture
def page(browser: Browser, review: Server) -> Iterator[Page]:
    opened = Page(browser, review.url)
    yield opened
    assert browser.problems == []


def test_doubtful_links_come_first_and_are_mended_by_keys_alone(
    page: Page, memory: AlignedMemory
) -> None:
    assert page.links() == [
        "2It is <b>void</b>.|95 %|2C'est nul.",
        "3The fee is due.|60 %|no translation",
        "4Pay it.|40 %|3Les frais sont dus, payez-les.",
        "5See section 12.|99 %|4Voir l'article 12.",
        "6End.|85 %|5Fin.",
    ]
    assert page.active == "3 with none: 60 %, doubtful"
    page.press("m")
    assert page.links()[1] == ("3The fee is due.4Pay it.|accepted|3Les frais sont dus, payez-les.")
    assert page.text("count") == "1 doubtful, 1 decided, 5 links"
    page.press("n")
    assert page.active == "6 with 5: 85 %, doubtful"
    page.press("d")
    page.press("ArrowUp")
    assert page.active == "5 with 4: 99 %"
    page.press("Enter")
    assert page.text("said") == "Nothing is doubtful in this document any more."
    page.settle()
    assert [(src, tgt) for src, tgt, _, _ in segments(memory)] == [
        ("Title", "Titre"),
        ("It is <b>void</b>.", "C'est nul."),
        ("The fee is due. Pay it.", "Les frais sont dus, payez-les."),
        ("See section 12.", "Voir l'article 12."),
    ]


def test_boundaries_move_and_everything_is_undone(page: Page, memory: AlignedMemory) -> None:
    before = page.links()
    page.press("ArrowDown", "Shift")  # the next source comes to this link
    assert page.links()[1:3] == [
        "3The fee is due.4Pay it.|accepted|no translation",
        "no source|accepted|3Les frais sont dus, payez-les.",
    ]
    page.press("ArrowDown", "Alt")
    assert page.links()[1] == "3The fee is due.4Pay it.|accepted|3Les frais sont dus, payez-les."
    page.press("s")
    assert page.links()[1:3] == [
        "3The fee is due.|accepted|3Les frais sont dus, payez-les.",
        "4Pay it.|accepted|no translation",
    ]
    page.press("ArrowUp", "Shift")
    page.press("ArrowUp", "Alt")
    for _ in range(4):
        page.press("u")
    page.press("z", "Control")
    assert page.links() == before
    assert page.run("document.getElementById('undo').disabled")
    page.settle()
    stored = memory.folder.load("act")
    assert stored is not None and stored.alignment.links == LINKS


def test_the_view_in_order_has_everything_and_buttons_do_what_keys_do(page: Page) -> None:
    page.run("document.getElementById('view').value = 'all'")
    page.run("document.getElementById('view').dispatchEvent(new Event('change'))")
    assert len(page.links()) == 6 and page.active.startswith("3 with none")
    page.run("document.querySelector('[data-key=m]').click()")
    assert len(page.links()) == 5 and page.active == "3 and 4 with 3: accepted, accepted"
    page.run("document.getElementById('undo').click()")
    assert len(page.links()) == 6
    page.settle()


def test_a_second_tab_does_not_undo_the_first_one(page: Page, review: Server) -> None:
    assert review.ask("POST", "/alignments/act", change()).status == 200
    page.press("d")
    page.browser.until("document.getElementById('problem').textContent")
    assert "changed elsewhere" in page.text("problem")
    page.browser.until("document.querySelectorAll('.link').length === 2")
    assert review.get("/alignments/act")["version"] == 1
    page.browser.problems[:] = [
        problem for problem in page.browser.problems if "status of 409" not in problem
    ]


def test_it_fits_a_telephone_and_everybody(page: Page) -> None:
    script = axe()
    page.browser.send(
        "Emulation.setDeviceMetricsOverride",
        width=360,
        height=740,
        deviceScaleFactor=1,
        mobile=True,
    )
    for place in ("links", "help"):
        if place == "help":
            page.press("?")
        assert page.run("document.documentElement.scrollWidth") <= 360
        for scheme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": scheme}
            page.browser.send("Emulation.setEmulatedMedia", features=[feature])
            assert violations(page.browser, script) == [], f"{place}, {scheme}"


def test_changes_of_links_without_a_page() -> None:
    node = shutil.which("node")
    if node is None:
        absent("node", "no Node is installed: apt-get install -y --no-install-recommends nodejs")
    result = subprocess.run(
        [node, "--test", str(Path(__file__).with_name("links.test.js"))],
        env=os.environ | {"TMNMT_PAGE": str(ROOT / "tmnmt" / "serve" / "static")},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout
    assert "# fail 0" in result.stdout and "# pass 0" not in result.stdout
