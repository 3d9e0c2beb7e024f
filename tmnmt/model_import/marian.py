"""Marian models, brought by their user: a folder of Hugging Face, or an archive of OPUS-MT, as our
Transformer with norms after every part.

What is read are tensors and tables: JSON, YAML without objects, safetensors, NumPy arrays without
pickles, and PyTorch files with weights only. Subwords get new numbers: ours begin with <pad>, <s>,
</s> and <unk>, Marian's begin with </s> and <unk> and end with <pad>, which begins its targets,
too, and is never produced.
"""

from __future__ import annotations

import json
import re
import shutil
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import sentencepiece
import torch
from safetensors.torch import load
from torch import Tensor

from tmnmt.config.bounds import MOST_WORDS_EACH
from tmnmt.durable import rename, sync_tree
from tmnmt.errors import ModelError, short_repr
from tmnmt.index.base import primary
from tmnmt.model_import.marian_binary import (
    SETTINGS,
    Container,
    content_of,
    read_container,
    read_shortlist,
)
from tmnmt.model_import.marian_files import (
    MOST_TABLE_BYTES,
    MarianFiles,
    files_of,
    yaml_of,
    yaml_table,
)
from tmnmt.model_import.marian_sides import fit_better_exchanged, writes_its_source
from tmnmt.models.base import Trainable
from tmnmt.models.encoder_decoder import ACTIVATIONS, EncoderDecoder
from tmnmt.models.folder import UNREADABLE, load_model, read_regular, reason_of, save_model
from tmnmt.models.foreign import ALLOWED, check_file, check_parts, check_path, family_of
from tmnmt.models.int8 import MAX_VALUE, Int8Weight
from tmnmt.models.kinds import make
from tmnmt.models.shortlist import Shortlist, shares_words
from tmnmt.vocab import (
    BOS,
    FIRST,
    PAD,
    SOURCE_FILE,
    TARGET_FILE,
    PairVocabulary,
    Vocabulary,
)

SIZES = (
    "encoder_attention_heads",
    "decoder_attention_heads",
    "encoder_ffn_dim",
    "encoder_layers",
    "decoder_layers",
)
# the same as an archive calls them
ARCHIVE_SIZES = (
    "transformer-heads",
    "transformer-heads",
    "transformer-dim-ffn",
    "enc-depth",
    "dec-depth",
)
# weights of a folder of Hugging Face that are computed, or stand there twice
UNREAD = (
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "model.encoder.embed_positions.weight",
    "model.decoder.embed_positions.weight",
    "lm_head.weight",
    "final_logits_bias",
)
_OF_LAYER = re.compile("(?:encoder|decoder)_l[0-9]+_")  # of an archive
MOST_BYTES = 1 << 33  # of weights
NEVER = -1e9  # the bias of words that are never produced
END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"
# What the settings in an archive may be, where they stand there.
REPRESENTED: dict[str, tuple[object, ...]] = {
    "type": ("transformer",),
    "transformer-preprocess": ("", "d"),
    "transformer-postprocess": ("dan", "an"),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-preprocess-emb": ("", "d"),
    "transformer-decoder-autoreg": ("self-attention", "rnn"),
    "transformer-ffn-activation": tuple(ACTIVATIONS),
    "transformer-ffn-depth": (2,),
    "transformer-train-position-embeddings": (False,),
    "transformer-no-projection": (False,),
    "lemma-dim-emb": (0,),
    "transformer-tied-layers": ([], ()),
    "transformer-no-bias": (False,),
    "transformer-no-affine": (False,),
    "transformer-rnn-projection": (False,),
    "transformer-decoder-dim-ffn": (0,),
    "transformer-decoder-ffn-depth": (0,),
    "transformer-postprocess-top": ("",),
    "layer-normalization": (False,),
    "ulr": (False,),
}


@dataclass(frozen=True)
class Imported:
    """What a Marian model becomes."""

    backbone: Trainable
    vocab: PairVocabulary
    sizes: dict[str, Any]  # the table [model]
    prefix: str  # of every source, where the model translates to several languages
    order: Tensor  # (V,) Marian's number of each target word
    source_order: Tensor  # of each source word


def import_marian(folder: Path, output: Path, src_lang: str, tgt_lang: str, tag: str = "") -> None:
    """Makes a model folder of a Marian model, as a whole or not at all.

    folder: the folder of the Marian model.
    output: the model folder.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    tag: the tag of the target language, in a model with several; "" takes the code.

    Raises ModelError for what is missing, damaged, or cannot be represented."""
    imported = read_marian(folder, tag or tgt_lang)
    if tag and not imported.prefix:
        raise ModelError(
            f"{folder}: has one target language; a tag (>>{tag}<<) is none of its pieces"
        )
    config: dict[str, Any] = {"src_lang": src_lang, "tgt_lang": tgt_lang, "model": imported.sizes}
    if isinstance(imported.backbone, EncoderDecoder) and imported.backbone.int8:
        config["precision"] = "int8"
    if imported.prefix:
        config["prefix"] = imported.prefix
    files = None if (folder / "config.json").exists() else files_of(folder)
    languages = files.languages if files is not None else None
    if languages is not None and [*map(primary, languages)] != [
        primary(src_lang),
        primary(tgt_lang),
    ]:
        raise ModelError(
            f"{folder}: its files are called by {languages[0]} to {languages[1]}, so it is no "
            f"model from {src_lang} to {tgt_lang}"
        )
    shortlist = files.shortlist if files is not None else None
    new_folder = output.with_name(output.name + ".new")
    shutil.rmtree(new_folder, ignore_errors=True)
    try:
        save_model(new_folder, imported.backbone, imported.vocab, config)
        if shortlist is not None:
            _shortlist(shortlist, imported).save(new_folder)
        try:
            load_model(new_folder)  # it opens: limits of sizes are checked there
        except ModelError as error:
            reason = str(error).replace(f"{new_folder}/", "").removeprefix(f"{new_folder}: ")
            raise ModelError(f"{folder}: {reason}") from error
        sync_tree(new_folder)
        rename(new_folder, output)
    finally:
        shutil.rmtree(new_folder, ignore_errors=True)


def read_marian(folder: Path, tgt_lang: str) -> Imported:
    """A Marian model.

    folder: the folder of the model.
    tgt_lang: in a model with several target languages the one that its sources ask for, as >>deu<<;
    others ignore it.

    Raises ModelError for what is missing, damaged, or cannot be represented."""
    check_path(folder)
    if (folder / "config.json").exists():
        _check_family(folder / "config.json")  # before the rest of it is fetched again
    check_parts(folder)
    try:
        if (folder / "config.json").exists():
            return _from_hugging_face(folder, tgt_lang)
        if (files := files_of(folder)) is not None:
            return _from_files(folder, files, tgt_lang)
    except UNREADABLE as error:
        raise ModelError(f"{folder}: cannot be read: {reason_of(error)}") from error
    raise ModelError(
        f"{folder}: no Marian model: it has neither config.json (Hugging Face) nor decoder.yml "
        "(an archive of OPUS-MT) nor model.*.bin with vocab.*.spm (a model of Mozilla)"
    )


def _check_family(path: Path) -> None:
    """Raises ModelError where a table of Hugging Face is that of another kind of model."""
    check_file(path)
    config = _json(path)
    if "model_type" not in config:
        raise ModelError(f"{path}: names no model_type, so it is of no Marian model; {ALLOWED}")
    if family := family_of(config["model_type"]):
        raise ModelError(
            f"{path}: model_type is {short_repr(config['model_type'])}: {family}, which is no "
            f"Marian model; {ALLOWED}"
        )
    _expect(path, config, "model_type", ("marian",))


def _from_hugging_face(folder: Path, tgt_lang: str) -> Imported:
    path = folder / "config.json"
    config = _json(path)
    _expect(path, config, "activation_function", tuple(ACTIVATIONS), "relu")
    _expect(path, config, "static_position_embeddings", (True,), True)
    _expect(path, config, "normalize_before", (False,), False)
    _expect(path, config, "normalize_embedding", (False,), False)
    _expect(path, config, "add_final_layer_norm", (False,), False)
    for key in SIZES:
        _expect_size(path, config, key)
    if config["encoder_attention_heads"] != config["decoder_attention_heads"]:
        raise ModelError(f"{path}: encoder and decoder have different numbers of heads")
    if config["encoder_ffn_dim"] != config["decoder_ffn_dim"]:
        raise ModelError(f"{path}: encoder and decoder have different feed-forward sizes")
    target_file = folder / "target_vocab.json"
    shared = config.get("share_encoder_decoder_embeddings", True)
    source = _numbered(folder / "vocab.json")
    target = (
        source
        if shared
        else _numbered(target_file if target_file.exists() else folder / "vocab.json")
    )
    _expect_numbers(path, config, target)
    weights = _weights(folder)
    consumed_names = set(UNREAD)

    def tensor_of(*names: str) -> Tensor:
        for name in names:
            if name in weights:
                consumed_names.add(name)
                return weights[name].float()
        raise ModelError(f"{folder}: the weights have no {names[0]}")

    tied = config.get("tie_word_embeddings", True)
    tables = {"embedding": tensor_of("model.decoder.embed_tokens.weight", "model.shared.weight")}
    of_source = tensor_of("model.encoder.embed_tokens.weight", "model.shared.weight")
    if not shared or not torch.equal(of_source, tables["embedding"]):
        tables["source"] = of_source
    if not tied:
        tables["output"] = tensor_of("lm_head.weight")
    if tables["embedding"].shape[1] != config.get("d_model", tables["embedding"].shape[1]):
        raise ModelError(f"{path}: d_model is {config['d_model']!r}, which the weights have not")
    bias = weights.get("final_logits_bias")
    tensors = _layers(
        config["encoder_layers"], config["decoder_layers"], _hugging_face_names(tensor_of)
    )
    _expect_none_left(folder, [name for name in weights if name not in consumed_names])
    return _assemble(
        folder,
        config | {"tied": tied, "shared": shared},
        tables,
        bias.float().flatten() if bias is not None else torch.zeros(len(target)),
        tensors,
        source,
        target,
        tgt_lang,
    )


def _assemble(
    folder: Path,
    config: Mapping[str, Any],
    tables: dict[str, Tensor],
    bias: Tensor,
    tensors: dict[str, Tensor],
    source: dict[str, int],
    target: dict[str, int],
    tgt_lang: str,
    vocabularies: tuple[Path, Path] | None = None,
    scales: Mapping[str, Tensor] = MappingProxyType({}),
) -> Imported:
    """Everything in our order of words. vocabularies: the sentencepiece models of both sides; None:
    they have their usual names in `folder`. scales: of the tables and tensors that are whole
    numbers times a scale, (out, 1), or (1, 1) of all outputs."""
    hidden = tables["embedding"].shape[1]
    order = _order(folder, target, len(tables["embedding"]), bias)
    source_order = (
        order if source is target else _order(folder, source, len(tables["source"]), None)
    )
    parameters = dict(tensors)
    parameters["embedding.weight"] = tables["embedding"][order]
    if "source" in tables:
        parameters["source.weight"] = tables["source"][source_order]
    if "output" in tables:
        parameters["output"] = tables["output"][order]
    parameters["output_bias"] = bias[order]
    parameters["output_bias"][[PAD, BOS]] = NEVER
    kind = config.get("kind", "transformer")
    sizes: dict[str, Any] = {
        "kind": kind,
        "hidden": hidden,
        "feed_forward": int(config["encoder_ffn_dim"]),
        "heads": int(config["encoder_attention_heads"]),
        "encoder_layers": int(config["encoder_layers"]),
        "decoder_layers": int(config["decoder_layers"]),
        "source_words": len(source_order) if "source" in tables else 0,
    }
    if kind == "transformer":
        sizes |= {
            "norm": "post",
            "activation": config.get("activation_function", "relu"),
            "scaled": bool(config.get("scale_embedding", True)),
            "tied": "output" not in tables,
            "positions": config.get("positions", "vaswani"),
        }
    pieces = _pieces(target, order)
    of_source = _pieces(source, source_order) if "source" in tables else None
    prefix = _prefix(folder, source, tgt_lang)
    usual = folder / SOURCE_FILE, folder / TARGET_FILE
    paths = [
        path if ".spm" in path.suffixes else default
        for path, default in zip(vocabularies or usual, usual, strict=True)
    ]
    source_spm, target_spm = (
        _spm(path, numbers) for path, numbers in zip(paths, (source, target), strict=True)
    )
    vocab = PairVocabulary(source_spm, target_spm, pieces, of_source, prefix)
    backbone = make(len(order), sizes)
    try:
        backbone.load_state_dict(parameters)
    except RuntimeError as error:
        raise ModelError(f"{folder}: weights and sizes do not fit: {reason_of(error)}") from error
    spms = source_spm, target_spm
    if (
        fit_better_exchanged(spms, (source, target))
        if of_source is not None
        else writes_its_source(backbone.eval(), vocab, spms)
    ):
        raise ModelError(
            f"{folder}: {paths[0].name} and {paths[1].name} are on each other's side: the model "
            "writes the words of the first; exchange the two files, or the languages"
        )
    if isinstance(backbone, EncoderDecoder):
        names = {"embedding": "embedding.weight", "source": "source.weight"}
        backbone.int8 = _int8(
            parameters, {names.get(name, name): scale for name, scale in scales.items()}
        )
    return Imported(backbone.eval(), vocab, sizes, prefix, order, source_order)


def _int8(parameters: Mapping[str, Tensor], scales: Mapping[str, Tensor]) -> dict[str, Int8Weight]:
    """The matrices that are whole numbers of int8 times these scales; 0 is none."""
    weights = {}
    for name, scale in scales.items():
        matrix = parameters[name]
        if matrix.dim() != 2 or not (scale > 0).all():
            continue
        whole = (matrix / scale).round()
        weight = Int8Weight(whole.to(torch.int8), scale.expand(len(matrix), 1)[:, 0].clone())
        if whole.abs().max() <= MAX_VALUE and torch.equal(weight.exact(), matrix):
            weights[name] = weight
    return weights


def _shortlist(path: Path, imported: Imported) -> Shortlist:
    """Marian's shortlist in our words. Raises ModelError where it is another model's."""
    first, lists = read_shortlist(path)
    targets, sources = (
        {number: word for word, number in reversed([*enumerate(order.tolist())])}
        for order in (imported.order, imported.source_order)
    )
    width = min(max(map(len, lists), default=0), MOST_WORDS_EACH)
    of_source = torch.full((len(imported.source_order), max(width, 1)), PAD)
    try:
        for number, words in enumerate(lists):
            theirs = [targets[word] for word in words[:width]]
            of_source[sources[number], : len(theirs)] = torch.tensor(theirs, dtype=torch.int64)
        always = torch.tensor([targets[number] for number in range(first)])
    except LookupError as error:
        raise ModelError(f"{path}: a shortlist of another model: it has word {error}") from error
    return Shortlist(of_source, always, shares_words(imported.vocab))


def _order(folder: Path, numbers: dict[str, int], rows: int, bias: Tensor | None) -> Tensor:
    """Marian's number of each of our words. Raises ModelError where pieces and table do not fit."""
    for number, times in Counter(numbers.values()).items():
        if times > 1 or not 0 <= number < len(numbers):
            subject = "two pieces have" if times > 1 else "a piece has"
            raise ModelError(
                f"{folder}: the vocabulary's {len(numbers):,} pieces: {subject} {number}"
            )
    if len(numbers) > rows:
        raise ModelError(
            f"{folder}: the vocabulary has {len(numbers):,} pieces, the embeddings {rows:,} rows"
        )
    if bias is not None and len(bias) != rows:
        raise ModelError(f"{folder}: {len(bias):,} output biases for {rows:,} words")
    for piece in (END, UNKNOWN):
        if piece not in numbers:
            raise ModelError(f"{folder}: the vocabulary has no piece {piece}")
    pad = numbers.get(PADDING, numbers[END])
    special = {pad, numbers[END], numbers[UNKNOWN]}
    ordinary = [number for number in range(len(numbers)) if number not in special]
    return torch.tensor([pad, pad, numbers[END], numbers[UNKNOWN], *ordinary])


def _pieces(numbers: dict[str, int], order: Tensor) -> list[str]:
    by_number = {number: piece for piece, number in numbers.items()}
    return [by_number[number] for number in order[FIRST:].tolist()]


def _prefix(folder: Path, source: dict[str, int], tgt_lang: str) -> str:
    """The piece that asks for a target language, "" where the model has only one."""
    languages = {
        match[1]: match[0] for piece in source if (match := re.fullmatch(">>(.+)<<", piece))
    }
    if not languages:
        return ""
    if tgt_lang in languages:
        return languages[tgt_lang]
    raise ModelError(
        f"{folder}: translates to {', '.join(sorted(languages))}; {tgt_lang} is none of them"
    )


def _layers(
    encoder: int,
    decoder: int,
    get_tensors: Callable[[str, int, str, str], tuple[Tensor, Tensor]],
    is_student: bool = False,
) -> dict[str, Tensor]:
    """Our parameters of all layers. `get_tensors`(side, layer, part, name) gives weight and bias:
    parts "self", "cell" in its place in a student's decoder, "cross", "ffn"; names q, k, v, out,
    inner, norm, candidate, gate."""
    parameters: dict[str, Tensor] = {}

    def put(name: str, parts: list[tuple[Tensor, Tensor]]) -> None:
        parameters[f"{name}.weight"] = torch.cat([weight for weight, _ in parts])
        parameters[f"{name}.bias"] = torch.cat([bias for _, bias in parts])

    for side, layers in (("encoder", encoder), ("decoder", decoder)):
        for n in range(layers):
            ours = f"{side}.{n}"
            if is_student and side == "decoder":
                cell_tensors = [get_tensors(side, n, "cell", x) for x in ("candidate", "gate")]
                put(f"{ours}.cell.candidate_gate", cell_tensors)
                put(f"{ours}.cell.norm", [get_tensors(side, n, "cell", "norm")])
            else:
                put(f"{ours}.attention.qkv", [get_tensors(side, n, "self", x) for x in "qkv"])
                put(f"{ours}.attention.out", [get_tensors(side, n, "self", "out")])
                put(f"{ours}.attention.norm", [get_tensors(side, n, "self", "norm")])
            if side == "decoder":
                put(f"{ours}.cross.query", [get_tensors(side, n, "cross", "q")])
                put(f"{ours}.cross.keys_values", [get_tensors(side, n, "cross", x) for x in "kv"])
                put(f"{ours}.cross.out", [get_tensors(side, n, "cross", "out")])
                put(f"{ours}.cross.norm", [get_tensors(side, n, "cross", "norm")])
            for name in ("inner", "out", "norm"):
                put(f"{ours}.feed_forward.{name}", [get_tensors(side, n, "ffn", name)])
    return parameters


def _hugging_face_names(
    tensor: Callable[..., Tensor],
) -> Callable[[str, int, str, str], tuple[Tensor, Tensor]]:
    parts = {"self": "self_attn", "cross": "encoder_attn"}
    feed_forward = {"inner": "fc1", "out": "fc2", "norm": "final_layer_norm"}

    def read(side: str, layer: int, part: str, name: str) -> tuple[Tensor, Tensor]:
        if part == "ffn":
            theirs = feed_forward[name]
        elif name == "norm":
            theirs = f"{parts[part]}_layer_norm"
        else:
            theirs = f"{parts[part]}.{name}_proj"
        stem = f"model.{side}.layers.{layer}.{theirs}"
        return tensor(f"{stem}.weight"), tensor(f"{stem}.bias")

    return read


def _from_files(folder: Path, files: MarianFiles, tgt_lang: str) -> Imported:
    """What Marian itself reads: an archive of OPUS-MT, or a model of Mozilla."""
    path = files.weights
    stored = read_container(path) if path.suffix != ".npz" else _container_of_arrays(path)
    config = yaml_table(path, stored.settings)
    for key, allowed in REPRESENTED.items():
        if key in config:
            _expect(path, config, key, allowed)
    is_student = config.get("transformer-decoder-autoreg") == "rnn"
    if is_student:
        _expect(path, config, "dec-cell", ("ssru",))
    source, target = (_numbered_file(file) for file in files.vocabularies)

    consumed_names = set[str]()

    def tensor(name: str) -> Tensor:
        consumed_names.add(name)
        if name not in stored.tensors:
            raise ModelError(f"{path}: the weights have no {name}")
        return torch.from_numpy(np.array(stored.tensors[name], np.float32))

    tables = _archive_tables(stored.tensors, config, tensor)
    if "source" not in tables and source != target:
        raise ModelError(f"{folder}: one table of embeddings, and two vocabularies")
    bias = _pad_archive(source, target, tables, tensor("decoder_ff_logit_out_b").flatten())
    sizes = {
        "encoder_ffn_dim": config["transformer-dim-ffn"],
        "encoder_attention_heads": config["transformer-heads"],
        "decoder_attention_heads": config["transformer-heads"],
        "encoder_layers": config["enc-depth"],
        "decoder_layers": config["dec-depth"],
        "activation_function": config.get("transformer-ffn-activation", "swish"),
        "scale_embedding": True,
        "kind": "student" if is_student else "transformer",
        "positions": "marian",
    }
    for key, name in zip(SIZES, ARCHIVE_SIZES, strict=True):
        _expect_size(path, {name: sizes[key]}, name)
    layers = _layers(
        sizes["encoder_layers"], sizes["decoder_layers"], _archive_names(tensor), is_student
    )

    def scale(name: str) -> Tensor:
        """Of a matrix that is stored in int8, (1, out); 0 for others."""
        multiplier = stored.multipliers.get(name, 0.0)
        numbers = stored.tensors[name]
        a_row = np.float32(1.0 / multiplier) if multiplier else np.float32(0.0)
        return torch.full((1, numbers.shape[-1]), float(a_row))

    scales = _layers(
        sizes["encoder_layers"], sizes["decoder_layers"], _archive_names(scale), is_student
    )
    scales |= _archive_tables(stored.tensors, config, lambda name: scale(name)[:, :1])
    unread = [
        name for name in stored.tensors if _OF_LAYER.match(name) and name not in consumed_names
    ]
    _expect_none_left(path, unread)
    imported = _assemble(
        folder,
        sizes,
        tables,
        bias,
        layers,
        source if "source" in tables else target,
        target,
        tgt_lang,
        files.vocabularies,
        scales,
    )
    return imported


def _container_of_arrays(path: Path) -> Container:
    """A .npz of Marian."""
    arrays = _arrays(path)
    if SETTINGS not in arrays:
        raise ModelError(f"{path}: no weights of Marian: it has no {SETTINGS}")
    settings = bytes(arrays.pop(SETTINGS)).rstrip(b"\0").decode()
    return Container(arrays, {}, settings)


def _archive_tables(
    names: Collection[str], config: Mapping[str, Any], tensor: Callable[[str], Tensor]
) -> dict[str, Tensor]:
    """The tables of words (V, d): "embedding"; "source" and "output" where they have their own. The
    names of the tensors say whether both sides share one: settings of some models say otherwise."""
    all_tied = config.get("tied-embeddings-all", False) and "encoder_Wemb" not in names
    src_tied = "Wemb" in names
    tables = {"embedding": tensor("Wemb" if src_tied else "decoder_Wemb")}
    if not src_tied:
        tables["source"] = tensor("encoder_Wemb")
    if "decoder_ff_logit_out_W" in names and not all_tied:
        tables["output"] = tensor("decoder_ff_logit_out_W").T.contiguous()
    return tables


def _pad_archive(
    source: dict[str, int], target: dict[str, int], tables: dict[str, Tensor], bias: Tensor
) -> Tensor:
    """Numbers a piece for padding, which archives lack, and gives it a row of zeros in `tables`: it
    begins targets, as in Marian itself. The bias of the output with it."""
    for numbers, names in ((target, ("embedding", "output")), (source, ("source",))):
        if PADDING in numbers:
            continue
        numbers[PADDING] = len(numbers)
        for name in names:
            if name in tables:
                row = tables[name].new_zeros(1, tables[name].shape[1])
                tables[name] = torch.cat([tables[name], row])
        if numbers is target:
            bias = torch.cat([bias, bias.new_zeros(1)])
    return bias


def _archive_names(
    tensor: Callable[[str], Tensor],
) -> Callable[[str, int, str, str], tuple[Tensor, Tensor]]:
    """Marian multiplies from the other side, so its matrices are turned."""
    parts = {"self": "self", "cell": "rnn", "cross": "context", "ffn": "ffn"}
    norms = {"cell": "_ffn_ln", "ffn": "_ffn_ln"}
    feed_forward = {"inner": "1", "out": "2"}

    def read(side: str, layer: int, part: str, name: str) -> tuple[Tensor, Tensor]:
        stem = f"{side}_l{layer + 1}_{parts[part]}"
        if name == "norm":
            stem += norms.get(part, "_Wo_ln")
            return tensor(f"{stem}_scale").flatten(), tensor(f"{stem}_bias").flatten()
        if name == "candidate":  # it has no bias
            weight = tensor(f"{stem}_W").T
            return weight, weight.new_zeros(len(weight))
        if name == "gate":
            return tensor(f"{stem}_Wf").T, tensor(f"{stem}_bf").flatten()
        letter = feed_forward[name] if part == "ffn" else "o" if name == "out" else name
        return tensor(f"{stem}_W{letter}").T, tensor(f"{stem}_b{letter}").flatten()

    return read


def _weights(folder: Path) -> dict[str, Tensor]:
    path = folder / "model.safetensors"
    if not path.exists():
        path = folder / "pytorch_model.bin"
    if not path.exists():
        raise ModelError(f"{folder}: has neither model.safetensors nor pytorch_model.bin")
    if path.suffix == ".bin":
        tensors = _weights_alone(path)
    else:
        try:
            tensors = load(read_regular(path, MOST_BYTES, "no Marian model is"))
        except UNREADABLE as error:
            raise ModelError(f"{path}: cannot be read: {reason_of(error)}") from error
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise ModelError(f"{path}: {name} is {tensor.dtype}, which cannot be represented")
    return tensors


def _weights_alone(path: Path) -> dict[str, Tensor]:
    """What a file of PyTorch holds; nothing in it is run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a damaged or a hostile file makes it raise
        raise ModelError(
            f"{path}: no file of weights alone. It is damaged, or holds objects of Python, which "
            "are never made; save it as model.safetensors"
        ) from error
    if not isinstance(tensors, dict) or not all(isinstance(v, Tensor) for v in tensors.values()):
        raise ModelError(f"{path}: holds no table of weights")
    return tensors


def _arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if "pickle" in str(error):
            raise ModelError(
                f"{path}: holds objects of Python, which are never made; the weights of a Marian "
                "model are arrays of numbers alone"
            ) from error
        raise ModelError(f"{path}: cannot be read: {reason_of(error)}") from error


def _expect(
    path: Path,
    config: Mapping[str, Any],
    key: str,
    allowed: tuple[object, ...],
    default: object = None,
) -> None:
    value = config.get(key, default)
    if value not in allowed:
        raise ModelError(
            f"{path}: {key} is {value!r}, which cannot be represented; "
            f"wanted: {' or '.join(map(repr, allowed))}"
        )


def _expect_size(path: Path, config: Mapping[str, Any], key: str) -> None:
    value = config.get(key)
    if type(value) is not int or value < 1:
        raise ModelError(f"{path}: {key} is {value!r}; wanted: a whole number from 1 on")


def _expect_numbers(path: Path, config: Mapping[str, Any], target: Mapping[str, int]) -> None:
    """That config and vocabulary agree on the pieces with a meaning."""
    for key, piece in (
        ("eos_token_id", END),
        ("pad_token_id", PADDING),
        ("decoder_start_token_id", PADDING),
    ):
        if piece not in target:
            raise ModelError(f"{path.parent}: the vocabulary has no piece {piece}")
        if config.get(key, target[piece]) != target[piece]:
            raise ModelError(
                f"{path}: {key} is {config[key]!r}, but the vocabulary has {piece} at "
                f"{target[piece]}"
            )


def _expect_none_left(location: Path, names: Sequence[str]) -> None:
    """That all weights were read: what is left out would be missed."""
    if names:
        suffix = f" and {len(names) - 1:,} more" if names[1:] else ""
        raise ModelError(f"{location}: {names[0]}{suffix}: weights that the settings do not name")


def _table(path: Path) -> str:
    try:
        return read_regular(path, MOST_TABLE_BYTES, "no such table is").decode()
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        table = json.loads(_table(path))
    except ValueError as error:
        raise ModelError(f"{path}: no JSON: {reason_of(error)}") from error
    if not isinstance(table, dict):
        raise ModelError(f"{path}: no JSON object")
    return table


def _numbered(path: Path) -> dict[str, int]:
    return _checked_numbers(path, _json(path))


def _numbered_file(path: Path) -> dict[str, int]:
    """The pieces of a vocabulary in YAML, or of a sentencepiece model, with their numbers."""
    if ".spm" not in path.suffixes:
        return _checked_numbers(path, yaml_of(path))
    model = Vocabulary.parse(content_of(path, MOST_TABLE_BYTES), path)
    return {model.piece(number): number for number in range(len(model))}


def _checked_numbers(path: Path, numbers: Mapping[Any, Any]) -> dict[str, int]:
    if not all(isinstance(k, str) and type(v) is int for k, v in numbers.items()):
        raise ModelError(f"{path}: no vocabulary, which gives every piece its number")
    return dict(numbers)


def _spm(path: Path, numbers: Mapping[str, int]) -> bytes:
    """A sentencepiece model. Raises ModelError where it is none, or most of its pieces have no
    number."""
    content = content_of(path, MOST_TABLE_BYTES)
    try:
        spm = sentencepiece.SentencePieceProcessor(model_proto=content) if content else None
    except RuntimeError as error:
        raise ModelError(f"{path}: no sentencepiece model, or half of one") from error
    if spm is None:
        raise ModelError(f"{path}: is empty")
    piece_ids = [
        number for number in range(len(spm)) if not (spm.is_byte(number) or spm.is_control(number))
    ]
    count = sum(spm.id_to_piece(number) in numbers for number in piece_ids)
    if 2 * count < len(piece_ids):
        raise ModelError(
            f"{path}: {count:,} of its {len(piece_ids):,} pieces are in the vocabulary, so it "
            "is another model's"
        )
    return content
