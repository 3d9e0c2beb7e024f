"""Characters that a vocabulary lacks come from the source."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import sentencepiece
import torch
from tiny_training import sentences

from tmnmt.cli import run
from tmnmt.filters.contract import ModelOutput, Reader
from tmnmt.filters.target_words import target_words
from tmnmt.filters.unknown_words import (
    Span,
    UnknownWords,
    lacking,
    place,
    unknown_words,
)
from tmnmt.models.folder import save_model
from tmnmt.models.transformer import Transformer
from tmnmt.translator import Translator
from tmnmt.vocab import PairVocabulary

SIZES = {"hidden": 16, "feed_forward": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}


@pytest.fixture(scope="module")
def vocab() -> PairVocabulary:
    """Of Latin letters without accents, and without byte fallback."""
    made = io.BytesIO()
    alphabet = [*sentences(300), "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ .,'-"]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(alphabet),
        model_writer=made,
        vocab_size=120,
        model_type="bpe",
        character_coverage=1.0,
        minloglevel=2,
        hard_vocab_limit=False,
    )
    spm = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())
    pieces = [spm.id_to_piece(i) for i in range(3, spm.vocab_size())]
    return PairVocabulary(made.getvalue(), made.getvalue(), pieces)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, vocab: PairVocabulary) -> Path:
    """A model of random weights."""
    torch.manual_seed(2)
    config = {"src_lang": "pl", "tgt_lang": "en", "model": {"kind": "transformer", **SIZES}}
    path = tmp_path_factory.mktemp("lacking") / "model"
    save_model(path, Transformer(len(vocab), **SIZES), vocab, config)  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize(
    ("source", "copied", "characters"),
    [
        ("the order of Wałęsa, the minister", ["Wałęsa"], 2),
        ("law 😀 and order", ["😀"], 1),
        ("the α-port and the Ωmega port", ["α", "Ωmega"], 2),
        ("Łódź", ["Łódź"], 3),
        ("the fee is 5 €.", ["5", "€"], 2),
        ("act 港口 of law", ["港口"], 2),
        ("the plain law", [], 0),
    ],
)
def test_words_with_such_characters_are_found_and_come_back(
    vocab: PairVocabulary, folder: Path, source: str, copied: list[str], characters: int
) -> None:
    assert [span.text for span in unknown_words(source, vocab)] == copied
    assert lacking(source, vocab) == characters
    translator = Translator.load(folder)
    (said,) = translator.translate([source])
    assert said.unknown == characters and all(text in said.tgt for text in copied)
    assert translator.tally.unknown == characters
    assert translator.tally.with_unknown == bool(characters)


#            the  ▁Wa   ł    ę    sa  said </s>
ATTENDED = {
    "▁le": (0.8, 0.1, 0.1, 0.0, 0.0, 0.0, 0.0),
    "▁Wa": (0.1, 0.4, 0.2, 0.2, 0.1, 0.0, 0.0),
    "sa": (0.0, 0.2, 0.1, 0.4, 0.3, 0.0, 0.0),
    ",": (0.0, 0.0, 0.0, 0.0, 0.4, 0.6, 0.0),
    "▁dit": (0.1, 0.0, 0.1, 0.0, 0.0, 0.8, 0.0),
    "</s>": (0.0, 0.0, 0.0, 0.0, 0.1, 0.1, 0.8),
}


@pytest.mark.parametrize(
    ("left_out", "span", "said"),
    [
        ((), Span(1, 5, "Wałęsa"), "le Wałęsa, dit"),
        (("▁Wa", "sa"), Span(1, 5, "Wałęsa"), "le Wałęsa, dit"),
        ((), Span(2, 3, "€"), "le Wasa €, dit"),
        ((), Span(5, 6, "😀"), "le Wasa, 😀 dit"),
        ((), Span(6, 7, "😀"), "le Wasa, dit 😀"),
        (("▁le", "▁Wa", "sa", ",", "▁dit"), Span(1, 5, "Wałęsa"), "Wałęsa"),
    ],
)
def test_a_copy_stands_where_the_translation_attends_to_it(
    left_out: tuple[str, ...], span: Span, said: str
) -> None:
    rows = {piece: row for piece, row in ATTENDED.items() if piece not in left_out}
    words = target_words(list(rows)[:-1])
    place(span, words, torch.tensor(list(rows.values())))
    assert " ".join("".join(word.text for word in words).split()) == said


def test_they_are_counted_on_stderr_and_in_json(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.txt").write_text("law of Wałęsa\nplain law\n😀 and Łódź\n", encoding="utf-8")
    assert run(["translate", "--model", str(folder), "--json", str(tmp_path / "in.txt")]) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line)["unknown"] for line in out.splitlines()] == [2, 0, 4]
    assert (
        "tmnmt: warning: 6 characters in 2 segments are not in this model's vocabulary: the words "
        "with them are copied from the source\n"
    ) in err


def test_a_word_takes_the_place_of_what_looked_at_it(vocab: PairVocabulary) -> None:
    text = "the law of Łódź"
    source, undo = UnknownWords(Reader(vocab)).prepare(text)
    assert source == text and undo is not None
    read, subwords = vocab.source_pieces(text), vocab.pieces("la loi de ź")
    attention = torch.zeros(len(subwords) + 1, len(read) + 1)
    attention[:, 0] = 0.1
    (span,) = unknown_words(text, vocab)
    attention[-2, span.first : span.end] = 0.5  # the last subword, at the name
    written = ModelOutput("la loi de ź", text, subwords=subwords, attention=lambda: attention)
    assert undo.restore_piece(written) == "la loi de Łódź"
