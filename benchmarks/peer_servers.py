"""Servers of other makers with a Transformer of ours: CTranslate2 behind the smallest server, and
LibreTranslate's own. Both are put into .cache/ on the first run; afterwards nothing is
downloaded."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from functools import cache
from pathlib import Path

from serve_load import Server
from workers import HERE, environment

BEAM = 5
PINS = ["libretranslate==1.9.6", "ctranslate2==4.8.5", "spacy==3.8.18", "safetensors==0.8.0"]
# but for LibreTranslate, which makes folders at home when it is imported
NEEDS = "ctranslate2, flask_babel, minisbd, safetensors, spacy"
READY = 180.0  # seconds a server has to start


class Minimal(Server):
    """CTranslate2 behind the smallest server."""

    def __init__(self, model: Path, converted: Path, threads: int) -> None:
        script = HERE / "ctranslate2_server.py"
        self.process = subprocess.Popen(
            [peers(), script, converted, model / "spm.model", str(BEAM), str(threads)],
            stdout=subprocess.PIPE,
            text=True,
            env=surroundings(threads),
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the server of CTranslate2 did not start; see its messages above")
        self.port = int(line)


class LibreTranslate(Server):
    """LibreTranslate's own server, as its command starts it, without its web page; `home` holds
    its packages and all that it writes, its log, too."""

    def __init__(self, home: Path, precision: str, threads: int) -> None:
        self.port = free_port()
        options = ["--port", str(self.port), "--load-only", "en,fr", "--disable-web-ui"]
        with (home / "log").open("w") as log:
            self.process = subprocess.Popen(
                [peers(), "-c", "import libretranslate; libretranslate.main()", *options],
                stdout=log,
                stderr=log,
                text=True,
                cwd=home,
                env=surroundings(threads) | self._settings(home, precision, threads),
            )
        self._wait(home / "log")

    @staticmethod
    def _settings(home: Path, precision: str, threads: int) -> dict[str, str]:
        """Of Argos Translate."""
        return {
            **{f"XDG_{kind}_HOME": str(home / kind) for kind in ("DATA", "CACHE", "CONFIG")},
            "ARGOS_PACKAGES_DIR": str(home / "packages"),
            "ARGOS_PACKAGE_INDEX": f"{home.as_uri()}/",
            "ARGOS_CHUNK_TYPE": "SPACY",
            "ARGOS_BEAM_SIZE": str(BEAM),
            "ARGOS_COMPUTE_TYPE": precision,
            "ARGOS_INTRA_THREADS": str(threads),
        }

    def _wait(self, log: Path) -> None:
        """Until it takes connections."""
        until = time.monotonic() + READY
        while time.monotonic() < until and self.process.poll() is None:
            try:
                return socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.2)
        self.process.kill()
        raise SystemExit(f"LibreTranslate did not start:\n{log.read_text()[-2000:]}")


@cache
def peers() -> Path:
    """The interpreter that has them."""
    return environment("libretranslate", [PINS], NEEDS)


def surroundings(threads: int) -> dict[str, str]:
    """The environment of a peer: no GPU, and so many threads."""
    return {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": str(threads)}


def free_port() -> int:
    """One that nothing listens on, for a server that cannot choose its own."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def convert(model: Path, output: Path, precision: str) -> Path:
    """The model in CTranslate2's format."""
    script = HERE / "ctranslate2_model.py"
    subprocess.run([peers(), "-W", "ignore", script, model, output, precision], check=True)
    return output


def argos_home(model: Path, home: Path, precision: str) -> Path:
    """A home of LibreTranslate with the model as its only package, and an empty list of packages to
    download.

    Its splitter of sentences downloads a network. It may be spaCy instead, with a pipeline in the
    package: here an empty one, to which it adds rules of its own. The file without content stands
    for the pipeline that it would download and not read."""
    package = home / "packages" / "translate-en_fr"
    package.mkdir(parents=True)
    told = {"from_code": "en", "from_name": "English", "to_code": "fr", "to_name": "French"}
    version = {"package_version": "1.0", "argos_version": "1.0"}
    (package / "metadata.json").write_text(json.dumps(told | version), encoding="utf-8")
    (home / "index.json").write_text("[]", encoding="utf-8")
    convert(model, package / "model", precision)
    shutil.copy(model / "spm.model", package / "sentencepiece.model")
    blank = "import sys, spacy; spacy.blank('en').to_disk(sys.argv[1])"
    subprocess.run([peers(), "-W", "ignore", "-c", blank, package / "spacy"], check=True)
    cached = home / "CACHE" / "argos-translate" / "spacy" / "senter" / "model"
    cached.parent.mkdir(parents=True)
    cached.touch()
    return home


def minimal(model: Path, folder: Path, precision: str, threads: int) -> Server:
    """Started; its files lie in `folder`."""
    return Minimal(model, convert(model, folder / f"ct2-{precision}", precision), threads)


def libretranslate(model: Path, folder: Path, precision: str, threads: int) -> Server:
    """Started; its files lie in `folder`."""
    home = argos_home(model, folder / f"libretranslate-{precision}", precision)
    return LibreTranslate(home, precision, threads)
