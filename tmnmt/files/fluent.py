"""Project Fluent's .ftl (its guide and the grammar, *Fluent Syntax 1.0*): messages and terms with
attributes, and texts that are selected by a number or another value.

    permits = { $count ->
        [one] One permit
       *[other] { $count } permits
    }
        .label = Permits

The file is in the source language, and what is written in the target language. A unit is a text, or
one of those that are selected: a text around them is part of each, so all are whole sentences. Of a
number there are as many as the target language has plural forms. Placeables come through."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from tmnmt.codes.placeholders import ALL_FINDERS, Finder, Placeholder, by_pattern
from tmnmt.codes.record import Text, join_parts
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.plurals import CATEGORIES, description_of, is_plural, needed_categories
from tmnmt.files.texts import string_of, unit_of
from tmnmt.files.unit import Filling, Unit
from tmnmt.files.whole import BOM, Edit, WholeFile
from tmnmt.formats.encoding import byte_order_mark

if TYPE_CHECKING:
    from fluent.syntax import ast

_PLACEABLE = r"\{(?:[^{}\"]|\"(?:[^\"\\\r\n]|\\[^\r\n])*+\")*+\}"
_IS_PLACEABLE = re.compile(_PLACEABLE)
_BRACE = re.compile("[{}]")
_WRAPPED = re.compile(r"(?<=\S)[^\S\n]*\n[^\S\n]*(?=\S)")  # a line end that is a mere blank
_EMPTY_LINES = re.compile(r"\s*\n\s*\n\s*")
# attributes and messages with keys and styles, which are no texts; the last part of their names
_NO_TEXTS = frozenset({"accesskey", "commandkey", "key", "keycode", "shortcut", "style"})
_INDENT = "    "
_LONGEST_ANNOTATION = 120  # characters


def _beside_placeables(finder: Finder) -> Finder:
    """Finds what another finder does, but for what has a part of a placeable: www.{ $host }."""

    def find(text: str) -> list[Placeholder]:
        spans = [match.span() for match in _IS_PLACEABLE.finditer(text)]
        return [
            place
            for place in finder(text)
            if all(place.end <= start or end <= place.start for start, end in spans)
        ]

    return find


_FINDERS = (by_pattern(_PLACEABLE, signs="{"), *map(_beside_placeables, ALL_FINDERS))


class _Slot(NamedTuple):
    """A unit's place. `string`: its text, with placeables as they are written; it stands from
    `start` to `end`. Of a text that is selected `category` is a plural form or "", and `frame` has
    where the text around the selection stands. `is_new`: a plural form that is put in front of the
    line of this one."""

    id: str
    string: str
    start: int
    end: int
    notes: tuple[str, ...]
    category: str = ""
    is_new: bool = False
    frame: tuple[Edit, ...] = ()
    problem: str = ""


class FluentFile(WholeFile[_Slot]):
    """A file of one language, in UTF-8."""

    kind = "fluent"
    title = FILE_KINDS["fluent"].title

    def _encoding(self, data: bytes) -> str:
        return byte_order_mark(data)[0]

    # --- reading

    @cached_property
    def _entries(self) -> list[ast.EntryType]:
        """Raises FormatError where an entry cannot be read."""
        from fluent.syntax import FluentParser, ast

        offset = len(BOM) if self.text.startswith(BOM) else 0
        try:
            resource = FluentParser().parse(self.text[offset:])
        except RecursionError as error:
            raise self.wrong(0, "too many placeables inside one another") from error
        for entry in resource.body:
            if isinstance(entry, ast.Junk):
                annotation = entry.annotations[0]
                place = _span(annotation)[0] + offset
                message = annotation.message or ""
                raise self.wrong(place, f"no Fluent: {message[:_LONGEST_ANNOTATION]}")
        return resource.body

    @cached_property
    def _offset(self) -> int:
        return len(BOM) if self.text.startswith(BOM) else 0

    @cached_property
    def _slots(self) -> list[_Slot]:
        from fluent.syntax import ast

        slots, group = list[_Slot](), ""
        for entry in self._entries:
            if isinstance(entry, ast.GroupComment):
                group = entry.content or ""
            if not isinstance(entry, ast.Message | ast.Term):
                continue
            comment = entry.comment.content if entry.comment else ""
            notes = tuple(filter(None, (group, comment or "")))
            is_term = isinstance(entry, ast.Term)
            name = f"-{entry.id.name}" if is_term else entry.id.name
            if entry.value is not None:
                slots += self._of_pattern(name, entry.value, notes)
            for attribute in () if is_term else entry.attributes:
                label = f"{name}.{attribute.id.name}"
                slots += self._of_pattern(label, attribute.value, notes)
        return slots

    def _of_pattern(
        self, name: str, pattern: ast.Pattern, notes: tuple[str, ...]
    ) -> Iterator[_Slot]:
        """The units of a text."""
        if re.split(r"[.-]", name)[-1].lower() in _NO_TEXTS:
            return
        selections = [element for element in pattern.elements if _selection(element)]
        start, end = self._place(pattern)
        if not selections:
            string = self._string(pattern)
            problem = "placeables inside one another" if _is_nested(string) else ""
            if _has_words(string):
                yield _Slot(name, string, start, end, notes, problem=problem)
            return
        variants = [variant for element in selections for variant in _variants(element)]
        if len(selections) > 1 or any(
            _selection(element) for variant in variants for element in variant.value.elements
        ):
            problem = "a selection inside another one, or beside it"
            yield _Slot(name, self.text[start:end], start, end, notes, problem=problem)
            return
        yield from self._of_selection(name, pattern, selections[0], notes)

    def _of_selection(
        self,
        name: str,
        pattern: ast.Pattern,
        placeable: ast.TextElement | ast.Placeable,
        notes: tuple[str, ...],
    ) -> Iterator[_Slot]:
        """The texts that are selected, each with what stands around them, and the plural forms that
        the target language needs."""
        (start, end), (begin, stop) = self._place(pattern), self._place(placeable)
        index = pattern.elements.index(placeable)
        prefix = self._raw(pattern.elements[:index])
        suffix = self._raw(pattern.elements[index + 1 :])
        frame = (Edit(start, begin, ""), Edit(stop, end, "")) if prefix + suffix else ()
        variants = _variants(placeable)
        names = [_key(variant) for variant in variants]
        counted = [key for key in names if not key.replace(".", "").isdigit()]
        is_number = is_plural(counted) and _is_number(placeable, self.text[begin:stop])
        needed = needed_categories(counted, self.tgt_lang) if is_number else []
        for variant, key in zip(variants, names, strict=True):
            string = _unwrapped(prefix + self._raw(variant.value.elements) + suffix)
            category = key if is_number and key in CATEGORIES else ""
            slot = _Slot(
                f"{name}[{key}]", string, *self._place(variant.value), notes, category, frame=frame
            )
            if not _has_words(string):
                continue
            if category == "other":
                for form in needed:
                    if form not in names:
                        new = slot._replace(id=f"{name}[{form}]", category=form, is_new=True)
                        yield new._replace(start=self._place(variant)[0])
            yield slot

    def _place(self, node: ast.SyntaxNode) -> tuple[int, int]:
        """Where a node stands, without the blanks in front of it."""
        start, end = (place + self._offset for place in _span(node))
        inside = self.text[start:end]
        return start + len(inside) - len(inside.lstrip(" \r\n")), end

    def _string(self, pattern: ast.Pattern) -> str:
        return _unwrapped(self._raw(pattern.elements))

    def _raw(self, elements: Iterable[ast.TextElement | ast.Placeable]) -> str:
        """The text of elements, with placeables as they are written."""
        from fluent.syntax import ast

        parts = list[str]()
        for element in elements:
            if isinstance(element, ast.TextElement):
                parts.append(element.value)
            else:
                start, end = self._place(element)
                parts.append(self.text[start:end])
        return "".join(parts)

    def _unit(self, slot: _Slot) -> Unit:
        unit = unit_of(
            slot.string,
            finders=_FINDERS,
            id=slot.id,
            notes=slot.notes,
            line=self.line(slot.start),
        )
        if slot.category:
            unit = replace(unit, plural=description_of(slot.category, self.tgt_lang))
        return replace(unit, state="locked", problem=slot.problem) if slot.problem else unit

    # --- writing

    def refused(self, unit: Unit, target: Text) -> str:
        """Also what cannot be read as a text of Fluent, as an unknown placeable."""
        from fluent.syntax import FluentParser, ast

        pattern = self._pattern(string_of(unit.source), target, _INDENT)
        entry = FluentParser().parse_entry(f"key = {pattern}")
        if not unit.problem and not isinstance(entry, ast.Message):
            return "a placeable that Fluent cannot read"
        return unit.problem

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        filled = [
            (slot, filling.target if filling is not None else None)
            for slot, filling in zip(self._slots, fillings, strict=True)
        ]
        frames = {slot.frame for slot, target in filled if slot.frame and target is not None}
        edits = list[Edit]()
        for slot, target in filled:
            if target is not None:
                edits.append(self._edit(slot, target))
            elif slot.frame in frames and not slot.is_new:
                edits.append(self._edit(slot, self._unit(slot).source))
        edits += (edit for frame in frames for edit in frame if edit.start < edit.end)
        return sorted(edits, key=lambda edit: edit.start)

    def _edit(self, slot: _Slot, target: Text) -> Edit:
        begin = self.line_start(slot.start)
        line = self.text[begin : slot.start]
        blanks = line[: len(line) - len(line.lstrip(" "))]
        if not slot.is_new:
            is_block = not line.strip()
            indent = blanks if is_block else blanks + _INDENT
            return Edit(slot.start, slot.end, self._pattern(slot.string, target, indent, is_block))
        if self.text.startswith("*", slot.start):
            blanks += " "
        text = self._pattern(slot.string, target, blanks + _INDENT)
        return Edit(begin, begin, f"{blanks}[{slot.category}] {text}{self.newline}")

    def _pattern(self, source: str, target: Text, indent: str, is_block: bool = False) -> str:
        """A text as Fluent wants it, each line behind the first with `indent` in front of it.
        Placeables of the source come through, also where they are no codes; other braces are text.
        `is_block`: whether the first line begins a line of the file, too."""
        placeables = {*_IS_PLACEABLE.findall(source)}
        parts = (
            _marked(part, placeables) if isinstance(part, str) else string_of(join_parts([part]))
            for part in target.parts()
        )
        lines = "".join(parts).strip().split("\n")
        first, *others = (_with_braces(line.strip()) for line in lines)
        first = _with_start(first) if is_block else first
        indented = [indent + _with_start(line) if line else "" for line in others]
        return self.newline.join([first, *indented])


def _marked(string: str, placeables: Collection[str]) -> str:
    """A string with a \\0 in front of every brace that is text."""
    parts, end = list[str](), 0
    for match in _IS_PLACEABLE.finditer(string):
        if match[0] in placeables:
            parts += (_BRACE.sub("\0\\g<0>", string[end : match.start()]), match[0])
            end = match.end()
    return "".join([*parts, _BRACE.sub("\0\\g<0>", string[end:])])


def _with_braces(line: str) -> str:
    """A line as Fluent wants its braces that are text, which have a \\0 in front of them."""
    return re.sub("\0([{}])", r'{"\1"}', line)


def _with_start(line: str) -> str:
    """A line that begins a line of the file as Fluent wants it, where its first sign is markup."""
    return f'{{"{line[0]}"}}{line[1:]}' if line[:1] in ("[", "*", ".") else line


def _span(node: ast.SyntaxNode) -> tuple[int, int]:
    return (node.span.start, node.span.end) if node.span else (0, 0)


def _selection(element: ast.TextElement | ast.Placeable) -> bool:
    from fluent.syntax import ast

    return isinstance(element, ast.Placeable) and isinstance(
        element.expression, ast.SelectExpression
    )


def _variants(element: ast.TextElement | ast.Placeable) -> list[ast.Variant]:
    from fluent.syntax import ast

    expression = element.expression if isinstance(element, ast.Placeable) else None
    return expression.variants if isinstance(expression, ast.SelectExpression) else []


def _key(variant: ast.Variant) -> str:
    from fluent.syntax import ast

    return variant.key.name if isinstance(variant.key, ast.Identifier) else variant.key.value


def _is_number(element: ast.TextElement | ast.Placeable, written: str) -> bool:
    """Whether a selection may be by a number that counts something."""
    from fluent.syntax import ast

    expression = element.expression if isinstance(element, ast.Placeable) else None
    selector = expression.selector if isinstance(expression, ast.SelectExpression) else None
    if "ordinal" in written.partition("->")[0]:
        return False
    if isinstance(selector, ast.FunctionReference):
        return selector.id.name == "NUMBER"
    return isinstance(selector, ast.VariableReference)


def _is_nested(string: str) -> bool:
    return any(sign in _IS_PLACEABLE.sub("", string) for sign in "{}")


def _has_words(string: str) -> bool:
    return any(map(str.isalnum, _IS_PLACEABLE.sub("", string)))


def _unwrapped(string: str) -> str:
    """A text with blanks in place of its line ends, but for empty lines."""
    paragraphs = _EMPTY_LINES.split(string.strip())
    return "\n\n".join(_WRAPPED.sub(" ", paragraph) for paragraph in paragraphs)
