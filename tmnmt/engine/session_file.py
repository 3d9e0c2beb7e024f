"""A document's session in a file, so that the document can be gone on with later: safetensors,
nothing unpickled.

What the memory layers keep of the document are tensors; everything else (their records, the model's
hash, what was confirmed) is JSON beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmnmt.codes.stored import Listed, codes_of, listed
from tmnmt.durable import write
from tmnmt.errors import DataError, ModelError, short_repr

if TYPE_CHECKING:
    from torch import Tensor

    from tmnmt.layers.contract import Histories, SavedHistory

FORMAT = 7
READABLE_FORMATS = (5, 6, FORMAT)  # 5: no codes; 6: of the session cache alone
PENDING = "before."  # what the names of histories begin with that are older than the last text
# of a segment that is done: source, target, id, time, the memory that the id is of, and the codes
# of both sides as lists
DoneRecord = tuple[str, str, int, str, str, list[Listed], list[Listed]]


@dataclass
class SavedSession:
    """What a file holds.

    histories: what the layers keep of the document.
    pending: a text that may still be confirmed, and what the layers kept before it; None where
    there is none.
    segments: every segment that is done."""

    histories: Histories
    pending: tuple[str, Histories] | None = None
    segments: Sequence[DoneRecord] = ()


def saved_histories(histories: Histories) -> dict[str, SavedHistory]:
    """The histories that a file holds, by the names of their layers.

    histories: all histories of a document."""
    from tmnmt.layers.contract import SavedHistory

    return {name: kept for name, kept in histories.items() if isinstance(kept, SavedHistory)}


def save_session(path: Path, session: SavedSession, model: str) -> None:
    """Writes a session to a file, as a whole or not at all.

    path: the file.
    session: the session.
    model: names all that the histories depend on.

    Raises DataError where the file cannot be written."""
    from safetensors.torch import save

    histories = saved_histories(session.histories)
    entries = dict(histories)
    if session.pending is not None:
        of_pending = saved_histories(session.pending[1])
        entries |= {PENDING + name: history for name, history in of_pending.items()}
    tensors = {
        f"{name}.{part}": tensor.cpu().contiguous()
        for name, history in entries.items()
        for part, tensor in history.tensors().items()
    }
    metadata = {
        "format": FORMAT,
        "model": model,
        "histories": [*histories],
        "text": session.pending[0] if session.pending is not None else None,
        **{name: history.record() for name, history in entries.items()},
        "done": session.segments,
    }
    try:
        write(path, save(tensors, {"session": json.dumps(metadata)}))
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from error


def load_session(path: Path, model: str, histories: Histories, vocabulary: int) -> SavedSession:
    """The session that `save_session` wrote.

    path: the file.
    model: names all that the histories depend on.
    histories: empty histories of the sizes that the session must have.
    vocabulary: how many subwords the model has.

    Raises DataError where the file is no session. Raises ModelError where another model, or layers
    of another kind, made it."""
    from safetensors import safe_open

    from tmnmt.models.folder import UNREADABLE, reason_of

    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise ValueError("no regular file")  # a pipe would be waited for
        with safe_open(path, "pt") as file:
            metadata = json.loads((file.metadata() or {})["session"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        if metadata["format"] not in READABLE_FORMATS:
            raise DataError(
                f"{path}: session format {short_repr(metadata['format'])}, this version reads "
                f"{', '.join(map(str, READABLE_FORMATS))}"
            )
        if metadata["format"] != FORMAT:
            metadata, tensors = _of_former_format(metadata, tensors)
        return _restored(path, metadata, tensors, model, histories, vocabulary)
    except UNREADABLE as error:
        raise DataError(f"{path}: no saved session: {reason_of(error)}") from error


def _of_former_format(
    metadata: dict[str, Any], tensors: dict[str, Tensor]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What formats 5 and 6 say, as this one does: they held a session cache, of no slots where
    there was none."""
    renamed = {"before": f"{PENDING}cache"}
    metadata = {renamed.get(name, name): value for name, value in metadata.items()}
    metadata["histories"] = ["cache"] if metadata["cache"]["size"] else []
    if metadata["format"] == 5:
        metadata["done"] = [[*entry, [], []] for entry in metadata["done"]]
    return metadata, {
        name.replace("before.", f"{PENDING}cache.", 1): tensor for name, tensor in tensors.items()
    }


def _restored(
    path: Path,
    metadata: dict[str, Any],
    tensors: dict[str, Tensor],
    model: str,
    histories: Histories,
    vocabulary: int,
) -> SavedSession:
    """What the file says. Raises ValueError for what no session can have said."""
    if type(metadata["model"]) is not str or not metadata["model"].isprintable():
        raise ValueError("the name of its model is missing")
    if metadata["model"] != model:
        raise ModelError(f"{path}: was saved with model {metadata['model']}, this one is {model}")
    wanted = saved_histories(histories)
    if sorted(metadata["histories"]) != sorted(wanted):
        saved, here = (", ".join(names) or "none" for names in (metadata["histories"], wanted))
        raise ModelError(f"{path}: is of the layers {saved}, and these are here: {here}")

    def restore(prefix: str) -> Histories:
        return {
            name: _restored_history(path, history, prefix + name, metadata, tensors, vocabulary)
            for name, history in wanted.items()
        }

    text, pending = metadata["text"], None
    if any(name.startswith(PENDING) for name in metadata):
        if not isinstance(text, str):
            raise ValueError("the text that may still be confirmed is missing")
        pending = text, restore(PENDING)
    records = [_segment_record(*entry) for entry in metadata["done"]]
    return SavedSession(histories | restore(""), pending, records)


def _restored_history(
    path: Path,
    history: SavedHistory,
    name: str,
    metadata: dict[str, Any],
    tensors: Mapping[str, Tensor],
    vocabulary: int,
) -> SavedHistory:
    prefix = f"{name}."
    of_history = {
        key.removeprefix(prefix): tensor
        for key, tensor in tensors.items()
        if key.startswith(prefix)
    }
    try:
        return history.restored(metadata[name], of_history, vocabulary)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error


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
