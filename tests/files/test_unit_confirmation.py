"""How far a file says that its targets are right, in the words of each format."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmnmt.files.opening import open_translatable
from tmnmt.files.tmx import TmxFile
from tmnmt.files.unit import Unit

XLIFF = (
    '<xliff version="1.2" xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0" xmlns:mq="MQXliff" '
    'xmlns:m="http://www.memsource.com/mxlf/2.0"><file original="a" source-language="en" '
    'target-language="fr" datatype="x"><body>{}</body></file></xliff>'
)
UNIT = '<trans-unit id="1"{}><source>One</source><target{}>Un</target></trans-unit>'
TRADOS = (
    '<trans-unit id="1"><source>One</source><seg-source><mrk mtype="seg" mid="1">One</mrk>'
    '</seg-source><target><mrk mtype="seg" mid="1">Un</mrk></target><sdl:seg-defs>'
    '<sdl:seg id="1" {}/></sdl:seg-defs></trans-unit>'
)
XLIFF2 = (
    '<xliff version="2.1" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" '
    'trgLang="fr"><file id="f"><unit id="1"><segment{}><source>One</source><target>Un</target>'
    "</segment></unit></file></xliff>"
)
PO = '{}msgid "One"\nmsgstr "Un"\n'
TMX = (
    '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>One</seg></tuv>'
    '<tuv xml:lang="fr">{}<seg>Un</seg></tuv></tu></body></tmx>'
)


def unit_of(path: Path, content: str) -> Unit:
    path.write_text(content)
    file = open_translatable(path)
    if isinstance(file, TmxFile):
        file.src_lang, file.tgt_lang = "en", "fr"
    (unit,) = [unit for document in file.documents() for unit in document.units]
    return unit


@pytest.mark.parametrize(
    ("name", "content", "confirmation"),
    [
        ("a.xlf", XLIFF.format(UNIT.format("", "")), "translated"),
        ("a.xlf", XLIFF.format(UNIT.format(' approved="yes"', "")), "approved"),
        ("a.xlf", XLIFF.format(UNIT.format("", ' state="final"')), "approved"),
        ("a.xlf", XLIFF.format(UNIT.format("", ' state="signed-off"')), "approved"),
        ("a.xlf", XLIFF.format(UNIT.format("", ' state="translated"')), "translated"),
        ("a.xlf", XLIFF.format(UNIT.format("", ' state="needs-adaptation"')), "none"),
        ("a.xlf", XLIFF.format(UNIT.format("", ' state="new"')), "none"),
        ("a.xlf", XLIFF.format(UNIT.format(' translate="no" approved="yes"', "")), "approved"),
        ("a.sdlxliff", XLIFF.format(TRADOS.format('conf="Translated"')), "translated"),
        ("a.sdlxliff", XLIFF.format(TRADOS.format('conf="ApprovedSignOff"')), "approved"),
        ("a.sdlxliff", XLIFF.format(TRADOS.format('conf="Draft"')), "none"),
        ("a.sdlxliff", XLIFF.format(TRADOS.format('conf="Draft" locked="true"')), "none"),
        (
            "a.mqxliff",
            XLIFF.format(UNIT.format(' mq:status="ManuallyConfirmed"', "")),
            "translated",
        ),
        ("a.mqxliff", XLIFF.format(UNIT.format(' mq:status="Proofread"', "")), "approved"),
        ("a.mqxliff", XLIFF.format(UNIT.format(' mq:status="PartiallyEdited"', "")), "none"),
        ("a.mxliff", XLIFF.format(UNIT.format(' m:confirmed="1"', "")), "approved"),
        (
            "a.mxliff",
            XLIFF.format(UNIT.format(' m:confirmed="0" m:trans-origin="tm" m:score="1.0"', "")),
            "translated",
        ),
        ("a.mxliff", XLIFF.format(UNIT.format(' m:confirmed="0"', "")), "none"),
        ("2.xlf", XLIFF2.format(""), "translated"),
        ("2.xlf", XLIFF2.format(' state="final"'), "approved"),
        ("2.xlf", XLIFF2.format(' state="reviewed"'), "approved"),
        ("2.xlf", XLIFF2.format(' state="initial"'), "none"),
        ("a.po", PO.format(""), "approved"),
        ("a.po", PO.format("#, fuzzy\n"), "none"),
        ("a.tmx", TMX.format(""), "approved"),
        ("a.tmx", TMX.format('<prop type="x-origin">model</prop>'), "none"),
    ],
)
def test_each_format_says_how_far_a_target_is_confirmed(
    tmp_path: Path, name: str, content: str, confirmation: str
) -> None:
    assert unit_of(tmp_path / name, content).confirmation == confirmation
