"""The model folder: config.toml, base.safetensors, spm.model, reference.safetensors where there is
a reference network, context.safetensors where there is a context network, memory.safetensors once
memory layers are trained, and shortlist.safetensors once one is made. Of two models that translate
one after another (`tmnmt.models.pivot`) it has the folders `first` and `second` in place of
weights.

Nothing is unpickled. The model's hash covers base, vocabulary and the network beside the base: keys
and caches are bound to it.
config.toml has the sha256 of the other files, which are compared when they are read."""

from __future__ import annotations

import hashlib
import math
import os
import re
import stat
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn

from tmnmt.config.options import Decoding, Precision
from tmnmt.durable import make_folder, write
from tmnmt.errors import ModelError, short_repr
from tmnmt.models.addresses import is_address, opener_of
from tmnmt.models.base import Backbone, Injectable
from tmnmt.models.decoding import for_decoding
from tmnmt.models.encoder_decoder import EncoderDecoder
from tmnmt.models.foreign import in_place_of_model
from tmnmt.models.injected import NETWORKS, Injected, packed_network, with_stored_network
from tmnmt.models.kinds import DTYPES, make
from tmnmt.models.pivot import Pivot
from tmnmt.models.weights import fill, packed, packed_int8, unpacked_int8, without_numbers
from tmnmt.system import NO_WAIT, open_file
from tmnmt.vocab import (
    PIECES_FILE,
    SOURCE_FILE,
    SPM_FILE,
    TARGET_FILE,
    PairVocabulary,
    Vocabulary,
)

FORMAT = 2
PIVOT, PARTS = "pivot", ("first", "second")  # kind of two models, and the folders of them
CONFIG_FILE = "config.toml"
CHECKSUMS = "sha256"  # the table of config.toml that has them
SHORTLIST_FILE = "shortlist.safetensors"
VOCABULARY_FILES = (SPM_FILE, SOURCE_FILE, TARGET_FILE, PIECES_FILE)
CONFIDENCE_FILE = "confidence.json"
CHECKED = (
    "base.safetensors",
    "memory.safetensors",
    SHORTLIST_FILE,
    CONFIDENCE_FILE,
    *VOCABULARY_FILES,
)
LARGEST = 1 << 14  # of every size in config.toml
NETWORK_SIZE = 4  # times as large as its base is a network beside it at most
LONGEST_REASON = 300
LONGEST_CODE = 35  # of a language
MOST_CONFIG_BYTES = 1 << 13
MOST_VOCABULARY_BYTES = 1 << 26
MOST_HEADER_BYTES = 100_000_000  # of a safetensors file, as its library has it
MOST_WORDS = 1 << 20
# keys of [model] that are no sizes
WAYS: dict[str, tuple[object, ...]] = {
    "norm": ("pre", "post"),
    "activation": ("relu", "swish", "gelu"),
    "scaled": (True, False),
    "tied": (True, False),
    "positions": ("vaswani", "marian"),
}
PRECISIONS = tuple(DTYPES)
LAYERS = ("encoder_layers", "decoder_layers")  # keys of [model] that say how often a part is there
_STAMP = "if it is as you want it, python models/export.py --stamp FOLDER writes the checksums"
# what safetensors, torch and the modules raise where weights or sizes are not what they should be
UNREADABLE = (
    OSError,
    SafetensorError,
    RuntimeError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
    MemoryError,
)


@dataclass(frozen=True)
class Model:
    """A loaded base with its vocabulary; `config` is config.toml as a dictionary, `hash` 16
    hexadecimal digits."""

    backbone: Backbone
    vocab: Vocabulary
    config: dict[str, Any]
    hash: str
    folder: Path
    base_hash: str  # without the network beside the base; where there is none, the same
    products: Precision | None = None  # in which precision; None: as config.toml says, else fp32

    def plain(self) -> Model:
        """The same without the network beside its base, if it has one."""
        if not isinstance(self.backbone, Injected):
            return self
        return replace(self, backbone=self.backbone.base, hash=self.base_hash)

    @property
    def precision(self) -> str:
        """Of its products where it decodes. On a GPU there are none in int8."""
        default = str(self.config.get("precision", "fp32"))
        on_cpu = next(self.backbone.parameters()).is_cpu
        return self.products or (default if on_cpu or default != "int8" else "fp32")

    @property
    def states_hash(self) -> str:
        """16 hexadecimal digits of all that contexts and hidden states depend on: keys and slots
        are bound to it. Products in int8 give others than the rest does."""
        default = self.config.get("precision", "fp32")
        if (default == "int8") == (self.precision == "int8"):
            return self.hash
        return _hash(self.hash.encode(), self.precision.encode())

    @cached_property
    def decoding(self) -> Backbone:
        """The backbone as it decodes."""
        return for_decoding(self.backbone, DTYPES[self.precision])

    @cached_property
    def for_directions(self) -> Backbone:
        """The backbone that forces pairs of which only the directions of states are kept: as it
        decodes; but on a CPU, a Transformer or a student with products in int8, of 8 bits. What
        that changes is a fraction of what four bits a number change, and it takes half of the
        time."""
        return self.forcing()

    @property
    def forcing(self) -> Callable[[], Backbone]:
        """Gives `for_directions`, which is made once it is needed, of the backbone as it decodes:
        the model itself need not be kept for it."""
        return cache(partial(_for_directions, self.decoding, self.precision))

    def reading(self, options: Decoding) -> Model:
        """The same model, with the network beside its base only where an option says so.

        options: the options, of which that with the network's name counts."""
        backbone = self.backbone
        reads = not isinstance(backbone, Injected) or getattr(options, backbone.name, True)
        return self if reads else self.plain()


def _for_directions(decoding: Backbone, precision: str) -> Backbone:
    on_cpu = next(decoding.parameters()).is_cpu
    if precision == "bf16" or not on_cpu or not isinstance(decoding, EncoderDecoder):
        return decoding
    packed = decoding if precision == "int8" else decoding.for_decoding(torch.int8)
    return packed.in_bytes()


def save_model(
    folder: Path, backbone: Backbone, vocab: Vocabulary, config: dict[str, Any], half: bool = False
) -> None:
    """Writes a model folder, with the network that is bound to the backbone. What the backbone has
    in int8 stays so.

    folder: the folder.
    backbone: the base.
    vocab: its vocabulary.
    config: the content of config.toml, with src_lang, tgt_lang and the table [model].
    half: whether weights are stored in fp16."""
    make_folder(folder)
    for name, content in vocab.files.items():
        write(folder / name, content)
    base = backbone.base if isinstance(backbone, Injected) else backbone
    weights = {k: (v.half() if half else v).contiguous() for k, v in base.state_dict().items()}
    int8 = base.stored_int8() if isinstance(base, EncoderDecoder) else {}
    content = packed(weights | packed_int8(int8))
    write(folder / "base.safetensors", content)
    for name in network_files():
        (folder / name).unlink(missing_ok=True)  # it was of another base
    if isinstance(backbone, Injected):
        network = packed_network(backbone.network, _hash(content, vocab.model))
        write(folder / network_file(backbone.name), network)
    write_config(folder, config)


def network_file(name: str) -> str:
    """The name of the file of a network beside the base.

    name: the name of the network."""
    return f"{name}.safetensors"


def network_files() -> dict[str, str]:
    """The names of the networks that can be beside a base, by where the model folder has them."""
    return {network_file(name): name for name in NETWORKS}


def load_model(folder: Path, device: str = "cpu") -> Model:
    """The model in a folder, in fp32 and evaluation mode.

    folder: the folder; or an address, where a plug-in opens it (`tmnmt.models.addresses`).
    device: where it lies, such as "cpu" or "cuda:0".

    Raises ModelError, which says what is missing or wrong."""
    if (opener := opener_of(folder)) is not None:
        open_address, place = opener
        model: Model = open_address(place)
        return model
    config = _read_config(folder)
    vocab = _read_vocabulary(folder, config)
    if config["model"].get("kind") == PIVOT:
        return _load_pivot(folder, config, vocab, device)
    path = folder / "base.safetensors"
    try:
        limit = _most_weights(len(vocab), config["model"])
        content = read_checked(path, config, limit, f"no weights of the sizes in {CONFIG_FILE} are")
        weights, int8 = unpacked_int8(content)
        if any(config["model"].get(name, 0) > len(weights) for name in LAYERS):
            raise ValueError("it has fewer tensors than config.toml says layers")
        with without_numbers():
            backbone = make(len(vocab), config["model"])
        fill(backbone, weights)
        if isinstance(backbone, EncoderDecoder):
            backbone.int8 = int8
        elif int8:
            raise ValueError("only those of a Transformer or a student may be in int8")
    except UNREADABLE as error:
        raise ModelError(f"{path}: no weights of this model: {reason_of(error)}") from error
    digest = _hash(content, vocab.model)
    model = Model(backbone.to(device).eval(), vocab, config, digest, folder, digest)
    stored = config[CHECKSUMS]
    network_names = [name for name in network_files() if name in stored or (folder / name).exists()]
    if len(network_names) > 1:
        raise ModelError(
            f"{folder}: {' and '.join(network_names)}; a model has one of them at most"
        )
    return _with_network(model, network_names[0], content, device) if network_names else model


def _load_pivot(folder: Path, config: dict[str, Any], vocab: Vocabulary, device: str) -> Model:
    """Two models one after another. Raises ModelError where they do not fit each other."""
    for part in PARTS:
        if _read_config(folder / part)["model"].get("kind") == PIVOT:
            raise ModelError(f"{folder / part}: is two models already; one model is wanted")
    first, second = (load_model(folder / part, device).plain() for part in PARTS)
    if len(second.vocab) != len(vocab):
        raise ModelError(f"{folder}: its second model has another vocabulary; make it again")
    vocabularies, dtype = (first.vocab, second.vocab), DTYPES[first.precision]
    backbone = Pivot(first.backbone, second.backbone, *vocabularies, dtype)
    digest = _hash(first.hash.encode(), second.hash.encode(), vocab.model)
    return Model(backbone.eval(), vocab, config, digest, folder, digest)


def _hash(*contents: bytes) -> str:
    """16 hexadecimal digits of all that translations depend on."""
    return hashlib.sha256(b"".join(contents)).hexdigest()[:16]


def _with_network(model: Model, name: str, base: bytes, device: str) -> Model:
    """The model with the network of its folder."""
    path, backbone = model.folder / name, model.backbone
    network_kind = network_files()[name]
    if not isinstance(backbone, Injectable):
        raise ModelError(f"{path}: this base takes no {network_kind} network; a recurrent one does")
    limit = NETWORK_SIZE * most_bytes(backbone), f"no {network_kind} network of this base is"
    content = read_checked(path, model.config, *limit)
    try:
        bound = with_stored_network(content, NETWORKS[network_kind], backbone, model.hash)
    except UNREADABLE as error:
        raise ModelError(
            f"{path}: no {network_kind} network of this base: {reason_of(error)}"
        ) from error
    digest = _hash(base, model.vocab.model, content)
    return replace(model, backbone=bound.to(device).eval(), hash=digest)


def _read_vocabulary(folder: Path, config: dict[str, Any]) -> Vocabulary:
    """One sentencepiece model, or one for each side where config.toml names their files."""
    names = [name for name in VOCABULARY_FILES if name in config[CHECKSUMS]]
    if PIECES_FILE not in names:
        names = [SPM_FILE]
    limit = MOST_VOCABULARY_BYTES, "no vocabulary is"
    files = {name: read_checked(folder / name, config, *limit) for name in names}
    if PIECES_FILE not in files:
        return Vocabulary.parse(files[SPM_FILE], folder / SPM_FILE)
    try:
        return PairVocabulary.read(files, config.get("prefix", ""))
    except (RuntimeError, ValueError, LookupError, RecursionError) as error:
        path = folder / PIECES_FILE
        raise ModelError(f"{path}: no vocabulary of two sides: {reason_of(error)}") from error


def stamp(folder: Path) -> None:
    """Writes the checksums of a folder's files into its config.toml: whoever puts another file
    there calls it afterwards. It takes folders of format 1, which had no checksums.

    folder: the folder.

    Raises ModelError where config.toml is none."""
    write_config(folder, _parsed_config(folder / CONFIG_FILE, (1, FORMAT)))


def read_checked(path: Path, config: dict[str, Any], limit: int, none_is: str) -> bytes:
    """The content of a file of a model folder.

    path: the file.
    config: the content of config.toml.
    limit: how many bytes the file may have.
    none_is: why it may not have more, in words.

    Raises ModelError as `read_regular` does, and where the content is not what was saved
    (sha256)."""
    checksum = config[CHECKSUMS].get(path.name)
    if checksum is None:
        raise ModelError(
            f"{path.with_name(CONFIG_FILE)}: key `{CHECKSUMS}.{path.name}` is missing; {_STAMP}"
        )
    content = read_regular(path, limit, none_is)
    if hashlib.sha256(content).hexdigest() != checksum:
        raise ModelError(
            f"{path}: damaged, or another file (its sha256 is not that in {CONFIG_FILE}); {_STAMP}"
        )
    return content


def read_regular(path: Path, limit: int, none_is: str) -> bytes:
    """The content of a regular file: no pipe is waited for, no device read without end, and nothing
    read that is too large.

    path: the file.
    limit: how many bytes it may have.
    none_is: why it may not have more, in words.

    Raises ModelError where it cannot be read, or has more bytes."""
    try:
        with open(
            path, "rb", opener=lambda name, flags: open_file(name, flags | NO_WAIT, follows=True)
        ) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ModelError(f"{path}: cannot be read: no regular file")
            if status.st_size > limit:
                raise ModelError(f"{path}: larger than {limit:,} bytes; {none_is}")
            return file.read(status.st_size)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {reason_of(error)}") from error
    except MemoryError as error:
        raise ModelError(
            f"{path}: cannot be read: no memory for its {status.st_size:,} bytes"
        ) from error


def most_bytes(backbone: nn.Module) -> int:
    """How many bytes a file of a backbone's weights in fp32 has at most.

    backbone: the backbone."""
    return 4 * parameters(backbone) + MOST_HEADER_BYTES


def _most_weights(vocab_size: int, sizes: dict[str, Any]) -> int:
    """What a base of these sizes takes at most, in bytes; layers are not made, however many there
    are to be."""
    with without_numbers():
        smallest = make(vocab_size, sizes | {name: 1 for name in LAYERS if name in sizes})
    times: int = max(sizes.get(name, 1) for name in LAYERS)
    return most_bytes(smallest) * times


def config_beside(path: Path) -> dict[str, Any] | None:
    """The configuration of the model folder that a file lies in; None where it lies in none.

    path: the file."""
    return _read_config(path.parent) if path.with_name(CONFIG_FILE).exists() else None


def languages_in(folder: Path) -> tuple[str, str]:
    """The codes of the languages that a model folder translates between, without loading it; "" for
    those that an address does not say.

    folder: the folder, or the address.

    Raises ModelError where it is no model folder."""
    config = load_model(folder).config if is_address(folder) else _read_config(folder)
    return config["src_lang"], config["tgt_lang"]


def reason_of(error: Exception) -> str:
    """What an error says, on one short line; of a file only why it cannot be read.

    error: the error."""
    message = (
        error.strerror
        if isinstance(error, OSError) and error.strerror
        else " ".join(str(error).split())
    )
    message = message if message.isprintable() else ascii(message)[1:-1]
    return message if len(message) <= LONGEST_REASON else f"{message[:LONGEST_REASON]} ..."


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG_FILE
    if not path.exists():
        hint = in_place_of_model(folder)
        raise ModelError(
            f"{folder}: no model folder (it has no {CONFIG_FILE}){hint and f': {hint}'}"
        )
    config = _parsed_config(path, (FORMAT,))
    for key in ("src_lang", "tgt_lang", "model", CHECKSUMS):
        if key not in config:
            raise ModelError(f"{path}: key `{key}` is missing")
    _check_config(path, config)
    return config


def _parsed_config(path: Path, formats: tuple[int, ...]) -> dict[str, Any]:
    try:
        config = tomllib.loads(
            read_regular(path, MOST_CONFIG_BYTES, "no configuration of a model is").decode()
        )
    except RecursionError as error:
        raise ModelError(f"{path}: cannot be read: tables or lists too deep") from error
    except ValueError as error:  # no UTF-8, no TOML, a number of thousands of digits
        raise ModelError(f"{path}: cannot be read: {reason_of(error)}") from error
    number = config.get("format")
    if type(number) is not int or number not in formats:
        old = f"; {_STAMP}" if number == 1 else ""
        raise ModelError(
            f"{path}: model format {short_repr(number)}, this version reads {FORMAT}{old}"
        )
    return config


def write_config(folder: Path, config: dict[str, Any]) -> None:
    """Writes config.toml with the present checksums of the other files.

    folder: the folder.
    config: its content."""
    names = (*CHECKED, *network_files())
    files = [folder / name for name in names if (folder / name).exists()]
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    write(folder / CONFIG_FILE, _toml({**config, "format": FORMAT, CHECKSUMS: sums}).encode())


def _check_config(path: Path, config: dict[str, Any]) -> None:
    def check(key: str, value: object, right: bool, allowed_values: str) -> None:
        if not right:
            raise ModelError(
                f"{path}: key `{short_repr(key)[1:-1]}` is {short_repr(value)}, wanted: "
                f"{allowed_values}"
            )

    for key in ("src_lang", "tgt_lang"):
        right = (
            isinstance(config[key], str)
            and 0 < len(config[key]) <= LONGEST_CODE
            and config[key].isprintable()
        )
        check(key, config[key], right, "the code of a language")
    sums = config[CHECKSUMS]
    check(CHECKSUMS, sums, isinstance(sums, dict), "a table")
    sizes = config["model"]
    check("model", sizes, isinstance(sizes, dict), "a table")
    counts = {
        "max_subwords": config.get("max_subwords", 1),
        **{k: v for k, v in sizes.items() if k not in ("kind", "dropout", *WAYS)},
    }
    for key, value in counts.items():
        minimum, maximum = (0, MOST_WORDS) if key == "source_words" else (1, LARGEST)
        right = type(value) is int and minimum <= value <= maximum
        check(key, value, right, f"a whole number, {minimum} to {maximum:,}")
    for key, allowed in WAYS.items():
        right = any(sizes.get(key, way) is way or sizes.get(key) == way for way in allowed)
        check(key, sizes.get(key), right, " or ".join(map(str, allowed)).lower())
    prefix = config.get("prefix", "")
    check("prefix", prefix, isinstance(prefix, str) and len(prefix) <= LONGEST_CODE, "a piece")
    precision = config.get("precision", PRECISIONS[0])
    check("precision", precision, precision in PRECISIONS, " or ".join(PRECISIONS))
    low = config.get("low_score", -1.0)
    check(
        "low_score",
        low,
        type(low) in (int, float) and -math.inf < low <= 0,
        "a number of 0 or less",
    )
    dropout = sizes.get("dropout", 0.0)
    check(
        "dropout", dropout, type(dropout) in (int, float) and 0 <= dropout < 1, "a number in [0, 1)"
    )


def _toml(table: dict[str, Any]) -> str:
    """Flat tables of strings, numbers and booleans as TOML."""

    def value(v: Any) -> str:
        if isinstance(v, bool):
            return str(v).lower()
        if isinstance(v, str):
            return '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return repr(v)

    def key(k: str) -> str:
        return k if re.fullmatch("[A-Za-z0-9_-]+", k) else value(k)

    lines = [f"{key(k)} = {value(v)}" for k, v in table.items() if not isinstance(v, dict)]
    for name, inner in table.items():
        if isinstance(inner, dict):
            lines += ["", f"[{key(name)}]", *(f"{key(k)} = {value(v)}" for k, v in inner.items())]
    return "\n".join(lines) + "\n"


def parameters(backbone: nn.Module) -> int:
    """How many trained numbers a backbone has.

    backbone: the backbone."""
    return sum(p.numel() for p in backbone.parameters())
