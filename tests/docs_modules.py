"""The modules of docs/, which is no package."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from places import ROOT


def module_of_docs(name: str) -> ModuleType:
    """A module of docs/.

    name: its name."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
