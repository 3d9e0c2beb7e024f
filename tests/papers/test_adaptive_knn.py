"""Adaptive kNN: how many neighbours count is learned, and said by a file that translations read."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from stepping import mixed as part_of
from stepping import step
from tiny_model import PAIRS
from tiny_neighbours import DOCUMENT, TwoWords, assert_same, translated, with_keys
from torch import Tensor

from tmnmt import Translator
from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import ModelError, UsageError
from tmnmt.formats import write_tsv
from tmnmt.index import MemoryIndex
from tmnmt.layers.collated import collate
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.contract import Collated
from tmnmt.layers.trace import Trace
from tmnmt.models.folder import load_model, parameters
from tmnmt.papers.knn import KNN, AdaptiveKNN, KNNVoters, certainty, distinct, knn_weights
from tmnmt.papers.knn_training import KNNPart, Observations, concatenate, mixed, own_pairs
from tmnmt.segments import Segment
from tmnmt.trained_layers.datastore import Datastore
from tmnmt.trained_layers.neighbours import NeighbourQuery, Neighbours

LARGE = 50.0  # a logit that leaves the others nothing: exp(-50) is 2e-22


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def saying(k: int, temperature: float, logits: list[float]) -> AdaptiveKNN:
    """A network that says the same of every row: the logits of r = 0, 1, 2, 4, ..., k."""
    knn = AdaptiveKNN(k, temperature)
    with torch.no_grad():
        knn.out.weight.zero_()
        knn.out.bias.copy_(torch.tensor(logits))
    return knn.eval()


def knn_step(three: Datastore, knn: KNN | AdaptiveKNN, k: int) -> tuple[Tensor, Trace]:
    """c = (1, 0), s = (log 3, 0): D = 2, 0, 5 for the words 1, 0, 1; p_model = (3/4, 1/4)."""
    memory = Collated(search=NeighbourQuery(three, k, ["x"], [[]], knn))
    hidden, context = torch.tensor([[math.log(3), 0.0]]), torch.tensor([[1.0, 0.0]])
    with torch.no_grad():
        log_p, _, trace = step(
            MemoryLayers(),
            TwoWords(),
            torch.tensor([0]),
            hidden,
            context,
            memory,
            "knn",
            explain=True,
        )
    assert trace is not None
    return log_p.exp(), trace


def test_the_mixture_gives_the_numbers_worked_by_hand(three: Datastore) -> None:
    # T = 2; nearest first: D = 0, 2, 5 and words 0, 1, 1; a fourth is not there
    # p_1 = (1, 0); p_2 = (1, e^-1) / (1 + e^-1) = (0.731059, 0.268941)
    # p_4 = (1, e^-1 + e^-2.5) / (1 + e^-1 + e^-2.5) = (0.689672, 0.310328)
    # p(r) = 0.4, 0.3, 0.2, 0.1 for r = 0, 1, 2, 4:
    # p(0) = 0.4 * 0.75 + 0.3 + 0.2 * 0.731059 + 0.1 * 0.689672 = 0.815179
    p, trace = knn_step(three, saying(4, 2.0, [math.log(x) for x in (0.4, 0.3, 0.2, 0.1)]), 4)
    torch.testing.assert_close(p, torch.tensor([[0.815179, 0.184821]]))
    knn, part = trace.layers["knn"], part_of(trace, "knn")
    assert knn.positions is not None and knn.positions.tolist() == [[1, 0, 2, -1]]
    # the neighbours together have 0.6; weights 0.3 + 0.2 * 0.731059 + 0.1 * 0.689672 of it, and so
    # on
    torch.testing.assert_close(part.gate, torch.tensor([0.6]))
    weights = torch.tensor([[0.515179, 0.079160, 0.005661, 0.0]])
    torch.testing.assert_close(0.6 * knn.weights, weights, atol=1e-5, rtol=0)
    torch.testing.assert_close(0.4 * trace.plain + 0.6 * part.p, p)


def test_beside_pairs_the_words_are_mixed_into_what_these_gave(
    model: Path, memory: Path, trained: Path
) -> None:
    translator = Translator.load(
        model,
        [memory],
        TranslationOptions(mode="copy", knn_adaptive=trained, neighbours=4, threads=1),
    )
    decoder = translator.pipeline.decoder
    neighbours = decoder.whole_memory
    assert isinstance(neighbours, Neighbours) and decoder.layers is not None
    assert isinstance(neighbours.voting, AdaptiveKNN)
    keys = translator.pipeline.keys.keys_of([[PAIRS[0]]])
    pairs = collate(keys, [[0.8]], "cpu")
    made = torch.Generator().manual_seed(7)
    hidden, context = (torch.randn(1, 32, generator=made) for _ in range(2))
    query = neighbours.query(["x"], [[]])
    with torch.no_grad():
        said = [
            step(
                decoder.layers,
                translator.pipeline.backbone,
                torch.tensor([5]),
                hidden,
                context,
                Collated(pairs=pairs, search=search),
                "copy",
            )[0].exp()
            for search in (None, query)
        ]
        votes = KNNVoters(query, neighbours.voting).vote(hidden, context, said[0].log())
        p_knn = torch.zeros_like(said[0]).scatter_add(1, votes.ids, votes.weights)
    w = torch.sigmoid(votes.logit)
    assert 0.01 < float(w) < 0.99
    torch.testing.assert_close(said[1], w * p_knn + (1 - w) * said[0])


def test_without_any_neighbour_in_use_it_is_the_plain_model(three: Datastore) -> None:
    p, _ = knn_step(three, saying(2, 2.0, [LARGE, 0.0, 0.0]), 2)
    torch.testing.assert_close(p, torch.tensor([[0.75, 0.25]]), atol=1e-6, rtol=0)


def test_with_all_of_them_in_use_it_is_the_vanilla_form(three: Datastore) -> None:
    p, _ = knn_step(three, saying(2, 2.0, [0.0, 0.0, LARGE]), 2)
    vanilla, _ = knn_step(three, KNN(1 - 1e-7, 2.0), 2)
    torch.testing.assert_close(p, vanilla, atol=1e-6, rtol=0)
    torch.testing.assert_close(p, torch.tensor([[0.731059, 0.268941]]))


def rows() -> tuple[Tensor, Tensor]:
    """Distances and words of four rows; the last has no neighbour, the one before it
    two of four."""
    made = torch.Generator().manual_seed(3)
    distances = (40 * torch.rand(4, 4, generator=made)).sort(1).values
    distances[2, 2:] = distances[3] = torch.inf
    return distances, torch.randint(0, 3, (4, 4), generator=made)


CERTAIN = torch.tensor([[-0.1, -3.0]]).expand(4, -1)  # of four rows


def test_weights_sum_to_one_and_rows_without_neighbours_are_closed() -> None:
    torch.manual_seed(4)
    knn, (distances, ids) = AdaptiveKNN(4, 20.0).eval(), rows()
    weights, logit = knn(distances, ids, CERTAIN)
    torch.testing.assert_close(weights.sum(1), torch.tensor([1.0, 1.0, 1.0, 0.0]))
    assert weights[2, 2:].tolist() == [0, 0] and logit.isfinite().tolist() == [
        True,
        True,
        True,
        False,
    ]
    shares = knn.choose(distances, ids, CERTAIN).softmax(-1)
    torch.testing.assert_close(torch.sigmoid(logit[:3]), 1 - shares[:3, 0])
    assert bool((torch.sigmoid(logit[:3]) < 0.1).all())  # training starts near the plain model


def test_the_network_is_shown_how_many_different_words_there_are() -> None:
    ids = torch.tensor([[7, 7, 5, 7], [7, 5, 0, 0]])
    found = torch.tensor([[True] * 4, [True, True, False, False]])
    assert distinct(ids, found).tolist() == [[1, 1, 2, 2], [1, 2, 2, 2]]


def test_the_network_is_shown_how_certain_the_model_is() -> None:
    log_probs = torch.tensor([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0]]).log()
    shown = certainty(log_probs)
    torch.testing.assert_close(shown, torch.tensor([[math.log(0.7), math.log(0.2)], [0.0, -10.0]]))
    torch.manual_seed(4)
    knn, (distances, ids) = AdaptiveKNN(4, 20.0).eval(), rows()
    one, other = (knn.choose(distances, ids, CERTAIN + shift) for shift in (0, -1))
    assert float((one - other).detach().abs().min()) > 0


def test_each_r_reads_the_nearest_r() -> None:
    distances, _ = rows()
    parts = AdaptiveKNN(4, 20.0).of_each(distances)  # (4, 3, 4)
    for number, r in enumerate((1, 2, 4)):
        torch.testing.assert_close(parts[:, number, :r], knn_weights(distances[:, :r], 20.0))
        assert float(parts[:, number, r:].sum()) == 0


def test_gradients_are_those_of_finite_differences() -> None:
    torch.manual_seed(5)
    knn, (distances, ids) = AdaptiveKNN(4, 20.0).double().eval(), rows()
    log_p, same = torch.tensor([-1.0, -2.0, -0.5, -3.0]).double(), ids == 1
    told = Observations(log_p, same, distances.double(), ids, CERTAIN.double())
    mixed(knn, told).sum().backward()
    for parameter in knn.parameters():
        assert parameter.grad is not None and float(parameter.grad.abs().sum()) > 0
        flat, at = parameter.data.view(-1), int(parameter.grad.abs().argmax())
        values = []
        for sign in (1, -1):
            flat[at] += sign * 1e-6
            values.append(float(mixed(knn, told).sum().detach()))
            flat[at] -= sign * 1e-6
        assert (values[0] - values[1]) / 2e-6 == pytest.approx(
            float(parameter.grad.view(-1)[at]), rel=1e-5
        )


@pytest.fixture
def trained(tmp_path: Path, model: Path) -> Path:
    """A file that reads 4 neighbours, open by a half."""
    torch.manual_seed(6)
    knn = AdaptiveKNN(4, 1.0)
    with torch.no_grad():
        knn.out.bias[0] = math.log(3)
    knn.save(tmp_path / "adaptive.knn", load_model(model).hash)
    return tmp_path / "adaptive.knn"


@pytest.mark.parametrize("mode", ["knn", "copy"])  # alone, and beside pairs
def test_translations_read_the_file(
    tmp_path: Path, model: Path, memory: Path, trained: Path, mode: str
) -> None:
    pairs: dict[str, Any] = {"mode": mode, "top_k": 2, "threshold": 0.1, "short_threshold": 0.1}
    options: dict[str, Any] = {**pairs, "neighbours": 4, "knn_adaptive": trained}
    found = translated(model, [memory], explain=True, **options)
    assert_same(found, translated(model, [memory], batch=1, **options))
    plain = translated(model, [memory], **pairs | {"mode": "off" if mode == "knn" else mode})
    assert max(abs(a.score - b.score) for a, b in zip(found, plain, strict=True)) > 1e-3
    told = [(t, token) for t in found for token in t.tokens]
    assert (
        len({round(token.copy_gate, 4) for _, token in told}) > 3
    )  # the weight is each word's own
    for translation, token in told:
        assert token.generated + token.copied == pytest.approx(token.probability, abs=1e-5)
        weight = sum(source.weight for source in token.sources)
        assert token.copy_gate * weight == pytest.approx(token.copied, abs=1e-5)
        for source in token.sources:
            tgt = translation.matches[source.match].segment.tgt
            vocab = load_model(model).vocab
            assert vocab.piece(vocab.encode(tgt)[source.position]) == token.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "off"}, "neighbours are read in the modes"),
        ({"mode": "off", "neighbours": 0}, "knn-adaptive is read in the modes"),
        ({"mode": "copy", "neighbours": 8}, "was trained for 4 neighbours, and they are set to 8"),
        ({"neighbours": 8}, "was trained for 4 neighbours, and they are set to 8"),
        ({"knn_weight": 0.1}, "leave out knn-weight"),
        ({"knn_temperature": 3.0}, "leave out knn-weight"),
    ],
)
def test_settings_that_do_not_go_with_it_are_wrong_usage(
    model: Path, memory: Path, trained: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        defaults: dict[str, Any] = {"mode": "knn", "neighbours": 4, "knn_adaptive": trained}
        Translator.load(model, [memory], TranslationOptions(**defaults | options))


def test_a_file_of_another_model_and_what_is_no_such_file_are_refused(
    tmp_path: Path, trained: Path
) -> None:
    with pytest.raises(
        ModelError, match=r"adaptive.knn: was trained with model \w{16}, this one is other"
    ):
        AdaptiveKNN.load(trained, "other")
    with pytest.raises(ModelError, match="No such file"):
        AdaptiveKNN.load(tmp_path / "none", "other")
    (tmp_path / "damaged").write_bytes(trained.read_bytes()[:100])
    with pytest.raises(ModelError, match="damaged: no adaptive kNN"):
        AdaptiveKNN.load(tmp_path / "damaged", "other")


def variations() -> list[Segment]:
    """Ten documents; every source has near ones in the others, and one stands in all."""
    return [
        Segment(f"{src} {n}" if at else src, f"{tgt} {n}" if at else tgt, f"doc{n}", at)
        for n in range(10)
        for at, (src, tgt) in enumerate(PAIRS)
    ]


def test_what_is_learned_from_is_not_found(tmp_path: Path, model: Path) -> None:
    pairs = variations()
    with MemoryIndex.open(with_keys(tmp_path / "index", pairs, model)) as index:
        datastore = Datastore.open([index], load_model(model).hash)
        documents = [
            pairs[:6],
            [Segment(pairs[7].src, "autre"), Segment("Nothing like it.", "Rien.")],
        ]
        own = own_pairs(datastore, documents)
        # document 0: its five pairs, and the one that all have; the other: a source of it
        assert [sorted(some) for some in own] == [
            list(range(6)),
            datastore.pair_of(pairs[7].src, pairs[7].tgt),
        ]
        datastore.forget(own[0])
        _, positions = datastore.search(torch.randn(1, 64).numpy(), 1000)
        found = set(datastore.entries(positions[positions >= 0][None]).pairs.ravel().tolist())
        assert found and not found & own[0]


def test_of_memories_that_are_unlike_it_learns_that_they_are_worth_nothing() -> None:
    made = torch.Generator().manual_seed(8)

    def told(right: bool, nearest: float) -> Observations:
        n, distances = 256, nearest + torch.rand(256, 4, generator=made).sort(1).values
        ids = torch.full((n, 4), 7)
        certain = torch.tensor([[-1.5, -2.0]]).expand(n, -1)
        return Observations(
            torch.full((n,), -1.5), ids == (7 if right else 0), distances, ids, certain
        )

    like, unlike = told(True, 0.0), told(False, 3.0)
    reached = []
    for some in ([like], [like, unlike]):
        torch.manual_seed(9)
        part = KNNPart(AdaptiveKNN(4, 1.0), concatenate(some), [like, unlike], seed=1)
        steps = torch.optim.Adam(part.module.parameters(), 0.02)
        for epoch in range(40):
            for unit in part.units(epoch):
                for loss, count in part.losses(unit):
                    steps.zero_grad()
                    (loss / count).backward()
                    steps.step()
        reached.append(part.validate())
    alone, both = reached
    assert both["plain"] == pytest.approx(1.5) and both["knn"] < 0.5 and alone["knn"] < 0.5
    assert alone["unlike"] > 2.0 > 1.6 > both["unlike"]
    assert both["criterion"] == pytest.approx((both["knn"] + both["unlike"]) / 2)


def test_the_command_learns_and_is_taken_up_where_it_stopped(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    index = with_keys(tmp_path / "index", variations(), model)
    unlike = with_keys(tmp_path / "other", [Segment("Of another kind.", "Rien.")], model)
    write_tsv(tmp_path / "pairs.tsv", variations())
    made = [tmp_path / name for name in ("whole.knn", "stopped.knn")]
    arguments = [
        "adapt-knn",
        str(tmp_path / "pairs.tsv"),
        "--model",
        str(model),
        "--memory",
        str(index),
        "--unlike",
        str(unlike),
    ]
    arguments += [
        "--neighbours",
        "4",
        "--epochs",
        "12",
        "--dev-share",
        "0.3",
        "--threads",
        "1",
        "-o",
    ]
    assert run([*arguments, str(made[0])]) == 0
    assert capsys.readouterr().out == f"{made[0]}\n"

    losses, count = KNNPart.losses, iter(range(1000))

    def stopping(part: KNNPart, unit: list[int]) -> Any:
        if next(count) == 30:
            raise KeyboardInterrupt
        return losses(part, unit)

    monkeypatch.setattr(KNNPart, "losses", stopping)
    assert run([*arguments, str(made[1])]) == 130
    assert "go on with --resume" in capsys.readouterr().err and not made[1].exists()
    assert run([*arguments, str(made[1])]) == 2
    monkeypatch.setattr(
        "tmnmt.papers.knn_training.nearest", None
    )  # what was looked up is not looked up again
    assert run([*arguments, str(made[1]), "--resume"]) == 0
    one, other = (AdaptiveKNN.load(path, load_model(model).hash).state_dict() for path in made)
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "index",
        "other",
        "pairs.tsv",
        "stopped.knn",
        "whole.knn",
    ]


def test_a_number_that_is_no_power_of_two_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "adapt-knn",
        "p.tsv",
        "--model",
        "m",
        "--memory",
        "i",
        "-o",
        str(tmp_path / "x"),
        "--neighbours",
        "6",
    ]
    assert run(arguments) == 2
    assert "power of two" in capsys.readouterr().err


def test_an_evaluation_reads_the_file_and_knows_it_by_what_it_holds(
    tmp_path: Path, model: Path, memory: Path, trained: Path
) -> None:
    from tmnmt.eval.recipe import load_recipe
    from tmnmt.eval.run import Run

    (tmp_path / "src.txt").write_text("\n".join(DOCUMENT) + "\n", encoding="utf-8")
    (tmp_path / "ref.txt").write_text(
        "\n".join(tgt for _, tgt in PAIRS[:4]) + "\n", encoding="utf-8"
    )
    recipe = f"""
        name = "n"
        baseline = "adaptive"
        test = [{{name = "t", src = "src.txt", references = ["ref.txt"], memory = "m"}}]
        model = [{{name = "tiny", path = "{model}"}}]
        memory = [{{name = "m", path = "{memory}"}}]
        [[system]]
        name = "adaptive"
        beam = 3
        mode = "knn"
        neighbours = 4
        knn_adaptive = "adaptive.knn"
    """
    (tmp_path / "recipe.toml").write_text(recipe, encoding="utf-8")
    for _ in range(2):
        Run(load_recipe(tmp_path / "recipe.toml"), tmp_path / "out")("")
        saying(4, 1.0, [0.0] * 4).save(trained, load_model(model).hash)
    assert len(list((tmp_path / "out" / "translations").iterdir())) == 2
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    knn = saying(4, 1.0, [0.0] * 4)
    expected = parameters(load_model(model).backbone) + parameters(knn)
    assert report["tests"][0]["systems"][0]["cost"]["parameters"] == expected
