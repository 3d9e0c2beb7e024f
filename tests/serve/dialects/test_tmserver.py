"""tmserver and amaGama as Virtaal, Weblate and Okapi speak them."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from serving import Server
from tiny_model import PAIRS

PREFIXES = pytest.mark.parametrize("prefix", ["/tmserver", "/api/v1"])


@PREFIXES
def test_matches_come_best_first_with_a_number_that_has_a_point(
    served: Server, prefix: str
) -> None:
    text = "The Commission shall inform the Council."
    reply = served.ask("GET", f"{prefix}/en/fr/unit/{quote(text)}?min_similarity=30")
    found = reply.json
    assert found[0] == {
        "source": PAIRS[0][0],
        "target": PAIRS[0][1],
        "quality": 75.0,
        "rank": 75.0,
    }
    assert b'"quality":75.0' in reply.body and "cache-control" in reply.headers
    qualities = [one["quality"] for one in found]
    assert qualities == sorted(qualities, reverse=True)
    assert served.get(f"{prefix}/en/fr/unit/{quote(PAIRS[0][0])}")[0]["quality"] == 100.0


def test_the_source_of_an_adapted_match_is_the_text(served: Server) -> None:
    """So source and target have the same numbers."""
    source, text = "The fee is 30 euros a year.", "The fee is 45 euros a year."
    body = {"source": source, "target": "La taxe est de 30 euros par an."}
    assert served.ask("PUT", f"/tmserver/en/fr/unit/{quote(source)}", body).status == 200
    (found,) = served.get(f"/tmserver/en/fr/unit/{quote(text)}")
    assert (found["source"], found["target"]) == (text, "La taxe est de 45 euros par an.")


def test_similarity_and_number_are_bounded(served: Server) -> None:
    path = f"/tmserver/en/fr/unit/{quote('The Commission shall inform the Council.')}"
    assert served.get(path, min_similarity="76") == []
    assert len(served.get(path, min_similarity="0", max_candidates="1")) == 1
    for query in ("min_similarity=101", "min_similarity=x", "max_candidates=0", "jsoncallback=f"):
        reply = served.ask("GET", f"{path}?{query}")
        assert reply.status == 400 and list(reply.json) == ["error"]


def test_codes_and_texts_as_each_tool_sends_them(served: Server) -> None:
    text = quote(PAIRS[0][0])
    for pair in ("en/fr", "en_us/fr_ca", "eng/fra", "EN/FR"):  # Weblate: lower case, with _
        assert served.get(f"/tmserver/{pair}/unit/{text}")[0]["target"] == PAIRS[0][1]
    assert served.get("/tmserver/en/fr/unit/", source=PAIRS[0][0])[0]["target"] == PAIRS[0][1]
    assert served.get("/tmserver/de/fr/unit/x") == []
    for odd in ("and/or", "%2Fetc%2Fpasswd", "what%3F", "100%25", "a%0Ab", "../../x", "\u00e9"):
        assert isinstance(served.get(f"/tmserver/en/fr/unit/{quote(odd, safe='%/.')}"), list)
    for wrong in ("/tmserver/en/fr/unit/", "/tmserver/e%20n/fr/unit/x", "/api/v1/en/fr/unit/%ff"):
        assert served.ask("GET", wrong).status == 400


@PREFIXES
def test_languages(served: Server, prefix: str) -> None:
    expected = {"sourceLanguages": ["en"], "targetLanguages": ["fr"]}
    assert served.get(f"{prefix}/languages/") == served.get(f"{prefix}/languages") == expected


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_units_are_added_and_found(served: Server, method: str) -> None:
    source, target = f"What comes by {method} stays?", f"Ce qui vient par {method} reste ?"
    path = f"/tmserver/en/fr/unit/{quote(source)}"
    assert served.ask(method, path, {"source": source, "target": target}).status == 200
    assert served.get(path)[0] == {
        "source": source,
        "target": target,
        "quality": 100.0,
        "rank": 100.0,
    }
    assert served.ask(method, path, {"source": source}).status == 400
    other = path.replace("/fr/", "/de/")
    assert served.ask(method, other, {"source": source, "target": target}).status == 403


def test_a_list_of_units_is_added(served: Server) -> None:
    units = [{"source": f"Stored unit {word}.", "target": f"Unité {word}."} for word in ("x", "y")]
    assert served.ask("POST", "/tmserver/en/fr/store/file.po", units).status == 200
    assert served.get("/tmserver/en/fr/unit/Stored%20unit%20y.")[0]["target"] == "Unité y."
    for wrong in ([{"source": "a"}], ["a"], [{"source": 1, "target": "b"}]):
        assert served.ask("POST", "/tmserver/en/fr/store/file.po", wrong).status == 400
