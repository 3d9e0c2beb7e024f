"""A shortlist: which target words the words of a source may become, so that a step compares some
thousand words and not a whole vocabulary. It is a file of the model folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load
from torch import Tensor

from tmnmt.config.bounds import MOST_WORDS_EACH
from tmnmt.durable import write
from tmnmt.errors import ModelError, UsageError
from tmnmt.models.folder import (
    CHECKSUMS,
    MOST_HEADER_BYTES,
    SHORTLIST_FILE,
    UNREADABLE,
    Model,
    read_checked,
    reason_of,
    stamp,
)
from tmnmt.models.weights import packed
from tmnmt.vocab import EOS, FIRST, PairVocabulary, Vocabulary


@dataclass(frozen=True)
class Shortlist:
    """Which target words the words of a source may become.

    of_source: (S, n) int32 or int64, the target words of every source word, PAD where there are
    fewer.
    always: (m,) int64, the words of every list.
    shared: whether source and target have the same numbers."""

    of_source: Tensor
    always: Tensor
    shared: bool  # both sides have one vocabulary: a word may stay what it is

    def words(self, sources: Iterable[int], extra_words: Iterable[Tensor] = ()) -> Tensor:
        """(k,) int64, ascending: the words that some sentences may be translated with.

        sources: the source words of the sentences.
        extra_words: other words that they may be translated with, such as those of pairs."""
        source_ids = torch.tensor(sorted(set(sources)), dtype=torch.int64)
        lists = [
            self.of_source[source_ids].flatten(),
            self.always,
            *(ids.flatten() for ids in extra_words),
        ]
        candidates = torch.cat([*lists, source_ids] if self.shared else lists)
        # a mark for every word, since to sort some thousand takes three times as long
        is_there = torch.zeros(int(candidates.max()) + 1, dtype=torch.bool)
        is_there[candidates] = True
        has_end = bool(is_there[EOS : EOS + 1].any())
        is_there[:FIRST] = False
        is_there[EOS : EOS + 1] = has_end
        return is_there.nonzero()[:, 0]

    def save(self, folder: Path) -> None:
        """Writes the shortlist to a model folder.

        folder: the folder."""
        tensors = {"source": self.of_source.to(torch.int32), "always": self.always.to(torch.int32)}
        write(folder / SHORTLIST_FILE, packed(tensors))
        stamp(folder)

    @staticmethod
    def exists(model: Model) -> bool:
        """Whether a model folder has a shortlist.

        model: the model of the folder."""
        return SHORTLIST_FILE in model.config[CHECKSUMS]

    @classmethod
    def by_default(cls, model: Model) -> Shortlist | None:
        """The shortlist of a student, which reads it where nothing else is said; None for other
        models, and where there is none.

        model: the model of the folder.

        Raises the errors of `load`."""
        from tmnmt.models.student import Student

        is_read = isinstance(model.backbone, Student) and cls.exists(model)
        return cls.load(model) if is_read else None

    @classmethod
    def load(cls, model: Model) -> Shortlist:
        """The shortlist of a model folder.

        model: the model of the folder.

        Raises UsageError where it has none. Raises ModelError for a file that belongs to another
        model."""
        path = model.folder / SHORTLIST_FILE
        if not cls.exists(model):
            raise UsageError(
                f"{model.folder}: this model has no shortlist; tmnmt shortlist makes one"
            )
        rows, size = source_size(model.vocab), len(model.vocab)
        limit = 4 * (rows * MOST_WORDS_EACH + size) + MOST_HEADER_BYTES
        content = read_checked(path, model.config, limit, "no shortlist of this model is")
        try:
            tensors = load(content)
            of_source, always = tensors["source"].to(torch.int32), tensors["always"].long()
            if of_source.dim() != 2 or len(of_source) != rows or always.dim() != 1:
                raise ValueError("it is of another size")
            for ids in (of_source, always):
                if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < size:
                    raise ValueError("it has words that the model has not")
        except UNREADABLE as error:
            raise ModelError(f"{path}: no shortlist of this model: {reason_of(error)}") from error
        return cls(of_source, always, shares_words(model.vocab))


def shares_words(vocab: Vocabulary) -> bool:
    """Whether source and target have the same numbers.

    vocab: the vocabulary."""
    return not (isinstance(vocab, PairVocabulary) and vocab.source_words)


def source_size(vocab: Vocabulary) -> int:
    """How many words sources may have.

    vocab: the vocabulary."""
    source_words = vocab.source_words if isinstance(vocab, PairVocabulary) else 0
    return source_words or len(vocab)
