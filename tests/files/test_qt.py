"""Qt Linguist's files, as translate-toolkit and Qt's own lrelease read them."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from file_units import echoed, filled, units, untouched
from required import absent
from translate.storage import ts2

from tmnmt.errors import FormatError
from tmnmt.files.as_memory import units_of
from tmnmt.files.opening import kind_of, open_translatable
from tmnmt.files.qt import QtFile
from tmnmt.files.texts import string_of
from tmnmt.formats import Report
from tmnmt.formats.stream import file_source

TS = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="pl_PL" sourcelanguage="en">
<context>
    <name>MainWindow</name>
    <message id="a.permit">
        <location filename="../main.cpp" line="12"/>
        <source>&amp;Open the permit &quot;%1&quot;</source>
        <comment>menu</comment>
        <extracomment>In the first menu</extracomment>
        <translatorcomment>Ask Anna</translatorcomment>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%n file(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>The permit is void.</source>
        <translation>Pozwolenie jest nieważne.</translation>
    </message>
    <message>
        <source>A draft</source>
        <translation type="unfinished">Szkic</translation>
    </message>
    <message>
        <source>Old</source>
        <translation type="vanished">Stary</translation>
    </message>
    <message>
        <source>Older</source>
        <translation type="obsolete">Starszy</translation>
    </message>
</context>
<context>
    <name>Dialog</name>
    <message>
        <source>Read the &lt;b&gt;notice&lt;/b&gt; &amp; sign</source>
    </message>
</context>
</TS>
"""


def opened(tmp_path: Path, content: str = TS, name: str = "app.ts") -> QtFile:
    path = tmp_path / name
    path.write_bytes(content.encode())
    file = open_translatable(path)
    assert isinstance(file, QtFile)
    return file


def test_messages_have_their_states_contexts_and_notes(tmp_path: Path) -> None:
    file = opened(tmp_path)
    assert (file.src_lang, file.tgt_lang) == ("en", "pl-pl")
    rows = [(unit.source.plain, unit.state, unit.line) for unit in units(file)]
    assert rows == [
        ('&Open the permit "%1"', "new", 6),
        *[("%n file(s)", "new", 14)] * 3,
        ("The permit is void.", "translated", 22),
        ("A draft", "draft", 26),
        ("Read the notice & sign", "new", 41),
    ]
    first, second, *_, last = units(file)
    assert (first.id, first.context) == ("a.permit", "MainWindow: menu")
    assert first.notes == ("menu", "In the first menu", "Ask Anna")
    assert [code.markup for code in first.source.codes] == ["%1"]
    assert second.plural == "plural form 1 of 3, for 1"
    assert [code.markup for code in last.source.codes][:2] == ["<b>", "</b>"]
    assert last.context == "Dialog"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_is_not_filled_stays_to_the_byte(tmp_path: Path, newline: str) -> None:
    file = opened(tmp_path, TS.replace("\n", newline))
    assert untouched(file) == (tmp_path / "app.ts").read_bytes()


def test_a_full_match_is_finished_and_a_machine_translation_is_not(tmp_path: Path) -> None:
    file = opened(tmp_path)
    matched = filled(file, "&Otwórz 'A' %1").decode()
    assert matched == TS.replace(
        '<translation type="unfinished"></translation>',
        "<translation>&amp;Otwórz &apos;A&apos; %1</translation>",
        1,
    )
    drafted = filled(file, "Otwórz %1", origin="model").decode()
    assert drafted == TS.replace("></translation>", ">Otwórz %1</translation>", 1)


def test_a_message_that_lacks_forms_stays_unfinished(tmp_path: Path) -> None:
    file = opened(tmp_path)
    some = filled(file, None, "%n plik", "%n pliki").decode()
    assert some == TS.replace(
        "<numerusform></numerusform>", "<numerusform>%n plik</numerusform>", 1
    ).replace("<numerusform></numerusform>", "<numerusform>%n pliki</numerusform>", 1)
    whole = filled(file, None, "%n plik", "%n pliki", "%n plików").decode()
    assert whole.count('type="unfinished"') == some.count('type="unfinished"') - 1


def test_a_template_gets_its_language_and_the_forms_of_that(tmp_path: Path) -> None:
    template = TS.replace(' language="pl_PL"', "").replace(
        "            <numerusform></numerusform>\n" * 3, "            <numerusform/>\n"
    )
    for language, name, count in (("tr", "tr", 1), ("pt-br", "pt_BR", 2), ("ar", "ar", 6)):
        file = opened(tmp_path, template)
        file.tgt_lang = language
        assert sum(bool(unit.plural) for unit in units(file)) == count
        content = echoed(file).decode()
        assert f'sourcelanguage="en" language="{name}">' in content
        assert content.count("<numerusform>%n file(s)</numerusform>") == count


def test_translate_toolkit_reads_what_was_written(tmp_path: Path) -> None:
    file = opened(tmp_path)
    targets = [
        "&Otwórz %1",
        "%n plik",
        "%n pliki",
        "%n plików",
        None,
        None,
        "Czytaj <b>to</b> & co",
    ]
    (tmp_path / "new.ts").write_bytes(filled(file, *targets))
    store = ts2.tsfile.parsefile(str(tmp_path / "new.ts"))
    theirs = {str(unit.source): unit for unit in store.units}
    assert theirs['&Open the permit "%1"'].target == "&Otwórz %1"
    assert theirs["%n file(s)"].target.strings == ["%n plik", "%n pliki", "%n plików"]
    assert theirs["Read the <b>notice</b> & sign"].target == "Czytaj <b>to</b> & co"
    assert theirs["The permit is void."].target == "Pozwolenie jest nieważne."


def test_lrelease_finds_every_form(tmp_path: Path) -> None:
    program = shutil.which("lrelease") or shutil.which("lrelease", path="/usr/lib/qt6/bin")
    if program is None:
        absent("qt", "lrelease of Qt is not installed")
    (tmp_path / "new.ts").write_bytes(echoed(opened(tmp_path)))
    command = [program, str(tmp_path / "new.ts"), "-qm", str(tmp_path / "new.qm")]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "(5 finished and 0 unfinished)" in result.stdout + result.stderr
    assert "warning" not in (result.stdout + result.stderr).lower()


def test_finished_messages_are_a_memory(tmp_path: Path) -> None:
    opened(tmp_path)
    pairs = units_of(tmp_path / "app.ts", file_source(tmp_path / "app.ts"), "en", "pl", Report())
    assert pairs is not None
    assert [(segment.src, segment.tgt) for _, segment in pairs] == [
        ("The permit is void.", "Pozwolenie jest nieważne.")
    ]


@pytest.mark.parametrize("content", [b"export const a = 1;\n", b"\x47\x40\x00\x10" * 100])
def test_programs_and_videos_of_that_name_are_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.ts").write_bytes(content)
    assert kind_of(tmp_path / "a.ts") is None
    with pytest.raises(FormatError, match="no file of Qt Linguist, which begins with <TS>"):
        open_translatable(tmp_path / "a.ts")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("<TS>\n<context>\n</TS>", "line 3: no XML: mismatched tag"),
        ('<!DOCTYPE TS [<!ENTITY a "b">]>\n<TS/>', "line 1: a DOCTYPE with declarations"),
        ("<TS>\n" + "<a>" * 300 + "</a>" * 300 + "</TS>", "line 2: more than 200 elements"),
    ],
)
def test_what_is_broken_is_one_error_with_its_line(tmp_path: Path, content: str, told: str) -> None:
    with pytest.raises(FormatError, match=told):
        units(opened(tmp_path, content))


def test_what_cannot_be_written_is_locked(tmp_path: Path) -> None:
    content = TS.replace("A draft", 'A <byte value="x7"/>').replace(
        "Pozwolenie jest nieważne.", "<lengthvariant>Nie</lengthvariant>"
    )
    problems = {string_of(unit.source): unit.problem for unit in units(opened(tmp_path, content))}
    assert problems["The permit is void."] == "translations of several lengths"
    assert problems['A <byte value="x7"/>'].startswith("a byte")


def test_many_messages_take_little_time(tmp_path: Path) -> None:
    message = "<message><source>A permit</source><translation/></message>\n"
    file = opened(tmp_path, f"<TS><context><name>a</name>\n{message * 20_000}</context></TS>")
    start = time.process_time()
    assert untouched(file) == (tmp_path / "app.ts").read_bytes()
    assert time.process_time() - start < 20
