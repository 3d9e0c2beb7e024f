"""reStructuredText: a unit is the text of a paragraph, an item, a title, a field or a term, or a
sentence of it. Emphasis and links are codes, and so are roles, literals and whatever else refers to
something by a name.

What is decided so:
- A target is written on one line, whatever its source was.
- The lines of punctuation around a title become as long as its target.
- A link that was parts by its words names what it was parts by.
- A title that something refers to by its words has a target of these words before it.
- In a table that is drawn, a new text is broken into lines as long as the old ones, and columns
  become wider where a word needs it.
- Signs in a target are escaped where they would be markup, and markup that would touch a word has
  `\\ ` between, which readers drop."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from tmnmt.codes.placeholders import ALL_FINDERS
from tmnmt.codes.record import Code, Part, Text, join_parts
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.html import HtmlFile, Slot, parts_of
from tmnmt.files.markdown_syntax import Block
from tmnmt.files.pieces import LINE_END, SPAN_PREFIX, Piece, spans, texts
from tmnmt.files.rst_syntax import (
    SIMPLE_NAME,
    STRAY,
    Adornment,
    Markup,
    TextBlock,
    begins_block,
    blocks,
    inline_markup,
    is_mark,
    may_follow,
    may_precede,
    width,
    wrapped,
)
from tmnmt.files.rst_tables import Cell, Change, Frame, column_count
from tmnmt.files.sentences import check_language
from tmnmt.files.unit import Filling
from tmnmt.files.whole import BOM, Edit, WholeFile
from tmnmt.formats.clean_codes import between_words
from tmnmt.formats.encoding import byte_order_mark

RST = "rst"  # the form of codes whose markup is reStructuredText
_ESCAPE = "escape"  # the name of words that are a sign behind a backslash
_LINE_BREAK = re.compile(r"[ \t]*\r?\n[ \t]*")
_LAST_BREAK = re.compile(r"\r?\n[ \t]*\Z")
_BLANKS = re.compile(r"\s+")
_SIGNS = re.compile(r"[*`|]|_(?![^\W_])|(?<!\w)_(?=`)")  # that may be markup among words
_NAME_END = re.compile(r" <(?P<name>[^<>]*)_>`__?|`_")  # how a link ends that is parts by a name
_TARGETS = re.compile(
    r"^[ \t]*\.\. _(?:`(?P<words>[^`\n]+)`|(?P<word>(?:[^:\\\n]|\\.|:(?=\S)){1,500})):(?=\s|$)"
    r"|(?<!\w)_`(?P<inline>[^`]{1,500})`",
    re.MULTILINE,
)
_REFERENCES = re.compile(
    rf"`(?:[^`<>]{{0,500}}<)??(?P<words>[^`]{{1,500}}?)(?:`_|_>`_)|(?<!\w)(?P<word>{SIMPLE_NAME})\|?_(?!\w)"
)
_DEFINING = re.compile(r"`([^`<>]{1,500})\s<[^<>]{1,500}(?<!_)>`_(?!_)")
_BY_WORDS = re.compile(rf"`([^`<>]{{1,500}})`_(?!_)|(?<!\w)({SIMPLE_NAME})_(?!\w)")
_PLAIN_NAME = re.compile(r"[^\W_][\w .-]*")
_JOINT = "\\ "  # between markup and a word
_SURPLUS = 2  # columns by which lines around a title may be longer than it on purpose


@dataclass(slots=True)
class RstSlot(Slot):
    """`begins`: it is where a paragraph begins. `adornment`: of a title. `opens_literal`: as in
    `TextBlock`. `line_break`: what must stand after one of its words, "" where nothing must.
    `cell`: of a table, in which it stands. `indent`: the column at which further lines of it begin
    there; None where it must not have any."""

    begins: bool = False
    adornment: Adornment | None = None
    opens_literal: bool = False
    line_break: str = ""
    cell: Cell | None = None
    indent: int | None = None


class RstFile(HtmlFile):
    """A file of reStructuredText, in UTF-8 or as its byte-order mark says."""

    kind = "rst"
    title = FILE_KINDS["rst"].title
    finders = ALL_FINDERS
    has_front_matter = False

    def __init__(self, path: Path, src_lang: str = "", tgt_lang: str = "") -> None:
        WholeFile.__init__(self, path, src_lang, tgt_lang)
        self._referenced = set[str]()  # titles that something refers to by their words

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By the name."""
        return FILE_KINDS[cls.kind].has_name(path)

    def _encoding(self, data: bytes) -> str:
        return byte_order_mark(data)[0]

    @cached_property
    def _slots(self) -> list[Slot]:
        if self.sentences:
            check_language(self.src_lang)
        return [slot for block in blocks(self.text) for slot in self._of_block(block)]

    @cached_property
    def _fixed_names(self) -> frozenset[str]:
        """The words of links that say where they lead, and which other links are parts by."""
        defined = {_name(link[1]) for link in _DEFINING.finditer(self.text)}
        if not defined:
            return frozenset()
        links = _BY_WORDS.finditer(self.text)
        return frozenset(defined.intersection(_name(link[1] or link[2]) for link in links))

    def _of_block(self, block: TextBlock) -> Iterator[RstSlot]:
        language = self.src_lang if self.sentences and block.adornment is None else None
        pieces = _pieces(block, self._fixed_names)
        if block.cell is not None and (block.needs_break or _is_broken(self.text, pieces)):
            return
        parts = list(texts(pieces, self.text, partial(_words, self.text), language))
        for inner in parts:
            slot = RstSlot(inner[0].start, inner[-1].stop, inner, form=RST)
            slot.begins = slot.start == block.place(0)
            slot.adornment = block.adornment
            slot.opens_literal = block.opens_literal and inner is parts[-1]
            slot.cell, slot.indent = block.cell, _hanging_indent(block)
            second = block.lines[1][1] if block.needs_break else 0
            if slot.start < second <= slot.stop:
                blanks = _LAST_BREAK.search(self.text, slot.start, second)
                slot.line_break = blanks[0] if blanks else ""
            yield slot

    # --- what differs from HTML

    def _languages(self) -> Iterator[Edit]:
        return iter(())

    def _piece_words(self, slot: Slot, piece: Piece) -> str:
        return _words(self.text, piece)

    def _text_place(self, slot: Slot) -> tuple[int, int] | None:
        return None  # the lines under a title are as long as it is

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        names = Counter(
            _name(self._unit(slot).source.plain) for slot in self._slots if _is_title(slot)
        )
        matches = list(_REFERENCES.finditer(self.text)) if names else []
        references = {_name(match["words"] or match["word"]) for match in matches}
        targets = {_name(match[match.lastgroup or 0]) for match in _TARGETS.finditer(self.text)}
        self._referenced = {
            name for name, count in names.items() if count == 1 and name in references - targets
        }
        edits, frames = list[Edit](), dict[Frame, dict[Cell, list[Change]]]()
        for slot, filling in zip(self._slots, fillings, strict=True):
            if filling is None:
                continue
            edit = self._filled(slot, filling, [])
            if isinstance(slot, RstSlot) and slot.cell is not None:
                cells = frames.setdefault(slot.cell.frame, {})
                cells.setdefault(slot.cell, []).append(Change(edit, slot.indent))
            else:
                edits.append(edit)
        edits += [frame.edit(self.text, cells, wrapped) for frame, cells in frames.items()]
        return sorted(edits)

    def _filled(self, slot: Slot, filling: Filling, inside: list[Edit]) -> Edit:
        edit = super()._filled(slot, filling, inside)
        if not isinstance(slot, RstSlot) or slot.adornment is None:
            return edit
        overline, (begin, end) = slot.adornment
        start = overline[0] if overline else slot.start
        line_start = self.text.rfind("\n", 0, slot.start) + 1 or self.text.startswith(BOM)
        old = width(self.text[line_start:begin].rstrip())
        tail = self.text[edit.end : begin]
        columns = width((self.text[line_start : slot.start] + edit.new + tail).rstrip())
        new_line = self._adorned(begin, end, old, columns)
        head = new_line + self.text[overline[1] : slot.start] if overline else ""
        title = head + edit.new + self.text[edit.end : begin] + new_line
        name = " ".join(self._unit(slot).source.plain.split())
        if _name(name) in self._referenced - {_name(filling.target.plain)}:
            newline = "\r\n" if "\r\n" in self.text else "\n"
            title = (
                f".. _{name if _PLAIN_NAME.fullmatch(name) else f'`{name}`'}:{newline * 2}{title}"
            )
        return Edit(start, end, title)

    def _adorned(self, start: int, end: int, old: int, columns: int) -> str:
        """The line of punctuation for a title of so many columns; `old`: those it had."""
        surplus = end - start - old
        if surplus > _SURPLUS:
            columns, surplus = max(columns, end - start), 0
        return self.text[start] * (columns + max(0, surplus))

    def _render(self, slot: Slot, parts: Sequence[Part]) -> str:
        # What a reader drops must not have kept signs apart that are markup without it.
        parts = [between_words(part) if isinstance(part, str) else part for part in parts]
        parts = _flat(parts)
        shape = _shape(join_parts(parts))
        for signs in (None, _SIGNS):
            new = self._as_rst(slot, parts, signs)
            if _read(new, self._fixed_names) == shape and not _has_stray(new):
                break
        if not isinstance(slot, RstSlot):
            return new
        if slot.opens_literal:
            new = _with_colon(new)
        elif new.endswith("::"):
            new = f"{new[:-1]}\\:"
        if slot.line_break:
            new = _with_line_break(
                new, slot.line_break, self.text.index("\n", slot.start) - slot.start
            )
        return new

    def _as_rst(self, slot: Slot, parts: Sequence[Part], signs: re.Pattern[str] | None) -> str:
        """The parts with a backslash before these signs, and where a line would begin a block."""
        new, opening = "", 0
        is_start = isinstance(slot, RstSlot) and slot.begins
        is_title = isinstance(slot, RstSlot) and slot.adornment is not None
        last: Code | None = None  # what ends here
        for part in parts:
            if isinstance(part, str):
                text = _escaped(part, signs)
                text = f"\\{text}" if is_start and begins_block(text, is_title) else text
                new += _JOINT * (_ends_markup(last) and not may_follow(text[:1])) + text
                last = None
            else:
                code = part[0]
                markup = self._markup(slot, code, new[opening:])
                touches = code.kind != "close" and not may_precede(new[-1:])
                joins = _ends_markup(last) and not may_follow(markup[:1])
                is_markup = code.form == RST and code.kind != "standalone"
                new += _JOINT * (is_markup and (touches or joins)) + markup
                opening = len(new) if code.kind == "open" else opening
                last = code
            is_start = is_start and not new
        return new

    def _markup(self, slot: Slot, code: Code, label: str) -> str:
        """A code as it is written; `label`: the words in front of one that closes a span."""
        if code.form != RST:
            return code.markup
        name_end = _NAME_END.fullmatch(code.markup) if code.kind == "close" else None
        if name_end is None:
            return code.markup
        name = _BLANKS.sub(" ", name_end["name"] or self._label(slot, code.pair))
        return "`_" if _name(label) == _name(name) else f" <{name}_>`__"

    def _label(self, slot: Slot, pair: str) -> str:
        """What stood between the two halves of a span; they are named by the place of the first."""
        first, last = (
            slot.pieces[index] for index, name in sorted(spans(slot.pieces).items()) if name == pair
        )
        label = slot.pieces[slot.pieces.index(first) + 1 : slot.pieces.index(last)]
        return "".join(
            " " if piece.name == LINE_END else self.text[piece.start : piece.stop]
            for piece in label
        )


def _pieces(block: Block, names: Collection[str]) -> list[Piece]:
    """The pieces of a text, by their places in the file. `names`: of links that stay as they are,
    since others are parts by their words."""
    content = block.content
    markup_pieces = [
        piece for markup in inline_markup(content) for piece in _of_markup(content, markup, names)
    ]
    result, end = list[Piece](), 0
    for piece in [*markup_pieces, Piece("text", len(content), len(content))]:
        result += _of_words(content, end, piece.start)
        result += [piece] if piece.stop > piece.start else []
        end = piece.stop
    for piece in result:
        piece.start, piece.stop = block.place(piece.start), block.place(piece.stop - 1) + 1
    return result


def _of_markup(content: str, markup: Markup, names: Collection[str]) -> Iterator[Piece]:
    if markup.name == STRAY:
        return
    if markup.name == _ESCAPE:
        yield Piece("text", markup.start, markup.stop, _ESCAPE)
    elif markup.words is None or _name(content[slice(*markup.words)]) in names:
        yield Piece("placeholder", markup.start, markup.stop, markup.name)
    else:
        begin, end = markup.words
        prefix = f"{SPAN_PREFIX} " if _NAME_END.fullmatch(content[end : markup.stop]) else ""
        name = f"{prefix}{markup.name} {markup.start}"
        yield Piece("start", markup.start, begin, name)
        yield from (
            Piece("text", begin + sign.start(), begin + sign.end(), _ESCAPE)
            for sign in re.finditer(r"\\[\s\S]", content[begin:end])
        )
        yield Piece("end", end, markup.stop, name)


def _of_words(content: str, start: int, stop: int) -> Iterator[Piece]:
    """Words, with a piece of its own for every line end."""
    for line_end in _LINE_BREAK.finditer(content, start, stop):
        if start < line_end.start():
            yield Piece("text", start, line_end.start())
        yield Piece("text", *line_end.span(), LINE_END)
        start = line_end.end()
    if start < stop:
        yield Piece("text", start, stop)


def _hanging_indent(block: TextBlock) -> int | None:
    """The column of its cell at which further lines of a paragraph begin; None of another text, and
    where nothing says it."""
    if block.cell is None or not block.wraps:
        return None
    number = min(1, len(block.lines) - 1)
    place = block.lines[number][1]
    line = next(line for line in reversed(block.cell.lines) if line.start <= place)
    head = line.text[: place - line.start]
    if number == 0 and head.strip() and not is_mark(head.lstrip()):
        return None
    return column_count(head)


def _is_broken(text: str, pieces: Iterable[Piece]) -> bool:
    """Whether markup goes on in another line of its cell: what stands between is of other cells."""
    return any(
        piece.name != LINE_END and "\n" in text[piece.start : piece.stop] for piece in pieces
    )


def _words(text: str, piece: Piece) -> str:
    """What a piece says. What refers to something says what is written."""
    raw = text[piece.start : piece.stop]
    if piece.kind == "placeholder":
        return _BLANKS.sub(" ", raw)
    if piece.name == LINE_END:
        return " "
    if piece.name == _ESCAPE:
        return raw[1:].strip()
    return raw if piece.kind == "text" else ""


def _read(target: str, names: Collection[str]) -> tuple[str, list[str]]:
    """What a target says as it would be read."""
    pieces = _pieces(Block(target), names)
    slot = RstSlot(0, len(target), pieces, form=RST)
    return _shape(join_parts(parts_of(target, slot, partial(_words, target))))


def _has_stray(target: str) -> bool:
    """Whether signs in it begin markup that does not end, of which docutils warns."""
    return any(markup.name == STRAY for markup in inline_markup(target))


def _shape(text: Text) -> tuple[str, list[str]]:
    """What two ways to write a text have in common: the words and the codes."""
    codes = [
        "`_" if _NAME_END.fullmatch(code.markup) else code.markup
        for code in text.codes
        if code.form == RST
    ]
    return "".join(text.plain.split()), codes


def _is_title(slot: Slot) -> bool:
    return isinstance(slot, RstSlot) and slot.adornment is not None


def _name(text: str) -> str:
    """Under which names count as one."""
    return " ".join(text.replace("\\", "").split()).lower()


def _escaped(text: str, signs: re.Pattern[str] | None) -> str:
    text = text.replace("\\", r"\\")
    return signs.sub(r"\\\g<0>", text) if signs else text


def _ends_markup(code: Code | None) -> bool:
    return code is not None and code.form == RST and code.kind in ("close", "placeholder")


def _with_colon(target: str) -> str:
    """A target behind whose colon another stands, so that a literal block begins. Without a colon
    both are dropped by a reader; and a blank before it must be one that does not vanish."""
    if target.endswith(":"):
        return re.sub(r"[ \t]+:\Z", "\u00a0:", target)
    return f"{target} :"


def _with_line_break(target: str, line_break: str, length: int) -> str:
    """A target with a line break in place of the blank that is nearest to `length`; in front of it
    where it has none."""
    blanks = [blank.start() for blank in re.finditer(r"(?<=[^\s\\]) (?=\S)", target)]
    if not blanks:
        return line_break + target
    place = min(blanks, key=lambda blank: abs(blank - length))
    return target[:place] + line_break + target[place + 1 :]


def _flat(parts: Sequence[Part]) -> list[Part]:
    """The parts with no markup inside other markup, which the format does not have: a span ends
    before it, and emphasis goes on behind it. Blanks at the ends of a span stand outside, and a
    span without words is left out."""
    result = list[Part]()
    opening: Part | None = None
    closings = {
        part[0].pair: part for part in parts if not isinstance(part, str) and _is(part, "close")
    }
    words = ""  # of the span that is open

    def close(end: Part | None) -> None:
        nonlocal words
        if opening is None or end is None:
            return
        core = words.strip()
        lead = words[: len(words) - len(words.lstrip())] if core else ""
        tail = words[len(words.rstrip()) :] if core else words
        result.extend([lead] if lead else [])
        result.extend([opening, core, end] if core else [])
        result.extend([tail] if tail else [])
        words = ""

    for part in parts:
        if isinstance(part, str):
            if opening is None:
                result.append(part)
            else:
                words += part
        elif _is(part, "open"):
            end = closings.get(part[0].pair)
            if opening is not None and not isinstance(opening, str):
                close(closings.get(opening[0].pair))
            opening = part if end is not None else None
        elif opening is not None and not isinstance(opening, str):
            end = closings.get(opening[0].pair)
            if part is end:
                close(end)
                opening = None
            elif not _is(part, "close"):
                close(end)
                result.append(part)
                opening = opening if opening[0].markup in ("*", "**") else None
        elif not _is(part, "close"):
            result.append(part)
    return [part for part in result if part]


def _is(part: Part, kind: str) -> bool:
    return not isinstance(part, str) and part[0].form == RST and part[0].kind == kind
