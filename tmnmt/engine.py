"""Translation that remembers: retrieve -> decode -> remember.

`Translator.translate_batch` is the whole idea; what stands around it decides which sentences are translated together.
"""

from __future__ import annotations

import copy
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from tmnmt.decode import Hypothesis, SearchSettings, beam_search
from tmnmt.errors import UsageError
from tmnmt.formats.clean import check_length, clean
from tmnmt.formats.text import documents as split_at_blanks
from tmnmt.index.base import Index, WritableIndex
from tmnmt.index.datastore import Datastore
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.index.memory_index import MemoryIndex
from tmnmt.index.select import Method, Selection, Similarity
from tmnmt.memories.base import MemoryState, PairKeys
from tmnmt.memories.cache import CacheContents, collate_caches
from tmnmt.memories.cache_file import Saved, load_caches, save_caches
from tmnmt.memories.combine import Memories, Mode
from tmnmt.memories.neighbours import Asked, NeighbourState
from tmnmt.memories.tm import collate
from tmnmt.memory_keys import header_of, longest, precomputed
from tmnmt.models.folder import Model
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.models.rnnsearch_fast import FastRNNsearch
from tmnmt.opened import check_memories, load_memories, load_on, open_memories
from tmnmt.pair_keys import PairKeyStore, force, padded
from tmnmt.pieces import pieces
from tmnmt.progress import ReadProgress
from tmnmt.provenance import Neighbouring, tokens_of
from tmnmt.retrieve import Retriever
from tmnmt.schedule import InOrder, Piece, by_length, side_by_side
from tmnmt.segments import Segment, Translation
from tmnmt.settings import NEIGHBOURS, Precision, Settings, check, check_count, knn_of
from tmnmt.text import match_tokens, normalise
from tmnmt.verbatim import as_it_stands, exact_match
from tmnmt.vocab import EOS

CONTROL = "had control characters, taken out"  # a key of `Translator.counts`


class Translator:
    """A model with its memories. `counts` says how many segments had to be changed before they could be translated,
    `seconds` where the time went: "search", "keys", "decode". Not for several threads at once."""

    def __init__(
        self, model: Model, memories: Memories | None, indexes: Sequence[Index], settings: Settings,
        device: str = "cpu", writable: WritableIndex | None = None,
    ) -> None:  # fmt: skip
        check(settings, memories, model)
        if settings.mode == "knn":
            memories = memories or Memories()
        self.settings, self.memories, self.device = settings, memories, device
        self.model_hash = model.hash
        learned = memories.cache.slots_by if memories is not None and memories.cache is not None else ""
        self.cache_hash = f"{model.hash} {learned}".strip()  # of all that a slot depends on
        self.vocab, self.src_lang, self.tgt_lang = model.vocab, model.config["src_lang"], model.config["tgt_lang"]
        plain, dtype = model.backbone, torch.bfloat16 if settings.precision == "bf16" else None
        self.backbone = FastRNNsearch(plain, dtype) if isinstance(plain, RNNsearch) else plain
        self.longest = longest(model)
        self.retriever = Retriever(indexes, settings.top_k, settings.threshold, writable, settings.selection)
        header = header_of(model)
        held = [
            keys for index in indexes if isinstance(index, MemoryIndex) and (keys := precomputed(index.path, header))
        ]
        self.keys = PairKeyStore(self.backbone, self.vocab, header.max_subwords, device=device, precomputed=held)
        self.knn = knn_of(settings, model, device)
        neighbours = settings.neighbours > 0
        self.datastore = Datastore.open(indexes, model.hash, torch.get_num_threads()) if neighbours else None
        self.counts: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @classmethod
    def load(
        cls, model_dir: str | Path, memories: Sequence[str | Path | Index] = (), mode: Mode | None = None,
        cache: int | None = None, top_k: int = 4, threshold: float = 0.5, beam: int = 5, batch: int = 32,
        length_penalty: float = 1.0, precision: Precision = "fp32", device: str | None = None,
        threads: int | None = None, src_lang: str | None = None, tgt_lang: str | None = None,
        progress: ReadProgress | None = None, select: Method = "topk", similarity: Similarity = "fuzzy",
        alpha: float | None = None, verbatim: bool = False, overwrite: bool | None = None, cache_best: int = 1,
        neighbours: int | None = None, knn_weight: float = 0.02, knn_temperature: float = 20.0,
        knn_adaptive: str | Path | None = None, cache_own: bool | None = None,
    ) -> Translator:  # fmt: skip
        """The translator of a model folder. `memories`: built indexes, memory files, or open indexes; matches are the
        best of all. Not given, `mode` is copy (off without memories and parameters to copy with), `device` a GPU where
        there is one; languages are the model's.
        cache, cache_own: slots of the session cache, and whether what is translated is written to it. Not given, there
        are as many as the model's cache has learned with, and they hold what `Session.confirm` is told, which helps,
        and nothing that the model said, which does not (docs/cache.md); with `cache` given, both, as in Tu et al.
        progress: called with units read and the share of all bytes read, when a memory file has to be indexed.
        select, similarity, alpha: which of the pairs found are taken; see `tmnmt.index.select.Selection`.
        verbatim: a segment whose source the memory holds, word for word, gets its translation there as it stands.
        neighbours: keys of the whole memory read at every word, from `tmnmt keys`; 16 in mode knn, else 0.
        knn_adaptive: what `tmnmt adapt-knn` wrote; it then says at every word how much they count.

        Raises ModelError for what is no model, MemoryIndexError and FormatError for what is no memory, or has no keys
        where there are to be neighbours, UsageError for an option that is wrong or that this model cannot serve."""
        selection = Selection(select, similarity, alpha)
        check_memories(memories)
        if threads is not None:
            check_count("threads", threads)
            torch.set_num_threads(threads)
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        model = load_on(Path(model_dir), device)
        parameters = load_memories(model, device)
        if cache_own is None:
            cache_own = cache is not None
        if cache is None:
            cache = parameters.cache.kind.size if parameters is not None and parameters.cache is not None else 0
        copies = bool(memories) or (parameters is not None and "copy" in parameters.modes)
        settings = Settings(
            mode or ("copy" if copies else "off"), cache, cache_own, overwrite, cache_best, top_k, threshold, beam,
            batch, length_penalty, precision, selection, verbatim,
            neighbours if neighbours is not None else NEIGHBOURS if mode == "knn" else 0, knn_weight, knn_temperature,
            str(knn_adaptive) if knn_adaptive is not None else None,
        )  # fmt: skip
        check(settings, parameters, model)  # before a memory is indexed, which may take minutes
        languages = src_lang or model.config["src_lang"], tgt_lang or model.config["tgt_lang"]
        indexes, writable = open_memories(memories, *languages, progress)
        return cls(model, parameters, indexes, settings, device, writable)

    def translate(self, texts: Iterable[str], explain: bool = False) -> list[Translation]:
        """The translations of one document's segments, in order. A blank text is translated as "" and starts a new
        document. `explain`: with the origin of every token. Raises UsageError for what is no list of texts."""
        return list(self.stream([texts_of(texts)], explain))

    def stream(self, documents: Iterable[Sequence[str]], explain: bool = False) -> Iterator[Translation]:
        """The translations of all segments of all documents in order, each as soon as those before it are there.

        With a session cache of what was translated the documents go side by side, each in its own order; without one,
        sentences of similar length go together, since nothing is confirmed in between."""
        queue, caches = InOrder(), defaultdict[int, CacheContents](self.new_cache)
        for batch in self.batches(self._prepare(documents, queue)):
            remembers = self.settings.remembers
            own = [caches[piece.document] if remembers else self.new_cache(0) for piece in batch]
            for piece, done in zip(batch, self.translate_batch(batch, own, explain), strict=True):
                queue.put(piece, *done)
                if piece.last:
                    caches.pop(piece.document, None)
            yield from queue.ready()
        yield from queue.ready()

    def batches(self, prepared: Iterable[list[Piece]]) -> Iterator[list[Piece]]:
        """What is translated together, of documents made pieces."""
        if self.settings.remembers:
            return side_by_side(prepared, self.settings.batch, self.retrieve)
        return by_length(prepared, self.settings.batch)

    def translate_batch(
        self, batch: Sequence[Piece], caches: Sequence[CacheContents], explain: bool = False
    ) -> list[tuple[Translation, int]]:
        """The next sentence of each of several documents, and its length: retrieve -> decode -> remember."""
        batch = self.retrieve(batch)
        pairs = self._keys(batch)
        held = [exact_match(piece) if self.settings.verbatim else None for piece in batch]
        rows = [row for row, number in enumerate(held) if number is None]
        decoded = iter(
            self._decoded([batch[r] for r in rows], [pairs[r] for r in rows], [caches[r] for r in rows], explain)
        )
        done = []
        for row, number in enumerate(held):
            if number is None:
                done.append(next(decoded))
                continue
            keys = pairs[row][number]
            if self.settings.remembers:
                self.write(caches[row], keys.contexts, keys.hiddens, keys.ids)
            done.append((as_it_stands(batch[row], number, self.vocab, explain), len(keys.ids)))
        return done

    def _decoded(
        self, batch: Sequence[Piece], pairs: list[list[PairKeys]], caches: Sequence[CacheContents], explain: bool
    ) -> list[tuple[Translation, int]]:
        """What the model says with these pairs and caches, and remembers."""
        if not batch:
            return []
        tm = (
            collate(pairs, [self._scores(piece) for piece in batch], 1, self.device)
            if self.settings.mode != "off"
            else None
        )
        memory = MemoryState(tm, collate_caches(list(caches), 1, self.device), self._neighbours(batch))
        found = self.decode(batch, memory, explain)
        if self.settings.remembers:
            for cache, hypothesis in zip(caches, found, strict=True):
                self._remember(cache, hypothesis)
        return [
            (self._translation(piece, best, memory, row), len(best.ids) + best.finished)
            for row, (piece, best) in enumerate(zip(batch, found, strict=True))
        ]

    def retrieve(self, pieces: Sequence[Piece]) -> list[Piece]:
        """The pieces with their matches; those that have them already stay as they are. The keys of all pairs found are
        computed together."""
        wanted = [piece for piece in pieces if piece.matches is None]
        if not self.settings.retrieves or not wanted:
            return list(pieces)
        with self._timed("search"):
            found = dict(zip(wanted, self.retriever.search([piece.text for piece in wanted]), strict=True))
            # a part of a long segment that is like nothing reads what the whole segment is like
            bare = [piece for piece in wanted if not found[piece] and piece.text != piece.whole]
            found |= zip(bare, self.retriever.search([piece.whole for piece in bare]), strict=True)
        done = [replace(piece, matches=found[piece]) if piece in found else piece for piece in pieces]
        self._keys(done)
        return done

    def decode(self, pieces: Sequence[Piece], memory: MemoryState, explain: bool = False) -> list[Hypothesis]:
        """The best hypothesis for each piece by beam search, with what the session cache will want of it."""
        ids = [[*piece.ids, EOS] for piece in pieces]
        settings = self.settings
        search = SearchSettings(
            settings.beam, settings.length_penalty, settings.mode, settings.remembers, explain,
            settings.cache_best if settings.remembers else 1,
        )  # fmt: skip
        with self._timed("decode"), torch.inference_mode():
            src_len = torch.tensor([len(row) for row in ids], device=self.device)
            encoded = self.backbone.encode(padded(ids, self.device), src_len)
            if self.memories is not None:
                memory = self.memories.ready(memory, self.backbone)
            return beam_search(
                self.backbone, self.memories, encoded, memory, [2 * len(row) + 10 for row in ids], search
            )

    def session(self, path: str | Path | None = None) -> Session:
        """A document that is translated sentence by sentence and learns from every confirmed translation.

        path: of a session that was saved, which goes on as if it never had been. Raises DataError where it is none,
        ModelError where another model, K or kind of cache made it."""
        session = Session(self)
        if path is not None:
            saved = load_caches(Path(path), self.cache_hash, session.cache, len(self.vocab))
            session.cache, session._before = saved.cache, saved.before
        return session

    def new_cache(self, slots: int | None = None) -> CacheContents:
        """An empty session cache of so many slots, or of those set."""
        slots, overwrite = self.settings.cache if slots is None else slots, self.settings.overwrite
        if self.memories is None or self.memories.cache is None:
            return CacheContents(0, self.backbone.context_size, self.backbone.hidden_size, device=self.device)
        cache = self.memories.cache
        return CacheContents(
            slots, *cache.slot_sizes, cache.kind.overwrite if overwrite is None else overwrite, self.device
        )

    @torch.no_grad()
    def write(self, cache: CacheContents, contexts: Tensor, hiddens: Tensor, ids: Tensor) -> None:
        """A translated sentence into a document's cache: contexts (T, l), hiddens (T, d), ids (T,)."""
        if cache.size and self.memories is not None and self.memories.cache is not None:
            cache.write(*self.memories.cache.slots_of(contexts, hiddens), ids)

    def _remember(self, cache: CacheContents, hypothesis: Hypothesis) -> None:
        """Writes what was translated to the document's session cache; of several hypotheses the best last, so that it
        counts most (OURS: the paper does not say)."""
        for one in (*reversed(hypothesis.others), hypothesis):
            if one.contexts is not None and one.hiddens is not None:
                self.write(cache, one.contexts, one.hiddens, torch.tensor(one.ids))

    def _keys(self, pieces: Sequence[Piece]) -> list[list[PairKeys]]:
        with self._timed("keys"):
            return self.keys.keys_of([(m.segment.src, m.segment.tgt) for m in piece.matches or ()] for piece in pieces)

    def _neighbours(self, batch: Sequence[Piece]) -> NeighbourState | None:
        """What is read of the whole memory at every word, before the first; None where nothing is."""
        if self.datastore is None:
            return None
        settings, tm = self.settings, self.memories.tm if self.memories is not None else None
        pairs = [[(m.segment.src, m.segment.tgt) for m in piece.matches or ()] for piece in batch]
        asked = Asked(self.datastore, settings.neighbours, [piece.text for piece in batch], pairs, self.knn)
        return NeighbourState.of(asked, len(batch), tm.coverage.width if tm is not None else 0, self.device)

    def _scores(self, piece: Piece) -> list[float]:
        """The fuzzy score of every match: what the gates have learned to read, whatever the matches are ranked by."""
        matches = piece.matches or ()
        if self.settings.selection.similarity == "fuzzy":
            return [match.score for match in matches]
        tokens = match_tokens(piece.whole)
        return [fuzzy_score(tokens, match_tokens(match.segment.src)) for match in matches]

    def _prepare(self, documents: Iterable[Sequence[str]], queue: InOrder) -> Iterator[list[Piece]]:
        """Every document as the pieces to be translated; blank lines part documents. Announces all to `queue`."""
        parts = (part for document in documents for part in split_at_blanks(texts_of(document)))
        for number, part in enumerate(parts):
            prepared = [piece for text in part for piece in self.pieces_of(text, number, queue)]
            if prepared:
                yield [*prepared[:-1], replace(prepared[-1], last=True)]

    def pieces_of(self, text: str, document: int, queue: InOrder) -> list[Piece]:
        """A segment as what the model can translate: no control characters, no piece longer than it was trained on."""
        cleaned, changed = clean(text_of(text))
        texts = pieces(cleaned, self.vocab, self.longest) if cleaned else []
        self.counts[CONTROL] += changed
        self.counts[f"had more than {self.longest} subwords, translated in pieces"] += len(texts) > 1
        number = queue.announce(text, len(texts))
        return [
            Piece(one, tuple(self.vocab.encode(one)), cleaned, number, document, part) for part, one in enumerate(texts)
        ]

    def _translation(self, piece: Piece, best: Hypothesis, memory: MemoryState, row: int) -> Translation:
        matches = piece.matches or ()
        near = Neighbouring(memory.neighbours.asked if memory.neighbours is not None else None, len(matches))
        tokens = tokens_of(best, self.vocab, memory, row, near) if best.traces else ()
        text = clean(self.vocab.decode(best.ids))[0]  # single bytes could spell a line end
        return Translation(piece.text, text, best.score, matches + near.matches(row), tokens)

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[what] += time.perf_counter() - start


class Session:
    """One document, sentence by sentence, with a session cache of its own."""

    def __init__(self, translator: Translator) -> None:
        self.translator = translator
        self.cache = translator.new_cache()
        # where translations are written: the last text, and the cache without what was written of it
        self._before: tuple[str, CacheContents] | None = None

    def save(self, path: str | Path) -> None:
        """Writes the session's cache to a file, for `Translator.session(path)`. What was confirmed is in the memory.

        Raises DataError where the file cannot be written; then nothing is."""
        save_caches(Path(path), Saved(self.cache, self._before), self.translator.cache_hash)

    def translate(self, text: str, explain: bool = False) -> Translation:
        """The translation of the document's next segment, which is then in the cache where `cache_own` is on."""
        queue = InOrder()
        text = text_of(text)
        self._before = (text, copy.deepcopy(self.cache)) if self.translator.settings.remembers else None
        for piece in self.translator.pieces_of(text, 0, queue):
            done = self.translator.translate_batch([piece], [self.cache], explain)
            queue.put(piece, *done[0])
        return next(queue.ready())

    def confirm(self, src: str, tgt: str) -> None:
        """Learns a translation: the very next sentence can retrieve the pair, and the session cache holds it, in place
        of the translator's own words where `src` is what was translated last.

        The pair is kept in the first memory that is a built index one may write to; elsewhere it lasts as long as the
        translator. Raises UsageError for a blank side or one of more than 1,000 tokens, LockedError where another
        process writes to that index; then nothing is learnt."""
        src, tgt = clean(text_of(src))[0], clean(text_of(tgt))[0]
        if not src or not tgt:
            raise UsageError("a confirmed pair needs a text on both sides")
        for side, text in (("the source", src), ("the translation", tgt)):
            check_length(side, text)
        translator = self.translator
        keys = self._keys(src, tgt) if translator.settings.cache else None
        translator.retriever.add(Segment(src, tgt))
        if self._before is not None and normalise(self._before[0]) == normalise(src):
            self.cache = self._before[1]
            self._before = None
        if keys is not None:
            for cache in (self.cache, *(self._before[1:] if self._before is not None else ())):
                translator.write(cache, keys.contexts, keys.hiddens, keys.ids)

    def _keys(self, src: str, tgt: str) -> PairKeys:
        translator = self.translator
        coded = [[*translator.vocab.encode(text)[: 2 * translator.longest], EOS] for text in (src, tgt)]
        return force(translator.backbone, [(coded[0], coded[1])], translator.device)[0]


def text_of(text: object) -> str:
    """`text`, which UsageError says is none where it is none."""
    if not isinstance(text, str):
        raise UsageError(f"a text is wanted, not {type(text).__name__}")
    return text


def texts_of(texts: object) -> list[str]:
    """A document's texts. Raises UsageError where it is a text itself, or no list of texts at all."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise UsageError(f"a list of texts is wanted, not {type(texts).__name__}")
    return [text_of(text) for text in texts]
