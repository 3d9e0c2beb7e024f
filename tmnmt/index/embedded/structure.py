"""Whether the arrays of postings fit each other, so that no search reads outside of them, whatever
a disk made of them.

Looked at when an index is opened: sizes, and what the small arrays hold. What the large ones hold
is not read; `verify` does, and a search looks only at what could lead it astray."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmnmt.index.embedded.packed import NAMES, block_starts, width_of, words_for
from tmnmt.index.kernels.arrays import KINDS

BLOCK = 512  # groups, as `lanes.BLOCK`
_KINDS = {
    **{name: kind for name, kind in KINDS.items() if name != "posting_block"},
    "skeletons": np.uint64,
    "ids": np.unsignedinteger,
    "vocabulary": np.uint8,
    "documents": np.uint8,
}
_POSITIONS = {
    "position_start": np.int64,
    "position_first": np.int32,
    "position_header": np.int64,
    "positions": np.uint64,
}
_TARGETS = {
    f"target_{name}": kind
    for name, kind in (_KINDS | _POSITIONS).items()
    if name.startswith(("length", "token_", "member", "ids", "vocabulary", "position"))
}
_WORDS = {**_POSITIONS, **_TARGETS}  # where words stand

Parts = Mapping[str, NDArray[Any]]


def first_damage(parts: Parts, with_words: bool) -> tuple[str, str] | None:
    """The name of the first part that cannot be right, and what is wrong with it; None where all
    can be right.

    parts: the arrays of the postings, by their names.
    with_words: whether it must be there where words stand."""
    for name, kind in (_KINDS | (_WORDS if with_words else {})).items():
        if name not in parts:
            return name, "is missing"
        part = parts[name]
        if not (
            np.issubdtype(part.dtype, kind) and part.dtype.isnative and part.flags.c_contiguous
        ):
            return name, f"holds {part.dtype}"
        if part.ndim != (2 if name.startswith("column") and name != "column_of" else 1):
            return name, f"has {part.ndim} dimensions"
    content = _content(parts, with_words)
    return next(((name, problem) for name, right, problem in content if not right), None)


def _content(parts: Parts, with_words: bool) -> Iterator[tuple[str, bool, str]]:
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
    yield "token_start", len(start) > 0 and start[0] == 0, "is out of order"
    yield "token_start", np.array_equal(start[1:], tokens), "does not fit length_start.npy"
    yield from _features(parts, groups)
    bits = int(start[-1]) * width_of(len(parts["feature_start"]) - 1)
    yield "tokens", len(parts["tokens"]) == words_for(bits), "does not fit token_start.npy"
    if with_words:
        yield from _words_of(parts, "")
        yield from _words_of(parts, "target_")


def _words_of(parts: Parts, side: str) -> Iterator[tuple[str, bool, str]]:
    """What must hold of where the words of a side stand."""
    arrays = {
        name: parts[side + name] for name in ("length_start", "token_start", "member_offsets")
    }
    start, size = parts[f"{side}position_start"], int(arrays["token_start"].max(initial=0))
    segments, groups = len(parts[f"{side}ids"]), len(arrays["member_offsets"]) - 1
    yield f"{side}members", len(parts[f"{side}members"]) == segments, f"does not fit {side}ids.npy"
    for name, last in (
        ("member_offsets", segments),
        ("length_start", groups),
        ("token_start", size),
    ):
        yield f"{side}{name}", _ascends(arrays[name], last), "is out of order"
    yield (
        f"{side}token_start",
        len(arrays["token_start"]) == len(arrays["length_start"]),
        f"does not fit {side}length_start.npy",
    )
    yield f"{side}position_start", _ascends(start, size), "is out of order"
    yield from _lists(parts, f"{side}position")
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
    start = parts["posting_start"]
    yield "posting_start", _ascends(start, int(start[-1])), "is out of order"
    yield from _lists(parts, "posting")
    yield (
        "vocabulary",
        _words(parts["vocabulary"]) == len(parts["feature_start"]) - 1,
        "is not the words that were built",
    )


def _lists(parts: Parts, kind: str) -> Iterator[tuple[str, bool, str]]:
    """What must hold of lists whose beginnings are in order."""
    start, first, header, packed = (name.format(kind) for name in NAMES)
    blocks = block_starts(parts[start])[-1]
    for name in (first, header):
        yield start, len(parts[name]) == blocks, f"does not fit {name}.npy"
    yield packed, len(parts[packed]) > 0, "is too short"


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
