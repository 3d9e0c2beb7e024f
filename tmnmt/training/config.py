"""The training configuration: one TOML, one small dataclass per table, and an error for every key that is unknown."""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
import tomllib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from tmnmt.errors import DataError, UsageError
from tmnmt.training.bounds import (
    AboveZero,
    Bound,
    Count,
    EvenSize,
    Name,
    Names,
    Pieces,
    Ratio,
    Seed,
    Share,
    ShareBelowOne,
    Size,
    Where,
)
from tmnmt.training.memory_config import MemoryConfig, check


@dataclass(frozen=True)
class CorpusConfig:
    """Files of one corpus, read with `tmnmt.formats`; dev and test name lists of document ids, one a line."""

    name: Name
    files: Names
    columns: str = ""  # of TSV files without a header, counted from 1: "src=5,tgt=6,doc=1"
    where: Where = ""  # keep only segments of which a field has this value: "origin=Text"
    dev: str = ""
    test: str = ""


@dataclass(frozen=True)
class DataConfig:
    corpus: Annotated[tuple[CorpusConfig, ...], Bound("not empty", bool)]
    src_lang: Name = "en"
    tgt_lang: Name = "fr"
    max_subwords: Count = 80  # as the papers; longer pairs are not trained on
    max_ratio: Ratio = 2.0  # of subword counts, where the longer side has more than ten: misaligned pairs teach noise
    dev_segments: Count = 500  # of all dev documents, evenly spaced, for loss and BLEU during training


@dataclass(frozen=True)
class VocabularyConfig:
    size: Pieces = 8000
    sample: Count = 200_000  # pairs it is learned from


@dataclass(frozen=True)
class ModelConfig:
    embedding: Size = 256
    hidden: EvenSize = 512
    attention: Size = 256
    dropout: ShareBelowOne = 0.1


@dataclass(frozen=True)
class TrainingConfig:
    updates: Count = 20_000
    batch_tokens: Count = 3000  # padded target or source tokens of one update
    accumulate: Count = 1  # batches an update is divided into; processes under torchrun share them
    learning_rate: AboveZero = 1e-3
    warmup: Count = 400  # updates of linear warm-up
    decay: Share = 0.2  # the last share of the updates decays linearly to zero
    clip: AboveZero = 1.0  # largest norm of the gradient
    label_smoothing: ShareBelowOne = 0.0
    precision: Literal["bf16", "fp32"] = "bf16"  # of the products
    validate_every: Count = 500
    patience: Count = 8  # validations without a better dev loss before it stops
    checkpoint_every: Count = 250
    seed: Seed = 1


@dataclass(frozen=True)
class TrainConfig:
    """The whole file. `folder` is the run's folder, made when missing; `memory` None trains no memories."""

    folder: Name
    data: DataConfig
    start_from: str = ""  # a model folder whose vocabulary and weights the run begins with
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    memory: MemoryConfig | None = None


T = TypeVar("T")


def load_config(path: Path) -> TrainConfig:
    """The configuration in a TOML file. ${NAME} in strings is taken from the environment.

    Raises DataError where it cannot be read, UsageError, naming file and key, for anything unknown, missing or of the
    wrong type or value."""
    config = build(TrainConfig, read_toml(path), str(path))
    try:
        _check(config)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    return config


def read_toml(path: Path) -> dict[str, Any]:
    """The table in a TOML file. Raises DataError where it cannot be read, UsageError where it is no TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: no valid TOML: {error}") from error


def _check(config: TrainConfig) -> None:
    """Raises UsageError where keys do not go together."""
    if config.data.src_lang == config.data.tgt_lang:
        raise UsageError(f"data: src_lang and tgt_lang are both {config.data.src_lang!r}")
    if config.memory is not None:
        check(config.memory)


def build(kind: type[T], table: dict[str, Any], where: str) -> T:
    """A dataclass from a TOML table, nested tables included."""
    hints = typing.get_type_hints(kind, include_extras=True)
    for key in table:
        if key not in hints:
            near = difflib.get_close_matches(key, hints, n=1)
            hint = f"; did you mean `{near[0]}`?" if near else f"; allowed: {', '.join(sorted(hints))}"
            raise UsageError(f"{where}: unknown key `{key}`{hint}")
    for entry in dataclasses.fields(kind):  # type: ignore[arg-type]
        no_default = entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
        if no_default and entry.name not in table:
            raise UsageError(f"{where}: key `{entry.name}` is missing")
    return kind(**{key: _value(hints[key], value, f"{where}: {key}") for key, value in table.items()})


def _value(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _bounded(_value(arguments[0], value, where), arguments[1], where)
    if origin in (typing.Union, types.UnionType):
        return _value(arguments[0], value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(_value(arguments[0], item, where) for item in value)
    if origin is dict and isinstance(value, dict):
        return {key: _value(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return build(hint, value, where)  # type: ignore[arg-type]
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is str and isinstance(value, str):
        return _expand(value, where)
    if origin is typing.Literal:
        if value in arguments:
            return value
        raise UsageError(f"{where}: {value!r} is none of {', '.join(arguments)}")
    if type(value) is hint:
        return value
    raise UsageError(f"{where}: {value!r} is not of the kind that is wanted ({getattr(hint, '__name__', hint)})")


def _bounded(value: Any, bound: Bound, where: str) -> Any:
    if bound.holds(value):
        return value
    shown = repr(value) if value else "empty" if value in ("", ()) else "0"
    raise UsageError(f"{where}: {shown}; it must be {bound.allowed}")


def _expand(text: str, where: str) -> str:
    def variable(found: re.Match[str]) -> str:
        try:
            return os.environ[found[1]]
        except KeyError:
            raise UsageError(f"{where}: the environment variable {found[1]} is not set") from None

    return re.sub(r"\$\{(\w+)\}", variable, text)
