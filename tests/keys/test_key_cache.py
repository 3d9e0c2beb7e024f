"""Keys that are computed at need are kept beside their index: bounded, for several processes, and
whole whatever happens to a writer."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from other_system import of_unused
from places import TESTS
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt import Translator
from tmnmt.config.options import TranslationOptions
from tmnmt.index import MemoryIndex, build
from tmnmt.keys.compute import header_of
from tmnmt.keys.files import digest_of
from tmnmt.keys.key_cache import MODELS, KeyCache, rows_of
from tmnmt.keys.layout import DIRECTIONS, Header
from tmnmt.keys.layout import PAIRS as WHOLE_PAIRS
from tmnmt.keys.pair import PairKeys
from tmnmt.keys.pair_keys import PairKeyStore, encode_pair, force_all
from tmnmt.models.folder import Model, load_model
from tmnmt.segments import Segment

HEADER = Header("1234abcd", 8, 16, 50, layout=DIRECTIONS)
WRITER = """
import sys
from pathlib import Path
from keys.test_key_cache import HEADER, entry
from tmnmt.keys import key_cache
from tmnmt.keys.key_cache import KeyCache
key_cache.LOCK_SECONDS = 60
cache, first, step = KeyCache(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
for number in range(first, first + 100 * step, step):
    cache.add([entry(number), entry(number + step // 2)])
    print(number, flush=True)
""".replace("KeyCache(Path(sys.argv[1]))", "KeyCache(Path(sys.argv[1]), HEADER)")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load_model(write_tiny_model(tmp_path_factory.mktemp("model")))


@pytest.fixture
def index(tmp_path: Path) -> Iterator[MemoryIndex]:
    build(tmp_path / "index", segments(), "en", "fr")
    with MemoryIndex.open(tmp_path / "index") as index:
        yield index


def entry(number: int) -> tuple[tuple[int, int], bytes, int]:
    """A pair of the number's own: its digest, rows and length."""
    drawn, length = random.Random(number), number % 7 + 1
    return digest_of(str(number), ""), drawn.randbytes(length * HEADER.position_bytes), length


def holds(cache: KeyCache, number: int) -> bool:
    """Whether the pair of a number is there; it must be what was written."""
    digest, rows, length = entry(number)
    found = cache.find(digest)
    if found is not None:
        assert rows_of(HEADER, found) == rows and len(found.ids) == length
    return found is not None


def opened(folder: Path, header: Header = HEADER, most_bytes: int = 1 << 20) -> KeyCache:
    cache = KeyCache(folder, header, most_bytes)
    cache.refresh()
    return cache


def store(model: Model, directions: bool, most: int | None = None) -> PairKeyStore:
    header = header_of(model)
    return PairKeyStore(
        model.backbone,
        model.vocab,
        header.max_subwords if most is None else most,
        directions=directions,
        model=header,
    )


def pairs_of(found: Sequence[Segment]) -> dict[tuple[str, str], Segment]:
    return {(segment.src, segment.tgt): segment for segment in found}


def assert_same(keys: PairKeys, other: PairKeys) -> None:
    for name in ("contexts", "hiddens", "ids", "codes"):
        left, right = getattr(keys, name), getattr(other, name)
        assert (left is None) == (right is None) and (left is None or torch.equal(left, right))


class Computed:
    """Counts the pairs whose keys are computed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pairs = 0
        own = PairKeyStore._forced

        def counted(store: PairKeyStore, coded: list[tuple[list[int], list[int]]]) -> object:
            self.pairs += len(coded)
            return own(store, coded)

        monkeypatch.setattr(PairKeyStore, "_forced", counted)


@pytest.mark.parametrize("directions", [True, False])
def test_a_second_use_reads_what_the_first_has_computed(
    index: MemoryIndex, model: Model, directions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = pairs_of([*index.segments()])
    computed = Computed(monkeypatch)
    first = store(model, directions).keys_of([known], known, [index])[0]
    assert computed.pairs == len(known)
    second = store(model, directions).keys_of([known], known, [index])[0]
    assert computed.pairs == len(known)
    for keys, again in zip(first, second, strict=True):
        assert_same(keys, again)
    positions = sum(len(keys.ids) for keys in first)
    cache = opened(index.path, header_of(model, DIRECTIONS if directions else WHOLE_PAIRS))
    size = sum(path.stat().st_size for path in cache.folder.glob("*.log"))
    assert size <= positions * cache.header.position_bytes + 24 * len(known) + 100


def test_a_source_that_is_read_in_another_way_gets_new_keys(
    index: MemoryIndex, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = Segment("The word “permit” is new.", "Le mot est nouveau.")
    index.add([added])
    known = pairs_of([*index.segments()])
    kind = type(model.vocab)
    with monkeypatch.context() as former:
        former.setattr(kind, "reading", lambda vocab, text: text)
        store(model, True).keys_of([known], known, [index])
    computed = Computed(monkeypatch)
    quoted = [pair for pair in known if model.vocab.reading(pair[0]) != pair[0]]
    store(model, True).keys_of([known], known, [index])
    assert (added.src, added.tgt) in quoted and computed.pairs == len(quoted) < len(known)


def test_the_keys_of_a_memory_do_not_depend_on_what_was_confirmed_before(
    index: MemoryIndex, model: Model
) -> None:
    known = pairs_of([*index.segments()])
    keys = store(model, False)
    confirmed = keys.keys_of([known])[0]
    found, again = (keys.keys_of([known], known, [index])[0] for _ in range(2))
    expected = store(model, False).keys_of([known], known, [index])[0]
    exact = force_all(
        model.backbone, [encode_pair(pair, model.vocab, 256) for pair in known], "cpu"
    )
    for keys_of_pair in zip(found, again, expected, strict=True):
        assert_same(*keys_of_pair[:2])
        assert_same(*keys_of_pair[1:])
    for pair_keys, other in zip(confirmed, exact, strict=True):
        assert_same(pair_keys, other)


def test_a_position_takes_132_bytes() -> None:
    assert Header("m", 256, 256, 80, layout=DIRECTIONS).position_bytes == 132


def test_what_no_index_holds_is_not_kept(index: MemoryIndex, model: Model) -> None:
    """What a session has confirmed, and what was corrected while it was read."""
    segment = next(index.segments())
    gone = replace(segment, tgt="Another text.")
    own = ("A text of the session.", "Un texte.")
    pairs = {(segment.src, segment.tgt): segment, (gone.src, gone.tgt): gone}
    store(model, True).keys_of([[*pairs, own]], pairs, [index])
    cache = opened(index.path, header_of(model, DIRECTIONS))
    assert len(cache) == 1 and cache.find(digest_of(segment.src, segment.tgt)) is not None


def test_a_corrected_segment_has_keys_of_its_own(
    index: MemoryIndex, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = next(index.segments())
    store(model, True).keys_of([[(segment.src, segment.tgt)]], pairs_of([segment]), [index])
    (now,) = index.edit([segment.id], lambda one: replace(one, tgt="Le texte est nouveau."))
    computed = Computed(monkeypatch)
    pair = now.src, now.tgt
    (keys,) = store(model, True).keys_of([[pair]], pairs_of([now]), [index])[0]
    assert computed.pairs == 1
    assert keys.ids.tolist()[:-1] == model.vocab.encode(now.tgt)


def test_keys_of_another_model_are_not_read_and_the_oldest_go(tmp_path: Path) -> None:
    for number in range(MODELS + 2):
        header = replace(HEADER, model=f"{number}")
        cache = opened(tmp_path, header)
        assert not holds(cache, 1)
        cache.add([entry(1)])
        assert holds(opened(tmp_path, header), 1)
        os.utime(cache.folder / "1.log", (number, number))
        os.utime(cache.folder, (number, number))
    names = sorted(path.name for path in (tmp_path / "keys").iterdir())
    assert names == [f"{number}.directions.cache" for number in range(2, MODELS + 2)]


def test_keys_that_were_cut_elsewhere_are_written_anew(tmp_path: Path) -> None:
    opened(tmp_path).add([entry(1)])
    other = opened(tmp_path, replace(HEADER, max_subwords=51))
    assert not holds(other, 1)
    other.add([entry(2)])
    assert holds(other, 2) and not holds(other, 1)
    assert not holds(opened(tmp_path), 2)


def test_the_bound_is_held_and_what_is_used_stays(tmp_path: Path) -> None:
    most = 20_000
    cache = opened(tmp_path, most_bytes=most)
    for number in range(1, 1000):
        cache.add([entry(number)])
        cache.renew([entry(1)[0]])
        size = sum(path.stat().st_size for path in cache.folder.glob("*.log"))
        assert size <= most
        assert holds(cache, 1) and holds(cache, number)
    assert len([*cache.folder.glob("*.log")]) == 2
    assert 50 < len(cache) < 300
    other = opened(tmp_path)
    assert holds(other, 1) and holds(other, 999) and not holds(other, 2)


def test_a_reader_follows_a_writer(tmp_path: Path) -> None:
    reader, writer = opened(tmp_path, most_bytes=4000), opened(tmp_path, most_bytes=4000)
    for number in range(200):
        writer.add([entry(number)])
        reader.refresh()
        assert holds(reader, number)
    assert len(reader) == len(writer) < 100


def test_logs_go_later_where_no_open_file_can_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "unlink", of_unused(os.unlink))
    reader, writer = opened(tmp_path, most_bytes=4000), opened(tmp_path, most_bytes=4000)
    for number in range(100):
        writer.add([entry(number)])
        assert holds(writer, number) and len([*writer.folder.glob("*.log")]) <= 3
        reader.refresh()
        assert holds(reader, number)
    assert len(reader) == len(writer) < 100


def test_half_a_frame_was_never_there_wherever_it_ends(tmp_path: Path) -> None:
    cache = opened(tmp_path)
    cache.add([entry(1)])
    path = cache.folder / "1.log"
    whole = path.stat().st_size
    cache.add([entry(2), entry(3)])
    content = path.read_bytes()
    for size in range(whole, len(content)):
        path.write_bytes(content[:size])
        cut = opened(tmp_path)
        assert holds(cut, 1) and not holds(cut, 2) and not holds(cut, 3)
        if size % 17 == 0:
            cut.add([entry(3)])
            assert holds(cut, 3) and holds(opened(tmp_path), 3)
    path.write_bytes(content[:whole] + bytes(len(content) - whole))  # as a power cut leaves it
    assert not holds(opened(tmp_path), 2)


def test_a_flipped_byte_is_computed_again(tmp_path: Path) -> None:
    cache = opened(tmp_path)
    cache.add([entry(number) for number in range(5)])
    path = cache.folder / "1.log"
    content = path.read_bytes()
    for at in range(0, len(content), 5):
        for log in cache.folder.glob("*.log"):
            log.unlink()
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        damaged = opened(tmp_path)
        there = [number for number in range(5) if holds(damaged, number)]
        assert len(there) < 5
        damaged.add([entry(number) for number in range(5)])
        assert all(holds(damaged, number) for number in range(5))
        assert all(holds(opened(tmp_path), number) for number in range(5))


def test_where_nothing_can_be_written_keys_are_only_read(
    index: MemoryIndex, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = pairs_of([*index.segments()])
    (index.path / "keys").write_text("no folder")
    first = store(model, True).keys_of([known], known, [index])[0]
    again = store(model, True).keys_of([known], known, [index])[0]
    for keys, other in zip(first, again, strict=True):
        assert_same(keys, other)
    assert (index.path / "keys").read_text() == "no folder"


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = opened(tmp_path)
    cache.add([entry(1)])

    def full(handle: int, content: bytes, at: int) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        opened(tmp_path).add([entry(2)])
    other = opened(tmp_path)
    assert holds(other, 1) and not holds(other, 2)
    other.add([entry(2)])
    assert holds(other, 2)


def start(folder: Path, first: int, step: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), str(first), str(step)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=TESTS)


def test_two_processes_write_at_once_and_a_third_reads(tmp_path: Path) -> None:
    writers = [start(tmp_path, first, 4) for first in (1000, 1001)]
    reader = opened(tmp_path)
    while any(writer.poll() is None for writer in writers):
        reader.refresh()
        for number in range(1000, 1400):
            holds(reader, number)
        time.sleep(0.02)
    assert [len(writer.communicate()[0].split()) for writer in writers] == [100, 100]
    reader.refresh()
    assert all(holds(reader, number) for number in range(1000, 1400))


def test_killed_at_any_moment_what_is_there_is_whole(tmp_path: Path) -> None:
    drawn = random.Random(3)
    for attempt in range(2):
        writer = start(tmp_path, 1000 * attempt, 4)
        assert writer.stdout is not None
        told = int(writer.stdout.readline())
        time.sleep(drawn.random() * 0.05)
        writer.send_signal(signal.SIGKILL)
        told = max([told, *map(int, writer.stdout.read().split())])
        writer.wait()
        writer.stdout.close()
        cache = opened(tmp_path)
        assert all(holds(cache, number) for number in range(1000 * attempt, told + 1, 4))
    cache.add([entry(77_777)])
    assert holds(opened(tmp_path), 77_777)


def test_a_translator_computes_the_keys_of_a_memory_once(
    model: Model, index: MemoryIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whatever mode reads them; texts with codes, too."""
    texts = [src.replace("the", "each") for src, _ in PAIRS] + ["Delete {count} of these files?"]
    for mode in ("nearest", "copy"):
        said = []
        computed = Computed(monkeypatch)
        for use in range(2):
            translator = Translator.load(
                model.folder, [index], TranslationOptions(cache=0, mode=mode, verbatim=0, beam=2)
            )
            before = computed.pairs
            said.append([translation.tgt for translation in translator.translate(texts)])
            assert (computed.pairs > before) == (use == 0)
        assert said[0] == said[1]


def test_rows_of_words_that_the_model_lacks_are_computed_again(
    index: MemoryIndex, model: Model
) -> None:
    segment = next(index.segments())
    pair = segment.src, segment.tgt
    header = header_of(model, DIRECTIONS)
    width = header.position_bytes - 4
    rows = bytes(width) + np.array([len(model.vocab)], "<i4").tobytes()
    opened(index.path, header).add([(digest_of(*pair), rows, 1)])
    (keys,) = store(model, True).keys_of([[pair]], pairs_of([segment]), [index])[0]
    assert keys.ids.tolist()[:-1] == model.vocab.encode(segment.tgt)
