"""What is said of the kinds of files that are translated is what the program reads."""

from __future__ import annotations

import re

import pytest
from places import ROOT

from tmnmt.file_kinds import FILE_KINDS, titles
from tmnmt.files.opening import KINDS


@pytest.mark.parametrize("name", FILE_KINDS)
def test_every_kind_has_the_class_that_says_so(name: str) -> None:
    kind = KINDS[name]
    assert kind.kind == name and kind.title == FILE_KINDS[name].title
    assert kind.is_bilingual == FILE_KINDS[name].is_bilingual


@pytest.mark.parametrize("name", FILE_KINDS)
def test_the_page_of_files_names_every_suffix(name: str) -> None:
    page = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    suffixes = set(re.findall(r"`(\.\w+)`", "\n".join(rows)))
    assert not {*FILE_KINDS[name].suffixes} - suffixes


def test_the_page_of_the_server_names_every_kind() -> None:
    page = (ROOT / "tmnmt" / "serve" / "static" / "index.html").read_text(encoding="utf-8")
    assert f"<small>{titles()}, or text</small>" in page
