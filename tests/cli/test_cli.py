"""What `tmnmt` does around its commands: exit codes, errors on one line, a quick --help."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import IO, Any, get_args, get_type_hints

import pytest
import typer

import tmnmt
from tmnmt import Translator
from tmnmt.cli import application, run
from tmnmt.errors import FormatError, TmnmtError, UsageError
from tmnmt.index.embedded.build import build
from tmnmt.interrupts import Terminated
from tmnmt.registry import register, unregister
from tmnmt.segments import Segment

HEAVY = (
    "torch",
    "numba",
    "numpy",
    "faiss",
    "lxml",
    "elastic_transport",
    "sentencepiece",
    "sacrebleu",
    "rapidfuzz",
)
COMMANDS = ("build-index", "search", "translate", "train")
# 342 and 30 when this was written: --help answers in 0.3 s; 13 are of attrs, which rich imports
# where it is installed
MOST_MODULES, MOST_OF_OURS = 431, 67


@pytest.fixture
def fail() -> Iterator[list[BaseException]]:
    """A command `fail` that raises the exception put into the list."""
    raised: list[BaseException] = []

    def command() -> None:
        raise raised.pop()

    register("command", "fail", command)
    yield raised
    unregister("command", "fail")


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (FormatError("a.tmx:3: no language"), 1, "tmnmt: error: a.tmx:3: no language\n"),
        (TmnmtError("two\nlines"), 1, "tmnmt: error: two lines\n"),
        (
            UsageError("--mode copy: the model cannot"),
            2,
            "tmnmt: error: --mode copy: the model cannot\n",
        ),
        (
            PermissionError(13, "Permission denied", "x.tmx"),
            1,
            "tmnmt: error: x.tmx: Permission denied\n",
        ),
        (OSError(28, "No space left on device"), 1, "tmnmt: error: No space left on device\n"),
        (KeyboardInterrupt(), 130, "interrupted: stopped before the end\n"),
        (KeyboardInterrupt("go on with --resume"), 130, "interrupted: go on with --resume\n"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(
    error: BaseException,
    code: int,
    line: str,
    fail: list[BaseException],
    capsys: pytest.CaptureFixture[str],
) -> None:
    fail.append(error)
    assert run(["fail"]) == code
    assert capsys.readouterr() == ("", line)


def test_a_programming_error_is_not_hidden(fail: list[BaseException]) -> None:
    fail.append(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        run(["fail"])


def _options(command: Any, *names: str) -> Iterator[tuple[str, str]]:
    """Every command below this one, with each of its options."""
    for name, below in getattr(command, "commands", {}).items():
        yield from _options(below, *names, name)
    yield from ((" ".join(names), option) for taken in command.params for option in taken.opts)


def test_an_option_has_one_meaning_in_all_commands() -> None:
    every = [*_options(typer.main.get_command(application()))]
    having = {
        option: {command for command, other in every if other == option} for _, option in every
    }
    assert having["--src"] == having["--tgt"] == {"memory add", "memory edit", "keys"}  # a text
    assert having["--src-lang"] == having["--tgt-lang"]  # a language
    assert having["--src-lang"] >= {
        "build-index",
        "translate",
        "evaluate prepare",
        "evaluate score",
    }
    assert having["--sources"] == {"evaluate score"}  # a file


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["serch"], "Did you mean 'search'"),
        (["search", "--treshold", "0.5"], "--threshold"),
        (["search", "--threshold", "half"], "Invalid value for '--threshold'"),
        (["train"], "Missing argument"),
        (
            ["search", "--index", "x", "--threshold", "nan"],
            "--threshold is nan; it must be from 0 to 1",
        ),
        (
            ["search", "--index", "x", "--threshold", "inf"],
            "--threshold is inf; it must be from 0 to 1",
        ),
        (["translate", "--threshold=-inf"], "--threshold is -inf; it must be from 0 to 1"),
        (
            ["translate", "--knn-weight", "nan"],
            "--knn-weight is nan; it must be at least 0 and below 1",
        ),
        (
            ["translate", "--knn-temperature", "nan"],
            "--knn-temperature is nan; it must be above 0",
        ),
        (
            ["translate", "--length-penalty", "nan"],
            "--length-penalty is nan; it must be from 0 to 10",
        ),
        (
            ["adapt", "--model", "m", "--memory", "m", "-o", "new", "--dev-share", "nan"],
            "--dev-share is nan; it must be from 0.001 to 0.5",
        ),
        (
            ["adapt", "--model", "m", "--memory", "m", "-o", "new", "--sentences", "49"],
            "--sentences is 49; it must be a whole number of at least 50",
        ),
        (
            ["adapt-knn", "m", "--model", "m", "--memory", "m", "-o", "new", "--epochs", "0"],
            "--epochs is 0; it must be a whole number of at least 1",
        ),
        (
            [
                "evaluate",
                "prepare",
                "m",
                "--src-lang",
                "en",
                "--tgt-lang",
                "fr",
                "--out",
                "new",
                "--segments",
                "0",
            ],
            "--segments is 0; it must be a whole number of at least 1",
        ),
        (["search", "--index", "x", "-k", "0"], "-k is 0; it must be a whole number of at least 1"),
        (
            ["build-index", "--shards", "0"],
            "Invalid value for '--shards': must be a whole number of at least 1",
        ),
        (
            ["build-index", "--shards", "x"],
            "Invalid value for '--shards': 'x' must be a whole number of at least 1",
        ),
    ],
)
def test_wrong_usage_is_exit_2_and_says_what_is_allowed(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tmnmt: error: ") and err.count("\n") == 1 and named in err


def test_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"tmnmt {tmnmt.__version__}\n"


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_names_every_command(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([option]) == 0
    out = capsys.readouterr().out
    assert [command for command in COMMANDS if f" {command} " not in out] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "-h"]) == 0
    assert f"Usage: tmnmt {command} " in capsys.readouterr().out


def test_without_arguments_the_help_is_shown_and_the_exit_code_is_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([]) == 2
    out, err = capsys.readouterr()
    assert "Usage: tmnmt" in out + err and "error" not in err


def test_warnings_of_the_package_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    run(["--version"])
    logging.getLogger("tmnmt.formats").warning("3 units skipped")
    logging.getLogger("tmnmt.formats").info("97 units kept")
    assert capsys.readouterr().err == "tmnmt: warning: 3 units skipped\n97 units kept\n"


def test_help_says_what_a_field_is_where_it_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = {}
    for command in ("add", "edit", "stats"):
        assert run(["memory", command, "--help"]) == 0
        said[command] = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "says in every pair that is added" in said["add"] and "from now on" not in said["add"]
    assert "says from now on" in said["edit"]
    assert "added and deleted again is no change" in said["stats"]


def test_everyday_options_of_translate_are_on_one_screen() -> None:
    shown = subprocess.run(
        _tmnmt("translate", "--help"),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "80"},
    ).stdout
    everyday, _, groups = shown.partition("─ Memories ")
    assert everyday.count("\n") <= 50
    assert "--write-to" in everyday and "--beam" not in everyday and "--beam" in groups


def _paragraphs(shown: typer.Typer, *names: str) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Every command, and the paragraphs of its docstring, each on one line."""
    for info in shown.registered_commands:
        assert info.callback is not None and info.callback.__doc__ is not None
        name = info.name or typer.main.get_command_name(info.callback.__name__)
        told = info.callback.__doc__.split("\n\n")
        yield (*names, name), [" ".join(paragraph.split()) for paragraph in told]
    for group in shown.registered_groups:
        below = group.typer_instance
        assert below is not None and isinstance(below.info.name, str)
        yield from _paragraphs(below, *names, below.info.name)


def test_help_has_whole_paragraphs_and_no_types_of_flags(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 1000)  # so that no line has to be broken
    for names, paragraphs in _paragraphs(application()):
        assert run([*names[:-1], "--help"]) == 0
        assert paragraphs[0] in capsys.readouterr().out, names
        assert run([*names, "--help"]) == 0
        shown = capsys.readouterr().out
        assert all(paragraph in shown for paragraph in paragraphs), names
        assert "<bool>" not in shown, names
        assert not re.search(r"\.\.\.[]}]", shown), names  # [[INPUT]...]...
    assert run(["search", "--help"]) == 0
    assert re.search(r"-k +1\.\. ", capsys.readouterr().out)


def test_all_that_a_caller_gets_back_is_in_the_package_and_torch_comes_late() -> None:
    code = """
import sys, tmnmt
assert "tmnmt.errors" not in sys.modules
heavy = "Index", "Named", "Session", "Translator"
print(*(name for name in tmnmt.__all__ if name not in heavy and getattr(tmnmt, name)))
assert "torch" not in sys.modules and "numpy" not in sys.modules
assert [tmnmt.Session.__name__, tmnmt.Translator.__name__] == ["Session", "Translator"]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"Index", "Named", "Session", "Translator"}
    assert {*done.stdout.split()} == {*tmnmt.__all__} - heavy


def records(hint: Any) -> Iterator[type]:
    """The records that a type is made of, and those that they are made of."""
    ours = isinstance(hint, type) and hint.__module__.startswith("tmnmt.")
    if ours and (is_dataclass(hint) or hasattr(hint, "_fields")):
        yield hint
        for inner in get_type_hints(hint).values():
            yield from records(inner)
    for inner in get_args(hint):
        yield from records(inner)


def test_all_records_that_a_caller_gives_and_gets_back_are_named_by_the_package() -> None:
    by_caller = Translator.load, Translator.translate, Translator.complete, Translator.alternatives
    hints = [hint for method in by_caller for hint in get_type_hints(method).values()]
    named = {record.__name__ for hint in hints for record in records(hint)}
    assert {"TranslationOptions", "Translation", "Worth", "Check"} <= named
    assert named <= {*tmnmt.__all__}


def _tmnmt(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from tmnmt.cli import main; main()", *arguments]


@pytest.mark.parametrize(
    ("command", "most"), [((), MOST_MODULES), *(((name,), MOST_MODULES + 150) for name in COMMANDS)]
)
def test_help_imports_little_and_nothing_heavy(command: tuple[str, ...], most: int) -> None:
    code = (
        "import sys; from tmnmt.cli import run; run(sys.argv[1:]); print(*sys.modules, "
        "file=sys.stderr)"
    )
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")
    }
    done = subprocess.run(
        [sys.executable, "-c", code, *command, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    imported = done.stderr.split()
    assert [name for name in HEAVY if name in imported] == []
    # what takes the time on an idle machine, some 0.7 ms each; seconds would be those of what else
    # runs
    assert (
        len(imported) <= most and sum(name.startswith("tmnmt") for name in imported) <= MOST_OF_OURS
    )


def test_the_program_looks_for_garbage_rarely_while_it_imports() -> None:
    code = (
        "import gc, sys; from tmnmt import __main__; sys.argv[1:] = ['--help']; import tmnmt.cli; "
        "tmnmt.cli.main = lambda: print(gc.isenabled(), *gc.get_threshold()); __main__.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True 50000 20 20\n"


def test_only_the_command_that_is_called_has_its_options_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []
    whole = getattr(typer.main, "get_params_from_function")  # noqa: B009  not typer's to give
    monkeypatch.setattr(
        typer.main,
        "get_params_from_function",
        lambda function: read.append(function.__name__) or whole(function),
    )
    for arguments, expected in (
        (["--help"], []),
        (["memory", "--help"], []),
        (["search", "--help"], ["search"]),
        (["memory", "list", "-h"], ["list_segments"]),
    ):
        read.clear()
        assert run(arguments) == 0
        assert {*read} - {"_options", "_version", "readable", "<lambda>"} == {*expected}


def test_a_reader_that_goes_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(_tmnmt("--version"), stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_output_is_utf8_whatever_the_locale() -> None:
    code = "from tmnmt.cli import run; run(['--version']); print('é \\udcff')"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=environment, check=True
    )
    assert done.stdout.endswith("é \\udcff\n".encode())


@pytest.fixture
def full_index(tmp_path: Path) -> Path:
    build(
        tmp_path / "index",
        [Segment(f"so many words as this {n}", "x" * 500) for n in range(200)],
        "en",
        "fr",
    )
    return tmp_path / "index"


@pytest.mark.parametrize(
    "command", [("search", "--threshold", "0"), ("search", "--json"), ("memory", "list")]
)
def test_what_standard_output_cannot_take_is_told_alike_by_every_command(
    command: tuple[str, ...], full_index: Path
) -> None:
    def ended(stdout: int | IO[bytes]) -> tuple[int, str]:
        call = _tmnmt(*command, "--index", str(full_index))
        done = subprocess.run(
            call,
            input="so many words as this\n",
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
        told = [line for line in done.stderr.splitlines() if not line.startswith("compiling")]
        return done.returncode, "\n".join(told)

    read, write = os.pipe()
    os.close(read)
    assert ended(write) == (141, "")
    os.close(write)
    with Path("/dev/full").open("wb") as full:
        assert ended(full) == (
            1,
            "tmnmt: error: standard output: cannot be written: No space left on device",
        )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_is_an_empty_one(closed: str) -> None:
    command = ["bash", "-c", f'"$@" {closed}', "bash", *_tmnmt("--help")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("build-index" in done.stdout) == (" >&-" not in f" {closed}")


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_in_the_middle_of_an_import_ends_the_program_in_one_line(
    name: str, code: int, tmp_path: Path
) -> None:
    # as a compiled module does that calls Python and takes no exception from it
    swallows = (
        f"try:\n    import os, signal; os.kill(os.getpid(), signal.{name})\nexcept "
        "BaseException:\n    pass\n"
    )
    (tmp_path / "compiled.py").write_text(swallows, encoding="utf-8")
    program = (
        "from tmnmt.interrupts import install; install(); print('before'); import "
        "compiled; print('after')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert (done.returncode, done.stdout) == (code, "before\n")
    assert done.stderr == "interrupted: stopped before the end\n"


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("when", ["exit", "teardown"])
def test_a_signal_in_the_last_moments_gives_an_exit_code_of_ours(
    name: str, code: int, when: str
) -> None:
    """At exit that of the signal; when Python has given up its handlers, that of the work, which is
    done."""
    program = f"""
import atexit, os, signal, sys
from tmnmt.interrupts import install
install()
from tmnmt.cli import main

class Last:
    def __del__(self, kill=os.kill, pid=os.getpid(), number=signal.{name}):
        kill(pid, number)

sys.argv[1:] = ['--version']
if {when!r} == 'exit':
    atexit.register(lambda: os.kill(os.getpid(), signal.{name}))
else:
    last = Last()
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (code if when == "exit" else 0, "")


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize(
    ("module", "printed"), [("__main__", ""), ("llvmlite.binding.engine", "run to the end\n")]
)
def test_a_signal_in_a_callback_of_compiled_code_is_not_lost(
    name: str, code: int, module: str, printed: str
) -> None:
    callback = f"types.FunctionType(called_back.__code__, {{**globals(), '__name__': '{module}'}})"
    program = f"""
import ctypes, os, signal, sys, time, types
from tmnmt.cli import main
from tmnmt.registry import register

def called_back():
    os.kill(os.getpid(), signal.{name})
    print('run to the end')

def fail():
    ctypes.CFUNCTYPE(None)({callback})()
    time.sleep(5)
    print('after')

register('command', 'fail', fail)
sys.argv[1:] = ['fail']
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (code, printed)
    assert done.stderr == "interrupted: stopped before the end\n"


def test_a_command_that_says_more_about_an_interruption_keeps_which_it_was(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise Terminated

    monkeypatch.setattr("tmnmt.index.from_files.build_from_files", stopped)
    assert (
        run(["build-index", "a.tmx", "--index", "x", "--src-lang", "en", "--tgt-lang", "fr"]) == 143
    )
    error = "interrupted: x is as it was before; the same command goes on\n"
    assert capsys.readouterr().err == error
    for path in Path(str(tmnmt.__file__)).parent.rglob("*.py"):
        assert "raise KeyboardInterrupt(" not in path.read_text(encoding="utf-8"), (
            f"{path}: add a note instead"
        )


@pytest.mark.parametrize(
    ("given", "counts"),
    [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "None")],
)
def test_threads_that_wait_sleep_early_unless_said_otherwise(
    given: dict[str, str], counts: str
) -> None:
    asked = "import os, tmnmt; print(os.environ.get('GOMP_SPINCOUNT'))"
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    others = {name: value for name, value in os.environ.items() if name not in names}
    told = subprocess.run(
        [sys.executable, "-c", asked],
        capture_output=True,
        text=True,
        check=True,
        env=others | given,
    )
    assert told.stdout.strip() == counts
