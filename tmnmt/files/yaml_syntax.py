"""YAML as its scalars, the keys that lead to them, and where they stand. libyaml reads it, as Ruby
does. Aliases are not followed, so a small file stays small."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from json import dumps
from typing import NamedTuple, cast

import yaml

from tmnmt.files.whole import BOM, Wrong

DEEPEST = 100  # lists and tables inside one another
_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_STRING = "tag:yaml.org,2002:str"
_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*\s+)+")  # an anchor and a tag
_SYMBOL = re.compile(r":[\w\"']")  # of Ruby
_HEADER = re.compile(r"[|>][^\r\n]*(?:\r\n|\n|\r)")
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
# the tag of a node of a kind, with a value, with an implicit tag
_resolve: Callable[[type[yaml.Node], str, tuple[bool, bool]], str] = (
    yaml.resolver.Resolver().resolve
)


class Scalar(NamedTuple):
    """A text, without its anchor and tag.

    path: the keys that lead to it, and the numbers in lists.
    start, end: where it stands, with its quotation marks; a block ends before the last line end.
    value: the text that it is.
    style: "" for a plain one, or one of ' " | >
    in_flow: whether it is inside braces or brackets.
    is_text: whether YAML and Ruby read it as a string, and not as a number, a symbol and so on.
    key_start: where its key begins; its own beginning in a list."""

    path: tuple[str, ...]
    start: int
    end: int
    value: str
    style: str
    in_flow: bool
    is_text: bool
    key_start: int


@dataclass(slots=True)
class _Container:
    """A table or a list that has not ended; `key`: the last one, of which no value has come."""

    path: tuple[str, ...]
    is_table: bool
    in_flow: bool
    number: int = 0
    key: Scalar | None = None
    keys: list[str] = field(default_factory=list)


def scalars(text: str, wrong: Wrong) -> Iterator[tuple[Scalar, bool]]:
    """The scalars of a text in order, each with whether it is a key.

    text: the text.
    wrong: makes the error of a place and of what is wrong there: no YAML, more than one document,
    more than 100 lists and tables inside one another."""
    offset = len(BOM) if text.startswith(BOM) else 0
    reader = _Reader(text, offset, wrong)
    try:
        for event in yaml.parse(text[offset:], Loader=_LOADER):
            yield from reader.read(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = min(mark.index + offset, len(text)) if mark else 0
        raise wrong(place, f"no YAML: {error.problem or error.context}") from error
    except yaml.reader.ReaderError as error:
        raise wrong(0, f"no YAML: {error.reason}") from error


class _Reader:
    def __init__(self, text: str, offset: int, wrong: Wrong) -> None:
        self._text, self._offset, self._wrong = text, offset, wrong
        self._open = list[_Container]()
        self._documents = 0

    def read(self, event: yaml.Event) -> Iterator[tuple[Scalar, bool]]:
        """What an event brings."""
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self._wrong(self._place(event), "a second document")
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
            self._finish_value()
        elif isinstance(event, yaml.AliasEvent):
            if not self._is_key_next():
                self._finish_value()
            else:
                self._open[-1].key = self._scalar(event, "*", False)
        elif isinstance(event, yaml.ScalarEvent):
            is_key = self._is_key_next()
            scalar = self._scalar(event, event.value, _is_text(event))
            if is_key:
                self._open[-1].key = scalar
            else:
                self._finish_value()
            yield scalar, is_key

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        if len(self._open) == DEEPEST:
            problem = f"more than {DEEPEST} lists and tables inside one another"
            raise self._wrong(self._place(event), problem)
        if self._is_key_next():
            raise self._wrong(self._place(event), "a key that is a list or a table")
        is_table = isinstance(event, yaml.MappingStartEvent)
        in_flow = bool(event.flow_style) or (bool(self._open) and self._open[-1].in_flow)
        self._open.append(_Container(self._path(), is_table, in_flow))

    def _is_key_next(self) -> bool:
        return bool(self._open) and self._open[-1].is_table and self._open[-1].key is None

    def _finish_value(self) -> None:
        if self._open:
            self._open[-1].key = None
            self._open[-1].number += 1

    def _path(self) -> tuple[str, ...]:
        """The path of the next value."""
        if not self._open:
            return ()
        top = self._open[-1]
        if not top.is_table:
            return (*top.path, str(top.number))
        return (*top.path, top.key.value) if top.key else top.path

    def _place(self, event: yaml.Event) -> int:
        return cast(yaml.Mark, event.start_mark).index + self._offset

    def _scalar(self, event: yaml.NodeEvent, value: str, is_text: bool) -> Scalar:
        start, end = self._place(event), cast(yaml.Mark, event.end_mark).index + self._offset
        if properties := _PROPERTIES.match(self._text, start, end):
            start = properties.end()
        end = start + len(self._text[start:end].rstrip(" \t\r\n"))
        style = getattr(event, "style", "") or ""
        in_flow = bool(self._open) and self._open[-1].in_flow
        key = self._open[-1].key if self._open else None
        key_start = key.start if key else start
        return Scalar(self._path(), start, end, value, style, in_flow, is_text, key_start)


def _is_text(event: yaml.ScalarEvent) -> bool:
    if event.tag is not None:
        return bool(event.tag == _STRING)
    if not event.implicit[0]:
        return True
    return _is_plain_text(event.value)


def _is_plain_text(value: str) -> bool:
    tag = _resolve(yaml.ScalarNode, value, (True, False))
    return tag == _STRING and not _SYMBOL.match(value)


def written(value: str, scalar: Scalar, old: str, column: int, newline: str) -> str:
    """A text as a scalar that stands in place of another one: in the same style where that can hold
    it, or else in double quotation marks.

    value: the text.
    scalar: the scalar that is there.
    old: how that is written.
    column: where its key begins in its line, from 0.
    newline: what ends the lines of the file."""
    if scalar.style in ("|", ">"):
        new = _block(value, old, scalar, newline)
    elif scalar.style == "'":
        new = "'" + value.replace("'", "''") + "'"
    else:
        new = value if not scalar.style else quoted(value)
    frame = ("{k: ", "}") if scalar.in_flow else (" " * column + "k: ", _line_ends(scalar))
    is_right = _reads_as(value, new, frame, is_plain=not scalar.style)
    return new if is_right else quoted(value)


def quoted(value: str) -> str:
    """A text in double quotation marks.

    value: the text."""
    return _UNPRINTABLE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", dumps(value, ensure_ascii=False))


def _line_ends(scalar: Scalar) -> str:
    """The line ends that stand behind a scalar and belong to it, as those of a block that keeps
    them (`|+`); one for any other."""
    return scalar.value[len(scalar.value.rstrip("\n")) :] or "\n"


def _block(value: str, old: str, scalar: Scalar, newline: str) -> str:
    """A text as a block with the header and the indentation of the old one. Where the header says
    the indentation (`|2`), the first line may begin with more blanks, which are of the text."""
    header = _HEADER.match(old)
    if header is None:
        return ""
    first = next((line for line in old[header.end() :].split("\n") if line.strip()), "")
    text_line = next((line for line in scalar.value.split("\n") if line.strip()), "")
    indent = first[: _blanks(first) - _blanks(text_line)]
    lines = value.rstrip("\n").split("\n")
    if scalar.style == ">":  # a line end there is a blank, and two are one
        lines = "\n\n".join(lines).split("\n")
    return header[0] + newline.join(indent + line if line else "" for line in lines)


def _blanks(line: str) -> int:
    """How many blanks a line begins with."""
    return len(line) - len(line.lstrip(" "))


def _reads_as(value: str, new: str, frame: tuple[str, str], is_plain: bool) -> bool:
    """Whether a scalar is read as this text between what stands in front of it and behind it."""
    try:
        events = list(yaml.parse(new.join(frame), Loader=_LOADER))
    except yaml.YAMLError:
        return False
    found = [event for event in events if isinstance(event, yaml.ScalarEvent)]
    if len(found) != 2 or found[1].value != value or "#" in new[:1]:
        return False
    return not is_plain or ("\n" not in new and _is_plain_text(value) and bool(value))
