"""What people have said of a segment in Trados and memoQ, as their files of XLIFF 1.2 have it.

    Trados   <doc-info><cmt-defs><cmt-def id="ID"><Comments>
                 <Comment severity="Low" user="..." date="..." version="1.0">text</Comment>
             in front of the first <file>, and <mrk mtype="x-sdl-comment" sdl:cid="ID"> around the
             words of a source or a target that it is about
    memoQ    <mq:comments><mq:comment creatoruser="..." time="..." deleted="false">text</mq:comment>
             in the <trans-unit>

Sources: what other programs read and write (translate5, HeartSome, plug-ins of Trados), since
neither describes its format. Nobody's program shows how Phrase keeps comments."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.parsers import expat

from tmnmt.files.unit import Comment
from tmnmt.files.xliff_codes import plain_of, tag
from tmnmt.files.xliff_parts import MAX_BYTES, Bytes, Node, Start, parts

_log = logging.getLogger(__name__)
_MEMOQ = "MQXliff"  # its namespace
_MARK = re.compile(rb"""<[^\s<>/]*?mrk\s(?:[^<>"']|"[^<"]*"|'[^']*')*>""")
Definitions = Mapping[str, tuple[Comment, ...]]  # comments of Trados by their id


class _Reader:
    """Takes the comments from what expat tells."""

    def __init__(self) -> None:
        self.comments = dict[str, tuple[Comment, ...]]()
        self._id = ""
        self._comment: dict[str, str] | None = None
        self._text = list[str]()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        if local == "cmt-def":
            self._id = attributes.get("id", "")
        elif local == "Comment" and self._id:
            self._comment, self._text = attributes, []

    def text(self, text: str) -> None:
        if self._comment is not None:
            self._text.append(text)

    def end(self, name: str) -> None:
        local = name.rpartition(":")[2]
        if local == "cmt-def":
            self._id = ""
        elif local == "Comment" and self._comment is not None:
            text = "".join(self._text).strip()
            author, time = (self._comment.get(key, "") for key in ("user", "date"))
            comments = self.comments.get(self._id, ())
            self.comments[self._id] = (*comments, Comment(text, author, time)) if text else comments
            self._comment = None


def definitions_of(path: Path) -> Definitions:
    """The comments that Trados defines in front of the first <file>. Where more than 10 MB stand
    there, they are not read, and a warning says so.

    path: the file, an XLIFF 1.

    Raises FormatError for what is no XML."""
    head = bytearray(b"<head>")
    for part in parts(path, "trans-unit"):
        if isinstance(part, Start) and part.name == "xliff":
            head = bytearray(b"<head>")
        elif not isinstance(part, Bytes):
            break
        elif len(head) + len(part.data) > MAX_BYTES:
            _log.warning("%s: more than 10 MB in front of <file>: no comments are read", path)
            return {}
        else:
            head += part.data
    if b"cmt-def" not in head:
        return {}
    reader, parser = _Reader(), expat.ParserCreate("utf-8")
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.Parse(bytes(head + b"</head>"), True)
    return reader.comments


def said_comments(
    node: Node, data: bytes, content: bytes, definitions: Definitions
) -> Iterator[Comment]:
    """The comments on a segment.

    node: its <trans-unit>.
    data: the bytes of that.
    content: what stands in the source and the target of the segment.
    definitions: the comments that the file defines."""
    if definitions:
        yield from _of_trados(content, definitions)
    for comments in node.find_children(f"{_MEMOQ} comments"):
        for comment in comments.find_children(f"{_MEMOQ} comment"):
            values = comment.attributes
            text = plain_of(data[comment.inside : comment.inside_end]).strip()
            if text and values.get("deleted", "false").lower() != "true":
                yield Comment(text, values.get("creatoruser", ""), values.get("time", ""))


def _of_trados(content: bytes, definitions: Definitions) -> Iterator[Comment]:
    ids = dict[str, None]()  # several marks may name one comment
    for mark in _MARK.findall(content):
        _, attributes = tag(mark.decode())
        if attributes.get("mtype") == "x-sdl-comment":
            values = {name.rpartition(":")[2]: value for name, value in attributes.items()}
            ids[values.get("cid", "")] = None
    for id in ids:
        yield from definitions.get(id, ())
