"""A memory by its path or address: a built index, or a memory file that is indexed once and found
again."""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

from tmnmt.errors import MemoryIndexError, UsageError
from tmnmt.formats.languages import normal_code
from tmnmt.formats.moses import moses_ids, moses_pair
from tmnmt.formats.stream import BLOCK, file_source
from tmnmt.index.back_ends import is_index, local_path, open_index
from tmnmt.index.base import BuiltIndex
from tmnmt.index.embedded.build import HalfIndexError, IndexExistsError
from tmnmt.index.embedded.index import MemoryIndex
from tmnmt.index.embedded.manifest import FORMAT, MANIFEST_FILE, read_manifest
from tmnmt.index.from_files import build_from_files
from tmnmt.progress import ReadProgress

SECONDS_TO_WAIT = 3600.0  # for another process that indexes the same file

log = logging.getLogger(__name__)


def open_memory(
    path: str | Path, src_lang: str, tgt_lang: str, progress: ReadProgress | None = None
) -> BuiltIndex:
    """Opens a built index as `open_index` does, or a memory file. A file is indexed once under the
    user's cache folder, and found there by its name and content from then on, wherever it then
    lies.

    path: the folder or address of an index, a memory file, or the PREFIX of two plain files.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    progress: is told of units that are read, where the file has to be indexed.

    Raises what `open_index` raises. Raises FormatError where the file is unusable. Raises
    UsageError for a pipe."""
    if is_index(path):
        return open_index(path, src_lang, tgt_lang)
    path = Path(path)
    if path.exists() and not path.is_file():
        raise UsageError(
            f"{path}: a memory must be a file or a built index: a pipe can be read only once"
        )
    folder = cache_dir() / "indexes" / _key(path, src_lang, tgt_lang)
    if (folder / MANIFEST_FILE).exists():
        try:
            return MemoryIndex.open(folder)
        except MemoryIndexError as error:
            log.warning("%s; indexing %s again", error, path)
            return _index(path, folder, (src_lang, tgt_lang), progress, force=True)
    log.info("%s: indexing it once, under %s", path, folder)
    return _index(path, folder, (src_lang, tgt_lang), progress, force=False)


def cache_dir() -> Path:
    """Where things are kept that can be made again: $XDG_CACHE_HOME/tmnmt, else ~/.cache/tmnmt.
    Raises UsageError where there is neither."""
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (home if home.is_absolute() else Path.home() / ".cache") / "tmnmt"
    except RuntimeError as error:
        raise UsageError(
            "a memory file is indexed in the home folder, and there is none: set XDG_CACHE_HOME, "
            "or build an index of "
            "it with tmnmt build-index"
        ) from error


def _index(
    path: Path, folder: Path, languages: tuple[str, str], progress: ReadProgress | None, force: bool
) -> MemoryIndex:
    try:
        _, report = build_from_files(
            folder,
            [path],
            *languages,
            force=force,
            progress=progress,
            seconds_to_wait=SECONDS_TO_WAIT,
        )
        log.info("%s: %s", path, report)
    except IndexExistsError:
        pass  # another process was faster
    except HalfIndexError:  # a build was killed; nothing is ever added here
        return _index(path, folder, languages, progress, force=True)
    return MemoryIndex.open(folder)


def memory_digest(place: str | Path, src_lang: str, tgt_lang: str) -> str:
    """Names a memory as it is now: another one once it was changed, and the same for its copies.

    place: the folder or address of an index, a memory file, or the PREFIX of two plain files.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.

    Raises MemoryIndexError where there is no such index, and OSError for what cannot be read."""
    if not is_index(place):
        return _key(Path(place), src_lang, tgt_lang)
    folder = local_path(place)
    if folder is None:
        with open_index(place, src_lang, tgt_lang) as index:
            state = index.generation(), *index.changes(), len(index)
        return hashlib.sha256(repr(state).encode()).hexdigest()
    journal = read_manifest(folder).journal_path(folder)
    digest = hashlib.sha256((folder / MANIFEST_FILE).read_bytes())
    if journal.exists():
        with journal.open("rb") as changes:
            digest.update(hashlib.file_digest(changes, "sha256").digest())
    return digest.hexdigest()


def _key(path: Path, src_lang: str, tgt_lang: str) -> str:
    """The name is part of it because documents without one of their own are called by it."""
    pair = None if path.exists() else moses_pair(path, src_lang, tgt_lang)
    digest = hashlib.sha256(path.name.encode("utf-8", "surrogateescape"))
    ids = moses_ids(path) if pair else None
    for source in [*(pair or [file_source(path)]), *([ids] if ids else [])]:
        with source.open() as content:
            for block in iter(lambda: content.read(BLOCK), b""):
                digest.update(block)
    return f"{digest.hexdigest()[:32]}-{normal_code(src_lang)}-{normal_code(tgt_lang)}-{FORMAT}"
