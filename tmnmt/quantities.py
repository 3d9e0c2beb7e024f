"""Counts with their noun, for messages."""

from __future__ import annotations


def quantity(n: int, noun: str) -> str:
    """ "1 segment", "0 segments", "1,234 segments"; for nouns whose plural ends in s."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
