"""The texts of the server's pages: those that their files have, in English, what the server answers
to them, and those that a script has outside of `phrase`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path

from places import ROOT

from tmnmt.formats.text import PACKED_KINDS, UNREAD

STATIC = ROOT / "tmnmt" / "serve" / "static"
SERVE = STATIC.parent
# modules whose messages only programs get: the pages send no such requests
_FOR_PROGRAMS = (
    *("api_admin", "api_request", "descriptions", "document_jobs", "fields", "http_error"),
    *("jobs", "languages", "mcp_server", "mcp_tools", "openapi"),
)
_REFUSING = {
    "Refused": 2,
    "wrong": 0,
    "unknown": 0,
    "_too_large": 0,
    "Reason": 0,
}  # which argument is the message
# errors of the core, whose message has places where it is given values
_RAISED = {"FormatError": 0, "UsageError": 0, "Reason": 0}
_PLACED = re.compile(r'(?:Error|Reason)\(\s*(?:"[^"\n]*\{|message, )')
_ATTRIBUTES = ("aria-label", "title", "placeholder")
_PHRASE = re.compile(r'phrase\("((?:[^"\\]|\\.)*)"')
_COMMENT = re.compile(r"/\*.*?\*/|(?:^|(?<=\s))//[^\n]*", re.S)
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
_PLACE = re.compile(r"\$\{[^{}]*\}")
# what a person reads: a sentence, several words, or one with a capital; names of classes have none
_READ = re.compile(
    r"[A-Z][a-z]+ [a-z]|[a-z] [a-z]+[.,:…]|[A-Z][a-z]+[.…]$|\b(?:the|of|is|was|and|to) [a-z]"
    r"|^[A-Z][a-z]+ ?$"
)
# names of keys, of a kind of key of the server, and of a language in itself
_OTHER = ("Enter", "Escape", "Tab", "Home", "End", "Digit", "Key", "Ctrl", "Bearer", "English")


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts = list[str]()
        self._open = list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "input"):
            self._open.append(tag)
        self.texts += [value for name, value in attrs if name in _ATTRIBUTES and value]

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        words = data.split()
        if "kbd" in self._open:  # of keys the long names alone are words
            self.texts += [word for word in words if len(word) > 3 or word == "Esc"]
        else:
            self.texts.append(" ".join(words))


def of_pages() -> set[str]:
    """Of the HTML files, where they have letters."""
    found = set[str]()
    for path in STATIC.glob("*.html"):
        reader = _Texts()
        reader.feed(path.read_text(encoding="utf-8"))
        found |= {text for text in reader.texts if re.search("[A-Za-z]{2}", text)}
    return found - {"tmnmt"}


def of_scripts() -> set[str]:
    """Of the scripts, inside of `phrase`."""
    texts = (_code(path) for path in STATIC.glob("*.js"))
    return {_unescaped(text) for code in texts for text in _PHRASE.findall(code)}


def of_core() -> set[str]:
    """What a page tells of a file that cannot be read: messages of errors that name the places of
    their values, and what files are that are no text."""
    found = {*PACKED_KINDS.values(), UNREAD}
    for path in (ROOT / "tmnmt").rglob("*.py"):
        if not path.is_relative_to(SERVE):
            text = path.read_text(encoding="utf-8")
            if _PLACED.search(text):
                tree = ast.parse(text)
                found |= {m for node in ast.walk(tree) for m in _message(node, tree, _RAISED)}
    return found


def of_server() -> set[str]:
    """What the server answers to requests of its pages that it refuses."""
    found = of_core()
    for path in [*SERVE.glob("*.py"), *SERVE.glob("workspace/*.py")]:
        if path.stem not in _FOR_PROGRAMS:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found |= {text for node in ast.walk(tree) for text in _message(node, tree)}
    return found


def _message(
    node: ast.AST, tree: ast.Module, raising: Mapping[str, int] = _REFUSING
) -> Iterator[str]:
    """The messages that a call may have: as they stand, by a choice, or by a name that the function
    gives them."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return
    index = raising.get(node.func.id)
    if index is None or len(node.args) <= index:
        return
    if node.func.id.endswith("Error") and not node.keywords:  # of the core, without places
        return
    message = node.args[index]
    values = [message]
    if isinstance(message, ast.Name):
        values = [
            assigned.value
            for assigned in ast.walk(tree)
            if isinstance(assigned, ast.Assign)
            and any(isinstance(to, ast.Name) and to.id == message.id for to in assigned.targets)
        ]
    for value in values:
        yield from _constants(value)


def _constants(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.IfExp | ast.BoolOp):
        parts = [value.body, value.orelse] if isinstance(value, ast.IfExp) else value.values
        for part in parts:
            yield from _constants(part)


def outside() -> Iterator[str]:
    """What a script has for people outside of `phrase`, with the name of its file."""
    for path in sorted(STATIC.glob("*.js")):
        for literal in _LITERAL.finditer(_PHRASE.sub("", _code(path))):
            text = _PLACE.sub("", literal[1] or literal[2] or "")
            if text.strip() not in _OTHER and _READ.search(text):
                yield f"{path.name}: {text}"


def _code(path: Path) -> str:
    return _COMMENT.sub("", path.read_text(encoding="utf-8"))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def main() -> None:
    """Prints what is outside, and what has no translation."""
    import json

    for line in outside():
        print("outside", line)
    french = json.loads((STATIC / "phrases.fr.json").read_text(encoding="utf-8"))
    for text in sorted((of_pages() | of_scripts() | of_server()) - set(french)):
        print(json.dumps(text, ensure_ascii=False))


if __name__ == "__main__":
    main()
