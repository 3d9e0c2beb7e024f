"""The inline elements of XLIFF 1 and 2 as codes, and codes as inline elements.

What the standards leave to the tool is decided as for TMX (`tmnmt.formats.tmx_codes`):
- The content of bpt, ept, ph and it is native code and no text, and so is what stands in a <sub> of
  theirs. g, pc and mrk are around text.
- A mrk of type "protected", or that says translate="no", is a placeholder that covers its text.
- A standalone code covers a space where it is a line break, or stands between two letters or
  digits, so that words do not run together.
- HTML that stands there as text, &lt;b>, is codes as well; it is written as text again.
- Elements of others are standalone codes with all that is in them. Comments and processing
  instructions are nothing.
- Where xml:space says "preserve", line breaks and tabs between words are codes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from tmnmt.codes.record import Code, Kind, Part, Text, join_parts
from tmnmt.codes.tags import Tags, html_tags, with_tags
from tmnmt.errors import Reason
from tmnmt.files.texts import with_line_breaks
from tmnmt.formats.clean import clean
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.formats.xml_text import escaped, escaped_attribute

MAX_CODES = 1000  # of a text; more than its tokens may be

_ASIDE = r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>"
_TAG = r"""<[^<>"']++(?:"[^"]*"[^<>"']*|'[^']*'[^<>"']*)*+>"""
_TOKEN = re.compile(rf"{_ASIDE}|{_TAG}|[^<]++", re.DOTALL)
_ATTRIBUTE = re.compile(r"""\s([^\s=]+)\s*=\s*("[^"]*"|'[^']*')""")
_REFERENCE = re.compile(r"&(#x[0-9A-Fa-f]+|#[0-9]+|\w+);")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_LINE_END = re.compile("\r\n?")
# what says in a match where it is from
_ORIGIN = re.compile(rb"""(<[^\s<>/"']*\b(?:alt-trans|match)\b[^<>]*?) origin="[^"<>]*\"""")

Attributes = dict[str, str]


@dataclass(frozen=True, slots=True)
class Form:
    """The inline elements of one version. `containers`: elements whose inside is text; `half`: of
    the others the kind and the span, by name and attributes; `candidate`: an element of this name
    for a code of another format, by its number."""

    name: str
    containers: frozenset[str]
    half: Callable[[str, Attributes], tuple[Kind, str]]
    candidate: Callable[[str, int, str], str]


def text_of(
    content: bytes,
    prefix: str,
    form: Form,
    tags: Tags = html_tags,
    preserves_space: bool = False,
) -> Text:
    """The text of a <source> or <target>, cleaned as those of a memory.

    content: the bytes inside the element.
    prefix: the prefix of XLIFF's own elements in this file, "" or as "x:".
    form: the inline elements of this version.
    tags: finds what is written as text and is a code, too: &lt;b> is no word.
    preserves_space: whether line breaks and tabs in it are more than white space."""
    raw = content.decode()
    if "<" not in raw:
        text = Text(unescaped(raw))
    else:
        text = join_parts(_Flow(_TOKEN.findall(raw), prefix, form).parts())
    if preserves_space:
        text = with_line_breaks(text)
    with_all = with_tags(text, tags)
    return clean_codes(with_all if len(with_all.codes) <= MAX_CODES else text)[0]


def content_of(text: Text, form: Form) -> str:
    """What `text_of` makes the same text of.

    text: the text, whose codes are of this form or of none.
    form: the inline elements of this version."""
    return "".join(
        escaped(part) if isinstance(part, str) else _markup(part[0], form) for part in text.parts()
    )


def candidate_of(text: Text, allowed_codes: Sequence[Code], prefix: str, form: Form) -> str:
    """The content of a <source> or <target> of a match for a unit. Codes that the unit has stay as
    they are; others are placeholders that show their markup.

    text: the text of the match.
    allowed_codes: the codes of the unit.
    prefix: the prefix of XLIFF's own elements in this file.
    form: the inline elements of this version."""
    if not refusal(text, allowed_codes, form):
        return content_of(text, form)
    parts = list[str]()
    for number, part in enumerate(text.parts(), 1):
        if isinstance(part, str):
            parts.append(escaped(part))
        elif part[0].form:
            parts.append(form.candidate(prefix, number, part[0].markup))
        else:
            parts.append(escaped(part[0].markup))
    return "".join(parts)


def new_matches(matches: Iterable[bytes], unit: bytes) -> list[bytes]:
    """The matches that a unit does not have yet, from whatever memory: a memory may have been
    renamed since an earlier run.

    matches: as elements.
    unit: the bytes of the unit."""
    unit = _ORIGIN.sub(rb"\1", unit)
    return [match for match in matches if _ORIGIN.sub(rb"\1", match) not in unit]


def refusal(text: Text, allowed_codes: Sequence[Code], form: Form) -> str:
    """Why a text cannot be written into a unit, in words; "" where it can. Each of its codes has to
    be a code of the unit, no oftener than there, and those that are around text have to be nested.

    text: the text.
    allowed_codes: the codes of the unit.
    form: the inline elements of this version."""
    remaining = Counter(code.markup for code in allowed_codes if code.form == form.name)
    inside = list[str]()
    for code in text.codes:
        if not code.form:
            continue
        shown = repr(code.markup[:60])
        if code.form != form.name or not remaining[code.markup]:
            return Reason("the code {code} is not in its source, or not so often", code=shown)
        remaining[code.markup] -= 1
        if code.markup.startswith("</"):
            if not inside or inside.pop() != code.markup[2:-1].strip():
                return Reason("the code {code} closes what is not open", code=shown)
        elif code.kind == "open" and _is_start_tag(code.markup):
            inside.append(re.split(r"[\s>]", code.markup[1:], maxsplit=1)[0])
    return Reason("the code {code} is not closed", code=f"<{inside[-1]}>") if inside else ""


def unescaped(raw: str) -> str:
    """The text that stands between tags.

    raw: what stands there."""
    if "\r" in raw:
        raw = _LINE_END.sub("\n", raw)
    return _REFERENCE.sub(_character, raw) if "&" in raw else raw


def plain_of(content: bytes) -> str:
    """The text of an element, without tags and comments.

    content: the bytes inside the element."""
    tokens = _TOKEN.findall(content.decode())
    return "".join(_text(token) for token in tokens)


@lru_cache(4096)
def tag(token: str) -> tuple[str, Attributes]:
    """The name and the attributes of a start tag, with their prefixes.

    token: the start tag."""
    name = re.split(r"[\s/>]", token[1:], maxsplit=1)[0]
    return name, {key: unescaped(value[1:-1]) for key, value in _ATTRIBUTE.findall(token)}


def _character(match: re.Match[str]) -> str:
    name = match[1]
    if name[0] != "#":
        return _ENTITIES.get(name, match[0])  # an attribute may name an entity of a DTD
    return chr(int(name[2:], 16) if name[1] == "x" else int(name[1:]))


def _text(token: str) -> str:
    if token.startswith("<"):
        return _LINE_END.sub("\n", token[9:-3]) if token.startswith("<![CDATA[") else ""
    return unescaped(token)


def _markup(code: Code, form: Form) -> str:
    return code.markup if code.form == form.name else escaped(code.markup)


def _is_start_tag(markup: str) -> bool:
    token = _TOKEN.match(markup)
    return token is not None and token[0] == markup and not markup.endswith("/>")


class _Flow:
    """Tokens of well-formed XML as parts of a text."""

    def __init__(self, tokens: list[str], prefix: str, form: Form) -> None:
        self._tokens, self._prefix, self._form = tokens, prefix, form
        self._ends = dict[int, int]()  # which token closes which
        waiting = list[int]()
        for index, token in enumerate(tokens):
            if token.startswith("</"):
                self._ends[waiting.pop()] = index
            elif token.startswith("<") and token[1] not in "!?" and not token.endswith("/>"):
                waiting.append(index)

    def parts(self) -> list[Part]:
        return self._parts(0, len(self._tokens), "")

    def _parts(self, index: int, end: int, last: str) -> list[Part]:
        """`last`: the character before them."""
        parts = list[Part]()
        while index < end:
            token = self._tokens[index]
            if token.startswith("<") and token[1] not in "!?":
                close = self._ends.get(index, index)
                new = self._element(index, close, last)
                index = close
            else:
                new = [_text(token)]
            for part in new:
                text = part if isinstance(part, str) else part[1]
                last = text[-1:] or last
            parts += new
            index += 1
        return parts

    def _element(self, index: int, close: int, last: str) -> list[Part]:
        full_name, attributes = tag(self._tokens[index])
        name = full_name.removeprefix(self._prefix)
        core = full_name.startswith(self._prefix) and ":" not in name
        if core and name in self._form.containers and index < close:
            return self._container(name, attributes, index, close, last)
        markup = "".join(self._tokens[index : close + 1])
        kind, pair = self._form.half(name, attributes) if core else ("standalone", "")
        spaced = kind == "standalone" and self._spaced(name, attributes, close, last)
        code = _code(kind, markup, pair, self._form, attributes)
        return [(code, " " if spaced else "")]

    def _container(
        self, name: str, attributes: Attributes, index: int, close: int, last: str
    ) -> list[Part]:
        inside = self._parts(index + 1, close, last)
        if (
            name == "mrk"
            and _is_protected(attributes)
            and (plain := clean(join_parts(inside).plain)[0])
        ):
            markup = "".join(self._tokens[index : close + 1])
            return [(_code("placeholder", markup, "", self._form, attributes), plain)]
        pair = f"{name} {attributes.get('id', '')}"
        opening = _code("open", self._tokens[index], pair, self._form, attributes)
        closing = _code("close", self._tokens[close], pair, self._form, attributes)
        return [(opening, ""), *inside, (closing, "")]

    def _spaced(self, name: str, attributes: Attributes, close: int, last: str) -> bool:
        if name in ("g", "pc", "mrk", "cp"):
            return False
        if "lb" in (attributes.get("ctype"), attributes.get("subType", "").removeprefix("xlf:")):
            return True
        following = islice(self._tokens, close + 1, None)
        next_token = next(
            (token for token in following if _text(token) or not token.startswith(("<!", "<?"))), ""
        )
        return last.isalnum() and _text(next_token)[:1].isalnum()


def _is_protected(attributes: Attributes) -> bool:
    return attributes.get("mtype") == "protected" or attributes.get("translate") == "no"


def _code(kind: Kind, markup: str, pair: str, form: Form, attributes: Attributes) -> Code:
    movable = attributes.get("canReorder", "yes") == "yes"
    droppable = attributes.get("canDelete") == "yes"
    return Code(0, kind, markup, pair, form.name, movable=movable, droppable=droppable)


def _half1(name: str, attributes: Attributes) -> tuple[Kind, str]:
    pair = attributes.get("rid") or attributes.get("id", "")
    match name, attributes.get("pos"):
        case "bx", _:
            return "open", f"x {pair}"
        case "ex", _:
            return "close", f"x {pair}"
        case "bpt", _:
            return "open", f"b {pair}"
        case "ept", _:
            return "close", f"b {pair}"
        case "it", "open":
            return "open", ""
        case "it", "close":
            return "close", ""
        case _:
            return "standalone", ""


def _half2(name: str, attributes: Attributes) -> tuple[Kind, str]:
    pair = f"{attributes.get('id', '')}"
    start = attributes.get("startRef")
    match name:
        case "sc":
            return "open", f"sc {pair}"
        case "ec":
            return "close", f"sc {start}" if start else ""
        case "sm":
            return "open", f"sm {pair}"
        case "em":
            return "close", f"sm {start}" if start else ""
        case _:
            return "standalone", ""


def _candidate1(prefix: str, number: int, markup: str) -> str:
    return f'<{prefix}ph id="{number}">{escaped(markup)}</{prefix}ph>'


def _candidate2(prefix: str, number: int, markup: str) -> str:
    return f'<{prefix}ph id="{number}" disp="{escaped_attribute(markup)}"/>'


XLIFF1 = Form("xliff1", frozenset({"g", "mrk"}), _half1, _candidate1)
XLIFF2 = Form("xliff2", frozenset({"pc", "mrk"}), _half2, _candidate2)
