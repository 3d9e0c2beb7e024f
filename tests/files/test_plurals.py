"""Plural categories are those of CLDR."""

from __future__ import annotations

import pytest
from babel import Locale

from tmnmt.files.plurals import (
    _CATEGORIES_BY_LANGUAGE,
    CATEGORIES,
    _numbers,
    categories_of_language,
    description_of,
    is_plural,
    needed_categories,
)
from tmnmt.formats.languages import locale_name


@pytest.mark.parametrize("code", _CATEGORIES_BY_LANGUAGE)
def test_whole_numbers_have_the_categories_that_babel_gives_them(code: str) -> None:
    rule = Locale.parse(locale_name(code)).plural_form
    theirs = [rule(number) for number in range(201)]
    categories = categories_of_language(code)
    assert categories is not None
    ours = {
        number: categories.names[form]
        for form, numbers in _numbers(categories.formula).items()
        for number in numbers
    }
    assert [ours[number] for number in range(201)] == theirs
    used = {*theirs, "other"}
    assert categories.names == tuple(name for name in CATEGORIES if name in used)


def test_a_message_needs_what_it_has_and_what_its_language_needs() -> None:
    assert needed_categories(["one", "other"], "ru") == ["one", "few", "many", "other"]
    assert needed_categories(["zero", "one", "other"], "ja") == ["zero", "one", "other"]
    assert needed_categories(["one", "other"], "tlh") == ["one", "other"]
    assert is_plural(["one", "other"]) and not is_plural(["one", "title", "other"])
    assert not is_plural(["one", "two"])


def test_a_category_is_told_with_its_numbers() -> None:
    assert description_of("few", "pl-pl") == "plural form few, for 2, 3, 4, 22, 23, …"
    assert description_of("other", "pl") == "plural form other"
    assert description_of("one", "tlh") == "plural form one"
