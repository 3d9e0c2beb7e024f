"""The server that tests of the Elasticsearch index share, or the reason to skip them."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from tmnmt.index.elastic_address import ElasticAddress

SCRIPT = Path(__file__).parents[1] / "index" / "elasticsearch" / "server.py"


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

    def address(self, name: str) -> ElasticAddress:
        return ElasticAddress((self.url,), name)

    def kill(self) -> None:
        self.server.kill(self.folder)

    def start(self) -> None:
        self.server.start(self.folder, int(self.url.rpartition(":")[2]), quick=True)


@contextmanager
def running() -> Iterator[Running]:
    """A server in a temporary folder that `nobody` can reach (pytest's are private); skips where it cannot run."""
    server = script()
    if trouble := server.missing():
        pytest.skip(trouble)
    folder = Path(tempfile.mkdtemp(prefix="tmnmt-elasticsearch-"))
    try:
        yield Running(server, folder, server.start(folder, quick=True))
    finally:
        server.stop(folder)
        shutil.rmtree(folder)


def at_once(work: Callable[[str], None], *names: str) -> None:
    """Several who do the same at the same time, each under a name."""
    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
