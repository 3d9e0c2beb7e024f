"""The <trans-unit> of XLIFF 1: its units, and the bytes that change when they are filled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tmnmt.codes.record import Code, Text
from tmnmt.codes.tags import html_tags, phrase_tags
from tmnmt.files.states import STATES, state_of_all
from tmnmt.files.tool_comments import Definitions, said_comments
from tmnmt.files.unit import Comment, Filling, State, Unit, confirmation_of
from tmnmt.files.xliff import (
    Edit,
    UnitContext,
    UnitElement,
    blanks_before,
    copied,
    has_text,
    locked,
    name_of,
    opened_tag,
    prefix_of,
    quality,
    source_problem,
    target_attributes,
    with_attributes,
)
from tmnmt.files.xliff1_tools import (
    PHRASE,
    TRADOS,
    Tool,
    is_approved,
    is_locked,
    said_of,
    said_state,
    tool_of,
)
from tmnmt.files.xliff_codes import (
    XLIFF1,
    candidate_of,
    content_of,
    new_matches,
    plain_of,
    tag,
    text_of,
)
from tmnmt.files.xliff_parts import Node
from tmnmt.formats.xml_text import escaped, escaped_attribute
from tmnmt.segments import Match

_UNTRANSLATED = frozenset({"new", "needs-translation"})
_DRAFT_QUALIFIERS = frozenset(
    {"fuzzy-match", "leveraged-mt", "leveraged-tm", "mt-suggestion", "tm-suggestion"}
    | {"rejected-grammar", "rejected-inaccurate", "rejected-length", "rejected-spelling"}
)
_APPROVED_STATES = frozenset({"final", "signed-off"})
_FINAL_STATES = _APPROVED_STATES | {"translated"}

_NUMBER = re.compile("[0-9]{1,9}")
_TAGS = re.compile(
    rb"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<[^<>"']++(?:"[^"]*"[^<>"']*|'[^']*'[^<>"']*)*+>""",
    re.DOTALL,
)


def trans_unit(
    node: Node, data: bytes, context: UnitContext, tgt_lang: str, definitions: Definitions
) -> UnitElement:
    """The units of a <trans-unit>.

    node: the <trans-unit>.
    data: its bytes.
    context: what holds where it stands.
    tgt_lang: the code of the target language, which is written where the source says its own.
    definitions: the comments that the file defines in front of it."""
    context = context.inside(node.attributes)
    source, seg_source = node.first("source"), node.first("seg-source")
    if source is None:
        return _NoSource(node, context)
    preserves_space = context.inside(source.attributes).preserves_space
    element = _TransUnit(node, data, tgt_lang, source, preserves_space, definitions)
    if seg_source is not None:
        target = node.first("target")
        mrks = _segments(data, seg_source)
        in_target = _segments(data, target) if target is not None else []
        if mrks and (in_target or element.untranslated):
            return _Segmented(element, context, seg_source, mrks, in_target)
    return element.as_one(context)


class _NoSource(UnitElement):
    def __init__(self, node: Node, context: UnitContext) -> None:
        unit = Unit(Text(""), id=node.attributes.get("id", ""), line=node.line)
        self.units = (locked(unit, context, "a <trans-unit> without <source>"),)


@dataclass(slots=True)
class _Mrk:
    """A <mrk mtype="seg">: where its tags are."""

    mid: str
    start: int
    inside: int
    inside_end: int = 0
    end: int = 0


class _TransUnit(UnitElement):
    """One that is one unit; `_Segmented` asks it for what both have."""

    def __init__(
        self,
        node: Node,
        data: bytes,
        tgt_lang: str,
        source: Node,
        preserves_space: bool,
        definitions: Definitions,
    ) -> None:
        self.node, self.data, self.tgt_lang, self.source = node, data, tgt_lang, source
        self._preserves_space, self._definitions = preserves_space, definitions
        self.prefix = prefix_of(data[: node.inside])
        self.target = node.first("target")

    # --- reading

    def as_one(self, context: UnitContext) -> UnitElement:
        """With all of its source as one unit."""
        target = self.text(self.target) if self.target is not None else None
        problem = source_problem(self.data, self.source)
        content = self.content(self.source) + self.content(self.target)
        source = self.text(self.source)
        unit = self.unit(source, target, context, problem, self.source.line, content)
        self.units = (unit,)
        return self

    @property
    def untranslated(self) -> bool:
        """Whether there is no target, or no text in it."""
        target = self.target
        return target is None or not plain_of(self.data[target.inside : target.inside_end]).strip()

    def content(self, node: Node | _Mrk | None) -> bytes:
        """What stands between its tags, as it is written."""
        return self.data[node.inside : node.inside_end] if node is not None else b""

    def text(self, node: Node | _Mrk) -> Text:
        """What stands between its tags."""
        tags = phrase_tags if self.tool is PHRASE else html_tags
        return text_of(self.content(node), self.prefix, XLIFF1, tags, self._preserves_space)

    def unit(
        self,
        source: Text,
        target: Text | None,
        context: UnitContext,
        problem: str,
        line: int,
        content: bytes,
        mid: str = "",
    ) -> Unit:
        """`content`: of its source and its target; `mid`: of a segment."""
        state = self._state(source, target, mid)
        attributes = self.node.attributes
        name = attributes.get("id", "")
        notes, comments = list[str](), list[Comment]()
        for note in self.node.find_children("note"):
            note_text = plain_of(self.content(note))
            if note_text.strip() and note.attributes.get("annotates") == "target":
                comments.append(Comment(note_text, note.attributes.get("from", "")))
            elif note_text.strip():
                notes.append(note_text)
        comments += said_comments(self.node, self.data, content, self._definitions)
        unit = Unit(
            source,
            target if state != "new" else None,
            "locked" if is_locked(self.node, mid) else state,
            f"{name}:{mid}" if mid else name,
            attributes.get("resname", ""),
            tuple(notes),
            line,
            confirmation=confirmation_of(state, self._is_approved(mid)),
            max_length=None if mid else _max_length(attributes),
            comments=tuple(comments),
        )
        return locked(unit, context, problem)

    def _state(self, source: Text, target: Text | None, mid: str) -> State:
        attributes = self.target.attributes if self.target is not None else {}
        state = attributes.get("state", "")
        if target is None or not has_text(target, source) or state in _UNTRANSLATED:
            return "new"
        if by_tool := said_state(self.node, mid):
            return by_tool
        if self.node.attributes.get("approved") == "yes":
            return "translated"
        if state.startswith("needs-") or attributes.get("state-qualifier") in _DRAFT_QUALIFIERS:
            return "draft"
        return "draft" if copied(source, target) and state not in _FINAL_STATES else "translated"

    def _is_approved(self, mid: str) -> bool:
        """Whether a reviewer has approved what is translated."""
        state = self.target.attributes.get("state", "") if self.target is not None else ""
        is_final = self.node.attributes.get("approved") == "yes" or state in _APPROVED_STATES
        return is_final or is_approved(self.node, mid)

    # --- writing

    def edits(self, fillings: Sequence[Filling | None]) -> list[Edit]:
        (filling,) = fillings
        if filling is None:
            return []
        matches, notes = self.alt_trans(filling, self.units[0].source), self.notes(fillings)
        if not filling.has_target:
            return [self.suggested(matches), *notes]
        content = content_of(filling.target, XLIFF1).encode()
        state = new_state([filling.origin], []) if self.has_state else {}
        return [*self.edits_of({"": filling}), *self.whole(content, state, matches), *notes]

    @property
    def tool(self) -> Tool | None:
        """The CAT tool that says in its own way how far the segments are."""
        return tool_of(self.node)

    @property
    def has_state(self) -> bool:
        """Whether XLIFF's own attributes say how far a target is: they do where no tool does."""
        target = self.target
        return self.tool is None or (target is not None and "state" in target.attributes)

    def edits_of(self, fillings: dict[str, Filling]) -> list[Edit]:
        """What is said of the segments, by their mids, with these fillings. A unit with a new
        target is approved no more, unless a reviewer has approved all of that."""
        node = self.node
        is_approved = [*fillings] == [""] and STATES[fillings[""].origin].is_approved
        approved = {"approved": "no"} if node.attributes.get("approved") == "yes" else {}
        approved = {"approved": "yes"} if is_approved and self.tool is None else approved
        values = {node.start: (node, approved)} if approved else {}
        for mid, filling in fillings.items():
            if status := said_of(node, self.data, mid, filling):
                values[status[0].start] = (
                    status[0],
                    values.get(status[0].start, status)[1] | status[1],
                )
        return [
            Edit(
                element.start,
                element.inside,
                with_attributes(self.data[element.start : element.inside], new),
            )
            for element, new in values.values()
        ]

    def whole(self, content: bytes, state: dict[str, str], matches: bytes) -> list[Edit]:
        """With this as all that is in the target."""
        target = self.target
        if target is not None:
            start = with_attributes(opened_tag(self.data[target.start : target.inside]), state)
            new = start + content + b"</" + name_of(start) + b">" + matches
            return [Edit(target.start, target.end, new)]
        name = f"{self.prefix}target"
        start = f"<{name}{target_attributes(self.source, self.tgt_lang)}>".encode()
        new = with_attributes(start, state) + content + f"</{name}>".encode() + matches
        offset = (self.node.first("seg-source") or self.source).end
        return [Edit(offset, offset, blanks_before(self.data, self.source.start) + new)]

    def suggested(self, matches: bytes) -> Edit:
        """With these matches, and the target as it is."""
        last = self.target or self.node.first("seg-source") or self.source
        return Edit(last.end, last.end, matches)

    def notes(self, fillings: Sequence[Filling | None]) -> list[Edit]:
        """The new comments, behind the notes that there are; none where a CAT tool reads the file,
        which has its own place for them."""
        comments = [
            comment for filling in fillings if filling is not None for comment in filling.comments
        ]
        if self.tool is not None or not comments:
            return []
        name, blanks = f"{self.prefix}note", blanks_before(self.data, self.source.start)
        new = b""
        for comment in comments:
            author = f' from="{escaped_attribute(comment.author)}"' if comment.author else ""
            note = f'<{name}{author} annotates="target">{escaped(comment.text)}</{name}>'
            new += blanks + note.encode()
        existing = list(self.node.find_children("note"))
        last = self.target or self.node.first("seg-source") or self.source
        place = existing[-1].end if existing else last.end
        return [Edit(place, place, new)]

    def alt_trans(self, filling: Filling, source: Text, mid: str = "") -> bytes:
        """The matches of a filling, but for those that stand there from an earlier run. None where
        Trados reads the file: its files have no such element."""
        if self.tool is TRADOS:
            return b""
        blanks = blanks_before(self.data, self.source.start)
        candidates = (self._candidate(match, source.codes, mid) for match in filling.matches)
        return b"".join(blanks + candidate for candidate in new_matches(candidates, self.data))

    def _candidate(self, match: Match, allowed_codes: Sequence[Code], mid: str) -> bytes:
        prefix, segment = self.prefix, match.segment
        values = {"mid": mid, "match-quality": f"{quality(match)}%", "origin": segment.origin}
        attributes = "".join(
            f' {name}="{escaped_attribute(value)}"' for name, value in values.items() if value
        )
        texts = (Text(segment.src, segment.src_codes), Text(segment.tgt, segment.tgt_codes))
        source, target = (candidate_of(text, allowed_codes, prefix, XLIFF1) for text in texts)
        return (
            f"<{prefix}alt-trans{attributes}><{prefix}source>{source}</{prefix}source>"
            f"<{prefix}target>{target}</{prefix}target></{prefix}alt-trans>"
        ).encode()


class _Segmented(UnitElement):
    """One that is a unit for every segment of its <seg-source>."""

    def __init__(
        self,
        whole: _TransUnit,
        context: UnitContext,
        seg_source: Node,
        mrks: Sequence[_Mrk],
        in_target: Sequence[_Mrk],
    ) -> None:
        self._whole, self._seg_source, self._mrks = whole, seg_source, mrks
        self._data = whole.data
        self._target_mrks = {mrk.mid: mrk for mrk in reversed(in_target)}
        count = Counter(mrk.mid for mrk in mrks)
        twice = {mid for mid in count if count[mid] > 1}
        self.units = tuple(self._unit(mrk, context, mrk.mid in twice) for mrk in mrks)

    def _unit(self, mrk: _Mrk, context: UnitContext, is_twice: bool) -> Unit:
        target_mrk = self._target_mrks.get(mrk.mid)
        target = self._whole.text(target_mrk) if target_mrk is not None else None
        problem = source_problem(self._data, self._seg_source)
        if is_twice:
            problem = f"several segments have the mid {mrk.mid!r}"
        line = self._seg_source.line + self._data.count(b"\n", self._seg_source.start, mrk.start)
        content = self._whole.content(mrk) + self._whole.content(target_mrk)
        source = self._whole.text(mrk)
        return self._whole.unit(source, target, context, problem, line, content, mrk.mid)

    def edits(self, fillings: Sequence[Filling | None]) -> list[Edit]:
        matches = b"".join(
            self._whole.alt_trans(filling, unit.source, mrk.mid)
            for mrk, unit, filling in zip(self._mrks, self.units, fillings, strict=True)
            if filling is not None
        )
        notes = self._whole.notes(fillings)
        fillings = [
            filling if filling is not None and filling.has_target else None for filling in fillings
        ]
        if not any(fillings):
            return [self._whole.suggested(matches), *notes]
        state = self._new_state(fillings)
        contents = [
            None if filling is None else content_of(filling.target, XLIFF1).encode()
            for filling in fillings
        ]
        target = self._whole.target
        if target is None or not self._target_mrks:
            changed = self._whole.whole(self._content(contents), state, matches)
        else:
            start = with_attributes(self._data[target.start : target.inside], state)
            changed = [
                Edit(target.start, target.inside, start),
                *self._in_segments(contents, target),
                Edit(target.end, target.end, matches),
            ]
        mid_fillings = {
            mrk.mid: filling
            for mrk, filling in zip(self._mrks, fillings, strict=True)
            if filling is not None
        }
        return [*self._whole.edits_of(mid_fillings), *changed, *notes]

    def _new_state(self, fillings: Sequence[Filling | None]) -> dict[str, str]:
        if not self._whole.has_state:
            return {}
        remaining_states = [
            unit.state
            for unit, filling in zip(self.units, fillings, strict=True)
            if filling is None
        ]
        return new_state(
            [filling.origin for filling in fillings if filling is not None], remaining_states
        )

    def _content(self, contents: Sequence[bytes | None]) -> bytes:
        """Of a target that has nothing yet: that of <seg-source> with other segments."""
        pieces, offset = list[bytes](), self._seg_source.inside
        for mrk, content in zip(self._mrks, contents, strict=True):
            pieces += (self._data[offset : mrk.start], self._wrap(mrk, content or b""))
            offset = mrk.end
        return b"".join([*pieces, self._data[offset : self._seg_source.inside_end]])

    def _wrap(self, mrk: _Mrk, content: bytes) -> bytes:
        """The tags of a segment around another content."""
        start = opened_tag(self._data[mrk.start : mrk.inside])
        return start + content + b"</" + name_of(start) + b">"

    def _in_segments(self, contents: Sequence[bytes | None], target: Node) -> list[Edit]:
        edits = list[Edit]()
        for number, content in enumerate(contents):
            if content is None:
                continue
            if target_mrk := self._target_mrks.get(self._mrks[number].mid):
                edits.append(
                    Edit(target_mrk.start, target_mrk.end, self._wrap(target_mrk, content))
                )
            else:
                edits.append(self._put_in(number, content, target))
        return edits

    def _put_in(self, number: int, content: bytes, target: Node) -> Edit:
        """A segment that the target lacks: behind the one before it, else before the one behind it,
        else at the end."""
        new = self._wrap(self._mrks[number], content)
        target_mrks = [self._target_mrks.get(mrk.mid) for mrk in self._mrks]
        if previous := next(filter(None, reversed(target_mrks[:number])), None):
            return Edit(previous.end, previous.end, self._gap(number - 1) + new)
        if following := next(filter(None, target_mrks[number:]), None):
            return Edit(following.start, following.start, new + self._gap(number))
        return Edit(target.inside_end, target.inside_end, new)

    def _gap(self, number: int) -> bytes:
        """The text between a segment of the source and the next, where there is nothing else."""
        gap = self._data[self._mrks[number].end : self._mrks[number + 1].start]
        return gap if b"<" not in gap else b" "


def new_state(origins: Sequence[str], remaining_states: Sequence[State]) -> dict[str, str]:
    """The attributes of a target that was filled.

    origins: the origins of its new segments.
    remaining_states: the states of its other segments."""
    values = {"state": "", "state-qualifier": ""} | state_of_all(origins).xliff1
    if any(state != "translated" for state in remaining_states):
        values["state"] = "needs-review-translation"
    return values


def _max_length(attributes: Mapping[str, str]) -> int | None:
    """How many characters a target may have. Other units, such as pixels, are nothing to count."""
    width = attributes.get("maxwidth", "")
    return (
        int(width) if attributes.get("size-unit") == "char" and _NUMBER.fullmatch(width) else None
    )


def _segments(data: bytes, node: Node) -> list[_Mrk]:
    """The <mrk mtype="seg"> of a <seg-source> or <target>, without those inside another."""
    marks, inside, depth, outside = list[_Mrk](), list[_Mrk](), 0, 0
    for token in _TAGS.finditer(data, node.inside, node.inside_end):
        first, alone = token[0][1:2], token[0].endswith(b"/>")
        if first in b"!?":
            continue
        if first == b"/":
            depth -= 1
            if inside and depth == outside:
                mrk = inside.pop()
                mrk.inside_end, mrk.end = token.span()
                marks.append(mrk)
            continue
        if not inside and (mid := _mid(token[0])) is not None:
            mrk = _Mrk(mid, *token.span(), token.end(), token.end())
            (marks if alone else inside).append(mrk)
            outside = depth
        depth += not alone
    return marks


def _mid(start: bytes) -> str | None:
    """The mid of a segment, None where a start tag is not that of one."""
    if b"mrk" not in start:
        return None
    name, attributes = tag(start.decode())
    is_segment = name.rpartition(":")[2] == "mrk" and attributes.get("mtype") == "seg"
    return attributes.get("mid", "") if is_segment else None
