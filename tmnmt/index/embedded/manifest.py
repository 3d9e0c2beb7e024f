"""The manifest: the one file that says which generation of an index is valid."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tmnmt.durable import append, rename, write
from tmnmt.errors import MemoryIndexError, short_repr
from tmnmt.index.embedded.journal import JOURNAL_FILE
from tmnmt.index.embedded.small_json import is_count, is_text, read_small
from tmnmt.index.embedded.store import STORE_FILES
from tmnmt.quantities import quantity
from tmnmt.system import flush_file, flush_folder

FORMAT = 10
# 4: its segments have no codes; 4 to 7: its tokens are of FORMER_TOKENISATION; 4 to 8: its postings
# are not packed, so they are made again when it is opened
READABLE_FORMATS = (4, 5, 6, 7, 8, 9, FORMAT)
TOKENISATION = "match-tokens-2"
FORMER_TOKENISATION = "match-tokens-1"  # which cut letters from their combining marks
TOKENISATIONS = FORMER_TOKENISATION, TOKENISATION
KEYS_DIR = "keys"  # of `tmnmt keys`, beside the generations
MANIFEST_FILE = "manifest.json"
# Stands in a folder from before its first generation until it becomes the manifest. So where it
# stands, the first build was killed or is under way, and nothing was ever added.
FIRST_BUILD_FILE = f"{MANIFEST_FILE}.first-build"
MOST_BYTES = 1 << 24  # of it; some 4,000 are usual, and as many for each further part
_PART = re.compile(r"segments\.(db|rows|start)|postings-[1-9]\d{0,17}/[a-z_]+\.npy", re.ASCII)
Described = dict[str, tuple[int, str]]  # by the path of a file its size in bytes and its sha256
CHECKSUM = "checksum"  # sha256 of the manifest without this line


@dataclass(frozen=True)
class Manifest:
    """What an index holds and which files are its parts. The journal, which grows, is not among
    them: its frames have checksums of their own.

    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    segments: how many segments it had when the generation was written.
    sources: how many distinct token sequences the sources have, those of all parts added up.
    tokens: how many distinct match tokens they have, added up likewise.
    last_id: the greatest id ever given until then; no id is given twice.
    generation: the number of the generation.
    postings: how many parts with postings of their own its segments are in.
    created: when the generation was written, in UTC by ISO 8601.
    files: for each path below the generation's folder its size in bytes and its sha256.
    settings: the settings that the build had.
    tokenisation: the name of the rules by which texts become match tokens.
    format: the number of the format."""

    src_lang: str
    tgt_lang: str
    segments: int
    sources: int
    tokens: int
    last_id: int
    generation: int
    postings: int
    created: str
    files: Described
    settings: dict[str, str | int | float]
    tokenisation: str = TOKENISATION
    format: int = FORMAT

    @property
    def parts(self) -> int:
        """How many parts the index has, each with postings of its own."""
        return self.postings

    def generation_dir(self, index_dir: Path) -> Path:
        """The folder of the generation.

        index_dir: the folder of the index."""
        return index_dir / f"generation-{self.generation}"

    def postings_dirs(self, index_dir: Path) -> list[Path]:
        """The folders of the postings of all parts.

        index_dir: the folder of the index."""
        folder = self.generation_dir(index_dir)
        return [folder / f"postings-{number}" for number in range(1, self.postings + 1)]

    def journal_path(self, index_dir: Path) -> Path:
        """The file of the journal.

        index_dir: the folder of the index."""
        return self.generation_dir(index_dir) / JOURNAL_FILE


def read_manifest(index_dir: Path) -> Manifest:
    """The manifest of an index.

    index_dir: the folder of the index.

    Raises MemoryIndexError where there is no index, or it is damaged or of another format."""
    path = index_dir / MANIFEST_FILE
    if not index_dir.exists():
        raise MemoryIndexError(f"{index_dir}: no such index; make one with tmnmt build-index")
    try:
        text, content = read_small(path, MOST_BYTES)
    except FileNotFoundError as error:
        raise MemoryIndexError(_no_manifest(index_dir)) from error
    except NotADirectoryError as error:
        raise MemoryIndexError(f"{index_dir}: an index is a folder; this is a file") from error
    except OSError as error:
        raise MemoryIndexError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise MemoryIndexError(
            f"{path}: damaged ({error}); build the index again with --force"
        ) from error
    manifest = _checked(content, path)
    if text != _serialise(manifest):
        raise MemoryIndexError(f"{path}: damaged (checksum); build the index again with --force")
    return manifest


def check_files(manifest: Manifest, index_dir: Path) -> None:
    """Checks that all parts are there and have their sizes. Their contents are not read
    (`check_content`).

    manifest: the manifest.
    index_dir: the folder of the index.

    Raises MemoryIndexError where a part is missing or has another size."""
    folder = manifest.generation_dir(index_dir)
    for name, (size, _) in manifest.files.items():
        real_size = (folder / name).stat().st_size if (folder / name).is_file() else None
        if real_size != size:
            problem = (
                "is missing"
                if real_size is None
                else f"has {quantity(real_size, 'byte')} instead of {size}"
            )
            raise MemoryIndexError(
                f"{folder / name}: {problem}; build the index again with --force"
            )


def check_content(manifest: Manifest, index_dir: Path) -> None:
    """Reads all parts and checks that they are what was built.

    manifest: the manifest.
    index_dir: the folder of the index.

    Raises MemoryIndexError where the sha256 of a part is another."""
    check_files(manifest, index_dir)
    folder = manifest.generation_dir(index_dir)
    for name, (_, sha256) in manifest.files.items():
        if _sha256(folder / name) != sha256:
            raise MemoryIndexError(
                f"{folder / name}: content differs from what was built; build it again with --force"
            )


def describe_store(folder: Path) -> Described:
    """The size and sha256 of every file of the store, by their names. Each is on disk afterwards.

    folder: the folder of the generation."""
    return _described(folder, [folder / name for name in STORE_FILES])


def describe_postings(subfolder: Path) -> Described:
    """The size and sha256 of every file of some postings, by their paths below the generation's
    folder. Each is on disk afterwards.

    subfolder: the folder of the postings."""
    return _described(subfolder.parent, sorted(subfolder.iterdir()))


def _described(folder: Path, paths: Sequence[Path]) -> Described:
    described = {}
    for path in paths:
        described[path.relative_to(folder).as_posix()] = (path.stat().st_size, _sha256(path))
        flush_file(path)
    for parent in {path.parent for path in paths}:
        flush_folder(parent)
    flush_folder(folder)
    return described


def note_first_build(index_dir: Path) -> None:
    """Notes, on disk, that the first generation of an index is built from now on.

    index_dir: the folder of the index."""
    append(index_dir / FIRST_BUILD_FILE, b"")


def write_manifest(manifest: Manifest, index_dir: Path) -> None:
    """Makes a manifest the valid one by an atomic rename. Where the process is killed at any
    moment, the old or the new one stands.

    manifest: the manifest.
    index_dir: the folder of the index."""
    path, first_build = index_dir / MANIFEST_FILE, index_dir / FIRST_BUILD_FILE
    content = _serialise(manifest).encode()
    if first_build.exists():
        write(first_build, content, alone=True)
        rename(first_build, path)
    else:
        write(path, content, alone=True)


def is_to_be_built(index_dir: Path) -> bool:
    """Whether a folder has no index yet: there is none, it is empty, or its first build is under
    way or was killed. This is not so where an index has lost its manifest, because that may hold
    what was added.

    index_dir: the folder."""
    if index_dir.exists() and not index_dir.is_dir():
        return False
    return not (index_dir / MANIFEST_FILE).exists() and half_index(index_dir) is None


def manifest_version(path: str) -> tuple[int, int, int]:
    """What changes whenever another manifest becomes the valid one.

    path: the file of the manifest, as a string for speed, because every search asks.

    Raises MemoryIndexError where there is no index any more."""
    try:
        status = os.stat(path)  # noqa: PTH116  # half the time of Path.stat
    except OSError as error:
        raise MemoryIndexError(
            f"{Path(path).parent}: the index is gone: {error.strerror}"
        ) from error
    return status.st_ino, status.st_mtime_ns, status.st_size


def _serialise(manifest: Manifest) -> str:
    content = json.dumps(asdict(manifest), ensure_ascii=False, indent=1)
    checksum = hashlib.sha256(content.encode()).hexdigest()
    return content.removesuffix("\n}") + f',\n "{CHECKSUM}": "{checksum}"\n}}'


def _checked(content: Any, path: Path) -> Manifest:
    field_names = {field.name for field in fields(Manifest)}
    if not isinstance(content, dict) or "format" not in content:
        raise MemoryIndexError(f"{path}: not the manifest of a tmnmt index")
    if (
        content["format"] not in READABLE_FORMATS
        or content.get("tokenisation", TOKENISATION) not in TOKENISATIONS
    ):
        have = f"format {short_repr(content['format'])}, {short_repr(content.get('tokenisation'))}"
        want = f"format {FORMAT}, {TOKENISATION}"
        raise MemoryIndexError(
            f"{path}: {have}, but this version reads {want}; build the index again with --force"
        )
    content.pop(CHECKSUM, None)
    if set(content) != field_names:
        raise MemoryIndexError(
            f"{path}: damaged (keys missing or unknown); build the index again with --force"
        )
    for key, right in _right(content):
        if not right:
            problem = f"key {key} is {short_repr(content[key])}"
            raise MemoryIndexError(
                f"{path}: damaged ({problem}); build the index again with --force"
            )
    return Manifest(
        **{
            **content,
            "files": {name: (size, sha) for name, (size, sha) in content["files"].items()},
        }
    )


def _right(content: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Every key, and whether it can be what a build wrote, whatever the checksum says: paths stay
    below the folder."""
    for key in ("src_lang", "tgt_lang", "created"):
        yield key, is_text(content[key]) and content[key].isprintable() and len(content[key]) <= 100
    for key in ("segments", "sources", "tokens", "last_id"):
        yield key, is_count(content[key])
    for key in ("generation", "postings"):
        yield key, is_count(content[key], 1)
    files, settings = content["files"], content["settings"]
    yield "files", is_described(files)
    yield "files", {name for name in files if "/" not in name} == set(STORE_FILES)
    yield (
        "settings",
        isinstance(settings, dict)
        and all(
            is_text(name) and (type(value) in (int, float) or is_text(value))
            for name, value in settings.items()
        ),
    )


def is_described(files: object) -> bool:
    """Whether JSON gave files as `Manifest.files` has them, whose paths stay below the folder.

    files: what JSON gave."""
    return isinstance(files, dict) and all(
        _PART.fullmatch(name) and _is_part(files[name]) for name in files
    )


def _is_part(entry: object) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and is_count(entry[0]) and is_text(entry[1])


def half_index(index_dir: Path) -> str | None:
    """What messages say of a folder that has a generation and has lost its manifest; None where
    that is not so.

    index_dir: the folder."""
    # in the opposite order of a first build, which may go on meanwhile: the note is there before
    # the generation, and becomes the manifest
    if not any(index_dir.glob("generation-*")):
        return None
    if any((index_dir / name).exists() for name in (FIRST_BUILD_FILE, MANIFEST_FILE)):
        return None
    message = f"{index_dir}: half an index (no {MANIFEST_FILE}): an unfinished build, or deleted"
    journals = [
        path
        for path in sorted(index_dir.glob(f"generation-*/{JOURNAL_FILE}"))
        if path.lstat().st_size
    ]
    if not journals:
        return message
    return (
        f"{message}; {journals[-1]} holds pairs that were confirmed or added since, which a new "
        "build loses"
    )


def _no_manifest(index_dir: Path) -> str:
    if half := half_index(index_dir):
        return f"{half}; take {MANIFEST_FILE} from a backup, or build the index again with --force"
    if (index_dir / FIRST_BUILD_FILE).exists():
        return (
            f"{index_dir}: not an index yet: it is being built, or its build was killed and is to "
            "be run again"
        )
    return f"{index_dir}: not an index (no {MANIFEST_FILE}); make one with tmnmt build-index"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
