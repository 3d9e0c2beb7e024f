"""PO files: what is read, what is written, and nothing else changed. Oracles: polib,
translate-toolkit, and msgfmt where it is."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from gettext import GNUTranslations
from pathlib import Path

import polib
import pytest
from file_units import echoed, filled, units, untouched, written
from hypothesis import given
from hypothesis import strategies as st
from places import FILES
from required import absent

from tmnmt.codes.record import Code, Text
from tmnmt.errors import FormatError
from tmnmt.files.opening import open_translatable
from tmnmt.files.po import PoFile
from tmnmt.files.po_syntax import escaped, unescaped
from tmnmt.files.unit import Comment, Filling
from tmnmt.segments import Match, Segment

HEADER = (
    'msgid ""\nmsgstr ""\n"Language: fr\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=2; plural=(n > 1);\\n"\n\n'
)
SAMPLES = sorted(FILES.glob("*.po"))
POLIB_READS = [path for path in SAMPLES if path.stem != "okapi-cp1251"]  # it has "#A comment"


def po(tmp_path: Path, body: str | bytes, header: str = HEADER) -> PoFile:
    path = tmp_path / "a.po"
    path.write_bytes(header.encode() + (body.encode() if isinstance(body, str) else body))
    return PoFile(path, "en", "fr")


def body_of(data: bytes) -> str:
    return data.decode().removeprefix(HEADER)


def test_samples_are_there() -> None:
    assert len(SAMPLES) == 3


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_nothing_filled_in_leaves_every_byte(path: Path) -> None:
    file = open_translatable(path)
    assert isinstance(file, PoFile)
    assert untouched(file) == path.read_bytes()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_messages_are_those_of_translate_toolkit(path: Path) -> None:
    from translate.storage.pypo import pofile

    expected = [
        (str(unit.source), unit.isfuzzy())
        for unit in pofile.parsefile(str(path)).units
        if unit.istranslatable()
    ]
    file = PoFile(path)
    entries = {id(slot.entry): slot.entry for slot in file._slots}
    found = [(entry.msgid.value, "fuzzy" in file._flags(entry)) for entry in entries.values()]
    assert found == expected


@pytest.mark.parametrize("path", POLIB_READS, ids=lambda path: path.name)
def test_what_is_filled_in_is_read_by_polib(path: Path, tmp_path: Path) -> None:
    file = PoFile(path)
    out = tmp_path / "out.po"
    out.write_bytes(echoed(file))
    again = polib.pofile(str(out), encoding=file.encoding)
    targets = [
        target
        for entry in again
        for target in (
            [entry.msgstr_plural[n] for n in sorted(entry.msgstr_plural)] or [entry.msgstr]
        )
    ]
    assert targets == [unit.source.full_text() for unit in units(file)]
    assert not any("fuzzy" in entry.flags for entry in again)


def test_states_contexts_notes_and_lines(tmp_path: Path) -> None:
    body = (
        '#. shown on a button\n# ask Anne\n#: a.c:1\n#, fuzzy\n#| msgid "Opens"\n'
        'msgctxt "menu"\nmsgid "Open"\nmsgstr "Ouvre"\n\n'
        'msgid "Close"\nmsgstr "Fermer"\n\nmsgid "Save"\nmsgstr ""\n\n'
        '#, fuzzy\n#~ msgid "Old"\n#~ msgstr "Vieux"\n'
    )
    first, second, third = units(po(tmp_path, body))
    assert (first.source.plain, first.state, first.context) == ("Open", "draft", "menu")
    assert first.notes == ("shown on a button",) and first.comments == (Comment("ask Anne"),)
    assert first.line == 12
    assert (second.state, second.target) == ("translated", Text("Fermer"))
    assert (third.state, third.target) == ("new", None)


def test_languages_are_those_of_the_header_or_else_those_asked_for(tmp_path: Path) -> None:
    body = 'msgid "a"\nmsgstr ""\n'
    file = po(tmp_path, body, HEADER.replace("fr", "pt_BR.UTF-8@latin"))
    assert (file.src_lang, file.tgt_lang) == ("en", "pt-br")
    assert po(tmp_path, body, "").tgt_lang == "fr"


def test_a_model_marks_fuzzy_and_an_exact_match_takes_the_mark_away(tmp_path: Path) -> None:
    file = po(tmp_path, 'msgid "Save"\nmsgstr ""\n\n#, c-format\nmsgid "%d"\nmsgstr ""\n')
    model = filled(file, "Enregistrer", Text("%d"), origin="model")
    assert body_of(model) == (
        '#, fuzzy\nmsgid "Save"\nmsgstr "Enregistrer"\n\n'
        '#, fuzzy, c-format\nmsgid "%d"\nmsgstr "%d"\n'
    )
    fuzzy = po(tmp_path, '#, fuzzy\n#| msgid "Saves"\nmsgid "Save"\nmsgstr "S"\n')
    assert body_of(filled(fuzzy, "Enregistrer")) == 'msgid "Save"\nmsgstr "Enregistrer"\n'
    both = po(tmp_path, '#, c-format, fuzzy\r\nmsgid "%d"\r\nmsgstr "d"\r\n')
    assert body_of(filled(both, "%d")) == '#, c-format\r\nmsgid "%d"\r\nmsgstr "%d"\r\n'
    again = filled(fuzzy, "Enregistre", origin="model")
    assert body_of(again) == '#, fuzzy\nmsgid "Save"\nmsgstr "Enregistre"\n'


def fuzzy(src: str, tgt: str) -> Filling:
    return Filling(Text(tgt), "fuzzy", (Match(Segment(src, tgt), 0.88, 1),))


def test_a_fuzzy_match_says_what_it_was_the_translation_of(tmp_path: Path) -> None:
    body = '#, c-format\n#| msgid "Saves"\nmsgctxt "menu"\nmsgid "Save"\nmsgstr ""\n'
    new = body_of(written(po(tmp_path, body), [fuzzy('Save "as"\n', "Enregistrer")]))
    assert new == (
        '#, fuzzy, c-format\n#| msgid "Save \\"as\\"\\n"\nmsgctxt "menu"\nmsgid "Save"\n'
        'msgstr "Enregistrer"\n'
    )
    (unit,) = units(po(tmp_path, new))
    assert (unit.state, unit.target) == ("draft", Text("Enregistrer"))
    again = body_of(written(po(tmp_path, new), [Filling(Text("Sauver"), "memory")]))
    assert again == '#, c-format\nmsgctxt "menu"\nmsgid "Save"\nmsgstr "Sauver"\n'
    adapted = replace(fuzzy("Page 2", "Page 3"), origin="adapted")
    new = body_of(written(po(tmp_path, 'msgid "Page 3"\nmsgstr ""\n'), [adapted]))
    assert new == '#, fuzzy\n#| msgid "Page 2"\nmsgid "Page 3"\nmsgstr "Page 3"\n'


def test_the_previous_msgid_of_a_message_with_plurals_has_both_forms(tmp_path: Path) -> None:
    body = 'msgid "a dog"\nmsgid_plural "dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    both = [fuzzy("a cat", "un chat"), fuzzy("cats", "des chats")]
    assert '#, fuzzy\n#| msgid "a cat"\n#| msgid_plural "cats"\nmsgid "a dog"' in body_of(
        written(po(tmp_path, body), both)
    )
    one = [Filling(Text("un chien"), "memory"), both[1]]
    assert '#| msgid "a dog"\n#| msgid_plural "cats"\n' in body_of(written(po(tmp_path, body), one))
    assert "#|" not in body_of(written(po(tmp_path, body), [None, both[1]]))


def test_a_long_previous_msgid_is_broken_and_read_by_polib_and_the_toolkit(
    tmp_path: Path,
) -> None:
    from translate.storage.pypo import pofile

    source = "word " * 30 + "end"
    data = written(po(tmp_path, 'msgid "Save"\nmsgstr ""\n'), [fuzzy(source, "Fini")])
    lines = body_of(data).splitlines()
    assert max(map(len, lines)) <= 79 and lines[1] == '#| msgid ""'
    path = tmp_path / "out.po"
    path.write_bytes(data)
    (entry,) = polib.pofile(str(path))
    assert (entry.previous_msgid, entry.fuzzy) == (source, True)
    unit = pofile.parsefile(str(path)).units[1]
    assert unit.isfuzzy() and str(unit.prev_source) == source


def test_a_previous_msgid_that_the_charset_lacks_is_left_out(tmp_path: Path) -> None:
    header = HEADER.replace("UTF-8", "ISO-8859-1")
    file = po(tmp_path, 'msgid "Save"\nmsgstr ""\n', header)
    assert b"#|" not in written(file, [fuzzy("Save \u2026", "Enregistrer")])


def test_every_form_must_be_exact_before_a_message_is_no_longer_fuzzy(tmp_path: Path) -> None:
    body = '#, fuzzy\nmsgid "a"\nmsgid_plural "as"\nmsgstr[0] "x"\nmsgstr[1] "y"\n'
    file = po(tmp_path, body)
    assert body_of(filled(file, "b")) == body.replace('"x"', '"b"')
    assert body_of(filled(file, "b", "bs")) == (
        'msgid "a"\nmsgid_plural "as"\nmsgstr[0] "b"\nmsgstr[1] "bs"\n'
    )


@pytest.mark.parametrize(
    ("plurals", "sources"),
    [
        ("nplurals=1; plural=0;", ["%d files"]),
        ("nplurals=2; plural=(n != 1);", ["a file", "%d files"]),
        ("nplurals=3; plural=n==0 ? 0 : n==1 ? 1 : 2;", ["%d files", "a file", "%d files"]),
    ],
)
def test_there_are_as_many_forms_as_the_header_says(
    tmp_path: Path, plurals: str, sources: list[str]
) -> None:
    header = HEADER.replace("nplurals=2; plural=(n > 1);", plurals)
    body = (
        'msgid "a file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n\n'
        'msgid "x"\nmsgstr ""\n'
    )
    file = po(tmp_path, body, header)
    assert [unit.source.plain for unit in units(file)] == [*sources, "x"]
    numbers = [f"{n} fichiers" for n in range(len(sources))]
    again = po(tmp_path, filled(file, *numbers), "")
    assert [unit.target for unit in units(again)][:-1] == [Text(number) for number in numbers]
    entry = polib.pofile(str(tmp_path / "a.po"))[0]
    assert entry.msgstr_plural == dict(enumerate(numbers))


@pytest.mark.parametrize(
    ("plurals", "told"),
    [
        ("nplurals=2; plural=(n > 1);", ["1 of 2, for 0, 1", "2 of 2, for 2, 3, 4, 5, 6, …"]),
        (
            "nplurals=3; plural=(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2;",
            ["1 of 3, for 1", "2 of 3, for 2, 3, 4", "3 of 3, for 0, 5, 6, 7, 8, …"],
        ),
        ("nplurals=2; plural=100/n > 50;", ["1 of 2, for 2, 3, 4, 5, 6, …", "2 of 2, for 1"]),
    ],
)
def test_a_plural_form_says_of_which_numbers_it_is(
    tmp_path: Path, plurals: str, told: list[str]
) -> None:
    header = HEADER.replace("nplurals=2; plural=(n > 1);", plurals)
    body = 'msgid "a file"\nmsgid_plural "%d files"\nmsgstr[0] ""\n\nmsgid "x"\nmsgstr ""\n'
    found = [unit.plural for unit in units(po(tmp_path, body, header))]
    assert found == [*(f"plural form {one}" for one in told), ""]


def test_a_template_gets_what_its_header_lacks_and_only_when_something_is_filled_in(
    tmp_path: Path,
) -> None:
    header = (
        '#, fuzzy\nmsgid ""\nmsgstr ""\n"Language: \\n"\n'
        '"Content-Type: text/plain; charset=CHARSET\\n"\n'
        '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n\n'
    )
    body = 'msgid "a"\nmsgid_plural "as"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    file = po(tmp_path, body, header)
    assert untouched(file).decode() == header + body
    data = filled(file, "é", "és").decode()
    assert '"Language: fr\\n"' in data and "charset=UTF-8" in data
    assert '"Plural-Forms: nplurals=2; plural=(n > 1);\\n"' in data
    assert data.endswith('msgstr[0] "é"\nmsgstr[1] "és"\n')


def test_plural_forms_are_added_to_a_header_without_them(tmp_path: Path) -> None:
    header = 'msgid ""\nmsgstr "Language: ru\\n"\n\n'
    file = po(tmp_path, 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\n', header)
    assert len(units(file)) == 3
    data = filled(file, "x", "y", "z").decode()
    assert 'msgstr "Language: ru\\n"\n"Plural-Forms: nplurals=3; ' in data
    assert data.endswith('msgstr[0] "x"\nmsgstr[1] "y"\nmsgstr[2] "z"\n')


def test_line_ends_at_the_ends_are_those_of_the_msgid(tmp_path: Path) -> None:
    file = po(tmp_path, 'msgid "\\na\\n"\nmsgstr ""\n\nmsgid "b"\nmsgstr ""\n')
    assert body_of(filled(file, "c", "\nd\n")) == (
        'msgid "\\na\\n"\nmsgstr ""\n"\\n"\n"c\\n"\n\nmsgid "b"\nmsgstr "d"\n'
    )


def test_line_breaks_and_tabs_between_words_are_codes(tmp_path: Path) -> None:
    [unit] = units(po(tmp_path, 'msgid "Usage:\\n  -a\\tall\\n"\nmsgstr ""\n'))
    assert unit.source.plain == "Usage: -a all"
    kinds = [(code.kind, code.markup) for code in unit.source.codes]
    assert kinds == [("standalone", "\n  "), ("standalone", "\t"), ("blank", "\n")]
    assert unit.source.full_text() == "Usage:\n  -a\tall\n"


def test_long_lines_are_broken_as_in_the_file(tmp_path: Path) -> None:
    target = " ".join(["mot"] * 30)
    data = body_of(filled(po(tmp_path, 'msgid "a"\nmsgstr ""\n'), target))
    lines = data.split("\n")[1:-1]
    assert lines[0] == 'msgstr ""' and len(lines) == 3
    assert all(len(line) <= 79 for line in lines)
    wide = f'msgid "{target}"\nmsgstr ""\n\nmsgid "a"\nmsgstr ""\n'
    data = body_of(filled(po(tmp_path, wide), None, target + "\n" + target))
    assert data.endswith(f'msgstr ""\n"{target}\\n"\n"{target}"\n')


def markups(file: PoFile) -> list[list[str]]:
    return [[code.markup for code in unit.source.codes] for unit in units(file)]


def test_flags_say_what_is_a_placeholder(tmp_path: Path) -> None:
    body = "".join(
        f'#, {flag}\nmsgid "{text}"\nmsgstr ""\n\n'
        for flag, text in [
            ("c-format", "50% done %<PRIu64> %1$s %.*f"),
            ("no-c-format", "100%d"),
            ("python-format", "%(name)s %%"),
            ("python-brace-format", "{name} %s"),
            ("qt-format", "%1 of %L2"),
            ("ruby-format", "%<a>d %{b}"),
            ("sh-format", "$HOME ${x} $1 $@"),
            ("fuzzy", "%s https://example.org"),
        ]
    )
    assert markups(po(tmp_path, body)) == [
        ["% d", "%<PRIu64>", "%1$s", "%.*f"],
        [],
        ["%(name)s", "%%"],
        ["{name}"],
        ["%1", "%L2"],
        ["%<a>d", "%{b}"],
        ["$HOME", "${x}", "$1", "$@"],
        ["%s", "https://example.org"],
    ]


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("Found $1 of $2.", ["$1", "$2"]),
        ("$3: $1 at $2", ["$3", "$1", "$2"]),
        ("Cannot open '$1' in /home/$1.", ["$1", "$1"]),
        ("Usage: NAME=$2 or $1/bin or $1.txt", ["$2", "$1", "$1"]),
        ("It costs $1, or $1.50, or $1 million.", []),
        ("Pay $1 or $5.", []),
        ('The "$5" note and $1,000', ["$5"]),
    ],
)
def test_parameters_of_a_shell_are_told_from_prices(
    tmp_path: Path, text: str, parameters: list[str]
) -> None:
    message = text.replace('"', '\\"')
    (unit,) = units(po(tmp_path, f'msgid "{message}"\nmsgstr ""\n'))
    assert [code.markup for code in unit.source.codes] == parameters


def test_codes_of_other_formats_leave_what_they_cover(tmp_path: Path) -> None:
    file = po(tmp_path, 'msgid "a"\nmsgstr ""\n')
    target = Text("x y", (Code(1, "standalone", "<ph/>", form="tmx", covers=1),))
    assert body_of(filled(file, target)).endswith('msgstr "x y"\n')


def test_what_the_charset_lacks_is_refused(tmp_path: Path) -> None:
    header = HEADER.replace("UTF-8", "ISO-8859-1").encode()
    path = tmp_path / "a.po"
    path.write_bytes(header + b'msgid "a\xe9"\nmsgstr ""\n')
    file = PoFile(path)
    [unit] = units(file)
    assert unit.source.plain == "aé"
    assert filled(file, "ç") == header + b'msgid "a\xe9"\nmsgstr "\xe7"\n'
    assert file.refused(unit, Text("ç")) == ""
    assert file.refused(unit, Text("œ")).startswith("ISO8859-1 lacks 'œ'")
    with pytest.raises(ValueError, match="line 7: ISO8859-1 lacks"):
        filled(file, "œ")


def test_what_is_too_long_is_locked_and_the_rest_is_not(tmp_path: Path) -> None:
    body = "".join(
        f'msgid "{text}"\nmsgstr ""\n' for text in ("x" * 10_000_001, "a " * 1001, "%s" * 1001, "b")
    )
    file = po(tmp_path, body)
    found = [(unit.state, unit.problem) for unit in units(file)]
    assert found == [
        ("locked", "longer than 10 MB"),
        ("locked", "more than 1,000 tokens"),
        ("locked", "more than 1,000 codes"),
        ("new", ""),
    ]
    with pytest.raises(ValueError, match="line 7: longer than 10 MB"):
        filled(file, "y")
    assert body_of(filled(file, None, None, None, "c")).endswith('msgid "b"\nmsgstr "c"\n')


def test_another_number_of_fillings_is_refused(tmp_path: Path) -> None:
    file = po(tmp_path, 'msgid "a"\nmsgstr ""\n')
    with pytest.raises(ValueError, match="0 fillings for 1 unit"):
        written(file, [])


@pytest.mark.parametrize(
    ("body", "line", "what"),
    [
        ('msgid "a"\n', 1, "msgid without msgstr"),
        ('msgid "a"\n\nmsgid "b"\nmsgstr ""\n', 1, "msgid without msgstr"),
        ('msgctxt "a"\nmsgstr "b"\n', 1, "msgctxt without msgid"),
        ('msgctxt "a"\n', 1, "msgctxt without msgid"),
        ('msgid "a\nmsgstr ""\n', 1, "without a quotation mark"),
        ('msgid "a"\nmsgstr\n', 2, "msgstr without a text"),
        ('msgid "a"\nmsgstr ""\n\ufeffmsgid "b"\n', 3, "byte-order mark in the middle"),
        ('msgid "a"\nmsgstr[0] ""\n', 2, "another msgstr"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr[1] ""\n', 3, "another msgstr"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr ""\n', 3, "another msgstr"),
        ('msgid "a"\nmsgstr ""\nmsgstr ""\n', 3, "another msgstr"),
        ("<<<<<<< HEAD\n", 1, "no part of a PO file"),
        (b'msgid "\xff"\nmsgstr ""\n', 1, "not UTF-8"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, body: str | bytes, line: int, what: str
) -> None:
    with pytest.raises(FormatError) as error:
        units(po(tmp_path, body))
    before = HEADER.count("\n")
    assert f"a.po, line {before + line}: " in str(error.value) and what in str(error.value)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("header", "what"),
    [
        ("", "the file is empty"),
        ("# nothing\n", "without a message"),
        ('msgstr "a"\n', "line 1: msgstr without msgid"),
        ('"a"\n', "line 1: a text without msgid"),
        (HEADER.replace("UTF-8", "klingon"), "unknown charset 'klingon'"),
        (HEADER.replace("=2", "=2000000"), "nplurals=2000000"),
        (HEADER.replace("(n > 1)", "(n > "), "Plural-Forms"),
        (HEADER.replace("(n > 1)", "n/0"), "divides by zero"),
        (HEADER.replace("(n > 1)", "7"), "form 7"),
        (HEADER.replace("(n > 1)", "(" * 900), "Plural-Forms"),
    ],
)
def test_a_wrong_header_is_told(tmp_path: Path, header: str, what: str) -> None:
    with pytest.raises(FormatError, match=r"a\.po") as error:
        units(
            po(
                tmp_path,
                'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\n' if header[:5] == "msgid" else "",
                header,
            )
        )
    assert what in str(error.value)


def test_many_comments_and_pieces_take_linear_time(tmp_path: Path) -> None:
    body = "# c\n" * 100_000 + 'msgid ""\n' + '"a"\n' * 100_000 + 'msgstr ""\n'
    [unit] = units(po(tmp_path, body))
    assert len(unit.source.plain) == 100_000
    assert unit.comments == (Comment("\n".join("c" * 100_000)),)


STRINGS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(STRINGS)
def test_escapes_come_back(string: str) -> None:
    assert unescaped(escaped(string)) == string
    assert polib.unescape(polib.escape(string)) == string or "\\" in string


MESSAGES = st.tuples(STRINGS.filter(bool), STRINGS, st.none() | STRINGS, st.booleans())


@given(st.lists(MESSAGES, min_size=1, max_size=5), st.data())
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    messages: list[tuple[str, str, str | None, bool]],
    data: st.DataObject,
) -> None:
    tmp_path = tmp_path_factory.mktemp("po")
    body = "".join(
        ("#, fuzzy\n" if fuzzy else "")
        + (f'msgctxt "{escaped(context)}"\n' if context is not None else "")
        + f'msgid "{escaped(msgid)}"\nmsgstr "{escaped(msgstr)}"\n'
        for msgid, msgstr, context, fuzzy in messages
    )
    file = po(tmp_path, body)
    before = units(file)
    assert untouched(file).decode() == HEADER + body
    texts = st.none() | STRINGS.map(lambda text: text.strip("\n"))
    targets = [data.draw(texts) for _ in before]
    after = units(po(tmp_path, filled(file, *targets), ""))
    assert [unit.source for unit in after] == [unit.source for unit in before]
    for (msgid, msgstr, _, fuzzy), target, entry in zip(
        messages, targets, polib_free(tmp_path / "a.po"), strict=True
    ):
        ends = [msgid.startswith("\n"), msgid.endswith("\n")]
        if target is None:
            assert entry == (msgstr, fuzzy)
        elif not target:
            assert entry == ("", False)
        else:
            assert entry[0].strip("\n") == target and not entry[1]
            assert [entry[0].startswith("\n"), entry[0].endswith("\n")] == ends


def polib_free(path: Path) -> list[tuple[str, bool]]:
    """msgstr and fuzzy of every message; polib takes other line ends than \\n for line ends."""
    file = PoFile(path)
    return [
        (slot.entry.msgstr[0].value, "fuzzy" in file._flags(slot.entry)) for slot in file._slots
    ]


def test_msgfmt_takes_what_is_written(tmp_path: Path) -> None:
    msgfmt = shutil.which("msgfmt")
    if msgfmt is None:
        absent("gettext", "msgfmt of GNU gettext is not installed")
    body = (
        '#, c-format\nmsgid "\\n%d file\\n"\nmsgid_plural "\\n%d files\\n"\n'
        'msgstr[0] ""\nmsgstr[1] ""\n\n#, python-brace-format\nmsgid "{a}\\n{b}"\nmsgstr ""\n'
    )
    header = HEADER.replace('"Language', '"Project-Id-Version: 1\\n"\n"Language')
    for origin in ("memory", "model", "fuzzy"):
        file = po(tmp_path, body, header)
        path = tmp_path / "out.po"
        match = Match(Segment("Old\n%d", "x"), 0.8, 1)
        fillings = [Filling(unit.source, origin, (match,)) for unit in units(file)]
        path.write_bytes(written(file, fillings))
        told = subprocess.run(
            [msgfmt, "-c", "-o", tmp_path / "a.mo", path], capture_output=True, text=True
        )
        errors = [line for line in told.stderr.splitlines() if "warning" not in line]
        assert told.returncode == 0, errors


HALF_FILLED = [  # the targets of three forms, whether the message was fuzzy, what msgfmt counts
    (("a", None, None), False, "0 translated messages, 1 fuzzy translation."),
    (("a", "", "c"), False, "0 translated messages, 1 fuzzy translation."),
    ((None, None, "c"), False, "0 translated messages, 1 untranslated message."),
    (("a", "b", ""), True, "0 translated messages, 1 fuzzy translation."),
    (("a", "b", "c"), True, "1 translated message."),
    (("", "", ""), False, "0 translated messages, 1 untranslated message."),
]


@pytest.mark.parametrize(("targets", "was_fuzzy", "counted"), HALF_FILLED)
@pytest.mark.parametrize("origin", ["memory", "confirmed"])
def test_a_message_that_lacks_a_form_is_a_draft_to_msgfmt(
    tmp_path: Path,
    targets: tuple[str | None, ...],
    was_fuzzy: bool,
    counted: str,
    origin: str,
) -> None:
    msgfmt = shutil.which("msgfmt")
    if msgfmt is None:
        absent("gettext", "msgfmt of GNU gettext is not installed")
    plurals = "nplurals=3; plural=n==0 ? 0 : n==1 ? 1 : 2;"
    header = HEADER.replace("nplurals=2; plural=(n > 1);", plurals)
    flags = "#, fuzzy\n" if was_fuzzy else ""
    body = flags + 'msgid "a file"\nmsgid_plural "files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    path = tmp_path / "out.po"
    path.write_bytes(filled(po(tmp_path, body, header), *targets, origin=origin))
    told = subprocess.run(
        [msgfmt, "--statistics", "-o", tmp_path / "a.mo", path], capture_output=True, text=True
    )
    assert told.stderr.strip() == counted
    with (tmp_path / "a.mo").open("rb") as stream:
        translations = GNUTranslations(stream)
    assert all(translations.ngettext("a file", "files", n) for n in range(3))


def test_a_message_is_finished_when_the_form_that_it_lacked_is_filled(tmp_path: Path) -> None:
    body = 'msgid "a"\nmsgid_plural "as"\nmsgstr[0] "x"\nmsgstr[1] ""\n'
    file = po(tmp_path, body)
    assert body_of(filled(file, "b")) == "#, fuzzy\n" + body.replace('"x"', '"b"')
    assert body_of(filled(file, None, "bs")) == body.replace('""', '"bs"')


def test_a_flag_says_how_long_a_translation_may_be(tmp_path: Path) -> None:
    body = (
        '#, c-format, max-length:12\nmsgid "One %s."\nmsgstr ""\n\n'
        '#, max-length:x\nmsgid "Two."\nmsgstr ""\n\n'
        '#, max-length:7\nmsgid "Three."\nmsgid_plural "Many."\nmsgstr[0] ""\nmsgstr[1] ""\n'
    )
    (document,) = po(tmp_path, body).documents()
    assert [unit.max_length for unit in document.units] == [12, None, 7, 7]
