"""A translator's file through a model: what has no translation gets one, all else stays.

file.documents() ─► sources of open units ─► Translator.stream ─► fillings ─► file.write"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tmnmt.codes.record import Placed, Text, beside
from tmnmt.config.options import Overwrite
from tmnmt.errors import UsageError
from tmnmt.files.unit import Filling, State, TranslatableFile, Unit
from tmnmt.formats.languages import normal_code
from tmnmt.segments import Translation

OPEN: dict[Overwrite, tuple[State, ...]] = {
    "nothing": ("new",),
    "drafts": ("new", "draft"),
    "all": ("new", "draft", "translated"),
}


@dataclass(frozen=True, slots=True)
class Finished:
    """A unit that is gone through: its translation, if it was open; why that was not put in."""

    unit: Unit
    translation: Translation | None = None
    problem: str = ""

    @property
    def filling(self) -> Filling | None:
        """What is put into the unit."""
        made = self.translation
        if made is None or self.problem or not made.tgt:
            return None
        return Filling(Text(made.tgt, made.tgt_codes), made.origin, made.matches)


Documents = Iterable[Sequence[Text]]


def is_open(unit: Unit, overwrite: Overwrite) -> bool:
    """Whether a unit gets a translation; `overwrite`: which of those that have one."""
    return unit.state in OPEN[overwrite] and bool(unit.source.plain.strip())


def placed(units: Sequence[Unit]) -> list[Placed]:
    """The sources of the units of a document, each with its neighbours there and its name."""
    names = [unit.context or unit.id for unit in units]
    near = beside([unit.source for unit in units])
    return [
        Placed(unit.source.plain, unit.source.codes, *around[:2], name)
        for unit, around, name in zip(units, near, names, strict=True)
    ]


def finished(
    file: TranslatableFile,
    overwrite: Overwrite,
    translated: Callable[[Documents], Iterable[Translation]],
) -> Iterator[Finished]:
    """Every unit of the file, in order. `translated`: the translations of all texts of all
    documents, in order. Raises FormatError where the file cannot be read."""
    waiting = deque[Unit]()

    def texts() -> Iterator[Sequence[Text]]:
        for document in file.documents():
            units = list(document.units)
            waiting.extend(units)
            pairs = zip(units, placed(units), strict=True)
            yield [source for unit, source in pairs if is_open(unit, overwrite)]

    for translation in translated(texts()):
        while not is_open(waiting[0], overwrite):
            yield Finished(waiting.popleft())
        unit = waiting.popleft()
        target = Text(translation.tgt, translation.tgt_codes)
        yield Finished(unit, translation, file.refused(unit, target) if translation.tgt else "")
    yield from map(Finished, waiting)


def agree_on_languages(file: TranslatableFile, src_lang: str, tgt_lang: str) -> None:
    """A file that says no languages takes these. Raises UsageError where it says other ones,
    whatever their region."""
    for side, said, is_read in (
        ("source", file.src_lang, src_lang),
        ("target", file.tgt_lang, tgt_lang),
    ):
        if said and _without_region(said) != _without_region(is_read):
            raise UsageError(f"its {side} language is {said}, where {is_read} is wanted")
    file.src_lang, file.tgt_lang = file.src_lang or src_lang, file.tgt_lang or tgt_lang


def _without_region(code: str) -> str:
    return normal_code(code).partition("-")[0]
