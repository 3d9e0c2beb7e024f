"""Glossaries of ModernMT: memories that a client makes and fills with terms. They are kept as those
of DeepL's interface are, each of one tenant; their ids are no numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from tmnmt.formats.clean import clean_name
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.fields import ENTRIES, MOST_NAME, Field, read
from tmnmt.serve.http_error import wrong
from tmnmt.serve.languages import language
from tmnmt.serve.service import Service
from tmnmt.serve.storage.records import Dictionary, Glossary
from tmnmt.serve.terms import entries_of

NAME = (Field("name", "text", "What it is called.", required=True),)
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


async def fill(service: Service, call: ApiRequest) -> dict[str, Any]:
    """Puts terms in the place of those of their languages."""
    id = call.path["id"]
    terms = await service.in_thread(lambda: dictionary(call.values))
    await service.write(lambda: service.terms.change(id, call.caller, None, (terms,)))
    return filled(id, len(terms.entries))


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
