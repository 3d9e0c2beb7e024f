"""A cluster on this machine, to try and to break: Elasticsearch nodes, a Redis, servers of tmnmt
that share them, and a proxy in front.

    python index/elasticsearch/server.py fetch
    python deploy/cluster/cluster.py FOLDER --model models/law.en-fr

All parts are processes that listen on loopback alone. Their data, logs and ports lie in FOLDER, so
that the same command goes on with what is there. Ctrl-C stops them all, the proxy first. The
settings are those of the files beside this one, which the compose file and the units use, too. It
needs redis-server, caddy, and a Java (docs/cluster.md)."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from types import ModuleType
from typing import Protocol

from tmnmt.errors import TmnmtError
from tmnmt.formats import read_memories
from tmnmt.index.elastic.address import parse_address
from tmnmt.index.elastic.build import build_elastic
from tmnmt.index.embedded.build import IndexExistsError
from tmnmt.segments import Segment

HERE = Path(__file__).resolve().parent
ELASTIC = HERE.parents[1] / "index" / "elasticsearch" / "server.py"
SECONDS_TO_START, SECONDS_TO_STOP = 600.0, 120.0  # on an idle machine 20, and 10
LOOK = 0.1  # seconds between looks whether something is there


class ClusterTrouble(Exception):
    """What is missing or went wrong, and what helps."""


class Part(Protocol):
    """A process of the cluster."""

    name: str

    def start(self) -> None:
        """It answers when this returns. Raises ClusterTrouble."""

    def stop(self) -> None:
        """It finishes what it took, and ends."""

    def kill(self) -> None:
        """It ends at once."""

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to it."""

    def has_ended(self) -> bool:
        """Whether it was started and is gone."""


class Process:
    """A program that runs in the foreground."""

    def __init__(
        self,
        name: str,
        folder: Path,
        command: Sequence[str],
        answers: Callable[[], bool],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """name: what it is called.
        folder: where it works and writes its log.
        command: what runs it.
        answers: whether it answers now.
        environment: variables beside those of this process."""
        self.name, self._folder, self._command = name, folder, command
        self._answers, self._environment = answers, dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        log = self._folder / "log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=os.environ | self._environment,
                start_new_session=True,
            )
        end = time.monotonic() + SECONDS_TO_START
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                lines = log.read_text(errors="replace").strip().splitlines()[-3:]
                raise ClusterTrouble(f"{self.name} does not answer; {log}: {' | '.join(lines)}")
            time.sleep(LOOK)

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(SECONDS_TO_STOP)
        self.kill()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def has_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None


class Node:
    """A node of Elasticsearch."""

    def __init__(
        self,
        server: ModuleType,
        name: str,
        folder: Path,
        port: int,
        ports: Sequence[int],
        quick: bool,
    ) -> None:
        """server: the module that runs it.
        name: what it is called.
        folder: where all of it lies.
        port: that of HTTP.
        ports: those by which the nodes find each other, its own first.
        quick: as `Cluster` has it."""
        self.name, self._server, self._folder, self._quick = name, server, folder, quick
        self._port, self._ports = port, ports
        self._is_started = False

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            self._server.start(self._folder, self._port, self._quick, self._ports)
        except self._server.ServerTrouble as trouble:
            raise ClusterTrouble(str(trouble)) from None
        self._is_started = True

    def stop(self) -> None:
        self.signal(signal.SIGCONT)
        self._server.stop(self._folder)
        self._is_started = False

    def kill(self) -> None:
        self._server.kill(self._folder)
        self._is_started = False

    def signal(self, number: signal.Signals) -> None:
        if pid := self._server.process_id(self._folder):
            os.kill(pid, number)

    def has_ended(self) -> bool:
        return self._is_started and self._server.process_id(self._folder) is None


class Cluster:
    """All parts. Ends them with the block."""

    def __init__(
        self,
        folder: Path,
        model: Path,
        nodes: int = 3,
        servers: int = 2,
        port: int = 0,
        memories: Sequence[str] = (),
        quick: bool = False,
    ) -> None:
        """folder: what keeps everything, made at need.
        model: the folder of the model that is served.
        nodes: how many nodes of Elasticsearch there are.
        servers: how many servers of tmnmt there are.
        memories: names of indexes that are read beside the one that is written to.
        quick: whether nodes start in half the time and never get as fast as they could.
        port: that of the proxy; 0 takes one that is free, or that was taken before.

        Raises ClusterTrouble where something is missing."""
        elastic = _elastic()
        if trouble := elastic.missing():
            raise ClusterTrouble(trouble)
        self.folder = folder.absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        ports = _ports(self.folder, elastic.free_port, 2 * nodes + servers + 2)
        inner, outer, rest = ports[:nodes], ports[nodes : 2 * nodes], ports[2 * nodes :]
        redis_port, proxy_port, *server_ports = rest
        self.hosts = tuple(f"http://127.0.0.1:{one}" for one in outer)
        self.nodes: list[Part] = [
            Node(
                elastic,
                f"elasticsearch-{number + 1}",
                self.folder / f"elasticsearch-{number + 1}",
                outer[number],
                (inner[number], *(one for one in inner if one != inner[number])),
                quick,
            )
            for number in range(nodes)
        ]
        self.sessions = f"redis://127.0.0.1:{redis_port}/0"
        place = self.folder / "redis"
        listens = ["--port", str(redis_port), "--bind", "127.0.0.1", "--dir", str(place)]
        command = [_program("redis-server"), str(HERE / "redis.conf"), *listens]
        self.redis: Part = Process("redis", place, command, lambda: _takes(redis_port))
        shared = {
            "TMNMT_SESSIONS": self.sessions,
            "TMNMT_MODEL": str(model.absolute()),
            "TMNMT_CLUSTER": self.address("").rstrip("/"),
            "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]),
        }
        options = [f"--memory={name}={self.address(name)}" for name in memories]
        self.server_ports = server_ports
        self.servers: list[Part] = [
            self._server(f"tmnmt-{number + 1}", server_port, options, shared)
            for number, server_port in enumerate(server_ports)
        ]
        self.port = port or proxy_port
        place = self.folder / "caddy"
        settings = {
            "TMNMT_LISTEN": f":{self.port}",
            "TMNMT_SERVERS": " ".join(f"127.0.0.1:{one}" for one in server_ports),
            "TMNMT_CADDY": str(place),
            "HOME": str(place),
        }
        command = [_program("caddy"), "run", "--adapter", "caddyfile", "--config"]
        self.proxy: Part = Process(
            "caddy",
            place,
            [*command, str(HERE / "Caddyfile")],
            lambda: _is_ready(self.port),
            settings,
        )
        self._running = ExitStack()

    def _server(
        self, name: str, port: int, options: Sequence[str], environment: Mapping[str, str]
    ) -> Part:
        command = [sys.executable, "-m", "tmnmt", "serve", "--config", str(HERE / "serve.toml")]
        place = self.folder / name
        return Process(
            name,
            place,
            [*command, "--port", str(port), "--threads", "1", *options],
            lambda: _is_ready(port),
            {**environment, "XDG_STATE_HOME": str(place)},
        )

    def address(self, name: str) -> str:
        """The address of an index on the nodes.

        name: the name of the index."""
        hosts = ",".join(host.removeprefix("http://") for host in self.hosts)
        return f"elasticsearch+http://{hosts}/{name}"

    @property
    def parts(self) -> list[Part]:
        """All parts, in the order in which they are started."""
        return [*self.nodes, self.redis, *self.servers, self.proxy]

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def start(self, parts: Sequence[Part], tell: Callable[[str], None] = lambda line: None) -> None:
        """Starts some parts, all at once. Raises ClusterTrouble.

        parts: the parts.
        tell: is told what is done."""
        tell(f"starting {', '.join(part.name for part in parts)}")
        for part in parts:
            self._running.callback(part.stop)
        with ThreadPoolExecutor(len(parts)) as pool:
            starting = [pool.submit(part.start) for part in parts]
            try:
                for one in starting:
                    one.result()
            except BaseException:  # Ctrl-C, or one has failed: no other is waited for
                for part in parts:
                    part.kill()
                raise

    def build(self, name: str, segments: Iterable[Segment], src_lang: str, tgt_lang: str) -> None:
        """Builds an index, where there is none of this name. It has a copy on a second node.

        name: the name of the index.
        segments: what is in it.
        src_lang: the code of the source language.
        tgt_lang: the code of the target language."""
        address = parse_address(self.address(name))
        with suppress(IndexExistsError):
            build_elastic(
                address, segments, src_lang, tgt_lang, replicas=min(1, len(self.nodes) - 1)
            )

    def wait_until_whole(self) -> None:
        """Waits until the nodes have found each other and all copies. Raises ClusterTrouble."""
        query = f"wait_for_status=green&wait_for_nodes={len(self.nodes)}&timeout=5s"
        end = time.monotonic() + SECONDS_TO_START
        while not _answers(f"{self.hosts[0]}/_cluster/health?{query}"):
            if time.monotonic() > end:
                raise ClusterTrouble(f"{self.hosts[0]}: the cluster does not get healthy")
            time.sleep(LOOK)

    def restart_servers(self, tell: Callable[[str], None] = lambda line: None) -> None:
        """Stops and starts one server after the other, while the proxy goes on.

        tell: is told what is done."""
        for server in self.servers:
            tell(f"stopping {server.name}")
            server.stop()
            tell(f"starting {server.name}")
            server.start()
            time.sleep(2)  # the proxy looks once a second


def _elastic() -> ModuleType:
    """index/elasticsearch/server.py."""
    spec = importlib.util.spec_from_file_location("elasticsearch_server", ELASTIC)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _ports(folder: Path, free_port: Callable[[], int], count: int) -> list[int]:
    """The ports of a folder, which stay the same: sessions name memories by their addresses."""
    path = folder / "ports.json"
    if path.exists():
        ports: list[int] = json.loads(path.read_text(encoding="utf-8"))
        if len(ports) != count:
            raise ClusterTrouble(f"{path}: another number of nodes or servers was started there")
        return ports
    ports = []
    while len(ports) < count:
        if (port := free_port()) not in ports:
            ports.append(port)
    path.write_text(json.dumps(ports) + "\n", encoding="utf-8")
    return ports


def _program(name: str) -> str:
    """Where a program is. Raises ClusterTrouble where it is not installed."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin")
    if found is None:
        raise ClusterTrouble(f"{name} is not installed: apt-get install {name}")
    return found


def _takes(port: int) -> bool:
    """Whether a Redis answers."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as to:
            to.sendall(b"PING\r\n")
            return to.recv(100).startswith(b"+PONG")
    except OSError:
        return False


def _is_ready(port: int) -> bool:
    """Whether a server of tmnmt is ready, or one behind a proxy."""
    return _answers(f"http://127.0.0.1:{port}/ready")


def _answers(url: str) -> bool:
    """Whether an address is answered with the status 200."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, help="a new temporary one by default")
    parser.add_argument("--model", type=Path, required=True, help="the folder of a model")
    parser.add_argument(
        "--memory",
        type=Path,
        action="append",
        default=[],
        help="file that the new index begins with",
    )
    parser.add_argument("--src-lang", default="en", help="of the index (en)")
    parser.add_argument("--tgt-lang", default="fr", help="of the index (fr)")
    parser.add_argument("--nodes", type=int, default=3, help="of Elasticsearch (3)")
    parser.add_argument("--servers", type=int, default=2, help="of tmnmt (2)")
    parser.add_argument("--port", type=int, default=0, help="of the proxy; a free one by default")
    given = parser.parse_args()
    if min(given.nodes, given.servers) < 1:
        parser.error("--nodes and --servers are at least 1")
    folder = given.folder or Path(tempfile.mkdtemp(prefix="tmnmt-cluster-"))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        with Cluster(folder, given.model, given.nodes, given.servers, given.port) as cluster:
            cluster.folder.chmod(0o755)  # Elasticsearch refuses root and runs as nobody
            cluster.start([*cluster.nodes, cluster.redis], _tell)
            languages = given.src_lang, given.tgt_lang
            cluster.build("team", read_memories(given.memory, *languages), *languages)
            cluster.start(cluster.servers, _tell)
            cluster.start([cluster.proxy], _tell)
            _tell(f"the proxy answers at http://127.0.0.1:{cluster.port}")
            _tell(f"indexes lie at {cluster.address('NAME')}, sessions at {cluster.sessions}")
            _tell(f"data and logs lie in {cluster.folder}; Ctrl-C stops everything")
            ended = set[str]()
            while True:
                time.sleep(1)
                for part in cluster.parts:
                    if part.has_ended() and part.name not in ended:
                        ended.add(part.name)
                        _tell(f"{part.name} has ended; its log is below {cluster.folder}")
    except KeyboardInterrupt:
        _tell("stopped; the same command goes on with what is there")
    except (ClusterTrouble, TmnmtError) as trouble:
        sys.exit(f"cluster.py: {trouble}")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
