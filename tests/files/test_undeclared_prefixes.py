"""A prefix that a file declares nowhere costs a warning with its line, and not the file."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from file_units import echoed, units, untouched

from tmnmt.errors import FormatError
from tmnmt.files.opening import open_translatable
from tmnmt.formats.reader import read_memory

XLIFF = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2" xmlns:a="urn:a">
<file source-language="en" target-language="fr" datatype="x" original="x"><body>
<trans-unit id="1" mtc:state="x" a:b="c"><source>One</source><mtc:note>n</mtc:note></trans-unit>
<trans-unit id="2" xmlns:local="urn:b" local:c="d"><source>Two <y:x/>words</source></trans-unit>
</body></file></xliff>
"""
TMX = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4" xmlns:a="urn:a"><header srclang="en" segtype="sentence"/><body>
<tu mq:status="x" a:b="c"><prop type="a">1</prop><mq:note>n</mq:note>
<tuv xml:lang="en"><seg>One <ph><y:rx/></ph>two</seg></tuv></tu>
<tu mq:status="y"><tuv xml:lang="en"><seg>Three</seg></tuv>
<tuv xml:lang="fr"><seg>Trois</seg></tuv></tu>
</body></tmx>
"""


@pytest.mark.parametrize(
    ("name", "content", "texts", "lines"),
    [
        ("a.xlf", XLIFF, ["One", "Two words"], {"mtc": 4, "y": 5}),
        ("a.tmx", TMX, ["One two", "Three"], {"mq": 3, "y": 3}),
    ],
)
def test_it_is_told_once_and_stays(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    name: str,
    content: str,
    texts: list[str],
    lines: dict[str, int],
) -> None:
    path = tmp_path / name
    path.write_text(content)
    file = open_translatable(path)
    file.src_lang, file.tgt_lang = "en", "fr"
    with caplog.at_level(logging.WARNING):
        assert [unit.source.plain for unit in units(file)] == texts
    warnings = [record.getMessage() for record in caplog.records]
    assert [warning.partition(" is not declared")[0] for warning in warnings] == [
        f"{path}, line {line}: the prefix {prefix}:" for prefix, line in lines.items()
    ]
    assert untouched(file).decode() == content
    new = echoed(file).decode()
    for line in content.replace("Trois", "Three").splitlines():
        assert line.split("</source>")[0].split("</tuv></tu>")[0] in new
    assert new.count("xmlns:") == content.count("xmlns:")


def test_a_memory_is_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    path.write_text(TMX)
    reader = read_memory(path, "en", "fr")
    assert [(segment.src, segment.tgt) for segment in reader] == [("Three", "Trois")]
    assert any("line 3: the prefix mq:" in warning for warning in reader.report.warnings)


def test_what_is_broken_is_an_error_as_before(tmp_path: Path) -> None:
    path = tmp_path / "a.xlf"
    path.write_text(XLIFF.replace("</mtc:note>", "</mtc:other>"))
    with pytest.raises(FormatError, match="line 4: broken XML: mismatched tag"):
        units(open_translatable(path))
