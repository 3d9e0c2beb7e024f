"""Codes of languages as tools write them, and what is near enough to serve them."""

from __future__ import annotations

import pytest

from tmnmt.formats.iso639 import THREE
from tmnmt.serve.http_error import Refused
from tmnmt.serve.languages import language, nearest


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("en", "en"),
        ("EN", "en"),
        ("eng", "en"),
        ("ger", "de"),
        ("deu", "de"),
        ("en_US", "en-US"),
        ("EN-us", "en-US"),
        ("de_DE.UTF-8", "de-DE"),
        ("sr@latin", "sr"),
        ("zh-hant-tw", "zh-Hant-TW"),
        ("zh_Hans", "zh-Hans"),
        ("es-419", "es-419"),
        ("oci_aran", "oc-Aran"),
        ("cat_valencia", "ca"),
        ("cmn", "zh"),
        ("pt_BR", "pt-BR"),
        ("crh", "crh"),
        (" fr ", "fr"),
    ],
)
def test_codes_of_all_kinds_are_one(given: str, code: str) -> None:
    assert language(given).code == code


@pytest.mark.parametrize(
    "given", ["", "e n", "en/fr", "../etc", "en-", "1", "a" * 65, "é", "en\n\nfr", "-"]
)
def test_what_is_no_code_is_refused(given: str) -> None:
    with pytest.raises(Refused):
        language(given)


def test_the_table_has_every_code_once() -> None:
    assert len(THREE) == len(set(THREE.values())) == 183
    assert all(language(three).code == two for two, three in THREE.items())


def test_the_nearest_region_serves() -> None:
    served = [((language("en"), language(code)), code) for code in ("pt-PT", "pt", "pt-BR", "fr")]

    def found(code: str) -> list[str]:
        return [*nearest((language("en-GB"), language(code)), served)]

    assert found("pt-br") == ["pt-BR", "pt", "pt-PT"]
    assert found("por") == ["pt", "pt-PT", "pt-BR"]
    assert found("fr-CA") == ["fr"]
    assert found("de") == []


def test_another_script_does_not_serve() -> None:
    served = [((language("en"), language("zh-Hans")), "zh-Hans")]
    assert not nearest((language("en"), language("zh-Hant")), served)
    assert nearest((language("en"), language("zh")), served)
