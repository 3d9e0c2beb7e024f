"""What is said to be saved is still there after a power cut: content before name, name before the
caller goes on.

`power_cut.Disk` keeps only what was synced; with fsync left out every product here would be
lost."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from adapting import adapt, documents
from power_cut import Disk
from tiny_model import segments, write_tiny_model

from tmnmt import Translator
from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.errors import LockedError, MemoryIndexError
from tmnmt.index import MemoryIndex, build
from tmnmt.index.embedded import lock
from tmnmt.index.embedded.lock import writing
from tmnmt.keys.files import OFFSETS_FILE
from tmnmt.models.folder import load_model
from tmnmt.papers.knn import AdaptiveKNN
from tmnmt.segments import Segment
from tmnmt.training import answer_cache, checkpoint
from tmnmt.training.log import add_line, keep_lines

NEW = Segment("A new sentence.", "Une phrase nouvelle.")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_tiny_model(tmp_path_factory.mktemp("model"))


def built(folder: Path) -> Path:
    build(folder / "new" / "index", segments(), "en", "fr")
    return folder / "new" / "index"


def some_index(folder: Path, model: Path) -> Path:
    return built(folder) / "manifest.json"


def all_of_an_index(folder: Path, model: Path) -> Path:
    (made := built(folder) / ".lock").unlink()
    return made.parent


def a_change(folder: Path, model: Path) -> Path:
    with MemoryIndex.open(folder / "index") as index:
        index.add([NEW])
    return folder / "index" / "generation-1" / "changes.log"


def a_compaction(folder: Path, model: Path) -> Path:
    with MemoryIndex.open(folder / "index") as index:
        index.add([NEW])
        index.compact()
    (folder / "index" / ".lock").unlink()
    return folder / "index"


def keys(folder: Path, model: Path) -> Path:
    assert (
        run(["keys", "--index", str(folder / "index"), "--model", str(model), "--faiss", "flat"])
        == 0
    )
    for held in (folder / "index").rglob(".lock"):
        held.unlink()
    return folder / "index" / "keys"


def keys_of_two_parts(folder: Path, model: Path) -> Path:
    for part in (["--shard", "1/2"], ["--shard", "2/2"], []):
        assert run(["keys", "--index", str(folder / "index"), "--model", str(model), *part]) == 0
    for held in (folder / "index").rglob(".lock"):
        held.unlink()
    return folder / "index" / "keys"


def a_session(folder: Path, model: Path) -> Path:
    session = Translator.load(model, [], TranslationOptions(cache=5)).session()
    session.confirm("A new sentence.", "Une phrase nouvelle.")
    session.save(folder / "document.session")
    return folder / "document.session"


def a_model(folder: Path, model: Path) -> Path:
    return write_tiny_model(folder / "new" / "model")


def a_model_in_the_place_of_another(folder: Path, model: Path) -> Path:
    write_tiny_model(folder / "model")
    return write_tiny_model(folder / "model")


def adaptive_knn(folder: Path, model: Path) -> Path:
    AdaptiveKNN(4, 10.0).save(folder / "knn.safetensors", "0" * 16)
    return folder / "knn.safetensors"


def an_adapted_model(folder: Path, model: Path) -> Path:
    build(folder / "memory", documents(), "en", "fr")
    assert adapt(model, folder / "memory", folder / "adapted", "--no-cache", "--no-fusion") == 0
    return folder / "adapted"


def a_checkpoint(folder: Path, model: Path) -> Path:
    module = torch.nn.Linear(2, 2)
    checkpoint.save(
        folder / "last.safetensors", module, torch.optim.Adam(module.parameters()), {"a": "b"}
    )
    return folder / "last.safetensors"


def a_log(folder: Path, model: Path) -> Path:
    for update in (1, 2):
        add_line(folder, {"update": update})
    return folder / "train.jsonl"


def a_shorter_log(folder: Path, model: Path) -> Path:
    keep_lines(a_log(folder, model).parent, None, 1)
    return folder / "train.jsonl"


def kept_answers(folder: Path, model: Path) -> Path:
    answer_cache.write_kept(folder / "found.gz", {"of": 1}, [[1, 2]])
    return folder / "found.gz"


def an_output(folder: Path, model: Path) -> Path:
    (folder / "in").write_text("A new sentence.\n")
    assert (
        run(["translate", "--model", str(model), str(folder / "in"), "-o", str(folder / "out")])
        == 0
    )
    return folder / "out"


def an_export(folder: Path, model: Path) -> Path:
    assert (
        run(
            ["memory", "export", "--index", str(folder / "index"), "-o", str(folder / "out.tmx.gz")]
        )
        == 0
    )
    return folder / "out.tmx.gz"


PRODUCTS = [
    some_index,
    all_of_an_index,
    a_change,
    a_compaction,
    keys,
    keys_of_two_parts,
    a_session,
    a_model,
    a_model_in_the_place_of_another,
    adaptive_knn,
    an_adapted_model,
    a_checkpoint,
    a_log,
    a_shorter_log,
    kept_answers,
    an_output,
    an_export,
]


def test_the_same_answers_are_the_same_bytes_at_any_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = set()
    for now in (1.0, 2e9):
        monkeypatch.setattr("gzip.time.time", lambda now=now: now)
        answer_cache.write_kept(tmp_path / f"{now}.gz", {"of": 1}, [["é\u2028\n", 2]])
        assert answer_cache.read_kept(tmp_path / f"{now}.gz", {"of": 1}, 1, list) == [
            ["é\u2028\n", 2]
        ]
        contents.add((tmp_path / f"{now}.gz").read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize("make", PRODUCTS)
def test_a_product_is_on_disk_when_it_is_said_to_be_made(
    make: Callable[[Path, Path], Path], tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "index", segments(), "en", "fr")
    disk = Disk(tmp_path, monkeypatch)
    made = make(tmp_path, model)
    assert not disk.lost(made)
    assert not disk.too_early
    monkeypatch.undo()


@pytest.mark.parametrize("make", PRODUCTS)
def test_without_fsync_every_product_is_lost(
    make: Callable[[Path, Path], Path], tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "index", segments(), "en", "fr")
    disk = Disk(tmp_path, monkeypatch, sync=False)
    assert disk.lost(make(tmp_path, model))


@pytest.mark.parametrize("make", [a_session, a_model, a_checkpoint, an_output, some_index])
def test_the_mode_of_what_is_there_stays_and_a_new_file_has_the_umasks(
    make: Callable[[Path, Path], Path], tmp_path: Path, model: Path
) -> None:
    before = os.umask(0o027)
    try:
        made = make(tmp_path, model)
        files = [path for path in made.iterdir() if path.is_file()] if made.is_dir() else [made]
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o640}
        if make is some_index:
            return
        for path in files:
            path.chmod(0o600)
        make(tmp_path, model)
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (a_session, "document.session.partial"),
        (a_checkpoint, "last.safetensors.partial"),
        (a_model, "new/model/base.safetensors.partial"),
        (a_change, "index/manifest.json.new"),
        (a_compaction, "index/manifest.json.new"),
        (a_compaction, "index/manifest.json.partial"),
        (kept_answers, "found.gz.partial"),
        (adaptive_knn, "knn.safetensors.partial"),
        (an_output, "out.partial"),
    ],
)
def test_nothing_is_written_through_a_link_that_somebody_put_there(
    make: Callable[[Path, Path], Path], name: str, tmp_path: Path, model: Path
) -> None:
    build(tmp_path / "index", segments(), "en", "fr")
    (tmp_path / "precious").write_text("as it was")
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).symlink_to(tmp_path / "precious")
    made = make(tmp_path, model)
    assert not made.is_symlink() and (tmp_path / "precious").read_text() == "as it was"


def test_links_where_keys_are_written_are_not_followed(tmp_path: Path, model: Path) -> None:
    build(tmp_path / "index", segments(), "en", "fr")
    (tmp_path / "precious").write_text("as it was")
    folder = keys(tmp_path, model) / load_model(model).hash
    (folder / "keys.json").unlink()
    for end in (".new", ".partial"):
        (folder / f"keys.json{end}").symlink_to(tmp_path / "precious")
    keys(tmp_path, model)
    assert (tmp_path / "precious").read_text() == "as it was" and not (
        folder / "keys.json"
    ).is_symlink()


@pytest.mark.parametrize("what", ["a link", "no file"])
def test_a_lock_that_is_no_file_of_its_own_is_refused(
    tmp_path: Path, model: Path, what: str
) -> None:
    (made := built(tmp_path) / ".lock").unlink()
    (tmp_path / "precious").write_text("as it was")
    made.symlink_to(tmp_path / "precious") if what == "a link" else os.mkfifo(made)
    with (
        MemoryIndex.open(made.parent) as index,
        pytest.raises(MemoryIndexError, match=rf"\.lock: is {what}.* remove it"),
    ):
        index.add([NEW])
    assert (tmp_path / "precious").read_text() == "as it was"


@pytest.mark.parametrize("made_again", [False, True])
def test_a_lock_that_was_waited_for_must_still_be_that_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_again: bool
) -> None:
    """A folder of keys is set aside together with its lock."""
    folder = tmp_path / "keys"
    folder.mkdir()
    taken = lock._take

    def set_aside(handle: int, where: Path, deadline: float) -> None:
        taken(handle, where, deadline)
        folder.rename(tmp_path / "old")
        if made_again:
            folder.mkdir()
            (folder / ".lock").touch()

    monkeypatch.setattr(lock, "_take", set_aside)
    with pytest.raises(LockedError, match="set it aside just now; try again"), writing(folder, 0):
        raise AssertionError("nothing is locked")
    monkeypatch.undo()
    folder.mkdir(exist_ok=True)
    with writing(folder, 0):
        pass


def test_two_savers_of_one_session_do_not_meet(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, fsync, saved = tmp_path / "document.session", os.fsync, list[int]()
    translator = Translator.load(model, [], TranslationOptions(cache=5))
    sessions = [translator.session() for _ in range(2)]
    for number, session in enumerate(sessions):
        session.confirm(f"A new sentence {number}.", f"Une phrase nouvelle {number}.")

    def in_the_middle(handle: int) -> None:
        if not saved:
            saved.append(1)
            sessions[1].save(path)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", in_the_middle)
    sessions[0].save(path)
    assert saved and [file.name for file in tmp_path.iterdir()] == ["document.session"]
    sessions[0].save(tmp_path / "alone")
    assert path.read_bytes() == (tmp_path / "alone").read_bytes()  # the later wins, whole
    translator.session(path)


def test_no_reader_sees_a_change_that_a_power_cut_takes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "index", segments(), "en", "fr")
    disk = Disk(tmp_path, monkeypatch)
    seen, fsync = list[int](), os.fsync
    with (
        MemoryIndex.open(tmp_path / "index") as writer,
        MemoryIndex.open(tmp_path / "index") as reader,
    ):

        def before_it_is_done(handle: int) -> None:
            if not seen and Path(f"/proc/self/fd/{handle}").resolve().name == "changes.log":
                seen.append(0)
                seen[0] = len(reader)
                if seen[0] > len(segments()):
                    assert not disk.lost(tmp_path / "index" / "generation-1" / "changes.log")
            fsync(handle)

        monkeypatch.setattr(os, "fsync", before_it_is_done)
        writer.add([NEW])
        assert (
            seen[0] in (len(segments()), len(segments()) + 1) and len(reader) == len(segments()) + 1
        )


def test_an_adapted_model_that_is_interrupted_while_it_is_put_out_is_not_trained_again(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    build(tmp_path / "memory", documents(), "en", "fr")
    options = model, tmp_path / "memory", tmp_path / "out", "--no-cache", "--no-fusion"
    monkeypatch.setattr("tmnmt.training.adapt.rename", stop)
    assert adapt(*options) == 130 and not (tmp_path / "out").exists()
    monkeypatch.undo()
    monkeypatch.setattr("tmnmt.training.parts.PartTrainer._update", stop)
    assert adapt(*options, "--resume") == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "base.safetensors",
        "config.toml",
        "memory.safetensors",
        "spm.model",
        "train.jsonl",
    ]
    assert not (tmp_path / "out.partial").exists()


def test_no_record_of_keys_is_on_disk_before_its_rows(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "index", segments(), "en", "fr")
    disk = Disk(tmp_path, monkeypatch)
    unsynced, fsync = list[list[str]](), os.fsync

    def before_it_is_done(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").resolve()
        if path.name == OFFSETS_FILE:
            rows = (one for one in path.parent.iterdir() if one.name not in (OFFSETS_FILE, ".lock"))
            unsynced.append([one.name for one in rows if disk._unsynced(one)])
        fsync(handle)

    monkeypatch.setattr(os, "fsync", before_it_is_done)
    keys(tmp_path, model)
    monkeypatch.undo()
    assert unsynced and not any(unsynced)
