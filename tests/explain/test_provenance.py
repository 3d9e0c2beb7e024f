"""What is said of a token's origin adds up, and is no more than can be said."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt import Translator
from tmnmt.config.options import TranslationOptions
from tmnmt.explain.provenance import origin_of
from tmnmt.index import build
from tmnmt.layers import combine
from tmnmt.models.rnnsearch_fast import FastRNNsearch
from tmnmt.segments import Provenance, Translation
from tmnmt.trained_layers.cache import CacheKind, SessionCache

DOCUMENT = [PAIRS[0][0], "It shall apply from 3 March 1997.", PAIRS[0][0], "Repealed."]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("provenance")
    build(folder / "index", segments(), "en", "fr")
    return write_tiny_model(folder / "model"), folder / "index"


def explained(folders: tuple[Path, Path], mode: str, cache: int = 5) -> list[Translation]:
    return Translator.load(
        folders[0],
        [folders[1]],
        TranslationOptions(
            cache=cache, remember="own" if cache else "confirmed", mode=mode, verbatim=0
        ),
    ).translate(DOCUMENT, explain=True)


@pytest.mark.parametrize("mode", ["copy", "fusion", "both", "off"])
def test_mixture_parts_sum_to_the_probability_and_effects_to_the_generated_one(
    folders: tuple[Path, Path], mode: str
) -> None:
    tokens = [token for translation in explained(folders, mode) for token in translation.tokens]
    assert tokens
    for token in tokens:
        assert token.generated + token.recalled + token.copied == pytest.approx(
            token.probability, abs=1e-5
        )
        p_gen = token.plain + token.cache_effect + token.fusion_effect
        assert token.generated == pytest.approx((1 - token.copy_gate) * p_gen, abs=1e-6)
    assert any(token.copied for token in tokens) == (mode in ("copy", "both"))
    assert any(token.fusion_effect for token in tokens) == (mode in ("fusion", "both"))


@pytest.mark.parametrize("mode", ["copy", "nearest", "off"])
def test_what_a_shallow_cache_recalls_is_a_part_of_the_mixture(tmp_path: Path, mode: str) -> None:
    build(tmp_path / "index", segments(), "en", "fr")
    model = write_tiny_model(tmp_path / "model", cache=CacheKind("shallow"))
    translations = explained((model, tmp_path / "index"), mode)
    assert not any(token.recalled for token in translations[0].tokens)
    for token in (token for translation in translations for token in translation.tokens):
        assert token.generated + token.recalled + token.copied == pytest.approx(
            token.probability, abs=1e-5
        )
        gates = (1 - token.copy_gate) * (1 - token.recall_gate)
        assert token.generated == pytest.approx(gates * token.plain, abs=1e-6)
        of_the_word = sum(slot.weight for slot in token.slots if slot.text == token.text)
        assert (1 - token.copy_gate) * token.recall_gate * of_the_word == pytest.approx(
            token.recalled, abs=1e-5
        )
    assert any(token.recalled for translation in translations for token in translation.tokens)


@pytest.mark.parametrize("mode", ["copy", "fusion", "both"])
def test_attention_and_slots_are_all_that_was_read_but_for_the_lightest(
    folders: tuple[Path, Path], mode: str
) -> None:
    first, second, *_ = explained(folders, mode)
    assert not any(token.slots for token in first.tokens) and all(
        token.slots for token in second.tokens
    )
    for token in (*first.tokens, *second.tokens):
        for read in (token.attention, token.slots):
            weights = [source.weight for source in read]
            assert weights == sorted(weights, reverse=True) and (
                not read or 0.5 < sum(weights) < 1 + 1e-5
            )
        assert {source for source in token.sources if source.weight >= 0.01} <= set(token.attention)
    assert all(token.attention for token in first.tokens)


def test_a_copied_part_is_what_its_sources_were_attended_with(folders: tuple[Path, Path]) -> None:
    translator = Translator.load(
        folders[0], [folders[1]], TranslationOptions(mode="copy", verbatim=0)
    )
    found = translator.translate(DOCUMENT, explain=True)[0]
    for token in found.tokens:
        weight = sum(source.weight for source in token.sources)
        assert token.copy_gate * weight == pytest.approx(token.copied, abs=1e-5)
        for source in token.sources:
            target = translator.vocab.encode(found.matches[source.match].segment.tgt)
            assert translator.vocab.piece(target[source.position]) == token.text


def test_what_is_not_asked_for_is_not_computed(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        own = getattr(module, name)

        def count(*arguments: Any, **named: Any) -> Any:
            calls[name] += 1
            return own(*arguments, **named)

        monkeypatch.setattr(module, name, count)

    counted(FastRNNsearch, "step")
    counted(FastRNNsearch, "readout")
    counted(SessionCache, "matched")
    counted(combine, "trace_of")
    translator = Translator.load(
        folders[0],
        [folders[1]],
        TranslationOptions(cache=5, remember="own", mode="both", verbatim=0),
    )
    found = []
    for explain in (False, True):
        session = translator.session()
        session.translate(
            DOCUMENT[0]
        )  # the pairs' keys are computed and the cache is filled before the count
        calls.clear()
        found.append(replace(session.translate(DOCUMENT[0], explain), tokens=()))
        steps = calls["step"]
        each = (
            {"readout": 3, "matched": 1, "trace_of": 1}
            if explain
            else {"readout": 1, "matched": 1, "trace_of": 0}
        )
        assert steps and {name: calls[name] / steps for name in each} == each
    assert found[0] == found[1]  # bit for bit


def test_tokens_spell_the_translation_and_cost_nothing_when_not_asked_for(
    folders: tuple[Path, Path],
) -> None:
    translator = Translator.load(folders[0], [folders[1]], TranslationOptions(verbatim=0))
    with_tokens = translator.translate(DOCUMENT, explain=True)
    without = translator.translate(DOCUMENT)
    for one, other in zip(with_tokens, without, strict=True):
        spelt = "".join(token.text for token in one.tokens).replace("▁", " ").strip()
        # the mark of the source ends a translation for which the model has written none
        assert one.tgt == other.tgt and one.tgt in (spelt, f"{spelt}.")
        assert other.tokens == ()


def test_only_the_cache_of_earlier_sentences_has_an_effect(folders: tuple[Path, Path]) -> None:
    first, second, *_ = explained(folders, "off")
    assert all(token.cache_effect == token.cache_gate == 0 for token in first.tokens)
    assert any(token.cache_effect for token in second.tokens)


def test_without_a_match_nothing_is_from_the_memory(folders: tuple[Path, Path]) -> None:
    last = explained(folders, "both")[-1]
    assert last.matches == ()
    assert all(
        t.copy_gate == t.fusion_gate == t.copied == t.fusion_effect == 0 and not t.sources
        for t in last.tokens
    )


@pytest.mark.parametrize(
    ("generated", "recalled", "copied", "plain", "cache_effect", "fusion_effect", "origin"),
    [
        (
            0.3,
            0.0,
            0.4,
            0.0,
            0.3,
            0.0,
            "memory",
        ),  # the larger mixture part, whatever happened inside the other
        (0.4, 0.0, 0.3, 0.4, 0.0, 0.0, "model"),
        (
            0.9,
            0.0,
            0.0,
            0.5,
            0.4,
            0.0,
            "model",
        ),  # helped by the cache, but the plain model had more of it
        (0.9, 0.0, 0.0, 0.4, 0.5, 0.0, "cache"),
        (0.9, 0.0, 0.0, 0.2, 0.3, 0.4, "memory"),
        (0.9, 0.0, 0.0, 0.2, 0.5, 0.2, "cache"),
        (0.1, 0.0, 0.0, 0.9, -0.4, -0.4, "model"),
        (0.3, 0.4, 0.2, 0.3, 0.0, 0.0, "cache"),
        (0.3, 0.35, 0.4, 0.3, 0.0, 0.0, "memory"),
    ],
)
def test_origin(
    generated: float,
    recalled: float,
    copied: float,
    plain: float,
    cache_effect: float,
    fusion_effect: float,
    origin: str,
) -> None:
    provenance = (
        Provenance("cache", cache_effect, 0.5, "cache", is_mixed=False),
        Provenance("fusion", fusion_effect, 0.5, "memory", is_mixed=False),
        Provenance("recall", recalled, 0.5, "cache", is_mixed=True),
        Provenance("copy", copied, 0.5, "memory", is_mixed=True),
    )
    assert origin_of(generated, plain, provenance) == origin
