"""Placeholders that programs put something in for, such as %s, and what the user names with
`--keep`."""

from __future__ import annotations

from tmnmt.codes.placeholders import ALL_FINDERS
from tmnmt.filters.contract import Reader
from tmnmt.filters.marking import Marker


class Placeholders(Marker):
    """Finds placeholders of programs, and what the user names, to be copied."""

    is_for_people = True
    is_reader = True
    finders = ALL_FINDERS

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader)
        self.first = () if reader.is_person else reader.keep
