"""The options of a translation, settled for one model, and which of them do not go together."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Protocol

from tmnmt.codes.placeholders import Finder, by_pattern
from tmnmt.config.options import (
    Mode,
    ModelOptions,
    Penalties,
    Selection,
)
from tmnmt.errors import UsageError
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.neighbours import Voting
from tmnmt.models.folder import Model
from tmnmt.models.shortlist import Shortlist
from tmnmt.models.student import Student
from tmnmt.registry import Registry

# of a word in mode knn, where nothing is said; chosen on dev: docs/results-neighbours.md
NEIGHBOURS = 16
UNTRAINED: tuple[Mode, ...] = ("nearest", "knn", "off")  # modes that every model serves


@dataclass(frozen=True)
class Settings(ModelOptions):
    """The options of a model and of what it reads, in which nothing is left open. With `mode` "off"
    and `cache` 0, the translations are those of the plain model, bit for bit."""

    mode: Mode = "off"
    cache: int = 0
    neighbours: int = 0

    @property
    def selection(self) -> Selection:
        """Which of the best matches are taken, `top_k` of them."""
        return Selection(self.select, self.similarity, self.alpha)

    @property
    def penalties(self) -> Penalties:
        """What makes a match worth less."""
        return Penalties(**{entry.name: getattr(self, entry.name) for entry in fields(Penalties)})

    @property
    def keep_finders(self) -> tuple[Finder, ...]:
        """What finds in a text what the user wants to be kept."""
        return () if self.keep is None else (by_pattern(self.keep),)

    @property
    def remembers(self) -> bool:
        """Whether what was translated is written to the session cache."""
        return self.cache > 0 and self.remember == "own"

    @property
    def caches(self) -> bool:
        """Whether what is confirmed is written to the session cache."""
        holds = self.cache > 0 or self.mode == "nearest"
        return holds and self.remember != "nothing" and self.confirm_to != "memory"

    @property
    def memorises(self) -> bool:
        """Whether what is confirmed is written to the memory."""
        return self.remember != "nothing" and self.confirm_to != "cache"

    @property
    def retrieves(self) -> bool:
        """Whether pairs are looked up for a sentence."""
        return self.mode not in ("off", "knn") and self.top_k > 0


def settled(options: ModelOptions, parameters: MemoryLayers | None, mode: Mode) -> Settings:
    """The settings that options come to. Where the options leave it open, the mode is the one given
    here, the session cache has as many slots as it has learned with if anything is written to it,
    and 16 neighbours are read in mode knn and by an adaptive kNN, and none otherwise.

    options: the options.
    parameters: the memory layers that the model has learned; None where it has learned none.
    mode: the mode where the options leave it open."""
    values = {entry.name: getattr(options, entry.name) for entry in fields(Settings)}
    if values["mode"] is None:
        values["mode"] = mode
    if values["neighbours"] is None:
        voting = values["mode"] == "knn" or values["knn_adaptive"] is not None
        values["neighbours"] = NEIGHBOURS if voting else 0
    if values["cache"] is not None:
        return Settings(**values)
    slots = parameters.cache.kind.size if parameters is not None and parameters.cache else 0
    with_cache = Settings(**values | {"cache": slots})
    is_written = with_cache.remembers or (slots and with_cache.caches)
    return with_cache if is_written else replace(with_cache, cache=0)


def default_mode(parameters: MemoryLayers | None) -> Mode:
    """The mode where the options name none: copy where the model has learned it, nearest where it
    has learned nothing of memories, and otherwise off.

    parameters: the memory layers that the model has learned; None where it has learned none."""
    if parameters is None:
        return "nearest"
    return "copy" if "copy" in parameters.modes else "off"


def check(settings: Settings, layers: MemoryLayers | None, model: Model) -> None:
    """Raises UsageError for settings that do not go together, or that the model cannot serve.

    settings: the settings.
    layers: the memory layers that the model has learned; None where it has learned none.
    model: the model, which the message names by its folder."""
    words = len(model.vocab)
    check_remembering(settings)
    if settings.cache_best > settings.beam:
        raise UsageError(
            f"cache-best is {settings.cache_best}; a beam of {settings.beam} finds that many at "
            "most"
        )
    if settings.nbest > settings.beam:
        raise UsageError(
            f"nbest is {settings.nbest}; a beam of {settings.beam} finds that many at most"
        )
    if not settings.remembers and settings.cache_best > 1:
        raise UsageError(
            "cache-best is of a session cache of the model's own words, and there is none: "
            "remember own"
        )
    if not settings.cache and settings.cache_overwrite is not None:
        name = "cache-overwrite" if settings.cache_overwrite else "no-cache-overwrite"
        raise UsageError(f"{name} is of a session cache, and there is none: give a cache")
    if 2 * settings.beam > words:
        raise UsageError(
            f"beam is {settings.beam}; with this model's {words:,} subwords it must be "
            f"{words // 2} at most"
        )
    check_neighbours(settings)
    voting_of(settings, model, "cpu")
    served = layers.modes if layers is not None else UNTRAINED
    if settings.mode not in served:
        raise UsageError(
            f"{model.folder}: this model has no parameters for mode {settings.mode}; it serves "
            f"{', '.join(served)}"
        )
    if settings.cache and (layers is None or layers.cache is None):
        raise UsageError(
            f"{model.folder}: this model has no parameters for a session cache; use cache 0"
        )


def shortlist_of(settings: Settings, model: Model) -> Shortlist | None:
    """The shortlist of a model, where it is to be read; None where it is not. Where the settings
    leave this open, the shortlist of a student is read.

    settings: the settings.
    model: the model.

    Raises the errors of `Shortlist.load`."""
    if settings.shortlist is not None:
        return Shortlist.load(model) if settings.shortlist else None
    by_default = isinstance(model.backbone, Student) and Shortlist.exists(model)
    return Shortlist.load(model) if by_default else None


def check_remembering(settings: Settings) -> None:
    """Raises UsageError where a session cache is wanted and nothing that is remembered would fill
    it.

    settings: the settings."""
    remembering = settings.remember, settings.confirm_to, settings.cache
    if remembering == ("confirmed", "cache", 0) and settings.mode != "nearest":
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
    """Raises UsageError where the settings of neighbours do not go with the mode.

    settings: the settings."""
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


class VotingMaker(Protocol):
    """A function that says how the words of neighbours are mixed in with some settings, or None
    where its plug-in mixes none in. It raises UsageError for settings that do not go together, and
    ModelError for a file that is wrong."""

    def __call__(self, settings: Settings, model: Model, device: str) -> Voting | None: ...


VOTINGS: Registry[VotingMaker] = Registry("voting", {})


def voting_of(settings: Settings, model: Model, device: str) -> Voting | None:
    """How the words of neighbours are mixed in; None where they are not.

    settings: the settings.
    model: the model.
    device: what torch computes on.

    Raises the errors of a `VotingMaker`."""
    ways = (make(settings, model, device) for make in VOTINGS.values())
    return next((way for way in ways if way is not None), None)
