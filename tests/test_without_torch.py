"""What needs no model works where torch is not installed."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tmnmt.compiled.native import folders

ABSENT = "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"
MEMORY = """en\tfr
The permit is void.\tLe permis est nul.
Page 3 of the act applies.\tLa page 3 de la loi s'applique.
"""
PO = """msgid ""
msgstr ""

msgid "The permit is void."
msgstr ""

msgid "Nothing applies."
msgstr ""
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "absent").mkdir()
    (tmp_path / "absent" / "torch.py").write_text(ABSENT, encoding="utf-8")
    (tmp_path / "memory.tsv").write_text(MEMORY, encoding="utf-8")
    (tmp_path / "messages.po").write_text(PO, encoding="utf-8")
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    paths = [str(folder / "absent"), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    compiled = str(next(folders()))
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "NUMBA_CACHE_DIR": compiled}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tmnmt", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=300
    )


def done(folder: Path, *arguments: str) -> str:
    process = run(folder, *arguments)
    assert process.returncode == 0, process.stderr
    return process.stdout


INDEX = ("build-index", "memory.tsv", "--index", "index", "--src-lang", "en", "--tgt-lang", "fr")


def test_memories_and_files_need_no_torch(folder: Path) -> None:
    done(folder, *INDEX)
    assert "Le permis est nul." in done(folder, "search", "--index", "index", "The permit is void.")
    assert "void" in done(folder, "search", "--index", "index", "--concordance", "permit")
    assert "all" in done(folder, "analyse", "messages.po", "--memory", "index")
    done(folder, "translate", "messages.po", "--memory", "index", "-o", "filled.po")
    filled = (folder / "filled.po").read_text(encoding="utf-8")
    assert 'msgid "The permit is void."\nmsgstr "Le permis est nul."' in filled
    done(folder, "check", "filled.po", "--src-lang", "en", "--tgt-lang", "fr")
    done(folder, "memory", "export", "--index", "index", "-o", "memory.tmx")
    done(folder, "memory", "clean", "--index", "index")
    aligned = ("align", "messages.po", "messages.po", "-o", "aligned.tmx")
    done(folder, *aligned, "--src-lang", "en", "--tgt-lang", "fr")


def test_a_model_without_torch_is_one_line(folder: Path) -> None:
    (folder / "model").mkdir()
    (folder / "model" / "config.toml").write_text("", encoding="utf-8")
    process = run(folder, "translate", "messages.po", "--model", "model", "-o", "filled.po")
    line = "tmnmt: error: models need torch, which is not installed: pip install torch\n"
    assert (process.returncode, process.stderr) == (2, line)


def test_doctor_looks_at_all_the_rest(folder: Path) -> None:
    options = ("--model", "model", "--memory", "memory.tsv", "--port", "0", "--json")
    process = run(folder, "doctor", *options)
    assert process.returncode == 1, process.stderr
    findings = [json.loads(line) for line in process.stdout.splitlines()]
    failed = [one["check"] for one in findings if one["status"] == "fail"]
    assert failed == ["torch", "models"] and findings[-1]["check"] == "clock"
    assert {one["advice"] for one in findings if one["check"] in failed} == {"pip install torch"}


class Asking:
    """A server that runs, and requests to it."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url).netloc

    def __call__(self, method: str, path: str, **body: Any) -> Any:
        connection = http.client.HTTPConnection(self._address, timeout=60)
        try:
            head = {"Content-Type": "application/json"}
            connection.request(method, path, json.dumps(body) if body else None, head)
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read() or b"null")
        finally:
            connection.close()


@pytest.fixture
def ask(folder: Path) -> Iterator[Asking]:
    """A server of memories alone."""
    done(folder, *INDEX)
    options: Sequence[str] = ("--memory", "law=index", "--write-to", "own=own", "--port", "0")
    command = [sys.executable, "-m", "tmnmt", "serve", *options, "--sessions", "serve.db"]
    with (folder / "log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment(folder), stderr=log)
    try:
        yield Asking(url_of(folder / "log", process))
    finally:
        process.terminate()
        process.wait(60)


def url_of(log: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        for line in log.read_text(encoding="utf-8").splitlines():
            if line.startswith("serving at "):
                return line.removeprefix("serving at ")
        time.sleep(0.1)
    raise AssertionError(log.read_text(encoding="utf-8"))


def test_a_server_of_memories_needs_no_torch(ask: Asking) -> None:
    search = ask("POST", "/v1/memories/law/search", texts=["The permit is void."], k=1)
    assert search[1]["results"][0]["matches"][0]["tgt"] == "Le permis est nul."
    pair = {"source": "en", "target": "fr", "model": "", "memories": ["law"], "write_to": "own"}
    status, session = ask("POST", "/v1/sessions", **pair)
    assert status == 200, session
    confirm = {"src": "Nothing applies.", "tgt": "Rien ne s'applique."}
    assert ask("POST", f"/v1/sessions/{session['id']}/confirm", **confirm)[0] == 200
    found = ask("POST", "/v1/memories/own/search", texts=["Nothing applies."], k=1)[1]
    assert found["results"][0]["matches"][0]["tgt"] == "Rien ne s'applique."
    assert ask("POST", "/v1/admin/reload")[1]["memories"] == ["law", "own"]
    refused = ask("POST", "/v1/translate", texts=["No."], source="en", target="fr")
    assert refused[0] == 501 and refused[1]["error"]["code"] == "no_model"
    assert ask("GET", "/v1/openapi.json")[0] == 200
