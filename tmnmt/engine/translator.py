"""Translation that remembers: retrieve -> decode -> remember.

`Translator.translate_batch` is the whole idea; what stands around it decides which sentences are
translated together."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from pathlib import Path

import torch
from torch import Tensor

from tmnmt.checks import kept
from tmnmt.codes.record import Source
from tmnmt.config.option import option
from tmnmt.config.options import (
    Decoding,
    Device,
    Language,
    Meant,
    Neighbours,
    Penalties,
    Remembering,
    Search,
    Selection,
    Terms,
    Threads,
)
from tmnmt.engine.coded import Coded
from tmnmt.engine.completion import AtWork
from tmnmt.engine.confidence import Confidence
from tmnmt.engine.confirmation import Confirmation, confirmation
from tmnmt.engine.decoder import Decoded, Decoder
from tmnmt.engine.foreign import copied
from tmnmt.engine.in_parts import by_message, one_by_one
from tmnmt.engine.links import LINKED_AT_ONCE, Linker
from tmnmt.engine.lookup import Lookup, codes_of
from tmnmt.engine.named_memories import (
    Named,
    check_memory,
    named,
    open_memories,
    open_to_write,
)
from tmnmt.engine.opened import device_named, languages_of, load_layers, load_on
from tmnmt.engine.postprocess import Postprocessor
from tmnmt.engine.preparation import Pair, Preparation, paired, texts_of
from tmnmt.engine.retrieve import Retriever
from tmnmt.engine.schedule import InOrder, Piece, by_length, join, joined, side_by_side
from tmnmt.engine.session import Session, Sessions
from tmnmt.engine.settings import (
    UNTRAINED,
    Settings,
    check,
    default_mode,
    knn_of,
    settled,
    shortlist_of,
)
from tmnmt.engine.tally import Tally
from tmnmt.engine.terms import TermList
from tmnmt.engine.typed import Spellings
from tmnmt.engine.verbatim import as_it_stands
from tmnmt.errors import UsageError
from tmnmt.index.base import Index, WritableIndex
from tmnmt.index.embedded.index import MemoryIndex
from tmnmt.index.worth import Trust
from tmnmt.keys.compute import header_of, longest, longest_whole, precomputed
from tmnmt.keys.datastore import Datastore
from tmnmt.keys.pair_keys import PairKeyStore
from tmnmt.layers.cache import CacheContents
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.nearest import SessionPositions
from tmnmt.layers.reach import STANDARD, Reaches, reaches_of
from tmnmt.models.folder import Model
from tmnmt.progress import ReadProgress
from tmnmt.segments import Alternative, Match, Translation
from tmnmt.terms.find import Finder
from tmnmt.terms.read import read_terms
from tmnmt.terms.term import Term

WAITING_AT_MOST = 8  # batches, at most, that wait for so many
PIECES_AT_ONCE = 256  # of a document: more would only lie in memory
LACKING_TOGETHER = 4  # batches whose translations that lack terms are written anew together


Translated = tuple[Translation, int]  # of a piece, and its length in subwords
# a piece, and what the model says of it; or its translation, where a memory's stands
Said = tuple[Piece, Decoded | Translated]


DOUBTFUL = 0.5  # of the low score: below it a heading is read in two ways; chosen on dev


class Translator:
    """A model with its memories. `tally` says what had to be changed, how many scored low, what the
    vocabulary lacked, and where the time went.

    Any thread may use it, and its sessions: one batch is translated after another, under `lock`, so
    that results are those of one thread. It answers several threads, but no faster than one. What
    it counts is of all threads."""

    def __init__(
        self,
        model: Model,
        layers: MemoryLayers | None,
        indexes: Sequence[Index],
        settings: Settings,
        device: str = "cpu",
        writable: WritableIndex | None = None,
        trust: Sequence[Trust] = (),
        tally: Tally | None = None,
        terms: Sequence[Term] = (),
        hard_terms: bool = False,
        reaches: Reaches | None = None,
    ) -> None:
        """reaches: how nearest positions are read; None: as calibration has it for the memories."""
        model = model.reading(settings.reference, settings.context)
        model = replace(model, products=settings.precision)
        check(settings, layers, model)
        if settings.mode in UNTRAINED and settings.mode != "off":
            layers = layers or MemoryLayers()
        self.settings = settings
        self.reaches = reaches
        self.layers = layers
        self.device = device
        self.writable = writable
        self.lock = threading.RLock()
        self.model_hash = model.hash
        self.states_hash = model.states_hash
        learned = layers.cache.slots_by if layers is not None and layers.cache is not None else ""
        self.cache_hash = f"{model.states_hash} {learned}".strip()  # of all that a slot depends on
        self.vocab = model.vocab
        self.src_lang = model.config["src_lang"]
        self.tgt_lang = model.config["tgt_lang"]
        self.backbone = model.decoding
        self.at_work = AtWork()
        self._spellings = dict[bool, Spellings]()
        self.tally = tally or Tally()
        self.copied = copied(self.vocab, self.src_lang, settings.kept)
        self.keys = self._pair_keys(model, indexes)
        self.longest = longest(model)
        self.longest_whole = longest_whole(model)
        self.read(indexes, trust)
        low_score = model.config.get("low_score", -math.inf)
        self.decoder = Decoder(
            backbone=self.backbone,
            layers=layers,
            settings=settings,
            device=device,
            tally=self.tally,
            linker=Linker(self.backbone, self.vocab, device),
            shortlist=shortlist_of(settings, model),
            terms=TermList(Finder(terms), self.vocab, hard_terms, self.tgt_lang) if terms else None,
            datastore=self._datastore(indexes) if settings.neighbours else None,
            knn=knn_of(settings, model, device),
            doubtful=DOUBTFUL * low_score,
        )
        self.postprocessor = Postprocessor(
            backbone=self.backbone,
            vocab=self.vocab,
            terms=self.decoder.terms,
            confidence=Confidence.of(model),
            low_score=low_score,
            nbest=settings.nbest,
        )

    @property
    def terms(self) -> TermList | None:
        """The list of words whose translations must come."""
        return self.decoder.terms

    def _pair_keys(self, model: Model, indexes: Sequence[Index]) -> PairKeyStore:
        """Pair keys, read where `tmnmt keys` has computed them, else computed at need."""
        header = header_of(model)
        files = [
            keys
            for index in indexes
            if isinstance(index, MemoryIndex) and (keys := precomputed(index.path, header))
        ]
        return PairKeyStore(
            self.backbone, self.vocab, header.max_subwords, device=self.device, precomputed=files
        )

    def _reaches(self, indexes: Sequence[Index]) -> Reaches:
        """How the nearest positions of these memories are read."""
        return (
            reaches_of(indexes, self.states_hash) if self.settings.mode == "nearest" else STANDARD
        )

    def _datastore(self, indexes: Sequence[Index]) -> Datastore:
        """The keys of all memories, which neighbours are found in."""
        datastore = Datastore.open(indexes, self.states_hash, torch.get_num_threads())
        for search in datastore.searches:
            search.files.check_words(search.files.ids, len(self.vocab))
        return datastore

    def read(self, indexes: Sequence[Index], trust: Sequence[Trust] = ()) -> None:
        """From now on these memories are read, as the settings say."""
        settings = self.settings
        retriever = Retriever(
            indexes,
            settings.top_k,
            settings.threshold,
            settings.selection,
            settings.short_threshold,
            settings.penalties,
            trust,
        )
        self.lookup = Lookup(
            retriever,
            self.keys,
            self.vocab,
            settings,
            self.longest,
            self.longest_whole,
            self.tally,
            self.reaches or self._reaches(indexes),
        )
        self.preparation = Preparation(
            self.vocab,
            self.copied,
            self.longest,
            self.lookup,
            self.lock,
            self.tally,
            self.backbone.previous,
        )

    @classmethod
    def load(
        cls,
        model: str | Path,
        memory: Sequence[str | Path | Index] = (),
        *,
        write_to: Named | None = None,
        search: Search = Search(),
        selection: Selection = Selection(),
        remembering: Remembering = Remembering(),
        neighbours: Neighbours = Neighbours(),
        decoding: Decoding = Decoding(),
        worth: Penalties = Penalties(),
        meant: Meant = Meant(),
        terms: Terms = Terms(),
        src_lang: Language = None,
        tgt_lang: Language = None,
        device: Device = None,
        threads: Threads = None,
        progress: ReadProgress | None = None,
    ) -> Translator:
        """The translator of a model folder.

        memory: built indexes, memory files, or open indexes; matches are the best of all. After a
        name there may be settings, as in "a.tmx:penalty=5" (`named_memories.NamedMemory`).
        write_to: the index that confirmed pairs are added to, for good; it is searched, too, and
        made where it is not there yet. Without it they last as long as their session.
        search, selection, remembering, neighbours, decoding, worth: the options, in groups. What
        each is for stands in `tmnmt.config.options`. Not given, the mode is copy where the
        model has learned it, and nearest where it has learned nothing of memories; a session cache
        has as many slots as it has learned with.
        meant: which segments of the memories are found, by document, user, date and so on.
        terms: a file of words whose translations must come; `tmnmt.terms` says how.
        src_lang, tgt_lang: of memory files; not given, the model's, whose regions may differ.
        device: not given or auto, a GPU where there is one. threads: not given, all cores.
        progress: called with units read and the share of all bytes read, when a memory file has to
        be indexed.

        Raises ModelError for what is no model, MemoryIndexError and FormatError for what is no
        memory, or has no keys where there are to be neighbours, UsageError for an option that is
        wrong or that this model cannot serve."""
        check_memory(memory)
        option("threads", Threads).check(threads)
        if threads is not None:
            torch.set_num_threads(threads)
        device = device_named(device)
        loaded = load_on(Path(model), device)
        parameters = load_layers(loaded, device)
        groups = (search, selection, remembering, neighbours, decoding, worth)
        settings = settled(groups, parameters, default_mode(parameters))
        loaded = loaded.reading(settings.reference, settings.context)
        check(settings, parameters, loaded)  # before a memory is indexed, which may take minutes
        languages = languages_of(loaded, src_lang, tgt_lang)
        listed = read_terms(terms.terms, *languages) if terms.terms is not None else []
        hard = terms.terms_mode == "hard"
        indexes = open_memories(memory, *languages, progress, meant)
        writable = None
        if write_to is not None:
            writable = open_to_write(write_to, memory, indexes, *languages)
            indexes += [writable] if not any(writable is index for index in indexes) else []
        trust = [named(each).trust for each in memory]
        return cls(
            loaded,
            parameters,
            indexes,
            settings,
            device,
            writable,
            trust,
            terms=listed,
            hard_terms=hard,
        )

    def translate(
        self, texts: Iterable[Source], explain: bool = False, tag: str = ""
    ) -> list[Translation]:
        """The translations of one document's segments, in order. A blank text is translated as ""
        and starts a new document; one with codes (`Text`) does not. What has codes keeps them.
        `explain`: with the origin of every token. `tag`: as in `stream`.
        Raises UsageError for what is no list of texts."""
        return list(self.stream([texts_of(texts)], explain, tag=tag))

    def stream(
        self,
        documents: Iterable[Sequence[Source]],
        explain: bool = False,
        confirmed: Iterable[Sequence[Pair | None]] | None = None,
        tag: str = "",
        finished: Callable[[], None] = lambda: None,
    ) -> Iterator[Translation]:
        """The translations of all segments of all documents in order, each as soon as those before
        it are there. Where codes stand among words a few batches are waited for, so that their
        places are found together.

        confirmed: for every text of every document the source and target that are confirmed as soon
        as it is translated, as `Session.confirm` does it; None: nothing is. Every document has a
        session of its own. Documents then go side by side, each in its own order; so they do where
        own words are remembered. Else sentences of similar length go together.

        tag: of an imported model with several target languages another than its own, as deu of
        >>deu<<. Raises UsageError where the model has none such, or memories are read or something
        is confirmed: those are in one target language.

        finished: called for every segment once it is translated, also where it has to wait for
        those before it."""
        if tag and (
            confirmed is not None or self.settings.remembers or self.lookup.retriever.indexes
        ):
            raise UsageError(
                f"tag {tag}: memories, and what is remembered, are in {self.tgt_lang}; leave out "
                "one or the other"
            )
        with_pairs = (
            zip(documents, repeat(repeat(None)))
            if confirmed is None
            else paired(documents, confirmed)
        )
        yield from self._stream(with_pairs, explain, confirmed is not None, finished, tag=tag)

    def counted(self, translation: Translation) -> Translation:
        """The same translation, once it is finished, with what is wrong in its terms, and what it
        lacks of what is to be kept."""
        if self.terms is not None:
            translation = self.terms.checked(translation)
        lacking = kept(translation.src, translation.tgt, self.copied)
        if lacking:
            translation = replace(translation, user_checks=(*translation.user_checks, *lacking))
        return self.tally.counted(translation)

    def stream_on(
        self, session: Session, texts: Iterable[Source], explain: bool = False
    ) -> Iterator[Translation]:
        """As `Session.stream` says."""
        yield from self._stream([(texts_of(texts), repeat(None))], explain, False, first=session)

    def _stream(
        self,
        documents: Iterable[tuple[Sequence[Source], Iterable[Pair | None]]],
        explain: bool,
        confirms: bool,
        finished: Callable[[], None] = lambda: None,
        first: Session | None = None,
        tag: str = "",
    ) -> Iterator[Translation]:
        in_order = confirms or self.settings.remembers
        queue, sessions = InOrder(finished), Sessions(self, in_order, first)
        # segments that links are wanted for, each once; batches held back for them
        unlinked = dict[int, Coded]()
        waiting = 0
        ahead = first is None and not (confirms and self.settings.memorises)
        whole = in_order or self.backbone.reads_around
        before = first.before if first is not None else ()
        prepared: Iterator[list[Piece]] = self.preparation.documents(
            documents, queue, tag, None if whole else PIECES_AT_ONCE, before
        )
        if self.backbone.reads_around:
            prepared = map(self.surveyed, prepared)
        batches = self.batches(prepared, in_order, ahead)
        if self.terms is not None and not in_order:
            batches = joined(batches, LACKING_TOGETHER)
        for batch in batches:
            own = [sessions.of(piece) for piece in batch]
            for piece, done in zip(batch, self.translate_batch(batch, own, explain), strict=True):
                queue.put(piece, *done)
                for coded in piece.coded.linked_apart if piece.coded is not None else ():
                    if coded.unlinked():
                        unlinked[id(coded)] = coded
            self.confirm(
                [
                    (session, self.confirmation(*piece.confirmed))
                    for session, piece in zip(own, batch, strict=True)
                    if piece.confirmed
                ]
            )
            for piece in batch:
                sessions.leave(piece)
            waiting = waiting + 1 if unlinked else 0
            if len(unlinked) < LINKED_AT_ONCE and 0 < waiting < WAITING_AT_MOST:
                continue
            self.link([*unlinked.values()])
            unlinked = {}
            waiting = 0
            yield from map(self.counted, queue.ready())
        self.link([*unlinked.values()])
        yield from map(self.counted, queue.ready())

    def surveyed(self, pieces: Sequence[Piece]) -> list[Piece]:
        """As `Decoder.surveyed` says."""
        with self.lock:
            return self.decoder.surveyed(pieces)

    def batches(
        self, prepared: Iterable[list[Piece]], in_order: bool, ahead: bool
    ) -> Iterator[list[Piece]]:
        """What is translated together, of documents made pieces; `ahead`: what they read does not
        change meanwhile."""
        if in_order:
            return side_by_side(prepared, self.settings.batch, self.retrieve if ahead else list)
        return by_length(prepared, self.settings.batch)

    def confirmation(self, src: Source, tgt: Source) -> Confirmation:
        """A pair as it is confirmed, with what the checks find in it. Nothing is learnt. Raises
        UsageError as `Session.confirm` does."""
        languages = self.src_lang, self.tgt_lang
        return confirmation(src, tgt, *languages, self.terms, self.copied)

    def confirm(self, pairs: Sequence[tuple[Session, Confirmation]]) -> None:
        """Every session learns its pair, as `Session.confirm` says."""
        with self.lock:
            keys = self.keys.keys_of(
                [(pair.src.plain, pair.tgt.plain)] if self.settings.caches else []
                for _, pair in pairs
            )
            for (session, pair), of_pair in zip(pairs, keys, strict=True):
                session.learn(pair.src, pair.tgt, of_pair[0] if of_pair else None)

    def translate_batch(
        self, batch: Sequence[Piece], sessions: Sequence[Session], explain: bool = False
    ) -> list[Translated]:
        """The next sentence of each of several documents, and its length: retrieve -> decode ->
        remember. Those that lack terms are written once more together."""
        with self.lock:
            batch = self.retrieve(batch, sessions)  # matches, and the keys of their pairs
            done = self._verbatim(batch, sessions, explain)  # full matches, as they stand
            said = self._said(batch, sessions, explain, [*done])
            self._remember(sessions, said)
            return self._finished(batch, done, said)

    def link(self, segments: Sequence[Coded]) -> None:
        """Gives segments with codes the links that the places of these depend on."""
        with self.lock, self.tally.timed("links"):
            self.decoder.linker.link(segments)

    def _verbatim(
        self, batch: Sequence[Piece], sessions: Sequence[Session], explain: bool
    ) -> dict[int, Translated]:
        """The rows that the model is not asked for, each with its translation and its length: exact
        matches of whole segments, taken as they stand, and pieces for which the first of their
        segment stands."""
        done = dict[int, Translated]()
        for row, (piece, session) in enumerate(zip(batch, sessions, strict=True)):
            match = self.exact(piece, session)
            if piece.silent or (match is not None and piece.part):
                done[row] = Translation(piece.text, "", 0.0), 0
            elif match is not None:
                if piece.coded is not None:
                    piece.coded.take(match)
                taken = as_it_stands(piece.text, match, piece.matches or (), self.vocab, explain)
                taken = self.postprocessor.rated(taken)
                self._remember_as_it_stands(session.cache, match, taken)
                done[row] = taken, len(self.vocab.encode(taken.tgt)) + 1
        return done

    def _said(
        self,
        batch: Sequence[Piece],
        sessions: Sequence[Session],
        explain: bool,
        done: Collection[int],
    ) -> dict[int, list[Said]]:
        """What the model says of the rows that are not done; of one with messages, what is said of
        every one of these."""
        left = [row for row in range(len(batch)) if row not in done]
        parts = {row: self.messages(batch[row]) for row in left}
        rows = [row for row in left if not parts[row]]
        own = [sessions[row] for row in rows]
        said = dict(
            zip(rows, self._in_sentences([batch[row] for row in rows], own, explain), strict=True)
        )
        of_messages = [(piece, sessions[row]) for row in left for piece in parts[row]]
        again = iter(self.say(of_messages, explain))
        for row in left:
            if parts[row]:
                said[row] = [one for _ in parts[row] for one in next(again)]
        return said

    def say(self, asked: Sequence[tuple[Piece, Session]], explain: bool) -> list[list[Said]]:
        """What a memory has for pieces that are not looked up yet, or the model says of them; of
        one that has lost a sentence, of every one of these."""
        if not asked:
            return []
        sessions = [session for _, session in asked]
        pieces = self.retrieve([piece for piece, _ in asked], sessions)
        done = self._verbatim(pieces, sessions, explain)
        left = [row for row in range(len(pieces)) if row not in done]
        own = [sessions[row] for row in left]
        said = iter(self._in_sentences([pieces[row] for row in left], own, explain))
        return [
            [(piece, done[row])] if row in done else next(said) for row, piece in enumerate(pieces)
        ]

    def _in_sentences(
        self, pieces: Sequence[Piece], sessions: Sequence[Session], explain: bool
    ) -> list[list[Said]]:
        """What the model says of pieces that were looked up, as `say` has it."""
        whole = self._decoded(pieces, sessions, explain)
        lost = [self._lost(*one) for one in whole]
        parts = [
            (part, session)
            for of_piece, session in zip(lost, sessions, strict=True)
            for part in of_piece
        ]
        said = iter(self.say(parts, explain))
        return [
            [one for _ in of_piece for one in next(said)] or [as_whole]
            for of_piece, as_whole in zip(lost, whole, strict=True)
        ]

    def _decoded(
        self, pieces: Sequence[Piece], sessions: Sequence[Session], explain: bool
    ) -> list[tuple[Piece, Decoded]]:
        if not pieces:
            return []
        rows = zip(pieces, sessions, strict=True)
        pieces = [replace(piece, chosen=session.chosen) for piece, session in rows]
        caches = [session.cache for session in sessions]
        return [*zip(pieces, self.decoder.decoded(pieces, caches, explain), strict=True)]

    def messages(self, piece: Piece) -> list[Piece]:
        """As `by_message` says."""
        if self.backbone.reads_around:
            return []
        return by_message(piece, self.vocab, self.preparation.longest)

    def _lost(self, piece: Piece, decoded: Decoded) -> list[Piece]:
        """As `one_by_one` says, of what the model wrote."""
        if not self.settings.lost_sentences or self.backbone.reads_around:
            return []
        return one_by_one(piece, self.vocab.decode(decoded.best.ids), self.vocab)

    def _finished(
        self, batch: Sequence[Piece], done: dict[int, Translated], said: dict[int, list[Said]]
    ) -> list[Translated]:
        """All rows in order, of what was taken as it stands and of what the model says."""
        for row, parts in said.items():
            done[row] = self.together(batch[row].text, parts)
        self._add((piece, done[row]) for row, piece in enumerate(batch) if row not in said)
        return [done[row] for row in range(len(batch))]

    def together(self, text: str, said: Sequence[Said]) -> Translated:
        """The translation of `text`, and its length, of what the model says of it or its parts."""
        made = [(piece, self._translated(piece, one)) for piece, one in said]
        self._add(made)
        if len(made) == 1:
            return made[0][1]
        parts = [translated for _, translated in made]
        return join(text, parts), sum(length for _, length in parts)

    def _translated(self, piece: Piece, decoded: Decoded | Translated) -> Translated:
        if not isinstance(decoded, Decoded):
            return decoded
        length = len(decoded.best.ids) + decoded.best.finished
        return self.postprocessor.translation(piece, decoded), length

    @staticmethod
    def _add(made: Iterable[tuple[Piece, Translated]]) -> None:
        """Translations of pieces to their segments, where these may have codes."""
        for piece, (translation, _) in made:
            if piece.coded is not None and not piece.silent:
                piece.coded.add(piece, translation)

    def exact(self, piece: Piece, session: Session) -> Match | None:
        """The exact match of the whole segment that is taken as it stands; None where the model is
        asked."""
        return (
            (session.confirmed.exact(piece.whole, codes_of(piece)) or piece.exact)
            if self.settings.verbatim
            else None
        )

    def retrieve(self, pieces: Sequence[Piece], sessions: Sequence[Session] = ()) -> list[Piece]:
        """The pieces with what the memories have for them, as `Lookup.of` says. `sessions`: of
        every piece, whose confirmed pairs are searched, too."""
        with self.lock:
            return self.lookup.of(pieces, [session.confirmed.similar for session in sessions])

    def complete(
        self, source: Source, prefix: str, session: Session | None = None, explain: bool = False
    ) -> Translation:
        """As `Session.complete` says; without a session, that of none."""
        return (session or self._idle).complete(source, prefix, explain)

    def alternatives(
        self, source: Source, prefix: str, count: int = 5, session: Session | None = None
    ) -> list[Alternative]:
        """As `Session.alternatives` says; without a session, those of none."""
        return (session or self._idle).alternatives(source, prefix, count)

    @cached_property
    def _idle(self) -> Session:
        """A session in which nothing is ever confirmed."""
        session = Session(self)
        session.cache = self.new_cache(0)
        return session

    def spellings(self, capitals: bool) -> Spellings:
        """What subwords spell; made when it is first asked for."""
        if capitals not in self._spellings:
            self._spellings[capitals] = Spellings(self.vocab, capitals)
        return self._spellings[capitals]

    def session(self, path: str | Path | None = None) -> Session:
        """A document that is translated sentence by sentence and learns from every confirmed
        translation.

        path: of a session that was saved, which goes on as if it never had been. Raises DataError
        where it is none, ModelError where another model, K or kind of cache made it."""
        session = Session(self)
        if path is not None:
            session.restore(Path(path))
        return session

    def new_cache(self, slots: int | None = None) -> CacheContents:
        """An empty session cache of so many slots, or of those set."""
        slots = self.settings.cache if slots is None else slots
        overwrite = self.settings.cache_overwrite
        sizes = self.backbone.context_size, self.backbone.hidden_size
        if self.layers is None or self.layers.cache is None:
            contents = CacheContents(0, *sizes, device=self.device)
        else:
            cache = self.layers.cache
            contents = CacheContents(
                slots,
                *cache.slot_sizes,
                cache.kind.overwrite if overwrite is None else overwrite,
                self.device,
            )
        if self.settings.mode == "nearest" and not contents.size:
            contents.positions = SessionPositions(self.backbone.hidden_size, self.device)
        return contents

    @torch.no_grad()
    def write(self, cache: CacheContents, contexts: Tensor, hiddens: Tensor, ids: Tensor) -> None:
        """A translated sentence into a document's cache: contexts (T, l), hiddens (T,
        d), ids (T,)."""
        if cache.positions is not None:
            cache.positions.write(hiddens, ids)
        if cache.size and self.layers is not None and self.layers.cache is not None:
            cache.write(*self.layers.cache.slots_of(contexts, hiddens), ids)

    def _remember(self, sessions: Sequence[Session], said: Mapping[int, list[Said]]) -> None:
        """Writes what was translated to the documents' session caches, where they learn from it; of
        several hypotheses the best last, so that it counts most (OURS: the paper does not say)."""
        if not self.settings.remembers:
            return
        for row, one in ((row, one) for row, parts in said.items() for _, one in parts):
            if not isinstance(one, Decoded):
                continue
            others = one.best.others[: self.settings.cache_best - 1]
            for hypothesis in (*reversed(others), one.best):
                if hypothesis.contexts is not None and hypothesis.hiddens is not None:
                    ids = torch.tensor(hypothesis.ids)
                    cache = sessions[row].cache
                    self.write(cache, hypothesis.contexts, hypothesis.hiddens, ids)

    def _remember_as_it_stands(
        self, cache: CacheContents, match: Match, taken: Translation
    ) -> None:
        """The same of an exact match, or of one that was adapted."""
        if self.settings.remembers:
            src = match.segment.src if taken.tgt == match.segment.tgt else taken.src
            keys = self.keys.keys_of([[(src, taken.tgt)]])[0][0]
            self.write(cache, keys.contexts, keys.hiddens, keys.ids)
