"""The score that hardly any translation of dev text stays below; what does is unlike what the model
knows. It has a bound, so that a bad model, whose own dev text scores low, is told as such.

The score is the log probability of the model's own translation, per subword, by beam search without
any memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from tmnmt.engine.beam_search import SearchSettings, beam_search
from tmnmt.keys.pair_keys import padded
from tmnmt.layers.combine import LayerInputs
from tmnmt.models.base import Backbone
from tmnmt.models.decoding import for_decoding

SHARE = 0.01  # of dev text scores lower
LOWEST = -0.8  # of good models of law the share is at -0.71 and -0.77
TOGETHER = 32


def low_score(
    backbone: Backbone, sources: Sequence[np.ndarray], device: torch.device | str = "cpu"
) -> float:
    """Nats a subword, so that `SHARE` of the translations of `sources`, ids (S,) with </s>, score
    lower; but `LOWEST` where a model is so bad that more of them score below that. 4 digits."""
    fast = for_decoding(backbone)
    rows = sorted((source.tolist() for source in sources), key=len)
    scores: list[float] = []
    for start in range(0, len(rows), TOGETHER):
        batch = rows[start : start + TOGETHER]
        with torch.inference_mode():
            encoded = fast.encode(
                padded(batch, device), torch.tensor([len(row) for row in batch], device=device)
            )
            hypotheses = beam_search(
                fast,
                None,
                encoded,
                LayerInputs(),
                [2 * len(row) + 10 for row in batch],
                SearchSettings(),
            )
        scores += [best.per_subword for best in hypotheses]
    return max(LOWEST, round(sorted(scores)[int(SHARE * len(scores))], 4))
