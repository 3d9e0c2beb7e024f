"""Exact matches that are translated: the shipped model gives back what the memory holds; the
program that counts it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from places import MODEL, ROOT
from tiny_model import write_tiny_model

from tmnmt.config.options import TranslationOptions
from tmnmt.errors import DataError
from tmnmt.formats import read_memory, write_tsv
from tmnmt.translator import Translator

STRINGS = ROOT / "eval" / "interface-strings.en-fr.tsv"


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "exact_matches", ROOT / "eval" / "exact_matches.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["exact_matches"] = module
    spec.loader.exec_module(module)
    return module


def test_subwords_that_stand_twice_are_copied_to_the_end(tmp_path: Path) -> None:
    """What the model without a pointer gave back changed: "FER", "IMER", "AVERTISEMENT",
    "POLITIALITÉ"."""
    held = {s.src: s for s in read_memory(STRINGS, "en", "fr")}
    texts = [
        "CLOSE FILE",
        "PRINT",
        "WARNING",
        "PRIVACY POLICY",
        "Forgot your password?",
        "Underlined",
    ]
    path = tmp_path / "some.tsv"
    write_tsv(path, [held[text] for text in texts])
    model = MODEL
    translator = Translator.load(
        model, [path], TranslationOptions(remember="nothing", mode="copy", verbatim=0, threads=1)
    )
    assert [done.tgt for done in translator.translate(texts)] == [held[text].tgt for text in texts]


def test_there_are_150_different_strings() -> None:
    assert len({segment.src for segment in read_memory(STRINGS, "en", "fr")}) == 150


def test_what_comes_back_is_counted(
    program: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, path = write_tiny_model(tmp_path / "model"), tmp_path / "held.tsv"
    path.write_text(
        "src\ttgt\nthe red house\tla maison rouge\nthe red house\tla maison\na dog\tun chien\n",
        "utf-8",
    )
    found = program.measured(path, [path], model, "copy")
    assert found["as it stands"] == {
        "sources": 2,
        "unchanged": 2,
        "another": 0,
        "nothing": 0,
        "strange": [],
    }
    told = found["translated"]
    assert told["sources"] == 2 == sum(told[kind] for kind in program.OUTCOMES)
    assert len(told["strange"]) == told["nothing"] > 0  # the tiny model has not learned to copy
    assert "as it stands: 2 sources; unchanged 2 (100.0 %)" in capsys.readouterr().out
    assert (
        program.outcome("la maison", "la maison rouge", {"la maison", "la maison rouge"})
        == "another"
    )
    other = tmp_path / "other.tsv"
    other.write_text("src\ttgt\nnothing of it\trien\n", "utf-8")
    with pytest.raises(DataError, match="the memory holds no source of it"):
        program.measured(other, [path], model, "copy")
