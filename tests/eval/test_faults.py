"""Faults that are planted into real pairs are found, and clean pairs are left alone."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from places import ROOT

from tmnmt.cli import run
from tmnmt.eval.faults import KINDS, find_faults
from tmnmt.eval.faults.encoding import lost_letters, misread
from tmnmt.eval.faults.identify import other_language
from tmnmt.formats import read_memory, write_tsv
from tmnmt.segments import Segment

LAW = ROOT / "memories" / "jrc-acquis.en-fr.tmx.gz"
GERMAN = "Die Kommission kann nach Anhörung des Ausschusses beschließen, dass {} nicht gilt."
SHIFT = 6


class Memory:
    src_lang, tgt_lang = "en", "fr"

    def __init__(self, pairs: Sequence[Segment]) -> None:
        self._segments = [replace(segment, id=at + 1) for at, segment in enumerate(pairs)]

    def __len__(self) -> int:
        return len(self._segments)

    def segments(self) -> Iterator[Segment]:
        return iter(self._segments)


@cache
def law() -> tuple[Segment, ...]:
    return tuple(read_memory(LAW, "en", "fr"))[:4000]


def ids_by_kind(pairs: Sequence[Segment]) -> dict[str, set[int]]:
    faults = find_faults(Memory(pairs))
    return {kind: {f.segment.id - 1 for f in faults if f.kind == kind} for kind in KINDS}


@cache
def of_clean() -> dict[str, set[int]]:
    return ids_by_kind(law())


def prose(pairs: Sequence[Segment], seed: int, count: int) -> list[int]:
    long = [at for at, s in enumerate(pairs) if len(s.src.split()) >= 8 and not s.tgt.isascii()]
    return random.Random(seed).sample(long, count)


@pytest.mark.parametrize("kind", ["untranslated", "encoding", "language"])
def test_what_is_planted_into_single_pairs_is_found(kind: str) -> None:
    pairs = list(law())
    planted = prose(pairs, 5, 40)
    targets = {
        "untranslated": lambda s: s.src,
        "encoding": lambda s: s.tgt.encode().decode("cp1252", "ignore"),
        "language": lambda s: GERMAN.format(s.src.split()[0]),
    }
    for at in planted:
        pairs[at] = replace(pairs[at], tgt=targets[kind](pairs[at]))
    named = ids_by_kind(pairs)[kind]
    assert len(named & set(planted)) >= 0.95 * len(planted)
    assert len(named - set(planted) - of_clean()[kind]) == 0


def test_shifted_stretches_are_found() -> None:
    pairs = list(law())
    planted: set[int] = set()
    for first in range(200, 3800, 300):
        block = pairs[first : first + SHIFT]
        if len({s.document for s in block}) > 1 or len({s.tgt for s in block}) < SHIFT:
            continue
        for at, source in enumerate([block[-1], *block[:-1]]):
            pairs[first + at] = replace(pairs[first + at], tgt=source.tgt)
        planted |= set(range(first, first + SHIFT))
    named = ids_by_kind(pairs)["shifted"]
    assert len(planted) >= 40
    assert len(named & planted) >= 0.55 * len(planted)
    assert len(named - planted - of_clean()["shifted"]) <= 0.1 * len(planted)


def test_clean_pairs_are_left_alone() -> None:
    """Real contradictions are no false alarms: the corpus has some."""
    for kind in ("untranslated", "encoding", "language", "shifted"):
        assert len(of_clean()[kind]) <= 0.005 * len(law()), kind


@pytest.mark.parametrize(
    "text",
    [
        ">>> import fibo, sys >>> dir(fibo) ['__name__', 'fib', 'fib2']",
        "for obj in mylist: obj.method() for obj in mylist: function(obj)",
        "from sound.effects.echo import echofilter",
        "python -m compileall .",
        "source tutorial-env/bin/activate",
    ],
)
def test_code_that_is_the_same_on_both_sides_is_right(text: str) -> None:
    assert not any(ids_by_kind([Segment(text, text, "d")]).values())


def test_of_several_targets_the_rarer_one_is_the_contradiction() -> None:
    pairs = [
        ("Open the file.", tgt) for tgt in ("Ouvrez le fichier.", "Ouvrez le fichier !", "Non.")
    ]
    memory = [Segment(*pair, f"d{at}") for at, pair in enumerate(pairs)]
    assert ids_by_kind(memory)["contradiction"] == {2}
    assert ids_by_kind(memory[1:])["contradiction"] == set()  # nobody can say which is right


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("la rÃ¨gle gÃ©nÃ©rale", "rÃ¨gle"),
        ("itâ€™s here", "itâ€™s"),
        ("РџСЂРёРІРµС‚", "РџСЂРёРІРµС‚"),
        ("L’« ÉTÉ’», QUALITÉ\xa0: ça va, où ? São Paulo, ÄÖÜ", ""),
        ("Привет, мир. Рёв.", ""),
    ],
)
def test_a_wrong_encoding_is_seen(text: str, word: str) -> None:
    assert misread(text) == word


def test_a_question_mark_in_a_word_is_a_lost_letter() -> None:
    assert lost_letters("The rule.", "La r?gle.") == "r?gle."
    assert lost_letters("See a?b=1.", "Voir a?b=1.") == ""


@pytest.mark.parametrize(
    ("text", "lang", "other"),
    [
        ("The permit may not be transferred to another person.", "fr", "en"),
        ("Le permis ne peut pas être transféré à une autre personne.", "en", "fr"),
        ("Le permis ne peut pas être transféré à une autre personne.", "fr-CA", ""),
        ("Разрешение не может быть передано.", "fr", "cyrillic"),
        ("The permit may not be transferred to another person.", "ru", "latin"),
        ("Python, NumPy, PostgreSQL, Kubernetes", "ru", ""),
        ("許可証的持有人不得将其转让给他人使用", "fr", "cjk"),
        ("El permiso no puede ser transferido a otra persona por los que lo tienen.", "pt", "es"),
        ("`if x in the_list: return a`", "fr", ""),
    ],
)
def test_a_text_in_another_language_is_told_where_it_is_sure(
    text: str, lang: str, other: str
) -> None:
    assert (
        other_language(text, lang) in {other, "hiragana"}
        if other == "cjk"
        else other_language(text, lang) == other
    )


def test_faults_are_printed_and_marked_and_nothing_is_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = [Segment(s.src, s.tgt, "d", at) for at, s in enumerate(law()[:60])]
    pairs[7] = replace(pairs[7], src="The rule holds here.", tgt="The rule holds here.")
    write_tsv(tmp_path / "my.tsv", pairs)
    index = str(tmp_path / "index")
    languages = ("--src-lang", "en", "--tgt-lang", "fr")
    assert run(["build-index", str(tmp_path / "my.tsv"), "--index", index, *languages]) == 0
    capsys.readouterr()
    for _ in range(2):  # marking again changes nothing
        assert run(["memory", "clean", "--index", index, "--mark"]) == 0
        printed = capsys.readouterr()
        (line,) = [row for row in printed.out.splitlines() if row.startswith("untranslated")]
        assert line.split("\t")[3] == "The rule holds here."
        assert "untranslated: 1 segment: the target is the source" in printed.err
    assert run(["memory", "list", "--index", index, "--property", "x-fault=untranslated"]) == 0
    assert "The rule holds here." in capsys.readouterr().out
    assert run(["memory", "delete", "--index", index, "--property", "x-fault=untranslated"]) == 0
    assert "1 segment deleted" in capsys.readouterr().err
