"""A request as it is read: within limits, and nothing in it that is no text."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

from starlette.requests import ClientDisconnect, Request

from tmnmt.serve.keys import Caller
from tmnmt.serve.refused import Refused, wrong

_MOST_FIELDS = 2_000
_THROWN_AWAY = 16  # times as many bytes as a body may have are read to their end, to be refused
_SECONDS = 30.0  # that a body may take
_SECONDS_OF_FILE = 600.0
_SCHEMES = ("bearer", "deepl-auth-key")
_BOUNDARY = re.compile(r"""\bboundary="?([\w'()+,./:=?-]{1,70})""", re.IGNORECASE)
_PART = re.compile(r"""\bname="([^"\r\n]{1,200})\"""", re.IGNORECASE)
_HEADERS = ("x-api-key", "mmt-apikey")


class Asked:
    """A request. `values`: the fields of the query and of the body, that of the body where both
    have one; a field of a form that comes several times is a list. `path`: the parts of the path by
    name. `listed`: the body where it is a list of JSON. `raw`: the body where it is a file."""

    def __init__(
        self,
        request: Request,
        query: Mapping[str, Any],
        body: Mapping[str, Any],
        listed: list[Any],
        raw: bytes = b"",
    ) -> None:
        self.headers, self.scheme = request.headers, request.url.scheme
        self.path: dict[str, str] = request.path_params
        self.query, self.body, self.listed, self.raw = query, body, listed, raw
        self.caller: Caller

    @property
    def values(self) -> dict[str, Any]:
        return {**self.query, **self.body}

    @property
    def key(self) -> str:
        """The key, wherever the dialects have one; "" where there is none."""
        scheme, _, word = self.headers.get("authorization", "").partition(" ")
        if scheme.lower() in _SCHEMES:
            return word.strip()
        if scheme.lower() == "basic":
            return _password(word)
        parts: list[Any] = [self.headers.get(name, "") for name in _HEADERS]
        parts += [self.values.get(name) for name in ("api_key", "key")]
        return next((one for one in parts if isinstance(one, str) and one), "")


def _password(word: str) -> str:
    """Of "name:password"; the name where there is no password."""
    try:
        name, _, password = base64.b64decode(word, validate=True).decode("utf-8").partition(":")
    except (binascii.Error, ValueError):
        return ""
    return password or name


async def asked(request: Request, most: int, is_file: bool = False) -> Asked:
    """Raises Refused for what cannot be read, or is larger than `most` bytes. `is_file`: the
    body is one, whatever is in it."""
    raw: bytes = request.scope.get("raw_path", b"")
    try:
        unquote_to_bytes(raw).decode("utf-8")
        query = _form(request.scope["query_string"].decode("ascii"))
    except UnicodeDecodeError as error:
        raise wrong("the address is no UTF-8") from error
    body = await _body(request, most, _SECONDS_OF_FILE if is_file else _SECONDS)
    if is_file:
        return Asked(request, query, {}, [], body)
    if not body.strip():
        return Asked(request, query, {}, [])
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not kind:
        kind = "json" if body.lstrip()[:1] in (b"{", b"[") else "x-www-form-urlencoded"
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong("the body is no UTF-8") from error
    if kind == "multipart/form-data":
        return Asked(request, query, _parts(text, request.headers["content-type"]), [])
    if kind.endswith("json"):
        value = _json(text)
        if isinstance(value, list):
            return Asked(request, query, {}, value)
        if not isinstance(value, dict):
            raise wrong("the body must be an object of JSON")
        return Asked(request, query, value, [])
    if kind.endswith("x-www-form-urlencoded"):
        if text.lstrip()[:1] in ("{", "["):  # as curl sends it where no type is given
            raise Refused(
                415, "wrong_type", "the body is a form by its type: send JSON as application/json"
            )
        return Asked(request, query, _form(text), [])
    raise Refused(415, "wrong_type", "the body must be JSON or a form (x-www-form-urlencoded)")


async def _body(request: Request, most: int, seconds: float) -> bytes:
    """The body. What is too large is read and thrown away up to a point, so that the client hears
    why it is refused."""
    parts, size = list[bytes](), 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size <= most:
                    parts.append(part)
                elif size > _THROWN_AWAY * most:
                    break
    except TimeoutError as error:
        raise Refused(408, "too_slow", f"the body did not come within {seconds:g} s") from error
    except ClientDisconnect as error:
        raise Refused(400, "bad_request", "the body did not come to its end") from error
    if size > most:
        raise Refused(413, "too_large", f"the body may have {most:,} bytes")
    return b"".join(parts)


def _json(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_no_number)
        if "\\u" in text:  # halves of characters, which no file can hold
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise wrong("the body is no JSON") from error
    return value


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _parts(text: str, kind: str) -> dict[str, Any]:
    """The fields of a form in parts, a file as its text. Raises Refused for what is none."""
    boundary = _BOUNDARY.search(kind)
    if boundary is None:
        raise wrong("the type of the body names no boundary")
    first, *parts = f"\r\n{text}".split(f"\r\n--{boundary[1]}")
    if not parts or first.strip() or parts.pop().strip() != "--":
        raise wrong("the body is no form in parts")
    if len(parts) > _MOST_FIELDS:
        raise Refused(413, "too_large", f"a form may have {_MOST_FIELDS:,} fields")
    fields: dict[str, Any] = {}
    for part in parts:
        head, _, value = part.partition("\r\n\r\n")
        name = _PART.search(head)
        if name is None:
            raise wrong("a part of the form has no name")
        fields[name[1]] = value
    return fields


def _form(text: str) -> dict[str, Any]:
    """Raises Refused for what is no UTF-8, or has too many fields."""
    fields: dict[str, Any] = {}
    try:
        pairs = parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except UnicodeDecodeError as error:
        raise wrong("a field is no UTF-8") from error
    except ValueError as error:
        raise Refused(413, "too_large", f"a form may have {_MOST_FIELDS:,} fields") from error
    for name, value in pairs:
        if name not in fields:
            fields[name] = value
        else:
            fields[name] = [
                *(fields[name] if isinstance(fields[name], list) else [fields[name]]),
                value,
            ]
    return fields
