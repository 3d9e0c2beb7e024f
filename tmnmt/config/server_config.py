"""The file of `tmnmt serve --config`: a table of TOML whose keys are the options of the command.

    port = 5051
    keys = "keys.toml"
    model = ["models/law-transformer.en-fr"]
    [memory]
    law = "law-index:penalty=5"
    [write_to]
    mine = "my-index"

Paths are those below the folder of the file. What the command line names takes the place of what
the file has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from tmnmt.config.bounds import Flat
from tmnmt.config.option import Option, groups_of, options_of
from tmnmt.config.serving import ServerOptions, TenantLimits
from tmnmt.config.tables import build, read_toml
from tmnmt.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LOGIN = re.compile(r"(?<=://)[^\s]*@")  # a user and a password before the host of an address
NOT_TOLD = "***@"


@dataclass(frozen=True)
class ServerConfig:
    """What a server is told.

    options: the options of the command.
    tenant: what single tenants may have, by their names."""

    options: Annotated[ServerOptions, Flat()] = ServerOptions()
    tenant: dict[str, TenantLimits] = field(default_factory=dict)


def server_settings() -> list[Option]:
    """All options of a server, in the order in which they are declared."""
    return [setting for group in groups_of(ServerOptions) for setting in options_of(group)]


def load_config(
    path: Path | None, overrides: Mapping[str, Any] = MappingProxyType({})
) -> ServerConfig:
    """What a server is told by a file and by its command line.

    path: the file; None for none.
    overrides: what the command line names, by the names of options.

    Raises DataError where the file cannot be read. Raises UsageError with the file and the key for
    what is unknown or not allowed in it."""
    if path is None:
        return ServerConfig(replace(ServerOptions(), **overrides))
    table = read_toml(path)
    for setting in server_settings():
        if setting.is_list and setting.name in table:
            table[setting.name] = _entries(table[setting.name], setting, f"{path}: {setting.name}")
    tenants = table.pop("tenant", {})
    options = build(ServerConfig, table, str(path)).options
    places = {
        setting.name: _located(setting, getattr(options, setting.name), path.parent)
        for setting in server_settings()
        if setting.location is not None
    }
    options = replace(options, **{**places, **overrides})
    return ServerConfig(options, _tenants(tenants, options, f"{path}: tenant"))


def _tenants(table: Any, options: ServerOptions, location: str) -> dict[str, TenantLimits]:
    """What single tenants may have. What their tables leave out is as for the others."""
    if not isinstance(table, dict) or not all(isinstance(entry, dict) for entry in table.values()):
        raise UsageError(f"{location}: must be tables [tenant.NAME]")
    general = {setting.name: getattr(options, setting.name) for setting in options_of(TenantLimits)}
    general = {name: value for name, value in general.items() if value is not None}
    return {
        name: build(TenantLimits, {**general, **entry}, f"{location}.{name}")
        for name, entry in table.items()
    }


def _entries(value: Any, setting: Option, location: str) -> Any:
    """The values of an option that may be given several times: a list, a single one, or a table of
    names and places."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, dict):
        return value
    if setting.location is None or not setting.location.is_named:
        raise UsageError(f"{location}: must be a list of texts")
    for name, place in value.items():
        if not _NAME.fullmatch(name) or not isinstance(place, str):
            raise UsageError(f"{location}: must be a list of texts, or a table of NAME = PLACE")
    return [f"{name}={place}" for name, place in value.items()]


def _located(setting: Option, value: Any, folder: Path) -> Any:
    """The places that a value names, where those are meant that are in a folder."""
    if setting.is_list:
        return tuple(_place(entry, setting, folder) for entry in value)
    if value is None:
        return None
    place = _place(str(value), setting, folder)
    return Path(place) if setting.kind is Path else place


def _place(text: str, setting: Option, folder: Path) -> str:
    label, sign, place = text.partition("=")
    is_named = bool(
        setting.location
        and setting.location.is_named
        and sign
        and _NAME.fullmatch(label)
        and not (folder / text).exists()
    )
    start, place = (f"{label}=", place) if is_named else ("", text)
    return text if "://" in place else f"{start}{folder / place}"


def without_secrets(text: str) -> str:
    """A text without the users and passwords of addresses in it.

    text: the text."""
    return _LOGIN.sub(NOT_TOLD, text)


def config_lines(config: ServerConfig) -> Iterator[str]:
    """The lines of a file that says the same, without secrets. What is not set is a comment.

    config: what the server is told."""
    for group in groups_of(ServerOptions):
        yield f"# {group.title}"
        for setting in options_of(group):
            yield f"# {setting.description}"
            value = getattr(config.options, setting.name)
            is_set = value is not None and value != ()
            yield f"{setting.name} = {_toml(value)}" if is_set else f"# {setting.name} ="
        yield ""
    for name, limits in config.tenant.items():
        yield f"[tenant.{json.dumps(name, ensure_ascii=False)}]"
        for setting in options_of(TenantLimits):
            if (value := getattr(limits, setting.name)) is not None:
                yield f"{setting.name} = {_toml(value)}"


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str | Path):
        return json.dumps(without_secrets(str(value)), ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)
