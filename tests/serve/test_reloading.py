"""A running server reads keys, terms, memories and models again, and loses no request by it."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from serving import Server, serving
from tiny_model import segments

from tmnmt.config.server_config import load_config
from tmnmt.index import build
from tmnmt.serve.keys import Keys, new_key
from tmnmt.serve.reloading import Reloader
from tmnmt.serve.running import service_of

TEXT = "The Commission shall inform the State."


@contextmanager
def configured(folder: Path) -> Iterator[Server]:
    """A server of the file serve.toml in a folder, with the memories that it needs."""
    path = folder / "serve.toml"
    config = load_config(path)
    options = config.options
    service = service_of(
        [*map(Path, options.model)],
        options.memory,
        options.write_to,
        Keys.load(options.keys) if options.keys is not None else None,
        threads=options.threads,
        terms=options.terms,
        sessions=str(folder / "sessions.db"),
    )
    reloader = Reloader(service, config, lambda: load_config(path))
    service.reload = lambda: reloader.reload().record
    with serving(service) as server:
        yield server


@pytest.fixture
def place(folder: Path, tmp_path: Path) -> Path:
    """A folder of its own with a model, a memory and a file of what is served."""
    copytree(folder / "model", tmp_path / "model")
    build(tmp_path / "law", segments(), "en", "fr")
    configure(tmp_path)
    return tmp_path


def configure(place: Path, **entries: Any) -> None:
    """Writes the file: one model and two memories, and what else is named."""
    table = {"model": "model", "memory": ["law"], "write_to": ["mine"], "threads": 1, **entries}
    lines = [f"{name} = {json.dumps(value)}" for name, value in table.items()]
    (place / "serve.toml").write_text("\n".join(lines), encoding="utf-8")


def renew(model: Path) -> None:
    """The same model as if it were another one."""
    for path in model.iterdir():
        os.utime(path, ns=(1, time.time_ns()))


def reload(server: Server, status: int = 200, key: str = "") -> Any:
    reply = server.ask("POST", "/v1/admin/reload", {}, key=key)
    assert reply.status == status, reply.body
    return reply.json


def names(server: Server, address: str = "memories") -> list[str]:
    return [entry["name"] for entry in server.get(f"/v1/{address}")[address]]


def test_memories_terms_and_models_are_read_again(place: Path) -> None:
    with configured(place) as server:
        queue = server.service.latest.models[0].queue
        build(place / "news", [], "en", "fr")
        (place / "house.csv").write_text("en,fr\nCommission,Comité\n", encoding="utf-8")
        configure(place, memory=["law", "news"], terms=["house.csv"], port=7)
        told = reload(server)
        assert told["memories"] == ["law", "news", "mine"] and told["terms"] == ["house"]
        assert told["restart"] == ["port"] and "news" in told["opened"]
        assert names(server) == ["law", "news", "mine"]
        assert server.service.latest.models[0].queue is not queue  # it reads one more memory
        (place / "house.csv").write_text("en,fr\nState,Land\nvoid,vide\n", encoding="utf-8")
        assert reload(server)["opened"] == []
        assert [entry["terms"] for entry in server.get("/v1/terms")["terms"]] == [2]
        renew(place / "model")
        told = reload(server)
        assert (told["opened"], told["closed"]) == (["model"], ["model"])
        configure(place, memory=["news"])
        assert reload(server)["closed"] == ["model", "law"]
        assert server.ask("POST", "/v1/memories/law/search", {"texts": ["a"]}).status == 404
        deadline = time.monotonic() + 30
        while queue._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not queue._thread.is_alive()


def test_no_request_is_refused_or_lost_meanwhile(place: Path) -> None:
    """Translations, streams, confirmed pairs and a job, while everything is opened anew again and
    again."""
    statuses, confirmed, ended = list[int](), list[str](), threading.Event()

    def translate(server: Server, path: str) -> None:
        while not ended.is_set():
            reply = server.ask("POST", path, {"texts": [TEXT] * 3})
            statuses.append(reply.status)
            assert b"event: error" not in reply.body

    def confirm(server: Server) -> None:
        id = server.ask("POST", "/v1/sessions", {"write_to": "mine"}).json["id"]
        while not ended.is_set():
            src = f"Notice of number {len(confirmed)}"
            body = {"src": src, "tgt": "x"}
            statuses.append(server.ask("POST", f"/v1/sessions/{id}/confirm", body).status)
            confirmed.append(src)
            reply = server.ask("POST", f"/v1/sessions/{id}/translate", {"texts": [TEXT]})
            statuses.append(reply.status)

    with configured(place) as server:
        document = "\n\n".join(f"{TEXT} It is number {n}." for n in range(60)).encode()
        job = server.ask("POST", "/v1/documents?name=a.md", document).json["id"]
        calls = [(translate, "/v1/translate"), (translate, "/v1/translate/stream")]
        threads = [threading.Thread(target=work, args=(server, path)) for work, path in calls]
        threads.append(threading.Thread(target=confirm, args=(server,)))
        for thread in threads:
            thread.start()
        for number in range(1, 4):
            deadline = time.monotonic() + 60
            while len(statuses) < 4 * number and time.monotonic() < deadline:
                time.sleep(0.01)
            renew(place / "model")
            assert reload(server)["opened"] == ["model"]
        ended.set()
        for thread in threads:
            thread.join()
        assert len(statuses) >= 12 and set(statuses) == {200}
        while (state := server.get(f"/v1/jobs/{job}"))["state"] not in ("done", "failed"):
            time.sleep(0.05)
        assert state["state"] == "done", state["error"]
        (memory,) = [m for m in server.service.latest.memories if m.name == "mine"]
        assert {segment.src for segment in memory.index.segments()} == set(confirmed)


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        ({"memory": ["none"]}, "none"),
        ({"model": "none"}, "none"),
        ({"terms": ["none.csv"]}, "none.csv"),
        ({"keys": "none.toml"}, "none.toml"),
        ({"port": "x"}, "port"),
        ({"memory": [], "write_to": [], "model": []}, "nothing to serve"),
    ],
)
def test_what_is_broken_leaves_the_former_at_work_and_says_why(
    place: Path, entries: dict[str, Any], what: str
) -> None:
    with configured(place) as server:
        configure(place, **entries)
        error = reload(server, 409)["error"]
        assert error["code"] == "not_reloaded" and what in error["message"]
        assert names(server) == ["law", "mine"] and names(server, "models") == ["model"]
        assert server.ask("POST", "/v1/translate", {"texts": [TEXT]}).status == 200
        configure(place)
        assert reload(server)["memories"] == ["law", "mine"]


def test_keys_are_read_again_by_an_admin_alone(place: Path) -> None:
    path = place / "keys.toml"
    admin = new_key(path, "admin", "admin", None, [])
    reader = new_key(path, "reader", "read", None, ["law"])
    configure(place, keys="keys.toml")
    with configured(place) as server:
        assert reload(server, 403, reader)["error"]["code"] == "forbidden"
        assert reload(server, 401)["error"]["code"] == "no_key"
        other = new_key(path, "other", "read", None, ["law"])
        assert server.ask("GET", "/v1/models", key=other).status == 401
        assert reload(server, key=admin)["keys"] == 3
        assert server.ask("GET", "/v1/models", key=other).status == 200
        new_key(path, "wrong", "read", None, ["news"])
        assert "news is not served" in reload(server, 409, admin)["error"]["message"]
        assert server.ask("GET", "/v1/models", key=other).status == 200
        configure(place)  # without keys, everybody would be answered
        assert "after a restart alone" in reload(server, 409, admin)["error"]["message"]
        assert server.ask("GET", "/v1/models").status == 401
