"""A program on a terminal of its own, as a person has it: keys go in, what is on the screen comes
out."""

from __future__ import annotations

import codecs
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

PAGE_UP, CTRL_D, CTRL_U, CTRL_C = "\x1b[5~", "\x04", "\x15", "\x03"
SECONDS = 180.0  # a busy machine is no failure
SECONDS_BETWEEN_SIGNALS = 10.0
_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[a-zA-Z]|[=>])|\r|\x07")


class Terminal:
    """`tmnmt` with `arguments`; standard error goes to a file."""

    def __init__(self, arguments: Sequence[str], errors: Path) -> None:
        self.master, slave = pty.openpty()
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "TERM": "xterm",
            "NO_COLOR": "1",
            "COLUMNS": "200",
            "INPUTRC": os.devnull,
        }
        with errors.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tmnmt", *arguments],
                stdin=slave,
                stdout=slave,
                stderr=err,
                env=environment,
                start_new_session=True,
            )
        os.close(slave)
        self._read, self._decoder = "", codecs.getincrementaldecoder("utf-8")("replace")

    def until(self, wanted: str) -> str:
        """What was shown since the last call, up to `wanted`, without colours."""
        deadline = time.monotonic() + SECONDS
        while wanted not in self._read:
            ready, _, _ = select.select(
                [self.master], [], [], max(0.0, deadline - time.monotonic())
            )
            data = self._bytes() if ready else b""
            if not data:
                raise AssertionError(f"{wanted!r} was not shown, but {self._read!r}")
            text = self._decoder.decode(data)  # a character may come in two parts
            self._read = _ESCAPES.sub("", self._read + text)
        shown, _, self._read = self._read.partition(wanted)
        return shown

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def stop(self, number: signal.Signals) -> int:
        """The exit code after a signal. CPython's readline sees one that comes while it reads a key
        only with the next signal, so it is sent again."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            self.process.send_signal(number)
            again = time.monotonic() + SECONDS_BETWEEN_SIGNALS
            while time.monotonic() < again and self.process.poll() is None:
                # what it shows of the key that it reads does not say that it ends
                if select.select([self.master], [], [], 0.2)[0] and not self._bytes():
                    break
        return self.end()

    def end(self) -> int:
        """The exit code."""
        while self._bytes():
            pass
        return self.process.wait(SECONDS)

    def _bytes(self) -> bytes:
        try:
            return os.read(self.master, 65536)
        except OSError:  # Linux' word for the end of a terminal
            return b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
