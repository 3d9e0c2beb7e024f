"""What every memory layer promises: three hooks in order, and a record of each by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from random_layers import PAIRS, SCORES, D, V, cached, learned, random_base
from stepping import fused, mixed, step
from torch import Tensor

from tmnmt.config.options import MODES
from tmnmt.layers import combine
from tmnmt.layers.collated import collate
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.contract import Collated, MemoryLayer
from tmnmt.layers.reach import STANDARD
from tmnmt.trained_layers.cache import CacheKind, SessionCache
from tmnmt.trained_layers.tm import TMKind, TranslationMemory

DESCRIPTION = {"modes", "traced_sources"}
HOOKS = {"ready", "fuse", "mix"}  # inject is the backbone's: papers/reference_network.py


def collated() -> Collated:
    reaches = [STANDARD.of_sentence(SCORES)]
    return Collated(collate([PAIRS], [SCORES]), {"cache": cached(1)}, reaches=reaches)


def at() -> tuple[Tensor, Tensor, Tensor]:
    made = torch.Generator().manual_seed(5)
    hidden, context = (torch.randn(1, D, generator=made) for _ in range(2))
    return torch.tensor([5]), hidden, context


@pytest.mark.parametrize("kind", ["deep", "shallow"])
def test_a_step_fuses_in_order_reads_out_and_mixes_in_order(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def noted(owner: Any, name: str, said: str) -> None:
        own: Callable[..., Any] = getattr(owner, name)

        def call(*given: Any, **named: Any) -> Any:
            calls.append(said)
            return own(*given, **named)

        monkeypatch.setattr(owner, name, call)

    memories = learned(cache=CacheKind(fusion=kind))  # type: ignore[arg-type]
    for name, layer in memories.layers.items():
        for hook in ("fuse", "mix"):
            noted(layer, hook, f"{hook} {name}")
    noted(combine, "read_out", "read out")
    step(memories, random_base(V, D), *at(), collated(), "both")
    assert calls == ["fuse cache", "fuse tm", "read out", "mix cache", "mix tm"]


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "examples"])  # of no layer
def test_the_mode_says_which_layers_read_and_nothing_else_does(mode: str) -> None:
    ready = learned().ready(collated(), random_base(V, D), mode)
    reads = {"copy": ["tm"], "fusion": ["tm"], "both": ["tm"], "nearest": ["nearest"]}
    assert list(ready.layers) == ["cache", *reads.get(mode, [])]


def test_a_layer_more_is_one_more_in_the_order() -> None:
    class Louder(SessionCache):
        """A second cache, after the first."""

    class Three(MemoryLayers):
        again: SessionCache

        @property
        def layers(self) -> dict[str, MemoryLayer[Any]]:
            return super().layers | {"again": self.again}

    memories = learned()
    three = Three(memories.tm, memories.cache)
    three.again = Louder(D, D, 8)
    backbone = random_base(V, D)
    log_p, ready, trace = step(three, backbone, *at(), collated(), "both", explain=True)
    assert list(ready.layers) == ["cache", "tm", "again"] and trace is not None
    assert list(trace.layers) == ["cache", "tm", "again"]
    without, *_ = step(memories, backbone, *at(), collated(), "both")
    assert not torch.equal(log_p, without)
    torch.testing.assert_close(log_p.exp().sum(), torch.tensor(1.0))


@pytest.mark.parametrize("kind", ["deep", "shallow"])
def test_the_parts_of_a_trace_are_the_mixture(kind: str) -> None:
    memories = learned(cache=CacheKind(fusion=kind))  # type: ignore[arg-type]
    log_p, _, trace = step(memories, random_base(V, D), *at(), collated(), "both", explain=True)
    p = fused(trace, "tm").p  # after all that fuses
    parts = [mixed(trace, name) for name in (("tm",) if kind == "deep" else ("cache", "tm"))]
    for part in parts:
        p = (1 - part.gate) * p + part.gate * part.p
    torch.testing.assert_close(log_p.exp(), p)
    assert trace is not None and [len(layer.weights[0]) for layer in trace.layers.values()] == [
        len(set(range(5))),
        sum(len(keys.ids) for keys in PAIRS),
    ]


def test_layers_have_no_other_hooks() -> None:
    names = {name for name in vars(MemoryLayer) if not name.startswith("_")}
    assert names == HOOKS | DESCRIPTION and issubclass(TranslationMemory, MemoryLayer)
    assert TMKind() == learned().tm.kind


def test_a_layer_without_its_hooks_cannot_be_made() -> None:
    class Unfinished(MemoryLayer[Any]):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Unfinished()  # type: ignore[abstract]
