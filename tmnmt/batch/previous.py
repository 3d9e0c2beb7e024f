"""A new version of a file beside its former version and the translation of that. What did not
change stays as it is in the translation, to the byte where the format allows it; the rest is
translated."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tmnmt.alignment.align import align
from tmnmt.batch.counterparts import counterparts, moved
from tmnmt.codes.record import Text
from tmnmt.files.as_memory import with_pairs
from tmnmt.files.office import OfficeFile
from tmnmt.files.sentences import has_rules
from tmnmt.files.unit import Confirmation, Document, Filling, TranslatableFile, Unit
from tmnmt.files.whole import Edit, WholeFile
from tmnmt.files.xliff import Xliff
from tmnmt.segments import Segment

Place = tuple[int, int]  # where a text begins and ends in its file, in characters


class Version:
    """The units of a file in order, and what each says."""

    def __init__(self, file: TranslatableFile) -> None:
        """Raises FormatError where the file cannot be read."""
        self.units = [unit for document in file.documents() for unit in document.units]
        # ids of XLIFF, which office files are read as, are mostly numbers of places
        self.has_names = not isinstance(file, Xliff | OfficeFile)
        self.places: list[Place] | None = None
        self.file_text = ""
        if isinstance(file, WholeFile) and (places := file.places) is not None:
            self.places, self.file_text = places, file.text

    @cached_property
    def texts(self) -> list[str]:
        """What each unit says: as it stands in the file, where that can be copied."""
        if self.places is not None:
            return [self.part(place) for place in self.places]
        return [
            "\0".join([unit.context, unit.source.plain, *(c.markup for c in unit.source.codes)])
            for unit in self.units
        ]

    @cached_property
    def outer(self) -> list[int]:
        """The numbers of the units that are not inside another one, as the title of a link is."""
        if self.places is None:
            return [*range(len(self.units))]
        numbers, last = list[int](), 0
        for number, (start, end) in enumerate(self.places):
            if start >= last:
                numbers.append(number)
                last = end
        return numbers

    @property
    def whole(self) -> Stretch:
        """All outer units."""
        return Stretch(self.outer, (0, len(self.file_text)))

    def inside(self, place: Place) -> Stretch:
        """The outer units that stand within a place of the file."""
        starts = self._outer_starts
        first, last = bisect_left(starts, place[0]), bisect_left(starts, place[1])
        return Stretch(self.outer[first:last], place)

    @cached_property
    def _outer_starts(self) -> list[int]:
        return [self.places[number][0] for number in self.outer] if self.places else []

    def part(self, place: Place) -> str:
        """What stands at a place of the file."""
        return self.file_text[place[0] : place[1]]

    def gaps(self, stretch: Stretch) -> list[Place]:
        """Where there is no unit of a stretch: before the first one, between two, behind the
        last."""
        places = [self.places[number] for number in stretch.numbers] if self.places else []
        ends = [stretch.place[0], *(bound for place in places for bound in place), stretch.place[1]]
        return [*zip(ends[::2], ends[1::2], strict=True)]


class Stretch(NamedTuple):
    """Units of a version, one after another.

    numbers: of the units.
    place: from where to where they stand."""

    numbers: list[int]
    place: Place

    def names(self, version: Version) -> list[str]:
        """The names of the units; empty where these do not have a name each."""
        names = [version.units[number].id for number in self.numbers if version.has_names]
        return names if all(names) and len({*names}) == len(self.numbers) else []

    def texts(self, version: Version) -> list[str]:
        """What the units say."""
        return [version.texts[number] for number in self.numbers]


class Versions(NamedTuple):
    """A file as it is, and cut into sentences; the same twice where it is not cut."""

    whole: Version
    cut: Version

    @property
    def is_cut(self) -> bool:
        """Whether it is cut into sentences."""
        return self.cut is not self.whole

    def numbers_inside(self, number: int) -> list[int]:
        """The numbers of all units of `cut` that stand within an outer unit of `whole`."""
        if self.whole.places is None or self.cut.places is None:
            return [number]
        start, end = self.whole.places[number]
        first = bisect_left(self.cut.places, (start, 0))
        last = bisect_left(self.cut.places, (end, 0))
        return [*range(first, last)]

    def sentences(self, number: int) -> Stretch:
        """The outer units of `cut` that stand within an outer unit of `whole`."""
        if self.whole.places is None:
            return Stretch([number], (0, 0))
        return self.cut.inside(self.whole.places[number])


def open_versions(
    kind: type[TranslatableFile], path: Path, languages: tuple[str, str]
) -> tuple[TranslatableFile, Versions]:
    """A file, and its units. Running text is cut into sentences where there are rules for both
    languages.

    kind: the kind of the file.
    path: the file.
    languages: of its text, and of the other version; what the file says itself goes before them.

    Raises FormatError where the file cannot be read."""

    def opened(is_cut: bool) -> tuple[TranslatableFile, Version]:
        file = kind(path)
        file.src_lang = file.src_lang or languages[0]
        file.tgt_lang = file.tgt_lang or languages[1]
        file.sentences = is_cut
        return file, Version(file)

    file, whole = opened(is_cut=False)
    if not kind.has_running_text or not all(map(has_rules, languages)):
        return file, Versions(whole, whole)
    cut_file, cut = opened(is_cut=True)
    # where nothing says where the texts stand, nothing says which sentences are of which text
    return (
        (file, Versions(whole, whole)) if cut.places is None else (cut_file, Versions(whole, cut))
    )


def is_translation(new: Versions, former: Versions, translation: Versions) -> bool:
    """Whether a new version has more texts of the translation than of the former version.

    new: the new version.
    former: the former version.
    translation: that of the former version."""
    texts = {text for text in new.whole.texts if text.strip()}
    in_former, in_translation = (
        len(texts.intersection(versions.whole.texts)) for versions in (former, translation)
    )
    return in_translation > in_former


@dataclass
class Comparison:
    """What a former version and its translation have for a new version. The units are those of the
    new version that is cut.

    targets: of the units that stay as they are, by their numbers; None where it is not known which
    part of the translation is that of this unit.
    edits: what is put into the new version as it stands in the translation, in order.
    counts: how many units "stayed", "moved", "changed" or are "new", and how many of the former
    ones are "gone".
    pairs: what was changed or is gone: the former units with their targets."""

    targets: dict[int, Text | None] = field(default_factory=dict)
    edits: list[Edit] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    pairs: list[Unit] = field(default_factory=list)

    def __str__(self) -> str:
        parts = [f"{self.counts[name]:,} {name}" for name in KINDS if self.counts[name]]
        return f"beside the former version: {', '.join(parts)}"

    def segments(self, path: Path) -> list[Segment]:
        """The pairs as segments of a memory; `path`: of the translation."""
        segments = with_pairs(self.pairs, path.as_posix(), path.name, lambda unit: True)
        return [segment for _, segment in segments if segment is not None and segment.tgt]


KINDS = ("stayed", "moved", "changed", "new", "gone")


def compared(
    new: Versions,
    former: Versions,
    translation: Versions,
    is_possible: Callable[[Unit, Text], bool],
) -> Comparison:
    """Compares a new version with the former one.

    new: the new version, in the source language.
    former: the former version.
    translation: that of the former version; the same where a file has sources and targets.
    is_possible: whether a unit can have a target, in formats whose bytes cannot be copied."""
    comparing = _Comparing(new, former, translation, is_possible)
    comparing.compare()
    comparing.comparison.edits.sort()
    return comparing.comparison


@dataclass
class _Comparing:
    """A comparison on its way."""

    new: Versions
    former: Versions
    translation: Versions
    is_possible: Callable[[Unit, Text], bool]
    comparison: Comparison = field(default_factory=Comparison)

    def compare(self) -> None:
        new, former, translation = (
            versions.whole.whole for versions in (self.new, self.former, self.translation)
        )
        names = new.names(self.new.whole), former.names(self.former.whole)
        found = counterparts(
            new.texts(self.new.whole),
            former.texts(self.former.whole),
            *(names if all(names) else ()),
        )
        partners = self._partners(self.former.whole, former, self.translation.whole, translation)
        in_other_order = moved(found)
        for position, number in enumerate(new.numbers):
            partner = found[position]
            if partner is None:
                self.comparison.counts["new"] += len(self.new.sentences(number).numbers)
                continue
            pair = former.numbers[partner], partners[partner]
            kind = "moved" if position in in_other_order else "stayed"
            if not self._keep(number, *pair, kind):
                self._change(number, *pair)
        for partner in {*range(len(former.numbers))} - {*found}:
            gone = former.numbers[partner]
            self.comparison.counts["gone"] += len(self.former.sentences(gone).numbers)
            self._add_pairs(gone, partners[partner])
        self._copy_gaps(
            (self.new.whole, self.former.whole, self.translation.whole),
            (new, former, translation),
            found,
            [None if n is None else bisect_left(translation.numbers, n) for n in partners],
        )

    def _partners(
        self, version: Version, former: Stretch, translated: Version, translation: Stretch
    ) -> list[int | None]:
        """For every unit of a stretch of the former version that unit of its translation: by their
        names, by their places where both have as many, else by what they say."""
        if version is translated:
            return [*former.numbers]
        names = former.names(version), translation.names(translated)
        if all(names):
            by_name = dict(zip(names[1], translation.numbers, strict=True))
            return [by_name.get(name) for name in names[0]]
        if len(former.numbers) == len(translation.numbers):
            return [*translation.numbers]
        sources, targets = (
            [texts.units[number].source.plain for number in stretch.numbers]
            for texts, stretch in ((version, former), (translated, translation))
        )
        partners: list[int | None] = [None] * len(sources)
        for link in align(sources, targets).pairs:
            if len(link.sources) == len(link.targets) == 1 and not link.is_doubtful:
                partners[link.sources[0]] = translation.numbers[link.targets[0]]
        return partners

    def _keep(self, number: int, former: int, translation: int | None, kind: str) -> bool:
        """Has a unit stay as it is, where it says what its counterpart said."""
        if self.new.whole.texts[number] != self.former.whole.texts[former] or translation is None:
            return False
        places, former_places = self.new.whole.places, self.translation.whole.places
        if places is not None and former_places is not None:
            part = self.translation.whole.part(former_places[translation])
            self.comparison.edits.append(Edit(*places[number], part))
        elif not self._has_target(number, translation):
            return False
        sentences = self.new.sentences(number).numbers
        partners = self.translation.sentences(translation).numbers
        targets = dict.fromkeys(self.new.numbers_inside(number))
        if len(sentences) == len(partners):
            pairs = zip(sentences, partners, strict=True)
            targets |= {n: self._target(self.translation.cut, partner) for n, partner in pairs}
        self.comparison.targets |= targets
        self.comparison.counts[kind] += len(sentences)
        return True

    def _has_target(self, number: int, translation: int) -> bool:
        target = self._target(self.translation.whole, translation)
        unit = self.new.whole.units[number]
        is_open = unit.state == "new" or not self._is_bilingual
        return is_open and bool(target.plain.strip()) and self.is_possible(unit, target)

    @property
    def _is_bilingual(self) -> bool:
        return self.former.whole is self.translation.whole

    def _target(self, version: Version, number: int) -> Text:
        """The target of a former unit, by its number in the translation."""
        unit = version.units[number]
        if not self._is_bilingual:
            return unit.source
        is_finished = unit.target is not None and unit.confirmation != "none"
        return unit.target if is_finished and unit.target is not None else Text("")

    def _change(self, number: int, former: int, translation: int | None) -> None:
        """A unit that was changed: the sentences in it that were not stay as they are."""
        sentences = self.new.sentences(number)
        if not self.new.is_cut or translation is None:
            is_same = self.new.whole.texts[number] == self.former.whole.texts[former]
            kind = "new" if is_same else "changed"  # the same, and nobody has translated it
            self.comparison.counts[kind] += len(sentences.numbers)
            self._add_pairs(former, translation)
            return
        versions = self.former.cut, self.translation.cut
        stretches = self.former.sentences(former), self.translation.sentences(translation)
        partners = self._partners(versions[0], stretches[0], versions[1], stretches[1])
        if not any(partner is not None for partner in partners):
            self._add_pairs(former, translation)
        found = counterparts(sentences.texts(self.new.cut), stretches[0].texts(versions[0]))
        for position, counterpart in zip(sentences.numbers, found, strict=True):
            if counterpart is None:
                self.comparison.counts["new"] += 1
            else:
                pair = stretches[0].numbers[counterpart], partners[counterpart]
                self._sentence(position, *pair)
        for counterpart in {*range(len(partners))} - {*found}:
            self.comparison.counts["gone"] += 1
            self._add_pair(versions[0], stretches[0].numbers[counterpart], partners[counterpart])
        self._copy_gaps(
            (self.new.cut, *versions),
            (sentences, *stretches),
            found,
            [None if n is None else bisect_left(stretches[1].numbers, n) for n in partners],
        )

    def _sentence(self, number: int, former: int, translation: int | None) -> None:
        """A sentence of a unit that was changed, with its counterpart."""
        new, translated = self.new.cut, self.translation.cut
        is_same = new.texts[number] == self.former.cut.texts[former]
        if not is_same or translation is None or not new.places or not translated.places:
            self.comparison.counts["changed"] += 1
            self._add_pair(self.former.cut, former, translation)
            return
        self.comparison.counts["stayed"] += 1
        part = translated.part(translated.places[translation])
        self.comparison.edits.append(Edit(*new.places[number], part))
        start, end = new.places[number]
        first, last = bisect_left(new.places, (start, 0)), bisect_left(new.places, (end, 0))
        self.comparison.targets |= dict.fromkeys(range(first, last))
        self.comparison.targets[number] = translated.units[translation].source

    def _add_pairs(self, former: int, translation: int | None) -> None:
        """Adds a former unit to the pairs, and those inside it."""
        if translation is None:
            return
        numbers, partners = (
            Versions(versions.whole, versions.whole).numbers_inside(number)
            for versions, number in ((self.former, former), (self.translation, translation))
        )
        if len(numbers) != len(partners):
            numbers, partners = [former], [translation]
        for number, partner in zip(numbers, partners, strict=True):
            self._add_pair(self.former.whole, number, partner, self.translation.whole)

    def _add_pair(
        self,
        version: Version,
        number: int,
        partner: int | None,
        translation: Version | None = None,
    ) -> None:
        """Adds a unit of a former version to the pairs, where it has a target. `partner`: its
        number in the translation, cut unless another is given."""
        if partner is None:
            return
        target = self._target(translation or self.translation.cut, partner)
        if target.plain.strip():
            unit = replace(version.units[number], target=target, confirmation="translated")
            self.comparison.pairs.append(unit)

    def _copy_gaps(
        self,
        versions: Sequence[Version],
        stretches: Sequence[Stretch],
        found: Sequence[int | None],
        partners: Sequence[int | None],
    ) -> None:
        """Puts in what stands between two units in the translation, where it is between the same
        ones, and was not changed.

        found: the positions of the counterparts in the former stretch.
        partners: of these in that of the translation."""
        if any(version.places is None for version in versions):
            return
        gaps = [version.gaps(stretch) for version, stretch in zip(versions, stretches, strict=True)]
        ends = len(gaps[1]) - 1, len(gaps[2]) - 1
        bounded = [-1, *found, ends[0]]
        bounded_partners = {-1: -1, ends[0]: ends[1]} | dict(enumerate(partners))
        for gap, (before, behind) in zip(gaps[0], pairwise(bounded), strict=True):
            if before is None or behind is None or behind != before + 1:
                continue
            first, last = bounded_partners[before], bounded_partners[behind]
            if first is None or last is None or last != first + 1:
                continue
            part = versions[2].part(gaps[2][last])
            if versions[0].part(gap) == versions[1].part(gaps[1][behind]) != part:
                self.comparison.edits.append(Edit(*gap, part))


class FileWithFormer(TranslatableFile):
    """A new version of a file, in which what did not change is translated already."""

    def __init__(self, file: TranslatableFile, comparison: Comparison) -> None:
        self._file, self.comparison = file, comparison
        self.kind, self.title = file.kind, file.title
        self.is_memory, self.is_bilingual = file.is_memory, file.is_bilingual
        self.has_running_text, self.marks_drafts = file.has_running_text, file.marks_drafts
        self.tells_matches, self.sentences = file.tells_matches, file.sentences
        self.src_lang, self.tgt_lang = file.src_lang, file.tgt_lang
        self._is_copied = isinstance(file, WholeFile) and file.places is not None

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """No file: it is made of another one."""
        return False

    def documents(self) -> Iterator[Document]:
        number = 0
        for document in self._file.documents():
            units = list[Unit]()
            for unit in document.units:
                units.append(self._with_target(unit, number))
                number += 1
            yield Document(document.name, units)

    def _with_target(self, unit: Unit, number: int) -> Unit:
        targets = self.comparison.targets
        if number not in targets or unit.state == "locked":
            return unit
        target = targets[number]
        confirmation: Confirmation = "none" if target is None else "translated"
        return replace(unit, target=target, state="translated", confirmation=confirmation)

    def write(self, destination: BinaryIO, fillings: Iterable[Filling | None]) -> None:
        if isinstance(self._file, WholeFile) and self._is_copied:
            self._file.verbatim = self.comparison.edits
            self._file.write(destination, fillings)
            return
        targets = self.comparison.targets
        self._file.write(
            destination,
            (
                Filling(target, "memory")
                if filling is None and (target := targets.get(number)) is not None
                else filling
                for number, filling in enumerate(fillings)
            ),
        )

    def refused(self, unit: Unit, target: Text) -> str:
        return self._file.refused(unit, target)
