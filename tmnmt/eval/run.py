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

from tmnmt.config.option import options_of
from tmnmt.config.options import REQUESTING, HostedBase, Remember
from tmnmt.engine.building import calibrated
from tmnmt.engine.loading import load_layers
from tmnmt.engine.settings import Settings, check, settled
from tmnmt.errors import DataError, FormatError, UsageError
from tmnmt.eval.data.confirmed import WRITES, Pair, confirmed_by
from tmnmt.eval.data.memory import Memory, leak_warnings
from tmnmt.eval.data.near_leaks import long_targets, near_leaks
from tmnmt.eval.measures.learned import score_all
from tmnmt.eval.measures.measure import Measured, Output, TestSet
from tmnmt.eval.measures.metrics import metrics
from tmnmt.eval.model_cost import parameters_read, training_read
from tmnmt.eval.recipe import OWN_MEMORY, Recipe, SystemConfig, TestConfig, caches, confirms
from tmnmt.eval.report.write import write_report
from tmnmt.eval.score import best_matches, output_warnings, read_output, read_test
from tmnmt.eval.translated import GOES_ON, TranslationCache, digest, units
from tmnmt.files.as_memory import read_memories
from tmnmt.formats import parse_columns
from tmnmt.index.base import Index
from tmnmt.index.embedded.lock import writing
from tmnmt.index.fuzzy import edit_distance, fuzzy_score
from tmnmt.index.opening import open_memory
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.reach import Reaches, reaches_of
from tmnmt.models.addresses import with_languages
from tmnmt.models.folder import Model, load_model
from tmnmt.progress import Progress
from tmnmt.quantities import quantity
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens
from tmnmt.trained_layers.datastore import keys_state
from tmnmt.training.log import TrainingCost, training_costs
from tmnmt.translator import Translator

TRANSLATIONS = "translations"  # the folder for them in a run's folder

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoadedTest:
    """A test set as it was read: which of so many lines of plain files are its segments."""

    test: TestSet
    numbers: Sequence[int]
    lines: int
    reference: Path  # the file that a hypothesis is compared with


def _check_documents(segments: Sequence[Segment], config: TestConfig) -> None:
    """Raises DataError where a document begins a second time."""
    blocks = [document for document, _ in groupby(segment.document for segment in segments)]
    repeated = next((document for document, times in Counter(blocks).items() if times > 1), None)
    if repeated is not None:
        location = f"test {config.name!r}: {', '.join(config.files)}"
        raise DataError(
            f"{location}: document {repeated!r} begins twice: two of one id, or segments out of "
            "order"
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
        samples = [
            random.Random(f"{self.seed} {query}").sample(self.segments, size) for query in queries
        ]
        return [
            [_scored(match_tokens(query), segment) for segment in segments]
            for query, segments in zip(queries, samples, strict=True)
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
    translations: dict[Path, TranslationCache] = field(default_factory=dict)
    # by model: what its training log says of every part
    training_costs: dict[str, dict[str | None, TrainingCost]] = field(default_factory=dict)
    # by model: the long targets of what it has learned from, where the recipe names that
    training_targets: dict[str, set[int]] = field(default_factory=dict)
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
            return self._write_report(measured, start, sha256)

    def _keep_others_out(self, stack: ExitStack) -> None:
        """Holds the folder while this runs: two runs in it would write the same
        translations twice."""
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{self.out}: cannot be written: {error.strerror or error}") from error
        stack.enter_context(writing(self.out, 0))

    def _write_report(
        self, measured: Sequence[Measured], start: float, sha256: str | None
    ) -> dict[str, Any]:
        try:
            return write_report(
                self.out, self.recipe.name, self.recipe.description, measured, start, sha256
            )
        except FormatError as error:
            error.add_note(GOES_ON)
            raise

    def _read(self, config: TestConfig) -> LoadedTest:
        recipe = self.recipe
        languages = recipe.src_lang, recipe.tgt_lang
        if config.src:
            references = [Path(path) for path in config.references]
            test, numbers, lines = read_test(config.name, languages, references, Path(config.src))
            return LoadedTest(test, numbers, lines, references[0])
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
            warnings=[f"{quantity(skipped, 'unit')} of the files skipped: {reader.report}"]
            if skipped
            else [],
        )
        return LoadedTest(test, range(len(segments)), len(segments), Path(config.files[0]))

    def _load_models(self) -> None:
        """Loads the models that are used, and checks every system's settings before anything takes
        time."""
        for system in self.recipe.system:
            if not system.model:
                continue
            if system.model not in self.models:
                languages = self.recipe.src_lang, self.recipe.tgt_lang
                path = Path(self.recipe.path_of("model", system.model))
                model = load_model(with_languages(path, *languages))
                self.models[system.model] = model, load_layers(model, "cpu")
            if system.model not in self.training_costs:
                folder = self.models[system.model][0].folder
                self.training_costs[system.model] = training_costs(folder)
            model, memories = self.models[system.model]
            try:
                check(settings_of(system, memories), memories, model)
            except UsageError as error:
                raise UsageError(f"system {system.name!r}: {error}") from error

    def _open_memories(self, stack: ExitStack) -> None:
        recipe = self.recipe
        names = {test.memory for test in recipe.test} | {
            name for s in recipe.system for name in s.memories
        }
        for name in sorted(names - {OWN_MEMORY, ""}):
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
            self.training_targets[model.name] = targets

    def _look_up(self, config: TestConfig, test_set: LoadedTest) -> LoadedTest:
        """The test set with its best matches. Raises DataError where references are in a memory and
        may not be."""
        test, warnings = test_set.test, list(test_set.test.warnings)
        for name, memory in self.memories.items():
            warnings += leak_warnings(test, name, memory, self.recipe.allow_leaks, self.allowing)
        warnings += [
            f"{name} left out: it reads the test set's memory, and there is none"
            for name in self._bare(config)
        ]
        test_memory = self.memories.get(config.memory)
        best = best_matches(test_memory.index, test.sources) if test_memory else None
        known_targets = {f"memory {name}": memory.targets for name, memory in self.memories.items()}
        known_targets |= {
            f"training of {name}": targets for name, targets in self.training_targets.items()
        }
        test = replace(
            test,
            best=best,
            pairs=test_memory.pairs if test_memory else (),
            warnings=warnings,
            leaks=near_leaks(
                test.references,
                known_targets,
                [name for name in self.models if name not in self.training_targets],
            ),
        )
        return replace(test_set, test=test)

    def _bare(self, config: TestConfig) -> list[str]:
        """The systems that a test set is meant for and has no memory for."""
        candidates = [
            system
            for system in self.recipe.system
            if not system.tests or config.name in system.tests
        ]
        return [
            system.name for system in candidates if system not in self.recipe.systems_for(config)
        ]

    def _jobs(self, config: TestConfig, test_set: LoadedTest) -> list[Job]:
        systems = self.recipe.systems_for(config)
        alone = next((system.name for system in systems if system.confirmed == "next"), None)
        if alone is not None and len(set(test_set.test.documents)) < 2:
            raise DataError(
                f"test {config.name!r}: one document, and system {alone!r} confirms the next one's"
            )
        return [Job(self, system, config, test_set) for system in systems]

    def _translate(self, jobs: Sequence[Job]) -> None:
        """Every system on every test set, under one progress."""
        for job in jobs:
            if job.system.hypothesis:
                job.output()  # what is wrong with a file is said before hours are spent
        decoded = [
            candidate
            for job in jobs
            for candidate in (job.source_job, job)
            if candidate is not None and candidate.translations is not None
        ]
        missing = sum(file.missing for file in self.translations.values())
        with Progress("translating", "segments", missing, lazy=not missing) as progress:
            for job in decoded:
                if job.translations is not None and job.translations.missing:
                    job.translations.fill(
                        job.translator(), job.system.explain, progress, job.confirmed()
                    )
                    cost = job.translations.cost()
                    log.info(
                        "%s: %s: %s words/s",
                        job.test_set.test.name,
                        job.system.name,
                        cost["words_per_second"],
                    )

    def _measure(
        self, reads: Sequence[LoadedTest], outputs: Sequence[list[Output]]
    ) -> list[Measured]:
        recipe = self.recipe
        scored = [
            score_all(
                recipe.measure,
                test_set.test.sources,
                test_set.test.references,
                [output.lines for output in of_test],
                self.out,
            )
            for test_set, of_test in zip(reads, outputs, strict=True)
        ]
        total = sum(len(test_set.test) for test_set in reads) * len(metrics(recipe.tgt_lang))
        with Progress("measuring", "segments", total) as progress:
            return [
                Measured(
                    replace(
                        test.test,
                        warnings=[*test.test.warnings, *output_warnings(of_test), *absent],
                    ),
                    of_test,
                    recipe.baseline,
                    recipe.weights,
                    lambda n, _: progress.advance(n),
                    learned_measures,
                )
                for test, of_test, (learned_measures, absent) in zip(
                    reads, outputs, scored, strict=True
                )
            ]


@dataclass
class Job:
    """One system on one test set."""

    run: Run
    system: SystemConfig
    config: TestConfig
    test_set: LoadedTest

    @cached_property
    def memory_names(self) -> list[str]:
        return [self.config.memory if name == OWN_MEMORY else name for name in self.system.memories]

    @cached_property
    def source_job(self) -> Job | None:
        """Whose translations are confirmed in this one: the same system that remembers its own
        words, or, without a cache, nothing; None: none's, or the references are."""
        if self.system.confirmed != "next":
            return None
        remember: Remember = "own" if caches(self.system) else "nothing"
        options = replace(self.system.options, remember=remember, confirm_to="both")
        return replace(self, system=replace(self.system, options=options, confirmed="references"))

    @cached_property
    def translations(self) -> TranslationCache | None:
        """Where a model's translations are kept, by all that they depend on; None for what needs no
        model."""
        if not self.system.model:
            return None
        model, layers = self.run.models[self.system.model]
        test, system = self.test_set.test, self.system
        settings = self._settings
        parameters = (
            layers.digest(self._engine.mode, settings["cache"] > 0) if layers is not None else ""
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
        if self.source_job is not None and self.source_job.translations is not None:
            settings["confirmed"] = digest(WRITES, self.source_job.translations.path.stem)
        elif confirms(system):
            settings["confirmed"] = digest(WRITES, test.references[0])
        stem = digest(
            model.hash, parameters, memories, system.pairs, system.explain, settings, parts
        )
        path = self.run.out / TRANSLATIONS / f"{stem}.jsonl"
        if path not in self.run.translations:
            self.run.translations[path] = TranslationCache(path, parts)
        return self.run.translations[path]

    def translator(self) -> Translator:
        """The system at work."""
        model, parameters = self.run.models[self.system.model]
        memories = [self.run.memories[name] for name in self.memory_names]
        indexes: list[Index] = [memory.index for memory in memories]
        if self.system.pairs == "random":
            indexes = [RandomPairs([segment for memory in memories for segment in memory.segments])]
        return Translator(model, parameters, indexes, self._engine, reaches=self._reaches)

    def confirmed(self) -> list[list[Pair | None]] | None:
        """What is confirmed after every segment of every unit; None where nothing is."""
        if self.translations is None or not confirms(self.system):
            return None
        if self.source_job is None or self.source_job.translations is None:
            return confirmed_by(
                self.translations.units, iter(self.test_set.test.references[0]), elsewhere=False
            )
        targets = (record["tgt"] for record in self.source_job.translations.records())
        return confirmed_by(self.translations.units, targets, elsewhere=True)

    def output(self) -> Output:
        """What the system wrote, translated before."""
        system, test_set = self.system, self.test_set
        if system.hypothesis:
            return read_output(
                system.name,
                Path(system.hypothesis),
                test_set.lines,
                test_set.numbers,
                test_set.reference,
            )
        if self.translations is None:
            return Output(
                system.name,
                self._pasted(),
                {"paste": "the best match's target, at any score", **self._memories},
            )
        lines = [record["tgt"] for record in self.translations.records()]
        settings = {name: str(value) for name, value in self._settings.items()}
        settings |= {
            "model": self.run.models[system.model][0].hash,
            "pairs": system.pairs,
            **self._memories,
        }
        if confirms(system):
            settings |= {"confirmed": system.confirmed}
        settings |= {"translations": self.translations.path.name}
        return Output(system.name, lines, settings, self._records(), system.explain, self._cost)

    @property
    def _cost(self) -> dict[str, float | int | None] | None:
        """Of translating, and of the model; None for what needs no model."""
        if self.translations is None:
            return None
        model, layers = self.run.models[self.system.model]
        costs = self.run.training_costs[self.system.model]
        return (
            self.translations.cost()
            | {"parameters": parameters_read(model, layers, self._engine)}
            | training_read(costs, self._engine)
        )

    @property
    def _engine(self) -> Settings:
        model, layers = self.run.models[self.system.model]
        settings = settings_of(self.system, layers)
        if self.system.pairs == "random":
            return settings
        indexes = [self.run.memories[name].index for name in self.memory_names]
        return calibrated(settings, self.system.options, indexes, model)

    @property
    def _settings(self) -> dict[str, Any]:
        """What the engine is told, and what it takes where it is told nothing; of a file what it
        holds, wherever it lies."""
        engine, layers = self._engine, self.run.models[self.system.model][1]
        if (
            engine.cache
            and engine.cache_overwrite is None
            and layers is not None
            and layers.cache is not None
        ):
            engine = replace(engine, cache_overwrite=layers.cache.kind.overwrite)
        settings = {name: value for name, value in asdict(engine).items() if value is not None}
        backbone = self.run.models[self.system.model][0].backbone
        if not (backbone.previous or backbone.reads_around):
            del settings["context"]  # nothing depends on it
        if engine.mode == "nearest":
            settings["reach"] = self._reaches.by_source
        for name in ("knn_adaptive", "prompt"):
            if path := settings.get(name):
                settings[name] = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
        of_addresses = {option.name for option in options_of(HostedBase)}
        for name in REQUESTING if backbone.modes else of_addresses:
            settings.pop(name, None)
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
        name, test = self.memory_names[0], self.test_set.test
        best = test.best if name == self.config.memory else None
        matches = (
            best if best is not None else best_matches(self.run.memories[name].index, test.sources)
        )
        return [match.segment.tgt if match is not None else "" for match in matches]

    def _records(self) -> Any:
        return (
            self.translations.records
            if self.translations and (self.system.options.mode != "off" or self.system.explain)
            else None
        )

    @property
    def _memories(self) -> dict[str, str]:
        return {"memories": ", ".join(self.memory_names)}


def settings_of(system: SystemConfig, layers: MemoryLayers | None) -> Settings:
    """What the engine is told. Random pairs are read whatever their score."""
    options = system.options
    if system.pairs == "random":
        options = replace(options, threshold=0.0, short_threshold=0.0)
    return settled(options, layers, "off")
