"""What a memory is worth on segments with a match of 0.5 where the model reads placeholders and
code as they stand, and where it reads masks for them, as the product has it.

    STUDENT=MODEL python eval/without_masks.py eval/recipes/python-docs.en-pt.toml OUT

The recipe's base, pasted TM and matches translate those segments of its test set twice, into
OUT/masks and OUT/no-masks, each with its report."""

from __future__ import annotations

import argparse
import csv
import gzip
import sys
import tomllib
from pathlib import Path
from typing import Any

import tmnmt.filters
from tmnmt.cli import run
from tmnmt.formats import read_memories
from tmnmt.index import MemoryIndex, build

LEAST_SCORE = 0.5
MASKING = ("Placeholders", "CodeForms", "ForeignScript", "Masks")  # filters
SYSTEMS = ("base", "pasted TM", "matches")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("out", type=Path, metavar="OUT")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "recipe.toml"
    path.write_text(near_recipe(options.recipe, options.out), encoding="utf-8")
    for name in ("masks", "no-masks"):
        if name == "no-masks":
            others = {
                name: kind for name, kind in tmnmt.filters.FILTERS.items() if name not in MASKING
            }
            setattr(tmnmt.filters, "FILTERS", others)  # noqa: B010
        command = ["evaluate", "run", str(path), "--out", str(options.out / name), "--threads", "1"]
        if code := run(command):
            sys.exit(code)


def near_recipe(path: Path, out: Path) -> str:
    """A recipe as TOML whose test set are the segments of another's that have a match."""
    recipe = tomllib.loads(path.read_text(encoding="utf-8"))
    test, memory, src, tgt = recipe["test"][0], recipe["memory"][0], "src_lang", "tgt_lang"
    languages = recipe[src], recipe[tgt]
    with gzip.open(path.parent / test["files"][0], "rt", encoding="utf-8") as file:
        header, *rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    memory_path = (path.parent / memory["path"]).resolve()
    build(out / "index", read_memories([memory_path], *languages), *languages, force=True)
    with MemoryIndex.open(out / "index") as index:
        found = index.search([row[header.index("src")] for row in rows], 1, LEAST_SCORE)
    near = [header, *(row for row, matches in zip(rows, found, strict=True) if matches)]
    with gzip.open(out / "near.tsv.gz", "wt", encoding="utf-8") as file:
        file.writelines("\t".join(row) + "\n" for row in near)
    lines = [f'{key} = "{recipe[key]}"' for key in ("name", src, tgt, "baseline")]
    lines += table("test", {**test, "files": [str((out / "near.tsv.gz").resolve())]})
    lines += table("model", recipe["model"][0]) + table("memory", {**memory, "path": memory_path})
    for system in recipe["system"]:
        if system["name"] in SYSTEMS:
            lines += table("system", system)
    return "\n".join(lines) + "\n"


def table(name: str, values: dict[str, Any]) -> list[str]:
    """A table of an array, as TOML."""
    return [f"[[{name}]]", *(f"{key} = {literal(value)}" for key, value in values.items())]


def literal(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else f'"{value}"'


if __name__ == "__main__":
    main()
