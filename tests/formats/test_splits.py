"""Splits by document: as large as asked for, alike wherever they are made, or as the lists say."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from places import ROOT

from tmnmt.errors import DataError, UsageError
from tmnmt.formats.splits import Split, fresh_split, listed_split, point_of, split_id
from tmnmt.formats.splits import stretches as parts

LISTS = ROOT / "eval" / "splits"
SIZES = {f"doc{n}": random.Random(n).randrange(1, 200) for n in range(500)}


def held(split: Split, sizes: dict[str, int]) -> tuple[int, int]:
    return sum(sizes[name] for name in split.dev), sum(sizes[name] for name in split.test)


@pytest.mark.parametrize("segments", [100, 1000, 10_000])
def test_dev_and_test_are_about_as_large_as_asked_for_and_share_no_document(segments: int) -> None:
    split = fresh_split(SIZES, segments)
    assert not split.dev & split.test
    for size in held(split, SIZES):
        assert 0.95 * segments <= size <= 1.05 * segments


def test_the_order_of_the_documents_is_nothing_to_the_split() -> None:
    names = list(SIZES)
    random.Random(1).shuffle(names)
    assert fresh_split({name: SIZES[name] for name in names}, 1000) == fresh_split(SIZES, 1000)


def test_added_documents_move_none_from_dev_to_test_or_into_them() -> None:
    before = fresh_split(SIZES, 2000)
    after = fresh_split(SIZES | {f"new{n}": 40 for n in range(200)}, 2000)
    assert after.dev != before.dev and after.test != before.test
    assert not (after.dev & before.test or after.test & before.dev)
    lowest = max(map(point_of, before.test)), min(map(point_of, before.dev))
    assert (
        max(map(point_of, after.test)) <= lowest[0] and min(map(point_of, after.dev)) >= lowest[1]
    )


def test_a_document_that_is_too_long_stays_in_training() -> None:
    split = fresh_split({**SIZES, "long": 60_000}, 500)
    assert split.kind("long") == "train"


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"a": 60, "b": 39}, "99 segments: too few to keep out 25 .* at most 24"),
        (
            {"a": 2, "b": 1},
            "3 segments: too few to keep out 25 .*; there must be four at least",
        ),
        ({"a": 1}, "1 segment: too few"),
    ],
)
def test_too_little_to_split_is_said(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fresh_split(sizes, 25)


@pytest.mark.parametrize("sizes", [{"my.tmx": 5000}, {"a.tmx": 2000, "b 1-40": 2001}])
def test_a_memory_of_too_few_documents_is_split_by_stretches(sizes: dict[str, int]) -> None:
    split = fresh_split(sizes, 200)
    assert split.stretch == 40 and not split.dev & split.test
    cut = {
        name: end - first for own, size in sizes.items() for name, first, end in parts(own, size)
    }
    assert sum(cut.values()) == sum(sizes.values())
    for names in (split.dev, split.test):
        assert 190 <= sum(cut[name] for name in names) <= 210
    assert fresh_split({"my.tmx": 40}, 2).stretch == 1  # several stretches on each side


def test_lists_name_stretches(tmp_path: Path) -> None:
    split = fresh_split({"my.tmx": 995}, 100)
    for kind in ("dev", "test"):
        names = "".join(f"{name}\n" for name in sorted(getattr(split, kind)))
        (tmp_path / f"{kind}.txt").write_text(names)
    assert listed_split(tmp_path, {"my.tmx": 995, "other.tmx": 3}) == split


def test_editions_of_the_acquis_are_split_alike() -> None:
    assert split_id("21970A0720(01)") == "jrc21970A0720_01"
    assert split_id("jrc31962L2005") == split_id("1962/jrc31962L2005-fr") == "jrc31962L2005"
    assert split_id("SOR-2001-227") == "SOR-2001-227"
    celex = {f"3{1960 + n // 100}L{n:04}": 20 for n in range(1500)}
    named = {f"jrc{name}": size for name, size in celex.items()}
    of_celex, of_names = fresh_split(celex, 500), fresh_split(named, 500)
    assert {split_id(name) for name in of_celex.test} == of_names.test


def test_committed_lists_stay_as_they_are() -> None:
    ids = {kind: set((LISTS / f"law.{kind}.txt").read_text().split()) for kind in ("dev", "test")}
    names = [*ids["dev"], *ids["test"], "A-0.6", "31975R2777"]
    split = listed_split(LISTS, dict.fromkeys(names, 10))
    assert split.dev == ids["dev"] and split.test == ids["test"] | {"31975R2777"}
    assert split.kind("A-0.6") == "train"
    assert "jrc31975L0035" in split.absent and "jrc31975R2777" not in split.absent


@pytest.mark.parametrize(
    ("dev", "test", "message"),
    [
        (
            "a\n",
            None,
            r"no list of test documents; expected files named test\.txt or NAME\.test\.txt",
        ),
        ("a\nb\n", "c\nb\n", "'b' is in a list of dev and in one of test"),
        ("a\n", "x\n", "none of the 1 id of test is a document"),
    ],
)
def test_lists_that_do_not_fit_are_errors(
    tmp_path: Path, dev: str, test: str | None, message: str
) -> None:
    (tmp_path / "my.dev.txt").write_text(dev)
    if test is not None:
        (tmp_path / "my.test.txt").write_text(test)
    with pytest.raises(DataError, match=message):
        listed_split(tmp_path, {"a": 3, "b": 3, "c": 3})
