"""What was written is still there after a power cut: everything that is to last is written through
here.

The content of a file is on disk before its name is, and its name before the caller goes on. So a
file is the old one or the whole new one, never half of it. A temporary file is always a new one,
beside the file whose place it takes: it is made with O_EXCL and O_NOFOLLOW, so that nothing is
written through a link that somebody put there."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tmnmt import system
from tmnmt.system import flush, flush_file, flush_folder, open_file, set_mode


def sync_tree(folder: Path) -> None:
    """Puts all files and names below a folder on disk, but not its own name.

    folder: the folder."""
    for path in folder.iterdir():
        sync_tree(path) if path.is_dir() else flush_file(path)
    flush_folder(folder)


def make_folder(folder: Path) -> bool:
    """Makes a folder and those above it, and puts their names on disk. Returns False where it is
    there already.

    folder: the folder.

    Raises FileExistsError where a file has its name."""
    if not folder.parent.exists():
        make_folder(folder.parent)
    try:
        folder.mkdir()
    except FileExistsError:
        if not folder.is_dir():
            raise
        return False
    flush_folder(folder.parent)
    return True


def rename(path: Path, target: Path) -> None:
    """Gives a file or folder another name, in the place of what has it.

    path: the file or folder, whose content is on disk already.
    target: its new path."""
    system.rename(path, target)
    flush_folder(target.parent)
    if path.parent != target.parent:
        flush_folder(path.parent)


def create(path: Path, mode: int = 0o600) -> None:
    """Makes an empty file where there is none; one that is there stays.

    path: the file.
    mode: the mode of a new file, less what the umask takes.

    Raises FileExistsError for a link that leads nowhere: nothing is made where somebody else's link
    leads."""
    if path.exists():
        return
    try:
        os.close(open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    except FileExistsError:
        if not path.exists():  # else another process was first
            raise


class New(NamedTuple):
    """A new file, open for writing, that is to take the place of another.

    handle: its file descriptor.
    path: where it lies until then.
    mode: the mode that it is to have."""

    handle: int
    path: Path
    mode: int


def new_beside(path: Path, alone: bool = False) -> New:
    """An empty file that is to take the place of another. Its mode is to be that of the other, or
    what the umask leaves where there is no other.

    path: the file whose place it takes.
    alone: whether the caller is the only one who writes `path`. Then the new file is called
    PATH.partial, and what a killed writer left there goes. Otherwise nobody can guess its name, and
    of two writers the later one wins."""
    new = path.with_name(
        f"{path.name}.partial" if alone else f".{path.name}.{secrets.token_urlsafe(6)}"
    )
    if alone:
        new.unlink(missing_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else None
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    handle = open_file(new, flags, 0o666 if mode is None else 0o600)
    return New(handle, new, os.fstat(handle).st_mode & 0o777 if mode is None else mode)


def put_in_place(new: New, path: Path) -> None:
    """Puts a new file in the place of another, the content before the name.

    new: the new file. Its handle may be closed.
    path: the file whose place it takes."""
    # a library may have made it anew
    handle = open_file(new.path, os.O_RDWR)
    try:
        set_mode(handle, new.mode)
        flush(handle)
    finally:
        os.close(handle)
    rename(new.path, path)


@contextmanager
def replacing(path: Path, alone: bool = False, private: bool = False) -> Iterator[Path]:
    """Gives the path of a new file. When the block ends well, it takes the place of another file;
    otherwise it is deleted.

    path: the file whose place it takes.
    alone: as in `new_beside`.
    private: whether nobody but its owner may read it, while it is written, too."""
    new = new_beside(path, alone)
    try:
        if private:
            new = new._replace(mode=0o600)
            set_mode(new.handle, new.mode)
        os.close(new.handle)
        yield new.path
        put_in_place(new, path)
    finally:
        new.path.unlink(missing_ok=True)


def write(path: Path, content: bytes, alone: bool = False) -> None:
    """Gives a file its content, as a whole or not at all.

    path: the file.
    content: what it has from then on.
    alone: as in `new_beside`."""
    with replacing(path, alone) as new:
        new.write_bytes(content)


def append(path: Path, content: bytes) -> None:
    """Writes behind what is in a file. It is on disk on return.

    path: the file, which is made where it is missing.
    content: what is written."""
    is_new = not path.exists()
    with path.open("ab") as file:
        file.write(content)
        file.flush()
        flush(file.fileno())
    if is_new:
        flush_folder(path.parent)
