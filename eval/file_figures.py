"""What becomes of real files of every kind: which are read, which come back to the byte, and which
can be translated and opened again.

    python eval/file_figures.py FOLDER ... [--most 40] [--seed 1] > eval/results/files.md

Files are taken by their names from the folders, at most so many of a kind, drawn by the seed. No
model is needed: in the translation every word has its letters in reverse. Of an archive, as EPUB
and DOCX are, the parts are compared."""

from __future__ import annotations

import argparse
import io
import random
import re
import tempfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tmnmt.codes.record import Text, join_parts
from tmnmt.errors import TmnmtError
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.opening import open_translatable
from tmnmt.files.unit import Filling, TranslatableFile, Unit

_WORD = re.compile(r"[^\W\d_]+")
_DETAILS = re.compile(r"line [\d,]+|'[^']*'|\"[^\"]*\"|\d+")


@dataclass
class KindFigures:
    """What became of the files of one kind."""

    files: int = 0
    units: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=40, help="files of a kind")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    figures = defaultdict[str, KindFigures](KindFigures)
    for suffix, path in sample(arguments.folders, arguments.most, arguments.seed):
        try_file(path, figures[suffix])
    print(table(figures))


def sample(folders: list[Path], most: int, seed: int) -> Iterator[tuple[str, Path]]:
    """Files with the suffixes of the kinds that are translated, and the suffix of each."""
    suffixes = {suffix for kind in FILE_KINDS.values() for suffix in kind.suffixes}
    by_suffix = defaultdict[str, list[Path]](list)
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() in suffixes and path.is_file():
                by_suffix[path.suffix.lower()].append(path)
    for suffix, paths in sorted(by_suffix.items()):
        for path in random.Random(seed).sample(paths, min(most, len(paths))):
            yield suffix, path


def try_file(path: Path, figures: KindFigures) -> None:
    """Reads, writes, translates and opens again."""
    figures.files += 1
    try:
        file = open_file(path)
        units = units_of(file)
        figures.units += len(units)
        figures.outcomes["read"] += 1
        if changes := differences(path.read_bytes(), written(file, [None] * len(units))):
            figures.failures.append(f"{path.name}: other bytes: {changes}")
        else:
            figures.outcomes["untouched"] += 1
        fillings = [filling_of(file, unit) for unit in units]
        content = written(open_file(path), fillings)
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / path.name
            copy.write_bytes(content)
            again = units_of(open_file(copy))
        if len(again) != len(units):
            figures.failures.append(f"{path.name}: {len(again)} of {len(units)} units")
            return
        figures.outcomes["translated and opened again"] += 1
    except TmnmtError as error:
        reason = str(error).replace(str(path), "").replace(path.name, "").strip(": ,")
        figures.refusals[_DETAILS.sub("…", reason)[:90]] += 1
    except Exception as error:  # what a user would see as a traceback is what is counted
        figures.outcomes["tracebacks"] += 1
        figures.failures.append(f"{path.name}: {type(error).__name__}: {str(error)[:80]}")


def differences(old: bytes, new: bytes) -> str:
    """Where two files differ, in words; of two archives, the names of the parts that differ."""
    if not zipfile.is_zipfile(io.BytesIO(old)):
        return "" if old == new else "the file"
    with zipfile.ZipFile(io.BytesIO(old)) as first, zipfile.ZipFile(io.BytesIO(new)) as second:
        if first.namelist() != second.namelist():
            return "the names of parts"
        names = [name for name in first.namelist() if first.read(name) != second.read(name)]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def open_file(path: Path) -> TranslatableFile:
    file = open_translatable(path)
    file.src_lang, file.tgt_lang = file.src_lang or "en", file.tgt_lang or "fr"
    return file


def units_of(file: TranslatableFile) -> list[Unit]:
    return [unit for document in file.documents() for unit in document.units]


def written(file: TranslatableFile, fillings: list[Filling | None]) -> bytes:
    stream = io.BytesIO()
    file.write(stream, fillings)
    return stream.getvalue()


def filling_of(file: TranslatableFile, unit: Unit) -> Filling | None:
    """The translation of a unit; None where it is locked, or the file refuses it."""
    if unit.state == "locked":
        return None
    target = in_reverse(unit.source)
    return None if file.refused(unit, target) else Filling(target, "model")


def in_reverse(text: Text) -> Text:
    return join_parts(
        _WORD.sub(reversed_word, part) if isinstance(part, str) else part for part in text.parts()
    )


def reversed_word(word: re.Match[str]) -> str:
    """A word in reverse, with a capital where it had one, so that sentences begin as before."""
    new = word[0][::-1]
    return new.capitalize() if word[0][0].isupper() else new


def table(figures: dict[str, KindFigures]) -> str:
    """A table in Markdown, the reasons of refusals, and what went wrong."""
    columns = ("read", "untouched", "translated and opened again", "tracebacks")
    head = ("suffix", "files", "segments", *columns, "refused")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for suffix, kind in figures.items():
        counts = [kind.files, kind.units, *(kind.outcomes[name] for name in columns)]
        cells = [f"`{suffix}`", *(f"{count:,}" for count in counts)]
        lines.append(f"| {' | '.join(cells)} | {sum(kind.refusals.values())} |")
    lines += ["", "Refused:", ""]
    lines += [
        f"- `{suffix}`, {count}: {reason}"
        for suffix, kind in figures.items()
        for reason, count in kind.refusals.most_common()
    ]
    failures = [f"- `{suffix}` {one}" for suffix, kind in figures.items() for one in kind.failures]
    return "\n".join([*lines, *(["", "Went wrong:", ""] if failures else []), *failures])


if __name__ == "__main__":
    main()
