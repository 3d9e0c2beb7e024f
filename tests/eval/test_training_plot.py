"""The picture of a training has the losses of its log."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from tmnmt.eval.report.training import plot_training

LINES = (
    {"update": 50, "loss": 7.0},
    {"update": 100, "loss": 5.5},
    {"update": 100, "dev_loss": 5.0, "best": 1.0},
    {"part": "copy", "seconds": 3.0},
)


def test_the_losses_of_a_log_are_drawn(tmp_path: Path) -> None:
    log = tmp_path / "train.jsonl"
    log.write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    path = plot_training(tmp_path)
    assert path == tmp_path / "train.svg"
    drawn = ElementTree.fromstring(path.read_text())
    texts = {element.text for element in drawn.iter() if element.text}
    assert {"training", "dev", "updates", "loss, nats a subword", "50", "100"} <= texts
    assert len([*drawn.iter("{http://www.w3.org/2000/svg}polyline")]) == 4  # with the legend


def test_a_log_without_losses_has_no_picture(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(json.dumps(LINES[3]) + "\n")
    assert plot_training(tmp_path) is None
    assert [path.name for path in tmp_path.iterdir()] == ["train.jsonl"]
