"""Names of the package are nouns and verbs that say what is meant: not what is held, found, told,
wanted, or some of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import tmnmt

PACKAGE = Path(tmnmt.__file__).parent
BANNED = {"held", "found", "told", "some", "wanted"}
TERMS = ("held_out",)  # of the field: documents that are kept out of training


def names(source: str) -> Iterator[tuple[int, str]]:
    """All that `source` gives a name to: line and name."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ClassDef(name=name):
                yield node.lineno, name


def is_banned(name: str) -> bool:
    return not name.lower().endswith(TERMS) and not BANNED.isdisjoint(name.lower().split("_"))


def test_no_name_says_only_that_something_was_found() -> None:
    banned = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, name in names(path.read_text(encoding="utf-8"))
        if is_banned(name)
    ]
    assert banned == []


def test_such_names_are_seen_wherever_they_stand() -> None:
    source = (
        "def found(told): pass\nclass Wanted:\n    some: int = 0\nself.is_held = 1\nheld_out = 2"
    )
    assert sorted(name for _, name in names(source) if is_banned(name)) == [
        "Wanted",
        "found",
        "is_held",
        "some",
        "told",
    ]
