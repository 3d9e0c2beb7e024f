"""How often the tests of significance call two equal systems different: at 5 % it should be one
pair in twenty.

    python eval/calibration.py RUN_FOLDER [--systems base copy] [--pairs 1000] [--segments 500]
    [--output FILE.json]

Of the outputs of two systems in RUN_FOLDER (`tmnmt evaluate run` made it) equal systems are made:
for every segment, drawn anew with replacement for each pair, a coin says which of the two outputs
goes where. What the tests then find is chance. The share they call different at p <= 0.05 should
lie in the interval in which 99 % of such experiments end where the true share is 5 %."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from tmnmt.eval.measures.metrics import Counts, Metric, count, metrics
from tmnmt.eval.measures.significance import TESTS, Scored
from tmnmt.progress import Progress

LEVEL, SEED = 0.05, 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--systems", nargs=2, default=["base", "copy"])
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--segments", type=int, default=500)
    parser.add_argument("--metric", nargs="+", default=["BLEU", "chrF2++"])
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    language, references, outputs = read(options.run, options.systems)
    low, high = interval(options.pairs)
    print(
        f"{options.pairs:,} pairs of equal systems, {options.segments:,} segments each; 99 %: "
        f"{low:.1%} to {high:.1%}"
    )
    shares = {}
    for metric in (metric for metric in metrics(language) if metric.name in options.metric):
        counts = count(metric, [references], outputs)
        shares[metric.name] = share_different(metric, counts, options.pairs, options.segments)
        for name, share in shares[metric.name].items():
            print(
                f"{metric.name:10} {name:28} {share:6.1%}  "
                f"{'' if low <= share <= high else 'outside'}"
            )
    if options.output:
        result = {
            "pairs": options.pairs,
            "segments": options.segments,
            "interval": [low, high],
            "different": shares,
        }
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def read(run: Path, systems: list[str]) -> tuple[str, list[str], list[list[str]]]:
    """The target language, the references and both systems' outputs of the first test
    set of a run."""
    test = json.loads((run / "report.json").read_text(encoding="utf-8"))["tests"][0]
    with (run / "segments.jsonl").open(encoding="utf-8") as lines:
        records = [record for line in lines if (record := json.loads(line))["test"] == test["name"]]
    references = [r["ref"] if isinstance(r["ref"], str) else r["ref"][0] for r in records]
    return (
        test["tgt_lang"],
        references,
        [[r["systems"][name]["hyp"] for r in records] for name in systems],
    )


def share_different(
    metric: Metric, counts: list[Counts], pairs: int, segments: int
) -> dict[str, float]:
    """For every test the share of pairs of equal systems that it calls different."""
    rng, both = np.random.default_rng(SEED), np.stack(counts)
    different = dict.fromkeys(TESTS, 0)
    with Progress(f"{metric.name}: pairs of equal systems", "pairs", pairs) as progress:
        for _ in range(pairs):
            drawn = rng.integers(both.shape[1], size=segments)
            side = rng.integers(2, size=segments)
            one, other = Scored(metric, both[side, drawn]), Scored(metric, both[1 - side, drawn])
            for name, test in TESTS.items():
                different[name] += test(one, other) <= LEVEL
            progress.advance()
    return {name: found / pairs for name, found in different.items()}


def interval(n: int, share: float = 0.99) -> tuple[float, float]:
    """The central interval of the share of heads in `n` tosses that come up with
    probability LEVEL."""
    k = np.arange(1, n + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log((n - k + 1) / k) + np.log(LEVEL / (1 - LEVEL)))])
    below = np.cumsum(np.exp(logs + n * np.log(1 - LEVEL)))
    low, high = np.searchsorted(below, [(1 - share) / 2, (1 + share) / 2])
    return float(low) / n, float(high) / n


if __name__ == "__main__":
    main()
