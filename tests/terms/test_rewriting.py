"""A translation written once more: what stays stays, and what is put in fits best."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tmnmt.engine.beam_search import DecoderTrace, Hypothesis
from tmnmt.layers.combine import LayerInputs, MemoryLayers, Stepped
from tmnmt.models.base import Backbone, StepRecord, shift
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.models.rnnsearch_fast import FastRNNsearch
from tmnmt.models.transformer import Transformer
from tmnmt.terms.insertion import Insert
from tmnmt.terms.rewriting import Alternatives, Fixed, Part, Writer
from tmnmt.terms.subword_forms import Form, Spelling
from tmnmt.terms.target_prior import TargetPrior
from tmnmt.vocab import BOS, EOS, FIRST, PAD, Vocabulary

PIECES = ["<pad>", "<s>", "</s>", "<unk>", "▁a", "▁b", "c", "▁l", "'", "e", "▁la", "▁le", "▁du"]
SMALL = {
    "la": frozenset([""]),
    "le": frozenset([""]),
    "l'": frozenset([""]),
    "du": frozenset(["de"]),
}
A, B, C, L, MARK, E, LA, LE, DU = range(FIRST, len(PIECES))


class Named(Vocabulary):
    """A vocabulary of these pieces alone."""

    def __init__(self) -> None:
        self.model = b""

    def __len__(self) -> int:
        return len(PIECES)

    def piece(self, index: int) -> str:
        return PIECES[index]

    def decode(self, ids: object) -> str:
        assert isinstance(ids, Sequence)
        return "".join(PIECES[one] for one in ids).replace("▁", " ").strip()

    def encode(self, text: str) -> list[int]:
        """The longest pieces."""
        found, rest = list[int](), "▁" + text.replace(" ", "▁")
        while rest:
            at, piece = max(
                ((i, p) for i, p in enumerate(PIECES) if rest.startswith(p)),
                key=lambda one: len(one[1]),
                default=(3, rest[0]),
            )
            found.append(at)
            rest = rest[len(piece) :]
        return found


SPELLING = Spelling(Named(), SMALL)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def backbone(seed: int, kind: str = "gru") -> Backbone:
    torch.manual_seed(seed)
    if kind == "transformer":
        made: Backbone = Transformer(
            len(PIECES), 8, 16, 2, encoder_layers=1, decoder_layers=1, dropout=0.0
        ).eval()
    else:
        made = RNNsearch(len(PIECES), embedding=8, hidden=16, attention=8, dropout=0.0).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(2.5)
    return FastRNNsearch(made) if isinstance(made, RNNsearch) else made


def sources(lengths: list[int]) -> tuple[Tensor, Tensor]:
    src = torch.full((len(lengths), max(lengths)), PAD)
    for row, length in zip(src, lengths, strict=True):
        torch.manual_seed(length)
        row[:length] = torch.randint(FIRST, len(PIECES), (length,))
    return src, torch.tensor(lengths)


def written(model: Backbone, *parts: Sequence[Part], explain: bool = False) -> list[Hypothesis]:
    with torch.inference_mode():
        encoded = model.encode(*sources([5, 4, 6][: len(parts)]))
        before = [Hypothesis((A,), -float(at), -2.0 * at, True) for at in range(len(parts))]
        writer = Writer(parts, SPELLING, model, None)
        return writer.rewrite(encoded, LayerInputs(), before, explain=explain)


def chances(model: Backbone, ids: Sequence[int], has_source: bool = True) -> list[float]:
    """log p of every subword of a translation of the first source, or of an empty one."""
    with torch.inference_mode():
        tgt = torch.tensor([[*ids]])
        source = sources([5]) if has_source else (torch.tensor([[EOS]]), torch.tensor([1]))
        contexts, hiddens = model.forced(model.encode(*source), tgt)
        prev = torch.cat([torch.full_like(tgt[:, :1], BOS), tgt[:, :-1]], 1)
        logits = model.readout(prev, hiddens, contexts).log_softmax(-1)
        return [float(one) for one in logits[0].gather(1, tgt[0][:, None])[:, 0]]


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_what_is_fixed_comes_as_it_is_with_its_own_probabilities(kind: str) -> None:
    texts = [(A, C, B), (LA, A), (L, MARK, E, C, C)]
    for seed in range(3):
        model = backbone(seed, kind)
        parts = [[Fixed(ids[:1]), Fixed(ids[1:])] for ids in texts]
        found = written(model, *parts, explain=True)
        assert [one.ids for one in found] == texts
        assert [one.ids for one in written(model, *parts)] == texts
        assert all(one.finished for one in found)
        own = [math.exp(one) for one in chances(model, texts[0])]
        assert found[0].probabilities == pytest.approx(own, abs=1e-4)
        assert found[2].hiddens is not None and len(found[2].hiddens) == len(texts[2])
        assert len(found[2].traces) == len(texts[2])


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_the_same_comes_whether_or_not_all_is_read_out(kind: str) -> None:
    """Beside sentences of other lengths, which leave earlier where nothing is kept of them."""
    forms = (Form((A, C), False), Form((E, C), True), Form((B,), False))
    parts: list[list[Part]] = [
        [Fixed((B,)), Insert(forms, 2, (LE,)), Fixed((B, A)), Alternatives(((A, C), (A, E), (A,)))],
        [Insert(forms), Fixed((C, C, C, LA))],
        [Fixed((B, LA, C)), Alternatives(((A,), (B,))), Insert(forms, 2, (DU,)), Fixed((B,))],
    ]
    for seed in range(6):
        model = backbone(seed, kind)
        found, told = written(model, *parts), written(model, *parts, explain=True)
        assert [one.ids for one in found] == [one.ids for one in told]
        alone = [written(model, *parts[:1])[0].ids]
        assert alone == [found[0].ids]
        assert [one.score for one in found] == [0.0, -1.0, -2.0]  # of what was found before


def test_the_same_comes_where_the_states_until_the_first_choice_are_known() -> None:
    """And where one is not, or says something else."""
    forms = (Form((A, C), False), Form((E, C), True), Form((B,), False))
    parts: list[list[Part]] = [
        [
            Fixed((B, A)),
            Insert(forms, 2, (LE,)),
            Fixed((B, A)),
            Alternatives(((A, C), (A, E), (A,))),
        ],
        [Insert(forms), Fixed((C, LA)), Insert(forms, 2, (LE,))],
        [Fixed((B, LA, C)), Insert(forms, 2, (DU,)), Fixed((B,))],
    ]
    texts = [(B, A, LE, A, B, A, A, C), (A, C, LA, LE), (B, LA, C, DU, B, B)]
    for seed in range(6):
        model = backbone(seed)
        with torch.inference_mode():
            encoded = model.encode(*sources([5, 4, 6]))
            rows = [encoded.rows(torch.tensor([row])) for row in range(3)]
            known = [
                StepRecord(
                    model.forced(own, torch.tensor([[*ids, EOS]]))[1][0, :-1], torch.empty(0)
                )
                for own, ids in zip(rows, texts, strict=True)
            ]
            before = [
                Hypothesis(ids, 0.0, 0.0, True, evidence=DecoderTrace(own, along))
                for own, ids, along in zip(rows, texts, known, strict=True)
            ]
            other = replace(before[0], ids=(LA, *texts[0][1:]))
            lacking = [replace(before[0], evidence=None), *before[1:]]
            wanted = [one.ids for one in written(model, *parts)]
            for said in (before, [other, *before[1:]], lacking):
                writer = Writer(parts, SPELLING, model, None)
                assert [one.ids for one in writer.rewrite(encoded, LayerInputs(), said)] == wanted


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_forms_are_looked_for_in_several_sentences_as_in_each_alone(kind: str) -> None:
    forms = (Form((A, C), False), Form((E, C), True), Form((B,), False))
    parts: list[list[Part]] = [
        [Fixed((B,)), Insert(forms, 2, (LE,)), Alternatives(((B,), (LA,))), Fixed((A,))],
        [Fixed((C,)), Insert(forms[:1], 2, (DU,)), Fixed((C, LA))],
        [Fixed((A, C)), Insert(forms[1:]), Alternatives(((B, C), (B,), (A, C))), Fixed((B,))],
    ]
    for seed in range(8):
        model = backbone(seed, kind)
        found = [one.ids for one in written(model, *parts)]
        for at, own in enumerate(parts):
            alone = written(model, *[own if at == other else [Fixed((A,))] for other in range(3)])
            assert alone[at].ids == found[at]


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_words_are_as_likely_behind_others_as_forced_without_a_source(kind: str) -> None:
    pairs = [((), (A, C)), ((LA,), (A, C)), ((L, MARK), (E,)), ((LA,), (A, E, C)), ((LA,), (B,))]
    model = backbone(3, kind)
    with torch.inference_mode():
        unread = TargetPrior(model)
        found = unread.chances([*pairs, pairs[1]])
        assert unread.chances(pairs[:2]) == found[:2] and found[5] == found[1]
        nothing = model.encode(torch.tensor([[EOS]]), torch.tensor([1]))
        for (first, second), chance in zip(pairs, found, strict=False):
            tgt = torch.tensor([[*first, *second]])
            contexts, hiddens = model.forced(nothing, tgt)
            logits = model.readout(shift(tgt, BOS), hiddens, contexts).log_softmax(-1)[0]
            own = logits.gather(1, tgt[0][:, None])[len(first) :]
            assert chance == pytest.approx(float(own.sum()), abs=1e-4)


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_the_likeliest_form_comes_where_no_small_words_go_with_it(kind: str) -> None:
    """Against every form, forced: its own subwords, and that its last word ends."""
    forms = [Form((A, C), False), Form((B,), False, 0.5), Form((A, E, C), False), Form((E,), True)]
    chosen = set()
    for seed, before in itertools.product(range(5), [(B,), (L, MARK)]):
        model = backbone(seed, kind)
        (found,) = written(model, [Fixed(before), Insert(tuple(forms)), Fixed((LA,))])
        allowed = [form for form in forms if form.inside == (before == (L, MARK))]
        worth = {
            form.ids: sum(chances(model, (*before, *form.ids))[len(before) :])
            - form.cost
            + ends(model, (*before, *form.ids))
            for form in allowed
        }
        best = max(worth, key=lambda ids: worth[ids])
        assert found.ids == (*before, *best, LA)
        chosen.add(best)
    assert len(chosen) > 1


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_one_trial_of_every_form_is_written_to_its_end(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And none of a single form: only what is written then reads it."""
    model, reads, step = backbone(1, kind), list[list[int]](), MemoryLayers.step

    def reading(layers: MemoryLayers, base: Backbone, prev: Tensor, *rest: Any) -> Stepped:
        reads.append(prev.tolist())
        return step(layers, base, prev, *rest)

    monkeypatch.setattr(MemoryLayers, "step", reading)
    long, short = Form((A, E, E, E), False), Form((B,), False)
    parts: list[Part] = [Fixed((B,)), Insert((long,), 2, (LE,)), Alternatives(((C,), (LA,)))]
    written(model, parts)
    assert [E in prev for prev in reads].count(True) == 3
    reads.clear()
    written(model, [Fixed((B,)), Insert((long, short), 2, (LE,)), Fixed((C,))])
    assert 0 < max(prev.count(E) for prev in reads) <= 2  # a step has two rows at least


def ends(model: Backbone, ids: tuple[int, ...]) -> float:
    starts = [at for at, piece in enumerate(PIECES) if not piece[0].isalnum()]
    every = torch.tensor([chances(model, (*ids, at))[-1] for at in starts])
    return float(every.logsumexp(0))


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_small_words_before_a_form_may_change_but_not_their_preposition(kind: str) -> None:
    """Beside other sentences that are written at the same time."""
    seen = set()
    for seed in range(12):
        forms = (Form((A, C), False), Form((E, C), True))
        one: list[Part] = [Fixed((B,)), Insert(forms, 2, (LE,)), Fixed((B,))]
        other: list[Part] = [Fixed((B, B)), Insert(forms, 2, (DU,)), Fixed((C,))]
        found = written(backbone(seed, kind), one, other, [Fixed((A,))])
        between = [ids.ids[1:-1] for ids in found[:1]] + [found[1].ids[2:-1]]
        assert between[0] in {(A, C), (LE, A, C), (LA, A, C), (L, MARK, E, C)}
        assert between[1][-2:] in {(A, C), (E, C)} and between[1][0] in {DU, A}
        assert found[2].ids == (A,)
        seen.add(between[0])
    assert len(seen) > 1


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_a_word_behind_a_term_takes_another_form_only_where_it_is_far_likelier(kind: str) -> None:
    """With its source and without one, both together."""
    changed = 0
    for seed in range(12):
        model = backbone(seed, kind)
        words = ((A, C), (A, E), (A,))
        (found,) = written(model, [Fixed((B,)), Alternatives(words), Fixed((LA,))])
        worth = {
            ids: sum(chances(model, (B, *ids, LA), with_source)[2] for with_source in (True, False))
            + (1.5 if ids == (A, C) else 0)
            for ids in words
        }
        best = max(worth, key=lambda ids: worth[ids])
        assert found.ids == (B, *best, LA)
        changed += best != (A, C)
    assert 0 < changed < 12


def test_behind_a_word_in_another_form_the_next_one_need_not_be_far_likelier() -> None:
    lighter = 0
    for seed in range(24):
        model = backbone(seed)
        (found,) = written(
            model,
            [Fixed((B,)), Alternatives(((A,), (DU,))), Alternatives(((LA,), (LE,))), Fixed((B,))],
        )
        _, first, second, _ = found.ids

        def worth(*ids: int, model: Backbone = model) -> float:
            return sum(chances(model, (B, *ids), has)[len(ids)] for has in (True, False))

        assert (first == DU) == (worth(DU) > worth(A) + 1.5)
        gain = worth(first, LE) - worth(first, LA)
        assert (second == LE) == (gain > (0.0 if first == DU else 1.5))
        lighter += first == DU and 0 < gain < 1.5
    assert lighter


def test_forms_behind_an_apostrophe_are_those_that_may_stand_there() -> None:
    assert SPELLING.forms("ac") == [Form((A, C), False)]
    assert [form.inside for form in Spelling(Named()).forms("ec")] == [True]
    assert SPELLING.forms("x") == []
    assert SPELLING.stem((LE,)) == SPELLING.stem((LA,)) == SPELLING.stem((L, MARK))
    assert SPELLING.last_word((DU, L, MARK)) == (L, MARK)
