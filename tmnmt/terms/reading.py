"""Term files: TBX, tables with a header (CSV, TSV), and OmegaT's glossary.txt."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from io import BufferedReader
from itertools import chain
from pathlib import Path

from tmnmt.errors import FormatError
from tmnmt.formats.clean import excerpt
from tmnmt.formats.encoding import head_text, lines, root_element
from tmnmt.formats.languages import normal_code, rank
from tmnmt.formats.stream import Source, file_source, is_zip, zip_sources
from tmnmt.terms.tbx import ROOTS, read_tbx
from tmnmt.terms.term import Term, check_text, form, merged

MOST_BYTES = 200_000_000
LONGEST_LINE = 100_000  # characters
ALIKE = 0.85  # how alike the name of a column and one that is read are, where it is misspelt
GLOSSARY_SUFFIXES = (".txt", ".utf8")  # as OmegaT names them: tabs, no header
MEMBER_SUFFIXES = (".tbx", ".xml", ".csv", ".tsv", *GLOSSARY_SUFFIXES)  # in an archive
_MEMBERS = f"allowed: members whose names end in {', '.join(MEMBER_SUFFIXES)}"
COLUMNS = {
    "source": ("source", "src", "term"),
    "target": ("target", "tgt", "trg", "translation"),
    "forbidden": ("forbidden",),
    "note": ("note", "comment", "notes", "comments"),
    "case": ("case", "case_sensitive"),
    "context": ("context", "domain", "subject", "definition"),
    "verbatim": ("do_not_translate", "dnt", "verbatim"),
}
UNREAD_COLUMN = "other "  # before the name of a column that is not read
_DELIMITERS = {"\t": "tabs", ",": "commas", ";": "semicolons"}
_YES, _NO = ("yes", "true", "1", "x"), ("no", "false", "0", "")
_HEADER = (
    "allowed: a header that names source and target, and perhaps forbidden, note, "
    "case, context and do_not_translate; or "
    "a glossary of OmegaT, without one, whose name ends in .txt"
)


def read_terms(path: Path, src_lang: str, tgt_lang: str) -> list[Term]:
    """The terms of a file, or of the term files in a zip archive: those of one source together, in
    their order.

    path: the file.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.

    Raises FormatError, with the line, for what is no term file, and for one without a term of these
    languages."""
    if path.is_file() and is_zip(path):
        with zip_sources(path) as members:
            files = [member for member in members if member.suffix in MEMBER_SUFFIXES]
            if not files:
                raise FormatError(f"{path}: no file of terms in it; {_MEMBERS}")
            return _merged((_terms(member, src_lang, tgt_lang) for member in files), str(path))
    source = file_source(path)
    return _merged([_terms(source, src_lang, tgt_lang)], source.label)


def _merged(terms: Iterable[Iterator[Term]], label: str) -> list[Term]:
    merged_terms = merged(chain.from_iterable(terms), label)
    if not merged_terms:
        raise FormatError(f"{label}: no terms in it")
    return merged_terms


def _terms(source: Source, src_lang: str, tgt_lang: str) -> Iterator[Term]:
    """The terms of one file."""
    if source.size > MOST_BYTES:
        raise FormatError(f"{source.label}: {source.size:,} bytes; {MOST_BYTES:,} at most are read")
    with source.stream() as stream:
        root = root_element(head_text(stream))
        if root in ROOTS:
            yield from read_tbx(stream, source.label, src_lang, tgt_lang)
        elif root:
            raise FormatError(
                f"{source.label}: XML of root {excerpt(root)}; allowed: TBX (roots "
                f"{', '.join(ROOTS)}), CSV, TSV, glossary.txt"
            )
        else:
            yield from _lines(stream, source, src_lang, tgt_lang)


def _lines(stream: BufferedReader, source: Source, src_lang: str, tgt_lang: str) -> Iterator[Term]:
    numbered = _numbered(list(lines(stream, LONGEST_LINE)), source.label)
    if source.suffix in GLOSSARY_SUFFIXES:
        return _glossary(numbered, source.label)
    return _table(numbered, source, src_lang, tgt_lang)


def _numbered(numbered: Iterable[str], label: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(numbered, 1):
        check_text(line, f"{label}, line {number}")
        if len(line) >= LONGEST_LINE:
            raise FormatError(
                f"{label}, line {number}: longer than {LONGEST_LINE:,} characters, the most allowed"
            )
        yield number, line


def _glossary(numbered: Iterable[tuple[int, str]], label: str) -> Iterator[Term]:
    """source, target, comment; lines that begin with # say nothing."""
    for number, line in numbered:
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split("\t")
        place = f"{label}, line {number}"
        if len(cells) not in (2, 3):
            raise FormatError(
                f"{place}: {len(cells)} columns; a glossary has source, target and perhaps a "
                "comment, with tabs between them"
            )
        yield _term(dict(zip(("source", "target", "note"), cells, strict=False)), place)


def _table(
    numbered: Iterator[tuple[int, str]], source: Source, src_lang: str, tgt_lang: str
) -> Iterator[Term]:
    head = next((line for _, line in numbered), "")
    delimiter, columns = _header(head, source, src_lang, tgt_lang)
    for number, cells in _rows(numbered, delimiter, source.label):
        if not any(map(str.strip, cells)):
            continue
        place = f"{source.label}, line {number}"
        if len(cells) != len(columns):
            raise FormatError(
                f"{place}: {len(cells)} columns where the header has {len(columns)}, with "
                f"{_DELIMITERS[delimiter]} between them"
            )
        yield _term(dict(zip(columns, cells, strict=True)), place)


def _header(head: str, source: Source, src_lang: str, tgt_lang: str) -> tuple[str, Sequence[str]]:
    """What stands between columns, and what each column is: a field of COLUMNS, else its own
    name."""
    for delimiter in _DELIMITERS:
        names = [cell.strip().strip('"').lower() for cell in head.split(delimiter)]
        columns = [_column(name, src_lang, tgt_lang) for name in names]
        if columns.count("source") == columns.count("target") == 1:
            _check_spelling(columns, f"{source.label}, line 1")
            return delimiter, columns
    raise FormatError(f"{source.label}, line 1: no header ({excerpt(head)!r}); {_HEADER}")


def _check_spelling(columns: Sequence[str], place: str) -> None:
    """Raises FormatError for a column that is not read and whose name is nearly that of one that
    is."""
    names = {name: field for field, field_names in COLUMNS.items() for name in field_names}
    for column in columns:
        if column.startswith(UNREAD_COLUMN):
            name = column.removeprefix(UNREAD_COLUMN)
            nearest = get_close_matches(name.replace(" ", "_"), names, 1, ALIKE)
            if nearest and names[nearest[0]] not in columns:
                raise FormatError(
                    f"{place}: column {excerpt(name)!r} is not known; is it {nearest[0]!r}? "
                    "Rename it, so that it is read, or take it out"
                )


def _column(name: str, src_lang: str, tgt_lang: str) -> str:
    for field, names in COLUMNS.items():
        if name in names:
            return field
    for field, lang in (("source", src_lang), ("target", tgt_lang)):
        if rank(normal_code(name), normal_code(lang)) is not None:
            return field
    return UNREAD_COLUMN + name


def _rows(
    numbered: Iterator[tuple[int, str]], delimiter: str, label: str
) -> Iterator[tuple[int, list[str]]]:
    """Quoted cells of CSV may have several lines; in TSV quotes are text, as in memories."""
    if delimiter == "\t":
        yield from ((number, line.split("\t")) for number, line in numbered)
        return
    reader = csv.reader((line + "\n" for _, line in numbered), delimiter=delimiter, strict=True)
    last = 0
    try:
        for cells in reader:
            yield last + 2, cells  # where the row begins; the header is line 1
            last = reader.line_num
    except csv.Error as error:
        raise FormatError(f"{label}, line {last + 2}: no row of CSV: {error}") from error


def _term(cells: dict[str, str], place: str) -> Term:
    source = form(cells["source"], place)
    targets, forbidden = (_forms(cells.get(name, ""), place) for name in ("target", "forbidden"))
    if not source:
        raise FormatError(f"{place}: no source term")
    verbatim, case = (_flag(cells.get(name, ""), name, place) for name in ("verbatim", "case"))
    if verbatim and targets not in ((), (source,)):
        raise FormatError(
            f"{place}: {excerpt(source)!r} is not to be translated, and has a target; allowed: "
            "no target, or the term itself"
        )
    targets = (source,) if verbatim else targets
    if not targets and not forbidden:
        raise FormatError(f"{place}: neither a target nor a forbidden one for {excerpt(source)!r}")
    note, context = (form(cells.get(name, ""), place) for name in ("note", "context"))
    return Term(source, targets, forbidden, case, note, context, verbatim)


def _flag(cell: str, name: str, place: str) -> bool:
    value = cell.strip().lower()
    if value not in _YES + _NO:
        raise FormatError(f"{place}: {COLUMNS[name][0]} is {excerpt(value)!r}; allowed: yes, no")
    return value in _YES


def _forms(cell: str, place: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (form(part, place) for part in cell.split(";")))))
