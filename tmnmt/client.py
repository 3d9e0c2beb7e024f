"""A server of `tmnmt serve` with the interface of a `Translator`; no packages beside tmnmt and no
model are needed here.

    client = Client("http://127.0.0.1:5051", key="…")
    session = client.session(write_to="mine")
    session.confirm("The owner must send a notice.", "Le propriétaire envoie un avis.")
    print(session.translate("A notice must be sent.").tgt)"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from tmnmt.checks import Check, ChecksError, OnChecks
from tmnmt.codes.stored import codes_of
from tmnmt.errors import DataError, LockedError, ServerError, TmnmtError, UsageError
from tmnmt.segments import (
    Agreement,
    Alternative,
    CacheSource,
    Match,
    MemorySource,
    Other,
    Provenance,
    Reason,
    Rival,
    Segment,
    Token,
    Translation,
    Word,
    Worth,
)

AT_ONCE = 200  # texts, or segments, of one request
CHARACTERS = 20_000  # of texts of one request, at most, where there are several
TRIES = 5  # of a request that the server puts off
LONGEST_WAIT = 30.0  # seconds until it is tried again
TERM_CHECKS = ("terms", "forbidden")
RETRY_SECONDS = 1.0  # seconds until it is asked again how far a job is, where that has broken off
ENDED = ("done", "failed")
Advance = Callable[[int, int | None], None]


def _unwatched(completed: int, total: int | None) -> None:
    """Nobody is told how far a job is."""


class Client:
    """A server, and a key for it. What it refuses is raised: UsageError for a request that is not
    what it should be or is not allowed, DataError for what is not there, LockedError where another
    program writes to a memory, ServerError where it cannot be reached or is busy for long.

    Translations are as a Translator gives them, but the matches in them do not tell their edits."""

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        source: str = "",
        target: str = "",
        model: str = "",
        memories: Sequence[str] | None = None,
        terms: Sequence[str] | None = None,
        terms_mode: str = "soft",
        options: Mapping[str, Any] | None = None,
        timeout: float = 90.0,
    ) -> None:
        """source, target: languages; not given, the only ones that are served. model: its name; not
        given, the first of these languages. memories, terms:
        names; not given, all that the key sees. options: of translations, by name. timeout: seconds
        of a request."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{url}: is no address of a server, as http://127.0.0.1:5051")
        self.url = url.rstrip("/")
        self._key = key
        self._timeout = timeout
        languages = {"source": source, "target": target, "model": model}
        self._languages = {name: code for name, code in languages.items() if code}
        self._parameters: dict[str, Any] = {
            "terms_mode": terms_mode,
            "options": dict(options or {}),
        }
        self._parameters |= {"memories": list(memories)} if memories is not None else {}
        self._parameters |= {"terms": list(terms)} if terms is not None else {}

    def translate(self, texts: Iterable[str], explain: bool = False) -> list[Translation]:
        """The translations of one document's segments, in order; one for every text."""
        return list(self.stream([texts], explain))

    def stream(
        self, documents: Iterable[Iterable[str]], explain: bool = False
    ) -> Iterator[Translation]:
        """The translations of all segments of all documents in order, each as soon as those before
        it are there."""
        parameters = {
            **self._parameters,
            **self._languages,
            "explain": explain,
            "priority": "batch",
        }
        for texts in documents:
            for together in _parts(_texts(texts)):
                answer = self.ask("POST", "/v1/translate", {"texts": together, **parameters})
                yield from _translations(together, answer)

    def session(self, id: str | None = None, *, write_to: str | None = None) -> ClientSession:
        """A document that is translated sentence by sentence and learns from every confirmed
        translation. id: of one that was begun before, maybe by another program. write_to: name of
        the memory that confirmed pairs are added to, for good; "": of none; not given, the first
        that the server writes to, where the key may."""
        if id is None:
            destination = {"write_to": write_to} if write_to is not None else {}
            session = self.ask(
                "POST", "/v1/sessions", {**self._parameters, **self._languages, **destination}
            )
            return ClientSession(self, session["id"])
        self.ask("GET", f"/v1/sessions/{_part(id)}")  # it is there
        return ClientSession(self, id)

    def complete(self, text: str, prefix: str, explain: bool = False) -> Translation:
        """The best translation that begins with what was typed of it, as of a Translator."""
        return _completed(self, self._at_work, text, prefix, explain)

    def alternatives(self, text: str, prefix: str, count: int = 5) -> list[Alternative]:
        """The words that may stand behind what was typed, the likeliest first."""
        return _alternatives(self, self._at_work, text, prefix, count)

    @property
    def _at_work(self) -> dict[str, Any]:
        """What a text that somebody types the translation of is asked for with."""
        memories = (
            {"memories": self._parameters["memories"]} if "memories" in self._parameters else {}
        )
        return self._languages | memories

    def search(
        self, memory: str, texts: Sequence[str], k: int = 5, threshold: float = 0.5
    ) -> list[list[Match]]:
        """For every text its pairs of a memory that are worth most."""
        body = {"texts": _texts(texts), "k": k, "threshold": threshold}
        results = self.ask("POST", f"/v1/memories/{_part(memory)}/search", body)["results"]
        return [[_match(match) for match in result["matches"]] for result in results]

    def add(self, memory: str, segments: Sequence[Segment]) -> list[int]:
        """Their ids in the memory; they are on disk."""
        ids = list[int]()
        for start in range(0, len(segments), AT_ONCE):
            records = [
                {"src": segment.src, "tgt": segment.tgt, "document": segment.document}
                for segment in segments[start : start + AT_ONCE]
            ]
            path = f"/v1/memories/{_part(memory)}/segments"
            ids += self.ask("POST", path, {"segments": records})["ids"]
        return ids

    def edit(self, memory: str, id: int, src: str, tgt: str) -> Segment:
        """A segment of a memory with other texts; as it is now."""
        path = f"/v1/memories/{_part(memory)}/segments/{id}"
        return Segment(**self.ask("PUT", path, {"src": src, "tgt": tgt}))

    def delete(self, memory: str, id: int) -> None:
        self.ask("DELETE", f"/v1/memories/{_part(memory)}/segments/{id}")

    def memories(self) -> list[dict[str, Any]]:
        """What is known of every memory that the key sees."""
        return list(self.ask("GET", "/v1/memories")["memories"])

    def models(self) -> list[dict[str, Any]]:
        return list(self.ask("GET", "/v1/models")["models"])

    def read_into(
        self, memory: str, path: str | Path, advance: Advance = _unwatched
    ) -> dict[str, Any]:
        """Adds all of a memory file to a memory; what became of it, when it is done. advance:
        called with the bytes that are done, and all."""
        endpoint = f"/v1/memories/{_part(memory)}/import"
        return self._ended(self._upload(endpoint, Path(path), {}), advance)

    def export(self, memory: str, path: str | Path, advance: Advance = _unwatched) -> None:
        """Writes a memory to a file, TMX or TSV by its name. advance: called with the segments
        that are done; of how many is not known."""
        kind = "tsv" if Path(path).suffix.lower() == ".tsv" else "tmx"
        endpoint = f"/v1/memories/{_part(memory)}/export"
        self._save(self.ask("POST", endpoint, {"format": kind}), Path(path), advance)

    def translate_file(
        self,
        path: str | Path,
        destination: str | Path,
        overwrite: str = "nothing",
        advance: Advance = _unwatched,
        own_translations: str = "translated",
    ) -> dict[str, Any]:
        """Translates a translator's file (XLIFF, PO, HTML and so on); what became of its
        segments. overwrite: which translations in it are made anew, "nothing", "drafts" or "all".
        advance: called with the segments that are done, and all. own_translations: which of the
        other translations in it are taken as confirmed, "translated", "approved" or "off"."""
        parameters = {
            **self._languages,
            "terms_mode": self._parameters["terms_mode"],
            "overwrite": overwrite,
            "own_translations": own_translations,
        }
        for name in ("memories", "terms"):
            parameters |= (
                {name: ",".join(self._parameters[name])} if name in self._parameters else {}
            )
        return self._save(
            self._upload("/v1/documents", Path(path), parameters), Path(destination), advance
        )

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The JSON of an answer; None where it has none. A request that the server puts off is
        tried again."""
        content = json.dumps(body).encode() if body is not None else None
        answer = self._fetch(method, path, content, "application/json")
        try:
            return json.loads(answer) if answer else None
        except ValueError as error:
            raise ServerError(f"{self.url}: answers no JSON: is it tmnmt serve?") from error

    def _fetch(self, method: str, path: str, content: bytes | None, kind: str) -> bytes:
        """Raises as the class says."""
        request = self._request(method, path, content, kind)
        for number in range(TRIES):
            try:
                with self._reached(request) as reply:
                    return bytes(reply.read())
            except urllib.error.HTTPError as error:
                with error:
                    refused = _refused(error)
                delay = error.headers.get("Retry-After", "")
                can_retry = error.code in (429, 503) and delay.isdigit()
                if not can_retry or number == TRIES - 1:
                    raise refused from None
                time.sleep(min(float(delay), LONGEST_WAIT))
        raise AssertionError

    def _request(
        self, method: str, path: str, content: bytes | None, kind: str
    ) -> urllib.request.Request:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        headers |= {"Content-Type": kind} if content is not None else {}
        return urllib.request.Request(self.url + path, content, headers, method=method)

    @contextmanager
    def _reached(self, request: urllib.request.Request) -> Iterator[http.client.HTTPResponse]:
        """The answer. Raises HTTPError for one that refuses, ServerError where there is none."""
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as reply:
                yield reply
        except urllib.error.HTTPError:
            raise
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "reason", None) or error
            raise ServerError(f"{self.url}: cannot be reached: {why}") from error

    def _upload(self, path: str, file: Path, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """A job that a file begins."""
        try:
            content = file.read_bytes()
        except OSError as error:
            raise DataError(f"{file}: cannot be read: {error.strerror}") from error
        query = urlencode({"name": file.name, **parameters})
        answer = self._fetch("POST", f"{path}?{query}", content, "application/octet-stream")
        return dict(json.loads(answer))

    def _ended(self, job: Mapping[str, Any], advance: Advance) -> dict[str, Any]:
        """The job when it has ended. Raises DataError where it failed."""
        path = f"/v1/jobs/{_part(job['id'])}"
        while job["state"] not in ENDED:
            for job in self._events(f"{path}/events"):
                if job["state"] == "working":
                    advance(job["done"], job["total"])
            if job["state"] not in ENDED:  # it broke off
                time.sleep(RETRY_SECONDS)
                job = self.ask("GET", path)
        if job["state"] == "failed":
            raise DataError(f"{job.get('file', 'the job')}: {job['error']}")
        return dict(job)

    def _events(self, path: str) -> Iterator[dict[str, Any]]:
        """A job as the server tells of it while it goes on, until it has ended or this breaks
        off."""
        name = ""
        try:
            with self._reached(self._request("GET", path, None, "")) as reply:
                for line in reply:
                    field, _, value = line.decode().rstrip().partition(": ")
                    name = value if field == "event" else name
                    if field == "data" and name != "error" and line.endswith(b"\n"):
                        yield json.loads(value)
        except urllib.error.HTTPError as error:
            error.close()
        except ServerError:
            return

    def _save(self, job: Mapping[str, Any], destination: Path, advance: Advance) -> dict[str, Any]:
        """A job that makes a file, when it has ended, and the file is at `destination`."""
        ended = self._ended(job, advance)
        _write(destination, self._download(ended))
        return ended

    def _download(self, job: Mapping[str, Any]) -> bytes:
        path = f"/v1/jobs/{_part(job['id'])}"
        content = self._fetch("GET", f"{path}/file", None, "")
        self.ask("DELETE", path)
        return content


class ClientSession:
    """One document at the server, as `Session` is one here; `id`: for `Client.session`."""

    def __init__(self, client: Client, id: str) -> None:
        self._client, self.id = client, id
        self._path = f"/v1/sessions/{_part(id)}"

    @property
    def confirmed(self) -> int:
        """How many pairs were confirmed."""
        return int(self._client.ask("GET", self._path)["confirmed"])

    def translate(self, text: str, explain: bool = False) -> Translation:
        """The translation of the document's next segment."""
        return next(self.stream([text], explain))

    def stream(self, texts: Iterable[str], explain: bool = False) -> Iterator[Translation]:
        """The translations of all segments that follow, in order, nothing being confirmed in
        between."""
        for together in _parts(_texts(texts)):
            body = {"texts": together, "explain": explain}
            yield from _translations(
                together, self._client.ask("POST", f"{self._path}/translate", body)
            )

    def complete(self, text: str, prefix: str, explain: bool = False) -> Translation:
        """The best translation of the document's next segment that begins with what was typed."""
        return _completed(self._client, {"session": self.id}, text, prefix, explain)

    def next_words(self, text: str, prefix: str) -> str:
        """What comes behind that, as far as it is found at once."""
        body = {**_typed(text, prefix), "session": self.id, "whole": False}
        words: str = self._client.ask("POST", "/v1/complete", body)["text"]
        return words[len(prefix) :]

    def alternatives(self, text: str, prefix: str, count: int = 5) -> list[Alternative]:
        """The words that may stand behind what was typed, the likeliest first."""
        return _alternatives(self._client, {"session": self.id}, text, prefix, count)

    def translate_file(
        self,
        path: str | Path,
        destination: str | Path,
        overwrite: str = "nothing",
        advance: Advance = _unwatched,
        own_translations: str = "translated",
    ) -> dict[str, Any]:
        """As `Client.translate_file`, with what is confirmed here when its segments have their
        turn."""
        parameters = {"overwrite": overwrite, "own_translations": own_translations}
        job = self._client._upload(f"{self._path}/documents", Path(path), parameters)
        return self._client._save(job, Path(destination), advance)

    def confirm(self, src: str, tgt: str, on_checks: OnChecks = "tell") -> list[Check]:
        """Learns a translation: the very next sentence knows it. It is on disk at the server. Gives
        what the checks find in it. With `on_checks` "refuse" it is not learnt where they find
        something; then ChecksError is raised."""
        src, tgt = _texts([src, tgt])
        body = {"src": src, "tgt": tgt, "on_checks": on_checks}
        answer = self._client.ask("POST", f"{self._path}/confirm", body)
        return [Check(**check) for check in answer["checks"]]

    def undo(self) -> tuple[str, str]:
        """Takes back what was confirmed last, and gives it. Raises UsageError where nothing was."""
        undone = self._client.ask("POST", f"{self._path}/undo", {})["undone"]
        return undone["src"], undone["tgt"]

    def pairs(self) -> list[tuple[str, str]]:
        """All that was confirmed, in order."""
        records = self._client.ask("GET", f"{self._path}/confirmed")["pairs"]
        return [(pair["src"], pair["tgt"]) for pair in records]

    def save(self, path: str | Path) -> None:
        """Writes the session to a file, for `Translator.session(path)`."""
        _write(Path(path), self._client._fetch("GET", f"{self._path}/save", None, ""))

    def end(self) -> None:
        """The server forgets it; what was written to a memory stays there."""
        self._client.ask("DELETE", self._path)


def _typed(text: str, prefix: str) -> dict[str, Any]:
    text, prefix = _texts([text, prefix])
    return {"text": " ".join(text.splitlines()), "prefix": prefix}


def _completed(
    client: Client, parameters: Mapping[str, Any], text: str, prefix: str, explain: bool
) -> Translation:
    answer = client.ask("POST", "/v1/complete", {**_typed(text, prefix), **parameters})
    translation = _translation(answer)
    return translation if explain else replace(translation, tokens=(), words=(), confidence=None)


def _alternatives(
    client: Client, parameters: Mapping[str, Any], text: str, prefix: str, count: int
) -> list[Alternative]:
    body = {**_typed(text, prefix), **parameters, "count": count}
    ways = client.ask("POST", "/v1/alternatives", body)["alternatives"]
    return [
        Alternative(
            alternative["text"],
            alternative["probability"],
            tuple(map(_token, alternative["tokens"])),
        )
        for alternative in ways
    ]


def _texts(texts: Iterable[str]) -> list[str]:
    """Raises UsageError for what is no list of texts."""
    if isinstance(texts, str):
        raise UsageError("a list of texts is wanted, not one text")
    listed = list(texts)
    for text in listed:
        if not isinstance(text, str):
            raise UsageError(f"a text is wanted, not {type(text).__name__}")
    return listed


def _parts(texts: Sequence[str]) -> Iterator[list[str]]:
    """Requests of texts, on one line each: here a text is a segment."""
    together = list[str]()
    size = 0
    for text in texts:
        if together and (len(together) >= AT_ONCE or size + len(text) > CHARACTERS):
            yield together
            together = []
            size = 0
        together.append(" ".join(text.splitlines()))
        size += len(text)
    if together:
        yield together


def _translations(texts: Sequence[str], answer: Mapping[str, Any]) -> Iterator[Translation]:
    for text, result in zip(texts, answer["translations"], strict=True):
        segments = result["segments"]
        yield _translation(segments[0]) if segments else Translation(text, "", 0.0)


def _translation(record: Mapping[str, Any]) -> Translation:
    src_codes, tgt_codes = (
        codes_of(record[f"{side}_codes"], record[side]) if f"{side}_codes" in record else ()
        for side in ("src", "tgt")
    )
    score, checks = record["score"], [Check(**check) for check in record["checks"]]
    return Translation(
        record["src"],
        record["tgt"],
        float("-inf") if score is None else score,
        tuple(map(_match, record["matches"])),
        tuple(map(_token, record["tokens"])),
        record["origin"],
        record["low"],
        record["unknown"],
        src_codes,
        tgt_codes,
        tuple(check for check in checks if check.name in TERM_CHECKS),
        tuple(map(_next_best, record.get("others", ()))),
        tuple(Word(**word) for word in record.get("words", ())),
        record.get("confidence"),
    )


def _next_best(record: Mapping[str, Any]) -> Other:
    """Its length is not told."""
    return Other(record["tgt"], record["score"], 0)


def _match(record: Mapping[str, Any]) -> Match:
    segment = Segment(record["src"], record["tgt"], record["document"], id=record["id"])
    worth = None
    if "worth" in record:
        reasons = tuple(Reason(reason, points) for reason, points in record["reasons"].items())
        worth = Worth(record["worth"], reasons, record.get("adapted", ""))
    return Match(segment, record["score"], 0, worth, _agreement(record.get("agreement")))


def _agreement(record: Mapping[str, Any] | None) -> Agreement | None:
    if record is None:
        return None
    rivals = tuple(Rival(**rival) for rival in record.get("rivals", ()))
    return Agreement(record["copies"], record["total"], rivals)


def _token(record: Mapping[str, Any]) -> Token:
    return Token(
        record["text"],
        record["origin"],
        record["probability"],
        record["generated"],
        record["plain"],
        provenance=tuple(Provenance(**source) for source in record["provenance"]),
        sources=tuple(MemorySource(**source) for source in record["sources"]),
        attention=tuple(MemorySource(**slot) for slot in record["attention"]),
        slots=tuple(CacheSource(**slot) for slot in record["slots"]),
    )


def _part(name: str) -> str:
    """A name as one part of an address."""
    return quote(str(name), safe="")


def _refused(error: urllib.error.HTTPError) -> TmnmtError:
    try:
        answer = json.loads(error.read())
        code, message = (str(answer["error"][name]) for name in ("code", "message"))
        if code == "checks":
            return ChecksError([Check(**check) for check in answer["checks"]])
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        return ServerError(f"{error.url}: status {error.code}: is it tmnmt serve?")
    if code == "locked":
        return LockedError(message)
    if error.code == 404:
        return DataError(message)
    return UsageError(message) if error.code < 500 and error.code != 429 else ServerError(message)


def _write(path: Path, content: bytes) -> None:
    from tmnmt.durable import write

    try:
        write(path, content)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from error
