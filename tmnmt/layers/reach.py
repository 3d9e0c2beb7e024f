"""How far and how sharply the nearest positions are read: numbers of each source of positions, and
the file beside an index that keeps what calibration has chosen.

    INDEX/keys/<states hash>.reach.json

The numbers belong to one memory and to all that hidden states depend on, as keys do: the model, and
whether its products are in int8 (`Model.states_hash`). They are left unread where the memory has
grown to twice what it was, or shrunk to half of it; standard numbers hold then."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from tmnmt.durable import make_folder, write
from tmnmt.errors import DataError, MemoryIndexError
from tmnmt.index.base import FolderIndex, Index, has_folder
from tmnmt.index.embedded.manifest import KEYS_DIR
from tmnmt.index.embedded.small_json import is_count, is_text, read_small

SUFFIX = ".reach.json"
FORMAT = 3
FORMER = 1, 2  # whose numbers were chosen for another way to read positions
MOST_BYTES = 1 << 14
COUNTS = "memory", "segments", "subwords"
FIGURES = {"loss": math.inf, "bleu": 100.0, "chrf": 100.0, "above": 1.0}  # of a trial, at most
GROWTH = 2.0  # a memory that has changed its size by this factor is another one
LARGEST = 4.0  # of a distance, hence of tau
MOST_NEIGHBOURS = 1000  # of a word, as the option has it
LEAST_SCORE = 1e-6  # of a pair that has nothing in common with the text

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reach:
    """How the positions of one source are read: `tau` the distance beyond which nothing is copied,
    `temperature` T; `penalty` of a position whose word was copied already; `doubt` g of one whose
    word the model finds less likely now than at the position."""

    tau: float
    temperature: float
    penalty: float = 0.0
    doubt: float = 0.0

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """tau, T, the penalty and the doubt."""
        return self.tau, self.temperature, self.penalty, self.doubt

    def of_pair(self, score: float) -> Reach:
        """The same numbers for distances that are not divided yet by the fuzzy score of their pair.

        score: the fuzzy score of the pair, from 0 to 1."""
        score = max(score, LEAST_SCORE)
        return Reach(*(score * number for number in self.numbers))


@dataclass(frozen=True)
class Reaches:
    """The numbers of every source of positions: the pairs of a memory that are like a text, whose
    distances are divided by their fuzzy score; what was confirmed earlier in the document; and
    pairs that only share phrases with a text."""

    pairs: Reach = Reach(tau=0.8, temperature=0.1, doubt=0.1)
    session: Reach = Reach(tau=0.8, temperature=0.1)
    fragments: Reach = Reach(tau=0.4, temperature=0.1)

    def of_sentence(self, scores: Sequence[float], fragments: int = 0) -> SentenceReach:
        """How a sentence reads its matches, then fragments, and its session.

        scores: the fuzzy score of every match, from 0 to 1.
        fragments: how many fragments there are."""
        matches = map(self.pairs.of_pair, scores)
        return SentenceReach((*matches, *[self.fragments] * fragments), self.session)

    @property
    def by_source(self) -> dict[str, tuple[float, float, float, float]]:
        """tau, T, the penalty and the doubt of every source, by its name."""
        return {source.name: getattr(self, source.name).numbers for source in fields(self)}


STANDARD = Reaches()


class SentenceReach(NamedTuple):
    """How one sentence reads each of its pairs, in their order, and its session."""

    pairs: tuple[Reach, ...]
    session: Reach


@dataclass(frozen=True)
class Trial:
    """What numbers did on segments that were held out."""

    reaches: Reaches
    loss: float  # nats a subword of the references, beside what was confirmed before
    bleu: float  # of the translations
    chrf: float  # chrF2++
    # share of the resamples in which chrf is above that of the standard numbers; with neighbours,
    # above that of the same numbers without them
    above: float
    neighbours: int = 0  # that were read of a word of a draft


@dataclass(frozen=True)
class Calibration:
    """What was chosen for one model and one memory, and by what."""

    model: str  # its `states_hash`
    memory: int  # segments of the memory
    segments: int  # of these, segments that were held out, and scored
    subwords: int  # of their references
    model_loss: float  # nats a subword of the references, by the model alone
    trials: Sequence[Trial]  # of the standard numbers, and of others
    reaches: Reaches  # those chosen
    neighbours: int = 0  # those chosen, of a word of a draft; 0: none are read

    def record(self) -> dict[str, Any]:
        """The same for JSON."""
        return asdict(self)


def reach_file(index_dir: Path, model: str) -> Path:
    """Where an index keeps the numbers of a model.

    index_dir: the folder of the index.
    model: the `states_hash` of the model."""
    return index_dir / KEYS_DIR / f"{model}{SUFFIX}"


def save_calibration(index_dir: Path, calibration: Calibration) -> Path:
    """Writes numbers beside the index, as a whole or not at all, in the place of former ones, and
    returns the file.

    index_dir: the folder of the index.
    calibration: the numbers.

    Raises MemoryIndexError where nothing can be written there."""
    path = reach_file(index_dir, calibration.model)
    content = json.dumps({"format": FORMAT, **calibration.record()}, indent=1) + "\n"
    try:
        make_folder(path.parent)
        write(path, content.encode())
    except OSError as error:
        raise MemoryIndexError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def load_calibration(index_dir: Path, model: str, warns: bool = True) -> Calibration | None:
    """The numbers that an index keeps for a model; None where it keeps none, and where a former
    version has chosen them, which a logged warning says.

    index_dir: the folder of the index.
    model: the `states_hash` of the model.
    warns: whether that is logged.

    Raises DataError where they are damaged."""
    path = reach_file(index_dir, model)
    if not path.exists():
        return None
    try:
        content = read_small(path, MOST_BYTES)[1]
        if isinstance(content, dict) and content.get("format") in FORMER:
            if warns:
                log.warning(
                    "%s: was chosen by a former version, which read positions in another way; "
                    "standard numbers hold. Run tmnmt calibrate again",
                    path,
                )
            return None
        return _calibration(content, model)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: no numbers of tmnmt calibrate: {error}; delete the file, or calibrate again"
        ) from error


def reaches_of(indexes: Sequence[Index], model: str) -> Reaches:
    """The numbers by which positions of some memories are read: those of the largest memory that
    was calibrated for the model, else the standard ones. A logged warning says where a memory has
    changed so much that its numbers are not read any more, or has those of other models or products
    only.

    indexes: the memories.
    model: the `states_hash` of the model.

    Raises DataError where a file of numbers is damaged."""
    for index in filter(has_folder, indexes):
        calibration = load_calibration(index.folder, model)
        if calibration is None:
            _warn_of_others(index.folder, model)
        elif not _fits(calibration, index):
            log.warning(
                "%s: was calibrated with %d segments and has %d now; run tmnmt calibrate again",
                index.folder,
                calibration.memory,
                len(index),
            )
    calibration = calibration_of(indexes, model)
    return calibration.reaches if calibration is not None else STANDARD


def neighbours_of(indexes: Sequence[Index], model: str) -> int:
    """How many positions of the whole memory are read at a word of a draft, as the largest memory
    that was calibrated for the model has it; 0 for none. All memories need keys of the model: a
    logged warning names one that has none.

    indexes: the memories.
    model: the `states_hash` of the model.

    Raises DataError where a file of numbers is damaged."""
    calibration = calibration_of(indexes, model)
    if calibration is None or not calibration.neighbours:
        return 0
    from tmnmt.keys.files import models_of  # which needs torch

    for index in indexes:
        if not has_folder(index) or model not in models_of(index.folder):
            log.warning(
                "%s: has no keys of model %s, so the neighbours that tmnmt calibrate has chosen "
                "are not read; run tmnmt keys, or give --neighbours 0",
                index.folder if has_folder(index) else "a memory",
                model,
            )
            return 0
    return calibration.neighbours


def calibration_of(indexes: Sequence[Index], model: str) -> Calibration | None:
    """What was chosen for the largest of some memories, of those that were calibrated for the model
    and are still about as large as they were; None where there is none.

    indexes: the memories.
    model: the `states_hash` of the model.

    Raises DataError where a file of numbers is damaged."""
    calibrations = [
        calibration
        for index in filter(has_folder, indexes)
        if (calibration := load_calibration(index.folder, model, warns=False)) is not None
        and _fits(calibration, index)
    ]
    return max(calibrations, key=lambda calibration: calibration.memory, default=None)


def _fits(calibration: Calibration, index: FolderIndex) -> bool:
    """Whether the memory is still about as large as it was."""
    return calibration.memory / GROWTH < len(index) < calibration.memory * GROWTH


def _warn_of_others(index_dir: Path, model: str) -> None:
    paths = {*(index_dir / KEYS_DIR).glob(f"*{SUFFIX}")} - {reach_file(index_dir, model)}
    file_names = sorted(path.name for path in paths)
    if file_names:
        log.warning(
            "%s: is calibrated for model %s, not for %s; standard numbers hold. Run tmnmt "
            "calibrate with this model and --precision",
            index_dir,
            file_names[0].removesuffix(SUFFIX),
            model,
        )


def _calibration(content: Any, model: str) -> Calibration:
    """What `Calibration.record` gave. Raises ValueError for anything else."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"this version reads format {FORMAT}")
    if not is_text(content.get("model")) or content["model"] != model:
        raise ValueError("they are of another model")
    counts: list[Any] = [content.get(name) for name in COUNTS]
    trials = content.get("trials")
    if not all(map(is_count, counts)) or not isinstance(trials, list):
        raise ValueError("a count or a trial is missing")
    memory, segments, subwords = counts
    return Calibration(
        model,
        memory,
        segments,
        subwords,
        _number(content.get("model_loss"), math.inf),
        [*map(_trial, trials)],
        _reaches(content.get("reaches")),
        _neighbours(content),
    )


def _trial(content: Any) -> Trial:
    if not isinstance(content, dict):
        raise ValueError("a trial is missing")
    figures = (_number(content.get(name), maximum) for name, maximum in FIGURES.items())
    loss, bleu, chrf, above = figures
    return Trial(_reaches(content.get("reaches")), loss, bleu, chrf, above, _neighbours(content))


def _neighbours(content: dict[str, Any]) -> int:
    """How many are read; none where a former version has not tried any."""
    count = content.get("neighbours", 0)
    if not is_count(count) or count > MOST_NEIGHBOURS:
        raise ValueError(f"{count!r} neighbours are no number from 0 to {MOST_NEIGHBOURS:,}")
    return int(count)


def _reaches(content: Any) -> Reaches:
    if not isinstance(content, dict):
        raise ValueError("the numbers are missing")
    names = [source.name for source in fields(Reaches) if source.name in content]
    return Reaches(**{name: _reach(content[name]) for name in names})


def _reach(content: Any) -> Reach:
    if not isinstance(content, dict):
        raise ValueError("the numbers of a source are missing")
    tau, temperature = (_number(content.get(name), LARGEST) for name in ("tau", "temperature"))
    penalty, doubt = (_number(content.get(name, 0.0), LARGEST) for name in ("penalty", "doubt"))
    if not tau or not temperature:
        raise ValueError("tau and the temperature must be above 0")
    return Reach(tau, temperature, penalty, doubt)


def _number(value: Any, maximum: float) -> float:
    """A finite number from 0 to `maximum`. Raises ValueError for anything else."""
    if type(value) not in (int, float) or not math.isfinite(value) or not 0 <= value <= maximum:
        raise ValueError(f"{value!r} is no number from 0 to {maximum:g}")
    return float(value)
