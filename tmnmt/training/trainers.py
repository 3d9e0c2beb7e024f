"""How layers and networks are trained where it is not as `tmnmt train` does by default: what the
settings of a configuration name, and plug-ins bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch

from tmnmt.models.base import Backbone, Injectable
from tmnmt.models.injected import Injected
from tmnmt.registry import Registry
from tmnmt.trained_layers.tm import TranslationMemory
from tmnmt.training.cache import CachePart, SideBySide, Stretch, WrittenStretches
from tmnmt.training.memory_config import MemoryConfig
from tmnmt.training.memory_data import Documents, MemoryData
from tmnmt.training.parts import Part
from tmnmt.training.tm import PairedSentences, TMPart
from tmnmt.vocab import Vocabulary

# the part that trains the TM layer, from sentences to learn from and dev
TMTrainer = Callable[
    [TranslationMemory, Backbone, Vocabulary, PairedSentences, PairedSentences, MemoryConfig],
    TMPart,
]
# the part that trains the session cache, from stretches to learn from and dev, and whether it has
# learned before
CacheTrainer = Callable[
    [SideBySide, WrittenStretches, WrittenStretches, MemoryConfig, bool], CachePart
]
# the same stretches with the targets that are written to the cache; what takes long is kept in a
# file
CacheHistory = Callable[[Backbone, Vocabulary, list[Stretch], Path, torch.device], list[Stretch]]
# a part that goes on with TM layer and session cache together, once both are trained
JointTrainer = Callable[[TranslationMemory, SideBySide, MemoryData], Part]


class NetworkOutcome(NamedTuple):
    """A base with its network, and the dev losses in nats a subword before and after."""

    backbone: Injected
    loss_before: float
    loss_after: float


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
    ) -> NetworkOutcome: ...


FIXED, END_TO_END = "fixed", "end to end"  # the base stays as it is, or learns, too
TM_TRAINERS: Registry[TMTrainer] = Registry(
    "TM trainer",
    {
        FIXED: lambda tm, backbone, vocab, train, dev, config: TMPart(
            tm, backbone, vocab, train, dev, config.batch_tokens
        )
    },
)
CACHE_TRAINERS: Registry[CacheTrainer] = Registry(
    "cache trainer",
    {
        FIXED: lambda documents, train, dev, config, resumed: CachePart(
            documents, train, dev, config.seed, resumed
        )
    },
)
CACHE_HISTORIES: Registry[CacheHistory] = Registry(
    "cache history", {"confirmed": lambda backbone, vocab, data, path, device: data}
)
# by the names of their parts
JOINT_TRAINERS: Registry[JointTrainer] = Registry("joint trainer", {})
NETWORK_TRAINERS: Registry[NetworkTrainer] = Registry("network trainer", {})
