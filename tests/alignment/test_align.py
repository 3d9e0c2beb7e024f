"""Sentences of two documents find each other."""

from __future__ import annotations

import random
import runpy
import signal
import subprocess
import sys
from collections import defaultdict
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

from tmnmt.alignment import align as align_module
from tmnmt.alignment import paths
from tmnmt.alignment.align import align
from tmnmt.alignment.documents import pairs_of_folders, read_sentences
from tmnmt.alignment.vectors import products, vectors_of
from tmnmt.errors import DataError, FormatError, UsageError
from tmnmt.formats import read_memory

ROOT = Path(__file__).parents[2]
HELD_OUT = ROOT / "memories" / "held-out"
case_of = runpy.run_path(str(ROOT / "eval" / "aligned_documents.py"))["case_of"]
LINES = [
    ("The Minister may revoke a permit.", "Le ministre peut révoquer un permis."),
    ("A notice is sent to the holder within 30 days.", "Un avis est envoyé sous 30 jours."),
    ("The holder may appeal to the Tribunal.", "Le titulaire peut saisir le Tribunal."),
    ("See section 12.", "Voir l'article 12."),
    ("Permits of 1998 stay valid until 2005.", "Les permis de 1998 restent valides jusqu'en 2005."),
]


@cache
def document() -> list[tuple[str, str]]:
    """The longest of the kept-out documents of JRC-Acquis."""
    documents = defaultdict[str, list[tuple[str, str]]](list)
    for segment in read_memory(HELD_OUT / "jrc-acquis.test.en-fr.tsv.gz", "en", "fr"):
        documents[segment.document].append((segment.src, segment.tgt))
    return max(documents.values(), key=len)[:200]


@pytest.mark.parametrize("drop", [0.0, 0.1])
def test_a_real_document_is_aligned_whatever_was_merged_dropped_and_swapped(drop: float) -> None:
    case = case_of(document(), drop, random.Random(7))
    alignment = align(case.sources, case.targets)
    found = {(pair.sources, pair.targets) for pair in alignment.pairs}
    right = len(found & {*case.links})
    assert 2 * right / (len(found) + len(case.links)) > 0.92
    sure = [pair for pair in alignment.pairs if not pair.is_doubtful]
    wrong = [pair for pair in sure if (pair.sources, pair.targets) not in case.links]
    assert len(sure) > len(case.links) / 2 and len(wrong) <= len(sure) / 50


def test_every_sentence_is_in_one_place() -> None:
    case = case_of(document(), 0.2, random.Random(3))
    alignment = align(case.sources, case.targets)
    numbers = [n for pair in alignment.pairs for n in pair.sources] + alignment.lone_sources
    targets = [n for pair in alignment.pairs for n in pair.targets] + alignment.lone_targets
    assert sorted(numbers) == [*range(len(case.sources))]
    assert sorted(targets) == [*range(len(case.targets))]


def test_two_sentences_in_the_other_order_find_each_other() -> None:
    sources = [src for src, _ in LINES]
    targets = [tgt for _, tgt in LINES]
    targets[3], targets[4] = targets[4], targets[3]
    found = {(pair.sources, pair.targets) for pair in align(sources, targets, sources).pairs}
    assert ((3,), (4,)) in found and ((4,), (3,)) in found


def test_translations_decide_where_no_word_is_shared() -> None:
    sources = ["Eins zwei drei vier.", "Fünf sechs sieben acht."]
    targets = ["One two three four.", "Inserted here by mistake.", "Five six seven eight."]
    alignment = align(sources, targets, [targets[0], targets[2]])
    assert [(pair.sources, pair.targets) for pair in alignment.pairs] == [
        ((0,), (0,)),
        ((1,), (2,)),
    ]
    assert alignment.lone_targets == [1]


@pytest.mark.parametrize(("sources", "targets"), [([], []), (["a"], []), ([], ["a", "b"])])
def test_nothing_is_aligned_with_nothing(sources: list[str], targets: list[str]) -> None:
    alignment = align(sources, targets)
    assert alignment.pairs == []
    numbers = alignment.lone_sources, alignment.lone_targets
    assert numbers == ([*range(len(sources))], [*range(len(targets))])


def test_too_many_sentences_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align_module, "MOST_SENTENCES", 2)
    with pytest.raises(DataError, match="at most 2"):
        align(["a", "b", "c"], ["a"])


def test_the_probability_of_a_step_is_its_share_in_all_paths() -> None:
    """Against all paths, one by one."""
    sources = [src for src, _ in LINES[:3]]
    targets = [tgt for _, tgt in LINES[:3]]
    documents = align_module._documents(sources, targets, sources)

    def ways(i: int, j: int) -> list[tuple[float, tuple[tuple[int, int, int], ...]]]:
        if i == 0 and j == 0:
            return [(0.0, ())]
        result = []
        for step in range(paths.STEPS):
            score = paths._score(documents, i, j, step)
            if score <= paths.IMPOSSIBLE / 2:
                continue
            a, b = paths._counts(step)
            result += [(before + score, (*way, (i, j, step))) for before, way in ways(i - a, j - b)]
        return result

    every = ways(3, 3)
    weights = np.exp(np.array([score for score, _ in every]) / paths.TEMPERATURE)
    best = max(every)[1]
    _, steps, before = paths.forward(documents, 3)
    path = paths.best_path(documents, 3, steps, before, paths.backward(documents, 3))
    assert [each[:3] for each in reversed(path)] == [*best]
    for i, j, step, probability in path:
        share = sum(
            weight for weight, (_, way) in zip(weights, every, strict=True) if (i, j, step) in way
        )
        assert probability == pytest.approx(share / weights.sum(), rel=1e-3)


def test_a_long_document_is_looked_at_about_its_diagonal(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of(document(), 0.05, random.Random(1))
    whole = align(case.sources, case.targets)
    monkeypatch.setattr(align_module, "MOST_PLACES", 0)
    monkeypatch.setattr(align_module, "MIN_WIDTH", 60)
    assert align_module._band(len(case.sources), len(case.targets))[1] == 60
    narrow = align(case.sources, case.targets)
    assert [p.sources for p in narrow.pairs] == [p.sources for p in whole.pairs]
    assert [p.targets for p in narrow.pairs] == [p.targets for p in whole.pairs]


def test_products_are_those_of_the_vectors() -> None:
    sources, targets = vectors_of([src for src, _ in LINES], [tgt for _, tgt in LINES])
    starts = np.array([0, 0, 1, 2, 2])
    matrix = products(sources, targets, starts, 3)
    for row, column in combinations(range(3), 2):
        vector, other = sources[row], targets[starts[row] + column]
        expected = sum(vector[word] * other[word] for word in vector.keys() & other.keys())
        assert matrix[row, column] == pytest.approx(expected, rel=1e-5)


def test_files_of_any_kind_give_their_sentences(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One permit. Two permits.\nA line.\n", encoding="utf-8")
    (tmp_path / "a.html").write_text("<p>One <b>permit</b>. Two permits.</p><p>A line.</p>")
    for name in ("a.txt", "a.html"):
        assert read_sentences(tmp_path / name, "en") == ["One permit.", "Two permits.", "A line."]
    with pytest.raises(FormatError, match="nowhere"):
        read_sentences(tmp_path / "nowhere.txt", "en")


def test_files_of_two_folders_find_each_other_by_name(tmp_path: Path) -> None:
    first, second = tmp_path / "en", tmp_path / "fr"
    for folder, names in (
        (first, ("a.en.txt", "b/c_en.txt", "x.txt")),
        (second, ("a.fr.txt", "b/c_fr.txt")),
    ):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("x")
    found = pairs_of_folders(first, second, ("en", "fr-CA"))
    assert found == [
        (first / "a.en.txt", second / "a.fr.txt"),
        (first / "b/c_en.txt", second / "b/c_fr.txt"),
    ]
    (first / "a-EN.txt").write_text("x")
    with pytest.raises(UsageError, match="both called"):
        pairs_of_folders(first, second, ("en", "fr"))
    with pytest.raises(DataError, match="no file"):
        pairs_of_folders(second, tmp_path / "none", ("fr", "en"))


def test_pairs_keep_the_order_of_the_sources() -> None:
    case = case_of(document(), 0.1, random.Random(5))
    firsts = [pair.sources[0] for pair in align(case.sources, case.targets).pairs]
    assert all(first < second for first, second in pairwise(firsts))


def test_windows_line_ends_part_sentences_as_others_do(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"It is paid soon.\r\nThis Act is here.\r\n")
    assert read_sentences(tmp_path / "a.txt", "en") == ["It is paid soon.", "This Act is here."]


def test_a_file_with_two_languages_gives_the_side_that_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "a.xlf"
    path.write_text(
        '<xliff version="1.2"><file source-language="en" target-language="fr"><body>'
        '<trans-unit id="1"><source>A permit.</source><target>Un permis.</target></trans-unit>'
        "</body></file></xliff>"
    )
    assert read_sentences(path, "en") == ["A permit."]
    assert read_sentences(path, "fr-CA") == ["Un permis."]
    with pytest.raises(UsageError, match="from en to fr; de was asked for"):
        read_sentences(path, "de")
    with pytest.raises(UsageError, match="is a memory already"):
        read_sentences(ROOT / "tests" / "data" / "scripts" / "hi.tmx", "hi")


def test_an_interruption_ends_an_alignment_at_once() -> None:
    code = (
        "from tmnmt.alignment import align\n"
        "forward, lines = align.forward, [f'Section {n} of this Act.' for n in range(1500)]\n"
        "align.forward = lambda *given: print('ready', flush=True) or forward(*given)\n"
        "align.align(lines, lines)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(120) in (1, -signal.SIGINT, 130)
