"""How the keys are counted that a text takes on the desk and in other tools."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable

import pytest
from places import ROOT

_spec = importlib.util.spec_from_file_location(
    "desk_comparison", ROOT / "eval" / "desk_comparison.py"
)
assert _spec is not None and _spec.loader is not None
desk_comparison = importlib.util.module_from_spec(_spec)
sys.modules["desk_comparison"] = desk_comparison  # where dataclasses look for their annotations
_spec.loader.exec_module(desk_comparison)
Jump, Start = desk_comparison.Jump, desk_comparison.Start
edited, best, planned = desk_comparison.edited, desk_comparison.best, desk_comparison.planned
chords, plan_keys = desk_comparison.chords, desk_comparison.plan_keys


@pytest.mark.parametrize(
    ("start", "reference", "keys", "with_clicks"),
    [
        ("", "un", 2, 2),
        ("Tout est nul.", "Tout est nul.", 0, 0),
        ("Tout est nul.", "Tout est nul", 1, 1),  # from the end
        ("Tout est bien nul.", "Tout est nul.", 2, 2),  # from the end: a word over, one away
        ("un deux trois quatre cinq", "un deux trois quatre", 1, 1),
        ("abcdef", "abXdef", 4, 3),  # two letters over, or one click
        ("un deux trois quatre", "un", 1 + 2, 1 + 2),
    ],
)
def test_editing_takes_the_fewest_keys(
    start: str, reference: str, keys: int, with_clicks: int
) -> None:
    assert edited(start, reference) == keys
    assert edited(start, reference, clicks=True) == with_clicks


def test_a_text_is_typed_by_what_completes_its_words() -> None:
    told = {"completed": {"min": ["mine", "ministre"]}, "predicted": {"le": ["ministre"]}}
    jumps = desk_comparison.completions(told, "Ministre, le ministre")
    assert jumps == [Jump(13, 21, 5), Jump(13, 21, 1)]
    assert edited("", "Ministre, le ministre", jumps) == len("Ministre, le ") + 1


def test_the_better_start_is_taken_with_its_keys() -> None:
    way = best({"nothing": Start("", 0), "match 1": Start("Tout est nul.", 2)}, "Tout est nul.")
    assert (way.keys, way.by) == (3, "match 1")
    assert desk_comparison.matecat([(90, "a"), (60, "b")], "m") == {
        "nothing": Start("", 1),
        "suggestion 1": Start("a", 0),
        "suggestion 2": Start("m", 1),
        "suggestion 3": Start("b", 1),
    }
    assert desk_comparison.weblate([(90, "a")], "m")["suggestion 2"] == Start("a", 2)


def model(*texts: str) -> Callable[[str], str]:
    """Goes on with the first text that begins as what was typed."""
    return lambda typed: next((text for text in texts if text.startswith(typed)), typed)


def test_a_reference_is_typed_with_what_is_suggested() -> None:
    reference = "Le ministre peut révoquer tout permis."
    first = "Le ministre peut annuler un permis."
    complete = model(first, "Le ministre peut révoquer un permis.", reference)
    plan = planned(complete, first, reference)
    assert plan == [
        ("take", "Le ministre peut"),
        ("type", " r"),
        ("take", "évoquer"),
        ("type", " t"),
        ("all", "out permis."),
    ]
    assert plan_keys(plan) == 1 + 2 + 1 + 2 + 1 + 1
    assert planned(complete, reference, reference) == [] and plan_keys([]) == 1


def test_a_word_that_is_nearly_right_is_taken_and_mended() -> None:
    plan = planned(model("les permis"), "les permis", "les permise")
    assert plan == [("take", "les"), ("take", " permis"), ("type", "e")]
    plan = planned(model(), "règlements", "règlement")
    assert plan == [("take", "règlements"), ("delete", "s")]


def test_many_words_are_taken_by_nines() -> None:
    assert [*chords(1)] == [("Tab",)] and [*chords(3)] == [("3", "Alt")]
    assert [*chords(10)] == [("9", "Alt"), ("Tab",)]
