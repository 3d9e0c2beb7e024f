"""DOCX, XLSX and PPTX, by Okapi's filters."""

from __future__ import annotations

from pathlib import Path

from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.office_archive import check_archive
from tmnmt.files.okapi_file import OkapiFile

WITH_MACROS = frozenset({".docm", ".xlsm", ".pptm", ".dotm", ".xltm", ".potm"})


class OfficeFile(OkapiFile):
    """A file of Word, Excel or PowerPoint, 2007 or later."""

    kind = "office"
    title = FILE_KINDS["office"].title

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By the name; what else is in it is told where it is opened."""
        return FILE_KINDS[cls.kind].has_name(path) or path.suffix.lower() in WITH_MACROS

    @staticmethod
    def _check(path: Path) -> None:
        check_archive(path)
