"""Where an index on a server lives, as one text:
`elasticsearch+https://host1:9200,host2:9200/NAME`, or `opensearch+...`."""

from __future__ import annotations

import ipaddress
import os
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from urllib.parse import urlsplit

from tmnmt.config.tables import API_KEY, PASSWORD
from tmnmt.errors import UsageError
from tmnmt.index.elastic.engine import ELASTICSEARCH, ENGINES, Engine
from tmnmt.index.opening import cache_dir

PORT = 9200
_FORM = "://HOST[:PORT][,HOST...]/NAME"  # behind the scheme
# what the engines allow, and no more letters than everybody reads
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}")
USER, CA = "TMNMT_ES_USER", "TMNMT_ES_CA"
KEYS = "TMNMT_KEYS"  # names the folder of `local_folder`


@dataclass(frozen=True)
class ElasticAddress:
    """Where an index on a server lies.

    hosts: the hosts of one cluster as URLs.
    name: the name under which the index is found there.
    engine: the kind of server."""

    hosts: tuple[str, ...]
    name: str
    engine: Engine = ELASTICSEARCH

    def __str__(self) -> str:
        scheme = self.hosts[0].partition("://")[0]
        hosts = ",".join(host.partition("://")[2] for host in self.hosts)
        return f"{self.engine.prefix}{scheme}://{hosts}/{self.name}"


@dataclass(frozen=True)
class Secrets:
    """How to prove who asks, and whom to believe; never shown.

    basic: the user and the password; None where there is none.
    api_key: the key; None where there is none.
    ca: the file of those whom TLS believes; None where they are those of the system."""

    basic: tuple[str, str] | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    ca: Path | None = None

    @property
    def authorization(self) -> str:
        """The header of HTTP that proves who asks; "" where nothing does."""
        if self.basic:
            return "Basic " + b64encode(":".join(self.basic).encode()).decode()
        return f"ApiKey {self.api_key}" if self.api_key else ""


def parse_address(text: str) -> ElasticAddress:
    """The parts of an address.

    text: the address.

    Raises UsageError where it is not of the form, or has a password in it."""
    safe_text = _without_secrets(text)
    if "@" in text:
        variables = f"{USER} and {PASSWORD}, or {API_KEY}"
        raise UsageError(
            f"{safe_text}: no password in an address; set {variables} in the environment"
        )
    engine = _engine_of(text)
    scheme, _, rest = text.removeprefix(engine.prefix if engine else "").partition("://")
    hosts, _, name = rest.partition("/")
    if engine is None or scheme not in ("http", "https") or not hosts:
        forms = " or ".join(f"{one.prefix}http[s]" for one in ENGINES)
        raise UsageError(f"{safe_text}: the address of an index has the form ({forms}){_FORM}")
    if not _NAME.fullmatch(name):
        allowed = "1 to 200 of a-z, 0-9, '.', '_', '-', the first a letter or digit"
        raise UsageError(f"{safe_text}: the name {_without_secrets(name)!r} must be {allowed}")
    form = f"{engine.prefix}{scheme}{_FORM}"
    urls = tuple(_host(scheme, host, safe_text, form) for host in hosts.split(","))
    if twice := next((url for number, url in enumerate(urls) if url in urls[:number]), None):
        raise UsageError(f"{safe_text}: the host {twice} stands there twice; name each once")
    return ElasticAddress(urls, name, engine)


def _engine_of(text: str) -> Engine | None:
    return next((engine for engine in ENGINES if text.startswith(engine.prefix)), None)


def read_secrets(environment: Mapping[str, str] = os.environ) -> Secrets:
    """The secrets that the environment holds.

    environment: the variables of the environment.

    Raises UsageError where they are incomplete or contradict each other."""
    user, password, key, ca = (
        environment.get(name) or None for name in (USER, PASSWORD, API_KEY, CA)
    )
    if (user is None) != (password is None):
        raise UsageError(f"{USER} and {PASSWORD} must both be set, or neither")
    if user is not None and key is not None:
        raise UsageError(f"{API_KEY} and {USER} exclude each other")
    if ca is not None and not Path(ca).is_file():
        raise UsageError(f"{CA}: {ca}: no such file")
    return Secrets((user, password) if user and password else None, key, Path(ca) if ca else None)


def local_folder(
    address: ElasticAddress, environment: Mapping[str, str] = os.environ
) -> Path | None:
    """The folder on this machine for what is kept beside an index on a server, as pair keys. It is
    named by the hosts, in any order, and by the name of the index, so that a new build of the index
    finds it again. It lies in the folder that TMNMT_KEYS names, or otherwise in the user's cache.
    None where TMNMT_KEYS is not set and the user has no home.

    address: the address of the index.
    environment: the variables of the environment.

    Raises UsageError where TMNMT_KEYS does not name a folder from the root."""
    root = Path(environment.get(KEYS) or "")
    if environment.get(KEYS) and not root.is_absolute():
        raise UsageError(f"{KEYS}: {root}: must be a path from the root")
    if not root.is_absolute():
        try:
            root = cache_dir() / "keys"
        except UsageError:
            return None
    identity = " ".join((*sorted(address.hosts), address.name))
    digest = blake2b(identity.encode(), digest_size=8).hexdigest()
    return root / f"{address.name}-{digest}"


def open_hosts(address: ElasticAddress) -> list[str]:
    """The hosts to which everything goes as anybody on the way can read it.

    address: the address."""
    return [host for host in address.hosts if host.startswith("http://") and not _is_loopback(host)]


def _is_loopback(host: str) -> bool:
    name = urlsplit(host).hostname or ""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def _host(scheme: str, host: str, safe_text: str, form: str) -> str:
    try:
        parts = urlsplit(f"{scheme}://{host}")
        port = parts.port or PORT
    except ValueError:  # not told as it is: it quotes what stands in the place of the port
        parts, port = urlsplit(""), PORT
    if not parts.hostname or parts.query or parts.fragment:
        raise UsageError(
            f"{safe_text}: {_without_secrets(host)!r} is no host; the form is {form}, with a port "
            "up to 65535"
        )
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{scheme}://{name}:{port}"


def _without_secrets(text: str) -> str:
    """The text without what stands before an @, after a ? or #, and in the place of a port that is
    none."""
    _, separator, rest = text.rpartition("@")
    prefix = (_engine_of(text) or ELASTICSEARCH).prefix
    safe_text = re.sub(
        r"[?#].*", "...", f"{prefix}...@{rest}" if separator else text, flags=re.DOTALL
    )
    return re.sub(
        r"(\[[0-9A-Fa-f:.]+\]|://)|:(?!\d{1,5}(?:[,/]|$))[^,/]*",
        lambda match: match[1] or ":...",
        safe_text,
    )
