"""Characters that a source vocabulary lacks, copied from the source (OURS).

A vocabulary without byte fallback, as Marian's, has nothing for a letter or a sign that was rare
where it was made. The model reads <unk> there, and never writes it. So the word of the source that
holds such a letter takes the place of the target word that attends to it most. A sign, or a word
that no target word attends to most, is put beside the word that attends to it more than the others
do. What the translation has anyway is not copied again."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from tmnmt.codes.record import Source, plain_of
from tmnmt.filters.contract import Filter, ModelOutput, Undo
from tmnmt.filters.target_words import Word, is_word, target_words
from tmnmt.records import decode_subwords
from tmnmt.vocab import UNK, PairVocabulary, Vocabulary

if TYPE_CHECKING:
    from torch import Tensor


class Span(NamedTuple):
    """Neighbouring source subwords that are copied together: the first, the one behind the last,
    and the text."""

    first: int
    end: int
    text: str


class UnknownWords(Filter, Undo):
    """Copies words with characters that the vocabulary lacks."""

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        vocab = self.reader.vocab
        if not isinstance(vocab, PairVocabulary) or not _unknown(plain_of(source), vocab):
            return source, None
        return source, self

    def restore_piece(self, output: ModelOutput) -> str:
        vocab, text = self.reader.vocab, output.text
        words = [] if vocab is None else unknown_words(output.model_text, vocab)
        spans = [span for span in words if span.text not in text]
        if not spans or output.attention is None:
            return text
        attention, target = output.attention(), target_words(output.subwords)
        for span in spans:
            place(span, target, attention)
        return " ".join("".join(word.text for word in target).split())


def lacking(text: str, vocab: Vocabulary) -> int:
    """How many characters of a source a vocabulary lacks.

    text: the source.
    vocab: the vocabulary."""
    return sum(len(part) for part in _unknown(text, vocab).values())


def unknown_words(text: str, vocab: Vocabulary) -> list[Span]:
    """What is copied of a source: signs, and letters with those around them.

    text: the source.
    vocab: the vocabulary."""
    texts = decode_subwords(vocab.source_pieces(text))
    spans = dict[int, Span]()
    for index, part in _unknown(text, vocab).items():
        first, end = index, index + 1
        if is_word(part):
            while first and not texts[first].startswith(" ") and is_word(texts[first - 1]):
                first -= 1
            while end < len(texts) and not texts[end].startswith(" ") and is_word(texts[end]):
                end += 1
        spans[first] = Span(first, end, "".join(texts[first:end]).strip())
    return list(spans.values())


def _unknown(text: str, vocab: Vocabulary) -> dict[int, str]:
    """The texts of the subwords that are unknown, by their place."""
    texts = zip(vocab.encode_source(text), decode_subwords(vocab.source_pieces(text)), strict=True)
    return {
        index: part.strip() for index, (i, part) in enumerate(texts) if i == UNK and part.strip()
    }


def place(span: Span, words: list[Word], attention: Tensor) -> None:
    """Puts what is copied in the place of words, or beside one.

    span: what is copied.
    words: the words of the target, which are changed.
    attention: (T + 1, S + 1), how much every target subword, and </s>, looked at every subword of
    the source and its end."""
    rows = [attention[word.first : word.end].mean(0) for word in words]
    shares = [float(row[span.first : span.end].sum()) for row in rows]
    tops = [int(row.argmax()) for row in rows]
    best = max(
        (index for index, word in enumerate(words) if not word.copied),
        key=shares.__getitem__,
        default=-1,
    )

    def attends(index: int) -> bool:
        word, inside = words[index], span.first <= tops[index] < span.end
        return inside and not word.copied and is_word(word.text) and bool(word.text)

    if is_word(span.text) and any(map(attends, range(len(words)))):
        index = max(filter(attends, range(len(words))), key=shares.__getitem__)
        words[index].text = (" " if words[index].text.startswith(" ") else "") + span.text
        words[index].copied = True
        for side in (
            range(index + 1, len(words)),
            range(index - 1, -1, -1),
        ):  # the rest of the same name
            for neighbour in takewhile(attends, side):
                words[neighbour].text = ""
        return
    follows = tops[best] < span.first and words[best].text != ""
    new = Word(words[best].first, words[best].end, f" {span.text}", copied=True)
    words.insert(best + follows, new)
