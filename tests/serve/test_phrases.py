"""The page in English and in French: every text has a translation, and none is beside the table."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import page_phrases
import pytest
from browser import Browser
from page_phrases import STATIC
from serving import Server

CHOSEN = "localStorage.setItem('tmnmt.language', 'fr')"
# of what is seen and of attributes, without what somebody has typed, named or chosen
SEEN = """[...document.querySelectorAll('body *')].flatMap((one) => [
  ...[...one.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data),
  one.getAttribute('aria-label') ?? '', one.title ?? '', one.getAttribute('placeholder') ?? '',
]).map((text) => text.replace(/\\s+/g, ' ').trim()).filter(Boolean)"""


PROBLEMS = "[...document.querySelectorAll('.problem span')].map((one) => one.textContent)"


def table(language: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (STATIC / f"phrases.{language}.json").read_text(encoding="utf-8")
    )
    return found


def forms(entry: Any) -> list[str]:
    return list(entry.values()) if isinstance(entry, dict) else [entry]


def places(text: str) -> Counter[str]:
    return Counter(re.findall(r"\{\w+\}", text))


def test_every_text_of_the_page_is_in_the_table_and_no_other() -> None:
    of_server = page_phrases.of_server()
    assert {"there is no such document", "a text may have {limit} characters"} <= of_server
    texts = page_phrases.of_pages() | page_phrases.of_scripts() | of_server
    assert len(texts) > 100
    assert texts - set(table("fr")) == set()
    assert set(table("fr")) - texts == set()


def test_no_script_has_a_text_beside_the_table() -> None:
    assert list(page_phrases.outside()) == []


def test_forms_of_number_are_told_in_both_languages() -> None:
    english, french = table("en"), table("fr")
    assert set(english) == {key for key, entry in french.items() if isinstance(entry, dict)}
    for entry in (*english.values(), *(french[key] for key in english)):
        assert set(entry) == {"one", "other"}


@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_translation_has_the_places_of_its_phrase(language: str) -> None:
    for key, entry in table(language).items():
        assert places(entry["other"] if isinstance(entry, dict) else entry) == places(key), key
        for form in forms(entry):  # that of one thing may do without its number
            assert form.strip() and places(form) - places(key) == Counter(), key
            assert form[:1].isspace() == key[:1].isspace(), key


@pytest.fixture
def french(browser: Browser, served: Server) -> Iterator[Browser]:
    browser.open(served.url + "/")
    browser.run(CHOSEN)
    yield browser
    browser.open(served.url + "/")
    browser.run("localStorage.clear()")


def test_the_page_is_in_the_language_that_was_chosen(french: Browser, served: Server) -> None:
    texts = table("fr")
    english = {key for key, entry in texts.items() if key not in forms(entry)}
    french.open(served.url + "/")
    french.until("document.getElementById('pair').options.length")
    assert french.run("document.documentElement.lang") == "fr"
    seen = set(french.run(SEEN))
    assert seen & english == set() and texts["New documents"] in seen
    french.run("document.getElementById('pasted').value = 'All is void.\\nNo.'")
    french.run("document.getElementById('go').click()")
    french.until("document.querySelector('#offer .word')")
    french.type("Nul.")
    seen = set(french.run(SEEN))
    assert seen & english == set() and texts["Confirm"] in seen
    assert french.run("document.querySelector('#confirm kbd').textContent") == "Ctrl Entrée"
    french.run(
        f"fetch('{served.url}/v1/desk/' + location.pathname.split('/').at(-1), "
        "{method: 'DELETE'}).then(() => 0)"
    )
    told = "document.getElementById('problem').textContent"
    french.until(f"{told}.startsWith('Ce document n’est plus sur le serveur')")
    french.open(served.url + "/")
    french.until("document.getElementById('pair').options.length")
    # what the server refuses, and what is wrong in a file, in the language of the page
    french.run(
        "((files) => { for (const [name, text] of [['a.po', ''], ['b.xyz', 'x'], ['c.txt', '\\n']])"
        " files.items.add(new File([text], name)); document.getElementById('file').files = "
        "files.files; document.getElementById('go').click(); })(new DataTransfer())"
    )
    french.until("document.querySelectorAll('.problem').length === 3")
    assert set(french.run(PROBLEMS)) == {
        "a.po\u00a0: le fichier est vide",
        "b.xyz\u00a0: ce n’est pas du texte brut, mais un format qui n’est pas lu\u202f; un texte "
        "brut (un segment par ligne, en UTF-8) s’appelle NOM.txt, n’a pas d’extension, ou s’ouvre "
        "avec la case «\u00a0Lire le fichier comme du texte brut\u00a0» cochée",
        f"c.txt\u00a0: {texts['there is nothing to translate in the document']}",
    }
    french.follow(
        "((list) => { list.value = 'en'; list.dispatchEvent(new Event('change')); })"
        "(document.getElementById('language'))"
    )
    french.until("document.getElementById('begin')?.textContent === 'New documents'")
    assert french.run("document.documentElement.lang") == "en"
