"""The address of a base: openai:URL#NAME, or openai:URL#NAME@SOURCE-TARGET with its languages."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from tmnmt.errors import UsageError
from tmnmt.models.addresses import LANGUAGES

_ADDRESS = re.compile(r"(?P<scheme>https?):/{1,2}(?P<place>[^/#\s][^#\s]*)#(?P<name>\S+)")
FORM = "openai:URL#NAME, as openai:http://127.0.0.1:11434/v1#llama3@en-fr"


@dataclass(frozen=True)
class Address:
    """Where a base is asked.

    url: the address, without a slash at its end.
    name: the name that the base has there.
    src_lang: the code of the source language; "" where the address does not say it.
    tgt_lang: the code of the target language; "" where the address does not say it."""

    url: str
    name: str
    src_lang: str = ""
    tgt_lang: str = ""

    @property
    def host(self) -> str:
        """The name of the machine that is asked."""
        return urlsplit(self.url).hostname or ""

    @property
    def is_encrypted(self) -> bool:
        """Whether nobody on the way can read what is sent."""
        return self.url.startswith("https:")

    @property
    def is_loopback(self) -> bool:
        """Whether nothing leaves this machine."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"openai:{self.url}#{self.name}"


def parse_address(place: str) -> Address:
    """The address in a text.

    place: the text behind "openai:".

    Raises UsageError for a text that is no address."""
    languages = LANGUAGES.search(place)
    match = _ADDRESS.fullmatch(place[: languages.start()] if languages else place)
    if match is None:
        raise UsageError(f"openai:{place}: no address of a base; wanted: {FORM}")
    url = f"{match['scheme']}://{match['place'].rstrip('/')}"
    try:
        parts = urlsplit(url)
        is_right = bool(parts.hostname) and parts.port != 0 and not parts.query
    except ValueError:
        is_right = False
    if not is_right:
        raise UsageError(f"openai:{place}: no address of a base; wanted: {FORM}")
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            f"openai:{match['scheme']}://...@{parts.hostname}: a key does not belong into an "
            "address, where others see it; give --key-file, or set TMNMT_API_KEY"
        )
    codes = languages.groups() if languages else ("", "")
    return Address(url, match["name"], *(code.replace("_", "-") for code in codes))


def check_address(address: Address, allows_plain: bool) -> None:
    """Checks that an address may be asked.

    address: the address.
    allows_plain: whether texts may go to another machine unencrypted.

    Raises UsageError for plain http to another machine, where that is not allowed."""
    if not (address.is_encrypted or address.is_loopback or allows_plain):
        raise UsageError(
            f"{address}: http: to another machine can be read on the way; use https:, or allow it "
            "with --plain-http"
        )
