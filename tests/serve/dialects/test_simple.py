"""Plain GET, IBM Watson and OPUS-CAT as FakeMT, OmegaT and Wordfast ask them."""

from __future__ import annotations

import base64
import re

from serving import Server
from tiny_model import PAIRS


def test_a_plain_get(served: Server) -> None:
    found = served.get("/get/translate", text=PAIRS[0][0], source="en", target="fr")
    assert found == {"translation": PAIRS[0][1]}
    assert list(served.ask("GET", "/get/translate?text=a").json) == ["error"]


def test_watson_as_omegat_asks_it(served: Server) -> None:
    basic = base64.b64encode(b"apikey:any").decode()
    body = {"text": [PAIRS[0][0], PAIRS[1][0]], "source": "EN", "target": "FR"}
    address = "/watson/v3/translate?version=2018-05-01"
    headers = {"Authorization": f"Basic {basic}"}
    found = served.ask("POST", address, body, headers=headers).json
    assert [one["translation"] for one in found["translations"]] == [PAIRS[0][1], PAIRS[1][1]]
    found = served.ask("POST", address, {"text": "No.", "model_id": "en-fr"}).json
    assert len(found["translations"]) == 1
    tagged = {"text": ["The <g1>Commission</g1> & the <x2/>States"], "target": "fr"}
    said = served.ask("POST", address, tagged).json["translations"][0]["translation"]
    assert sorted(re.findall("<[^>]*>", said)) == ["</g1>", "<g1>", "<x2/>"]
    for wrong in ({"text": ["a"]}, {"text": 1, "target": "fr"}, {"text": ["a"], "target": "de"}):
        reply = served.ask("POST", address, wrong)
        assert (reply.status, reply.json["code"]) == (400, 400)


def test_opus_cat_as_wordfast_asks_it(served: Server) -> None:
    path = "/MTRestService/TranslateJson"
    codes = {"srcLangCode": "en", "trgLangCode": "fr", "tokenCode": "", "modelTag": ""}
    assert served.get(path, input=PAIRS[0][0], **codes) == {"translation": PAIRS[0][1]}
    assert served.ask("GET", f"{path}?input=a").status == 400
