"""Glossaries of ModernMT: memories that a client makes and fills with terms. They are kept as those
of DeepL's interface are, each of one tenant; their ids are no numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from tmnmt.formats.clean import clean_name
from tmnmt.serve.asked import Asked
from tmnmt.serve.fields import ENTRIES, Field, read
from tmnmt.serve.languages import language
from tmnmt.serve.managed import MOST_NAME
from tmnmt.serve.refused import wrong
from tmnmt.serve.service import Service
from tmnmt.serve.storage.records import Dictionary, Glossary
from tmnmt.serve.terms import entries_of

NAME = (Field("name", "text", "What it is called.", needed=True),)
TERMS = (
    Field(
        "csv",
        "lines",
        "A row with two codes, and a row for each term.",
        needed=True,
        entries=ENTRIES + 2,  # the row of codes, and the end of the last line
    ),
    Field("type", "text", "Which way terms go.", choices=("unidirectional",)),
)


def record(one: Glossary) -> dict[str, Any]:
    return {"id": one.id, "name": one.name, "creationDate": one.made}


async def every(service: Service, asked: Asked) -> list[dict[str, Any]]:
    glossaries = await service.written(lambda: service.terms.glossaries(asked.caller))
    return [record(one) for one in glossaries]


async def get(service: Service, asked: Asked) -> dict[str, Any]:
    """Raises Refused for one that is not there."""
    id = asked.path["id"]
    return record(await service.written(lambda: service.terms.get(id, asked.caller)))


async def make(service: Service, asked: Asked) -> dict[str, Any]:
    asked.caller.check("translate")
    name = clean_name(read(asked.values, NAME, strict=False)["name"])[:MOST_NAME]
    return record(await service.written(lambda: service.terms.make(name, (), asked.caller)))


async def delete(service: Service, asked: Asked) -> dict[str, Any]:
    asked.caller.check("translate")
    glossary = await get(service, asked)
    await service.written(lambda: service.terms.delete(glossary["id"], asked.caller))
    return glossary


async def fill(service: Service, asked: Asked) -> dict[str, Any]:
    """Puts terms in the place of those of their languages."""
    id = asked.path["id"]
    terms = await service.in_thread(lambda: dictionary(asked.values))
    await service.written(lambda: service.terms.change(id, asked.caller, None, (terms,)))
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
