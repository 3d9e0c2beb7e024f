"""`tmnmt translate` of files that translators work on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt.cli import run
from tmnmt.codes.record import Text
from tmnmt.files.opening import open_translatable
from tmnmt.files.unit import Unit
from tmnmt.index import build
from tmnmt.translator import Translator

HEAD = (
    '<?xml version="1.0"?>\n<xliff version="1.2"><file original="a.html" source-language="en" '
    'target-language="fr" datatype="html"><body>\n'
)
TAIL = "</body></file></xliff>\n"
NEW = '<trans-unit id="{0}"><source>{1}</source></trans-unit>\n'
DONE = '<trans-unit id="{0}"{2}><source>{1}</source><target>Fait.</target></trans-unit>\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("files")
    write_tiny_model(folder / "model")
    build(folder / "index", segments(), "en", "fr")
    (folder / "a.xlf").write_text(
        HEAD
        + NEW.format("1", PAIRS[0][0])
        + DONE.format("2", PAIRS[1][0], "")
        + NEW.format("3", 'The <g id="1">second</g> day<x id="2"/>')
        + DONE.format("4", "Repealed.", ' translate="no"')
        + TAIL
    )
    return folder


def translate(folder: Path, *arguments: str) -> int:
    command = ["translate", "--model", str(folder / "model"), "--memory", str(folder / "index")]
    return run([*command, "--beam", "2", "--threads", "1", *arguments])


def units(path: Path) -> list[Unit]:
    return [unit for document in open_translatable(path).documents() for unit in document.units]


def test_what_has_no_target_gets_one_and_all_else_stays_to_the_byte(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.fr.xlf"
    assert translate(folder, str(folder / "a.xlf"), "-o", str(out)) == 0
    first, second, third, fourth = units(out)
    assert first.target == Text(PAIRS[0][1])
    assert second.target == fourth.target == Text("Fait.")
    assert third.target is not None
    assert [code.markup for code in third.target.codes] == ['<g id="1">', "</g>", '<x id="2"/>']
    before, after = (path.read_text().splitlines() for path in (folder / "a.xlf", out))
    assert [line for line in before if "Fait" in line] == [line for line in after if "Fait" in line]
    assert capsys.readouterr().err.endswith(  # a slow machine tells its progress before
        f"{folder / 'a.xlf'}: 2 of 4 segments translated; left as they are: 1 translated before, "
        "1 locked\n"
    )


def test_without_an_output_the_file_goes_to_standard_output(
    folder: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert translate(folder, str(folder / "a.xlf")) == 0
    shown = capfdbinary.readouterr().out
    assert translate(folder, str(folder / "a.xlf"), "-o", str(tmp_path / "out")) == 0
    assert shown == (tmp_path / "out").read_bytes()


def test_overwrite_says_which_targets_are_made_anew(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert translate(folder, str(folder / "a.xlf"), "-o", str(out), "--overwrite", "all") == 0
    targets = [unit.target.plain if unit.target else "" for unit in units(out)]
    assert targets[1] == PAIRS[1][1] and targets[3] == "Fait."


def test_several_files_go_to_a_folder(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "b.xlf"
    other.write_bytes((folder / "a.xlf").read_bytes())
    both = [str(folder / "a.xlf"), str(other)]
    assert translate(folder, *both, "-o", str(tmp_path / "made" / "for them")) == 0
    (tmp_path / "out").mkdir()
    assert translate(folder, *both, "-o", str(tmp_path / "out")) == 0
    made = [(tmp_path / "out" / name).read_bytes() for name in ("a.xlf", "b.xlf")]
    assert (tmp_path / "made" / "for them" / "b.xlf").read_bytes() == made[1]
    assert made[0] == made[1].replace(b"x-repetition", b"leveraged-mt") != other.read_bytes()
    for wrong, message in (
        (both, "several files need a folder to be written to: --output FOLDER"),
        ([*both, "-o", str(folder / "model" / "config.toml")], "several files need a folder"),
        ([*both, "-o", str(tmp_path)], "would be written over the input"),
        ([both[0], both[0], "-o", str(tmp_path / "out")], "two files have the same name"),
        ([*both, "-o", str(tmp_path / "out"), "--json"], "one file, not a folder"),
        ([both[0], str(folder / "model" / "config.toml")], "another input is lines of text"),
        ([both[0], "--confirmed", both[1]], "are of text, not of"),
        ([both[0], "--tag", "fra"], "--tag is of text"),
        ([str(folder / "model" / "config.toml"), "--overwrite", "all"], "is of files with targets"),
    ):
        capsys.readouterr()
        assert translate(folder, *wrong) == 2
        err = capsys.readouterr().err
        assert message in err and len(err.splitlines()) == 1, wrong


def test_a_file_of_other_languages_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_text((folder / "a.xlf").read_text().replace('"fr"', '"de-AT"'))
    assert translate(folder, str(tmp_path / "a"), "-o", str(tmp_path / "out")) == 2
    assert "a: its target language is de-AT, where fr is wanted" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    (tmp_path / "a").write_text((folder / "a.xlf").read_text().replace('"fr"', '"fr-CA"'))
    assert translate(folder, str(tmp_path / "a"), "-o", str(tmp_path / "out")) == 0


def test_stopped_it_keeps_a_whole_file_to_go_on_with(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    whole = Translator.stream

    def stopped(*arguments: Any, **options: Any) -> Iterator[Any]:
        yield next(whole(*arguments, **options))
        raise KeyboardInterrupt

    out = tmp_path / "out.xlf"
    with monkeypatch.context() as patched:
        patched.setattr(Translator, "stream", stopped)
        assert translate(folder, str(folder / "a.xlf"), "-o", str(out)) == 130
        err = capfd.readouterr().err
        assert translate(folder, str(folder / "a.xlf")) == 130
        shown, told = capfd.readouterr()
    partial = tmp_path / "out.xlf.partial"
    assert f"what was finished is in {partial}" in err
    assert "what was finished is in the output" in told
    assert shown.encode() == partial.read_bytes()
    assert not out.exists() and [unit.target is None for unit in units(partial)] == [
        *(False, False, True, False)
    ]
    assert translate(folder, str(partial), "-o", str(out)) == 0
    assert translate(folder, str(folder / "a.xlf"), "-o", str(tmp_path / "at-once")) == 0
    assert units(out) == units(tmp_path / "at-once")


def test_json_tells_what_is_translated_and_no_file_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translate(folder, str(folder / "a.xlf"), "--json") == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["src"], one["origin"]) for one in told] == [
        (PAIRS[0][0], "memory"),
        ("The second day", "model"),
    ]
    assert [(one["file"], one["line"], one["id"]) for one in told] == [
        (str(folder / "a.xlf"), 3, "1"),
        (str(folder / "a.xlf"), 5, "3"),
    ]


def test_explained_segments_say_where_they_are(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translate(folder, str(folder / "a.xlf"), "--explain") == 0
    assert f"{folder / 'a.xlf'}:5 3\nThe second day" in capsys.readouterr().out


SAVE = (
    '<tu><prop type="{0}">{1}</prop><tuv xml:lang="en"><seg>Save</seg></tuv>'
    '<tuv xml:lang="fr"><seg>{2}</seg></tuv></tu>\n'
)
HELD = [("prev", "Quantity", "Économiser"), ("msgctxt", "menu", "Enregistrer"), ("x", "", "Garder")]
PO = """msgid "Quantity"
msgstr "Quantité"

msgid "Save"
msgstr ""

msgctxt "menu"
msgid "Save"
msgstr ""

msgctxt "dialog"
msgid "Save"
msgstr ""
"""


@pytest.mark.parametrize("model", [True, False])
def test_of_several_targets_that_of_the_same_place_is_taken(
    folder: Path, tmp_path: Path, model: bool
) -> None:
    """Also where the segment before it is translated already."""
    memory, po, out = tmp_path / "a.tmx", tmp_path / "a.po", tmp_path / "b.po"
    memory.write_text(
        '<tmx version="1.4"><header srclang="en"/><body>'
        + "".join(SAVE.format(*held) for held in [*HELD, HELD[2]])
        + "</body></tmx>"
    )
    po.write_text(PO)
    with_model = ["--model", str(folder / "model"), "--threads", "1"] if model else []
    languages = ["--src-lang", "en", "--tgt-lang", "fr"]
    command = ["translate", *with_model, "--memory", str(memory), *languages, str(po)]
    assert run([*command, "-o", str(out)]) == 0
    assert [unit.target and unit.target.plain for unit in units(out)] == [
        *("Quantité", "Économiser", "Enregistrer", "Garder")
    ]


def test_without_a_model_files_get_exact_matches_with_their_own_codes(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    coded = f'<g id="1">{PAIRS[1][0]}</g><x id="2"/>'
    path, out = tmp_path / "a.xlf", tmp_path / "b.xlf"
    path.write_text(HEAD + NEW.format("1", coded) + NEW.format("2", "Never seen.") + TAIL)
    command = ["translate", "--memory", str(folder / "index"), str(path), "-o", str(out)]
    assert run(command) == 0
    exact, unseen = units(out)
    assert exact.target is not None and unseen.target is None
    assert exact.target.full_text() == f'<g id="1">{PAIRS[1][1]}</g><x id="2"/>'
    assert f"{path}: 1 of 2 segments translated" in capsys.readouterr().err
    assert run([*command, "--untranslated", "source"]) == 2


def test_without_a_model_a_file_says_the_languages_of_its_memory_and_torch_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path, out, memory = tmp_path / "a.xlf", tmp_path / "b.xlf", tmp_path / "m.tsv"
    path.write_text(HEAD + NEW.format("1", "One <g id='1'>file</g>.") + TAIL)
    memory.write_text("src\ttgt\nOne file.\tUn fichier.\n")
    program = (
        "import sys; from tmnmt.cli import run; code = run(sys.argv[1:]); "
        "assert 'torch' not in sys.modules; sys.exit(code)"
    )
    command = [sys.executable, "-c", program, "translate", str(path), "-o", str(out)]
    full = [*command, "--memory", str(memory), "--no-drafts"]
    told = subprocess.run(full, capture_output=True, text=True)
    assert told.returncode == 0 and "0 of 1 segment translated" in told.stderr
    assert (
        "1 segment has a match that only a --model can put in, since its tags stand otherwise"
        in told.stderr
    )
    told = subprocess.run([*command, "--memory", str(memory)], capture_output=True, text=True)
    assert [(unit.state, unit.target) for unit in units(out)] == [("draft", Text("Un fichier."))]
    path.write_text(HEAD + NEW.format("1", "<g id='1'>One file.</g>") + TAIL)
    told = subprocess.run([*command, "--memory", str(memory)], capture_output=True, text=True)
    assert told.returncode == 0 and [unit.target is None for unit in units(out)] == [False]


def test_analyse_takes_the_languages_of_a_memory_from_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, memory = tmp_path / "a.xlf", tmp_path / "m.tsv"
    path.write_text(HEAD + NEW.format("1", "One file.") + NEW.format("2", "Another.") + TAIL)
    memory.write_text("src\ttgt\nOne file.\tUn fichier.\n")
    assert run(["analyse", "--json", "--memory", str(memory), str(path)]) == 0
    total = json.loads(capsys.readouterr().out)["total"]
    assert total["segments"] == 2 and total["bands"]["100"]["segments"] == 1


def test_a_memory_that_is_not_there_is_told_before_its_languages_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.po"
    path.write_text('msgid "One file."\nmsgstr ""\n')
    assert run(["translate", "--memory", str(tmp_path / "none"), str(path)]) == 1
    assert f"{tmp_path / 'none'}: no such file" in capsys.readouterr().err
    (tmp_path / "m.tsv").write_text("src\ttgt\nOne file.\tUn fichier.\n")
    assert run(["translate", "--memory", str(tmp_path / "m.tsv"), str(path)]) == 2
    assert (
        "nothing says of which languages the file to be translated is: name them"
        in capsys.readouterr().err
    )


def test_tags_in_messages_are_codes_also_where_a_memory_has_them_as_text(
    folder: Path, tmp_path: Path
) -> None:
    memory, path, out = tmp_path / "a.tsv", tmp_path / "a.po", tmp_path / "b.po"
    memory.write_text(
        "src\ttgt\nClick <b>here</b>.\t<b>Ici</b>, cliquez.\nClick here.\tCliquez ici.\n"
        "Click <i>here</i>.\t<i>Là</i>.\n"
    )
    messages = ["Click <b>here</b>.", "Click <u>here</u>.", "Click here.", "The <i>second</i> day"]
    path.write_text("".join(f'msgid "{one}"\nmsgstr ""\n\n' for one in messages))
    assert translate(folder, str(path), "-o", str(out), "--memory", str(memory)) == 0
    targets = [unit.target and unit.target.full_text() for unit in units(out)]
    assert [targets[0], targets[2]] == ["<b>Ici</b>, cliquez.", "Cliquez ici."]
    # the tiny model knows no better where they belong
    assert re.sub("</?u>", "", targets[1] or "") == "Cliquez ici."
    assert re.search("<i>.*</i>", targets[3] or "")


ESCAPED = "Click &lt;b&gt;here&lt;/b&gt;."
IN_ELEMENTS = 'Click <bpt {0}="1">&lt;b&gt;</bpt>here<ept {0}="1">&lt;/b&gt;</ept>.'
BACK = "&lt;b&gt;Ici&lt;/b&gt;, cliquez."
BACK_IN_ELEMENTS = '<bpt {0}="1">&lt;b&gt;</bpt>Ici<ept {0}="1">&lt;/b&gt;</ept>, cliquez.'


@pytest.mark.parametrize(
    ("theirs", "theirs_back"), [(ESCAPED, BACK), (IN_ELEMENTS, BACK_IN_ELEMENTS)]
)
@pytest.mark.parametrize(("ours", "back"), [(ESCAPED, BACK), (IN_ELEMENTS, BACK_IN_ELEMENTS)])
def test_tags_as_text_and_in_elements_are_the_same_in_a_file_and_a_memory(
    folder: Path, tmp_path: Path, ours: str, back: str, theirs: str, theirs_back: str
) -> None:
    """And another pair of the same words counts less."""
    memory, path, out = tmp_path / "a.tmx", tmp_path / "a.xlf", tmp_path / "b.xlf"
    pairs = (("Click here.", "Sans balises."), (theirs.format("i"), theirs_back.format("i")))
    memory.write_text(
        '<tmx version="1.4"><header srclang="en"/><body>'
        + "".join(
            f'<tu><tuv xml:lang="en"><seg>{src}</seg></tuv>'
            f'<tuv xml:lang="fr"><seg>{tgt}</seg></tuv></tu>'
            for src, tgt in pairs
        )
        + "</body></tmx>"
    )
    path.write_text(HEAD + NEW.format("1", ours.format("id")) + TAIL)
    assert translate(folder, str(path), "-o", str(out), "--memory", str(memory)) == 0
    assert f">{back.format('id')}</target>" in out.read_text()
    assert 'match-quality="100' in out.read_text()


def test_analyse_counts_the_units_of_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["analyse", str(folder / "a.xlf"), "--memory", str(folder / "index"), "--json"]
    assert run(command) == 0
    bands = json.loads(capsys.readouterr().out)["total"]["bands"]
    assert bands["no match"]["segments"] == 1
    assert bands["unchanged"]["segments"] == 2
    assert sum(band["segments"] for band in bands.values()) == 4


def test_running_text_keeps_its_paragraphs(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.txt"
    first, second = PAIRS[0], PAIRS[1]
    path.write_text(f"1. {first[0]} {second[0]}\n\n   * {first[0]}\n")
    assert translate(folder, str(path), "--running-text") == 0
    assert capsys.readouterr().out == f"1. {first[1]} {second[1]}\n\n   * {first[1]}\n"
    assert translate(folder, "--running-text") == 2


def test_pages_are_cut_into_sentences_where_that_is_asked_for(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.html"
    first, second = PAIRS[0], PAIRS[1]
    path.write_text(f"<p>{first[0]} <b>{second[0]}</b>\n</p>")
    assert translate(folder, str(path), "--running-text") == 0
    assert capsys.readouterr().out == f"<p>{first[1]} <b>{second[1]}</b>\n</p>"
    counted = ["analyse", "--json", "--src-lang", "en", str(path)]
    for option, count in (([], 1), (["--running-text"], 2)):
        assert run([*counted, *option]) == 0
        assert json.loads(capsys.readouterr().out)["total"]["segments"] == count
    assert translate(folder, str(folder / "a.xlf"), "--running-text") == 2
    assert "--running-text is of text, HTML and Markdown" in capsys.readouterr().err
    assert run([*counted, "--running-text", "--src-lang", "xx"]) == 2
    assert "no rules for sentences in 'xx'" in capsys.readouterr().err


def test_terms_come_in_files_too_and_what_is_forbidden_is_named_with_its_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.tsv").write_text(
        "source\ttarget\tforbidden\nsecond\tdirective\t\nCommission\t\tCommission\n"
    )
    out = tmp_path / "a.fr.xlf"
    terms = ["--terms", str(tmp_path / "t.tsv"), "--terms-mode", "hard"]
    assert translate(folder, str(folder / "a.xlf"), "-o", str(out), *terms) == 0
    target = next(unit.target for unit in units(out) if unit.id == "3")
    assert target is not None and "directive" in target.plain
    told = "translations that have a forbidden term: 1; check line 3"
    assert told in capsys.readouterr().err
    (tmp_path / "b.xlf").write_bytes((folder / "a.xlf").read_bytes())
    (tmp_path / "out").mkdir()
    both = [str(folder / "a.xlf"), str(tmp_path / "b.xlf"), "-o", str(tmp_path / "out")]
    assert translate(folder, *both, *terms) == 0
    told = "translations that have a forbidden term: 2; check a.xlf line 3; b.xlf line 3\n"
    assert told in capsys.readouterr().err


ALIKE = f"{PAIRS[0][0]} Repealed."  # a match that is no full one


@pytest.fixture
def catalogues(tmp_path: Path) -> Path:
    (tmp_path / "a.po").write_text(
        f'msgid ""\nmsgstr "Language: fr\\n"\n\nmsgid "{PAIRS[0][0]}"\nmsgstr ""\n\n'
        f'msgid "{ALIKE}"\nmsgstr ""\n'
    )
    (tmp_path / "a.json").write_text(json.dumps({"a": PAIRS[0][0], "b": ALIKE}))
    (tmp_path / "a.txt").write_text(f"{PAIRS[0][0]}\n{ALIKE}\n")
    return tmp_path


def from_memory(folder: Path, *arguments: str) -> int:
    return run(["translate", "--memory", str(folder / "index"), *arguments])


def test_without_a_model_matches_become_drafts_where_a_file_can_say_so(
    folder: Path, catalogues: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = catalogues / "out.po"
    assert from_memory(folder, str(catalogues / "a.po"), "-o", str(out)) == 0
    assert [unit.state for unit in units(out)] == ["translated", "draft"]
    assert f'#, fuzzy\n#| msgid "{PAIRS[0][0]}"\n' in out.read_text()
    told = capsys.readouterr().err
    assert "2 of 2 segments translated, 1 of them by a match worth less than 100\n" in told
    again = catalogues / "again.po"
    command = [str(out), "-o", str(again), "--overwrite", "drafts"]
    assert from_memory(folder, *command) == 0
    assert again.read_bytes() == out.read_bytes()
    assert "2 segments translated" in capsys.readouterr().err
    assert from_memory(folder, str(catalogues / "a.po"), "-o", str(out), "--no-drafts") == 0
    assert [unit.state for unit in units(out)] == ["translated", "new"]
    assert "--drafts" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a.json", "a.txt"])
def test_where_nothing_marks_a_draft_matches_are_held_back_and_that_is_told(
    folder: Path, catalogues: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = catalogues / f"out-{name}"
    assert from_memory(folder, str(catalogues / name), "-o", str(out)) == 0
    assert out.read_text().count(PAIRS[0][1]) == 1
    held = "1 segment has a match of 75 to 99 % that nothing would mark as a draft here; "
    assert f"{held}--drafts 75 puts it in\n" in capsys.readouterr().err
    assert from_memory(folder, str(catalogues / name), "-o", str(out), "--drafts", "75") == 0
    assert out.read_text().count(PAIRS[0][1]) == 2
    assert "--drafts" not in capsys.readouterr().err


def test_with_a_model_drafts_are_of_the_memory_only_where_they_are_wanted(
    folder: Path, catalogues: Path
) -> None:
    out = catalogues / "out.po"
    assert translate(folder, str(catalogues / "a.po"), "-o", str(out)) == 0
    assert units(out)[1].state == "draft" and "#|" not in out.read_text()  # the model's
    assert translate(folder, str(catalogues / "a.po"), "-o", str(out), "--drafts", "75") == 0
    assert units(out)[1].target == Text(PAIRS[0][1]) and "#| msgid" in out.read_text()


def test_with_a_model_every_match_stands_beside_its_segment(folder: Path, tmp_path: Path) -> None:
    capitals = PAIRS[0][0].upper()  # shares no word with the memory, and is worth 99
    (tmp_path / "b.xlf").write_text(HEAD + NEW.format("1", capitals) + TAIL)
    for options in ([], ["--mode", "off"]):
        assert translate(folder, str(tmp_path / "b.xlf"), "-o", str(tmp_path / "o"), *options) == 0
        new = (tmp_path / "o").read_text()
        assert new.count("<alt-trans") == new.count('match-quality="99%"') == 1
        assert 'state-qualifier="leveraged-mt"' in new


@pytest.mark.parametrize(
    ("src", "value"),
    [
        ('The Commission <g id="1">shall</g> now always inform all the old Member States.', 65),
        (PAIRS[0][0].replace("inform", 'inform<x id="1"/>'), 99),
    ],
)
@pytest.mark.parametrize("with_model", [False, True])
def test_a_match_is_worth_the_same_whatever_the_options(
    folder: Path, tmp_path: Path, src: str, value: int, with_model: bool
) -> None:
    (tmp_path / "a.xlf").write_text(HEAD + NEW.format("1", src) + TAIL)
    options = ["", "--drafts 60", "--drafts 66", "--verbatim 60"]
    options += ["--verbatim 0"] if with_model else ["--no-drafts"]
    told = set[str]()
    for each in options:
        to_translate = translate if with_model else from_memory
        arguments = [str(tmp_path / "a.xlf"), "-o", str(tmp_path / "b.xlf"), *each.split()]
        assert to_translate(folder, *arguments) == 0
        told |= {*re.findall(r'match-quality="(\d+)%"', (tmp_path / "b.xlf").read_text())}
    assert told == {str(value)}


def test_matches_below_100_that_verbatim_takes_are_drafts(folder: Path, catalogues: Path) -> None:
    (catalogues / "b.xlf").write_text(HEAD + NEW.format("1", ALIKE) + TAIL)
    for name in ("a.po", "b.xlf"):
        for command in (translate, from_memory):
            out = catalogues / f"out-{name}"
            given = [str(catalogues / name), "-o", str(out), "--verbatim", "75"]
            assert command(folder, *given) == 0
            assert (units(out)[-1].target, units(out)[-1].state) == (Text(PAIRS[0][1]), "draft")


def test_options_of_drafts_that_do_not_go_together_are_refused(
    folder: Path, catalogues: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for options, message in (
        (["--drafts", "75", "--verbatim", "80"], "exclude each other"),
        (["--drafts", "75", "--no-verbatim"], "exclude each other"),
        (["--drafts", "100"], "--drafts is 100; it must be"),
        (["--no-verbatim"], "--no-verbatim needs a --model"),
    ):
        assert from_memory(folder, str(catalogues / "a.po"), *options) == 2
        assert message in capsys.readouterr().err


def test_subtitles_are_told_where_they_pass_the_limits_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.tsv").write_text("src\ttgt\nGood day\tBonjour à vous\n", encoding="utf-8")
    film = tmp_path / "film.srt"
    film.write_text("1\n00:00:01,000 --> 00:00:03,000\nGood day\n", encoding="utf-8")
    command = ["translate", "--memory", str(tmp_path / "m.tsv"), "--src-lang", "en"]
    command += ["--tgt-lang", "fr", "--json", str(film)]
    assert run([*command, "--width", "10", "--speed", "5"]) == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [check["name"] for check in checks] == ["speed", "width"]
    assert run(command) == 0
    assert json.loads(capsys.readouterr().out)["checks"] == []
    (tmp_path / "a.json").write_text('{"a": "Good day"}', encoding="utf-8")
    assert run([*command[:-1], str(tmp_path / "a.json"), "--width", "10"]) == 2
    assert "--width and --lines are of subtitles" in capsys.readouterr().err


def test_keys_of_front_matter_are_of_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.tsv").write_text("src\ttgt\nFees\tDroits\n", encoding="utf-8")
    (tmp_path / "a.md").write_text("---\ntitle: Fees\n---\nFees\n", encoding="utf-8")
    command = ["translate", "--memory", str(tmp_path / "m.tsv"), "--src-lang", "en"]
    command += ["--tgt-lang", "fr", "--front-matter", "title"]
    assert run([*command, str(tmp_path / "a.md")]) == 0
    assert capsys.readouterr().out == "---\ntitle: Droits\n---\nDroits\n"
    (tmp_path / "a.json").write_text('{"a": "Fees"}', encoding="utf-8")
    assert run([*command, str(tmp_path / "a.json")]) == 2
    assert "--front-matter is of Markdown, MDX and HTML" in capsys.readouterr().err
