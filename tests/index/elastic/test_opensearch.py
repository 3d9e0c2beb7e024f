"""OpenSearch, where the other tests ask Elasticsearch: an index is built, searched, changed, read
page by page and merged as one in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import elastic_server  # not from it: so another process may run this beside those of Elasticsearch
import pytest
from brute_force import queries, real_segments

from tmnmt.errors import MemoryIndexError, ServerError
from tmnmt.index import MemoryIndex, build
from tmnmt.index.concordance import Phrase
from tmnmt.index.elastic.address import ElasticAddress
from tmnmt.index.elastic.build import build_elastic
from tmnmt.index.elastic.index import ElasticIndex
from tmnmt.segments import Match, Segment


def said(matches: list[Match]) -> list[tuple[int, str, str, float]]:
    return [(one.segment.id, one.segment.src, one.segment.tgt, one.score) for one in matches]


@pytest.fixture(scope="module")
def opensearch() -> Iterator[elastic_server.Running]:
    with elastic_server.running("opensearch-3", "opensearch") as started:
        yield started


def test_opensearch_answers_as_a_folder_does(
    opensearch: elastic_server.Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.index.elastic.generation.HITS_A_PAGE", 100)  # so there are several
    address = opensearch.address("law")
    build_elastic(address, real_segments()[:300], "en", "fr", shards=2)
    build(tmp_path / "m", real_segments()[:300], "en", "fr")
    with ElasticIndex.open(address) as there, MemoryIndex.open(tmp_path / "m") as here:
        for index in (there, here):
            index.add([Segment("a new one", "un", changed="2026-01-01T00:00:00Z")] * 2)
            index.edit([3], lambda segment: replace(segment, src="a new one", changed="2026"))
            index.delete([7, 8])
        assert there.verify() == len(there) == len(here) == 300
        asked = [*queries(6, 3), "a new one"]
        for k, threshold in ((3, 0.5), (250, 0.0)):
            found = there.search(asked, k, threshold)
            assert [said(one) for one in found] == [
                said(one) for one in here.search(asked, k, threshold)
            ]
        every = list(there.segments())
        assert [segment.id for segment in every] == [segment.id for segment in here.segments()]
        phrase = Phrase("article 1")
        assert [one.segment.id for one in there.concordance(phrase, 150)] == [
            one.segment.id for one in here.concordance(phrase, 150)
        ]
        there.compact()
        assert list(there.segments()) == every
        reading = there.segments()
        next(reading)
        build_elastic(address, real_segments()[:20], "en", "fr", force=True)
        with pytest.raises(MemoryIndexError, match="was built anew while it was read; ask again"):
            list(reading)
        assert len(there) == 20


def test_opensearch_at_an_address_of_elasticsearch_is_named(
    opensearch: elastic_server.Running,
) -> None:
    with pytest.raises(ServerError, match=r"OpenSearch 3\.\d+\.\d+ answers there, whose addre"):
        ElasticIndex.open(ElasticAddress((opensearch.url,), "law"))
