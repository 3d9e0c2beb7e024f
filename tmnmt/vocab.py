"""Subwords: one sentencepiece model with byte fallback, so that no character is unknown; or, of an
imported model, one for the source and one for the target, and a list of the pieces it knows."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import sentencepiece

from tmnmt.compatibility import plainer
from tmnmt.contractions import knows_contractions, spelt_out
from tmnmt.errors import DataError, ModelError, UsageError
from tmnmt.quotes import STRAIGHT, apart, paired

PAD, BOS, EOS, UNK = 0, 1, 2, 3
FIRST = 4  # the first subword that is text
# Signs that small vocabularies lack, and plain ones of the same length that a source may be read
# with instead.
PLAIN_SIGNS = {
    **dict.fromkeys("‘’‛ʼʹ′", "'"),
    **dict.fromkeys("“”„‟″", '"'),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    "·": "-",
    "•": "-",
}
SPM_FILE = "spm.model"
SOURCE_FILE, TARGET_FILE, PIECES_FILE = "source.spm", "target.spm", "pieces.json"


class Vocabulary:
    """Text to subword ids and back; ids 0-3 are padding, <s>, </s> and unk. One that is not learned
    (`is_learned`) says nothing of what its reader knows, and only measures how long a text is."""

    is_learned: ClassVar[bool] = True

    def __init__(self, model: bytes) -> None:
        """model: the content of a sentencepiece model.

        Raises RuntimeError where it is none."""
        self._spm = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.model = model

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """The vocabulary in a file.

        path: the file, a sentencepiece model.

        Raises ModelError where it cannot be read, or is no vocabulary."""
        try:
            model = path.read_bytes()
        except OSError as error:
            raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
        return cls.parse(model, path)

    @classmethod
    def parse(cls, model: bytes, path: Path) -> Vocabulary:
        """The vocabulary with this content.

        model: the content of a sentencepiece model.
        path: the file that it was read from, for messages.

        Raises ModelError where it is none."""
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
        """A vocabulary that is learned from texts.

        texts: the texts.
        size: how many subwords it has at most.

        Raises DataError where the size is too small for the characters of the texts, or these have
        none."""
        buffer = io.BytesIO()
        try:
            cls._train(iter(texts), buffer, size)
        except RuntimeError as error:
            reason = str(error).splitlines()[-1]
            raise DataError(
                f"no vocabulary of {size} subwords can be learned from the texts: {reason}"
            ) from error
        return cls(buffer.getvalue())

    @staticmethod
    def _train(texts: Iterator[str], buffer: io.BytesIO, size: int) -> None:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=texts,
            model_writer=buffer,
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
        """How many characters the longest subword has."""
        return max(len(self.piece(index)) for index in range(len(self)))

    @property
    def files(self) -> dict[str, bytes]:
        """The files of a model folder that hold the vocabulary, by their names."""
        return {SPM_FILE: self.model}

    @property
    def source_side(self) -> tuple[bytes, list[str]]:
        """The sentencepiece model of sources, and the pieces that have a number, from 4 on."""
        return self.model, [self.piece(index) for index in range(FIRST, len(self))]

    @property
    def target_side(self) -> tuple[bytes, list[str]]:
        """The sentencepiece model of targets, and the pieces that have a number, from 4 on."""
        return self.source_side

    def encode(self, text: str) -> list[int]:
        """The subword ids of a target, without <s> and </s>.

        text: the target."""
        return list(self._spm.encode(text))

    def encode_source(self, text: str) -> list[int]:
        """The subword ids of a source, without </s>. Contractions that the vocabulary does not know
        are spelt out. Signs that it lacks are read as plain ones (`PLAIN_SIGNS`), and straight
        quotes as curly ones where it lacks the former. A word behind a quote is read as it is
        alone.

        text: the source."""
        return self.encode(self.reading(text))

    def pieces(self, text: str) -> list[str]:
        """The subwords of a target, as the vocabulary writes them.

        text: the target."""
        return list(self._spm.encode(text, out_type=str))

    def tagged(self, ids: Sequence[int], tag: str) -> list[int]:
        """The subwords of a source that ask for another target language than the model's own.

        ids: the subword ids of the source.
        tag: the tag of the language, as the model writes it.

        Raises UsageError where the model has no such tag."""
        raise UsageError(f"tag {tag}: this model has one target language, and no tags")

    def source_pieces(self, text: str) -> list[str]:
        """The subwords of a source; "" for one that stands for none of its text.

        text: the source."""
        return self.pieces(self.reading(text))

    def reading(self, text: str) -> str:
        """A source as it is read.

        text: the source."""
        text = plainer(text)
        return self._quoted(text if self._knows_contractions else spelt_out(text))

    def _quoted(self, text: str) -> str:
        """A source with its quotes as the vocabulary knows them, and words behind these as they are
        alone."""
        if STRAIGHT in text and self._reads_curly_quotes:
            text = paired(text)
        return apart(text)

    @cached_property
    def _reads_curly_quotes(self) -> bool:
        """Whether it has curly quotes, and spells straight ones in bytes."""
        curly, straight = (self.pieces(f"a {quote} a")[1:-1] for quote in '“"')
        return len(curly) == 1 and len(straight) > 1

    @cached_property
    def _knows_contractions(self) -> bool:
        return knows_contractions(map(self.piece, range(len(self))))

    def decode(self, ids: Iterable[int]) -> str:
        """The text of subwords.

        ids: the subword ids, of which <s>, </s> and padding are left out."""
        return str(self._spm.decode([i for i in ids if i > UNK]))

    def piece(self, index: int) -> str:
        """A subword as the vocabulary writes it, with "▁" for a leading space.

        index: the id of the subword."""
        return str(self._spm.id_to_piece(index))


class PairVocabulary(Vocabulary):
    """A sentencepiece model for each side, and the pieces that have a number: other pieces are
    unknown. Numbers 0 to 3 are those of every vocabulary."""

    def __init__(
        self,
        source: bytes,
        target: bytes,
        pieces: Sequence[str],
        source_pieces: Sequence[str] | None = None,
        prefix: str = "",
    ) -> None:
        """source: the content of the sentencepiece model of sources.
        target: the content of the sentencepiece model of targets.
        pieces: the pieces of targets, from number 4 on.
        source_pieces: the pieces of sources, from number 4 on; None where they are those of
        targets.
        prefix: a piece that begins every source, such as the tag of the language that a
        multilingual model translates to; "" where there is none.

        Raises ValueError for a prefix that is none of the pieces of sources."""
        super().__init__(target)
        self._source = sentencepiece.SentencePieceProcessor(model_proto=source)
        self._files = {
            SOURCE_FILE: source,
            TARGET_FILE: target,
            PIECES_FILE: json.dumps(
                {"target": list(pieces), "source": source_pieces and list(source_pieces)},
                ensure_ascii=False,
            ).encode(),
        }
        self.model = b"".join(self._files.values()) + prefix.encode()  # all that ids depend on
        self._pieces = ["<pad>", "<s>", "</s>", "<unk>", *pieces]
        self._numbers = _numbers(pieces)
        self._source_numbers = _numbers(source_pieces) if source_pieces else self._numbers
        if prefix and prefix not in self._source_numbers:
            raise ValueError(f"{prefix} is no piece of the source vocabulary")
        self._prefix = [self._source_numbers[prefix]] if prefix else []
        self._plain = str.maketrans(
            {
                sign: plain
                for sign, plain in PLAIN_SIGNS.items()
                if self._lacks(sign) and not self._lacks(plain)
            }
        )

    def _lacks(self, sign: str) -> bool:
        """Whether a source with this character in it is read as unknown there."""
        pieces = self._source.encode(f"a{sign}a", out_type=str)
        return any(piece not in self._source_numbers for piece in pieces)

    @classmethod
    def read(cls, files: Mapping[str, bytes], prefix: str = "") -> PairVocabulary:
        """The vocabulary that a model folder holds.

        files: the contents of its files, by their names, as `files` gave them.
        prefix: a piece that begins every source; "" where there is none.

        Raises ValueError or RuntimeError where it is damaged."""
        tables = json.loads(files[PIECES_FILE])
        sides = tables["target"], tables["source"]
        for pieces in sides:
            if not isinstance(pieces, list | None) or not all(
                isinstance(piece, str) for piece in pieces or ()
            ):
                raise ValueError(f"{PIECES_FILE} holds no lists of pieces")
        return cls(files[SOURCE_FILE], files[TARGET_FILE], sides[0], sides[1], prefix)

    @property
    def files(self) -> dict[str, bytes]:
        return self._files

    @classmethod
    def combine(cls, first: Vocabulary, second: Vocabulary, prefix: str = "") -> PairVocabulary:
        """A vocabulary with the sources of one and the targets of another.

        first: the vocabulary of the sources.
        second: the vocabulary of the targets.
        prefix: the piece that begins every source in the first; "" where there is none."""
        (source, source_pieces), (target, pieces) = first.source_side, second.target_side
        return cls(source, target, pieces, source_pieces, prefix)

    @property
    def source_side(self) -> tuple[bytes, list[str]]:
        return self._files[SOURCE_FILE], [*self._source_numbers]

    @property
    def target_side(self) -> tuple[bytes, list[str]]:
        return self._files[TARGET_FILE], self._pieces[FIRST:]

    @property
    def source_words(self) -> int:
        """How many words the source's vocabulary has; 0 where it is that of the target."""
        shared = self._source_numbers is self._numbers
        return 0 if shared else FIRST + len(self._source_numbers)

    def __len__(self) -> int:
        return len(self._pieces)

    def encode(self, text: str) -> list[int]:
        return [self._numbers.get(piece, UNK) for piece in self._spm.encode(text, out_type=str)]

    def encode_source(self, text: str) -> list[int]:
        pieces = self._source.encode(self.reading(text), out_type=str)
        return self._prefix + [self._source_numbers.get(piece, UNK) for piece in pieces]

    def tagged(self, ids: Sequence[int], tag: str) -> list[int]:
        if not self._prefix:
            return super().tagged(ids, tag)
        number = self._source_numbers.get(f">>{tag}<<")
        if number is None:
            tags = sorted(p[2:-2] for p in self._source_numbers if re.fullmatch(">>.+<<", p))
            raise UsageError(f"tag {tag} is none of this model's: {', '.join(tags)}")
        return [number, *ids[1:]]

    def reading(self, text: str) -> str:
        return plainer(text).translate(self._plain)

    def source_pieces(self, text: str) -> list[str]:
        pieces = self._source.encode(self.reading(text), out_type=str)
        return [""] * len(self._prefix) + list(pieces)

    def decode(self, ids: Iterable[int]) -> str:
        text = str(self._spm.decode_pieces([self._pieces[i] for i in ids if i > UNK]))
        return text.replace("▁", " ").strip()  # of pieces that only the source's model knows

    def piece(self, index: int) -> str:
        return self._pieces[index]


def _numbers(pieces: Sequence[str]) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(pieces, FIRST)}
