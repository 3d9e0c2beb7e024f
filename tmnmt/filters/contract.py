"""What a filter promises. A filter changes a text before a model reads it, and its undo takes that
back in what the model wrote.

    source, undo = filter.prepare(source)      undo is None where there is nothing to take back
    target = undo.restore(target)

A filter knows no other filter, no memory and nothing of the engine. `Reader` is all that it may ask
about the model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from tmnmt.codes.form import DASHES, READ_AS
from tmnmt.codes.placeholders import Finder
from tmnmt.codes.record import Source, Text
from tmnmt.languages import data_for

if TYPE_CHECKING:
    from torch import Tensor

    from tmnmt.vocab import Vocabulary

# "text": what the text is, for memories and checks, too; "model": what the model alone reads
Level = Literal["text", "model"]
MASK_NAME = re.compile(r"[0-9]+|\b[A-Z]\b")  # what a mask may be: a number, or a letter by itself


@dataclass(frozen=True)
class Reader:
    """Who reads the text: a model, or a person alone.

    vocab: the vocabulary of the model; None for a person alone.
    lang: the code of the text's language.
    keep: finds what the user wants to be kept.
    is_person: whether a person has written the target, whatever a model would make of the source.
    tgt_lang: the code of the language of its translation.
    typography: the language and region that what is written is set in; "" sets nothing."""

    vocab: Vocabulary | None = None
    lang: str = ""
    keep: tuple[Finder, ...] = ()
    is_person: bool = False
    tgt_lang: str = ""
    typography: str = ""

    def reads(self, covered: str) -> str | None:
        """The character that a model reads in place of a sign that is copied; None where it reads a
        mask.

        covered: the sign, as the text has it."""
        if covered in READ_AS or self.vocab is None or covered not in DASHES:
            return READ_AS.get(covered)
        return "-" if self.vocab.source_pieces(covered)[-1:] == ["▁-"] else None

    def counts(self, words: str) -> bool:
        """Whether a text ends in a word that says something else before a number, as English No
        does.

        words: the text."""
        last = words.split()[-1:]
        return bool(last) and last[0].lower() in data_for(self.lang).before_numbers.split()

    def size(self, word: str) -> int:
        """How many subwords a word of the source has; how many letters, where there is no
        vocabulary.

        word: the word."""
        return len(word if self.vocab is None else self.vocab.encode_source(word))


@dataclass(frozen=True)
class ModelOutput:
    """What a model wrote for a text, or for a piece of it, before the codes have places in it.

    text: what it wrote.
    model_text: what it has read for it.
    masks: what stands for placeholders in all that it has read.
    subwords: the subwords of what it wrote.
    attention: gives (T + 1, S + 1), how much each of these, and the end, looked at every subword of
    the source and its end; None where that is not known.
    is_typed: whether a person has typed how it begins, and perhaps all of it."""

    text: str
    model_text: str
    masks: frozenset[str] = frozenset()
    subwords: Sequence[str] = ()
    attention: Callable[[], Tensor] | None = None
    is_typed: bool = False

    @property
    def loses_masks(self) -> bool:
        """Whether a mask of what was read does not stand exactly once in what was written."""
        if not self.masks:
            return False
        times = Counter(MASK_NAME.findall(self.text))
        return any(
            name in self.masks and times[name] != 1 for name in MASK_NAME.findall(self.model_text)
        )


class Undo:
    """Takes back what one filter did to one text. What is not overridden changes nothing.

    is_recased: whether the memories are asked for the text in other letters.
    reading: another reading, which the model tries where it doubts the text; None where there is
    none.
    trailing: subwords that a translation does not end with.
    parts: the parts of what the model reads that may be translated one by one, as `retry` says."""

    is_recased: bool = False
    reading: Reading | None = None
    trailing: frozenset[str] = frozenset()
    parts: Sequence[str] = ()

    def restore(self, target: Text) -> Text:
        """The whole target as it is from here on.

        target: the target, in which all codes have their places."""
        return target

    def typeset(self, target: Text) -> Text:
        """The whole target as its language sets text; not asked where a person has typed of it.

        target: the target, in which all codes have their places."""
        return target

    def restore_piece(self, output: ModelOutput) -> str:
        """The text of a piece of the target as it is from here on.

        output: what the model wrote for the piece."""
        return output.text

    def restore_tokens(self, tokens: Sequence[str]) -> Sequence[str]:
        """The subwords of the target as explanations show them; as many as there are.

        tokens: the subwords."""
        return tokens

    def refuses(self, output: str, model_text: str) -> bool:
        """Whether what was written for a text that no memory has is no translation, so that the
        text stays.

        output: what the model wrote.
        model_text: what the model has read."""
        return False

    def barred(self, model_text: str) -> frozenset[str]:
        """The characters that no translation of a text, or of a piece of it, has.

        model_text: what the model reads of the text or piece."""
        return frozenset()

    def retry(self, output: str) -> Sequence[str]:
        """The parts of the text that are translated one by one, because what was written for all of
        it lacks something. There are none where it stands.

        output: what the model wrote for the whole text."""
        return ()

    def display(self, text: str) -> str:
        """A part of a target as a person who types sees it.

        text: the part, as the model wrote it."""
        return text

    def to_target(self, text: str) -> str:
        """The beginning of a target as the model would write it.

        text: the beginning, as a person typed it."""
        return text

    def query(self, text: str) -> str:
        """A part of the source as the memories are asked for what is like it.

        text: the part, as the source has it."""
        return text


@dataclass(frozen=True)
class Reading:
    """Another way to read a text.

    text: the text as it is read.
    undo: takes that back in what the model writes for it."""

    text: str
    undo: Undo


class Split(Undo):
    """Of a text that is translated as several texts, each of which goes through all filters.

    texts: these texts.
    is_optional: whether the whole could be translated at once, too, as is done where a memory has
    a pair that is like it and that has not the same texts."""

    texts: Sequence[Text] = ()
    is_optional: bool = False

    def pairs(self, src: Text, tgt: Text) -> list[tuple[Text, Text] | None]:
        """For each of the texts the pair of it in a pair of the whole; None where that has none.

        src: the source of the whole pair.
        tgt: its target."""
        return [None for _ in self.texts]

    def join(self, targets: Sequence[Text]) -> Text:
        """The target of the whole.

        targets: the targets of the texts, in order."""
        raise NotImplementedError


class Filter:
    """One repair. The docs show the first line of its docstring. One that has to remember nothing
    of a text is its own undo.

    level: "text" changes what the text is, for memories and checks, too; "model" changes what the
    model alone reads.
    is_for_people: whether it also works where a person has written the target."""

    level: ClassVar[Level] = "model"
    is_for_people: ClassVar[bool] = False

    def __init__(self, reader: Reader) -> None:
        """reader: who reads the text."""
        self.reader = reader

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        """The text as what follows sees it, and what takes the change back; None where there is
        nothing to take back. Behind the placeholders a filter keeps every code, and every letter
        outside the codes has one letter in its place, so that each piece of the text knows where it
        comes from.

        source: the text; a `str` can have no codes, a `Text` may."""
        raise NotImplementedError
