"""The Redis that tests of the server use: real ones, each in a folder of its own."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from required import absent

KEEPS_ALL = ("--appendonly", "yes", "--appendfsync", "always")


@dataclass
class Redis:
    """A process, which may be killed and started again on the same data and socket."""

    folder: Path
    port: int = 0  # 0: the socket alone
    options: tuple[str, ...] = KEEPS_ALL
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"unix://{self.folder / 'socket'}"

    def start(self) -> None:
        """It answers when this returns."""
        where = ("--dir", str(self.folder), "--unixsocket", str(self.folder / "socket"))
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([*command, *where, *self.options], stdout=log)
        deadline = time.monotonic() + 60
        while b"PONG" not in (told := self._said()) and b"-NOAUTH" not in told:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError((self.folder / "log").read_text())
            time.sleep(0.02)

    def _said(self) -> bytes:
        with closing(socket.socket(socket.AF_UNIX)) as to:
            to.settimeout(10)
            try:
                to.connect(str(self.folder / "socket"))
                to.sendall(b"PING\r\n")
                return to.recv(100)
            except OSError:
                return b""

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(60)
            self._process = None

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def hang(self) -> None:
        """It takes connections from now on and answers nothing, until `go_on`."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def client(self, **settings: Any) -> Any:
        import redis

        return redis.Redis(unix_socket_path=str(self.folder / "socket"), protocol=2, **settings)

    def run(self, *command: Any) -> Any:
        with closing(self.client()) as client:
            return client.execute_command(*command)


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def running(*options: str, port: int = 0) -> Iterator[Redis]:
    """A Redis with these options beside or instead of those that keep all."""
    if shutil.which("redis-server") is None:
        absent("redis", "redis-server is not installed: apt-get install redis-server")
    folder = Path(tempfile.mkdtemp(prefix="tmnmt-redis-"))  # the name of a socket has to be short
    server = Redis(folder, port, (*KEEPS_ALL, *options))
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder)
