"""Folders of students with random weights, as Mozilla publishes them, and a plain reading of such a
model in NumPy, to which the package is held."""

from __future__ import annotations

import io
import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from numpy.typing import NDArray
from tiny_training import sentences

from tmnmt.model_import.marian_binary import FLOAT32, INT8, INTGEMM8, SHORTLIST_MAGIC

Array = NDArray[np.float32]
ACTIVATION_MULTIPLIER = 8.5
PADDED = 256  # data of a container begin at a multiple of so many bytes


@dataclass(frozen=True)
class Architecture:
    """Of a student: d, f and decoder layers; `split`: each side has a vocabulary of its own."""

    hidden: int = 256
    feed_forward: int = 1536
    decoder_layers: int = 2
    split: bool = False
    encoder_layers: int = 6
    heads: int = 8


# as they are published; the number of words is small here
ARCHITECTURES = {
    "tiny": Architecture(),
    "base-memory": Architecture(384, 1536, 4),
    "base-memory, split": Architecture(384, 1536, 4, split=True),
    "base": Architecture(512, 2048, 2),
    "base, split": Architecture(512, 2048, 2, split=True),
}


def vocabulary(seed: int, size: int = 300) -> bytes:
    """A sentencepiece model as students have it: </s> is 0, <unk> is 1, and nothing else."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(400, seed)),
        model_writer=out,
        vocab_size=size,
        model_type="unigram",
        bos_id=-1,
        pad_id=-1,
        eos_id=0,
        unk_id=1,
        minloglevel=2,
        hard_vocab_limit=False,
    )
    return out.getvalue()


def tensors(architecture: Architecture, words: Sequence[int], seed: int) -> dict[str, Array]:
    """By Marian's names. words: of the source's vocabulary, and of the target's."""
    random = np.random.default_rng(seed)
    d, f = architecture.hidden, architecture.feed_forward
    table: dict[str, Array] = {}

    def matrix(name: str, rows: int, columns: int) -> None:
        table[name] = random.normal(0, 0.5 / math.sqrt(rows), (rows, columns)).astype(np.float32)

    def bias(name: str, size: int) -> None:
        table[name] = random.normal(0, 0.1, (1, size)).astype(np.float32)

    def norm(name: str) -> None:
        bias(f"{name}_ln_bias", d)
        table[f"{name}_ln_scale"] = random.uniform(0.5, 1.5, (1, d)).astype(np.float32)

    def attention(stem: str) -> None:
        for letter in "qkvo":
            matrix(f"{stem}_W{letter}", d, d)
            bias(f"{stem}_b{letter}", d)
        norm(f"{stem}_Wo")

    def feed_forward(stem: str) -> None:
        matrix(f"{stem}_W1", d, f)
        bias(f"{stem}_b1", f)
        matrix(f"{stem}_W2", f, d)
        bias(f"{stem}_b2", d)
        norm(f"{stem}_ffn")

    for layer in range(1, architecture.encoder_layers + 1):
        attention(f"encoder_l{layer}_self")
        feed_forward(f"encoder_l{layer}_ffn")
    for layer in range(1, architecture.decoder_layers + 1):
        stem = f"decoder_l{layer}"
        matrix(f"{stem}_rnn_W", d, d)
        matrix(f"{stem}_rnn_Wf", d, d)
        bias(f"{stem}_rnn_bf", d)
        norm(f"{stem}_rnn_ffn")
        attention(f"{stem}_context")
        feed_forward(f"{stem}_ffn")
    for name, size in zip(_tables(architecture), words, strict=False):
        table[name] = random.normal(0, d**-0.5, (size, d)).astype(np.float32)
    bias("decoder_ff_logit_out_b", words[-1])
    return table


def _tables(architecture: Architecture) -> list[str]:
    return ["encoder_Wemb", "decoder_Wemb"] if architecture.split else ["Wemb"]


def settings(architecture: Architecture, words: Sequence[int], **changes: Any) -> str:
    """model.yml; JSON is YAML, too."""
    values = {
        "type": "transformer",
        "dim-emb": architecture.hidden,
        "enc-depth": architecture.encoder_layers,
        "dec-depth": architecture.decoder_layers,
        "transformer-heads": architecture.heads,
        "transformer-dim-ffn": architecture.feed_forward,
        "transformer-ffn-depth": 2,
        "transformer-ffn-activation": "relu",
        "transformer-decoder-autoreg": "rnn",
        "dec-cell": "ssru",
        "transformer-preprocess": "",
        "transformer-postprocess": "dan",
        "transformer-postprocess-emb": "d",
        "transformer-postprocess-top": "",
        "transformer-train-position-embeddings": False,
        "tied-embeddings": architecture.split,
        "tied-embeddings-all": not architecture.split,
        "lemma-dim-emb": 0,
        "layer-normalization": False,
        "transformer-tied-layers": [],
        "transformer-no-projection": False,
        "ulr": False,
        "dim-vocabs": [words[0], words[-1]],
    }
    return json.dumps(values | changes)


def rounded(table: Mapping[str, Array]) -> tuple[dict[str, NDArray[np.int8]], dict[str, Array]]:
    """Matrices as whole numbers, and with what these stand for."""
    whole, meant = {}, {}
    for name, tensor in table.items():
        if ("_W" in name and "ln" not in name) or "Wemb" in name:
            multiplier = np.float32(127 / np.abs(tensor).max())
            whole[name] = np.clip(np.rint(tensor * multiplier), -127, 127).astype(np.int8)
            meant[name] = (whole[name] / multiplier).astype(np.float32)
        else:
            meant[name] = tensor
    return whole, meant


def container(
    table: Mapping[str, Array], model_yml: str, quantised: bool = True, padded: bool = True
) -> bytes:
    """Marian's binary file of these tensors, matrices in int8 where it is `quantised`."""
    whole, _ = rounded(table) if quantised else ({}, {})
    items: list[tuple[str, int, tuple[int, ...], bytes]] = []
    for name, tensor in sorted(table.items()):
        if name in whole:
            stored = whole[name] if "Wemb" in name else whole[name].T
            multiplier = struct.pack("<f", 127 / np.abs(tensor).max())
            items.append((name, INTGEMM8, tensor.shape, stored.tobytes() + multiplier))
            activation = struct.pack("<f", ACTIVATION_MULTIPLIER)
            items.append((f"{name}_QuantMultA", FLOAT32, (1, 1), activation))
        else:
            items.append((name, FLOAT32, tensor.shape, tensor.tobytes()))
    if padded:
        items = [(n, t, s, b + bytes(-len(b) % PADDED)) for n, t, s, b in items]
    text = model_yml.encode() + b"\0"
    items.append(("special:model.yml", INT8, (len(text),), text))
    out = struct.pack("<QQ", 1, len(items))
    for name, kind, shape, content in items:
        out += struct.pack("<QQQQ", len(name) + 1, kind, len(shape), len(content))
    out += b"".join(name.encode() + b"\0" for name, *_ in items)
    out += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    offset = ((len(out) + 8) // PADDED + 1) * PADDED - len(out) - 8
    out += struct.pack("<Q", offset) + bytes(offset)
    return out + b"".join(content for *_, content in items)


def shortlist(lists: Sequence[Sequence[int]], first: int) -> bytes:
    """Marian's file of these lists, of every source word."""
    offsets = np.cumsum([0, *map(len, lists)]).astype("<u8")
    words = np.concatenate([np.array(each, "<u4") for each in lists])
    best = max(map(len, lists))
    body = struct.pack("<4Q", first, best, len(offsets), len(words))
    body += offsets.tobytes() + words.tobytes()
    seed = 0
    for at in range(0, len(body) // 8 * 8, 8):
        (value,) = struct.unpack_from("<Q", body, at)
        seed = (seed ^ (value + 0x9E3779B9 + (seed << 6) + (seed >> 2))) % (1 << 64)
    return struct.pack("<QQ", SHORTLIST_MAGIC, seed) + body


def write_student(
    folder: Path, architecture: Architecture, seed: int = 1, **changes: Any
) -> dict[str, Array]:
    """A folder of Mozilla's, en to pt; gives the tensors that its whole numbers stand for."""
    folder.mkdir(parents=True, exist_ok=True)
    sides = [vocabulary(side) for side in ((0, 1) if architecture.split else (0,))]
    names = ("srcvocab", "trgvocab") if architecture.split else ("vocab",)
    for name, content in zip(names, sides, strict=True):
        (folder / f"{name}.enpt.spm").write_bytes(content)
    words = [len(sentencepiece.SentencePieceProcessor(model_proto=each)) for each in sides]
    table = tensors(architecture, words, seed)
    text = settings(architecture, words, **changes)
    (folder / "model.enpt.intgemm.alphas.bin").write_bytes(container(table, text))
    return rounded(table)[1]


class Plain:
    """The forward pass of a student, one sentence at a time, in float64."""

    def __init__(self, table: Mapping[str, Array], architecture: Architecture) -> None:
        self.table = {name: tensor.astype(np.float64) for name, tensor in table.items()}
        self.architecture = architecture

    def logits(self, source: Sequence[int], target: Sequence[int]) -> NDArray[np.float64]:
        """Of every position of a target, which ends with </s>, (T, V); ids are Marian's."""
        shape = self.architecture
        tables = _tables(shape)
        x = self._embedded(self.table[tables[0]][[*source]])
        for layer in range(1, shape.encoder_layers + 1):
            stem = f"encoder_l{layer}_self"
            x = self._norm(f"{stem}_Wo", x + self._attend(stem, x, x))
            x = self._fed(f"encoder_l{layer}_ffn", x)
        embedding = self.table[tables[-1]]
        words = np.concatenate([np.zeros((1, shape.hidden)), embedding[[*target[:-1]]]])
        y = self._embedded(words)
        for layer in range(1, shape.decoder_layers + 1):
            stem = f"decoder_l{layer}"
            gates = 1 / (1 + np.exp(-self._product(f"{stem}_rnn_Wf", f"{stem}_rnn_bf", y)))
            candidates = y @ self.table[f"{stem}_rnn_W"]
            cell, read = np.zeros(shape.hidden), []
            for gate, candidate in zip(gates, candidates, strict=True):
                cell = gate * cell + (1 - gate) * candidate
                read.append(np.maximum(cell, 0))
            y = self._norm(f"{stem}_rnn_ffn", y + np.stack(read))
            y = self._norm(f"{stem}_context_Wo", y + self._attend(f"{stem}_context", y, x))
            y = self._fed(f"{stem}_ffn", y)
        return y @ embedding.T + self.table["decoder_ff_logit_out_b"]

    def _embedded(self, words: NDArray[np.float64]) -> NDArray[np.float64]:
        d = self.architecture.hidden
        rates = 10_000.0 ** (-np.arange(d // 2) / (d // 2 - 1))
        angles = np.arange(len(words))[:, None] * rates
        return math.sqrt(d) * words + np.concatenate([np.sin(angles), np.cos(angles)], 1)

    def _product(self, weight: str, bias: str, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return x @ self.table[weight] + self.table[bias]

    def _norm(self, name: str, x: NDArray[np.float64]) -> NDArray[np.float64]:
        even = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
        return even * self.table[f"{name}_ln_scale"] + self.table[f"{name}_ln_bias"]

    def _fed(self, stem: str, x: NDArray[np.float64]) -> NDArray[np.float64]:
        inner = np.maximum(self._product(f"{stem}_W1", f"{stem}_b1", x), 0)
        return self._norm(f"{stem}_ffn", x + self._product(f"{stem}_W2", f"{stem}_b2", inner))

    def _attend(
        self, stem: str, asking: NDArray[np.float64], read: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        heads, d = self.architecture.heads, self.architecture.hidden
        q, k, v = (
            self._product(f"{stem}_W{letter}", f"{stem}_b{letter}", x)
            .reshape(len(x), heads, -1)
            .transpose(1, 0, 2)
            for letter, x in (("q", asking), ("k", read), ("v", read))
        )
        energy = q @ k.transpose(0, 2, 1) / math.sqrt(d / heads)
        weights = np.exp(energy - energy.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        joined = (weights @ v).transpose(1, 0, 2).reshape(len(asking), d)
        return self._product(f"{stem}_Wo", f"{stem}_bo", joined)
