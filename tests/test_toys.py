"""One toy of every sort of thing that can be added: each stands in this file alone, is registered,
and then works as what tmnmt has."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import pytest
import torch
from serving import tiny_server
from tiny_model import PAIRS, trained, write_tiny_model
from torch import Tensor, nn

from tmnmt import Translator
from tmnmt.checks import Check
from tmnmt.cli import run
from tmnmt.codes.record import Source, Text
from tmnmt.config.bounds import Help, Size, whole
from tmnmt.config.options import SELECTIONS, ReadingMode, Selection, TranslationOptions
from tmnmt.config.tables import build as build_table
from tmnmt.engine.beam_search import Hypothesis
from tmnmt.engine.extension import DecodedPiece, Extension, SearchResults
from tmnmt.engine.piece import Piece
from tmnmt.errors import ModelError, UsageError
from tmnmt.eval.recipe import SystemConfig
from tmnmt.files.texts import string_of, unit_of
from tmnmt.files.unit import Filling, Unit
from tmnmt.files.whole import Edit, WholeFile
from tmnmt.filters.contract import Filter, Undo
from tmnmt.formats import Columns, read_memory
from tmnmt.formats.memory_formats import MemoryFile, Pairs
from tmnmt.formats.stream import Source as Stream
from tmnmt.index.back_ends import BuildJob
from tmnmt.index.base import BuiltIndex
from tmnmt.index.embedded.build import build
from tmnmt.index.embedded.index import MemoryIndex
from tmnmt.index.embedded.manifest import Manifest
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.contract import Collated, LayerOutput, MemoryLayer, StepState, Words
from tmnmt.layers.learned import LearnedLayer
from tmnmt.models.base import Backbone, BaseConfig
from tmnmt.models.folder import Model, load_model, save_model
from tmnmt.models.kinds import KINDS
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.registry import PLUGINS, Sort, register, unregister
from tmnmt.segments import Segment, Translation
from tmnmt.serve.api_request import ApiRequest
from tmnmt.serve.fields import Field
from tmnmt.serve.http_error import Refused
from tmnmt.serve.routes import Dialect, Route
from tmnmt.serve.service import Request, Service
from tmnmt.training.config import load_config
from tmnmt.vocab import EOS, Vocabulary

Add = Callable[..., None]


@pytest.fixture
def add() -> Iterator[Add]:
    """Registers things, for one test."""
    added: list[tuple[Sort, str]] = []

    def add_one(sort: Sort, name: str, entry: object, before: str = "") -> None:
        register(sort, name, entry, before)
        added.append((sort, name))

    yield add_one
    for sort, name in added:
        unregister(sort, name)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_tiny_model(tmp_path_factory.mktemp("toys") / "model")


# A kind of base: an RNNsearch whose sizes have other names.


@dataclass(frozen=True)
class ToyConfig(BaseConfig):
    """The table [model] of the toy."""

    kind: str = "toy"
    units: Size = 32

    def check(self) -> None:
        if self.units > 64:
            raise UsageError(f"units is {self.units}; a toy has 64 at most")


class ToyBase(RNNsearch):
    """A small RNNsearch."""

    config = ToyConfig  # type: ignore[assignment]

    def __init__(self, vocab_size: int, units: int = 32, dropout: float = 0.0) -> None:
        super().__init__(vocab_size, units // 2, units, units // 2, dropout)


def test_a_kind_of_base(add: Add, tmp_path: Path) -> None:
    add("base", "toy", ToyBase)
    vocab, base = trained()
    toy = ToyBase(len(vocab))
    toy.load_state_dict(base.state_dict())
    sizes = {"kind": "toy", "units": 32, "dropout": 0.0}
    config = {"src_lang": "en", "tgt_lang": "fr", "max_subwords": 40, "model": sizes}
    save_model(tmp_path / "model", toy, vocab, config)
    assert isinstance(load_model(tmp_path / "model").backbone, ToyBase)
    (src, tgt), translator = PAIRS[0], Translator.load(tmp_path / "model")
    assert translator.translate([src])[0].tgt == tgt


def test_a_configuration_names_the_kind(add: Add, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    text = 'folder = "r"\n[data]\n[[data.corpus]]\nname = "a"\nfiles = ["a.tmx"]\n[model]\n'
    path.write_text(f'{text}kind = "toy"\nunits = 48\n')
    with pytest.raises(UsageError, match="'toy' is none of rnnsearch, deeplau, transformer"):
        load_config(path)
    add("base", "toy", ToyBase)
    assert load_config(path).model == ToyConfig(units=48)
    path.write_text(f'{text}kind = "toy"\nunits = 65\n')
    with pytest.raises(UsageError, match="model: units is 65; a toy has 64 at most"):
        load_config(path)


# A format of memories: `source => target` a line.


class ToyFormat:
    title = "toy memory"
    suffixes = (".toymem",)
    has_columns = False

    def accepts(self, head: str, source: Stream, columns: Columns | None) -> bool:
        return head.startswith("#toy")

    def read(self, file: MemoryFile) -> Pairs:
        for number, line in enumerate(file.stream.read().decode().splitlines()[1:], 2):
            src, _, tgt = line.partition(" => ")
            file.report.note_languages((file.src_lang, file.tgt_lang))
            yield number, Segment(src, tgt, file.source.stem, number)


def test_a_format_of_memories(add: Add, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.toymem"
    path.write_text("#toy\nthe permit => le permis\nno target => \n")
    add("memory format", "toy", ToyFormat(), before="tsv")
    reader = read_memory(path, "en", "fr")
    assert [(s.src, s.tgt, s.document) for s in reader] == [("the permit", "le permis", "m")]
    assert reader.report.retained == 1 and reader.report.units == 2
    index = str(tmp_path / "index")
    assert (
        run(["build-index", "--index", index, str(path), "--src-lang", "en", "--tgt-lang", "fr"])
        == 0
    )
    assert run(["search", "--index", index, "the permit"]) == 0
    assert "le permis" in capsys.readouterr().out
    (tmp_path / "other").write_text("neither this nor that\n")
    build_other = ["build-index", "--index", f"{index}2", str(tmp_path / "other")]
    assert run([*build_other, "--src-lang", "en", "--tgt-lang", "fr"]) == 1
    assert "allowed: toy memory, TSV, CSV, TMX" in capsys.readouterr().err


# A format of files to be translated: `name: text` a line.


class ToyFile(WholeFile[re.Match[str]]):
    kind = "toy"
    title = "toys"

    @classmethod
    def accepts(cls, head: bytes, path: Path) -> bool:
        return path.suffix == ".toyfile"

    def _encoding(self, data: bytes) -> str:
        return "utf-8"

    @property
    def _slots(self) -> Sequence[re.Match[str]]:
        return [*re.finditer(r"^(\w+): (.*)$", self.text, re.MULTILINE)]

    def _unit(self, slot: re.Match[str]) -> Unit:
        return unit_of(slot[2], id=slot[1], line=self.line(slot.start()))

    def _edits(self, fillings: Sequence[Filling | None]) -> Iterable[Edit]:
        for slot, filling in zip(self._slots, fillings, strict=True):
            if filling is not None:
                yield Edit(*slot.span(2), string_of(filling.target))


def test_a_format_of_files(
    add: Add, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (src, tgt), path = PAIRS[0], tmp_path / "a.toyfile"
    path.write_text(f"# a comment\nfirst: {src}\n")
    written = tmp_path / "b.toyfile"
    command = ["translate", "--model", str(model), "-o", str(written), str(path)]
    add("file format", "toy", ToyFile)
    assert run(command) == 0
    assert written.read_text() == f"# a comment\nfirst: {tgt}\n"
    capsys.readouterr()


# A filter: a tilde in front of a text.


class Tildes(Filter, Undo):
    """Takes a tilde from the beginning of a text, and puts it in front of the target."""

    level = "text"

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        if isinstance(source, Text) or not source.startswith("~"):
            return source, None
        return Text(source[1:]), self

    def restore(self, target: Text) -> Text:
        codes = tuple(replace(code, at=code.at + 1) for code in target.codes)
        return Text(f"~{target.plain}", codes)


def test_a_filter(add: Add, model: Path) -> None:
    src, tgt = PAIRS[0]
    usual = Translator.load(model, options=TranslationOptions(cache=0))
    add("filter", "Tildes", Tildes, before="Tags")
    other = Translator.load(model, options=TranslationOptions(cache=0))
    assert usual.translate([f"~{src}"])[0].tgt != f"~{tgt}"
    assert other.translate([f"~{src}"])[0].tgt == f"~{tgt}"
    assert other.session().translate(f"~{src}").tgt == f"~{tgt}"
    assert other.complete(f"~{src}", "").tgt == f"~{tgt}"


# An extension: it writes translations that lack a word once more, marks them and checks them.


class Stamps(Extension):
    """Ends a translation with the first word of what was confirmed last in its document."""

    revises = True

    def __init__(self, vocab: Vocabulary) -> None:
        self.vocab = vocab

    def incomplete(
        self, pieces: Sequence[Piece], knowledge: Sequence[Any], hypotheses: Sequence[Hypothesis]
    ) -> Collection[int]:
        return [
            row
            for row, (word, best) in enumerate(zip(knowledge, hypotheses, strict=True))
            if word is not None and best.ids[-1] != word
        ]

    def revise(self, results: SearchResults) -> list[Hypothesis]:
        hypotheses = [*results.hypotheses]
        for row in self.incomplete(results.pieces, results.knowledge, hypotheses):
            ids = (*hypotheses[row].ids, results.knowledge[row])
            hypotheses[row] = replace(hypotheses[row], ids=ids, traces=(), evidence=None)
        return hypotheses

    def annotate(self, translation: Translation, decoded: DecodedPiece | None) -> Translation:
        return replace(translation, low=decoded is not None)

    def check(self, src: str, tgt: str) -> list[Check]:
        return [Check("stamp", src)]

    def learn(self, knowledge: Any, src: str, tgt: str) -> Any:
        return self.vocab.encode(tgt)[0]


def test_an_extension(add: Add, model: Path) -> None:
    def make(model: Model, options: TranslationOptions) -> Stamps:
        return Stamps(model.vocab)

    (first, first_tgt), (src, tgt), *_ = PAIRS
    options = TranslationOptions(cache=0, confirm_to="memory", beam=1)
    assert not Translator.load(model, options=options).translate([src])[0].user_checks
    add("extension", "stamps", make, before="provenance")
    translator = Translator.load(model, options=options)
    assert [*translator.pipeline.extensions][:2] == ["stamps", "provenance"]
    (usual,) = translator.translate([src])
    assert (usual.tgt, usual.low, usual.user_checks) == (tgt, True, (Check("stamp", src),))
    session = translator.session()
    assert Check("stamp", first) in session.confirm(first, first_tgt)
    word = translator.vocab.decode(translator.vocab.encode(first_tgt)[:1])
    assert session.translate(src).tgt.startswith(f"{tgt} {word}")
    assert session.complete(src, "").tgt == session.translate(src).tgt
    assert not session.translate(first).low  # taken from the session
    session.new_document()
    assert session.translate(src).tgt == tgt


# A back end of indexes: folders that are found by names alone.


class ToyBackEnd:
    options = ()
    sends = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def location(self, place: str) -> Hashable:
        name = place.removeprefix("toy+mem://")
        if not name.isalpha():
            raise UsageError(f"{place}: the form is toy+mem://NAME")
        return self.folder / name

    def open(self, place: str, src_lang: str | None, tgt_lang: str | None) -> BuiltIndex:
        return MemoryIndex.open(Path(str(self.location(place))), src_lang, tgt_lang)

    def build(self, job: BuildJob) -> Manifest:
        folder, languages = Path(str(self.location(job.place))), (job.src_lang, job.tgt_lang)
        return build(folder, job.segments, *languages, force=job.force)


def test_a_back_end_of_indexes(
    add: Add, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add("back end", "toy+", ToyBackEnd(tmp_path))
    memory, languages = tmp_path / "m.tsv", ["--src-lang", "en", "--tgt-lang", "fr"]
    memory.write_text("src\ttgt\nthe permit is void\tle permis est nul\n")
    assert run(["build-index", "--index", "toy+mem://one", str(memory), *languages]) == 0
    assert run(["search", "--index", "toy+mem://one", "the permit is void"]) == 0
    assert "le permis est nul" in capsys.readouterr().out
    assert run(["memory", "compact", "--index", "toy+mem://one"]) == 0
    assert (
        run(["build-index", "--index", "toy+mem://two", str(memory), *languages, "--shards", "2"])
        == 2
    )
    assert "--shards are for an index at an address: elasticsearch+" in capsys.readouterr().err
    assert run(["search", "--index", "toy+mem://1", "x"]) == 2
    assert "toy+mem://1: the form is toy+mem://NAME" in capsys.readouterr().err
    translator = Translator.load(model, ["toy+mem://one"], write_to="toy+mem://one")
    assert translator.translate(["the permit is void"])[0].tgt == "le permis est nul"
    session = translator.session()
    session.translate("a new one")
    session.confirm("a new one", "un nouveau")
    assert translator.translate(["a new one"])[0].tgt == "un nouveau"


# A memory layer: it has learned one word, and how likely that is everywhere.


@dataclass(frozen=True)
class ToyKind:
    word: int


class ToyReady:
    """What is ready is the same for all rows."""

    def rows(self, index: Tensor) -> ToyReady:
        return self

    def reordered(self, index: Tensor) -> ToyReady:
        return self


class ToyLayer(LearnedLayer[ToyReady]):
    """Mixes one word in, by a gate that is one number."""

    def __init__(self, kind: ToyKind) -> None:
        super().__init__()
        self.kind, self.logit = kind, nn.Parameter(torch.zeros(()))

    @classmethod
    def of_kind(cls, sizes: tuple[int, int, int], kind: Mapping[str, Any]) -> ToyLayer:
        return cls(ToyKind(**kind))

    def ready(self, collated: Collated, backbone: Backbone, mode: str) -> ToyReady:
        return ToyReady()

    def fuse(
        self, at: StepState, hidden: Tensor, ready: ToyReady
    ) -> tuple[Tensor, LayerOutput[ToyReady]]:
        rows = len(hidden)
        ids = torch.full((rows, 1), self.kind.word)
        words = Words(ids, torch.zeros_like(ids), self.logit.expand(rows).contiguous())
        return hidden, LayerOutput(ready, torch.ones(rows, 1), words=words)


def test_a_memory_layer(
    add: Add, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add("layer", "toy", ToyLayer, before="nearest")
    shutil.copytree(model, tmp_path / "model")
    path = tmp_path / "model" / "memory.safetensors"
    layers = MemoryLayers.load(path, load_model(model).backbone)
    vocab, _ = trained()
    toy = ToyLayer(ToyKind(vocab.encode(PAIRS[0][1])[3]))
    with torch.no_grad():
        toy.logit.fill_(-2.0)
    assert layers.tm is not None and layers.cache is not None
    before = layers.digest("off", False)
    with_toy = MemoryLayers(layers.tm, layers.cache, toy)
    assert with_toy.digest("off", False) != before
    with_toy.save(path)
    src, tgt = PAIRS[0]
    translator = Translator.load(
        tmp_path / "model", options=TranslationOptions(mode="off", cache=0)
    )
    translation = translator.translate([src], explain=True)[0]
    assert translation.tgt == tgt and translation.tokens
    gate = float(torch.sigmoid(torch.tensor(-2.0)))
    for token in translation.tokens:
        (share,) = token.provenance
        assert (share.name, share.source, share.is_mixed) == ("toy", "memory", True)
        assert share.gate == pytest.approx(gate)
        is_word = token.text == vocab.piece(toy.kind.word)
        assert share.weight == pytest.approx(gate if is_word else 0.0)
        assert token.generated + token.copied == pytest.approx(token.probability, abs=1e-5)
    assert any(token.copied > 0 for token in translation.tokens)
    assert translation.confidence is None or 0 <= translation.confidence <= 1
    command = ["translate", "--model", str(tmp_path / "model"), "--mode", "off", "--cache", "0"]
    (tmp_path / "in.txt").write_text(f"{src}\n")
    page = tmp_path / "page.html"
    assert run([*command, "--explain", "--explain-html", str(page), str(tmp_path / "in.txt")]) == 0
    assert f"toy gate {gate:.2f} on average" in capsys.readouterr().out
    assert '"name":"toy","source":"memory","is_mixed":true' in page.read_text(encoding="utf-8")


def test_a_layer_that_is_not_registered_is_told(add: Add, model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "model")
    register("layer", "toy", ToyLayer)
    MemoryLayers(ToyLayer(ToyKind(5))).save(tmp_path / "model" / "memory.safetensors")
    unregister("layer", "toy")
    with pytest.raises(ModelError, match="layers that this version does not know: toy"):
        Translator.load(tmp_path / "model")


# A mode: a layer without parameters that reads in it, and says nothing but the end.


class ToyEnd(MemoryLayer[ToyReady]):
    modes = ("toy",)

    def ready(self, collated: Collated, backbone: Backbone, mode: str) -> ToyReady | None:
        return ToyReady() if mode in self.modes else None

    def fuse(
        self, step: StepState, hidden: Tensor, ready: ToyReady
    ) -> tuple[Tensor, LayerOutput[ToyReady]]:
        ids = torch.full((len(hidden), 1), EOS)
        words = Words(ids, torch.zeros_like(ids), torch.full((len(hidden),), 20.0))
        return hidden, LayerOutput(ready, torch.ones(len(hidden), 1), words=words)


def shown_words(shown: str) -> str:
    """What a page of help says, without its frames and ends of lines."""
    return " ".join(shown.replace("│", " ").split())


def test_a_mode(add: Add, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    system = {"name": "a", "mode": "toy"}
    modes = "copy, fusion, both, nearest, examples, knn, off"
    with pytest.raises(UsageError, match=f"mode: 'toy' is none of {modes}"):
        build_table(SystemConfig, system, "recipe")
    with pytest.raises(UsageError, match=f"mode toy is unknown; allowed: {modes}"):
        TranslationOptions(mode="toy")
    add("mode", "toy", ReadingMode(), "off")
    add("layer", "toy", ToyEnd)
    assert build_table(SystemConfig, system, "recipe").options.mode == "toy"
    assert run(["translate", "--help"]) == 0
    help_page = shown_words(capsys.readouterr().out)
    assert "copy, fusion, both, nearest, examples, knn, toy, off" in help_page
    (tmp_path / "in.txt").write_text(f"{PAIRS[0][0]}\n")
    (tmp_path / "m.tsv").write_text("src\ttgt\nthe permit is void\tle permis est nul\n")
    reading = ["--model", str(model), "--memory", str(tmp_path / "m.tsv"), "--mode", "toy"]
    assert run(["translate", *reading, str(tmp_path / "in.txt")]) == 0
    assert len(trained()[0].encode(capsys.readouterr().out.strip().rstrip("."))) == 1
    with tiny_server(model.parent) as server:
        request = {"texts": [PAIRS[0][0]], "options": {"mode": "toy"}}
        (answer,) = server.ask("POST", "/v1/translate", request).json["translations"]
        assert len(trained()[0].encode(answer["text"].rstrip("."))) == 1


def test_a_selection(add: Add, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="select toy is unknown; allowed: topk, greedy, walk"):
        Selection("toy")
    add("selection", "toy", lambda selection, query, matches, k: [*matches][-k:])
    assert Selection("toy").select == "toy"
    assert run(["search", "--help"]) == 0
    assert "|toy>" in shown_words(capsys.readouterr().out).replace(" ", "")


# A dialect of the server.


async def shout(service: Service, asked: ApiRequest) -> Any:
    """The translation in capitals."""
    answer = await service.translate(Request((asked.query["q"],), "en", "fr"), asked.caller)
    return {"shouted": answer.texts[0].text.upper()}


def refusal(refused: Refused) -> tuple[int, dict[str, str]]:
    return refused.status, {"toy": refused.message}


TOY = Dialect(
    "toy",
    ("/toy",),
    (Route("GET", "/shout", shout, fields=(Field("q", "text", "What to shout.", required=True),)),),
    refusal,
)


def test_a_dialect(add: Add, model: Path) -> None:
    add("dialect", "toy", TOY)
    src, tgt = PAIRS[0]
    with tiny_server(model.parent) as server:
        assert server.get("/toy/shout", q=src) == {"shouted": tgt.upper()}


# A command.


def count_up(to: Annotated[int, whole(1, 9), Help("The last number.")] = 1) -> None:
    """Count up to a number."""
    for number in range(1, to + 1):
        print(number)


def test_a_command(add: Add, capsys: pytest.CaptureFixture[str]) -> None:
    add("command", "toy", "test_toys:count_up", before="search")
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"build-index.*\btoy +Count up.*search", shown, re.DOTALL)
    assert run(["toy", "--to", "3"]) == 0
    assert capsys.readouterr().out == "1\n2\n3\n"
    assert run(["toy", "--to", "10"]) == 2
    assert "to 9" in capsys.readouterr().err


# A plug-in, and the table itself.


def test_a_plug_in_is_imported_when_a_table_is_read_and_its_parts_when_they_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "toy_plugin.py").write_text(
        "from tmnmt.registry import register\nregister('selection', 'toy', 'toy_selection:toy')\n"
    )
    (tmp_path / "toy_selection.py").write_text("def toy(*_):\n    return []\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("tmnmt.registry.PLUGINS", (*PLUGINS, "toy_plugin"))
    assert [*SELECTIONS] == ["topk", "greedy", "walk", "contrastive", "toy"]
    assert "toy_selection" not in sys.modules
    assert SELECTIONS["toy"](Selection(), "the text", [], 4) == []
    unregister("selection", "toy")
    assert "toy" not in SELECTIONS and len(SELECTIONS) == 4
    with pytest.raises(KeyError):
        SELECTIONS["toy"]


def test_the_core_works_without_plug_ins(tmp_path: Path) -> None:
    plain = write_tiny_model(tmp_path / "plain", memories=False)
    program = f"""
import sys
from tmnmt import registry

registry.PLUGINS = ()
from tmnmt import Translator
from tmnmt.cli import run

run(['--help'])
session = Translator.load({str(plain)!r}).session()
session.confirm('The permit is void.', 'Le permis est nul.')
print(session.translate({PAIRS[0][0]!r}, explain=True).tgt)
print([name for name in sys.modules if name.startswith(('tmnmt.papers', 'tmnmt.trained'))])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    *shown, tgt, modules = done.stdout.splitlines()
    assert (tgt, modules) == (PAIRS[0][1], "[]")
    shown_help = " ".join(shown)
    assert " adapt " in shown_help and "adapt-knn" not in shown_help


def test_a_name_is_registered_once(add: Add) -> None:
    add("base", "toy", ToyBase)
    with pytest.raises(ValueError, match="base 'toy' is registered already"):
        register("base", "toy", ToyBase)


def test_what_is_in_tmnmt_is_not_replaced(add: Add) -> None:
    add("base", "rnnsearch", ToyBase)
    with pytest.raises(ValueError, match="base 'rnnsearch' is in tmnmt already"):
        list(KINDS)
    assert KINDS["rnnsearch"] is RNNsearch


def test_a_place_before_what_is_not_there_is_an_error(add: Add) -> None:
    add("selection", "toy", "test_toys:ToyBase", before="other")
    with pytest.raises(ValueError, match="selection 'toy' stands before 'other', which is not"):
        list(SELECTIONS)
