"""`tmnmt start`: from the files of a memory to what a model makes of it, in one folder.

    start.json   what the folder was begun with
    split        a sample that is kept out, the rest, and an index of the rest
    base         the model, where it was fetched or imported for this
    measured     what the base makes of the sample, alone and with the rest as its memory
    index        an index of all
    faults.json  how many segments have each kind of fault

Every step is a single command of its own: `evaluate prepare --keep-index`, `get-model` or
`import-model`, `calibrate`, `evaluate run`, `build-index`, `memory clean`. A step that is there
whole is not made again, so an interrupted start goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tmnmt.durable import make_folder, write
from tmnmt.engine.loading import languages_of, load_layers
from tmnmt.engine.settings import default_mode, served_modes
from tmnmt.errors import DataError, UsageError
from tmnmt.eval.calibrate import calibrate
from tmnmt.eval.data.prepare import INDEX, MANIFEST_FILE, SAME_SOURCE, Settings, prepare
from tmnmt.eval.faults import faults_in_numbers
from tmnmt.eval.measures.slices import HALVES, MIDDLE
from tmnmt.eval.measures.verdict import differs
from tmnmt.eval.recipe import OWN_MEMORY, NamedPath, Recipe, SystemConfig, TestConfig
from tmnmt.eval.report.html import write_report as write_page
from tmnmt.eval.report.write import SEGMENTS
from tmnmt.eval.run import Run
from tmnmt.eval.standard_recipe import BASE, CONFIRMED, PASTED, TM, standard_recipe
from tmnmt.formats import Columns, Report
from tmnmt.formats.moses import moses_pair
from tmnmt.index import MemoryIndex
from tmnmt.index.embedded.manifest import MANIFEST_FILE as INDEX_MANIFEST
from tmnmt.index.from_files import build_from_files
from tmnmt.layers.reach import Calibration, load_calibration, save_calibration
from tmnmt.model_import.marian import import_marian
from tmnmt.models.addresses import is_address, with_languages
from tmnmt.models.folder import Model, load_model
from tmnmt.models.foreign import is_model_folder
from tmnmt.progress import Progress
from tmnmt.quantities import quantity

FORMAT = 1
START_FILE, SPLIT, BASE_FOLDER, MEASURED, INDEX_FOLDER = (
    "start.json",
    "split",
    "base",
    "measured",
    "index",
)
FAULTS = "faults.json"
FEWEST = 50  # segments of a sample below which figures say hardly anything
EXAMPLES = 5
METRICS = ("BLEU", "chrF2++")
# what the report calls the systems, and what they are called to a person
SYSTEMS = {BASE: "base", PASTED: "pasted", TM: "with memory", CONFIRMED: "confirmed"}
POOR = 15.0  # BLEU below which a base hardly knows the texts


@dataclass(frozen=True)
class StartRecord:
    """What a folder was begun with: a start with anything else needs another folder."""

    files: tuple[tuple[str, str], ...]  # name and sha256
    src_lang: str
    tgt_lang: str
    columns: str
    sample: int


@dataclass(frozen=True)
class Place:
    """The folder of a start."""

    folder: Path

    @property
    def split(self) -> Path:
        return self.folder / SPLIT

    @property
    def base(self) -> Path:
        return self.folder / BASE_FOLDER

    @property
    def measured(self) -> Path:
        return self.folder / MEASURED

    @property
    def index(self) -> Path:
        return self.folder / INDEX_FOLDER

    def begin(self, state: StartRecord) -> None:
        """Makes the folder, or goes on with it. Raises UsageError where something else is there."""
        record = {"format": FORMAT, **json.loads(json.dumps(asdict(state)))}
        path = self.folder / START_FILE
        if not path.exists():
            if self.folder.exists() and any(self.folder.iterdir()):
                raise UsageError(f"{self.folder}: is no folder of a start; name a new one")
            make_folder(self.folder)
            write(path, json.dumps(record, ensure_ascii=False).encode())
            return
        had = json.loads(path.read_text(encoding="utf-8"))
        changed = [name for name, value in record.items() if had.get(name) != value]
        if changed:
            raise UsageError(
                f"{self.folder}: was begun with other {' and '.join(changed)}; name a new folder"
            )


def begun_with(
    paths: Sequence[Path], src_lang: str, tgt_lang: str, columns: str, sample: int
) -> StartRecord:
    """What a start with these files is. Two plain files of a PREFIX go by its name alone. Raises
    DataError where a file is not there."""
    for path in paths:
        if not path.exists() and moses_pair(path, src_lang, tgt_lang) is None:
            raise DataError(f"{path}: no such file")
    files = tuple((str(path), _sha256(path) if path.is_file() else "") for path in paths)
    return StartRecord(files, src_lang, tgt_lang, columns, sample)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def keep_sample(
    place: Place,
    paths: Sequence[Path],
    languages: tuple[str, str],
    segments: int,
    columns: Columns | None,
) -> tuple[dict[str, Any], Report | None]:
    """Keeps a sample out of the memory and indexes the rest; the manifest of that, and the report
    of the reading, which is None where it was there already. Errors as `prepare`."""
    path = place.split / MANIFEST_FILE
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8")), None
    settings = Settings(segments=segments, lenient=True)
    return prepare(
        paths,
        *languages,
        place.split,
        settings,
        columns,
        keep_index=True,
        look_for_faults=False,  # later, in all of the memory
    )


def sample_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What was kept out, as it is told."""
    split, memory = manifest["split"]["test"], manifest["memory"]
    return {
        "segments": split["segments"],
        "documents": split["documents"],
        "stretch": manifest["stretch"],
        "rest": memory["kept"],
        "same_source_dropped": memory["dropped"][SAME_SOURCE],
    }


def base_folder(place: Place, source: Path | None, languages: tuple[str, str]) -> Path | None:
    """The folder of the model: `source`, which is imported where it is one of Marian, else what a
    former start has put into the place; None where there is none. Raises ModelError for what is no
    model, UsageError for one of other languages. A base behind an address gets these languages."""
    if source is None and not place.base.exists():
        return None
    if source is not None and is_address(source):
        return with_languages(source, *languages)
    folder = source if source is not None and is_model_folder(source) else place.base
    if source is not None and not folder.exists():
        import_marian(source, folder, *languages)
    languages_of(load_model(folder), *languages)
    return folder


def calibrate_base(place: Place, base: Path) -> Calibration | None:
    """How this base is to read the nearest positions of the memory, chosen once on the rest of it;
    None where the memory is too small for that, or the base has layers that read it."""
    model = load_model(base)
    layers = load_layers(model, "cpu")
    if default_mode(layers, model) != "nearest":
        return None
    index_folder = place.split / INDEX
    if (calibration := load_calibration(index_folder, model.states_hash)) is not None:
        return calibration
    with MemoryIndex.open(index_folder) as index:
        try:
            calibration = calibrate(model, layers, index)
        except DataError:
            return None
    save_calibration(index_folder, calibration)
    return calibration


def measure(place: Place, base: Path | None, languages: tuple[str, str]) -> dict[str, Any]:
    """Translates the sample with every system that there is, measures them, and writes the report
    into the place. Gives the report's part on the sample."""
    test, memory = place.split / "test.tsv.gz", place.split / INDEX
    if base is None:
        run = Run(_pasted_alone(test, memory, languages), place.measured)
    else:
        model = load_model(base)
        languages_of(model, *languages)
        run = _run(place, model, test, memory, languages)
    report = run(None)
    write_page(place.measured)
    return dict(report["tests"][0])


def _run(place: Place, model: Model, test: Path, memory: Path, languages: tuple[str, str]) -> Run:
    layers = load_layers(model, "cpu")
    recipe = standard_recipe(
        model.folder,
        str(memory),
        [test],
        languages,
        served_modes(layers, model),
        layers is not None and layers.cache is not None,
        allow_leaks=True,
    )
    return Run(recipe, place.measured, models={recipe.name: (model, layers)})


def _pasted_alone(test: Path, memory: Path, languages: tuple[str, str]) -> Recipe:
    """Where there is no model: the best match's target."""
    return Recipe(
        name="memory",
        description=f"The best match of {memory}, without a model.",
        test=(TestConfig(name=test.name, files=(str(test),), memory=memory.name),),
        system=(SystemConfig(PASTED, paste=True, memories=(OWN_MEMORY,)),),
        baseline=PASTED,
        src_lang=languages[0],
        tgt_lang=languages[1],
        memory=(NamedPath(memory.name, str(memory)),),
        allow_leaks=True,
    )


def index_all(
    place: Place,
    paths: Sequence[Path],
    languages: tuple[str, str],
    columns: Columns | None,
    calibration: Calibration | None,
) -> None:
    """The index of all of the memory, where it is not there yet, with what was calibrated on the
    rest."""
    if not (place.index / INDEX_MANIFEST).exists():
        with Progress("indexing all", "units") as progress:
            build_from_files(
                place.index, paths, *languages, columns=columns, progress=progress.advance
            )
    if calibration is not None:
        save_calibration(place.index, calibration)


def faults_of(place: Place, base: Path | None) -> dict[str, Any]:
    """What is to be looked at in all of the memory: `counts` of every kind of fault that there is,
    and, where there is a base, `asked`, of how many segments it was asked whether source and target
    belong together."""
    path = place.folder / FAULTS
    cached = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    model = load_model(base) if base is not None else None
    digest = model.states_hash if model is not None else None
    if cached.get("model", "") == digest and "counts" in cached:
        return {name: cached[name] for name in ("counts", "asked")}
    with MemoryIndex.open(place.index) as index:
        faults = faults_in_numbers(index, model)
    write(path, json.dumps({**faults, "model": digest}).encode())
    return faults


def figures(test: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """BLEU and chrF2++ of every system."""
    return {
        SYSTEMS[system["name"]]: {
            name: round(system["metrics"][name]["score"], 1) for name in METRICS
        }
        for system in test["systems"]
        if system["name"] in SYSTEMS
    }


def examples(place: Place) -> list[dict[str, Any]]:
    """Five segments of the sample: source, what the base makes of it alone and with the memory, and
    the reference. They are evenly spread over those with a similar segment in the memory, and those
    without; which they are does not depend on how good they came out."""
    with (place.measured / SEGMENTS).open(encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    lines = [line for line in lines if 4 <= len(line["src"].split()) <= 30] or lines
    similar = [line for line in lines if line["best"] and MIDDLE <= line["best"]["score"] < 1]
    rest = [line for line in lines if line not in similar]
    count = min(3, len(similar))
    selection = [*_spread(similar, count), *_spread(rest, EXAMPLES - count)]
    return [
        {
            "src": line["src"],
            **{
                SYSTEMS[name]: system["hyp"]
                for name, system in line["systems"].items()
                if name in (BASE, TM, PASTED) and (name != PASTED or BASE not in line["systems"])
            },
            "reference": line["ref"],
            "match": line["best"]["score"] if line["best"] else 0.0,
        }
        for line in selection
    ]


def _spread(lines: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    count = min(count, len(lines))
    return [lines[(2 * index + 1) * len(lines) // (2 * count)] for index in range(count)]


def verdict(test: Mapping[str, Any]) -> list[str]:
    """What the figures say, in sentences."""
    sentences = _on_memory(test)
    if test["segments"] < FEWEST:
        size = quantity(test["segments"], "segment")
        sentences.append(f"{size} say hardly anything: differences may be chance.")
    scores = figures(test)
    if "base" not in scores:
        return sentences
    base, pasted, memory = (scores[name]["BLEU"] for name in ("base", "pasted", "with memory"))
    gain = memory - base
    sure = _is_sure(test, TM)
    if gain > 0 and sure:
        sentences.append(f"The memory helps the base: {gain:+.1f} BLEU, which is more than chance.")
    elif gain < 0 and sure:
        sentences.append(
            f"The memory harms the base: {gain:+.1f} BLEU. Look at its pairs: tmnmt memory clean."
        )
    else:
        sentences.append(f"With the memory BLEU changes by {gain:+.1f}, which may be chance.")
    if pasted > max(base, memory):
        sentences.append(
            "The best match as it stands scores more than any translation: these texts repeat "
            "themselves, and the base does not know them well."
        )
    elif max(base, memory) < POOR:
        sentences.append(
            "The base hardly knows such texts. Read the five sentences before you use it."
        )
    if "confirmed" in scores and (extra := scores["confirmed"]["BLEU"] - memory) > 0:
        chance = "" if _is_sure(test, CONFIRMED) else ", perhaps by chance"
        sentences.append(
            f"Each confirmed segment helps the next ones: {extra:+.1f} BLEU more{chance}."
        )
    return sentences


def _on_memory(test: Mapping[str, Any]) -> list[str]:
    """How much of the sample the memory has something like."""
    total = max(test["distinct"], 1)
    similar = sum(half["segments"] for half in test["halves"] if half["band"] == HALVES[1])
    return [
        f"For {similar / total:.0%} of the sample's segments the rest of the memory has a similar "
        f"one, with a fuzzy score of {MIDDLE:g} or more."
    ]


def _is_sure(test: Mapping[str, Any], name: str) -> bool:
    """Whether a system's BLEU differs from the base's by more than chance."""
    system = next(system for system in test["systems"] if system["name"] == name)
    return any(
        comparison["metric"] == "BLEU" and differs(comparison["test"], comparison["p_holm"])
        for comparison in system["versus"]
    )
