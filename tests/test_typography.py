"""How languages and regions set text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from babel import Locale
from places import ROOT

from tmnmt.cli import run
from tmnmt.codes.record import Code, Part, Text, join_parts
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import UsageError
from tmnmt.filters.typography import typeset
from tmnmt.languages import languages
from tmnmt.translator import Translator
from tmnmt.typography import typography_of

MODEL = ROOT / "models" / "law-transformer.en-fr"


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        ("fr", 'Le "permis" et “loi”: 12%, 250 $', "Le «~permis~» et «~loi~»~: 12~%, 250~$"),
        ("fr", "1 200 jours", "1_200 jours"),
        ("fr-FR", "Est-ce « vrai » ? Oui; non!", "Est-ce «~vrai~»_? Oui_; non_!"),
        ("fr-CA", "Est-ce “vrai” ? Oui ; non ! Note:", "Est-ce «~vrai~»? Oui; non! Note~:"),
        ("fr-CA", "1 200 jours à 10:30", "1~200 jours à 10:30"),
        ("fr", "voir https://e.org: a", "voir https://e.org~: a"),
        ("de", 'Das "Recht" und „Gesetz“', "Das „Recht“ und „Gesetz“"),
        ("de-CH", 'Das "Recht"', "Das «Recht»"),
        ("es", "Es nulo? Sí. Pare!", "¿Es nulo? Sí. ¡Pare!"),
        ("es-MX", "¿Es nulo?", "¿Es nulo?"),
        ("en", 'the "permit" is 12%', "the “permit” is 12%"),
        ("xx", 'the "permit": 12%', 'the "permit": 12%'),
        ("fr", 'un tuyau de 5" et de 6"', 'un tuyau de 5" et de 6"'),
        ("fr", '"a) le mot « vu » suit."', '"a) le mot «~vu~» suit."'),
        ("fr", '"8. Au sens, "valeurs":', '"8. Au sens, "valeurs":'),
    ],
)
def test_a_text_is_set_as_its_language_has_it(code: str, text: str, expected: str) -> None:
    wanted = expected.replace("~", "\u00a0").replace("_", "\u202f")
    typography = typography_of(code)
    assert typography.typeset(text) == wanted
    assert typography.typeset(wanted) == wanted


def test_the_region_is_chosen_or_nothing_is_set() -> None:
    source = 'In this Act, the word "permit" means:'
    targets = {}
    for code in (None, "fr-CH", "off"):
        options = TranslationOptions(threads=1, typography=code)
        targets[code] = Translator.load(MODEL, [], options).translate([source])[0].tgt
    assert "«\u00a0permis\u00a0»" in targets[None] and targets[None].endswith("\u00a0:")
    assert "«\u202fpermis\u202f»" in targets["fr-CH"] and targets["fr-CH"].endswith("\u202f:")
    assert "\u00a0" not in targets["off"] and "\u202f" not in targets["off"]
    with pytest.raises(UsageError, match="typography 'de': the model writes 'fr'; allowed: off"):
        Translator.load(MODEL, [], TranslationOptions(threads=1, typography="de"))


def test_what_a_memory_has_stays(tmp_path: Path) -> None:
    memory = tmp_path / "memory.tsv"
    memory.write_text("src\ttgt\nThe permit:\tLe “permis” :\n", encoding="utf-8")
    translator = Translator.load(MODEL, [memory], TranslationOptions(threads=1))
    (translation,) = translator.translate(["The permit:"])
    assert (translation.origin, translation.tgt) == ("memory", "Le “permis” :")


def tagged(text: str) -> Text:
    """A text in which <i>, </i> and {name} are codes."""
    kinds = {"<": "open", "{": "placeholder"}
    parts = list[Part]()
    for part in re.split(r"(</?\w>|\{\w+\})", text):
        kind = "close" if part.startswith("</") else kinds.get(part[:1])
        if kind is None:
            parts += [part] if part else []
        else:
            pair = "" if kind == "placeholder" else part[-2]
            code = Code(0, kind, part, pair=pair)  # type: ignore[arg-type]
            parts.append((code, part if kind == "placeholder" else ""))
    return join_parts(parts)


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        ("fr", "<i>“abrogé”.</i>", "<i>«~abrogé~».</i>"),
        ("fr", "<i>“abrogé”</i>.", "<i>«~abrogé~»</i>."),
        ("fr", "“<i>abrogé</i>”.", "«~<i>abrogé</i>~»."),
        ("fr", "Le <b>“permis”</b>: {x}", "Le <b>«~permis~»</b>~: {x}"),
        ("fr", 'Ouvrir "{x}" et “{x}”.', 'Ouvrir "{x}" et «~{x}~».'),
        ("fr", "<b>1 200</b> jours, <i>12 %</i>", "<b>1_200</b> jours, <i>12~%</i>"),
        ("es", "<b>Es nulo?</b> Sí.", "<b>¿Es nulo?</b> Sí."),
    ],
)
def test_codes_stay_at_their_words_where_a_text_is_set(code: str, text: str, expected: str) -> None:
    wanted = expected.replace("~", "\u00a0").replace("_", "\u202f")
    typography = typography_of(code)
    result = typeset(tagged(text), typography)
    assert result.full_text() == wanted
    assert typeset(result, typography) == result


def test_a_model_keeps_a_tag_around_a_quotation() -> None:
    translator = Translator.load(MODEL, [], TranslationOptions(threads=1))
    source = tagged("<b>“permit”</b> means a licence;")
    translation = translator.translate([source])[0]
    target = Text(translation.tgt, translation.tgt_codes).full_text()
    assert target.startswith("<b>«\u00a0permis\u00a0»</b> ")


@pytest.mark.parametrize(("region", "blank"), [("fr-CA", "\u00a0"), ("fr-CH", "\u202f")])
def test_a_file_says_its_region(region: str, blank: str, tmp_path: Path) -> None:
    path, output = tmp_path / "a.xlf", tmp_path / "b.xlf"
    path.write_text(
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" '
        f'datatype="plaintext" source-language="en" target-language="{region}"><body>'
        '<trans-unit id="1"><source>the word "permit" means:</source></trans-unit>'
        "</body></file></xliff>",
        encoding="utf-8",
    )
    assert run(["translate", "--model", str(MODEL), str(path), "--output", str(output)]) == 0
    assert f"«{blank}permis{blank}»" in output.read_text(encoding="utf-8")


def codes() -> list[str]:
    """All languages that have a typography, with their regions."""
    found = list[str]()
    for code, language in languages().items():
        if table := language.typography:
            found += [code, *(f"{code}-{region}" for region in table.get("regions", ()))]
    return found


@pytest.mark.parametrize("code", codes())
def test_percent_and_groups_are_those_of_cldr(code: str) -> None:
    typography, locale = typography_of(code), Locale.parse(code, sep="-")
    pattern = locale.percent_formats[None].pattern
    if typography.percent is not None:
        assert pattern.endswith(f"0{typography.percent}%")
    if typography.group is not None and code != "fr-CH":  # whose group is no blank
        assert typography.group == locale.number_symbols["latn"]["group"]
