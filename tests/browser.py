"""A headless Chromium, driven through its debugging pipe: pages opened, keys pressed, questions
asked.

No package is needed for it: the protocol is JSON between zero bytes on two pipes.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DRAWN = 100  # milliseconds without a change after which a page that was loaded is drawn
RESTED = 400  # the same after somebody has typed: the page waits for more
_UNTIL_QUIET = """new Promise((done) => {
  let timer;
  const finish = () => (document.querySelector("[aria-busy=true]") ? wait() : done());
  const wait = () => { clearTimeout(timer); timer = setTimeout(finish, %d); };
  new MutationObserver(wait).observe(
    document.body, {childList: true, subtree: true, characterData: true});
  wait();
})"""
SECONDS = 120  # that an answer may take on a busy machine
UNTIL = 60  # seconds that a page may take for one thing there
INSTALL = "apt-get install -y --no-install-recommends chromium"
_CODES = {  # of keys that a browser does something with itself
    "Backspace": 8,
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "End": 35,
    "ArrowLeft": 37,
    "ArrowRight": 39,
}


def until_quiet(milliseconds: int) -> str:
    """What a page is asked so that it answers once nothing has been drawn for so long."""
    return _UNTIL_QUIET % milliseconds


def chromium() -> str | None:
    """Where the browser is, if it is installed."""
    return next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )


class Browser:
    """One page of a browser; `problems`: errors and warnings of its console, and what it asked the
    network for, beside the server that it came from."""

    def __init__(self, to: int, answers: int) -> None:
        self._to, self._answers, self._rest = to, answers, b""
        self._ids = itertools.count(1)
        self._session: str | None = None
        self._sessions = dict[str, str]()
        self.problems: list[str] = []
        self._loaded = False
        self._trace: str | None = None  # the handle of a trace that is complete
        self._home = "a file"  # how the addresses begin that it may ask for
        self.tab = self.new_tab()

    def send(self, method: str, **parameters: Any) -> Any:
        """A command of the DevTools protocol and its result."""
        number = self._tell(method, parameters)
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def _tell(self, method: str, parameters: dict[str, Any]) -> int:
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        return number

    def open(self, address: str) -> None:
        """Loads a page, waits until it is loaded and, where it has segments, until they
        are drawn."""
        self._loaded = False
        self.send("Page.navigate", url="about:blank")
        self._wait_for_load()
        self.problems, self._loaded = [], False
        scheme, _, rest = address.partition("://")
        self._home = f"{scheme}://{rest.partition('/')[0]}/" if scheme == "http" else "a file"
        self.send("Page.navigate", url=address)
        self._wait_for_load()
        self.run(until_quiet(DRAWN))

    def new_tab(self) -> str:
        """Another tab, which is looked at from now on."""
        self._session = None
        target: str = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._attach(target)
        return target

    def switch(self, tab: str) -> None:
        """To a tab by its name."""
        self.tab, self._session = tab, self._sessions[tab]
        self.send("Page.bringToFront")

    def close_tab(self, tab: str) -> None:
        self.send("Target.closeTarget", targetId=tab)

    def save_to(self, folder: Path) -> None:
        """Downloads go into this folder, and nobody is asked."""
        self.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def _attach(self, target: str) -> None:
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._sessions[target] = attached["sessionId"]
        self.switch(target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def settle(self) -> None:
        """Waits until nothing has been drawn for longer than typing is waited for."""
        self.run(until_quiet(RESTED))

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        found = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str, *held: str) -> None:
        """A key by its name, down and up, while these are held: Alt, Control, Shift."""
        self.hold(key, *held, times=1)

    def hold(self, key: str, *held: str, times: int) -> None:
        """A key that is held until it has come so many times: all but the first are repeats."""
        text = {"text": "\r"} if key == "Enter" and not held else {}
        command = {"commands": ["undo"]} if (key, *held) == ("z", "Control") else {}
        code = _CODES.get(key, 0)
        modifiers = sum({"Alt": 1, "Control": 2, "Shift": 8}[name] for name in held)
        down = [("keyDown", text | command | {"autoRepeat": again > 0}) for again in range(times)]
        for kind, more in (*down, ("keyUp", {})):
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                modifiers=modifiers,
                windowsVirtualKeyCode=code,
                **more,
            )

    def type(self, text: str) -> None:
        """A text into what has the focus, character by character."""
        for sign in text:
            self.send("Input.insertText", text=sign)

    def until(self, condition: str) -> None:
        """Waits until an expression of the page is true; fails where it stays false."""
        self.run(
            f"new Promise((done, failed) => {{ const end = Date.now() + {1000 * UNTIL};"
            f" const look = () => ({condition}) ? done() : Date.now() > end "
            "? failed(document.body.innerText) : setTimeout(look, 20); look(); })"
        )

    def start_trace(self) -> None:
        """Begins to note what the page's threads do."""
        self._trace = None
        categories = ["disabled-by-default-devtools.timeline", "devtools.timeline", "toplevel"]
        config = {"includedCategories": categories}
        self.send("Tracing.start", transferMode="ReturnAsStream", traceConfig=config)

    def longest_task(self) -> float:
        """Ends the trace: the most seconds of the processor's time that one task of the page's main
        thread has taken since it was begun."""
        self.send("Tracing.end")
        while self._trace is None:
            self._read()
        text, done = "", False
        while not done:
            part = self.send("IO.read", handle=self._trace)
            text, done = text + part["data"], part["eof"]
        events = json.loads(text)["traceEvents"]
        main = {
            (event["pid"], event["tid"])
            for event in events
            if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
        }
        tasks = [event for event in events if (event["pid"], event["tid"]) in main]
        return max(event.get("tdur", 0) for event in tasks) / 1e6

    def hover(self, selector: str) -> None:
        """Moves the pointer to the middle of the first element of a CSS selector."""
        box = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{box}.scrollIntoView({{block: 'center'}})")
        x, y = self.run(
            f"(r => [r.x + r.width / 2, r.y + r.height / 2])({box}.getClientRects()[0])"
        )
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def follow(self, script: str) -> None:
        """Runs a script that leads to another page, and waits until that is loaded."""
        self._loaded = False
        self.run(f"setTimeout(() => {{ {script}; }}), 0")
        self._wait_for_load()
        self.run(until_quiet(DRAWN))

    def _wait_for_load(self) -> None:
        while not self._loaded:
            self._read()

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._answers], [], [], SECONDS)[0], "the browser does not answer"
            block = os.read(self._answers, 1 << 20)
            assert block, "the browser has ended"
            self._rest += block
        message, self._rest = self._rest.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(message)
        self._note(answer.get("method"), answer.get("params", {}))
        return answer

    def _note(self, method: str | None, told: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Tracing.tracingComplete":
            self._trace = told["stream"]
        elif method == "Page.javascriptDialogOpening":
            self._tell("Page.handleJavaScriptDialog", {"accept": True})
            if told["type"] != "beforeunload":  # a page may ask whether it is to be left
                self.problems.append(told["message"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(str(told["exceptionDetails"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.problems.append(told["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and told["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.problems.append(str(told["args"]))
        elif (
            method == "Network.requestWillBeSent"
            and told["request"]["url"].startswith(("http", "ws"))
            and not told["request"]["url"].startswith(self._home)
        ):
            self.problems.append(told["request"]["url"])


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser of its own, ended at the end; `chromium()` must have found one."""
    program = chromium()
    assert program
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The protocol wants the numbers 3 and 4; the shell gives it them, whatever numbers the
        # pipes have here.
        command = f'exec "$0" "$@" 3<&{to_read} 4>&{from_write}'
        arguments = (
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--lang=en-US",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--remote-debugging-pipe",
            "--window-size=1280,900",
            f"--user-data-dir={profile}",
        )
        process = subprocess.Popen(
            ["bash", "-c", command, program, *arguments],
            pass_fds=(to_read, from_write),
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(from_write)
        try:
            yield Browser(to_write, from_read)
        finally:
            os.close(to_write)
            os.close(from_read)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
