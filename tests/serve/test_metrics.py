"""What the server counts, read by Prometheus itself, with the files of deploy/."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from places import ROOT
from required import absent
from serving import Server

from tmnmt.serve.durations import BOUNDS, Durations

DEPLOY = ROOT / "deploy"
SECONDS = 60  # that Prometheus may take on a busy machine


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        absent("prometheus", "no prometheus: apt-get install --no-install-recommends prometheus")
    return found


def queries() -> list[str]:
    """Those of the board."""
    board = json.loads((DEPLOY / "grafana-board.json").read_text(encoding="utf-8"))
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def answer(url: str, query: str) -> Any:
    with urllib.request.urlopen(
        f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    ) as reply:
        return json.load(reply)["data"]["result"]


@contextmanager
def prometheus(target: str, folder: Path) -> Iterator[str]:
    """One that reads the server twice a second by the file of deploy/; its address."""
    text = (DEPLOY / "prometheus.yml").read_text(encoding="utf-8")
    key = "    authorization:\n      credentials_file: /etc/prometheus/tmnmt.key\n"
    assert key in text and "127.0.0.1:5051" in text and "scrape_interval: 15s" in text
    text = text.replace(key, "").replace("127.0.0.1:5051", target)
    (folder / "prometheus.yml").write_text(text.replace("15s", "500ms"), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    process = subprocess.Popen(
        [
            program("prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait()


def test_every_query_of_the_board_finds_something(served: Server, tmp_path: Path) -> None:
    target = urllib.parse.urlsplit(served.url).netloc
    missing = queries()
    end = time.monotonic() + SECONDS
    with prometheus(target, tmp_path) as url:
        while missing and time.monotonic() < end:
            served.ask("POST", "/v1/translate", {"texts": ["All is void."]})
            served.ask("POST", "/v1/translate", {"texts": 1})
            time.sleep(0.5)
            try:
                missing = [query for query in missing if not answer(url, query)]
            except urllib.error.URLError:
                continue  # it is not there yet
        assert not missing
        errors = answer(url, 'sum(tmnmt_requests_total{status="400"})')
        assert float(errors[0]["value"][1]) > 0


def test_prometheus_finds_no_fault_in_the_text(served: Server) -> None:
    served.ask("POST", "/v1/translate", {"texts": ["All is void."]})
    text = served.ask("GET", "/metrics").body
    check = [program("promtool"), "check", "metrics"]
    assert subprocess.run(check, input=text, capture_output=True).stderr == b""


def test_a_key_for_metrics_alone_is_all_that_the_file_lacks() -> None:
    check = [
        program("promtool"),
        "check",
        "config",
        "--syntax-only",
        str(DEPLOY / "prometheus.yml"),
    ]
    assert subprocess.run(check, capture_output=True).returncode == 0


def test_a_duration_is_counted_at_the_bounds_that_it_does_not_pass() -> None:
    durations = Durations()
    for seconds in (0.005, 0.0051, 61.0):
        durations.observe("GET /x", seconds)
    lines = dict(line.rsplit(" ", 1) for line in durations.lines("s"))
    assert lines['s_bucket{route="GET /x",le="0.005"}'] == "1"
    assert lines['s_bucket{route="GET /x",le="0.01"}'] == "2"
    assert lines['s_bucket{route="GET /x",le="60.0"}'] == "2"
    assert lines['s_bucket{route="GET /x",le="+Inf"}'] == lines['s_count{route="GET /x"}'] == "3"
    assert float(lines['s_sum{route="GET /x"}']) == pytest.approx(61.0101)
    assert len(lines) == len(BOUNDS) + 3
