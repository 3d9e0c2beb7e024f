"""The kinds of files that are translated: one table with how each is called, how its files are
named, and which class reads it. Messages, the help of commands and the registry of
`tmnmt.files.opening` are made of it, and tests hold the page and the documentation to it.

The order counts: of the kinds that accept a file the first one opens it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True, slots=True)
class FileKind:
    """One kind.

    title: what messages call such files.
    suffixes: how their names end, in small letters.
    reader: "module:class" of the class that reads and writes them.
    is_bilingual: whether they have sources and targets beside one another.
    mismatch: what messages say of a file that has such a name and is of no such kind; "" where the
    name alone says the kind."""

    title: str
    suffixes: tuple[str, ...]
    reader: str
    is_bilingual: bool = False
    mismatch: str = ""

    def has_name(self, path: PurePath) -> bool:
        """Whether a file is named as those of this kind are.

        path: the file."""
        return path.suffix.lower() in self.suffixes


_XLIFF = (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff")
_DAMAGED = "by its name, and it does not begin so: it may be damaged"

FILE_KINDS: Mapping[str, FileKind] = {
    "xliff2": FileKind("XLIFF", _XLIFF, "tmnmt.files.xliff2:Xliff2", True, f"XLIFF {_DAMAGED}"),
    "xliff1": FileKind("XLIFF", _XLIFF, "tmnmt.files.xliff1:Xliff1", True, f"XLIFF {_DAMAGED}"),
    "po": FileKind("PO", (".po", ".pot"), "tmnmt.files.po:PoFile", True),
    "qt": FileKind(
        "Qt Linguist",
        (".ts",),
        "tmnmt.files.qt:QtFile",
        True,
        "no file of Qt Linguist, which begins with <TS>; a .ts file may also be a program in "
        "TypeScript or a video",
    ),
    "tmx": FileKind("TMX", (".tmx",), "tmnmt.files.tmx:TmxFile", True, f"TMX {_DAMAGED}"),
    "markdown": FileKind(
        "Markdown", (".md", ".markdown", ".mdown", ".mkd"), "tmnmt.files.markdown:MarkdownFile"
    ),
    "mdx": FileKind("MDX", (".mdx",), "tmnmt.files.mdx:MdxFile"),
    "rst": FileKind("reStructuredText", (".rst", ".rest"), "tmnmt.files.rst:RstFile"),
    "html": FileKind("HTML", (".html", ".htm", ".xhtml"), "tmnmt.files.html:HtmlFile"),
    "json": FileKind("JSON", (".json", ".arb"), "tmnmt.files.json:JsonFile"),
    "properties": FileKind(
        "Java properties", (".properties",), "tmnmt.files.properties:PropertiesFile"
    ),
    "strings": FileKind(
        "Apple strings", (".strings",), "tmnmt.files.apple_strings:AppleStringsFile"
    ),
    "xcstrings": FileKind(
        "String Catalogs", (".xcstrings",), "tmnmt.files.string_catalog:StringCatalog", True
    ),
    "stringsdict": FileKind(
        "Apple stringsdict", (".stringsdict",), "tmnmt.files.stringsdict:StringsDict"
    ),
    "android": FileKind(
        "Android strings",
        (".xml",),
        "tmnmt.files.string_tables:AndroidStrings",
        mismatch="XML other than Android's strings: a CAT tool (OmegaT, Okapi Rainbow) extracts "
        "its segments",
    ),
    "resx": FileKind(
        ".NET resources", (".resx", ".resw"), "tmnmt.files.string_tables:ResourceFile"
    ),
    "rails": FileKind(
        "YAML of Rails",
        (".yml", ".yaml"),
        "tmnmt.files.rails:RailsFile",
        mismatch="YAML, which is read as Rails has it: a file begins with its language, as en:",
    ),
    "fluent": FileKind("Fluent", (".ftl",), "tmnmt.files.fluent:FluentFile"),
    "php": FileKind(
        "PHP arrays",
        (".php",),
        "tmnmt.files.php:PhpFile",
        mismatch="PHP, which is read where a line begins with return [ or $lang[",
    ),
    "subtitles": FileKind("subtitles", (".srt", ".vtt"), "tmnmt.files.subtitles:SubtitleFile"),
    "substation": FileKind(
        "SubStation Alpha", (".ass", ".ssa"), "tmnmt.files.substation:SubStationFile"
    ),
    "epub": FileKind(
        "EPUB", (".epub",), "tmnmt.files.publications:EpubFile", mismatch=f"an EPUB {_DAMAGED}"
    ),
    "idml": FileKind(
        "IDML", (".idml",), "tmnmt.files.publications:IdmlFile", mismatch=f"an IDML {_DAMAGED}"
    ),
    "office": FileKind(
        "DOCX, XLSX, PPTX",
        (".docx", ".xlsx", ".pptx"),
        "tmnmt.files.office:OfficeFile",
        mismatch=f"an office document {_DAMAGED}",
    ),
}


def titles(*, only_bilingual: bool = False) -> str:
    """What the kinds are called, in one line: "XLIFF, PO, TMX and HTML".

    only_bilingual: whether only kinds with sources and targets beside one another are named."""
    kinds = (kind for kind in FILE_KINDS.values() if kind.is_bilingual or not only_bilingual)
    *names, last = dict.fromkeys(kind.title for kind in kinds)
    return f"{', '.join(names)} and {last}"
