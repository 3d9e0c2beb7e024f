"""Processes that take turns at the same work, each in a virtual environment of its own under
.cache/."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent / ".cache"
JOEY = [["joeynmt==2.3.0", "importlib_metadata"]]  # it imports the latter without asking for it


def environment(
    name: str, installs: Sequence[Sequence[str]], needs: str, borrow: bool = False
) -> Path:
    """The interpreter of .cache/`name`-venv, which can import `needs`; made when it cannot.

    installs: the arguments of one `pip install` each. borrow: what this interpreter has (torch,
    above all) stands behind the environment's own packages, so that it need not be downloaded and
    is the same for all."""
    venv = CACHE / f"{name}-venv"
    python = venv / "bin" / "python"
    if (
        not python.exists()
        or subprocess.run([python, "-c", f"import {needs}"], capture_output=True).returncode
    ):
        print(
            f"installing into {venv}: {'; '.join(' '.join(one) for one in installs)}",
            file=sys.stderr,
        )
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        if borrow:
            own = Path(
                sysconfig.get_path("purelib", "venv", {"base": str(venv), "platbase": str(venv)})
            )
            (own / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        for one in installs:
            subprocess.run([python, "-m", "pip", "install", "--quiet", *one], check=True)
    return python


class Worker:
    """A process that says what it is in a line of JSON, and answers every line it gets with
    another; between them it waits."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.facts = self._answer()

    def ask(self, line: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(
                f"a worker ended with code {self._process.wait()}; see its messages above"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def worker(python: Path, script: str, *arguments: str | Path, **variables: str) -> Iterator[Worker]:
    """A running worker without a GPU, with `variables` in its environment; it ends with
    the block."""
    with subprocess.Popen(
        [python, HERE / script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", **variables},
    ) as process:
        yield Worker(process)


def processor() -> str:
    """Its name and the number of its cores, where the system tells them."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(": ")[1] for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores"
