"""The server behind nginx and Caddy, with the blocks that docs/serve.md gives."""

from __future__ import annotations

import base64
import os
import re
import shutil
import socket
import subprocess
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from places import ROOT
from required import absent
from serving import Reply, Server

PROXIES = ("nginx", "caddy")
STARTS = {"nginx": "server {", "caddy": ":8080 {"}
SECONDS = 60  # that a proxy may take to start on a busy machine
LARGE = 1_500_000  # bytes: nginx takes a million unless it is told otherwise


def block(name: str) -> str:
    """What docs/serve.md gives for a proxy."""
    text = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^    .*\n|^\n)+", text, re.MULTILINE)
    (found,) = (one for one in map(textwrap.dedent, blocks) if one.strip().startswith(STARTS[name]))
    return found


@contextmanager
def proxied(name: str, text: str, server: Server, folder: Path) -> Iterator[Server]:
    """The server as it is reached through a proxy with this block."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    place = text.replace("8080", str(port)).replace("127.0.0.1:5051", urlsplit(server.url).netloc)
    process = subprocess.Popen(
        command(name, place, folder),
        env=os.environ | {"HOME": str(folder), "XDG_DATA_HOME": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + SECONDS
        while process.poll() is None and time.monotonic() < end:
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.05)
        yield Server(f"http://127.0.0.1:{port}", server.service)
    finally:
        process.terminate()
        process.wait()


def command(name: str, text: str, folder: Path) -> list[str]:
    """What runs a proxy with this block, and writes to the folder alone."""
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin")
    if program is None:
        absent("proxies", f"no {name} is installed: apt-get install --no-install-recommends {name}")
    path = folder / f"{name}.conf"
    if name == "caddy":
        path.write_text(f"{{\nadmin off\n}}\n{text}", encoding="utf-8")
        return [program, "run", "--adapter", "caddyfile", "--config", str(path)]
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    user = "" if os.geteuid() else "user root;\n"  # else its workers may not write to the folder
    head = f"{user}daemon off;\npid {folder}/pid;\nerror_log {folder}/log;\nevents {{}}\n"
    path.write_text(f"{head}http {{\naccess_log off;\n{temporary}{text}}}\n", encoding="utf-8")
    return [program, "-p", str(folder), "-c", str(path)]


def post(server: Server, path: str, body: dict[str, object]) -> Reply:
    """As the page of this address asks."""
    own = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    return server.ask("POST", path, body, headers=own)


@pytest.mark.parametrize("name", PROXIES)
def test_the_page_works_behind_a_proxy(name: str, served: Server, tmp_path: Path) -> None:
    with proxied(name, block(name), served, tmp_path) as server:
        address = server.get("/page/address")
        assert address == {"host": urlsplit(server.url).netloc, "local": True}
        assert post(server, "/v1/translate", {"texts": ["All is void."]}).status == 200
        told = post(server, "/v1/translate/stream", {"texts": ["No.", "No."]})
        assert told.body.count(b"event: translation") == 2
        content = base64.b64encode(b"All is void.\n" * (LARGE // 13)).decode()
        reply = post(server, "/v1/documents/segments", {"content": content, "source": "en"})
        assert reply.status == 413 and reply.json["error"]["code"] == "too_large"  # its own answer


def test_a_proxy_that_leaves_the_port_out_is_what_the_block_prevents(
    served: Server, tmp_path: Path
) -> None:
    text = block("nginx").replace("$http_host", "$host")
    with proxied("nginx", text, served, tmp_path) as server:
        assert server.get("/page/address")["host"] == "127.0.0.1"
        assert server.ask("GET", "/page/desk.js", headers={"Origin": server.url}).status == 200
        assert post(server, "/v1/translate", {"texts": ["All is void."]}).status == 403
