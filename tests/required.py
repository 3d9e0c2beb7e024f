"""What some tests need of the machine beside Python: they are skipped, with the reason, where it is
absent, and fail where TMNMT_REQUIRE names it, as in CI: `TMNMT_REQUIRE=elasticsearch,browser`."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

KINDS = (
    "elasticsearch",
    "opensearch",
    "browser",  # Chromium
    "firefox",
    "node",
    "proxies",  # nginx and Caddy
    "prometheus",
    "disk",
    "openssl",
    "gettext",
    "hunspell",  # with a dictionary of French
    "qt",  # its lrelease
    "php",
    "docutils",
    "mdx",
    "epubcheck",
    "icu",
    "okapi",
    "clients",  # of the server, for Node and Java
    "axe",
    "redis",
    "ray",
    "gpu",
    "faiss-gpu",
)  # disk: a small one can be mounted
NAME = "TMNMT_REQUIRE"


def required() -> set[str]:
    """What must be there. Raises UsageError of pytest's for what no test needs: it would require
    nothing."""
    named = {name.strip() for name in os.environ.get(NAME, "").split(",")} - {""}
    if unknown := sorted(named - {*KINDS}):
        raise pytest.UsageError(
            f"{NAME}: no test needs {', '.join(unknown)}; allowed: {', '.join(KINDS)}"
        )
    return named


def absent(kind: str, reason: str) -> NoReturn:
    """Skips the test that needs something of this kind, or fails it where that is required."""
    if kind in required():
        pytest.fail(f"{NAME} names {kind}, and it is not there: {reason}", pytrace=False)
    pytest.skip(reason)
