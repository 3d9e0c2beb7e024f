"""Keys beside an index are the same wherever the index lies: in a folder, or on a server, whose
keys lie in a folder of this machine."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from brute_force import real_segments
from elastic_server import Running
from tiny_model import segments, write_tiny_model
from tiny_neighbours import DOCUMENT

import tmnmt.keys.compute
from tmnmt import Translator
from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import UsageError
from tmnmt.index.back_ends import BuildJob, back_end_of, open_index
from tmnmt.index.base import FolderIndex, has_folder
from tmnmt.index.elastic import index as elastic
from tmnmt.index.elastic.address import KEYS, ElasticAddress, local_folder
from tmnmt.keys import pair_keys
from tmnmt.keys.compute import PART, Plan, compute, header_of, plan
from tmnmt.keys.derived import verify
from tmnmt.keys.files import KeyFiles, keys_dir
from tmnmt.keys.layout import DIRECTIONS, PAIRS
from tmnmt.layers.reach import STANDARD, load_calibration, reach_file, reaches_of
from tmnmt.models.folder import Model, load_model
from tmnmt.segments import Segment
from tmnmt.trained_layers.key_search import KeySearch

LAYOUTS = (PAIRS, DIRECTIONS)
MEMORY = [*segments(), *real_segments()[:60], replace(segments()[0], document="again")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return load_model(folder)


@pytest.fixture(params=["folder", "server"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Where an index of MEMORY lies, in turn in a folder and on a server."""
    monkeypatch.setenv(KEYS, str(tmp_path / "keys"))
    monkeypatch.setattr(tmnmt.keys.compute, "BLOCK_POSITIONS", 400)
    location = str(tmp_path / "index")
    if request.param == "server":
        server: Running = request.getfixturevalue("server")
        location = str(server.address(f"keys-{tmp_path.name.replace('[', '-').strip(']')}".lower()))
    built(location, MEMORY)
    yield location


def built(place: str, pairs: list[Segment]) -> None:
    back_end_of(place).build(BuildJob(place, pairs, "en", "fr", True, None))


def with_index(place: str) -> FolderIndex:
    index = open_index(place)
    assert has_folder(index)
    return index


def planned(index: FolderIndex, model: Model, shard: tuple[int, int] | None = None) -> Plan:
    return plan(index, header_of(model), model.vocab, shard)


def compute_all(index: FolderIndex, model: Model) -> KeyFiles:
    return compute(index, model, planned(index, model))


def test_what_is_added_corrected_and_deleted_is_known_and_replaced(
    place: str, model: Model
) -> None:
    with with_index(place) as index:
        first = compute_all(index, model)
        assert (planned(index, model).positions, planned(index, model).outdated) == (0, 0)
        index.add([Segment("A new sentence.", "Une phrase nouvelle.")])
        (old,) = index.get([3])
        index.edit([3], lambda segment: replace(segment, tgt="Corrigé."))
        index.delete([5])
        wanted = planned(index, model)
        assert wanted.missing["id"].tolist() == [3, len(MEMORY) + 1]
        assert wanted.outdated == 2
        second = compute_all(index, model)
        assert second.positions == first.positions + wanted.positions
        assert all(second.find(s.src, s.tgt) is not None for s in index.segments())
        found = KeySearch.open(index, model.states_hash)
        ids = {place.segment for place in found.places(found.files.records["start"]) if place}
        assert ids <= {segment.id for segment in index.segments()}
        assert found.pair_of(old.src, old.tgt) is not None  # it is there, and answers for nobody
        assert verify(index) == len(MEMORY)


def test_shards_are_disjoint_and_join_to_the_whole_and_outlive_a_new_build(
    place: str, model: Model
) -> None:
    with with_index(place) as index:
        everything = planned(index, model).positions
        parts = [planned(index, model, (i, 3)) for i in (1, 2, 3)]
        assert sum(part.positions for part in parts) == everything
        for i in (1, 3):  # the second machine was lost
            compute(index, model, parts[i - 1], (i, 3))
        joined = planned(index, model)
        assert joined.positions == parts[1].positions
        files = compute(index, model, joined)
        assert files.positions == everything
        assert not (files.folder / PART.format(1, 3)).exists()
        built(place, MEMORY[::-1])
        assert planned(index, model).positions == 0


@pytest.fixture(scope="module")
def places(
    server: Running, model: Model, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """MEMORY in a folder and on a server, with all keys."""
    path = tmp_path_factory.mktemp("both")
    locations = str(path / "index"), str(server.address("keys-both"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEYS, str(path / "keys"))
        for location in locations:
            built(location, MEMORY)
            with with_index(location) as index:
                for layout in LAYOUTS:
                    compute(index, model, plan(index, header_of(model, layout), model.vocab))
        yield locations


def test_both_places_have_the_same_bytes(places: tuple[str, str], model: Model) -> None:
    contents = list[dict[str, bytes]]()
    for location in places:
        with with_index(location) as index:
            folders = [keys_dir(index.folder, model.states_hash, layout) for layout in LAYOUTS]
        files = [path for folder in folders for path in folder.iterdir() if path.is_file()]
        contents.append({f"{path.parent.name}/{path.name}": path.read_bytes() for path in files})
    assert contents[0] == contents[1] and len(contents[0]) > 6


@pytest.mark.parametrize(
    "options",
    [
        TranslationOptions(mode="nearest"),
        TranslationOptions(mode="copy", neighbours=4),
        TranslationOptions(mode="knn", neighbours=4, knn_weight=0.4),
    ],
    ids=lambda options: options.mode,
)
def test_both_places_give_the_same_translations(
    places: tuple[str, str], folder: Path, options: TranslationOptions
) -> None:
    options = replace(options, cache=0, threads=1, verbatim=0)
    here, there = (
        Translator.load(folder, [location], options).translate(DOCUMENT, True)
        for location in places
    )
    assert [(t.tgt, t.score, t.tokens) for t in here] == [(t.tgt, t.score, t.tokens) for t in there]
    assert [[m.segment for m in t.matches] for t in here] == [
        [m.segment for m in t.matches] for t in there
    ]


class Calls:
    """Counts what functions are asked while they go on working."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.counts = Counter[str]()
        self._patch = patch

    def count(self, owner: Any, name: str, size: Callable[..., int]) -> None:
        original = getattr(owner, name)

        def counted(*asked: Any, **named: Any) -> Any:
            self.counts[name] += size(*asked, **named)
            return original(*asked, **named)

        self._patch.setattr(owner, name, counted)


def test_one_command_runs_the_chain_and_says_what_every_stage_did(
    places: tuple[str, str],
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document = tmp_path / "document.txt"
    document.write_text("\n".join(DOCUMENT) + "\n")
    calls = Calls(monkeypatch)
    calls.count(elastic, "edit_distance", lambda *_: 1)
    calls.count(elastic.ElasticIndex, "_search", lambda *_: 1)
    calls.count(KeySearch, "search", lambda _, queries, *__: len(queries))
    calls.count(pair_keys, "force_all", lambda _, coded, *__: len(coded))
    options = ["--model", str(folder), "--memory", places[1], "--mode", "copy", "--neighbours", "4"]
    options += ["--threshold", "0.3", "--verbatim", "0", "--cache", "0", "--threads", "1"]
    assert run(["translate", *options, "--json", str(document)]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    works = [record["work"] for record in records]
    assert len(works) == len(DOCUMENT)
    works = [{**work.pop("search"), **work} for work in works]
    total = {name: sum(work[name] for work in works) for name in works[0]}
    assert calls.counts["_search"] == 1  # prefilter: one request for the whole batch
    assert total["candidates"] >= total["distances"] == calls.counts["edit_distance"] > 0
    assert total["lookups"] == calls.counts["search"] >= len(DOCUMENT)
    assert 0 < total["neighbours"] <= 4 * total["lookups"]
    assert total["pairs"] > 0 and calls.counts["force_all"] == 0  # all keys were there
    assert total["positions"] >= total["pairs"]
    assert run(["translate", *options, "--explain", str(document)]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if "work: " in line]
    first = works[0]
    assert f"{first['distances']} edit distance" in shown[0]
    assert f"{first['lookups']} lookup" in shown[0] and len(shown) == len(DOCUMENT)


def test_keys_of_a_server_are_missed_by_name_and_then_made_by_the_command(
    server: Running,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(KEYS, str(tmp_path / "keys"))
    location = str(server.address("keys-none"))
    built(location, MEMORY[:5])
    document = tmp_path / "a.txt"
    document.write_text("Repealed.\n")
    options = ["translate", "--model", str(folder), "--memory", location, "--neighbours", "2"]
    assert run([*options, "--mode", "copy", str(document)]) == 1
    err = capsys.readouterr().err
    assert "has no keys" in err and "tmnmt keys" in err and err.count("\n") == 1
    make = ["keys", "--index", location, "--model", str(folder), "--mode", "copy"]
    assert run([*make, "--device", "cpu", "--shard", "1/2"]) == 0
    assert "part-1-of-2" in capsys.readouterr().err
    assert run([*make, "--device", "cpu"]) == 0
    assert str(tmp_path / "keys") in capsys.readouterr().err
    assert run([*options, "--mode", "copy", str(document)]) == 0
    assert run(["memory", "verify", "--index", location]) == 0


def test_the_folder_of_a_server_is_named_by_its_hosts_in_any_order_and_its_name(
    tmp_path: Path,
) -> None:
    environment = {KEYS: str(tmp_path)}
    one, other = (
        local_folder(ElasticAddress(hosts, "law"), environment)
        for hosts in (("http://a:9200", "http://b:9200"), ("http://b:9200", "http://a:9200"))
    )
    assert one == other and one is not None and one.parent == tmp_path
    assert one.name.startswith("law-")
    assert local_folder(ElasticAddress(("http://a:9200",), "law"), environment) != one
    with pytest.raises(UsageError, match="path from the root"):
        local_folder(ElasticAddress(("http://a:9200",), "law"), {KEYS: "here"})


def test_calibrated_numbers_lie_beside_an_index_on_a_server(
    server: Running,
    folder: Path,
    model: Model,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(KEYS, str(tmp_path / "keys"))
    location = str(server.address("calibrated"))
    built(location, [*real_segments()[:150]])
    arguments = ["calibrate", "--memory", location, "--model", str(folder), "--segments", "50"]
    assert run([*arguments, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    with with_index(location) as index:
        calibration = load_calibration(index.folder, model.states_hash)
        assert calibration is not None and reaches_of([index], model.states_hash) == (
            calibration.reaches
        )
    assert printed == calibration.record() | {
        "file": str(reach_file(index.folder, model.states_hash))
    }
    taus = {trial.reaches.fragments.tau for trial in calibration.trials}
    assert taus == {STANDARD.fragments.tau}  # there are none to choose by
