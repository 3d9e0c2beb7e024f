"""Translation memories as they are named: paths, addresses, open indexes; and the one that is
written to."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from tmnmt.errors import UsageError
from tmnmt.index.base import Index, WritableIndex, check_languages
from tmnmt.index.cached import open_index, open_memory, same_place
from tmnmt.index.elastic.address import is_address
from tmnmt.index.embedded.build import build
from tmnmt.index.embedded.index import MemoryIndex
from tmnmt.progress import ReadProgress

log = logging.getLogger(__name__)

Named = str | Path | Index


def check_memory(memory: object) -> None:
    """Raises UsageError for what is no list of memories: paths, addresses, open indexes."""
    if isinstance(memory, str | Path):
        raise UsageError(
            f"memory is {str(memory)!r}; a list of memories is wanted, as in [{str(memory)!r}]"
        )
    if not isinstance(memory, Sequence) or isinstance(memory, bytes):
        raise UsageError(
            f"a list of memories (paths, addresses, open indexes) is wanted, not {memory!r}"
        )
    for named in memory:
        if not isinstance(named, str | Path) and not hasattr(named, "search"):
            raise UsageError(f"a memory is a path, an address or an open index, not {named!r}")


def open_memories(
    memories: Iterable[Named], src_lang: str, tgt_lang: str, progress: ReadProgress | None = None
) -> list[Index]:
    """The indexes. Raises MemoryIndexError where one is of other languages."""
    indexes: list[Index] = []
    for memory in memories:
        if isinstance(memory, str | Path):
            indexes.append(open_memory(memory, src_lang, tgt_lang, progress))
            continue
        if memory.src_lang and memory.tgt_lang:
            check_languages("a memory", (memory.src_lang, memory.tgt_lang), src_lang, tgt_lang)
        indexes.append(memory)
    return indexes


def open_to_write(
    named: Named, memories: Sequence[Named], indexes: Sequence[Index], src_lang: str, tgt_lang: str
) -> WritableIndex:
    """The index that is written to: one of `indexes`, which `memories` are opened, where it is the
    same. A folder that is not there yet is made, an empty index. Raises UsageError for what cannot
    be written to."""
    for memory, index in zip(memories, indexes, strict=True):
        if _same(named, memory):
            return _writable(index, named)
    if not isinstance(named, str | Path):
        return _writable(named, named)
    if not is_address(named):
        if Path(named).exists() and not Path(named).is_dir():
            raise UsageError(
                f"{named}: is a file, and what is confirmed is written to a built index; name a "
                "folder"
            )
        if not Path(named).exists():
            build(Path(named), [], src_lang, tgt_lang)
            log.info("%s: a new memory", named)
    return _writable(open_index(named, src_lang, tgt_lang), named)


def _same(named: Named, other: Named) -> bool:
    if isinstance(named, str | Path) and isinstance(other, str | Path):
        return same_place(str(named), str(other))
    return named is other


def _writable(index: Index, named: Named) -> WritableIndex:
    """The index itself where it takes additions. A server says so only when it is asked to take
    one."""
    from tmnmt.index.elastic.index import ElasticIndex

    if isinstance(index, MemoryIndex):
        if not os.access(index.path, os.W_OK):
            raise UsageError(f"{index.path}: cannot be written to")
        return index
    if isinstance(index, ElasticIndex):
        return index
    raise UsageError(f"{named}: takes no additions; name a built index")
