"""Writes the font of the page's chips, tmnmt/serve/static/chips.ttf: the signs that stand for tags
in the field are as wide as a chip, and nothing is drawn of them. `chips.js` has the same blocks.

    .venv/bin/python scripts/chip_font.py
"""

from __future__ import annotations

import struct
from pathlib import Path

BLOCKS = ((0x1FB00, 0x1FB92), (0x1FB94, 0x1FBCA))
UNITS, WIDTH, ASCENT, DESCENT = 1000, 1700, 900, -250  # of an em; as those of usual fonts
TO = Path(__file__).parents[1] / "tmnmt" / "serve" / "static" / "chips.ttf"
_EPOCH = 3_000_000_000  # seconds since 1904; the same at every run
_MAGIC, _SUM = 0x5F0F3CF5, 0xB1B0AFBA


def font() -> bytes:
    """The font: one empty glyph for all signs, and one for what is missing."""
    tables = {
        b"OS/2": _os2(),
        b"cmap": _cmap(),
        b"glyf": b"\0",
        b"head": struct.pack(
            ">IIIIHHQQhhhhHHhhh",
            *(0x10000, 0x10000, 0, _MAGIC, 3, UNITS, _EPOCH, _EPOCH, 0, 0, 0, 0, 0, 8, 2, 0, 0),
        ),
        b"hhea": struct.pack(
            ">IhhhHhhhhhhhhhhhH", 0x10000, ASCENT, DESCENT, 0, WIDTH, *(0,) * 11, 2
        ),
        b"hmtx": struct.pack(">HhHh", WIDTH, 0, WIDTH, 0),
        b"loca": b"\0" * 6,
        b"maxp": struct.pack(">IHHHHHHHHHHHHHH", 0x10000, 2, *(0,) * 4, 2, *(0,) * 8),
        b"name": _name(),
        b"post": struct.pack(">IIhhIIIII", 0x30000, 0, -100, 50, 1, 0, 0, 0, 0),
    }
    return _packed(tables)


def _os2() -> bytes:
    return struct.pack(
        ">HhHHHhhhhhhhhhhh10sIIII4sHHHhhhHHIIhhHHH",
        *(4, WIDTH, 400, 5, 0),
        *(650, 600, 0, 75, 650, 600, 0, 350, 50, 300, 0),
        *(bytes(10), 0, 0, 0, 0, b"TMNM", 64, 0xFFFF, 0xFFFF),
        *(ASCENT, DESCENT, 0, ASCENT, -DESCENT, 0, 0, 500, 700, 0, 0x20, 0),
    )


def _cmap() -> bytes:
    groups = b"".join(struct.pack(">III", *block, 1) for block in BLOCKS)
    # format 13 maps a whole range to one glyph; older ones would number them
    table = struct.pack(">HHIII", 13, 0, 16 + len(groups), 0, len(BLOCKS)) + groups
    return struct.pack(">HHHHI", 0, 1, 3, 10, 12) + table


def _name() -> bytes:
    texts = {1: "tmnmt chips", 2: "Regular", 3: "tmnmt chips 1", 4: "tmnmt chips", 6: "tmnmt-chips"}
    records, data = b"", b""
    for number, text in texts.items():
        encoded = text.encode("utf-16-be")
        records += struct.pack(">HHHHHH", 3, 1, 0x409, number, len(encoded), len(data))
        data += encoded
    return struct.pack(">HHH", 0, len(texts), 6 + len(records)) + records + data


def _packed(tables: dict[bytes, bytes]) -> bytes:
    power = 1 << (len(tables).bit_length() - 1)
    head = struct.pack(
        ">IHHHH",
        0x10000,
        len(tables),
        16 * power,
        power.bit_length() - 1,
        16 * (len(tables) - power),
    )
    place, entries, data = len(head) + 16 * len(tables), b"", b""
    for name, table in sorted(tables.items()):
        padded = table + b"\0" * (-len(table) % 4)
        entries += name + struct.pack(">III", _checksum(padded), place + len(data), len(table))
        data += padded
    whole = head + entries + data
    at = whole.index(struct.pack(">I", _MAGIC)) - 4  # where `head` has the sum of all
    return whole[:at] + struct.pack(">I", (_SUM - _checksum(whole)) % (1 << 32)) + whole[at + 4 :]


def _checksum(data: bytes) -> int:
    return sum(struct.unpack(f">{len(data) // 4}I", data)) % (1 << 32)


if __name__ == "__main__":
    TO.write_bytes(font())
