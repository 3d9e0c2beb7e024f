"""A headless Firefox, driven by WebDriver BiDi over its own port, with the methods of
`browser.Browser` that tests of both browsers need. No driver program is needed for it."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from browser import DRAWN, RESTED, SECONDS, UNTIL, until_quiet
from websocket import WebSocket

INSTALL = "apt-get install -y --no-install-recommends firefox-esr"
_KEYS = {  # as WebDriver names them
    "Alt": "\ue00a",
    "Control": "\ue009",
    "Shift": "\ue008",
    "Tab": "\ue004",
    "Enter": "\ue006",
    "Escape": "\ue00c",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
    "Backspace": "\ue003",
    "End": "\ue010",
    "F2": "\ue032",
    "F4": "\ue034",
    "F7": "\ue037",
    "F8": "\ue038",
    "F9": "\ue039",
}
_PREFERENCES = {
    "intl.accept_languages": "en-US, en",
    "browser.shell.checkDefaultBrowser": False,
    "browser.aboutwelcome.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.update.enabled": False,
    "dom.disable_beforeunload": False,
    "browser.download.alwaysOpenPanel": False,
}


def firefox() -> str | None:
    """Where the browser is, if it is installed."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


class Firefox:
    """One tab at a time of a browser; `problems`: errors and warnings of its console."""

    def __init__(self, port: int) -> None:
        self._socket = WebSocket(port, "/session", SECONDS)
        self._ids = itertools.count(1)
        self.problems: list[str] = []
        accepted = {"default": "accept", "beforeUnload": "accept"}
        asked = {"alwaysMatch": {"unhandledPromptBehavior": accepted}}
        self.send("session.new", capabilities=asked)
        self.send("session.subscribe", events=["log.entryAdded"])
        self.tab = self.new_tab()  # in the first one, the bar of addresses has the focus

    def send(self, method: str, **parameters: Any) -> Any:
        """A command of the protocol and its result."""
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.receive())
            if answer.get("method") == "log.entryAdded":
                entry = answer["params"]
                if entry["level"] in ("error", "warn"):
                    self.problems.append(str(entry["text"]))
            if answer.get("id") == number:
                assert answer["type"] == "success", answer
                return answer["result"]

    def open(self, address: str) -> None:
        """Loads a page, waits until it is loaded and, where it has segments, until they
        are drawn."""
        self.send("browsingContext.navigate", context=self.tab, url="about:blank", wait="complete")
        self.problems = []
        self.send("browsingContext.navigate", context=self.tab, url=address, wait="complete")
        self.run(until_quiet(DRAWN))

    def new_tab(self) -> str:
        """Another tab, which is looked at from now on."""
        self.switch(self.send("browsingContext.create", type="tab")["context"])
        return self.tab

    def switch(self, tab: str) -> None:
        self.tab = tab
        self.send("browsingContext.activate", context=tab)

    def close_tab(self, tab: str) -> None:
        self.send("browsingContext.close", context=tab)

    def settle(self) -> None:
        """Waits until nothing has been drawn for longer than typing is waited for."""
        self.run(until_quiet(RESTED))

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        wrapped = f"Promise.resolve({script}).then((value) => JSON.stringify(value ?? null))"
        found = self.send(
            "script.evaluate",
            expression=wrapped,
            target={"context": self.tab},
            awaitPromise=True,
            userActivation=True,
        )
        assert found["type"] == "success", found
        return json.loads(found["result"]["value"])

    def press(self, key: str, *held: str) -> None:
        """A key by its name, down and up, while these are held: Alt, Control, Shift."""
        self.hold(key, *held, times=1)

    def hold(self, key: str, *held: str, times: int) -> None:
        """A key that is held until it has come so many times: all but the first are repeats."""
        value = _KEYS.get(key, key)
        before = [("keyDown", _KEYS[name]) for name in held]
        after = [("keyUp", _KEYS[name]) for name in reversed(held)]
        self._act([*before, *[("keyDown", value)] * times, ("keyUp", value), *after])

    def type(self, text: str) -> None:
        """A text into what has the focus, character by character."""
        self._act([(kind, sign) for sign in text for kind in ("keyDown", "keyUp")])

    def _act(self, keys: list[tuple[str, str]]) -> None:
        actions = [{"type": kind, "value": value} for kind, value in keys]
        source = {"type": "key", "id": "keyboard", "actions": actions}
        self.send("input.performActions", context=self.tab, actions=[source])

    def until(self, condition: str) -> None:
        """Waits until an expression of the page is true; fails where it stays false."""
        self.run(
            f"new Promise((done, failed) => {{ const end = Date.now() + {1000 * UNTIL};"
            f" const look = () => ({condition}) ? done() : Date.now() > end "
            "? failed(document.body.innerText) : setTimeout(look, 20); look(); })"
        )

    def save_to(self, folder: Path) -> None:
        """Downloads go into this folder, and nobody is asked."""
        to = {"type": "allowed", "destinationFolder": str(folder)}
        self.send("browser.setDownloadBehavior", downloadBehavior=to)

    def close(self) -> None:
        self._socket.close()


@contextmanager
def browsing() -> Iterator[Firefox]:
    """A browser of its own, ended at the end; `firefox()` must have found one."""
    program = firefox()
    assert program
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        lines = [
            f"user_pref({json.dumps(name)}, {json.dumps(value)});\n"
            for name, value in _PREFERENCES.items()
        ]
        (Path(profile) / "user.js").write_text("".join(lines), encoding="utf-8")
        arguments = ("--headless", "--no-remote", "--profile", profile)
        process = subprocess.Popen(
            [program, *arguments, "--remote-debugging-port=0"],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"HOME": profile},
        )
        try:
            opened = Firefox(_port(Path(profile) / "WebDriverBiDiServer.json", process))
            yield opened
            opened.close()
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _port(told: Path, process: subprocess.Popen[bytes]) -> int:
    """Where it listens, as it writes down once it does."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        if told.exists() and (text := told.read_text(encoding="utf-8")).endswith("}"):
            return int(json.loads(text)["ws_port"])
        time.sleep(0.05)
    raise AssertionError("the browser does not answer")
