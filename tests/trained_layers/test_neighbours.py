"""Neighbours: the whole memory read at every word, beside the pairs or alone, and kNN interpolation
beside it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stepping import mixed, step
from tiny_model import PAIRS, segments, write_tiny_model
from tiny_neighbours import DOCUMENT, TwoWords, assert_same, translated, with_keys
from torch.nn.functional import cosine_similarity

from tmnmt import Translator
from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import MemoryIndexError, UsageError
from tmnmt.index import MemoryIndex, build
from tmnmt.keys.files import KeyFiles
from tmnmt.layers.combine import LayerInputs, MemoryLayers
from tmnmt.layers.contract import Collated
from tmnmt.models.folder import load_model
from tmnmt.papers.knn import KNN, KNNVoters, knn_weights
from tmnmt.segments import Segment
from tmnmt.trained_layers.datastore import Datastore, keys_state
from tmnmt.trained_layers.faiss_index import update_faiss
from tmnmt.trained_layers.key_search import KeySearch
from tmnmt.trained_layers.neighbours import NeighbourQuery, Neighbours, NeighbourState

ALL = 1000  # neighbours: more than the memories here have keys
MODES: tuple[str, ...] = ("copy", "fusion", "both")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pairs", [1, 6])
def test_all_keys_as_neighbours_are_what_all_pairs_are(
    tmp_path: Path, model: Path, mode: str, pairs: int
) -> None:
    index = with_keys(tmp_path / "index", segments()[:pairs], model)
    texts = DOCUMENT[:1] if pairs == 1 else DOCUMENT
    by_pairs = translated(
        model, [index], texts, mode=mode, top_k=pairs, threshold=0.0, short_threshold=0.0
    )
    alone = translated(model, [index], texts, mode=mode, top_k=0, neighbours=ALL)
    beside = translated(
        model,
        [index],
        texts,
        mode=mode,
        top_k=1,
        threshold=0.0,
        short_threshold=0.0,
        neighbours=ALL,
    )
    plain = translated(model, [], texts)
    assert_same(alone, by_pairs)
    assert_same(beside, by_pairs)  # the pair that was looked up is not read twice
    assert max(abs(a.score - b.score) for a, b in zip(alone, plain, strict=True)) > 1e-3


def test_what_is_near_to_a_draft_is_read_where_nothing_is_similar(
    model: Path, memory: Path
) -> None:
    options: dict[str, Any] = {"mode": "nearest", "fragments": 0, "explain": True, "beam": 2}
    unlike = options | {"threshold": 1.0, "short_threshold": 1.0}
    pieces = load_model(model).vocab.pieces
    alone = translated(model, [memory], **unlike)
    beside = translated(model, [memory], neighbours=2, **unlike)
    read = 0
    for text, translation in zip(alone, beside, strict=True):
        assert translation.work is not None and text.work is not None
        assert translation.work.neighbours == 2 * translation.work.lookups > 0 == text.work.lookups
        assert translation.score != text.score  # nothing else stands in the pool
        for token in translation.tokens:
            for source in token.sources:
                target = translation.matches[source.match].segment.tgt
                assert pieces(target)[source.position] == token.text
                read += 1
    assert read > len(DOCUMENT)
    similar = options | {"threshold": 0.0, "short_threshold": 0.0}
    both = (translated(model, [memory], neighbours=count, **similar) for count in (0, 2))
    for without, looked in zip(*both, strict=True):
        assert looked.matches and looked.work == without.work  # no draft
        assert (looked.tgt, looked.score) == (without.tgt, without.score)


def test_words_behind_a_neighbour_end_with_its_pair(memory: Path, model: Path) -> None:
    with MemoryIndex.open(memory) as index:
        datastore = Datastore.open([index, index], load_model(model).hash)
        count = datastore.searches[0].files.positions
        last = int(datastore.searches[0].starts(np.array(1))) - 1  # of the first pair
        found = datastore.with_following(np.array([last - 1, last - 2, count + 1]), 3)
        assert found.tolist() == [last - 2, last - 1, last, *range(count + 1, count + 5)]
        assert not len(datastore.with_following(np.zeros(0, np.int64), 3))


def test_few_neighbours_are_the_best_of_all(model: Path, memory: Path) -> None:
    with MemoryIndex.open(memory) as index:
        datastore = Datastore.open([index], load_model(model).hash)
        made = torch.Generator().manual_seed(1)
        context, hidden = (torch.randn(5, 32, generator=made) for _ in range(2))
        asked = NeighbourQuery(datastore, 3, [DOCUMENT[0]], [[]])
        positions, found = asked.find(context, hidden, torch.zeros(5, dtype=torch.int64))
        files = datastore.searches[0].files
        alike = sum(
            cosine_similarity(one[:, None], torch.from_numpy(keys[:]), dim=-1)
            for one, keys in ((context, files.contexts), (hidden, files.hiddens))
        )
        best = torch.as_tensor(alike).topk(3).indices
        torch.testing.assert_close(positions, best)
        torch.testing.assert_close(found.contexts, torch.from_numpy(files.contexts[:])[best])


def test_what_a_batch_has_found_is_its_own_while_another_asks(model: Path, memory: Path) -> None:
    """As where a heading is read twice."""
    with MemoryIndex.open(memory) as index:
        datastore = Datastore.open([index], load_model(model).hash)
        asked = NeighbourQuery(datastore, 3, [DOCUMENT[0]], [[]])
        positions, _ = asked.find(torch.randn(1, 32), torch.randn(1, 32), torch.zeros(1).long())
        NeighbourQuery(datastore, 3, [DOCUMENT[1]], [[]])
        pair, _ = datastore.place(int(positions[0, 0]))
        assert asked.match(0, pair).segment.src
        with pytest.raises(LookupError):
            datastore.segment(pair)


@pytest.mark.parametrize("mode", [*MODES, "knn"])
def test_probabilities_sum_to_one_and_rows_do_not_see_each_other(
    model: Path, memory: Path, mode: str
) -> None:
    translator = Translator.load(
        model,
        [memory],
        TranslationOptions(top_k=0, cache=0, neighbours=4, knn_weight=0.4, mode=mode, verbatim=0),
    )
    memories, neighbours = translator.layers, translator.pipeline.decoder.whole_memory
    assert memories is not None and isinstance(neighbours, Neighbours)
    made = torch.Generator().manual_seed(2)
    prev = torch.randint(4, len(translator.vocab), (3,), generator=made)
    hidden, context = (torch.randn(3, 32, generator=made) for _ in range(2))

    def steps(rows: list[int]) -> torch.Tensor:
        """The second of two steps, so that something was read before."""
        query = replace(neighbours, voting=KNN(0.4, 2.0) if mode == "knn" else None).query(
            [DOCUMENT[row] for row in rows], [[]] * len(rows)
        )
        state: Collated | LayerInputs = Collated(search=query)
        for _ in range(2):
            inputs = prev[rows], hidden[rows], context[rows]
            log_probs, state, _ = step(memories, translator.pipeline.backbone, *inputs, state, mode)
        return log_probs

    with torch.inference_mode():
        together = steps([0, 1, 2])
        torch.testing.assert_close(together.exp().sum(1), torch.ones(3))
        for row in range(3):
            torch.testing.assert_close(together[[row]], steps([row]), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("mode", "top_k"), [("copy", 2), ("both", 0), ("knn", 4)])
def test_batches_give_what_single_sentences_give(
    model: Path, memory: Path, mode: str, top_k: int
) -> None:
    many, one = (
        translated(
            model, [memory], mode=mode, neighbours=5, top_k=top_k, batch=batch, knn_temperature=1.0
        )
        for batch in (32, 1)
    )
    assert_same(many, one)


@pytest.mark.parametrize("mode", ["copy", "knn"])
def test_the_order_of_pairs_does_not_matter(
    tmp_path: Path, model: Path, memory: Path, mode: str
) -> None:
    other_way = with_keys(tmp_path / "index", segments()[::-1], model)
    options: dict[str, Any] = {
        "mode": mode,
        "neighbours": 5,
        "knn_temperature": 1.0,
        "verbatim": 0,
    }
    assert_same(translated(model, [memory], **options), translated(model, [other_way], **options))


@pytest.mark.parametrize("mode", ["copy", "knn"])
def test_two_memories_are_what_one_of_both_is(
    tmp_path: Path, model: Path, memory: Path, mode: str
) -> None:
    halves = [
        with_keys(tmp_path / str(n), half, model)
        for n, half in enumerate((segments()[:2], segments()[2:]))
    ]
    options: dict[str, Any] = {
        "mode": mode,
        "neighbours": 5,
        "knn_temperature": 1.0,
        "explain": True,
    }
    one, two = translated(model, [memory], **options), translated(model, halves, **options)
    assert_same(one, two)
    read = [
        [
            {t.matches[s.match].segment.tgt for token in t.tokens for s in token.attention}
            for t in some
        ]
        for some in (one, two)
    ]
    assert read[0] == read[1]


@pytest.mark.parametrize("plain", [False, True])
def test_knn_of_weight_zero_is_the_plain_model_bit_for_bit(
    tmp_path: Path, model: Path, memory: Path, plain: bool
) -> None:
    if plain:  # a model without any memory parameters serves it, too
        model = write_tiny_model(tmp_path / "plain", memories=False)
    off = translated(model, [], mode="off")
    zero = translated(model, [memory], mode="knn", knn_weight=0.0)
    half = translated(model, [memory], mode="knn", knn_weight=0.5, knn_temperature=1.0)
    assert [(t.tgt, t.score) for t in zero] == [(t.tgt, t.score) for t in off]
    assert [t.score for t in half] != [t.score for t in off]


def test_knn_gives_the_numbers_worked_by_hand(three: Datastore) -> None:
    # c = (1, 0), s = (log 3, 0): D = 2 + 0, 0 + 0, 4 + 1. The two nearest hold the words 0 and 1; T
    # = 2: p_knn(0) = 1 / (1 + exp(-1)) = 0.731059, p_knn(1) = 0.268941 p_model = (3/4, 1/4), w =
    # 0.4: p(0) = 0.4 * 0.731059 + 0.6 * 0.75 = 0.742423
    state = Collated(search=NeighbourQuery(three, 2, ["x"], [[]], KNN(0.4, 2.0)))
    hidden, context = torch.tensor([[math.log(3), 0.0]]), torch.tensor([[1.0, 0.0]])
    log_probs, _, trace = step(
        MemoryLayers(), TwoWords(), torch.tensor([0]), hidden, context, state, "knn", explain=True
    )
    torch.testing.assert_close(log_probs.exp(), torch.tensor([[0.742423, 0.257577]]))
    assert trace is not None
    knn = trace.layers["knn"]
    torch.testing.assert_close(knn.weights, torch.tensor([[0.731059, 0.268941]]))
    torch.testing.assert_close(mixed(trace, "knn").p, torch.tensor([[0.731059, 0.268941]]))
    assert knn.positions is not None and knn.positions.tolist() == [[1, 0]]


def test_equal_words_add_up_and_what_is_not_there_weighs_nothing(three: Datastore) -> None:
    # c = (0, 1), s = (log 3, 0): D = 0 + 0, 2 + 0, 2 + 1; three of the four asked for are there. T
    # = 1: p_knn(1) = (1 + exp(-3)) / (1 + exp(-2) + exp(-3)) = 0.885805
    votes = KNNVoters(NeighbourQuery(three, 4, ["x"], [[]]), KNN(0.5, 1.0)).vote(
        torch.tensor([[math.log(3), 0.0]]), torch.tensor([[0.0, 1.0]]), torch.zeros(1, 2)
    )
    p = torch.zeros(1, 2).scatter_add(1, votes.ids, votes.weights)
    torch.testing.assert_close(p, torch.tensor([[0.114195, 0.885805]]))
    assert sorted(votes.positions[0].tolist()) == [-1, 0, 1, 2] and float(votes.logit[0]) == 0.0
    torch.testing.assert_close(
        knn_weights(torch.tensor([[torch.inf, 3.0]]), 2.0), torch.tensor([[0.0, 1.0]])
    )


def test_coverage_is_kept_for_what_is_found_again(three: Datastore) -> None:
    state = NeighbourState.start(NeighbourQuery(three, 2, ["x"], [[]]), 1)
    assert state.covered(torch.tensor([[0, 1]])).tolist() == [[[0.0], [0.0]]]
    state = state.extended(torch.tensor([[0, 1]]), torch.tensor([[[0.5], [0.25]]]))
    state = state.extended(torch.tensor([[1, 2]]), torch.tensor([[[0.75], [0.1]]]))
    assert state.covered(torch.tensor([[2, 1, 0]])).flatten().tolist() == pytest.approx(
        [0.1, 0.75, 0.5]
    )
    assert state.rows(torch.tensor([0, 0])).covered(
        torch.tensor([[1], [0]])
    ).flatten().tolist() == [0.75, 0.5]


@pytest.mark.parametrize(("mode", "top_k"), [("copy", 0), ("copy", 2), ("both", 2), ("knn", 4)])
def test_every_token_names_the_pair_and_the_position_it_came_from(
    model: Path, memory: Path, mode: str, top_k: int
) -> None:
    options: dict[str, Any] = {
        "mode": mode,
        "top_k": top_k,
        "neighbours": 6,
        "knn_weight": 0.4,
        "knn_temperature": 1.0,
    }
    vocab = load_model(model).vocab
    found = translated(model, [memory], explain=True, **options)
    told = [(t, token) for t in found for token in t.tokens]
    assert any(token.sources for _, token in told)
    for translation, token in told:
        assert token.generated + token.copied == pytest.approx(token.probability, abs=1e-5)
        if mode != "both":
            weight = sum(source.weight for source in token.sources)
            assert token.copy_gate * weight == pytest.approx(token.copied, abs=1e-5)
        for source in token.sources:
            tgt = translation.matches[source.match].segment.tgt
            assert vocab.piece(vocab.encode(tgt)[source.position]) == token.text
    pairs = [[match.segment.tgt for match in t.matches] for t in found]
    assert all(len(set(some)) == len(some) for some in pairs)
    if not top_k or mode == "knn":
        assert any(len(some) > 1 for some in pairs)


@pytest.mark.parametrize(("mode", "top_k"), [("copy", 2), ("both", 2), ("knn", 2), ("copy", 0)])
def test_of_pairs_with_placeholders_the_places_are_their_own(
    tmp_path: Path, model: Path, mode: str, top_k: int
) -> None:
    src, tgt = (
        "The Commission of {the_place} shall inform %s.",
        "La Commission de {the_place} le %s.",
    )
    memory = with_keys(tmp_path / "index", [Segment(src, tgt), *segments()], model)
    options: dict[str, Any] = {"mode": mode, "top_k": top_k, "threshold": 0.3, "neighbours": 6}
    vocab = load_model(model).vocab
    texts = ["The Commission of %s shall inform {name} today.", DOCUMENT[0]]
    found = translated(model, [memory], texts, explain=True, **options)
    assert found[0].tgt.count("%s") == found[0].tgt.count("{name}") == 1
    told = [(t, token) for t in found for token in t.tokens]
    read = [
        (t.matches[source.match], source, token) for t, token in told for source in token.sources
    ]
    for match, source, token in read:
        there = [*vocab.pieces(match.segment.tgt), "</s>"][source.position]
        assert there == token.text or (match.segment.tgt == tgt and token.text in "▁901902")
    assert any(source.match >= top_k for _, source, _ in read)
    behind = len(vocab.pieces("La Commission de {the_place}"))
    moved = any(match.segment.tgt == tgt and s.position > behind for match, s, _ in read)
    assert moved or mode == "knn" or not top_k  # those read no pair with masks


@pytest.mark.parametrize("mode", ["copy", "knn"])
def test_what_was_deleted_is_not_read_any_more(tmp_path: Path, model: Path, mode: str) -> None:
    index = with_keys(tmp_path / "index", segments(), model)
    kept = with_keys(tmp_path / "kept", segments()[1:], model)
    options: dict[str, Any] = {
        "cache": 0,
        "beam": 3,
        "top_k": 0,
        "neighbours": 5,
        "knn_temperature": 1.0,
        "verbatim": 0,
    }
    with MemoryIndex.open(index) as opened:
        translator = Translator.load(model, [opened], TranslationOptions(mode=mode, **options))
        before = translator.translate(DOCUMENT)
        opened.delete([1])
        after = translator.translate(DOCUMENT)
    assert_same(
        after,
        Translator.load(model, [kept], TranslationOptions(mode=mode, **options)).translate(
            DOCUMENT
        ),
    )
    assert [t.score for t in before] != [t.score for t in after]


def test_approximate_searches_decode_too(tmp_path: Path, model: Path) -> None:
    index = with_keys(tmp_path / "index", segments(), model)
    flat = translated(model, [index], mode="copy", top_k=0, neighbours=5)
    files = KeyFiles.open(index, load_model(model).hash)
    with MemoryIndex.open(index) as opened:
        states = [keys_state(opened, files.header.model)]
        update_faiss(files, "hnsw")  # of so few keys it misses none
        states.append(keys_state(opened, files.header.model))
    assert KeySearch.open(MemoryIndex.open(index), files.header.model).kind == "hnsw"
    assert_same(translated(model, [index], mode="copy", top_k=0, neighbours=5), flat)
    assert states[0] != states[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "off", "neighbours": 3}, "neighbours are read in the modes"),
        ({"mode": "knn", "neighbours": 0}, "mode knn needs neighbours"),
        ({"mode": "copy", "top_k": 0}, "top-k is 0"),
        (
            {"mode": "knn", "knn_weight": 1.0},
            "it must be at least 0 and below 1",
        ),
        ({"mode": "knn", "knn_temperature": 0.0}, "knn-temperature is 0.0; it must be above 0"),
        ({"mode": "copy", "neighbours": -1}, "0 to 1,000"),
    ],
)
def test_settings_that_do_not_go_together_are_wrong_usage(
    model: Path, memory: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Translator.load(model, [memory], TranslationOptions(**options))


def test_a_memory_without_keys_is_one_line_that_names_the_command(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(tmp_path / "index", segments(), "en", "fr")
    with pytest.raises(MemoryIndexError, match="tmnmt keys"):
        Translator.load(model, [tmp_path / "index"], TranslationOptions(neighbours=4))
    (tmp_path / "in.txt").write_text(DOCUMENT[0] + "\n", encoding="utf-8")
    arguments = ["translate", "--model", str(model), str(tmp_path / "in.txt"), "--neighbours", "4"]
    assert run([*arguments, "--memory", str(tmp_path / "index")]) == 1
    told = capsys.readouterr().err.strip()
    assert "has no keys" in told and "tmnmt keys" in told and "\n" not in told
    assert run(arguments) == 2
    assert "--neighbours needs a --memory" in capsys.readouterr().err


@pytest.mark.parametrize("mode", ["copy", "knn"])
def test_the_command_line_reads_neighbours(
    tmp_path: Path, model: Path, memory: Path, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.txt").write_text("\n".join(src for src, _ in PAIRS) + "\n", encoding="utf-8")
    arguments = [
        "--memory",
        str(memory),
        "--mode",
        mode,
        "--neighbours",
        "5",
        "--cache",
        "0",
        "--beam",
        "3",
        "--no-verbatim",
    ]
    arguments += ["--knn-weight", "0.4", "--knn-temperature", "1", "--threads", "1"]
    assert run(["translate", "--model", str(model), str(tmp_path / "in.txt"), *arguments]) == 0
    options: dict[str, Any] = {
        "mode": mode,
        "neighbours": 5,
        "knn_weight": 0.4,
        "knn_temperature": 1.0,
    }
    expected = translated(model, [memory], [src for src, _ in PAIRS], **options)
    assert capsys.readouterr().out.split("\n")[:-1] == [t.tgt for t in expected]


def test_an_evaluation_sets_copy_neighbours_and_knn_side_by_side(
    tmp_path: Path, model: Path, memory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tmnmt.eval.recipe import load_recipe
    from tmnmt.eval.run import Run

    (tmp_path / "src.txt").write_text("\n".join(DOCUMENT) + "\n", encoding="utf-8")
    (tmp_path / "ref.txt").write_text(
        "\n".join(tgt for _, tgt in PAIRS[:4]) + "\n", encoding="utf-8"
    )
    systems = {
        "base": "",
        "copy": 'mode = "copy"',
        "wide": 'mode = "copy"\nneighbours = 4',
        "knn": 'mode = "knn"\nneighbours = 4\nknn_temperature = 1.0',
    }
    recipe = "\n".join(
        [
            'name = "n"\nbaseline = "base"\n[[test]]\nname = "t"\nsrc = "src.txt"\nreferences = '
            '["ref.txt"]',
            'memory = "m"',
            f'[[model]]\nname = "tiny"\npath = "{model}"\n[[memory]]\nname = "m"\npath = '
            f'"{memory}"',
            *(f'[[system]]\nname = "{name}"\nbeam = 3\n{keys}' for name, keys in systems.items()),
        ]
    )
    (tmp_path / "recipe.toml").write_text(recipe, encoding="utf-8")
    Run(load_recipe(tmp_path / "recipe.toml"), tmp_path / "out")("")
    told = {path.stem for path in (tmp_path / "out" / "translations").iterdir()}
    assert len(told) == len(systems)
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert all(f"| {name}" in report for name in systems)
