"""The training configuration: one TOML, one small dataclass per table, and an error for every key
that is unknown."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from tmnmt.config.bounds import (
    AboveZero,
    Bound,
    Count,
    FieldValue,
    Kinds,
    Name,
    Names,
    Pieces,
    Ratio,
    Seed,
    Share,
    ShareBelowOne,
)
from tmnmt.config.tables import build, read_toml
from tmnmt.errors import UsageError
from tmnmt.models.base import BaseConfig, Injectable
from tmnmt.models.kinds import KINDS, configs
from tmnmt.models.rnnsearch import RNNsearchConfig
from tmnmt.training.memory_config import MemoryConfig, check
from tmnmt.training.trainers import NETWORK_TRAINERS

Kind = Literal["adam", "muon"]  # of optimiser


@dataclass(frozen=True)
class CorpusConfig:
    """Files of one corpus, read with `tmnmt.formats`; dev and test name lists of document ids, one
    a line."""

    name: Name
    files: Names
    columns: str = ""  # of TSV files without a header, counted from 1: "src=5,tgt=6,doc=1"
    where: FieldValue = ""  # keep only segments of which a field has this value: "origin=Text"
    dev: str = ""
    test: str = ""


@dataclass(frozen=True)
class DataConfig:
    corpus: Annotated[tuple[CorpusConfig, ...], Bound("not empty", bool)]
    src_lang: Name = "en"
    tgt_lang: Name = "fr"
    max_subwords: Count = 80  # as the papers; longer pairs are not trained on
    # of subword counts, where the longer side has more than ten: misaligned pairs teach noise
    max_ratio: Ratio = 2.0
    # of all dev documents, evenly spaced, for loss and BLEU during training
    dev_segments: Count = 500


@dataclass(frozen=True)
class VocabularyConfig:
    size: Pieces = 8000
    sample: Count = 200_000  # pairs it is learned from


@dataclass(frozen=True)
class TrainingConfig:
    updates: Count = 20_000
    batch_tokens: Count = 3000  # padded target or source tokens of one update
    accumulate: Count = 1  # batches an update is divided into; processes under torchrun share them
    # muon: it moves the weights of products, Adam the rest; a Transformer learns faster by it
    optimiser: Kind = "adam"
    learning_rate: AboveZero = 1e-3  # of Adam
    matrix_rate: AboveZero = 0.02  # of Muon
    warmup: Count = 400  # updates of linear warm-up
    decay: Share = 0.2  # the last share of the updates decays linearly to zero
    # before that: with 1 / sqrt(update) after the warm-up, instead of constant
    inverse_sqrt: bool = False
    growth: Ratio = 1.0  # an epoch's updates hold so many times the batches of the epoch before,
    grown: Ratio = 8.0  # at most so many times those of the first
    clip: AboveZero = 1.0  # largest norm of the gradient
    label_smoothing: ShareBelowOne = 0.0
    precision: Literal["bf16", "fp32"] = "bf16"  # of the products
    validate_every: Count = 500
    patience: Count = 8  # validations without a better dev loss before it stops
    average: Count = 1  # last validations whose mean is kept where dev likes it better; 1: none
    checkpoint_every: Count = 250
    seed: Seed = 1


def _reference() -> dict[str, type[Any]]:
    return {"reference": NETWORK_TRAINERS["reference"].config}


@dataclass(frozen=True)
class TrainConfig:
    """The whole file. `folder` is the run's folder, made when missing; `reference` None
    trains no reference network, `memory` None no memory layers."""

    folder: Name
    data: DataConfig
    start_from: str = ""  # a model folder whose vocabulary and weights the run begins with
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    model: Annotated[BaseConfig, Kinds(configs)] = field(default_factory=RNNsearchConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    reference: Annotated[Any, Kinds(_reference)] = None
    memory: MemoryConfig | None = None


def load_config(path: Path) -> TrainConfig:
    """The configuration in a TOML file. ${NAME} in strings is taken from the environment.

    Raises DataError where it cannot be read, UsageError, naming file and key, for anything unknown,
    missing or of the wrong type or value."""
    config = build(TrainConfig, read_toml(path), str(path))
    try:
        _check(config)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    return config


def _check(config: TrainConfig) -> None:
    """Raises UsageError where keys do not go together."""
    if config.data.src_lang == config.data.tgt_lang:
        raise UsageError(f"data: src_lang and tgt_lang are both {config.data.src_lang!r}")
    try:
        config.model.check()
    except UsageError as error:
        raise UsageError(f"model: {error}") from error
    if config.memory is not None:
        check(config.memory)
    if config.reference is not None and not issubclass(KINDS[config.model.kind], Injectable):
        able = " and ".join(name for name in configs() if issubclass(KINDS[name], Injectable))
        raise UsageError(f"reference: a {config.model.kind} takes no reference network; {able} do")
    if config.reference is not None and config.memory is not None and config.memory.end_to_end:
        raise UsageError(
            "[memory] end_to_end trains the base, and a reference network is of the base as it is; "
            "leave out one or the other"
        )
