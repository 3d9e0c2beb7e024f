"""README and docs: examples and files that are there, a whole reference."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from browser import INSTALL, chromium
from docs_modules import module_of_docs
from places import ROOT
from required import absent

FOLDERS = ("benchmarks", "eval", "index", "memories", "models", "tests")
# `name.py`, and `folder/name.py` of the package, as pages name modules.
MODULE = re.compile(r"`((?:tmnmt/)?(?:[a-z_]+/)*[a-z_]+\.(?:py|js|css))`")
SHORT = ("", "tmnmt/", "tests/", "benchmarks/", "eval/", "models/", "memories/", "index/", "docs/")
# `tmnmt.package.name`, called or not, and what examples import
NAMED = re.compile(r"`(tmnmt(?:\.[A-Za-z_]\w*)+)")
IMPORTED = re.compile(r"^ +from (tmnmt[\w.]*) import ([\w, ]+)", re.M)
FIRST_WORDS = re.compile(r"^    (?:\S+=\S+ |id=\$\()*tmnmt (?P<rest>(?:[^#\n\\]|\\\n)*)", re.M)


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return module_of_docs("reference")


@pytest.fixture(scope="module")
def python_reference() -> ModuleType:
    return module_of_docs("python_reference")


def pages() -> list[Path]:
    """The README, docs/, and the README of every folder."""
    named = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [
        *named,
        *(ROOT / folder / "README.md" for folder in FOLDERS),
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


def commands(page: str) -> Iterator[list[str]]:
    """The commands of `tmnmt` in a page's examples, as a shell would split them."""
    for match in FIRST_WORDS.finditer(page):
        rest = re.sub(r"\\\n|\.\.\.|[\[\]]|\)$", " ", match["rest"].strip())
        yield shlex.split(rest.split(" | ")[0])


def test_commands_of_examples_are_there(reference: ModuleType) -> None:
    known = {name: command for name, command in reference.commands()}
    seen = 0
    for page in pages():
        for example in commands(page.read_text(encoding="utf-8")):
            named = max(
                (name for name in known if f"tmnmt {' '.join(example)} ".startswith(f"{name} ")),
                key=len,
            )
            options = {
                name for one in known[named].params for name in [*one.opts, *one.secondary_opts]
            } | {
                "--help",
                "-h",
            }
            given = {word for word in example if re.match(r"--?[a-z]", word)}
            assert given <= options, f"{page.name}: tmnmt {' '.join(example)}"
            assert named != "tmnmt" or given, (
                f"{page.name}: tmnmt {' '.join(example)} is no command"
            )
            seen += 1
    assert seen > 50


def test_examples_are_read_as_a_shell_would() -> None:
    page = (
        "    tmnmt search --indx x \\\n        -k 3   # a word\n"
        "    id=$(tmnmt memory add --src a)\n"
    )
    assert list(commands(page)) == [
        ["search", "--indx", "x", "-k", "3"],
        ["memory", "add", "--src", "a"],
    ]


def test_files_that_pages_name_are_there() -> None:
    """Beside the page, in a folder of the repository, or in a room of the package."""
    folders = [ROOT / folder for folder in SHORT] + [
        path for path in (ROOT / "tmnmt").rglob("*") if path.is_dir()
    ]
    named = [
        (page, name)
        for page in pages()
        for name in MODULE.findall(page.read_text(encoding="utf-8"))
    ]
    assert len(named) > 50
    assert [
        f"{page.relative_to(ROOT)}: {name}"
        for page, name in named
        if not any((folder / name).exists() for folder in [page.parent, *folders])
    ] == []


def is_there(name: str) -> bool:
    """Whether a dotted name is a module of the package, or leads from one to something in it."""
    module, rest = name, list[str]()
    while True:
        try:
            found: object = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            if "." not in module:
                return False
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
    try:
        for part in rest:
            found = getattr(found, part)
    except AttributeError:
        return False
    return True


def test_names_of_python_that_pages_name_are_there() -> None:
    named = [
        (page, name)
        for page in pages()
        for text in [page.read_text(encoding="utf-8")]
        for name in (
            *NAMED.findall(text),
            *(
                f"{module}.{one}"
                for module, ones in IMPORTED.findall(text)
                for one in re.findall(r"\w+", ones)
            ),
        )
    ]
    assert len(named) > 15 and not is_there("tmnmt.eval.data.leaks.leaks")
    assert [f"{page.name}: {name}" for page, name in named if not is_there(name)] == []


def test_the_reference_has_every_option_of_every_command(reference: ModuleType) -> None:
    page = reference.command_line()
    listed = [name for name, _ in reference.commands()]
    assert {"tmnmt translate", "tmnmt memory edit", "tmnmt evaluate run"} <= {*listed}
    sections = dict(zip(listed, page.split("\n## `")[1:], strict=True))
    for name, command in reference.commands():
        for option in (
            option for one in command.params for option in one.opts if option.startswith("-")
        ):
            assert f"`{option}`" in sections[name]


def test_the_python_reference_describes_every_field_and_parameter(
    python_reference: ModuleType,
) -> None:
    """Of every public name; fields are compared with what the class itself has."""
    import tmnmt
    from tmnmt.config.option import Options

    page = python_reference.python()
    named = re.findall(r"^## (\w+)$", page, re.M)
    others = re.findall(r"^\| `(\w+)` \| `tmnmt` \|", page, re.M)
    assert sorted([*named, *others]) == sorted({*tmnmt.__all__} - {"__version__"})
    for kind in python_reference.public_classes():
        if issubclass(kind, Options):
            continue
        entry = python_reference.documented(kind)
        fields = getattr(kind, "__dataclass_fields__", getattr(kind, "_fields", ()))
        assert [field.name for field in entry.fields] == [*fields]
        described = [*entry.fields, *(p for method in entry.methods for p in method.parameters)]
        assert [field.name for field in described if not field.text] == [], kind
        assert [method.name for method in entry.methods if not method.prose] == [], kind


def test_the_python_reference_explains_every_type(python_reference: ModuleType) -> None:
    """Every name in a type is public, of Python, or in the table of other types."""
    entries = [
        python_reference.documented(kind)
        for kind in python_reference.public_classes()
        if kind.__name__ != "TranslationOptions"
    ]
    methods = [method for entry in entries for method in entry.methods]
    kinds = [field.kind for entry in entries for field in entry.fields]
    kinds += [p.kind for method in methods for p in method.parameters]
    kinds += [method.kind for method in methods]
    names = {name for kind in kinds for name in re.findall(r"\b[A-Z]\w+", kind)}
    page = python_reference.python()
    rows = re.findall(r"^\| `(\w+)` \| `tmnmt[\w.]*` \| (.+) \|$", page, re.M)
    of_python = {"Callable", "Iterable", "Iterator", "None", "Path", "Sequence"}
    public = {kind.__name__ for kind in python_reference.public_classes()}
    assert names - public - of_python == {name for name, _ in rows}
    assert [name for name, text in rows if text.strip().endswith(":")] == []


def test_the_python_reference_has_every_option_with_its_default(
    python_reference: ModuleType,
) -> None:
    from dataclasses import fields

    page = python_reference.python().split("\n## TranslationOptions\n")[1].split("\n## ")[0]
    options = fields(importlib.import_module("tmnmt").TranslationOptions)
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| `(.+)` \| (.+) \|$", page, re.M)
    assert len(options) > 40
    assert {name: default for name, _, default, _ in rows} == {
        option.name: repr(option.default) for option in options
    }
    assert "| `beam` | a whole number, 1 to 1,000 | `5` |" in page


def test_the_python_reference_has_public_methods_alone(python_reference: ModuleType) -> None:
    """All methods of `Translator` and `Session` are for users, and are on the page."""
    import tmnmt

    page = python_reference.python()
    for kind in (tmnmt.Translator, tmnmt.Session):
        public = re.findall(rf"^### {kind.__name__}\.(\w+)$", page, re.M)
        assert {name for name in vars(kind) if not name.startswith("_")} == {*public}
        assert 5 < len(public) <= 12


def test_a_docstring_says_what_fields_and_parameters_are(python_reference: ModuleType) -> None:
    docstring = (
        "Makes a cake.\n\nflour: how much, in\ngrams. Not: none.\n`eggs`, `milk`: as ever.\n\n"
        "oven: its heat. Raises HeatError where it is cold.\n\nRaises ValueError for no flour."
    )
    names = ["flour", "eggs", "milk", "oven"]
    assert python_reference.parsed(docstring, names) == (
        [
            "Makes a cake.",
            "Raises HeatError where it is cold.",
            "Raises ValueError for no flour.",
        ],
        {
            "flour": "How much, in grams. Not: none.",
            "eggs": "As ever.",
            "milk": "As ever.",
            "oven": "Its heat.",
        },
    )


def test_links_lead_to_files_that_are_there() -> None:
    linked = [
        (page, link)
        for page in pages()
        for link in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    ]
    assert len(linked) > 50
    assert [
        f"{page.name}: {link}" for page, link in linked if not (page.parent / link).exists()
    ] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["explain", "desk"])
def test_the_pictures_of_pages_are_made(name: str, tmp_path: Path) -> None:
    """The script finds the word it points at, and the page is as large as the one shown."""
    if chromium() is None:
        absent("browser", f"no Chromium: {INSTALL}")
    made = tmp_path / f"{name}.png"
    subprocess.run(
        [sys.executable, ROOT / "docs" / f"{name}_page.py", "--picture", made],
        check=True,
        timeout=600,
    )
    shown = (ROOT / "docs" / f"{name}.png").read_bytes()
    assert made.read_bytes()[:24] == shown[:24]  # the head of a PNG, with width and height
    assert len(made.read_bytes()) > 0.5 * len(shown)


def test_the_page_of_published_models_has_the_list_that_the_program_knows() -> None:
    module = module_of_docs("published_models")
    assert (ROOT / "docs" / "published-models.md").read_text(encoding="utf-8") == module.page()


def test_the_picture_of_the_overview_is_what_its_script_draws() -> None:
    shown = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    assert shown == module_of_docs("architecture").picture()


def test_the_first_commands_of_the_front_page_fit_a_telephone() -> None:
    """A page of 360 pixels shows some 36 characters of code without scrolling."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    first = re.search(r"(?:^    .*\n)+", page, re.M)
    assert first is not None and first[0].count("tmnmt ") == 3
    assert max(map(len, first[0].splitlines())) - 4 <= 36


def test_the_check_of_contributors_runs_the_whole_check_and_knows_its_words() -> None:
    check = ROOT / "scripts" / "check"
    assert "exec .ci/run" in check.read_text(encoding="utf-8")
    wrong = subprocess.run([check, "quik"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "allowed: quick" in wrong.stderr


def messages() -> Iterator[str]:
    """Every text in the code of the package; a bar stands for each value that is put into it."""
    for path in (ROOT / "tmnmt").rglob("*.js"):
        yield path.read_text(encoding="utf-8")
    for path in (ROOT / "tmnmt").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "|"
                    for part in node.values
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_messages_that_the_questions_quote_are_in_the_code() -> None:
    page = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
    quoted = re.findall("“([^”]+)”", page.replace("\n", " "))
    parts = {part.strip(" ,;:") for text in quoted for part in text.split("…")} - {""}
    assert len(parts) > 15
    known = "\n".join(messages())
    assert [part for part in sorted(parts) if part not in known] == []
