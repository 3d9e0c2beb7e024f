"""Clients that do not stand among the tests' own packages, run for real: DeepL's library for Node,
Okapi's and OmegaT's connectors, and Weblate's machinery. `python tests/fetch_clients.py` gets
them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fetched_clients import FETCHED, printed
from places import TESTS
from serving import Server, tiny_server
from tiny_model import PAIRS

from tmnmt.serve.keys import Keys, new_key


@pytest.mark.parametrize("path", ["", "/deepl"])
def test_deepl_for_node(served: Server, path: str) -> None:
    script, texts = str(TESTS / "clients" / "deepl.mjs"), [src for src, _ in PAIRS]
    node = ["node", script, str(FETCHED / "node"), served.url + path, json.dumps(texts)]
    found = json.loads(printed("node", node))
    assert found["texts"] == [tgt for _, tgt in PAIRS] and found["detected"] == "en"
    assert found["tagged"].count("<b>") == found["tagged"].count('<x id="0"></x>') == 1
    assert "Kanton" in found["withTerms"]
    assert found["sources"] == ["en"] and found["limited"] is False
    assert "en to de is not served" in found["refused"]


def test_okapis_connectors(served: Server, folder: Path) -> None:
    java = ["java", "-cp", f"{FETCHED / 'jars'}/*", str(TESTS / "clients" / "Okapi.java")]
    near = PAIRS[0][0].replace("shall", "will")
    lines = printed("jars", [*java, served.url, PAIRS[0][0], near]).splitlines()
    found = [line.split("\t") for line in lines]
    told = {name: [rest for one, *rest in found if one == name] for name, *_ in found}
    for name in ("apertium", "mmt"):
        plain, coded = told[name]
        assert plain[0] == "1" and plain[2] == PAIRS[0][1]
        assert coded[0] == "1" and coded[3] == "3"
        assert all(coded[2].count(code) == 1 for code in ("<b>", "</b>", "<x/>"))
    exact, alike = told["toolkit"]
    assert exact[1:3] == ["100", PAIRS[0][1]]
    assert 60 <= int(alike[1]) < 100 and alike[2] == PAIRS[0][1]


def test_omegats_connectors(served: Server) -> None:
    coded = "The <g0>Commission shall</g0> inform <x1/> the Member States & others."
    half = "The</g2> Commission <b3>shall inform."  # of a segment that ends within a span
    java = ["java", "-Djava.awt.headless=true", "-cp", f"{FETCHED / 'jars'}/*"]
    texts = [PAIRS[0][0], coded, half]
    lines = printed("jars", [*java, str(TESTS / "clients" / "OmegaT.java"), served.url, *texts])
    found = [line.split("\t")[1] for line in lines.splitlines() if "\t" in line]
    assert len(found) == 8
    for plain, tagged, alone, refused in (found[:4], found[4:]):
        assert plain == PAIRS[0][1]
        assert all(tagged.count(code) == 1 for code in ("<g0>", "</g0>", "<x1/>"))
        assert tagged.index("<g0>") < tagged.index("</g0>")
        assert all(alone.count(code) == 1 for code in ("</g2>", "<b3>"))
        assert refused and refused != "null"


def test_weblates_machinery(served: Server) -> None:
    texts = [src for src, _ in PAIRS] + [f"The State of {year}." for year in range(1990, 2004)]
    python = str(FETCHED / "weblate" / "bin" / "python")
    script = str(TESTS / "clients" / "weblate_machinery.py")
    found = json.loads(printed("weblate", [python, script, served.url, json.dumps(texts)]))
    for name in ("deepl", "modernmt"):
        (first, second), kept = found.pop(f"{name} with terms")
        assert "Kanton" in first and "Bundesland" in second and kept == 1
    for name, one in found.items():
        assert one["errors"] == [] and one["not served"] == ""
        assert one["texts"][: len(PAIRS)] == [tgt for _, tgt in PAIRS], name
        if name == "tmserver":
            continue  # which has what memories have
        assert all(one["texts"]) and len(one["texts"]) == 20
        for code in ("%(name)s", "<b>", "</b>", "<br/>"):
            assert one["coded"].count(code) == 1, (name, code)


def test_libraries_for_several_services(served: Server) -> None:
    """deep-translator and translate, each by all services that both know of."""
    python, script = FETCHED / "python" / "bin" / "python", TESTS / "clients" / "libraries.py"
    found = json.loads(printed("python", [str(python), str(script), served.url, PAIRS[0][0]]))
    services = ("libretranslate", "deepl", "mymemory")
    libraries = ("deep-translator", "translate")
    expected = {f"{library} {service}" for library in libraries for service in services}
    assert {name for name, one in found.items() if one["text"] == PAIRS[0][1]} == expected
    assert all(one["refused"].endswith(("Error", "Exception")) for one in found.values()), found


def test_libraries_with_a_key(folder: Path, tmp_path: Path) -> None:
    key = new_key(tmp_path / "keys.toml", "one", "translate", None, ["law"])
    python, script = FETCHED / "python" / "bin" / "python", TESTS / "clients" / "libraries.py"
    with tiny_server(folder, ("law=law",), keys=Keys.load(tmp_path / "keys.toml")) as server:
        command = [str(python), str(script), server.url, PAIRS[0][0], key]
        found = json.loads(printed("python", command))
    assert [one["text"] for one in found.values()] == [PAIRS[0][1]] * len(found)
