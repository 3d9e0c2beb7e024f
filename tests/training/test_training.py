"""Training: the split, what is left out, exact resume, several processes, and the configuration's
errors."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from places import ROOT, TESTS
from safetensors.torch import save_file
from tiny_memory_training import run_of
from tiny_training import CONFIG, WORDS, pairs, sentences, trainer

from tmnmt.cli import run as run_command
from tmnmt.errors import DataError, LockedError, TmnmtError, UsageError
from tmnmt.index.embedded.lock import writing
from tmnmt.models.folder import load_model
from tmnmt.segments import Segment
from tmnmt.training import averaging
from tmnmt.training.config import CorpusConfig, DataConfig, Kind, TrainConfig, load_config
from tmnmt.training.data import encode_pairs, load_corpora, split_of, token_batches
from tmnmt.training.memory_config import MemoryConfig
from tmnmt.training.precision import bf16_takes, precision_on
from tmnmt.training.run import place_of, train
from tmnmt.training.trainer import dev_loss
from tmnmt.vocab import Vocabulary


@pytest.fixture(scope="module")
def vocab() -> Vocabulary:
    return Vocabulary.train(sentences(500), 360)


def test_a_resumed_run_equals_an_unbroken_one(vocab: Vocabulary, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir(), (tmp_path / "broken").mkdir()
    whole = trainer(vocab, tmp_path / "whole")
    whole.run()
    first = trainer(vocab, tmp_path / "broken")
    calls, update = [], first.update

    def interrupted(group: list[list[int]]) -> tuple[float, int]:
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return update(group)

    first.update = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        first.run()
    second = trainer(vocab, tmp_path / "broken")
    second.restore()
    assert second.progress.update == 7
    second.run()
    for name, parameter in whole.model.state_dict().items():
        assert torch.equal(parameter, second.model.state_dict()[name]), name
    assert whole.progress.best == second.progress.best


def test_training_learns_to_reverse_short_sentences(vocab: Vocabulary, tmp_path: Path) -> None:
    config = replace(CONFIG, updates=150, learning_rate=1e-2, batch_tokens=400, precision="bf16")
    run = trainer(vocab, tmp_path, config)
    before = dev_loss(run.model, run.dev, 400)
    run.run()
    assert run.progress.best < 0.6 * before
    log = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().split("\n") if line]
    assert log[-1]["update"] == 150 and "dev_bleu" in log[-1]


def test_early_stopping_ends_the_run(vocab: Vocabulary, tmp_path: Path) -> None:
    run = trainer(
        vocab,
        tmp_path,
        replace(CONFIG, updates=100, validate_every=1, patience=2, learning_rate=0.0),
    )
    run.run()
    assert run.progress.update == 3 and "has not improved" in run.progress.stopped


def test_the_mean_of_the_last_validations_is_taken_where_dev_likes_it(
    vocab: Vocabulary, tmp_path: Path
) -> None:
    config = replace(CONFIG, updates=20, validate_every=4, average=3)
    run = trainer(vocab, tmp_path, config)
    run.run()
    files = sorted((tmp_path / averaging.FOLDER).iterdir())
    assert [int(file.stem) for file in files] == [12, 16, 20]
    (tmp_path / "longer").mkdir()
    longer = trainer(vocab, tmp_path / "longer", replace(config, updates=60, learning_rate=1e-2))
    longer.run()
    for file, share in zip(files, (0.5, 1.0, 1.5), strict=True):
        save_file({n: share * value for n, value in longer.model.state_dict().items()}, file)
    run.take_best()
    for name, value in run.model.state_dict().items():
        assert torch.allclose(value, longer.model.state_dict()[name], atol=1e-6), name
    run.restore("best")
    best = run.progress
    run.save("best", replace(best, best_bleu=101.0))  # its text is better, whatever the loss
    run.take_best()
    assert dev_loss(run.model, run.dev, config.batch_tokens) == pytest.approx(best.best)
    run.save("best", best)
    for file in files:  # worse than the best checkpoint
        save_file({n: torch.zeros_like(value) for n, value in run.model.state_dict().items()}, file)
    run.take_best()
    loss = dev_loss(run.model, run.dev, config.batch_tokens)
    assert loss == pytest.approx(run.progress.best)
    files[0].write_bytes(b"damaged")
    with pytest.raises(DataError, match=r"000000012.safetensors: cannot be read"):
        run.take_best()


def test_a_later_file_of_a_killed_run_is_not_averaged(vocab: Vocabulary, tmp_path: Path) -> None:
    run = trainer(vocab, tmp_path, replace(CONFIG, average=2))
    run.run()
    mean, count = averaging.average(tmp_path, 12)
    averaging.keep(tmp_path, run.model, 18, 5)
    again, count_again = averaging.average(tmp_path, 12)
    assert count == count_again == 2 and all(torch.equal(mean[n], again[n]) for n in mean)


WORKER = """
import sys, torch, torch.distributed as dist
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tiny_memory_training import run_of
from tiny_training import CONFIG, sentences, trainer
from tmnmt.vocab import Vocabulary
torch.set_num_threads(1)
dist.init_process_group("gloo")
vocab = Vocabulary.train(sentences(500), 360)
run = trainer(vocab, Path(sys.argv[1]), replace(CONFIG, accumulate=2, optimiser=sys.argv[3]))
run.run()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("optimiser", ["adam", "muon"])
def test_two_processes_equal_one(vocab: Vocabulary, tmp_path: Path, optimiser: Kind) -> None:
    (tmp_path / "one").mkdir(), (tmp_path / "two").mkdir()
    one = trainer(vocab, tmp_path / "one", replace(CONFIG, accumulate=2, optimiser=optimiser))
    one.run()
    (tmp_path / "worker.py").write_text(WORKER)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
    ]
    command += [str(tmp_path / "worker.py"), str(tmp_path / "two"), str(TESTS), optimiser]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    two = trainer(vocab, tmp_path / "two", replace(CONFIG, optimiser=optimiser))
    two.restore()
    for name, parameter in one.model.state_dict().items():
        torch.testing.assert_close(parameter, two.model.state_dict()[name], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("takes", "warned"), [(1.7, True), (0.6, False)])
def test_a_processor_that_is_slow_in_bf16_is_told_of(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    takes: float,
    warned: bool,
) -> None:
    monkeypatch.setattr("tmnmt.training.precision.bf16_takes", lambda: takes)
    train(replace(run_of(tmp_path, MemoryConfig()), memory=None))
    assert ("bf16 take 1.7 times as long as in fp32" in caplog.text) == warned
    assert 0.01 < bf16_takes() < 100


@pytest.mark.parametrize(
    ("capability", "precision"), [((7, 5), "fp32"), ((8, 0), "bf16"), ((9, 0), "bf16")]
)
def test_a_gpu_that_emulates_bf16_trains_in_fp32_and_a_line_says_so(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capability: tuple[int, int],
    precision: str,
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "A card")
    assert precision_on("cuda:0", "bf16") == precision
    is_told = "cuda:0 (A card) computes no bf16" in caplog.text and "in fp32" in caplog.text
    assert is_told == (precision == "fp32")
    caplog.clear()
    assert precision_on("cuda:0", "fp32") == "fp32" and not caplog.text


def test_a_training_is_told_its_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = replace(run_of(tmp_path, MemoryConfig()), memory=None)
    for device in ("tpu", "cuda:7"):
        with pytest.raises(UsageError, match=f"device {device} is"):
            train(config, device=device)
    assert not Path(config.folder).exists()
    with caplog.at_level("INFO"):
        train(config, device="cpu")
    assert "parameters on cpu" in caplog.text
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("LOCAL_RANK", "2")
    assert (place_of("cpu"), place_of(None), place_of("auto")) == ("cpu", "cuda:2", "cuda:2")


def test_batches_hold_every_pair_once_and_keep_to_the_budget(vocab: Vocabulary) -> None:
    data = pairs(vocab, 200)
    batches = token_batches(data, 100, seed=3)
    assert sorted(i for batch in batches for i in batch) == list(range(200))
    assert all(len(b) * max(len(data.src[i]) for i in b) <= 100 for b in batches)
    assert batches == token_batches(data, 100, seed=3) != token_batches(data, 100, seed=4)


def test_the_split_is_stable_and_near_its_shares() -> None:
    kinds = Counter(split_of(f"SOR-{i}", dev=0.1, test=0.2) for i in range(5000))
    assert abs(kinds["test"] / 5000 - 0.2) < 0.02 and abs(kinds["dev"] / 5000 - 0.1) < 0.02
    assert split_of("jrc31962L2005", 0.06, 0.12) == "train"


def test_sources_of_dev_and_test_are_dropped_from_training(tmp_path: Path) -> None:
    rows = [
        ("A", "Fee  due.", "Droit."),
        ("A", "Other", "Autre"),
        ("B", "Fee due.", "Droits."),
        ("C", "Third", "Trois"),
    ]
    (tmp_path / "m.tsv").write_text("".join("\t".join(r) + "\n" for r in rows))
    (tmp_path / "test.txt").write_text("B\n")
    corpus = CorpusConfig(
        "x", (str(tmp_path / "m.tsv"),), "doc=1,src=2,tgt=3", test=str(tmp_path / "test.txt")
    )
    corpora = load_corpora(DataConfig((corpus,)))
    assert [[s.src for s in d] for d in corpora.train] == [["Other"], ["Third"]]
    assert corpora.counts["dropped from training: source stands in dev or test"] == 1


@pytest.mark.parametrize("documents", [1, 100])
def test_without_a_list_of_dev_documents_or_stretches_are_kept_out_for_it(
    tmp_path: Path, documents: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    rows = [f"D{at * documents // 800}\tSource {at}\tCible {at}\n" for at in range(800)]
    (tmp_path / "m.tsv").write_text("".join(rows))
    config = DataConfig((CorpusConfig("x", (str(tmp_path / "m.tsv"),), "doc=1,src=2,tgt=3"),))
    corpora, again = load_corpora(config), load_corpora(config)
    dev = {segment.src for document in corpora.dev for segment in document}
    train = {segment.src for document in corpora.train for segment in document}
    assert 80 <= len(dev) <= 105 and len(dev) + len(train) == 800 and not dev & train
    assert again == corpora
    assert f"no list of dev is given: {len(dev)} segments are kept out for it" in caplog.text
    names = {document[0].document for document in corpora.dev}
    assert documents == 1 or not names & {document[0].document for document in corpora.train}


def test_a_byte_order_mark_hides_no_document_and_unknown_ids_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = toy_corpus(tmp_path, "\ufeffA\r\nX\nY\n".encode())
    corpora = load_corpora(DataConfig((corpus,)))
    assert [d[0].document for d in corpora.dev] == ["A"]
    assert "corpus x: 2 ids of dev or test without a document, first 'X'" in caplog.text


@pytest.mark.parametrize(
    ("written", "message"), [(None, "dev.txt: cannot be read"), (b"\xff", "dev.txt: not UTF-8")]
)
def test_a_list_that_cannot_be_read_is_one_clear_error(
    tmp_path: Path, written: bytes | None, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        load_corpora(DataConfig((toy_corpus(tmp_path, written),)))


@pytest.mark.parametrize(
    ("dev", "test", "message"),
    [
        (b"", "", "to validate"),
        (b"X\n", "", "to validate"),
        (b"A\n", "dev.txt", "to validate"),
        (b"A\nB\n", "", "to train"),
    ],
)
def test_nothing_to_train_or_validate_on_is_told_before_training(
    tmp_path: Path, dev: bytes, test: str, message: str
) -> None:
    corpus = toy_corpus(tmp_path, dev)
    corpus = replace(corpus, test=str(tmp_path / test) if test else "")
    with pytest.raises(DataError, match=f"nothing {message} on"):
        train(TrainConfig(str(tmp_path / "run"), DataConfig((corpus,))))


def toy_corpus(folder: Path, dev: bytes | None) -> CorpusConfig:
    """Two documents, and a dev list of these bytes."""
    (folder / "m.tsv").write_text("A\tFee due.\tDroit.\nB\tOther\tAutre\n")
    if dev is not None:
        (folder / "dev.txt").write_bytes(dev)
    return CorpusConfig(
        "x", (str(folder / "m.tsv"),), "doc=1,src=2,tgt=3", dev=str(folder / "dev.txt")
    )


def test_long_odd_and_repeated_pairs_are_left_out_and_counted(vocab: Vocabulary) -> None:
    counts: Counter[str] = Counter()
    long = " ".join(WORDS * 10)
    segments = [
        Segment("the act", "act the"),
        Segment("the act", "act the"),
        Segment(long, long),
        Segment(long[:60], "a"),
    ]
    kept = encode_pairs(segments, vocab, DataConfig((), max_subwords=100), counts)
    assert len(kept) == 1 and sorted(counts.values()) == [1, 1, 1]


GOOD = 'folder = "x"\n[data]\n[[data.corpus]]\nname = "a"\nfiles = ["b"]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("folder = 1\n[data]\ncorpus = []", "not of the kind"),
        (GOOD + "[training]\nupdate = 3", "did you mean `updates`"),
        (GOOD.replace('"b"', '"${NO_SUCH_VARIABLE}"'), "NO_SUCH_VARIABLE is not set"),
        (GOOD.replace('"b"', '"${TMNMT_ES_PASSWORD}"'), "TMNMT_ES_PASSWORD is secret"),
        (GOOD.replace('name = "a"\n', ""), "`name` is missing"),
        ("folder = ", "no valid TOML"),
        (GOOD.replace('"x"', '""'), "folder: empty; it must be not empty"),
        (GOOD.replace('["b"]', "[]"), "files: empty"),
        (GOOD.replace('["b"]', '["b", ""]'), "files 2: empty"),
        ('folder = "x"\n[data]\ncorpus = []', "data: corpus: empty"),
        (GOOD + 'where = "Text"', "where: 'Text'; it must be FIELD=VALUE, FIELD one of src, "),
        (GOOD + 'where = "colour=Text"', "where: 'colour=Text'; it must be"),
        (GOOD.replace("[data]", '[data]\nsrc_lang = "fr"'), "src_lang and tgt_lang are both 'fr'"),
        (
            GOOD + '[training]\nprecision = "fp16"',
            "training: precision: 'fp16' is none of bf16, fp32",
        ),
        (
            GOOD + "[memory]\ncopy = false\nfusion = false\ncache = false",
            "nothing is to be trained",
        ),
        (GOOD + "[memory]\nshare_irrelevant = 0.6\nshare_exact = 0.5", "more than 1 together"),
        (GOOD + "[memory]\nshare_irrelevant = 0.6\nshare_noise = 0.4", "more than 1 together"),
        (
            GOOD + '[memory]\nselect = "best"',
            "memory: select: 'best' is none of topk, greedy, walk, contrastive",
        ),
        (GOOD + '[memory]\nsimilarity = "ter"', "memory: similarity: 'ter' is none of fuzzy, bleu"),
        (
            GOOD + "[memory]\nalpha = 0.3",
            r"\[memory\] alpha is of select contrastive, and select is topk",
        ),
    ],
)
def test_a_wrong_configuration_is_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        load_config(tmp_path / "c.toml")
    assert "c.toml" in str(caught.value) and "\n" not in str(caught.value)


def test_the_configuration_that_ships_says_every_share_and_its_reason() -> None:
    path = ROOT / "models" / "law.en-fr.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))["memory"]
    shares = {field.name for field in fields(MemoryConfig) if field.name.startswith("share_")}
    assert len(shares) == 5 and shares <= table.keys() <= {
        field.name for field in fields(MemoryConfig)
    }
    reasons = dict(
        re.findall(
            r"^(share_\w+) += [\d.]+ +# (.{30,})$", path.read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    assert reasons.keys() == shares and reasons["share_no_pair"].startswith("only with end_to_end")


WRONG = {
    "data": ["max_subwords = 0", "max_ratio = 0.5", "max_ratio = inf", "dev_segments = 0"],
    "vocabulary": ["size = 299", "size = 200001", "sample = 0"],
    "model": [
        "hidden = 0",
        "hidden = 15",
        "hidden = 16386",
        "embedding = 0",
        "attention = 16385",
        "dropout = 1",
    ],
    "training": [
        *(
            f"{key} = 0"
            for key in ("updates", "batch_tokens", "accumulate", "warmup", "patience", "clip")
        ),
        *(f"learning_rate = {value}" for value in ("0", "-1e-3", "nan", "inf")),
        *("validate_every = 0", "checkpoint_every = 0", "seed = -1", f"seed = {2**63}"),
        *("decay = 1.5", "decay = nan", "label_smoothing = 1", "clip = inf"),
    ],
    "memory": [
        *(
            "share_weak = 1",
            "share_irrelevant = -0.1",
            "share_exact = nan",
            "threshold = 1.5",
            "weak_threshold = -1",
        ),
        *(
            f"{key} = 0"
            for key in (
                "k",
                "tm_epochs",
                "cache_epochs",
                "cache_size",
                "documents_together",
                "max_pairs",
            )
        ),
        *(
            f"{key} = 0"
            for key in ("cache_pairs", "batch_tokens", "validate_every", "checkpoint_every")
        ),
        *(
            "stretch = 1",
            "dev_segments = 0",
            "max_subwords = 0",
            "learning_rate = 0",
            "cache_learning_rate = nan",
        ),
        *("seed = -1", "share_noise = 1", "alpha = -0.5", "alpha = nan"),
    ],
}


@pytest.mark.parametrize(
    ("table", "line"), [(table, line) for table, lines in WRONG.items() for line in lines]
)
def test_a_value_out_of_bounds_is_told_with_what_is_allowed(
    tmp_path: Path, table: str, line: str
) -> None:
    text = (
        GOOD.replace("[data]", f"[data]\n{line}")
        if table == "data"
        else GOOD + f"[{table}]\n{line}"
    )
    (tmp_path / "c.toml").write_text(text)
    key, _, _ = line.partition(" ")
    with pytest.raises(UsageError, match=rf"c\.toml: {table}: {key}: .*; it must be "):
        load_config(tmp_path / "c.toml")


def toy_config(folder: Path, changes: dict[str, str] | None = None) -> TrainConfig:
    """A run of four updates on twenty documents, with these replacements in its file."""
    rows = [(f"D{i // 8}", s, " ".join(reversed(s.split()))) for i, s in enumerate(sentences(160))]
    (folder / "m.tsv").write_text("".join("\t".join(r) + "\n" for r in rows))
    (folder / "dev.txt").write_text("D0\nD1\n")
    text = (
        f'folder = "{folder}/run"\n[data]\n[[data.corpus]]\nname = "a"\nfiles = '
        f'["{folder}/m.tsv"]\n'
        f'columns = "doc=1,src=2,tgt=3"\ndev = "{folder}/dev.txt"\n[vocabulary]\nsize = 360\n'
        "[model]\nembedding = 8\nhidden = 16\nattention = 8\n[training]\nupdates = 4\n"
        "batch_tokens = 200\n"
    )
    for old, new in (changes or {}).items():
        assert old in text
        text = text.replace(old, new)
    (folder / "c.toml").write_text(text)
    return load_config(folder / "c.toml")


def test_train_makes_a_model_folder_that_loads(tmp_path: Path) -> None:
    config = toy_config(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "spm.model").write_bytes(b"of a run that died before its first checkpoint")
    (tmp_path / "run" / "train.jsonl").write_text("old\n")
    folder = train(config)
    model = load_model(folder)
    assert -0.8 <= model.config["low_score"] < 0
    assert (
        model.backbone.hidden_size == 16
        and model.config["tgt_lang"] == "fr"
        and len(model.hash) == 16
    )
    assert "old" not in (folder / "train.jsonl").read_text()
    with pytest.raises(UsageError, match="--resume"):
        train(config)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of `toy_config`."""
    folder = tmp_path_factory.mktemp("done")
    train(toy_config(folder))
    return folder


def test_one_run_at_a_time_in_a_folder(done: Path) -> None:
    with (
        writing(done / "run", 0),
        pytest.raises(LockedError, match="is writing to it; try again when it has ended"),
    ):
        train(toy_config(done), resume=True)


@pytest.mark.parametrize(
    ("changes", "spoil", "message"),
    [
        (
            {"size = 360": "size = 350"},
            "",
            "run.json: the run was made with vocabulary: size = 360, now 350",
        ),
        ({"hidden = 16": "hidden = 18"}, "", "model: hidden = 16, now 18"),
        ({"updates = 4": "updates = 4\nseed = 7"}, "", "training: seed = 1, now 7"),
        ({"src=2,tgt=3": "src=3,tgt=2"}, "", "data: training pairs"),
        ({"hidden = 16": "hidden = 18"}, "run.json", "last.safetensors: not of this configuration"),
        ({}, "last.safetensors", "last.safetensors: cannot be read"),
        ({}, "spm.model", "spm.model: no sentencepiece vocabulary"),
    ],
)
def test_a_run_of_something_else_or_damaged_is_not_gone_on_with(
    done: Path, tmp_path: Path, changes: dict[str, str], spoil: str, message: str
) -> None:
    shutil.copytree(done / "run", tmp_path / "run")
    if spoil == "run.json":
        (tmp_path / "run" / spoil).unlink()
    elif spoil:
        whole = (tmp_path / "run" / spoil).read_bytes()
        (tmp_path / "run" / spoil).write_bytes(
            whole[: len(whole) // 2] if spoil.startswith("last") else b""
        )
    with pytest.raises(TmnmtError, match=message) as caught:
        train(toy_config(tmp_path, changes), resume=True)
    assert "\n" not in str(caught.value)


def test_a_run_may_train_longer_and_start_another_of_its_sizes(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done / "run", tmp_path / "run")
    train(
        toy_config(tmp_path, {"updates = 4": "updates = 6\npatience = 2\nlearning_rate = 1e-4"}),
        resume=True,
    )
    assert (
        json.loads((tmp_path / "run" / "train.jsonl").read_text().splitlines()[-1])["update"] == 6
    )
    start = {"[data]\n": f'start_from = "{done}/run"\n[data]\n', '/run"\nstart': '/new"\nstart'}
    assert (
        load_model(train(toy_config(tmp_path, start))).vocab.model
        == load_model(done / "run").vocab.model
    )
    with pytest.raises(UsageError, match="a model of hidden = 16; "):
        train(toy_config(tmp_path, start | {"/new": "/newer", "hidden = 16": "hidden = 18"}))


def test_a_run_that_diverges_says_so_and_keeps_its_checkpoint(
    vocab: Vocabulary, tmp_path: Path
) -> None:
    run = trainer(vocab, tmp_path, replace(CONFIG, checkpoint_every=1))
    update = run.update

    def poisoned(group: list[list[int]]) -> tuple[float, int]:
        if run.progress.update == 2:
            run.parameters[0].data.mul_(math.inf)
        return update(group)

    run.update = poisoned  # type: ignore[method-assign]
    with pytest.raises(DataError, match="diverged at update 3; a smaller learning_rate helps"):
        run.run()
    run.restore()
    assert run.progress.update == 2 and all(bool(p.isfinite().all()) for p in run.parameters)


def test_few_texts_give_a_smaller_vocabulary_than_was_asked_for() -> None:
    texts = [f"La Commission informe le Conseil, numéro {number}." for number in range(200)]
    assert 262 < len(Vocabulary.train(texts, 8000)) < 2000


def test_characters_that_do_not_fit_a_vocabulary_are_one_clear_error() -> None:
    with pytest.raises(DataError, match="no vocabulary of 262 subwords"):
        Vocabulary.train(sentences(50), 262)


@pytest.mark.parametrize(
    ("kept", "message"), [(True, "go on with --resume"), (False, "nothing is kept")]
)
def test_an_interruption_says_what_is_kept(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kept: bool,
    message: str,
) -> None:
    def interrupted(*_: object) -> None:
        if kept:
            (tmp_path / "run").mkdir()
            (tmp_path / "run" / "last.safetensors").touch()
        raise KeyboardInterrupt

    toy_config(tmp_path)
    monkeypatch.setattr("tmnmt.training.run.train", interrupted)
    assert run_command(["train", str(tmp_path / "c.toml")]) == 130
    assert message in capsys.readouterr().err


def test_training_says_what_to_expect_and_shows_what_it_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And behind the first validation a model lies there, whatever happens then."""
    config = toy_config(tmp_path, {"updates = 4": "updates = 8\nvalidate_every = 6"})
    updates: list[int] = []

    def after_validation(*_: object) -> None:
        updates.append(1)
        if len(updates) == 7:
            raise KeyboardInterrupt

    with caplog.at_level("INFO", logger="tmnmt"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tmnmt.training.optimiser.Optimiser.zero_grad", after_validation)
            with pytest.raises(KeyboardInterrupt):
                train(config)
        assert load_model(tmp_path / "run").config["src_lang"] == "en"
        train(config, resume=True)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0].startswith("reading ")
    assert any("pairs make no base that is of use" in line for line in lines)
    assert any(line.startswith("5 updates in") and "at most" in line for line in lines)
    samples = [line for line in lines if line.startswith("source: ")]
    assert len(samples) == 3 and all("\n  model: " in line for line in samples)
