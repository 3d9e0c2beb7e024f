"""Names of the package are nouns for things and verbs for what is done: not pronouns, prepositions
or bare participles, which say nothing without the line that they stand in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import tmnmt

PACKAGE = Path(tmnmt.__file__).parent
MOST = 0.005  # of all names; the fields of files and options of the command line keep theirs
PRONOUNS = """
    one ones other others another each every either neither both all any some none own it its itself
    they them their this that these those which what who whom whose such same more most less least
    few many much several everything anything nothing something
"""
PREPOSITIONS = """
    at of in on by to from with without within before after behind beside besides between beyond
    above below under over among around about against across along near off onto into out through
    toward towards until since for as than like per via here there where when while then again ahead
    apart away back once ever still yet too also only
"""
PARTICIPLES = """
    asked given taken made done said told known seen found shown kept held left lost put got gone
    come brought sent meant read written drawn chosen begun opened closed used wanted needed called
    named counted looked moved turned worked tried fed led lent spelt spoken thought understood
    wished noted joined learned learnt trained heard felt won paid sold bought built broken driven
    fallen grown hurt laid lain met proven sat slept stood struck sworn swept taught thrown torn
"""
WORDS = {*PRONOUNS.split(), *PREPOSITIONS.split(), *PARTICIPLES.split()}
VERBS = {"read", "put", "come", "open"}  # good names of functions


def names(source: str) -> Iterator[tuple[int, str, bool]]:
    """All that `source` gives a name to: line, name, and whether it is that of a function."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name, False
            case ast.arg(arg=name):
                yield node.lineno, name, False
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name, True
            case ast.ClassDef(name=name):
                yield node.lineno, name, False


def is_vague(name: str, is_function: bool) -> bool:
    word = name.strip("_").lower()
    return word in WORDS and not name.startswith("__") and not (is_function and word in VERBS)


def test_names_say_what_they_are_of() -> None:
    total, vague = 0, list[str]()
    for path in sorted(PACKAGE.rglob("*.py")):
        for line, name, is_function in names(path.read_text(encoding="utf-8")):
            total += 1
            if is_vague(name, is_function):
                vague.append(f"{path.relative_to(PACKAGE)}:{line}: {name}")
    assert len(vague) <= MOST * total, "\n".join(vague)


def test_such_names_are_seen_wherever_they_stand() -> None:
    source = (
        "def asked(before): pass\nclass Done:\n    kept: int = 0\nself._own = 1\n"
        "def read(path): pass\nkept_pairs = 2\n__all__ = []"
    )
    vague = [name for _, name, is_function in names(source) if is_vague(name, is_function)]
    assert len(WORDS) >= 80 and sorted(vague) == ["Done", "_own", "asked", "before", "kept"]
