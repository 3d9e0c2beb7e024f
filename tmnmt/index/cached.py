"""A memory by its path or address: a built index, or a memory file that is indexed once and found
again."""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tmnmt.compiled.native import begin
from tmnmt.errors import MemoryIndexError, UsageError
from tmnmt.formats.languages import normal_code
from tmnmt.formats.moses import moses_ids, moses_pair
from tmnmt.formats.stream import BLOCK, file_source
from tmnmt.index.elastic.address import is_address, parse_address
from tmnmt.index.embedded.build import HalfIndexError, IndexExistsError
from tmnmt.index.embedded.index import MemoryIndex
from tmnmt.index.embedded.manifest import FORMAT, MANIFEST_FILE
from tmnmt.index.from_files import build_from_files
from tmnmt.progress import ReadProgress

if TYPE_CHECKING:
    from tmnmt.index.elastic.index import ElasticIndex

    OpenIndex = MemoryIndex | ElasticIndex

SECONDS_TO_WAIT = 3600.0  # for another process that indexes the same file

log = logging.getLogger(__name__)


def prepare_search(concordance: bool = False) -> None:
    """Has another process compile the search of embedded indexes, and that for phrases where asked,
    which is done once on a machine. For commands that read files or models first, and then
    search."""
    from tmnmt.index.kernels.arrays import best_of_each, newest_with

    begin([best_of_each, *([newest_with] if concordance else [])])


def open_index(
    index: str | Path, src_lang: str | None = None, tgt_lang: str | None = None
) -> OpenIndex:
    """The built index in a folder, or at an Elasticsearch address. Raises MemoryIndexError and
    ServerError; UsageError for what is no address."""
    if is_address(index):
        from tmnmt.index.elastic.index import ElasticIndex

        return ElasticIndex.open(parse_address(str(index)), src_lang, tgt_lang)
    return MemoryIndex.open(Path(index), src_lang, tgt_lang)


def same_place(place: str, other_place: str) -> bool:
    """Whether two folders or addresses of an index are the same."""
    if is_address(place) or is_address(other_place):
        return (
            is_address(place)
            and is_address(other_place)
            and parse_address(place) == parse_address(other_place)
        )
    return Path(place).resolve() == Path(other_place).resolve()


def open_memory(
    path: str | Path, src_lang: str, tgt_lang: str, progress: ReadProgress | None = None
) -> OpenIndex:
    """The memory at `path`: a built index is opened as by `open_index`; a memory file (or PREFIX of
    two plain files) is indexed once under the user's cache folder, and found there by name and
    content from then on, wherever it then lies.

    progress: called when the file has to be indexed, as `Reader` says. Raises as
    `open_index`, FormatError, and UsageError for a pipe.
    """
    if is_address(path) or Path(path).is_dir():
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
