"""A Transformer that ships, as a model of CTranslate2: the same weights in another file format.

    python ctranslate2_model.py models/law-transformer.en-fr FOLDER float32

Runs where CTranslate2 is installed and needs nothing of ours. Every part of the model has its
place there: norms before the parts and at both ends, scaled embeddings that the output reads, too,
and its bias. Its own positions go in as a table, since CTranslate2's sinusoids begin at 1 and are
spaced otherwise. Left out is what brings the last sum to a mean square of 1: the norm behind it
undoes that but for its epsilon."""

from __future__ import annotations

import math
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from ctranslate2.specs import Activation, TransformerSpec
from safetensors.numpy import load_file
from sentencepiece import SentencePieceProcessor

POSITIONS = 512
ACTIVATIONS = {"relu": "RELU", "swish": "SWISH", "gelu": "GELU"}
Weights = dict[str, np.ndarray[Any, Any]]


def converted(folder: Path) -> TransformerSpec:
    """The model in `folder`. Raises SystemExit for one that is no such Transformer."""
    sizes = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))["model"]
    norm, tied = sizes.get("norm", "pre"), sizes.get("tied", True)
    if sizes["kind"] != "transformer" or norm != "pre" or not tied or sizes.get("source_words"):
        raise SystemExit(f"{folder}: no Transformer with norms before its parts and one table")
    weights = {
        name: weight.astype(np.float32)
        for name, weight in load_file(folder / "base.safetensors").items()
    }
    spec = TransformerSpec.from_config(
        (sizes["encoder_layers"], sizes["decoder_layers"]),
        sizes["heads"],
        pre_norm=True,
        activation=Activation[ACTIVATIONS[sizes.get("activation", "relu")]],
    )
    _set_ends(spec, weights, sizes.get("scaled", True))
    for number, layer in enumerate(spec.encoder.layer):
        _set_attention(layer.self_attention, weights, f"encoder.{number}.attention", "qkv", "out")
        _set_feed_forward(layer.ffn, weights, f"encoder.{number}.feed_forward")
    for number, layer in enumerate(spec.decoder.layer):
        own, source = f"decoder.{number}.attention", f"decoder.{number}.cross"
        _set_attention(layer.self_attention, weights, own, "qkv", "out")
        _set_attention(layer.attention, weights, source, "query", "keys_values", "out")
        _set_feed_forward(layer.ffn, weights, f"decoder.{number}.feed_forward")
    _set_words(spec, folder / "spm.model")
    return spec


def sinusoids(length: int, size: int) -> np.ndarray[Any, Any]:
    """All sines first, then all cosines: (length, size)."""
    rate = np.exp(np.arange(size // 2) * (-math.log(10_000.0) / (size // 2)))
    angle = np.arange(length)[:, None] * rate
    return np.concatenate([np.sin(angle), np.cos(angle)], 1).astype(np.float32)


def _set_ends(spec: TransformerSpec, weights: Weights, scaled: bool) -> None:
    """Embeddings, positions, the last norms and the output."""
    table = weights["embedding.weight"]
    for side, embedding in (
        (spec.encoder, spec.encoder.embeddings[0]),
        (spec.decoder, spec.decoder.embeddings),
    ):
        embedding.weight = table
        side.scale_embeddings = scaled
        side.position_encodings.encodings = sinusoids(POSITIONS, table.shape[1])
    _set_both(spec.encoder.layer_norm, "gamma", weights, "encoder_norm")
    _set_both(spec.decoder.layer_norm, "gamma", weights, "decoder_norm")
    spec.decoder.projection.weight = table
    spec.decoder.projection.bias = weights["output_bias"]


def _set_both(part: Any, weight: str, weights: Weights, name: str) -> None:
    """A weight and what is called `bias` or, of a norm, `beta`."""
    setattr(part, weight, weights[f"{name}.weight"])
    setattr(part, "beta" if weight == "gamma" else "bias", weights[f"{name}.bias"])


def _set_attention(part: Any, weights: Weights, name: str, *products: str) -> None:
    _set_both(part.layer_norm, "gamma", weights, f"{name}.norm")
    for linear, product in zip(part.linear, products, strict=True):
        _set_both(linear, "weight", weights, f"{name}.{product}")


def _set_feed_forward(part: Any, weights: Weights, name: str) -> None:
    _set_both(part.layer_norm, "gamma", weights, f"{name}.norm")
    _set_both(part.linear_0, "weight", weights, f"{name}.inner")
    _set_both(part.linear_1, "weight", weights, f"{name}.out")


def _set_words(spec: TransformerSpec, subwords: Path) -> None:
    pieces = SentencePieceProcessor(model_file=str(subwords))
    words = [pieces.id_to_piece(i) for i in range(pieces.vocab_size())]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.bos_token = spec.config.decoder_start_token = words[pieces.bos_id()]
    spec.config.eos_token = words[pieces.eos_id()]
    spec.config.unk_token = words[pieces.unk_id()]
    spec.config.add_source_eos = True


def main(folder: Path, output: Path, precision: str) -> None:
    spec = converted(folder)
    spec.validate()
    spec.optimize(quantization=None if precision == "float32" else precision)
    output.mkdir(parents=True, exist_ok=True)
    spec.save(str(output))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
