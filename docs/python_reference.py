"""The page of all public names of Python, written from the program whenever the site is built.

A class is read from its source: its docstring, its fields with the comments beside them, and its
public methods. What a docstring says of a field or a parameter, as `name: what it is`, goes into a
table or a list.

python docs/python_reference.py        # prints the page
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tmnmt.config.option import Option, Options, groups_of, options_of

# Other names that stand in the types of parameters and fields, by the modules that define them.
TYPES = {
    "tmnmt.checks": ("OnChecks",),
    "tmnmt.codes.record": ("Kind", "Pair", "Part", "Source"),
    "tmnmt.index.named_memories": ("Named",),
    "tmnmt.index.base": ("Index",),
    "tmnmt.progress": ("ReadProgress",),
    "tmnmt.segments": ("ReadSource",),
}
WIDEST_SIGNATURE = 90  # characters; a longer one has a line for each parameter
_RAISES = re.compile(r"(?:^|(?<=[.;)])\s)(?=Raises )")
_FIELD_HEAD = ("| field | type | default | what it is |", "|---|---|---|---|")
_OPTION_HEAD = ("| option | what it may be | default | what it is for |", "|---|---|---|---|")


class Entry(NamedTuple):
    """A field or a parameter, as the source has it; `text`: what it is."""

    name: str
    kind: str
    default: str
    text: str


class Method(NamedTuple):
    """A public method or property; `signature`: "" of a property."""

    name: str
    signature: str
    kind: str
    prose: list[str]
    parameters: list[Entry]


class Documented(NamedTuple):
    """A public class."""

    name: str
    prose: list[str]
    fields: list[Entry]
    methods: list[Method]


def public_classes() -> Iterator[type]:
    """The classes that can be imported from `tmnmt`, by name, without those of `TYPES`."""
    import tmnmt

    others = {name for names in TYPES.values() for name in names}
    for name in sorted({*tmnmt.__all__} - others):
        if isinstance(found := getattr(tmnmt, name), type):
            yield found


def python() -> str:
    """The page, in Markdown."""
    text = [
        "# Python",
        "These names can be imported from `tmnmt`. Everything else may change without notice.",
    ]
    for kind in public_classes():
        text += _options(kind) if issubclass(kind, Options) else _written(documented(kind))
    text += [
        "## Other types",
        "These names stand in the types above.",
    ]
    rows = sorted(row for module, names in TYPES.items() for row in _types_of(module, names))
    text.append("\n".join(["| type | module | what it is |", "|---|---|---|", *rows]))
    return "\n\n".join(text) + "\n"


def documented(kind: type) -> Documented:
    """What the source of a class says of it."""
    source = textwrap.dedent(inspect.getsource(kind))
    tree = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    declared = [node for node in tree.body if isinstance(node, ast.AnnAssign)]
    names = [ast.unparse(node.target) for node in declared]
    prose, texts = parsed(ast.get_docstring(tree) or "", names)
    lines = source.splitlines()
    fields = [
        Entry(
            name,
            ast.unparse(node.annotation),
            _default(node.value),
            texts.get(name) or _comment(lines, node),
        )
        for name, node in zip(names, declared, strict=True)
        if not name.startswith("_")
    ]
    methods = [
        _method(node)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name[0] != "_"
    ]
    return Documented(kind.__name__, prose, fields, methods)


def parsed(docstring: str, names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The paragraphs of a docstring, and what it says of each of the names. A text of a name begins
    with `name: `, at the start of a line or in backticks, and ends before the next one, or at the
    end of the paragraph; what is raised is a paragraph of its own."""
    paragraphs, texts = list[str](), dict[str, str]()
    one = "|".join(map(re.escape, names)) or "(?!)"
    quoted = rf"`(?:{one})`(?:(?:, | and )`(?:{one})`)*"
    marker = re.compile(rf"(?:^(?P<bare>{one})|(?:^|(?<=[.;)\"])\s)(?P<quoted>{quoted})):\s", re.M)
    for paragraph in docstring.split("\n\n"):
        starts = [*marker.finditer(paragraph)]
        head = paragraph[: starts[0].start()] if starts else paragraph
        ends = [*(start.start() for start in starts), len(paragraph)][1:] if starts else []
        raised = list[str]()
        for start, end in zip(starts, ends, strict=True):
            text, *rest = _RAISES.split(paragraph[start.end() : end], maxsplit=1)
            raised += rest
            for name in re.findall(r"\w+", start["bare"] or start["quoted"].replace(" and ", ", ")):
                texts[name] = _sentence(text)
        paragraphs += [_plain(part) for part in (head, *raised) if part.strip()]
    return paragraphs, texts


def _default(value: ast.expr | None) -> str:
    """A default as it is written; of `field(default=x)` what x is."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        value = next((word.value for word in value.keywords if word.arg == "default"), None)
    return ast.unparse(value) if value is not None else ""


def _types_of(module: str, names: Sequence[str]) -> Iterator[str]:
    """The rows of classes and aliases of a module."""
    import tmnmt

    source = inspect.getsource(importlib.import_module(module))
    homes = {name: "tmnmt" if name in tmnmt.__all__ else module for name in names}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name in names:
            [first, *_] = parsed(ast.get_docstring(node) or "", ())[0]
            yield f"| `{node.name}` | `{homes[node.name]}` | {first} |"
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(target) in names and node.value is not None:
                value = ast.unparse(node.value).replace("|", "\\|")
                what = _comment(source.splitlines(), node)
                name = ast.unparse(target)
                yield f"| `{name}` | `{homes[name]}` | `{value}`: {what} |"


def _comment(lines: Sequence[str], node: ast.Assign | ast.AnnAssign) -> str:
    """The comment behind a field or an alias, else the lines of comment above it."""
    last = node.end_lineno or node.lineno
    behind = lines[last - 1][node.end_col_offset or 0 :].strip()
    if behind.startswith("#"):
        return _sentence(behind[1:])
    above = list[str]()
    for line in reversed(lines[: node.lineno - 1]):
        if not line.strip().startswith("#"):
            break
        above.insert(0, line.strip()[1:].strip())
    return _sentence(" ".join(above))


def _method(node: ast.FunctionDef) -> Method:
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(named) - len(arguments.defaults))
    defaults += arguments.defaults
    declared = [
        *zip(named, defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    declared = [(argument, default) for argument, default in declared if argument.annotation]
    prose, texts = parsed(ast.get_docstring(node) or "", [entry.arg for entry, _ in declared])
    parameters = [
        Entry(
            argument.arg,
            ast.unparse(argument.annotation) if argument.annotation else "",
            _default(default),
            texts.get(argument.arg, ""),
        )
        for argument, default in declared
    ]
    is_property = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
    kind = ast.unparse(node.returns) if node.returns is not None else ""
    signature = "" if is_property else _signature(node, parameters, kind)
    return Method(node.name, signature, kind, prose, parameters)


def _signature(node: ast.FunctionDef, parameters: Sequence[Entry], kind: str) -> str:
    parts = [
        f"{entry.name}: {entry.kind}" + (f" = {entry.default}" if entry.default else "")
        for entry in parameters
    ]
    if node.args.kwonlyargs:
        parts.insert(len(parts) - len(node.args.kwonlyargs), "*")
    line = f"{node.name}({', '.join(parts)}) -> {kind}"
    if len(line) <= WIDEST_SIGNATURE:
        return line
    return f"{node.name}(\n    " + ",\n    ".join(parts) + f",\n) -> {kind}"


def _written(entry: Documented) -> list[str]:
    """A class in Markdown."""
    text = [f"## {entry.name}", *entry.prose]
    if entry.fields:
        text.append("\n".join([*_FIELD_HEAD, *map(_row, entry.fields)]))
    for method in entry.methods:
        text.append(f"### {entry.name}.{method.name}")
        shown = method.signature or f"{method.name}: {method.kind}"
        raised = [part for part in method.prose if part.startswith("Raises ")]
        text += [f"```python\n{shown}\n```", *(p for p in method.prose if p not in raised)]
        if method.parameters:
            text.append("\n".join(map(_listed, method.parameters)))
        text += raised
    return text


def _row(entry: Entry) -> str:
    default = f"`{entry.default}`" if entry.default else ""
    kind = entry.kind.replace("|", "\\|")
    return f"| `{entry.name}` | `{kind}` | {default} | {entry.text.replace('|', chr(92) + '|')} |"


def _listed(entry: Entry) -> str:
    default = f", `{entry.default}` by default" if entry.default else ""
    return f"- `{entry.name}` (`{entry.kind}`{default}): {entry.text}"


def _options(kind: type[Options]) -> list[str]:
    """A class of options in Markdown, with a table for each of its groups."""
    prose, _ = parsed(inspect.getdoc(kind) or "", ())
    text = [f"## {kind.__name__}", *prose]
    for group in groups_of(kind):
        rows = [_option_row(option) for option in options_of(group)]
        text += [f"**{group.title}.** {_plain(inspect.getdoc(group) or '')}"]
        text.append("\n".join([*_OPTION_HEAD, *rows]))
    return text


def _option_row(option: Option) -> str:
    allowed = _cell(option.allowed) + (", or None" if option.optional else "")
    return f"| `{option.name}` | {allowed} | `{option.default!r}` | {_cell(option.description)} |"


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|").replace("*", "\\*").replace("[", "\\[")


def _sentence(text: str) -> str:
    """A text that begins with a capital and ends with a full stop."""
    text = _plain(text).rstrip(" .;")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _plain(text: str) -> str:
    """A text on one line, in which nothing is read as HTML outside of code."""
    parts = " ".join(text.split()).split("`")
    return "`".join(
        part if number % 2 else part.replace("<", "&lt;").replace("*", "\\*")
        for number, part in enumerate(parts)
    )


if __name__ == "__main__":
    print(python())
