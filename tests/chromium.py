"""A headless Chromium, spoken to through its debugging pipe: what a page does for a reader, not only what it says."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--remote-debugging-pipe", "--window-size=1280,900",
)  # fmt: skip


class Tab:
    """One page. `problems`: what the browser had to say, such as refusals by the content security policy."""

    def __init__(self, to: BinaryIO, back: BinaryIO) -> None:
        self._to, self._back, self._number, self._session = to, back, 0, ""
        self.problems: list[str] = []
        self._events: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """What the browser answers to one command of the DevTools protocol."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": params}
        if self._session:
            command["sessionId"] = self._session
        self._to.write(json.dumps(command).encode() + b"\0")
        self._to.flush()
        while (message := self._next()).get("id") != self._number:
            pass
        assert "error" not in message, message["error"]
        return message["result"]

    def open(self, page: Path) -> None:
        """Loads a file, to its end."""
        self.call("Page.navigate", url=page.as_uri())
        while "Page.loadEventFired" not in self._events:
            self._next()
        self._events.clear()

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression, which JSON must be able to hold."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """A key by its name, down and up."""
        text = {"Enter": "\r"}.get(key, "")
        codes = {"Tab": 9, "Enter": 13, "Escape": 27}
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=codes.get(key, 0), **more)

    def hover(self, selector: str) -> None:
        """Moves the pointer to the middle of the first element of a CSS selector."""
        box = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{box}.scrollIntoView({{block: 'center'}})")
        x, y = self.evaluate(f"(r => [r.x + r.width / 2, r.y + r.height / 2])({box}.getClientRects()[0])")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, path: Path) -> None:
        """What is seen, as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def _next(self) -> Any:
        raw = bytearray()
        while (byte := self._back.read(1)) != b"\0":
            assert byte, "the browser has ended"
            raw += byte
        message = json.loads(raw)
        if method := message.get("method"):
            self._events.append(method)
            if method in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
                self.problems.append(json.dumps(message["params"]))
            if method == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith("file:"):
                    self.problems.append(url)
        return message


@contextmanager
def tab(profile: Path) -> Iterator[Tab]:
    """A tab of a browser of its own, which keeps its files in `profile`."""
    assert CHROMIUM is not None
    to_read, to_write = os.pipe()
    back_read, back_write = os.pipe()
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}"]
    shell = f'exec "$@" 3<&{to_read} 4>&{back_write}'
    process = subprocess.Popen(
        ["bash", "-c", shell, "", *command], pass_fds=(to_read, back_write), stderr=subprocess.DEVNULL
    )
    os.close(to_read)
    os.close(back_write)
    try:
        with os.fdopen(to_write, "wb") as to, os.fdopen(back_read, "rb") as back:
            yield Tab(to, back)
            to.write(json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
            to.flush()
    finally:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
