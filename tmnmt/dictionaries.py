"""Dictionaries of Hunspell that are installed on this machine, asked for single words through its
program, which stays open.

Hunspell speaks the protocol of ispell: a line goes in, and a line for each word comes out, which
begins with `*`, `+` or `-` where the word is known, and an empty line behind them."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import threading
import weakref
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

log = logging.getLogger(__name__)

PROGRAM = "TMNMT_HUNSPELL"  # names the program, where it is another; empty: none is asked
ACCEPTING = ("*", "+", "-")  # a word, a form of one, a compound
WORDS_KEPT = 1 << 16  # words whose answers are kept: some 10 MB
SECONDS = 20  # until the list of dictionaries must be there


class Dictionary:
    """The words of a language, as a dictionary of Hunspell has them. Several threads may ask."""

    def __init__(self, path: str) -> None:
        """path: the dictionary, without the suffix of its files."""
        self.path = path
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._is_open = True
        self.knows = lru_cache(maxsize=WORDS_KEPT)(self._knows)

    def _knows(self, word: str) -> bool:
        """Whether a word is one of the language; where Hunspell fails, every word is."""
        with self._lock:
            try:
                answers = self._answers(word) if self._is_open else []
            except OSError as error:
                self._is_open = False
                log.warning("hunspell fails with %s (%s): words are not checked", self.path, error)
                return True
        return all(answer.startswith(ACCEPTING) for answer in answers)

    def _answers(self, word: str) -> list[str]:
        process = self._running_process()
        if process.stdin is None or process.stdout is None:
            raise BrokenPipeError("no pipe")
        process.stdin.write(f"^{word}\n")
        process.stdin.flush()
        answers = list[str]()
        while (line := process.stdout.readline()) != "\n":
            if not line:
                raise BrokenPipeError("it has ended")
            answers.append(line)
        return answers

    def _running_process(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [_program(), "-i", "UTF-8", "-d", self.path, "-a"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
            weakref.finalize(self, _end, self._process)
            if self._process.stdout is not None:
                self._process.stdout.readline()  # its name and version
        return self._process


@lru_cache
def dictionary_for(language: str) -> Dictionary | None:
    """The dictionary of a language that is installed: that of its region, where it has one; None
    where there is none, or Hunspell itself is not there.

    language: its code, as "fr" or "pt-BR"."""
    base, _, region = language.replace("-", "_").partition("_")
    names = (f"{base}_{region or base}".lower(), f"{base}_{base}".lower(), base.lower())
    paths = installed()
    path = next((paths[name] for name in names if name in paths), None)
    if path is None:
        path = next((paths[name] for name in sorted(paths) if name.startswith(f"{base}_")), None)
    return Dictionary(path) if base and path is not None else None


@lru_cache
def installed() -> dict[str, str]:
    """The dictionaries that Hunspell finds: their paths, without suffixes, by their names in small
    letters, as "fr_ca"."""
    if not shutil.which(program := _program()):
        return {}
    with suppress(OSError, subprocess.TimeoutExpired):
        listing = subprocess.run(
            [program, "-D"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
        lines = map(str.strip, listing.stderr.splitlines())
        paths = [Path(line) for line in lines if line]
        dictionaries = [path for path in paths if path.is_absolute() and _has_rules(path)]
        return {path.name.lower().replace("-", "_"): str(path) for path in reversed(dictionaries)}
    return {}


def _program() -> str:
    return os.environ.get(PROGRAM, "hunspell")


def _has_rules(path: Path) -> bool:
    return path.with_name(f"{path.name}.aff").exists()


def _end(process: subprocess.Popen[str]) -> None:
    """Ends the program, which ends by itself where nothing more can come."""
    with suppress(OSError):
        process.communicate(timeout=SECONDS)
