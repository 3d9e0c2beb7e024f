"""Texts in PHP, as PHP itself reads what was written."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from file_units import echoed, filled, units, untouched
from required import absent

from tmnmt.errors import FormatError
from tmnmt.files.opening import kind_of, open_translatable
from tmnmt.files.php import PhpFile

LARAVEL = r"""<?php

declare(strict_types=1);

/* It's a comment with "signs" [ */
return [
    // The list of permits
    'title' => 'The permit\'s number', # no note
    "name" => "Hello :name,\n\"{$user}\"",
    'tabs' => "Say \"yes\" to :Name for \$5",
    'nested' => array('inner' => ['deep' => 'Deep text', 'list' => ['One', 'Two']]),
    'joined' => 'no ' . 'text',
    'call' => trans('Other text'),
    'closure' => fn () => 'No text',
    'number' => 12,
    Foo::BAR => 'Of a constant',
    'files' => 'One file|:count files',
    'some' => '{0} No file|{1} One file|[2,*] :count files',
    'bar' => 'Home | About',
    'empty' => '',
];
"""
CODEIGNITER = """<?php if (!defined('BASEPATH')) { exit('No direct access'); }
$lang['title'] = 'The permit';
$lang['a']['b'] = "A \\"text\\"";
$config['language'] = 'english';
$lang['joined'] = 'a' . $b;
$lang['table'] = ['key' => 'A text of it'];
"""


def opened(tmp_path: Path, content: str = LARAVEL, tgt_lang: str = "fr") -> PhpFile:
    path = tmp_path / "messages.php"
    path.write_bytes(content.encode())
    file = open_translatable(path)
    assert isinstance(file, PhpFile)
    file.tgt_lang = tgt_lang
    return file


def included(path: Path, content: bytes) -> Any:
    """What PHP makes of a file that returns an array."""
    program = shutil.which("php")
    if program is None:
        absent("php", "PHP is not installed")
    path.write_bytes(content.replace(b"Foo::BAR", b"'constant'").replace(b"{$user}", b"{user}"))
    script = (
        f"function trans($x) {{ return $x; }} echo json_encode(include {json.dumps(str(path))});"
    )
    result = subprocess.run([program, "-r", script], capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


def test_literal_texts_are_units_and_nothing_else_is(tmp_path: Path) -> None:
    rows = [(unit.id, unit.source.plain, unit.plural) for unit in units(opened(tmp_path))]
    assert rows == [
        ("title", "The permit's number", ""),
        ("tabs", 'Say "yes" to :Name for $5', ""),
        ("nested.inner.deep", "Deep text", ""),
        ("nested.inner.list.0", "One", ""),
        ("nested.inner.list.1", "Two", ""),
        ("?", "Of a constant", ""),
        ("files[0]", "One file", "plural form 1 of 2, for 0, 1"),
        ("files[1]", ":count files", "plural form 2 of 2, for 2, 3, 4, 5, 6, …"),
        ("some[0]", "No file", "plural form for {0}"),
        ("some[1]", "One file", "plural form for {1}"),
        ("some[2]", ":count files", "plural form for [2,*]"),
        ("bar", "Home | About", ""),
    ]
    first, second, *_ = units(opened(tmp_path))
    assert first.notes == ("The list of permits",) and first.line == 8
    assert [code.markup for code in second.source.codes] == [":Name"]


def test_assignments_of_codeigniter_are_units(tmp_path: Path) -> None:
    file = opened(tmp_path, CODEIGNITER)
    assert [(unit.id, unit.source.plain) for unit in units(file)] == [
        ("title", "The permit"),
        ("a.b", 'A "text"'),
        ("table.key", "A text of it"),
    ]
    content = filled(file, "L'autorisation", 'Un "texte" à $5').decode()
    assert content == CODEIGNITER.replace("'The permit'", "'L\\'autorisation'").replace(
        'A \\"text\\"', 'Un \\"texte\\" à \\$5'
    )


@pytest.mark.parametrize("content", [LARAVEL, CODEIGNITER, LARAVEL.replace("\n", "\r\n")])
def test_what_is_not_filled_stays_to_the_byte(tmp_path: Path, content: str) -> None:
    for language in ("fr", "ar", ""):
        assert untouched(opened(tmp_path, content, language)) == content.encode()


def test_php_reads_the_same_texts_in_an_echo(tmp_path: Path) -> None:
    file = opened(tmp_path)
    assert included(tmp_path / "b.php", echoed(file)) == included(
        tmp_path / "a.php", LARAVEL.encode()
    )
    targets = ["Dit \\ 'a' \"b\" $x {$y}\n\\n", "Dit \\ 'a' \"b\" $x {$y} ${z}\t\n"]
    texts = included(tmp_path / "c.php", filled(file, *targets))
    assert [texts["title"], texts["tabs"]] == targets


def test_a_text_has_the_plural_forms_of_the_language(tmp_path: Path) -> None:
    for language, count in (("pl", 3), ("ja", 1), ("tr", 1), ("lv", 3), ("tlh", 2)):
        file = opened(tmp_path, tgt_lang=language)
        forms = [unit for unit in units(file) if unit.id.startswith("files[")]
        assert len(forms) == count
        assert forms[-1].source.plain == ":count files"
    file = opened(tmp_path, tgt_lang="pl")
    content = filled(file, *[None] * 6, "Plik", ":count pliki", None, "Brak").decode()
    assert content == LARAVEL.replace(
        "'One file|:count files'", "'Plik|:count pliki|:count files'"
    ).replace("{0} No file", "{0} Brak")


def test_a_plural_form_cannot_have_the_sign_that_parts_them(tmp_path: Path) -> None:
    file = opened(tmp_path)
    by_id = {unit.id: unit for unit in units(file)}
    bar = by_id["bar"].source
    assert file.refused(by_id["files[0]"], bar) == "a plural form cannot have | in it"
    assert file.refused(by_id["bar"], bar) == ""


@pytest.mark.parametrize(
    "content", ["<?php\nclass A {\n    function b() { return ['a' => 'b']; }\n}\n", "<p>Text</p>"]
)
def test_other_php_is_refused_by_its_name(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.php").write_text(content)
    assert kind_of(tmp_path / "a.php") is None
    with pytest.raises(FormatError, match="PHP, which is read where a line begins with return"):
        open_translatable(tmp_path / "a.php")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("<?php\nreturn [\n'a' => <<<EOT\nText\nEOT,\n];", "line 3: a heredoc"),
        ("<?php\nreturn [\n'a' => 'b\n];", "line 3: a text that does not end"),
        ("<?php\nreturn [\n'a' => 'b';", "line 2: a bracket that does not end"),
        ("<?php\nreturn [\n'a' => 'b');", "line 3: \\) is not expected here"),
        ("<?php\nreturn [" + "[" * 200, "line 2: more than 100 brackets"),
    ],
)
def test_what_is_broken_is_one_error_with_its_line(tmp_path: Path, content: str, told: str) -> None:
    with pytest.raises(FormatError, match=told):
        units(opened(tmp_path, content))


def test_parts_of_characters_are_no_text(tmp_path: Path) -> None:
    content = '<?php\nreturn ["a" => "caf\\xc3\\xa9", "b" => "\\u{e9}t\\u{E9} \\x41\\101"];\n'
    assert [unit.source.plain for unit in units(opened(tmp_path, content))] == ["été AA"]


def test_a_long_file_takes_little_time(tmp_path: Path) -> None:
    rows = "".join(f"    'key{number}' => 'The permit',\n" for number in range(20_000))
    file = opened(tmp_path, f"<?php\nreturn [\n{rows}];\n")
    start = time.process_time()
    assert echoed(file) == (tmp_path / "messages.php").read_bytes()
    assert time.process_time() - start < 30
