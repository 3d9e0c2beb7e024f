"""The strings of a file as texts with codes, and texts as strings: for formats whose strings have
no markup of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tmnmt.codes.placeholders import ALL_FINDERS, Finder, by_pattern, with_placeholders
from tmnmt.codes.record import Code, Text
from tmnmt.codes.tags import Tags, html_tags, with_tags
from tmnmt.files.unit import State, Unit, confirmation_of
from tmnmt.formats.clean import MAX_TOKENS, too_long
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.formats.tmx_codes import MAX_CODES

TOO_MANY = f"more than {MAX_CODES:,} codes"
MAX_STRING = 10_000_000  # characters, as bytes of a unit of TMX

# Between words; at the ends of a text it is blank. Tabs make columns.
_ENTITY = by_pattern(r"&(?:[A-Za-z]{2,8}|#\d{1,7}|#x[0-9A-Fa-f]{1,6});")  # where there are tags
_LINE_BREAK = by_pattern(r"(?<=\S)[^\S\n\t]*+[\n\t]\s*+(?=\S)", movable=False)


def text_of(
    string: str,
    finders: Iterable[Finder] = ALL_FINDERS,
    breaks: bool = True,
    tags: Tags = html_tags,
) -> Text:
    """A string as a text, with a code for every tag and placeholder. `written` is the string but
    for control characters.

    string: the string.
    finders: what finds placeholders.
    breaks: whether every line break or tab between words is a code, too, since lists of options
    need them.
    tags: what finds tags."""
    tagged, finders = with_tags(Text(string), tags), list(finders)
    fixed = [_is_fixed(code, finders) for code in tagged.codes]
    codes = [replace(code, movable=not no) for code, no in zip(tagged.codes, fixed, strict=True)]
    extra = ([_ENTITY] if codes else []) + ([_LINE_BREAK] if breaks else [])
    marked = with_placeholders(Text(tagged.plain, tuple(codes)), [*finders, *extra])
    return clean_codes(Text(marked.plain, tuple(map(_alone, marked.codes))))[0]


def with_line_breaks(text: Text) -> Text:
    """A text with a code for every line break or tab between words, for formats that keep these
    where they are told to.

    text: the text."""
    marked = with_placeholders(text, [_LINE_BREAK])
    return Text(marked.plain, tuple(map(_alone, marked.codes)))


def _is_fixed(tag: Code, finders: Iterable[Finder]) -> bool:
    """Whether a tag has a placeholder inside that must keep its order, as %s in a link."""
    return any(not place.movable for finder in finders for place in finder(tag.markup))


def unit_of(
    source: str,
    target: str = "",
    finders: Iterable[Finder] = ALL_FINDERS,
    *,
    breaks: bool = True,
    tags: Tags = html_tags,
    state: State = "new",
    id: str = "",
    context: str = "",
    notes: tuple[str, ...] = (),
    line: int = 0,
) -> Unit:
    """A unit of strings, which is locked where it cannot be translated.

    source: the string of the source.
    target: the string of the target; "" where there is none.
    finders: what finds placeholders.
    breaks: whether every line break or tab between words is a code.
    tags: what finds tags.
    state: the state of the unit.
    id: its name in the file.
    context: what tells it from another unit of the same source.
    notes: what the file says of it for translators.
    line: the line where it begins, from 1."""
    if max(len(source), len(target)) > MAX_STRING:
        problem = f"longer than {MAX_STRING // 1_000_000} MB"
        return Unit(Text(""), None, "locked", id, context, notes, line, problem)
    texts = [
        text_of(string, finders, breaks, tags) if string else None for string in (source, target)
    ]
    unit = Unit(texts[0] or Text(""), texts[1], state, id, context, notes, line)
    return limited(replace(unit, confirmation=confirmation_of(state)))


def limited(unit: Unit) -> Unit:
    """A unit as it is, or locked where its source is longer than a segment may be.

    unit: the unit."""
    problem = ""
    if len(unit.source.codes) > MAX_CODES:
        problem = TOO_MANY
    elif too_long(unit.source.plain):
        problem = f"more than {MAX_TOKENS:,} tokens"
    return replace(unit, state="locked", problem=problem, confirmation="none") if problem else unit


def _alone(code: Code) -> Code:
    return code if code.markup.strip() else replace(code, kind="standalone")


def string_of(text: Text) -> str:
    """The string of a text. Codes of another format, as a match may have, leave what they cover.

    text: the text."""
    return "".join(
        part if isinstance(part, str) else part[1] if part[0].form else part[0].markup
        for part in text.parts()
    )
