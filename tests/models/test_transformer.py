"""The Transformer: one step after the other equals one pass, rows do not see each other, and it
learns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from tiny_memory_training import run_of, sentences
from torch import Tensor
from torch.nn import functional as F

from tmnmt.config.options import TranslationOptions
from tmnmt.engine.beam_search import SearchSettings, beam_search
from tmnmt.errors import ModelError, UsageError
from tmnmt.index import build
from tmnmt.keys.compute import header_of, longest, longest_whole
from tmnmt.layers.combine import LayerInputs
from tmnmt.models.decoding import for_decoding
from tmnmt.models.encoder_decoder import _dropout
from tmnmt.models.folder import load_model, save_model
from tmnmt.models.kinds import make
from tmnmt.models.recurrence import Linear
from tmnmt.models.transformer import Transformer, TransformerConfig
from tmnmt.models.transformer_state import CAPACITY
from tmnmt.training.config import load_config
from tmnmt.training.memory_config import MemoryConfig
from tmnmt.training.run import train
from tmnmt.translator import Translator
from tmnmt.vocab import BOS, EOS, PAD, Vocabulary

SIZES: dict[str, Any] = {
    "hidden": 32,
    "feed_forward": 48,
    "heads": 4,
    "encoder_layers": 3,
    "decoder_layers": 2,
}


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(5)
    return Transformer(50, **SIZES).eval()


def batch(lengths: list[int], longest: int, seed: int = 1) -> Tensor:
    """Rows of random words, padded: (B, longest)."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, 50, (len(lengths), longest), generator=generator)
    return ids.masked_fill(torch.arange(longest) >= torch.tensor(lengths)[:, None], PAD)


SRC_LENGTHS, TGT_LENGTHS = [7, 3, 9], [CAPACITY + 3, 4, 11]


def given(rows: slice = slice(None)) -> tuple[Tensor, Tensor, Tensor]:
    src, tgt = batch(SRC_LENGTHS, max(SRC_LENGTHS)), batch(TGT_LENGTHS, max(TGT_LENGTHS), 2)
    return src[rows], torch.tensor(SRC_LENGTHS)[rows], tgt[rows]


@torch.no_grad()
def test_step_along_a_target_equals_forced(model: Transformer) -> None:
    src, lengths, tgt = given()
    encoded = model.encode(src, lengths)
    contexts, hiddens = model.forced(encoded, tgt)
    state, prev = model.start(encoded), torch.full((3,), BOS)
    for t in range(tgt.shape[1]):
        state, context, hidden = model.step(prev, state, encoded)
        real = tgt[:, t] != PAD
        torch.testing.assert_close(context[real], contexts[real, t], atol=1e-4, rtol=0)
        torch.testing.assert_close(hidden[real], hiddens[real, t], atol=1e-4, rtol=0)
        prev = tgt[:, t]


@torch.no_grad()
def test_a_row_alone_is_what_it_is_in_a_batch(model: Transformer) -> None:
    src, lengths, tgt = given()
    _, together = model.forced(model.encode(src, lengths), tgt)
    for row in range(3):
        src_len, tgt_len = SRC_LENGTHS[row], TGT_LENGTHS[row]
        encoded = model.encode(src[row : row + 1, :src_len], lengths[row : row + 1])
        _, alone = model.forced(encoded, tgt[row : row + 1, :tgt_len])
        torch.testing.assert_close(alone[0], together[row, :tgt_len], atol=1e-5, rtol=0)


@torch.no_grad()
def test_rows_of_a_beam_share_an_encoded_sentence_and_move_with_their_state(
    model: Transformer,
) -> None:
    src, lengths, _ = given(slice(0, 2))
    encoded = model.encode(src, lengths)
    rows = torch.tensor([0, 0, 1, 1])
    state = model.start(encoded).rows(rows)
    state, *_ = model.step(torch.full((4,), BOS), state, encoded)
    first = torch.tensor([5, 6, 7, 8])
    state, *_ = model.step(first, state, encoded)
    state = state.rows(torch.tensor([1, 0, 3, 3]))  # as a beam reorders them
    _, _, hidden = model.step(torch.tensor([9, 9, 9, 9]), state, encoded)
    for row, (sentence, word) in enumerate([(0, 6), (0, 5), (1, 8), (1, 8)]):
        alone = encoded.rows(torch.tensor([sentence])).cut(SRC_LENGTHS[sentence])
        _, hiddens = model.forced(alone, torch.tensor([[word, 9, 3]]))
        torch.testing.assert_close(hidden[row], hiddens[0, 2], atol=1e-4, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_hidden_states_have_one_length_and_are_read_as_the_sums_that_they_stand_for(
    norm: Literal["pre", "post"],
) -> None:
    torch.manual_seed(5)
    model = Transformer(50, **SIZES, norm=norm).eval()
    src, lengths, tgt = given()
    encoded = model.encode(src, lengths)
    contexts, hiddens = model.forced(encoded, tgt)
    torch.testing.assert_close(hiddens.square().mean(-1), torch.ones(tgt.shape))
    _, sums = model._forced(encoded, tgt)
    assert float(sums.square().mean(-1).std()) > 0.01
    torch.testing.assert_close(
        model.readout(tgt, hiddens, contexts),
        model.readout(tgt, sums, contexts),
        atol=1e-4,
        rtol=1e-4,
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_the_cross_entropy_of_the_readout(model: Transformer, smoothing: float) -> None:
    src, lengths, tgt = given()
    contexts, hiddens = model.forced(model.encode(src, lengths), tgt)
    logits = model.readout(tgt, hiddens, contexts)
    wanted = F.cross_entropy(
        logits.flatten(0, 1),
        tgt.flatten(),
        ignore_index=PAD,
        reduction="sum",
        label_smoothing=smoothing,
    )
    wanted.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    loss = model.loss(src, lengths, tgt, smoothing)
    loss.backward()
    torch.testing.assert_close(loss, wanted)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name], atol=2e-4, rtol=1e-3, msg=name)


def test_it_learns_to_turn_words_round(model: Transformer) -> None:
    """Attention and positions work: a sentence backwards is learned in a few updates."""
    torch.manual_seed(0)
    model = Transformer(30, **{**SIZES, "dropout": 0.0}).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(300):
        src = torch.randint(4, 30, (32, 6))
        loss = model.loss(src, torch.full((32,), 6), src.flip(1)) / src.numel()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    assert float(loss.detach()) < 0.2  # of ln 26 = 3.3 nats a word


def test_the_gradients_of_a_linear_part_are_those_of_its_formula() -> None:
    torch.manual_seed(2)
    given = [
        torch.randn(size, dtype=torch.float64, requires_grad=True)
        for size in ((2, 3, 4), (5, 4), (5,))
    ]
    assert torch.autograd.gradcheck(lambda *xs: Linear.apply(*xs, torch.float64), given)
    x, w, b = (t.detach().float().requires_grad_() for t in given)
    made = Linear.apply(x, w, b, torch.bfloat16)
    assert made.dtype == torch.bfloat16
    assert [g.dtype for g in torch.autograd.grad(made.sum(), (x, w, b))] == 3 * [torch.float32]


def test_bf16_products_stay_near_those_in_fp32(model: Transformer) -> None:
    src, lengths, tgt = given()
    exact = model.loss(src, lengths, tgt)
    model.dtype = torch.bfloat16
    torch.testing.assert_close(model.loss(src, lengths, tgt), exact, rtol=0.01, atol=0)


def test_dropout_keeps_the_mean_and_depends_on_the_seed_alone() -> None:
    x = torch.ones(1000, 99)
    torch.manual_seed(1)
    first = _dropout(x, 0.1)
    torch.manual_seed(1)
    assert torch.equal(_dropout(x, 0.1), first)
    assert not torch.equal(_dropout(x, 0.1), first)
    assert float((first == 0).float().mean()) == pytest.approx(0.1, abs=0.01)
    assert float(first.mean()) == pytest.approx(1.0, abs=0.01)


def test_a_folder_names_the_kind_and_gives_the_same_model_back(
    model: Transformer, tmp_path: Path
) -> None:
    vocab = Vocabulary.train(["un deux trois", "one two three"] * 20, 300)
    model = Transformer(len(vocab), **SIZES).eval()
    config = {"src_lang": "en", "tgt_lang": "fr", "model": {"kind": "transformer", **SIZES}}
    save_model(tmp_path, model, vocab, config)
    loaded = load_model(tmp_path).backbone
    assert isinstance(loaded, Transformer)
    for name, value in model.state_dict().items():
        assert torch.equal(value, loaded.state_dict()[name]), name
    toml = (tmp_path / "config.toml").read_text().replace('"transformer"', '"transformers"')
    (tmp_path / "config.toml").write_text(toml)
    with pytest.raises(
        ModelError, match="kind 'transformers' is none of rnnsearch, deeplau, transformer"
    ):
        load_model(tmp_path)


def test_a_transformer_takes_no_longer_segment_at_once_than_it_has_learned_from(
    tmp_path: Path,
) -> None:
    vocab = Vocabulary.train(["un deux trois", "one two three"] * 20, 300)
    transformer = Transformer(len(vocab), **SIZES)
    recurrent = {"embedding": 8, "hidden": 8, "attention": 8}
    made = (
        ("told", transformer, {"max_subwords": 40, "model": {"kind": "transformer", **SIZES}}),
        ("silent", transformer, {"model": {"kind": "transformer", **SIZES}}),
        (
            "recurrent",
            make(len(vocab), {"kind": "rnnsearch", **recurrent}),
            {"max_subwords": 40, "model": {"kind": "rnnsearch", **recurrent}},
        ),
    )
    lengths = {}
    for name, backbone, config in made:
        save_model(tmp_path / name, backbone, vocab, {"src_lang": "en", "tgt_lang": "fr", **config})
        model = load_model(tmp_path / name)
        lengths[name] = longest(model), longest_whole(model), header_of(model).max_subwords
    assert lengths == {
        "told": (40, 40, 53),  # keys are cut at a third more
        "silent": (80, 240, 320),
        "recurrent": (40, 120, 160),
    }


def test_a_kind_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="kind 'lstm' is none of rnnsearch, deeplau, transformer"):
        make(10, {"kind": "lstm"})


CONFIG = """
folder = "run"
[data]
[[data.corpus]]
name = "a"
files = ["a.tsv"]
[model]
"""


def read(tmp_path: Path, model: str) -> object:
    path = tmp_path / "config.toml"
    path.write_text(CONFIG + model)
    return load_config(path).model


def test_a_configuration_names_the_kind_of_its_model(tmp_path: Path) -> None:
    assert read(tmp_path, 'kind = "transformer"\nhidden = 64\nheads = 2') == TransformerConfig(
        hidden=64, heads=2
    )
    with pytest.raises(UsageError, match="unknown key `heads`"):
        read(tmp_path, "heads = 2")
    with pytest.raises(UsageError, match="'lstm' is none of rnnsearch, deeplau, transformer"):
        read(tmp_path, 'kind = "lstm"')
    with pytest.raises(UsageError, match="it must be an even multiple of heads, 3"):
        read(tmp_path, 'kind = "transformer"\nheads = 3')


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_beam_search_in_a_batch_is_that_of_each_sentence(
    model: Transformer, dtype: torch.dtype | None
) -> None:
    """Sentences leave and rows move: the cache of the self-attention moves with them, and grows."""
    with torch.no_grad():
        model.embedding.weight *= 3  # enough contrast to prefer some words
    backbone = for_decoding(model, dtype)
    src, lengths, _ = given()
    limits = [2 * n + CAPACITY for n in SRC_LENGTHS]
    together = beam_search(
        backbone, None, backbone.encode(src, lengths), LayerInputs(), limits, SearchSettings(3)
    )
    for row, found in enumerate(together):
        encoded = backbone.encode(src[row : row + 1, : SRC_LENGTHS[row]], lengths[row : row + 1])
        alone = beam_search(
            backbone, None, encoded, LayerInputs(), limits[row : row + 1], SearchSettings(3)
        )[0]
        if dtype is None:
            assert alone.ids == found.ids
            assert alone.score == pytest.approx(found.score, abs=1e-4)
        else:
            assert alone.score == pytest.approx(found.score, rel=0.05)
    assert max(len(found.ids) for found in together) > CAPACITY


@torch.no_grad()
def test_the_score_of_a_hypothesis_is_that_of_forcing_it(model: Transformer) -> None:
    src, lengths, _ = given(slice(0, 1))
    encoded = model.encode(src, lengths)
    found = beam_search(model, None, encoded, LayerInputs(), [20], SearchSettings(4))[0]
    tgt = torch.tensor([[*found.ids, *([EOS] if found.finished else [])]])
    contexts, hiddens = model.forced(encoded, tgt)
    log_p = model.readout(tgt, hiddens, contexts).log_softmax(-1)
    assert found.log_prob == pytest.approx(float(log_p.gather(2, tgt[..., None]).sum()), abs=1e-3)


def test_a_transformer_is_trained_with_its_memories_and_translates_with_them(
    tmp_path: Path,
) -> None:
    """`tmnmt train` and `tmnmt translate` ask no kind of backbone: its memories read, and say where
    words come from."""
    memory = MemoryConfig(
        tm_epochs=1,
        cache_epochs=1,
        max_pairs=20,
        cache_pairs=20,
        dev_segments=10,
        documents_together=2,
        stretch=10,
    )
    config = replace(
        run_of(tmp_path, memory), model=TransformerConfig(hidden=16, feed_forward=24, heads=2)
    )
    folder = train(config)
    segments = sentences()
    index = tmp_path / "index"
    build(index, segments[:20], "en", "fr")
    translator = Translator.load(folder, [index], TranslationOptions(verbatim=0, threads=1))
    session = translator.session()
    session.confirm(segments[21].src, segments[21].tgt)
    found = session.translate(segments[0].src, explain=True)
    assert found.matches
    for token in found.tokens:
        parts = token.generated + token.recalled + token.copied
        assert parts == pytest.approx(token.probability, abs=1e-5)
    assert any(token.copied > 0 for token in found.tokens) and any(
        token.recalled > 0 for token in found.tokens
    )
    alone = Translator.load(folder, options=TranslationOptions(mode="off", threads=1)).translate(
        [segments[0].src]
    )
    unread = Translator.load(
        folder, [index], TranslationOptions(threshold=1.0, verbatim=0, threads=1)
    ).translate(["Xyz."])
    assert (
        unread[0].score
        == Translator.load(folder, options=TranslationOptions(mode="off", threads=1))
        .translate(["Xyz."])[0]
        .score
    )
    assert alone[0].score < 0
