"""The storage that the option --sessions names: a file of SQLite, or a Redis."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from tmnmt.errors import UsageError
from tmnmt.serve.storage.address import RedisAddress, is_address, parse_address
from tmnmt.serve.storage.base import Storage
from tmnmt.serve.storage.sqlite import SqliteStorage


def usual_place() -> Path:
    """$XDG_STATE_HOME/tmnmt/serve.db, else in ~/.local/state. Raises UsageError where there is no
    home folder."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    try:
        home = state if state.is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise UsageError("there is no home folder for sessions: give --sessions FILE") from error
    return home / "tmnmt" / "serve.db"


def place_of(sessions: str | None) -> Path | RedisAddress:
    """The file or the address that --sessions names.

    sessions: the value of the option; None takes the usual file.

    Raises UsageError for what is no address, and where Redis needs a package that is not
    installed."""
    if sessions is None:
        return usual_place()
    if not is_address(sessions):
        return Path(sessions)
    address = parse_address(sessions)
    if find_spec("redis") is None:
        raise UsageError("sessions on Redis need a package: pip install 'tmnmt[server,redis]'")
    return address


def open_storage(place: Path | RedisAddress) -> Storage:
    """Opens a storage.

    place: the file or the address.

    Raises DataError where the place is of another program or a newer version. Raises ServerError
    where there is no Redis that can be written to."""
    if isinstance(place, Path):
        return SqliteStorage(place)
    from tmnmt.serve.storage.redis_storage import RedisStorage

    return RedisStorage(place)
