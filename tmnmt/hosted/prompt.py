"""What a base behind an address is told: a template, filled for one text.

A template is text with names in braces. `{name}` is replaced, `{?name} ... {/name}` is left out
where there is nothing of that name, and `{#name} ... {/name}` comes once for every pair, with its
own `{source}` and `{target}`. A line `=====` parts what the system says from what the user says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from tmnmt.errors import FormatError, UsageError
from tmnmt.formats.iso639 import NAMES, short

LARGEST = 1 << 18  # characters of a template
BYTES_OF_TOKEN = 3  # in UTF-8, where nobody knows the tokens of a base; that is on the safe side
SEPARATOR = re.compile(r"^={3,}[ \t]*$", re.MULTILINE)
PAIRS = ("terms", "examples", "confirmed")
TEXTS = (
    "source_language",
    "target_language",
    "text",
    "tags",
    "numbers",
    "note",
    "previous",
    "next",
)
_SIGN = re.compile(r"\{(?P<kind>[?#/]?)(?P<name>[a-z_]+)\}")
_OF_PAIR = ("source", "target")


class Pair(NamedTuple):
    """A text with its translation."""

    source: str
    target: str


@dataclass(frozen=True)
class PromptData:
    """What is known of a text.

    languages: the codes of both languages.
    text: the text, with its tags.
    tags: the tags of the text.
    numbers: the numbers in it that stand for something.
    terms: the terms of the text, with what they are in the other language.
    examples: pairs that are like it, the best first.
    confirmed: pairs of its document, the latest last.
    note: what its file says of it.
    previous: the text before it.
    next: the text behind it."""

    languages: tuple[str, str]
    text: str
    tags: Sequence[str] = ()
    numbers: Sequence[str] = ()
    terms: Sequence[Pair] = ()
    examples: Sequence[Pair] = ()
    confirmed: Sequence[Pair] = ()
    note: str = ""
    previous: str = ""
    next: str = ""

    @property
    def values(self) -> dict[str, Any]:
        """What the names of a template stand for."""
        source, target = map(language_name, self.languages)
        return {
            "source_language": source,
            "target_language": target,
            "text": self.text,
            "tags": " ".join(self.tags),
            "numbers": ", ".join(self.numbers),
            "note": self.note,
            "previous": self.previous,
            "next": self.next,
            **{name: getattr(self, name) for name in PAIRS},
        }


@dataclass(frozen=True)
class _Block:
    """A part of a template: words, a name, or a part that depends on a name."""

    kind: str  # "words", "" for a name, "?" or "#"
    name: str
    blocks: list[_Block] = field(default_factory=list)

    def fill(self, values: Mapping[str, Any]) -> Iterator[str]:
        if self.kind == "words":
            yield self.name
        elif not self.kind:
            yield str(values[self.name])
        elif self.kind == "?":
            if values[self.name]:
                yield from _filled(self.blocks, values)
        else:
            for pair in values[self.name]:
                yield from _filled(self.blocks, {**values, **pair._asdict()})


def _filled(blocks: Sequence[_Block], values: Mapping[str, Any]) -> Iterator[str]:
    for block in blocks:
        yield from block.fill(values)


@dataclass(frozen=True)
class Template:
    """A template.

    text: its text.
    place: what messages call it: its file."""

    text: str
    place: str

    @cached_property
    def _parts(self) -> tuple[list[_Block], list[_Block]]:
        """What the system says, and what the user says."""
        separators = [*SEPARATOR.finditer(self.text)]
        if len(separators) != 1:
            raise FormatError(
                f"{self.place}: one line ===== is wanted, between what the system says and what "
                f"the user says; there are {len(separators)}"
            )
        [separator] = separators
        parts = self.text[: separator.start()], self.text[separator.end() :]
        first_line = self.text.count("\n", 0, separator.end()) + 1
        system, user = self._blocks(parts[0], 1), self._blocks(parts[1], first_line)
        if not any(block.kind == "" and block.name == "text" for block in user):
            raise FormatError(f"{self.place}: {{text}} is missing behind the line =====")
        return system, user

    def check(self) -> None:
        """Raises FormatError where the template is none."""
        _ = self._parts

    def _blocks(self, text: str, first_line: int) -> list[_Block]:
        """The parts of a half of the template. Raises FormatError, with the line."""
        stack, pairs_open, end = [_Block("", "")], list[str](), 0
        for sign in _SIGN.finditer(text):
            stack[-1].blocks.append(_Block("words", text[end : sign.start()]))
            kind, name, end = sign["kind"], sign["name"], sign.end()
            line = first_line + text.count("\n", 0, sign.start())
            allowed_names = (
                (*TEXTS, *PAIRS) if kind else (*TEXTS, *(_OF_PAIR if pairs_open else ()))
            )
            if name not in (PAIRS if kind == "#" else allowed_names):
                allowed = ", ".join(PAIRS if kind == "#" else allowed_names)
                raise FormatError(f"{self.place}:{line}: {sign[0]} is unknown; allowed: {allowed}")
            if kind == "/":
                if len(stack) == 1 or stack[-1].name != name:
                    raise FormatError(f"{self.place}:{line}: {sign[0]} closes nothing that is open")
                if stack.pop().kind == "#":
                    pairs_open.pop()
                continue
            block = _Block(kind, name)
            stack[-1].blocks.append(block)
            if kind:
                stack.append(block)
                pairs_open += [name] if kind == "#" else []
        if len(stack) > 1:
            raise FormatError(f"{self.place}: {{{stack[-1].kind}{stack[-1].name}}} is never closed")
        stack[0].blocks.append(_Block("words", text[end:]))
        return stack[0].blocks

    def filled(self, data: PromptData) -> list[dict[str, str]]:
        """The messages for a text.

        data: what is known of it."""
        texts = ("".join(_filled(blocks, data.values)).strip() for blocks in self._parts)
        roles = ("system", "user")
        return [
            {"role": role, "content": text} for role, text in zip(roles, texts, strict=True) if text
        ]

    def fit(self, data: PromptData, most_tokens: int) -> list[dict[str, str]]:
        """The messages for a text, with as much of what is known of it as there is room for. What
        is left out first stands first in `DROPS`.

        data: what is known of it.
        most_tokens: how many tokens the messages have at most, the text itself aside. The terms
        stay, however many they are."""
        room = most_tokens + tokens_of(data.text)
        messages = self.filled(data)
        for drop in DROPS:
            while _size(messages) > room and (smaller := drop(data)) is not None:
                data = smaller
                messages = self.filled(data)
        return messages


def _dropping_text(name: str) -> Callable[[PromptData], PromptData | None]:
    """Leaves out a text."""

    def drop(data: PromptData) -> PromptData | None:
        return replace(data, **{name: ""}) if getattr(data, name) else None  # type: ignore[arg-type]

    return drop


def _dropping_pair(name: str, remaining: slice) -> Callable[[PromptData], PromptData | None]:
    """Leaves out one pair."""

    def drop(data: PromptData) -> PromptData | None:
        pairs = getattr(data, name)
        return replace(data, **{name: pairs[remaining]}) if pairs else None

    return drop


# What is left out where there is no room, in this order: the texts beside it, what was confirmed
# from the oldest on, the pairs from the least like on, and the note. Terms are never left out.
DROPS = (
    _dropping_text("next"),
    _dropping_text("previous"),
    _dropping_pair("confirmed", slice(1, None)),
    _dropping_pair("examples", slice(None, -1)),
    _dropping_text("note"),
)


def tokens_of(text: str) -> int:
    """About how many tokens a text has, rather too many than too few.

    text: the text."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_OF_TOKEN)


def _size(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(tokens_of(message["content"]) for message in messages)


def language_name(code: str) -> str:
    """What people call a language, with its region where it has one.

    code: its code."""
    primary, _, region = code.replace("_", "-").partition("-")
    name = NAMES.get(short(primary.lower()), code)
    return f"{name} ({region})" if region else name


def load_template(path: Path | None) -> Template:
    """A template, which is checked.

    path: its file; None takes the one that comes with tmnmt.

    Raises UsageError for a file that cannot be read, and FormatError for one that is none."""
    if path is None:
        return Template(files("tmnmt.hosted").joinpath("default_prompt.txt").read_text("utf-8"), "")
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: no UTF-8 text") from error
    if len(text) > LARGEST:
        raise FormatError(f"{path}: larger than {LARGEST:,} characters; no template is")
    template = Template(text, str(path))
    template.check()
    return template
