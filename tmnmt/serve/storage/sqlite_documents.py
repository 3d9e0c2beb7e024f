"""Documents that people work on, in a file of SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tmnmt.serve.storage.base import DocumentStorage
from tmnmt.serve.storage.records import Person, StoredDocument
from tmnmt.serve.storage.sqlite_file import File

SIZE = "SELECT sum(size) FROM document WHERE tenant = ?"  # of all documents of a tenant
_OF_DOCUMENT = "document = (SELECT id FROM document WHERE id = ? AND tenant = ?)"
_COLUMNS = "SELECT id, tenant, version, size, head FROM document"
_MOST_VALUES = 500  # of one query


class Documents(DocumentStorage):
    """Documents as `DocumentStorage` has them."""

    def __init__(self, file: File) -> None:
        """file: the file that the documents are in."""
        self._file = file

    def make(
        self,
        document: StoredDocument,
        content: bytes,
        segments: Sequence[Mapping[str, Any]],
        limit: int,
    ) -> bool:
        count = "SELECT count(*) FROM document WHERE tenant = ?"
        with self._file.writing() as connection:
            if connection.execute(count, (document.tenant,)).fetchone()[0] >= limit:
                return False
            row = document.id, document.tenant, document.version, document.size
            head = json.dumps(document.head)
            connection.execute("INSERT INTO document VALUES (?, ?, ?, ?, ?)", (*row, head))
            insert = "INSERT INTO document_content VALUES (?, ?)"
            connection.execute(insert, (document.id, content))
            rows = (
                (document.id, number, document.version, _text(record))
                for number, record in enumerate(segments, 1)
            )
            connection.executemany("INSERT INTO document_segment VALUES (?, ?, ?, ?)", rows)
        return True

    def get(self, tenant: str, id: str) -> StoredDocument | None:
        rows = self._file.rows(f"{_COLUMNS} WHERE id = ? AND tenant = ?", id, tenant)
        return next(_documents(rows), None)

    def tenant_documents(self, tenant: str) -> list[StoredDocument]:
        return [*_documents(self._file.rows(f"{_COLUMNS} WHERE tenant = ?", tenant))]

    def content(self, tenant: str, id: str) -> bytes | None:
        query = f"SELECT content FROM document_content WHERE {_OF_DOCUMENT}"
        return next((bytes(content) for (content,) in self._file.rows(query, id, tenant)), None)

    def segments(
        self, tenant: str, id: str, numbers: Sequence[int]
    ) -> dict[int, Mapping[str, Any]]:
        records = dict[int, Mapping[str, Any]]()
        query = f"SELECT number, record FROM document_segment WHERE {_OF_DOCUMENT} AND number"
        with self._file.reading() as connection:
            for start in range(0, len(numbers), _MOST_VALUES):
                part = numbers[start : start + _MOST_VALUES]
                marks = ", ".join("?" * len(part))
                rows = connection.execute(f"{query} IN ({marks})", (id, tenant, *part))
                records |= {number: json.loads(record) for number, record in rows.fetchall()}
        return records

    def changes(self, tenant: str, id: str, version: int) -> list[int]:
        query = f"SELECT number FROM document_segment WHERE {_OF_DOCUMENT} AND version > ?"
        return sorted(number for (number,) in self._file.rows(query, id, tenant, version))

    def put(
        self,
        document: StoredDocument,
        segments: Mapping[int, Mapping[str, Any]],
        history: Mapping[tuple[int, int], Mapping[str, Any]],
    ) -> bool:
        update = (
            "UPDATE document SET version = ?, size = ?, head = ? "
            "WHERE id = ? AND tenant = ? AND version = ?"
        )
        id, version = document.id, document.version
        values = version, document.size, json.dumps(document.head), id, document.tenant, version - 1
        with self._file.writing() as connection:
            if not connection.execute(update, values).rowcount:
                return False
            of_number = "WHERE document = ? AND number = ?"
            set_ = f"UPDATE document_segment SET version = ?, record = ? {of_number}"
            rows = ((version, _text(record), id, number) for number, record in segments.items())
            connection.executemany(set_, rows)
            insert = "INSERT OR REPLACE INTO document_history VALUES (?, ?, ?, ?)"
            notes = ((id, *place, _text(record)) for place, record in history.items())
            connection.executemany(insert, notes)
        return True

    def history(self, tenant: str, id: str, number: int, slots: int) -> list[Mapping[str, Any]]:
        query = (
            f"SELECT record FROM document_history WHERE {_OF_DOCUMENT} AND number = ? AND slot < ?"
        )
        rows = self._file.rows(query, id, tenant, number, slots)
        return [json.loads(record) for (record,) in rows]

    def delete(self, tenant: str, id: str) -> bool:
        return self._file.write("DELETE FROM document WHERE id = ? AND tenant = ?", id, tenant)

    def note(self, tenant: str, id: str, person: Person, unseen_since: float) -> None:
        insert = (
            "INSERT OR REPLACE INTO document_person "
            "SELECT id, ?, ?, ?, ?, ? FROM document WHERE id = ? AND tenant = ?"
        )
        forget = f"DELETE FROM document_person WHERE {_OF_DOCUMENT} AND seen < ?"
        values = person.name, person.tab, person.number, person.since, person.seen
        with self._file.writing() as connection:
            connection.execute(forget, (id, tenant, unseen_since))
            connection.execute(insert, (*values, id, tenant))

    def people(self, tenant: str, id: str) -> list[Person]:
        columns = "name, tab, number, since, seen"
        query = f"SELECT {columns} FROM document_person WHERE {_OF_DOCUMENT} ORDER BY name, tab"
        return [Person(*row) for row in self._file.rows(query, id, tenant)]


def _documents(rows: Iterable[tuple[Any, ...]]) -> Iterator[StoredDocument]:
    return (
        StoredDocument(id, tenant, version, size, json.loads(head))
        for id, tenant, version, size, head in rows
    )


def _text(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False)
