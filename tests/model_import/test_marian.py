"""Marian models of their users, held to the code that they were made for."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_training import sentences

from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import ModelError, UsageError
from tmnmt.formats.iso639 import check_language
from tmnmt.model_import.marian import Imported, read_marian
from tmnmt.models.folder import load_model
from tmnmt.segments import Translation
from tmnmt.translator import Translator
from tmnmt.vocab import BOS, EOS, FIRST, PAD, UNK, PairVocabulary, Vocabulary

transformers = pytest.importorskip("transformers")

SHAPES: dict[str, dict[str, Any]] = {
    "base": {},
    "relu": {"activation_function": "relu", "encoder_layers": 1, "decoder_layers": 1},
    "gelu, not scaled": {"activation_function": "gelu", "scale_embedding": False},
    "deep": {
        "encoder_layers": 6,
        "decoder_layers": 3,
        "decoder_ffn_dim": 40,
        "encoder_ffn_dim": 40,
    },
    "untied": {"tie_word_embeddings": False},
    "two vocabularies": {"share_encoder_decoder_embeddings": False},
    "languages": {"languages": ("deu", "fra")},
}


def made(
    folder: Path, languages: tuple[str, ...] = (), capitals: bool = False, **changes: Any
) -> Any:
    """A Marian model of random weights in a folder of Hugging Face, and the object itself.
    `capitals`: its target language is written in them, so that it shares no words."""
    folder.mkdir(exist_ok=True)
    texts = [sentences(400, seed) for seed in (0, 1)]
    if capitals:
        texts[1] = [line.upper() for line in texts[1]]
    sides = [Vocabulary.train(text, 340) for text in texts]
    for side, name in zip(sides, ("source", "target"), strict=True):
        (folder / f"{name}.spm").write_bytes(side.model)
    both = [[side.piece(i) for i in range(len(side))] for side in sides]
    asked = [f">>{language}<<" for language in languages]
    special = {"</s>", "<unk>", "<pad>", "<s>"}
    shared = changes.get("share_encoder_decoder_embeddings", True)
    pieces = sorted({*both[0], *both[1]} - special) if shared else sorted({*both[0]} - special)

    def numbered(pieces: list[str]) -> dict[str, int]:
        return {piece: n for n, piece in enumerate(["</s>", "<unk>", *asked, *pieces, "<pad>"])}

    source = numbered(pieces)
    target = source if shared else numbered(sorted({*both[1]} - special))
    (folder / "vocab.json").write_text(json.dumps(source))
    if not shared:
        (folder / "target_vocab.json").write_text(json.dumps(target))
    sizes = {
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
        "activation_function": "swish",
        "scale_embedding": True,
        "static_position_embeddings": True,
        "tie_word_embeddings": True,
    }
    torch.manual_seed(3)
    config = transformers.MarianConfig(
        vocab_size=len(source),
        decoder_vocab_size=len(target),
        pad_token_id=target["<pad>"],
        eos_token_id=0,
        decoder_start_token_id=target["<pad>"],
        forced_eos_token_id=None,
        init_std=0.3,
        **{**sizes, **changes},
    )
    model = transformers.MarianMTModel(config).eval()
    model.final_logits_bias.normal_()
    model.save_pretrained(folder)
    return model, source, target


def theirs(imported: Imported, source: dict[str, int], target: dict[str, int]) -> Any:
    """Our numbers as Marian's: of source words, of target words."""
    special = {PAD: "<pad>", BOS: "<pad>", EOS: "</s>", UNK: "<unk>"}
    vocab = imported.vocab
    of_target = [target[special.get(i, vocab.piece(i))] for i in range(len(vocab))]
    return of_target


@pytest.mark.parametrize("shape", SHAPES)
@torch.no_grad()
def test_logits_and_greedy_texts_equal_those_of_transformers(tmp_path: Path, shape: str) -> None:
    model, source, target = made(tmp_path / "hf", **SHAPES[shape])
    imported = read_marian(tmp_path / "hf", "deu")
    order = theirs(imported, source, target)
    backbone, vocab = imported.backbone, imported.vocab
    assert imported.prefix == (">>deu<<" if "languages" in SHAPES[shape] else "")
    lines = [*sentences(30), "unknown: ߷"]
    for line in lines:
        src = [*vocab.encode_source(line), EOS]
        pieces = vocab._source.encode(line, out_type=str)
        asked = [source[imported.prefix]] if imported.prefix else []
        their_src = asked + [source.get(piece, 1) for piece in pieces] + [0]
        tgt = vocab.encode(line)
        encoded = backbone.encode(torch.tensor([src]), torch.tensor([len(src)]))
        contexts, hiddens = backbone.forced(encoded, torch.tensor([[*tgt, EOS]]))
        prev = torch.tensor([[BOS, *tgt]])
        ours = backbone.readout(prev, hiddens, contexts)[0]
        out = model(
            input_ids=torch.tensor([their_src]),
            decoder_input_ids=torch.tensor([[order[BOS], *(order[word] for word in tgt)]]),
        ).logits[0]
        torch.testing.assert_close(ours[:, 2:], out[:, order[2:]], atol=1e-4, rtol=1e-4)


def test_a_model_that_was_imported_translates_alone_and_with_what_it_is_given(
    tmp_path: Path,
) -> None:
    made(tmp_path / "hf", languages=("deu", "fra"))
    for options in ([], ["--tag", "xyz"]):
        named = ["--src-lang", "en", "--tgt-lang", "de", *(options or ["--tag", "deu"])]
        code = run(["import-model", str(tmp_path / "hf"), "-o", str(tmp_path / "model"), *named])
        assert code == (1 if options else 0)
        if options:
            continue
        loaded = load_model(tmp_path / "model")
        assert loaded.config["prefix"] == ">>deu<<"
        vocab = loaded.vocab
        assert isinstance(vocab, PairVocabulary)
        assert vocab.encode_source("x")[0] == vocab._prefix[0]
        translator = Translator.load(tmp_path / "model", options=TranslationOptions(beam=2))
        together = translator.translate(sentences(3))
        alone = [translator.translate([line])[0] for line in sentences(3)]
        assert [t.tgt for t in together] == [t.tgt for t in alone] and all(t.tgt for t in alone)
        shutil.rmtree(tmp_path / "model")


def test_another_target_language_is_asked_for_by_call_and_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made(tmp_path / "hf", languages=("deu", "fra"))
    named = ["--src-lang", "en", "--tgt-lang", "de", "--tag"]
    for tag in ("deu", "fra"):
        arguments = [str(tmp_path / "hf"), "-o", str(tmp_path / tag), *named, tag]
        assert run(["import-model", *arguments]) == 0
    lines, options = sentences(3), TranslationOptions(beam=2)
    german, french = (Translator.load(tmp_path / t, options=options) for t in ("deu", "fra"))
    asked, own = german.translate(lines, tag="fra"), german.translate(lines)
    assert asked == french.translate(lines) == french.translate(lines, tag="fra")
    assert own == french.translate(lines, tag="deu") and own != asked
    with pytest.raises(UsageError, match=r"tag xyz is none of this model's: deu, fra$"):
        german.translate(lines, tag="xyz")
    (tmp_path / "memory.tsv").write_text("en\tde\na\tb\n")
    with pytest.raises(UsageError, match=r"tag fra: memories, .* are in de; leave out"):
        Translator.load(tmp_path / "deu", [tmp_path / "memory.tsv"]).translate(lines, tag="fra")
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    capsys.readouterr()
    command = ["translate", "--model", str(tmp_path / "deu"), "--beam", "2", "--tag"]
    assert run([*command, "fra", str(tmp_path / "in.txt")]) == 0
    assert capsys.readouterr().out.splitlines() == [t.tgt for t in asked]
    confirmed = ["--confirmed", str(tmp_path / "in.txt"), str(tmp_path / "in.txt")]
    assert run([*command, "fra", *confirmed]) == 2
    assert "--tag is of a --model" in capsys.readouterr().err


def test_pieces_of_the_source_leave_no_mark_in_a_translation(folder: Path) -> None:
    vocab = read_marian(folder, "de").vocab
    pairs = pairwise(range(FIRST, len(vocab)))
    assert not any("▁" in vocab.decode(pair) for pair in pairs)


def test_a_model_of_one_target_language_has_no_tags(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ["--src-lang", "en", "--tgt-lang", "de"]
    to = ["-o", str(tmp_path / "model")]
    assert run(["import-model", str(folder), *to, *named, "--tag", "deu"]) == 1
    assert "has one target language" in capsys.readouterr().err
    assert run(["import-model", str(folder), "-o", str(tmp_path / "model"), *named]) == 0
    with pytest.raises(UsageError, match="tag fra: this model has one target language"):
        Translator.load(tmp_path / "model").translate(["law"], tag="fra")


WORDS = [
    f"{chr(1040 + n % 32)}{chr(1040 + n * 7 % 32)} " for n in range(300)
]  # none of the model's
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "another kind": (lambda f: _config(f, model_type="bart"), "model_type is 'bart'"),
    "NLLB": (
        lambda f: _config(f, model_type="m2m_100"),
        "model_type is 'm2m_100': M2M-100 or NLLB, which is no Marian model; wanted: the folder",
    ),
    "T5": (lambda f: _config(f, model_type="t5"), "'t5': T5 or MADLAD, which is no Marian model"),
    "T5 by its vocabulary": (
        lambda f: (f / "spiece.model").write_bytes(b"x"),
        "hf: is a model of T5",
    ),
    "fairseq": (lambda f: (f / "dict.eng_Latn.txt").write_text("a 1"), "hf: is a model of fairseq"),
    "a newer CTranslate2": (
        lambda f: [(f / name).write_text("{}") for name in ("model.bin", "vocabulary.json")],
        "hf: is a CTranslate2 model",
    ),
    "activation": (
        lambda f: _config(f, activation_function="mish"),
        "activation_function is 'mish'",
    ),
    "no vocabulary": (lambda f: (f / "vocab.json").unlink(), r"vocab.json: cannot be read"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "has neither model.safetensors"),
    "half a download": (
        lambda f: _cut(f / "model.safetensors"),
        r"model.safetensors: half of a download: [\d,]+ of its [\d,]+ bytes are there; download it",
    ),
    "hardly a download": (
        lambda f: (f / "model.safetensors").write_bytes(b"\x10\0\0"),
        "model.safetensors: half of a download: 3 of its",
    ),
    "half of an old model": (
        lambda f: (
            (f / "model.safetensors")
            .rename(f / "pytorch_model.bin")
            .write_bytes(b"PK\x03\x04" + bytes(5000))
        ),
        "pytorch_model.bin: half of a download: its end is missing after 5,004 bytes",
    ),
    "a pointer": (
        lambda f: (f / "model.safetensors").write_text(POINTER),
        "model.safetensors: a pointer of Git LFS and not the file itself; `git lfs pull`",
    ),
    "a pointer for an spm": (
        lambda f: (f / "source.spm").write_text(POINTER),
        "source.spm: a pointer of Git LFS",
    ),
    "a page": (
        lambda f: (f / "vocab.json").write_text("\n<!DOCTYPE html><title>Not found</title>"),
        "vocab.json: a web page and not the file itself; download it again",
    ),
    "no model_type": (
        lambda f: (f / "config.json").write_text("{}"),
        "config.json: names no model_type, so it is of no Marian model; wanted: the folder",
    ),
    "CTranslate2": (
        lambda f: [(f / name).write_text("{}") for name in ("model.bin", "shared_vocabulary.json")],
        "hf: is a CTranslate2 model, whose weights .*bring the Marian model that it was converted",
    ),
    "unfinished": (
        lambda f: (f / "model.safetensors").rename(f / "model.safetensors.crdownload"),
        "model.safetensors.crdownload: is half of a download",
    ),
    "more pieces": (
        lambda f: _add(f / "vocab.json"),
        "pieces, the embeddings",
    ),
    "no JSON": (lambda f: (f / "config.json").write_text("{"), "config.json: no JSON"),
    "a layer more": (
        lambda f: _config(f, encoder_layers=3),
        "weights have no model.enc.*2",
    ),
    "nothing": (lambda f: (f / "config.json").unlink(), "no Marian model"),
    "no spm": (lambda f: (f / "source.spm").write_bytes(b"x"), "source.spm: no sentencepiece"),
    "an empty spm": (lambda f: (f / "target.spm").write_bytes(b""), "target.spm: an empty file"),
    "another model's spm": (
        lambda f: (f / "source.spm").write_bytes(Vocabulary.train(["".join(WORDS)], 300).model),
        "source.spm: .* pieces are in the vocabulary, so it is another model's",
    ),
    "half a vocabulary": (
        lambda f: _numbers(f, lambda held: dict([*held.items()][:-50])),
        "the vocabulary has no piece <pad>",
    ),
    "a number twice": (
        lambda f: _numbers(f, lambda held: held | {[*held][7]: 8}),
        "two pieces have 8",
    ),
    "a number below 0": (
        lambda f: _numbers(f, lambda held: held | {[*held][7]: -1}),
        "a piece has -1",
    ),
    "a layer less": (
        lambda f: _config(f, encoder_layers=1),
        "layers.1.* and 15 more: weights that the settings do not name",
    ),
    "no heads": (
        lambda f: _config(f, encoder_attention_heads=0, decoder_attention_heads=0),
        "config.json: encoder_attention_heads is 0; wanted: a whole number",
    ),
    "another end": (lambda f: _config(f, eos_token_id=5), "eos_token_id is 5, but"),
    "another beginning": (
        lambda f: _config(f, decoder_start_token_id=0),
        "decoder_start_token_id is 0, but the vocabulary has <pad> at",
    ),
    "another size": (lambda f: _config(f, d_model=64), "d_model is 64, which the weights"),
    "whole numbers": (
        lambda f: _change(f, lambda weight: weight.to(torch.int8)),
        "is torch.int8, which cannot be represented",
    ),
    "no numbers": (
        lambda f: _change(f, lambda weight: weight * torch.nan),
        "hf: .*holds numbers that are not finite",
    ),
}


def _numbers(folder: Path, change: Callable[[dict[str, int]], dict[str, int]]) -> None:
    path = folder / "vocab.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def _change(folder: Path, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    path = folder / "model.safetensors"
    save_file({name: change(weight) for name, weight in load_file(path).items()}, path)


def _config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


def _add(path: Path) -> None:
    held = json.loads(path.read_text())
    path.write_text(json.dumps(held | {"new": len(held)}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("marian") / "hf"
    made(path)
    return path


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_model_is_an_error_on_one_line_and_nothing_is_made(
    folder: Path, tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil, said = WRONG[case]
    shutil.copytree(folder, tmp_path / "hf")
    spoil(tmp_path / "hf")
    arguments = ["-o", str(tmp_path / "model"), "--src-lang", "en", "--tgt-lang", "de"]
    assert run(["import-model", str(tmp_path / "hf"), *arguments]) == 1
    err = capsys.readouterr().err
    assert re.search(said, err) and err.count("\n") == 1, err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hf"]


FILES: dict[str, tuple[bytes, str]] = {
    "translate-en_de.argosmodel": (b"PK\x03\x04", "is a package of Argos Translate, which holds"),
    "model.pt": (b"PK\x03\x04", "is a checkpoint of PyTorch, as OpenNMT-py"),
    "opus.zip": (b"PK\x03\x04", "is a packed archive; unpack it, and name the folder"),
    "model.npz": (b"PK\x03\x04", "is the weights of a Marian model alone; name the folder"),
    "model.safetensors": (b"x" * 9, "is the weights of a model alone; name the folder"),
    "model.zip": (POINTER.encode(), "is a pointer of Git LFS and not the file itself"),
    "page.zip": (b"<html>", "is a web page and not the file itself"),
    "opus.zip.part": (b"PK", "is half of a download"),
    "unknown": (b"x", "is a file, and no folder; wanted: the folder of a Marian model"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_in_place_of_a_folder_is_told_what_it_is(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content, said = FILES[name]
    (tmp_path / name).write_bytes(content)
    assert run(["import-model", str(tmp_path / name), "-o", str(tmp_path / "model")]) == 1
    err = capsys.readouterr().err
    assert f"{tmp_path / name}: {said}" in err and err.count("\n") == 1
    assert run(["import-model", str(tmp_path / "none"), "-o", str(tmp_path / "model")]) == 1
    assert "there is no such file or folder" in capsys.readouterr().err


def test_what_is_in_the_place_of_a_model_folder_is_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of every command that takes --model."""
    text = tmp_path / "text.txt"
    text.write_text("A word.\n")
    for name in ("t5", "index", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "t5" / "config.json").write_text("{}")
    (tmp_path / "t5" / "spiece.model").write_bytes(b"x")
    (tmp_path / "index" / "manifest.json").write_text("{}")
    (tmp_path / "nllb.pt").write_bytes(b"PK\x03\x04")
    (tmp_path / "page").write_text("<html>")
    told = {
        str(folder): f": `tmnmt import-model {folder} -o NAME` makes one of what is there",
        str(tmp_path / "t5"): ": is a model of T5 or of its kind",
        str(tmp_path / "index"): ": it is an index, or what an index is made of",
        str(tmp_path / "empty"): "no model folder (it has no config.toml)",
        str(tmp_path / "nllb.pt"): ": it is a checkpoint of PyTorch",
        str(tmp_path / "page"): ": it is a web page and not the file itself",
        str(tmp_path / "none"): ": there is no such folder",
    }
    for path, said in told.items():
        assert run(["translate", "--model", path, str(text)]) == 1
        error = capsys.readouterr().err
        assert f"{path}: no model folder" in error and said in error, error
        assert error.count("\n") == 1, error


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("english", "'english' is no code of a language in ISO 639: write en"),
        ("xx", "'xx' is no code of a language in ISO 639, as en, pt-BR or ceb"),
        ("qzz-FR", "'qzz-FR' is no code of a language"),
    ],
)
def test_invented_languages_are_refused(
    folder: Path, tmp_path: Path, code: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for languages in (["en", code], [code, "en"]):
        named = ["--src-lang", languages[0], "--tgt-lang", languages[1]]
        assert run(["import-model", str(folder), "-o", str(tmp_path / "model"), *named]) == 2
        assert why in capsys.readouterr().err and not (tmp_path / "model").exists()


def test_every_real_language_is_taken() -> None:
    for code in ("en", "pt-BR", "zh_Hans", "ceb", "eng", "ger", "iw", "cmn", "nb"):
        check_language(code)


def _exchange(folder: Path) -> None:
    source, target = (folder / f"{side}.spm" for side in ("source", "target"))
    contents = source.read_bytes(), target.read_bytes()
    target.write_bytes(contents[0])
    source.write_bytes(contents[1])


def test_sentencepiece_files_on_each_others_side_are_refused(tmp_path: Path) -> None:
    """The two sides share a table of words, and the model has learned which it writes."""
    model, numbers, _ = made(tmp_path / "hf", capitals=True)
    sides = [
        Vocabulary((tmp_path / "hf" / f"{side}.spm").read_bytes()) for side in ("source", "target")
    ]
    lines = [sentences(64), [line.upper() for line in sentences(64, 1)]]
    src, tgt = (
        torch.tensor(
            [[*(numbers[side.piece(i)] for i in side.encode(line)), *[0] * 8][:8] for line in text]
        )
        for side, text in zip(sides, lines, strict=True)
    )
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    model.train()
    for _ in range(60):
        loss = model(input_ids=src, labels=tgt).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.eval().save_pretrained(tmp_path / "hf")
    read_marian(tmp_path / "hf", "de")
    _exchange(tmp_path / "hf")
    with pytest.raises(ModelError, match=r"source\.spm and target\.spm are on each other's side"):
        read_marian(tmp_path / "hf", "de")


def test_they_are_refused_by_their_tables_where_each_side_has_one(tmp_path: Path) -> None:
    made(tmp_path / "hf", share_encoder_decoder_embeddings=False)
    read_marian(tmp_path / "hf", "de")
    _exchange(tmp_path / "hf")
    with pytest.raises(ModelError, match=r"source\.spm and target\.spm are on each other's side"):
        read_marian(tmp_path / "hf", "de")


def test_arrays_of_python_objects_are_refused_in_our_words(tmp_path: Path) -> None:
    (tmp_path / "decoder.yml").write_text("models: [a.npz]\nvocabs: [v.yml, v.yml]\n")
    (tmp_path / "v.yml").write_text("a: 0\n")
    np.savez(tmp_path / "a.npz", a=np.array([{}], object), allow_pickle=True)
    with pytest.raises(ModelError) as told:
        read_marian(tmp_path, "de")
    assert str(told.value).startswith(f"{tmp_path / 'a.npz'}: holds objects of Python, which are")
    assert "unsafe" not in str(told.value) and "allow_pickle" not in str(told.value)
    np.savez(tmp_path / "a.npz", a=np.zeros(3))
    with pytest.raises(ModelError, match=r"no weights of Marian: it has no special:model\.yml"):
        read_marian(tmp_path, "de")


def test_a_file_of_pickled_objects_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folder, tmp_path / "hf")
    (tmp_path / "hf" / "model.safetensors").unlink()
    torch.save({"a": Path("x"), "b": torch.zeros(1)}, tmp_path / "hf" / "pytorch_model.bin")
    with pytest.raises(ModelError, match="no file of weights alone"):
        read_marian(tmp_path / "hf", "de")


def test_a_pytorch_file_gives_what_safetensors_give(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "hf")
    weights = load_file(tmp_path / "hf" / "model.safetensors")
    (tmp_path / "hf" / "model.safetensors").unlink()
    torch.save(weights, tmp_path / "hf" / "pytorch_model.bin")
    one, other = read_marian(folder, "de"), read_marian(tmp_path / "hf", "de")
    for name, value in one.backbone.state_dict().items():
        assert torch.equal(value, other.backbone.state_dict()[name])


def test_an_archive_of_opus_mt_gives_what_hugging_face_gives(folder: Path, tmp_path: Path) -> None:
    """The archive is written here by Marian's names, from the weights of the other folder."""
    path = tmp_path / "opus"
    path.mkdir()
    weights = load_file(folder / "model.safetensors")
    vocab = json.loads((folder / "vocab.json").read_text())
    assert vocab.pop("<pad>") == len(vocab)  # archives have no such piece
    table = weights.get("model.shared.weight", weights.get("model.decoder.embed_tokens.weight"))
    assert table is not None
    bias = weights["final_logits_bias"]
    arrays = {"Wemb": table[:-1].numpy(), "decoder_ff_logit_out_b": bias[:, :-1].numpy()}
    parts = {"self": "self_attn", "context": "encoder_attn"}
    for side in ("encoder", "decoder"):
        for n in range(2):
            theirs, ours = f"model.{side}.layers.{n}.", f"{side}_l{n + 1}_"
            for part, name in parts.items():
                if side == "encoder" and part == "context":
                    continue
                for letter, projection in zip("qkvo", ("q", "k", "v", "out"), strict=True):
                    stem = f"{theirs}{name}.{projection}_proj"
                    arrays[f"{ours}{part}_W{letter}"] = weights[f"{stem}.weight"].T.numpy()
                    arrays[f"{ours}{part}_b{letter}"] = weights[f"{stem}.bias"][None].numpy()
                for kind in ("scale", "bias"):
                    theirs_kind = {"scale": "weight", "bias": "bias"}[kind]
                    norm = weights[f"{theirs}{name}_layer_norm.{theirs_kind}"]
                    arrays[f"{ours}{part}_Wo_ln_{kind}"] = norm[None].numpy()
            for number in (1, 2):
                arrays[f"{ours}ffn_W{number}"] = weights[f"{theirs}fc{number}.weight"].T.numpy()
                arrays[f"{ours}ffn_b{number}"] = weights[f"{theirs}fc{number}.bias"][None].numpy()
            for kind, theirs_kind in (("scale", "weight"), ("bias", "bias")):
                norm = weights[f"{theirs}final_layer_norm.{theirs_kind}"]
                arrays[f"{ours}ffn_ffn_ln_{kind}"] = norm[None].numpy()
    told = (
        "type: transformer\nenc-depth: 2\ndec-depth: 2\ntransformer-heads: 4\n"
        "transformer-dim-ffn: 64\ntransformer-ffn-activation: swish\ntied-embeddings-all: true\n"
        'transformer-preprocess: ""\ntransformer-postprocess: dan\n'
    )
    arrays["special:model.yml"] = np.frombuffer(told.encode() + b"\0", np.int8)
    np.savez(path / "opus.npz", **arrays)  # type: ignore[arg-type]
    for name in ("source.spm", "target.spm"):
        shutil.copyfile(folder / name, path / name)
    lines = [f"{json.dumps(piece)}: {number}" for piece, number in vocab.items()]
    (path / "opus.vocab.yml").write_text("\n".join(lines))
    (path / "decoder.yml").write_text(
        "models:\n  - opus.npz\nvocabs:\n  - opus.vocab.yml\n  - opus.vocab.yml\n"
    )
    one, other = read_marian(folder, "de"), read_marian(path, "de")
    assert one.vocab._pieces == other.vocab._pieces
    assert other.sizes == one.sizes | {"positions": "marian"}
    for name, value in one.backbone.state_dict().items():
        ours = other.backbone.state_dict()[name]
        if name in ("embedding.weight", "output_bias"):
            value, ours = value[2:], ours[2:]  # of padding, an archive has nothing
        assert torch.equal(value, ours), name


def test_an_imported_model_learns_to_copy_from_a_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its weights are random, so that all it can say comes from the memory."""
    made(tmp_path / "hf")
    named = ["--src-lang", "en", "--tgt-lang", "de"]
    model = tmp_path / "model"
    assert run(["import-model", str(tmp_path / "hf"), "-o", str(model), *named]) == 0
    lines = sentences(300)
    pairs = [f"{line}\t{' '.join(reversed(line.split()))}\n" for line in lines]
    (tmp_path / "memory.tsv").write_text("".join(["en\tde\n", *pairs]))
    arguments = ["--model", str(model), "--memory", str(tmp_path / "memory.tsv"), "--no-cache"]
    arguments += ["--no-fusion", "--sentences", "200", "-o", str(tmp_path / "adapted")]
    assert run(["adapt", *arguments]) == 0
    alone = Translator.load(model).translate(lines[:10])
    memory = [tmp_path / "memory.tsv"]
    adapted = Translator.load(
        tmp_path / "adapted",
        memory,
        TranslationOptions(mode="copy", verbatim=0, remember="nothing"),
    )
    right = [Counter(reversed(line.split())) for line in lines[:10]]

    def words_of(said: list[Translation]) -> int:
        both = zip(said, right, strict=True)
        return sum((Counter(one.tgt.split()) & wanted).total() for one, wanted in both)

    assert words_of(adapted.translate(lines[:10])) > words_of(alone) + 5
