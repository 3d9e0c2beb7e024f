"""Writes into a model's config.toml the score that 99 % of its dev text reaches, for models that do
not say it yet.

    TMNMT_DATA=DATA python models/low_score.py models/law.en-fr.toml models/law.en-fr

`tmnmt train` does so at its end. The dev text is that of the configuration.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tmnmt.models.folder import load_model, write_config
from tmnmt.training.config import load_config
from tmnmt.training.data import load_corpora
from tmnmt.training.low_score import low_score
from tmnmt.training.run import dev_pairs


def main(configuration: Path, folder: Path) -> None:
    config, model = load_config(configuration), load_model(folder)
    corpora = load_corpora(config.data)
    low = low_score(model.backbone, dev_pairs(config, corpora, model.vocab).src)
    write_config(folder, model.config | {"low_score": low})
    print(f"{folder}: low_score = {low}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
