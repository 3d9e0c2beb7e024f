"""Several systems on a test set, or on a part of it: scores, intervals, and what each gains over
the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tmnmt.eval.measures.metrics import Counts, Metric
from tmnmt.eval.measures.significance import Scored, gain_interval

Interval = dict[str, float]


class Compared:
    """counts: by the name of the metric, every system's, (units, k); a unit is what
    resamples draw."""

    def __init__(
        self, metrics: Sequence[Metric], counts: Mapping[str, Sequence[Counts]], baseline: int
    ) -> None:
        self.baseline = baseline
        self.scored = {
            metric.name: [Scored(metric, rows) for rows in counts[metric.name]]
            for metric in metrics
        }
        self.units = len(counts[metrics[0].name][baseline])

    def scores(self, system: int) -> dict[str, float]:
        """{metric: score} of one system, by its number."""
        return {name: scored[system].score for name, scored in self.scored.items()}

    def intervals(self, system: int) -> dict[str, Interval]:
        """{metric: {"low", "high"}}, 95 % bootstrap intervals."""
        return {name: _ends(scored[system].interval()) for name, scored in self.scored.items()}

    def gains(self, system: int) -> dict[str, Interval] | None:
        """{metric: {"difference", "low", "high"}}: the score less the baseline's, with a 95 %
        paired bootstrap interval; None for the baseline."""
        if system == self.baseline:
            return None
        pairs = {
            name: (scored[self.baseline], scored[system]) for name, scored in self.scored.items()
        }
        return {
            name: {"difference": own.score - base.score, **_ends(gain_interval(base, own))}
            for name, (base, own) in pairs.items()
        }


def _ends(interval: tuple[float, float]) -> Interval:
    return {"low": interval[0], "high": interval[1]}
