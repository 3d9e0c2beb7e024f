"""Decodes pieces to their best hypotheses. It brings together what the memory layers read for the
pieces, encodes the source, and decodes with all of it by a beam search. Extensions revise what the
search has found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import torch

from tmnmt.engine.barred_words import BarredWords
from tmnmt.engine.beam_search import DecoderTrace, Hypothesis, SearchSettings, beam_search
from tmnmt.engine.extension import Extension, Extensions, SearchResults
from tmnmt.engine.links import Linker
from tmnmt.engine.patches import Dictation, Patcher
from tmnmt.engine.piece import NO_MATCHES, Piece
from tmnmt.engine.replays import Pair, replayed
from tmnmt.engine.run_statistics import Tally
from tmnmt.engine.settings import Settings, WholeMemory
from tmnmt.engine.writer import DocumentMemory
from tmnmt.filters.contract import Reading
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.keys.pair_keys import PairKeys, padded
from tmnmt.layers.collated import collate
from tmnmt.layers.combine import LayerInputs, MemoryLayers
from tmnmt.layers.contract import Collated, MemorySearch
from tmnmt.layers.reach import SentenceReach
from tmnmt.models.base import Backbone, Encoded, StepRecord, SurroundingText, noted_along
from tmnmt.models.shortlist import Shortlist
from tmnmt.text import match_tokens
from tmnmt.vocab import EOS, UNK, Vocabulary


class Decoded(NamedTuple):
    """The best hypothesis of a piece.

    best: the hypothesis.
    collated: what the memory layers have read for its batch.
    row: the row of the piece in that.
    has_reading: whether there is another reading of the piece, which nothing in the memories is
    like.
    reading: the other reading, where that is what was read.
    is_typed: whether a person has typed how it begins."""

    best: Hypothesis
    collated: Collated
    row: int
    has_reading: bool = False
    reading: Reading | None = None
    is_typed: bool = False


@dataclass
class Decoder:
    """A model with its memory layers.

    backbone: the base as it decodes.
    layers: its memory layers; None for the plain model.
    settings: how to translate.
    device: what torch computes on.
    tally: what the counts are added to.
    linker: links the words of texts by this model.
    vocab: the vocabulary.
    src_lang: the code of the source language.
    shortlist: which words may come; None for all.
    extensions: the features on the way of a sentence.
    whole_memory: what is read of all memories; None where nothing is.
    doubtful: the log probability per subword below which a piece is read in another way, too, where
    a filter offers one."""

    backbone: Backbone
    layers: MemoryLayers | None
    settings: Settings
    device: str
    tally: Tally
    linker: Linker
    vocab: Vocabulary
    src_lang: str
    shortlist: Shortlist | None
    extensions: Extensions
    whole_memory: WholeMemory | None
    doubtful: float

    @property
    def revisers(self) -> dict[str, Extension]:
        """The extensions that revise hypotheses."""
        return {name: extension for name, extension in self.extensions.items() if extension.revises}

    def collated(self, pieces: Sequence[Piece], documents: Sequence[DocumentMemory]) -> Collated:
        """What the memory layers read for a batch: pairs, documents, the whole memory.

        pieces: the pieces of the batch.
        documents: what is remembered of the document of each."""
        scores = [*map(self._scores, pieces)]
        pairs = None
        if self.settings.mode != "off":
            pairs = collate([*map(_keys, pieces)], scores, self.device)
        histories = [document.histories for document in documents]
        return Collated(
            pairs=pairs,
            histories=self.layers.collate(histories, self.device) if self.layers else {},
            reaches=[*map(_reach, pieces, scores)],
            search=self._query(pieces),
        )

    def with_neighbours(self, pieces: Sequence[Piece]) -> list[Piece]:
        """The pieces, of which those that the memories have nothing like get the positions of all
        memories that are near to a draft, where these are read: a greedy translation, beside what
        was found for the piece so far.

        pieces: pieces that were looked up."""
        results = [*pieces]
        if self.whole_memory is None or not self.whole_memory.is_drafted:
            return results
        rows = [
            row
            for row, piece in enumerate(pieces)
            if piece.is_unlike and (piece.retrieved or NO_MATCHES).neighbours is None
        ]
        rows.sort(key=lambda row: len(pieces[row].ids))
        for start in range(0, len(rows), self.settings.batch):
            batch = rows[start : start + self.settings.batch]
            sources = [pieces[row] for row in batch]
            drafts = self._drafts(sources)
            with self.tally.timed("search"):
                near_drafts = self.whole_memory.near_drafts(
                    [piece.text for piece in sources], drafts
                )
            for row, piece, near_draft in zip(batch, sources, near_drafts, strict=True):
                retrieved = piece.retrieved or NO_MATCHES
                results[row] = replace(piece, retrieved=replace(retrieved, neighbours=near_draft))
        return results

    def _drafts(self, pieces: Sequence[Piece]) -> list[PairKeys]:
        """The states before every subword of greedy translations."""
        scores = [*map(self._scores, pieces)]
        pairs = collate([*map(_keys, pieces)], scores, self.device)
        collated = Collated(pairs=pairs, reaches=[*map(_reach, pieces, scores)])
        search = SearchSettings(1, self.settings.length_penalty, keep_states=True)
        with self.tally.timed("decode"), torch.inference_mode():
            encoded, longest = self._encoded(pieces)
            backbone, ready = self._limited(pieces, collated), self._ready(collated)
            placed = self._in_place(pieces, encoded)
            drafts = beam_search(backbone, self.layers, placed, ready, longest, search)
        return [*map(_states, drafts)]

    def decoded(
        self, pieces: Sequence[Piece], documents: Sequence[DocumentMemory], explain: bool = False
    ) -> list[Decoded]:
        """Decodes a batch. Translations that an extension finds incomplete are written once more,
        all of them together.

        pieces: the pieces of the batch.
        documents: what is remembered of the document of each.
        explain: whether the hypotheses say what the layers did."""
        results = self._decoded_once(pieces, documents, explain)
        self._read_otherwise(pieces, documents, results, explain)
        self._patch_replays(pieces, documents, results, explain)
        self._revise(pieces, documents, results, explain)
        return results

    def _decoded_once(
        self, pieces: Sequence[Piece], documents: Sequence[DocumentMemory], explain: bool
    ) -> list[Decoded]:
        results = list[Decoded]()
        size = self.settings.batch
        for start in range(0, len(pieces), size):
            rows = slice(start, start + size)
            collated = self.collated(pieces[rows], documents[rows])
            hypotheses = self.decode(pieces[rows], collated, documents[rows], explain)
            results += [Decoded(best, collated, row) for row, best in enumerate(hypotheses)]
        return results

    def _read_otherwise(
        self,
        pieces: Sequence[Piece],
        documents: Sequence[DocumentMemory],
        decoded: list[Decoded],
        explain: bool,
    ) -> None:
        """Reads pieces that the model finds doubtful, as headings are, in the other way, too, where
        a filter offers one. What it finds likelier stays."""
        if not self.settings.headings or self.revisers:
            return
        rows = []
        for row, result in enumerate(decoded):
            if pieces[row].has_reading:
                decoded[row] = result._replace(has_reading=True)
                rows += [row] if result.best.per_subword < self.doubtful else []
        variants = [replace(pieces[row], ids=pieces[row].segment.reading_ids) for row in rows]
        retries = self._decoded_once(variants, [documents[row] for row in rows], explain)
        for row, retry in zip(rows, retries, strict=True):
            if retry.best.per_subword > decoded[row].best.per_subword:
                reading = pieces[row].segment.source.reading
                decoded[row] = retry._replace(has_reading=True, reading=reading)

    def _patch_replays(
        self,
        pieces: Sequence[Piece],
        documents: Sequence[DocumentMemory],
        decoded: list[Decoded],
        explain: bool,
    ) -> None:
        """Patches translations that are the target of a match with another source. They are then
        written as if nothing else could come, so that all is known of them as of others."""
        if not self.settings.patches or self.backbone.reads_around:
            return
        replays = {
            row: pair
            for row, result in enumerate(decoded)
            if (pair := self._replayed(pieces[row], result)) is not None
        }
        texts = self._patched([pieces[row] for row in replays], [*replays.values()])
        encoded = {
            row: self.vocab.encode(text)
            for row, text in zip(replays, texts, strict=True)
            if text is not None
        }
        ids = {row: words for row, words in encoded.items() if UNK not in words}
        if not ids:
            return
        rows = [*ids]
        patched, remembered = [pieces[row] for row in rows], [documents[row] for row in rows]
        collated = self.collated(patched, remembered)
        dictation = Dictation([*ids.values()], self.device)
        written = self.decode(patched, collated, remembered, explain, dictation)
        for index, (row, best) in enumerate(zip(rows, written, strict=True)):
            decoded[row] = decoded[row]._replace(best=best, collated=collated, row=index)

    def _replayed(self, piece: Piece, decoded: Decoded) -> Pair | None:
        """The source of the match whose target a translation is, with the translation; None where
        it is no replay."""
        if not piece.matches:
            return None
        text = self.vocab.decode(decoded.best.ids)
        read = (piece.segment.source.masked_pair(match.segment) for match in piece.matches)
        pair = replayed(
            [(pair.src, pair.tgt) for pair in read], piece.model_text, text, self.src_lang
        )
        return None if pair is None else (pair[0], text)

    def _patched(self, pieces: Sequence[Piece], pairs: Sequence[Pair]) -> list[str | None]:
        """What becomes of replays; None where they stay."""
        if not pieces:
            return []
        patcher = Patcher(self.backbone, self.vocab, self.linker, self.device, self.src_lang)
        with self.tally.timed("decode"), torch.inference_mode():
            encoded, longest = self._encoded(pieces)
            placed, lead = self._in_place(pieces, encoded), self._lead(pieces, self.backbone)
            search = SearchSettings(self.settings.beam, self.settings.length_penalty)
            found = beam_search(self.backbone, None, placed, LayerInputs(), longest, search, lead)
            return [
                patcher.patched(piece.model_text, pair, self.vocab.decode(draft.ids))
                for piece, pair, draft in zip(pieces, pairs, found, strict=True)
            ]

    def decode(
        self,
        pieces: Sequence[Piece],
        collated: Collated,
        documents: Sequence[DocumentMemory],
        explain: bool = False,
        dictation: Dictation | None = None,
    ) -> list[Hypothesis]:
        """Searches for the best hypothesis of each piece. A hypothesis has what the session cache
        needs of it, and, where it is to be revised, what it was found by.

        pieces: the pieces of the batch.
        collated: what the memory layers read for them.
        documents: what is remembered of the document of each.
        explain: whether the hypotheses say what the layers did.
        dictation: what is written for the pieces; None where the model decides."""
        if not pieces:
            return []
        with self.tally.timed("decode"), torch.inference_mode():
            encoded, longest = self._encoded(pieces)
            placed, ready = self._in_place(pieces, encoded), self._ready(collated)
            backbone, notes = self.backbone, list[StepRecord]()
            if dictation is None:
                backbone = self._limited(pieces, collated)
            if self.revisers:
                backbone, notes = backbone.noting()
            search, lead = self._search(explain), dictation or self._lead(pieces, backbone)
            if dictation is not None:
                search, longest = replace(search, beam=1, n_best=1), dictation.lengths
            hypotheses = beam_search(backbone, self.layers, placed, ready, longest, search, lead)
            return self._with_evidence(pieces, documents, hypotheses, encoded, notes)

    def _with_evidence(
        self,
        pieces: Sequence[Piece],
        documents: Sequence[DocumentMemory],
        originals: list[Hypothesis],
        encoded: Encoded,
        notes: Sequence[StepRecord],
    ) -> list[Hypothesis]:
        """The hypotheses that are to be revised get what they were found by."""
        hypotheses = [*originals]
        incomplete = {
            row
            for name, extension in self.revisers.items()
            for row in extension.incomplete(pieces, _knowledge(documents, name), originals)
        }
        for row in incomplete:
            length = len(pieces[row].ids) + 1  # with </s>
            encoded_row = encoded.rows(torch.tensor([row], device=self.device)).cut(length)
            row_notes = noted_along(notes, originals[row].rows, length)
            hypotheses[row] = replace(originals[row], evidence=DecoderTrace(encoded_row, row_notes))
        return hypotheses

    def _revise(
        self,
        pieces: Sequence[Piece],
        documents: Sequence[DocumentMemory],
        decoded: list[Decoded],
        explain: bool,
    ) -> None:
        """Revises translations that are incomplete: all of these pieces at once, as a product with
        weights takes as long for ten rows as for many."""
        rows = [row for row, result in enumerate(decoded) if result.best.evidence is not None]
        if not rows:
            return
        incomplete = [pieces[row] for row in rows]
        originals = [decoded[row].best for row in rows]
        remembered = [documents[row] for row in rows]
        collated = self.collated(incomplete, remembered)
        with self.tally.timed("decode"), torch.inference_mode():
            first, *rest = (
                original.evidence.encoded for original in originals if original.evidence is not None
            )
            placed, ready = self._in_place(incomplete, first.concat(rest)), self._ready(collated)
            inputs = placed, ready
            revised = self.revised(incomplete, remembered, originals, *inputs, explain)
        for index, (row, best, original) in enumerate(zip(rows, revised, originals, strict=True)):
            if best is not original:
                decoded[row] = Decoded(best, collated, index)

    def read_in(
        self, pieces: Sequence[Piece], collated: Collated
    ) -> tuple[Encoded, LayerInputs, list[int]]:
        """Encodes the pieces. Returns what is encoded, what the layers read, and the longest
        translation of each piece in subwords, </s> included.

        pieces: the pieces of the batch.
        collated: what the memory layers read for them."""
        with torch.inference_mode():
            encoded, longest = self._encoded(pieces)
            return self._in_place(pieces, encoded), self._ready(collated), longest

    def _in_place(self, pieces: Sequence[Piece], encoded: Encoded) -> Encoded:
        """The encoded pieces with what is read of their documents."""
        needs_others = self.backbone.reads_around  # and a document of one sentence has none
        places = [piece.context or (None if needs_others else ()) for piece in pieces]
        placed: Encoded = self.backbone.in_document(encoded, places)
        return placed

    def _ready(self, collated: Collated) -> LayerInputs:
        if self.layers is None:
            return LayerInputs()
        return self.layers.ready(collated, self.backbone, self.settings.mode)

    def _encoded(self, pieces: Sequence[Piece]) -> tuple[Encoded, list[int]]:
        """The encoded pieces by themselves, with the longest translation of each."""
        ids = [[*piece.ids, EOS] for piece in pieces]
        src_len = torch.tensor([len(row) for row in ids], device=self.device)
        encoded: Encoded = self.backbone.encode(padded(ids, self.device), src_len)
        return encoded, [2 * len(row) + 10 for row in ids]

    def first_pass(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Gives each piece of a document all other pieces, with what the base says of them without
        a memory. This is the first pass of a model that reads a whole document (Maruf and Haffari
        2018).

        pieces: all pieces of one document."""
        backbone = self.backbone
        if not backbone.reads_around or len(pieces) < 2:
            return [*pieces]
        search = SearchSettings(self.settings.beam, self.settings.length_penalty)
        order = sorted(range(len(pieces)), key=lambda i: len(pieces[i].ids))
        outputs = [list[int]()] * len(pieces)
        with self.tally.timed("decode"), torch.inference_mode():
            for start in range(0, len(order), self.settings.batch):
                batch = order[start : start + self.settings.batch]
                encoded, longest = self._encoded([pieces[i] for i in batch])
                hypotheses = beam_search(backbone, None, encoded, LayerInputs(), longest, search)
                for i, best in zip(batch, hypotheses, strict=True):
                    outputs[i] = [word for word in best.ids if word != EOS]
            pairs = [(piece.ids, ids) for piece, ids in zip(pieces, outputs, strict=True)]
            document = backbone.survey(pairs)
        return [
            replace(piece, context=SurroundingText(document, index))
            for index, piece in enumerate(pieces)
        ]

    def revised(
        self,
        pieces: Sequence[Piece],
        documents: Sequence[DocumentMemory],
        hypotheses: Sequence[Hypothesis],
        encoded: Encoded,
        ready: LayerInputs,
        explain: bool = False,
    ) -> list[Hypothesis]:
        """The hypotheses as the extensions revise them, one extension after another.

        pieces: the pieces of the batch.
        documents: what is remembered of the document of each.
        hypotheses: the translations.
        encoded: the encoded pieces.
        ready: what the layers read for them.
        explain: whether the hypotheses say what the layers did."""
        revised = [*hypotheses]
        for name, extension in self.revisers.items():
            results = SearchResults(
                pieces=pieces,
                knowledge=_knowledge(documents, name),
                hypotheses=revised,
                encoded=encoded,
                ready=ready,
                backbone=self.backbone,
                layers=self.layers,
                linker=self.linker,
                keep_states=self.settings.remembers,
                explain=explain,
            )
            revised = extension.revise(results)
        return revised

    def _search(self, explain: bool) -> SearchSettings:
        settings = self.settings
        return SearchSettings(
            beam=settings.beam,
            length_penalty=settings.length_penalty,
            keep_states=settings.remembers,
            explain=explain,
            n_best=max(settings.nbest, settings.cache_best if settings.remembers else 1),
        )

    def _lead(self, pieces: Sequence[Piece], backbone: Backbone) -> BarredWords | None:
        """What keeps characters out of the translations that these must not have; None where no
        translation has to be kept from any."""
        signs = [piece.segment.source.barred(piece.model_text) for piece in pieces]
        if not any(signs):
            return None
        return BarredWords(signs, self.vocab, self.settings.beam, backbone.columns, self.device)

    def _limited(self, pieces: Sequence[Piece], collated: Collated) -> Backbone:
        """The backbone that compares only what the sources' words may become, and what their pairs
        and documents say, where there is a shortlist. It compares all words where what is read is
        found step by step, because nobody knows which words that will be."""
        if self.shortlist is None or collated.search is not None:
            return self.backbone
        memory_ids = [] if collated.pairs is None else collated.pairs.words
        histories = (part.ids for part in collated.histories.values() if part is not None)
        memory_ids = [ids.cpu() for ids in (*memory_ids, *histories)]
        sources = chain([EOS], *(piece.ids for piece in pieces))
        words = self.shortlist.words(sources, memory_ids)
        return self.backbone.limited_to(words.to(self.device))

    def _query(self, pieces: Sequence[Piece]) -> MemorySearch | None:
        """What is asked of the whole memory at every word; None where nothing is."""
        if self.whole_memory is None or self.whole_memory.is_drafted or not pieces:
            return None
        pairs = [[(m.segment.src, m.segment.tgt) for m in piece.matches] for piece in pieces]
        return self.whole_memory.query([piece.text for piece in pieces], pairs)

    def _scores(self, piece: Piece) -> list[float]:
        """The fuzzy score of every match: what the gates have learned to read, whatever the matches
        are ranked by."""
        matches = piece.pairs
        if self.settings.selection.similarity == "fuzzy":
            return [match.score for match in matches]
        tokens = match_tokens(piece.segment.text)
        return [fuzzy_score(tokens, match_tokens(match.segment.src)) for match in matches]


def _knowledge(documents: Sequence[DocumentMemory], name: str) -> list[Any]:
    """What an extension has learnt in every document; None for nothing."""
    return [document.knowledge.get(name) for document in documents]


def _keys(piece: Piece) -> list[PairKeys]:
    """The keys of a piece's pairs, and behind them the positions near to its draft."""
    retrieved = piece.retrieved or NO_MATCHES
    near_draft = retrieved.neighbours
    return [*retrieved.keys, *([near_draft.keys] if near_draft is not None else [])]


def _states(draft: Hypothesis) -> PairKeys:
    """The contexts and states before every subword of a hypothesis that has kept them."""
    if draft.contexts is None or draft.hiddens is None:
        raise ValueError("a hypothesis without its states")
    return PairKeys(draft.contexts, draft.hiddens, torch.tensor(draft.ids))


def _reach(piece: Piece, scores: Sequence[float]) -> SentenceReach:
    """How a piece reads its pairs, of these fuzzy scores, and its session. What is near to its
    draft is read as far as one more fragment."""
    retrieved = piece.retrieved or NO_MATCHES
    matches = scores[: len(retrieved.matches)]
    fragments = len(retrieved.fragments) + (retrieved.neighbours is not None)
    return retrieved.reaches.of_sentence(matches, fragments)
