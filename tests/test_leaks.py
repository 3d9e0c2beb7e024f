"""Leaks: every test source that stands in the memory is found, however it is written, and nothing
else."""

from __future__ import annotations

import random

from leaks import Leak, leaks
from places import JRC

from tmnmt.formats import read_memory
from tmnmt.text import normalise


def test_a_leak_says_where_it_stands_and_how_often() -> None:
    test = ["Article 1", "The permit.", "No such text"]
    memory = ["Something else", "The  permit .", "The permit.", "ARTICLE 1"]
    assert leaks(test, memory) == [Leak(2, "The permit.", 2, "The  permit .", 2)]


def test_all_planted_duplicates_are_found() -> None:
    sources = list(dict.fromkeys(segment.src for segment in read_memory(JRC, "en", "fr")))
    choose = random.Random(6)
    choose.shuffle(sources)
    distinct = list({normalise(src): src for src in sources}.values())
    test, memory = distinct[:400], distinct[400:]
    assert leaks(test, memory) == []
    planted = choose.sample(range(len(test)), 150)
    for at in planted:
        memory.insert(choose.randrange(len(memory)), "  " + test[at].replace(" ", "\u00a0") + " ")
    found = leaks(test, iter(memory))
    assert [leak.number for leak in found] == sorted(at + 1 for at in planted)
    assert all(normalise(memory[leak.first - 1]) == normalise(leak.src) for leak in found)


def test_a_source_that_comes_again_leaks_each_time_and_one_without_tokens_never() -> None:
    assert [leak.number for leak in leaks(["a", "", "b", "a"], ["", "a", "\u200b"])] == [1, 4]
