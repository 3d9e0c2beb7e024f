"""How the server is reached: under which address, and from which pages of a browser.

A server without keys answers programs of this machine. A browser is one, and shows pages of
anybody: such a page can ask the server, and the time of an answer tells whether a text is in a
memory. So a request that a browser makes for a page is answered where the page is the server's own,
or belongs to a browser extension that was named. A browser says in `Sec-Fetch-Site` and in `Origin`
for whom it asks; other programs send neither, and are answered."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from tmnmt.errors import UsageError
from tmnmt.serve.http_error import Refused

_LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
# of every answer: no page of another origin may load it, and no browser guesses what it is
HEADERS = (
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
)
_OWN = (
    "same-origin",
    "none",
)  # Sec-Fetch-Site of the server's pages, and of a person's address bar
_EXTENSION = re.compile(r"[a-z-]{2,20}-extension://[A-Za-z0-9.-]{1,64}")


@dataclass(frozen=True)
class Site:
    """How the server is reached.

    public_url: where clients reach the server, without a slash at its end; "" where they say it.
    extensions: the origins of browser extensions that are answered without keys."""

    public_url: str = ""
    extensions: frozenset[str] = frozenset()

    def check_local(
        self, headers: Mapping[str, str], is_page: bool = False, is_shell: bool = False
    ) -> None:
        """Checks that a request comes from a program of this machine or a page of this server.

        headers: the headers of the request.
        is_page: whether its route answers with a page.
        is_shell: whether its route answers with a part of the page that holds nothing of anybody.

        Raises Refused where it comes from elsewhere."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if not _is_loopback(host) and not is_shell:
            raise Refused(403, "forbidden", "without keys this server answers to localhost alone")
        if origin in self.extensions:
            return
        is_own = is_shell or origin is None or origin in (f"http://{host}", f"https://{host}")
        is_link = is_page and headers.get("sec-fetch-mode") == "navigate"
        if not is_own or (headers.get("sec-fetch-site", "none") not in _OWN and not is_link):
            raise Refused(
                403, "forbidden", "without keys this server answers no page of another site"
            )

    def address(
        self, headers: Mapping[str, str], scheme: str, server: tuple[str, int | None] | None
    ) -> str:
        """Where the client of a request reaches the server: at the public address, else where the
        request came to. The client's own word counts where it names this machine alone, since an
        answer may be kept for others.

        headers: the headers of the request.
        scheme: the scheme of its address.
        server: the address and the port that the connection came to; None where they are not
        known."""
        host = headers.get("host", "")
        if self.public_url:
            return self.public_url
        if not _is_loopback(host) and server is not None:
            name, port = server
            host = f"[{name}]" if ":" in name else name
            host += f":{port}" if port is not None else ""
        return f"{scheme}://{host}"


def site_of(public_url: str | None, extensions: Collection[str]) -> Site:
    """How the server is reached, by its options.

    public_url: the value of --public-url; None where it is not used.
    extensions: the values of --extension.

    Raises UsageError for what is no address or no origin."""
    for extension in extensions:
        if not _EXTENSION.fullmatch(extension):
            raise UsageError(
                f"--extension {extension}: is no origin of a browser extension; it is written as "
                "chrome-extension://ID or moz-extension://ID"
            )
    url = (public_url or "").rstrip("/")
    if url and not _is_address(url):
        raise UsageError(
            f"--public-url {public_url}: is no address; it is written as https://HOST[:PORT][/PATH]"
        )
    return Site(url, frozenset(extensions))


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    return parts.scheme in ("http", "https") and is_whole and plain and url.isascii()


def _is_loopback(host: str) -> bool:
    return _LOOPBACK.fullmatch(host) is not None
