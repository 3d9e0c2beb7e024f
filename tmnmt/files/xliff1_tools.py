"""What CAT tools add to XLIFF 1.2 to say how far a segment is: read, and set as they do themselves.

    Trados   <sdl:seg conf="Draft" origin="mt" percent="85"> in <sdl:seg-defs>, for every segment
    memoQ    <trans-unit mq:status="Pretranslated" mq:percent="101">
    Phrase   <trans-unit m:confirmed="0" m:score="1.01" m:trans-origin="tm">

Sources: Okapi's SdlXliffConfLevel and the files of its tests for Trados; for memoQ and Phrase what
other programs read and write (translate5, converters), since neither describes its format."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tmnmt.files.states import STATES
from tmnmt.files.unit import Filling, State
from tmnmt.files.xliff import quality
from tmnmt.files.xliff_parts import Node

_MQ, _M = "MQXliff", "http://www.memsource.com/mxlf/2.0"  # namespaces
_UNLOCKED = frozenset({"", "false", "no", "0", "none"})
_TRADOS_STATES: dict[str, State] = {
    "Draft": "draft",
    "RejectedTranslation": "draft",
    "RejectedSignOff": "draft",
    "Translated": "translated",
    "ApprovedTranslation": "translated",
    "ApprovedSignOff": "translated",
}
_MEMOQ_DRAFTS = frozenset(
    {"notstarted", "partiallyedited", "machinetranslated", "assembledfromfragments", "rejected"}
    | {"autojoined", "autosplit"}
)
_MEMOQ_DONE = re.compile("confirmed|proofread")
_MEMOQ_APPROVED = re.compile("proofread")
_TRADOS_APPROVED = frozenset({"ApprovedTranslation", "ApprovedSignOff"})
_WHOLE = 100  # per cent


@dataclass(frozen=True, slots=True)
class Tool:
    """How one tool says what it says of a segment: the element that says it, by the segment's mid;
    None: nothing is said."""

    locate: Callable[[Node, str], Node | None]
    state: Callable[[dict[str, str]], State | None]  # by its attributes; None: by XLIFF's own
    approves: Callable[[dict[str, str]], bool]  # whether a reviewer has approved a translation
    values: Callable[[Filling], dict[str, str]]  # of a new target, "" takes one away
    space: str  # the namespace of the attributes, "" where they have none


def tool_of(node: Node) -> Tool | None:
    """The tool that says how far the segments of a <trans-unit> are; None where no tool says it.

    node: the <trans-unit>."""
    if any(True for _ in _trados_segments(node)):
        return TRADOS
    return next((tool for tool in (MEMOQ, PHRASE) if tool.locate(node, "") is not None), None)


def said_state(node: Node, mid: str) -> State | None:
    """The state of a segment that has a translation, as its tool says it; None where none is said.

    node: the <trans-unit>.
    mid: the mid of the segment; "" where the unit is one segment."""
    tool = tool_of(node)
    element = tool.locate(node, mid) if tool else None
    return tool.state(element.attributes) if tool and element else None


def is_approved(node: Node, mid: str) -> bool:
    """Whether its tool says of a translated segment that a reviewer has approved it.

    node: the <trans-unit>.
    mid: the mid of the segment; "" where the unit is one segment."""
    tool = tool_of(node)
    element = tool.locate(node, mid) if tool else None
    return tool is not None and element is not None and tool.approves(element.attributes)


def is_locked(node: Node, mid: str) -> bool:
    """Whether a segment is locked: m:locked, mq:locked, and Trados of each segment.

    node: the <trans-unit>.
    mid: the mid of the segment; "" where the unit is one segment."""
    segment = _trados(node, mid)
    return _says_locked(node) or (segment is not None and _says_locked(segment))


def said_of(
    node: Node, data: bytes, mid: str, filling: Filling
) -> tuple[Node, dict[str, str]] | None:
    """The element that tells how far a segment is, and the attributes, with their prefixes, that it
    gets with a filling; "" takes one away. None where no tool says anything.

    node: the <trans-unit>.
    data: its bytes.
    mid: the mid of the segment; "" where the unit is one segment.
    filling: the filling."""
    tool = tool_of(node)
    element = tool.locate(node, mid) if tool else None
    if tool is None or element is None:
        return None
    prefix = _prefix(element, data[element.start : element.inside], tool.space)
    return element, {prefix + name: value for name, value in tool.values(filling).items()}


def _prefix(element: Node, tag: bytes, space: str) -> str:
    """How the tool's namespace is called in this tag, with the colon."""
    if not space:
        return ""
    locals_ = (
        name.rpartition(" ")[2] for name in element.attributes if name.startswith(f"{space} ")
    )
    prefix = re.search(rf"\s([\w.-]+:){next(locals_)}\s*=".encode(), tag)
    return prefix[1].decode() if prefix else ""


def _says_locked(node: Node) -> bool:
    return any(
        name.rpartition(" ")[2] == "locked" and value.lower() not in _UNLOCKED
        for name, value in node.attributes.items()
    )


def _percent(filling: Filling) -> int:
    """What the match is worth that the target was taken from: 100 or more only of a target that
    needs no review, since these tools count a segment as translated by it."""
    best = max(map(quality, filling.matches), default=_WHOLE)
    return min(best, _WHOLE - 1) if STATES[filling.origin].is_draft else max(best, _WHOLE)


# --- Trados


def _trados_segments(node: Node) -> Sequence[Node]:
    return [
        segment
        for definitions in node.children
        if definitions.name.endswith(" seg-defs")
        for segment in definitions.children
    ]


def _trados(node: Node, mid: str) -> Node | None:
    segments = (
        segment for segment in _trados_segments(node) if segment.attributes.get("id") == mid
    )
    return next(segments, None)


def _trados_state(attributes: dict[str, str]) -> State | None:
    return _TRADOS_STATES.get(attributes.get("conf", ""), "draft")


def _trados_approves(attributes: dict[str, str]) -> bool:
    return attributes.get("conf", "") in _TRADOS_APPROVED


def _trados_values(filling: Filling) -> dict[str, str]:
    state = STATES[filling.origin]
    values = {**state.trados, "origin-system": "tmnmt", "percent": ""}
    values |= {"text-match": "", "struct-match": ""}
    if state.is_match:
        value = _percent(filling)
        values["percent"] = str(min(value, _WHOLE))
        values |= {"text-match": "SourceAndTarget"} if value > _WHOLE else {}  # in its context
    return values


# --- memoQ and Phrase


def _saying(space: str, name: str) -> Callable[[Node, str], Node | None]:
    """The unit itself, where it has this attribute."""
    return lambda node, mid: node if f"{space} {name}" in node.attributes else None


def _memoq_state(attributes: dict[str, str]) -> State | None:
    status = attributes.get(f"{_MQ} status", "").lower()
    if status == "pretranslated":
        return "translated" if _number(attributes.get(f"{_MQ} percent", "")) >= _WHOLE else "draft"
    if _MEMOQ_DONE.search(status):
        return "translated"
    return "draft" if status in _MEMOQ_DRAFTS else None


def _memoq_approves(attributes: dict[str, str]) -> bool:
    return bool(_MEMOQ_APPROVED.search(attributes.get(f"{_MQ} status", "").lower()))


def _memoq_values(filling: Filling) -> dict[str, str]:
    state = STATES[filling.origin]
    return {**state.memoq, "percent": str(_percent(filling)) if state.is_match else ""}


def _phrase_state(attributes: dict[str, str]) -> State | None:
    if attributes.get(f"{_M} confirmed", "").lower() not in _UNLOCKED:
        return "translated"
    is_whole = attributes.get(f"{_M} trans-origin") == "tm" and (
        _number(attributes.get(f"{_M} score", "")) >= 1
    )
    return "translated" if is_whole else "draft"


def _phrase_approves(attributes: dict[str, str]) -> bool:
    """A file of Phrase is of one step of its workflow, and what is confirmed there is approved."""
    return attributes.get(f"{_M} confirmed", "").lower() not in _UNLOCKED


def _phrase_values(filling: Filling) -> dict[str, str]:
    state = STATES[filling.origin]
    score = min(_percent(filling), _WHOLE + 1) / _WHOLE  # 1.01 is in the same context
    return {**state.phrase, **({"score": str(score)} if state.is_match else {})}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


TRADOS = Tool(_trados, _trados_state, _trados_approves, _trados_values, "")
MEMOQ = Tool(_saying(_MQ, "status"), _memoq_state, _memoq_approves, _memoq_values, _MQ)
PHRASE = Tool(_saying(_M, "confirmed"), _phrase_state, _phrase_approves, _phrase_values, _M)
