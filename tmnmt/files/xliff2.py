"""XLIFF 2.0 to 2.2: every <segment> of a <unit> is a unit.

A new target is marked by its origin (`tmnmt.files.states`).

Comments are notes of the unit that apply to the target. Who wrote them and when stands in
attributes of tmnmt, since the format has none for that.

Matches go into the matches module of the unit, with matchQuality, similarity and origin, and refer
to their segment by its id; one that has none gets one then."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tmnmt.codes.record import Text
from tmnmt.errors import FormatError
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.states import STATES
from tmnmt.files.unit import Comment, Filling, State, Unit, confirmation_of
from tmnmt.files.xliff import (
    Edit,
    UnitContext,
    UnitElement,
    Xliff,
    blanks_before,
    copied,
    has_text,
    locked,
    name_of,
    opened_tag,
    percent,
    prefix_of,
    quality,
    source_problem,
    target_attributes,
    with_attributes,
)
from tmnmt.files.xliff_codes import XLIFF2, candidate_of, content_of, new_matches, plain_of, text_of
from tmnmt.files.xliff_parts import Node, Start, Whole
from tmnmt.formats.xml_text import escaped, escaped_attribute
from tmnmt.segments import Match

_MATCHES = "urn:oasis:names:tc:xliff:matches:2.0"
_APPROVED_STATES = frozenset({"reviewed", "final"})
_NAMESPACE = "urn:tmnmt"  # of the author and the time of a comment
_ID = re.compile(rb"""\sid\s*=\s*["']([^"']*)["']""")


class Xliff2(Xliff):
    """A file of XLIFF 2.0, 2.1 or 2.2."""

    kind = "xliff2"
    title = FILE_KINDS["xliff2"].title
    is_memory = is_bilingual = True
    form, major, unit_name = XLIFF2, "2", "unit"
    takes_comments = True

    def _take_languages(self, start: Start) -> None:
        if start.name == "xliff":
            self._namespace = start.namespace
            self.src_lang = start.attributes.get("srcLang", "")
            self.tgt_lang = start.attributes.get("trgLang", "")
            if not self.src_lang:
                raise self._error(start.line, "an <xliff> without srcLang")

    def _with_target_language(self, start: Start) -> bytes:
        if start.name != "xliff" or start.attributes.get("trgLang"):
            return start.data
        if not self.tgt_lang:
            raise FormatError(f"{self._path}: no target language, and a target needs one: trgLang")
        return with_attributes(start.data, {"trgLang": self.tgt_lang})

    def _language_problem(self, start: Start) -> str:
        return ""

    def _element(self, whole: Whole, data: bytes, context: UnitContext) -> UnitElement:
        return _Unit(whole.node, data, context, self.tgt_lang, self._namespace)


class _Unit(UnitElement):
    def __init__(
        self, node: Node, data: bytes, context: UnitContext, tgt_lang: str, namespace: str
    ) -> None:
        self._node, self._data, self._tgt_lang = node, data, tgt_lang
        self._prefix = prefix_of(data[: node.inside])
        self._context = context.inside(node.attributes)
        notes, comments = list[str](), list[Comment]()
        for parent in node.find_children("notes"):
            for note in parent.find_children("note"):
                content, values = plain_of(data[note.inside : note.inside_end]), note.attributes
                if content.strip() and values.get("appliesTo") == "target":
                    about = (values.get(f"{_NAMESPACE} {name}", "") for name in ("by", "time"))
                    comments.append(Comment(content, *about))
                elif content.strip():
                    notes.append(content)
        self._notes, self._comments = tuple(notes), tuple(comments)
        self._segments = list(node.find_children("segment"))
        matches = node.first(f"{_MATCHES} matches")
        # an empty one is written anew
        self._matches = matches
        in_use = matches is not None and not matches.empty
        self._matches_prefix = (
            prefix_of(data[matches.start : matches.inside]) if matches and in_use else "mtc:"
        )
        # where <matches> has no prefix, those without one are of its namespace
        self._declared = f' xmlns="{namespace}"' if self._matches_prefix == self._prefix else ""
        self.units = tuple(map(self._unit, self._segments))

    # --- reading

    def _unit(self, segment: Node) -> Unit:
        source, target = segment.first("source"), segment.first("target")
        if source is None:
            problem = "a <segment> without <source>"
        else:
            problem = source_problem(self._data, source)
        context = self._context if source is None else self._context.inside(source.attributes)
        text = self._text(source, context.preserves_space) or Text("")
        translation = self._text(target, context.preserves_space)
        state = _state(segment, text, translation)
        name, segment_id = self._node.attributes.get("id", ""), segment.attributes.get("id", "")
        unit = Unit(
            text,
            translation if state != "new" else None,
            state,
            f"{name}:{segment_id}" if segment_id else name,
            self._node.attributes.get("name", ""),
            self._notes,
            (source or segment).line,
            confirmation=confirmation_of(
                state, segment.attributes.get("state", "") in _APPROVED_STATES
            ),
            comments=self._comments,
        )
        return locked(unit, self._context, problem)

    def _text(self, node: Node | None, preserves_space: bool) -> Text | None:
        if node is None:
            return None
        content = self._data[node.inside : node.inside_end]
        return text_of(content, self._prefix, XLIFF2, preserves_space=preserves_space)

    # --- writing

    def edits(self, fillings: Sequence[Filling | None]) -> list[Edit]:
        edits, matches = self._with_comments(fillings), list[bytes]()
        ids = {id_.decode() for id_ in _ID.findall(self._data)}
        for segment, unit, filling in zip(self._segments, self.units, fillings, strict=True):
            source = segment.first("source")
            if filling is None or source is None:
                continue
            values = dict[str, str]()
            if filling.has_target:
                values = {"state": "", "subState": ""} | STATES[filling.origin].xliff2
                content = content_of(filling.target, XLIFF2)
                edits.append(self._with_target(segment, source, content))
            if filling.matches:
                name = segment.attributes.get("id") or _unused(ids)
                values["id"] = name
                ids.add(name)
                matches += [self._candidate(unit, match, name) for match in filling.matches]
            start = self._data[segment.start : segment.inside]
            edits.append(Edit(segment.start, segment.inside, with_attributes(start, values)))
        new = new_matches(matches, self._data)
        return edits if not new else [*edits, self._with_matches(b"".join(new))]

    def _with_comments(self, fillings: Sequence[Filling | None]) -> list[Edit]:
        """The new comments, behind the notes that there are."""
        prefix, new = self._prefix, b""
        blanks = blanks_before(self._data, self._segments[0].start) if self._segments else b""
        for comment in (comment for filling in fillings if filling for comment in filling.comments):
            values = {"by": comment.author, "time": comment.time}
            about = "".join(
                f' tmnmt:{name}="{escaped_attribute(value)}"'
                for name, value in values.items()
                if value
            )
            declared = f' xmlns:tmnmt="{_NAMESPACE}"' if about else ""
            start = f'<{prefix}note appliesTo="target"{declared}{about}>'
            new += blanks + f"{start}{escaped(comment.text)}</{prefix}note>".encode()
        if not new:
            return []
        notes = self._node.first("notes")
        if notes is not None and not notes.empty:
            return [Edit(notes.inside_end, notes.inside_end, new)]
        whole = f"<{prefix}notes>".encode() + new + blanks + f"</{prefix}notes>".encode()
        if notes is not None:
            return [Edit(notes.start, notes.end, whole)]
        inside = ("originalData", "segment", "ignorable")  # what may stand behind it
        first = next(child for child in self._node.children if child.name in inside)
        return [Edit(first.start, first.start, whole + blanks)]

    def _with_target(self, segment: Node, source: Node, content: str) -> Edit:
        target = segment.first("target")
        if target is not None:
            start = opened_tag(self._data[target.start : target.inside])
            end = b"</" + name_of(start) + b">"
            return Edit(target.start, target.end, start + content.encode() + end)
        name = f"{self._prefix}target"
        space = target_attributes(source, self._tgt_lang)
        new = f"<{name}{space}>{content}</{name}>".encode()
        return Edit(source.end, source.end, blanks_before(self._data, source.start) + new)

    def _with_matches(self, new: bytes) -> Edit:
        matches = self._matches
        if matches is not None and not matches.empty:
            return Edit(matches.inside_end, matches.inside_end, new)
        whole = f'<{self._matches_prefix}matches xmlns:mtc="{_MATCHES}">'.encode() + new
        whole += f"</{self._matches_prefix}matches>".encode()
        if matches is not None:
            return Edit(matches.start, matches.end, whole)
        blanks = blanks_before(self._data, self._segments[0].start)
        return Edit(self._node.inside, self._node.inside, blanks + whole)

    def _candidate(self, unit: Unit, match: Match, name: str) -> bytes:
        prefix, segment = self._prefix, match.segment
        values = {
            "ref": f"#{name}",
            "type": "icm" if quality(match) > 100 else "tm",  # in the same context
            "matchQuality": str(min(quality(match), 100)),  # no more is allowed
            "similarity": str(percent(match)),
            "origin": segment.origin,
        }
        attributes = "".join(
            f' {key}="{escaped_attribute(value)}"' for key, value in values.items() if value
        )
        texts = (Text(segment.src, segment.src_codes), Text(segment.tgt, segment.tgt_codes))
        source, target = (candidate_of(text, unit.source.codes, prefix, XLIFF2) for text in texts)
        return (
            f"<{self._matches_prefix}match{attributes}>"
            f"<{prefix}source{self._declared}>{source}</{prefix}source>"
            f"<{prefix}target{self._declared}>{target}</{prefix}target></{self._matches_prefix}match>"
        ).encode()


def _state(segment: Node, source: Text, target: Text | None) -> State:
    if target is None or not has_text(target, source):
        return "new"
    state = segment.attributes.get("state", "")
    if state == "initial":
        return "draft"
    return "draft" if copied(source, target) and not state else "translated"


def _unused(ids: set[str]) -> str:
    number = 1
    while f"s{number}" in ids:
        number += 1
    return f"s{number}"
