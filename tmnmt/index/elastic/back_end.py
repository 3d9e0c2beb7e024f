"""Elasticsearch and OpenSearch as places for indexes (`tmnmt.index.back_ends`)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from tmnmt.index.back_ends import BackEnd, BuildJob
from tmnmt.index.elastic.address import parse_address

if TYPE_CHECKING:
    from tmnmt.index.elastic.index import ElasticIndex
    from tmnmt.index.elastic.layout import ElasticManifest


class ElasticBackEnd(BackEnd):
    """Indexes on a server."""

    options = ("shards", "replicas")
    sends = True

    def location(self, place: str) -> Hashable:
        return parse_address(place)

    def open(self, place: str, src_lang: str | None, tgt_lang: str | None) -> ElasticIndex:
        from tmnmt.index.elastic.index import ElasticIndex

        return ElasticIndex.open(parse_address(place), src_lang, tgt_lang)

    def build(self, job: BuildJob) -> ElasticManifest:
        from tmnmt.index.elastic.build import build_elastic

        return build_elastic(
            parse_address(job.place),
            job.segments,
            job.src_lang,
            job.tgt_lang,
            force=job.force,
            progress=job.progress,
            **job.options,
        )


BACK_END = ElasticBackEnd()
