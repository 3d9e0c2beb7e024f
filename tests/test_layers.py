"""Imports inside the package point one way, from the records up to the command line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tmnmt

LAYERS = (
    (
        "segments",
        "errors",
        "interrupts",
        "durable",
        "text",
        "counted",
        "visible",
        "progress",
        "vocab",
        "records",
    ),
    ("config",),
    ("formats",),
    ("index",),
    ("models",),
    ("keys",),
    ("layers",),
    ("engine",),
    ("training",),
    ("eval",),
    ("cli", "__main__"),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
PACKAGE = Path(tmnmt.__file__).parent


class _Imports(ast.NodeVisitor):
    """Imported modules, those inside functions too, those for type checkers not."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                self.visit(other)
        else:
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.found += [(node.lineno, alias.name) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module == "tmnmt":
            self.found += [(node.lineno, f"tmnmt.{alias.name}") for alias in node.names]
        else:
            self.found.append((node.lineno, "." * node.level + (node.module or "")))


def wrong_imports(source: str, where: str, part: str) -> Iterator[str]:
    """What `source`, of the package's part `part`, imports and should not."""
    visitor = _Imports()
    visitor.visit(ast.parse(source))
    for line, name in visitor.found:
        target = name.split(".")[1] if name.startswith("tmnmt.") else ""
        if name.startswith("."):
            yield f"{where}:{line}: relative import {name}"
        elif target in RANK and RANK[target] > RANK[part]:
            yield f"{where}:{line}: {part} imports {name}, a layer above it"


def test_imports_point_one_way() -> None:
    wrong: list[str] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE)
        if inside == Path("__init__.py"):
            continue  # the package's face: Translator and Session, imported when asked for
        part = inside.parts[0].removesuffix(".py")
        assert part in RANK, f"{inside}: give {part!r} a place in LAYERS"
        wrong += wrong_imports(path.read_text(encoding="utf-8"), str(inside), part)
    assert wrong == []


@pytest.mark.parametrize(
    "source",
    [
        "import tmnmt.engine.translator",
        "from tmnmt import engine",
        "from tmnmt.engine.translator import Translator",
        "def f():\n    from tmnmt.cli import main",
        "from . import store",
    ],
)
def test_an_import_upwards_is_found(source: str) -> None:
    assert len(list(wrong_imports(source, "index/x.py", "index"))) == 1


def test_imports_downwards_and_for_type_checkers_are_allowed() -> None:
    source = (
        "import os\nfrom tmnmt.text import normalise\nif TYPE_CHECKING:\n    import tmnmt.engine"
    )
    assert list(wrong_imports(source, "index/x.py", "index")) == []
