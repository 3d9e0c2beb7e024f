"""The docstrings of contracts say what each parameter is, in the form that an editor shows:
`name: what it is` at the beginning of a line. An override may leave that to its contract."""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from docs_modules import module_of_docs

from tmnmt.config.option import Options

# Contracts, and what programs call. A package stands for all its modules.
MODULES = [
    *("alignment", "checks", "client", "codes.record", "config", "durable", "engine.extension"),
    *("engine.settings", "explain", "files.unit", "files.whole", "filters.contract", "formats"),
    *("index", "keys", "layers.contract", "layers.learned", "models.base", "models.injected"),
    *("progress", "records", "registry", "serve.routes", "serve.storage", "session", "text"),
    *("translator", "vocab"),
]
# inner loops, which nothing else calls
COMPILED = re.compile(r"tmnmt\.index\.kernels\.(arrays|lanes|phrases|search|tokens)$")
DESCRIBED = re.compile(r"^(\w+): \S", re.M)


def modules(name: str) -> Iterator[ModuleType]:
    """A module; of a package all modules in it.

    name: its name without that of the whole package."""
    module = import_module(f"tmnmt.{name}")
    yield module
    for entry in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{module.__name__}."):
        if not COMPILED.match(entry.name):
            yield import_module(entry.name)


def defined_as(kind: type, member: str) -> list[object]:
    """What a class and those above it define under a name, its own definition first.

    kind: the class.
    member: the name."""
    return [vars(parent)[member] for parent in kind.__mro__ if member in vars(parent)]


def functions(module: ModuleType) -> Iterator[tuple[str, Sequence[FunctionType]]]:
    """The public functions and methods that are written in a module, each with the methods that it
    overrides.

    module: the module."""
    for name, entry in vars(module).items():
        if name.startswith("_"):
            continue
        candidates = [(name, [entry])]
        if isinstance(entry, type):
            candidates = [
                (f"{name}.{member}", defined_as(entry, member))
                for member in vars(entry)
                if member == "__init__" or not member.startswith("_")
            ]
        for label, members in candidates:
            written = [inspect.unwrap(getattr(member, "__func__", member)) for member in members]
            written = [member for member in written if isinstance(member, FunctionType)]
            if written and written[0].__code__.co_filename == module.__file__:
                yield label, written


def undescribed(module: ModuleType) -> Iterator[str]:
    """The functions of a module whose docstrings leave out a parameter, with all that they leave
    out.

    module: the module."""
    for label, members in functions(module):
        described = {
            name for member in members for name in DESCRIBED.findall(inspect.getdoc(member) or "")
        }
        parameters = inspect.signature(members[0]).parameters
        missing = [
            name
            for name in parameters
            if name not in described and name not in ("self", "cls") and not name.startswith("_")
        ]
        if missing:
            yield f"{module.__name__}.{label}: {', '.join(missing)}"


def records(module: ModuleType) -> Iterator[type]:
    """The public dataclasses and named tuples of a module, without options, whose types say what
    they are for.

    module: the module."""
    for name, entry in vars(module).items():
        if isinstance(entry, type) and entry.__module__ == module.__name__ and name[0] != "_":
            is_record = "__dataclass_fields__" in vars(entry) or hasattr(entry, "_fields")
            if is_record and not issubclass(entry, Options):
                yield entry


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_of_contracts_describe_every_parameter(name: str) -> None:
    assert [entry for module in modules(name) for entry in undescribed(module)] == []


def test_records_of_contracts_describe_every_field() -> None:
    """In the docstring, or in a comment beside the field."""
    python_reference = module_of_docs("python_reference")
    kinds = [kind for name in MODULES for module in modules(name) for kind in records(module)]
    assert len(kinds) > 70
    assert [
        f"{kind.__module__}.{kind.__name__}: {field.name}"
        for kind in kinds
        for field in python_reference.documented(kind).fields
        if not field.text
    ] == []


SOURCE = '''
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

def whole(size):
    """A cake.

    size: its width."""

def lacking(size, at_prose=None):
    """A cake of a size: small, and at_prose: as it comes."""

@contextmanager
def wrapped(size):
    yield size

def _private(size): ...

class Oven(Protocol):
    def bake(self, heat, _unused=0):
        """Bakes.

        heat: in degrees."""

    def cool(self, seconds): ...

class Stove(Oven):
    def __init__(self, size): ...

    def bake(self, heat):
        """It takes longer."""

    @classmethod
    def build(cls, size): ...

@dataclass
class Record:
    size: int
'''


def test_a_parameter_without_its_line_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cakes.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = import_module("cakes")
    monkeypatch.delitem(sys.modules, "cakes")
    assert [*undescribed(module)] == [
        "cakes.lacking: size, at_prose",
        "cakes.wrapped: size",
        "cakes.Oven.cool: seconds",
        "cakes.Stove.__init__: size",
        "cakes.Stove.build: size",
    ]


def test_most_functions_of_contracts_are_looked_at() -> None:
    found = [label for module in modules("index") for label, _ in functions(module)]
    assert len(found) > 200 and {"Index.search", "MemoryIndex.add", "open_index"} <= {*found}
