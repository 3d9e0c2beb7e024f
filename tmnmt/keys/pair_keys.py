"""The keys of retrieved pairs: read where an index has them, else by teacher forcing, batched; kept
in memory and, where their index is a folder, beside it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType

import torch

from tmnmt.index.base import FolderIndex, Index, has_folder
from tmnmt.keys.files import KeyFiles, digest_of
from tmnmt.keys.key_cache import KeyCache, keys_of_rows, rows_of
from tmnmt.keys.layout import DIRECTIONS, PAIRS, Header
from tmnmt.keys.pair import PairKeys as PairKeys
from tmnmt.models.base import Backbone, shift
from tmnmt.models.shortlist import Shortlist
from tmnmt.segments import Segment
from tmnmt.vocab import BOS, EOS, PAD, Vocabulary

Pair = tuple[str, str]  # source, target
Coded = tuple[list[int], list[int]]  # ids of both, each with </s>
POSITIONS_KEPT = 1 << 15  # about 130 MB at l = d = 512 in fp32
DIRECTIONS_KEPT = 1 << 18  # about 70 MB at d = 512
READ_OUT_AT_ONCE = 512  # positions whose probabilities of all words are held together
BATCH_POSITIONS = 1024  # padded target positions forced at once: more do not fit a core's cache


class PairKeyStore:
    """`keys_of` takes from `precomputed` what was computed by `tmnmt keys`, in the layout that the
    store gives, and computes what it does not have; the least recently used pairs are forgotten
    first.

    Pairs of a memory are given as a disk keeps them, in a few bits a number, whether or not they
    are kept; all others, such as those that a session confirmed, are given in full.

    A pair longer than `max_subwords` on a side is cut there: its later words cannot be read. Any
    thread may ask; one is answered after another."""

    def __init__(
        self,
        backbone: Backbone,
        vocab: Vocabulary,
        max_subwords: int,
        positions_kept: int | None = None,
        device: torch.device | str = "cpu",
        precomputed: Sequence[KeyFiles] = (),
        gradients: bool = False,
        directions: bool = False,
        model: Header | None = None,
        forcing: Callable[[], Backbone] | None = None,
        shortlist: Shortlist | None = None,
    ) -> None:
        """backbone: the base that the keys are of.
        vocab: its vocabulary.
        max_subwords: where a side of a longer pair is cut.
        positions_kept: how many target positions stay in memory; None takes a number that is right
        for most.
        device: where the keys lie.
        precomputed: keys that `tmnmt keys` has computed, in the layout that the store gives.
        gradients: whether the graph of torch is recorded, for training.
        directions: whether only the direction of every position's state is kept, as codes.
        model: what keys are bound to; without it no computed keys are kept on disk.
        forcing: gives the backbone that directions are computed with, once one is needed; None
        takes `backbone`.
        shortlist: which words a target is told from, where directions alone are kept; None for
        all."""
        self.directions, self.shortlist = directions, shortlist
        layout = DIRECTIONS if directions else PAIRS
        self.header = replace(model, layout=layout) if model is not None else None
        self._caches: dict[Path, KeyCache] = {}
        self.backbone, self.vocab, self.device, self.gradients = backbone, vocab, device, gradients
        self._forcing = forcing
        self.max_subwords = max_subwords
        if positions_kept is None:
            positions_kept = DIRECTIONS_KEPT if directions else POSITIONS_KEPT
        self.positions_kept = positions_kept
        self.precomputed = list(precomputed)
        self._cached_keys: OrderedDict[tuple[Pair, bool], PairKeys] = OrderedDict()
        self._positions = 0
        self._lock = threading.Lock()

    def keys_of(
        self,
        sentences: Iterable[Iterable[Pair]],
        segments: Mapping[Pair, Segment] = MappingProxyType({}),
        indexes: Sequence[Index] = (),
    ) -> list[list[PairKeys]]:
        """The keys of every sentence's pairs, in their order.

        sentences: for every sentence its pairs.
        segments: the segment of a memory that a pair was read from, for such pairs. What is
        computed of such a pair is kept beside the index that still holds the segment, where that is
        a folder.
        indexes: these indexes.

        Raises MemoryIndexError for precomputed keys that are damaged."""
        pairs_of = [list(pairs) for pairs in sentences]
        with self._lock:
            return self._keys_of(pairs_of, segments, self._caches_of(indexes))

    def _keys_of(
        self,
        pairs_of: list[list[Pair]],
        segments: Mapping[Pair, Segment],
        caches: Sequence[tuple[FolderIndex, KeyCache]],
    ) -> list[list[PairKeys]]:
        coarse = self.header is not None and not self.directions
        stored = set(segments) if coarse else set()
        keys_of: dict[Pair, PairKeys] = {}
        for pair in {pair: None for pairs in pairs_of for pair in pairs}:
            use = pair, pair in stored
            if use in self._cached_keys:
                self._cached_keys.move_to_end(use)
                keys_of[pair] = self._cached_keys[use]
        missing = list({pair: None for pairs in pairs_of for pair in pairs if pair not in keys_of})
        new = self._computed_ahead(missing)
        missing = [pair for pair in missing if pair not in new]
        if missing:
            readable = [pair for pair in missing if pair in stored or self.directions]
            new |= self._cached(readable, caches)
            missing = [pair for pair in missing if pair not in new]
            coded = [encode_pair(pair, self.vocab, self.max_subwords) for pair in missing]
            computed = dict(zip(missing, self._forced(coded), strict=True))
            new |= self._put(computed, segments, caches)
        for pair, keys in new.items():
            keys_of[pair] = self._cached_keys[pair, pair in stored] = keys
            self._positions += len(keys.ids)
        self._forget()
        return [[keys_of[pair] for pair in pairs] for pairs in pairs_of]

    def _caches_of(self, indexes: Sequence[Index]) -> list[tuple[FolderIndex, KeyCache]]:
        """Those of the indexes that are folders, opened at their first use."""
        if self.header is None:
            return []
        folders = [*filter(has_folder, indexes)]
        for index in folders:
            if index.folder not in self._caches:
                self._caches[index.folder] = KeyCache(index.folder, self.header)
        return [(index, self._caches[index.folder]) for index in folders]

    def _put(
        self,
        computed: dict[Pair, PairKeys],
        segments: Mapping[Pair, Segment],
        caches: Sequence[tuple[FolderIndex, KeyCache]],
    ) -> dict[Pair, PairKeys]:
        """Puts pairs of a memory beside the index that still holds their segment. Returns them as
        they are read back; others as they are."""
        header = self.header
        if header is None:
            return computed
        rest = [pair for pair in computed if pair in segments]
        rows = {pair: (rows_of(header, computed[pair]), len(computed[pair].ids)) for pair in rest}
        for index, cache in caches:
            if not cache.is_writable:
                continue
            now = index.find({segments[pair].id for pair in rest})
            living = [
                pair for pair in rest if _texts_match(now.get(segments[pair].id), segments[pair])
            ]
            cache.add([(self._digest(pair), *rows[pair]) for pair in living])
            rest = [pair for pair in rest if pair not in living]
        if self.directions:
            return computed
        return computed | {
            pair: self._on_device(keys_of_rows(header, *rows[pair])) for pair in rows
        }

    def _on_device(self, keys: PairKeys) -> PairKeys:
        parts = keys.contexts, keys.hiddens, keys.ids, keys.codes
        tensors = (part.to(self.device) if part is not None else None for part in parts)
        return PairKeys(*tensors)  # type: ignore[arg-type]

    def _forced(self, coded: Sequence[Coded]) -> list[PairKeys]:
        if not self.directions or not coded:
            return force_all(self.backbone, coded, self.device, self.gradients)
        backbone = self.backbone if self._forcing is None else self._forcing()
        return force_codes(backbone, coded, self.device, self.shortlist)

    def in_full(self, pairs: Iterable[Pair]) -> list[PairKeys]:
        """The keys of pairs with contexts and states, also where only directions are kept.

        pairs: the pairs."""
        if not self.directions:
            return self.keys_of([pairs])[0]
        coded = [encode_pair(pair, self.vocab, self.max_subwords) for pair in pairs]
        return force_all(self.backbone, coded, self.device, self.gradients)

    def __len__(self) -> int:
        """How many pairs are kept."""
        return len(self._cached_keys)

    def _forget(self) -> None:
        while self._positions > self.positions_kept:
            _, keys = self._cached_keys.popitem(last=False)
            self._positions -= len(keys.ids)

    def _computed_ahead(self, pairs: Iterable[Pair]) -> dict[Pair, PairKeys]:
        """Those of the pairs whose keys `tmnmt keys` has computed."""
        found: dict[Pair, PairKeys] = {}
        for files in self.precomputed:
            for pair in pairs:
                if pair not in found and (keys := files.find(*pair)) is not None:
                    decoded = files.header.decoded(keys)
                    files.check_words(decoded.ids.numpy(), len(self.vocab))
                    found[pair] = self._on_device(decoded)
        return found

    def _cached(
        self, pairs: Sequence[Pair], caches: Sequence[tuple[FolderIndex, KeyCache]]
    ) -> dict[Pair, PairKeys]:
        """Those of the pairs whose keys were computed at need before. What is used stays there."""
        found: dict[Pair, PairKeys] = {}
        digests = {pair: self._digest(pair) for pair in pairs} if caches else {}
        for _, cache in caches:
            cache.refresh()
            for pair, digest in digests.items():
                keys = cache.find(digest) if pair not in found else None
                if keys is not None and self._has_words(keys):
                    found[pair] = self._on_device(keys)
        for _, cache in caches:
            cache.renew([digests[pair] for pair in found])
        return found

    def _digest(self, pair: Pair) -> tuple[int, int]:
        """What keys of a pair are kept under: its texts as they are read. Where a version reads a
        source in another way, keys that another one has kept are not found."""
        return digest_of(self.vocab.reading(pair[0]), pair[1])

    def _has_words(self, keys: PairKeys) -> bool:
        """Whether all subwords of keys are in the vocabulary: whoever wrote them may have written a
        right checksum, too."""
        ids = keys.ids
        return not len(ids) or (int(ids.min()) >= 0 and int(ids.max()) < len(self.vocab))


def _texts_match(segment: Segment | None, reference: Segment) -> bool:
    """Whether a segment of an index has the texts of the other one."""
    return segment is not None and (segment.src, segment.tgt) == (reference.src, reference.tgt)


def encode_pair(pair: Pair, vocab: Vocabulary, max_subwords: int) -> Coded:
    """The subword ids of both sides, each cut, and with </s>.

    pair: the source and the target.
    vocab: the vocabulary.
    max_subwords: where a longer side is cut, without </s>."""
    src = [*vocab.encode_source(pair[0])[:max_subwords], EOS]
    tgt = [*vocab.encode(pair[1])[:max_subwords], EOS]
    return src, tgt


def force_all(
    backbone: Backbone, pairs: Sequence[Coded], device: torch.device | str, gradients: bool = False
) -> list[PairKeys]:
    """The keys of encoded pairs, in their order, forced in batches of like length.

    backbone: the base.
    pairs: the ids of source and target, each with </s>.
    device: where the base lies.
    gradients: whether the backbone's graph is recorded."""
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][1]))
    keys: dict[int, PairKeys] = {}
    while order:
        rows = max(1, BATCH_POSITIONS // len(pairs[order[-1]][1]))
        batch, order = order[-rows:], order[:-rows]
        keys |= zip(
            batch, force(backbone, [pairs[i] for i in batch], device, gradients), strict=True
        )
    return [keys[i] for i in range(len(pairs))]


def force_codes(
    backbone: Backbone,
    pairs: Sequence[Coded],
    device: torch.device | str,
    shortlist: Shortlist | None = None,
) -> list[PairKeys]:
    """The keys of encoded pairs as codes alone, in their order.

    backbone: the base as it decodes.
    pairs: the ids of source and target, each with </s>.
    device: where the base lies.
    shortlist: which words a target is told from; None for all."""
    results = list[PairKeys]()
    keys = force_all(backbone, pairs, device)
    for batch in batches_of([len(of_pair.ids) for of_pair in keys], READ_OUT_AT_ONCE):
        reader = backbone
        ids = torch.cat([of_pair.ids for of_pair in keys[batch]])
        if shortlist is not None:
            sources = chain.from_iterable(src for src, _ in pairs[batch])
            reader = backbone.limited_to(shortlist.words(sources, [ids.cpu()]).to(device))
        with torch.inference_mode():
            previous = torch.cat([shift(of_pair.ids[None], BOS)[0] for of_pair in keys[batch]])
            hiddens, contexts = (
                torch.cat([getattr(of_pair, part) for of_pair in keys[batch]])
                for part in ("hiddens", "contexts")
            )
            log_probs = reader.log_readout(previous, hiddens, contexts)
            columns = ids if reader.columns is None else reader.columns.of_word[ids]
            probabilities = log_probs.gather(1, columns[:, None])[:, 0].exp()
        sizes = [len(of_pair.ids) for of_pair in keys[batch]]
        by_pair = torch.split_with_sizes(probabilities, sizes)
        results += [
            of_pair.as_codes(part) for of_pair, part in zip(keys[batch], by_pair, strict=True)
        ]
    return results


def batches_of(sizes: Sequence[int], limit: int) -> Iterator[slice]:
    """Neighbouring items of so many positions together, or of one item that has more.

    sizes: the positions of every item.
    limit: how many positions a batch has at most."""
    begin = total = 0
    for number, size in enumerate(sizes):
        if total and total + size > limit:
            yield slice(begin, number)
            begin, total = number, 0
        total += size
    if total:
        yield slice(begin, len(sizes))


def force(
    backbone: Backbone, pairs: Sequence[Coded], device: torch.device | str, gradients: bool = False
) -> list[PairKeys]:
    """The keys c', z' and y' of encoded pairs, by one batch of teacher forcing.

    backbone: the base.
    pairs: the ids of source and target, each with </s>.
    device: where the base lies.
    gradients: whether the backbone's graph is recorded, unless torch is told otherwise."""
    src_len = torch.tensor([len(src) for src, _ in pairs], device=device)
    src, tgt = (padded([pair[side] for pair in pairs], device) for side in (0, 1))
    with torch.inference_mode(not gradients):
        contexts, hiddens = backbone.forced(backbone.encode(src, src_len), tgt)
    # clones: a view would keep the whole batch alive for as long as one of its pairs is kept
    return [
        PairKeys(c[: len(ids)].clone(), h[: len(ids)].clone(), torch.tensor(ids, device=device))
        for c, h, (_, ids) in zip(contexts, hiddens, pairs, strict=True)
    ]


def padded(rows: list[list[int]], device: torch.device | str) -> torch.Tensor:
    """(B, longest) int64, filled up with PAD.

    rows: the ids of every row.
    device: where the result lies."""
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows], device=device)


class NoPairKeys(PairKeyStore):
    """The keys of pairs for a base without states: there are none."""

    def __init__(self) -> None:
        """There is nothing to compute with."""
        self.max_subwords = 0

    def keys_of(
        self,
        sentences: Iterable[Iterable[Pair]],
        segments: Mapping[Pair, Segment] = MappingProxyType({}),
        indexes: Sequence[Index] = (),
    ) -> list[list[PairKeys]]:
        return [[] for _ in sentences]

    def in_full(self, pairs: Iterable[Pair]) -> list[PairKeys]:
        return []

    def __len__(self) -> int:
        return 0
