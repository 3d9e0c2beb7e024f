"""Counts with their noun, for messages."""

from __future__ import annotations


def quantity(n: int, noun: str) -> str:
    """A count with its noun: "1 segment", "0 segments", "1,234 segments".

    n: the count.
    noun: the noun in the singular, whose plural ends in s."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
