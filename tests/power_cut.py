"""What a power cut would leave: a model of a disk that keeps only what was synced.

A file's content is on disk as it was at its last fsync; a name is, as its folder had it at the
folder's last fsync. A rename may reach the disk at any time: so whatever gets another name must be
on disk before, all of it. A file within a folder that was there when the watch began counts as on
disk."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Disk:
    """Watches fsync and renaming from now on, until `monkeypatch` is undone."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, sync: bool = True) -> None:
        """sync=False: every fsync does nothing, as if it had been left out."""
        self.root, self.too_early = root, list[str]()
        self._content: dict[tuple[int, int], str] = {}  # of a file that was synced, by its inode
        self._names: dict[tuple[int, int], dict[str, tuple[int, int]]] = {}  # of a folder
        self._syncs = sync
        self._patch(monkeypatch)
        self._hold(root)

    def lost(self, path: Path) -> list[str]:
        """What of `path`, a file or a folder with all that is in it, a power cut would take now."""
        lost = [
            str(parent)
            for parent in (path, *path.parents)
            if parent.is_relative_to(self.root)
            and parent != self.root
            and not self._is_named(parent)
        ]
        return sorted({*lost, *self._unsynced(path)})

    def _patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fsync, replace, rename = os.fsync, os.replace, os.rename

        def synced(handle: int) -> None:
            if self._syncs:
                fsync(handle)
                self._synced(handle)

        def before(do: Callable[..., None]) -> Callable[..., None]:
            def named(source: Any, target: Any, **options: Any) -> None:
                if Path(target).absolute().is_relative_to(self.root):
                    self.too_early += [
                        f"{lost} -> {target}" for lost in self._unsynced(Path(source).absolute())
                    ]
                do(source, target, **options)

            return named

        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(os, "replace", before(replace))
        monkeypatch.setattr(os, "rename", before(rename))

    def _synced(self, handle: int) -> None:
        found = os.fstat(handle)
        path = Path(f"/proc/self/fd/{handle}")
        if stat.S_ISDIR(found.st_mode):
            self._names[_inode(found)] = _names(path.resolve())
        elif stat.S_ISREG(found.st_mode):
            self._content[_inode(found)] = _digest(path)

    def _hold(self, path: Path) -> None:
        found = path.stat()
        if path.is_dir():
            self._names[_inode(found)] = _names(path)
            for inner in path.iterdir():
                self._hold(inner)
        else:
            self._content[_inode(found)] = _digest(path)

    def _is_named(self, path: Path) -> bool:
        held = self._names.get(_inode(path.parent.stat()), {})
        return held.get(path.name) == _inode(path.stat())

    def _unsynced(self, path: Path) -> list[str]:
        if path.is_dir():
            inner = [lost for one in path.iterdir() for lost in self._unsynced(one)]
            return inner + [str(one) for one in path.iterdir() if not self._is_named(one)]
        return [str(path)] if self._content.get(_inode(path.stat())) != _digest(path) else []


def _inode(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _names(folder: Path) -> dict[str, tuple[int, int]]:
    return {path.name: _inode(path.lstat()) for path in folder.iterdir()}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
