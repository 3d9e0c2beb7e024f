"""Of which languages the memories are that a command reads without a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tmnmt.errors import FormatError, UsageError

if TYPE_CHECKING:
    from tmnmt.files.unit import TranslatableFile


def languages_of(
    memory: Sequence[str],
    requested: tuple[str | None, str | None],
    files: Sequence[TranslatableFile] = (),
) -> tuple[str, str]:
    """The languages asked for, else those of the first built index, else those that the files to be
    translated say. Raises UsageError where nobody says them, FormatError for a memory that is not
    there."""
    from tmnmt.index.back_ends import is_index, open_index
    from tmnmt.index.named_memories import parse_memory

    src_lang, tgt_lang = requested
    if src_lang and tgt_lang:
        return src_lang, tgt_lang
    places = [str(parse_memory(name).place) for name in memory]
    for path in places:
        if is_index(path):
            with open_index(path) as index:
                return src_lang or index.src_lang, tgt_lang or index.tgt_lang
    src_lang = src_lang or next((file.src_lang for file in files if file.src_lang), "")
    tgt_lang = tgt_lang or next((file.tgt_lang for file in files if file.tgt_lang), "")
    if src_lang and tgt_lang:
        return src_lang, tgt_lang
    for path in places:
        if not Path(path).exists() and not any(Path(path).parent.glob(f"{Path(path).name}.*")):
            raise FormatError(f"{path}: no such file")
    subject = {0: "the memory file is", 1: "the file to be translated is"}.get(
        len(files), "the files to be translated are"
    )
    raise UsageError(
        f"nothing says of which languages {subject}: name them, --src-lang and --tgt-lang"
    )
