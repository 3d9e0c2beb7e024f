"""A base behind an address as a model: it has no weights here, and shows no states."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import torch
from torch import Tensor, nn

from tmnmt.errors import UsageError
from tmnmt.hosted.address import Address, parse_address
from tmnmt.models.base import Backbone
from tmnmt.models.folder import CHECKSUMS, Model
from tmnmt.vocab import FIRST, Vocabulary

LONGEST = 4000  # characters of a text that is sent at once
MODES = ("examples", "off")
_CODE_POINTS = 0x110000


class Characters(Vocabulary):
    """Measures texts by their characters, where nobody knows the tokens of a base."""

    is_learned: ClassVar[bool] = False
    longest: ClassVar[int] = 1
    files: ClassVar[dict[str, bytes]] = {}

    def __init__(self) -> None:
        """There is nothing to read."""
        self.model = b""

    def __len__(self) -> int:
        return _CODE_POINTS + FIRST

    def encode(self, text: str) -> list[int]:
        return [ord(sign) + FIRST for sign in text]

    def encode_source(self, text: str) -> list[int]:
        return self.encode(text)

    def pieces(self, text: str) -> list[str]:
        return [*text]

    def source_pieces(self, text: str) -> list[str]:
        return [*text]

    def tagged(self, ids: Sequence[int], tag: str) -> list[int]:
        raise UsageError(f"tag {tag}: this base has no tags of target languages")

    def reading(self, text: str) -> str:
        return text

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(self.piece(index) for index in ids)

    def piece(self, index: int) -> str:
        return chr(index - FIRST) if index >= FIRST else ""


class HostedBackbone(Backbone[Any, Any]):
    """A base behind an address. Whatever reads states is refused."""

    writer: ClassVar[str] = "chat"
    modes: ClassVar[tuple[str, ...]] = MODES
    hidden_size = context_size = word_size = 1
    vocab_size = 1

    def __init__(self, address: Address) -> None:
        """address: where the base is asked."""
        super().__init__()
        self.address = address
        # it has no weights, and yet a place where nothing is computed
        self.weights = nn.Parameter(torch.zeros(0), requires_grad=False)

    def _refused(self) -> NoReturn:
        raise UsageError(
            f"{self.address}: this base writes whole texts and shows no states, and what is wanted "
            "reads them: take a model folder"
        )

    def encode(self, src: Tensor, src_len: Tensor) -> Any:
        self._refused()

    def start(self, encoded: Any) -> Any:
        self._refused()

    def reordered(self, state: Any, rows: Tensor) -> Any:
        self._refused()

    def step(self, prev: Tensor, state: Any, encoded: Any) -> tuple[Any, Tensor, Tensor]:
        self._refused()

    def embed(self, ids: Tensor) -> Tensor:
        self._refused()

    def readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        self._refused()

    def forced(self, encoded: Any, tgt: Tensor) -> tuple[Tensor, Tensor]:
        self._refused()

    def alphas(self, encoded: Any, tgt: Tensor) -> Tensor:
        self._refused()


def open_model(place: str) -> Model:
    """The model of an address. Nothing is asked there yet.

    place: the address, without "openai:".

    Raises UsageError for what is no address."""
    address = parse_address(place)
    digest = hashlib.sha256(str(address).encode()).hexdigest()[:16]
    config = {
        "src_lang": address.src_lang,
        "tgt_lang": address.tgt_lang,
        "max_subwords": LONGEST,
        "model": {"kind": "hosted"},
        CHECKSUMS: {},
    }
    backbone = HostedBackbone(address).eval()
    return Model(backbone, Characters(), config, digest, Path(f"openai:{place}"), digest)
