"""A request as it is read: within limits, and nothing in it that is no text."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, unquote_to_bytes

from starlette.requests import Request

from tmnmt.serve.bodies import json_of
from tmnmt.serve.http_error import Refused, wrong
from tmnmt.serve.keys import Caller

_MOST_FIELDS = 2_000
_SCHEMES = ("bearer", "deepl-auth-key")
_BOUNDARY = re.compile(r"""\bboundary="?([\w'()+,./:=?-]{1,70})""", re.IGNORECASE)
_PART = re.compile(r"""\bname="([^"\r\n]{1,200})\"""", re.IGNORECASE)
_FILE_NAME = re.compile(
    r"""\bfilename(?:\*=utf-8'[\w-]*'([^;\r\n]{1,1000})|="([^"\r\n]{1,1000})")""", re.IGNORECASE
)
_HEADERS = ("x-api-key", "mmt-apikey", "x-api-token")


class FormFile(NamedTuple):
    """A file of a form in parts.

    name: the name that the client gives it; "" where it gives none.
    content: its bytes."""

    name: str
    content: bytes


class ApiRequest:
    """A request. `values`: the fields of the query and of the body, that of the body where both
    have one; a field of a form that comes several times is a list. `path`: the parts of the path by
    name. `raw`: the body where it is a file. `file`: the file of a form in parts; None where there
    is none. `size`: the bytes of the body, whatever it is."""

    def __init__(self, request: Request, query: Mapping[str, Any]) -> None:
        """request: the request as Starlette has it.
        query: the fields of its query."""
        self.headers, self.scheme = request.headers, request.url.scheme
        self.server: tuple[str, int | None] | None = request.scope.get("server")
        self.path: dict[str, str] = request.path_params
        self.query, self.body = query, dict[str, Any]()
        self.raw, self.size = b"", 0
        self.file: FormFile | None = None
        self.caller: Caller

    @property
    def values(self) -> dict[str, Any]:
        return {**self.query, **self.body}

    def keep_fields(self, names: Collection[str]) -> None:
        """Forgets every field of another name.

        names: the names of the fields that stay."""
        self.query, self.body = (
            {name: value for name, value in fields.items() if name in names}
            for fields in (self.query, self.body)
        )

    @property
    def key(self) -> str:
        """The key of a header or of the query, wherever the dialects have one; "" where there is
        none."""
        scheme, _, word = self.headers.get("authorization", "").partition(" ")
        if scheme.lower() in _SCHEMES:
            return word.strip()
        if scheme.lower() == "basic":
            return _password(word)
        parts: list[Any] = [self.headers.get(name, "") for name in _HEADERS]
        parts += [self.query.get(name) for name in ("api_key", "auth_key", "key")]
        return next((key for key in parts if isinstance(key, str) and key), "")


def _password(word: str) -> str:
    """Of "name:password"; the name where there is no password."""
    try:
        name, _, password = base64.b64decode(word, validate=True).decode("utf-8").partition(":")
    except (binascii.Error, ValueError):
        return ""
    return password or name


def head_of(request: Request) -> ApiRequest:
    """A request without its body.

    request: the request as Starlette has it.

    Raises Refused for an address that cannot be read."""
    raw: bytes = request.scope.get("raw_path", b"")
    try:
        unquote_to_bytes(raw).decode("utf-8")
        query = _form(request.scope["query_string"].decode("ascii"))
    except UnicodeDecodeError as error:
        raise wrong("the address is no UTF-8") from error
    return ApiRequest(request, query)


def is_in_parts(content_type: str) -> bool:
    """Whether a body is a form in parts, as forms with a file are.

    content_type: the content type that the request says."""
    return _kind(content_type) == "multipart/form-data"


def _kind(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def fields_of(body: bytes, content_type: str, file_field: str = "") -> dict[str, Any] | list[Any]:
    """The fields of a body that is no file, or its list where it is one of JSON.

    body: the body.
    content_type: the content type that the request says.
    file_field: the field of a form in parts whose value is a `FormFile`; "" where there is none.

    Raises Refused for what cannot be read."""
    if not body.strip():
        return {}
    kind = _kind(content_type)
    if not kind:
        kind = "json" if body.lstrip()[:1] in (b"{", b"[") else "x-www-form-urlencoded"
    if kind.endswith("json"):
        value = json_of(body)
        if not isinstance(value, dict | list):
            raise wrong("the body must be an object of JSON")
        return value
    if is_in_parts(content_type):
        return _parts(body, content_type, file_field)
    text = _decoded(body)
    if kind.endswith("x-www-form-urlencoded"):
        if text.lstrip()[:1] in ("{", "["):  # as curl sends it where no type is given
            raise Refused(
                415, "wrong_type", "the body is a form by its type: send JSON as application/json"
            )
        return _form(text)
    raise Refused(415, "wrong_type", "the body must be JSON or a form (x-www-form-urlencoded)")


def _decoded(content: bytes) -> str:
    """Raises Refused for what is no UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong("the body is no UTF-8") from error


def _parts(body: bytes, content_type: str, file_field: str) -> dict[str, Any]:
    """The fields of a form in parts, a file as its text, but for that of `file_field`. A field that
    comes several times is a list. Raises Refused for what is no such form."""
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        raise wrong("the type of the body names no boundary")
    first, *parts = (b"\r\n" + body).split(f"\r\n--{boundary[1]}".encode())
    if not parts or first.strip() or parts.pop().strip() != b"--":
        raise wrong("the body is no form in parts")
    if len(parts) > _MOST_FIELDS:
        raise Refused(413, "too_large", f"a form may have {_MOST_FIELDS:,} fields")
    fields: dict[str, Any] = {}
    for part in parts:
        head_bytes, _, content = part.partition(b"\r\n\r\n")
        head = _decoded(head_bytes)
        name = _PART.search(head)
        if name is None:
            raise wrong("a part of the form has no name")
        is_file = name[1] == file_field
        _put(fields, name[1], _form_file(head, content) if is_file else _decoded(content))
    return fields


def _form_file(head: str, content: bytes) -> FormFile:
    match = _FILE_NAME.search(head)
    if match is None:
        return FormFile("", content)
    return FormFile(unquote(match[1]) if match[1] else match[2], content)


def _put(fields: dict[str, Any], name: str, value: Any) -> None:
    """Adds a field of a form; one that comes several times is a list."""
    if name not in fields:
        fields[name] = value
    elif isinstance(fields[name], list):
        fields[name].append(value)
    else:
        fields[name] = [fields[name], value]


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
        _put(fields, name, value)
    return fields
