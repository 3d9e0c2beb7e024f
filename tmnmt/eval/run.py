"""From a recipe to a report: read, look up, translate, measure, write."""

from __future__ import annotations

import hashlib
import logging
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from tmnmt.config.options import Remember
from tmnmt.counted import counted
from tmnmt.engine.opened import load_layers
from tmnmt.engine.settings import Settings, check, settled
from tmnmt.engine.translator import Translator
from tmnmt.errors import DataError, FormatError, UsageError
from tmnmt.eval.data.confirmed import WRITES, Pair, confirmed_by
from tmnmt.eval.data.memory import Memory, leak_warnings
from tmnmt.eval.data.near_leaks import long_targets, near_leaks
from tmnmt.eval.measures.measure import Measured, Output, TestSet
from tmnmt.eval.measures.metrics import metrics
from tmnmt.eval.model_cost import parameters_read, training_read
from tmnmt.eval.recipe import OWN, Recipe, SystemConfig, TestConfig, caches, confirms
from tmnmt.eval.report.write import write_report
from tmnmt.eval.score import best_matches, output_warnings, read_output, read_test
from tmnmt.eval.translated import GOES_ON, Kept, digest, units
from tmnmt.files.as_memory import read_memories
from tmnmt.formats import parse_columns
from tmnmt.index.base import Index
from tmnmt.index.cached import open_memory
from tmnmt.index.embedded.lock import writing
from tmnmt.index.fuzzy import edit_distance, fuzzy_score
from tmnmt.keys.datastore import keys_state
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.reach import Reaches, reaches_of
from tmnmt.models.folder import Model, load_model
from tmnmt.progress import Progress
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens
from tmnmt.training.log import TrainingCost, training_costs

TRANSLATIONS = "translations"  # the folder for them in a run's folder

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Read:
    """A test set as it was read: which of so many lines of plain files are its segments."""

    test: TestSet
    kept: Sequence[int]
    lines: int
    where: Path  # the file that a hypothesis is compared with


def _check_documents(segments: Sequence[Segment], config: TestConfig) -> None:
    """Raises DataError where a document begins a second time."""
    blocks = [document for document, _ in groupby(segment.document for segment in segments)]
    again = next((document for document, times in Counter(blocks).items() if times > 1), None)
    if again is not None:
        where = f"test {config.name!r}: {', '.join(config.files)}"
        raise DataError(
            f"{where}: document {again!r} begins twice: two of one id, or segments out of order"
        )


class RandomPairs(Index):
    """An index whose every search gives random pairs, the same for the same query."""

    def __init__(self, segments: Sequence[Segment], seed: int = 1) -> None:
        self.segments, self.seed = segments, seed
        self.src_lang = self.tgt_lang = ""

    def search(
        self,
        queries: Sequence[str],
        k: int = 4,
        threshold: float = 0.5,
        *,
        exclude_sources: bool = False,
        exclude_documents: Sequence[str] | None = None,
    ) -> list[list[Match]]:
        """`k` pairs for each query, whatever the threshold."""
        size = min(k, len(self.segments))
        drawn = [
            random.Random(f"{self.seed} {query}").sample(self.segments, size) for query in queries
        ]
        return [
            [_scored(match_tokens(query), segment) for segment in segments]
            for query, segments in zip(queries, drawn, strict=True)
        ]


def _scored(tokens: Sequence[str], segment: Segment) -> Match:
    theirs = match_tokens(segment.src)
    return Match(segment, fuzzy_score(tokens, theirs), edit_distance(tokens, theirs))


@dataclass
class Run:
    """A recipe at work in the folder `out`."""

    recipe: Recipe
    out: Path
    memories: dict[str, Memory] = field(default_factory=dict)
    models: dict[str, tuple[Model, MemoryLayers | None]] = field(default_factory=dict)
    # systems that differ in name only share one
    kept: dict[Path, Kept] = field(default_factory=dict)
    # by model: what its training log says of every part
    trained: dict[str, dict[str | None, TrainingCost]] = field(default_factory=dict)
    # by model: the long targets of what it has learned from, where the recipe names that
    taught: dict[str, set[int]] = field(default_factory=dict)
    # how references that stand in a memory are allowed
    allowing: str = "say allow_leaks = true in the recipe"

    def __call__(self, sha256: str | None) -> dict[str, Any]:
        """Translates what is not translated yet, measures all, writes the report and gives it."""
        start = time.monotonic()
        with ExitStack() as stack:
            reads = [self._read(config) for config in self.recipe.test]
            self._load_models()
            self._open_memories(stack)
            self._read_training()
            tests = [self._look_up(*pair) for pair in zip(self.recipe.test, reads, strict=True)]
            self._keep_others_out(stack)
            jobs = [self._jobs(*pair) for pair in zip(self.recipe.test, tests, strict=True)]
            self._translate([job for of_test in jobs for job in of_test])
            measured = self._measure(tests, [[job.output() for job in of_test] for of_test in jobs])
            return self._written(measured, start, sha256)

    def _keep_others_out(self, stack: ExitStack) -> None:
        """Holds the folder while this runs: two runs in it would write the same
        translations twice."""
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{self.out}: cannot be written: {error.strerror or error}") from error
        stack.enter_context(writing(self.out, 0))

    def _written(
        self, measured: Sequence[Measured], start: float, sha256: str | None
    ) -> dict[str, Any]:
        try:
            return write_report(
                self.out, self.recipe.name, self.recipe.description, measured, start, sha256
            )
        except FormatError as error:
            error.add_note(GOES_ON)
            raise

    def _read(self, config: TestConfig) -> Read:
        recipe = self.recipe
        languages = recipe.src_lang, recipe.tgt_lang
        if config.src:
            references = [Path(path) for path in config.references]
            test, numbers, lines = read_test(config.name, languages, references, Path(config.src))
            return Read(test, numbers, lines, references[0])
        columns = parse_columns(config.columns) if config.columns else None
        reader = read_memories(map(Path, config.files), *languages, columns=columns)
        segments = list(reader)
        if not segments:
            raise DataError(f"{config.files[0]}: no segment")
        _check_documents(segments, config)
        skipped = reader.report.total_skipped
        test = TestSet(
            config.name,
            *languages,
            [s.src for s in segments],
            [[s.tgt for s in segments]],
            [s.document for s in segments],
            warnings=[f"{counted(skipped, 'unit')} of the files skipped: {reader.report}"]
            if skipped
            else [],
        )
        return Read(test, range(len(segments)), len(segments), Path(config.files[0]))

    def _load_models(self) -> None:
        """Loads the models that are used, and checks every system's settings before anything takes
        time."""
        for system in self.recipe.system:
            if not system.model:
                continue
            if system.model not in self.models:
                model = load_model(Path(self.recipe.path_of("model", system.model)))
                self.models[system.model] = model, load_layers(model, "cpu")
            if system.model not in self.trained:
                folder = self.models[system.model][0].folder
                self.trained[system.model] = training_costs(folder)
            model, memories = self.models[system.model]
            try:
                check(settings_of(system, memories), memories, model)
            except UsageError as error:
                raise UsageError(f"system {system.name!r}: {error}") from error

    def _open_memories(self, stack: ExitStack) -> None:
        recipe = self.recipe
        used = {test.memory for test in recipe.test} | {
            name for s in recipe.system for name in s.memories
        }
        for name in sorted(used - {OWN, ""}):
            with Progress(f"indexing {name}", "segments", lazy=True) as progress:
                path = recipe.path_of("memory", name)
                index = open_memory(path, recipe.src_lang, recipe.tgt_lang, progress.advance)
            stack.enter_context(index)
            with Progress(f"reading {name}", "segments", len(index)) as progress:
                self.memories[name] = Memory(index, progress)

    def _read_training(self) -> None:
        recipe = self.recipe
        for model in recipe.model:
            if model.name not in self.models or not model.training:
                continue
            columns = parse_columns(model.columns) if model.columns else None
            files = map(Path, model.training)
            with Progress(f"reading what {model.name} has learned from", "segments") as progress:
                targets = set()
                for segment in read_memories(
                    files, recipe.src_lang, recipe.tgt_lang, columns=columns
                ):
                    targets |= long_targets([segment.tgt])
                    progress.advance()
            self.taught[model.name] = targets

    def _look_up(self, config: TestConfig, read: Read) -> Read:
        """The test set with its best matches. Raises DataError where references are in a memory and
        may not be."""
        test, warnings = read.test, list(read.test.warnings)
        for name, memory in self.memories.items():
            warnings += leak_warnings(test, name, memory, self.recipe.allow_leaks, self.allowing)
        warnings += [
            f"{name} left out: it reads the test set's memory, and there is none"
            for name in self._bare(config)
        ]
        own = self.memories.get(config.memory)
        best = best_matches(own.index, test.sources) if own else None
        known = {f"memory {name}": memory.targets for name, memory in self.memories.items()}
        known |= {f"training of {name}": targets for name, targets in self.taught.items()}
        test = replace(
            test,
            best=best,
            pairs=own.pairs if own else (),
            warnings=warnings,
            near=near_leaks(
                test.references, known, [name for name in self.models if name not in self.taught]
            ),
        )
        return replace(read, test=test)

    def _bare(self, config: TestConfig) -> list[str]:
        """The systems that a test set is meant for and has no memory for."""
        meant = [
            system
            for system in self.recipe.system
            if not system.tests or config.name in system.tests
        ]
        return [system.name for system in meant if system not in self.recipe.systems_for(config)]

    def _jobs(self, config: TestConfig, read: Read) -> list[Job]:
        systems = self.recipe.systems_for(config)
        alone = next((system.name for system in systems if system.confirmed == "next"), None)
        if alone is not None and len(set(read.test.documents)) < 2:
            raise DataError(
                f"test {config.name!r}: one document, and system {alone!r} confirms the next one's"
            )
        return [Job(self, system, config, read) for system in systems]

    def _translate(self, jobs: Sequence[Job]) -> None:
        """Every system on every test set, under one progress."""
        for job in jobs:
            if job.system.hypothesis:
                job.output()  # what is wrong with a file is said before hours are spent
        decoded = [
            needed
            for job in jobs
            for needed in (job.before, job)
            if needed is not None and needed.kept is not None
        ]
        missing = sum(file.missing for file in self.kept.values())
        with Progress("translating", "segments", missing, lazy=not missing) as progress:
            for job in decoded:
                if job.kept is not None and job.kept.missing:
                    job.kept.fill(job.translator(), job.system.explain, progress, job.confirmed())
                    cost = job.kept.cost()
                    log.info(
                        "%s: %s: %s words/s",
                        job.read.test.name,
                        job.system.name,
                        cost["words_per_second"],
                    )

    def _measure(self, reads: Sequence[Read], outputs: Sequence[list[Output]]) -> list[Measured]:
        recipe = self.recipe
        total = sum(len(read.test) for read in reads) * len(metrics(recipe.tgt_lang))
        with Progress("measuring", "segments", total) as progress:
            return [
                Measured(
                    replace(read.test, warnings=[*read.test.warnings, *output_warnings(of_test)]),
                    of_test,
                    recipe.baseline,
                    recipe.weights,
                    lambda n, _: progress.advance(n),
                )
                for read, of_test in zip(reads, outputs, strict=True)
            ]


@dataclass
class Job:
    """One system on one test set."""

    run: Run
    system: SystemConfig
    config: TestConfig
    read: Read

    @cached_property
    def memory_names(self) -> list[str]:
        return [self.config.memory if name == OWN else name for name in self.system.memories]

    @cached_property
    def before(self) -> Job | None:
        """Whose translations are confirmed in this one: the same system that remembers its own
        words, or, without a cache, nothing; None: none's, or the references are."""
        if self.system.confirmed != "next":
            return None
        own: Remember = "own" if caches(self.system) else "nothing"
        options = replace(self.system.options, remember=own, confirm_to="both")
        return replace(self, system=replace(self.system, options=options, confirmed="references"))

    @cached_property
    def kept(self) -> Kept | None:
        """Where a model's translations are kept, by all that they depend on; None for what needs no
        model."""
        if not self.system.model:
            return None
        model, learned = self.run.models[self.system.model]
        test, system = self.read.test, self.system
        settings = self._settings
        parameters = (
            learned.digest(self._engine.mode, settings["cache"] > 0) if learned is not None else ""
        )
        whole = system.options.remember != "nothing" or "context" in settings
        parts = units(test.sources, test.documents, whole)
        memories = (
            [self.run.memories[name].digest for name in self.memory_names]
            if system.options.mode != "off"
            else []
        )
        if self._engine.neighbours:
            settings["keys"] = [
                keys_state(self.run.memories[name].index, self._states_hash)
                for name in self.memory_names
            ]
        if self.before is not None and self.before.kept is not None:
            settings["confirmed"] = digest(WRITES, self.before.kept.path.stem)
        elif confirms(system):
            settings["confirmed"] = digest(WRITES, test.references[0])
        named = digest(
            model.hash, parameters, memories, system.pairs, system.explain, settings, parts
        )
        path = self.run.out / TRANSLATIONS / f"{named}.jsonl"
        if path not in self.run.kept:
            self.run.kept[path] = Kept(path, parts)
        return self.run.kept[path]

    def translator(self) -> Translator:
        """The system at work."""
        model, parameters = self.run.models[self.system.model]
        memories = [self.run.memories[name] for name in self.memory_names]
        indexes: list[Index] = [memory.index for memory in memories]
        if self.system.pairs == "random":
            indexes = [RandomPairs([segment for memory in memories for segment in memory.segments])]
        settings = settings_of(self.system, parameters)
        return Translator(model, parameters, indexes, settings, reaches=self._reaches)

    def confirmed(self) -> list[list[Pair | None]] | None:
        """What is confirmed after every segment of every unit; None where nothing is."""
        if self.kept is None or not confirms(self.system):
            return None
        if self.before is None or self.before.kept is None:
            return confirmed_by(
                self.kept.units, iter(self.read.test.references[0]), elsewhere=False
            )
        said = (record["tgt"] for record in self.before.kept.records())
        return confirmed_by(self.kept.units, said, elsewhere=True)

    def output(self) -> Output:
        """What the system wrote, translated before."""
        system, read = self.system, self.read
        if system.hypothesis:
            return read_output(
                system.name, Path(system.hypothesis), read.lines, read.kept, read.where
            )
        if self.kept is None:
            return Output(
                system.name,
                self._pasted(),
                {"paste": "the best match's target, at any score", **self._memories},
            )
        lines = [record["tgt"] for record in self.kept.records()]
        settings = {name: str(value) for name, value in self._settings.items()}
        settings |= {
            "model": self.run.models[system.model][0].hash,
            "pairs": system.pairs,
            **self._memories,
        }
        if confirms(system):
            settings |= {"confirmed": system.confirmed}
        settings |= {"translations": self.kept.path.name}
        return Output(system.name, lines, settings, self._records(), system.explain, self._cost)

    @property
    def _cost(self) -> dict[str, float | int | None] | None:
        """Of translating, and of the model; None for what needs no model."""
        if self.kept is None:
            return None
        model, learned = self.run.models[self.system.model]
        trained = self.run.trained[self.system.model]
        return (
            self.kept.cost()
            | {"parameters": parameters_read(model, learned, self._engine)}
            | training_read(trained, self._engine)
        )

    @property
    def _engine(self) -> Settings:
        return settings_of(self.system, self.run.models[self.system.model][1])

    @property
    def _settings(self) -> dict[str, Any]:
        """What the engine is told, and what it takes where it is told nothing; of a file what it
        holds, wherever it lies."""
        engine, learned = self._engine, self.run.models[self.system.model][1]
        if (
            engine.cache
            and engine.cache_overwrite is None
            and learned is not None
            and learned.cache is not None
        ):
            engine = replace(engine, cache_overwrite=learned.cache.kind.overwrite)
        settings = {name: value for name, value in asdict(engine).items() if value is not None}
        backbone = self.run.models[self.system.model][0].backbone
        if not (backbone.previous or backbone.reads_around):
            del settings["context"]  # nothing depends on it
        if engine.mode == "nearest":
            settings["reach"] = self._reaches.by_source
        if path := settings.get("knn_adaptive"):
            settings["knn_adaptive"] = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
        return settings

    @property
    def _reaches(self) -> Reaches:
        """How the nearest positions are read, also of random pairs of the memories."""
        indexes = [self.run.memories[name].index for name in self.memory_names]
        return reaches_of(indexes, self._states_hash)

    @property
    def _states_hash(self) -> str:
        """What keys, and the numbers of nearest positions, are bound to where the system reads
        them."""
        engine = self._engine
        model = self.run.models[self.system.model][0].reading(engine)
        return replace(model, products=engine.precision).states_hash

    def _pasted(self) -> list[str]:
        name, test = self.memory_names[0], self.read.test
        best = test.best if name == self.config.memory else None
        matches = (
            best if best is not None else best_matches(self.run.memories[name].index, test.sources)
        )
        return [match.segment.tgt if match is not None else "" for match in matches]

    def _records(self) -> Any:
        return (
            self.kept.records
            if self.kept and (self.system.options.mode != "off" or self.system.explain)
            else None
        )

    @property
    def _memories(self) -> dict[str, str]:
        return {"memories": ", ".join(self.memory_names)}


def settings_of(system: SystemConfig, learned: MemoryLayers | None) -> Settings:
    """What the engine is told. Random pairs are read whatever their score."""
    options = system.options
    if system.pairs == "random":
        options = replace(options, threshold=0.0, short_threshold=0.0)
    return settled(options, learned, "off")
