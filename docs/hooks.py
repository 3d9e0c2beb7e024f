"""What mkdocs does beside showing docs/: adds the READMEs and the reference, and mends links.

The pages are written to be read where they lie. A link that leaves what the site has becomes the
name of the file.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from python_reference import python  # mkdocs looks beside its hooks while it reads them
from reference import command_line

ROOT = Path(__file__).resolve().parent.parent

# Where what lies outside docs/ stands on the site.
ADDED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/search_growth.svg": "folders/search_growth.svg",
    **{
        f"{folder}/README.md": f"folders/{folder}.md"
        for folder in ("benchmarks", "eval", "index", "memories", "models", "tests")
    },
}
SOURCES = {page: source for source, page in ADDED.items()}
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
log = logging.getLogger("mkdocs.plugins.tmnmt")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that do not lie in docs/."""
    for source, page in ADDED.items():
        files.append(
            File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8"))
        )
    files.append(File.generated(config, "reference/command-line.md", content=command_line()))
    files.append(File.generated(config, "reference/python.md", content=python()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links as they are in the repository become links of the site."""
    at = page.file.src_uri
    source = SOURCES.get(at, f"docs/{at}")
    if at == "index.md":
        page.meta["hide"] = ["navigation"]  # the tabs lead on, and the picture has room
    return LINK.sub(lambda link: _mended(link, source, at), markdown)


def _mended(link: re.Match[str], source: str, at: str) -> str:
    text, target, anchor = link["text"], link["target"], link["anchor"] or ""
    if re.match(r"\w+:", target):
        return link[0]
    found = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if (ROOT / found).is_dir() and f"{found}/README.md" in ADDED:
        found += "/README.md"
    if not (ROOT / found).exists():
        log.warning("%s links to %s, which is not there", source, target)
    page = ADDED.get(found, found.removeprefix("docs/") if found.startswith("docs/") else "")
    if not page:
        return text if text == found or text.startswith("`") else f"{text} (`{found}`)"
    return f"[{text}]({posixpath.relpath(page, posixpath.dirname(at) or '.')}{anchor})"
