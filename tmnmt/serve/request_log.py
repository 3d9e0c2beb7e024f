"""The log of a server: lines with a time and the id of the request that they are about."""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

HEADER = "X-Request-Id"
_GOOD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=-]{0,127}")
_ID: ContextVar[str] = ContextVar("request_id", default="")


def request_id() -> str:
    """The id of the request that is answered; "" where there is none."""
    return _ID.get()


def begin_request(text: str) -> str:
    """Gives what is answered from now on its id, and returns it.

    text: what the client calls the request. It is taken where it is well formed, and not written
    anywhere else."""
    id = text if _GOOD.fullmatch(text) else secrets.token_hex(8)
    _ID.set(id)
    return id


def request_line(fields: Mapping[str, Any]) -> None:
    """Logs a request that is answered, as one line of JSON.

    fields: what is known of it."""
    line = {"time": _now(), "request": request_id(), **fields}
    log.info(json.dumps(line), extra={"fields": line})


def _now() -> str:
    return _iso(datetime.now(UTC).timestamp())


def _iso(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class TextLines(logging.Formatter):
    """Lines for people. What is to be looked at has its level, and the id of its request."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if record.levelno < logging.WARNING:
            return message
        id = request_id()
        suffix = f" (request {id})" if id else ""
        return f"tmnmt: {record.levelname.lower()}: {message}{suffix}"


class JsonLines(logging.Formatter):
    """Lines for programs: each is one object of JSON with time, level, and message or what is known
    of a request."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", None)
        if fields is not None:
            return json.dumps({"level": record.levelname.lower(), **fields}, ensure_ascii=False)
        id = request_id()
        line = {
            "level": record.levelname.lower(),
            "time": _iso(record.created),
            **({"request": id} if id else {}),
            "message": record.getMessage(),
        }
        return json.dumps(line, ensure_ascii=False)


FORMATS = {"text": TextLines, "json": JsonLines}
log = logging.getLogger("tmnmt.serve")


def use_format(name: str) -> None:
    """Has the log of this process written so.

    name: "text" or "json"."""
    for handler in logging.getLogger("tmnmt").handlers:
        handler.setFormatter(FORMATS[name]())
