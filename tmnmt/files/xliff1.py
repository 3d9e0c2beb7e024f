"""XLIFF 1.0 to 1.2, and what CAT tools make of it: .sdlxliff, .mqxliff and .mxliff, whose own
elements and attributes stay as they are.

A <trans-unit> is one unit, or one for every <mrk mtype="seg"> of its <seg-source>. A new target is
marked by its origin (`tmnmt.files.states`).

Comments are notes that annotate the target, and what Trados and memoQ have of their own
(`tmnmt.files.tool_comments`), which is read and not written.

Matches become <alt-trans> with match-quality and origin. A unit that was approved is so no more."""

from __future__ import annotations

from pathlib import Path

from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.tool_comments import definitions_of
from tmnmt.files.xliff import (
    UnitContext,
    UnitElement,
    Xliff,
    same_language,
    version_of,
    with_attributes,
)
from tmnmt.files.xliff1_units import trans_unit
from tmnmt.files.xliff_codes import XLIFF1
from tmnmt.files.xliff_parts import Start, Whole


class Xliff1(Xliff):
    """A file of XLIFF 1.0, 1.1 or 1.2."""

    kind = "xliff1"
    title = FILE_KINDS["xliff1"].title
    is_memory = is_bilingual = True
    form, major, unit_name = XLIFF1, "1", "trans-unit"
    takes_comments = True

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._definitions = definitions_of(path)

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By the root element; what only its name says to be XLIFF is opened too, and says what is
        wrong with it."""
        version = version_of(head)
        return version is not None or FILE_KINDS[cls.kind].has_name(path)

    def _take_languages(self, start: Start) -> None:
        if start.name == "file":
            self.src_lang = start.attributes.get("source-language", "")
            self.tgt_lang = start.attributes.get("target-language", "")
            if not self.src_lang:
                raise self._error(start.line, "a <file> without source-language")

    def _with_target_language(self, start: Start) -> bytes:
        if start.name != "file" or not self.tgt_lang or start.attributes.get("target-language"):
            return start.data
        return with_attributes(start.data, {"target-language": self.tgt_lang})

    def _language_problem(self, start: Start) -> str:
        source = start.attributes.get("source-language", "")
        target = start.attributes.get("target-language", "")
        if not source:
            raise self._error(start.line, "a <file> without source-language")
        first_source, first_target = self._languages
        if same_language(source, first_source) and same_language(target, first_target):
            return ""
        return (
            f"it is from {source} to {target or 'none'}, "
            f"the first <file> from {first_source} to {first_target or 'none'}"
        )

    def _element(self, whole: Whole, data: bytes, context: UnitContext) -> UnitElement:
        return trans_unit(whole.node, data, context, self.tgt_lang, self._definitions)
