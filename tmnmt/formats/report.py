"""What became of every unit: read, kept, skipped by reason, with the file and line of the first
ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tmnmt.errors import FormatError
from tmnmt.formats.clean import excerpt
from tmnmt.formats.stream import Allowance
from tmnmt.quantities import quantity

DUPLICATE = "duplicate"
EMPTY = "empty"
TOO_LONG = "too long"
WRONG_LANGUAGE = "wrong language"
MALFORMED = "malformed"
DRAFT = "draft"  # counted where files have some: not in the table of what any file may have
REASONS = (DUPLICATE, EMPTY, TOO_LONG, WRONG_LANGUAGE, MALFORMED)

EXAMPLES_KEPT = 3
LANGUAGES_KEPT = KINDS_KEPT = 1000  # in the report: a file may name another with every unit
# A few undecodable lines are damage; more than this many, and more than a tenth, is a file in
# another encoding.
UNDECODABLE_ALLOWED = 10


@dataclass(frozen=True, slots=True)
class Skipped:
    """One unit that was passed over.

    file: what messages call the file.
    line: the line where the unit starts, from 1.
    detail: what is wrong with it, in words."""

    file: str
    line: int
    detail: str

    def __str__(self) -> str:
        return f"{_place(self.file, self.line)}: {self.detail}"


@dataclass(slots=True)
class Report:
    """The count of a reading. `retained + total_skipped == units`, while reading and after it.

    units: how many units were read.
    retained: how many of them were kept.
    files: how many files were read.
    cleaned: how many texts lost control characters.
    skipped: how many units were skipped for each reason.
    examples: the first units that were skipped for each reason.
    warnings: what else is wrong, a line each.
    is_cut_off: whether a file ends before it should.
    languages: the codes that are in the path that is read.
    links: in alignments, how many links there are by the paragraphs that each side has, such as
    "1-1".
    related_files: files that were read besides those named, because an alignment points to them.
    with_variants: how many units have several variants of a language, such as fr-CA and fr-FR for
    fr."""

    units: int = 0
    retained: int = 0
    files: int = 0
    cleaned: int = 0
    skipped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    examples: dict[str, list[Skipped]] = field(
        default_factory=lambda: {reason: [] for reason in REASONS}
    )
    warnings: list[str] = field(default_factory=list)
    is_cut_off: bool = False
    languages: set[str] = field(default_factory=set)
    links: dict[str, int] = field(default_factory=dict)
    related_files: list[Path] = field(default_factory=list)
    with_variants: int = 0
    _variants: tuple[str, ...] = ()  # of the first of them
    _file: str = ""
    _file_start: int = 0
    _undecodable: int = 0
    _allowance: Allowance | None = None

    @property
    def total_skipped(self) -> int:
        """How many units were skipped, for whatever reason."""
        return sum(self.skipped.values())

    def begin_file(self, file: str, allowance: Allowance | None = None) -> None:
        """Begins a file, of which all that follows is.

        file: what messages call the file.
        allowance: how many units the file may hold; None does not count them."""
        self.files += 1
        self._file = file
        self._file_start = self.units
        self._undecodable = 0
        self._allowance = allowance

    def place(self, line: int) -> str:
        """What messages call a line of the file that is read.

        line: the line, from 1."""
        return _place(self._file, line)

    def keep(self) -> None:
        """Counts one unit as read and kept.

        Raises FormatError when the file unpacks to too many units."""
        self._count()
        self.retained += 1

    def _count(self) -> None:
        if self._allowance is not None:
            self._allowance.take_unit()
        self.units += 1

    def note_languages(self, codes: Iterable[str]) -> None:
        """Notes languages that the file has.

        codes: their codes."""
        if len(self.languages) < LANGUAGES_KEPT:
            self.languages.update(codes)

    def note_variants(self, codes: Iterable[str]) -> None:
        """Counts a unit in which several languages serve one side.

        codes: the codes of these languages."""
        self.with_variants += 1
        self._variants = self._variants or tuple(codes)

    def note_link(self, kind: str) -> None:
        """Counts a link of an alignment. Links of rare kinds count together once there are too many
        kinds.

        kind: the kind of the link, such as "1-1"."""
        kind = kind if kind in self.links or len(self.links) < KINDS_KEPT else "other"
        self.links[kind] = self.links.get(kind, 0) + 1

    def warn_of_encoding(self, encoding: str) -> None:
        """Warns that the file is in UTF-8 and declares another encoding.

        encoding: the declared encoding."""
        self.warnings.append(
            f"{self._file}: declared as {encoding}, but its bytes are UTF-8, so that é was read "
            "as Ã©: "
            "correct the encoding in its first line"
        )

    def skip(self, reason: str, line: int, detail: str) -> None:
        """Counts one unit as read and skipped.

        reason: why it is skipped, one of REASONS.
        line: the line where it begins, from 1.
        detail: what is wrong with it, in words.

        Raises FormatError when the file unpacks to too many units."""
        self._count()
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < EXAMPLES_KEPT:
            examples.append(Skipped(self._file, line, excerpt(detail, 300)))

    def skip_undecodable(self, line: int, encoding: str) -> None:
        """Counts a unit with bytes that cannot be decoded.

        line: the line where it begins, from 1.
        encoding: the encoding that the bytes should be in.

        Raises FormatError once there are too many for mere damage."""
        self.skip(MALFORMED, line, f"bytes that are not {encoding}")
        self._undecodable += 1
        if self._undecodable > max(UNDECODABLE_ALLOWED, (self.units - self._file_start) // 10):
            raise self._wrong_encoding(encoding)

    def end_file(self, encoding: str) -> None:
        """Ends a file.

        encoding: the encoding that it was read in.

        Raises FormatError when more than half of a short file could not be decoded."""
        if self._undecodable * 2 > self.units - self._file_start:
            raise self._wrong_encoding(encoding)

    def _wrong_encoding(self, encoding: str) -> FormatError:
        units = quantity(self.units - self._file_start, "unit")
        return FormatError(
            f"{self._file}: not {encoding} ({self._undecodable} of its first {units} cannot be "
            "decoded): "
            "convert it first, as in `iconv -f WINDOWS-1252 -t UTF-8`; allowed: UTF-8, UTF-16 "
            "with a byte-order mark, "
            "or what an XML declaration names"
        )

    def lines(self) -> list[str]:
        """The closing report: one line of counts, one for each reason met with examples, then the
        warnings."""
        units = f"{quantity(self.units, 'unit')} from {quantity(self.files, 'file')}"
        lines = [f"read {units}: kept {self.retained:,}, skipped {self.total_skipped:,}"]
        for reason, count in self.skipped.items():
            if count:
                lines.append(f"  {reason}: {count:,}")
                lines += [f"    {example}" for example in self.examples[reason]]
        if self.cleaned:
            lines.append(
                f"  {quantity(self.cleaned, 'text')} had control characters, which were taken out"
            )
        if self.with_variants:
            units = quantity(self.with_variants, "unit")
            lines.append(
                f"  {units} in several variants of a language, as {', '.join(self._variants[:6])}: "
                "of these the closest to what was asked for was read"
            )
        return lines + [f"  warning: {warning}" for warning in self.warnings]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _place(file: str, line: int) -> str:
    return f"{file}, line {line}"
