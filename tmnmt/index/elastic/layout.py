"""What lies on the server: one document a distinct token sequence, the pairs of that source inside
it, newest first.

    NAME           alias: the generation that answers
    NAME-7         concrete index: documents {tokens, n, ids, pairs}, the manifest in
                   the mapping's _meta
    NAME-7-only    alias of this generation for ever. Changes are written to it: once
                   the generation is gone nothing makes it again, and what was meant
                   for one generation never reaches the next
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from hashlib import blake2b
from operator import attrgetter
from typing import Any

import orjson

from tmnmt.codes.stored import codes_of, listed
from tmnmt.errors import DataError, MemoryIndexError
from tmnmt.index.concordance import MOST_WITHIN, spelling
from tmnmt.index.elastic.query import MOST_CHARS, terms
from tmnmt.index.embedded.manifest import FORMER_TOKENISATION, TOKENISATION, TOKENISATIONS
from tmnmt.index.skeleton import bones, skeleton_hash
from tmnmt.segments import Segment
from tmnmt.text import match_tokens

FORMAT = 10
# 5: its segments have no codes; 6: its sources no skeletons; 7: nor are words found in any case; 8:
# its words are, but not where they stand; 9: its tokens are of a former tokenisation
READABLE_FORMATS = (5, 6, 7, 8, 9, FORMAT)
SKELETONS_SINCE, WORDS_SINCE, PLACES_SINCE = 7, 8, 9
SRC_WORDS, TGT_WORDS = "src_words", "tgt_words"
MOST_CHARS_OF_PREFIX = 19  # the server's limit; of what is longer few words begin with the same
COUNTER = "counter"  # the document that holds the last id given
_META = "tmnmt"
_CODES = {"src_codes": "src", "tgt_codes": "tgt"}
_FIELDS = tuple(field.name for field in fields(Segment) if field.name not in ("id", *_CODES))
_values = attrgetter(*_FIELDS)


@dataclass(frozen=True)
class ElasticManifest:
    """What an index on a server held when it was built.

    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    segments: how many segments it had, whose ids were from 1 on.
    sources: how many distinct token sequences the sources had.
    tokens: how many distinct match tokens there were.
    created: when it was built, in UTC by ISO 8601.
    tokenisation: the name of the rules by which texts become match tokens.
    format: the number of the format."""

    src_lang: str
    tgt_lang: str
    segments: int
    sources: int
    tokens: int
    created: str
    tokenisation: str = TOKENISATION
    format: int = FORMAT

    @property
    def parts(self) -> int:
        """How many parts its sources and tokens were counted in: always one."""
        return 1

    @property
    def is_of_former_tokens(self) -> bool:
        """Whether its documents are found by tokens that cut letters from their marks."""
        return self.tokenisation == FORMER_TOKENISATION

    @property
    def has_skeletons(self) -> bool:
        """Whether a source is found by its skeleton; an index of before has no field for it."""
        return self.format >= SKELETONS_SINCE

    @property
    def has_words(self) -> bool:
        """Whether segments are found by the words of their sources and targets, newest first."""
        return self.format >= WORDS_SINCE

    @property
    def has_places(self) -> bool:
        """Whether it is known where the words stand, and what they begin with."""
        return self.format >= PLACES_SINCE

    def meta(self) -> dict[str, Any]:
        """As it stands in a mapping's `_meta`."""
        return {_META: asdict(self)}


def read_meta(meta: Any, location: str) -> ElasticManifest:
    """The manifest in the `_meta` of a mapping.

    meta: the `_meta`.
    location: what messages call the index.

    Raises MemoryIndexError where it is not one of tmnmt, or of another format, or damaged."""
    content = meta.get(_META) if isinstance(meta, Mapping) else None
    if not isinstance(content, Mapping) or "format" not in content:
        raise MemoryIndexError(f"{location}: an index that tmnmt did not make")
    if (
        content["format"] not in READABLE_FORMATS
        or content.get("tokenisation") not in TOKENISATIONS
    ):
        have = f"format {content['format']}, {content.get('tokenisation')}"
        want = f"format {FORMAT}, {TOKENISATION}"
        raise MemoryIndexError(
            f"{location}: {have}, but this version reads {want}; build the index again with --force"
        )
    if set(content) != {field.name for field in fields(ElasticManifest)}:
        raise MemoryIndexError(
            f"{location}: damaged manifest (keys missing or unknown); build it again with --force"
        )
    return ElasticManifest(**content)


_WORDS = {
    "type": "text",
    "analyzer": "whitespace",
    "similarity": "boolean",
    "norms": False,
    "index_options": "positions",
    # so a word with a star is one term, however many words it stands for
    "index_prefixes": {"min_chars": 1, "max_chars": MOST_CHARS_OF_PREFIX},
    "position_increment_gap": 2 * MOST_WITHIN,  # between the targets of a document
}


def mappings() -> dict[str, Any]:
    """The fields. `tokens` is for finding only; the texts in `pairs` are for answering only."""
    return {
        "dynamic": "strict",
        "properties": {
            # cut at blanks alone, of which no token has one; by boolean similarity every term that
            # is found counts 1. As a list of keywords, and with it left out of `_source`, a build
            # takes the server 1.8 times as long
            "tokens": {
                "type": "text",
                "analyzer": "whitespace",
                "similarity": "boolean",
                "norms": False,
                "index_options": "docs",
            },
            "n": {
                "type": "integer"
            },  # |x'|, not 0: a source without tokens has none, so that nothing finds it
            "skeleton": {"type": "keyword", "doc_values": False},  # its hash
            # of a concordance: the words of the source and of every target, as they are spelt and
            # in their order, and the newest of the pairs
            SRC_WORDS: _WORDS,
            TGT_WORDS: _WORDS,
            "newest": {"type": "keyword", "index": False},
            "newest_id": {"type": "long", "index": False},
            "ids": {
                "type": "long"
            },  # of the pairs: for finding one, for reading in their order, for counting
            "added": {
                "type": "integer",
                "index": False,
            },  # how many of the pairs are newer than the build
            "corrected": {
                "type": "long",
                "index": False,
            },  # ids of pairs of the build that were changed since
            "moving": {
                "type": "long"
            },  # ids of pairs that are about to become pairs of another document
            "requests": {
                "type": "keyword",
                "index": False,
                "doc_values": False,
            },  # the last that have changed it
            "emptied": {"type": "date"},  # when the last pair has left, of a document without pairs
            "pairs": {"type": "object", "enabled": False},
            "last_id": {"type": "long", "index": False, "doc_values": False},
        },
    }


def exclusive_alias(concrete: str) -> str:
    """The alias under which a generation is known, and never another.

    concrete: the name of the generation's index."""
    return f"{concrete}-only"


def key(tokens: str, number: int) -> str:
    """The id of the document that a segment belongs to: 128 bits of a cryptographic hash. Segments
    without tokens stand alone.

    tokens: the match tokens of its source, joined by spaces.
    number: the id of the segment."""
    content = tokens or f" {number}"  # no token has or is a space
    return urlsafe_b64encode(
        blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    )[:22].decode()


def document(
    tokens: Sequence[str],
    pairs: Iterable[tuple[int, bytes]],
    changes: str = "",
    has_skeleton: bool = True,
    has_words: bool = True,
) -> bytes:
    """The document of one token sequence as JSON.

    tokens: the match tokens.
    pairs: its pairs, newest first, each by its id as JSON.
    changes: the fields of what was changed, as `changes` gives them.
    has_skeleton: whether the index keeps skeletons.
    has_words: whether the index keeps the words of phrases."""
    ids, texts = zip(*pairs, strict=True)
    searched = (
        b'"tokens":%b,"n":%d,' % (orjson.dumps(" ".join(terms(tokens))), len(tokens))
        if tokens
        else b""
    )
    if has_skeleton and (parts := bones(tokens)):
        searched += b'"skeleton":"%b",' % hash_of(parts).encode()
    if has_words:
        searched += _words(tokens, [orjson.loads(text) for text in texts])
    return b'{%b%b"ids":%b,"pairs":[%b]}' % (
        searched,
        changes.encode(),
        orjson.dumps(ids),
        b",".join(texts),
    )


def _words(tokens: Sequence[str], pairs: Sequence[Mapping[str, Any]]) -> bytes:
    """The fields by which a concordance finds a document of these pairs, newest first."""
    targets = dict.fromkeys(pair.get("tgt", "") for pair in pairs)
    in_targets = [_spell(match_tokens(target)) for target in targets]
    return b'"%b":%b,"%b":%b,"newest":%b,"newest_id":%d,' % (
        SRC_WORDS.encode(),
        orjson.dumps(_spell(tokens)),
        TGT_WORDS.encode(),
        orjson.dumps(in_targets),
        orjson.dumps(pairs[0].get("changed", "")),
        pairs[0]["id"],
    )


def _spell(tokens: Iterable[str]) -> str:
    return " ".join(spelling(token)[:MOST_CHARS] for token in tokens)


def hash_of(parts: Sequence[str]) -> str:
    """The hash of a skeleton as a document has it.

    parts: the skeleton."""
    return f"{skeleton_hash(parts):08x}"


def changes(
    ids: Iterable[int],
    base_count: int,
    corrected: Iterable[int],
    moving: Iterable[int],
    requests: Sequence[str],
) -> str:
    """The fields of what was changed in a document since its index was built; "" for nothing.

    ids: the ids of its segments.
    base_count: how many segments the index was built of.
    corrected: the ids of segments that were corrected.
    moving: the ids of segments that are moving to another document.
    requests: the names of the last requests that have changed it."""
    added = sum(number > base_count for number in ids)
    lists = {"corrected": sorted(corrected), "moving": sorted(moving), "requests": list(requests)}
    fields: dict[str, Any] = {"added": added, **lists}
    return "".join(
        f'"{name}":{orjson.dumps(value).decode()},' for name, value in fields.items() if value
    )


def emptied(requests: Sequence[str] = ()) -> bytes:
    """A document that holds no pairs, as JSON, which was emptied now.

    requests: the names of the last requests that have changed it."""
    return orjson.dumps({"pairs": [], "requests": list(requests), "emptied": datetime.now(UTC)})


def encode_segment(segment: Segment, number: int, becomes: Segment | None = None) -> bytes:
    """A segment as JSON, without what is empty.

    segment: the segment.
    number: the id that it gets.
    becomes: what it is about to become in another document; None where it stays.

    Raises DataError where a text is no Unicode, or cannot have its codes."""
    fields = zip(_FIELDS, _values(segment), strict=True)
    content: dict[str, Any] = {"id": number, **{name: value for name, value in fields if value}}
    for name, side in _CODES.items():
        if codes := listed(getattr(segment, side), getattr(segment, name)):
            content[name] = codes
    if becomes:
        content["becomes"] = orjson.Fragment(encode_segment(becomes, number))
    try:
        return orjson.dumps(content)
    except orjson.JSONEncodeError as error:
        raise DataError(
            f"segment {number} has a character that is no Unicode text: {error}"
        ) from error


def read(pair: Mapping[str, Any]) -> Segment:
    """The segment that `encode_segment` wrote.

    pair: its JSON."""
    if "becomes" in pair:
        pair = {name: value for name, value in pair.items() if name != "becomes"}
    texts = {"src": "", "tgt": "", **pair}
    properties = tuple((name, value) for name, value in pair.get("properties", ()))
    codes = {
        name: codes_of(pair[name], texts[side]) for name, side in _CODES.items() if name in pair
    }
    return Segment(**{**texts, "properties": properties, **codes})


def becoming(pair: Mapping[str, Any]) -> Segment | None:
    """What a segment is about to become in another document; None where it stays.

    pair: the JSON of the segment."""
    return read(pair["becomes"]) if "becomes" in pair else None
