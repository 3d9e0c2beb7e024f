"""How a training went, as a picture."""

from __future__ import annotations

import json
from pathlib import Path

from tmnmt.durable import write
from tmnmt.eval.report.svg import line_chart
from tmnmt.training.log import LOG_FILE

PLOT_FILE = "train.svg"
LOSSES = {"loss": "training", "dev_loss": "dev"}


def plot_training(folder: Path) -> Path | None:
    """Writes train.svg into the folder of a training: the loss by updates, on what it learned from
    and on dev. None where its log has none of them."""
    lines = [
        json.loads(line) for line in (folder / LOG_FILE).read_text(encoding="utf-8").splitlines()
    ]
    by_update: dict[int, dict[str, float]] = {}
    for line in lines:
        losses = {LOSSES[key]: line[key] for key in LOSSES if key in line}
        if losses and "update" in line:
            by_update.setdefault(line["update"], {}).update(losses)
    if not by_update:
        return None
    updates = sorted(by_update)
    series = {name: [by_update[update].get(name) for update in updates] for name in LOSSES.values()}
    chart = line_chart(
        f"Training of {folder.name}",
        "updates",
        "loss, nats a subword",
        [f"{update:,}" for update in updates],
        {name: line for name, line in series.items() if any(v is not None for v in line)},
    )
    path = folder / PLOT_FILE
    write(path, chart.encode())
    return path
