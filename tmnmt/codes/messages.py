"""ICU messages: an argument that chooses among messages, each of which is a sentence of its own.

    {n, plural, one {# file was saved.} other {# files were saved.}}    the text
    # file was saved.     # files were saved.                           its messages
    {n, plural, one {     } other {     }}                              its frames

Words around an argument belong to every message, and so do arguments: "{name} has {n, plural, one
{# file} other {# files}}." has the messages "{name} has # file." and "{name} has # files.". Where
one argument comes into another, the one with the # is the inner one: # is the nearest number.
Where that cannot be, as with two such arguments, every run of words is a message."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tmnmt.codes.record import Code, Part, Text, is_text, join_parts

NUMBER = "#"
MAX_MESSAGES = 12  # messages into which the words around arguments are put
DEEPEST = 8  # arguments within one another
_CHOICE = re.compile(r"\{\s*(\w+)\s*,\s*(\w+)\s*,\s*(offset:\s*\d+)?")
_QUOTABLE = ("{", "}", "#")
_SYNTAX = re.compile("[{}#]")
_UNSUPPORTED = re.compile(r"\{\{|,\s*(?:plural|select)|^'#")
_KEY = re.compile(r"(=?\w+)\s*\{\s*$")
Frame = Literal["begins", "goes on", "ends"]


@dataclass(frozen=True)
class Messages:
    """`frames`: what stands before every message, and behind the last; `keys`: of every message, of
    all arguments that it is in, the outermost first."""

    frames: tuple[tuple[Part, ...], ...]
    texts: tuple[Text, ...]
    keys: tuple[tuple[str, ...], ...]

    def by_key(self) -> dict[tuple[str, ...], Text]:
        """Every message that is the only one with its keys."""
        return {
            keys: text
            for keys, text in zip(self.keys, self.texts, strict=True)
            if self.keys.count(keys) == 1
        }

    def join(self, texts: Sequence[Text]) -> Text:
        """The whole text, with other messages in its frames, without syntax that a message makes
        up.

        texts: the messages, in order."""
        parts = list(self.frames[0])
        for text, original, frame in zip(texts, self.texts, self.frames[1:], strict=True):
            parts += [*_without_syntax(text, original), *frame]
        parts = [_unquoting(*two) for two in zip(parts, [*parts[1:], ""], strict=True)]
        return join_parts([*parts[:1], *map(_spaced, parts[1:-1]), *parts[1:][-1:]])


def _without_syntax(text: Text, original: Text) -> Iterator[Part]:
    """The parts of what was made of a message, without braces and # that are not in its words."""
    syntax = set("{}#").difference(*(part for part in original.parts() if isinstance(part, str)))
    for part in text.parts():
        yield "".join(c for c in part if c not in syntax) if isinstance(part, str) else part


def _unquoting(part: Part, following: Part) -> Part:
    """A part as it stands before another: an apostrophe would quote syntax."""
    if not isinstance(part, str) or isinstance(following, str) or following[1][:1] not in _QUOTABLE:
        return part
    return f"{part[:-1]}\u2019" if part.endswith("'") else part


def _spaced(part: Part) -> Part:
    """A blank that stood at an end of a message, between words."""
    if isinstance(part, str) or part[0].kind != "blank":
        return part
    return part[0], part[1] or " "


@dataclass(frozen=True)
class _Argument:
    """`begins`: the frame in front of every branch; `end`: the one behind the last."""

    begins: tuple[tuple[Code, str], ...]
    branches: tuple[tuple[_Item, ...], ...]
    end: tuple[Code, str]

    @property
    def choice(self) -> tuple[object, ...]:
        """Its name, kind and offset, and the keys of its branches."""
        first = _CHOICE.match(self.begins[0][1].strip())
        return (first and first.groups(), *self.keys)

    @property
    def keys(self) -> list[str]:
        """Of its branches."""
        keys = (_KEY.search(frame) for _, frame in self.begins)
        return [key[1] if key is not None else "" for key in keys]

    @property
    def has_number(self) -> bool:
        return any(_is_number(item) for branch in self.branches for item in branch)


_Item = Part | _Argument


def messages(text: Text) -> Messages | None:
    """The messages of a text; None where no argument chooses among words.

    text: the text, whose placeholders are codes."""
    items, end = _items(text.parts(), 0) if "{" in text.plain else ([], None)
    if end is not None or not any(isinstance(item, _Argument) for item in items):
        return None
    splitter = _MessageSplitter()
    splitter.add(items)
    return splitter.messages() if splitter.texts else None


def in_sentences(text: Text) -> Text:
    """A text with each of its messages as a whole sentence, as a translation has them.

    text: the text, whose placeholders are codes."""
    split = messages(text)
    return text if split is None else split.join(split.texts)


def _items(parts: Iterator[Part], depth: int) -> tuple[list[_Item], tuple[Code, str] | None]:
    """What comes before the next frame that belongs to an argument around it, and that frame; or
    before the first of an argument that has no end or is too deep within others."""
    items = list[_Item]()
    for part in parts:
        frame = _frame(part)
        if isinstance(part, str) or frame is None:
            items.append(part)
        elif frame == "begins" and (argument := _argument(part, parts, depth + 1)):
            items.append(argument)
        else:
            return items, part
    return items, None


def _argument(first: tuple[Code, str], parts: Iterator[Part], depth: int) -> _Argument | None:
    begins, branches = [first], list[tuple[_Item, ...]]()
    while depth <= DEEPEST:
        branch, frame = _items(parts, depth)
        branches.append(tuple(branch))
        if frame is None or _frame(frame) == "begins":
            break
        if _frame(frame) == "ends":
            return _Argument(tuple(begins), tuple(branches), frame)
        begins.append(frame)
    return None


class _MessageSplitter:
    """Takes a text apart."""

    def __init__(self) -> None:
        self.texts: list[Text] = []
        self._keys: list[tuple[str, ...]] = []
        self._frames: list[list[Part]] = [[]]
        self._inside: list[str] = []  # keys of the branches that are being taken apart

    def messages(self) -> Messages:
        return Messages(tuple(map(tuple, self._frames)), tuple(self.texts), tuple(self._keys))

    def add(self, items: Sequence[_Item]) -> None:
        arguments = [item for item in items if isinstance(item, _Argument)]
        if arguments and _is_sentence(items):
            outer = min(arguments, key=lambda argument: argument.has_number)
            neighbours = (item for item in items if item is not outer)
            if _count(items) <= MAX_MESSAGES and all(map(_may_move, neighbours)):
                self._add_branches(outer, _in_branches(items, outer))
                return
        run = list[Part]()
        for item in items:
            if isinstance(item, _Argument):
                self._add_message(run)
                self._add_branches(item, item.branches)
                run = []
            else:
                run.append(item)
        self._add_message(run)

    def _add_branches(self, argument: _Argument, branches: Iterable[Sequence[_Item]]) -> None:
        for frame, key, branch in zip(argument.begins, argument.keys, branches, strict=True):
            self._frames[-1].append(frame)
            self._inside.append(key)
            self.add(branch)
            self._inside.pop()
        self._frames[-1].append(argument.end)

    def _add_message(self, message: Sequence[Part]) -> None:
        """One without words is left in its frame."""
        if any(map(_is_word, message)):
            self.texts.append(join_parts(message))
            self._keys.append(tuple(self._inside))
            self._frames.append([])
        else:
            self._frames[-1] += message


def _in_branches(items: Sequence[_Item], outer: _Argument) -> Iterator[Sequence[_Item]]:
    """Every branch of one argument with all that stands beside it. Of others that choose in the
    same way the same branch is taken."""
    for number in range(len(outer.branches)):
        whole = list[_Item]()
        for item in items:
            if isinstance(item, _Argument) and item.choice == outer.choice:
                whole += item.branches[number]
            else:
                whole.append(item)
        yield whole


def _count(items: Iterable[_Item]) -> int:
    """How many sentences are made of one."""
    arguments = {item.choice: item for item in items if isinstance(item, _Argument)}.values()
    return math.prod(sum(map(_count, argument.branches)) for argument in arguments)


def _is_sentence(items: Sequence[_Item]) -> bool:
    """Whether what stands beside arguments makes one sentence with them: words, or a placeholder or
    argument with nothing but a blank between."""
    if any(map(_is_word, items)):
        return True
    signs = "".join(item if isinstance(item, str) else _sign(item) for item in items)
    match = _ADJACENT.search(signs)
    numbers = sum(isinstance(item, _Argument) and item.has_number for item in items)
    return match is not None and numbers < 2


_ADJACENT = re.compile("\ue000[^\\S\n]*[\ue000\ue001]|\ue001[^\\S\n]*\ue000")


def _sign(item: _Argument | tuple[Code, str]) -> str:
    if isinstance(item, _Argument):
        return "\ue000"
    return "\ue001" if is_text(item[0]) and not item[1].startswith("\\") else "\n"


def _may_move(item: _Item) -> bool:
    """Whether it means the same within another argument, and may come more than once, as codes that
    are text may. {{x}} would end a message early, {n, plural,} is no whole argument, and '#' is
    quoted in a plural alone."""
    if isinstance(item, _Argument):
        return all(
            isinstance(part, str) or _is_number(part) or _may_move(part)
            for branch in item.branches
            for part in branch
        )
    if isinstance(item, str):
        return _SYNTAX.search(item) is None
    return not item[0].form and item[1] != NUMBER and not _UNSUPPORTED.search(item[1])


def _is_number(item: _Item) -> bool:
    return isinstance(item, tuple) and item[1] == NUMBER


def _is_word(item: _Item) -> bool:
    return isinstance(item, str) and any(map(str.isalnum, item))


def _frame(part: Part) -> Frame | None:
    """What a part of an argument's frame does; None where it is none."""
    covered = "" if isinstance(part, str) else part[1].strip()
    if covered[-1:] == "{":
        return "begins" if covered[0] == "{" else "goes on" if covered[0] == "}" else None
    return "ends" if len(covered) > 1 and covered[0] == covered[-1] == "}" else None
