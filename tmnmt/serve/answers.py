"""The answers of the own interface, each as a type. Routes name them; the OpenAPI document and the
test that checks every answer are made of them (`tmnmt.serve.schemas`)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from tmnmt.files.unit import Confirmation
from tmnmt.files.unit import State as UnitState
from tmnmt.segments import CacheSource, MemorySource, Provenance
from tmnmt.serve.storage.records import State as JobState
from tmnmt.serve.workspace.segment import Origin

Rounded = Annotated[float, "To 8 digits."]
CodeRecord = Annotated[list[str | int], "Place, kind, markup; then what is not as usual."]


class ErrorText(TypedDict):
    """What is wrong: a word for programs, a line for people, and the id that the request has in the
    log. A line with values has its `template`, too, in which {name} stands for each, so that it can
    be said in another language."""

    code: str
    message: str
    template: NotRequired[str]
    values: NotRequired[dict[str, str | int]]
    request: NotRequired[str]


class CheckRecord(TypedDict):
    """What a check has found in a translation."""

    name: str
    what: str


class RefusedTarget(TypedDict):
    """A target that cannot stand in its file. The first segment has the number 1. A reason with
    values has its `template`, too, as an error has."""

    segment: int
    reason: str
    template: NotRequired[str]
    values: NotRequired[dict[str, str | int]]


class SegmentIssue(CheckRecord):
    """What a check has found in a segment of a document."""

    segment: int


class DeskCheck(CheckRecord):
    """What a check has found in a segment, and why somebody has ignored it."""

    ignored: str | None


class CommentRecord(TypedDict):
    """A comment on a segment."""

    id: str
    by: str
    time: str
    text: str


class FileTarget(TypedDict):
    """What the file has of a segment."""

    target: str | None
    state: UnitState


class DeskSegment(TypedDict):
    """A segment of a document on which people work. Its texts are XML with short tags for codes."""

    number: Annotated[int, "From 1."]
    source: str
    file: FileTarget
    document: str
    id: str
    context: str
    plural: str
    notes: list[str]
    problem: str
    markup: Annotated[dict[str, str], "What each tag is in the file."]
    max_length: Annotated[int | None, "Characters of its target; null where the file has no limit."]
    text: Annotated[str | None, "The draft; null where there is none."]
    confirmed: Annotated[str | None, "What is confirmed; null where nothing is."]
    state: Literal["untouched", "draft", "translated", "reviewed", "approved", "locked"]
    origin: Annotated[Origin, "Where its text came from."]
    match: Annotated[int | None, "What the match was worth that it came from."]
    quality: Annotated[float | None, "How likely the text is right that was suggested."]
    checks: list[DeskCheck]
    comments: list[CommentRecord]
    repeats: Annotated[int | None, "The first segment with the same source; null for that one."]
    words: int
    by: Annotated[str, "Who changed it last."]
    time: Annotated[str, "When that was, in UTC by ISO 8601."]
    version: Annotated[int, "The version of the document then."]


class Error(TypedDict):
    """Why a request was refused. `checks` stand with the code `checks`, `refused` where targets
    cannot stand in their file, `segment` with the code `conflict`, and `issues` with `issues`."""

    error: ErrorText
    checks: NotRequired[list[CheckRecord]]
    refused: NotRequired[list[RefusedTarget]]
    segment: NotRequired[DeskSegment]
    issues: NotRequired[list[SegmentIssue]]


class RivalRecord(TypedDict):
    """Another translation of the same source."""

    tgt: str
    copies: int


class AgreementRecord(TypedDict):
    """How many segments that fit as well have the translation that was taken."""

    copies: int
    total: int
    rivals: NotRequired[list[RivalRecord]]


class MatchRecord(TypedDict):
    """A segment of a memory that is similar to a text. Points of `reasons` make up its worth.
    `memory`, `user` and `changed` are "" where they are not known."""

    id: int
    src: str
    tgt: str
    score: Annotated[float, "The fuzzy score, from 0 to 1."]
    document: str
    worth: NotRequired[Annotated[int, "From 0 to 102; 100 is the same text."]]
    reasons: NotRequired[dict[str, int]]
    adapted: NotRequired[Annotated[str, "Its translation with the numbers or case of the text."]]
    agreement: NotRequired[AgreementRecord]
    memory: Annotated[str, "The name of the memory that it was found in."]
    user: Annotated[str, "Who made or changed it last."]
    changed: Annotated[str, "When that was, in UTC by ISO 8601."]


class TokenRecord(TypedDict):
    """A subword of a translation, and where it came from."""

    text: str
    origin: str
    probability: Rounded
    generated: Rounded
    plain: Rounded
    provenance: list[Provenance]
    sources: list[MemorySource]
    attention: list[MemorySource]
    slots: list[CacheSource]
    recalled: Rounded
    copied: Rounded
    copy_gate: Rounded
    recall_gate: Rounded
    fusion_gate: Rounded
    cache_gate: Rounded
    cache_effect: Rounded
    fusion_effect: Rounded


class WordRecord(TypedDict):
    """A word, and how likely it is right."""

    text: str
    confidence: float


class SearchWorkRecord(TypedDict):
    """What the search of a memory has compared with a text."""

    candidates: int
    distances: int


class WorkRecord(TypedDict):
    """How much every stage has done for a translation."""

    search: Annotated[SearchWorkRecord | None, "null where no memory counts it."]
    pairs: int
    positions: int
    lookups: int
    neighbours: int


class NextBest(TypedDict):
    """A next best translation."""

    tgt: str
    score: float | None


class SegmentTranslation(TypedDict):
    """A translated segment, as `tmnmt translate --json` writes it."""

    src: str
    tgt: str
    origin: str
    score: Annotated[float | None, "null where it is infinite."]
    low: bool
    unknown: int
    missing_numbers: list[str]
    checks: list[CheckRecord]
    matches: list[MatchRecord]
    tokens: list[TokenRecord]
    src_codes: NotRequired[list[CodeRecord]]
    tgt_codes: NotRequired[list[CodeRecord]]
    confidence: NotRequired[float]
    words: NotRequired[list[WordRecord]]
    work: NotRequired[WorkRecord]
    others: NotRequired[list[NextBest]]


class TextTranslation(TypedDict):
    """The translation of a text, whole and by its segments."""

    text: str
    segments: list[SegmentTranslation]


class Translations(TypedDict):
    """The translations of texts, in order."""

    model: str
    translations: list[TextTranslation]


class StreamedTranslation(TextTranslation):
    """The translation of the text of this number, from 0."""

    index: int


class StreamEnd(TypedDict):
    """All texts are translated."""

    model: str
    texts: int


class NextWords(TypedDict):
    """What was typed, and what comes next."""

    model: str
    text: str


class Completion(SegmentTranslation):
    """The best translation that begins with what was typed."""

    model: str
    text: str


class AlternativeRecord(TypedDict):
    """A word that may stand behind what was typed."""

    text: str
    probability: float
    origin: str
    tokens: list[TokenRecord]


class Alternatives(TypedDict):
    """The likeliest words."""

    model: str
    alternatives: list[AlternativeRecord]


class ModelRecord(TypedDict):
    """A model."""

    name: str
    source: str
    target: str
    modes: list[str]


class Models(TypedDict):
    """All models."""

    models: list[ModelRecord]


class PairRecord(TypedDict):
    """A pair of languages with the names of its models."""

    source: str
    target: str
    models: list[str]


class LanguagePairs(TypedDict):
    """All pairs of languages."""

    pairs: list[PairRecord]


class MemoryRecord(TypedDict):
    """A memory."""

    name: str
    source: str
    target: str
    writable: bool
    segments: Annotated[int | None, "null where it is not known."]


class Memories(TypedDict):
    """All memories."""

    memories: list[MemoryRecord]


class SearchResult(TypedDict):
    """What a memory has for a text, best first."""

    query: str
    matches: list[MatchRecord]


class SearchResults(TypedDict):
    """What a memory has for each text."""

    results: list[SearchResult]


class SegmentIds(TypedDict):
    """The ids of segments that were added."""

    ids: list[int]


class StoredSegment(TypedDict):
    """A segment of a memory. Times are in UTC by ISO 8601; "" where they are not known."""

    id: int
    src: str
    tgt: str
    document: str
    origin: str
    user: str
    created: str
    changed: str


class OccurrenceRecord(TypedDict):
    """A segment that has a phrase, and where: first character, and the one behind the last."""

    id: int
    src: str
    tgt: str
    document: str
    user: str
    changed: str
    places: list[list[int]]


Concordance = TypedDict(
    "Concordance",
    {"query": str, "in": Literal["source", "target"], "matches": list[OccurrenceRecord]},
)
Concordance.__doc__ = "Segments of a memory that have a phrase, the newest first."


class SessionRecord(TypedDict):
    """How a session stands."""

    id: str
    model: Annotated[str | None, "null where no model is served."]
    source: str
    target: str
    memories: list[str]
    write_to: str | None
    terms: list[str]
    terms_domain: Annotated[str, "What chooses between meanings of terms; empty: nothing."]
    confirmed: int


class ConfirmedRecord(SessionRecord):
    """The session behind a confirmation, and what is to be looked at in the translation."""

    checks: list[CheckRecord]


class PairOfTexts(TypedDict):
    """A confirmed pair."""

    src: str
    tgt: str
    src_codes: NotRequired[list[CodeRecord]]
    tgt_codes: NotRequired[list[CodeRecord]]


class UndoneRecord(SessionRecord):
    """The session behind an undo, and the pair that was taken back."""

    undone: PairOfTexts


class ConfirmedPairs(TypedDict):
    """The pairs that were confirmed in a session, in order."""

    pairs: list[PairOfTexts]


class SessionSummary(TypedDict):
    """A session in a list. `began` is in seconds since 1970."""

    id: str
    name: str
    began: int
    model: str
    confirmed: int


class Sessions(TypedDict):
    """The sessions that a key may use, the latest first."""

    sessions: list[SessionSummary]


class ReviewedSegment(TypedDict):
    """A confirmed pair against what was suggested before. `typed` has keystrokes where they were
    counted, else the least characters that are typed and deleted."""

    src: str
    suggested: str | None
    tgt: str
    at: str
    edits: int
    tokens: int
    characters: int
    typed: int
    counted: bool
    segment: Annotated[str | None, "The name of its segment; null where nobody said."]
    by: Annotated[str, "Who confirmed it; empty where that is not known."]


class Review(TypedDict):
    """What was confirmed in a session against what was suggested before, in order."""

    id: str
    source: str
    target: str
    segments: list[ReviewedSegment]


class TermRecord(TypedDict):
    """A term and its translation."""

    source: str
    target: str


class SessionTerms(TypedDict):
    """The terms that were added in a session."""

    terms: list[TermRecord]


class TermPlaceRecord(TypedDict):
    """A term in a text, from the character `start` to that before `end`. One of `targets` is to
    stand for it."""

    source: str
    start: int
    end: int
    targets: list[str]
    forbidden: list[str]
    note: str
    context: str
    in_session: Annotated[bool, "Whether it was added in the session."]


class TermPlaces(TypedDict):
    """The terms that stand in a text."""

    terms: list[TermPlaceRecord]


class TermListRecord(TypedDict):
    """A list of terms of one pair of languages."""

    name: str
    source: str
    target: str
    terms: int


class DictionaryRecord(TypedDict):
    """How many terms a glossary has of a pair of languages."""

    source: str
    target: str
    terms: int


class GlossaryRecord(TypedDict):
    """A glossary that a client has made."""

    id: str
    name: str
    made: str
    dictionaries: list[DictionaryRecord]


class TermLists(TypedDict):
    """The lists of terms, and glossaries."""

    terms: list[TermListRecord]
    glossaries: list[GlossaryRecord]


class JobRecord(TypedDict):
    """How far a job is, and what came of it."""

    id: str
    kind: str
    state: JobState
    done: int
    total: Annotated[int | None, "null where it is not known."]
    memory: NotRequired[str]
    model: NotRequired[str]
    file: NotRequired[str]
    added: NotRequired[int]
    skipped: NotRequired[int]
    segments: NotRequired[int]
    translated: NotRequired[int]
    repetitions: NotRequired[int]
    left: NotRequired[Annotated[list[str], "Some units that could not be filled, and why."]]
    error: NotRequired[str]


class FileSegment(TypedDict):
    """A segment of a file. Its texts are XML with short tags for codes."""

    source: str
    target: str | None
    state: UnitState
    confirmation: Confirmation
    document: str
    id: str
    context: str
    plural: str
    notes: list[str]
    problem: str
    markup: Annotated[dict[str, str], "What each tag is in the file."]
    max_length: Annotated[int | None, "Characters of its target; null where the file has no limit."]


class FileSegments(TypedDict):
    """The segments of a file, and whether its text was cut into sentences."""

    kind: str
    sentences: bool
    segments: list[FileSegment]


class DeskSession(TypedDict):
    """The session of a document, and what it reads and writes."""

    id: str
    model: Annotated[str | None, "null where only memories are served."]
    source: str
    target: str
    memories: list[str]
    write_to: str | None
    terms: list[str]
    terms_domain: Annotated[str, "What chooses between meanings of terms; empty: nothing."]


class WordCounts(TypedDict):
    """Words of the source: of all segments that are not locked, of those that are confirmed or
    translated in the file, and of drafts."""

    all: int
    confirmed: int
    draft: int


class DeskDocument(TypedDict):
    """A document on which people work."""

    id: str
    name: str
    original: Annotated[str, "The name of the file as it came."]
    project: str
    kind: str
    sentences: bool
    session: DeskSession
    segments: int
    source: str
    target: str
    version: int
    words: WordCounts
    states: Annotated[dict[str, int], "How many segments are in each state."]
    issues: Annotated[int, "What checks found and nobody has ignored."]
    strict: Annotated[bool, "Whether there is no file while checks find something in it."]
    changed: str
    created: str
    by: str


class DeskDocuments(TypedDict):
    """Documents, the one that was changed last first."""

    documents: list[DeskDocument]


class DeskSegments(TypedDict):
    """Segments of a document in order."""

    version: int
    segments: list[DeskSegment]
    next: Annotated[int | None, "The number from which on there may be more; null: there are none."]


class PersonRecord(TypedDict):
    """Somebody who has a document open."""

    name: str
    tab: str
    number: Annotated[int | None, "The segment at work."]
    since: Annotated[int, "When the person came there, in seconds since 1970."]


class DeskChanges(TypedDict):
    """What has changed in a document, and who is there."""

    version: int
    segments: list[DeskSegment]
    about: DeskDocument
    people: list[PersonRecord]
    stamp: Annotated[str, "Another one where people have moved."]


class DeskDrafts(TypedDict):
    """Segments that were written to, and those that somebody else has changed meanwhile."""

    segments: list[DeskSegment]
    conflicts: list[DeskSegment]


class DeskConfirmed(TypedDict):
    """A segment that was confirmed, and what became of its repetitions."""

    segment: DeskSegment
    repetitions: list[DeskSegment]
    differs: Annotated[list[int], "Repetitions for which a person has another text."]
    checks: list[CheckRecord]


class DeskUndone(TypedDict):
    """Segments that are not confirmed any more."""

    segments: list[DeskSegment]


class DeskVersion(TypedDict):
    """What a segment was."""

    edit: Annotated[int, "Grows with every entry."]
    text: str | None
    confirmed: str | None
    state: str
    origin: Origin
    by: str
    time: str


class DeskHistory(TypedDict):
    """What a segment has been, the newest first."""

    versions: list[DeskVersion]


class Nothing(TypedDict):
    """There is nothing to tell."""


class Health(TypedDict):
    """The server runs."""

    status: Literal["ok"]
    models: int


class Amount(TypedDict):
    """How much a tenant has had of something."""

    limit: Annotated[int | None, "How much it may have; none for any."]
    count: Annotated[int | None, "How much it has had; none where nobody counts."]
    resets: Annotated[int, "Seconds until it is counted anew."]


class Bytes(TypedDict):
    """How much is kept for a tenant."""

    limit: int
    count: int


class TenantUsage(TypedDict):
    """What the tenant of the key has had today, and may have."""

    tenant: str
    characters: Amount
    documents: Amount
    requests: Amount
    bytes: Bytes


class Reloaded(TypedDict):
    """What is served after everything was read again, by names."""

    models: list[str]
    memories: list[str]
    terms: list[str]
    keys: Annotated[int | None, "How many; none without a file of keys."]
    opened: Annotated[list[str], "Models and memories that were opened for it."]
    closed: Annotated[list[str], "Those that are served no more, or were opened anew."]
    restart: Annotated[list[str], "Entries that have changed and that a restart alone takes."]


class Ready(TypedDict):
    """Whether the server takes requests."""

    ready: bool


class DialectRecord(TypedDict):
    """An interface of another server that this one speaks, where it begins, and where it is
    described."""

    name: str
    prefixes: list[str]
    description: Annotated[str, "The address of its OpenAPI document."]


class Dialects(TypedDict):
    """The interfaces of other servers that this one speaks."""

    dialects: list[DialectRecord]


OpenApi = dict[str, Any]
