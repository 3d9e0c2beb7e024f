"""The recipe of an evaluation: one TOML that names test sets, models, memories and systems; unknown
keys are errors."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from tmnmt.config.bounds import Bound, Flat, Name, Share
from tmnmt.config.options import (
    ModelOptions,
)
from tmnmt.config.tables import build, keys, read_toml
from tmnmt.errors import DataError, UsageError
from tmnmt.eval.measures.effort import WEIGHTS
from tmnmt.eval.measures.learned_measure import LearnedMeasure, check_all
from tmnmt.eval.measures.slices import BANDS, NONE
from tmnmt.formats.moses import moses_pair
from tmnmt.index.back_ends import check_address, local_path
from tmnmt.models.addresses import is_address

OWN_MEMORY = "own"  # in a system's memories: the memory of the test set
PASTE_KEYS = ("name", "paste", "memories", "tests")
HYPOTHESIS_KEYS = ("name", "hypothesis", "tests")


@dataclass(frozen=True)
class TestConfig:
    """A test set: memory files, whose targets are the references, or plain files, one segment a
    line."""

    __test__ = False  # no test of pytest's

    name: Name
    files: tuple[Name, ...] = ()
    columns: str = ""  # of TSV files without a header, as in "src=5,tgt=6,doc=1"
    src: str = ""
    references: tuple[Name, ...] = ()
    memory: str = ""  # the name of the memory it is looked up in


@dataclass(frozen=True)
class NamedPath:
    """A memory: an index, its address, or a memory file."""

    name: Name
    path: Name


@dataclass(frozen=True)
class ModelConfig(NamedPath):
    """A model folder, and the files that it has learned from, where they are known: targets that
    stand there are told in the report."""

    training: tuple[Name, ...] = ()
    columns: str = ""  # of TSV files without a header


@dataclass(frozen=True)
class SystemConfig:
    """What translates: a model with its settings, the best match's target (`paste`), or a file of
    another system."""

    name: Name
    model: str = ""  # the first model where it is not given
    memories: tuple[Name, ...] = ()  # names; "own" is that of the test set
    # random: as many that have nothing to do with the text
    pairs: Literal["nearest", "random"] = "nearest"
    # what is confirmed after every segment, before the next is translated: its references, or, as
    # a control, what the next document was translated to
    confirmed: Literal["references", "next"] = "references"
    # The options, of which these differ from those of `tmnmt translate`: what is left out is the
    # plain model, without memory, and exact matches are translated, too.
    options: Annotated[ModelOptions, Flat()] = ModelOptions(
        mode="off",
        verbatim=0,
        headings=False,
        lost_sentences=False,
        patches=False,
        remember="nothing",
    )
    explain: bool = False  # keep where every word came from; takes longer
    paste: bool = False
    hypothesis: str = ""  # a file with one line a segment of the one test set it is for
    tests: tuple[Name, ...] = ()  # only these


@dataclass(frozen=True)
class Recipe:
    """The whole file. Paths are relative to the folder it lies in."""

    name: Name
    test: Annotated[tuple[TestConfig, ...], Bound("not empty", bool)]
    system: Annotated[tuple[SystemConfig, ...], Bound("not empty", bool)]
    baseline: Name
    description: str = ""
    src_lang: Name = "en"
    tgt_lang: Name = "fr"
    model: tuple[ModelConfig, ...] = ()
    memory: tuple[NamedPath, ...] = ()
    measure: tuple[LearnedMeasure, ...] = ()
    weights: dict[str, Share] = field(default_factory=lambda: dict(WEIGHTS))
    allow_leaks: bool = False

    def systems_for(self, test: TestConfig) -> list[SystemConfig]:
        """The systems that translate a test set: none that reads a memory where the test set has
        none."""
        return [
            s
            for s in self.system
            if (not s.tests or test.name in s.tests) and (test.memory or not needs_own(s))
        ]

    def path_of(self, kind: Literal["model", "memory"], name: str) -> str:
        """The path or address of a model or memory."""
        entries: Sequence[NamedPath] = getattr(self, kind)
        return next(entry.path for entry in entries if entry.name == name)


def needs_own(system: SystemConfig) -> bool:
    """Whether a system reads the memory of the test set."""
    return OWN_MEMORY in system.memories


def load_recipe(path: Path, systems: Sequence[str] = (), baseline: str | None = None) -> Recipe:
    """The recipe in a TOML file, its paths made to lead somewhere from here; of the systems
    `systems` these and the baseline, where any are named; with another baseline, where one is.

    Raises DataError where a file cannot be read, or, all at once, for files that the recipe names
    and that are not there; UsageError, naming file and key, for what is unknown, missing or
    wrong."""
    recipe = build(Recipe, read_toml(path), str(path))
    try:
        for system in recipe.system:
            _check_kind(system)
        recipe = narrowed(_complete(recipe), systems, baseline)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    recipe = _resolve_paths(path.parent, recipe)
    absent = sorted({file for file in _files(recipe) if not _is_there(file, recipe)})
    if absent:
        raise DataError(
            f"{path}: {len(absent)} of the files it names are not there: {', '.join(absent)}"
        )
    return recipe


def narrowed(recipe: Recipe, systems: Sequence[str], baseline: str | None) -> Recipe:
    """Of the systems `systems` these and the baseline, where any are named; with another baseline,
    where one is. Raises UsageError for a name that no system has."""
    names = [system.name for system in recipe.system]
    if baseline is not None:
        _check_names([baseline], names, "--baseline")
        recipe = replace(recipe, baseline=baseline)
    _check(recipe)
    if systems:
        _check_names(systems, names, "--only")
        selected = {*systems, recipe.baseline}
        recipe = _with_systems(recipe, [s for s in recipe.system if s.name in selected])
    return recipe


def with_measures(recipe: Recipe, measures: Sequence[LearnedMeasure]) -> Recipe:
    """The recipe with further learned measures. Raises UsageError for a name that another has."""
    recipe = replace(recipe, measure=(*recipe.measure, *measures))
    check_all(recipe.measure)
    return recipe


def _with_systems(recipe: Recipe, systems: Sequence[SystemConfig]) -> Recipe:
    """The recipe with these systems, the models and memories that they read, and the memories of
    the test sets."""
    models = {system.model for system in systems}
    memories = {memory for system in systems for memory in system.memories}
    memories |= {test.memory for test in recipe.test}
    return replace(
        recipe,
        system=tuple(systems),
        model=tuple(model for model in recipe.model if model.name in models),
        memory=tuple(memory for memory in recipe.memory if memory.name in memories),
    )


def _check_kind(system: SystemConfig) -> None:
    """Raises UsageError for a key that a system of this kind does not read."""
    if not system.paste and not system.hypothesis:
        if system.memories and system.options.mode == "off":
            raise UsageError(f"system {system.name!r}: mode is off, so it reads no memories")
        return
    kind, allowed_keys = (
        ("hypothesis", HYPOTHESIS_KEYS) if system.hypothesis else ("paste", PASTE_KEYS)
    )
    for name, value, default in keys(system):
        if name not in allowed_keys and value != default:
            raise UsageError(f"system {system.name!r}: {kind} and {name} exclude each other")


def _complete(recipe: Recipe) -> Recipe:
    """With what is left out: the model, and the test set's memory for a system that reads one."""
    model = recipe.model[0].name if recipe.model else ""
    return replace(recipe, system=tuple(_completed(system, model) for system in recipe.system))


def _completed(system: SystemConfig, model: str) -> SystemConfig:
    reads = system.options.mode != "off" or system.paste
    memories = system.memories or ((OWN_MEMORY,) if reads and not system.hypothesis else ())
    decodes = not system.paste and not system.hypothesis
    return replace(system, memories=memories, model=system.model or (model if decodes else ""))


def _check(recipe: Recipe) -> None:
    """Raises UsageError for names that are unknown or given twice, and keys that do not go
    together."""
    tests, systems = [entry.name for entry in recipe.test], [entry.name for entry in recipe.system]
    models = [entry.name for entry in recipe.model]
    memories = [entry.name for entry in recipe.memory]
    for kind, names in (
        ("test", tests),
        ("system", systems),
        ("model", models),
        ("memory", memories),
    ):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"{kind}: two have the name {twice!r}")
    _check_names([recipe.baseline], systems, "baseline")
    _check_names(list(recipe.weights), [*BANDS, NONE], "weights")
    if OWN_MEMORY in memories:
        raise UsageError(f"memory: the name {OWN_MEMORY!r} means that of the test set")
    check_all(recipe.measure)
    for memory in recipe.memory:
        check_address(memory.path)  # before it is written down: it may have a password in it
    for test in recipe.test:
        if bool(test.files) == bool(test.src and test.references):
            raise UsageError(f"test {test.name!r}: give either files, or src and references")
        _check_names([test.memory] if test.memory else [], memories, f"test {test.name!r}: memory")
    for system in recipe.system:
        _check_system(system, tests, models, memories)
    for test in recipe.test:
        if recipe.baseline not in [system.name for system in recipe.systems_for(test)]:
            raise UsageError(
                f"system {recipe.baseline!r}: the baseline is for all tests, and {test.name!r} "
                "is not its"
            )


def _check_system(
    system: SystemConfig, tests: Sequence[str], models: Sequence[str], memories: Sequence[str]
) -> None:
    location = f"system {system.name!r}"
    _check_names(system.tests, tests, f"{location}: tests")
    _check_names(system.memories, [*memories, OWN_MEMORY], f"{location}: memories")
    if system.hypothesis and len(system.tests or tests) != 1:
        raise UsageError(f"{location}: a hypothesis file is for one test set; name it in tests")
    if system.paste and len(system.memories) != 1:
        raise UsageError(f"{location}: paste takes the best match of one memory")
    _check_session(system, location)
    if not system.paste and not system.hypothesis:
        if not models:
            raise UsageError(f"{location}: there is no model")
        _check_names([system.model], models, f"{location}: model")


def _check_session(system: SystemConfig, location: str) -> None:
    """Raises UsageError for keys of a session cache, or of what is confirmed, where
    there is none."""
    options = system.options
    if not caches(system):
        is_set = {
            "cache": bool(options.cache),
            "cache_best": options.cache_best > 1,
            "cache_overwrite": options.cache_overwrite is not None,
        }
        key = next((key for key, is_given in is_set.items() if is_given), None)
        if key is not None:
            raise UsageError(
                f"{location}: {key} is of a session cache, and nothing is written to one; remember "
                "says what: confirmed or own, and confirm_to where: both or cache"
            )
    if options.remember != "confirmed":
        for name, value in (
            ("confirm_to", options.confirm_to),
            ("confirmed", system.confirmed),
        ):
            if value in ("both", "references"):
                continue
            raise UsageError(
                f'{location}: {name} = "{value}" is of what is confirmed, and nothing is: '
                f"remember is {options.remember}"
            )
    if options.confirm_to == "memory" and system.options.mode == "off":
        raise UsageError(
            f'{location}: confirm_to = "memory", and mode is off, so it reads no memory'
        )
    if options.cache_best > 1 and options.remember != "own":
        raise UsageError(
            f"{location}: cache_best is of the model's own words, and remember is "
            f'"{options.remember}"'
        )


def confirms(system: SystemConfig) -> bool:
    """Whether something is confirmed while it translates."""
    return system.options.remember == "confirmed"


def caches(system: SystemConfig) -> bool:
    """Whether something is written to a session cache."""
    options = system.options
    if options.remember == "nothing" or options.cache == 0:
        return False
    return options.remember == "own" or options.confirm_to != "memory"


def _check_names(names: Iterable[str], allowed: Sequence[str], location: str) -> None:
    for name in names:
        if name not in allowed:
            suggestions = difflib.get_close_matches(name, allowed, n=1)
            hint = (
                f"; did you mean {suggestions[0]!r}?"
                if suggestions
                else f"; allowed: {', '.join(allowed) or 'none'}"
            )
            raise UsageError(f"{location}: there is no {name!r}{hint}")


def _resolve_paths(folder: Path, recipe: Recipe) -> Recipe:
    """With every path led from `folder`."""

    def resolve(path: str) -> str:
        is_remote = not path or local_path(path) is None or is_address(path)
        return path if is_remote else _plain(str(folder / path))

    return replace(
        recipe,
        test=tuple(
            replace(
                t,
                files=tuple(map(resolve, t.files)),
                src=resolve(t.src),
                references=tuple(map(resolve, t.references)),
            )
            for t in recipe.test
        ),
        model=tuple(
            replace(m, path=resolve(m.path), training=tuple(map(resolve, m.training)))
            for m in recipe.model
        ),
        memory=tuple(replace(m, path=resolve(m.path)) for m in recipe.memory),
        measure=tuple(replace(m, scores=resolve(m.scores)) for m in recipe.measure),
        system=tuple(
            replace(
                s, hypothesis=resolve(s.hypothesis), options=_resolve_options(s.options, resolve)
            )
            for s in recipe.system
        ),
    )


def _resolve_options(options: ModelOptions, resolve: Callable[[str], str]) -> ModelOptions:
    paths: dict[str, Any] = {name: resolve(path) for name, path in _option_paths(options).items()}
    return replace(options, **paths) if paths else options


def _option_paths(options: ModelOptions) -> dict[str, str]:
    """The files that options name, by the names of these options."""
    paths = {name: getattr(options, name) for name in ("knn_adaptive", "prompt", "key_file")}
    return {name: str(path) for name, path in paths.items() if path}


def _plain(path: str) -> str:
    """Without a/.., where that leads to the same place, links followed."""
    plain = os.path.normpath(path)
    return plain if os.path.realpath(plain) == os.path.realpath(path) else path


def _files(recipe: Recipe) -> Iterator[str]:
    for test in recipe.test:
        yield from (*test.files, *([test.src] if test.src else []), *test.references)
    for model in recipe.model:
        yield from model.training
    yield from (measure.scores for measure in recipe.measure if measure.scores)
    places = (entry.path for entry in (*recipe.model, *recipe.memory))
    yield from (place for place in places if local_path(place) and not is_address(place))
    yield from (
        str(path)
        for system in recipe.system
        for path in (system.hypothesis, *_option_paths(system.options).values())
        if path
    )


def _is_there(path: str, recipe: Recipe) -> bool:
    return (
        Path(path).exists() or moses_pair(Path(path), recipe.src_lang, recipe.tgt_lang) is not None
    )
