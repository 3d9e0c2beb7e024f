"""The joint subword vocabulary: sentencepiece with byte fallback, so that no character
is unknown."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import sentencepiece

from tmnmt.errors import DataError, ModelError

PAD, BOS, EOS, UNK = 0, 1, 2, 3


class Vocabulary:
    """Text to subword ids and back; ids 0-3 are padding, <s>, </s> and unk."""

    def __init__(self, model: bytes) -> None:
        self._spm = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.model = model

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        try:
            model = path.read_bytes()
        except OSError as error:
            raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
        return cls.of(model, path)

    @classmethod
    def of(cls, model: bytes, path: Path) -> Vocabulary:
        """The vocabulary whose content was read from `path`. Raises ModelError where it is none."""
        try:
            if model:
                return cls(model)
        except (RuntimeError, ValueError) as error:
            raise ModelError(
                f"{path}: no sentencepiece vocabulary: damaged, or another file"
            ) from error
        raise ModelError(f"{path}: no sentencepiece vocabulary: the file is empty")

    @classmethod
    def train(cls, texts: Iterable[str], size: int) -> Vocabulary:
        """Learned from `texts`; DataError where `size` is too small for their characters, or they
        have none."""
        out = io.BytesIO()
        try:
            cls._train(iter(texts), out, size)
        except RuntimeError as error:
            reason = str(error).splitlines()[-1]
            raise DataError(
                f"no vocabulary of {size} subwords can be learned from the texts: {reason}"
            ) from error
        return cls(out.getvalue())

    @staticmethod
    def _train(texts: Iterator[str], out: io.BytesIO, size: int) -> None:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=texts,
            model_writer=out,
            vocab_size=size,
            model_type="bpe",
            byte_fallback=True,
            character_coverage=0.9998,
            normalization_rule_name="identity",
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            unk_id=UNK,
            remove_extra_whitespaces=True,
            minloglevel=2,
            max_sentence_length=20000,
            num_threads=2,
            hard_vocab_limit=False,
        )

    def __len__(self) -> int:
        return int(self._spm.vocab_size())

    @cached_property
    def longest(self) -> int:
        """The characters of the longest subword."""
        return max(len(self.piece(index)) for index in range(len(self)))

    def encode(self, text: str) -> list[int]:
        """Subword ids without <s> and </s>."""
        return list(self._spm.encode(text))

    def decode(self, ids: Iterable[int]) -> str:
        """The text of subword ids; <s>, </s> and padding are left out."""
        return str(self._spm.decode([i for i in ids if i > UNK]))

    def piece(self, index: int) -> str:
        """The subword as written in the vocabulary, "▁" for a leading space."""
        return str(self._spm.id_to_piece(index))
