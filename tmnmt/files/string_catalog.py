"""Apple's String Catalogs, .xcstrings: JSON with the texts of an app in all its languages (Xcode
documentation, *Localizing and varying text with a string catalog*).

    {"sourceLanguage": "en", "strings": {"%lld files": {"localizations": {
        "en": {"variations": {"plural": {"one": {"stringUnit": {"state", "value"}}, "other": ...}}},
        "fr": ...}}}, "version": "1.0"}

A unit is one text of an entry in the target language: of an entry with plural forms as many as the
language has, of one that varies by device one for each. The source is the text of the source
language, or the key where it has none. What an entry's language has is replaced or put in as a
whole, and every other byte stays. Entries that are not to be translated stay, and so do those that
the program has no more (`stale`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from json import dumps, loads
from pathlib import Path
from typing import Any, NamedTuple

from tmnmt.errors import UsageError, short_repr
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.files.apple_strings import APPLE_FINDERS
from tmnmt.files.json_syntax import Span, containers
from tmnmt.files.plurals import categories_of_language, description_of, needed_categories
from tmnmt.files.states import STATES
from tmnmt.files.texts import string_of, unit_of
from tmnmt.files.unit import Filling, State, Unit
from tmnmt.files.whole import BOM, Edit, WholeFile
from tmnmt.formats.encoding import byte_order_mark
from tmnmt.formats.languages import is_code, is_same_language, locale_name, normal_code

_UNIT, _VARIATIONS, _SUBSTITUTIONS, _PLURAL = (
    "stringUnit",
    "variations",
    "substitutions",
    "plural",
)
_COLON = re.compile(r'"sourceLanguage"(\s*:\s*)"')
_INDENT = re.compile(r"\{\r?\n([ \t]+)\"")
_LONGEST_INTEGER = 100  # digits
_LOCALIZATIONS_DEPTH = 4  # objects around a language of an entry

Node = dict[str, Any]  # a text with its variations, as the file has it
Steps = tuple[str, ...]  # the keys that lead to a text, inside a language


class _Slot(NamedTuple):
    """A unit's place: a text of an entry in the target language, and what both languages have
    there."""

    key: str
    steps: Steps
    source: str
    target: str
    state: str


class StringCatalog(WholeFile[_Slot]):
    """A catalogue, which names its source language; the target language must be set."""

    kind = "xcstrings"
    title = FILE_KINDS["xcstrings"].title
    is_memory = is_bilingual = True
    marks_drafts = True

    def __init__(self, path: Path, src_lang: str = "", tgt_lang: str = "") -> None:
        super().__init__(path, src_lang, tgt_lang)
        source = normal_code(str(self._data.get("sourceLanguage", "")))
        if is_code(source):
            self.src_lang = source

    def _encoding(self, data: bytes) -> str:
        return byte_order_mark(data)[0]

    # --- reading

    @cached_property
    def _spans(self) -> dict[Steps, Span]:
        return containers(self.text, self.wrong)

    @cached_property
    def _data(self) -> Node:
        spans = self._spans
        if ("strings",) not in spans or self.text[spans["strings",].start] != "{":
            raise self.wrong(0, 'no String Catalog: it has no object "strings"')
        data: Node = loads(self.text.removeprefix(BOM), parse_int=_integer)
        return data

    @cached_property
    def _slots(self) -> list[_Slot]:
        """Raises UsageError where nobody has said the target language."""
        if not self.tgt_lang:
            problem = "has texts of all languages: name the target, --tgt-lang"
            raise UsageError(f"{self.path}: {problem}")
        return [
            slot
            for key, entry in self._data["strings"].items()
            if self._is_translated(key, entry)
            for slot in self._slots_of(key, entry)
        ]

    def _is_translated(self, key: str, entry: object) -> bool:
        """Whether an entry is one that the program has and that is to be translated. Raises
        FormatError where it is none, or has no languages but something else."""
        if not isinstance(entry, dict):
            raise self.wrong(self._spans["strings",].start, f"{short_repr(key)} is no object")
        localizations = entry.get("localizations", {})
        if not isinstance(localizations, dict) or not all(
            isinstance(node, dict) for node in localizations.values()
        ):
            start = self._spans["strings", key].start
            raise self.wrong(start, f"the localizations of {short_repr(key)} are no objects")
        return entry.get("shouldTranslate", True) is True and (
            entry.get("extractionState") != "stale"
        )

    def _slots_of(self, key: str, entry: Node) -> Iterator[_Slot]:
        source = self._source(key, entry)
        target = self._checked(key, self._target_node(entry))
        for steps in _texts(self._template(source, target), self.tgt_lang):
            text = _source_text(source, steps)
            if any(map(str.isalnum, text)):
                unit = _node_at(target, steps).get(_UNIT, {})
                if not isinstance(unit, dict):
                    start = self._spans["strings", key].start
                    raise self.wrong(start, f"a stringUnit of {short_repr(key)} is no object")
                yield _Slot(key, steps, text, unit.get("value", ""), unit.get("state", "new"))

    def _source(self, key: str, entry: Node) -> Node:
        """What the source language has; where it has nothing, its text is the key."""
        localizations: Node = entry.get("localizations", {})
        for code, node in localizations.items():
            if normal_code(code) == self.src_lang and _has_texts(node):
                return self._checked(key, node)
        return {_UNIT: {"state": "new", "value": key}}

    def _checked(self, key: str, node: Node) -> Node:
        """The node, of which every text is one. Raises FormatError where one is not."""
        for steps in _texts(node, ""):
            if not isinstance(_node_at(node, steps)[_UNIT].get("value", ""), str):
                start = self._spans["strings", key].start
                raise self.wrong(start, f"a value of {short_repr(key)} is no text")
        return node

    def _target_code(self, entry: Node) -> str:
        """The target language as the entry has it, or as it would be written."""
        codes: list[str] = [*entry.get("localizations", {})]
        equal = [code for code in codes if normal_code(code) == self.tgt_lang]
        alike = [code for code in codes if is_same_language(normal_code(code), self.tgt_lang)]
        candidates = equal or (alike if len(alike) == 1 else [])
        return candidates[0] if candidates else locale_name(self.tgt_lang, "-")

    def _target_node(self, entry: Node) -> Node:
        node = entry.get("localizations", {}).get(self._target_code(entry), {})
        return node if isinstance(node, dict) else {}

    def _template(self, source: Node, target: Node) -> Node:
        """The node that says which texts the target has: its own where somebody has given it
        another form than the source has, as plural forms."""
        is_other = _has_texts(target) and target.keys() != source.keys()
        return target if is_other else source

    def _unit(self, slot: _Slot) -> Unit:
        entry = self._data["strings"][slot.key]
        state: State = (
            "new"
            if not slot.target or slot.state == "new"
            else "translated"
            if slot.state == "translated"
            else "draft"
        )
        case = slot.steps[-1] if slot.steps[-2:-1] == (_PLURAL,) else ""
        names = [step for step in slot.steps if step not in (_VARIATIONS, _SUBSTITUTIONS, _PLURAL)]
        comment = entry.get("comment", "")
        unit = unit_of(
            slot.source,
            slot.target if state != "new" else "",
            APPLE_FINDERS,
            state=state,
            id=slot.key + (f"[{'.'.join(names)}]" if names else ""),
            notes=(comment,) if isinstance(comment, str) and comment else (),
            line=self.line(self._spans["strings", slot.key].start),
        )
        return replace(unit, plural=description_of(case, self.tgt_lang) if case else "")

    # --- writing

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        by_key = dict[str, list[tuple[_Slot, Filling]]]()
        for slot, filling in zip(self._slots, fillings, strict=True):
            if filling is not None:
                by_key.setdefault(slot.key, []).append((slot, filling))
        return [self._edit(key, of_key) for key, of_key in by_key.items()]

    def _edit(self, key: str, of_key: Sequence[tuple[_Slot, Filling]]) -> Edit:
        """The entry with these texts in the target language."""
        entry = self._data["strings"][key]
        code = self._target_code(entry)
        node = self._filled(key, entry, of_key)
        place: Steps = ("strings", key, "localizations")
        if (*place, code) in self._spans:
            span = self._spans[(*place, code)]
            return Edit(span.start, span.end, self._json(node, _LOCALIZATIONS_DEPTH))
        if place not in self._spans:
            return self._member(place[:-1], {"localizations": {code: node}}, last="")
        codes = [other for other in entry["localizations"] if other < code]
        return self._member(place, {code: node}, last=codes[-1] if codes else "")

    def _filled(self, key: str, entry: Node, of_key: Sequence[tuple[_Slot, Filling]]) -> Node:
        source, target = self._source(key, entry), self._target_node(entry)
        template = self._template(source, target)
        new = deepcopy(target) if _has_texts(target) else {}
        for slot, filling in of_key:
            is_draft = STATES[filling.origin].is_draft
            unit = {
                "state": "needs_review" if is_draft else "translated",
                "value": string_of(filling.target),
            }
            _put(new, template, slot.steps, unit)
        return new

    def _member(self, place: Steps, member: Node, last: str) -> Edit:
        """Puts a member into an object: behind the member called `last`, which is an object, or
        else as the first of the languages, or behind all else."""
        span, depth = self._spans[place], len(place)
        inside = self._json(member, depth)[1:-1].rstrip()
        body = self.text[span.start + 1 : span.end - 1]
        if not body.strip():
            return Edit(span.start, span.end, f"{{{inside}{self._newline_at(depth)}}}")
        if not last and place[-1] == "localizations":
            return Edit(span.start + 1, span.start + 1, f"{inside},")
        offset = self._spans[(*place, last)].end if last else span.start + 1 + len(body.rstrip())
        return Edit(offset, offset, f",{inside}")

    def _json(self, node: Node, depth: int) -> str:
        """A node as Xcode writes it, inside `depth` objects."""
        colon = match[1] if (match := _COLON.search(self.text)) else " : "
        options: Node = {"ensure_ascii": False, "sort_keys": True}
        if not self._indent:
            return dumps(node, separators=(",", colon), **options)
        lines = dumps(node, indent=self._indent, separators=(",", colon), **options).split("\n")
        return self._newline_at(depth).join(lines)

    def _newline_at(self, depth: int) -> str:
        """A line end, and the indentation of the next line."""
        return self.newline + self._indent * depth if self._indent else ""

    @cached_property
    def _indent(self) -> str:
        """The indentation of one object, "" where the file stands on one line."""
        match = _INDENT.search(self.text)
        return match[1] if match else ""


def _texts(node: object, language: str, steps: Steps = ()) -> Iterator[Steps]:
    """The keys that lead to the texts of a node; plural forms that the language needs are among
    them."""
    if not isinstance(node, dict):
        return
    if isinstance(node.get(_UNIT), dict):
        yield steps
    for name, child in _members(node, _SUBSTITUTIONS):
        yield from _texts(child, language, (*steps, _SUBSTITUTIONS, name))
    for kind, cases in _members(node, _VARIATIONS):
        names = [*cases] if isinstance(cases, dict) else []
        if kind == _PLURAL and "other" in names and categories_of_language(language):
            names = needed_categories([name for name in names if name == "zero"], language)
        for name in names:
            child = cases.get(name, cases.get("other"))
            yield from _texts(child, language, (*steps, _VARIATIONS, kind, name))


def _has_texts(node: object) -> bool:
    return next(_texts(node, ""), None) is not None


def _integer(digits: str) -> int | float:
    """A number, of which Python reads no more than some thousand digits."""
    return int(digits) if len(digits) < _LONGEST_INTEGER else float("inf")


def _members(node: Node, name: str) -> Iterable[tuple[str, Any]]:
    members = node.get(name)
    return members.items() if isinstance(members, dict) else ()


def _node_at(node: Node, steps: Steps) -> Node:
    """The node that the keys lead to; empty where there is none."""
    for step in steps:
        child = node.get(step)
        if not isinstance(child, dict):
            return {}
        node = child
    return node


def _source_text(source: Node, steps: Steps) -> str:
    """The source of a text of the target: at the same place, or of all other numbers; else the
    last text of the source, which is that of all other numbers, too."""
    kinds = ("", *steps)
    others = tuple(
        "other" if kind == _PLURAL else step for kind, step in zip(kinds, steps, strict=False)
    )
    for place in (steps, others, *reversed([*_texts(source, "")])):
        unit = _node_at(source, place).get(_UNIT)
        if unit and isinstance(unit, dict):
            return str(unit.get("value", ""))
    return ""


def _put(node: Node, template: Node, steps: Steps, unit: Node) -> None:
    """Sets a text in a node. What the template has beside the texts on the way, such as the format
    of a substitution, is set, too."""
    for number, step in enumerate(steps):
        kind = steps[number - 1] if number else ""
        template = template.get(step) or (template["other"] if kind == _PLURAL else {})
        node = node.setdefault(step, {})
        if kind == _SUBSTITUTIONS:
            for name, value in template.items():
                if name not in (_UNIT, _VARIATIONS, _SUBSTITUTIONS):
                    node.setdefault(name, value)
    node[_UNIT] = unit
