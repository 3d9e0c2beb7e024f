"""LibreTranslate as its own client, libretranslatepy, and Weblate speak it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
import requests
from libretranslatepy import LibreTranslateAPI
from serving import Server, tiny_server
from tiny_model import PAIRS

from tmnmt.serve.keys import Keys, new_key

API = "/libretranslate"


def test_the_real_client(served: Server) -> None:
    client = LibreTranslateAPI(served.url + API)
    assert client.translate(PAIRS[0][0], "en", "fr") == PAIRS[0][1]
    assert client.translate(PAIRS[0][0], "auto", "fr-CA") == PAIRS[0][1]
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["fr"]},
        {"code": "fr", "name": "French", "targets": []},
    ]
    assert client.detect("Hello") == [{"confidence": 0, "language": "en"}]
    keyed = LibreTranslateAPI(f"{served.url}{API}/", api_key="")
    assert keyed.translate(PAIRS[1][0], "en", "fr") == PAIRS[1][1]
    with pytest.raises(HTTPError) as error:
        client.translate("No.", "en", "xx")
    with error.value:
        assert error.value.code == 400


def post(served: Server, **body: Any) -> Any:
    reply = served.ask("POST", f"{API}/translate", {"source": "en", "target": "fr", **body})
    assert reply.status == 200, reply.body
    return reply.json


def test_a_list_comes_back_as_a_list_and_one_text_as_one(served: Server) -> None:
    texts = [pair[0] for pair in PAIRS[:3]]
    expected = [pair[1] for pair in PAIRS[:3]]
    assert post(served, q=texts) == {"translatedText": expected}
    assert post(served, q=texts[:1]) == {"translatedText": expected[:1]}
    assert post(served, q=texts[0]) == {"translatedText": expected[0]}
    assert post(served, q=[]) == {"translatedText": []}
    assert post(served, q=["", " "]) == {"translatedText": ["", " "]}
    form = [("q", texts[0]), ("q", texts[1]), ("source", "en"), ("target", "fr")]
    fields = {"q": texts[:2], **dict(form[2:])}
    reply = served.ask("POST", f"{API}/translate", form=fields)
    assert reply.json == {"translatedText": expected[:2]}


def test_what_is_asked_for_beside_the_text(served: Server) -> None:
    said = post(served, q="No.", source="auto", alternatives=3, api_key=None)
    assert said["detectedLanguage"] == {"confidence": 0, "language": "en"}
    assert said["alternatives"] == []
    said = post(served, q=["No.", "Yes."], source="auto", alternatives=3)
    assert len(said["detectedLanguage"]) == len(said["alternatives"]) == 2


def test_tags_of_html_survive_and_text_is_no_html(served: Server) -> None:
    html = '<p>The <b>Commission</b> &amp; <a href="/x?a=1&amp;b=2">States</a>.</p>'
    said = post(served, q=html, format="html")["translatedText"]
    for tag in ("<p>", "<b>", "</b>", '<a href="/x?a=1&amp;b=2">', "</a>", "</p>"):
        assert said.count(tag) == 1
    assert post(served, q="a < b", format="text")["translatedText"]


def test_the_trial_of_weblate_goes_well_and_nothing_else_of_its_languages(served: Server) -> None:
    trial = {"q": ["test"], "source": "en", "target": "de", "api_key": ""}
    for agent, changed, status in (
        ("Weblate/5.14.3", {}, 200),
        ("Weblate/5.14.3", {"q": ["test", "test"]}, 400),
        ("Weblate/5.14.3", {"q": ["No."]}, 400),
        ("Weblate/5.14.3", {"target": "it"}, 400),
        ("python-requests/2.32.5", {}, 400),
    ):
        headers = {"User-Agent": agent}
        reply = served.ask("POST", f"{API}/translate", {**trial, **changed}, headers=headers)
        assert reply.status == status
        assert status == 400 or len(reply.json["translatedText"]) == 1


def test_its_own_errors(served: Server) -> None:
    for body, status in (
        ({"q": "a", "source": "en"}, 400),
        ({"source": "en", "target": "fr"}, 400),
        ({"q": [1], "source": "en", "target": "fr"}, 400),
        ({"q": "a", "source": "en", "target": "fr", "format": "pdf"}, 400),
        ({"q": "a", "source": "xx", "target": "fr"}, 400),
        ({"q": "a <b", "source": "en", "target": "fr", "format": "html"}, 400),
    ):
        reply = served.ask("POST", f"{API}/translate", body)
        assert reply.status == status and list(reply.json) == ["error"]
        assert isinstance(reply.json["error"], str)
    assert list(served.ask("GET", f"{API}/none").json) == ["error"]
    assert served.ask("GET", f"{API}/frontend/settings").json["language"]["source"]["code"] == "en"


def sent_file(served: Server, name: str, content: bytes, **fields: str) -> requests.Response:
    """As LibreTranslate's documentation sends a file."""
    url, form = f"{served.url}{API}/translate_file", {"source": "en", "target": "fr", **fields}
    return requests.post(url, form, files={"file": (name, content)}, timeout=60)


def test_files_are_translated(served: Server) -> None:
    html = f"<p>{PAIRS[0][0]}</p>".encode()
    for name, content, expected in (
        ("a.html", html, f"<p>{PAIRS[0][1]}</p>"),
        ("été.txt", f"\ufeff{PAIRS[1][0]}\n".encode(), f"\ufeff{PAIRS[1][1]}\n"),
    ):
        for source in ("en", "auto"):
            reply = sent_file(served, name, content, source=source)
            assert reply.status_code == 200, reply.text
            url = reply.json()["translatedFileUrl"]
            assert url.startswith(f"{served.url}{API}/download_file/")
            assert requests.get(url, timeout=60).content.decode() == expected


def test_what_is_no_file_is_refused(served: Server) -> None:
    formats = served.get(f"{API}/frontend/settings")["supportedFilesFormat"]
    assert {".txt", ".docx", ".srt", ".html"} <= {*formats} and ".pdf" not in formats
    for name, content, fields in (
        ("a.pdf", b"%PDF-1.4", {}),
        ("a", b"text", {}),
        ("a.html", b"", {}),
        ("a.docx", b"no archive", {}),
        ("a.html", b"<p>No.</p>", {"target": "xx"}),
    ):
        reply = sent_file(served, name, content, **fields)
        assert reply.status_code == 400 and list(reply.json()) == ["error"], reply.text
    body = {"source": "en", "target": "fr", "file": "no file"}
    assert served.ask("POST", f"{API}/translate_file", body).status == 400
    assert served.ask("POST", f"{API}/translate_file", form=body).status == 400
    assert served.ask("GET", f"{API}/download_file/none.html").status == 404


def test_what_is_no_document_cannot_be_downloaded(served: Server) -> None:
    job = served.ask("POST", "/v1/memories/law/export", {}).json["id"]
    assert served.ask("GET", f"{API}/download_file/{job}.tmx").status == 404


def test_a_file_that_nobody_waits_for_is_given_up(
    served: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted = list[str]()
    monkeypatch.setattr(served.service.jobs, "delete", lambda id, caller: deleted.append(id))
    text = "".join(f"<p>The Commission shall inform the State {n}.</p>" for n in range(900))
    with pytest.raises(requests.exceptions.ReadTimeout):
        requests.post(
            f"{served.url}{API}/translate_file",
            {"source": "en", "target": "fr"},
            files={"file": ("a.html", text.encode())},
            timeout=0.5,
        )
    deadline = time.monotonic() + 30
    while not deleted:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_key_may_be_in_the_form(folder: Path, tmp_path: Path) -> None:
    key = new_key(tmp_path / "keys.toml", "one", "translate", None, ["law"])
    with tiny_server(folder, ("law=law",), keys=Keys.load(tmp_path / "keys.toml")) as server:
        html = f"<p>{PAIRS[0][0]}</p>".encode()
        reply = sent_file(server, "a.html", html, api_key=key)
        assert requests.get(reply.json()["translatedFileUrl"], timeout=60).status_code == 200
        assert sent_file(server, "a.html", html, api_key="wrong").status_code == 403
