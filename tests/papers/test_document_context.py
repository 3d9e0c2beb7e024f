"""Context networks: equations, the laws of a backbone that reads one, and a document's start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_model import SIZES, trained, write_tiny_model
from torch import Tensor

from tmnmt.config.options import Decoding
from tmnmt.errors import ModelError
from tmnmt.models.base import (
    Injectable,
    Place,
    PrecedingSentences,
    SurroundingText,
    Surveyed,
    shift,
)
from tmnmt.models.decoding import for_decoding
from tmnmt.models.folder import load_model, save_model, stamp
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.papers.context_network import (
    Attended,
    ContextForm,
    ContextKind,
    Hierarchical,
    InDocument,
    InPlace,
    Remembered,
    context_network_of,
    surveyed,
)
from tmnmt.papers.deeplau import DeepLAU
from tmnmt.papers.reference_network import ReferenceKind, Referring, network_of
from tmnmt.vocab import BOS, EOS

FORMS: list[ContextForm] = ["attended", "auxiliary", "gated", "around"]
CONFIG = {"src_lang": "en", "tgt_lang": "fr", "max_subwords": 40, "model": SIZES}
# the first sentence of a document, the third, and the fifth
BEFORE: list[PrecedingSentences] = [[], [[6, 7, 8], [9]], [[9, 9], [4, 5, 6, 7], [8], [5, 10]]]


def tiny(kind: str = "rnnsearch") -> RNNsearch | DeepLAU:
    torch.manual_seed(0)
    if kind == "deeplau":
        made = DeepLAU(20, 4, 6, 5, encoder_layers=2, decoder_layers=2, dropout=0.0)
    else:
        return RNNsearch(20, embedding=4, hidden=6, attention=5, dropout=0.0).eval()
    return made.eval()


def reading(
    form: ContextForm, learned: bool = True, base: RNNsearch | DeepLAU | None = None
) -> InDocument:
    """With a network as after training: nothing is zero."""
    base = base or tiny()
    torch.manual_seed(3)
    network = context_network_of(ContextKind(form, size=4, hidden=5), base)
    if learned:
        with torch.no_grad():
            for value in network.state_dict().values():
                value.normal_(std=0.7)
    return InDocument(base, network).eval()


def batch() -> tuple[Tensor, Tensor, Tensor]:
    src = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0], [8, 9, 2, 0]])
    tgt = torch.tensor([[10, 11, 2, 0, 0], [12, 13, 14, 15, 2], [16, 2, 0, 0, 0]])
    return src, torch.tensor([4, 2, 3]), tgt


def places(backbone: InDocument) -> list[Place]:
    """What stands before; or all around: of the only sentence of its document, the second of three,
    and the first of five."""
    if not backbone.reads_around:
        return [*BEFORE]
    made, dtype = torch.Generator().manual_seed(2), next(backbone.parameters()).dtype
    sizes = backbone.annotation_size, backbone.hidden_size
    return [
        SurroundingText(
            Surveyed(*(torch.randn(count, size, generator=made, dtype=dtype) for size in sizes)),
            own,
        )
        for count, own in ((1, 0), (3, 1), (5, 0))
    ]


def placed(backbone: InDocument, rows: slice = slice(None)) -> InPlace:
    src, src_len, _ = batch()
    longest = int(src_len[rows].max())
    encoded = backbone.encode(src[rows, :longest], src_len[rows])
    return backbone.in_document(encoded, places(backbone)[rows])


def by_steps(backbone: InDocument, encoded: InPlace, tgt: Tensor) -> list[Tensor]:
    """Contexts and hidden states by the decoder's own step."""
    state, said = backbone.start(encoded), []
    for prev in shift(tgt, BOS).unbind(1):
        state, context, hidden = backbone.step(prev, state, encoded)
        said.append((context, hidden))
    return [torch.stack(part, 1) for part in zip(*said, strict=True)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["rnnsearch", "deeplau"])
def test_forced_and_steps_agree_and_the_sentences_before_change_them(
    kind: str, form: ContextForm
) -> None:
    backbone, tgt = reading(form, base=tiny(kind)), batch()[2]
    with torch.no_grad():
        encoded = placed(backbone)
        forced = backbone.forced(encoded, tgt)
        for ours, theirs in zip(forced, by_steps(backbone, encoded, tgt), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
        plain = backbone.base.forced(encoded.base, tgt)
    moved = (forced[1] - plain[1]).abs().amax((1, 2))
    assert moved[1] > 0.01 and moved[2] > 0.01
    torch.testing.assert_close(forced[1][0], plain[1][0], atol=1e-6, rtol=0)


@pytest.mark.parametrize("form", FORMS)
def test_together_and_one_by_one_are_the_same(form: ContextForm) -> None:
    backbone, tgt = reading(form), batch()[2]
    with torch.no_grad():
        _, together = backbone.forced(placed(backbone), tgt)
        for row, length in enumerate((3, 5, 2)):
            one = slice(row, row + 1)
            _, alone = backbone.forced(placed(backbone, one), tgt[one, :length])
            torch.testing.assert_close(together[row, :length], alone[0], atol=1e-6, rtol=0)


@pytest.mark.parametrize("form", FORMS)
def test_decoding_reads_the_same_for_every_row_of_a_beam(form: ContextForm) -> None:
    backbone, (_, _, tgt) = reading(form), batch()
    fast, real = for_decoding(backbone), tgt != 0
    assert isinstance(fast, InDocument) and fast.shares_encoded
    with torch.no_grad():
        expected = backbone.forced(placed(backbone), tgt)
        encoded = fast.for_beam(placed(fast))
        for ours, theirs in zip(fast.forced(encoded, tgt), expected, strict=True):
            torch.testing.assert_close(ours[real], theirs[real], atol=1e-5, rtol=0)
            assert not ours[~real].any()
        alphas = fast.alphas(encoded, tgt)
        torch.testing.assert_close(alphas[real], backbone.alphas(placed(backbone), tgt)[real])
        # two rows a sentence, of which the second is the next one's target; the first has left
        left = encoded.rows(torch.tensor([1, 2]))
        words = shift(tgt[[1, 2, 2, 1]], BOS)
        state = fast.reordered(fast.start(left), torch.tensor([0, 0, 1, 1]))
        alone = placed(backbone).rows(torch.tensor([1, 1, 2, 2]))
        expected = backbone.forced(alone, tgt[[1, 2, 2, 1]])
        for t, prev in enumerate(words.unbind(1)):
            state, context, _ = fast.step(prev, state, left)
            torch.testing.assert_close(context, expected[0][:, t], atol=1e-5, rtol=0)
            torch.testing.assert_close(state, expected[1][:, t], atol=1e-5, rtol=0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("decoding", [False, True])
def test_untrained_and_at_a_document_s_start_it_is_the_base_bit_for_bit(
    form: ContextForm, decoding: bool
) -> None:
    _, _, tgt = batch()
    for learned, rows in ((False, slice(None)), (True, slice(0, 1))):
        backbone = reading(form, learned)
        used = for_decoding(backbone) if decoding else backbone
        assert isinstance(used, InDocument)
        with torch.no_grad():
            encoded = placed(used, rows)
            assert (encoded.memory is None) == learned
            state = plain = used.start(encoded)
            for prev in shift(tgt[rows], BOS).unbind(1):
                state, context, _ = used.step(prev, state, encoded)
                plain, plain_context, _ = used.base.step(prev, plain, encoded.base)
                assert torch.equal(state, plain) and torch.equal(context, plain_context)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_flow_through_the_recurrence_and_equal_numerical_ones(form: ContextForm) -> None:
    backbone, (src, src_len, tgt) = reading(form).double(), batch()
    network = backbone.network
    names = [name for name, _ in network.named_parameters()]
    values = tuple(p.detach().clone().requires_grad_() for p in network.parameters())
    own = backbone.base.encode(src, src_len)
    own = type(own)(*(x.detach() for x in vars(own).values()))

    def last(*parameters: Tensor) -> Tensor:
        """What the last position has of every position before it."""
        with torch.no_grad():
            for name, value in zip(names, parameters, strict=True):
                network.get_parameter(name).copy_(value)
        encoded = backbone.in_document(InPlace(own), places(backbone))
        return backbone.forced(encoded, tgt)[1][:, -1].sum()

    grads = torch.autograd.grad(last(*values), [*network.parameters()])
    assert all(grad.abs().sum() > 0 for grad in grads)
    made = torch.Generator().manual_seed(1)
    ways = [torch.randn(value.shape, generator=made, dtype=value.dtype) for value in values]
    with torch.no_grad():
        ahead, behind = (
            last(*(value + e * way for value, way in zip(values, ways, strict=True)))
            for e in (1e-6, -1e-6)
        )
    along = sum((grad * way).sum() for grad, way in zip(grads, ways, strict=True))
    assert float(along) == pytest.approx(float(ahead - behind) / 2e-6, rel=1e-5)


def gru(layer: torch.nn.GRU, words: Tensor, end: str = "") -> list[Tensor]:
    """All states along words (n, .) by torch's own equations, one after the other."""
    w, u = (getattr(layer, f"weight_{part}_l0{end}") for part in ("ih", "hh"))
    b, c = (getattr(layer, f"bias_{part}_l0{end}") for part in ("ih", "hh"))
    h, states = torch.zeros(u.shape[1]), []
    for x in words:
        (xr, xz, xn), (hr, hz, hn) = (w @ x + b).chunk(3), (u @ h + c).chunk(3)
        z = torch.sigmoid(xz + hz)
        h = (1 - z) * torch.tanh(xn + torch.sigmoid(xr + hr) * hn) + z * h
        states.append(h)
    return states


def test_the_attention_is_that_of_the_equations() -> None:
    """Jean et al.: only the sentence right before is read."""
    backbone, made = reading("attended"), torch.Generator().manual_seed(1)
    network, embed = backbone.network, backbone.embed
    assert isinstance(network, Attended)
    prev = torch.tensor([11, 12, 13])
    state, context = (torch.randn(3, 6, generator=made) for _ in range(2))
    with torch.no_grad():
        read = network.read(embed, BEFORE)
        assert read is not None
        injected = network.injector(embed, read)(prev, state, context)
        assert not injected[0].any()
        for row in (1, 2):
            words = embed(torch.tensor([*BEFORE[row][-1], EOS]))
            ahead, back = (
                gru(network.encoder, words),
                gru(network.encoder, words.flip(0), "_reverse"),
            )
            states = [torch.cat(both) for both in zip(ahead, back[::-1], strict=True)]
            asked = torch.cat([embed(prev[row]), state[row], context[row]])
            energies = [
                network.vector @ torch.tanh(network.asks(asked) + network.of_state.weight @ h)
                for h in states
            ]
            alpha = torch.stack(energies).softmax(0)
            said = sum(a * h for a, h in zip(alpha, states, strict=True))
            torch.testing.assert_close(injected[row], network.into.weight @ said)


@pytest.mark.parametrize("form", ["auxiliary", "gated"])
def test_the_document_s_state_is_that_of_the_equations(form: ContextForm) -> None:
    """Wang et al.: the last three sentences, and those that there are."""
    backbone, made = reading(form), torch.Generator().manual_seed(1)
    network, embed = backbone.network, backbone.embed
    assert isinstance(network, Hierarchical)
    prev = torch.tensor([11, 12, 13])
    state, context = (torch.randn(3, 6, generator=made) for _ in range(2))
    with torch.no_grad():
        read = network.read(embed, BEFORE)
        assert read is not None
        injected = network.injector(embed, read)(prev, state, context)
        assert not injected[0].any()
        for row in (1, 2):
            ends = [
                gru(network.sentence, embed(torch.tensor([*ids, EOS])))[-1]
                for ids in BEFORE[row][-3:]
            ]
            document = gru(network.document, torch.stack(ends))[-1]
            if network.gate is not None:
                asked = torch.cat([embed(prev[row]), state[row], context[row]])
                document = torch.sigmoid(network.gate(asked)) * document
            torch.testing.assert_close(injected[row], network.into.weight @ document)


def test_the_memories_are_those_of_the_equations() -> None:
    """Maruf and Haffari: all sentences but the own one are read, the own one asks."""
    backbone = reading("around")
    network = backbone.network
    assert isinstance(network, Remembered)
    prev, state, context = torch.tensor([11, 12, 13]), torch.zeros(3, 6), torch.zeros(3, 6)
    with torch.no_grad():
        read = network.read(backbone.embed, places(backbone))
        assert read is not None
        injected = network.injector(backbone.embed, read)(prev, state, context)
        assert not injected[0].any()
        for row, place in enumerate(places(backbone)[1:], 1):
            assert isinstance(place, SurroundingText)
            x, s = place.document.sources, place.document.targets
            ahead, back = gru(network.document, x), gru(network.document, x.flip(0), "_reverse")
            h = [torch.cat(both) for both in zip(ahead, back[::-1], strict=True)]
            asked = (
                network.asks.weight @ x[place.sentence],
                s[place.sentence] + network.of_source.weight @ x[place.sentence],
            )
            said = []
            for query, memory in zip(asked, (h, [*s]), strict=True):
                others = torch.stack(memory[: place.sentence] + memory[place.sentence + 1 :])
                weights = torch.stack([each @ query for each in others]).softmax(0)
                said.append((weights[:, None] * others).sum(0))
            torch.testing.assert_close(injected[row], network.into.weight @ torch.cat(said))


def test_rows_of_one_document_and_rows_without_any_are_read_as_each_alone() -> None:
    backbone = reading("around")
    _, second, first = places(backbone)
    assert isinstance(second, SurroundingText) and isinstance(first, SurroundingText)
    rows = [first, None, replace(first, sentence=4), second, replace(first, sentence=2)]
    with torch.no_grad():
        together = backbone.network.read(backbone.embed, rows)
        assert together is not None
        for row, place in enumerate(rows):
            alone = backbone.network.read(backbone.embed, [place])
            if alone is None:
                assert place is None and not together[0][row].any()
            else:
                torch.testing.assert_close(together[0][row], alone[0][0], atol=1e-5, rtol=1e-5)
        assert backbone.network.read(backbone.embed, [None, places(backbone)[0]]) is None


@pytest.mark.parametrize("kind", ["rnnsearch", "deeplau"])
def test_a_document_is_surveyed_sentence_by_sentence(kind: str) -> None:
    """The mean of the encoder's states, and the last state along the translation, by steps."""
    base = for_decoding(tiny(kind))
    assert isinstance(base, Injectable)
    pairs = [([4, 5, 6], [10, 11]), ([7], [12, 13, 14, 15]), ([8, 9], [])]
    found = surveyed(base, pairs, torch.device("cpu"))
    with torch.no_grad():
        for at, (src, tgt) in enumerate(pairs):
            encoded = base.encode(torch.tensor([[*src, EOS]]), torch.tensor([len(src) + 1]))
            mean = base.annotations(encoded)[0].mean(0)
            torch.testing.assert_close(found.sources[at], mean, atol=1e-5, rtol=0)
            state = base.start(encoded)
            for word in (BOS, *tgt):
                state, _, hidden = base.step(torch.tensor([word]), state, encoded)
            torch.testing.assert_close(found.targets[at], hidden[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("form", FORMS)
def test_saved_and_loaded_it_is_the_same_and_plain_is_the_base(
    form: ContextForm, tmp_path: Path
) -> None:
    vocab, base = trained()
    backbone = reading(form, base=base.eval())
    save_model(tmp_path / "model", backbone, vocab, CONFIG)
    model, plain = load_model(tmp_path / "model"), write_tiny_model(tmp_path / "plain", False)
    assert isinstance(model.backbone, InDocument) and model.backbone.network.kind.form == form
    previous = {"attended": 1, "around": 0}.get(form, 3)
    assert (model.backbone.previous, model.backbone.reads_around) == (previous, form == "around")
    assert model.hash != load_model(plain).hash == model.base_hash
    left = model.reading(Decoding(context=False))
    assert isinstance(left.backbone, RNNsearch) and left.hash == model.base_hash
    assert model.reading(Decoding(reference=False)) is model
    src = torch.tensor([[*vocab.encode("It shall apply."), EOS]])
    before: Place = [vocab.encode("Having regard to the proposal,"), vocab.encode("It shall")]
    place = places(backbone)[1] if form == "around" else before
    with torch.no_grad():
        ours, theirs = (
            one.forced(one.in_document(one.encode(src, torch.tensor([src.shape[1]])), [place]), src)
            for one in (model.backbone, backbone)
        )
    assert torch.equal(ours[1], theirs[1])
    save_model(tmp_path / "model", base, vocab, CONFIG)
    assert not (tmp_path / "model" / "context.safetensors").exists()


def test_a_model_has_one_network_at_most_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    vocab, base = trained()
    folder, other = tmp_path / "model", tmp_path / "other"
    save_model(folder, reading("gated", base=base), vocab, CONFIG)
    kind = ReferenceKind("bilingual", anchors=2, hidden=2, size=2)
    save_model(other, Referring(base, network_of(kind, base)), vocab, CONFIG)
    (other / "context.safetensors").write_bytes((folder / "context.safetensors").read_bytes())
    stamp(other)
    with pytest.raises(ModelError, match="a model has one of them at most"):
        load_model(other)
    (other / "reference.safetensors").rename(folder / "context.safetensors")
    stamp(folder)
    with pytest.raises(ModelError, match="no context network of this base"):
        load_model(folder)
