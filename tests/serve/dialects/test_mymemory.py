"""MyMemory's get and set."""

from __future__ import annotations

from serving import Server
from tiny_model import PAIRS

TEXT = "The Commission shall inform the Council."


def test_matches_and_the_model_best_first(served: Server) -> None:
    found = served.get("/mymemory/get", q=TEXT, langpair="en|fr", de="a@b.c")
    assert found["responseStatus"] == 200 and found["quotaFinished"] is False
    matches = found["matches"]
    assert [one["created-by"] for one in matches[:2]] == ["MT!", "memory"]
    assert [one["match"] for one in matches] == sorted((o["match"] for o in matches), reverse=True)
    assert matches[1]["match"] == 0.75 and matches[1]["segment"] == PAIRS[0][0]
    assert found["responseData"]["translatedText"] == matches[0]["translation"]
    exact = served.get("/mymemory/get", q=PAIRS[0][0], langpair="en-GB|fr-FR")
    assert exact["responseData"] == {"translatedText": PAIRS[0][1], "match": 1.0}
    assert exact["matches"][0]["created-by"] == "memory"


def test_the_memory_alone(served: Server) -> None:
    found = served.get("/mymemory/get", q=TEXT, langpair="en|fr", mt="0", numres="1")
    assert len(found["matches"]) == 1
    nothing = served.get("/mymemory/get", q="xyz", langpair="Autodetect|fr", mt="0")
    assert nothing["matches"] == [] and nothing["responseData"]["match"] == 0


def test_a_pair_is_set_and_found(served: Server) -> None:
    form = {"seg": "It came by MyMemory.", "tra": "Venu par MyMemory.", "langpair": "en|fr"}
    said = served.ask("POST", "/mymemory/set", form=form).json
    assert said["responseStatus"] == 200 and said["responseDetails"]
    found = served.get("/mymemory/get", q=form["seg"], langpair="en|fr", mt="0")
    assert found["responseData"]["translatedText"] == form["tra"]


def test_its_own_errors(served: Server) -> None:
    for query in (
        "",
        "?q=a",
        "?q=a&langpair=en",
        "?q=a&langpair=en%7Cde",
        "?q=a&langpair=en%7Cfr&conc=1",
        "?q=a&langpair=en%7Cfr&numres=0",
    ):
        reply = served.ask("GET", f"/mymemory/get{query}")
        assert reply.status == 400 and reply.json["responseStatus"] == 400
        assert reply.json["responseDetails"]
    assert served.ask("GET", "/mymemory/set").status == 405
