"""The options of a translation, settled for one model, and which of them do not go together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Protocol

from tmnmt.codes.placeholders import Finder, by_pattern
from tmnmt.config.option import changed
from tmnmt.config.options import MODES, HostedBase, ModelOptions, Penalties, Selection
from tmnmt.errors import UsageError
from tmnmt.registry import Registry

if TYPE_CHECKING:
    from tmnmt.index.base import Index
    from tmnmt.keys.pair import PairKeys
    from tmnmt.layers.combine import MemoryLayers
    from tmnmt.layers.contract import MemorySearch, NearDraft
    from tmnmt.models.folder import Model
    from tmnmt.models.shortlist import Shortlist

# options that are of the states of a base
OF_STATES = (
    *("beam", "length_penalty", "nbest", "precision", "shortlist"),
    *("cache", "cache_overwrite", "cache_best", "neighbours", "knn_adaptive"),
)


@dataclass(frozen=True)
class Settings(ModelOptions):
    """The options of a model and of what it reads, in which nothing is left open. With `mode` "off"
    and `cache` 0, the translations are those of the plain model, bit for bit."""

    mode: str = "off"
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

    def typeset_in(self, tgt_lang: str) -> str:
        """The language and region that what the model writes is set in; "" sets nothing.

        tgt_lang: the model's target language.

        Raises UsageError for another language."""
        code = self.typography or tgt_lang
        if code == "off":
            return ""
        if re.split("[-_]", code.lower())[0] != re.split("[-_]", tgt_lang.lower())[0]:
            raise UsageError(
                f"typography {code!r}: the model writes {tgt_lang!r}; allowed: off, {tgt_lang}, "
                "and that with a region"
            )
        return code

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
        return MODES[self.mode].retrieves and self.top_k > 0


def settled(options: ModelOptions, parameters: MemoryLayers | None, mode: str) -> Settings:
    """The settings that options come to. Where the options leave it open, the mode is the one given
    here, the session cache has as many slots as it has learned with if anything is written to it,
    and 16 neighbours are read in mode knn and by an adaptive kNN, and none otherwise; how many a
    calibration has chosen, `tmnmt.engine.building.calibrated` says.

    options: the options.
    parameters: the memory layers that the model has learned; None where it has learned none.
    mode: the mode where the options leave it open."""
    values = {entry.name: getattr(options, entry.name) for entry in fields(Settings)}
    if values["mode"] is None:
        values["mode"] = mode
    if values["neighbours"] is None:
        voting_mode = values["mode"] if values["knn_adaptive"] is None else "knn"
        values["neighbours"] = MODES[voting_mode].neighbours
    if values["cache"] is not None:
        return Settings(**values)
    slots = parameters.slots if parameters is not None else 0
    with_cache = Settings(**values | {"cache": slots})
    is_written = with_cache.remembers or (slots and with_cache.caches)
    return with_cache if is_written else replace(with_cache, cache=0)


def served_modes(parameters: MemoryLayers | None, model: Model) -> tuple[str, ...]:
    """The modes that a model serves: its own, or else those of its memory layers.

    parameters: the memory layers that the model has learned; None where it has learned none.
    model: the model."""
    from tmnmt.layers.combine import MemoryLayers

    return model.backbone.modes or (parameters or MemoryLayers()).modes


def default_mode(parameters: MemoryLayers | None, model: Model) -> str:
    """The mode where the options name none: the first that the base serves by itself; copy where
    the model has learned it; nearest where it has learned nothing of memories; and otherwise off.

    parameters: the memory layers that the model has learned; None where it has learned none.
    model: the model."""
    if model.backbone.modes:
        return model.backbone.modes[0]
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
    _check_kind(settings, model)
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
    for search in SEARCHES.values():
        search.check(settings, model)
    served = served_modes(layers, model)
    if settings.mode not in served:
        raise UsageError(
            f"{model.folder}: this model has no parameters for mode {settings.mode}; it serves "
            f"{', '.join(served)}"
        )
    if settings.cache and (layers is None or not layers.slots):
        raise UsageError(
            f"{model.folder}: this model has no parameters for a session cache; use cache 0"
        )


def _check_kind(settings: Settings, model: Model) -> None:
    """Raises UsageError for an option that bases of this kind do not read."""
    if not model.backbone.modes:
        for option in changed(settings, HostedBase):
            raise UsageError(
                f"{option} is of a base behind an address, and {model.folder} is a folder"
            )
        return
    defaults = Settings()
    for name in OF_STATES:
        if getattr(settings, name) != getattr(defaults, name):
            raise UsageError(
                f"--{name.replace('_', '-')} is of a model folder: {model.folder} shows no states"
            )


def shortlist_of(settings: Settings, model: Model) -> Shortlist | None:
    """The shortlist of a model, where it is to be read; None where it is not. Where the settings
    leave this open, the shortlist of a student is read.

    settings: the settings.
    model: the model.

    Raises the errors of `Shortlist.load`."""
    from tmnmt.models.shortlist import Shortlist

    if settings.shortlist is not None:
        return Shortlist.load(model) if settings.shortlist else None
    return Shortlist.by_default(model)


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


class WholeMemory(Protocol):
    """What is read of all memories: by plug-in layers at every word, or else, where `is_drafted`,
    once for a sentence, near to the states of a draft."""

    @property
    def is_drafted(self) -> bool:
        """Whether it is asked once, by `near_drafts`, and not at every word, by `query`."""

    def near_drafts(self, sources: Sequence[str], drafts: Sequence[PairKeys]) -> list[NearDraft]:
        """The positions near to drafts, for every sentence.

        sources: what is translated.
        drafts: the states of the draft of each."""

    def excluding(self, pairs: Iterable[tuple[str, str]]) -> WholeMemory:
        """The same memories without some pairs, in `near_drafts`.

        pairs: source and target of each."""

    def query(
        self, sources: Sequence[str], pairs: Sequence[Sequence[tuple[str, str]]]
    ) -> MemorySearch:
        """What the sentences of a batch ask.

        sources: what is translated.
        pairs: what every sentence reads anyway."""


class SearchMaker(Protocol):
    """How a plug-in finds something in all memories at every word."""

    def check(self, settings: Settings, model: Model) -> None:
        """Checks settings before anything is opened.

        settings: the settings.
        model: the model.

        Raises UsageError for settings that do not go together. Raises ModelError for a file that is
        wrong."""

    def open(
        self, settings: Settings, model: Model, indexes: Sequence[Index], device: str
    ) -> WholeMemory | None:
        """What is read of the memories; None where nothing is.

        settings: the settings.
        model: the model.
        indexes: the memories.
        device: what torch computes on.

        Raises MemoryIndexError where a memory lacks what is read."""


SEARCHES: Registry[SearchMaker] = Registry("memory search", {})


def whole_memory_of(
    settings: Settings, model: Model, indexes: Sequence[Index], device: str
) -> WholeMemory | None:
    """What is read of all memories at every word; None where nothing is.

    settings: the settings.
    model: the model.
    indexes: the memories.
    device: what torch computes on.

    Raises the errors of `SearchMaker.open`."""
    ways = (search.open(settings, model, indexes, device) for search in SEARCHES.values())
    return next((way for way in ways if way is not None), None)
