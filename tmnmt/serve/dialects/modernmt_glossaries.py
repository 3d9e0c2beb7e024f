"""Glossaries of ModernMT: memories that a client makes and fills with terms. They are kept as those
of DeepL's interface are, each of one tenant; their ids are no numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tmnmt.formats.clean import clean_name
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.dialects.modernmt_memories import COMPRESSION, unpacked
from tmnmt.serve.fields import ENTRIES, MOST_NAME, Field, check_lists, read
from tmnmt.serve.http_error import wrong
from tmnmt.serve.languages import language
from tmnmt.serve.service import Service
from tmnmt.serve.storage.records import Dictionary, Glossary
from tmnmt.serve.terms import entries_of

NAME = (Field("name", "text", "What it is called.", required=True),)
RENAMED = (
    Field("name", "text", "What it is called from now on."),
    Field("description", "text", "Which is not kept."),
)
TERMS = (
    Field(
        "csv",
        "lines",
        "A row with two codes, and a row for each term.",
        required=True,
        entries=ENTRIES + 2,  # the row of codes, and the end of the last line
    ),
    Field("type", "text", "Which way terms go.", choices=("unidirectional",)),
)
TERM = (
    Field(
        "terms",
        "objects",
        "A term and its translation, which stand for one another in this order.",
        entries=2,
        inside=(
            Field("term", "text", "The word or words.", required=True),
            Field("language", "text", "Code of their language.", required=True),
        ),
    ),
    Field("tuid", "text", "Of terms that are equivalent, which are not served."),
)
FILL = (replace(TERMS[0], required=False), TERMS[1], *TERM, COMPRESSION)


def record(glossary: Glossary) -> dict[str, Any]:
    return {"id": glossary.id, "name": glossary.name, "creationDate": glossary.created}


async def list_glossaries(service: Service, call: ApiRequest) -> list[dict[str, Any]]:
    glossaries = await service.write(lambda: service.terms.glossaries(call.caller))
    return [record(glossary) for glossary in glossaries]


async def get(service: Service, call: ApiRequest) -> dict[str, Any]:
    """Raises Refused for one that is not there."""
    id = call.path["id"]
    return record(await service.write(lambda: service.terms.get(id, call.caller)))


async def make(service: Service, call: ApiRequest) -> dict[str, Any]:
    call.caller.check("translate")
    name = clean_name(read(call.values, NAME, strict=False)["name"])[:MOST_NAME]
    return record(await service.write(lambda: service.terms.make(name, (), call.caller)))


async def delete(service: Service, call: ApiRequest) -> dict[str, Any]:
    call.caller.check("translate")
    glossary = await get(service, call)
    await service.write(lambda: service.terms.delete(glossary["id"], call.caller))
    return glossary


async def rename(service: Service, call: ApiRequest) -> dict[str, Any]:
    """Gives another name."""
    call.caller.check("translate")
    fields = read(call.values, RENAMED, strict=False)
    if fields["description"] is not None:
        raise wrong("description is not kept: a memory has a name alone")
    name = clean_name(fields["name"] or "")[:MOST_NAME] or None
    id = call.path["id"]
    return record(await service.write(lambda: service.terms.change(id, call.caller, name)))


async def fill(service: Service, call: ApiRequest) -> dict[str, Any]:
    """Puts the terms of a file in the place of those of their languages, or a term among them."""
    id = call.path["id"]
    if call.values.get("terms") is not None:
        glossary = await service.write(lambda: service.terms.get(id, call.caller))
        terms = with_term(glossary.dictionaries, call.values)
        size = 1
    else:
        terms = await service.in_thread(lambda: dictionary(_csv_of(service, call)))
        size = len(terms.entries)
    await service.write(lambda: service.terms.change(id, call.caller, None, (terms,)))
    return filled(id, size)


def _csv_of(service: Service, call: ApiRequest) -> dict[str, Any]:
    """The fields of a request, the file among them as its text. Raises Refused."""
    if call.file is None:
        return call.values
    try:
        text = unpacked(service, call, call.file.content).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong("csv is no UTF-8") from error
    values = {**call.values, "csv": text}
    check_lists(values, FILL)
    return values


def with_term(dictionaries: Sequence[Dictionary], values: Mapping[str, Any]) -> Dictionary:
    """The dictionary of a term's languages with the term, which takes the place of that of the same
    source.

    dictionaries: those that there are.
    values: the fields of the request.

    Raises Refused for what is no pair of terms."""
    fields = read(values, (*TERM, TERMS[1]), strict=False)
    if fields["tuid"] is not None:
        raise wrong("tuid is not served: terms go one way")
    if len(fields["terms"]) != 2:
        raise wrong("terms has a term and its translation")
    (source, target), (term, translation) = zip(
        *((language(e["language"]).code.lower(), e["term"]) for e in fields["terms"]), strict=True
    )
    entries = [
        entry
        for dictionary in dictionaries
        if (dictionary.source, dictionary.target) == (source, target)
        for entry in dictionary.entries
        if entry[0].casefold() != term.strip().casefold()
    ]
    return Dictionary(source, target, entries_of([*entries, (term, translation)]))


def filled(id: str, size: int) -> dict[str, Any]:
    """The job that has done it: it is done at once."""
    return {"id": id, "memory": id, "size": size, "progress": 1}


def dictionary(values: Mapping[str, Any]) -> Dictionary:
    """Raises Refused."""
    text = read(values, TERMS, strict=False)["csv"]
    try:
        rows = [row for row in csv.reader(io.StringIO(text), strict=True) if any(row)]
    except csv.Error as error:
        raise wrong("csv is no CSV") from error
    if not rows or any(len(row) != 2 for row in rows):
        raise wrong("csv needs two columns, with the codes of their languages above them")
    source, target = (language(code).code.lower() for code in rows[0])
    return Dictionary(source, target, entries_of((row[0], row[1]) for row in rows[1:]))
