"""Markdown: a unit is the text of a paragraph, an item, a heading or a cell of a table, or a
sentence of it. Emphasis, links, code and tags inside are codes; the words of an image are a unit of
their own, and HTML between blocks is read as in a page.

Left alone: blocks of code, definitions of links, and front matter, but for what the user names.
What is decided so:
- A target is written on one line, whatever its source was.
- Signs in it are escaped where they would be markup; and where * would not be read as it is meant,
  as between two letters, it is written as <em> or <strong>."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from tmnmt.codes.placeholders import ALL_FINDERS, by_pattern
from tmnmt.codes.record import Part, Text, join_parts
from tmnmt.errors import FormatError
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.html import HtmlFile, Slot, in_order, parts_of
from tmnmt.files.html_syntax import Attribute
from tmnmt.files.markdown_syntax import BY_WORDS, Block, Reader, words
from tmnmt.files.pieces import Piece, spans, texts
from tmnmt.files.texts import string_of
from tmnmt.files.whole import Edit, WholeFile
from tmnmt.formats.clean_codes import between_words
from tmnmt.formats.encoding import byte_order_mark

MARKDOWN = "markdown"  # the form of codes whose markup is Markdown
# names of footnotes and of pictures, templates, attributes
_VERBATIM = r"\[\^[^\]\s]{1,100}\]|:[a-z0-9_+-]{2,40}:|\{%[^{}]{1,200}%\}|\{[#.][^{}]{1,80}\}"
_FINDERS = (*ALL_FINDERS, by_pattern(_VERBATIM))
_SIGNS = r"[\\`*_\[\]<&~|]|!\Z"  # that may be markup among words
_HASHES = re.compile(r"(?<=\s)#+\s*\Z")
_NUMBER = re.compile(r"\d{1,9}(?=[.)](?:\s|$))")
_BLOCK = re.compile(r"(?:#{1,6}|[-+*])(?:\s|$)|>|=+\s*$|-+\s*$|```|~~~|\[[^\]]*\]:")
_REFERENCE_LINK = re.compile(r"\]\[[^\]]")  # not by its words
_BY_LABEL = re.compile(r"\](?:\[.*\])?", re.DOTALL)
_TAGS = {"*": "em", "_": "em", "**": "strong", "__": "strong", "~~": "del"}


@dataclass(slots=True)
class MarkdownSlot(Slot):
    """`begins`: it is where a paragraph begins. `is_cell`: it is in a table. `inside`: there are
    tags before it, which may be around it."""

    begins: bool = False
    is_cell: bool = False
    inside: bool = False


class MarkdownFile(HtmlFile):
    """A Markdown file, in UTF-8 or as its byte-order mark says."""

    kind = "markdown"
    title = FILE_KINDS["markdown"].title
    finders = _FINDERS
    required_signs = ""  # that always have a backslash

    def __init__(self, path: Path, src_lang: str = "", tgt_lang: str = "") -> None:
        WholeFile.__init__(self, path, src_lang, tgt_lang)
        self._reader = Reader()

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By the name."""
        return FILE_KINDS[cls.kind].has_name(path)

    def _encoding(self, data: bytes) -> str:
        return byte_order_mark(data)[0]

    @cached_property
    def _slots(self) -> list[Slot]:
        slots = list[Slot]()
        for block in self._reader.blocks(self.text):
            if isinstance(block, Block):
                slots += self._of_block(block)
                continue
            try:
                slots += self._of_html(block.start, block.stop)
            except FormatError:
                continue  # a tag that ends in another block
        return [*self._of_front_matter(), *in_order(slots)]

    def _of_block(self, block: Block) -> Iterator[Slot]:
        pieces = self._reader.pieces(block)
        for start, stop in self._reader.images(block):
            is_named = self.text.startswith("](", stop) or _REFERENCE_LINK.match(self.text, stop)
            if is_named and any(map(str.isalnum, self.text[start:stop])):
                alt = Attribute("alt", start, stop, "")
                yield MarkdownSlot(start, stop, attribute=alt, form=MARKDOWN)
        language = self.src_lang if self.sentences else None
        first_tag = next((piece.start for piece in pieces if piece.kind == "start"), len(self.text))
        for inner in texts(pieces, self.text, partial(words, self.text), language):
            start = inner[0].start
            begins = block.is_paragraph and start == block.place(0)
            inside = first_tag < start
            yield MarkdownSlot(
                start, inner[-1].stop, inner, None, MARKDOWN, begins, block.is_cell, inside
            )

    # --- what differs from HTML

    def _languages(self) -> Iterator[Edit]:
        return iter(())

    def _piece_words(self, slot: Slot, piece: Piece) -> str:
        if slot.form == MARKDOWN:
            return words(self.text, piece)
        return super()._piece_words(slot, piece)

    def _value(self, slot: Slot, target: Text) -> Edit:
        if slot.form != MARKDOWN:
            return super()._value(slot, target)
        return Edit(slot.start, slot.stop, re.sub(r"([\\\[\]])", r"\\\1", string_of(target)))

    def _render(self, slot: Slot, parts: Sequence[Part]) -> str:
        if not isinstance(slot, MarkdownSlot):
            return super()._render(slot, parts)
        # What a reader drops must not have kept signs apart that are markup without it.
        parts = [between_words(part) if isinstance(part, str) else part for part in parts]
        shape = _shape(join_parts(parts))
        every_sign = f"{_SIGNS}|{self.required_signs}" if self.required_signs else _SIGNS
        few_signs = "|".join(filter(None, (r"\|" if slot.is_cell else "", self.required_signs)))
        for signs in (every_sign if slot.inside else few_signs, every_sign):
            new = self._as_markdown(slot, parts, signs)
            if self._read(new) == shape == self._read(new.strip()):
                return new
        return self._as_markdown(slot, [_as_tag(part) for part in parts], every_sign)

    def _as_markdown(self, slot: MarkdownSlot, parts: Sequence[Part], signs: str) -> str:
        """The parts with a backslash before these signs, and where a line would begin a block. A
        link that was found by its words, as [this], names what it was found by."""
        new, begins, openings = "", slot.begins, dict[str, int]()
        for part in parts:
            if not isinstance(part, str):
                markup = part[0].markup
                if markup in BY_WORDS and part[0].pair in openings:
                    label = self._label(slot, part[0].pair)
                    markup = markup if new[openings[part[0].pair] :] == label else f"][{label}]"
                new += markup
                openings[part[0].pair] = len(new)
                begins = markup.endswith("\n")
                continue
            text = re.sub(signs, r"\\\g<0>", part) if signs else part
            new += self._escaped_start(text.lstrip()) if begins else text
            begins = False
        return _HASHES.sub(r"\\\g<0>", new)  # which would end a heading

    def _escaped_start(self, text: str) -> str:
        """Words at the beginning of a paragraph, where they would begin something else."""
        return _not_a_block(text)

    def _label(self, slot: MarkdownSlot, pair: str) -> str:
        """What stood between the two halves of a span; they are named by the place of the first."""
        names = spans(slot.pieces)
        first, last = (slot.pieces[index] for index, name in sorted(names.items()) if name == pair)
        return self.text[first.stop : last.start]

    def _read(self, target: str) -> tuple[str, list[str]]:
        """What a target says as it would be read."""
        pieces = self._reader.pieces(Block(target))
        slot = MarkdownSlot(0, len(target), pieces, form=MARKDOWN)
        return _shape(join_parts(parts_of(target, slot, partial(words, target))))


def _shape(text: Text) -> tuple[str, list[str]]:
    """What two ways to write a text have in common: the words and the codes."""
    codes = ["]" if _BY_LABEL.fullmatch(code.markup) else code.markup for code in text.codes]
    return "".join(text.plain.split()), codes


def _not_a_block(text: str) -> str:
    """Words at the beginning of a line, where they would begin a list, a heading or the like."""
    if number := _NUMBER.match(text):
        return f"{number[0]}\\{text[number.end() :]}"
    return f"\\{text}" if _BLOCK.match(text) else text


def _as_tag(part: Part) -> Part:
    """A code of emphasis as a tag, which may stand anywhere."""
    if isinstance(part, str) or part[0].markup not in _TAGS:
        return part
    end = "/" if part[0].kind == "close" else ""
    return replace(part[0], markup=f"<{end}{_TAGS[part[0].markup]}>"), part[1]
