"""`tmnmt evaluate compare`: two runs beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tmnmt.counted import counted
from tmnmt.eval.measures.verdict import TEST, differs


def compare(
    run_a: Annotated[Path, typer.Argument(help="Folder of a run, or of scores.")],
    run_b: Annotated[Path, typer.Argument(help="Folder of another, of the same test sets.")],
    json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
) -> None:
    """What changed from one run to another: for every system that both have, scores and whether
    they differ by more than chance (approximate randomisation, corrected by Holm)."""
    from json import dumps

    from tmnmt.eval.compare import compare, read_run

    found = compare(read_run(run_a), read_run(run_b))
    if json:
        print(dumps(found, ensure_ascii=False))
        return
    for test in found["tests"]:
        print(f"{test['name']}: {counted(test['segments'], 'segment')}")
        for system in test["systems"]:
            _show(system)
        for key in ("a", "b"):
            if test[f"only_{key}"]:
                print(f"  only in {found[key]}: {', '.join(test[f'only_{key}'])}")


def _show(system: dict[str, Any]) -> None:
    print(f"  {system['name']}: {counted(system['changed'], 'segment')} changed")
    for name, told in system["metrics"].items():
        verdict = "differs" if differs(TEST, told["p_holm"]) else "no more than chance"
        scores = f"{told['a']:6.2f} -> {told['b']:6.2f}  {told['difference']:+6.2f}"
        print(f"    {name:8} {scores}  p = {told['p_holm']:.4f}, {verdict}")
    for key, (a, b) in system["settings"].items():
        print(f"    {key}: {a} -> {b}")
