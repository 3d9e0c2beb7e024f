"""What is installed: the wheel and the source archive, and where torch comes from."""

from __future__ import annotations

import http.server
import os
import re
import shlex
import subprocess
import sys
import tarfile
import threading
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from places import ROOT
from published_student import model_files

from tmnmt.compiled.native import folders

BUILD = """
import sys
from setuptools.build_meta import build_sdist, build_wheel
folder = sys.argv[1]  # which setuptools changes
build_wheel(folder)
build_sdist(folder)
"""
TORCH = """Metadata-Version: 2.1
Name: torch
Version: 2.99.0+cpu
"""


def tracked(folder: str) -> set[str]:
    names = subprocess.run(
        ["git", "ls-files", "-z", folder], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    return {name for name in names.split("\0") if name and (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel and a source archive of what git tracks."""
    sources, results = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("built")
    for name in tracked("."):
        if name.startswith("tmnmt/") or "/" not in name or name.startswith("tests/"):
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            (sources / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-c", BUILD, str(results)], cwd=sources, check=True, capture_output=True
    )
    return results


def wheel_of(built: Path) -> Path:
    return next(built.glob("*.whl"))


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    names = {
        name for name in zipfile.ZipFile(wheel_of(built)).namelist() if "dist-info" not in name
    }
    assert names == tracked("tmnmt")


def test_the_source_archive_holds_what_the_wheel_is_made_of(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.name.partition("/")[2] for name in archive if name.isfile()}
    own = {name for name in names if not name.startswith("tmnmt.egg-info/")}
    more = {"LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
    assert own == tracked("tmnmt") | more


def test_the_wheel_translates_with_a_student_from_another_folder(
    built: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(wheel_of(built)) as wheel:
        wheel.extractall(tmp_path / "installed")
    memory = "en\tpt\nThe file cannot be opened.\tO ficheiro não pode ser aberto.\n"
    (tmp_path / "memory.tsv").write_text(memory, encoding="utf-8")
    text = "The file cannot be opened.\nThe house is green.\n"
    (tmp_path / "page.txt").write_text(text, encoding="utf-8")
    compiled = str(next(folders()))  # what this checkout has compiled already
    environment = os.environ | {
        "PYTHONPATH": str(tmp_path / "installed"),
        "NUMBA_CACHE_DIR": compiled,
    }

    def tmnmt(line: str) -> str:
        command = [sys.executable, "-m", "tmnmt", *shlex.split(line)]
        run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return run.stdout

    tmnmt(f"import-model {model_files()} -o base --src-lang en --tgt-lang pt")
    tmnmt("build-index memory.tsv --index index --src-lang en --tgt-lang pt")
    first, second = tmnmt("translate page.txt --model base --memory index").splitlines()
    assert (first, second) == ("O ficheiro não pode ser aberto.", "A casa é verde.")


@contextmanager
def local_index(folder: Path) -> Iterator[str]:
    """An index of packages with one: torch for the CPU, which is empty."""
    place = folder / "torch"
    place.mkdir(parents=True)
    with zipfile.ZipFile(place / "torch-2.99.0+cpu-py3-none-any.whl", "w") as wheel:
        head = "torch-2.99.0+cpu.dist-info"
        wheel.writestr(f"{head}/METADATA", TORCH)
        wheel.writestr(
            f"{head}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{head}/RECORD", "")
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_torch_comes_from_the_index_that_is_named(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    with local_index(tmp_path / "index") as url:
        make = ["make", "--dry-run", f"TORCH_INDEX={url}", f"VENV={environment}", "demo"]
        lines = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        (line,) = (line for line in lines.splitlines() if url in line)
        assert lines.index(line) < lines.index("--editable")  # before what would take PyPI's
        own = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        subprocess.run(shlex.split(line), env=own, check=True, capture_output=True)
    show = [str(environment / "bin" / "python"), "-m", "pip", "show", "torch"]
    assert "2.99.0+cpu" in subprocess.run(show, capture_output=True, text=True).stdout


def test_what_memories_need_is_all_but_torch_and_models() -> None:
    command = [sys.executable, str(ROOT / "deploy" / "requirements.py"), "pyproject.toml", "server"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    names = {re.split(r"[^\w.-]", row)[0] for row in run.stdout.split("\n") if row}
    assert {"numpy", "numba", "rapidfuzz", "lxml", "starlette", "uvicorn"} <= names
    assert not names & {"torch", "safetensors", "pytest"}
