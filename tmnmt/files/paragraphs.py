"""Plain text with paragraphs, whose units are sentences. White space between them stays as it is.

Paragraphs end at an empty line. A line end inside one is a mere line break where the text is
wrapped: where the first word of the next line had not fitted, and the longest line has 50 to 120
characters. Other line ends, and marks of lists, also begin a paragraph."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tmnmt.codes.placeholders import ALL_FINDERS
from tmnmt.errors import FormatError
from tmnmt.files.sentences import check_language, has_rules, sentences
from tmnmt.files.texts import string_of, unit_of
from tmnmt.files.unit import Filling, Unit
from tmnmt.files.whole import BOM, Edit, WholeFile
from tmnmt.formats.encoding import byte_order_mark

_NARROWEST, _WIDEST = 50, 120  # characters in the longest line of wrapped text
_LINE = re.compile(r"[^\n]+\n?|\n")
_FIRST_WORD = re.compile(r"\s*(\S*)")
_STOP = "[.?!:;\u2026\u3002\uff01\uff1f][\"'\u2019\u201d\u00bb)\\]]*"
_END = re.compile(rf"{_STOP}\s*$")
_INSIDE = re.compile(rf"{_STOP}\s*\w")
_MARK = re.compile(r"\s*(?:[-*+•–—>#]+|\(?(?:\d{1,3}[.)]|[A-Za-z]\)))\s+(?=\S)")


class _Line(NamedTuple):
    start: int
    text: str  # without blanks at its end


class ParagraphFile(WholeFile[tuple[int, int]]):
    """A text file with running text, in UTF-8 or as its byte-order mark says. Its source language
    must be set: sentences need it."""

    kind = "paragraphs"
    title = "plain text"
    sentences = has_running_text = True

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By the name; but a text file may also have a segment a line, so this must be asked
        for."""
        return path.suffix.lower() == ".txt"

    def _encoding(self, data: bytes) -> str:
        encoding = byte_order_mark(data)[0]
        if b"\0" in data and encoding == "utf-8":
            raise FormatError(f"{self.path}: no text: it has bytes of value 0")
        return encoding

    def _unit(self, slot: tuple[int, int]) -> Unit:
        start, end = slot
        return unit_of(
            self.text[start:end], finders=ALL_FINDERS, breaks=False, line=self.line(start)
        )

    def _text_place(self, slot: tuple[int, int]) -> tuple[int, int] | None:
        return slot

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        for (start, end), filling in zip(self._slots, fillings, strict=True):
            if filling is not None:
                yield Edit(start, end, string_of(filling.target))

    @cached_property
    def _slots(self) -> list[tuple[int, int]]:
        """Where the sentences with a letter or a digit stand, without the blanks around them."""
        check_language(self.src_lang)
        spans = list[tuple[int, int]]()
        for start, end in paragraphs(self.text):
            offset = start
            for sentence in sentences(self.text[start:end], self.src_lang):
                inside = sentence.strip()
                if _has_words(inside):
                    begin = offset + sentence.index(inside)
                    spans.append((begin, begin + len(inside)))
                offset += len(sentence)
        return spans


def paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Where the paragraphs of a text are, in characters, without marks of lists and blanks in front
    of them.

    text: the text."""
    block = list[_Line]()
    for match in _LINE.finditer(text, 1 if text.startswith(BOM) else 0):
        if line := match[0].rstrip():
            block.append(_Line(match.start(), line))
        else:
            yield from _of_block(block)
            block = []
    yield from _of_block(block)


def is_running(text: str, language: str) -> bool:
    """Whether a text is running text, and no list with a segment a line: at least half of it stands
    in paragraphs of several sentences, or of sentences that go on in the next line, and a third of
    its paragraphs are such.

    text: the text.
    language: the code of its language. Without rules for sentences of it no text is running
    text."""
    if not has_rules(language):
        return False
    paragraph_texts = [text[start:end] for start, end in paragraphs(text)]
    running = [paragraph for paragraph in paragraph_texts if _is_running(paragraph, language)]
    return bool(running) and (
        sum(map(len, paragraph_texts)) <= 2 * sum(map(len, running))
        and len(paragraph_texts) <= 3 * len(running)
    )


def _is_running(paragraph: str, language: str) -> bool:
    lines = paragraph.splitlines()
    if any(not _END.search(line) for line in lines[:-1]):
        return True
    if not _INSIDE.search(paragraph):
        return False
    return sum(map(_has_words, sentences(paragraph, language))) > len(lines)


def _has_words(sentence: str) -> bool:
    return any(map(str.isalnum, sentence))


def _of_block(block: list[_Line]) -> Iterator[tuple[int, int]]:
    """The paragraphs among lines with none empty."""
    width = max((len(line.text) for line in block), default=0)
    start = -1
    for index, line in enumerate(block):
        if start < 0:
            mark = _MARK.match(line.text)
            start = line.start + (mark.end() if mark else len(line.text) - len(line.text.lstrip()))
        if index + 1 == len(block) or not _is_wrapped(line.text, block[index + 1].text, width):
            yield start, line.start + len(line.text)
            start = -1


def _is_wrapped(line: str, following: str, width: int) -> bool:
    """Whether the line ends only since the first word of the next one did not fit."""
    word = _FIRST_WORD.match(following)
    required_width = len(line) + 1 + len(word[1] if word else "")
    return _NARROWEST <= width <= _WIDEST and required_width > width and not _MARK.match(following)
