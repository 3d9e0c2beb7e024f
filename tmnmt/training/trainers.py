"""How layers and networks are trained where it is not as `tmnmt train` does by default: what the
settings of a configuration name, and plug-ins bring."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch

from tmnmt.layers.tm import TranslationMemory
from tmnmt.models.base import Backbone, Injectable
from tmnmt.models.injected import Injected
from tmnmt.registry import Registry
from tmnmt.training.cache import CachePart, SideBySide, Stretch, WrittenStretches
from tmnmt.training.memory_config import MemoryConfig
from tmnmt.training.memory_data import Documents, MemoryData
from tmnmt.training.parts import Part
from tmnmt.training.tm import PairedSentences, TMPart
from tmnmt.vocab import Vocabulary


class TMTrainer(Protocol):
    """Makes the part that trains the TM layer, from sentences to learn from and dev."""

    def __call__(
        self,
        tm: TranslationMemory,
        backbone: Backbone,
        vocab: Vocabulary,
        train: PairedSentences,
        dev: PairedSentences,
        config: MemoryConfig,
    ) -> TMPart: ...


class CacheTrainer(Protocol):
    """Makes the part that trains the session cache, from stretches to learn from and dev; `begun`:
    the cache has learned before."""

    def __call__(
        self,
        documents: SideBySide,
        train: WrittenStretches,
        dev: WrittenStretches,
        config: MemoryConfig,
        begun: bool,
    ) -> CachePart: ...


class CacheHistory(Protocol):
    """Gives the same stretches with the targets that are written to the cache; what takes long is
    kept in the file at `path`."""

    def __call__(
        self,
        backbone: Backbone,
        vocab: Vocabulary,
        data: list[Stretch],
        path: Path,
        device: torch.device,
    ) -> list[Stretch]: ...


class JointTrainer(Protocol):
    """Makes a part that goes on with TM layer and session cache together, once both are trained."""

    def __call__(self, tm: TranslationMemory, documents: SideBySide, data: MemoryData) -> Part: ...


class Learned(NamedTuple):
    """A base with its network, and the dev losses in nats a subword before and after."""

    backbone: Injected
    before: float
    after: float


class NetworkTrainer(Protocol):
    """Trains a network beside a base that `tmnmt train` has made. `config`: the dataclass of the
    network's table. `pointwise`: those of its parts that do not learn from target tokens."""

    config: type[Any]
    pointwise: Sequence[str]

    def train(
        self,
        backbone: Injectable,
        vocab: Vocabulary,
        documents: Documents,
        dev_documents: Documents,
        folder: Path,
        config: Any,
        resume: bool = False,
    ) -> Learned: ...


def _tm_part(
    tm: TranslationMemory,
    backbone: Backbone,
    vocab: Vocabulary,
    train: PairedSentences,
    dev: PairedSentences,
    config: MemoryConfig,
) -> TMPart:
    return TMPart(tm, backbone, vocab, train, dev, config.batch_tokens)


def _cache_part(
    documents: SideBySide,
    train: WrittenStretches,
    dev: WrittenStretches,
    config: MemoryConfig,
    begun: bool,
) -> CachePart:
    return CachePart(documents, train, dev, config.seed, begun)


def _references(
    backbone: Backbone, vocab: Vocabulary, data: list[Stretch], path: Path, device: torch.device
) -> list[Stretch]:
    return data


FIXED, END_TO_END = "fixed", "end to end"  # the base stays as it is, or learns, too
TM_TRAINERS: Registry[TMTrainer] = Registry("TM trainer", {FIXED: _tm_part})
CACHE_TRAINERS: Registry[CacheTrainer] = Registry("cache trainer", {FIXED: _cache_part})
CACHE_HISTORIES: Registry[CacheHistory] = Registry("cache history", {"confirmed": _references})
# by the names of their parts
JOINT_TRAINERS: Registry[JointTrainer] = Registry("joint trainer", {})
NETWORK_TRAINERS: Registry[NetworkTrainer] = Registry("network trainer", {})
