"""What files say of a new target follows the kind of match that it comes from, in every format."""

from __future__ import annotations

from pathlib import Path

import pytest
from file_units import units, written

from tmnmt.codes.record import Text
from tmnmt.files.opening import open_translatable
from tmnmt.files.states import STATES, state_of_all
from tmnmt.files.tmx import TmxFile
from tmnmt.files.unit import Filling, TranslatableFile
from tmnmt.segments import ORIGINS, Match, Segment, Worth

SPACES = 'xmlns:sdl="urn:sdl" xmlns:mq="MQXliff" xmlns:m="http://www.memsource.com/mxlf/2.0"'
XLIFF1 = (
    f'<xliff version="1.2" {SPACES}><file original="a" source-language="en" target-language="fr" '
    'datatype="plaintext"><body>{}</body></file></xliff>'
)
MRK = '<mrk mtype="seg" mid="1">{}</mrk>'
FILES = {
    "a.xlf": XLIFF1.format(
        '<trans-unit id="1"><source>One</source>'
        '<target state="new" state-qualifier="leveraged-mt"/></trans-unit>'
    ),
    "a.sdlxliff": XLIFF1.format(
        f'<trans-unit id="1"><source>One</source><seg-source>{MRK.format("One")}</seg-source>'
        '<sdl:seg-defs><sdl:seg id="1" conf="Draft" origin="tm" percent="88"/></sdl:seg-defs>'
        "</trans-unit>"
    ),
    "a.mqxliff": XLIFF1.format(
        '<trans-unit id="1" mq:status="NotStarted" mq:percent="0"><source>One</source></trans-unit>'
    ),
    "a.mxliff": XLIFF1.format(
        '<trans-unit id="1" m:confirmed="0" m:score="0.0" m:trans-origin="null">'
        "<source>One</source></trans-unit>"
    ),
    "2.xlf": (
        '<xliff version="2.1" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" '
        'trgLang="fr"><file id="f"><unit id="1"><segment id="s" state="initial" '
        'subState="tmnmt:machine"><source>One</source></segment></unit></file></xliff>'
    ),
    "a.po": 'msgid "One"\nmsgstr ""\n',
    "a.tmx": (
        '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>One</seg>'
        '</tuv><tuv xml:lang="fr"><prop type="x-origin">model</prop><seg/></tuv></tu></body></tmx>'
    ),
}
REVIEW = 'state="needs-review-translation" state-qualifier="{}"'
SAID = {
    "a.xlf": {
        "model": REVIEW.format("leveraged-mt"),
        "repetition": REVIEW.format("x-repetition"),
        "fuzzy": REVIEW.format("fuzzy-match"),
        "adapted": REVIEW.format("leveraged-tm"),
        "confirmed": '<target state="translated">Un',
        "draft": '<target state="needs-review-translation">Un',
        "reviewed": '<target state="signed-off">Un',
        "approved": 'approved="yes"><source>One</source><target state="final">Un',
        "memory": 'state="translated" state-qualifier="exact-match"',
    },
    "a.sdlxliff": {
        "model": 'conf="Draft" origin="mt" origin-system="tmnmt"/>',
        "repetition": 'conf="Draft" origin="auto-propagated" origin-system="tmnmt"/>',
        "fuzzy": 'conf="Draft" origin="tm" percent="88" origin-system="tmnmt"/>',
        "adapted": 'conf="Draft" origin="tm" percent="99" origin-system="tmnmt"/>',
        "confirmed": 'conf="Translated" origin="interactive" origin-system="tmnmt"/>',
        "draft": 'conf="Draft" origin="interactive" origin-system="tmnmt"/>',
        "reviewed": 'conf="ApprovedTranslation" origin="interactive" origin-system="tmnmt"/>',
        "approved": 'conf="ApprovedSignOff" origin="interactive" origin-system="tmnmt"/>',
        "memory": 'conf="Translated" origin="tm" percent="100" origin-system="tmnmt"/>',
    },
    "a.mqxliff": {
        "model": 'mq:status="PartiallyEdited">',
        "repetition": 'mq:status="PartiallyEdited">',
        "fuzzy": 'mq:status="Pretranslated" mq:percent="88">',
        "adapted": 'mq:status="Pretranslated" mq:percent="99">',
        "confirmed": 'mq:status="ManuallyConfirmed">',
        "draft": 'mq:status="PartiallyEdited">',
        "reviewed": 'mq:status="Reviewer1Confirmed">',
        "approved": 'mq:status="Proofread">',
        "memory": 'mq:status="Pretranslated" mq:percent="100">',
    },
    "a.mxliff": {
        "model": 'm:confirmed="0" m:score="0.0" m:trans-origin="mt"',
        "repetition": 'm:confirmed="0" m:score="0.0" m:trans-origin="mt"',
        "fuzzy": 'm:confirmed="0" m:score="0.88" m:trans-origin="tm"',
        "adapted": 'm:confirmed="0" m:score="0.99" m:trans-origin="tm"',
        "confirmed": 'm:confirmed="1" m:score="0.0" m:trans-origin="null"',
        "draft": 'm:confirmed="0" m:score="0.0" m:trans-origin="null"',
        "reviewed": 'm:confirmed="1" m:score="0.0" m:trans-origin="null"',
        "approved": 'm:confirmed="1" m:score="0.0" m:trans-origin="null"',
        "memory": 'm:confirmed="0" m:score="1.0" m:trans-origin="tm"',
    },
    "2.xlf": {
        "model": 'state="initial" subState="tmnmt:machine">',
        "repetition": 'state="initial" subState="tmnmt:repetition">',
        "fuzzy": 'state="initial" subState="tmnmt:fuzzy-match">',
        "adapted": 'state="initial" subState="tmnmt:adapted">',
        "confirmed": '<segment id="s" state="translated">',
        "draft": 'state="initial" subState="tmnmt:draft">',
        "reviewed": '<segment id="s" state="reviewed">',
        "approved": '<segment id="s" state="final">',
        "memory": 'state="translated" subState="tmnmt:exact-match">',
    },
    "a.po": {
        "model": '#, fuzzy\nmsgid "One"\nmsgstr "Un"',
        "repetition": '#, fuzzy\nmsgid "One"\nmsgstr "Un"',
        "fuzzy": "#, fuzzy\n",
        "adapted": "#, fuzzy\n",
        "confirmed": 'msgid "One"\nmsgstr "Un"',
        "draft": "#, fuzzy\n",
        "reviewed": 'msgid "One"\nmsgstr "Un"',
        "approved": 'msgid "One"\nmsgstr "Un"',
        "memory": 'msgid "One"\nmsgstr "Un"',
    },
    "a.tmx": {
        "model": '<prop type="x-origin">model</prop><seg>Un</seg>',
        "repetition": '<prop type="x-origin">model</prop><seg>Un</seg>',
        "fuzzy": '<prop type="x-origin">fuzzy</prop><seg>Un</seg>',
        "adapted": '<prop type="x-origin">adapted</prop><seg>Un</seg>',
        "confirmed": '<tuv xml:lang="fr"><seg>Un</seg>',
        "draft": '<prop type="x-origin">draft</prop><seg>Un</seg>',
        "reviewed": '<tuv xml:lang="fr"><seg>Un</seg>',
        "approved": '<tuv xml:lang="fr"><seg>Un</seg>',
        "memory": '<tuv xml:lang="fr"><seg>Un</seg>',
    },
}
VALUES = {"fuzzy": 88, "adapted": 100, "memory": 100}
OF_PEOPLE = ("draft", "reviewed", "approved")  # what people say of it on the server's page


def file_of(path: Path, content: str) -> TranslatableFile:
    path.write_text(content)
    file = open_translatable(path)
    if isinstance(file, TmxFile):
        file.src_lang, file.tgt_lang = "en", "fr"
    return file


def filling(origin: str) -> Filling:
    value = VALUES.get(origin, 0)
    match = Match(Segment("Ones", "Un"), min(value, 100) / 100, 1, Worth(value))
    return Filling(Text("Un"), origin, (match,) if value else ())


def test_every_origin_has_a_state_in_the_order_of_what_is_left_to_do() -> None:
    assert [o for o in STATES if o not in ("repetition", *OF_PEOPLE)] == [*ORIGINS]
    assert state_of_all(["fuzzy", "repetition"]) == STATES["repetition"]
    assert state_of_all(["memory", "adapted", "confirmed"]) == STATES["adapted"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("origin", STATES)
def test_a_new_target_is_marked_by_its_kind_and_is_read_as_such(
    tmp_path: Path, name: str, origin: str
) -> None:
    new = written(file_of(tmp_path / name, FILES[name]), [filling(origin)]).decode()
    assert SAID[name][origin] in new
    assert ("fuzzy" in new and name == "a.po") == (STATES[origin].is_draft and name == "a.po")
    (unit,) = units(file_of(tmp_path / f"new-{name}", new))
    assert unit.target == Text("Un")
    assert unit.state == ("draft" if STATES[origin].is_draft else "translated")


@pytest.mark.parametrize("name", ["a.xlf", "a.sdlxliff", "a.mqxliff", "2.xlf"])
def test_what_a_reviewer_has_approved_is_read_as_approved(tmp_path: Path, name: str) -> None:
    file = file_of(tmp_path / name, FILES[name])
    for origin, confirmation in (("approved", "approved"), ("confirmed", "translated")):
        new = written(file, [filling(origin)]).decode()
        (unit,) = units(file_of(tmp_path / f"new-{name}", new))
        assert unit.confirmation == confirmation
    if name == "a.xlf":  # which says it of the unit, too: a new target is approved no more
        approved = written(file, [filling("approved")]).decode()
        again = written(file_of(tmp_path / "again.xlf", approved), [filling("confirmed")])
        assert b'approved="no"' in again


@pytest.mark.parametrize("name", FILES)
def test_what_a_person_confirmed_says_nothing_of_a_match(tmp_path: Path, name: str) -> None:
    new = written(file_of(tmp_path / name, FILES[name]), [filling("confirmed")]).decode()
    assert "match" not in new and "percent" not in new and "signed-off" not in new


def test_a_target_of_full_matches_and_of_what_was_confirmed_counts_as_work(
    tmp_path: Path,
) -> None:
    segments = "".join(MRK.replace('"1"', f'"{n}"').format(n) for n in (1, 2))
    unit = f'<trans-unit id="1"><source>12</source><seg-source>{segments}</seg-source></trans-unit>'
    file = file_of(tmp_path / "a.xlf", XLIFF1.format(unit))
    new = written(file, [filling("memory"), filling("confirmed")]).decode()
    assert '<target state="translated">' in new
