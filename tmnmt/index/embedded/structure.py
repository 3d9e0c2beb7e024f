"""Whether the arrays of postings fit each other, so that no search reads outside of them, whatever
a disk made of them.

Looked at when an index is opened: sizes, and what the small arrays hold. What the large ones hold
is not read; `verify` does, and a search looks only at what could lead it astray."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmnmt.index.kernels.arrays import KINDS

BLOCK = 512  # groups, as `lanes.BLOCK`
_KINDS = {
    **KINDS,
    "ids": np.unsignedinteger,
    "vocabulary": np.uint8,
    "documents": np.uint8,
}
_POSITIONS = {"position_start": np.int64, "positions": np.signedinteger}
_TARGETS = {
    f"target_{name}": kind
    for name, kind in (_KINDS | _POSITIONS).items()
    if name.startswith(("length", "token_", "member", "ids", "vocabulary", "position"))
}
# since formats 6 and 7: an index of before has none
_LATER = {"skeletons": np.uint64, **_POSITIONS, **_TARGETS}

Parts = Mapping[str, NDArray[Any]]


def first_damage(parts: Parts) -> tuple[str, str] | None:
    """The name of the first part that cannot be right, and what is wrong with it; None where all
    can be right.

    parts: the arrays of the postings, by their names."""
    later = {name: kind for name, kind in _LATER.items() if name in parts}
    for name, kind in (_KINDS | later).items():
        if name not in parts:
            return name, "is missing"
        part = parts[name]
        if not (
            np.issubdtype(part.dtype, kind) and part.dtype.isnative and part.flags.c_contiguous
        ):
            return name, f"holds {part.dtype}"
        if part.ndim != (2 if name == "columns" else 1):
            return name, f"has {part.ndim} dimensions"
    return next(((name, problem) for name, right, problem in _content(parts) if not right), None)


def _content(parts: Parts) -> Iterator[tuple[str, bool, str]]:
    """What must hold, each a part, whether it does, and what is wrong where it does not. Each may
    rely on those before it."""
    groups, segments = len(parts["member_offsets"]) - 1, len(parts["ids"])
    for name, size in (("members", segments), ("document_of", segments)):
        yield name, len(parts[name]) == size, "does not fit ids.npy"
    yield "member_offsets", _ascends(parts["member_offsets"], segments), "is out of order"
    yield "length_start", len(parts["length_start"]) >= 2, "is too short"
    yield (
        "length_start",
        _ascends(parts["length_start"], groups) and not parts["length_start"][1],
        "is out of order",
    )
    lengths = np.arange(len(parts["length_start"]) - 1)
    tokens = np.cumsum(np.diff(parts["length_start"]) * lengths)
    start = parts["token_start"]
    yield "token_start", _ascends(start, len(parts["tokens"])), "is out of order"
    yield "token_start", np.array_equal(start[1:], tokens), "does not fit length_start.npy"
    yield from _features(parts, groups)
    if _TARGETS.keys() <= parts.keys():
        yield from _words_of(parts, "")
        yield from _words_of(parts, "target_")


def _words_of(parts: Parts, side: str) -> Iterator[tuple[str, bool, str]]:
    """What must hold of where the words of a side stand."""
    arrays = {
        name: parts[side + name] for name in ("length_start", "token_start", "member_offsets")
    }
    start, positions = parts[f"{side}position_start"], parts[f"{side}positions"]
    segments, groups = len(parts[f"{side}ids"]), len(arrays["member_offsets"]) - 1
    yield f"{side}members", len(parts[f"{side}members"]) == segments, f"does not fit {side}ids.npy"
    for name, last in (
        ("member_offsets", segments),
        ("length_start", groups),
        ("token_start", len(positions)),
    ):
        yield f"{side}{name}", _ascends(arrays[name], last), "is out of order"
    yield (
        f"{side}token_start",
        len(arrays["token_start"]) == len(arrays["length_start"]),
        f"does not fit {side}length_start.npy",
    )
    yield f"{side}position_start", _ascends(start, len(positions)), "is out of order"
    yield (
        f"{side}vocabulary",
        _words(parts[f"{side}vocabulary"]) == len(start) - 1,
        "is not the words that were built",
    )


def _features(parts: Parts, groups: int) -> Iterator[tuple[str, bool, str]]:
    features, columns = parts["column_of"], parts["columns"]
    yield "feature_start", _ascends(parts["feature_start"], len(features)), "is out of order"
    yield (
        "columns",
        len(columns) > 0 and columns.shape[1] == -(-groups // BLOCK) * BLOCK // 64,
        "has a wrong size",
    )
    real = features[features >= 0]
    yield (
        "column_of",
        len(real) == len(columns) - 1 > real.max(initial=-1),
        "does not name every column",
    )
    yield "posting_start", len(parts["posting_start"]) == len(features) + 1, "has a wrong size"
    yield (
        "posting_start",
        _ascends(parts["posting_start"], len(parts["postings"])),
        "is out of order",
    )
    yield (
        "vocabulary",
        _words(parts["vocabulary"]) == len(parts["feature_start"]) - 1,
        "is not the words that were built",
    )


def _ascends(offsets: NDArray[Any], last: int) -> bool:
    """Whether offsets go from 0 up to `last`."""
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != last:
        return False
    return bool(np.all(offsets[1:] >= offsets[:-1]))


def _words(vocabulary: NDArray[np.uint8]) -> int:
    """How many there are; -1 where they are no text."""
    try:
        text = str(vocabulary.tobytes(), "utf-8")
    except UnicodeDecodeError:
        return -1
    return text.count("\n") + 1 if text else 0
