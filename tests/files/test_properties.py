"""Java properties: texts by their keys, everything else as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from file_units import echoed, filled, units, untouched
from hypothesis import given
from hypothesis import strategies as st

from tmnmt.errors import FormatError
from tmnmt.files.opening import open_translatable
from tmnmt.files.properties import PropertiesFile


def bundle(tmp_path: Path, content: str | bytes) -> PropertiesFile:
    path = tmp_path / "a.properties"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    file = open_translatable(path)
    assert isinstance(file, PropertiesFile)
    return file


# the cases of the documentation of java.util.Properties.load, and more
CASES = r"""# a comment \
Truth = Beauty
 Truth2:Beauty
Truth3                    :Beauty
fruits                           apple, banana, pear, \
                                 cantaloupe, watermelon, \
                                 kiwi, mango
cheeses
a\:\ b=c = d
! about the next
  # in two lines
u=caf\u00e9 \ud83d\ude00 \q\\

\=\=\
  x=last"""


def test_the_cases_of_the_documentation(tmp_path: Path) -> None:
    file = bundle(tmp_path, CASES)
    assert [(unit.id, unit.source.plain, unit.line) for unit in units(file)] == [
        ("Truth", "Beauty", 2),
        ("Truth2", "Beauty", 3),
        ("Truth3", "Beauty", 4),
        ("fruits", "apple, banana, pear, cantaloupe, watermelon, kiwi, mango", 5),
        ("a: b", "c = d", 9),
        ("u", "café 😀 q\\", 12),
        ("==x", "last", 14),
    ]
    assert units(file)[5].notes == ("about the next", "in two lines")
    assert units(file)[6].notes == ()
    assert untouched(file).decode() == CASES


def test_values_are_replaced_and_escaped(tmp_path: Path) -> None:
    file = bundle(tmp_path, "a = b\r\nc: d \\\r\n  e\r\n")
    assert filled(file, " x\ty", "é\\").decode() == "a = \\ x\\ty\r\nc: \\u00e9\\\\\r\n"
    wide = bundle(tmp_path, "a=é\nb=c")
    assert filled(wide, None, "😀").decode() == "a=é\nb=😀"
    narrow = bundle(tmp_path, "a=é\nb=c".encode("latin-1"))
    assert units(narrow)[0].source.plain == "é"
    assert filled(narrow, None, "😀") == "a=é\nb=\\ud83d\\ude00".encode("latin-1")


def test_apostrophes_are_doubled_where_there_are_arguments(tmp_path: Path) -> None:
    file = bundle(tmp_path, "a=Don''t '{'x'}' {0}\nb=Don't\n")
    first, second = units(file)
    assert first.source.plain == "Don't '{'x'}' {0}"
    assert [code.markup for code in first.source.codes] == ["'{'", "'}'", "{0}"]
    assert echoed(file) == (tmp_path / "a.properties").read_bytes()
    assert second.source.plain == "Don't"
    assert filled(file, "l'{0}", "l'a").decode() == "a=l''{0}\nb=l'a\n"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "the file is empty"),
        (b"a=b\n\na=c", "line 3: the key 'a' a second time"),
        (b"a=b\nc=\\u12", "line 2: \\u without four hexadecimal digits"),
        ("a=b\n\ufeffc=d".encode(), "line 2: a byte-order mark in the middle"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, content: bytes, what: str) -> None:
    with pytest.raises(FormatError) as error:
        units(bundle(tmp_path, content))
    assert what in str(error.value)


@pytest.mark.parametrize("content", ["\\" * 200_001, "a" * 200_000, "a\\\n" * 70_000, "#\n" * 9])
def test_hostile_files_take_linear_time(tmp_path: Path, content: str) -> None:
    assert untouched(bundle(tmp_path, content)).decode() == content


PIECES = ["a", "b=", ":", " ", "\\", "\n", "\r\n", "\t", "#", "u00e9", "é", "\\u00e9", "'", "{0}"]


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=15))
def test_any_file_comes_back(tmp_path_factory: pytest.TempPathFactory, pieces: list[str]) -> None:
    tmp_path = tmp_path_factory.mktemp("properties")
    content = "".join(pieces)
    file = bundle(tmp_path, content)
    try:
        before = units(file)
    except FormatError as error:
        assert "second time" in str(error) or "hexadecimal" in str(error)
        return
    assert untouched(file).decode() == content
    after = units(bundle(tmp_path, filled(file, *["x\\ '\n é"] * len(before))))
    assert [unit.id for unit in after] == [unit.id for unit in before]
    found = {unit.source.full_text().replace("''", "'") for unit in after}
    assert found == ({"x\\ '\n é"} if before else set())
