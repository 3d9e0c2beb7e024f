"""A server's data in one file, and back: sessions with jobs and glossaries, the memories that are
written to, keys, lists of terms and the file of options.

    tar, compressed with gzip
        serve.toml keys.toml terms/NAME.SUFFIX     as they are
        sessions.db                                one state of the file of sessions
        memories/NAME/...                          one state of each index, of the same moment
        backup.json                                last: size and sha256 of each, and its place

All memories are held still for the moment in which the state of the sessions is taken, some
milliseconds. So a pair that is confirmed in a session is in its memory, too."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from tmnmt import __version__
from tmnmt.config.server_config import (
    ServerConfig,
    config_lines,
    server_settings,
    without_secrets,
)
from tmnmt.config.serving import ServerOptions, TenantLimits
from tmnmt.durable import create, make_folder, rename, replacing, sync_tree
from tmnmt.errors import DataError, UsageError
from tmnmt.index.back_ends import is_absent, is_address, local_path
from tmnmt.index.embedded.snapshot import SnapshotFile, snapshot, unchanged
from tmnmt.serve.memories import Place
from tmnmt.serve.memories import place_of as memory_place
from tmnmt.serve.storage.opening import place_of
from tmnmt.serve.storage.snapshot import Snapshot, relocate
from tmnmt.system import flush, flush_folder, open_file

FORMAT = 1
CONTENTS = "backup.json"
SESSIONS, CONFIG, KEYS = "sessions.db", "serve.toml", "keys.toml"
MEMORIES, TERMS = "memories", "terms"
MOST_BYTES = 100_000_000  # of the contents
_LEVEL = 1  # of compression: higher ones take long and gain little
_CHUNK = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*")


@dataclass(frozen=True)
class Contents:
    """What a backup holds.

    places: where each item was, by its name in the backup.
    files: the size and the sha256 of each file.
    options: what the server was told, as the file of options has it, without passwords.
    created: when it was made, in seconds since 1970.
    version: the version of the program that made it.
    format: the number of the format."""

    places: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict)
    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    created: float = 0.0
    version: str = __version__
    format: int = FORMAT

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(size for size, _ in self.files.values())


def back_up(
    path: Path, config: ServerConfig, file: Path | None = None, with_sessions: bool = True
) -> Contents:
    """Writes a backup, which is there as a whole or not at all. Servers may go on meanwhile.

    path: the new file.
    config: what the server is told.
    file: the file of options; None for none.
    with_sessions: whether sessions, jobs and glossaries are in it.

    Raises DataError where the file is there already, or something cannot be read. Raises UsageError
    for memories and sessions on a server, which that server has to back up."""
    if path.exists():
        raise DataError(f"{path}: is there already; give another name")
    options = config.options
    folders = _memory_folders(options)
    database = _database(options) if with_sessions else None
    places = {name: str(folder.resolve()) for name, folder in folders.items()}
    single = _single_files(options, file)
    places |= {name: str(file.resolve()) for name, file in single.items()}
    places |= {SESSIONS: str(database.resolve())} if database is not None else {}
    contents = Contents(places, _record(config), created=time.time())
    with ExitStack() as stack:
        copies = {name: list[SnapshotFile]() for name in folders}
        with unchanged(folders.values()):
            for name, folder in folders.items():
                copies[name] = snapshot(folder, stack)
            sessions = Snapshot(database) if database is not None else None
        if sessions is not None:
            stack.callback(sessions.close)
        with replacing(path, alone=True, private=True) as new, _archive(new) as archive:
            for name, file in single.items():
                _add_path(archive, contents, name, file)
            if sessions is not None:
                _add_sessions(archive, contents, sessions, path.with_name(f"{path.name}.sessions"))
            for name, files in copies.items():
                for entry in files:
                    _add(archive, contents, f"{name}/{entry.name}", entry.file, entry.size)
            text = json.dumps(asdict(contents), indent=1).encode()
            archive.addfile(_head(CONTENTS, len(text)), io.BytesIO(text))
    return contents


def _memory_folders(options: ServerOptions) -> dict[str, Path]:
    """The folders of the memories that are written to, by their names in the backup."""
    folders = dict[str, Path]()
    for place in map(memory_place, options.write_to):
        folder = local_path(place.place)
        if folder is None:
            raise UsageError(
                f"{place.place}: is backed up by its own server, as a snapshot; leave it out here"
            )
        if not is_absent(folder):  # nothing was ever added to it
            folders[f"{MEMORIES}/{place.name}"] = folder
    return folders


def _database(options: ServerOptions) -> Path:
    place = place_of(options.sessions)
    if not isinstance(place, Path):
        raise UsageError(
            f"{place}: sessions on a Redis are backed up by Redis; give --without-sessions to back "
            "up everything else"
        )
    return place


def _single_files(options: ServerOptions, config: Path | None) -> dict[str, Path]:
    files = {KEYS: options.keys, CONFIG: config}
    single = {name: file for name, file in files.items() if file is not None}
    for place in map(memory_place, options.terms):
        file = Path(place.place)
        single[f"{TERMS}/{_label(place, file.is_file())}{''.join(file.suffixes[-2:])}"] = file
    return single


def _record(config: ServerConfig) -> dict[str, Any]:
    """What is not as by default, with whole paths."""
    options = config.options
    values: dict[str, Any] = {
        name: value for name, value, default in _values(options) if value != default
    }
    for setting in server_settings():
        value = values.get(setting.name)
        if value is None or setting.location is None:
            continue
        if setting.is_list and setting.location.is_named:
            values[setting.name] = [_relocated(entry, {}) for entry in value]
        elif setting.is_list:
            values[setting.name] = [
                entry if "://" in entry else str(Path(entry).resolve()) for entry in value
            ]
        else:
            text = without_secrets(str(value))
            values[setting.name] = text if is_address(text) else str(Path(text).resolve())
    tenants = {name: asdict(limits) for name, limits in config.tenant.items()}
    return values | ({"tenant": tenants} if tenants else {})


def _values(options: ServerOptions) -> Iterator[tuple[str, Any, Any]]:
    for setting in server_settings():
        yield setting.name, getattr(options, setting.name), setting.default


def _relocated(entry: str, places: Mapping[str, Path]) -> str:
    """The same [NAME=]PLACE[:SETTINGS] with the place that it has now, or its whole path."""
    place = memory_place(entry)
    if is_address(place.place):
        return entry
    former = Path(place.place).resolve()
    settings = entry.removeprefix(f"{place.name}=").partition(place.place)[2]
    label = _label(place, former.suffix != "" and not former.is_dir())
    return f"{label}={places.get(str(former), former)}{settings}"


def _label(place: Place, is_file: bool) -> str:
    """The name under which a place is served. A list of terms that is named by its file alone has
    the name without its ending."""
    is_unnamed = is_file and place.name == Path(place.place).name
    return place.name.partition(".")[0] if is_unnamed else place.name


@contextmanager
def _archive(path: Path) -> Iterator[tarfile.TarFile]:
    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", _LEVEL, file, 0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        yield archive


def _head(name: str, size: int) -> tarfile.TarInfo:
    head = tarfile.TarInfo(name)
    head.size, head.mode = size, 0o600
    return head


def _add_path(archive: tarfile.TarFile, contents: Contents, name: str, path: Path) -> None:
    try:
        with path.open("rb") as file:
            _add(archive, contents, name, file, os.fstat(file.fileno()).st_size)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error


def _add_sessions(
    archive: tarfile.TarFile, contents: Contents, sessions: Snapshot, copy: Path
) -> None:
    """copy: where they are written meanwhile; what a killed backup left there goes."""
    copy.unlink(missing_ok=True)
    try:
        create(copy)
        sessions.copy(copy)
        _add_path(archive, contents, SESSIONS, copy)
    finally:
        copy.unlink(missing_ok=True)


def _add(
    archive: tarfile.TarFile, contents: Contents, name: str, file: BinaryIO, size: int
) -> None:
    """Adds the first bytes of a file, and notes their hash."""
    reader = _Hashed(file, size)
    archive.addfile(_head(name, size), reader)  # type: ignore[arg-type]
    if reader.remaining:
        raise DataError(f"{name}: became shorter while it was read")
    contents.files[name] = size, reader.digest.hexdigest()


class _Hashed:
    """A file that is read, of which the hash is known afterwards."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self.remaining, self.digest = file, size, hashlib.sha256()

    def read(self, size: int) -> bytes:
        content = self._file.read(min(size, self.remaining))
        self.remaining -= len(content)
        self.digest.update(content)
        return content


def restore(path: Path, folder: Path | None = None) -> Contents:
    """Puts what a backup holds where it was, or into a new folder. All of it is read and compared
    with its checksums before anything is put in its place, and nothing is overwritten.

    path: the file of the backup.
    folder: the new folder, in which a file of options names the places; None takes the former
    places.

    Raises DataError for what is no backup or is damaged, and where something is in a place."""
    if folder is not None and folder.exists():
        raise DataError(f"{folder}: is there already; give a new folder")
    contents = read_contents(path)
    places = {
        name: Path(place) if folder is None else folder / name
        for name, place in contents.places.items()
    }
    places |= {CONFIG: folder / CONFIG} if folder is not None else {}
    # what SQLite left beside another file of sessions would be taken for a part of this one
    leftovers = [Path(f"{places[SESSIONS]}{end}") for end in ("-wal", "-shm") if SESSIONS in places]
    for place in [*places.values(), *leftovers]:
        if os.path.lexists(place):
            raise DataError(f"{place}: is there already; nothing was restored")
    with _unpacked(path, contents, places) as unpacked:
        if folder is not None:
            _name_new_places(contents, places, unpacked)
        for name, place in places.items():
            rename(unpacked[name], place)
    return contents


def read_contents(path: Path) -> Contents:
    """What a backup holds. All of it is read and compared with its checksums.

    path: the file of the backup.

    Raises DataError for what is no backup or is damaged."""
    sizes = dict[str, tuple[int, str]]()
    text = None
    with _reading(path):
        for name, file in _entries(path):
            if name == CONTENTS:
                text = file.read(MOST_BYTES)
            else:
                sizes[name] = _described(file)
    if text is None:
        raise DataError(f"{path}: has no end; this is no whole backup")
    contents = _parse_contents(text, path)
    for name in {*contents.files, *sizes}:
        if contents.files.get(name) != sizes.get(name):
            raise DataError(f"{path}: {name} differs from what was backed up")
    return contents


def _described(file: BinaryIO, copy: BinaryIO | None = None) -> tuple[int, str]:
    """The size and the sha256 of a file. copy: what its content is written to."""
    size, digest = 0, hashlib.sha256()
    while chunk := file.read(_CHUNK):
        size += len(chunk)
        digest.update(chunk)
        if copy is not None:
            copy.write(chunk)
    return size, digest.hexdigest()


def _parse_contents(text: bytes, path: Path) -> Contents:
    try:
        record = json.loads(text)
        files = {str(name): (int(size), str(sha)) for name, (size, sha) in record["files"].items()}
        contents = Contents(**{**record, "files": files})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{path}: {CONTENTS} is damaged") from error
    if contents.format != FORMAT:
        raise DataError(
            f"{path}: is a backup of format {contents.format}, this version reads {FORMAT}"
        )
    items = [item for item in contents.places if _NAME.fullmatch(item)]
    if len(items) < len(contents.places) or not all(
        _NAME.fullmatch(name) and _item(name, items) for name in files
    ):
        raise DataError(f"{path}: {CONTENTS} is damaged")
    return contents


def _item(name: str, items: Sequence[str]) -> str | None:
    """The item that a file belongs to: it is the file itself, or a folder above it."""
    return next((item for item in items if name == item or name.startswith(f"{item}/")), None)


def _entries(path: Path) -> Iterator[tuple[str, BinaryIO]]:
    """All files of a backup, each of them to be read at once, within `_reading`."""
    with tarfile.open(path, "r|gz") as archive:
        for entry in archive:
            file = archive.extractfile(entry) if entry.isreg() else None
            if file is None or not _NAME.fullmatch(entry.name):
                raise DataError(f"{path}: {entry.name!r} is nothing that a backup has")
            yield entry.name, file  # type: ignore[misc]


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raises DataError where the block finds that a backup is none, or damaged."""
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: is no backup, or is damaged: {error}") from error


@contextmanager
def _unpacked(
    path: Path, contents: Contents, places: Mapping[str, Path]
) -> Iterator[dict[str, Path]]:
    """Every item beside its place, on disk; what is not moved from there is deleted, and what a
    killed run left there, too."""
    unpacked = {name: place.with_name(f".{place.name}.restoring") for name, place in places.items()}
    _delete(unpacked.values())
    try:
        for place in unpacked.values():
            make_folder(place.parent)
        with _reading(path):
            for name, file in _entries(path):
                if (item := _item(name, list(places))) is None:
                    continue
                target = unpacked[item] / PurePosixPath(name).relative_to(item)
                target.parent.mkdir(parents=True, exist_ok=True)
                if _copy_file(target, file) != contents.files[name]:
                    raise DataError(f"{path}: {name} differs from what was backed up")
        for place in unpacked.values():
            if place.is_dir():
                sync_tree(place)
            flush_folder(place.parent)
        yield unpacked
    finally:
        _delete(unpacked.values())


def _delete(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _copy_file(target: Path, file: BinaryIO) -> tuple[int, str]:
    """Writes a new file, which is on disk then, and returns its size and sha256."""
    handle = open_file(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as copy:
        described = _described(file, copy)
        copy.flush()
        flush(copy.fileno())
    return described


def _name_new_places(
    contents: Contents, places: Mapping[str, Path], unpacked: Mapping[str, Path]
) -> None:
    """Has sessions, and the file of options, name the new places."""
    new_places = {former: places[name].resolve() for name, former in contents.places.items()}
    if SESSIONS in unpacked:
        relocate(unpacked[SESSIONS], {Path(former): place for former, place in new_places.items()})
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in contents.options.items()
        if name != "tenant"
    }
    for name in ("write_to", "terms"):
        values[name] = tuple(_relocated(entry, new_places) for entry in values.get(name, ()))
    for name, item in (("keys", KEYS), ("sessions", SESSIONS)):
        values |= {name: str(places[item].resolve())} if item in places else {}
    tenants = contents.options.get("tenant", {})
    limits = {name: TenantLimits(**entry) for name, entry in tenants.items()}
    config = ServerConfig(ServerOptions(**values), limits)
    unpacked[CONFIG].write_text("\n".join(config_lines(config)), encoding="utf-8")
