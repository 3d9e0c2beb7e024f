"""Apple's String Catalogs: every other byte stays, and what is written has Xcode's form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from file_units import echoed, filled, units, untouched

from tmnmt.errors import FormatError, UsageError
from tmnmt.files.as_memory import units_of
from tmnmt.files.opening import open_translatable
from tmnmt.files.string_catalog import StringCatalog
from tmnmt.formats import Report
from tmnmt.formats.stream import file_source

CATALOG = """{
  "sourceLanguage" : "en",
  "strings" : {
    "" : {

    },
    "%lld permits of %@" : {
      "comment" : "On the first screen",
      "localizations" : {
        "en" : {
          "variations" : {
            "plural" : {
              "one" : {
                "stringUnit" : {
                  "state" : "translated",
                  "value" : "%lld permit of %@"
                }
              },
              "other" : {
                "stringUnit" : {
                  "state" : "translated",
                  "value" : "%lld permits of %@"
                }
              }
            }
          }
        },
        "de" : {
          "stringUnit" : {
            "state" : "translated",
            "value" : "%lld Genehmigungen"
          }
        }
      }
    },
    "Acme" : {
      "shouldTranslate" : false
    },
    "Old" : {
      "extractionState" : "stale"
    },
    "The permit is void." : {

    },
    "title" : {
      "extractionState" : "manual",
      "localizations" : {
        "en" : {
          "stringUnit" : {
            "state" : "translated",
            "value" : "Tap to \\"open\\""
          }
        },
        "fr" : {
          "stringUnit" : {
            "state" : "needs_review",
            "value" : "Touchez"
          }
        }
      }
    },
    "Yes" : {
      "localizations" : {
        "fr" : {
          "stringUnit" : {
            "state" : "translated",
            "value" : "Oui"
          }
        }
      }
    }
  },
  "version" : "1.0"
}"""
SUBSTITUTED: dict[str, Any] = {
    "stringUnit": {"state": "translated", "value": "%#@files@ in %@"},
    "substitutions": {
        "files": {
            "argNum": 1,
            "formatSpecifier": "lld",
            "variations": {
                "plural": {
                    "one": {"stringUnit": {"state": "translated", "value": "%arg file"}},
                    "other": {"stringUnit": {"state": "translated", "value": "%arg files"}},
                }
            },
        }
    },
}


def opened(tmp_path: Path, content: str = CATALOG, tgt_lang: str = "fr") -> StringCatalog:
    path = tmp_path / "Localizable.xcstrings"
    path.write_bytes(content.encode())
    file = open_translatable(path)
    assert isinstance(file, StringCatalog)
    file.tgt_lang = tgt_lang
    return file


def catalog(source: dict[str, Any], **others: dict[str, Any]) -> str:
    """A catalogue with one entry."""
    entry = {"localizations": {"en": source, **others}}
    return json.dumps({"sourceLanguage": "en", "strings": {"key": entry}, "version": "1.0"})


def test_texts_have_their_states_and_comments(tmp_path: Path) -> None:
    file = opened(tmp_path)
    assert file.src_lang == "en"
    rows = [(unit.id, unit.source.plain, unit.state) for unit in units(file)]
    assert rows == [
        ("%lld permits of %@[one]", "%lld permit of %@", "new"),
        ("%lld permits of %@[other]", "%lld permits of %@", "new"),
        ("The permit is void.", "The permit is void.", "new"),
        ("title", 'Tap to "open"', "draft"),
        ("Yes", "Yes", "translated"),
    ]
    first = units(file)[0]
    assert first.notes == ("On the first screen",) and first.line == 7
    assert first.plural == "plural form one, for 0, 1"
    assert [code.markup for code in first.source.codes] == ["%lld", "%@"]


@pytest.mark.parametrize("content", [CATALOG, CATALOG.replace("\n", "\r\n"), "\ufeff" + CATALOG])
def test_what_is_not_filled_stays_to_the_byte(tmp_path: Path, content: str) -> None:
    assert untouched(opened(tmp_path, content)) == content.encode()


def test_a_translation_is_put_in_as_xcode_writes_it(tmp_path: Path) -> None:
    content = filled(opened(tmp_path), None, None, "L'autorisation est nulle.").decode()
    assert content == CATALOG.replace(
        """    "The permit is void." : {

    }""",
        """    "The permit is void." : {
      "localizations" : {
        "fr" : {
          "stringUnit" : {
            "state" : "translated",
            "value" : "L'autorisation est nulle."
          }
        }
      }
    }""",
    )
    # this is how Python would write the whole, and so how Xcode does but for empty objects
    again = json.dumps(json.loads(content), indent=2, separators=(",", " : "), ensure_ascii=False)
    assert again.replace("{}", "{\n\n    }") == content


def test_a_draft_is_replaced_and_says_whether_somebody_has_to_look_at_it(tmp_path: Path) -> None:
    drafted = filled(opened(tmp_path), *[None] * 3, "Touchez ici", origin="model").decode()
    assert drafted == CATALOG.replace('"Touchez"', '"Touchez ici"')
    whole = filled(opened(tmp_path), *[None] * 3, "Touchez").decode()
    assert whole == CATALOG.replace("needs_review", "translated")


def test_a_language_has_its_own_plural_forms(tmp_path: Path) -> None:
    file = opened(tmp_path, tgt_lang="pl")
    assert [unit.plural.split(",")[0] for unit in units(file)][:4] == [
        f"plural form {name}" for name in ("one", "few", "many", "other")
    ]
    assert [unit.source.plain for unit in units(file)][1] == "%lld permits of %@"
    data = json.loads(filled(file, "1", "2", "5", "x"))
    texts = data["strings"]["%lld permits of %@"]["localizations"]
    assert list(texts) == ["en", "de", "pl"]
    forms = texts["pl"]["variations"]["plural"]
    assert {name: form["stringUnit"]["value"] for name, form in forms.items()} == {
        "one": "1",
        "few": "2",
        "many": "5",
        "other": "x",
    }


def test_a_language_has_no_form_that_it_does_not_need(tmp_path: Path) -> None:
    file = opened(tmp_path, tgt_lang="ja")
    assert next(iter(units(file))).id == "%lld permits of %@[other]"
    assert [unit.id for unit in units(opened(tmp_path, tgt_lang="tlh"))][:2] == [
        "%lld permits of %@[one]",
        "%lld permits of %@[other]",
    ]


def test_a_language_that_has_its_own_form_of_an_entry_keeps_it(tmp_path: Path) -> None:
    file = opened(tmp_path, tgt_lang="de")
    first = units(file)[0]
    assert (first.source.plain, first.state) == ("%lld permits of %@", "translated")
    assert first.target is not None and first.target.plain == "%lld Genehmigungen"
    assert filled(file, "%lld Genehmigungen von %@").decode() == CATALOG.replace(
        "%lld Genehmigungen", "%lld Genehmigungen von %@"
    )


def test_substitutions_come_with_their_formats(tmp_path: Path) -> None:
    file = opened(tmp_path, catalog(SUBSTITUTED), "ru")
    assert [unit.source.plain for unit in units(file)] == [
        "%#@files@ in %@",
        "%arg file",
        *["%arg files"] * 3,
    ]
    assert [code.markup for code in units(file)[0].source.codes] == ["%#@files@", "%@"]
    assert [code.markup for code in units(file)[1].source.codes] == ["%arg"]
    new = json.loads(echoed(file))["strings"]["key"]["localizations"]["ru"]
    files = new["substitutions"]["files"]
    assert (files["argNum"], files["formatSpecifier"]) == (1, "lld")
    assert [*files["variations"]["plural"]] == ["few", "many", "one", "other"]


def test_devices_have_texts_of_their_own(tmp_path: Path) -> None:
    cases = {
        name: {"stringUnit": {"state": "translated", "value": f"Touch the {name}"}}
        for name in ("iphone", "other")
    }
    file = opened(tmp_path, catalog({"variations": {"device": cases}}))
    assert [unit.id for unit in units(file)] == ["key[device.iphone]", "key[device.other]"]
    again = opened(tmp_path, echoed(file).decode())
    assert [unit.state for unit in units(again)] == ["translated", "translated"]
    assert untouched(again) == echoed(file)


def test_plural_forms_of_a_device_and_two_substitutions_go_together(tmp_path: Path) -> None:
    def text(value: str) -> dict[str, Any]:
        return {"stringUnit": {"state": "translated", "value": value}}

    def plural(**forms: str) -> dict[str, Any]:
        return {"variations": {"plural": {name: text(value) for name, value in forms.items()}}}

    files = SUBSTITUTED["substitutions"]["files"]
    folders = {"argNum": 2, "formatSpecifier": "lld", **plural(one="a folder", other="folders")}
    both = {**text("%#@files@ in %#@folders@"), "substitutions": {"files": files, "f": folders}}
    devices = {"iphone": plural(one="Tap once", other="Tap %lld times"), "other": text("Click")}
    for source in (both, {"variations": {"device": devices}}):
        file = opened(tmp_path, catalog(source), "pl")
        again = opened(tmp_path, echoed(file).decode(), "pl")
        assert len(units(again)) == len(units(file)) == (9 if source is both else 5)
        assert {unit.state for unit in units(again)} == {"translated"}
        assert [unit.target for unit in units(again)] == [unit.source for unit in units(file)]


def test_finished_texts_are_a_memory(tmp_path: Path) -> None:
    path = opened(tmp_path).path
    pairs = units_of(path, file_source(path), "en", "fr", Report())
    assert pairs is not None
    assert [(segment.src, segment.tgt) for _, segment in pairs] == [("Yes", "Oui")]


def test_a_region_is_found_and_written_as_apple_does(tmp_path: Path) -> None:
    file = opened(tmp_path, CATALOG.replace('"fr"', '"fr-CA"'))
    assert [unit.state for unit in units(file)][-2:] == ["draft", "translated"]
    file = opened(tmp_path, tgt_lang="zh-hans")
    assert '"zh-Hans" : {' in filled(file, None, None, "许可证无效。").decode()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "the file ends too early"),
        ("[]", 'line 1: no String Catalog: it has no object "strings"'),
        ('{"strings": {\n"a": 1}}', "line 1: 'a' is no object"),
        (
            '{"strings": {\n"a b": {"localizations": {"fr": {"stringUnit": "x"}}}}}',
            "a stringUnit of 'a b' is no object",
        ),
        ('{"strings": {\n"a": {"localizations": {"en": "x"}}}}', "localizations of 'a' are no obj"),
        ('{"strings": {\n"a": {"localizations": []}}}', "line 2: the localizations of 'a'"),
        ('{"strings": ' + "[" * 300 + "]" * 300 + "}", "more than 100 values"),
        (catalog({"stringUnit": {"value": 1}}), "a value of 'key' is no text"),
    ],
)
def test_what_is_broken_is_one_error_with_its_line(tmp_path: Path, content: str, told: str) -> None:
    with pytest.raises(FormatError, match=told):
        units(opened(tmp_path, content))


def test_the_target_language_must_be_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has texts of all languages: name the target"):
        units(opened(tmp_path, tgt_lang=""))


def test_a_number_of_any_length_is_read(tmp_path: Path) -> None:
    content = CATALOG.replace('"version" : "1.0"', f'"version" : {"1" * 9_000}')
    assert untouched(opened(tmp_path, content)) == content.encode()
