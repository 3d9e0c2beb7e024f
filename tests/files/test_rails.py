"""YAML of Rails: all but the texts stays to the byte, and the result is YAML that says the same."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from file_units import echoed, filled, units, untouched
from translate.storage import yaml as toolkit

from tmnmt.errors import FormatError
from tmnmt.files import yaml_syntax
from tmnmt.files.opening import kind_of, open_translatable
from tmnmt.files.rails import RailsFile
from tmnmt.files.texts import string_of

LOCALE = """# The texts of the shop
---
en: &root
  # On the first page
  title: The permit # short
  said: "Say \\"%{name}\\" now"
  single: 'It''s void'
  notice_html: Read the <b>notice</b>
  count: 12
  day: :year
  sure: yes
  answer: "yes"
  empty:
  order: [ "a b", c d ]
  files:
    one: One file
    other: "%{count} files"
  flow: {one: One page, other: "%{count} pages"}
  titles:
    one: A title
    name: no plural form
    other: Titles
  long: A text that
    goes on
  block: |
    One <b>line</b>

    Two lines
  folded: >-
    Some words that
    go on

    and a paragraph
  alias: *root
  list:
    - Monday
    -
    - Tuesday
"""


def opened(tmp_path: Path, content: str = LOCALE, tgt_lang: str = "fr") -> RailsFile:
    path = tmp_path / "en.yml"
    path.write_bytes(content.encode())
    file = open_translatable(path)
    assert isinstance(file, RailsFile)
    file.tgt_lang = tgt_lang
    return file


def loaded(content: bytes, root: str) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(content)
    assert [*data] == [root]
    return data[root]


def test_texts_are_units_and_what_is_no_text_stays(tmp_path: Path) -> None:
    file = opened(tmp_path)
    assert file.src_lang == "en"
    assert [(unit.id, string_of(unit.source), unit.line) for unit in units(file)] == [
        ("title", "The permit", 5),
        ("said", 'Say "%{name}" now', 6),
        ("single", "It's void", 7),
        ("notice_html", "Read the <b>notice</b>", 8),
        ("answer", "yes", 12),
        ("order.0", "a b", 14),
        ("order.1", "c d", 14),
        ("files.one", "One file", 16),
        ("files.other", "%{count} files", 17),
        ("flow.one", "One page", 18),
        ("flow.other", "%{count} pages", 18),
        ("titles.one", "A title", 20),
        ("titles.name", "no plural form", 21),
        ("titles.other", "Titles", 22),
        ("long", "A text that goes on", 23),
        ("block", "One <b>line</b>\n\nTwo lines", 25),
        ("folded", "Some words that go on\nand a paragraph", 29),
        ("list.0", "Monday", 36),
        ("list.2", "Tuesday", 38),
    ]
    first, second, *_ = units(file)
    assert first.notes == ("On the first page", "short")
    assert [code.markup for code in second.source.codes] == ["%{name}"]


@pytest.mark.parametrize(
    "content", [LOCALE, LOCALE.replace("\n", "\r\n"), "\ufeff" + LOCALE, LOCALE + "  last: word"]
)
def test_what_is_not_filled_stays_to_the_byte(tmp_path: Path, content: str) -> None:
    for language in ("fr", "ar", ""):
        assert untouched(opened(tmp_path, content, language)) == content.encode()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_echo_says_the_same_in_the_other_language(tmp_path: Path, newline: str) -> None:
    content = LOCALE.replace("  alias: *root\n", "").replace("\n", newline)
    file = opened(tmp_path, content, "nb")
    assert loaded(echoed(file), "nb") == loaded(content.encode(), "en")


def test_only_the_texts_and_the_language_change(tmp_path: Path) -> None:
    content = filled(opened(tmp_path), "Le permis", 'Dites "%{name}"', "C'est nul").decode()
    assert content == (
        LOCALE.replace("en: &root", "fr: &root")
        .replace("The permit #", "Le permis #")
        .replace('Say \\"%{name}\\" now', 'Dites \\"%{name}\\"')
        .replace("It''s void", "C''est nul")
    )


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ("Note : nul", '"Note : nul"'),
        ("Note: nul", '"Note: nul"'),
        ("nul # a", '"nul # a"'),
        ("# nul", '"# nul"'),
        ("- nul", '"- nul"'),
        ("yes", '"yes"'),
        ("12", '"12"'),
        (":nul", '":nul"'),
        ("%{name} dit", '"%{name} dit"'),
        ("nul\nnul", '"nul\\nnul"'),
        (" nul ", '" nul "'),
        ("a\u2028b", '"a\\u2028b"'),
        ("{a}", '"{a}"'),
        ("Le 😀 permis", "Le 😀 permis"),
    ],
)
def test_a_plain_text_gets_quotation_marks_where_it_needs_them(
    tmp_path: Path, target: str, wanted: str
) -> None:
    content = filled(opened(tmp_path), target)
    assert f"  title: {wanted} # short\n" in content.decode()
    assert loaded(content.replace(b"alias: *root", b"alias: a"), "fr")["title"] == target


def test_a_block_keeps_its_lines(tmp_path: Path) -> None:
    content = filled(opened(tmp_path), *[None] * 15, "Une\n\ndeux", "Des mots\net un autre")
    assert "  block: |\n    Une\n\n    deux\n  folded: >-\n    Des mots\n\n    et un autre\n" in (
        content.decode()
    )


@pytest.mark.parametrize(
    ("text", "target", "wanted"),
    [
        ("en:\n  a: |+\n    One\n\n  b: x\n", "Une", "fr:\n  a: |+\n    Une\n\n  b: x\n"),
        (
            "en:\n  a: |2\n      One\n    two\n",
            "  Une\ndeux",
            "fr:\n  a: |2\n      Une\n    deux\n",
        ),
        ("en:\n  a: |-\n    One\n", "Une", "fr:\n  a: |-\n    Une\n"),
        ("en:\n  a: >+\n    One\n\n\n  b: x\n", "Une", "fr:\n  a: >+\n    Une\n\n\n  b: x\n"),
    ],
)
def test_a_block_keeps_its_form(tmp_path: Path, text: str, target: str, wanted: str) -> None:
    assert filled(opened(tmp_path, text), target).decode() == wanted


def test_a_language_gets_the_plural_forms_that_it_needs(tmp_path: Path) -> None:
    file = opened(tmp_path, tgt_lang="pl")
    targets = ["%{count} plik", "%{count} pliki", "%{count} plików", "%{count} pliku"]
    content = filled(file, *[None] * 7, *targets).decode()
    assert content == LOCALE.replace("en: &root", "pl: &root").replace(
        '    one: One file\n    other: "%{count} files"\n',
        '    one: "%{count} plik"\n    few: "%{count} pliki"\n    many: "%{count} plików"\n'
        '    other: "%{count} pliku"\n',
    )
    flow = loaded(echoed(file).replace(b"alias: *root", b"alias: a"), "pl")["flow"]
    assert [*flow] == ["one", "few", "many", "other"]
    assert [unit.id for unit in units(file)].count("titles.few") == 0


def test_the_word_other_alone_is_a_form_only_where_a_language_has_no_more(tmp_path: Path) -> None:
    reasons = "en:\n  reasons:\n    other: Another reason\n"
    assert [unit.plural for unit in units(opened(tmp_path, reasons, "pl"))] == [""]
    files = "ja:\n  files:\n    other: ファイル\n"
    file = opened(tmp_path, files, "en")
    assert [unit.id for unit in units(file)] == ["files.one", "files.other"]


def test_the_code_of_norwegian_is_no_truth_value(tmp_path: Path) -> None:
    content = filled(opened(tmp_path, "en:\n  a: The permit\n", "no"), "Tillatelsen")
    assert content == b'"no":\n  a: Tillatelsen\n'
    assert filled(opened(tmp_path, "en:\n  a: b\n", "pt-br"), "c") == b"pt-BR:\n  a: c\n"


@pytest.mark.parametrize(
    "content", ["version: 3\nservices:\n  a: b\n", "on:\n  push: a\n", "en: a text\n", "- en\n"]
)
def test_other_yaml_is_refused_by_its_name(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.yml").write_text(content)
    assert kind_of(tmp_path / "a.yml") is None
    with pytest.raises(FormatError, match="YAML, which is read as Rails has it"):
        open_translatable(tmp_path / "a.yml")


BOMB = "en:\n  a0: &a0 [x, x]\n" + "".join(
    f"  a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]\n" for number in range(1, 40)
)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("en:\n  a: 'b\n", "line 3: no YAML: found unexpected end of stream"),
        ("en:\n  a: b\n c: d\n", "line 3: no YAML"),
        ("en:\n  a: b\nfr:\n  a: b\n", "line 3: allowed is one key at the root"),
        ("en:\n  a: b\n---\nfr:\n  a: b\n", "line 3: a second document"),
        ("en:\n  a: " + "[" * 500, "line 2: more than 100 lists"),
        ("en:\n  a: \x01\n", "no YAML: "),
        ("en:\n  ? [a]\n  : b\n", "line 2: a key that is a list"),
    ],
)
def test_what_is_broken_is_one_error_with_its_line(tmp_path: Path, content: str, told: str) -> None:
    with pytest.raises(FormatError, match=told):
        units(opened(tmp_path, content))


def test_translate_toolkit_reads_what_was_written(tmp_path: Path) -> None:
    file = opened(tmp_path, LOCALE.replace("  alias: *root\n", ""), "pl")
    store = toolkit.RubyYAMLFile()
    store.parse(
        filled(file, "Zezwolenie: nieważne", *[None] * 6, "%{count} plik", "%{count} pliki")
    )
    theirs = {unit.getid(): unit.target for unit in store.units}
    assert theirs["title"] == "Zezwolenie: nieważne"
    assert theirs["files"].strings[:2] == ["%{count} plik", "%{count} pliki"]


def test_both_readers_of_yaml_find_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = LOCALE.replace("\n", "\r\n").replace("Monday", "Lundi 😀 é")
    first = units(opened(tmp_path, content))
    monkeypatch.setattr(yaml_syntax, "_LOADER", yaml.SafeLoader)
    file = opened(tmp_path, content)
    assert units(file) == first and untouched(file) == content.encode()


def test_aliases_are_not_followed(tmp_path: Path) -> None:
    file = opened(tmp_path, BOMB)
    assert len(units(file)) == 2 and untouched(file) == BOMB.encode()


def test_a_long_file_takes_little_time(tmp_path: Path) -> None:
    content = "en:\n" + "".join(f"  key{number}: The permit\n" for number in range(10_000))
    file = opened(tmp_path, content)
    start = time.process_time()
    assert len(echoed(file)) == len(content)
    assert time.process_time() - start < 20
