"""A phrase is translated without marks, whatever the model would write behind it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from places import ROOT, TESTS

from tmnmt.config.options import TranslationOptions
from tmnmt.engine.barred_words import BarredWords, words_with
from tmnmt.engine.beam_search import Live
from tmnmt.layers.combine import Stepped
from tmnmt.models.base import Columns
from tmnmt.models.folder import load_model
from tmnmt.translator import Translator
from tmnmt.vocab import EOS

PHRASES = (TESTS / "data" / "noun-phrases.txt").read_text(encoding="utf-8").splitlines()
MODELS = [ROOT / "models" / name for name in ("law-transformer.en-fr", "law.en-fr")]


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.name)
def test_no_phrase_gets_a_tail(model: Path) -> None:
    translator = Translator.load(model, [], TranslationOptions(threads=1))
    phrases = [phrase for phrase in PHRASES if phrase.strip()]
    assert len(phrases) == 75
    targets = [translation.tgt for translation in translator.translate(phrases)]
    assert [target for target in targets if re.search(r"[,:;.]|selon le cas", target)] == []
    assert targets[phrases.index("the vessel")] == "le bâtiment"
    (alone,) = translator.translate(["the vessel"])
    session = translator.session()
    assert alone.tgt == session.translate("the vessel").tgt == "le bâtiment"
    assert session.complete("the vessel", "").tgt == "le bâtiment"


def test_a_barred_word_gives_its_probability_to_the_end() -> None:
    vocab = load_model(MODELS[0]).vocab
    barred = frozenset(",:")
    words = words_with(vocab, barred)
    assert words and all(set(vocab.decode([word])) & barred for word in words)
    shown = torch.tensor([*range(40), *words])
    columns = Columns.build(shown, len(vocab))
    for names, size in ((None, len(vocab)), (columns, len(columns.words))):
        lead = BarredWords([frozenset(), barred], vocab, 2, names, "cpu")
        log_probs = torch.full((4, size), 1.0 / size).log()
        live = Live(torch.tensor([0, 1]), *[None] * 7)  # type: ignore[arg-type]
        step = Stepped(*[None] * len(Stepped._fields))._replace(log_probs=log_probs)  # type: ignore[arg-type]
        lead.bar(live, step, 1)
        places = torch.tensor(words) if names is None else names.of_word[torch.tensor(words)]
        assert bool(torch.isinf(log_probs[2:, places]).all())
        assert bool(torch.isfinite(log_probs[:2]).all())
        assert torch.allclose(log_probs.exp().sum(1), torch.ones(4))
        assert float(log_probs[2, EOS].exp()) == pytest.approx((len(words) + 1) / size)
