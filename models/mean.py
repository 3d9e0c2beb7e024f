"""The weighted mean of runs of one base, as a model folder. Where runs began from each other, it is
often better than each.

    TMNMT_DATA=DATA python models/mean.py CONFIG OUT RUN=0.7 OTHER=0.3

CONFIG names the corpora, for dev. Prints dev loss and BLEU. Vocabulary and the rest are those of
the first run; weights are rounded to fp16. `start_from` of a configuration can name OUT.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tmnmt.models.base import Trainable
from tmnmt.models.folder import load_model, save_model
from tmnmt.training.config import load_config
from tmnmt.training.data import load_corpora
from tmnmt.training.low_score import low_score
from tmnmt.training.run import dev_pairs
from tmnmt.training.trainer import dev_bleu, dev_loss


def main(config: Path, out: Path, *parts: str) -> None:
    """Writes `out` from `parts`, each a run folder and its weight; weights add up to 1."""
    folders, weights = zip(*(part.rsplit("=", 1) for part in parts), strict=True)
    shares = [float(weight) for weight in weights]
    if abs(sum(shares) - 1) > 1e-6:
        sys.exit(f"the weights add up to {sum(shares):g}, not to 1")
    model, *others = (load_model(Path(folder)) for folder in folders)
    if any(other.vocab.model != model.vocab.model for other in others):
        sys.exit("these runs have different vocabularies")
    backbone = model.backbone
    if not isinstance(backbone, Trainable):
        sys.exit("tmnmt train makes no base of this kind")
    states = [each.backbone.state_dict() for each in (model, *others)]
    backbone.load_state_dict(
        {
            name: sum(share * state[name] for share, state in zip(shares, states, strict=True))
            .half()
            .float()
            for name in states[0]
        }
    )
    training = load_config(config)
    dev = dev_pairs(training, load_corpora(training.data), model.vocab)
    loss = dev_loss(backbone, dev, training.training.batch_tokens)
    print(f"dev loss {loss:.4f}, BLEU {dev_bleu(backbone, dev, model.vocab):.2f}")
    kept = {key: value for key, value in model.config.items() if key != "format"}
    kept["low_score"] = low_score(backbone, dev.src, next(backbone.parameters()).device)
    save_model(out, backbone, model.vocab, kept, half=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
