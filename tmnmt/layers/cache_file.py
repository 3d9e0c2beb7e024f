"""A document's session cache in a file, so that the document can be gone on with later:
safetensors, nothing unpickled.

The slots' keys and values are tensors; everything else (words, order of writing, the model's hash)
is JSON beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tmnmt.codes.stored import Listed, codes_of, listed
from tmnmt.durable import write
from tmnmt.errors import DataError, ModelError, short_repr
from tmnmt.layers.cache import CacheContents
from tmnmt.models.folder import UNREADABLE, reason_of

FORMAT = 6
READABLE_FORMATS = (5, FORMAT)  # 5: no codes
# of a segment that is done: source, target, id, time, the memory that the id is of, and the codes
# of both sides as lists
DoneRecord = tuple[str, str, int, str, str, list[Listed], list[Listed]]


@dataclass
class Saved:
    """What a file holds: the cache; for a text that may still be confirmed, the cache as it was
    before it; and every segment that is done."""

    cache: CacheContents
    pending: tuple[str, CacheContents] | None = None
    segments: Sequence[DoneRecord] = ()


def save_caches(path: Path, saved: Saved, model: str) -> None:
    """Writes `path`, whole or not at all; `model` names the base and K, which made the slots.

    Raises DataError where it cannot be written."""
    from safetensors.torch import save

    caches = {"cache": saved.cache} | (
        {"before": saved.pending[1]} if saved.pending is not None else {}
    )
    tensors = {
        f"{name}.{part}": getattr(cache, part).cpu().contiguous()
        for name, cache in caches.items()
        for part in ("keys", "values")
    }
    metadata = {
        "format": FORMAT,
        "model": model,
        "text": saved.pending[0] if saved.pending is not None else None,
        **{name: cache.record() for name, cache in caches.items()},
        "done": saved.segments,
    }
    try:
        write(path, save(tensors, {"session": json.dumps(metadata)}))
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from error


def load_caches(path: Path, model: str, template: CacheContents, vocabulary: int) -> Saved:
    """What `save_caches` wrote to `path`; `template` is an empty cache of the sizes that are
    wanted, `vocabulary` how many subwords the model has.

    Raises DataError where the file is no session, ModelError where another model, K or kind of
    cache made it."""
    from safetensors import safe_open

    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise ValueError("no regular file")  # a pipe would be waited for
        with safe_open(path, "pt") as file:
            metadata = json.loads((file.metadata() or {})["session"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        if metadata["format"] not in READABLE_FORMATS:
            raise DataError(
                f"{path}: session format {short_repr(metadata['format'])}, this version reads "
                f"{' and '.join(map(str, READABLE_FORMATS))}"
            )
        if type(metadata["model"]) is not str or not metadata["model"].isprintable():
            raise ValueError("the name of its model is missing")
        if metadata["model"] != model:
            raise ModelError(
                f"{path}: was saved with model {metadata['model']}, this one is {model}"
            )
        caches = {
            name: _filled(
                path,
                template,
                metadata[name],
                tensors[f"{name}.keys"],
                tensors[f"{name}.values"],
                vocabulary,
            )
            for name in ("cache", "before")
            if name in metadata
        }
        if "before" in caches and not isinstance(metadata["text"], str):
            raise ValueError("the text that may still be confirmed is missing")
        added: list[Any] = [[], []] if metadata["format"] == 5 else []
        pending = (metadata["text"], caches["before"]) if "before" in caches else None
        return Saved(
            caches["cache"],
            pending,
            [_segment_record(*entry, *added) for entry in metadata["done"]],
        )
    except UNREADABLE as error:
        raise DataError(f"{path}: no saved session: {reason_of(error)}") from error


def _segment_record(
    src: Any, tgt: Any, number: Any, changed: Any, memory: Any, of_source: Any, of_target: Any
) -> DoneRecord:
    if (
        not all(isinstance(text, str) for text in (src, tgt, changed, memory))
        or type(number) is not int
    ):
        raise ValueError("what is done is not source, target, id, time and memory")
    codes = codes_of(of_source, src), codes_of(of_target, tgt)
    return src, tgt, number, changed, memory, listed(src, codes[0]), listed(tgt, codes[1])


def _switch_text(overwrite: bool) -> str:
    return "on" if overwrite else "off"


def _filled(
    path: Path,
    template: CacheContents,
    record: dict[str, Any],
    keys: torch.Tensor,
    values: torch.Tensor,
    vocabulary: int,
) -> CacheContents:
    if type(record["size"]) is not int or type(record["overwrite"]) is not bool:
        raise ValueError("its size is no whole number, or its overwriting not true or false")
    if record["size"] != template.size:
        raise ModelError(
            f"{path}: was saved with a cache of {short_repr(record['size'])} slots, here it has "
            f"{template.size}"
        )
    if record["overwrite"] != template.overwrite:
        raise ModelError(
            f"{path}: was saved with overwriting {_switch_text(record['overwrite'])}, here it is "
            f"{_switch_text(template.overwrite)}"
        )
    return template.refilled(record, keys, values, vocabulary)
