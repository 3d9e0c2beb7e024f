"""TBX (ISO 30042): Core, Basic and Min, of 2008 (martif) and 2019 (tbx), in both styles.

Every entry is parsed by itself (`tmnmt.formats.elements`): no DOCTYPE, so no entities but XML's
own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BufferedReader
from typing import TYPE_CHECKING

from tmnmt.errors import FormatError
from tmnmt.formats.encoding import utf8, xml_encoding
from tmnmt.formats.languages import listed, normal_code, rank
from tmnmt.terms.term import Term, check_text, form

if TYPE_CHECKING:
    from lxml.etree import _Element

ROOTS = ("martif", "tbx", "TBX")
_ENTRIES = (b"termEntry", b"conceptEntry")
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_PREFIX = re.compile(rb"<([\w.-]+):[\w.-]")
_CONTEXTS = ("subjectField", "definition", "context")
_CASE, _VERBATIM = ("caseSensitive",), ("doNotTranslate",)
_YES = ("yes", "true")
_STATUS = ("administrativeStatus", "normativeAuthorization")
_FORBIDDEN = ("deprecated", "superseded", "forbidden", "obsolete")


def read_tbx(stream: BufferedReader, label: str, src_lang: str, tgt_lang: str) -> Iterator[Term]:
    """The terms of every entry that has both languages. A deprecated or superseded target is a
    forbidden one.

    stream: the bytes of the file.
    label: what messages call the file.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.

    Raises FormatError for an entry that is no XML, and where no entry has both languages."""
    from tmnmt.formats.elements import elements

    text = utf8(stream, *xml_encoding(stream.peek(1), label))
    langs, has_terms = set[str](), False
    for element in elements(text, _ENTRIES):
        place = f"{label}, line {element.line}"
        if element.problem:
            raise FormatError(f"{place}: {element.name.decode()}: {element.problem}")
        entry = _entry(element.data, place)
        sets = [
            (node.get(_LANG, node.get("lang", "")), node) for node in _find_elements(entry, *_SETS)
        ]
        langs.update(lang for lang, _ in sets)
        sources, targets = (
            [node for lang, node in sets if _is_of(lang, requested)]
            for requested in (src_lang, tgt_lang)
        )
        for term in _terms(sources, targets, entry, place):
            has_terms = True
            yield term
    if not has_terms:
        raise FormatError(
            f"{label}: no terms from {src_lang} to {tgt_lang}; it has "
            f"{listed(langs) if langs else 'no entries'}"
        )


_SETS = ("langSet", "langSec")
_GROUPS = ("tig", "ntig", "termSec")


def _entry(data: bytes, place: str) -> _Element:
    from tmnmt.formats.elements import Malformed, parsed

    check_text(data.decode("utf-8", "replace"), place)
    prefixes = sorted(set(_PREFIX.findall(data)))
    namespaces = b" ".join(b'xmlns:%b="urn:%b"' % (name, name) for name in prefixes)
    try:
        entry, repaired = parsed(data, namespaces)
    except Malformed as error:
        raise FormatError(f"{place}: an entry that is no XML: {error}") from error
    if repaired:
        raise FormatError(f"{place}: an entry with characters that XML does not allow")
    return entry


def _find_elements(node: _Element, *names: str) -> list[_Element]:
    """The elements below of these names, whatever their namespace."""
    return [element for element in node.iter("{*}*") if _name(element) in names]


def _name(node: _Element) -> str:
    return str(node.tag).rpartition("}")[2]


def _is_of(lang: str, requested: str) -> bool:
    return bool(lang) and rank(normal_code(lang), normal_code(requested)) is not None


def _context(entry: _Element, place: str) -> str:
    nodes = _typed(entry, "descrip", _CONTEXTS)
    return "; ".join(dict.fromkeys(form(_text(node), place) for node in nodes))


def _note(entry: _Element, place: str) -> str:
    return "; ".join(form(_text(node), place) for node in _find_elements(entry, "note"))


def _typed(node: _Element, name: str, types: tuple[str, ...]) -> list[_Element]:
    """The elements below of some types: those that are called so, and those whose `type` says
    so."""
    return [
        element
        for element in _find_elements(node, name, *types)
        if _name(element) in types or element.get("type") in types
    ]


def _text(node: _Element) -> str:
    return "".join(map(str, node.itertext()))


def _terms(
    sources: list[_Element], targets: list[_Element], entry: _Element, place: str
) -> Iterator[Term]:
    allowed, forbidden = list[str](), list[str]()
    for group in (group for node in targets for group in _find_elements(node, *_GROUPS)):
        (forbidden if _is_forbidden(group) else allowed).extend(_forms(group, place))
    for group in (group for node in sources for group in _find_elements(node, *_GROUPS)):
        for source in _forms(group, place):
            verbatim = _has_flag(group, _VERBATIM)
            term = Term(
                source,
                (source,) if verbatim else tuple(allowed),
                () if verbatim else tuple(forbidden),
                _has_flag(group, _CASE),
                _note(entry, place),
                _context(entry, place),
                verbatim,
            )
            if term.targets or term.forbidden:
                yield term


def _forms(group: _Element, place: str) -> list[str]:
    return [text for node in _find_elements(group, "term") if (text := form(_text(node), place))]


def _has_flag(group: _Element, types: tuple[str, ...]) -> bool:
    nodes = _typed(group, "termNote", types)
    return any(_text(node).strip().lower() in _YES for node in nodes)


def _is_forbidden(group: _Element) -> bool:
    statuses = [_text(node).lower() for node in _typed(group, "termNote", _STATUS)]
    return any(word in text for text in statuses for word in _FORBIDDEN)
