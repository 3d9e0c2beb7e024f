"""The servers that tests of an index on a server use: of the engine that TMNMT_ENGINE names, or
Elasticsearch 9."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from places import ROOT
from required import absent

from tmnmt.index.elastic.address import ElasticAddress
from tmnmt.index.elastic.engine import ENGINES
from tmnmt.index.elastic.server import Server

SCRIPT = ROOT / "index" / "elasticsearch" / "server.py"


def script() -> ModuleType:
    """index/elasticsearch/server.py as a module."""
    spec = importlib.util.spec_from_file_location("elasticsearch_server", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Running:
    """A server of one's own, which may be killed and started again on the same data and port."""

    server: ModuleType
    folder: Path
    url: str
    cluster: tuple[int, ...] = ()  # the ports of its nodes, its own first
    engine: str = ""  # as the script names it; by default the one of the environment

    @property
    def kind(self) -> str:
        """The name of the engine, as addresses begin."""
        return str(self.server.engine(self.engine).kind)

    def address(self, name: str, *more_urls: str) -> ElasticAddress:
        engine = next(one for one in ENGINES if one.prefix == f"{self.kind}+")
        return ElasticAddress((self.url, *more_urls), name, engine)

    def ask(self, method: str, path: str, body: Any = None, **parameters: Any) -> Any:
        """What the server answers to a request of no index of tmnmt's."""
        with closing(Server(self.address("none"))) as server:
            return server.ask(method, path, body, **parameters)

    def find(self, name: str, query: dict[str, Any]) -> list[dict[str, Any]]:
        """The documents of an index that a query finds."""
        search = {"query": query, "size": 1000}
        hits: list[dict[str, Any]] = self.ask("POST", f"/{name}/_search", search)["hits"]["hits"]
        return hits

    def count(self, name: str, query: dict[str, Any]) -> int:
        """How many documents of an index a query finds."""
        return int(self.ask("POST", f"/{name}/_count", {"query": query})["count"])

    def put(self, name: str, document: str, content: dict[str, Any]) -> None:
        """Writes a document of an index, which can be found then."""
        self.ask("PUT", f"/{name}/_doc/{document}", content, refresh=True)

    def kill(self) -> None:
        self.server.kill(self.folder)

    def start(self) -> None:
        port = int(self.url.rpartition(":")[2])
        self.server.start(self.folder, port, True, self.cluster, self.engine)

    def hang(self) -> None:
        """It takes requests from now on and answers none, until `go_on`."""
        os.kill(self.server.process_id(self.folder), signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.server.process_id(self.folder), signal.SIGCONT)


@contextmanager
def running(engine: str = "", needed: str = "elasticsearch") -> Iterator[Running]:
    """A server in a temporary folder that `nobody` can reach (pytest's are private). `needed`: the
    name by which it is required."""
    server = script()
    if trouble := server.missing(engine):
        absent(needed, trouble)
    folder = Path(tempfile.mkdtemp(prefix="tmnmt-elasticsearch-"))
    try:
        url = server.start(folder, quick=True, name=engine)
        yield Running(server, folder, url, engine=engine)
    finally:
        server.stop(folder)
        shutil.rmtree(folder)


@contextmanager
def running_nodes(count: int) -> Iterator[list[Running]]:
    """As `running`, several nodes of one cluster."""
    server = script()
    if trouble := server.missing():
        absent("elasticsearch", trouble)
    ports = [server.free_port() for _ in range(2 * count)]
    own = Path(tempfile.mkdtemp(prefix="tmnmt-elasticsearch-"))
    own.chmod(0o755)
    nodes = []
    for i in range(count):
        (folder := own / str(i)).mkdir()
        cluster = ports[i], *(port for port in ports[:count] if port != ports[i])
        nodes.append(Running(server, folder, f"http://127.0.0.1:{ports[count + i]}", cluster))
    try:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(Running.start, nodes))
        yield nodes
    finally:
        for node in nodes:
            server.stop(node.folder)
        shutil.rmtree(own)


def at_once(work: Callable[[str], None], *names: str) -> None:
    """Several who do the same at the same time, each under a name."""
    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
