"""The part of the own interface on which people work on documents together: a document lies on the
server, with its segments, their states and their histories, and has an address."""

from __future__ import annotations

import asyncio
import base64
import secrets
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import unescape
from typing import Any, get_args

from starlette.responses import Response

from tmnmt.checks import OnChecks
from tmnmt.files.unit import Comment
from tmnmt.formats.clean import clean_name, without_controls
from tmnmt.serve import answers
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.api_resources import (
    MEMORIES,
    MODEL,
    SAVED,
    SOURCE,
    TARGET,
    TERMS,
    TERMS_DOMAIN,
    TERMS_MODE,
    WRITE_TO,
)
from tmnmt.serve.api_workbench import CONTENT, FILE_NAME, FORMAT, LARGE, SENTENCES
from tmnmt.serve.confirming import draft_checks
from tmnmt.serve.documents import NewTarget, Upload, filled_with, key_of
from tmnmt.serve.fields import MOST_NAME, Field, read
from tmnmt.serve.http_error import Refused, unknown, wrong
from tmnmt.serve.keys import Caller
from tmnmt.serve.routes import EMPTY, Handler, Method, Route, RouteAnswer
from tmnmt.serve.routes import FILE as FILE_ANSWER
from tmnmt.serve.service import Service
from tmnmt.serve.sessions import OpenSession
from tmnmt.serve.storage.records import StoredDocument
from tmnmt.serve.workspace.confirmations import Confirming, check_version
from tmnmt.serve.workspace.documents import ANYBODY, Edit, iso_now, person, stamp_of
from tmnmt.serve.workspace.opening import FILLS, FileContent, Fill, Preparation, read_file
from tmnmt.serve.workspace.preparing import TOGETHER, prepare_more
from tmnmt.serve.workspace.segment import (
    LEVELS,
    MOST_COMMENTS,
    OF_FILE,
    ORIGINS,
    WorkSegment,
)

STATES = ("open", "untouched", "draft", *LEVELS, "locked")
FEWEST_READ = 100  # segments that are read at a time where only some are wanted
MOST_SEGMENTS = 5_000  # of one request
MOST_CHANGES = 5_000  # drafts that a request writes
MOST_COMMENT = 2_000  # characters of a comment
MOST_REASON = 500  # characters of the reason for which a check is ignored
MOST_IGNORED = 100  # checks of a segment that are ignored
MOST_ISSUES = 1_000  # that are told where a file is refused
MOST_WAIT = 25  # seconds that a request waits for changes
LOOK_INTERVAL = 0.4  # seconds from one look at a document that somebody waits for to the next

BEGIN = (
    FILE_NAME,
    CONTENT,
    SOURCE,
    TARGET,
    MODEL,
    SENTENCES,
    FORMAT,
    MEMORIES,
    TERMS,
    TERMS_DOMAIN,
    TERMS_MODE,
    WRITE_TO,
    Field("project", "text", "A name that documents share.", default=""),
    Field(
        "fill",
        "text",
        "Which matches become drafts of segments without a target: full, those of the same text; "
        "adapted, those that numbers were put into, too; or none.",
        default="none",
        choices=FILLS,
    ),
)
LOOK = (
    Field("first", "whole", "Number of the first segment.", default=1, minimum=1),
    Field("count", "whole", "At most so many.", default=500, minimum=1, maximum=MOST_SEGMENTS),
    Field(
        "state",
        "text",
        "Only those in this state; open: those that somebody has still to translate.",
        choices=STATES,
    ),
    Field("issues", "flag", "Only those in which checks find something.", default=False),
    Field("text", "text", "Only those that have this in their source or translation.", default=""),
)
FOLLOW = (
    Field("since", "whole", "The version that is known.", required=True, minimum=0),
    Field(
        "wait",
        "number",
        "Seconds to wait where nothing is newer.",
        default=0,
        minimum=0,
        maximum=MOST_WAIT,
    ),
    Field("stamp", "text", "As the last answer had it: then moves of people count, too."),
)
PRESENCE = (
    Field("number", "whole", "The segment at work; null: none.", minimum=1),
    Field("tab", "text", "A name that the page gives itself.", default=""),
)
_VERSION = Field(
    "version", "whole", "The version of the segment that is known.", required=True, minimum=0
)
_TEXT = Field("text", "text", "The translation, of XML.", required=True)
_ORIGIN = Field("origin", "text", "Where the text came from; not given, a person.", choices=ORIGINS)
_MATCH = Field(
    "match", "whole", "What the match was worth that it came from.", minimum=0, maximum=102
)
_STATE = Field("state", "text", "How far it is right.", choices=LEVELS)
_QUALITY = Field(
    "quality", "number", "How likely the text is right that was suggested.", minimum=0, maximum=1
)
EDIT = (
    replace(_VERSION, required=False),
    replace(_TEXT, required=False, help="The draft, of XML; null discards it."),
    _ORIGIN,
    _MATCH,
    replace(_STATE, help="Of what is confirmed: how far it is right."),
    Field(
        "ignore",
        "object",
        "A check that is ignored: the name of the check, what it found, and the reason; without a "
        "reason it is not ignored any more.",
        inside=(
            Field("check", "text", "The name of the check.", required=True),
            Field("what", "text", "What it found.", required=True),
            Field("reason", "text", "Why it is ignored."),
        ),
    ),
    _QUALITY,
)
EDITS = (
    Field(
        "changes",
        "objects",
        "The drafts.",
        required=True,
        entries=MOST_CHANGES,
        inside=(
            Field("number", "whole", "Of the segment.", required=True, minimum=1),
            _VERSION,
            replace(_TEXT, required=False, help="The draft, of XML; null discards it."),
        ),
    ),
)
CONFIRM = (
    _VERSION,
    _TEXT,
    replace(_STATE, default="translated"),
    replace(_ORIGIN, help="Where it came from; not given, where the same draft did."),
    _MATCH,
    _QUALITY,
    Field("suggested", "text", "What had been suggested, for the review; of format text."),
    Field(
        "keys", "whole", "Keystrokes that it took, for the review.", minimum=0, maximum=1_000_000
    ),
    Field(
        "on_checks",
        "text",
        "Where checks find something that nobody has ignored: tell confirms it; refuse confirms "
        "nothing and answers with status 409, code checks, and the checks.",
        default="tell",
        choices=get_args(OnChecks),
    ),
    Field(
        "repetitions",
        "flag",
        "Confirm all segments of the same source alike, but for those for which a person has "
        "another text.",
        default=False,
    ),
    Field(
        "request",
        "text",
        "A name that the client gives this request. Where its answer is lost it can be sent again "
        "under the same name: it is confirmed once.",
    ),
)
UNDO = (
    Field(
        "number",
        "whole",
        "The segment; not given, the one that this person confirmed last.",
        minimum=1,
    ),
)
COMMENT = (Field("text", "text", "The comment.", required=True),)
FILE = (
    Field(
        "issues",
        "text",
        "refuse: no file while checks find something in it that nobody has ignored; not given, "
        "as the document has it.",
        choices=("allow", "refuse"),
    ),
    Field(
        "refused",
        "text",
        "Targets that the file cannot take: tell refuses the file and names them, leave leaves "
        "their segments as they are.",
        default="tell",
        choices=("tell", "leave"),
    ),
    Field("drafts", "flag", "With drafts, as what somebody has to look at.", default=False),
)
RENAME = (
    Field("name", "text", "What it is called."),
    Field("project", "text", "A name that documents share."),
    Field(
        "strict",
        "flag",
        "Whether there is no file while checks find something in it; holds for all documents of "
        "the project.",
    ),
)


def _read(values: Mapping[str, Any], fields: Sequence[Field]) -> dict[str, Any]:
    """The fields of a request, with texts as files can hold them: without control characters."""
    return {name: _cleaned(value) for name, value in read(values, fields).items()}


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return without_controls(value)
    if isinstance(value, Mapping):
        return {name: _cleaned(entry) for name, entry in value.items()}
    return [*map(_cleaned, value)] if isinstance(value, list) else value


async def begin(service: Service, call: ApiRequest) -> Any:
    """Puts a file on the server as a document that people work on, with a session of its own.
    Answers what is told of all of it."""
    fields = _read(call.body, BEGIN)
    caller = call.caller
    model = service.model(fields["source"], fields["target"], fields["model"])
    setup = service.resolve_setup(
        model,
        caller,
        fields["memories"],
        service.destination(model, caller, fields["write_to"]),
        fields["terms"],
        fields["terms_mode"] == "hard",
        terms_domain=fields["terms_domain"],
    )
    id, name = secrets.token_urlsafe(16), clean_name(fields["name"])
    project = clean_name(fields["project"])
    setup = replace(setup, name=name, began=time.time(), document=id)
    languages = model.translator.src_lang, model.translator.tgt_lang
    options = fields["sentences"], fields["format"]
    upload = Upload(fields["name"], fields["content"], *languages, *options)

    def open_document() -> tuple[StoredDocument, Preparation]:
        file = read_file(upload)
        open_session = service.begin(model, caller, setup, file.background)
        try:
            preparation = _preparation(service, caller, open_session, file, fields["fill"])
            first, remaining = file.segments[:TOGETHER], file.segments[TOGETHER:]
            segments = [*preparation.prepare(first), *remaining]
            head = {
                **{"name": name, "original": fields["name"][:MOST_NAME]},
                **{"project": project, "kind": file.kind},
                **{"strict": service.documents.is_strict(project, caller)},
                **{"sentences": file.sentences, "running": upload.running},
                **{"format": upload.format, "languages": languages, "fill": fields["fill"]},
                "unprepared": TOGETHER + 1 if preparation.has_work(remaining) else None,
                "session": open_session.record,
            }
            content = base64.b64decode(upload.content)
            return service.documents.make(id, caller, head, content, segments), preparation
        except BaseException:
            service.end(open_session.id, caller, id)
            raise

    document, preparation = await service.in_thread(open_document)
    if document.head["unprepared"] is not None:
        step = partial(prepare_more, service.documents, id, caller, preparation)
        service.do_later(f"prepare {id}", step)
    return _summary(document)


def _preparation(
    service: Service, caller: Caller, open_session: OpenSession, file: FileContent, rule: Fill
) -> Preparation:
    retriever = service.retriever(open_session, caller, file.background)
    return Preparation(open_session.session, retriever, rule, file.sources)


def _prepare_again(service: Service, caller: Caller, open_session: OpenSession, id: str) -> bool:
    """A step of the preparation of a document that another process has begun."""
    document = service.documents.get(id, caller)
    file = read_file(_upload(service, document))
    preparation = _preparation(service, caller, open_session, file, document.head["fill"])
    while service.ready and prepare_more(service.documents, id, caller, preparation):
        pass
    return False


def _upload(service: Service, document: StoredDocument) -> Upload:
    """The file of a document as it came."""
    head = document.head
    source, target = head["languages"]
    content = base64.b64encode(service.documents.content(document)).decode()
    return Upload(head["original"], content, source, target, head["running"], head["format"])


def _summary(document: StoredDocument) -> dict[str, Any]:
    """What is told of a document."""
    head, counts = document.head, document.head["counts"]
    names = "name", "original", "project", "kind", "sentences", "session", "segments"
    words = {name: counts.get(f"words {name}", 0) for name in ("all", "confirmed", "draft")}
    states = {
        name.removeprefix("state "): count
        for name, count in counts.items()
        if name.startswith("state ")
    }
    return {
        "id": document.id,
        **{name: head[name] for name in names},
        **{"source": head["session"]["source"], "target": head["session"]["target"]},
        **{"version": document.version, "words": words, "states": states},
        **{"issues": counts.get("issues", 0), "strict": head.get("strict", False)},
        **{"changed": head["changed"]},
        **{"created": head["created"], "by": head["by"]},
    }


async def listed(service: Service, call: ApiRequest) -> Any:
    """The documents that this key may use, the one that was changed last first."""
    documents = await service.write(lambda: service.documents.visible(call.caller))
    return {"documents": [_summary(document) for document in documents]}


async def summary(service: Service, call: ApiRequest) -> Any:
    """What is told of a document: its languages, its session, its version, how many segments and
    words are in which state."""
    return _summary(await _settled(service, call))


async def _settled(service: Service, call: ApiRequest) -> StoredDocument:
    """The document of the path, in which nothing is pending that was left behind."""
    document = await _document(service, call)
    pending, unprepared = document.head["pending"], document.head["unprepared"]
    if not pending and unprepared is None:
        return document
    open_session = await _session(service, call, document)
    if unprepared is not None:
        step = partial(_prepare_again, service, call.caller, open_session, document.id)
        service.do_later(f"prepare {document.id}", step)
    if not pending:
        return document
    settle = service.confirmations.settle
    return await service.write(lambda: settle(document.id, open_session, call.caller))


async def _document(service: Service, call: ApiRequest) -> StoredDocument:
    return await service.write(lambda: service.documents.get(call.path["document"], call.caller))


async def _session(service: Service, call: ApiRequest, document: StoredDocument) -> OpenSession:
    return await service.session(document.head["session"]["id"], call.caller)


async def rename(service: Service, call: ApiRequest) -> Any:
    """Changes the name of a document, its project, or whether its file may have what checks find.
    The last is that of all documents of its project; one that comes into a project takes it from
    there."""
    fields = _read(call.body, RENAME)
    names = {name: fields[name] for name in ("name", "project") if fields[name] is not None}
    changes: dict[str, Any] = {name: clean_name(value) for name, value in names.items()}
    id = (await _document(service, call)).id

    def renamed() -> StoredDocument:
        documents, caller, strict = service.documents, call.caller, fields["strict"]
        if changes.get("project") and strict is None:
            changes["strict"] = documents.is_strict(changes["project"], caller)
        if changes:
            documents.change(id, caller, (), lambda _: (), **changes)
        if strict is not None:
            documents.make_strict(id, caller, strict)
        return documents.get(id, caller)

    return _summary(await service.write(renamed))


async def delete(service: Service, call: ApiRequest) -> Any:
    """Deletes a document with its session. What was written to a memory stays there."""

    def deleted() -> None:
        document = service.documents.delete(call.path["document"], call.caller)
        service.end(document.head["session"]["id"], call.caller, document.id)

    await service.write(deleted)
    return Response(status_code=204)


async def segments(service: Service, call: ApiRequest) -> Any:
    """Segments of a document in order, with their drafts, states, checks and comments, and the
    number from which on the next may stand; null where there are no more."""
    fields = _read(call.query, LOOK)
    document = await _settled(service, call)
    found, following = await service.write(lambda: _looked_up(service, document, fields))
    return {"version": document.version, "segments": _records(found), "next": following}


def _looked_up(
    service: Service, document: StoredDocument, fields: Mapping[str, Any]
) -> tuple[list[WorkSegment], int | None]:
    """The segments that are wanted, and the number of the first that was not looked at."""
    found, count, end = list[WorkSegment](), fields["count"], document.head["segments"] + 1
    step = max(count, FEWEST_READ)
    for start in range(fields["first"], end, step):
        numbers = range(start, min(start + step, end))
        for segment in service.documents.segments(document, numbers).values():
            if len(found) == count:
                return found, segment.number
            if _is_wanted(segment, fields):
                found.append(segment)
    return found, None


def _is_wanted(segment: WorkSegment, fields: Mapping[str, Any]) -> bool:
    state, text = fields["state"], fields["text"].casefold()
    if state == "open" and (segment.is_translated or segment.is_locked):
        return False
    if state not in (None, "open", segment.state) or (fields["issues"] and not segment.open_issues):
        return False
    texts = segment.source, segment.present_text or ""
    return not text or any(text in unescape(entry).casefold() for entry in texts)


def _records(records: Sequence[WorkSegment]) -> list[dict[str, Any]]:
    return [segment.record for segment in records]


async def changes(service: Service, call: ApiRequest) -> Any:
    """What has changed in a document since a version, and who is there. Where nothing is newer, the
    answer waits for it."""
    fields = _read(call.query, FOLLOW)
    end, version = time.monotonic() + fields["wait"], fields["since"]
    document = await _settled(service, call)
    while True:
        people = await service.write(partial(service.documents.people, document))
        is_new = document.version != version or fields["stamp"] not in (None, stamp_of(people))
        if is_new or time.monotonic() >= end or not service.ready:
            break
        await asyncio.sleep(LOOK_INTERVAL)
        document = await _document(service, call)
    version = version if version <= document.version else 0  # of a storage that was put back
    records = await service.write(lambda: service.documents.changes(document, version))
    return {
        "version": document.version,
        "about": _summary(document),
        "segments": _records(records),
        "people": [
            {
                **{"name": person.name, "tab": person.tab, "number": person.number},
                "since": int(person.since),
            }
            for person in people
        ],
        "stamp": stamp_of(people),
    }


async def presence(service: Service, call: ApiRequest) -> Any:
    """Notes who has a document open, and at which segment. Who is not heard of for a while is
    forgotten."""
    fields = _read(call.body, PRESENCE)
    if len(fields["tab"]) > MOST_NAME:
        raise wrong("{field}: at most {limit} characters", field="tab", limit=MOST_NAME)
    document = await _document(service, call)
    note, caller = service.documents.note, call.caller
    await service.write(lambda: note(document, caller, fields["tab"], fields["number"]))
    return {}


@dataclass(frozen=True)
class _Draft:
    """What is written to a segment."""

    version: int | None
    text: str | None
    origin: Any = "person"
    match: int | None = None
    quality: float | None = None


def _with_draft(segment: WorkSegment, draft: _Draft, open_session: OpenSession) -> WorkSegment:
    """The segment with a draft. Raises Refused where it cannot be written to, or somebody else has
    changed it."""
    if segment.is_locked:
        raise Refused(409, "locked", segment.problem or "the segment is locked")
    current = segment.write(draft.text, draft.origin, draft.match, ())
    if current.text == segment.text:
        return segment
    _check_known(segment, draft.version)
    session, text = open_session.session, current.present_text
    checks = draft_checks(session, segment.source, text, segment.max_length)
    return replace(current, checks=checks, quality=draft.quality)


def _check_known(segment: WorkSegment, version: int | None) -> None:
    if version is None:
        raise wrong("version is needed: the version of the segment that is known")
    check_version(segment, version)


async def edit(service: Service, call: ApiRequest) -> Any:
    """Changes a segment: its draft, how far what is confirmed is right, a check that is ignored, or
    how likely it is right. Where somebody else has changed it since the version that is known,
    nothing is changed, and the answer with status 409 has the segment as it is."""
    fields = _read(call.body, EDIT)
    service.check_lengths([fields["text"] or ""])
    document = await _document(service, call)
    open_session = await _session(service, call, document)
    number, writes = _number(call), "text" in call.body
    draft = _Draft(fields["version"], fields["text"], fields["origin"] or "person", fields["match"])

    def work(records: Mapping[int, WorkSegment]) -> list[Edit]:
        segment = previous = records[number]
        if writes:
            segment = _with_draft(segment, draft, open_session)
        is_draft = segment is not previous
        segment = _judged(segment, fields)
        is_judged = segment.level != previous.level
        if fields["ignore"] is not None:
            segment = _ignoring(segment, fields["ignore"])
        if fields["quality"] is not None:
            segment = replace(segment, quality=fields["quality"])
        if segment == previous:
            return []
        return [Edit(segment, "event" if is_judged else "draft" if is_draft else "")]

    change = service.documents.change
    changed = await service.write(lambda: change(document.id, call.caller, [number], work))
    return changed[number].record


def _judged(segment: WorkSegment, fields: Mapping[str, Any]) -> WorkSegment:
    """The segment with how far a person said that it is right."""
    state = fields["state"]
    if state is None or (segment.state == state):
        return segment
    if segment.confirmed is None or segment.text is not None:
        raise Refused(409, "not_confirmed", "only what is confirmed is reviewed or approved")
    _check_known(segment, fields["version"])
    return replace(segment, level=state)


def _ignoring(segment: WorkSegment, ignored: Mapping[str, Any]) -> WorkSegment:
    reason = (ignored["reason"] or "").strip()
    if len(reason) > MOST_REASON:
        raise wrong("{field}: at most {limit} characters", field="reason", limit=MOST_REASON)
    check = {"name": ignored["check"], "what": ignored["what"]}
    if reason and check not in [dict(entry) for entry in segment.checks]:
        raise unknown("no check has found this")
    if reason and len(segment.ignored) >= MOST_IGNORED:
        raise wrong("at most {limit} checks of a segment are ignored", limit=MOST_IGNORED)
    return segment.ignore(check["name"], check["what"], reason or None)


def _number(call: ApiRequest) -> int:
    text = call.path["number"]
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise unknown("there is no such segment")
    return int(text)


async def edits(service: Service, call: ApiRequest) -> Any:
    """Writes many drafts at once. Segments that somebody else has changed since stay as they are,
    and are among the conflicts."""
    entries = _read(call.body, EDITS)["changes"]
    drafts = {entry["number"]: entry for entry in entries}
    if len(drafts) < len(entries):
        counts = Counter(entry["number"] for entry in entries)
        twice = next(number for number, count in counts.items() if count > 1)
        raise wrong(
            "changes: segment {number} is there more than once; each may be there once",
            number=twice,
        )
    service.check_lengths([entry["text"] or "" for entry in drafts.values()])
    document = await _document(service, call)
    open_session = await _session(service, call, document)
    conflicts = dict[int, WorkSegment]()

    def work(records: Mapping[int, WorkSegment]) -> list[Edit]:
        drafted = list[Edit]()
        conflicts.clear()
        for number, entry in drafts.items():
            try:
                draft = _Draft(entry["version"], entry["text"])
                segment = _with_draft(records[number], draft, open_session)
            except Refused:
                conflicts[number] = records[number]
                continue
            if segment is not records[number]:
                drafted.append(Edit(segment, "draft"))
        return drafted

    change, numbers = service.documents.change, sorted(drafts)
    changed = await service.write(lambda: change(document.id, call.caller, numbers, work))
    return {
        "segments": _records([changed[n] for n in numbers if n not in conflicts]),
        "conflicts": _records([*conflicts.values()]),
    }


async def confirm(service: Service, call: ApiRequest) -> Any:
    """Confirms a segment in the session of the document: the next text knows it, and it is on disk
    when this is answered, in the memory that the session writes to, too."""
    fields = _read(call.body, CONFIRM)
    service.check_lengths([fields["text"], fields["suggested"] or ""])
    if len(fields["request"] or "") > MOST_NAME:
        raise wrong("{field}: at most {limit} characters", field="request", limit=MOST_NAME)
    document, open_session = await _open_to_write(service, call)
    names = (
        *("version", "text", "on_checks", "repetitions", "request"),
        *("origin", "match", "quality"),
    )
    wish = Confirming(
        **{name: fields[name] for name in names},
        level=fields["state"],
        feedback={name: fields[name] for name in ("suggested", "keys")}
        | {"by": person(call.caller)},
    )
    number, work = _number(call), service.confirmations.confirm
    result = await service.write(lambda: work(document.id, open_session, call.caller, number, wish))
    service.counts["confirmed",] += 1
    return {
        "segment": result.segment.record,
        "repetitions": _records(result.repetitions),
        "differs": list(result.differing),
        "checks": [dict(check) for check in result.segment.checks],
    }


async def _open_to_write(service: Service, call: ApiRequest) -> tuple[StoredDocument, OpenSession]:
    """The document of the path and its session. Raises Refused where it writes to a memory, and the
    caller may not."""
    document = await _document(service, call)
    open_session = await _session(service, call, document)
    if open_session.setup.write_to is not None:
        call.caller.check("write")
    return document, open_session


async def undo(service: Service, call: ApiRequest) -> Any:
    """Takes back what this person confirmed last, or what is confirmed in a segment, with the
    repetitions that were confirmed with it."""
    fields = _read(call.body, UNDO)
    document, open_session = await _open_to_write(service, call)
    work = service.confirmations.undo
    records = await service.write(
        lambda: work(document.id, open_session, call.caller, fields["number"])
    )
    return {"segments": _records(records)}


async def history(service: Service, call: ApiRequest) -> Any:
    """What a segment has been, the newest first: every text that was confirmed, every state, and
    drafts as they were at pauses."""
    document, number = await _document(service, call), _number(call)

    def versions() -> list[Mapping[str, Any]]:
        service.documents.segment(document, number)
        return service.documents.history(document, number)

    return {"versions": [dict(entry) for entry in await service.write(versions)]}


async def comment(service: Service, call: ApiRequest) -> Any:
    """Adds a comment to a segment. Answers the segment."""
    text = _read(call.body, COMMENT)["text"].strip()
    if not text or len(text) > MOST_COMMENT:
        raise wrong("a comment has 1 to {limit} characters", limit=MOST_COMMENT)
    entry = {"id": secrets.token_hex(6), "by": person(call.caller), "time": iso_now(), "text": text}

    def work(segment: WorkSegment) -> WorkSegment:
        if len(segment.comments) >= MOST_COMMENTS:
            raise Refused(
                409,
                "full",
                "a segment has at most {limit} comments",
                values={"limit": MOST_COMMENTS},
            )
        return replace(segment, comments=[*segment.comments, entry])

    return await _commented(service, call, work)


async def delete_comment(service: Service, call: ApiRequest) -> Any:
    """Deletes a comment of a segment, but for those that stand in the file. Answers the
    segment."""
    if call.path["comment"].startswith(OF_FILE):
        raise Refused(409, "in_file", "this comment stands in the file, and stays there")

    def work(segment: WorkSegment) -> WorkSegment:
        remaining = [c for c in segment.comments if c["id"] != call.path["comment"]]
        if len(remaining) == len(segment.comments):
            raise unknown("there is no such comment")
        return replace(segment, comments=remaining)

    return await _commented(service, call, work)


async def _commented(service: Service, call: ApiRequest, work: Any) -> Any:
    document, number = await _document(service, call), _number(call)
    change = service.documents.change
    changed = await service.write(
        lambda: change(
            document.id, call.caller, [number], lambda records: [Edit(work(records[number]))]
        )
    )
    return changed[number].record


async def file(service: Service, call: ApiRequest) -> Any:
    """The file with what is confirmed, and with the states and comments that its format has a
    place for."""
    fields = _read(call.query, FILE)
    document = await _settled(service, call)

    caller, open_session = call.caller, await _session(service, call, document)
    is_strict = fields["issues"] == "refuse" or (
        fields["issues"] is None and document.head.get("strict", False)
    )

    def filled() -> bytes:
        if is_strict and document.head["unprepared"] is not None:
            _prepare_again(service, caller, open_session, document.id)
        records = [*service.documents.segments(document).values()]
        if is_strict:
            _check_issues(records, fields["drafts"])
        targets = [_target(segment, fields["drafts"]) for segment in records]
        keys = [key_of(s.document, s.id, s.context, s.source) for s in records]
        return filled_with(_upload(service, document), targets, fields["refused"] == "leave", keys)

    content = await service.in_thread(filled)
    return Response(content, media_type="application/octet-stream", headers=SAVED)


_ORIGINS = {"translated": "confirmed", "reviewed": "reviewed", "approved": "approved"}


def _target(segment: WorkSegment, with_drafts: bool) -> NewTarget:
    """What the file gets of a segment."""
    comments = [
        Comment(entry["text"], "" if entry["by"] == ANYBODY else entry["by"], entry["time"])
        for entry in segment.new_comments
    ]
    if with_drafts and segment.state == "draft":
        origin = "draft" if segment.origin in ("", "person") else segment.origin
        return NewTarget(segment.text or "", origin, comments)
    if segment.confirmed is None or segment.is_locked:
        return NewTarget("", "", comments)
    return NewTarget(segment.confirmed, _ORIGINS[segment.level], comments)


def _check_issues(records: Sequence[WorkSegment], with_drafts: bool) -> None:
    """Raises Refused where checks find something in what the file gets, or has."""
    issues = [
        {"segment": segment.number, "name": issue["name"], "what": issue["what"]}
        for segment in records
        if not segment.is_locked and (with_drafts or segment.state != "draft")
        for issue in segment.issues
        if issue["ignored"] is None
    ]
    if issues:
        raise Refused(
            409,
            "issues",
            "checks find something in the document that nobody has ignored",
            details={"issues": issues[:MOST_ISSUES]},
        )


_DOCUMENT = "/v1/desk/{document}"
_SEGMENT = f"{_DOCUMENT}/segments/{{number}}"
_COMMENTS = f"{_SEGMENT}/comments"
_COMMENT = f"{_COMMENTS}/{{comment}}"
_SUMMARY, _OF_SEGMENT = RouteAnswer(answers.DeskDocument), RouteAnswer(answers.DeskSegment)
_SEGMENTS, _CHANGES = RouteAnswer(answers.DeskSegments), RouteAnswer(answers.DeskChanges)
_DRAFTS, _CONFIRMED = RouteAnswer(answers.DeskDrafts), RouteAnswer(answers.DeskConfirmed)
_UNDONE, _HISTORY = RouteAnswer(answers.DeskUndone), RouteAnswer(answers.DeskHistory)
_LIST, _EMPTY_OBJECT = RouteAnswer(answers.DeskDocuments), RouteAnswer(answers.Nothing)


def _route(
    method: Method,
    path: str,
    handler: Handler,
    answer: RouteAnswer,
    fields: tuple[Field, ...] = (),
    room: int = 1,
) -> Route:
    """What a change of a document sends is kept on the server, but for who is there."""
    keeps = method in ("POST", "PATCH") and handler is not undo
    return Route(method, path, handler, "translate", fields, room=room, answer=answer, keeps=keeps)


DOCUMENTS = (
    _route("POST", "/v1/desk", begin, _SUMMARY, BEGIN, LARGE),
    _route("GET", "/v1/desk", listed, _LIST),
    _route("GET", _DOCUMENT, summary, _SUMMARY),
    _route("PATCH", _DOCUMENT, rename, _SUMMARY, RENAME),
    _route("DELETE", _DOCUMENT, delete, EMPTY),
    _route("GET", f"{_DOCUMENT}/segments", segments, _SEGMENTS, LOOK),
    _route("POST", f"{_DOCUMENT}/segments", edits, _DRAFTS, EDITS, LARGE),
    _route("GET", f"{_DOCUMENT}/changes", changes, _CHANGES, FOLLOW),
    _route("PUT", f"{_DOCUMENT}/presence", presence, _EMPTY_OBJECT, PRESENCE),
    _route("POST", f"{_DOCUMENT}/undo", undo, _UNDONE, UNDO),
    _route("GET", f"{_DOCUMENT}/file", file, FILE_ANSWER, FILE),
    _route("PATCH", _SEGMENT, edit, _OF_SEGMENT, EDIT),
    _route("POST", f"{_SEGMENT}/confirm", confirm, _CONFIRMED, CONFIRM),
    _route("GET", f"{_SEGMENT}/history", history, _HISTORY),
    _route("POST", _COMMENTS, comment, _OF_SEGMENT, COMMENT),
    _route("DELETE", _COMMENT, delete_comment, _OF_SEGMENT),
)
