"""The log: a time and the id of the request in each line, from the first second on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import pytest
from serving import Server

FRAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def test_an_id_is_in_header_log_and_error(served: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tmnmt.serve")
    for sent, is_taken in (
        ("abc-1/2:3", True),
        ("", False),
        ("a b", False),
        ('x"y', False),
        ("x" * 129, False),
        ("é", False),
    ):
        headers = {"X-Request-Id": sent} if sent else {}
        reply = served.ask("POST", "/v1/translate", {"texts": 1}, headers=headers)
        id = reply.headers["x-request-id"]
        assert (id == sent) == is_taken and re.fullmatch(r"[\w./:-]+", id)
        assert reply.json["error"]["request"] == id
        line = json.loads(caplog.records[-1].message)
        assert line["request"] == id and line["status"] == 400 and FRAME.fullmatch(line["time"])
    ids = {served.ask("GET", "/health").headers["x-request-id"] for _ in range(3)}
    assert len(ids) == 3
    for path in ("/no-such-address", "/apertium/translate", "/"):
        assert served.ask("GET", path).headers["x-request-id"]


def test_a_failure_is_logged_with_its_request(
    served: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import logging

    from tmnmt.serve.request_log import JsonLines, TextLines

    lines = list[str]()

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.extend([TextLines().format(record), JsonLines().format(record)])

    async def broken(*_: object) -> object:
        raise RuntimeError("x")

    monkeypatch.setattr(served.service, "translate", broken)
    caplog.set_level("INFO", "tmnmt.serve")
    handler = Lines()
    logging.getLogger("tmnmt.serve").addHandler(handler)
    try:
        reply = served.ask(
            "POST", "/v1/translate", {"texts": ["a"]}, headers={"X-Request-Id": "me"}
        )
    finally:
        logging.getLogger("tmnmt.serve").removeHandler(handler)
    assert reply.status == 500
    assert lines[0].startswith("tmnmt: error: POST /v1/translate: RuntimeError at")
    assert lines[0].endswith("(request me)")
    failure, request = json.loads(lines[1]), json.loads(lines[3])
    assert (failure["level"], failure["request"]) == ("error", "me")
    assert (request["status"], request["request"], request["level"]) == (500, "me", "info")


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_start_tells_what_it_is_about(folder: Path, tmp_path: Path, form: str) -> None:
    command = [sys.executable, "-m", "tmnmt", "serve", "--model", str(folder / "model")]
    options = ["--memory", str(folder / "law"), "--sessions", str(tmp_path / "s.db")]
    started = subprocess.Popen(
        [*command, *options, "--port", "0", "--threads", "1", "--log", form],
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = list[str]()
    assert started.stderr is not None
    for line in started.stderr:
        lines.append(line.rstrip("\n"))
        if found := re.search(r"serving at (http://[\d.:]+)", line):
            urllib.request.urlopen(f"{found[1]}/health").close()
            break
    started.terminate()
    lines += [line for line in started.stderr.read().splitlines() if "route" not in line]
    assert started.wait(30) == 0
    started.stderr.close()
    if form == "json":
        records = [json.loads(line) for line in lines]
        moments = [record["time"] for record in records]
        assert moments == sorted(moments) and all(map(FRAME.fullmatch, moments))
        assert datetime.fromisoformat(moments[0]).date() == datetime.now(UTC).date()
        lines = [record["message"] for record in records]
    stages = (
        "starting tmnmt",
        "opening the memory law",
        "loading the model model",
        "opening the sessions",
        "translating once",
        "serving at http://127.0.0.1:",
        "stopped: what was taken is finished",
    )
    assert len(lines) == len(stages)
    for line, stage in zip(lines, stages, strict=True):
        assert line.startswith(stage)
