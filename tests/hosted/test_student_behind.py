"""A base behind an address that is a real model on the other side: our own interface of OpenAI's
kind, with a student behind it, and in front of it what goes wrong on the way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from base_server import BaseServer, Response, base_server, forwarded
from published_student import model_files
from serving import Server, serving

from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.hosted import connection
from tmnmt.hosted.writer import ChatWriter
from tmnmt.model_import.marian import import_marian
from tmnmt.serve.running import service_of
from tmnmt.translator import Translator

TEXTS = [
    "The owner must send a notice within 45 days.",
    "Press the green button to start the machine.",
    "The house is <b>very old</b> and has 12 rooms.",
    "Delete %s folders and {count} files in 2024?",
    "THE PERMIT IS REVOKED BY THE MINISTER.",
    "The report was published in March.",
]
MEMORY = (
    "src\ttgt\nPress the red button to stop the machine.\tPrima o botão para parar a máquina.\n"
)
PO = """msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

#. Shown on the first page.
msgid "The report was published in March."
msgstr ""

msgid "Open <b>the file</b> of %s."
msgstr ""
"""


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("student") / "student"
    import_marian(model_files("en-pt"), folder, "en", "pt")
    return folder


@pytest.fixture(scope="module")
def served(student: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    sessions = str(tmp_path_factory.mktemp("sessions") / "serve.db")
    with serving(service_of([student], [], [], threads=1, sessions=sessions)) as server:
        yield server


@pytest.fixture
def front(served: Server) -> Iterator[BaseServer]:
    with base_server(forwarded(f"{served.url}/openai/v1")) as server:
        yield server


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    path = tmp_path / "memory.tsv"
    path.write_text(MEMORY)
    return path


def of_student(student: Path, texts: list[str]) -> list[str]:
    translator = Translator.load(student, options=TranslationOptions(mode="off", threads=1))
    return [entry.tgt for entry in translator.translate(texts)]


def test_a_model_behind_an_address_translates_as_it_does_itself(
    front: BaseServer, student: Path, memory: Path
) -> None:
    translator = Translator.load(front.address(), [memory])
    found = translator.translate(TEXTS)
    assert [entry.tgt for entry in found] == of_student(student, TEXTS)
    assert all(entry.origin == "model" and not entry.user_checks for entry in found)
    assert found[1].matches and "Prima o botão" in front.systems[front.texts.index(TEXTS[1])]


def test_what_goes_wrong_on_the_way_changes_nothing(
    front: BaseServer, student: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "FIRST_WAIT", 0.01)
    model = front.respond
    responses = [
        Response(status=429, headers={"Retry-After": "1"}),
        Response(content=b"<html>gateway</html>"),
        Response("O proprie", reason="length"),
        Response("Here is the translation: O dono."),
        Response(status=503),
    ]
    plain = [TEXTS[0], TEXTS[1], TEXTS[5], "The permit is revoked.", "He left the house."]
    faults = dict(zip(plain, responses, strict=True))

    def respond(text: str, request: dict[str, Any]) -> Response:
        time.sleep(0.1)
        return faults.pop(text, None) or model(text, request)

    front.respond = respond
    translator = Translator.load(front.address(), options=TranslationOptions(requests=3))
    found = translator.translate(plain)
    assert [entry.tgt for entry in found] == of_student(student, plain) and not faults
    assert not any(entry.user_checks for entry in found)
    writer = translator.pipeline.writer
    assert isinstance(writer, ChatWriter)
    assert writer.connection.counts["retries"] == 3  # 429, what is no JSON, 503
    assert writer.connection.counts["second tries"] == 2  # cut off, and with words before it


def test_a_file_is_filled_and_its_notes_are_told(
    front: BaseServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = tmp_path / "a.po", tmp_path / "b.po"
    path.write_text(PO)
    arguments = ["translate", str(path), "--model", front.address("")]
    assert run([*arguments, "-o", str(output), "--src-lang", "en", "--tgt-lang", "pt"]) == 0
    filled = output.read_text()
    assert 'msgstr "O relatório foi publicado em março."' in filled
    assert "<b>" in filled.rpartition("msgstr")[2] and "%s" in filled.rpartition("msgstr")[2]
    assert any("Shown on the first page." in system for system in front.systems)
    told = capsys.readouterr().err
    assert "gets the texts that are translated" in told and "127.0.0.1" in told


def test_it_says_where_its_languages_are_missing(
    front: BaseServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("A text.\n")
    assert run(["translate", str(path), "--model", front.address("")]) == 2
    assert "--src-lang and --tgt-lang" in capsys.readouterr().err


def test_a_server_serves_it(front: BaseServer, memory: Path, tmp_path: Path) -> None:
    models, sessions = [Path(front.address())], str(tmp_path / "serve.db")
    service = service_of(models, [f"mem={memory}"], [], threads=1, sessions=sessions)
    with serving(service) as server:
        [model] = server.get("/v1/models")["models"]
        assert (model["name"], model["modes"]) == ("small", ["examples", "off"])
        reply = server.ask("POST", "/v1/translate", {"texts": [TEXTS[1], TEXTS[5]]})
        assert reply.status == 200, reply.body
        translation = reply.json["translations"][1]
        assert translation["text"] == "O relatório foi publicado em março."
        assert not translation.get("tokens") and translation.get("score") is None
        typed = {"text": TEXTS[5], "prefix": "O rel"}
        assert server.ask("POST", "/v1/complete", typed).json["text"].startswith("O relatório foi")
        typed = {"text": TEXTS[5], "prefix": "Em "}
        assert server.ask("POST", "/v1/complete", typed).json["text"] == "Em "
        assert server.ask("POST", "/v1/alternatives", typed).json["alternatives"] == []


RECIPE = """
name = "hosted"
src_lang = "en"
tgt_lang = "pt"
allow_leaks = true
baseline = "hosted"
[[model]]
name = "hosted"
path = "{address}"
[[memory]]
name = "memory"
path = "memory.tsv"
[[test]]
name = "tiny"
files = ["memory.tsv"]
[[system]]
name = "hosted"
model = "hosted"
[[system]]
name = "with examples"
model = "hosted"
memories = ["memory"]
mode = "examples"
verbatim = 0
"""


def test_a_recipe_measures_it(front: BaseServer, memory: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.format(address=front.address("")))
    assert run(["evaluate", "run", str(recipe), "--out", str(tmp_path / "run")]) == 0
    report = (tmp_path / "run" / "report.md").read_text()
    assert "| with examples |" in report
    assert sum("Prima o botão" in system for system in front.systems) == 1


def test_a_memory_and_a_base_are_measured_without_a_recipe(
    front: BaseServer, memory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["--memory", str(memory), "--test", str(memory), "--out", str(tmp_path / "run")]
    arguments = ["evaluate", "run", *places, "--allow-leaks", "--model"]
    assert run([*arguments, front.address("")]) != 0
    assert "Traceback" not in capsys.readouterr().err
    assert run([*arguments, front.address()]) == 0
    report = (tmp_path / "run" / "report.md").read_text()
    assert "| base |" in report and "| with the TM, confirmed |" in report


def test_what_reads_states_is_refused(
    front: BaseServer, memory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, place, text = ["--model", front.address()], str(memory), tmp_path / "a.txt"
    text.write_text("A text.\n")
    for arguments in (
        ["keys", "--index", str(tmp_path), *model],
        ["calibrate", "--memory", place, *model],
        ["translate", str(text), "--mode", "nearest", "--memory", place, *model],
    ):
        capsys.readouterr()
        assert run(arguments) != 0
        message = capsys.readouterr().err
        assert "Traceback" not in message and "openai:" in message, message
        assert "shows no states" in message or "it serves examples, off" in message, message
