"""ICU messages: an argument that chooses among messages, each of which is a sentence of its own.

    {n, plural, one {# file was saved.} other {# files were saved.}}    the text
    # file was saved.     # files were saved.                           its messages
    {n, plural, one {     } other {     }}                              its frames

Words around the only argument belong to every message: "Save {n, plural, one {# file} other {#
files}}." has the messages "Save # file." and "Save # files."."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tmnmt.codes.record import Part, Text, joined

NUMBER = "#"
Frame = Literal["begins", "goes on", "ends"]


@dataclass(frozen=True)
class Messages:
    """`frames`: what stands before every message, and behind the last."""

    frames: tuple[tuple[Part, ...], ...]
    texts: tuple[Text, ...]

    def joined(self, texts: Sequence[Text]) -> Text:
        """The whole, with these messages in its frames."""
        parts = list(self.frames[0])
        for text, frame in zip(texts, self.frames[1:], strict=True):
            parts += [*text.parts(), *frame]
        return joined(parts)


@dataclass
class _Reading:
    """What was read of a text; `inside`: a frame, or the parts of a message, in order."""

    inside: list[Part | list[Part]] = field(default_factory=list)
    before: list[Part] = field(default_factory=list)
    behind: list[Part] = field(default_factory=list)
    arguments: int = 0
    depth: int = 0
    deepest: int = 0


def messages(text: Text) -> Messages | None:
    """The messages of a text whose placeholders are codes. None where it has no such argument, or
    words that belong to no single message."""
    read = _read(text) if "{" in text.plain else None
    if read is None or not read.arguments:
        return None
    around = [*read.before, *read.behind]
    if _has_words(around):
        whole = read.arguments == read.deepest == 1 and all(isinstance(one, str) for one in around)
        if not whole or any(NUMBER in one for one in around):
            return None
        return _with_frames(read.inside, read.before, read.behind)
    return _with_frames([*read.before, *read.inside, *read.behind], [], [])


def _read(text: Text) -> _Reading | None:
    read, run, last = _Reading(), list[Part](), "ends"
    for part in text.parts():
        frame = _frame(part)
        if frame is None:
            run.append(part)
            continue
        if not read.depth and not read.arguments:
            read.before = run
        elif read.depth and last != "ends" and frame != "begins":
            read.inside.append(run)
        elif _has_words(run) or any(not isinstance(one, str) for one in run):
            return None  # words beside an argument, or between two
        else:
            read.inside.extend(run)
        run, last = [], frame
        read.arguments += frame == "begins" and not read.depth
        read.depth += {"begins": 1, "goes on": 0, "ends": -1}[frame]
        read.deepest = max(read.deepest, read.depth)
        read.inside.append(part)
    read.behind = run
    return read


def _with_frames(
    inside: Sequence[Part | list[Part]], before: list[Part], behind: list[Part]
) -> Messages | None:
    """Every message between what stands around it. One without words is left in its frame."""
    frames, texts = [list[Part]()], list[Text]()
    for one in inside:
        if isinstance(one, list):
            message = [*before, *one, *behind]
            if _has_words(message):
                texts.append(joined(message))
                frames.append([])
            else:
                frames[-1] += message
        else:
            frames[-1].append(one)
    return Messages(tuple(map(tuple, frames)), tuple(texts)) if texts else None


def _has_words(parts: Sequence[Part]) -> bool:
    return any(isinstance(part, str) and any(map(str.isalnum, part)) for part in parts)


def _frame(part: Part) -> Frame | None:
    """What a part of an argument's frame does; None where it is none."""
    covered = "" if isinstance(part, str) else part[1].strip()
    if covered[-1:] == "{":
        return "begins" if covered[0] == "{" else "goes on" if covered[0] == "}" else None
    return "ends" if len(covered) > 1 and covered[0] == covered[-1] == "}" else None
