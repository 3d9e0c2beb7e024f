"""Every option of a translation, once: its name, default, what it may be, and what it is for.

They stand in groups by what they steer, and `TranslationOptions` has all of them.
`Translator.load`, the command line, the recipes of `evaluate`, what a result records and the
reference are made from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from tmnmt.config.bounds import (
    AboveZero,
    Bound,
    Choices,
    Help,
    Location,
    ShareBelowOne,
    is_date,
    is_pattern,
    number,
    whole,
)
from tmnmt.config.option import Options
from tmnmt.errors import UsageError
from tmnmt.registry import Registry

STDOUT = "-"
MEMORY_PLACES = "Index, its address on a server, or file"
DRAFTS = 75  # what a match is worth that becomes a draft where no model is given
LANGUAGES = "Languages and device"  # a group of options without a class


class ReadingMode(NamedTuple):
    """How a memory is read; which layers serve a mode, the layers say.

    retrieves: whether pairs are looked up for a segment.
    neighbours: how many positions of the whole memory are read at every word where nothing else is
    said."""

    retrieves: bool = True
    neighbours: int = 0


MODES: Registry[ReadingMode] = Registry(
    "mode", {"nearest": ReadingMode(), "off": ReadingMode(retrieves=False)}
)
# each is a `tmnmt.index.select.Selector`
SELECTIONS: Registry[Any] = Registry(
    "selection",
    {"topk": "tmnmt.index.select:select_top", "greedy": "tmnmt.index.select:select_greedy"},
)
# each is a `tmnmt.index.select.Ranking`
SIMILARITIES: Registry[Any] = Registry("similarity", {"fuzzy": "tmnmt.index.select:FUZZY"})

Form = Literal["monolingual", "bilingual", "regression"]  # of a reference network
ContextForm = Literal["attended", "auxiliary", "gated", "around"]  # of a context network
Select = Annotated[str, Choices(SELECTIONS)]
Similarity = Annotated[str, Choices(SIMILARITIES)]
Remember = Literal["confirmed", "own", "nothing"]
ConfirmTo = Literal["both", "memory", "cache"]
Precision = Literal["fp32", "bf16", "int8"]
Untranslated = Literal["empty", "source"]
Overwrite = Literal["nothing", "drafts", "all"]
OwnTranslations = Literal["approved", "translated", "off"]
TermsMode = Literal["soft", "hard"]
Format = Literal["text"]  # that a file may be said to have

# Options that a command can have outside a group, too.
Threshold = Annotated[float, number(0, 1), Help("Smallest fuzzy score of a pair.")]
TopK = Annotated[int, whole(0, 1000), Help("Pairs read for a segment; 0: none, only --neighbours.")]
Beam = Annotated[int, whole(1, 1000), Help("Hypotheses kept at every step.")]
LengthPenalty = Annotated[
    float, number(0, 10), Help("Score = log probability / length to this power.")
]
Device = Annotated[
    str | None,
    Help(
        "auto, cpu, cuda, cuda:1, ...; auto: a GPU where there is one.",
        metavar="NAME",
        title=LANGUAGES,
    ),
]
Threads = Annotated[
    int | None,
    whole(1, 1024),
    Help("CPU threads; not given, all cores.", everyday=True),
]
Language = Annotated[
    str | None,
    Help(
        "Language in memory files; not given, the model's.",
        metavar="CODE",
        title=LANGUAGES,
    ),
]
Targets = Annotated[
    Overwrite,
    Help("Of an XLIFF, PO or other file with targets: which of these are translated anew."),
]
OwnPairs = Annotated[
    OwnTranslations,
    Help(
        "Which translations that the file has already are taken as confirmed: those that are "
        "approved, also those that are translated, or none.",
    ),
]
FileFormat = Annotated[
    Format | None,
    Help("text: a file is plain text, whatever its name is.", everyday=True),
]
WriteTo = Annotated[
    str | None,
    Help(
        "Index that gets confirmed pairs; it is read, made at need.",
        metavar="INDEX",
        everyday=True,
    ),
]

Keep = Annotated[
    str | None,
    Bound("a regular expression that matches no empty text", is_pattern),
    Help(
        "What this matches comes through as it is, besides placeholders, code and the like.",
        metavar="REGEX",
    ),
]

_NamedFile = Bound("a file, not standard output", lambda path: str(path) != STDOUT)


@dataclass(frozen=True)
class Search(Options):
    """Which pairs are found for a segment."""

    title = "Search"
    top_k: TopK = 4
    threshold: Threshold = 0.5
    short_threshold: Annotated[
        float,
        number(0, 1),
        Help("Smallest fuzzy score of a pair for a segment of up to three words."),
    ] = 0.6
    fragments: Annotated[
        int,
        whole(0, 1000),
        Help("Pairs read with --mode nearest for a segment that none is like: by rare phrases."),
    ] = 16


@dataclass(frozen=True)
class SegmentFilter(Options):
    """Which segments of the memories are found at all, as `tmnmt memory list` takes them."""

    title = "Memories"
    document: Annotated[str | None, Help("Only segments of this document.", metavar="NAME")] = None
    origin: Annotated[
        str | None,
        Help("Only those of this origin, such as the file they came from.", metavar="NAME"),
    ] = None
    user: Annotated[str | None, Help("Only those of this user.", metavar="NAME")] = None
    since: Annotated[
        str | None,
        Help(
            "Only those changed then or later: 2026-01-31 or 2026-01-31T12:00:00Z.", metavar="DATE"
        ),
    ] = None
    before: Annotated[str | None, Help("Only those changed earlier, or never.", metavar="DATE")] = (
        None
    )
    property: Annotated[
        str | None,
        Help("Only those with this property: NAME, or NAME=VALUE.", metavar="NAME[=VALUE]"),
    ] = None


@dataclass(frozen=True)
class Selection(Options):
    """Which of the pairs found are read."""

    title = "Selection among the pairs found"
    select: Annotated[
        Select,
        Help(
            "Which pairs are taken. topk: the best. greedy: the best, then always the one that "
            "covers most words not covered yet, until none does. walk: down the list, all that "
            "cover a word not covered yet. contrastive: the best, then always the most like the "
            "text and the least like those taken. All but topk choose from the 100 best."
        ),
    ] = "topk"
    similarity: Annotated[
        Similarity,
        Help(
            "What ranks the pairs, and is shown as their score. bleu: sentence BLEU over the 100 "
            "best by fuzzy score; it does not see others. --threshold is of the fuzzy score "
            "either way."
        ),
    ] = "fuzzy"
    alpha: Annotated[
        float | None,
        number(0),
        Help(
            "Of contrastive: how much likeness to the pairs taken counts against likeness to the "
            "text; not given, 0.1."
        ),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha is not None and self.select != "contrastive":
            raise UsageError(f"alpha is of select contrastive, and select is {self.select}")


@dataclass(frozen=True)
class Penalties(Options):
    """What a match is worth: points that are taken of it (`tmnmt.index.match_value`)."""

    title = "What a match is worth"
    penalty_codes: Annotated[
        int, whole(0, 100), Help("Points off a match whose inline codes or placeholders differ.")
    ] = 1
    penalty_numbers: Annotated[
        int,
        whole(0, 100),
        Help("Points off where numbers differ, and it is not sure how to put in the right ones."),
    ] = 5
    penalty_case: Annotated[int, whole(0, 100), Help("Points off where case differs.")] = 1
    penalty_punctuation: Annotated[
        int, whole(0, 100), Help("Points off where punctuation differs.")
    ] = 1
    penalty_domain: Annotated[
        int, whole(0, 100), Help("Points off a match that is not of the domain asked for.")
    ] = 5
    penalty_machine: Annotated[
        int, whole(0, 100), Help("Points off a match that a machine has translated.")
    ] = 15
    penalty_alignment: Annotated[
        int, whole(0, 100), Help("Points off a match that was made by aligning two texts.")
    ] = 5
    penalty_old: Annotated[
        int, whole(0, 100), Help("Points off a match that is older than --older-than.")
    ] = 5
    older_than: Annotated[
        str | None,
        Bound("a date, as 2026-01-31", is_date),
        Help("The day before which matches count as old, as 2026-01-31.", metavar="DATE"),
    ] = None
    domain: Annotated[
        str | None,
        Bound("NAME=VALUE", lambda text: all(text.partition("="))),
        Help(
            "The domain asked for: a property that matches should have, or document=NAME.",
            metavar="NAME=VALUE",
        ),
    ] = None

    @property
    def domain_property(self) -> tuple[str, str]:
        """The property that `domain` names, and its value; "" both where it names none."""
        name, _, value = (self.domain or "").partition("=")
        return name, value


@dataclass(frozen=True)
class SessionOptions(Options):
    """What a session learns, and where that goes: the memory, the session cache."""

    title = "Session cache"
    remember: Annotated[
        Remember,
        Help(
            "What a document's translations learn from. confirmed: what you confirm. own: what "
            "the model said, too, in the session cache; this does harm where it was measured. "
            "nothing."
        ),
    ] = "confirmed"
    confirm_to: Annotated[
        ConfirmTo, Help("Where what you confirm goes: a memory, the session cache.")
    ] = "both"
    cache: Annotated[
        int | None,
        whole(0, 100_000),
        Help("Slots of the session cache; not given, as many as the model has learned with."),
    ] = None
    cache_overwrite: Annotated[
        bool | None,
        Help(
            "A word that comes again shares one slot / takes a new slot; not given, as the model "
            "has learned."
        ),
    ] = None
    cache_best: Annotated[
        int, whole(1, 1000), Help("Of own words: the beam's best hypotheses that are remembered.")
    ] = 1


@dataclass(frozen=True)
class Neighbours(Options):
    """The words of the whole memory that are nearest to a word."""

    title = "Neighbours"
    neighbours: Annotated[
        int | None,
        whole(0, 1000),
        Help(
            "Words of the whole memory, by the keys of tmnmt keys, read at every word, with --mode "
            "nearest at those of a draft, where no pair is similar; not given, 16 with --mode knn "
            "or --knn-adaptive, with --mode nearest what tmnmt calibrate has chosen, else 0."
        ),
    ] = None
    knn_weight: Annotated[
        ShareBelowOne,
        Help("Of the neighbours' words with --mode knn."),
    ] = 0.02
    knn_temperature: Annotated[
        AboveZero,
        Help("Of the neighbours' squared distances with --mode knn."),
    ] = 5.0
    knn_adaptive: Annotated[
        str | Path | None,
        Help("What tmnmt adapt-knn made: weighs the neighbours at every word.", metavar="FILE"),
    ] = None


@dataclass(frozen=True)
class Decoding(Options):
    """How the model writes, and what it reads of the memory."""

    title = "Decoding"
    mode: Annotated[
        str | None,
        Choices(MODES),
        Help(
            "How the memory is read: {choices}; not given, copy if it was learned, else nearest.",
            metavar="MODE",
            everyday=True,
        ),
    ] = None
    verbatim: Annotated[
        int,
        whole(0, 102),
        Help(
            "Take matches worth so much, as they stand or with the right numbers / 0: translate "
            "everything.",
            is_negatable=True,
        ),
    ] = 100
    headings: Annotated[
        bool,
        Help(
            "Read headings that nothing in the memory is like as within a sentence, too, where the "
            "model is in doubt; the likelier translation stays."
        ),
    ] = True
    typography: Annotated[
        str | None,
        Help(
            "The language and region whose quotes and blanks what the model writes gets, as fr-CA; "
            "off: none; not given, the model's language.",
            metavar="CODE",
        ),
    ] = None
    lost_sentences: Annotated[
        bool,
        Help(
            "Translate a segment of several sentences again, one at a time, where its translation "
            "has fewer."
        ),
    ] = True
    patches: Annotated[
        bool,
        Help(
            "Where a translation is that of a match with another source as it stands, put in what "
            "the source has otherwise."
        ),
    ] = True
    beam: Beam = 5
    batch: Annotated[
        int,
        whole(1, 10_000),
        Help("Segments decoded side by side; with a session cache, one each of so many documents."),
    ] = 32
    length_penalty: LengthPenalty = 1.0
    reference: Annotated[bool, Help("Read the model's reference network, where it has one.")] = True
    context: Annotated[
        bool,
        Help("Read other segments of the document, where the model has learned to."),
    ] = True
    nbest: Annotated[
        int,
        whole(1, 1000),
        Help("So many of the best translations, at most as many as the beam, with --json."),
    ] = 1
    keep: Keep = None
    precision: Annotated[
        Precision | None,
        Help(
            "Of products; as the model folder says, else fp32. int8 is several times as fast on a "
            "CPU, for a Transformer or a student; bf16 is faster in batches on CPUs that have it, "
            "and a line may read otherwise among others than alone."
        ),
    ] = None
    shortlist: Annotated[
        bool | None,
        Help(
            "Compare only words that the source's may become, as tmnmt shortlist has learned; "
            "faster for large vocabularies, and the default for a student that has a shortlist."
        ),
    ] = None


@dataclass(frozen=True)
class HostedBase(Options):
    """What a base behind an address is told, and how it is asked."""

    title = "A base behind an address"
    prompt: Annotated[
        str | Path | None,
        Location(),
        Help(
            "Template of what the base is told; not given, that which tmnmt prompt prints.",
            metavar="FILE",
        ),
    ] = None
    prompt_tokens: Annotated[
        int,
        whole(100, 1_000_000),
        Help("Tokens of a prompt at most, the text itself aside; three bytes count as one."),
    ] = 2000
    last_pairs: Annotated[
        int, whole(0, 1000), Help("Pairs confirmed last in the document that a prompt has.")
    ] = 5
    key_file: Annotated[
        str | Path | None,
        Location(),
        Help("File with the key of the address; not given, TMNMT_API_KEY.", metavar="FILE"),
    ] = None
    requests: Annotated[int, whole(1, 64), Help("Requests that wait for an answer at a time.")] = 4
    request_seconds: Annotated[
        int, whole(1, 3600), Help("That a segment may take, with all that is tried again.")
    ] = 120
    keep_answers: Annotated[
        bool, Help("Keep answers on this machine, and take them for the same prompt.")
    ] = True
    plain_http: Annotated[
        bool, Help("Allow http: to another machine, where others on the way can read all.")
    ] = False


# those of them that no translation depends on
REQUESTING = ("key_file", "requests", "request_seconds", "keep_answers", "plain_http")


@dataclass(frozen=True)
class Terms(Options):
    """Words whose translation is given."""

    title = "Terms"
    terms: Annotated[
        Path | None,
        _NamedFile,
        Help(
            "Terms and their translations: TBX, CSV, TSV, glossary.txt.",
            metavar="FILE",
            everyday=True,
        ),
    ] = None
    terms_mode: Annotated[
        TermsMode,
        Help(
            "soft: a given translation of a term comes, or a form of it that the model chooses. "
            "hard: one of those given, as it is."
        ),
    ] = "soft"
    terms_domain: Annotated[
        str | None,
        Help(
            "What the texts are about, as finance. Of a term with several meanings, the one counts "
            "whose context names it."
        ),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.terms is None and self.terms_mode != "soft":
            raise UsageError("--terms-mode is of --terms, and there are none")
        if self.terms is None and self.terms_domain is not None:
            raise UsageError("--terms-domain is of --terms, and there are none")


@dataclass(frozen=True)
class Runtime(Options):
    """The languages of memory files, and what the model computes on."""

    title = LANGUAGES
    src_lang: Language = None
    tgt_lang: Language = None
    device: Device = None
    threads: Threads = None


@dataclass(frozen=True)
class ModelOptions(Penalties, Neighbours, SessionOptions, Selection, Search, HostedBase, Decoding):
    """How a model writes and what it reads, whatever its memories and terms are."""


@dataclass(frozen=True)
class TranslationOptions(Runtime, Terms, SegmentFilter, ModelOptions):
    """All that steers a translation. Every option that is not set has the default of its group.
    A wrong value raises UsageError, which names the option and what is allowed.

    Where `mode` is None, the memory is read by copy if the model has learned that, and by nearest
    positions if the model has learned nothing of memories. `src_lang` and `tgt_lang` are the
    languages of memory files. Where they are None, they are those of the model, and the regions of
    the files may differ. `threads` is the number of threads that torch uses while it computes for
    this translator. Other code in the process keeps the number that it has."""


@dataclass(frozen=True)
class Confirming(Options):
    """A document that is worked on, and what is confirmed of it."""

    title = "A document, worked on"
    interactive: Annotated[
        bool,
        Help(
            "Edit and confirm every translation; default without INPUT.",
            short="-i",
            everyday=True,
        ),
    ] = False
    confirmed: Annotated[
        Path | None,
        _NamedFile,
        Help(
            "The document's first lines translated, or a TSV or TMX.",
            metavar="FILE",
            everyday=True,
        ),
    ] = None
    session: Annotated[
        Path | None,
        _NamedFile,
        Help(
            "The document's session: kept there with -i, and gone on with.",
            metavar="FILE",
            everyday=True,
        ),
    ] = None
    write_to: WriteTo = None

    @property
    def confirms(self) -> bool:
        """Whether anything is confirmed."""
        return self.interactive or self.session is not None or self.confirmed is not None


@dataclass(frozen=True)
class Output(Options):
    """What is written, and where."""

    title = "Output"
    output: Annotated[
        Path | None,
        Help(
            "Written whole at the end; a folder for several files; none or -: stdout.",
            short="-o",
            metavar="FILE",
            everyday=True,
        ),
    ] = None
    explain: Annotated[bool, Help("Show where every word comes from.", everyday=True)] = False
    explain_html: Annotated[
        Path | None,
        _NamedFile,
        Help("The same as a page, written beside the output.", metavar="FILE", everyday=True),
    ] = None
    json: Annotated[
        bool,
        Help("One line of JSON a segment: origins of tokens, confidence of words.", everyday=True),
    ] = False
    untranslated: Annotated[
        Untranslated,
        Help("Without --model: what has no exact match is left empty, or as it is."),
    ] = "empty"
    drafts: Annotated[
        int | None,
        whole(0, 99),
        Help(
            "Where there is no full match, put in matches worth so much, marked as drafts; not "
            "given, 75 without --model in files that can mark a draft, else none.",
            is_negatable=True,
        ),
    ] = None
    overwrite: Targets = "nothing"
    own_translations: OwnPairs = "translated"
    front_matter: Annotated[
        tuple[str, ...],
        Help("Translate the text of this key of a page's front matter, too.", metavar="KEY"),
    ] = ()
    speed: Annotated[
        float | None,
        number(1, 1000),
        Help("Characters a second that subtitles may have; more is told."),
    ] = None
    width: Annotated[
        int | None, whole(1, 1000), Help("Characters of a line of subtitles, at most.")
    ] = None
    lines: Annotated[int | None, whole(1, 100), Help("Lines of a cue of subtitles, at most.")] = (
        None
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.explain and self.json:
            raise UsageError("--explain and --json exclude each other")

    @property
    def file(self) -> Path | None:
        """What is written to; None: standard output."""
        return None if str(self.output) == STDOUT else self.output

    @property
    def shows_origins(self) -> bool:
        """Whether it is asked where words come from."""
        return self.explain or self.json or self.explain_html is not None
