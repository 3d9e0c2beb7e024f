"""What lies on the server: one document a distinct token sequence, the pairs of that source inside it, newest first.

NAME                 alias: the generation that answers
NAME-7               concrete index: documents {tokens, n, segments, pairs}, the manifest in the mapping's _meta
NAME-8-building      alias of a generation that is being built, or whose build was stopped
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from typing import Any

from tmnmt.errors import MemoryIndexError
from tmnmt.index.elastic_query import terms
from tmnmt.index.manifest import TOKENISATION
from tmnmt.segments import Segment

FORMAT = 1
COUNTER = "counter"  # the document that holds the last id given
_META = "tmnmt"


@dataclass(frozen=True)
class ElasticManifest:
    """What an index on a server holds, as counted when it was built."""

    src_lang: str
    tgt_lang: str
    segments: int
    sources: int  # distinct token sequences
    tokens: int  # distinct match tokens
    created: str
    tokenisation: str = TOKENISATION
    format: int = FORMAT

    def meta(self) -> dict[str, Any]:
        """As it stands in a mapping's `_meta`."""
        return {_META: asdict(self)}


def read_meta(meta: Any, where: str) -> ElasticManifest:
    """The manifest in a mapping's `_meta`. Raises MemoryIndexError: not ours, of another format, damaged."""
    content = meta.get(_META) if isinstance(meta, Mapping) else None
    if not isinstance(content, Mapping) or "format" not in content:
        raise MemoryIndexError(f"{where}: an Elasticsearch index that tmnmt did not make")
    if (content["format"], content.get("tokenisation")) != (FORMAT, TOKENISATION):
        have, want = f"format {content['format']}, {content.get('tokenisation')}", f"format {FORMAT}, {TOKENISATION}"
        raise MemoryIndexError(f"{where}: {have}, but this version reads {want}; build the index again with --force")
    if set(content) != {field.name for field in fields(ElasticManifest)}:
        raise MemoryIndexError(f"{where}: damaged manifest (keys missing or unknown); build it again with --force")
    return ElasticManifest(**content)


def mappings() -> dict[str, Any]:
    """The fields. `tokens` is for finding only; the texts in `pairs` are for answering only."""
    return {
        "dynamic": "strict",
        "_source": {"excludes": ["tokens"]},  # they follow from the texts, and would double what is read for a hit
        "properties": {
            # a keyword, not a text: no analyzer cuts tokens, and boolean similarity makes every found term count 1
            "tokens": {"type": "keyword", "doc_values": False, "similarity": "boolean"},
            "n": {"type": "integer"},  # |x'|, not 0: a source without tokens has none, so that nothing finds it
            "segments": {"type": "integer", "index": False},
            "pairs": {"type": "object", "enabled": False},
            "last_id": {"type": "long", "index": False, "doc_values": False},
        },
    }


def key(tokens: Sequence[str], number: int) -> str:
    """The id of the document that segment `number` of these tokens belongs to: 128 bits of a cryptographic hash.
    Segments without tokens stand alone."""
    content = " ".join(tokens) if tokens else f" {number}"  # no token has or is a space
    return urlsafe_b64encode(blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest())[:22].decode()


def document(tokens: Sequence[str], pairs: Sequence[str]) -> str:
    """The document of one token sequence as JSON, of pairs as JSON, newest first."""
    found_by = f'"tokens":{json.dumps(terms(tokens), ensure_ascii=False)},"n":{len(tokens)},' if tokens else ""
    return f'{{{found_by}"segments":{len(pairs)},"pairs":[{",".join(pairs)}]}}'


def written(segment: Segment) -> str:
    """A segment as JSON; what is empty is left out."""
    return json.dumps({name: value for name, value in asdict(segment).items() if value}, ensure_ascii=False)


def read(pair: Mapping[str, Any]) -> Segment:
    """The segment that `written` wrote."""
    properties = tuple((name, value) for name, value in pair.get("properties", ()))
    return Segment(**{"src": "", "tgt": "", **pair, "properties": properties})
