"""Two models one after another are one backbone: they are held to what the two do alone, and to
what every backbone promises. The real models go from Portuguese to English, and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from published_student import entry, listed, model_files, published_files
from torch import Tensor

from tmnmt.cli import run
from tmnmt.codes.record import Code, Text
from tmnmt.errors import ModelError, UsageError
from tmnmt.formats import write_tsv
from tmnmt.index import MemoryIndex, build
from tmnmt.keys.pair_keys import padded
from tmnmt.model_import.marian import import_marian
from tmnmt.model_import.pivot_folder import join_models
from tmnmt.models.folder import Model, load_model
from tmnmt.models.pivot import Pivot, greedy
from tmnmt.segments import Segment
from tmnmt.translator import Translator
from tmnmt.vocab import BOS, EOS

LANGUAGES = ("pt-BR", "pt-PT")
SENTENCES = (
    "A função devolve o número de elementos.",
    "O arquivo 42 não existe.",
    "Se o argumento for omitido, o valor padrão será usado em todas as chamadas seguintes.",
)
MEMORY = (
    ("A função devolve o número de itens.", "A função retorna a quantidade de itens."),
    ("O ficheiro não pode ser aberto.", "O ficheiro não se abre."),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("pivot")
    for pair in ("pt-en", "en-pt"):
        import_marian(model_files(pair), work / pair, *pair.split("-"))
    join_models(work / "pt-en", work / "en-pt", work / "both", LANGUAGES)
    return work / "both"


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return load_model(folder)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryIndex]:
    place = tmp_path_factory.mktemp("memory") / "index"
    segments = [Segment(*pair, "page", at) for at, pair in enumerate(MEMORY)]
    build(place, segments, *LANGUAGES)
    with MemoryIndex.open(place) as index:
        yield index


def sources(model: Model, texts: tuple[str, ...] = SENTENCES) -> tuple[Tensor, Tensor]:
    ids = [[*model.vocab.encode_source(text), EOS] for text in texts]
    return padded(ids, "cpu"), torch.tensor([len(row) for row in ids])


def targets(model: Model) -> Tensor:
    return padded([[*model.vocab.encode(text), EOS] for text in SENTENCES], "cpu")


def test_the_second_model_translates_what_the_first_has_written(model: Model, folder: Path) -> None:
    first = load_model(folder / "first")
    pivots = [first.vocab.decode(ids) for ids in greedy(first.decoding, *sources(first))]
    assert "function" in pivots[0] and "42" in pivots[1]
    second = Translator.load(folder / "second")
    expected = [second.translate([text])[0].tgt for text in pivots]
    both = Translator.load(folder)
    assert [both.translate([text])[0].tgt for text in SENTENCES] == expected


@torch.no_grad()
@pytest.mark.parametrize("decoding", [False, True], ids=["as it learns", "as it decodes"])
def test_step_along_a_target_equals_forced(model: Model, decoding: bool) -> None:
    backbone: Any = model.decoding if decoding else model.backbone
    encoded, tgt = backbone.encode(*sources(model)), targets(model)
    contexts, hiddens = backbone.forced(encoded, tgt)
    state, prev = backbone.start(encoded), torch.full((len(tgt),), BOS)
    for t in range(tgt.shape[1]):
        state, context, hidden = backbone.step(prev, state, encoded)
        torch.testing.assert_close(context, contexts[:, t], atol=2e-3, rtol=0)
        torch.testing.assert_close(hidden, hiddens[:, t], atol=2e-3, rtol=0)
        prev = tgt[:, t]


@torch.no_grad()
def test_rows_of_a_batch_are_what_each_is_alone(model: Model) -> None:
    backbone = model.backbone
    assert isinstance(backbone, Pivot)
    tgt = targets(model)
    together = backbone.encode(*sources(model))
    alone = [backbone.encode(*sources(model, (text,))) for text in SENTENCES]
    put_together = alone[0].concat(alone[1:])
    for row, text in enumerate(SENTENCES):
        own = alone[row]
        chosen = together.rows(torch.tensor([row])).cut(int(together.mask[row].sum()))
        assert torch.equal(chosen.mask, own.mask), text
        expected = backbone.forced(own, tgt[row : row + 1])[1]
        for encoded in (chosen, put_together.rows(torch.tensor([row]))):
            hidden = backbone.forced(encoded, tgt[row : row + 1])[1]
            torch.testing.assert_close(hidden, expected, atol=1e-4, rtol=0)


@torch.no_grad()
def test_attention_goes_through_the_pivot_to_the_source(model: Model) -> None:
    encoded, tgt = model.backbone.encode(*sources(model)), targets(model)
    alphas = model.backbone.alphas(encoded, tgt)
    torch.testing.assert_close(alphas.sum(-1), torch.ones(tgt.shape), atol=1e-4, rtol=0)
    assert not alphas[~encoded.mask[:, None].expand_as(alphas)].any()
    written = model.vocab.encode(SENTENCES[1])
    read = model.vocab.encode_source(SENTENCES[1])
    number = next(
        at
        for at, one in enumerate(read)
        if "42" in model.vocab.source_pieces("42")[0] and one == model.vocab.encode_source("42")[0]
    )
    at = written.index(model.vocab.encode("42")[0])
    assert int(alphas[1, at].argmax()) == number


def test_a_memory_of_the_outer_languages_is_read(folder: Path, memory: MemoryIndex) -> None:
    plain = Translator.load(folder)
    reading = Translator.load(folder, [memory])
    assert reading.settings.mode == "nearest"
    (exact,) = reading.translate([MEMORY[1][0]])
    assert (exact.tgt, exact.origin) == (MEMORY[1][1], "memory")
    (before,), (after,) = (each.translate([SENTENCES[0]]) for each in (plain, reading))
    assert after.matches[0].segment.src == MEMORY[0][0]
    assert "quantidade" in after.tgt and "quantidade" not in before.tgt


def test_what_is_confirmed_and_codes_pass_through_both(folder: Path) -> None:
    translator = Translator.load(folder)
    session = translator.session()
    assert session.confirm("O gato dorme.", "O felino dorme.") == []
    assert session.translate("O gato dorme.").tgt == "O felino dorme."
    assert session.check("O gato dorme 3 horas.", "O felino dorme.")
    bold = (Code(2, "open", "<b>", pair="1"), Code(6, "close", "</b>", pair="1"))
    coded = session.translate(Text("O gato come peixe.", bold))
    start, end = (code.at for code in coded.tgt_codes)
    assert coded.tgt[start:end] == "felino"
    (masked,) = translator.translate(["Abra o arquivo `config.toml` agora."])
    assert "`config.toml`" in masked.tgt


def test_what_does_not_go_together_is_refused(folder: Path, tmp_path: Path) -> None:
    second = folder / "second"
    with pytest.raises(UsageError, match="the second must read the language that the first wri"):
        join_models(second, second, tmp_path / "new")
    with pytest.raises(ModelError, match="is two models already"):
        join_models(folder, second, tmp_path / "new")
    with pytest.raises(UsageError, match="from pt to pt, not from pt to es"):
        join_models(folder / "first", second, tmp_path / "new", ("pt", "es"))
    assert not [*tmp_path.iterdir()]


def test_two_models_learn_nothing_together(
    folder: Path, memory: MemoryIndex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["adapt", "--model", str(folder), "--memory", str(memory.path)]
    assert run([*command, "-o", str(tmp_path / "adapted")]) == 2
    assert "is two models one after another, which learn nothing together" in (
        capsys.readouterr().err
    )


def test_two_published_models_are_fetched_and_joined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = published_files(tmp_path / "site", "pt-en", "en-pt")
    (site / "list.json").write_text(listed(".", entry(), entry(pair="pt-en")))
    place = tmp_path / "both"
    registry = ["--registry", str(site / "list.json")]
    assert run(["get-model", *LANGUAGES, "--via", "en", "-o", str(place), *registry]) == 0
    config = load_model(place).config
    assert (config["src_lang"], config["tgt_lang"], config["via"]) == (*LANGUAGES, "en")
    assert {path.name for path in tmp_path.iterdir()} == {"site", "both"}
    assert run(["get-model", "en", "pt", "--via", "en", *registry]) == 2
    assert "name another language" in capsys.readouterr().err


def test_folders_are_joined_by_a_command(folder: Path, tmp_path: Path) -> None:
    made = tmp_path / "both"
    languages = ["--src-lang", LANGUAGES[0], "--tgt-lang", LANGUAGES[1]]
    command = ["import-model", str(model_files("pt-en")), str(folder / "second")]
    assert run([*command, "-o", str(made), *languages]) == 0
    assert load_model(made).hash == load_model(folder).hash
    text = tmp_path / "text.tsv"
    write_tsv(text, [Segment(*MEMORY[0], "page", 0)])
    assert run([*command[:2], "-o", str(tmp_path / "other"), "--via", "en"]) == 2
