"""`tmnmt doctor` finds what is wrong with an installation and says what to do."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_model import segments

from tmnmt.cli import run
from tmnmt.config.serving import ServerOptions
from tmnmt.index import build
from tmnmt.segments import Segment
from tmnmt.serve import doctor
from tmnmt.serve.doctor import Finding, examine
from tmnmt.serve.keys import new_key
from tmnmt.serve.storage.opening import open_storage

QUICK = {name: check for name, check in doctor.CHECKS.items() if name != "kernels"}


@pytest.fixture
def healthy(folder: Path, tmp_path: Path) -> ServerOptions:
    """An installation in which nothing is wrong."""
    build(tmp_path / "law", segments(), "en-GB", "fr")
    (tmp_path / "house.csv").write_text("en,fr\nState,État\n", encoding="utf-8")
    new_key(tmp_path / "keys.toml", "anna", "write", None, ["law"], ["house"])
    open_storage(tmp_path / "serve.db").close()
    return ServerOptions(
        model=(str(folder / "model"),),
        memory=(str(tmp_path / "law"),),
        write_to=(str(tmp_path / "new"),),
        terms=(str(tmp_path / "house.csv"),),
        keys=tmp_path / "keys.toml",
        sessions=str(tmp_path / "serve.db"),
        threads=1,
        port=0,
    )


def bad(options: ServerOptions) -> dict[str, Finding]:
    """What is not as it should be, by the names of checks."""
    return {finding.check: finding for finding in examine(options) if finding.status != "ok"}


def test_nothing_is_wrong_where_nothing_is(healthy: ServerOptions, tmp_path: Path) -> None:
    findings = list(examine(healthy))
    assert [finding for finding in findings if finding.status != "ok"] == []
    assert {finding.check for finding in findings} >= {*doctor.CHECKS} - {"host"}
    assert not (tmp_path / "new").exists()  # nothing is changed


def test_torch_is_missed_where_a_model_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CHECKS", {"torch": doctor.CHECKS["torch"]})
    monkeypatch.setitem(sys.modules, "torch", None)
    assert bad(ServerOptions()) == {}
    assert bad(ServerOptions(model=("law",))) == {
        "torch": Finding(
            "torch", "fail", "models need torch, which is not installed", "pip install torch"
        )
    }


def test_every_fault_is_found_with_what_to_do(
    healthy: ServerOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        doctor, "CHECKS", {n: c for n, c in doctor.CHECKS.items() if n != "kernels"}
    )
    build(tmp_path / "other", [Segment("Ja.", "Oui.")], "de", "fr")
    keys = tmp_path / "law" / "keys" / ("0" * 16)
    keys.mkdir(parents=True)
    (keys / "c.u8").write_bytes(b"x" * 1000)
    assert healthy.keys is not None
    healthy.keys.chmod(0o644)
    with closing(sqlite3.connect(tmp_path / "alien.db")) as other:
        other.execute("CREATE TABLE a (b)")
    os.utime(tmp_path / "alien.db", (4e9, 4e9))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = bad(
            replace(
                healthy,
                memory=(*healthy.memory, str(tmp_path / "other")),
                threads=1000,
                port=taken.getsockname()[1],
                sessions=str(tmp_path / "alien.db"),
            )
        )
    assert {name: finding.status for name, finding in found.items()} == {
        "torch": "warn",
        "memories": "warn",
        "pair keys": "warn",
        "keys": "warn",
        "sessions": "fail",
        "port": "warn",
        "clock": "warn",
    }
    assert all(finding.advice for finding in found.values())
    assert "no model has its languages" in found["memories"].message
    assert "1,000 bytes" in found["pair keys"].message
    assert found["keys"].advice == f"chmod 600 {healthy.keys}"
    assert "holds no sessions" in found["sessions"].message


def test_what_cannot_be_opened_fails(
    healthy: ServerOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        doctor, "CHECKS", {n: c for n, c in doctor.CHECKS.items() if n != "kernels"}
    )
    next((tmp_path / "law").glob("generation-*/segments.rows")).write_bytes(b"")
    assert healthy.keys is not None
    new_key(healthy.keys, "bob", "read", None, ["news"])
    found = bad(
        replace(
            healthy,
            model=("no-such-model",),
            sessions="redis://anna:hush@127.0.0.1:1/0",
            host="0.0.0.0",
            keys=None,
        )
    )
    assert {name for name, finding in found.items() if finding.status == "fail"} == {
        "models",
        "memories",
        "sessions",
        "host",
    }
    assert all("hush" not in finding.message for finding in found.values())
    assert "news is not served" in bad(healthy)["keys"].message


def test_places_that_cannot_be_are_told_without_numbers_of_the_system(
    healthy: ServerOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = ("memories", "terms", "keys", "sessions")
    monkeypatch.setattr(doctor, "CHECKS", {name: doctor.CHECKS[name] for name in chosen})
    (tmp_path / "file").write_text("", encoding="utf-8")
    below = str(tmp_path / "file" / "new")
    broken = replace(
        healthy,
        model=(),
        write_to=(below,),
        terms=(str(tmp_path / "none.csv"),),
        keys=tmp_path / "none.toml",
        sessions=below,
    )
    found = list(examine(broken))
    failed = {finding.check: finding for finding in found if finding.status == "fail"}
    assert failed.keys() == {*chosen} and all(finding.advice for finding in failed.values())
    assert "file is a file, not a folder" in failed["memories"].message
    assert "none.csv" in failed["terms"].message  # of the languages of the memory
    assert failed["keys"].message == f"{tmp_path / 'none.toml'}: No such file or directory"
    assert not any(below in finding.message for finding in found if finding.status == "ok")
    for sessions, reason in ((tmp_path, "is a folder"), (tmp_path / ("a" * 300), "too long")):
        last = [*examine(replace(broken, sessions=str(sessions)))][-1]
        assert last.status == "fail" and reason in last.message and "Errno" not in last.message


def test_lines_are_for_people_or_json_and_the_exit_code_tells(
    healthy: ServerOptions,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    chosen = ("keys", "sessions")
    monkeypatch.setattr(doctor, "CHECKS", {name: doctor.CHECKS[name] for name in chosen})
    arguments = ["doctor", "--memory", f"law={tmp_path / 'law'}", "--terms", *healthy.terms]
    arguments += ["--sessions", str(tmp_path / "serve.db"), "--keys", str(healthy.keys)]
    assert run(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["ok", "keys"], ["ok", "sessions"]]
    (tmp_path / "serve.db").write_bytes(b"no database")
    assert run([*arguments, "--json"]) == 1
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["status"] for record in records] == ["ok", "fail"]
    assert set(records[1]) == {"check", "status", "message", "advice"}
