"""XLIFF 1.0 to 1.2, and what CAT tools make of it: .sdlxliff, .mqxliff and .mxliff, whose own
elements and attributes stay as they are.

A <trans-unit> is one unit, or one for every <mrk mtype="seg"> of its <seg-source>. A new target is
marked by its origin:

    origin of the filling   state                      state-qualifier
    model                   needs-review-translation   leveraged-mt
    memory, confirmed       translated                 exact-match

Matches become <alt-trans> with match-quality and origin. A unit that was approved is so no more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tmnmt.codes.record import Text
from tmnmt.files.unit import Filling, State, Unit
from tmnmt.files.xliff import (
    SUFFIXES,
    Around,
    Edit,
    UnitElement,
    Xliff,
    blanks_before,
    has_text,
    locked,
    name_of,
    opened_tag,
    percent,
    prefix_of,
    same_language,
    target_attributes,
    text_problem,
    version_of,
    with_attributes,
)
from tmnmt.files.xliff_codes import XLIFF1, candidate_of, content_of, plain_of, tag, text_of
from tmnmt.files.xliff_parts import Node, Start, Whole
from tmnmt.formats.xml_text import escaped_attribute
from tmnmt.segments import Match

_UNTRANSLATED = frozenset({"new", "needs-translation"})
_DRAFT_QUALIFIERS = frozenset(
    {"fuzzy-match", "leveraged-mt", "mt-suggestion", "tm-suggestion"}
    | {"rejected-grammar", "rejected-inaccurate", "rejected-length", "rejected-spelling"}
)
_DONE = frozenset({"translated", "final", "signed-off"})
_UNLOCKED = frozenset({"", "false", "no", "0", "none"})

_TAGS = re.compile(
    rb"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<[^<>"']++(?:"[^"]*"[^<>"']*|'[^']*'[^<>"']*)*+>""",
    re.DOTALL,
)


class Xliff1(Xliff):
    """A file of XLIFF 1.0, 1.1 or 1.2."""

    kind = "xliff1"
    form, major, unit_name = XLIFF1, "1", "trans-unit"

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        """By the root element; what only its name says to be XLIFF is opened too, and says what is
        wrong with it."""
        version = version_of(head)
        return version is not None or path.suffix.lower() in SUFFIXES

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

    def _element(self, whole: Whole, data: bytes, around: Around) -> UnitElement:
        return _TransUnit(whole.node, data, around, self.tgt_lang)


@dataclass(slots=True)
class _Mrk:
    """A <mrk mtype="seg">: where its tags are."""

    mid: str
    start: int
    inside: int
    inside_end: int = 0
    end: int = 0


class _TransUnit(UnitElement):
    def __init__(self, node: Node, data: bytes, around: Around, tgt_lang: str) -> None:
        self._node, self._data, self._tgt_lang = node, data, tgt_lang
        self._prefix = prefix_of(data[: node.inside])
        self._target = node.first("target")
        self._seg_source = node.first("seg-source")
        self._mrks: list[_Mrk] = []
        self._target_mrks: dict[str, _Mrk] = {}
        said = node.attributes.get("translate")
        around = Around(said != "no" if said else around.translate, around.problem)
        source = node.first("source")
        if source is None:
            problem = "a <trans-unit> without <source>"
            self.units = (self._unit(Text(""), None, around, problem, node.line),)
            return
        self._source = source
        self._find_mrks()
        if self._mrks:
            self.units = tuple(self._segment(mrk, around) for mrk in self._mrks)
        else:
            target = self._text(self._target)
            text = self._text(source)
            assert text is not None
            self.units = (self._unit(text, target, around, self._problem(source), source.line),)

    # --- reading

    def _text(self, node: Node | _Mrk | None) -> Text | None:
        if node is None:
            return None
        return text_of(self._data[node.inside : node.inside_end], self._prefix, XLIFF1)

    def _find_mrks(self) -> None:
        """The segments of <seg-source>; none where the target is not divided as that is."""
        if self._seg_source is None:
            return
        mrks = _segments(self._data, self._seg_source)
        if self._target is None:
            self._mrks = mrks
            return
        in_target = _segments(self._data, self._target)
        whole = self._data[self._target.inside : self._target.inside_end]
        if in_target or not plain_of(whole).strip():
            self._mrks = mrks
            for mrk in in_target:
                self._target_mrks.setdefault(mrk.mid, mrk)

    def _segment(self, mrk: _Mrk, around: Around) -> Unit:
        assert self._seg_source is not None
        text = self._text(mrk)
        assert text is not None
        problem = self._problem(self._seg_source)
        if sum(other.mid == mrk.mid for other in self._mrks) > 1:
            problem = f"several segments have the mid {mrk.mid!r}"
        line = self._seg_source.line + self._data.count(b"\n", self._seg_source.start, mrk.start)
        target = self._text(self._target_mrks.get(mrk.mid))
        return self._unit(text, target, around, problem, line, mrk.mid)

    def _problem(self, source: Node) -> str:
        if b"xmlns" in self._data[source.start : source.inside]:
            return f"its <{source.name}> declares namespaces of its own"
        return ""

    def _unit(
        self,
        source: Text,
        target: Text | None,
        around: Around,
        problem: str,
        line: int,
        mid: str = "",
    ) -> Unit:
        state = self._state(source, target)
        attributes = self._node.attributes
        name = attributes.get("id", "")
        unit = Unit(
            source,
            target if state != "new" else None,
            "locked" if self._is_locked(mid) else state,
            f"{name}:{mid}" if mid else name,
            attributes.get("resname", ""),
            tuple(self._notes()),
            line,
        )
        return locked(unit, around, problem or text_problem(source))

    def _notes(self) -> list[str]:
        notes = (
            plain_of(self._data[note.inside : note.inside_end]) for note in self._node.named("note")
        )
        return [note for note in notes if note.strip()]

    def _state(self, source: Text, target: Text | None) -> State:
        said = self._target.attributes if self._target is not None else {}
        state = said.get("state", "")
        if target is None or not has_text(target, source) or state in _UNTRANSLATED:
            return "new"
        if self._node.attributes.get("approved") == "yes":
            return "translated"
        if state.startswith("needs-") or said.get("state-qualifier") in _DRAFT_QUALIFIERS:
            return "draft"
        copied = target == source and any(character.isalpha() for character in source.plain)
        return "draft" if copied and state not in _DONE else "translated"

    def _is_locked(self, mid: str) -> bool:
        """As tools say it in their own ways: m:locked, mq:locked, and Trados of each segment."""
        if _says_locked(self._node):
            return True
        for definitions in self._node.children:
            if definitions.name.endswith(" seg-defs"):
                for one in definitions.children:
                    if one.attributes.get("id", "") == mid and _says_locked(one):
                        return True
        return False

    # --- writing

    def edits(self, fillings: Sequence[Filling | None]) -> list[Edit]:
        contents = [
            None if one is None else content_of(one.target, XLIFF1).encode() for one in fillings
        ]
        edits = list[Edit]()
        if self._node.attributes.get("approved") == "yes":
            tag_now = self._data[: self._node.inside]
            edits.append(Edit(0, self._node.inside, with_attributes(tag_now, {"approved": "no"})))
        state = self._new_state(fillings)
        matches = self._alt_trans(fillings)
        if self._target is None:
            edits.append(self._new_target(self._whole(contents), state, matches))
        elif self._target_mrks:
            edits += self._in_segments(contents, self._target)
            edits.append(_tag_edit(self._data, self._target, state))
            edits.append(Edit(self._target.end, self._target.end, matches))
        else:
            edits.append(self._again(self._target, self._whole(contents), state))
            edits.append(Edit(self._target.end, self._target.end, matches))
        return edits

    def _whole(self, contents: Sequence[bytes | None]) -> bytes:
        """The content of a target that has nothing yet."""
        if not self._mrks:
            return contents[0] or b""
        assert self._seg_source is not None
        pieces, at = list[bytes](), self._seg_source.inside
        for mrk, content in zip(self._mrks, contents, strict=True):
            pieces += (self._data[at : mrk.start], self._mrk(mrk, content or b""))
            at = mrk.end
        return b"".join([*pieces, self._data[at : self._seg_source.inside_end]])

    def _mrk(self, mrk: _Mrk, content: bytes) -> bytes:
        """The tags of a segment, around another content."""
        start = opened_tag(self._data[mrk.start : mrk.inside])
        return start + content + b"</" + name_of(start) + b">"

    def _new_target(self, content: bytes, state: dict[str, str], matches: bytes) -> Edit:
        name = f"{self._prefix}target"
        values = target_attributes(self._source, self._tgt_lang, self._prefix)
        start = with_attributes(f"<{name}{values}>".encode(), state)
        at = (self._seg_source or self._source).end
        blanks = blanks_before(self._data, self._source.start)
        return Edit(at, at, blanks + start + content + f"</{name}>".encode() + matches)

    def _again(self, target: Node, content: bytes, state: dict[str, str]) -> Edit:
        start = with_attributes(opened_tag(self._data[target.start : target.inside]), state)
        return Edit(target.start, target.end, start + content + b"</" + name_of(start) + b">")

    def _in_segments(self, contents: Sequence[bytes | None], target: Node) -> list[Edit]:
        edits = list[Edit]()
        for number, content in enumerate(contents):
            if content is None:
                continue
            there = self._target_mrks.get(self._mrks[number].mid)
            if there is not None:
                edits.append(Edit(there.start, there.end, self._mrk(there, content)))
            else:
                edits.append(self._put_in(number, content, target))
        return edits

    def _put_in(self, number: int, content: bytes, target: Node) -> Edit:
        """A segment that the target lacks: behind the one before it, else before the one behind it,
        else at the end."""
        new = self._mrk(self._mrks[number], content)
        there = [self._target_mrks.get(mrk.mid) for mrk in self._mrks]
        if before := next(filter(None, reversed(there[:number])), None):
            return Edit(before.end, before.end, self._between(number - 1) + new)
        if behind := next(filter(None, there[number:]), None):
            return Edit(behind.start, behind.start, new + self._between(number))
        return Edit(target.inside_end, target.inside_end, new)

    def _between(self, number: int) -> bytes:
        """The text between a segment of the source and the next, where there is nothing else."""
        between = self._data[self._mrks[number].end : self._mrks[number + 1].start]
        return between if b"<" not in between else b" "

    def _new_state(self, fillings: Sequence[Filling | None]) -> dict[str, str]:
        origins = {one.origin for one in fillings if one is not None}
        left = [unit.state for unit, one in zip(self.units, fillings, strict=True) if one is None]
        if origins <= {"memory", "confirmed"} and all(state == "translated" for state in left):
            return {"state": "translated", "state-qualifier": "exact-match"}
        qualifier = "exact-match" if origins <= {"memory", "confirmed"} else "leveraged-mt"
        return {"state": "needs-review-translation", "state-qualifier": qualifier}

    def _alt_trans(self, fillings: Sequence[Filling | None]) -> bytes:
        blanks = blanks_before(self._data, self._source.start)
        found = list[bytes]()
        for number, (unit, filling) in enumerate(zip(self.units, fillings, strict=True)):
            for match in filling.matches if filling is not None else ():
                mid = self._mrks[number].mid if self._mrks else ""
                one = self._candidate(unit, match, mid)
                if one not in self._data:  # of an earlier run
                    found.append(blanks + one)
        return b"".join(found)

    def _candidate(self, unit: Unit, match: Match, mid: str) -> bytes:
        prefix, segment = self._prefix, match.segment
        values = {"mid": mid, "match-quality": f"{percent(match)}%", "origin": segment.origin}
        attributes = "".join(
            f' {name}="{escaped_attribute(value)}"' for name, value in values.items() if value
        )
        texts = (Text(segment.src, segment.src_codes), Text(segment.tgt, segment.tgt_codes))
        source, target = (candidate_of(text, unit.source.codes, prefix, XLIFF1) for text in texts)
        return (
            f"<{prefix}alt-trans{attributes}><{prefix}source>{source}</{prefix}source>"
            f"<{prefix}target>{target}</{prefix}target></{prefix}alt-trans>"
        ).encode()


def _tag_edit(data: bytes, node: Node, values: dict[str, str]) -> Edit:
    return Edit(node.start, node.inside, with_attributes(data[node.start : node.inside], values))


def _says_locked(node: Node) -> bool:
    return any(
        name.rpartition(" ")[2] == "locked" and value.lower() not in _UNLOCKED
        for name, value in node.attributes.items()
    )


def _segments(data: bytes, node: Node) -> list[_Mrk]:
    """The <mrk mtype="seg"> of a <seg-source> or <target>; one inside another is not looked for."""
    found, current, depth, outside = list[_Mrk](), None, 0, 0
    for token in _TAGS.finditer(data, node.inside, node.inside_end):
        if token[0][1:2] in b"!?":
            continue
        closes, alone = token[0][1:2] == b"/", token[0].endswith(b"/>")
        if closes:
            depth -= 1
            if current is not None and depth == outside:
                current.inside_end, current.end = token.start(), token.end()
                found.append(current)
                current = None
            continue
        if current is None and b"mrk" in token[0]:
            name, attributes = tag(token[0].decode())
            if name.rpartition(":")[2] == "mrk" and attributes.get("mtype") == "seg":
                mid = attributes.get("mid", "")
                if alone:
                    found.append(_Mrk(mid, *token.span(), token.end(), token.end()))
                else:
                    current, outside = _Mrk(mid, *token.span()), depth
        depth += not alone
    return found
