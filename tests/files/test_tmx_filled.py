"""TMX files that are translated: missing targets come in, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from coded_texts import WORDS
from file_units import echoed, filled, units, untouched, written
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from places import FORMATS

from tmnmt.codes.record import Code, Text
from tmnmt.errors import FormatError, UsageError
from tmnmt.files.opening import open_translatable
from tmnmt.files.tmx import TmxFile
from tmnmt.files.unit import Filling
from tmnmt.formats.reader import read_memory
from tmnmt.formats.xml_text import escaped

HEAD = '<?xml version="1.0"?>\n<tmx version="1.4">\n<header srclang="en"/>\n<body>\n'
TAIL = "</body>\n</tmx>\n"
SAMPLES = sorted(path for path in FORMATS.glob("*.tmx"))


def tmx(tmp_path: Path, body: str | bytes, head: str = HEAD) -> TmxFile:
    path = tmp_path / "a.tmx"
    data = body.encode() if isinstance(body, str) else body
    path.write_bytes(head.encode() + data + TAIL.encode())
    return TmxFile(path, "en", "fr")


def body_of(data: bytes) -> str:
    return data.decode().removeprefix(HEAD).removesuffix(TAIL)


def tu(source: str, *more: str, lang: str = "xml:lang") -> str:
    return f'<tu>\n  <tuv {lang}="en"><seg>{source}</seg></tuv>{"".join(more)}\n</tu>\n'


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
@pytest.mark.parametrize("languages", [("en", "fr"), ("en", "mt"), ("en", "es")])
def test_nothing_filled_in_leaves_every_byte(path: Path, languages: tuple[str, str]) -> None:
    file = open_translatable(path)
    assert isinstance(file, TmxFile)
    file.src_lang, file.tgt_lang = languages
    assert untouched(file) == path.read_bytes()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_what_is_filled_in_is_read_as_a_memory(path: Path, tmp_path: Path) -> None:
    file = TmxFile(path, "en", "mt")
    before = units(file)
    out = tmp_path / "out.tmx"
    out.write_bytes(echoed(file))
    assert [unit.target for unit in units(TmxFile(out, "en", "mt"))] == [
        unit.source for unit in before
    ]
    pairs = {segment.src: segment.tgt for segment in read_memory(out, "en", "mt")}
    assert pairs == {unit.source.plain: unit.source.plain for unit in before if unit.source.plain}
    kept = [(len(tu), tu.get("tuid")) for tu in _tus(path)]
    assert [tuid for _, tuid in kept] == [tu.get("tuid") for tu in _tus(out)]


def _tus(path: Path) -> list[etree._Element]:
    parser = etree.XMLParser(load_dtd=False, no_network=True)
    return list(etree.parse(str(path), parser).iter("tu"))


def test_states_ids_notes_and_lines(tmp_path: Path) -> None:
    body = (
        '<tu tuid="7"><note>short</note><tuv xml:lang="en"><seg>Save</seg></tuv></tu>\n'
        + tu("Open", '<tuv xml:lang="FR-ca"><seg>Ouvrir</seg></tuv>')
        + tu("Close", '<tuv xml:lang="fr"><seg/></tuv>')
        + tu("Zu", '<tuv xml:lang="de"><seg>Zu</seg></tuv>').replace("en", "de")
    )
    found = units(tmx(tmp_path, body))
    assert [(unit.source.plain, unit.state, unit.line) for unit in found] == [
        ("Save", "new", 5),
        ("Open", "translated", 6),
        ("Close", "new", 9),
    ]
    assert (found[0].id, found[0].notes) == ("7", ("short",))
    assert found[1].target == Text("Ouvrir")


def test_a_missing_target_comes_behind_the_others_as_these_are_written(tmp_path: Path) -> None:
    file = tmx(tmp_path, tu("Save", '\n  <tuv xml:lang="de"><seg>Sichern</seg></tuv>'))
    assert body_of(filled(file, "a < b")) == tu(
        "Save",
        '\n  <tuv xml:lang="de"><seg>Sichern</seg></tuv>',
        '\n  <tuv xml:lang="fr"><seg>a &lt; b</seg></tuv>',
    )
    old = tmx(tmp_path, tu("Save", lang="lang"))
    assert body_of(filled(old, "b")) == tu(
        "Save", '\n  <tuv lang="fr"><seg>b</seg></tuv>', lang="lang"
    )
    wide = tmx(tmp_path, '<tu><tuv xml:lang="en">\n <seg>a</seg>\n</tuv></tu>')
    assert body_of(filled(wide, "b", origin="model")).endswith(
        '</tuv><tuv xml:lang="fr">\n <prop type="x-origin">model</prop>\n <seg>b</seg>\n</tuv></tu>'
    )


def test_a_target_that_is_there_is_replaced_in_its_place(tmp_path: Path) -> None:
    body = tu("a", "<!-- <tuv> --><tuv xml:lang='fr' a='>'><note>n</note><seg x='>'>b</seg></tuv>")
    file = tmx(tmp_path, body)
    assert body_of(filled(file, "c")) == body.replace(">b<", ">c<")
    empty = tu("a", "<tuv xml:lang='fr'><seg/></tuv>")
    assert body_of(filled(tmx(tmp_path, empty), "c")) == empty.replace("<seg/>", "<seg>c</seg>")


def test_codes_are_kept(tmp_path: Path) -> None:
    source = '<bpt i="1">&lt;b&gt;</bpt>Save<ept i="1">&lt;/b&gt;</ept> <ph x="1">%s</ph>'
    file = tmx(tmp_path, tu(source))
    [unit] = units(file)
    assert [code.kind for code in unit.source.codes] == ["open", "close", "blank", "standalone"]
    assert body_of(echoed(file)).count(source) == 2
    broken = Text("a", (Code(0, "standalone", "<ph>", form="tmx"),))
    assert "no XML" in file.refused(unit, broken)
    with pytest.raises(ValueError, match="line 5: the markup of a code is no XML"):
        written(file, [Filling(broken, "memory")])


def test_other_encodings_come_back_with_references_for_what_they_lack(tmp_path: Path) -> None:
    head = HEAD.replace("?>", ' encoding="ISO-8859-1"?>', 1)
    file = tmx(tmp_path, tu("café").encode("latin-1"), head)
    data = filled(file, "œ é")
    assert "<seg>&#339; é</seg>".encode("latin-1") in data
    assert untouched(file) == (tmp_path / "a.tmx").read_bytes()
    path = tmp_path / "b.tmx"
    path.write_bytes(("\ufeff" + HEAD + tu("café 😀") + TAIL).encode("utf-16-le"))
    wide = TmxFile(path, "en", "fr")
    assert untouched(wide) == path.read_bytes()
    assert "<seg>œ 😀</seg>" in filled(wide, "œ 😀").decode("utf-16")


def test_a_unit_that_is_no_xml_stays_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    body = tu("a & b") + tu("c", "<tuv xml:lang='fr'></tuv>") + tu("d") + "<tu><tuv "
    file = tmx(tmp_path, body)
    assert [unit.source.plain for unit in units(file)] == ["d"]
    units(file)
    assert caplog.text.count("2 units stay as they are; the first in line 5: ") == 1
    assert body_of(filled(file, "e")) == body.replace(
        "<seg>d</seg></tuv>", '<seg>d</seg></tuv>\n  <tuv xml:lang="fr"><seg>e</seg></tuv>'
    )
    units(tmx(tmp_path, tu("a & b") + tu("d")))
    assert "1 unit stays as it is; the first in line 5: " in caplog.text


@pytest.mark.parametrize("at", ["header", "unit", "between", "end"])
@pytest.mark.parametrize("order", ["le", "be"])
def test_half_of_a_surrogate_pair_is_told_with_its_line_before_all_work(
    tmp_path: Path, at: str, order: str
) -> None:
    marks = {place: "@" if place == at else "" for place in ("header", "unit", "between", "end")}
    head = HEAD.replace("<header", "{header}\n<header", 1) + tu("a{unit}") + "\n{between}\n"
    text = "\ufeff" + (head + tu("b") + TAIL + "\n{end}").format(**marks)
    lone = b"\x00\xd8" if order == "le" else b"\xd8\x00"
    data = lone.join(part.encode(f"utf-16-{order}") for part in text.split("@"))
    path = tmp_path / "a.tmx"
    path.write_bytes(data)
    line = text.partition("@")[0].count("\n") + 1
    with pytest.raises(FormatError) as told:
        units(TmxFile(path, "en", "fr"))
    why = f"bytes that are not UTF-16-{order.upper()}, as the file should be"
    assert str(told.value) == f"{path}, line {line}: {why}"


@pytest.mark.parametrize("tag", ["tuv", "seg"])
def test_a_tag_with_a_control_character_stays_as_it_is(tmp_path: Path, tag: str) -> None:
    target = "<tuv xml:lang='fr'><seg>b</seg></tuv>".replace(f"<{tag}", f"<{tag}\x01", 1)
    body = tu("a", target) + tu("c")
    file = tmx(tmp_path, body)
    assert [unit.source.plain for unit in units(file)] == ["c"]
    assert body_of(filled(file, "d")).startswith(tu("a", target))


def test_elements_inside_one_another_are_bounded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    deep = [f'<hi x="{n}">' for n in range(500)]
    nested = {n: "".join(deep[:n]) + "a" + "</hi>" * n for n in (100, 101, 500)}
    file = tmx(tmp_path, "".join(map(tu, nested.values())) + tu("b"))
    found = [(unit.state, unit.problem) for unit in units(file)]
    why = "more than 100 elements inside one another"
    assert found == [("new", ""), ("locked", why), ("new", "")]
    assert "1 unit stays as it is" in caplog.text and "more than 256 elements" in caplog.text
    with pytest.raises(FormatError, match=r"line \d+: no unit can be read: more than 256 elements"):
        units(tmx(tmp_path, tu(nested[500])))
    both = "".join(map(tu, nested.values())).replace(
        "</tu>", "<tuv xml:lang='fr'><seg>b</seg></tuv></tu>"
    )
    (tmp_path / "a.tmx").write_text(HEAD + both + TAIL)
    reader = read_memory(tmp_path / "a.tmx", "en", "fr")
    assert len(list(reader)) == 1 and reader.report.total_skipped == 2


def test_what_is_too_long_is_locked(tmp_path: Path) -> None:
    body = tu("a " * 1001) + tu("<ph/>" * 1001) + tu("b")
    found = [(unit.state, unit.problem) for unit in units(tmx(tmp_path, body))]
    assert found == [
        ("locked", "more than 1,000 tokens"),
        ("locked", "more than 1,000 codes"),
        ("new", ""),
    ]


def test_languages_must_be_set_and_be_in_the_file(tmp_path: Path) -> None:
    file = tmx(tmp_path, tu("a"))
    file.src_lang = "es"
    with pytest.raises(FormatError, match=r"no unit has es; languages in the file: en"):
        units(file)
    file.src_lang = ""
    with pytest.raises(UsageError):
        units(file)


def test_another_number_of_fillings_is_refused(tmp_path: Path) -> None:
    file = tmx(tmp_path, tu("a") + tu("b"))
    for number in (1, 3):
        with pytest.raises(ValueError, match="zip"):
            written(file, [None] * number)


@given(
    st.lists(st.tuples(WORDS, st.none() | WORDS, st.booleans()), min_size=1, max_size=6),
    st.sampled_from(["utf-8", "utf-16-le", "iso-8859-1"]),
    st.integers(0, 3),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    words: list[tuple[str, str | None, bool]],
    encoding: str,
    blocks: int,
) -> None:
    path = tmp_path_factory.mktemp("tmx") / "a.tmx"
    filler = "<!-- " + "-x" * 30_000 * blocks + " -->"  # beyond a block
    body = filler.join(
        tu(escaped(source), f'<tuv xml:lang="fr"><seg>{escaped(source)}</seg></tuv>' * has)
        for source, _, has in words
    )
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    head = HEAD.replace("?>", f' encoding="{encoding}"?>', 1) if not mark else HEAD
    path.write_bytes((mark + head + body + TAIL).encode(encoding, "xmlcharrefreplace"))
    file = TmxFile(path, "en", "fr")
    before = units(file)
    assert untouched(file) == path.read_bytes()
    data = filled(file, *[target for _, target, _ in words])
    path.write_bytes(data)
    after = units(TmxFile(path, "en", "fr"))
    assert [unit.source for unit in after] == [unit.source for unit in before]
    etree.fromstring(data)
    for (_, target, _), old, new in zip(words, before, after, strict=True):
        if target is None:
            assert new.target == old.target
        else:
            shown = "" if new.target is None else new.target.plain
            assert shown.split() == escaped_and_back(target).split()


def escaped_and_back(text: str) -> str:
    from tmnmt.formats.clean import clean

    return clean(etree.fromstring(f"<a>{escaped(text)}</a>").text or "")[0]


def test_a_file_in_ascii_gets_other_characters_by_their_numbers(tmp_path: Path) -> None:
    head = HEAD.replace("?>", ' encoding="us-ascii"?>', 1)
    unit = '<tu><tuv xml:lang="en"><seg>summer</seg></tuv></tu>'
    data = filled(tmx(tmp_path, unit, head), "été")
    assert b"<seg>&#233;t&#233;</seg>" in data
    assert etree.fromstring(data).findtext(".//tuv[2]/seg") == "été"


def test_a_target_that_is_written_over_says_where_the_new_one_is_from(tmp_path: Path) -> None:
    unit = '<tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="fr">\n  <seg></seg></tuv></tu>'
    by_model = body_of(filled(tmx(tmp_path, unit), "b", origin="model"))
    said = '<tuv xml:lang="fr">\n  <prop type="x-origin">model</prop>\n  <seg>b</seg></tuv>'
    assert said in by_model
    file = tmx(tmp_path, by_model)
    assert [one.state for one in units(file)] == ["draft"]
    new = body_of(filled(file, "c", origin="confirmed"))
    assert '<tuv xml:lang="fr">\n  <seg>c</seg></tuv>' in new
    assert [one.state for one in units(tmx(tmp_path, new))] == ["translated"]


def test_a_tmx_without_languages_named_says_which_ones_it_has() -> None:
    file = open_translatable(Path(__file__).parents[1] / "data" / "scripts" / "regions.tmx")
    with pytest.raises(UsageError, match=r"--src-lang and --tgt-lang; the file has: en-gb, en-us"):
        list(file.documents())
