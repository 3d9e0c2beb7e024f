"""Memories and plain text in and out: TMX, TSV, pairs of plain files, JRC-Acquis alignments; each
also packed.

reader = read_memory(path, "en", "fr")
for segment in reader: ...
print(reader.report)
"""

from __future__ import annotations

from tmnmt.formats.atomic import WriteReport
from tmnmt.formats.reader import Reader, read_memories, read_memory
from tmnmt.formats.report import Report
from tmnmt.formats.tmx_writer import write_tmx
from tmnmt.formats.tsv import Columns, parse_columns, write_tsv
from tmnmt.formats.write import check_writable, write_memory

__all__ = [
    "Columns",
    "Reader",
    "Report",
    "WriteReport",
    "check_writable",
    "parse_columns",
    "read_memories",
    "read_memory",
    "write_memory",
    "write_tmx",
    "write_tsv",
]
