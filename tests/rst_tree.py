"""Files of reStructuredText in tests: the same with other words, and what docutils reads."""

from __future__ import annotations

import io
import re
from importlib import import_module
from typing import Any

from file_units import units, written
from required import absent

from tmnmt.codes.record import Text, join_parts
from tmnmt.files.rst import RstFile
from tmnmt.files.unit import Filling, Unit


def changed(unit: Unit) -> Text:
    """A text whose words are others, in the same order."""
    return join_parts(
        re.sub(r"[^\W\d_]+", lambda word: f"{word[0]}é", part) if isinstance(part, str) else part
        for part in unit.source.parts()
    )


def in_other_words(file: RstFile) -> bytes:
    return written(file, [Filling(changed(unit), "model") for unit in units(file)])


def tree(content: bytes | str) -> tuple[list[tuple[str, ...]], int]:
    """The elements that docutils finds, with the text of those that are no prose, and how many
    warnings and errors it has."""
    try:
        core, nodes = import_module("docutils.core"), import_module("docutils.nodes")
    except ImportError:
        absent("docutils", "docutils is not installed")
    warnings = io.StringIO()
    settings = {"warning_stream": warnings, "halt_level": 5, "syntax_highlight": "none"}
    text = content if isinstance(content, str) else content.decode()
    document: Any = core.publish_doctree(text, settings_overrides=settings)
    verbatim = (nodes.literal_block, nodes.literal, nodes.comment, nodes.doctest_block)

    def walk(node: Any) -> list[tuple[str, ...]]:
        found = list[tuple[str, ...]]()
        for child in node.children:
            is_alias = isinstance(child, nodes.target) and "refuri" not in child
            if isinstance(child, verbatim):
                found.append((child.tagname, child.astext()))
            elif not isinstance(child, nodes.Text | nodes.system_message) and not is_alias:
                found.append((child.tagname, child.get("refuri", ""), child.get("uri", "")))
                found += walk(child)
        return found

    return walk(document), len(re.findall(r"\((?:WARNING|ERROR|SEVERE)/", warnings.getvalue()))
