"""A Ray cluster of this machine alone: its head listens on the loopback, and wants a token."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from peer_servers import free_port

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 600.0  # that anything may take on a busy machine


class Head:
    """A head and all that it starts: one process group."""

    def __init__(self, folder: Path, processors: int = 2) -> None:
        """folder: where it writes; names of sockets have to be short.
        processors: how many it gives, one to a worker."""
        self.folder, self.port = folder, free_port()
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(16),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # so that it listens on the loopback alone
        }
        options = ["--head", "--block", "--node-ip-address=127.0.0.1", f"--port={free_port()}"]
        options += [f"--ray-client-server-port={self.port}", f"--num-cpus={processors}"]
        options += ["--include-dashboard=false", "--disable-usage-stats", f"--temp-dir={folder}"]
        options += [f"--object-store-memory={80 * 10**6}"]
        code = "import sys; from ray.scripts.scripts import main; sys.exit(main())"
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, "start", *options],
                stdout=log,
                stderr=log,
                env=self.environment,
                start_new_session=True,
            )

    @property
    def address(self) -> str:
        return f"ray://127.0.0.1:{self.port}"

    def wait(self) -> None:
        """Clients are served when this returns."""
        code = (
            "import sys, ray\nwhile not ray.is_initialized():\n    try:\n        "
            "ray.init(sys.argv[1], log_to_driver=False)\n    except ConnectionError:\n        pass"
        )

        def listens() -> bool:
            assert self.process.poll() is None, (self.folder / "log").read_text(encoding="utf-8")
            with suppress(OSError), closing(socket.create_connection(("127.0.0.1", self.port), 1)):
                return True
            return False

        deadline = time.monotonic() + SECONDS
        while not listens():
            if time.monotonic() > deadline:
                raise TimeoutError((self.folder / "log").read_text(encoding="utf-8"))
            time.sleep(0.02)
        command = [sys.executable, "-c", code, self.address]
        subprocess.run(
            command, env=self.environment, check=True, capture_output=True, timeout=SECONDS
        )

    def workers(self) -> list[int]:
        """The processes that do a task just now."""
        return [pid for pid in self._processes() if _title(pid) == "ray::run"]

    def _processes(self) -> Iterator[int]:
        """Those that the head has started, and what these have started."""
        for path in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                if os.getsid(int(path.name)) == self.process.pid:
                    yield int(path.name)

    def end(self) -> None:
        for pid in [*self._processes(), self.process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(SECONDS)


def _title(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode().strip()
    return ""
