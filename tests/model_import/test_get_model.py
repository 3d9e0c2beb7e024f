"""Published models, fetched from a server on this machine that has the layout of the real one, and
the files of a real model."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from published_student import FILES, entry, listed, model_files, published_files

from tmnmt.cli import run
from tmnmt.model_import import download
from tmnmt.model_import.published import registry_of
from tmnmt.models.folder import load_model


class Published(ThreadingHTTPServer):
    """`requests`: what was asked for, with its range; `breaks`: after so many bytes an answer
    stops, as often as the list has numbers; `ranges`: whether parts are served."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        self.requests: list[tuple[str, str]] = []
        self.breaks: list[int] = []
        self.ranges = True
        self.redirect = ""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(SimpleHTTPRequestHandler):
    server: Published

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        asked = self.headers.get("Range", "")
        self.server.requests.append((self.path, asked))
        if self.server.redirect and self.path.endswith(".gz"):
            self.send_response(302)
            self.send_header("Location", self.server.redirect)
            self.end_headers()
            return
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        begin = int(asked[len("bytes=") : -1]) if asked and self.server.ranges else 0
        if begin >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        rest = content[begin:]
        if self.server.breaks and path.suffix == ".gz":
            rest = rest[: self.server.breaks.pop(0)]
            self.close_connection = True
        self.wfile.write(rest)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a server."""
    return published_files(tmp_path_factory.mktemp("site"))


@pytest.fixture
def server(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Published]:
    monkeypatch.setattr(download, "PAUSE", 0.01)
    published = Published(site)
    thread = threading.Thread(target=published.serve_forever)
    thread.start()
    (site / "models.json").write_text(listed(published.address))
    yield published
    published.shutdown()
    thread.join()
    published.server_close()


def get(server: Published, output: Path, *more: str) -> int:
    registry = f"{server.address}/models.json"
    return run(["get-model", "en", "pt", "-o", str(output), "--registry", registry, *more])


def test_a_model_is_fetched_compared_and_imported(
    server: Published, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert get(server, tmp_path / "en-pt") == 0
    captured = capsys.readouterr()
    assert captured.out.strip() == str(tmp_path / "en-pt")
    assert "tiny" in captured.err and "MPL-2.0" in captured.err
    config = load_model(tmp_path / "en-pt").config
    assert (config["src_lang"], config["tgt_lang"]) == ("en", "pt")
    assert (tmp_path / "en-pt" / "shortlist.safetensors").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["en-pt"]
    assert len(server.requests) == 4


def test_a_broken_connection_goes_on_where_it_stopped(server: Published, tmp_path: Path) -> None:
    server.breaks = [100_000, 5_000]
    assert get(server, tmp_path / "en-pt") == 0
    model = [each for path, each in server.requests if "model.enpt" in path]
    assert model == ["", "bytes=100000-", "bytes=105000-"]


def test_a_command_goes_on_where_the_last_one_stopped(
    server: Published, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.breaks = [1000] * download.TRIES
    assert get(server, tmp_path / "en-pt") == 1
    assert "the same command goes on" in capsys.readouterr().err
    assert not (tmp_path / "en-pt").exists()
    server.requests.clear()
    assert get(server, tmp_path / "en-pt") == 0
    model = [each for path, each in server.requests if "model.enpt" in path]
    assert model == [f"bytes={1000 * download.TRIES}-"]


def test_a_server_that_serves_no_parts_sends_all_again(server: Published, tmp_path: Path) -> None:
    server.ranges = False
    server.breaks = [100_000]
    assert get(server, tmp_path / "en-pt") == 0


def test_no_other_host_is_asked(
    server: Published, site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Published(site)
    threading.Thread(target=other.serve_forever).start()
    server.redirect = f"{other.address}/models/en-pt/tiny/{FILES['vocab']}.gz"
    assert get(server, tmp_path / "en-pt") == 1
    assert "another host" in capsys.readouterr().err
    server.redirect = ""
    (site / "models.json").write_text(listed(other.address))
    assert get(server, tmp_path / "en-pt") == 1
    assert "another host" in capsys.readouterr().err
    assert other.requests == []
    other.shutdown()
    other.server_close()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"uncompressedHash": "0" * 64}, "not the file that the list of models names"),
        ({"uncompressedSize": 1000}, "larger than the list of models says"),
        ({"uncompressedSize": 800_000}, "not the file that the list of models names"),
        ({"path": "../model.bin.gz"}, "wanted: a path below"),
        ({"path": "https://elsewhere.example/model.bin.gz"}, "wanted: a path below"),
        ({"uncompressedSize": -1}, "a number of bytes"),
        ({"uncompressedHash": 5}, "a sha256"),
    ],
)
def test_what_is_not_as_the_list_says_is_refused(
    changes: dict[str, Any],
    message: str,
    server: Published,
    site: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bad = entry()
    bad["files"]["vocab"] |= changes
    (site / "models.json").write_text(listed(server.address, bad))
    assert get(server, tmp_path / "en-pt") == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "en-pt").exists()


def test_a_released_model_is_taken_and_the_best_of_those(
    capsys: pytest.CaptureFixture[str],
) -> None:
    entries = [
        entry("Nightly", architecture="base-memory"),
        entry("Release", architecture="tiny"),
        entry("Release Android", architecture="base"),
    ]
    registry = registry_of(listed("https://models.example", *entries).encode(), "list")
    assert registry.best("en", "pt").architecture == "base"
    assert registry.best("en", "pt", "tiny").architecture == "tiny"
    only = registry_of(listed("https://models.example", entries[0]).encode(), "list")
    with pytest.raises(Exception, match=r"no released model; published are: base-memory \(Nigh"):
        only.best("en", "pt")
    with pytest.raises(Exception, match="no model from en to xx is published"):
        only.best("en", "xx")


def test_a_copy_of_the_files_on_this_machine_is_a_mirror(site: Path, tmp_path: Path) -> None:
    mirror = site / "copy.json"
    mirror.write_text(listed("."))
    arguments = ["get-model", "en", "pt", "-o", str(tmp_path / "en-pt")]
    assert run([*arguments, "--registry", str(mirror)]) == 0
    assert load_model(tmp_path / "en-pt").config["model"]["kind"] == "student"


def test_the_list_is_shown(server: Published, capsys: pytest.CaptureFixture[str]) -> None:
    registry = f"{server.address}/models.json"
    assert run(["get-model", "--list", "--registry", registry]) == 0
    assert capsys.readouterr().out == "en pt\ttiny\t22 MB\tRelease\n"
    assert [path for path, _ in server.requests] == ["/models.json"]


def test_wrong_use_and_bad_lists_are_one_line(
    server: Published, site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["get-model", "en"]) == 2
    assert run(["get-model", "en", "pt", "--registry", "http://models.example/models.json"]) == 2
    (tmp_path / "there").mkdir()
    assert get(server, tmp_path / "there") == 2
    for content in ("<html>", "[]", '{"baseUrl": "x", "models": {"en-pt": [{}]}}', "[" * 100_000):
        (site / "models.json").write_text(content)
        assert get(server, tmp_path / "en-pt") == 1
    assert run(["get-model", "en", "pt", "--registry", f"{server.address}/none.json"]) == 1
    errors = capsys.readouterr().err.strip().splitlines()
    assert len(errors) == 8
    assert all(line.startswith("tmnmt: error: ") for line in errors)
    assert server.requests[0][0] == "/models.json"


class Proxy(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_error(503)


def test_a_proxy_of_the_environment_is_used(
    server: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever).start()
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert get(server, tmp_path / "en-pt") == 1
    proxy.shutdown()
    proxy.server_close()
    assert Proxy.asked == [f"{server.address}/models.json"]
    assert server.requests == []


def test_a_model_of_another_pair_is_not_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "enpt"
    folder.mkdir()
    for name in FILES.values():
        (folder / name).write_bytes((model_files() / name).read_bytes())
    languages = ["--src-lang", "en", "--tgt-lang", "es"]
    assert run(["import-model", str(folder), "-o", str(tmp_path / "made"), *languages]) == 1
    error = capsys.readouterr().err
    assert "its files are called by en to pt, so it is no model from en to es" in error
    assert not (tmp_path / "made").exists()
