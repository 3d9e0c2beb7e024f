"""What the dialects answer, as their clients read it: for the OpenAPI documents, and for the tests,
which hold every answer to them."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

# --- OpenAI


class ChatMessage(TypedDict):
    """The translation."""

    role: str
    content: str
    refusal: None


class ChatChoice(TypedDict):
    """The one answer."""

    index: int
    finish_reason: str
    logprobs: None
    message: ChatMessage


class ChatUsage(TypedDict):
    """Words and marks, which stand for tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(TypedDict):
    """An answer of a chat. With `stream` it comes in events, as OpenAI sends them."""

    id: str
    object: str
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage


class ModelCard(TypedDict):
    """A model, or the languages of one."""

    id: str
    object: str
    created: int
    owned_by: str


class ModelCards(TypedDict):
    """All of them."""

    object: str
    data: list[ModelCard]


# --- FakeMT, Wordfast, OPUS-CAT and IBM Watson


class PlainTranslation(TypedDict):
    """A translation."""

    translation: str


class WatsonTranslations(TypedDict):
    """The translations of the texts in order, and how many words and characters these had."""

    translations: list[PlainTranslation]
    word_count: int
    character_count: int


# --- LibreTranslate


class LibreLanguage(TypedDict):
    """The language of a text; nothing is measured, so that the confidence is 0."""

    confidence: int
    language: str


class LibreTranslation(TypedDict):
    """A list for a list of texts; else one text."""

    translatedText: str | list[str]
    detectedLanguage: NotRequired[LibreLanguage | list[LibreLanguage]]
    alternatives: NotRequired[list[Any]]


class LibreTargets(TypedDict):
    """A language with those into which it is translated."""

    code: str
    name: str
    targets: list[str]


class LibreName(TypedDict):
    """A language with its name."""

    code: str
    name: str


class LibrePair(TypedDict):
    """The languages with which a page begins."""

    source: LibreName
    target: LibreName


class LibreSettings(TypedDict):
    """What a page of LibreTranslate asks for."""

    apiKeys: bool
    charLimit: int
    filesTranslation: bool
    frontendTimeout: int
    keyRequired: bool
    language: LibrePair
    suggestions: bool
    supportedFilesFormat: list[str]


class LibreHealth(TypedDict):
    """Whether the server is there."""

    status: str


# --- tmserver and amaGama


class MemoryCandidate(TypedDict):
    """A match with what it is worth in per cent."""

    source: str
    target: str
    quality: float
    rank: float


class MemoryLanguages(TypedDict):
    """The languages of the memories."""

    sourceLanguages: list[str]
    targetLanguages: list[str]


# --- MyMemory


class MyMemoryData(TypedDict):
    """The best translation, and its score from 0 to 1."""

    translatedText: str
    match: float


MyMemoryMatch = TypedDict(
    "MyMemoryMatch",
    {
        "id": str,
        "segment": str,
        "translation": str,
        "quality": str,
        "reference": str,
        "usage-count": int,
        "subject": str,
        "created-by": str,
        "last-updated-by": str,
        "create-date": str,
        "last-update-date": str,
        "match": float,
    },
)


class MyMemoryAnswer(TypedDict):
    """A translation with the matches, the best first."""

    responseData: MyMemoryData
    quotaFinished: bool
    responseDetails: str
    responseStatus: int
    matches: list[MyMemoryMatch]


class MyMemoryStored(TypedDict):
    """What says that a pair is in the memory, with its id."""

    responseData: str
    responseStatus: int
    responseDetails: list[str]


# --- Apertium


class ApertiumText(TypedDict):
    """A translation."""

    translatedText: str


class ApertiumTranslation(TypedDict):
    """A translation in its envelope."""

    responseData: ApertiumText
    responseDetails: None
    responseStatus: int


class ApertiumPair(TypedDict):
    """Two languages by their codes."""

    sourceLanguage: str
    targetLanguage: str


class ApertiumPairs(TypedDict):
    """The pairs in their envelope."""

    responseData: list[ApertiumPair]
    responseDetails: None
    responseStatus: int


# --- DeepL


class DeeplTranslation(TypedDict):
    """The translation of a text; nothing is billed."""

    detected_source_language: str
    text: str
    billed_characters: int


class DeeplTranslations(TypedDict):
    """Those of all texts in order."""

    translations: list[DeeplTranslation]


class DeeplLanguage(TypedDict):
    """A language that is served."""

    language: str
    name: str
    supports_formality: bool


class DeeplResourceLanguage(TypedDict):
    """A language, and whether it is a source or a target."""

    lang: str
    name: str
    usable_as_source: bool
    usable_as_target: bool
    features: dict[str, Any]


class DeeplUsage(TypedDict):
    """Nothing is billed."""

    character_count: int
    character_limit: int


class DeeplMemory(TypedDict):
    """A memory."""

    translation_memory_id: str
    name: str
    source_language: str
    target_languages: list[str]
    segment_count: int


class DeeplMemories(TypedDict):
    """A page of memories."""

    translation_memories: list[DeeplMemory]
    total_count: int


class DeeplDictionary(TypedDict):
    """The terms of a pair of languages, by their number."""

    source_lang: str
    target_lang: str
    entry_count: int


class DeeplGlossary(TypedDict):
    """A glossary, which may have several pairs of languages."""

    glossary_id: str
    name: str
    creation_time: str
    dictionaries: list[DeeplDictionary]


class DeeplGlossaries(TypedDict):
    """All of them."""

    glossaries: list[DeeplGlossary]


class DeeplPairGlossary(DeeplDictionary):
    """A glossary of one pair of languages."""

    glossary_id: str
    name: str
    ready: bool
    creation_time: str


class DeeplPairGlossaries(TypedDict):
    """All that have one pair of languages."""

    glossaries: list[DeeplPairGlossary]


class DeeplEntries(TypedDict):
    """The terms of a pair of languages, as lines with a tab in each."""

    source_lang: str
    target_lang: str
    entries: str
    entries_format: str


class DeeplDictionaries(TypedDict):
    """The terms of the pair that was asked for."""

    dictionaries: list[DeeplEntries]


class DeeplPair(TypedDict):
    """Two languages by their codes."""

    source_lang: str
    target_lang: str


class DeeplPairs(TypedDict):
    """The pairs that glossaries may have."""

    supported_languages: list[DeeplPair]


class DeeplTargetSegment(TypedDict):
    """The translation of a segment of a memory."""

    target_segment_id: str
    target_language: str
    target_text: str
    creation_time: str | None
    updated_time: str | None


class DeeplSegment(TypedDict):
    """A segment of a memory."""

    source_segment_id: str
    source_text: str
    creation_time: str | None
    updated_time: str | None
    targets: list[DeeplTargetSegment]


class DeeplSegments(TypedDict):
    """A page of a memory, and where the next begins."""

    segments: list[DeeplSegment]
    segment_count: int
    next_page_cursor: NotRequired[str]


class DeeplImport(TypedDict):
    """Where the file of an import goes."""

    job_id: str
    upload_url: str
    expires_at: str


class DeeplMemoryId(TypedDict):
    """The memory of a job."""

    translation_memory_id: str | None


class DeeplExport(TypedDict):
    """A job that has begun."""

    job_id: str
    parameters: DeeplMemoryId


class DeeplAction(TypedDict):
    """What the client has to do."""

    required_action: str


class DeeplError(TypedDict):
    """Why a job has failed."""

    message: str


class DeeplResult(TypedDict):
    """How far a job is."""

    status: str
    translation_memory_id: str | None
    status_metadata: NotRequired[DeeplAction]
    download_url: NotRequired[str]
    skipped_segment_count: NotRequired[int]
    error: NotRequired[DeeplError]


class DeeplJob(TypedDict):
    """A job that reads or writes the file of a memory."""

    job_id: str
    operation: str
    product: str
    parameters: DeeplMemoryId
    creation_time: str
    updated_time: str
    results: list[DeeplResult]


# --- ModernMT, each in an envelope with its status


class ModernTranslation(TypedDict):
    """The translation of a text; nothing is billed."""

    translation: str
    characters: int
    billedCharacters: int
    altTranslations: NotRequired[list[str]]
    detectedLanguage: NotRequired[str]


class ModernTranslated(TypedDict):
    """A list for a list of texts; else one."""

    status: int
    data: ModernTranslation | list[ModernTranslation]


class ModernLanguages(TypedDict):
    """The codes of all languages."""

    status: int
    data: list[str]


class ModernPairs(TypedDict):
    """Target languages by their source language."""

    status: int
    data: dict[str, list[str]]


class ModernDetection(TypedDict):
    """The language of a text; nothing is billed."""

    billedCharacters: int
    detectedLanguage: str


class ModernDetected(TypedDict):
    """A list for a list of texts; else one."""

    status: int
    data: ModernDetection | list[ModernDetection]


class ModernBilling(TypedDict):
    """Nothing is billed."""

    chars: int


class ModernPerson(TypedDict):
    """Whose key it is."""

    name: str
    billingPeriod: ModernBilling


class ModernUser(TypedDict):
    """Whose key it is, in the envelope."""

    status: int
    data: ModernPerson


class ModernVectors(TypedDict):
    """How near memories are to a text, by target language."""

    source: str
    vectors: dict[str, str]


class ModernContext(TypedDict):
    """The same in the envelope."""

    status: int
    data: ModernVectors


class ModernMemory(TypedDict):
    """A memory with its number, or a glossary with its id."""

    id: int | str
    name: str
    creationDate: str


class ModernMemories(TypedDict):
    """All of them."""

    status: int
    data: list[ModernMemory]


class ModernOneMemory(TypedDict):
    """One of them."""

    status: int
    data: ModernMemory


class ModernImport(TypedDict):
    """How far an import is, from 0 to 1."""

    id: str
    memory: int | str
    size: int
    progress: float


class ModernImported(TypedDict):
    """The same in the envelope."""

    status: int
    data: ModernImport
