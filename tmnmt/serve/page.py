"""The page on which a person translates, and the one that reviews it: files of the package, under a
policy that lets nothing else in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.responses import Response

from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.api_v1 import refusal
from tmnmt.serve.http_error import unknown
from tmnmt.serve.languages import language
from tmnmt.serve.routes import Dialect, Route
from tmnmt.serve.service import Service
from tmnmt.typography import typography_of

_FOLDER = Path(__file__).with_name("static")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_PART = b'="page/'  # how the address of a style, script or picture begins
_FILES: Mapping[str, tuple[bytes, str]] = {
    path.name: (path.read_bytes(), _TYPES[path.suffix])
    for path in sorted(_FOLDER.iterdir())
    if path.suffix in _TYPES
}


async def desk(service: Service, call: ApiRequest) -> Any:
    """The page on which a document is translated."""
    return file_of_page("index.html")


async def document(service: Service, call: ApiRequest) -> Any:
    """The page on which a document is translated, under the address of the document. It asks the
    server for it, which may want a key."""
    return file_of_page("index.html", "../")


async def review(service: Service, call: ApiRequest) -> Any:
    """The page that shows what was confirmed against what was suggested."""
    return file_of_page("review.html")


async def address(service: Service, call: ApiRequest) -> Any:
    """The address that the server is told this page has, `host`, and whether it must be right:
    `local`, where there are no keys. A proxy may tell another than the browser has."""
    return {"host": call.headers.get("host", ""), "local": service.keys is None}


async def typography(service: Service, call: ApiRequest) -> Any:
    """{"quotes"}: what opens and closes a quotation in a language, with the blanks inside; null
    where that is not known."""
    quotes = typography_of(language(call.path["language"]).code).quotes
    return {"quotes": quotes and list(quotes)}


async def part(service: Service, call: ApiRequest) -> Any:
    """A style, a script, a picture or a font of these pages."""
    return file_of_page(call.path["name"])


def file_of_page(name: str, root: str = "") -> Response:
    """A file of these pages, under their policy.

    name: the name of the file.
    root: the way from the address of the page to the root; "" where it lies there.

    Raises Refused where there is none."""
    if name not in _FILES:
        raise unknown("there is no such address")
    content, kind = _FILES[name]
    if root:
        content = content.replace(_PART, f'="{root}page/'.encode())
    return Response(content, headers=_HEADERS | {"Content-Type": kind})


PARTS = Route("GET", "/page/{name}", part, None, is_shell=True)
PAGE = Dialect(
    "page",
    ("",),
    (
        Route("GET", "/", desk, None, is_page=True, is_shell=True),
        Route("GET", "/d/{document}", document, None, is_page=True, is_shell=True),
        Route("GET", "/review", review, None, is_page=True, is_shell=True),
        Route("GET", "/page/address", address, None, is_shell=True),
        Route("GET", "/page/typography/{language}", typography, None, is_shell=True),
        PARTS,
    ),
    refusal,
)
