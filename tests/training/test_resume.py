"""A training that is interrupted or killed at any place goes on as if it had not been: weights,
best, log."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny_training import CONFIG, pairs, sentences
from torch import Tensor

from tmnmt import interrupts
from tmnmt.errors import ModelError
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.training import checkpoint, parts
from tmnmt.training import log as training_log
from tmnmt.training import trainer as training
from tmnmt.training.parts import Part, PartTrainer, Unit
from tmnmt.training.trainer import Trainer
from tmnmt.vocab import Vocabulary

SECONDS = ("seconds", "tokens_per_second")  # of the log, which differ from run to run
WATCHED = [checkpoint, training_log]  # the modules whose lines are places, besides that of the loop


Place = tuple[CodeType, int]  # a line of a function
Choice = Callable[[dict[Place, int]], list[tuple[Place, int]]]


class Killed(BaseException):
    """Ends a run as SIGKILL does: nothing is saved on the way out."""


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def kill() -> None:
    raise Killed


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """Ctrl-C as in the program."""
    torch.set_num_threads(1)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), sys.unraisablehook
    interrupts.install()
    yield
    signal.signal(signal.SIGINT, before[0]), signal.signal(signal.SIGTERM, before[1])
    sys.unraisablehook = before[2]


def traced(
    run: Callable[[], None], modules: list[Any], at: Callable[[CodeType, int], None]
) -> None:
    """Runs it and calls `at` before every line of these modules."""
    files = {module.__file__ for module in modules}

    def called(frame: FrameType, event: str, arg: object) -> Any:
        return line if frame.f_code.co_filename in files else None

    def line(frame: FrameType, event: str, arg: object) -> Any:
        if event == "line":
            at(frame.f_code, frame.f_lineno)
        return line

    before = sys.gettrace()
    sys.settrace(called)
    try:
        run()
    finally:
        sys.settrace(before)


def places(run: Callable[[], None], modules: list[Any]) -> dict[Place, int]:
    """Every line of these modules that the run comes to, and how often."""
    found: dict[Place, int] = {}

    def at(code: CodeType, number: int) -> None:
        found[code, number] = found.get((code, number), 0) + 1

    traced(run, modules, at)
    return found


def stopped(run: Callable[[], None], modules: list[Any], place: Place, time: int, how: Any) -> None:
    """The run, stopped when it comes to this place for the `time`-th time."""
    left = time

    def at(code: CodeType, number: int) -> None:
        nonlocal left
        if (code, number) == place:
            left -= 1
            if not left:
                how()

    with pytest.raises((KeyboardInterrupt, Killed)):
        traced(run, modules, at)
    assert left <= 0


def log_of(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in SECONDS} for line in lines]


def same(one: Path, other: Path) -> bool:
    """Are all parameters and moments in these two checkpoints equal?"""
    a, b = load_file(one), load_file(other)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture(scope="module")
def vocab() -> Vocabulary:
    return Vocabulary.train(sentences(500), 360)


def trainer(vocab: Vocabulary, folder: Path) -> Trainer:
    torch.manual_seed(0)
    model = RNNsearch(len(vocab), embedding=8, hidden=16, attention=8, dropout=0.2)
    config = replace(
        CONFIG,
        updates=3,
        validate_every=2,
        checkpoint_every=1,
        optimiser="muon",  # and Adam, for what are no matrices
        learning_rate=1e-2,
    )
    return Trainer(model, vocab, pairs(vocab, 6), pairs(vocab, 2, 1), config, folder)


def base(vocab: Vocabulary, folder: Path) -> None:
    """Trains a base in `folder`, or goes on with it, as `tmnmt train` does."""
    folder.mkdir(exist_ok=True)
    made = trainer(vocab, folder)
    if (folder / "last.safetensors").exists():
        made.restore()
    made.run()
    assert made.progress.stopped


def one_a_function(found: dict[Place, int]) -> list[tuple[Place, int]]:
    """Of every function the line farthest down, the last time it is come to."""
    codes = [code for code, _ in found if not code.co_name.startswith("<")]
    last = {code: max(number for other, number in found if other == code) for code in codes}
    return [((code, number), found[code, number]) for code, number in last.items()]


def every(found: dict[Place, int]) -> list[tuple[Place, int]]:
    """Every line, the first and the last time it is come to."""
    return [(place, time) for place, times in found.items() for time in sorted({1, times})]


class Line(Part):
    """Learns a line through points; a unit is three points, two of which are learned from together
    and one alone."""

    name = "line"

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.module = torch.nn.Linear(1, 1)

    def units(self, epoch: int) -> list[Unit]:
        return [[epoch + first, 2, 3] for first in (1, 4, 5)]

    def losses(self, unit: Unit) -> Iterator[tuple[Tensor, int]]:
        for some in (unit[:2], unit[2:]):
            yield self._loss(some), len(some)

    def validate(self) -> dict[str, float]:
        return {"criterion": float(self._loss([7, 8, 9]).detach()) / 3}

    def _loss(self, points: list[int]) -> Tensor:
        x = torch.tensor(points, dtype=torch.float)[:, None]
        loss: Tensor = (self.module(x) - 2 * x - 1).square().sum()
        return loss


def part(folder: Path) -> None:
    """Trains it in `folder`, or goes on with it, as `tmnmt adapt` does."""
    folder.mkdir(exist_ok=True)
    made = PartTrainer(
        Line(), folder, epochs=2, learning_rate=0.5, validate_every=3, checkpoint_every=2
    )
    if made.path("last").exists():
        made.restore()
    made.run()
    assert same_parameters(made.part.module, made.path("best"))


def same_parameters(module: torch.nn.Module, path: Path) -> bool:
    held = load_file(path)
    return all(
        torch.equal(held[f"model.{name}"], value) for name, value in module.state_dict().items()
    )


@pytest.mark.parametrize("chosen", [one_a_function, pytest.param(every, marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", [interrupt, kill])
def test_a_part_stopped_at_any_place_is_the_same_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Callable[[], None], chosen: Choice
) -> None:
    monkeypatch.setattr(parts, "UPDATES_A_LINE", 2)
    modules = [parts, *WATCHED, sys.modules[__name__]]
    found = places(partial(part, tmp_path / "whole"), modules)
    came_to = {code.co_name for code, _ in found}
    assert {
        "_validate",
        "_report",
        "_after_unit",
        "_update",
        "save",
        "validate",
        "losses",
    } <= came_to
    for number, (place, time) in enumerate(chosen(found)):
        folder = tmp_path / str(number)
        stopped(partial(part, folder), modules, place, time, how)
        part(folder)
        for which in ("memory-line-last", "memory-line-best"):
            assert same(
                tmp_path / "whole" / f"{which}.safetensors", folder / f"{which}.safetensors"
            ), place
        assert log_of(tmp_path / "whole") == log_of(folder), place


@pytest.mark.parametrize("chosen", [one_a_function, pytest.param(every, marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", [interrupt, kill])
def test_a_base_stopped_at_any_place_is_the_same_in_the_end(
    vocab: Vocabulary,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: Callable[[], None],
    chosen: Choice,
) -> None:
    monkeypatch.setattr(training, "UPDATES_A_LINE", 2)
    modules = [training, *WATCHED]
    found = places(partial(base, vocab, tmp_path / "whole"), modules)
    assert {"_validate", "_report", "_after_update", "update", "save", "add_line"} <= {
        code.co_name for code, _ in found
    }
    for number, (place, time) in enumerate(chosen(found)):
        folder = tmp_path / str(number)
        stopped(partial(base, vocab, folder), modules, place, time, how)
        base(vocab, folder)
        for which in ("last", "best"):
            assert same(
                tmp_path / "whole" / f"{which}.safetensors", folder / f"{which}.safetensors"
            ), place
        assert log_of(tmp_path / "whole") == log_of(folder), place


def test_the_log_of_a_run_that_is_gone_on_with_has_no_line_twice(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [
        {"n": 1},
        {"part": "tm", "n": 2},
        {"n": 3},
        {"part": "tm", "n": 4},
        {"part": "tm", "n": 5},
    ]
    for line in lines:
        training_log.add_line(tmp_path, line)
    with (tmp_path / "train.jsonl").open("a") as out:
        out.write('{"part": "tm", "n')  # killed while it wrote
    assert [training_log.count_lines(tmp_path, part) for part in (None, "tm")] == [2, 3]
    training_log.keep_lines(tmp_path, "tm", 1)
    assert log_of(tmp_path) == lines[:3]
    training_log.keep_lines(tmp_path, None, 1)
    assert log_of(tmp_path) == lines[:2]


def test_what_a_part_took_is_what_the_last_line_of_each_of_its_runs_says(tmp_path: Path) -> None:
    assert training_log.training_costs(tmp_path) == {}
    lines: list[dict[str, object]] = [
        {"run": 1, "tokens": 100, "seconds": 2.0},
        {"run": 1, "tokens": 300, "seconds": 5.5},
        {"run": 2, "tokens": 50, "seconds": 1.0},
        {"part": "tm", "tokens": 7, "seconds": 0.5},
        {"part": "anchors", "seconds": 3},
    ]
    wrong: list[object] = ["1", True, -1, math.nan, None, []]
    lines += [{"part": "bad", "seconds": value} for value in wrong]
    for line in lines:
        training_log.add_line(tmp_path, line)
    with (tmp_path / "train.jsonl").open("ab") as out:
        out.write(b"[1]\n\xff\n" + b"[" * 10_000 + b'\n{"part": "tm", "seconds": 9')
    costs = training_log.training_costs(tmp_path)
    assert costs == {None: (6.5, 350), "tm": (0.5, 7), "anchors": (3, 0)}


def test_a_log_that_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train.jsonl")  # whoever reads it waits
    with pytest.raises(ModelError, match=r"train\.jsonl: cannot be read: no regular file"):
        training_log.training_costs(tmp_path)


def test_a_checkpoint_that_does_not_say_what_was_validated_is_gone_on_with(
    vocab: Vocabulary, tmp_path: Path
) -> None:
    """As those of older versions."""
    base(vocab, tmp_path)
    made = trainer(vocab, tmp_path)
    made.restore()
    saved = asdict(made.progress)
    for name in ("loss", "reported", "validated", "lines"):
        del saved[name]
    checkpoint.save(
        tmp_path / "last.safetensors", made.model, made.optimiser, {"progress": json.dumps(saved)}
    )
    before = log_of(tmp_path)
    base(vocab, tmp_path)
    assert log_of(tmp_path) == before
