"""JRC-Acquis as it is published: links, and archives of the documents that they point into."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable
from html import escape
from pathlib import Path

HEADER = "<teiHeader><p>no paragraph of the text</p></teiHeader>"


Members = list[tuple[str, bytes]]


def tei(celex: str, lang: str, paragraphs: dict[str, str]) -> tuple[str, bytes]:
    """A document as it is published, with its place in the archive; texts are XML."""
    name = f"jrc{celex.replace('(', '_').replace(')', '')}-{lang}"
    (first, head), *rest = paragraphs.items()
    body = "\n".join(f'<p n="{number}">{text}</p>' for number, text in rest)
    xml = (
        f'<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TEI.2 SYSTEM "tei2.dtd">\n'
        f'<TEI.2 id="{name}" n="{escape(celex)}" lang="{lang}">{HEADER}<text><body>'
        f'<head n="{first}">{head}</head><div type="body">{body}</div></body></text></TEI.2>'
    )
    return f"{lang}/{celex[1:5]}/{name}.xml", xml.encode()


def write_archive(path: Path, members: Iterable[tuple[str, bytes]]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def publish(
    folder: Path, divs: dict[str, list[tuple[str, str]]], texts: dict[str, Members]
) -> Path:
    """jrc-en-fr.xml.gz with these links (type, xtargets) and an archive for every language."""
    body = "".join(
        f'<div type="body" n="{celex}" select="en fr"><linkGrp>'
        + "".join(f'<link type="{kind}" xtargets="{targets}"/>\n' for kind, targets in links)
        + "</linkGrp></div>"
        for celex, links in divs.items()
    )
    path = folder / "jrc-en-fr.xml.gz"
    path.write_bytes(gzip.compress(f'<TEI.2 id="jrc-en-fr" select="en fr">{body}</TEI.2>'.encode()))
    for lang, members in texts.items():
        write_archive(folder / f"jrc-{lang}.tgz", members)
    return path


def small(folder: Path, links: list[tuple[str, str]] | None = None) -> Path:
    """One document of three paragraphs, aligned by `links`."""
    texts = {
        lang: [
            tei(
                "31970L0001",
                lang,
                {"1": f"{lang} title", "2": f"{lang} %quot%two%quot% caf%eacute%", "3": "x"},
            )
        ]
        for lang in ("en", "fr")
    }
    return publish(folder, {"31970L0001": links or [("1:1", "1;1"), ("1:1", "2;2")]}, texts)
