"""What a translator is made of, opened: a model on a device, its memories' parameters, translation memories."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from tmnmt.errors import UsageError
from tmnmt.index.base import Index, WritableIndex
from tmnmt.index.cached import open_memory
from tmnmt.index.elastic_address import is_address
from tmnmt.index.memory_index import MemoryIndex
from tmnmt.memories.combine import Memories
from tmnmt.models.folder import Model, load_model
from tmnmt.progress import ReadProgress

DEVICES = re.compile(r"cpu|cuda(:\d{1,2})?|mps")


def load_on(model_dir: Path, device: str) -> Model:
    """The model on `device`. Raises UsageError for a device that is not there, ModelError for what is no model."""
    if not DEVICES.fullmatch(str(device)):
        raise UsageError(f"device {device} is unknown; allowed: cpu, cuda, cuda:0, cuda:1, ..., mps")
    there = devices()
    if str(device) not in there:
        raise UsageError(f"device {device} is not on this machine, or torch cannot use it; there: {', '.join(there)}")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device {device}: {str(error).splitlines()[0]}") from error
    return load_model(model_dir, device)


def devices() -> list[str]:
    """What torch can compute on, on this machine; it warns of a GPU that it cannot use, which is not told."""
    with warnings.catch_warnings(action="ignore"):
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    numbered = [f"cuda:{number}" for number in range(gpus)]
    return ["cpu", *["cuda"][:gpus], *numbered, *(["mps"] if torch.backends.mps.is_available() else [])]


def load_memories(model: Model, device: str) -> Memories | None:
    """The memories' parameters of a model folder, if it has any."""
    path = model.folder / "memory.safetensors"
    if not path.exists():
        return None
    return Memories.load(path, model.backbone, device)


def check_memories(memories: object) -> None:
    """Raises UsageError for what is no list of memories: paths, addresses, open indexes."""
    if isinstance(memories, str | Path):
        raise UsageError(f"memories is {str(memories)!r}; a list of memories is wanted, as in [{str(memories)!r}]")
    if not isinstance(memories, Sequence) or isinstance(memories, bytes):
        raise UsageError(f"a list of memories (paths, addresses, open indexes) is wanted, not {memories!r}")
    for memory in memories:
        if not isinstance(memory, str | Path) and not hasattr(memory, "search"):
            raise UsageError(f"a memory is a path, an address or an open index, not {memory!r}")


def open_memories(
    memories: Iterable[str | Path | Index], src_lang: str, tgt_lang: str,
    progress: ReadProgress | None = None,
) -> tuple[list[Index], WritableIndex | None]:  # fmt: skip
    """The indexes, and the first of them that was named as a built index and may be written to."""
    indexes: list[Index] = []
    writable = None
    for memory in memories:
        if isinstance(memory, str | Path):
            index: Index = open_memory(memory, src_lang, tgt_lang, progress)
            own = (
                is_address(memory) or Path(memory).is_dir()
            )  # an index that was made of a memory file belongs to that file's content
        else:
            index, own = memory, True
        indexes.append(index)
        if writable is None and own:
            writable = _writable(index)
    return indexes, writable


def _writable(index: Index) -> WritableIndex | None:
    """The index itself where it takes additions. A server says so only when it is asked to take one."""
    if isinstance(index, MemoryIndex):
        return index if os.access(index.path, os.W_OK) else None
    from tmnmt.index.elastic import ElasticIndex

    return index if isinstance(index, ElasticIndex) else None
