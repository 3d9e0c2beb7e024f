"""Apertium APy as OmegaT, Weblate and Okapi speak it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from places import TESTS
from record_apy import FORM, REQUESTS, filled
from serving import Server
from tiny_model import PAIRS

API = "/apertium"


def translated(served: Server, pair: str, text: str, **more: str) -> Any:
    return served.get(f"{API}/translate", langpair=pair, q=text, **more)


@pytest.mark.parametrize("pair", ["en|fr", "eng|fra", "en_US|fr_FR", "en-GB|fre", "EN|FR"])
def test_codes_as_each_tool_sends_them(served: Server, pair: str) -> None:
    assert translated(served, pair, PAIRS[0][0], markUnknown="no") == {
        "responseData": {"translatedText": PAIRS[0][1]},
        "responseDetails": None,
        "responseStatus": 200,
    }


def test_pairs_are_listed_and_each_translates(served: Server) -> None:
    said = served.get(f"{API}/listPairs")
    assert said["responseStatus"] == 200 and said["responseDetails"] is None
    pairs = [(one["sourceLanguage"], one["targetLanguage"]) for one in said["responseData"]]
    assert pairs == [("en", "fr"), ("eng", "fra")]
    for pair in pairs:  # as Weblate does with the first one
        assert translated(served, "|".join(pair), "test")["responseData"]["translatedText"]
    assert served.get(f"{API}/listLanguageNames")["fr"] == "French"


def test_a_form_is_answered_as_well(served: Server) -> None:
    form = {"langpair": "en|fr", "q": PAIRS[0][0]}
    reply = served.ask("POST", f"{API}/translate", form=form)
    assert reply.json["responseData"]["translatedText"] == PAIRS[0][1]


def test_codes_of_okapi_survive(served: Server) -> None:
    text = "The <u id='1'>Commission</u> shall<br id='2'/> inform <u id='3'>the <u id='4'>States"
    text += "</u></u> &amp; all."
    said = translated(served, "en|fr", text, format="html")["responseData"]["translatedText"]
    tags = re.compile("<[^>]*>")
    assert sorted(tags.findall(said)) == sorted(tags.findall(text))
    assert "&" not in re.sub("&(amp|lt|gt|nbsp);", "", said)


def test_its_own_errors(served: Server) -> None:
    for query in (
        "",
        "?q=a",
        "?langpair=en&q=a",
        "?langpair=en%7Cxx&q=a",
        "?langpair=%7C&q=a",
        "?langpair=en%7Cfr&q=a&format=pdf",
        "?langpair=en%7Cfr&q=%3Cb&format=html",
        "?langpair=en%7Cfr&q=%ff",
    ):
        reply = served.ask("GET", f"{API}/translate{query}")
        assert reply.status == 400 and reply.json["responseStatus"] == 400
        assert reply.json["responseDetails"] and reply.json["status"] == "error"


NOTED = [json.loads(line) for line in (TESTS / "data" / "apy.jsonl").read_text().splitlines()]


def shape(value: Any) -> Any:
    """Names and kinds of what is in a value, without the texts and numbers themselves."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    return [shape(value[0])] if isinstance(value, list) else type(value).__name__


@pytest.mark.parametrize("noted", NOTED, ids=lambda one: f"{one['path']} {one['fields']}")
def test_answers_are_those_of_apy_itself(served: Server, noted: dict[str, Any]) -> None:
    """Statuses and shapes of what a real one answered, beside which an error may say more."""
    method, sent = noted["method"], filled(noted["fields"], "en", "fr")
    query = f"?{sent}" if sent and method == "GET" else ""
    body = sent.encode() if method == "POST" else None
    reply = served.ask(method, f"{API}/{noted['path']}{query}", body, headers=FORM)
    assert reply.status == noted["status"]
    theirs, ours = shape(noted["body"]), shape(reply.json)
    says_more = noted["status"] != 200 or noted["path"] == "listLanguageNames"
    assert ours == (ours | theirs if says_more else theirs)
    if noted["status"] != 200:
        assert reply.json["message"] == noted["body"]["message"]


def test_every_request_to_apy_is_noted() -> None:
    asked = [(one["method"], one["path"], [*map(tuple, one["fields"])]) for one in NOTED]
    assert asked == REQUESTS
