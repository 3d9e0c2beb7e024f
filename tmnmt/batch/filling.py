"""A translator's file through a model: what has no translation gets one, all else stays.

file.documents() ─► sources of open units ─► Translator.stream ─► fillings ─► file.write"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tmnmt.batch.own_translations import is_open, partial_document
from tmnmt.codes.record import Placed, Text, surroundings
from tmnmt.config.options import Overwrite, OwnTranslations
from tmnmt.errors import UsageError
from tmnmt.files.unit import Filling, TranslatableFile, Unit
from tmnmt.formats.languages import normal_code
from tmnmt.partial_document import PartialDocument
from tmnmt.segments import Match, Translation
from tmnmt.text import normalise

if TYPE_CHECKING:
    from tmnmt.engine.confirmed import ConfirmedPair


@dataclass(frozen=True, slots=True)
class Finished:
    """A unit that is gone through: its translation, if it was open; why that was not put in."""

    unit: Unit
    translation: Translation | None = None
    problem: str = ""
    tells_matches: bool = False  # whether the file has a place for matches

    @property
    def is_filled(self) -> bool:
        """Whether the unit gets a target."""
        return self.translation is not None and bool(self.translation.tgt) and not self.problem

    @property
    def filling(self) -> Filling | None:
        """What is put into the unit: a target with its matches, or matches alone."""
        translation = self.translation
        if translation is None:
            return None
        if self.is_filled:
            return Filling(
                Text(translation.tgt, translation.tgt_codes),
                translation.origin,
                _taken_first(translation),
            )
        matches = translation.matches if self.tells_matches else ()
        return Filling(Text(""), "", matches) if matches else None


def _taken_first(translation: Translation) -> tuple[Match, ...]:
    """The matches, first what was taken, where that was one of them."""
    if translation.origin == "model":
        return translation.matches
    return tuple(sorted(translation.matches, key=lambda match: match.tgt != translation.tgt))


Documents = Iterable[PartialDocument]
BestMatches = Callable[[Sequence[Text]], list[Match | None]]


def placed(units: Sequence[Unit]) -> list[Placed]:
    """The sources of the units of a document, each with its neighbours there and its name."""
    names = [unit.context or unit.id for unit in units]
    contexts = surroundings([unit.source for unit in units])
    return [
        Placed(unit.source.plain, unit.source.codes, *context[:2], name)
        for unit, context, name in zip(units, contexts, names, strict=True)
    ]


def translate_file(
    file: TranslatableFile,
    overwrite: Overwrite,
    translated: Callable[[Documents], Iterable[Translation]],
    best_matches: BestMatches | None = None,
    level: OwnTranslations = "off",
) -> Iterator[Finished]:
    """Every unit of the file, in order. `translated`: the translations of all texts of all
    documents, in order. `best_matches`: asked for the matches of texts that are told beside those
    of their translations, where the file has a place for them: a model does not read them all.
    `level`: which of the units that stay are told as confirmed pairs of their documents. Raises
    FormatError where the file cannot be read."""
    waiting = deque[Unit]()
    best = deque[Match | None]()

    def texts() -> Iterator[PartialDocument]:
        for document in file.documents():
            units = list(document.units)
            waiting.extend(units)
            pairs = zip(units, placed(units), strict=True)
            sources = [source for unit, source in pairs if is_open(unit, overwrite)]
            if best_matches is not None and file.tells_matches:
                best.extend(best_matches(sources))
            yield partial_document(units, sources, overwrite, level)

    for translation in translated(texts()):
        while not is_open(waiting[0], overwrite):
            yield Finished(waiting.popleft())
        unit = waiting.popleft()
        if best:
            translation = _with_match(translation, best.popleft())
        target = Text(translation.tgt, translation.tgt_codes)
        problem = file.refused(unit, target) if translation.tgt else ""
        yield Finished(unit, translation, problem, file.tells_matches)
    yield from map(Finished, waiting)


def _with_match(translation: Translation, match: Match | None) -> Translation:
    """The translation with a match that is told first, and what that is worth for its source: a
    model may have read it beside another text, as a sentence in place of capitals."""
    if match is None:
        return translation
    remaining = (
        candidate for candidate in translation.matches if candidate.segment != match.segment
    )
    return replace(translation, matches=(match, *remaining))


def with_confirmed(
    units: Iterable[Finished], confirmed: Iterable[ConfirmedPair]
) -> Iterator[Finished]:
    """The units, where a full match that a session has confirmed for this very unit is the work of
    a person: of every pair the first unit with its source and translation. Further ones are
    repetitions, and stay full matches."""
    pairs = Counter((normalise(entry.src), entry.tgt) for entry in confirmed if entry.tgt)
    for unit in units:
        translation = unit.translation
        if translation is None or translation.origin != "memory":
            yield unit
            continue
        pair = normalise(translation.src), translation.tgt
        is_work = pairs[pair] > 0
        pairs[pair] -= is_work
        yield (
            replace(unit, translation=replace(translation, origin="confirmed")) if is_work else unit
        )


def agree_on_languages(file: TranslatableFile, src_lang: str, tgt_lang: str) -> None:
    """A file that says no languages takes these. Raises UsageError where it says other ones,
    whatever their region."""
    for side, language, is_read in (
        ("source", file.src_lang, src_lang),
        ("target", file.tgt_lang, tgt_lang),
    ):
        if language and _without_region(language) != _without_region(is_read):
            raise UsageError(f"its {side} language is {language}, where {is_read} is wanted")
    file.src_lang, file.tgt_lang = file.src_lang or src_lang, file.tgt_lang or tgt_lang


def _without_region(code: str) -> str:
    return normal_code(code).partition("-")[0]
