"""The package where what POSIX alone has is missing, as on Windows (`other_system.py`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from other_system import VARIABLE
from places import ROOT, TESTS
from tiny_model import PAIRS, write_tiny_model

MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "tmnmt").rglob("*.py")
    if path.stem != "__main__"
)


PACKAGES = (
    "elasticsearch sacrebleu asyncio uvicorn uvicorn.loops.auto starlette.applications redis faiss "
    "mcp.server.lowlevel mcp.server.streamable_http_manager multiprocessing.pool sqlite3 "
    "transformers"
)


def run(*arguments: str, text: str | None = None, packages: str = "") -> str:
    """What a program writes to its standard output there.

    packages: others that are imported before."""
    command = [sys.executable, str(TESTS / "other_system.py"), *arguments]
    environment = {**os.environ, VARIABLE: packages}
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=600, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_can_be_imported() -> None:
    code = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    run("-c", code, *MODULES, packages=PACKAGES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("other system")  # with a blank, as folders there often have
    write_tiny_model(folder / "model")
    lines = ["src\ttgt", *("\t".join(pair) for pair in PAIRS)]
    (folder / "memory.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run(
        *(
            "-m",
            "tmnmt",
            "build-index",
            str(folder / "memory.tsv"),
            "--index",
            str(folder / "index"),
        ),
        *("--src-lang", "en", "--tgt-lang", "fr"),
    )
    return folder


def test_a_memory_is_built_searched_and_read(folder: Path) -> None:
    found = run("-m", "tmnmt", "search", "--index", str(folder / "index"), text=f"{PAIRS[0][0]}\n")
    assert PAIRS[0][1] in found
    command = ["-m", "tmnmt", "translate", "--model", str(folder / "model")]
    command += ["--memory", str(folder / "index"), "--threads", "1"]
    assert run(*command, text=f"{PAIRS[0][0]}\n") == f"{PAIRS[0][1]}\n"
    (folder / "a.po").write_text(f'msgid ""\nmsgstr ""\n\nmsgid "{PAIRS[1][0]}"\nmsgstr ""\n')
    run(*command, str(folder / "a.po"), "--output", str(folder / "b.po"))
    assert PAIRS[1][1] in (folder / "b.po").read_text(encoding="utf-8")


CONFIRM = """
import sys
from pathlib import Path
from tmnmt import TranslationOptions, Translator
model, index, session = map(Path, sys.argv[1:])
options = TranslationOptions(threads=1)
translator = Translator.load(model, [index], options, write_to=index)
document = translator.session()
document.confirm("A new day.", "Un jour nouveau.")
document.save(session)
print(translator.session(session).translate("A new day.").tgt)
"""
HOLD = """
import sys
from pathlib import Path
from tmnmt.index.embedded.lock import writing
with writing(Path(sys.argv[1]), 0.1):
    print("held", flush=True)
    sys.stdin.read()
"""
TAKE = """
import sys
from pathlib import Path
from tmnmt.errors import LockedError
from tmnmt.index.embedded.lock import writing
try:
    with writing(Path(sys.argv[1]), 0.1):
        print("taken")
except LockedError as error:
    print(error)
"""


def test_pairs_are_confirmed_and_sessions_saved(folder: Path) -> None:
    paths = [str(folder / name) for name in ("model", "index", "document.session")]
    assert run("-c", CONFIRM, *paths) == "Un jour nouveau.\n"


def test_one_program_writes_at_a_time(folder: Path) -> None:
    index = str(folder / "index")
    command = [sys.executable, str(TESTS / "other_system.py"), "-c", HOLD, index]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as holder:
        assert holder.stdin is not None and holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert f"process {holder.pid} is writing to it" in run("-c", TAKE, index)
        holder.stdin.close()
    assert run("-c", TAKE, index) == "taken\n"
