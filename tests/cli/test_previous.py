"""A new version of a file beside its former version and the translation of that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from okapi_jars import okapi_jars
from tiny_model import write_tiny_model

from tmnmt.cli import run

OLD = """# Permits

The Minister may revoke the permit.

Keep a **copy** for 10 days.

- The fee is paid.
- Send the report.
"""
OLD_FR = """# Permis (bis)

Le ministre, lui, révoque.

Gardez une **copie** 10 jours.

- Les frais sont payés.
- Envoyez le rapport.
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_tiny_model(tmp_path_factory.mktemp("model") / "model")


def written(folder: Path, **files: str) -> list[str]:
    paths = []
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.write_text(text, encoding="utf-8")
        paths.append(str(path))
    return paths


def previous(model: Path, old: str, translation: str, new: str, *options: str) -> int:
    command = ["translate", "--model", str(model), "--beam", "2", "--previous", old, translation]
    return run([*command, new, *options])


def test_what_did_not_change_stays_and_the_rest_is_translated_beside_it(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = OLD.replace("10 days", "30 days").replace("- Send", "- Quite new it is.\n- Send")
    paths = written(tmp_path, old_md=OLD, old_fr_md=OLD_FR, new_md=new)
    out = tmp_path / "out.md"
    assert previous(model, *paths, "--output", str(out)) == 0
    told = "new.md: beside the former version: 4 stayed, 1 changed, 1 new\n"
    assert told in capsys.readouterr().err
    before, after = OLD_FR.splitlines(), out.read_text(encoding="utf-8").splitlines()
    changed = [
        before.index("Gardez une **copie** 10 jours."),
        before.index("- Envoyez le rapport."),
    ]
    assert after[: changed[0]] == before[: changed[0]]
    assert after[changed[0]].replace("**", "") == "Gardez une copie 30 jours."  # adapted
    assert after[changed[0] + 1 : changed[1]] == before[changed[0] + 1 : changed[1]]
    assert after[changed[1] + 1 :] == before[changed[1] :]
    lines = tmp_path / "out.jsonl"
    assert previous(model, *paths, "--json", "--output", str(lines)) == 0
    records = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    assert [record["origin"] for record in records] == ["adapted", "model"]
    assert records[0]["matches"][0]["document"] == str(tmp_path / "old.fr.md")


PAGE = """<!DOCTYPE html>
<html lang="en"><head><title>Permits</title></head><body>
<p>See <a href="/en/list" title="Permits">the list</a> for <b>details</b>.</p>
<p>The fee is 10&nbsp;dollars. Pay it
   soon. It is due.</p><!-- a note -->
<ul><li>Save</li><li>Save</li></ul>
<p>The holder may appeal.</p>
</body></html>
"""
PAGE_FR = """<!DOCTYPE html>
<html lang="fr-CA"><head><title>Les permis</title></head><body>
<p>Voir <a href="/fr/liste" title="Permis" hreflang="fr">la liste</a> (<em>d&eacute;tails</em>).</p>
<p>Les frais sont de 10&#160;dollars.  Payez
 bient&ocirc;t. Ils sont dus.</p><!-- une note -->
<ul><li>Enregistrer</li><li>&Eacute;pargner</li></ul>
<p>Le titulaire peut interjeter appel.</p>
</body></html>
"""
TEXTS = {  # a former version with its translation, which no other markup or spelling may touch
    "a.md": (OLD, OLD_FR),
    "a.html": (PAGE, PAGE_FR),
    "a.json": (
        '{"a": "Save", "b": "Save", "n": {"t": "The <b>fee</b> is {n} \\u00e9."}}',
        '{"a": "Enregistrer", "b": "\\u00c9pargner", "n": {"t": "Les <i>frais</i>\\/{n} é."}}',
    ),
    "a.properties": (
        "a=Save\nb=Save it\\u2026\n",
        "a=Enregistrer\nb=Enregistrez \\\n  cela…\n",
    ),
    "a.strings": ('"a" = "Save it";\n', '"a" = "Enregistrez\\U00e9";\n'),
    "strings.xml": (
        "<resources>\n<string name='a'>Save</string>\n<string name='b'>It\\'s due.</string>\n"
        "</resources>\n",
        "<resources>\n<string name='a'>\"Enregistrer\"</string>\n<string name='b'>C\\u0027est dû."
        "</string>\n</resources>\n",
    ),
    "a.rst": (
        "See the fee. The owner must pay.\n\nThe permit is valid. The ship sails.\n\n- One. Two.\n",
        "Voir les frais. Le propriétaire paie.\n\nLe permis vaut. Le navire part.\n\n- Un. Deux.\n",
    ),
    "a.srt": (
        "1\n00:00:01,000 --> 00:00:02,000\nSave\nit.\n\n2\n00:00:03,000 --> 00:00:04,000\nOver.\n",
        "1\n00:00:01,000 --> 00:00:02,000\nEnregistrez-\nle.\n\n"
        "2\n00:00:03,000 --> 00:00:04,000\nFini.\n",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_an_unchanged_file_comes_back_as_its_translation(tmp_path: Path, name: str) -> None:
    paths = [tmp_path / folder / name for folder in ("old", "translation", "new", "out")]
    for path, text in zip(paths, [*TEXTS[name], TEXTS[name][0]], strict=False):
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
    command = ["translate", "--src-lang", "en", "--tgt-lang", "fr", "--previous"]
    paths[3].parent.mkdir()
    assert run([*command, *map(str, paths[:3]), "--output", str(paths[3])]) == 0
    assert paths[3].read_text(encoding="utf-8") == TEXTS[name][1]


def translated(folder: Path, old: str, translation: str, new: str, suffix: str) -> str:
    """Without a model."""
    names = f"old.{suffix}", f"old.fr.{suffix}", f"other name.{suffix}"
    for name, text in zip(names, (old, translation, new), strict=True):
        (folder / name).write_text(text, encoding="utf-8")
    command = ["translate", "--src-lang", "en", "--tgt-lang", "fr", "--previous"]
    out = folder / f"out.{suffix}"
    assert run([*command, *(str(folder / name) for name in names), "--output", str(out)]) == 0
    return out.read_text(encoding="utf-8")


def test_moved_deleted_and_inserted_blocks_leave_all_else_to_the_byte(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    appeal = "<p>The holder may appeal.</p>\n"
    new = PAGE.replace(appeal, "").replace("<p>See", f"{appeal}<p>Quite new.</p>\n<p>See")
    out = translated(tmp_path, PAGE, PAGE_FR, new.replace("<li>Save</li>", "", 1), "html")
    in_french = "<p>Le titulaire peut interjeter appel.</p>\n"
    first = f"{in_french}<p>Quite new.</p>\n<p>Voir"
    wanted = PAGE_FR.replace(in_french, "").replace("<p>Voir", first)
    wanted = wanted.replace("<li>&Eacute;pargner</li>", "")
    assert out in (wanted, wanted.replace("<li>Enregistrer</li>", "<li>&Eacute;pargner</li>"))
    told = "beside the former version: 6 stayed, 1 moved, 1 new, 1 gone"
    assert told in capsys.readouterr().err


def test_of_a_changed_paragraph_the_other_sentences_stay(tmp_path: Path) -> None:
    new = PAGE.replace("It is due.", "All of it must be paid.")
    out = translated(tmp_path, PAGE, PAGE_FR, new, "html")
    assert out == PAGE_FR.replace("Ils sont dus.", "All of it must be paid.")
    split = PAGE.replace("soon. It is due.</p>", "soon.</p>\n<p>It is due.</p>")
    out = translated(tmp_path, PAGE, PAGE_FR, split, "html")
    assert "Les frais sont de 10&#160;dollars.  Payez\n bient&ocirc;t.</p>\n<p>" in out
    assert out.count("Ils sont dus.") == 1


def test_names_go_before_places(tmp_path: Path) -> None:
    old, translation = TEXTS["a.json"]
    new = '{"x": "New", "b": "Save", "a": "Save"}'
    out = json.loads(translated(tmp_path, old, translation, new, "json"))
    assert out == {"x": "New", "b": "Épargner", "a": "Enregistrer"}


PO_HEAD = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\nLanguage: fr\\n"\n\n'
PO = 'msgid "Save"\nmsgstr "Enregistrer"\n\nmsgctxt "verb"\nmsgid "Save"\nmsgstr "Épargner"\n\n'
XLIFF = (
    '<xliff version="1.2"><file original="d" source-language="en" target-language="fr" '
    'datatype="html"><body>\n{}</body></file></xliff>\n'
)
CODED = '<source>The <g id="1">fee</g> is due.</source>'


def test_of_files_with_targets_the_translation_alone_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = PO.replace('"Enregistrer"', '""').replace('"Épargner"', '""')
    new = f'msgid "New"\nmsgstr ""\n\n{new}'
    draft = '#, fuzzy\nmsgid "A draft"\nmsgstr "Un brouillon"\n\n'
    new += 'msgid "A draft"\nmsgstr ""\n\n'
    out = translated(tmp_path, PO_HEAD + PO + draft, PO_HEAD + PO + draft, PO_HEAD + new, "po")
    assert PO in out and 'msgid "A draft"\nmsgstr ""' in out
    assert "2 stayed, 2 new" in capsys.readouterr().err
    target = '<target state="final">Les <g id="1">frais</g>.</target>'
    old = XLIFF.format(f'<trans-unit id="1">{CODED}{target}</trans-unit>\n')
    new_units = '<trans-unit id="1"><source>New</source></trans-unit>\n'
    new_units += f'<trans-unit id="2">{CODED}</trans-unit>\n'
    out = translated(tmp_path, old, old, XLIFF.format(new_units), "xlf")
    target = 'state="translated" state-qualifier="exact-match">Les <g id="1">frais</g>.</target>'
    assert f'<trans-unit id="2">{CODED}<target {target}' in out


def test_paragraphs_of_an_office_file_stay_with_their_formats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMNMT_OKAPI", str(okapi_jars()))
    docx = pytest.importorskip("docx")
    texts = {
        "old.docx": [
            ["The ", "fee", " is 10 dollars."],
            ["Pay it. It is due."],
            ["Save"],
            ["Save"],
        ],
        "old.fr.docx": [["Les ", "frais", " : 10 $."], ["Payez. Ils sont dus."], ["Enr."], ["Ép."]],
        "new.docx": [["Save"], ["The ", "fee", " is 10 dollars."], ["Pay it. New."], ["Save"]],
    }
    for name, paragraphs in texts.items():
        document = docx.Document()
        for runs in paragraphs:
            paragraph = document.add_paragraph()
            for number, text in enumerate(runs):
                paragraph.add_run(text).bold = number == 1
        document.save(tmp_path / name)
    command = ["translate", "--src-lang", "en", "--tgt-lang", "fr", "--previous"]
    paths = [str(tmp_path / name) for name in texts]
    assert run([*command, *paths, "--output", str(tmp_path / "out.docx")]) == 0
    result = docx.Document(tmp_path / "out.docx").paragraphs
    assert [[(r.text, bool(r.bold)) for r in paragraph.runs] for paragraph in result] == [
        [("Enr.", False)],
        [("Les ", False), ("frais", True), (" : 10 $.", False)],
        [("Payez. New.", False)],
        [("Ép.", False)],
    ]


def test_a_translation_with_other_segments_is_aligned(tmp_path: Path) -> None:
    lines = [f"Section {number} has {number * 7} words." for number in range(1, 9)]
    in_french = [f"L'article {number} compte {number * 7} mots." for number in range(1, 9)]
    in_french[3:5] = [f"{in_french[3]} {in_french[4]}"]
    new = "\n\n".join([*lines, "Quite new."]) + "\n"
    old, translation = "\n\n".join(lines) + "\n", "\n\n".join(in_french) + "\n"
    out = translated(tmp_path, old, translation, new, "md").split("\n\n")
    assert out[:3] == in_french[:3] and out[5:8] == in_french[4:7]


def test_keys_tell_what_belongs_together(tmp_path: Path, model: Path) -> None:
    old = {"a": "Open", "b": "Save", "c": "Gone"}
    translation = {"b": "Enregistrer", "a": "Ouvrir"}
    new = {"b": "Save", "a": "Open"}
    texts = [json.dumps(catalogue) for catalogue in (old, translation, new)]
    paths = written(tmp_path, old_json=texts[0], fr_json=texts[1], new_json=texts[2])
    assert previous(model, *paths, "--output", str(tmp_path / "out.json")) == 0
    assert json.loads((tmp_path / "out.json").read_text()) == {"b": "Enregistrer", "a": "Ouvrir"}


def test_files_that_do_not_belong_together_are_told(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, po, text = written(
        tmp_path, old_md=OLD, new_md=OLD, a_po='msgid "a"\nmsgstr ""\n', a_txt="A\n"
    )
    out = ["--output", str(tmp_path / "out")]
    assert previous(model, old, po, new, *out) == 2
    assert f"{po}: is no Markdown" in capsys.readouterr().err
    assert previous(model, old, old, text, *out) == 2
    assert "--previous is of one file" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_former_version_that_is_exchanged_with_its_translation_is_told(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ("# Fees\n\nPay now.\n", "# Droits\n\nPayez.\n", "# Fees\n\nPay now. New.\n")
    old, french, new = written(tmp_path, old_md=texts[0], fr_md=texts[1], new_md=texts[2])
    out = ["--output", str(tmp_path / "out.md")]
    assert previous(model, french, old, new, *out) == 2
    assert "first comes the former version, then its translation" in capsys.readouterr().err
    assert not (tmp_path / "out.md").exists()
