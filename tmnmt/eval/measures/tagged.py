"""Measures of translations with tags, by Hashimoto et al. 2019, "A High-Quality Multilingual
Dataset for Structured Documentation Translation" (their evaluate.py).

structure accuracy: the share of outputs that are well-formed.
XML-MATCH: the share whose elements, by name and nesting, are those of the reference; attributes do
not count.
XML-BLEU: BLEU of the stretches between tags, each held against its own in the reference; those of
an output that does not match are empty. BLEU is sacrebleu's here, multi-bleu on tokens there.

Lines are the insides of an element: text with &amp;, &lt; and &gt;, and tags."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import unescape

if TYPE_CHECKING:
    from lxml.etree import _Element

_TAG = re.compile(r"<[^<>]*>")


@dataclass(frozen=True)
class Tagged:
    """The measures, in percent, and BLEU of the texts without tags."""

    lines: int
    structure: float
    match: float
    xml_bleu: float
    text_bleu: float


def tagged(translations: Sequence[str], references: Sequence[str]) -> Tagged:
    """The measures of as many lines as references. Raises ValueError for a reference that is not
    well-formed, and where there is no line."""
    from sacrebleu import corpus_bleu

    matches = 0
    whole = 0
    parts = list[tuple[str, str]]()
    for ours, theirs in zip(translations, references, strict=True):
        reference, output = _parsed(theirs), _parsed(ours)
        if reference is None:
            raise ValueError(f"the reference is not well-formed: {theirs[:60]!r}")
        stretches = _stretches(reference)
        output_texts = [""] * len(stretches)
        if output is not None:
            whole += 1
            if _shape(output) == _shape(reference):
                matches += 1
                output_texts = _stretches(output)
        parts += zip(output_texts, stretches, strict=True)
    if not references:
        raise ValueError("there is no line to measure")
    texts = [[without_tags(line) for line in side] for side in (translations, references)]
    of_parts = [list(side) for side in zip(*parts, strict=True)]
    return Tagged(
        len(references),
        100 * whole / len(references),
        100 * matches / len(references),
        corpus_bleu(of_parts[0], [of_parts[1]]).score,
        corpus_bleu(texts[0], [texts[1]]).score,
    )


def without_tags(line: str) -> str:
    return unescape(_TAG.sub("", line))


def _stretches(element: _Element) -> list[str]:
    """The text before, inside and behind every element in it."""
    stretches = [element.text or ""]
    for child in element:
        stretches += [*_stretches(child), child.tail or ""]
    return stretches


def _parsed(line: str) -> _Element | None:
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    try:
        return etree.fromstring(f"<line>{line}</line>".encode(), parser)
    except etree.XMLSyntaxError:
        return None


def _shape(element: _Element) -> tuple[object, ...]:
    """Names and nesting."""
    return (element.tag, *map(_shape, element))
