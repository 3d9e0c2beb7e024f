"""A translator's file through a model: what has no translation gets one, all else stays.

file.documents() ─► sources of open units ─► Translator.stream ─► fillings ─► file.write"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tmnmt.batch.own_translations import is_open, partial_document
from tmnmt.batch.repetitions import BestMatches, Repetition, Repetitions
from tmnmt.codes.record import Placed, Text, surroundings
from tmnmt.config.options import Overwrite, OwnTranslations
from tmnmt.errors import UsageError
from tmnmt.files.states import repeated_origin
from tmnmt.files.unit import Filling, TranslatableFile, Unit
from tmnmt.formats.languages import normal_code
from tmnmt.partial_document import PartialDocument
from tmnmt.segments import Match, Segment, Translation
from tmnmt.text import normalise

if TYPE_CHECKING:
    from tmnmt.segments import ConfirmedPair


@dataclass(frozen=True, slots=True)
class Finished:
    """A unit that is gone through: its translation, if it was open; why that was not put in."""

    unit: Unit
    translation: Translation | None = None
    problem: str = ""
    tells_matches: bool = False  # whether the file has a place for matches
    is_repetition: bool = False  # whether its text came before

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
                repeated_origin(translation.origin) if self.is_repetition else translation.origin,
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


def placed(units: Sequence[Unit]) -> list[Placed]:
    """The sources of the units of a document, each with its neighbours there and its name."""
    names = [unit.context or unit.id for unit in units]
    contexts = surroundings([unit.source for unit in units])
    return [
        Placed(unit.source.plain, unit.source.codes, *context[:2], name, "\n".join(unit.all_notes))
        for unit, context, name in zip(units, contexts, names, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A unit whose turn has not come. `source` is None where nothing is done with it; `best` is the
    match that is told first."""

    unit: Unit
    source: Placed | None = None
    repetition: Repetition | None = None
    best: Match | None = None

    @property
    def is_sent(self) -> bool:
        """Whether it is translated, and does not get the translation of an earlier unit."""
        is_copied = self.repetition is not None and self.repetition.is_copied
        return self.source is not None and not is_copied


def translate_file(
    file: TranslatableFile,
    overwrite: Overwrite,
    translated: Callable[[Documents], Iterable[Translation]],
    best_matches: BestMatches | None = None,
    level: OwnTranslations = "off",
    repetitions: Repetitions | None = None,
) -> Generator[Finished]:
    """Every unit of the file, in order. `translated`: the translations of all texts of all
    documents, in order; it is called at once, and may read documents ahead. `best_matches`: asked
    for the matches of texts that are told beside those of their translations, where the file has a
    place for them: a model does not read them all. `level`: which of the units that stay are told
    as confirmed pairs of their documents. `repetitions`: finds the units that repeat an earlier
    one; not given, none does. Raises FormatError where the file cannot be read."""
    waiting = deque[_Waiting]()
    look_up = best_matches if file.tells_matches else None

    def texts() -> Iterator[PartialDocument]:
        for document in file.documents():
            units = list(document.units)
            new = _waiting(units, overwrite, look_up, repetitions)
            waiting.extend(new)
            texts_sent = ((entry.unit, entry.source if entry.is_sent else None) for entry in new)
            yield partial_document(texts_sent, overwrite, level)

    def finished(entry: _Waiting, translation: Translation) -> Finished:
        if entry.best is not None:
            translation = _with_match(translation, entry.best)
        target = Text(translation.tgt, translation.tgt_codes)
        problem = file.refused(entry.unit, target) if translation.tgt else ""
        is_repetition = entry.repetition is not None
        return Finished(entry.unit, translation, problem, file.tells_matches, is_repetition)

    def settled() -> Iterator[Finished]:
        """The units in front that wait for no translation."""
        while waiting and not waiting[0].is_sent:
            entry = waiting.popleft()
            if entry.source is None or repetitions is None:
                yield Finished(entry.unit)
            else:
                yield finished(entry, repetitions.translation_of(entry.source))

    def units_of(translations: Iterable[Translation]) -> Generator[Finished]:
        for translation in translations:
            yield from settled()
            entry = waiting.popleft()
            if repetitions is not None and entry.source is not None:
                repetitions.note(entry.source, translation)
            yield finished(entry, translation)
        yield from settled()

    return units_of(translated(texts()))


def _waiting(
    units: Sequence[Unit],
    overwrite: Overwrite,
    look_up: BestMatches | None,
    repetitions: Repetitions | None,
) -> list[_Waiting]:
    """The units of a document, each with what is known of it before it is translated."""
    sources = placed(units)
    rows = [row for row, unit in enumerate(units) if is_open(unit, overwrite)]
    texts = [sources[row] for row in rows]
    matches = look_up(texts) if look_up is not None else [None] * len(texts)
    repeated = repetitions.find(texts) if repetitions is not None else [None] * len(texts)
    of_open = dict(zip(rows, zip(texts, repeated, matches, strict=True), strict=True))
    return [_Waiting(unit, *of_open.get(row, ())) for row, unit in enumerate(units)]


def _with_match(translation: Translation, match: Match | None) -> Translation:
    """The translation with a match that is told first, and what that is worth for its source: a
    model may have read it beside another text, as a sentence in place of capitals."""
    if match is None:
        return translation
    remaining = (
        candidate
        for candidate in translation.matches
        if _undated(candidate.segment) != _undated(match.segment)
    )
    return replace(translation, matches=(match, *remaining))


def _undated(segment: Segment) -> Segment:
    """A pair of a file has the time at which the file was read, which is another one for each who
    reads it."""
    return replace(segment, created="", changed="")


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
    if not _agree(file.src_lang, src_lang):
        raise UsageError(
            "its source language is {language}, where {wanted} is wanted",
            **{"language": file.src_lang, "wanted": src_lang},
        )
    if not _agree(file.tgt_lang, tgt_lang):
        raise UsageError(
            "its target language is {language}, where {wanted} is wanted",
            **{"language": file.tgt_lang, "wanted": tgt_lang},
        )
    file.src_lang, file.tgt_lang = file.src_lang or src_lang, file.tgt_lang or tgt_lang


def _agree(language: str, wanted: str) -> bool:
    return not language or _without_region(language) == _without_region(wanted)


def _without_region(code: str) -> str:
    return normal_code(code).partition("-")[0]
