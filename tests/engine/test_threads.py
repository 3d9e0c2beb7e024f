"""One translator for several threads: what each of them gets is what one thread alone would get."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt import Translator
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.decoder import Decoder
from tmnmt.errors import UsageError
from tmnmt.index import MemoryIndex, build
from tmnmt.keys.compute import compute, header_of, plan
from tmnmt.keys.pair_keys import PairKeys, PairKeyStore
from tmnmt.models.folder import load_model

THREADS = 8
TEXTS = [
    "The Commission shall inform the Council.",
    "It shall apply from 1 June 1997.",
    "Repealed.",
    PAIRS[4][0],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model, index with keys"""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("threads")
    model = load_model(write_tiny_model(folder / "model"))
    build(folder / "index", segments(), "en", "fr")
    with MemoryIndex.open(folder / "index") as index:
        compute(index, model, plan(index, header_of(model), model.vocab))
    return folder


def in_threads(work: Callable[[int], Any]) -> list[Any]:
    """What `work` gives in each of the threads, which begin together."""
    together = threading.Barrier(THREADS)

    def begin(number: int) -> Any:
        together.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


@pytest.mark.parametrize("options", [{}, {"neighbours": 4}])
def test_threads_get_what_one_thread_gets(
    folder: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator.load(
        folder / "model", [folder / "index"], TranslationOptions(beam=2, verbatim=0, **options)
    )
    decode, inside, most = translator.pipeline.decoder.decode, list[int](), list[int]()

    def watched(*arguments: Any) -> Any:
        inside.append(0)
        time.sleep(0.002)  # time for another thread to come in, where it can
        most.append(len(inside))
        found = decode(*arguments)
        inside.pop()
        return found

    def translated(number: int) -> list[Any]:
        texts = [*TEXTS[number % 4 :], *TEXTS[: number % 4]]
        session = translator.session()
        found = [(text, session.translate(text, explain=True)) for text in texts]
        session.confirm("The whole Act is repealed.", f"Abrogé {number}.")
        alike = session.translate("The whole Act is repealed at once.").matches[0]
        return [*found, ("confirmed", alike.segment.tgt)]

    monkeypatch.setattr(translator.pipeline.decoder, "decode", watched)
    alone = dict(translated(0)) | {"confirmed": None}
    for number, found in enumerate(in_threads(translated)):
        assert dict(found) == alone | {"confirmed": f"Abrogé {number}."}
    assert max(most) == 1


def test_threads_that_share_a_session_lose_nothing(folder: Path) -> None:
    session = Translator.load(
        folder / "model", [folder / "index"], TranslationOptions(beam=2)
    ).session()

    def confirmed(number: int) -> None:
        session.confirm(f"Notice number {number}", f"Avis {number}")
        session.translate(TEXTS[number % 4])

    in_threads(confirmed)
    assert sorted(one.tgt for one in session.done) == [
        f"Avis {number}" for number in range(THREADS)
    ]
    assert len({one.id for one in session.done}) == THREADS
    assert all(session.translate(f"Notice number {n}").tgt == f"Avis {n}" for n in range(THREADS))


def test_keys_are_kept_once_whoever_computes_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator.load(folder / "model")
    store, other_store = (
        PairKeyStore(translator.pipeline.backbone, translator.vocab, 50) for _ in range(2)
    )
    expected = other_store.keys_of([PAIRS])[0]

    def slowly(*arguments: Any) -> list[PairKeys]:
        time.sleep(0.01)
        return forced(*arguments)

    from tmnmt.keys.pair_keys import force_all as forced

    monkeypatch.setattr("tmnmt.keys.pair_keys.force_all", slowly)
    found: Sequence[list[PairKeys]] = in_threads(lambda _: store.keys_of([PAIRS])[0])
    for keys in found:
        for one, other in zip(keys, expected, strict=True):
            assert torch.equal(one.contexts, other.contexts) and torch.equal(one.ids, other.ids)
    assert len(store) == len(PAIRS) and store._positions == sum(len(keys.ids) for keys in expected)


def test_threads_of_torch_are_set_while_it_computes_and_no_longer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(3)
    try:
        translator = Translator.load(
            folder / "model", [folder / "index"], TranslationOptions(threads=1)
        )
        seen = [torch.get_num_threads()]
        whole = Decoder.decode

        def decode(*arguments: Any) -> Any:
            seen.append(torch.get_num_threads())
            return whole(*arguments)

        monkeypatch.setattr(Decoder, "decode", decode)
        session = translator.session()
        session.translate("It shall not apply today.")
        assert (seen, torch.get_num_threads()) == ([3, 1], 3)
        with pytest.raises(UsageError):
            translator.translate("no list")
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(1)
