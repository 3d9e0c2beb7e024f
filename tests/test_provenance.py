"""What is said of a token's origin adds up, and is no more than can be said."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt import Translator
from tmnmt.index import build
from tmnmt.memories.cache import CacheKind
from tmnmt.provenance import origin_of
from tmnmt.segments import Translation

DOCUMENT = [PAIRS[0][0], "It shall apply from 3 March 1997.", PAIRS[0][0], "Repealed."]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("provenance")
    build(folder / "index", segments(), "en", "fr")
    return write_tiny_model(folder / "model"), folder / "index"


def explained(folders: tuple[Path, Path], mode: str, cache: int = 5) -> list[Translation]:
    return Translator.load(folders[0], [folders[1]], mode=mode, cache=cache).translate(DOCUMENT, explain=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["copy", "fusion", "both", "off"])
def test_mixture_parts_sum_to_the_probability_and_effects_to_the_generated_one(
    folders: tuple[Path, Path], mode: str
) -> None:
    tokens = [token for translation in explained(folders, mode) for token in translation.tokens]
    assert tokens
    for token in tokens:
        assert token.generated + token.recalled + token.copied == pytest.approx(token.probability, abs=1e-5)
        p_gen = token.plain + token.cache_effect + token.fusion_effect
        assert token.generated == pytest.approx((1 - token.copy_gate) * p_gen, abs=1e-6)
    assert any(token.copied for token in tokens) == (mode in ("copy", "both"))
    assert any(token.fusion_effect for token in tokens) == (mode in ("fusion", "both"))


@pytest.mark.parametrize("mode", ["copy", "off"])
def test_what_a_shallow_cache_recalls_is_a_part_of_the_mixture(tmp_path: Path, mode: str) -> None:
    build(tmp_path / "index", segments(), "en", "fr")
    model = write_tiny_model(tmp_path / "model", cache=CacheKind("shallow"))
    translations = explained((model, tmp_path / "index"), mode)
    assert not any(token.recalled for token in translations[0].tokens)
    for token in (token for translation in translations for token in translation.tokens):
        assert token.generated + token.recalled + token.copied == pytest.approx(token.probability, abs=1e-5)
        gates = (1 - token.copy_gate) * (1 - token.recall_gate)
        assert token.generated == pytest.approx(gates * token.plain, abs=1e-6)
    assert any(token.recalled for translation in translations for token in translation.tokens)


def test_a_copied_part_is_what_its_sources_were_attended_with(folders: tuple[Path, Path]) -> None:
    translator = Translator.load(folders[0], [folders[1]], mode="copy")
    found = translator.translate(DOCUMENT, explain=True)[0]
    for token in found.tokens:
        weight = sum(source.weight for source in token.sources)
        assert token.copy_gate * weight == pytest.approx(token.copied, abs=1e-5)
        for source in token.sources:
            target = translator.vocab.encode(found.matches[source.match].segment.tgt)
            assert translator.vocab.piece(target[source.position]) == token.text


def test_tokens_spell_the_translation_and_cost_nothing_when_not_asked_for(folders: tuple[Path, Path]) -> None:
    translator = Translator.load(folders[0], [folders[1]])
    with_tokens, without = translator.translate(DOCUMENT, explain=True), translator.translate(DOCUMENT)
    for one, other in zip(with_tokens, without, strict=True):
        assert "".join(token.text for token in one.tokens).replace("▁", " ").strip() == one.tgt == other.tgt
        assert other.tokens == ()


def test_only_the_cache_of_earlier_sentences_has_an_effect(folders: tuple[Path, Path]) -> None:
    first, second, *_ = explained(folders, "off")
    assert all(token.cache_effect == token.cache_gate == 0 for token in first.tokens)
    assert any(token.cache_effect for token in second.tokens)


def test_without_a_match_nothing_is_from_the_memory(folders: tuple[Path, Path]) -> None:
    last = explained(folders, "both")[-1]
    assert last.matches == ()
    assert all(t.copy_gate == t.fusion_gate == t.copied == t.fusion_effect == 0 and not t.sources for t in last.tokens)


@pytest.mark.parametrize(
    ("generated", "recalled", "copied", "plain", "cache_effect", "fusion_effect", "origin"),
    [
        (0.3, 0.0, 0.4, 0.0, 0.3, 0.0, "memory"),  # the larger mixture part, whatever happened inside the other
        (0.4, 0.0, 0.3, 0.4, 0.0, 0.0, "model"),
        (0.9, 0.0, 0.0, 0.5, 0.4, 0.0, "model"),  # helped by the cache, but the plain model had more of it
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
    assert origin_of(generated, recalled, copied, plain, cache_effect, fusion_effect) == origin
