"""One tiny model, and one server of it, for all tests of the server."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from redis_server import Redis, running
from serving import Server, tiny_server
from tiny_model import segments, write_tiny_model

from tmnmt.index import build


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model, law: an index of the tiny pairs"""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("serve")
    write_tiny_model(folder / "model")
    build(folder / "law", segments(), "en", "fr")
    return folder


@pytest.fixture(scope="session")
def served(folder: Path) -> Iterator[Server]:
    """Without keys; memory law to read, own to write to. Named apart from `server`, which is
    Elasticsearch."""
    with tiny_server(folder, ("law=law",), ("own=own",)) as server:
        yield server


@pytest.fixture(autouse=True)
def _states(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where servers that are told no file keep their sessions."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "states"))


@pytest.fixture(autouse=True)
def _no_log_of_commands() -> None:
    """A command that a test ran leaves a log to its standard error, which is closed by now."""
    logging.getLogger("tmnmt").handlers.clear()


@pytest.fixture(scope="session")
def redis() -> Iterator[Redis]:
    """One Redis for all tests that need it (see `required.py`)."""
    with running() as started:
        yield started


@pytest.fixture(params=["sqlite", "redis"])
def states(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where sessions, jobs and glossaries are kept: a new file, and an empty Redis."""
    if request.param == "sqlite":
        return str(tmp_path / "sessions.db")
    server: Redis = request.getfixturevalue("redis")
    server.run("FLUSHDB")
    return server.url


@pytest.fixture(scope="module", params=["sqlite", "redis"])
def beside(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """As `states`, for all tests of a file together."""
    if request.param == "sqlite":
        return str(tmp_path_factory.mktemp("states") / "sessions.db")
    return f"{request.getfixturevalue('redis').url}?db=1"
