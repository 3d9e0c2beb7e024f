"""How to translate: every setting, and what is wrong with it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from tmnmt.errors import UsageError
from tmnmt.index.select import TOP, Selection
from tmnmt.layers.combine import Memories, Mode
from tmnmt.layers.knn import KNN, AdaptiveKNN
from tmnmt.models.folder import Model

LIMITS = {
    "top_k": (0, 1000),
    "beam": (1, 1000),
    "batch": (1, 10_000),
    "cache": (0, 100_000),
    "cache_best": (1, 1000),
    "threads": (1, 1024),
    "neighbours": (0, 1000),
}
# of a word in mode knn, where nothing is said; chosen on dev, as its w and T: docs/neighbours.md
NEIGHBOURS = 16
LARGEST_PENALTY = 10  # greater powers of a length leave the floating-point numbers

Precision = Literal["fp32", "bf16"]
# What a session learns from: what is confirmed; own: what the model itself says, too; or nothing
Remember = Literal["confirmed", "own", "nothing"]
ConfirmTo = Literal["both", "memory", "cache"]  # where what is confirmed goes


@dataclass(frozen=True)
class Settings:
    """How to translate. `mode` "off" and `cache` 0 are the plain model, bit for bit."""

    mode: Mode = "off"
    cache: int = 0  # slots of the session cache
    remember: Remember = "confirmed"  # the model's own words go into the cache alone
    confirm_to: ConfirmTo = "both"
    # a word that has a slot is averaged into it; False: it takes another (Tu et al., table 3);
    # None: as was learned
    overwrite: bool | None = None
    cache_best: int = 1  # hypotheses that are written to the cache, the beam's best (section 3.4)
    top_k: int = 4  # pairs retrieved for a sentence; 0: neighbours alone are read
    threshold: float = 0.5  # smallest fuzzy score of a pair, in [0, 1]
    beam: int = 5
    batch: int = 32  # sentences decoded together
    length_penalty: float = 1.0
    precision: Precision = (
        "fp32"  # of the base's products; "bf16" is faster on CPUs that have it, and not the same
    )
    selection: Selection = TOP  # which top_k of the best matches
    # a segment that the memory holds gets its translation there as it stands; `Translator.load`
    # turns it on
    verbatim: bool = False
    neighbours: int = 0  # keys of the whole memory that are read at every word
    knn_weight: float = 0.02  # of the neighbours' words in mode knn, in [0, 1)
    knn_temperature: float = 20.0  # of their squared distances
    knn_adaptive: str | None = (
        None  # a file of `tmnmt adapt-knn`, whose network stands in place of these two
    )

    @property
    def remembers(self) -> bool:
        """Whether what was translated is written to the session cache."""
        return self.cache > 0 and self.remember == "own"

    @property
    def caches(self) -> bool:
        """Whether what is confirmed is written to the session cache."""
        return self.cache > 0 and self.remember != "nothing" and self.confirm_to != "memory"

    @property
    def memorises(self) -> bool:
        """Whether what is confirmed is written to the memory."""
        return self.remember != "nothing" and self.confirm_to != "cache"

    @property
    def retrieves(self) -> bool:
        """Whether pairs are looked up for a sentence."""
        return self.mode not in ("off", "knn") and self.top_k > 0


def check_count(name: str, count: int) -> None:
    """Raises UsageError for what is no whole number within the limits of that setting."""
    smallest, largest = LIMITS[name]
    if type(count) is not int or not smallest <= count <= largest:
        name = name.replace("_", "-")
        raise UsageError(
            f"{name} is {count!r}; it must be a whole number, {smallest} to {largest:,}"
        )


def check(settings: Settings, memories: Memories | None, model: Model) -> None:
    """Raises UsageError for a setting that is wrong or that the model, which is named by its
    folder, cannot serve."""
    words = len(model.vocab)
    for name in ("top_k", "beam", "batch", "cache", "cache_best", "neighbours"):
        check_count(name, getattr(settings, name))
    check_remembering(settings)
    if settings.cache_best > settings.beam:
        raise UsageError(
            f"cache-best is {settings.cache_best}; a beam of {settings.beam} finds that many at "
            "most"
        )
    if not settings.remembers and settings.cache_best > 1:
        raise UsageError(
            "cache-best is of a session cache of the model's own words, and there is none: "
            "remember own"
        )
    if not settings.cache and settings.overwrite is not None:
        name = "cache-overwrite" if settings.overwrite else "no-cache-overwrite"
        raise UsageError(f"{name} is of a session cache, and there is none: give a cache")
    if 2 * settings.beam > words:
        raise UsageError(
            f"beam is {settings.beam}; with this model's {words:,} subwords it must be "
            f"{words // 2} at most"
        )
    for name, value, largest in (
        ("length-penalty", settings.length_penalty, LARGEST_PENALTY),
        ("the threshold", settings.threshold, 1),
    ):
        if not isinstance(value, float | int) or not 0 <= value <= largest:
            raise UsageError(f"{name} is {value!r}; it must be in [0, {largest}]")
    if settings.precision not in ("fp32", "bf16"):
        raise UsageError(f"precision {settings.precision} is unknown; allowed: fp32, bf16")
    check_neighbours(settings)
    knn_of(settings, model, "cpu")
    served = memories.modes if memories is not None else ("off", "knn")
    if settings.mode not in served:
        raise UsageError(
            f"{model.folder}: this model has no parameters for mode {settings.mode}; it serves "
            f"{', '.join(served)}"
        )
    if settings.cache and (memories is None or memories.cache is None):
        raise UsageError(
            f"{model.folder}: this model has no parameters for a session cache; use cache 0"
        )


def check_remembering(settings: Settings) -> None:
    """Raises UsageError where what is remembered, or where, is unknown, or leaves a cache empty
    that was asked for."""
    for name, value, allowed in (
        ("remember", settings.remember, get_args(Remember)),
        ("confirm-to", settings.confirm_to, get_args(ConfirmTo)),
    ):
        if value not in allowed:
            raise UsageError(f"{name} {value} is unknown; allowed: {', '.join(allowed)}")
    if (settings.remember, settings.confirm_to, settings.cache) == ("confirmed", "cache", 0):
        raise UsageError(
            "confirm-to is cache, and there is none: cache is 0, or the model has learned none"
        )
    if settings.cache and not settings.remembers and not settings.caches:
        why = "remember is nothing" if settings.remember == "nothing" else "confirm-to is memory"
        raise UsageError(
            f"cache is {settings.cache}, and {why}, so nothing is written to it; leave out the "
            "cache"
        )


def check_neighbours(settings: Settings) -> None:
    """Raises UsageError where the settings of neighbours are wrong, or do not go with the mode."""
    if settings.neighbours and settings.mode == "off":
        raise UsageError(
            "neighbours are read in the modes copy, fusion, both and knn; the mode is off"
        )
    if settings.mode == "knn" and not settings.neighbours:
        raise UsageError("mode knn needs neighbours, 1 or more")
    if not settings.top_k and not settings.neighbours:
        raise UsageError(
            "top-k is 0, so nothing is read of the memory; it must be at least 1 without neighbours"
        )
    if not isinstance(settings.knn_weight, float | int) or not 0 <= settings.knn_weight < 1:
        raise UsageError(f"knn-weight is {settings.knn_weight!r}; it must be in [0, 1), 1 excluded")
    if (
        not isinstance(settings.knn_temperature, float | int)
        or not 0 < settings.knn_temperature < math.inf
    ):
        raise UsageError(
            f"knn-temperature is {settings.knn_temperature!r}; it must be greater than 0 and finite"
        )


def knn_of(settings: Settings, model: Model, device: str) -> KNN | AdaptiveKNN | None:
    """How neighbours are mixed in; None in other modes than knn. Raises UsageError where an
    adaptive kNN is given and does not go with the other settings, ModelError where the file is none
    of this model."""
    if settings.knn_adaptive is None:
        return (
            KNN(settings.knn_weight, settings.knn_temperature) if settings.mode == "knn" else None
        )
    if settings.mode != "knn":
        raise UsageError(f"knn-adaptive is of mode knn, and the mode is {settings.mode}")
    if (settings.knn_weight, settings.knn_temperature) != (
        Settings.knn_weight,
        Settings.knn_temperature,
    ):
        raise UsageError(
            "knn-adaptive has weights and a temperature of its own: leave out knn-weight, "
            "knn-temperature"
        )
    knn = AdaptiveKNN.load(Path(settings.knn_adaptive), model.hash, device)
    if knn.k != settings.neighbours:
        raise UsageError(
            f"{settings.knn_adaptive}: was trained for {knn.k} neighbours, and they are set to "
            f"{settings.neighbours}"
        )
    return knn
