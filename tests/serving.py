"""A server in a thread of the tests, and requests to it."""

from __future__ import annotations

import http.client
import json
import re
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from declared_answers import check_reply

from tmnmt.config.server_config import ServerConfig
from tmnmt.config.serving import ServerOptions
from tmnmt.serve.keys import Keys
from tmnmt.serve.reloading import Reloader
from tmnmt.serve.running import listening, server_of, service_of
from tmnmt.serve.service import Limits, Service
from tmnmt.serve.site import Site

SECONDS = 300  # that an answer may take where compiled code is made first, on a busy machine
Between = Callable[[Any], Any]


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Server:
    """One that runs. `url`: without a slash at its end."""

    url: str
    service: Service
    keys: dict[str, str] = field(default_factory=dict)  # that tests have made, by name
    stop: Callable[[], None] = lambda: None  # as a signal does

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | Mapping[str, Any] | list[Any] | None = None,
        form: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        key: str = "",
    ) -> Reply:
        """body: as it is, or of JSON. form: sent as one."""
        told = dict(headers or {})
        if key:
            told["Authorization"] = f"Bearer {key}"
        if form is not None:
            body = urlencode(form, doseq=True).encode()
            told.setdefault("Content-Type", "application/x-www-form-urlencoded")
        elif body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            told.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=SECONDS)
        try:
            connection.request(method, path, body, told)
            reply = connection.getresponse()
            found = {name.lower(): value for name, value in reply.getheaders()}
            content = reply.read()
        finally:
            connection.close()
        check_reply(method, path, reply.status, found.get("content-type", ""), content)
        return Reply(reply.status, found, content)

    def get(self, path: str, **query: str) -> Any:
        """The JSON of a GET that must go well."""
        reply = self.ask("GET", f"{path}?{urlencode(query)}" if query else path)
        assert reply.status == 200, reply.body
        return reply.json


@contextmanager
def serving(
    service: Service, between: Between = lambda app: app, drain: float = 0.0
) -> Iterator[Server]:
    """between: wraps the application, as a slow network does. drain: the seconds for which it goes
    on once it is stopped; the end of the block does not wait for them."""
    socket = listening("127.0.0.1", 0)
    service.start()
    server = server_of(service, drain=drain)
    server.config.app = between(server.config.app)
    thread = threading.Thread(target=server.run, args=([socket],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        url = f"http://127.0.0.1:{socket.getsockname()[1]}"
        yield Server(url, service, stop=lambda: setattr(server, "should_exit", True))
    finally:
        server.should_exit, server.force_exit = True, drain > 0
        thread.join()
        service.stop()


@contextmanager
def tiny_server(
    folder: Path,
    read: tuple[str, ...] = (),
    written: tuple[str, ...] = (),
    keys: Keys | None = None,
    limits: Limits = Limits(),
    terms: tuple[str, ...] = (),
    sessions: str | Path | None = None,
    site: Site = Site(),
    between: Between = lambda app: app,
) -> Iterator[Server]:
    """Of the model in `folder`, which its memories and terms are named from. `sessions`: a file
    or Redis; not given, a file of its own."""

    def named(memories: tuple[str, ...]) -> list[str]:
        return [memory.replace("=", f"={folder}/") for memory in memories]

    models = [folder / "model"]
    service = service_of(
        models,
        named(read),
        named(written),
        keys,
        limits,
        threads=1,
        terms=named(terms),
        sessions=str(sessions or folder / f"{secrets.token_hex(8)}.db"),
        site=site,
    )
    if keys is None:  # these stand in no file
        options = ServerOptions(
            model=tuple(map(str, models)),
            memory=tuple(named(read)),
            write_to=tuple(named(written)),
            terms=tuple(named(terms)),
            threads=1,
        )
        config = ServerConfig(options)
        service.reload = lambda: Reloader(service, config, lambda: config).reload().record
    with serving(service, between) as server:
        yield server


@contextmanager
def process(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server, and its port."""
    command = [sys.executable, "-m", "tmnmt", "serve", "--model", str(folder / "model")]
    started = subprocess.Popen(
        [*command, "--port", "0", "--threads", "1", *options], stderr=subprocess.PIPE, text=True
    )
    try:
        assert started.stderr is not None
        port = 0
        for line in started.stderr:
            if found := re.match(r"serving at http://127\.0\.0\.1:(\d+)$", line):
                port = int(found[1])
                break
        assert port, "it did not start"
        yield started, port
    finally:
        started.kill()
        started.wait()
        if started.stderr is not None:
            started.stderr.close()


def post(port: int, path: str, body: Any) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        content = {"Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(body), content)
        reply = connection.getresponse()
        assert reply.status == 200
        return json.loads(reply.read())
    finally:
        connection.close()
