"""Tables of what there is of a sort: kinds of base, memory layers, back ends of indexes, commands.

The module that works with a sort keeps its `Registry` and enters what belongs to the core. A
plug-in enters more by `register`. It names what it brings as "module:name", so that nothing is
imported before it is used.

    BASES: Registry[type[Trainable]] = Registry("base", {"rnnsearch": RNNsearch})
    register("base", "deeplau", "tmnmt.papers.deeplau:DeepLAU")
    BASES["deeplau"]

`PLUGINS` and `WINGS` are the one place that names plug-ins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Generic, Literal, NamedTuple, TypeVar, cast

Sort = Literal[
    "address",
    "back end",
    "base",
    "cache history",
    "cache trainer",
    "command",
    "derived keys",
    "dialect",
    "extension",
    "file format",
    "filter",
    "joint trainer",
    "layer",
    "memory format",
    "memory search",
    "mode",
    "network",
    "network trainer",
    "selection",
    "similarity",
    "TM trainer",
    "voting",
    "writer",
]
# modules that register what they bring when they are imported
PLUGINS = ("tmnmt.trained_layers", "tmnmt.hosted", "tmnmt.papers")
# the same of parts of the package that bring one sort, and are imported only for that
WINGS: dict[Sort, tuple[str, ...]] = {"extension": ("tmnmt.explain", "tmnmt.terms")}

T = TypeVar("T")


class _Entry(NamedTuple):
    entry: object  # or "module:name" of it
    successor: str  # the entry that it stands before; "": at the end


_REGISTERED: defaultdict[str, dict[str, _Entry]] = defaultdict(dict)


def register(sort: Sort, name: str, entry: object, successor: str = "") -> None:
    """Enters what a plug-in brings.

    sort: the table.
    name: the name of the entry in it.
    entry: the entry itself, or "module:name" of it.
    successor: the name of the entry that it stands before, where the order matters. With "" it is
    the last.

    Raises ValueError where a plug-in has entered the name already."""
    if name in _REGISTERED[sort]:
        raise ValueError(f"{sort} {name!r} is registered already")
    _REGISTERED[sort][name] = _Entry(entry, successor)


def unregister(sort: Sort, name: str) -> None:
    """Takes out what `register` has entered.

    sort: the table.
    name: the name of the entry.

    Raises KeyError where it is not there."""
    del _REGISTERED[sort][name]


def load_plugins(sort: Sort) -> None:
    """Imports what may bring entries of a sort and is not imported yet. It waits for another thread
    that does so.

    sort: the table."""
    for name in (*WINGS.get(sort, ()), *PLUGINS):
        import_module(name)


def _resolved(name: str) -> object:
    """What "module:name" names."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


class Registry(Mapping[str, T], Generic[T]):
    """All entries of a sort by name, in order: those of the core, and those that were registered,
    each at its place. What stands as "module:name" is imported when it is asked for."""

    def __init__(self, sort: Sort, core: Mapping[str, T | str]) -> None:
        """sort: what the table is of.
        core: the entries of the core by their names, in order, each itself or as "module:name"."""
        self.sort, self._core = sort, dict(core)

    def __getitem__(self, name: str) -> T:
        load_plugins(self.sort)
        registered = _REGISTERED[self.sort]
        entry = self._core[name] if name in self._core else registered[name].entry
        return cast(T, _resolved(entry) if isinstance(entry, str) else entry)

    def __iter__(self) -> Iterator[str]:
        load_plugins(self.sort)
        names, pending = [*self._core], dict(_REGISTERED[self.sort])
        while pending:  # an entry may stand before one that a later plug-in has entered
            ready = [
                name
                for name, (_, successor) in pending.items()
                if not successor or successor in names
            ]
            for name in ready or pending:
                self._insert(names, name, pending[name].successor)
            pending = {name: entry for name, entry in pending.items() if name not in ready}
        return iter(names)

    def _insert(self, names: list[str], name: str, successor: str) -> None:
        """Puts a name where it belongs. Raises ValueError where it is there, or its successor is
        not."""
        if name in names:
            raise ValueError(f"{self.sort} {name!r} is in tmnmt already")
        if successor and successor not in names:
            raise ValueError(
                f"{self.sort} {name!r} stands before {successor!r}, which is not there"
            )
        names.insert(names.index(successor) if successor else len(names), name)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return any(name == entry_name for entry_name in self)
