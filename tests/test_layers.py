"""Imports inside the package point one way, from the records up to the command line; tests lie as
the package does."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from places import TESTS

import tmnmt

LAYERS = (
    (
        "codes",
        "segments",
        "partial_document",
        "errors",
        "system",
        "interrupts",
        "durable",
        "grouped",
        "allocator",
        "text",
        "languages",
        "file_kinds",
        "contractions",
        "quantities",
        "registry",
        "numbers",
        "number_words",
        "ends",
        "quotes",
        "balance",
        "compatibility",
        "typography",
        "checks",
        "dictionaries",
        "visible",
        "progress",
        "vocab",
        "records",
        "spans",
        "source_hash",
        "typed_json",
    ),
    ("config",),
    ("formats",),
    ("files",),
    ("filters",),
    ("compiled",),
    ("index",),
    ("models",),
    ("keys",),
    ("layers",),
    ("engine",),
    ("explain", "terms"),
    ("interactive",),
    ("session",),
    ("translator",),
    ("alignment", "batch", "model_import", "trained_layers"),
    ("calibration",),
    ("training",),
    ("eval",),
    ("hosted",),
    ("client",),
    ("serve",),
    ("cli", "__main__"),
    ("papers",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
PACKAGE = Path(tmnmt.__file__).parent


class _Imports(ast.NodeVisitor):
    """Imported modules, those inside functions too, those for type checkers where asked."""

    def __init__(self, for_types: bool = False) -> None:
        self.for_types = for_types
        self.found: list[tuple[int, str]] = []
        self.names: set[tuple[str, str]] = set()  # where from, and what: "" of a module itself

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test) and not self.for_types:
            for other in node.orelse:
                self.visit(other)
        else:
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.names |= {(alias.name, "") for alias in node.names}
        self.found += [(node.lineno, alias.name) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.names |= {(node.module or "", alias.name) for alias in node.names}
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
        "import tmnmt.translator",
        "from tmnmt import engine",
        "from tmnmt.translator import Translator",
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


def modules() -> dict[str, str]:
    """The source of every module of the package, by its name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path.read_text(encoding="utf-8")
    return found


def arrows(sources: dict[str, str]) -> dict[str, set[str]]:
    """Which of these modules each imports, in functions and for type checkers, too."""
    found: dict[str, set[str]] = {}
    for name, source in sources.items():
        visitor = _Imports(for_types=True)
        visitor.visit(ast.parse(source))
        wholes = {(module, f"{module}.{what}") for module, what in visitor.names}
        targets = {whole if whole in sources else module for module, whole in wholes}
        found[name] = targets & sources.keys() - {name}
    return found


@cache
def package_arrows() -> dict[str, set[str]]:
    """Which modules of the package each of them imports. Not to be changed."""
    return arrows(modules())


def circle(imports: dict[str, set[str]]) -> list[str]:
    """Modules that import one another in turn, the first again at the end; none: empty."""
    done: set[str] = set()

    def go(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        for other in sorted(imports[name]):
            if found := go(other, [*way, name]):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(imports) if (found := go(name, []))), [])


def test_no_modules_import_one_another_in_a_circle() -> None:
    # the package's face: Translator and Session, imported when asked for
    imports = {**package_arrows(), "tmnmt": set[str]()}
    assert len(imports) > 150 and sum(map(len, imports.values())) > 500
    assert circle(imports) == []


def test_a_circle_for_type_checkers_is_found_too() -> None:
    lower = "if TYPE_CHECKING:\n    from tmnmt.layers.c import C"
    sources = {
        "tmnmt.layers.a": lower,
        "tmnmt.layers.b": "def f():\n    from tmnmt.layers import a",
        "tmnmt.layers.c": "from tmnmt.layers.b import B",
    }
    names = ["tmnmt.layers." + letter for letter in "acba"]
    assert circle(arrows(sources)) == names
    assert circle(arrows(sources | {"tmnmt.layers.a": ""})) == []


def test_the_core_imports_nothing_above_it_not_even_for_types() -> None:
    """Wings such as terms and completion, and the public face, import the core, and are found by
    the registry."""
    parts = {name: name.split(".")[1] for name in modules() if name != "tmnmt"}
    above = {name for name, part in parts.items() if RANK[part] > RANK["engine"]}
    imports = package_arrows()
    assert any("tmnmt.engine.pipeline" in imports[name] for name in above)
    upwards = {name: imports[name] & above for name in parts if name not in above}
    assert {name: others for name, others in upwards.items() if others} == {}


def test_nothing_outside_imports_the_papers() -> None:
    assert [
        name
        for name, others in package_arrows().items()
        if not name.startswith("tmnmt.papers")
        and any(other.startswith("tmnmt.papers") for other in others)
    ] == []


def test_training_does_not_import_evaluation() -> None:
    assert RANK["training"] < RANK["eval"]
    source = "from tmnmt.eval.score import score"
    assert len(list(wrong_imports(source, "training/x.py", "training"))) == 1


def test_nothing_is_asserted_to_be_there() -> None:
    """What may be absent has a type that says so, or is handed on where it is there."""
    asserted = [
        f"{name}:{node.lineno}"
        for name, source in modules().items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assert) and "is not None" in ast.unparse(node.test)
    ]
    assert asserted == []


def test_tests_lie_in_the_folders_of_what_they_test() -> None:
    """What is shared lies on top, where `pythonpath` finds it; `clients` are no tests, but programs
    that a test runs."""
    shared = TESTS, TESTS / "clients"
    below = {path.relative_to(TESTS) for path in TESTS.rglob("*.py") if path.parent not in shared}
    assert len(below) > 50
    assert [str(path) for path in below if not (PACKAGE / path.parent).is_dir()] == []
    assert {path.name for path in below if not path.name.startswith("test_")} <= {"conftest.py"}


def test_no_two_files_of_tests_have_one_name() -> None:
    """Without packages pytest takes them for one module."""
    names = Counter(path.name for path in TESTS.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_no_test_imports_another_test() -> None:
    imported = []
    for path in TESTS.rglob("*.py"):
        visitor = _Imports()
        visitor.visit(ast.parse(path.read_text(encoding="utf-8")))
        imported += [
            f"{path.relative_to(TESTS)}:{line}: {name}"
            for line, name in visitor.found
            if name.startswith("test")
        ]
    assert imported == []
