"""A translation that goes on from what was typed of it, with all memories (Foster et al. 1997,
Knowles and Koehn 2016). The decoder is forced along what was typed, and searches on from there.

Little changes between two keystrokes. Therefore the state of a sentence is kept while somebody
works on it: what the memories have for it, what was encoded, the decoder's states along what was
typed, and what was suggested. Where what is typed agrees with a suggestion, the suggestion stands,
and nothing is decoded."""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tmnmt.codes.record import Code, Source, Text, plain_of
from tmnmt.codes.tags import html_tags, with_tags
from tmnmt.engine.assembly import join_parts
from tmnmt.engine.beam_search import NEVER, Hypothesis, SearchSettings, SearchStart, search_on
from tmnmt.engine.decoder import Decoded
from tmnmt.engine.document_state import DocumentState
from tmnmt.engine.piece import Piece
from tmnmt.engine.pipeline import Passage
from tmnmt.explain.provenance import Neighbouring, tokens_of
from tmnmt.files.texts import string_of
from tmnmt.interactive.prefix import Opening, Spellings, Typed, one_blank, spelt_size
from tmnmt.layers.combine import LayerInputs, MemoryLayers, Stepped
from tmnmt.layers.trace import Trace
from tmnmt.models.base import Backbone, Encoded
from tmnmt.segments import Alternative, Token, Translation
from tmnmt.text import APOSTROPHES
from tmnmt.vocab import BOS, EOS, Vocabulary

BEAM = 3  # behind something typed: each keystroke waits for it
SUGGESTIONS = 16  # of each
FRESH = 20.0  # seconds, after which they are read anew: others may write to the memories, too
LONGEST_WORD = 12  # subwords of an alternative
LOOK_AHEAD = 10  # subwords behind what is typed that are found at once
ENDS = math.log(0.5)  # where a piece ends rather than goes on, what is typed is of the next one
Ids = tuple[int, ...]
Chances = tuple[float, ...]
Traces = tuple[Trace, ...]
Way = tuple[Ids, Chances, Traces]


class Node(NamedTuple):
    """Where the decoder stands before it writes a subword."""

    prev: int
    state: Any
    ready: LayerInputs


@dataclass(frozen=True)
class ForcedSubword:
    """A subword that the decoder was forced to write."""

    id: int
    log_prob: float
    trace: Trace | None
    ends: float  # log probability that the translation had ended here


class Path:
    """The decoder along the subwords that are decided. It is kept as far as these stay the same.
    All tensors have one row."""

    def __init__(
        self, backbone: Backbone, layers: MemoryLayers, encoded: Encoded, ready: LayerInputs
    ) -> None:
        """backbone: the model that decodes.
        layers: its memory layers.
        encoded: the encoded source, in one row.
        ready: what the layers read for it."""
        self._backbone, self._layers, self._encoded = backbone, layers, encoded
        self._nodes = [Node(BOS, backbone.start(encoded), ready)]
        self.subwords: list[ForcedSubword] = []

    def go(self, ids: Sequence[int]) -> None:
        """Goes to where these subwords are written.

        ids: the subwords that are decided, from the beginning of the translation."""
        prefix_length = 0
        for old, new in zip(self.subwords, ids, strict=False):
            if old.id != new:
                break
            prefix_length += 1
        del self.subwords[prefix_length:], self._nodes[prefix_length + 1 :]
        for number in ids[prefix_length:]:
            self._write(number)

    def _write(self, number: int) -> None:
        node = self._nodes[-1]
        prev = torch.tensor([node.prev], device=self._encoded.mask.device)
        step = self._layers.step(
            self._backbone, prev, node.state, self._encoded, node.ready, explain=True
        )
        trace = step.trace and step.trace.select(prev.new_zeros(1), prev.new_tensor([number]))
        log_probs = step.log_probs[0]
        self.subwords.append(
            ForcedSubword(
                number,
                float(log_probs[number]),
                trace and trace.pick(0, 0),
                float(log_probs[EOS]),
            )
        )
        self._nodes.append(Node(number, step.state, step.ready))

    def end(self) -> float:
        """The log probability, in nats, that the translation ends here."""
        beginning = self.beginning()
        step = self._layers.step(
            self._backbone,
            beginning.prev,
            beginning.state,
            beginning.encoded,
            beginning.memory,
            explain=False,
        )
        return float(step.log_probs[0, EOS])

    def beginning(self) -> SearchStart:
        """The start of a search from here. What is decided is certain to the search, as `Opening`
        explains."""
        node, device = self._nodes[-1], self._encoded.mask.device
        return SearchStart(
            prev=torch.tensor([node.prev], device=device),
            state=node.state,
            encoded=self._encoded,
            memory=node.ready,
            length=len(self.subwords),
        )

    def whole(
        self, following: Hypothesis, settings: SearchSettings, open_log_prob: float = 0.0
    ) -> Hypothesis:
        """A hypothesis of the whole translation, with the log probability that the model gives to
        all of it.

        following: the hypothesis of what follows.
        settings: how the search decodes.
        open_log_prob: the log probability of what was open."""
        certain = open_log_prob + sum(subword.log_prob for subword in self.subwords)
        if not certain:
            return following
        ids = (*(subword.id for subword in self.subwords), *following.ids)
        log_prob = certain + following.log_prob
        length = max(len(ids) + following.finished, 1)
        return replace(
            following,
            ids=ids,
            log_prob=log_prob,
            score=log_prob / length**settings.length_penalty,
            probabilities=(
                *(math.exp(subword.log_prob) for subword in self.subwords),
                *following.probabilities,
            ),
            traces=(
                *(subword.trace for subword in self.subwords if subword.trace),
                *following.traces,
            ),
        )


class Words:
    """The words that may stand next, each one word long."""

    def __init__(self, backbone: Backbone, layers: MemoryLayers, typed: Typed) -> None:
        """backbone: the model that decodes.
        layers: its memory layers.
        typed: what was typed."""
        self._backbone, self._layers = backbone, layers
        self._spellings = typed.spellings
        self._opening = Opening(typed.open, typed.spellings)
        self._open = len(typed.open)
        pieces = [typed.spellings.vocab.piece(i) for i in range(len(typed.spellings.vocab))]
        self._goes_on = torch.tensor([piece[:1].isalnum() for piece in pieces])
        self._elides = {number for number, piece in enumerate(pieces) if piece in APOSTROPHES}

    def likeliest(
        self, beginning: SearchStart, count: int
    ) -> Iterator[tuple[Ids, Chances, Traces]]:
        """The likeliest words, each with its subwords, their probabilities, and their traces.

        beginning: where the words would stand.
        count: how many beginnings of words are followed."""
        step = self._step(beginning.prev, beginning.state, beginning.encoded, beginning.memory)
        first = self._barred(step, [()])
        best = first[0].topk(min(count, int(first.isfinite().sum())))
        candidates: list[tuple[Way, int]] = [(((int(token),), (), ()), 0) for token in best.indices]
        while candidates:
            candidates = [(self._extended(step, row, *way), row) for way, row in candidates]
            ways = [way for way, _ in candidates]
            rows = beginning.prev.new_tensor([row for _, row in candidates])
            prev = beginning.prev.new_tensor([way[0][-1] for way in ways])
            state = self._backbone.reordered(step.state, rows)
            step = self._step(prev, state, beginning.encoded, step.ready.rows(rows))
            chances = self._barred(step, [ids for ids, *_ in ways])
            candidates = []
            for row, (ids, probabilities, traces) in enumerate(ways):
                number = int(chances[row].argmax())
                spelled = sum(map(self._spellings.size, ids)) >= self._open
                ends = not self._goes_on[number] and number not in self._elides
                if spelled and (ends or ids[-1] in self._elides or len(ids) == LONGEST_WORD):
                    yield ids, probabilities, traces
                else:
                    candidates.append((((*ids, number), probabilities, traces), row))

    def _step(self, prev: Tensor, state: Any, encoded: Encoded, ready: LayerInputs) -> Stepped:
        if not self._backbone.shares_encoded:
            encoded = encoded.rows(torch.zeros_like(prev))
        return self._layers.step(self._backbone, prev, state, encoded, ready, explain=True)

    def _barred(self, step: Stepped, ways: Sequence[Ids]) -> Tensor:
        """log p (R, V) of what may follow: words, at first, and what spells the rest of what is
        open."""
        log_probs = step.log_probs.clone()
        log_probs.index_fill_(1, NEVER.to(log_probs.device), -torch.inf)
        for row, ids in enumerate(ways):
            offset = sum(map(self._spellings.size, ids))
            if offset < self._open:
                allowed = self._opening.allowed(offset).to(log_probs.device)
                allowed_log_probs = log_probs[row, allowed]
                log_probs[row] = -torch.inf
                log_probs[row, allowed] = allowed_log_probs
            elif not ids:
                log_probs[row, EOS] = -torch.inf
        return log_probs

    @staticmethod
    def _extended(step: Stepped, row: int, ids: Ids, chances: Chances, traces: Traces) -> Way:
        """A way with what the step says of its last subword."""
        chance = float(step.log_probs[row, ids[-1]].exp())
        if step.trace is None:
            return ids, (*chances, chance), traces
        device = step.log_probs.device
        rows, words = torch.tensor([row], device=device), torch.tensor([ids[-1]], device=device)
        return ids, (*chances, chance), (*traces, step.trace.select(rows, words).pick(row, 0))


class PieceCompletion:
    """A piece of a sentence that somebody works on."""

    @torch.inference_mode()
    def __init__(self, piece: Piece, document: DocumentState, spellings: Spellings) -> None:
        """piece: the piece, with what the memories have for it.
        document: the document that it belongs to.
        spellings: what the subwords of the vocabulary spell."""
        self.piece, self._document = piece, document
        self._pipeline, self._spellings = document.pipeline, spellings
        self._decoder = self._pipeline.decoder
        self._collated = self._decoder.collated([piece], [document])
        self._encoded, self._ready, (self._longest,) = self._decoder.read_in(
            [piece], self._collated
        )
        backbone = self._pipeline.backbone
        layers = self._pipeline.layers or MemoryLayers()
        self._path = Path(backbone, layers, backbone.for_beam(self._encoded), self._ready)
        self._free: Hypothesis | None = None  # where nothing is typed

    @torch.inference_mode()
    def suggested(self, typed: Typed) -> Hypothesis:
        """The best translation of the piece that begins with what was typed.

        typed: what was typed of this piece."""
        if not typed.decided and not typed.open:
            self._free = self._free or self._best(typed, self._pipeline.settings.beam)
            return self._free
        return self._best(typed, min(BEAM, self._pipeline.settings.beam))

    @torch.inference_mode()
    def next_words(self, typed: Typed) -> str:
        """The words behind what was typed that `FEW` subwords reach. It gives no part of a word
        that goes on behind these subwords.

        typed: what was typed of this piece."""
        pipeline = self._pipeline
        settings = SearchSettings(
            min(BEAM, pipeline.settings.beam), pipeline.settings.length_penalty
        )
        with pipeline.tally.timed("decode"):
            following = self._searched(typed, settings, LOOK_AHEAD)
        continuation = typed.tail(following.ids)
        return continuation if following.finished else continuation.rpartition(" ")[0]

    def _best(self, typed: Typed, beam: int) -> Hypothesis:
        pipeline = self._pipeline
        settings = SearchSettings(beam, pipeline.settings.length_penalty, explain=True)
        with pipeline.tally.timed("decode"):
            whole = self._searched(typed, settings, self._longest)
            (revised,) = self._decoder.revised(
                [self.piece], [self._document], [whole], self._encoded, self._ready, explain=True
            )
        begins = typed.spellings.bytes_of(revised.ids).startswith(typed.prefix_bytes)
        return revised if begins else whole  # nothing takes the place of what was typed

    def _searched(self, typed: Typed, settings: SearchSettings, limit: int) -> Hypothesis:
        """The best translation that begins with what was typed, with a limited number of subwords
        behind it."""
        self._path.go(typed.decided)
        beginning = self._path.beginning()
        if beginning.length + len(typed.open) >= self._longest:  # no room for anything behind it
            hypothesis = self.force(typed.prefix_bytes.decode(errors="ignore").strip())
            return replace(hypothesis, finished=False)
        longest = min(self._longest, beginning.length + limit)
        lead = Opening(typed.open, typed.spellings) if typed.open else None
        layers, backbone = self._pipeline.layers, self._pipeline.backbone
        (following,) = search_on(backbone, layers, beginning, [longest], settings, lead)
        return self._path.whole(following, settings, lead.log_prob if lead is not None else 0.0)

    @torch.inference_mode()
    def alternatives(self, typed: Typed, count: int) -> list[Alternative]:
        """The likeliest words behind what was typed. They are found by the likeliest next subwords
        and by what is likeliest to follow each of these until the word ends. The probabilities of
        one word that is spelled in several ways are added.

        typed: what was typed of this piece.
        count: how many words are given at most."""
        pipeline = self._pipeline
        self._path.go(typed.decided)
        words = Words(pipeline.backbone, pipeline.layers or MemoryLayers(), typed)
        prefix = typed.decided
        merged = dict[str, Alternative]()
        for ids, probabilities, traces in words.likeliest(self._path.beginning(), 2 * count):
            text = pipeline.vocab.decode([*prefix, *ids])
            text = text[len(pipeline.vocab.decode(prefix)) :].strip()
            hypothesis = Hypothesis(
                ids, 0.0, 0.0, False, probabilities=probabilities, traces=traces
            )
            neighbouring = Neighbouring(self._collated.search, 0, self.piece)
            tokens = tokens_of(
                hypothesis, pipeline.vocab, self._collated, 0, neighbouring, self.piece
            )
            chance = math.prod(probabilities)
            if text in merged:
                alternative = merged[text]
                merged[text] = replace(alternative, probability=alternative.probability + chance)
            elif text:
                merged[text] = Alternative(text, chance, tokens)
        return sorted(merged.values(), key=lambda alternative: -alternative.probability)[:count]

    @torch.inference_mode()
    def force(self, text: str) -> Hypothesis:
        """Takes what was typed as a whole translation of the piece.

        text: what was typed."""
        self._path.go(self._pipeline.vocab.encode(text))
        settings = SearchSettings(length_penalty=self._pipeline.settings.length_penalty)
        return self._path.whole(Hypothesis((), 0.0, 0.0, finished=True), settings)

    @torch.inference_mode()
    def ends_within(self, typed: Typed) -> int | None:
        """How many of the decided words belong to this piece, where the piece ends within them or
        right behind them; None where the piece goes on with what is open.

        typed: what was typed."""
        self._path.go(typed.decided)
        vocab = self._pipeline.vocab
        words = 0
        for index, subword in enumerate(self._path.subwords):
            is_first = vocab.piece(subword.id).startswith("▁")
            if index and is_first and subword.ends >= ENDS:
                return words
            words += is_first
        opens_word = bool(words) and typed.open.startswith(b" ")
        return words if opens_word and self._path.end() >= ENDS else None

    def translation_of(self, best: Hypothesis) -> tuple[Translation, int]:
        """The translation that a hypothesis says, and its length in subwords.

        best: the hypothesis, which begins as a person has typed it."""
        decoded = Decoded(best, self._collated, 0, is_typed=True)
        translation = self._pipeline.search.postprocessor.translation(self.piece, decoded)
        return translation, len(best.ids) + best.finished


class CompletionState:
    """The state of a sentence that somebody works on. With nothing typed, the sentence is
    translated as any other. Behind what was typed, the same pieces are continued."""

    def __init__(
        self,
        document: DocumentState,
        source: Source,
        spellings: Callable[[Vocabulary, bool], Spellings],
    ) -> None:
        """document: the document that the sentence belongs to.
        source: the sentence.
        spellings: a function that gives what the subwords of a vocabulary spell, in capitals or
        not."""
        self._pipeline = pipeline = document.pipeline
        self._document = document
        self._source = source
        self._spellings = spellings
        self._version, self._created = document.version, time.monotonic()
        pieces = pipeline.passage().open(source, document.neighbours, document.preceding)
        self._pieces = pipeline.retrieve(pieces, [document] * len(pieces))
        # as they are decoded behind what was typed: sentences, where a translation had lost one
        self._decoded_pieces: list[Piece] | None = None
        self._completions: list[tuple[Piece, PieceCompletion | None, bool]] | None = None
        self._suggested: OrderedDict[str, Translation] = OrderedDict()  # by what was typed
        self._is_counted = False

    def is_stale(self) -> bool:
        """Whether what the sentence has read may have changed."""
        is_old = time.monotonic() - self._created > FRESH
        return is_old or self._document.version != self._version

    @property
    def _continues(self) -> bool:
        """Whether the base goes on from what was typed. One that does not has its own translation
        suggested as long as what is typed agrees with that, and nothing otherwise."""
        return self._pipeline.writer.continues

    @property
    def _capitals(self) -> bool:
        return bool(self._pieces) and self._pieces[0].segment.source.is_recased

    def complete(self, prefix: str) -> Translation:
        """The best translation that begins with what was typed, with the origin of every subword.

        prefix: what was typed."""
        if not self._pieces:
            return Translation(plain_of(self._source), prefix, 0.0)
        self._read_first()
        suggestion = self._find_suggestion(prefix)
        if suggestion is None:
            suggestion = self._suggested[prefix] = self._ended(
                prefix, self.complete
            ) or self._new_suggestion(prefix)
            while len(self._suggested) > SUGGESTIONS:
                # what was suggested first is asked for again where all that was typed is deleted
                self._suggested.pop(next(key for key in self._suggested if key))
        return replace(suggestion, tokens=self._marked(suggestion.tokens, prefix))

    def next_words(self, prefix: str) -> str:
        """The words that come behind what was typed: the rest of a suggestion that begins so, where
        there is one, and otherwise the next few words.

        prefix: what was typed."""
        self._read_first()
        suggestion = self._find_suggestion(prefix) or self._ended(prefix, self._find_suggestion)
        if suggestion is not None and suggestion.tgt.startswith(prefix):
            return suggestion.tgt[len(prefix) :]
        text = prefix.rstrip()
        if text and text != prefix and not self.next_words(text):
            return ""  # nothing is behind the text, so nothing is behind its blanks
        at_work = self._at_work(prefix)
        return self._display(at_work[0].next_words(at_work[1])) if at_work is not None else ""

    def _ended(
        self, prefix: str, suggested: Callable[[str], Translation | None]
    ) -> Translation | None:
        """Gives `prefix` itself back where it ends in blanks and nothing is suggested behind the
        text before them. Then nothing stands behind the blanks either."""
        text = prefix.rstrip()
        suggestion = suggested(text) if text and text != prefix else None
        if suggestion is None or suggestion.tgt != text:
            return None
        return replace(suggestion, tgt=prefix)

    def _read_first(self) -> None:
        """Computes the suggestion for nothing first, where it is made in another way than those
        behind something. This is so for a full match, a heading, a phrase, messages, and several
        sentences. Thus it does not matter what was asked for earlier."""
        if self._pieces and "" not in self._suggested and self._needs_free(self._pieces[0]):
            self._suggested[""] = self._free()

    def _needs_free(self, piece: Piece) -> bool:
        source, settings = piece.segment.source, self._pipeline.settings
        return (
            not self._continues
            or self._pipeline.full_match(piece, self._document) is not None
            or piece.has_reading
            or source.split is not None
            or bool(source.barred(piece.model_text))
            or (settings.lost_sentences and piece.is_whole and bool(source.parts))
        )

    def alternatives(self, prefix: str, count: int) -> list[Alternative]:
        """The words that may stand behind what was typed, the likeliest first.

        prefix: what was typed.
        count: how many words are given at most."""
        self._read_first()
        at_work = self._at_work(prefix)
        if at_work is None:
            return []
        ways = at_work[0].alternatives(at_work[1], count)
        return [replace(alternative, text=self._display(alternative.text)) for alternative in ways]

    def _at_work(self, prefix: str) -> tuple[PieceCompletion, Typed] | None:
        """The piece in which `prefix` ends, with what was typed of it; None where there is none."""
        can_go_on = bool(self._pieces) and self._continues
        remaining = self._as_read(prefix) if can_go_on else ""
        for _, part, is_last in self._decoders() if can_go_on else ():
            if part is None:
                continue
            typed = self._typed(remaining)
            words = None if is_last or self._capitals else part.ends_within(typed)
            if words is None:
                return part, typed
            _, remaining = _cut(remaining, words)
        return None

    def _display(self, text: str) -> str:
        """What the model has written, as a person reads it."""
        return self._pieces[0].segment.source.display(text)

    def _find_suggestion(self, prefix: str) -> Translation | None:
        """A suggestion that was made for a beginning of `prefix` and still begins with it. Of
        several, it is the one that was made for the longest beginning."""
        candidates = [
            (len(typed), suggestion)
            for typed, suggestion in self._suggested.items()
            if prefix.startswith(typed) and suggestion.tgt.startswith(prefix)
        ]
        return max(candidates, key=lambda candidate: candidate[0])[1] if candidates else None

    def _free(self) -> Translation:
        """The translation where nothing is typed."""
        pipeline = self._pipeline
        passage = pipeline.passage()
        pieces, sessions = passage.open_again(self._source, self._pieces), [self._document]
        outcomes = pipeline.outcomes(pieces, sessions * len(pieces), explain=True)
        has_sentences = len(outcomes[0]) > 1 and pieces[0].is_whole
        if has_sentences and pieces[0].segment.source.split is None:
            self._decoded_pieces = [outcome.piece for outcome in outcomes[0]]
        results = pipeline.merged(pieces, outcomes, explain=True)
        for piece, result in zip(pieces, results, strict=True):
            passage.put(piece, *result)
        return self._finished(passage)

    def _new_suggestion(self, prefix: str) -> Translation:
        if not prefix:
            return self._free()
        if not self._continues:
            whole = self._suggested[""]
            return replace(whole, tgt=prefix, tgt_codes=(), user_checks=(), origin="")
        passage = self._pipeline.passage()
        (first,) = passage.open_again(self._source, [self._as_one()])
        results = list[tuple[Translation, int]]()
        continuation = ""
        remaining = self._as_read(prefix)
        is_typed = True  # the piece, in part at least
        for piece, part, is_last in self._decoders():
            if part is None:
                results.append((Translation(piece.text, "", 0.0), 0))
                continue
            typed = self._typed(remaining)
            words = None if is_last or self._capitals else part.ends_within(typed)
            if words is not None:
                piece_text, remaining = _cut(remaining, words)
                translation, length = part.translation_of(part.force(piece_text))
                translation = replace(translation, tgt=piece_text)
            else:
                best = part.suggested(typed)
                translation, length = part.translation_of(best)
                continuation += typed.tail(best.ids) if is_typed else f" {translation.tgt}"
                remaining, is_typed = "", False
            first.segment.source.add(piece.number, piece.model_text, translation, piece.is_whole)
            results.append((translation, length))
        passage.put(first, *join_parts(first.text, results))
        return self._beginning(self._finished(passage), prefix, continuation)

    def _as_one(self) -> Piece:
        """The segment as one piece, whose translation is put together here."""
        segment = self._pieces[0].segment
        return replace(self._pieces[0], text=segment.text, number=0)

    def _finished(self, passage: Passage) -> Translation:
        """The finished translation. Only the first translation of a sentence counts in the
        tally."""
        (translation,) = passage.finish(counts=not self._is_counted)
        self._is_counted = True
        return translation

    def _beginning(self, whole: Translation, prefix: str, continuation: str) -> Translation:
        """A translation that begins with `prefix` to the letter. `continuation` is what the model
        wrote behind it."""
        if whole.tgt.startswith(prefix):
            return whole
        tgt = prefix + self._display(continuation)
        if self._pieces[0].segment.source.has_tags_as_text:
            return replace(whole, tgt=_with_other_tags(tgt, whole.tgt, prefix))
        text = Text(whole.tgt, whole.tgt_codes)
        return replace(whole, tgt=tgt, tgt_codes=_shift_codes(text, prefix, len(tgt)))

    def _decoders(self) -> list[tuple[Piece, PieceCompletion | None, bool]]:
        """The pieces as the decoder has them, which are made at their first use; None for a piece
        that another one stands for. It also says whether no piece follows."""
        if self._completions is None:
            spellings = self._spellings(self._pipeline.vocab, self._capitals)
            pieces = self._pipeline.lookup.to_be_decoded(self._decoded_pieces or self._pieces)
            last = max(index for index, piece in enumerate(pieces) if piece.role != "merged")
            parts = [
                None
                if piece.role == "merged"
                else PieceCompletion(piece, self._document, spellings)
                for piece in pieces
            ]
            ends = [index == last for index in range(len(pieces))]
            self._completions = [*zip(pieces, parts, ends, strict=True)]
        return self._completions

    def _as_read(self, prefix: str) -> str:
        """What was typed, as the model would write it."""
        return self._pieces[0].segment.source.to_target(prefix)

    def _typed(self, text: str) -> Typed:
        spellings = self._spellings(self._pipeline.vocab, self._capitals)
        return (Typed.in_capitals if self._capitals else Typed.parse)(text, spellings)

    def _marked(self, tokens: Sequence[Token], prefix: str) -> tuple[Token, ...]:
        """The tokens, in which those that were typed as a whole have the origin "typed"."""
        plain = one_blank(self._as_read(prefix)).lstrip(" ")
        remaining = len(f" {plain}".encode()) if plain else 0
        marked = list[Token]()
        for token in tokens:
            remaining -= spelt_size(token.text)
            marked.append(replace(token, origin="typed") if remaining >= 0 else token)
        return tuple(marked)


def _shift_codes(whole: Text, prefix: str, size: int) -> tuple[Code, ...]:
    """The codes of a translation where it got another beginning, and is `size` characters long:
    they keep their distance from its end, as far as that is behind `prefix`. What covers words is
    written in them."""
    later = size - len(whole.plain)
    codes = (code for code in whole.codes if not code.covers)
    return tuple(replace(code, at=max(len(prefix), code.at + later)) for code in codes)


def _with_other_tags(tgt: str, whole: str, prefix: str) -> str:
    """A text that begins with what was typed, with those tags of a whole translation that were not
    typed."""
    text = with_tags(Text(whole), html_tags)
    typed = Counter(code.markup for code in with_tags(Text(prefix), html_tags).codes)
    remaining = list[Code]()
    for code in text.codes:
        remaining += [code] if not typed[code.markup] else []
        typed[code.markup] -= 1 if typed[code.markup] else 0
    return string_of(Text(tgt, _shift_codes(Text(text.plain, tuple(remaining)), prefix, len(tgt))))


def _cut(text: str, words: int) -> tuple[str, str]:
    """The first words of a text, and the rest."""
    parts = one_blank(text).strip(" ").split(" ")
    end = " " if text.endswith(" ") else ""
    return " ".join(parts[:words]), " ".join(parts[words:]) + end
