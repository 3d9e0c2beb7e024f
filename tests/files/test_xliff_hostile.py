"""XLIFF that is broken, hostile or too large: one line with file and place, or one unit locked and
the others read."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import TESTS

from tmnmt.codes.record import Text
from tmnmt.errors import FormatError
from tmnmt.files.opening import open_translatable
from tmnmt.files.unit import Filling, Unit

HEAD = '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
FILE = '<file original="a" source-language="en" target-language="fr">'
UNIT = "<trans-unit id='1'><source>One</source></trans-unit>"
END = "</file></xliff>"


def units_of(path: Path) -> list[Unit]:
    return [unit for document in open_translatable(path).documents() for unit in document.units]


def saved(folder: Path, text: str | bytes, name: str = "a.xlf") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


BROKEN: dict[str, tuple[str | bytes, str]] = {
    "cut": (f"{HEAD}\n{FILE}\n{UNIT}", "line 3: broken XML: no element found"),
    "crossing": (f"{HEAD}{FILE}\n<trans-unit><source><g>a</source></g>", "line 2: broken XML"),
    "entity": (f"{HEAD}{FILE}\n<trans-unit><source>&nbsp;", "line 2: broken XML: undefined entity"),
    "entity of a DTD": (
        f'<!DOCTYPE xliff SYSTEM "x.dtd">{HEAD}{FILE}\n<trans-unit><source>&nbsp;',
        "line 2: broken XML: undefined entity &nbsp;",
    ),
    "bomb": (
        '<?xml version="1.0"?>\n<!DOCTYPE x [<!ENTITY a "b">]>' + HEAD,
        "line 2: a DOCTYPE with declarations in it, which are not read",
    ),
    "BOM between": (
        f"{HEAD}{FILE}{END}\n\ufeff{HEAD}{FILE}{END}",
        "line 2: broken XML: a byte-order mark between elements",
    ),
    "two prologs": (
        f"<?xml version='1.0'?>\n<?xml version='1.0'?>{HEAD}",
        "line 2: broken XML: XML or text declaration not at start",
    ),
    "bytes": (
        f"{HEAD}{FILE}\n<a>".encode() + b"\xe9<a/>",
        "line 2: broken XML: bytes that",
    ),
    "bytes of UTF-16": (
        f"{HEAD}\n{FILE}<a>".encode("utf-16") + b"\x00\xd8<\x00",
        "line 2: broken XML: bytes that are not of the file's encoding",
    ),
    "control": (f"{HEAD}{FILE}\n<trans-unit><source>&#2;", "line 2: broken XML"),
    "no source language": (f"{HEAD}\n<file original='a'>{UNIT}{END}", "line 2: a <file> without"),
    "no source language later": (
        f"{HEAD}{FILE}</file>\n<file original='b'>{UNIT}{END}",
        "line 2: a <file> without source-language",
    ),
    "no version": (
        "<xliff>" + FILE + END,
        "line 1: XLIFF version ''",
    ),
    "version 3": (
        HEAD.replace("1.2", "3.0", 1) + FILE + END,
        "line 1: XLIFF version '3.0'; allowed",
    ),
    "no file": (HEAD + "</xliff>", "without a <file>"),
    "empty": ("", "broken XML: no element found"),
    "no XLIFF": ("\n<html><body/></html>", "line 2: no XLIFF: the root element is 'html'"),
    "no XML": ("One,Two\n", "broken XML"),
    "deep": (HEAD + FILE + "\n" + "<group>" * 300, "line 2: more than 200 elements inside"),
    "no srcLang": (
        '<xliff version="2.0">\n<file id="f"/></xliff>',
        "line 1: an <xliff> without srcLang",
    ),
    "encoding": ("<?xml version='1.0' encoding='x-none'?>" + HEAD, "unknown encoding 'x-none'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_told_with_file_and_line(tmp_path: Path, name: str) -> None:
    text, why = BROKEN[name]
    path = saved(tmp_path, text)
    with pytest.raises(FormatError) as told:
        units_of(path)
    assert str(told.value).startswith(f"{path}")
    assert why in str(told.value) and "\n" not in str(told.value)


def test_what_is_no_file_of_a_kind_is_told(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no file that can be translated"):
        open_translatable(saved(tmp_path, b"\x00\x01\x02", "a.bin"))
    with pytest.raises(FormatError, match="cannot be read"):
        open_translatable(tmp_path / "none.xlf")


def test_a_byte_order_mark_inside_a_text_is_a_character(tmp_path: Path) -> None:
    path = saved(tmp_path, HEAD + FILE + UNIT.replace("One", "One\ufeffTwo") + END)
    assert units_of(path)[0].source.plain == "One\ufeffTwo"


LOCKED = {
    "without source": ("<trans-unit id='0'/>", "a <trans-unit> without <source>"),
    "too many codes": (
        "<trans-unit id='0'><source>a" + "<x/>" * 1001 + "</source></trans-unit>",
        "more than 1,000 codes",
    ),
    "too many tokens": (
        f"<trans-unit id='0'><source>{'a ' * 1001}</source></trans-unit>",
        "more than 1,000 tokens",
    ),
    "namespaces": (
        "<trans-unit id='0'><source xmlns:y='y'><y:b/>a</source></trans-unit>",
        "its <source> declares namespaces of its own",
    ),
    "the same mid": (
        "<trans-unit id='0'><source>ab</source><seg-source><mrk mtype='seg' mid='1'>a</mrk>"
        "<mrk mtype='seg' mid='1'>b</mrk></seg-source></trans-unit>",
        "several segments have the mid '1'",
    ),
    "nested": (
        "<trans-unit id='0'><source>" + "<g id='1'>" * 500 + "a" + "</g>" * 500 + "</source>"
        "</trans-unit>",
        "more than 100 elements inside one another in its text",
    ),
    "nested mrk in a target": (
        "<trans-unit id='0'><source>a</source><target>"
        + "<mrk mtype='x'>" * 101
        + "a"
        + "</mrk>" * 101
        + "</target></trans-unit>",
        "more than 100 elements inside one another in its text",
    ),
    "10 MB": (
        f"<trans-unit id='0'><source>{'a<x/>' + 'a ' * 5_100_000}</source></trans-unit>",
        "<trans-unit> is longer than 10 MB",
    ),
}


@pytest.mark.parametrize("name", LOCKED)
def test_a_unit_that_cannot_be_translated_does_not_lose_the_others(
    tmp_path: Path, name: str
) -> None:
    bad, why = LOCKED[name]
    path = saved(tmp_path, f"{HEAD}{FILE}{UNIT}\n{bad}\n{UNIT}{END}")
    units = units_of(path)
    assert [unit.problem for unit in (units[0], units[-1])] == ["", ""]
    for unit in units[1:-1]:
        assert (unit.problem, unit.state, unit.line) == (why, "locked", 2)
        assert open_translatable(path).refused(unit, Text("x")) == why
    filling = Filling(Text("Un"), "model")
    out = io.BytesIO()
    open_translatable(path).write(out, [filling, *[None] * (len(units) - 2), filling])
    assert out.getvalue().count(b"Un</target>") == 2
    assert f"\n{bad}\n".encode() in out.getvalue()
    again = io.BytesIO()
    open_translatable(path).write(again, [None] * len(units))
    assert again.getvalue() == path.read_bytes()


def test_a_hundred_elements_inside_one_another_are_codes(tmp_path: Path) -> None:
    source = "".join(f'<g id="{n}">' for n in range(100)) + "a" + "</g>" * 100
    path = saved(tmp_path, f"{HEAD}{FILE}{UNIT.replace('One', source)}{END}")
    (unit,) = units_of(path)
    assert unit.state == "new" and len(unit.source.codes) == 200
    out = io.BytesIO()
    open_translatable(path).write(out, [Filling(unit.source, "model")])
    assert out.getvalue().decode().count(source) == 2


def test_nested_elements_of_version_2_are_locked_too(tmp_path: Path) -> None:
    source = "".join(f'<pc id="{n}">' for n in range(500)) + "a" + "</pc>" * 500
    head = '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en">'
    unit = f"<unit id='1'><segment><source>{source}</source></segment></unit>"
    path = saved(tmp_path, f"{head}<file id='f'>\n{unit}</file></xliff>")
    (only,) = units_of(path)
    assert (only.state, only.line) == ("locked", 2) and "more than 100 elements" in only.problem


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_doctype_that_names_the_dtd_of_the_standard_is_passed_over(
    tmp_path: Path, version: str
) -> None:
    doctype = (
        '<!DOCTYPE xliff PUBLIC "-//XLIFF//DTD XLIFF//EN"\n "http://www.oasis-open.org/'
        'committees/xliff/documents/xliff.dtd" >'
    )
    path = saved(
        tmp_path, f'<?xml version="1.0"?>\n{doctype}\n<xliff version="{version}">{FILE}{UNIT}{END}'
    )
    assert [unit.source.plain for unit in units_of(path)] == ["One"]
    out = io.BytesIO()
    open_translatable(path).write(out, [Filling(Text("Un"), "model")])
    assert doctype.encode() in out.getvalue() and b">Un</target>" in out.getvalue()


def test_an_encoding_that_python_writes_with_a_mark_comes_back_without_one(
    tmp_path: Path,
) -> None:
    for name in ("utf_8_sig", "utf-8-sig"):
        path = saved(tmp_path, f"<?xml version='1.0' encoding='{name}'?>{HEAD}{FILE}{UNIT}{END}")
        out = io.BytesIO()
        open_translatable(path).write(out, [None])
        assert out.getvalue() == path.read_bytes()


def test_units_of_another_language_are_locked(tmp_path: Path) -> None:
    other = FILE.replace("fr", "de")
    region = FILE.replace("fr", "fr-CA")
    path = saved(tmp_path, f"{HEAD}{FILE}{UNIT}</file>{other}{UNIT}</file>{region}{UNIT}{END}")
    first, second, third = units_of(path)
    assert (first.problem, third.problem) == ("", "")
    assert second.problem == "it is from en to de, the first <file> from en to fr"


def test_a_tag_without_end_is_not_read_forever(tmp_path: Path) -> None:
    path = saved(tmp_path, HEAD + "\n<file a='" + "a" * 12_000_000)
    with pytest.raises(FormatError, match="longer than 10 MB without an end"):
        open_translatable(path)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    skeleton = f"<skl><internal-file>{'QUJD' * 1_000_000}</internal-file></skl>"
    path = saved(tmp_path, f"{HEAD}{FILE}<header>{skeleton}</header>{UNIT * 10_000}{END}")
    file = open_translatable(path)
    tracemalloc.start()
    try:
        units = (unit for document in file.documents() for unit in document.units)
        count = sum(unit.source.plain == "One" for unit in units)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 10_000
    assert peak < 1_500_000


REAL = [path.read_bytes() for path in sorted((TESTS / "data" / "files").glob("okapi-*.xlf"))]


@given(
    st.sampled_from(REAL),
    st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=4)), min_size=1, max_size=3),
)
@settings(max_examples=150)
def test_a_damaged_file_is_refused_or_comes_back(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, changes: list[tuple[int, bytes]]
) -> None:
    for at, new in changes:
        at %= len(data)
        data = data[:at] + new + data[at + len(new) + 1 :]
    path = saved(tmp_path_factory.mktemp("x"), data)
    out = io.BytesIO()
    try:
        units = units_of(path)
        open_translatable(path).write(out, [None] * len(units))
    except FormatError as error:
        assert str(error).startswith(str(path)) and "\n" not in str(error)
    else:
        assert out.getvalue() == data
