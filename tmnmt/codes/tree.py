"""The codes of a text as a tree: spans, what is inside them, and codes that stand alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tmnmt.codes.record import Code, pairs

DEEPEST = 100  # spans inside one another


@dataclass
class Node:
    """A span, from the code `first` to the code `last` of a list, or one code alone."""

    first: int
    last: int
    children: list[Node] = field(default_factory=list)

    @property
    def alone(self) -> bool:
        """Whether it is one code, and no span."""
        return self.first == self.last

    def codes(self) -> list[int]:
        """Its codes, in order."""
        inside = [code for child in self.children for code in child.codes()]
        return [self.first] if self.alone else [self.first, *inside, self.last]


def tree(codes: Sequence[Code]) -> list[Node] | None:
    """The codes that stand side by side outside all spans, with those inside; a half of a span is a
    code alone. None where spans cross, or are more than 100 deep.

    codes: the codes."""
    closes = pairs(codes)
    nodes: list[Node] = []
    inside = [nodes]
    waiting: list[Node] = []
    closing = set(closes.values())
    for index in range(len(codes)):
        if index in closes:
            waiting.append(Node(index, closes[index]))
            inside[-1].append(waiting[-1])
            inside.append(waiting[-1].children)
            if len(waiting) > DEEPEST:
                return None
        elif index in closing:
            if waiting.pop().last != index:
                return None
            inside.pop()
        else:
            inside[-1].append(Node(index, index))
    return nodes
