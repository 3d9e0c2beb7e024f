"""What is trained and decoded on a GPU is what the CPU makes, and a training goes on there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from required import absent
from tiny_model import PAIRS, segments, write_tiny_model
from tiny_training import CONFIG, pairs, sentences

from tmnmt.config.options import TranslationOptions
from tmnmt.index import MemoryIndex, build
from tmnmt.models.kinds import make
from tmnmt.trained_layers.cache import CacheKind
from tmnmt.training.config import Kind
from tmnmt.training.trainer import Trainer
from tmnmt.translator import Translator
from tmnmt.vocab import Vocabulary

BASES: list[dict[str, Any]] = [
    {"kind": "rnnsearch", "embedding": 8, "hidden": 16, "attention": 8},
    {"kind": "deeplau", "embedding": 8, "hidden": 8, "attention": 8},
    {"kind": "transformer", "hidden": 16, "feed_forward": 32, "heads": 2},
]
CACHES = {
    "deep": CacheKind(),
    "joint": CacheKind("shallow", matching="joint", follows=True, signs=True, rank=8, empty=True),
}


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        absent("gpu", "torch sees no GPU")
    return str(request.param)


@pytest.fixture(scope="module")
def vocab() -> Vocabulary:
    return Vocabulary.train(sentences(200), 320)


@pytest.mark.parametrize("optimiser", ["adam", "muon"])
@pytest.mark.parametrize("sizes", BASES, ids=lambda sizes: sizes["kind"])
def test_a_training_goes_on_there(
    device: str, vocab: Vocabulary, tmp_path: Path, sizes: dict[str, Any], optimiser: Kind
) -> None:
    """As if it had not been interrupted."""

    def trainer(name: str) -> Trainer:
        torch.manual_seed(0)
        (tmp_path / name).mkdir(exist_ok=True)
        data = pairs(vocab, 80), pairs(vocab, 10, 1)
        model = make(len(vocab), sizes).to(device)
        config = replace(CONFIG, optimiser=optimiser)
        return Trainer(model, vocab, *data, config, tmp_path / name)

    whole = trainer("whole")
    whole.run()
    broken = trainer("broken")
    for batch in broken._batches():
        broken.update(batch)
        if broken.progress.update == 5:
            break
    broken.save("last")
    again = trainer("broken")
    again.restore()
    again.run()
    for name, value in whole.model.state_dict().items():
        torch.testing.assert_close(again.model.state_dict()[name], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("mode", ["off", "copy", "fusion", "both"])
def test_translations_are_those_of_the_cpu(
    device: str, tmp_path: Path, mode: Any, cache: str
) -> None:
    folder = write_tiny_model(tmp_path / "model", cache=CACHES[cache])
    build(tmp_path / "index", segments(), "en", "fr")
    texts = [src.replace("Commission", "Council") for src, _ in PAIRS] * 2
    made = []
    for where in ("cpu", device):
        with MemoryIndex.open(tmp_path / "index") as index:
            translator = Translator.load(
                folder,
                [index] if mode != "off" else [],
                TranslationOptions(
                    mode=mode,
                    verbatim=0,
                    batch=4,
                    top_k=2,
                    threshold=0.3,
                    remember="own",
                    cache=25,
                    device=where,
                ),
            )
            made.append(translator.translate(texts))
    assert [one.tgt for one in made[0]] == [one.tgt for one in made[1]]
    assert [one.score for one in made[0]] == pytest.approx([one.score for one in made[1]], abs=1e-3)
