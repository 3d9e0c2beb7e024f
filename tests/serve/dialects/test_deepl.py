"""DeepL as its own library and command speak it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import deepl
import pytest
from serving import Server, tiny_server
from tiny_model import PAIRS

from tmnmt.serve.keys import Keys, new_key

API = "/deepl"


@pytest.fixture(params=["", "/deepl", "/deepl/"])
def client(served: Server, request: pytest.FixtureRequest) -> Iterator[deepl.DeepLClient]:
    with closing(deepl.DeepLClient("any", server_url=served.url + request.param)) as client:
        yield client


def test_the_real_client_translates(client: deepl.DeepLClient) -> None:
    one = client.translate_text(PAIRS[0][0], target_lang="FR")
    assert isinstance(one, deepl.TextResult)
    assert (one.text, one.detected_source_lang) == (PAIRS[0][1], "EN")
    assert one.billed_characters == len(PAIRS[0][0])
    texts = [pair[0] for pair in PAIRS]
    several = client.translate_text(texts, source_lang="EN", target_lang="FR-CA")
    assert isinstance(several, list)
    assert [each.text for each in several] == [pair[1] for pair in PAIRS]


def test_the_real_client_names_a_memory(client: deepl.DeepLClient, served: Server) -> None:
    pair = {"src": "This is of one memory.", "tgt": "Ceci est d'une mémoire."}
    served.ask("POST", "/v1/memories/own/segments", {"segments": [pair]})
    for memory, expected in (("own", True), ("law", False)):
        found = client.translate_text(
            pair["src"],
            source_lang="EN",
            target_lang="FR",
            translation_memory=memory,
            translation_memory_threshold=80,
        )
        assert isinstance(found, deepl.TextResult)
        assert (found.text == pair["tgt"]) == expected
    with pytest.raises(deepl.DeepLException, match="no such memory"):
        client.translate_text(
            "No.", target_lang="FR", translation_memory="none", translation_memory_threshold=80
        )


@pytest.mark.parametrize("handling", ["xml", "html"])
def test_tags_survive(client: deepl.DeepLClient, handling: str) -> None:
    text = 'The <b>Commission</b> shall inform <x id="0"></x> &amp; the <i>States</i>.'
    found = client.translate_text(
        text, source_lang="EN", target_lang="FR", tag_handling=handling, ignore_tags=["x"]
    )
    assert isinstance(found, deepl.TextResult)
    assert sorted(re.findall("<[^>]*>", found.text)) == sorted(re.findall("<[^>]*>", text))


def test_what_the_real_client_lists(client: deepl.DeepLClient) -> None:
    assert [one.code for one in client.get_source_languages()] == ["EN"]
    assert [(one.code, one.name) for one in client.get_target_languages()] == [("FR", "French")]
    assert not client.get_usage().any_limit_reached
    assert client.get_glossary_languages() == [] == client.list_glossaries()
    memories = client.list_translation_memories()
    assert [one.translation_memory_id for one in memories] == ["law", "own"]
    law = client.get_translation_memory("law")
    assert (law.source_language, law.target_languages, law.segment_count) == ("en", ["fr"], 6)


def test_the_real_client_hears_what_is_wrong(client: deepl.DeepLClient) -> None:
    wrong: list[dict[str, Any]] = [
        {"target_lang": "DE"},
        {"target_lang": "FR", "formality": "more"},
        {"target_lang": "FR", "glossary": "x", "source_lang": "EN"},
        {"target_lang": "FR", "tag_handling": "xml", "text": "a <b> c"},
    ]
    for options in wrong:
        with pytest.raises(deepl.DeepLException, match="Bad request, message: "):
            client.translate_text(options.pop("text", "No."), **options)


def test_the_real_client_with_a_key(folder: Path, tmp_path: Path) -> None:
    key = new_key(tmp_path / "keys.toml", "one", "translate", None, ["law"])
    with tiny_server(folder, ("law=law",), keys=Keys.load(tmp_path / "keys.toml")) as server:
        with closing(deepl.DeepLClient(key, server_url=server.url + API)) as client:
            found = client.translate_text(PAIRS[0][0], target_lang="FR")
            assert isinstance(found, deepl.TextResult) and found.text == PAIRS[0][1]
        with (
            closing(deepl.DeepLClient("wrong", server_url=server.url + API)) as client,
            pytest.raises(deepl.AuthorizationException),
        ):
            client.translate_text("No.", target_lang="FR")


def test_the_real_command(served: Server) -> None:
    command = [
        sys.executable,
        "-m",
        "deepl",
        "--auth-key",
        "any",
        "text",
        "--to",
        "FR",
        PAIRS[0][0],
    ]
    environment = os.environ | {"DEEPL_SERVER_URL": served.url}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == PAIRS[0][1]


def test_forms_and_older_addresses(served: Server) -> None:
    texts = [PAIRS[0][0], PAIRS[1][0]]
    form = {"text": texts, "target_lang": "FR", "auth_key": "any"}
    for version in ("v1", "v2"):
        reply = served.ask("POST", f"{API}/{version}/translate", form=form)
        assert [one["text"] for one in reply.json["translations"]] == [PAIRS[0][1], PAIRS[1][1]]
    form = {"text": "<k>No.</k>", "target_lang": "FR", "tag_handling": "xml", "ignore_tags": "x,k"}
    reply = served.ask("POST", f"{API}/v2/translate", form=form)
    assert reply.json["translations"][0]["text"] == "<k>No.</k>"
    languages = served.get(f"{API}/v3/languages", resource="translate_text")
    assert [
        (one["lang"], one["usable_as_source"], one["usable_as_target"]) for one in languages
    ] == [
        ("en", True, False),
        ("fr", False, True),
    ]
    assert served.get(f"{API}/v3/languages", resource="glossary") == []
    assert list(served.ask("POST", f"{API}/v2/translate", {"text": 1}).json) == ["message"]
