"""The program that counts sentences which a model replays out of what was confirmed before."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest
from places import ROOT

from tmnmt.segments import Segment

DOCUMENTS = [
    [
        Segment("The owner must send a notice.", "Le propriétaire envoie un avis."),
        Segment("Fees are due each year.", "Les frais sont dus chaque année."),
        Segment("The owner must send the notice.", "Le propriétaire envoie l'avis."),
    ],
    [Segment("No such file or directory", "Aucun fichier de ce nom")],
]


@pytest.fixture(scope="module")
def program() -> ModuleType:
    place = ROOT / "eval" / "replayed_sentences.py"
    spec = importlib.util.spec_from_file_location("replayed_sentences", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["replayed_sentences"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("second", "third", "fourth", "told"),
    [
        # the first segment's target, for a source that is not like it
        ("le propriétaire envoie un avis !", "", "", "1 of 4 replayed, 1 by more than half"),
        ("Le propriétaire envoie un chèque.", "", "", "0 of 4 replayed, 1 by more than half"),
        ("Les frais sont dus.", "", "", "0 of 4 replayed, 0 by more than half"),
        # for a source that is like it, and of another document
        ("", "Le propriétaire envoie un avis.", "", "0 of 4 replayed, 0 by more than half"),
        ("", "", "Le propriétaire envoie un avis.", "0 of 4 replayed, 0 by more than half"),
    ],
)
def test_whole_targets_of_unlike_sources_are_counted(
    program: ModuleType,
    capsys: pytest.CaptureFixture[str],
    second: str,
    third: str,
    fourth: str,
    told: str,
) -> None:
    program.report("nearest", DOCUMENTS, ["", second, third, fourth], 3)
    assert capsys.readouterr().out.splitlines()[0] == f"nearest: {told}"
