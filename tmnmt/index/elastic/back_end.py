"""Elasticsearch as a place for indexes (`tmnmt.index.back_ends`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from tmnmt.index.elastic.address import parse_address
from tmnmt.progress import ReadProgress
from tmnmt.segments import Segment

if TYPE_CHECKING:
    from tmnmt.index.elastic.index import ElasticIndex
    from tmnmt.index.elastic.layout import ElasticManifest


class ElasticBackEnd:
    """Indexes on a server."""

    options = ("shards", "replicas")
    sends = True

    def location(self, place: str) -> Hashable:
        return parse_address(place)

    def open(self, place: str, src_lang: str | None, tgt_lang: str | None) -> ElasticIndex:
        from tmnmt.index.elastic.index import ElasticIndex

        return ElasticIndex.open(parse_address(place), src_lang, tgt_lang)

    def build(
        self,
        place: str,
        segments: Iterable[Segment],
        src_lang: str,
        tgt_lang: str,
        *,
        force: bool,
        progress: ReadProgress | None,
        seconds_to_wait: float,
        **options: Any,
    ) -> ElasticManifest:
        from tmnmt.index.elastic.build import build_elastic

        languages = src_lang, tgt_lang
        address = parse_address(place)
        return build_elastic(
            address, segments, *languages, force=force, progress=progress, **options
        )


BACK_END = ElasticBackEnd()
