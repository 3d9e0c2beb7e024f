"""HTML pages and fragments.

A unit is the text between two tags of blocks; the tags inside it, such as <b>, are codes. Tags
around a whole text, and what stands before or behind all its words, stay outside. Attributes that
are read, such as alt and title, are units of their own. What is decided so:
- Left alone: script, style, template, svg, math, code inside pre, what has translate="no" or the
  class "notranslate", comments. Inside a text, such an element is a placeholder.
- In pre, every line is a unit.
- Character references become characters. New text has none but &amp; &lt; &gt;, and &nbsp; where
  the old text had it; and what the page's character set lacks."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from html import unescape
from pathlib import Path

from tmnmt.codes.placeholders import ALL_FINDERS, Finder, with_placeholders
from tmnmt.codes.record import Code, Kind, Part, Text, join_parts
from tmnmt.errors import FormatError
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.front_matter import front_matter_end, front_matter_texts
from tmnmt.files.html_syntax import Attribute, Token, attributes, tokens
from tmnmt.files.pieces import Piece, Words, spans, texts
from tmnmt.files.sentences import check_language
from tmnmt.files.texts import MAX_STRING, TOO_MANY, limited, string_of, unit_of
from tmnmt.files.unit import Filling, Unit
from tmnmt.files.whole import Edit, WholeFile
from tmnmt.files.yaml_syntax import Scalar, written
from tmnmt.formats.clean import excerpt
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.formats.encoding import byte_order_mark, charset
from tmnmt.formats.languages import is_code, normal_code
from tmnmt.formats.tmx_codes import MAX_CODES

HTML = "html"  # the form of codes whose markup is a tag
_BLOCK_NAMES = """address article aside audio base blockquote body button canvas caption center col
    colgroup dd details dialog dir div dl dt fieldset figcaption figure footer form frame frameset
    h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe legend li link main menu meta nav noframes
    noscript object ol optgroup option p param pre script search section select source style summary
    table tbody td textarea tfoot th thead title tr track ul video xmp"""
_VOID_NAMES = "area base br col embed frame hr img input link meta param source track wbr"
_DESCRIBING = "description keywords og:title og:description twitter:title twitter:description"
_BLOCKS, _VOID = frozenset(_BLOCK_NAMES.split()), frozenset(_VOID_NAMES.split())
_DESCRIPTIONS = frozenset(_DESCRIBING.split())
_LEFT_ALONE = frozenset({"svg", "math", "template"})
_CODE = frozenset({"code", "samp", "kbd"})
_TEXTS = frozenset({"textarea", "title"})  # raw, but text
_TEXT_ATTRIBUTES = frozenset({"alt", "title", "placeholder", "aria-label", "summary"})
_BUTTONS = frozenset({"submit", "button", "reset"})
_META_CHARSET = re.compile(rb"""<meta\s[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_XML_CHARSET = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)""")
_ROOT = re.compile(r"<html\s[^<>]*>", re.IGNORECASE)
_LANG = re.compile(r"""\blang\s*=\s*["']?([\w-]+)""", re.IGNORECASE)
_LANGUAGE = re.compile(r"""<html\s[^>]*?\blang\s*=\s*["']?([\w-]+)""", re.IGNORECASE)
_LOOKED_AT = 8192  # bytes, or characters
_WITHOUT_TAGS = re.compile("<[^>]*>")
_NBSP = re.compile("&(?:nbsp|#160|#xa0);", re.IGNORECASE)


@dataclass(slots=True)
class Slot:
    """What a unit takes the place of: pieces of a text, or the value of an attribute, as which a
    text of front matter counts, too."""

    start: int
    stop: int
    pieces: list[Piece] = field(default_factory=list)
    attribute: Attribute | None = None
    form: str = HTML  # of its codes
    scalar: Scalar | None = field(default=None, kw_only=True)  # of front matter


class HtmlFile(WholeFile[Slot]):
    """A page, or a part of one."""

    kind = "html"
    title = FILE_KINDS["html"].title
    has_running_text = True
    has_front_matter = True
    front_matter: Collection[str] = ()  # the keys in front matter whose texts are translated
    errors = "xmlcharrefreplace"
    finders: Sequence[Finder] = ALL_FINDERS  # of placeholders

    def __init__(self, path: Path, src_lang: str = "", tgt_lang: str = "") -> None:
        super().__init__(path, src_lang, tgt_lang)
        language = _LANGUAGE.search(self.text[:_LOOKED_AT])
        if language and is_code(language[1]):
            self.src_lang = normal_code(language[1])

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By the name, or by how a page begins."""
        begin = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:14].lower()
        by_name = FILE_KINDS[cls.kind].has_name(path)
        return by_name or begin.startswith((b"<!doctype html", b"<html"))

    def _encoding(self, data: bytes) -> str:
        marked, length = byte_order_mark(data)
        if length:
            return marked
        head = data[:_LOOKED_AT]
        declared = _XML_CHARSET.match(head) or _META_CHARSET.search(head)
        if declared is None:
            return "utf-8"
        name = declared[1].decode("ascii", "replace")
        encoding = charset(name)
        if not encoding:
            raise FormatError(
                f"{self.path}: unknown charset {excerpt(name)!r}; allowed: a character set, as "
                "UTF-8"
            )
        if b"<meta".decode(encoding, "replace") != "<meta":  # it could not have been read in that
            return "utf-8"
        # browsers take both for Windows-1252, which has five bytes that are nothing
        western = encoding in ("ascii", "iso8859-1")
        return "cp1252" if western and not re.search(rb"[\x81\x8d\x8f\x90\x9d]", data) else encoding

    @cached_property
    def _slots(self) -> list[Slot]:
        start = front_matter_end(self.text) if self.has_front_matter else 0
        return [*self._of_front_matter(), *in_order(self._of_html(start, len(self.text)))]

    def _of_front_matter(self) -> Iterator[Slot]:
        for scalar in front_matter_texts(self.text, self.front_matter, self.wrong):
            value = Attribute("front matter", scalar.start, scalar.end, scalar.style)
            yield Slot(scalar.start, scalar.end, attribute=value, scalar=scalar)

    def _of_html(self, start: int, stop: int) -> list[Slot]:
        """What stands in this part of the text. Raises FormatError for a tag that does not end."""
        slots = Slots(self.text, self.src_lang if self.sentences else None)
        for token in tokens(self.text[:stop], self.wrong, start):
            slots.take(token)
        slots.end()
        return slots.slots

    def _unit(self, slot: Slot) -> Unit:
        line = self.line(slot.start)
        if slot.scalar is not None:
            return unit_of(slot.scalar.value.rstrip("\n"), context=slot.scalar.path[0], line=line)
        raw = self.text[slot.start : slot.stop]
        if slot.attribute is not None:
            whole = Piece("text", slot.start, slot.stop)
            return unit_of(self._piece_words(slot, whole), breaks=False, line=line)
        if len(raw) > MAX_STRING:
            return unit_of(raw, line=line)
        if len(slot.pieces) > 2 * MAX_CODES + 1:  # no two texts stand side by side
            return Unit(Text(""), state="locked", line=line, problem=TOO_MANY)
        text = with_placeholders(
            join_parts(parts_of(self.text, slot, partial(self._piece_words, slot))), self.finders
        )
        return limited(Unit(clean_codes(text)[0], line=line))

    def _text_place(self, slot: Slot) -> tuple[int, int] | None:
        return slot.start, slot.stop

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        if self.tgt_lang and (any(fillings) or self.verbatim):
            yield from self._languages()
        waiting = list[Edit]()  # attributes inside a text that is filled in itself
        text: tuple[Slot, Filling] | None = None
        for slot, filling in zip(self._slots, fillings, strict=True):
            if text is not None and slot.start >= text[0].stop:
                yield self._filled(*text, waiting)
                text, waiting = None, []
            if filling is None:
                continue
            if slot.attribute is None:
                text = slot, filling
            elif text is None:
                yield self._value(slot, filling.target)
            else:
                waiting.append(self._value(slot, filling.target))
        if text is not None:
            yield self._filled(*text, waiting)

    def _languages(self) -> Iterator[Edit]:
        """What the page says of its own language."""
        if root := _ROOT.search(self.text):
            for language in _LANG.finditer(self.text, root.start(), root.end()):
                yield Edit(language.start(1), language.end(1), self.tgt_lang)

    def _filled(self, slot: Slot, filling: Filling, inside: list[Edit]) -> Edit:
        """A text with its target, whose tags have other attributes inside."""
        tags = defaultdict[str, deque[str]](deque)
        for piece in slot.pieces:
            if piece.kind != "text":
                old = self.text[piece.start : piece.stop]
                edits = [edit for edit in inside if piece.start <= edit.start < piece.stop]
                tags[old].append(_apply_edits(old, piece.start, edits))
        parts = list[Part]()
        for part in filling.target.parts():
            if isinstance(part, str):
                parts.append(part)
            elif part[0].form == slot.form:
                remaining = tags.get(part[0].markup)
                markup = remaining.popleft() if remaining else part[0].markup
                parts.append((replace(part[0], markup=markup), part[1]))
            else:
                parts.append(part[1] if part[0].form else part[0].markup)
        return Edit(slot.start, slot.stop, self._render(slot, parts))

    # --- what differs from Markdown

    def _piece_words(self, slot: Slot, piece: Piece) -> str:
        """The words of a piece; "" of a tag."""
        return words_of(self.text, piece)

    def _render(self, slot: Slot, parts: Sequence[Part]) -> str:
        """A target as it stands in the file; its codes are of the slot's form."""
        space = "&nbsp;" if _NBSP.search(self.text[slot.start : slot.stop]) else "\u00a0"
        return "".join(
            _escaped(part, space) if isinstance(part, str) else part[0].markup for part in parts
        )

    def _value(self, slot: Slot, target: Text) -> Edit:
        """The value of an attribute with its target. Codes that it has are placeholders."""
        if slot.scalar is not None:
            return self._front_matter_edit(slot.scalar, string_of(target))
        quote = slot.attribute.quote if slot.attribute is not None else ""
        sign = "&#39;" if quote == "'" else "&quot;"
        new = _escaped(string_of(target)).replace(quote or '"', sign)
        return Edit(slot.start, slot.stop, new if quote else f'"{new}"')

    def _front_matter_edit(self, scalar: Scalar, target: str) -> Edit:
        ending = scalar.value[len(scalar.value.rstrip("\n")) :]
        old = self.text[scalar.start : scalar.end]
        column = scalar.key_start - self.line_start(scalar.key_start)
        new = written(target.rstrip("\n") + ending, scalar, old, column, self.newline)
        return Edit(scalar.start, scalar.end, new)


def parts_of(text: str, slot: Slot, words: Words) -> Iterator[Part]:
    """The words and codes of a text. A <br> between two words covers a space.

    text: the file.
    slot: where the text stands in it.
    words: gives what a piece says."""
    pairs = spans(slot.pieces)
    for number, piece in enumerate(slot.pieces):
        raw = text[piece.start : piece.stop]
        if piece.kind == "text":
            yield words(piece)
        elif piece.kind == "placeholder":
            content = words(piece)
            kind: Kind = "placeholder" if content.strip() else "standalone"
            yield Code(0, kind, raw, "", slot.form), content
        elif piece.kind == "alone":
            sides = text[piece.start - 1 : piece.start], text[piece.stop : piece.stop + 1]
            needs_space = piece.name == "br" and not any(side.isspace() for side in sides)
            yield Code(0, "standalone", raw, "", slot.form), " " * needs_space
        else:
            kind = "open" if piece.kind == "start" else "close"
            yield Code(0, kind, raw, pairs.get(number, ""), slot.form), ""


def words_of(text: str, piece: Piece) -> str:
    """What a piece of HTML says.

    text: the file.
    piece: the piece."""
    raw = text[piece.start : piece.stop]
    if piece.kind == "placeholder":
        return unescape(_WITHOUT_TAGS.sub("", raw))
    return unescape(raw) if piece.kind == "text" else ""


def in_order(slots: Iterable[Slot]) -> list[Slot]:
    """Slots in the order of the file. A text comes before the attributes inside it.

    slots: the slots."""
    return sorted(slots, key=lambda slot: (slot.start, slot.attribute is not None))


def _escaped(text: str, space: str = "\u00a0") -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\u00a0", space)


def _apply_edits(tag: str, start: int, edits: list[Edit]) -> str:
    for edit in reversed(edits):
        tag = tag[: edit.start - start] + edit.new + tag[edit.end - start :]
    return tag


class Slots:
    """Takes tokens in order, and gathers what is to be translated."""

    def __init__(self, text: str, language: str | None = None) -> None:
        """text: the file.
        language: texts are cut at their sentences, by the rules of this language; None does not cut
        them.

        Raises UsageError where the language has no rules."""
        if language is not None:
            check_language(language)
        self.slots = list[Slot]()
        self._text, self._language = text, language
        self._pieces = list[Piece]()
        self._pre = 0  # how many pre are open
        self._alone: Piece | None = None  # what is open and left alone
        self._depth = 0  # of elements of its name inside

    def take(self, token: Token) -> None:
        """Takes the next token.

        token: the token."""
        if self._alone is not None and self._is_inside(token, self._alone):
            return
        if token.kind == "text":
            self._take_text(token.start, token.stop)
        elif token.kind == "raw":
            if token.name in _TEXTS:
                self._take_text(token.start, token.stop)
        elif token.kind == "aside":
            self._pieces.append(Piece("alone", token.start, token.stop))
        elif token.kind == "start":
            self._take_start(token)
        elif token.name in _BLOCKS:
            self.end()
            self._pre = max(0, self._pre - (token.name == "pre"))
        else:
            self._pieces.append(Piece("end", token.start, token.stop, token.name))

    def _take_text(self, start: int, stop: int) -> None:
        if not self._pre:
            self._pieces.append(Piece("text", start, stop))
            return
        for line in re.finditer(r"[^\n]+|\n", self._text[start:stop]):
            if line[0] == "\n":
                self.end()
            else:
                self._pieces.append(Piece("text", start + line.start(), start + line.end()))

    def _take_start(self, token: Token) -> None:
        by_name = {attribute.name: attribute for attribute in attributes(self._text, token)}
        if token.name in _BLOCKS:
            self.end()
        void = token.name in _VOID or self._text.startswith("/>", token.stop - 2)
        if self._is_left_alone(token, by_name):
            kind = "alone" if token.name in _LEFT_ALONE else "placeholder"
            piece = Piece(kind, token.start, token.stop, token.name)
            if token.name not in _BLOCKS:
                self._pieces.append(piece)
            if not void:
                self._alone, self._depth = piece, 1
            return
        self._take_attributes(token, by_name)
        if token.name in _BLOCKS:
            self._pre += token.name == "pre"
        else:
            kind = "alone" if void else "start"
            self._pieces.append(Piece(kind, token.start, token.stop, token.name))

    def _is_left_alone(self, token: Token, by_name: dict[str, Attribute]) -> bool:
        translate = self._attribute_value(by_name, "translate")
        if translate is not None:
            return translate == "no"
        classes = (self._attribute_value(by_name, "class") or "").split()
        in_pre = bool(self._pre) and token.name in _CODE
        return token.name in _LEFT_ALONE or in_pre or "notranslate" in classes

    def _is_inside(self, token: Token, alone: Piece) -> bool:
        """Whether a token belongs to what is left alone."""
        if alone.name == "p" and token.kind in ("start", "end") and token.name in _BLOCKS:
            self._alone = None  # no </p> is needed
            return token.kind == "end" and token.name == "p"
        alone.stop = token.stop
        if token.name == alone.name and token.kind in ("start", "end"):
            self._depth += 1 if token.kind == "start" else -1
            if not self._depth:
                self._alone = None
        return True

    def _attribute_value(self, by_name: dict[str, Attribute], name: str) -> str | None:
        attribute = by_name.get(name)
        return self._text[attribute.start : attribute.end].strip().lower() if attribute else None

    def _take_attributes(self, token: Token, by_name: dict[str, Attribute]) -> None:
        for attribute in by_name.values():
            value = unescape(self._text[attribute.start : attribute.end])
            if self._is_read(token, attribute.name, by_name) and any(map(str.isalnum, value)):
                self.slots.append(Slot(attribute.start, attribute.end, attribute=attribute))

    def _is_read(self, token: Token, name: str, by_name: dict[str, Attribute]) -> bool:
        if name == "label":
            return token.name in ("option", "optgroup", "track")
        if name == "value":
            return token.name == "input" and self._attribute_value(by_name, "type") in _BUTTONS
        if name == "content":
            described = self._attribute_value(by_name, "name") or self._attribute_value(
                by_name, "property"
            )
            return token.name == "meta" and described in _DESCRIPTIONS
        return name in _TEXT_ATTRIBUTES

    def end(self) -> None:
        """Ends a text: what is gathered becomes a slot, or several, where it has words."""
        pieces, self._pieces = self._pieces, []
        language = None if self._pre else self._language
        piece_words = partial(words_of, self._text)
        for inner in texts(pieces, self._text, piece_words, language):
            self.slots.append(Slot(inner[0].start, inner[-1].stop, inner))
