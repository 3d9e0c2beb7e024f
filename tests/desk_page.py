"""The page of a server with a document, and what a person does there, in Chromium or Firefox."""

from __future__ import annotations

import json

from browser import Browser
from firefox import Firefox
from serving import Server

# of all rows, as an expression of the page
STATES = "[...document.querySelectorAll('.row')].map((row) => row.dataset.state).join(' ')"


class DeskPage:
    """The page with a document of lines."""

    def __init__(self, browser: Browser | Firefox, server: Server) -> None:
        self.browser, self.server = browser, server
        self.run, self.press, self.type = browser.run, browser.press, browser.type
        self.until = browser.until
        if isinstance(browser, Browser):
            browser.send("Emulation.clearDeviceMetricsOverride")
        self.open()

    def resize(self, width: int, height: int) -> None:
        """The window of Chromium, in pixels, until another test begins. That of Firefox stays as
        it is, since it does not answer when it is set back."""
        if isinstance(self.browser, Browser):
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            self.browser.send("Emulation.setDeviceMetricsOverride", **metrics)

    def open(self) -> None:
        """The page anew: every line is a segment, and no memory learns what one test confirms."""
        self.browser.open(self.server.url + "/")
        self.until("document.getElementById('pair').options.length")
        self.run("document.getElementById('sentences').checked = false")
        self.run("document.getElementById('write').value = ''")

    def paste(self, text: str) -> None:
        self.run(f"document.getElementById('pasted').value = {json.dumps(text)}")
        self.run("document.getElementById('go').click()")
        self.until_suggested(1)

    def until_suggested(self, number: int) -> None:
        """Until that segment is at work and has its suggestion."""
        at = f"document.querySelector('.active .number')?.textContent === '{number}'"
        self.until(f"{at} && document.querySelector('#offer .word')")

    def text(self, selector: str) -> str:
        return str(self.run(f"document.querySelector({json.dumps(selector)}).textContent"))

    def texts(self, selector: str) -> list[str]:
        every = f"[...document.querySelectorAll({json.dumps(selector)})]"
        return list(self.run(f"{every}.map((one) => one.textContent)"))

    @property
    def field(self) -> str:
        return str(self.run("document.getElementById('target').value"))

    @property
    def session(self) -> str:
        return str(self.run("document.getElementById('review').href")).partition("#")[2]

    @property
    def id(self) -> str:
        """The document that is open, as the page's address names it."""
        return str(self.run("location.pathname")).partition("/d/")[2]

    def focused(self) -> str:
        return str(self.run("document.activeElement.id || document.activeElement.className"))
