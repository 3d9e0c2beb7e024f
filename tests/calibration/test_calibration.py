"""The numbers of the nearest positions, chosen on a memory and read beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from random_layers import random_base
from repeating_memory import documents, student
from torch import Tensor

from tmnmt.calibration.fitting import Forced, Likelihoods, Nearby, likelihoods, loss, mixed
from tmnmt.calibration.held_out import MARGIN, STRETCH, Rest, Stretch, stretches
from tmnmt.config.options import Precision, TranslationOptions
from tmnmt.errors import DataError
from tmnmt.index import MemoryIndex, build
from tmnmt.keys.nibbles import directions, rotate
from tmnmt.keys.pair import CERTAIN, codes_of
from tmnmt.layers.collated import Pairs, Recent
from tmnmt.layers.contract import Collated, StepState
from tmnmt.layers.nearest import NearestPositions
from tmnmt.layers.reach import (
    FORMER,
    STANDARD,
    Calibration,
    Reach,
    Reaches,
    Trial,
    reaches_of,
    save_calibration,
)
from tmnmt.models.folder import Model
from tmnmt.translator import Translator

BASE = random_base(4, 2)

D, V = 6, 9  # numbers of a state, words
REACHES = Reaches(Reach(0.3, 0.05), Reach(0.5, 0.2))


def states(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(seed))


def codes(keys: Tensor) -> Tensor:
    certain = torch.rand(keys.shape[:2], generator=torch.Generator().manual_seed(6))
    return codes_of(keys.flatten(0, 1), certain.flatten()).view(*keys.shape[:2], -1)


def nearby(
    own: Tensor, words: Tensor, keys: Tensor, ids: Tensor, model: Tensor, score: float = 1.0
) -> Nearby:
    kept = codes(keys)
    distance = (2 - 2 * rotate(own) @ directions(kept[..., :-1]).transpose(1, 2)).clamp_min(0)
    place = torch.arange(ids.shape[1]).expand(*own.shape[:2], ids.shape[1])
    right = ids[:, None, :] == words[..., None]
    now = model.exp().gather(-1, ids[:, None, :].expand(*own.shape[:2], -1))
    change = (kept[:, None, :, -1] / CERTAIN - now).clamp_min(0)
    return Nearby(distance / score, right, place, change, ids.shape[1])


@torch.no_grad()
@pytest.mark.parametrize(("penalty", "doubt"), [(0.0, 0.0), (0.0, 0.4), (0.3, 0.0), (0.3, 0.4)])
def test_references_are_as_likely_as_the_layer_makes_them(penalty: float, doubt: float) -> None:
    reaches, score = Reaches(Reach(1.5, 0.3, penalty, doubt), Reach(2.0, 0.2, 0.0, doubt)), 0.8
    own, keys, recent = states(2, 6, seed=1), states(2, 9, seed=2), states(2, 5, seed=3)
    chance = torch.Generator().manual_seed(4)
    words, ids, said = (torch.randint(0, V, (2, n), generator=chance) for n in (6, 9, 5))
    keys[:, :4], ids[:, :4] = own[:, 1:5] + 0.5 * states(2, 4, seed=5), words[:, 1:5]
    nothing, mask = torch.zeros_like(ids), torch.ones_like(ids, dtype=torch.bool)
    pairs = Pairs(
        keys, keys, ids, nothing, mask, nothing, nothing, torch.zeros(2, 9, 2), codes(keys)
    )
    session = Recent(codes(recent), said, torch.ones(2, 5, dtype=torch.bool))
    layer = NearestPositions()
    reach = [reaches.of_sentence([score])] * 2
    collated = Collated(pairs=pairs, histories={"nearest": session}, reaches=reach)
    ready = layer.ready(collated, BASE, "nearest")
    assert ready is not None
    expected = []
    model = (4 * torch.randn(2, 6, V, generator=chance)).log_softmax(-1)
    for t in range(6):
        at = StepState(words[:, t], own[:, t], own[:, t])
        read = layer.fuse(at, own[:, t], ready)[1]
        log_p, read = layer.mix(at, model[:, t].clone(), read)
        ready = read.ready
        expected.append(log_p.gather(1, words[:, t, None])[:, 0])
    log_gen = model.gather(-1, words[..., None])[..., 0]
    sources = {
        "pairs": nearby(own, words, keys, ids, model, score),
        "session": nearby(own, words, recent, said, model),
    }
    forced = Forced(log_gen, model.amax(-1), torch.ones(2, 6, dtype=torch.bool), sources)
    log_p = torch.stack(expected, 1)
    torch.testing.assert_close(mixed(forced, reaches), log_p, atol=2e-4, rtol=0)
    assert loss(forced, reaches) < -float(log_gen.mean())


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return student(tmp_path_factory.mktemp("student") / "en-pt")


@pytest.fixture
def index(tmp_path: Path) -> MemoryIndex:
    build(tmp_path / "index", documents(), "en", "pt")
    return MemoryIndex.open(tmp_path / "index")


def calibration_of(index: MemoryIndex, model: str, reaches: Reaches = REACHES) -> Calibration:
    trials = [Trial(STANDARD, 1.5, 40.0, 60.5, 0.0), Trial(reaches, 1.25, 41.0, 61.0, 1.0)]
    return Calibration(model, len(index), 20, 300, 2.0, trials, reaches)


def likely(model: Model, index: MemoryIndex) -> Likelihoods:
    return likelihoods(model, index, stretches(index, 100, 1))


def test_stretches_are_of_documents_and_a_fifth_of_the_memory_at_most(index: MemoryIndex) -> None:
    drawn = stretches(index, 100, 1)
    segments = [segment for stretch in drawn for segment in stretch.segments]
    assert len(segments) == len({segment.id for segment in segments}) == len(index) // 5
    for stretch in drawn:
        numbers = [segment.id for segment in stretch.segments]
        assert numbers == [*range(numbers[0], numbers[0] + len(numbers))]
        assert len({segment.document for segment in stretch.segments}) == 1
        assert len(numbers) <= STRETCH
    assert stretches(index, 100, 1) == drawn
    assert stretches(index, 100, 2) != drawn


def test_a_document_that_is_the_memory_is_held_out_by_neighbourhood(tmp_path: Path) -> None:
    segments = [replace(segment, document="all") for segment in documents() * 5]
    build(tmp_path / "index", segments, "en", "pt")
    index = MemoryIndex.open(tmp_path / "index")
    (first, *_) = stretches(index, 20, 1)
    assert first.document == ""
    numbers = [segment.id for segment in first.segments]
    rest = Rest(index, first)
    answers = rest.search([segment.src for segment in first.segments], 20, 0.5)
    near = range(numbers[0] - MARGIN, numbers[-1] + MARGIN + 1)
    assert any(answers)
    for segment, answer in zip(first.segments, answers, strict=True):
        assert len(answer) <= 20
        assert all(match.segment.id not in near for match in answer)
        assert all(match.segment.src != segment.src for match in answer)


def test_a_document_is_held_out_whole_and_no_query_finds_itself(index: MemoryIndex) -> None:
    own = [segment for segment in index.segments() if segment.document == "owner"]
    rest = Rest(index, Stretch(tuple(own[:3]), "owner"))
    for answer in rest.search([segment.src for segment in own], 20, 0.5):
        assert answer and all(match.segment.document != "owner" for match in answer)


def test_candidates_make_held_out_references_likelier(index: MemoryIndex, model: Model) -> None:
    found = likely(model, index)
    losses = [loss for _, loss in found.candidates]
    assert losses[0] == min(losses) <= found.standard < found.model
    assert len({reaches for reaches, _ in found.candidates}) == 3
    temperatures = [reaches.pairs.temperature for reaches, _ in found.candidates]
    assert len({*temperatures}) == 3
    assert found.segments == len(index) // 5 and found.subwords > 100
    assert likely(model, index) == found


def test_a_translator_reads_the_numbers_beside_its_index(
    index: MemoryIndex, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    def copies() -> bool:
        near = Translator.load(model.folder, [index], TranslationOptions(mode="nearest", beam=2))
        (translation,) = near.translate(["The donor must send a notice of default."], explain=True)
        return any(token.copied for token in translation.tokens)

    assert copies()
    nothing = Reach(1e-6, 0.1)
    save_calibration(index.path, calibration_of(index, model.hash, Reaches(nothing, nothing)))
    assert not copies()
    index.add([replace(segment, src=f"{segment.src} Again.") for segment in documents()])
    index.add([replace(segment, src=f"{segment.src} And again.") for segment in documents()])
    assert copies()
    assert "was calibrated with 72 segments and has 216 now" in caplog.text


def test_numbers_hold_for_one_kind_of_products_as_keys_do(
    index: MemoryIndex, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    def reaches(precision: Precision | None) -> Reaches:
        options = TranslationOptions(mode="nearest", precision=precision)
        return Translator.load(model.folder, [index], options).pipeline.lookup.reaches

    assert model.precision == "int8"
    in_fp32 = replace(model, products="fp32")
    assert in_fp32.states_hash != model.states_hash
    assert likely(in_fp32, index).model != likely(model, index).model
    save_calibration(index.path, calibration_of(index, in_fp32.states_hash))
    assert reaches("fp32") == REACHES and not caplog.text
    assert reaches(None) == reaches("int8") == STANDARD
    assert f"calibrated for model {in_fp32.states_hash}, not for {model.states_hash}" in caplog.text
    save_calibration(index.path, calibration_of(index, model.states_hash, STANDARD))
    assert reaches("fp32") == REACHES and reaches("int8") == STANDARD


def test_numbers_are_of_one_model_and_the_largest_memory(
    index: MemoryIndex, tmp_path: Path
) -> None:
    assert reaches_of([index], "a" * 16) == STANDARD
    save_calibration(index.path, calibration_of(index, "a" * 16))
    assert reaches_of([index], "a" * 16) == REACHES
    assert reaches_of([index], "b" * 16) == STANDARD
    build(tmp_path / "small", documents()[:30], "en", "pt")
    small = MemoryIndex.open(tmp_path / "small")
    save_calibration(small.path, calibration_of(small, "a" * 16, STANDARD))
    assert reaches_of([small, index], "a" * 16) == REACHES


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": 7}, "reads format 3"),
        ({"model": "b" * 16}, "another model"),
        ({"reaches": {"pairs": {"tau": 0, "temperature": 0.1, "penalty": 0}}}, "above 0"),
        ({"reaches": {"pairs": {"tau": 9, "temperature": 0.1, "penalty": 0}}}, "from 0 to 4"),
        ({"reaches": {"pairs": {"tau": "x", "temperature": 0.1, "penalty": 0}}}, "no number"),
        ({"segments": -1}, "a count"),
        ({"model_loss": None}, "no number"),
        ({"neighbours": 1001}, "no number from 0 to 1,000"),
        ({"trials": [{"reaches": {}, "loss": 1.0, "bleu": 101, "chrf": 1, "above": 1}]}, "to 100"),
    ],
)
def test_damaged_numbers_are_an_error_with_their_file(
    index: MemoryIndex, change: dict[str, object], reason: str
) -> None:
    path = save_calibration(index.path, calibration_of(index, "a" * 16))
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DataError, match=reason) as caught:
        reaches_of([index], "a" * 16)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("number", FORMER)
def test_numbers_for_another_way_to_read_are_not_read(
    index: MemoryIndex, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = save_calibration(index.path, calibration_of(index, "a" * 16))
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": number}))
    assert reaches_of([index], "a" * 16) == STANDARD
    (message,) = caplog.messages
    assert str(path) in message and "Run tmnmt calibrate again" in message
