"""All memory layers around one step of the decoder, in their order; and the file of their
parameters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from tmnmt.config.options import MODES, ModelOptions
from tmnmt.durable import write
from tmnmt.errors import ModelError, UsageError, short_repr
from tmnmt.keys.pair_keys import PairKeys
from tmnmt.layers.contract import (
    BeamState,
    Collated,
    Histories,
    HistoryLayer,
    LayerOutput,
    MemoryLayer,
    StepState,
)
from tmnmt.layers.learned import LearnedLayer
from tmnmt.layers.nearest import NearestPositions
from tmnmt.layers.trace import Trace, trace_of
from tmnmt.models.base import Backbone
from tmnmt.models.folder import (
    CONFIG_FILE,
    UNREADABLE,
    config_beside,
    most_bytes,
    read_checked,
    read_regular,
    reason_of,
    stamp,
)
from tmnmt.models.weights import fill, packed, unpacked, without_numbers
from tmnmt.registry import Registry

FORMAT = "6"  # of memory.safetensors
READABLE_FORMATS = ("5", FORMAT)  # 5: a session cache has no empty slot
# in the order in which they fuse and mix
LAYERS: Registry[type[MemoryLayer[Any]]] = Registry("layer", {"nearest": NearestPositions})


@dataclass(frozen=True)
class LayerInputs:
    """What the layers read of a batch, by their names, in their order; empty: the plain model."""

    layers: dict[str, BeamState] = field(default_factory=dict)

    def rows(self, index: Tensor) -> LayerInputs:
        """These rows, in their order.

        index: (R',) int64, the numbers of the rows."""
        return LayerInputs({name: ready.rows(index) for name, ready in self.layers.items()})

    def reordered(self, index: Tensor) -> LayerInputs:
        """The same rows in another order, in which every row takes the place of one of its own
        sentence.

        index: (R,) int64, the number of the row that comes to each place."""
        return LayerInputs({name: ready.reordered(index) for name, ready in self.layers.items()})


class Stepped(NamedTuple):
    """What a step gives."""

    # (R, V) log p(y_t), in fp32, or fp64 where the read-out is; or one of each of its columns
    log_probs: Tensor
    state: Any  # of the backbone
    step: StepState
    ready: LayerInputs  # moved on
    trace: Trace | None  # where it was asked for


class MemoryLayers(nn.Module):
    """The memory layers that a model has, as attributes of their names in `LAYERS`; None: not
    trained. Those without learned parameters are always there."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, *layers: MemoryLayer[Any] | None) -> None:
        """layers: those that have learned, in any order; None stands for none."""
        super().__init__()
        by_kind = {type(layer): layer for layer in layers}
        for name, kind in LAYERS.items():
            is_learned = issubclass(kind, LearnedLayer)
            self.add_module(name, by_kind.get(kind) if is_learned else kind())
        self._names = (*LAYERS,)

    @property
    def layers(self) -> dict[str, MemoryLayer[Any]]:
        """By name, in the order in which they fuse and mix."""
        layers = {name: getattr(self, name) for name in self._names}
        return {name: layer for name, layer in layers.items() if layer is not None}

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes this model can serve."""
        served = {mode for layer in self.layers.values() for mode in layer.modes}
        return tuple(mode for mode in MODES if mode in served or mode == "off")

    @property
    def _history_layers(self) -> dict[str, HistoryLayer[Any, Any]]:
        layers = self.layers.items()
        return {name: layer for name, layer in layers if isinstance(layer, HistoryLayer)}

    @property
    def slots(self) -> int:
        """How many slots of a document the layers have learned with; 0 where none has any."""
        return max(layer.slots for layer in self._history_layers.values())

    @property
    def history_digest(self) -> str:
        """Names the parameters that histories depend on; "" where they depend on the base alone."""
        return " ".join(filter(None, (x.history_digest for x in self._history_layers.values())))

    def new_histories(
        self, options: ModelOptions, backbone: Backbone, device: torch.device | str
    ) -> Histories:
        """What the layers keep of a document that begins, by their names.

        options: the options of the model.
        backbone: the base that decodes.
        device: where the histories lie."""
        histories = {
            name: layer.new_history(options, backbone, device)
            for name, layer in self._history_layers.items()
        }
        return {name: history for name, history in histories.items() if history is not None}

    def write(self, histories: Histories, keys: PairKeys) -> None:
        """Adds the keys of a translated sentence to what is kept of its document.

        histories: the histories of the document.
        keys: the keys of the sentence."""
        for name, history in histories.items():
            self._history_layers[name].write(history, keys)

    def collate(self, histories: Sequence[Histories], device: torch.device | str) -> dict[str, Any]:
        """What is kept of the documents of a batch, side by side, by the names of the layers.

        histories: the histories of every sentence's document.
        device: where the result lies."""
        collated = {
            name: layer.collate([of_document.get(name) for of_document in histories], device)
            for name, layer in self._history_layers.items()
        }
        return {name: entries for name, entries in collated.items() if entries is not None}

    def ready(self, collated: Collated, backbone: Backbone, mode: str) -> LayerInputs:
        """All that no step changes, once a batch, one row a sentence, of the layers that have
        something to read in a mode.

        collated: what the sentences of the batch read.
        backbone: the base that decodes.
        mode: the mode of the translation.

        Raises UsageError for a mode or a history whose layer is not there."""
        self._check(mode, collated)
        ready = {name: layer.ready(collated, backbone, mode) for name, layer in self.layers.items()}
        return LayerInputs({name: moving for name, moving in ready.items() if moving is not None})

    def step(
        self,
        backbone: Backbone,
        prev: Tensor,
        state: Any,
        encoded: Any,
        ready: LayerInputs,
        explain: bool = False,
        rows: Tensor | None = None,
    ) -> Stepped:
        """Goes on by one target position. Rows with an empty cache and rows without pairs are the
        plain model's, bit for bit.

        backbone: the base.
        prev: (R,) int64, the words y_{t-1}.
        state: the state before the position.
        encoded: the sources.
        ready: what the layers read of the batch.
        explain: whether the result has a trace.
        rows: (R',) int64, the rows whose probabilities are needed; log p has these alone, in their
        order. None needs all."""
        layers = [(name, getattr(self, name)) for name in ready.layers]

        # 1. Inject, and 2. the backbone moves on: a reference network is part of its step.
        state, context, hidden = backbone.step(prev, state, encoded)
        step = StepState(prev, hidden, context, backbone.columns)

        # 3. Fuse, in order.
        reads: dict[str, LayerOutput[Any]] = {}
        hiddens = [hidden]
        for name, layer in layers:
            hidden, reads[name] = layer.fuse(step, hidden, ready.layers[name])
            hiddens.append(hidden)
        advanced = LayerInputs({name: reading.ready for name, reading in reads.items()})

        # 4. Read out.
        stands = step
        if rows is not None:
            step = step.rows(rows)
            hiddens = [hidden[rows] for hidden in hiddens]
            reads = {name: reading.rows(rows) for name, reading in reads.items()}
            if not len(rows):
                words = backbone.vocab_size if step.columns is None else len(step.columns.words)
                empty = hidden.new_empty(0, words)
                return Stepped(empty, state, stands, advanced, None)
        log_probs = read_out(backbone, step, hiddens[-1])
        log_gen = log_probs.clone() if explain else None

        # 5. Mix, in order.
        for name, layer in layers:
            log_probs, reads[name] = layer.mix(step, log_probs, reads[name])
        trace = None
        if log_gen is not None:
            reader = partial(read_out, backbone, step)
            trace = trace_of(reader, hiddens, reads, log_gen, step.columns)
        return Stepped(log_probs, state, stands, advanced, trace)

    def digest(self, mode: str, cache: bool) -> str:
        """16 hexadecimal digits of all parameters that a decoder reads, and of their kinds: where
        they stay, translations do.

        mode: the mode of the decoder.
        cache: whether it has a session cache."""
        content = hashlib.sha256()
        kinds = {}
        for name, layer in self._read(mode, cache):
            kinds[name] = layer.kind_read(mode)
            for parameter, value in layer.parameters_read(mode):
                content.update(f"{name}.{parameter}".encode() + value.cpu().numpy().tobytes())
        content.update(json.dumps(kinds).encode())
        return content.hexdigest()[:16]

    def parameters_read(self, mode: str, cache: bool) -> int:
        """How many trained numbers a decoder reads.

        mode: the mode of the decoder.
        cache: whether it has a session cache."""
        counts = (layer.parameters_read(mode) for _, layer in self._read(mode, cache))
        return sum(value.numel() for parameters in counts for _, value in parameters)

    def _read(self, mode: str, cache: bool) -> Iterator[tuple[str, LearnedLayer[Any]]]:
        """The learned layers that do something in this mode."""
        for name, layer in self.layers.items():
            if isinstance(layer, LearnedLayer) and layer.reads(mode, cache):
                yield name, layer

    def _check(self, mode: str, collated: Collated) -> None:
        if mode not in self.modes:
            raise UsageError(
                f"this model has no parameters for mode {mode}; it serves {', '.join(self.modes)}"
            )
        if collated.histories.keys() - self.layers.keys():
            raise UsageError("this model has no layer for what is kept of the documents")

    def save(self, path: Path, dtype: torch.dtype = torch.float32) -> None:
        """Writes memory.safetensors, as a whole or not at all, by the names of the layers; where it
        lies in a model folder, its checksum too.

        path: the file.
        dtype: the type in which the numbers are stored."""
        tensors = {
            _stored_name(k): v.detach().to(dtype).cpu().contiguous()
            for k, v in self.state_dict().items()
        }
        kinds: dict[str, Any] = {
            name: None if getattr(self, name) is None else asdict(getattr(self, name).kind)
            for name in _learned_kinds()
        }
        write(path, packed(tensors, {"format": FORMAT, "kinds": json.dumps(kinds)}))
        if path.with_name(CONFIG_FILE).exists():
            stamp(path.parent)

    @classmethod
    def load(cls, path: Path, base: Backbone, device: torch.device | str = "cpu") -> MemoryLayers:
        """The layers in memory.safetensors, in fp32 and evaluation mode. The file says which there
        are.

        path: the file.
        base: the base that they belong to.
        device: where they lie.

        Raises ModelError where the file cannot be read, is of another format, damaged, or made for
        a base of other sizes."""
        config = config_beside(path)
        limit = 2 * most_bytes(base), "no memory layers of this base are"
        content = (
            read_checked(path, config, *limit) if config is not None else read_regular(path, *limit)
        )
        try:
            tensors, metadata = unpacked(content)
            if "format" not in metadata or "kinds" not in metadata:
                raise ModelError(
                    f"{path}: no memory file of tmnmt (which says its format, and what layers "
                    "it holds)"
                )
            if metadata["format"] not in READABLE_FORMATS:
                raise ValueError(
                    f"format {short_repr(metadata['format'])}, this version reads "
                    f"{' and '.join(READABLE_FORMATS)}"
                )
            with without_numbers():
                layers = cls._build(json.loads(metadata["kinds"]), base)
            names = {_stored_name(name): name for name in layers.state_dict()}
            fill(layers, {names.get(name, name): tensor for name, tensor in tensors.items()})
        except UNREADABLE as error:
            reason = reason_of(error)
            sizes = f"l {base.context_size}, d {base.hidden_size}, words of {base.word_size}"
            raise ModelError(
                f"{path}: no memory parameters for this base ({sizes}): {reason}"
            ) from error
        return layers.to(device).eval()

    @classmethod
    def _build(cls, kinds: dict[str, Any], base: Backbone) -> MemoryLayers:
        sizes = base.context_size, base.hidden_size, base.word_size
        learned = _learned_kinds()
        if unknown := kinds.keys() - learned.keys():
            raise ValueError(f"layers that this version does not know: {', '.join(unknown)}")
        stored = {name: kind for name, kind in kinds.items() if kind is not None}
        return cls(*(learned[name].of_kind(sizes, kind) for name, kind in stored.items()))


def read_out(backbone: Backbone, step: StepState, hidden: Tensor) -> Tensor:
    """The log probabilities (R, V) of the states that the layers have made. Without gradients they
    are written over the logits that the backbone has given.

    backbone: the base.
    step: the plain state of the step.
    hidden: (R, d), the states."""
    return backbone.log_readout(step.prev, hidden, step.context)


def _learned_kinds() -> dict[str, type[LearnedLayer[Any]]]:
    """The kinds of layers that are learned, by their names."""
    return {name: kind for name, kind in LAYERS.items() if issubclass(kind, LearnedLayer)}


def _stored_name(name: str) -> str:
    """The name of a parameter in the file, by that which it has in the layers."""
    layer, _, inner = name.partition(".")
    return inner if inner.partition(".")[0] in _learned_kinds()[layer].stored_alone else name
