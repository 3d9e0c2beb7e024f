"""How far a build is: the parts that are whole. A build that was killed goes on behind them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from tmnmt.durable import write
from tmnmt.index.embedded.manifest import FORMAT, TOKENISATION, Described, is_described
from tmnmt.index.embedded.small_json import is_count, read_small

CHECKPOINT_FILE = "checkpoint.json"
_MOST_BYTES = 10_000_000


@dataclass(frozen=True)
class Checkpoint:
    """What is whole of a generation that is being built.

    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    rows: how many bytes of the store's rows belong to the parts.
    parts: how many parts are whole.
    segments: how many segments are in them.
    sources: how many distinct token sequences each has, added up.
    tokens: how many distinct match tokens, likewise.
    files: size and sha256 of their files."""

    src_lang: str
    tgt_lang: str
    rows: int
    parts: int
    segments: int
    sources: int
    tokens: int
    files: Described

    def save(self, folder: Path) -> None:
        """Writes it, durably.

        folder: the folder of the generation."""
        content = {"format": FORMAT, "tokenisation": TOKENISATION, **asdict(self)}
        write(folder / CHECKPOINT_FILE, json.dumps(content).encode(), alone=True)

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """What is whole of a generation; None where nothing is that this version can go on with.

        folder: the folder of the generation."""
        try:
            _, content = read_small(folder / CHECKPOINT_FILE, _MOST_BYTES)
            checkpoint = cls._from_content(content)
        except (OSError, ValueError, TypeError, KeyError):
            return None
        is_whole = all(
            (folder / name).is_file() and (folder / name).stat().st_size == size
            for name, (size, _) in checkpoint.files.items()
        )
        return checkpoint if is_whole else None

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> Self:
        """Raises ValueError, TypeError or KeyError for what no `save` of this version wrote."""
        if (content.pop("format"), content.pop("tokenisation")) != (FORMAT, TOKENISATION):
            raise ValueError("of another version")
        files = content.pop("files")
        if not is_described(files):
            raise ValueError("no files")
        checkpoint = cls(
            **content, files={name: (size, sha) for name, (size, sha) in files.items()}
        )
        counts = (checkpoint.rows, checkpoint.parts, checkpoint.segments)
        if not all(is_count(number, 1) for number in counts):
            raise ValueError("no counts")
        if not is_count(checkpoint.sources) or not is_count(checkpoint.tokens):
            raise ValueError("no counts")
        return checkpoint
