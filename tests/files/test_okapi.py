"""What Okapi finds in XLIFF, PO and TMX is what is found here, also in files that were filled."""

from __future__ import annotations

import os
import re
import subprocess
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from okapi_jars import okapi_jars
from places import FILES, TESTS

from tmnmt.errors import FormatError
from tmnmt.files.opening import kind_of, open_translatable
from tmnmt.files.unit import Filling, TranslatableFile, Unit

FILTERS = {
    "xliff1": "net.sf.okapi.filters.xliff.XLIFFFilter",
    "xliff2": "net.sf.okapi.filters.xliff2.XLIFF2Filter",
    "po": "net.sf.okapi.filters.po.POFilter",
    "tmx": "net.sf.okapi.filters.tmx.TmxFilter",
}


# Files of Okapi's own tests by name; whether tmnmt or Okapi refuses them; how many there are.
OTHERS = {
    ("invalid_xml_entity.xlf", True, False): 2,  # Okapi drops the character that XML forbids
    ("TestDocument01.odt.xlf", True, False): 1,  # bytes that are not UTF-8, which Okapi replaces
    ("msgctxt_notes.po", True, False): 1,  # no PO but its comments
    ("ImportTest1B.tmx", False, True): 1,  # a unit lacks the source language
    ("aligned.tmx", False, True): 1,  # the same
    ("lqiTest.xlf", False, True): 1,  # names another file, which is not there
    # Codes inside codes are one with these here
    ("Manual-12-AltTrans.xlf", False, False): 3,
    # Segments inside tags; Okapi takes the whole as one
    ("BetweenSegments.xlf", False, False): 1,
    ("MultipleSegments.xlf", False, False): 1,
    ("RB-12-Test02.xlf", False, False): 1,  # segments whose targets are others; the same
    # Characters that Okapi takes for text and we for blanks
    ("myFile_en_old.html.xlf", False, False): 1,
    ("yamltest.yml.xlf", False, False): 1,
    ("test1.xlf", False, False): 1,  # <g/> is two codes
}


@dataclass(frozen=True)
class Found:
    """How many segments of a file have words or codes, and their codes; none: it is refused. Codes
    of PO are not counted: Okapi and tmnmt go by different patterns."""

    segments: int
    codes: int


@dataclass(frozen=True)
class Case:
    kind: str
    languages: tuple[str, str]
    path: Path


def case_of(path: Path) -> Case:
    """A file, with the languages that it names; of a TMX, its source and the first other one."""
    kind, languages = kind_of(path), ("en", "fr")
    assert kind is not None
    if kind.kind == "tmx":
        data = path.read_bytes()
        text = data.decode(
            "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace"
        )
        named = re.findall(r'<tuv[^>]*?lang="([^"]+)"', text)
        said = re.search(r'srclang="([^"]+)"', text)
        sources = [one for one in named if said and one.lower() == said[1].lower()] or named
        source = sources[0] if sources else "en"
        languages = source, next((one for one in named if one != source), "fr")
    elif kind.kind != "po":
        try:
            file = open_translatable(path)
            languages = file.src_lang or "en", file.tgt_lang or "fr"
        except FormatError:
            pass
    return Case(kind.kind, languages, path)


def by_okapi(cases: Sequence[Case]) -> dict[Path, tuple[Found, Found] | None]:
    """What Okapi finds in the sources and in the targets of these files."""
    found = dict[Path, tuple[Found, Found] | None]()
    groups = defaultdict[tuple[str, str], list[Case]](list)
    for case in cases:
        groups[case.languages].append(case)
    for languages, group in groups.items():
        files = [word for case in group for word in (FILTERS[case.kind], str(case.path))]
        command = ["java", "-cp", f"{okapi_jars()}/*", str(TESTS / "okapi" / "Count.java")]
        done = subprocess.run([*command, *languages, *files], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        for case, line in zip(group, done.stdout.splitlines(), strict=True):
            counts = [int(word) for word in line.split()] if line[0] != "-" else []
            codes = case.kind != "po"
            found[case.path] = (
                (Found(counts[0], counts[1] * codes), Found(counts[2], counts[3] * codes))
                if counts
                else None
            )
    return found


def file_of(case: Case) -> TranslatableFile:
    file = open_translatable(case.path)
    file.src_lang, file.tgt_lang = case.languages
    return file


def units_of(file: TranslatableFile) -> list[Unit]:
    return [unit for document in file.documents() for unit in document.units]


def by_tmnmt(case: Case) -> Found | None:
    try:
        return Found(*_counted(units_of(file_of(case)), case.kind))
    except FormatError:
        return None


def _counted(units: Iterable[Unit], kind: str) -> tuple[int, int]:
    # HTML that stands as text in XLIFF is codes here, and text in Okapi
    as_text = {"xliff1", "xliff2"}
    codes = [
        sum(
            code.kind != "blank" and bool(code.form or kind not in as_text)
            for code in unit.source.codes
        )
        for unit in units
    ]
    segments = sum(
        bool(unit.source.plain.strip() or own) for unit, own in zip(units, codes, strict=True)
    )
    return segments, sum(codes) * (kind != "po")


def filled(case: Case, folder: Path) -> Case:
    """The file with the source of every open unit as its target."""
    file = file_of(case)
    path = folder / f"{len(list(folder.iterdir()))}{case.path.suffix}"
    fillings = [
        Filling(unit.source, "model") if unit.state == "new" and unit.source.plain else None
        for unit in units_of(file)
    ]
    with path.open("wb") as to:
        file.write(to, fillings)
    return Case(case.kind, case.languages, path)


def differences(cases: Sequence[Case]) -> Iterator[tuple[Case, Found | None, Found | None]]:
    """Where Okapi's counts of the sources are others than ours: both."""
    theirs = by_okapi(cases)
    for case in cases:
        their, ours = theirs[case.path], by_tmnmt(case)
        if (their[0] if their else None) != ours:
            yield case, ours, their[0] if their else None


def complaints(cases: Sequence[Case], folder: Path) -> Iterator[tuple[str, object, object]]:
    """Filled files in which Okapi finds other sources than in the file, or fewer targets; of files
    that both read."""
    read = [case for case in cases if by_tmnmt(case) is not None]
    again = [filled(case, folder) for case in read]
    before, after = by_okapi(read), by_okapi(again)
    for one, other in zip(read, again, strict=True):
        old, new = before[one.path], after[other.path]
        if old is not None and (
            new is None or new[0] != old[0] or new[1].segments < old[1].segments
        ):
            yield one.path.name, old, new


def test_okapi_finds_the_same_segments_and_codes_and_reads_what_was_filled(tmp_path: Path) -> None:
    okapi_jars()
    cases = [case_of(path) for path in sorted(FILES.glob("okapi-*"))]
    assert len({case.kind for case in cases}) == 3
    assert {case.path.name for case, *_ in differences(cases)} == {
        "okapi-segments-in-g.xlf",  # segments inside tags, which Okapi takes as one
        "okapi-windows-1252.xlf",  # segments whose targets are others; the same
    }
    assert list(complaints(cases, tmp_path)) == []


@pytest.mark.data
def test_of_all_files_of_okapis_own_tests_too(tmp_path: Path) -> None:
    okapi_jars()
    assert "TMNMT_DATA" in os.environ, "set it to a folder with cat-files/okapi.zip"
    with zipfile.ZipFile(Path(os.environ["TMNMT_DATA"]) / "cat-files/okapi.zip") as files:
        files.extractall(tmp_path / "all")
    kinds = (".xlf", ".po", ".tmx")
    paths = sorted(path for path in (tmp_path / "all").rglob("*") if path.suffix in kinds)
    cases = [case_of(path) for path in paths]
    found = Counter(
        (case.path.name, ours is None, theirs is None) for case, ours, theirs in differences(cases)
    )
    assert len(cases) == 208
    assert found == OTHERS
    (tmp_path / "filled").mkdir()
    assert list(complaints(cases, tmp_path / "filled")) == []
