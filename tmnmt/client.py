"""A server of `tmnmt serve` with the interface of a `Translator`; no packages beside tmnmt and no
model are needed here.

    client = Client("http://127.0.0.1:5051", key="…")
    session = client.session(write_to="mine")
    session.confirm("The owner must send a notice.", "Le propriétaire envoie un avis.")
    print(session.translate("A notice must be sent.").tgt)"""

from __future__ import annotations

import http.client
import json
import secrets
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
    SearchWork,
    Segment,
    Token,
    Translation,
    Word,
    Work,
    Worth,
)

AT_ONCE = 200  # texts, or segments, of one request
CHARACTERS = 20_000  # of texts of one request, at most, where there are several
TRIES = 5  # of a request that the server puts off
LONGEST_WAIT = 30.0  # seconds until it is tried again
USER_CHECKS = (
    "replay",
    "words",
    "terms",
    "forbidden",
    "meaning",
    "answer",
)  # beyond those that are made anew
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
        terms_domain: str = "",
        options: Mapping[str, Any] | None = None,
        timeout: float = 90.0,
    ) -> None:
        """url: the address of the server, such as http://127.0.0.1:5051.
        key: the key that the server asks for; "" where it asks for none.
        source: the code of the source language, such as "en"; "" takes the only one that is served.
        target: the code of the target language; "" takes the only one that is served.
        model: the name of the model; "" takes the first model of these languages.
        memories: the names of the memories that are read; None reads all that the key sees.
        terms: the names of the lists of terms that are kept to; None takes all that the key sees.
        terms_mode: "soft" makes terms likelier, "hard" puts them into every translation.
        terms_domain: what the texts are about, such as "finance". Of a term of several meanings the
        one is taken whose context or note names it; "" leaves this to the texts.
        options: options of translations by their names, such as `beam`; the server says which it
        takes.
        timeout: the seconds that a request waits for an answer.

        Raises UsageError where `url` is no address."""
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
            "terms_domain": terms_domain,
            "options": dict(options or {}),
        }
        self._parameters |= {"memories": list(memories)} if memories is not None else {}
        self._parameters |= {"terms": list(terms)} if terms is not None else {}

    def translate(self, texts: Iterable[str], explain: bool = False) -> list[Translation]:
        """Translates one document and returns its translations in order, one for every text.

        texts: the segments of the document. A blank one is translated as "".
        explain: whether every token comes with its origin; this takes longer."""
        return list(self.stream([texts], explain))

    def stream(
        self, documents: Iterable[Iterable[str]], explain: bool = False
    ) -> Iterator[Translation]:
        """Translates all segments of all documents and gives their translations in order, each as
        soon as those before it are there.

        documents: the documents, each as its segments.
        explain: whether every token comes with its origin; this takes longer."""
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
        """Opens a document that is translated sentence by sentence, and that learns from every
        confirmed translation.

        id: the id of a session that was begun before, perhaps by another program. None begins a new
        one.
        write_to: the name of the memory that confirmed pairs are added to for good. With "" they
        are added to none. None takes the first memory that the server writes to, where the key may
        write. It counts for a new session only.

        Raises DataError where the server has no session of this id."""
        if id is None:
            destination = {"write_to": write_to} if write_to is not None else {}
            session = self.ask(
                "POST", "/v1/sessions", {**self._parameters, **self._languages, **destination}
            )
            return ClientSession(self, session["id"])
        self.ask("GET", f"/v1/sessions/{_part(id)}")  # it is there
        return ClientSession(self, id)

    def complete(self, text: str, prefix: str, explain: bool = False) -> Translation:
        """The best translation that begins with what was typed of it, as `Session.complete` gives
        it.

        text: the segment that is translated.
        prefix: what was typed of its translation. Its last word may be half a word.
        explain: whether every token comes with its origin."""
        return _completed(self, self._at_work, text, prefix, explain)

    def alternatives(self, text: str, prefix: str, count: int = 5) -> list[Alternative]:
        """The words that may stand behind what was typed, the likeliest first.

        text: the segment that is translated.
        prefix: what was typed of its translation.
        count: how many words are given at most, from 1 to 20."""
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
        """For every text its pairs of a memory that are worth most, best first.

        memory: the name of the memory.
        texts: what is looked for.
        k: how many pairs are given for a text at most, from 1 to 100.
        threshold: the smallest fuzzy score of a pair, from 0.3 to 1."""
        body = {"texts": _texts(texts), "k": k, "threshold": threshold}
        results = self.ask("POST", f"/v1/memories/{_part(memory)}/search", body)["results"]
        return [[_match(match) for match in result["matches"]] for result in results]

    def add(self, memory: str, segments: Sequence[Segment]) -> list[int]:
        """Adds segments to a memory and returns their ids in it. On return they are on disk at the
        server.

        memory: the name of the memory.
        segments: the segments, of which the source, the target and the document are added."""
        ids = list[int]()
        for start in range(0, len(segments), AT_ONCE):
            records = [
                {"src": segment.src, "tgt": segment.tgt, "document": segment.document}
                for segment in segments[start : start + AT_ONCE]
            ]
            path = f"/v1/memories/{_part(memory)}/segments"
            answer = self.ask("POST", path, {"segments": records}, is_repeatable=False)
            ids += answer["ids"]
        return ids

    def edit(self, memory: str, id: int, src: str, tgt: str) -> Segment:
        """Gives a segment of a memory other texts, and returns it as it is now.

        memory: the name of the memory.
        id: the id of the segment.
        src: its new source.
        tgt: its new target.

        Raises DataError where the memory has no segment of this id."""
        path = f"/v1/memories/{_part(memory)}/segments/{id}"
        return Segment(**self.ask("PUT", path, {"src": src, "tgt": tgt}))

    def delete(self, memory: str, id: int) -> None:
        """Deletes a segment of a memory.

        memory: the name of the memory.
        id: the id of the segment.

        Raises DataError where the memory has no segment of this id."""
        self.ask("DELETE", f"/v1/memories/{_part(memory)}/segments/{id}")

    def memories(self) -> list[dict[str, Any]]:
        """What is known of every memory that the key sees."""
        return list(self.ask("GET", "/v1/memories")["memories"])

    def models(self) -> list[dict[str, Any]]:
        """What is known of every model that is served."""
        return list(self.ask("GET", "/v1/models")["models"])

    def read_into(
        self, memory: str, path: str | Path, advance: Advance = _unwatched
    ) -> dict[str, Any]:
        """Adds all of a memory file to a memory, and returns the record of the finished job. Its
        `added` and `skipped` say how many pairs were added and how many were left out.

        memory: the name of the memory.
        path: the memory file, whose name tells its format.
        advance: is called with the bytes that are done and the bytes of the whole file.

        Raises DataError where the file cannot be read."""
        endpoint = f"/v1/memories/{_part(memory)}/import"
        return self._ended(self._upload(endpoint, Path(path), {}), advance)

    def export(self, memory: str, path: str | Path, advance: Advance = _unwatched) -> None:
        """Writes a memory to a file.

        memory: the name of the memory.
        path: the file, which is replaced where it is there. It is TSV where its name ends in .tsv,
        and TMX otherwise.
        advance: is called with the segments that are done, and None, because nobody knows how many
        there are.

        Raises DataError where the file cannot be written."""
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
        """Translates a file of a translator (XLIFF, PO, HTML and so on), and returns the record of
        the finished job, which says what became of the segments.

        path: the file.
        destination: where the translated file is written; a file that is there is replaced.
        overwrite: which translations in it are made anew: "nothing", "drafts" or "all".
        advance: is called with the segments that are done and the segments of the whole file.
        own_translations: which of the other translations in it count as confirmed: "translated",
        "approved" or "off".

        Raises DataError where the file cannot be read, translated or written."""
        parameters = {
            **self._languages,
            "terms_mode": self._parameters["terms_mode"],
            "terms_domain": self._parameters["terms_domain"],
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

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        is_repeatable: bool = True,
    ) -> Any:
        """Sends a request and returns the JSON of its answer, or None where the answer is empty. A
        request that the server puts off is sent again, up to five times in all.

        method: the method of HTTP, such as "GET".
        path: the path at the server with its query, from "/v1/" on.
        body: what is sent as JSON; None sends no body.
        is_repeatable: whether it may be carried out twice. Where it may not, it is not sent again
        after an answer that leaves open whether it was carried out.

        Raises what the class says."""
        content = json.dumps(body).encode() if body is not None else None
        answer = self._fetch(method, path, content, "application/json", is_repeatable)
        try:
            return json.loads(answer) if answer else None
        except ValueError as error:
            raise ServerError(f"{self.url}: answers no JSON: is it tmnmt serve?") from error

    def _fetch(
        self,
        method: str,
        path: str,
        content: bytes | None,
        kind: str,
        is_repeatable: bool = True,
    ) -> bytes:
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
                is_certain = error.code == 429 or isinstance(refused, LockedError)
                can_retry = is_certain or (error.code == 503 and is_repeatable)
                can_retry &= delay.isdigit()
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
    """One document at the server, as `Session` is one here. `Client.session` opens it, and opens it
    again by its `id`."""

    def __init__(self, client: Client, id: str) -> None:
        """client: the server that has the session.
        id: the id of the session there."""
        self._client, self.id = client, id
        self._path = f"/v1/sessions/{_part(id)}"

    @property
    def confirmed(self) -> int:
        """How many pairs were confirmed."""
        return int(self._client.ask("GET", self._path)["confirmed"])

    def translate(self, text: str, explain: bool = False) -> Translation:
        """Translates the next segment of the document.

        text: the segment.
        explain: whether every token comes with its origin; this takes longer."""
        return next(self.stream([text], explain))

    def stream(self, texts: Iterable[str], explain: bool = False) -> Iterator[Translation]:
        """Translates all segments that follow, while nothing is confirmed. Gives their translations
        in order.

        texts: the segments. A blank one is translated as "".
        explain: whether every token comes with its origin; this takes longer."""
        for together in _parts(_texts(texts)):
            body = {"texts": together, "explain": explain}
            yield from _translations(
                together, self._client.ask("POST", f"{self._path}/translate", body)
            )

    def complete(self, text: str, prefix: str, explain: bool = False) -> Translation:
        """The best translation of the document's next segment that begins with what was typed.

        text: the segment that is translated.
        prefix: what was typed of its translation. Its last word may be half a word.
        explain: whether every token comes with its origin."""
        return _completed(self._client, {"session": self.id}, text, prefix, explain)

    def next_words(self, text: str, prefix: str) -> str:
        """The words that come behind what was typed, as far as they are found at once.

        text: the segment that is translated.
        prefix: what was typed of its translation."""
        body = {**_typed(text, prefix), "session": self.id, "whole": False}
        words: str = self._client.ask("POST", "/v1/complete", body)["text"]
        return words[len(prefix) :]

    def alternatives(self, text: str, prefix: str, count: int = 5) -> list[Alternative]:
        """The words that may stand behind what was typed, the likeliest first.

        text: the segment that is translated.
        prefix: what was typed of its translation.
        count: how many words are given at most, from 1 to 20."""
        return _alternatives(self._client, {"session": self.id}, text, prefix, count)

    def translate_file(
        self,
        path: str | Path,
        destination: str | Path,
        overwrite: str = "nothing",
        advance: Advance = _unwatched,
        own_translations: str = "translated",
    ) -> dict[str, Any]:
        """Translates a file in the session, so that each of its segments reads what was confirmed
        until its turn. Returns the record of the finished job, which says what became of the
        segments.

        path: the file.
        destination: where the translated file is written; a file that is there is replaced.
        overwrite: which translations in it are made anew: "nothing", "drafts" or "all".
        advance: is called with the segments that are done and the segments of the whole file.
        own_translations: which of the other translations in it count as confirmed: "translated",
        "approved" or "off".

        Raises DataError where the file cannot be read, translated or written."""
        parameters = {"overwrite": overwrite, "own_translations": own_translations}
        job = self._client._upload(f"{self._path}/documents", Path(path), parameters)
        return self._client._save(job, Path(destination), advance)

    def confirm(self, src: str, tgt: str, on_checks: OnChecks = "tell") -> list[Check]:
        """Learns a translation, which the very next sentence can read. On return it is on disk at
        the server. Returns what the checks find in it.

        src: the source.
        tgt: its translation, as a person has approved it.
        on_checks: "tell" learns the pair whatever the checks find; with "refuse", a pair in which
        they find something is not learned.

        Raises ChecksError where the pair is refused."""
        src, tgt = _texts([src, tgt])
        name = secrets.token_hex(16)  # so that it is confirmed once, however often it is sent
        body = {"src": src, "tgt": tgt, "on_checks": on_checks, "request": name}
        answer = self._client.ask("POST", f"{self._path}/confirm", body)
        return [Check(**check) for check in answer["checks"]]

    def undo(self) -> tuple[str, str]:
        """Takes back what was confirmed last, and returns its source and target.

        Raises UsageError where nothing was confirmed."""
        answer = self._client.ask("POST", f"{self._path}/undo", {}, is_repeatable=False)
        return answer["undone"]["src"], answer["undone"]["tgt"]

    def add_term(self, source: str, target: str) -> None:
        """Adds a term, which the next translations of this session have. It counts before those of
        the lists of terms.

        source: a word or words of the source language.
        target: what they are translated by; "" takes the term of this source out again."""
        body = {"source": source, "target": target}
        self._client.ask("POST", f"{self._path}/terms", body)

    def pairs(self) -> list[tuple[str, str]]:
        """All that was confirmed, in order."""
        records = self._client.ask("GET", f"{self._path}/confirmed")["pairs"]
        return [(pair["src"], pair["tgt"]) for pair in records]

    def save(self, path: str | Path) -> None:
        """Writes the session to a file, for `Translator.session(path)`.

        path: the file, which is replaced where it is there.

        Raises DataError where the file cannot be written."""
        _write(Path(path), self._client._fetch("GET", f"{self._path}/save", None, ""))

    def end(self) -> None:
        """Makes the server forget the session. What was written to a memory stays there."""
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
        tuple(check for check in checks if check.name in USER_CHECKS),
        tuple(map(_next_best, record.get("others", ()))),
        tuple(Word(**word) for word in record.get("words", ())),
        record.get("confidence"),
        _work(record["work"]) if "work" in record else None,
    )


def _work(record: Mapping[str, Any]) -> Work:
    search = record["search"]
    return Work(**{**record, "search": SearchWork(**search) if search else None})


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
