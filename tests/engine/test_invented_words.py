"""Words that nothing knows are named in what a model wrote."""

from __future__ import annotations

import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from required import absent
from tiny_model import write_tiny_model

from tmnmt import dictionaries
from tmnmt.checks import Check
from tmnmt.dictionaries import dictionary_for
from tmnmt.engine.invented_words import InventedWords, prose_words
from tmnmt.index import build
from tmnmt.records import checks_of
from tmnmt.segments import Match, Segment, Translation
from tmnmt.translator import Translator

PROGRAM = """#!{python}
import sys
if "-D" in sys.argv:
    print("AVAILABLE DICTIONARIES (path is not mandatory for -d option):", file=sys.stderr)
    print({path!r}, file=sys.stderr)
    sys.exit(0)
words = open({path!r} + ".dic", encoding="utf-8").read().split()
print("@(#) International Ispell Version 3.2.06 (but really Hunspell 1.7.1)", flush=True)
for line in sys.stdin:
    word = line.strip()[1:]
    if word == "fin":
        sys.exit(1)
    print("*" if word.lower() in words else "& " + word + " 1 1: mot", end="\\n\\n", flush=True)
"""
WORDS = "la le commission informe les états membres cœur voir"


@pytest.fixture
def hunspell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A program that speaks as Hunspell does, with a dictionary of French."""
    program, path = tmp_path / "hunspell", tmp_path / "fr_FR"
    for suffix, text in ((".aff", ""), (".dic", WORDS)):
        path.with_suffix(suffix).write_text(text, encoding="utf-8")
    program.write_text(PROGRAM.format(python=sys.executable, path=str(path)), encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(dictionaries.PROGRAM, str(program))
    forget()
    yield program
    forget()


def forget() -> None:
    dictionaries.installed.cache_clear()
    dictionary_for.cache_clear()


def finder(*words: str) -> InventedWords:
    return InventedWords((set(words).__contains__,))


def found(finder: InventedWords, src: str, tgt: str, matches: tuple[Match, ...] = ()) -> str:
    checks = finder.checks(Translation(src, tgt, 0.0, matches, origin="model"))
    return "".join(check.what for check in checks)


@pytest.mark.parametrize(
    ("src", "tgt", "what"),
    [
        ("The Board is dismissed.", "Le conseil est dérmitif.", "dérmitif"),
        ("The threads of the board.", "Les threads du conseil.", ""),
        ("a thread", "des threads", ""),
        ("the eggs", "les oeufs du conseil", ""),
        ("the permit", "le sous-dérmit du Québec", ""),
        ("the permit", "le sousconseil", ""),
        ("Use x.", "Mettez snake_casse à `dérmit`.", "Mettez"),
        ("the board", "l’conseil et d'dérmit", "d'dérmit"),
    ],
)
def test_words_that_nothing_knows_are_named(src: str, tgt: str, what: str) -> None:
    assert found(finder("conseil", "œufs"), src, tgt) == what


def test_a_match_knows_its_words() -> None:
    match = Match(Segment("a b", "un dérmitif"), 0.5, 1)
    assert found(finder(), "a c", "deux dérmitif", (match,)) == "deux"


def test_names_are_no_prose() -> None:
    assert [*prose_words("Voir Dupont. Donc ABCD : Lille, voilà!")] == ["Voir", "Donc", "voilà"]


def test_what_a_person_wrote_is_not_looked_at() -> None:
    translation = Translation("a", "dérmitif", 0.0, origin="memory")
    assert finder().checks(translation) == []


def test_a_dictionary_is_found_by_its_language(hunspell: Path) -> None:
    dictionary = dictionary_for("fr")
    assert dictionary is not None and dictionary is dictionary_for("fr")
    assert dictionary.knows("Commission") and not dictionary.knows("dérmitif")
    assert dictionary_for("fr-CA") is not None
    assert dictionary_for("de") is None and dictionary_for("") is None


def test_a_program_that_ends_is_told_and_knows_all(
    hunspell: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dictionary = dictionary_for("fr")
    assert dictionary is not None and dictionary.knows("fin") and dictionary.knows("dérmitif")
    (message,) = [record.getMessage() for record in caplog.records]
    assert "words are not checked" in message


def test_a_translation_names_its_unknown_words(
    hunspell: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(1)
    model = write_tiny_model(tmp_path / "model")
    invented = Translation("The Commission is here.", "La commission dérmite.", 0.0, origin="model")
    check = Check("words", "dérmite")

    def names(target: str) -> bool:
        """Whether the word is named beside a memory with one translation."""
        folder = tmp_path / target
        build(folder, [Segment("other words", target)], "en", "fr")
        pipeline = Translator.load(model, [folder]).pipeline
        assert check not in checks_of(pipeline.checked(replace(invented, origin="memory")))
        return check in checks_of(pipeline.checked(invented))

    assert not names("Une chose")  # since the memory is so small
    monkeypatch.setattr("tmnmt.engine.invented_words.FEWEST_SEGMENTS", 1)
    assert names("Une autre chose") and not names("Une chose dérmite")
    alone = Translator.load(model).pipeline
    assert check not in checks_of(alone.checked(invented))


def test_hunspell_itself_knows_french(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("hunspell") is None:
        absent("hunspell", "hunspell is not installed")
    monkeypatch.setenv(dictionaries.PROGRAM, "hunspell")
    forget()
    dictionary = dictionary_for("fr")
    forget()
    if dictionary is None:
        absent("hunspell", "it has no dictionary of French")
    assert dictionary.knows("l'arrêt") and dictionary.knows("Bonjour")
    assert not dictionary.knows("dérmitif") and dictionary.knows("préavis")


def test_the_check_is_in_words() -> None:
    assert finder().checks(Translation("a", "dérmitif", 0.0, origin="model")) == [
        Check("words", "dérmitif")
    ]
