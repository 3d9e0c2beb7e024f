"""A small Marian model that is really trained, and its translations beside those of `transformers`.

By hand: `PYTHONPATH=. python tests/trained_marian.py FOLDER UPDATES` trains on short pairs of a
memory that ships, imports the model, and translates 200 sentences that were kept out, greedily and
with a beam of 4. What differs is printed with the scores of both. Our search ends early where only
a text of more than half the maximal length could still win (`_decided` in beam_search.py), so the
beam is compared once more without that. A text that is cut at the maximal length wins with
transformers where its score is best; with us only where none has ended. A model that is in FOLDER
already is taken as it is."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
import transformers
from places import ROOT

from tmnmt.config.options import TranslationOptions
from tmnmt.engine import beam_search
from tmnmt.engine.beam_search import Finished, Live, SearchSettings
from tmnmt.formats import read_memories
from tmnmt.model_import.marian import import_marian
from tmnmt.translator import Translator
from tmnmt.vocab import Vocabulary

MEMORY = ROOT / "memories" / "jrc-acquis.en-fr.tmx.gz"
MOST_WORDS, PAIRS, HELD_OUT = 20, 4000, 200
SIZES = {"d_model": 64, "heads": 4, "layers": 2, "ffn": 256}
WARMUP, RATE, TOKENS = 200, 1e-3, 1000  # updates; of Adam; padded tokens of an update

Pairs = Sequence[tuple[str, str]]


class Side(NamedTuple):
    """Subwords of one language as Marian's numbers."""

    vocab: Vocabulary
    numbers: dict[str, int]

    def encode(self, text: str) -> list[int]:
        pieces = map(self.vocab.piece, self.vocab.encode(text))
        return [*(self.numbers.get(piece, self.numbers["<unk>"]) for piece in pieces), 0]

    def decode(self, ids: Sequence[int]) -> str:
        names = {number: piece for piece, number in self.numbers.items()}
        special = {"</s>", "<unk>", "<pad>"}
        pieces = [names[i] for i in ids if names[i] not in special]
        return str(self.vocab._spm.decode_pieces(pieces))


class Trained(NamedTuple):
    model: Any
    source: Side
    target: Side


class Said(NamedTuple):
    """A text with its score; `ended`: it did not reach the maximal length without its end."""

    text: str
    score: float
    ended: bool = True


class Difference(NamedTuple):
    """A sentence, what we say, and what transformers say."""

    source: str
    ours: Said
    theirs: Said


def trained(folder: Path, pairs: Pairs, updates: int, words: int = 1200, **changes: int) -> Trained:
    """A model of `pairs` in a folder of Hugging Face, after so many updates."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {**SIZES, **changes}
    vocabularies = [Vocabulary.train(side, words) for side in zip(*pairs, strict=True)]
    pieces = {v.piece(i) for v in vocabularies for i in range(len(v))}
    listed = ["</s>", "<unk>", *sorted(pieces - {"</s>", "<unk>", "<pad>", "<s>"}), "<pad>"]
    numbers = {piece: number for number, piece in enumerate(listed)}
    for vocab, name in zip(vocabularies, ("source", "target"), strict=True):
        (folder / f"{name}.spm").write_bytes(vocab.model)
    (folder / "vocab.json").write_text(json.dumps(numbers))
    source, target = (Side(vocab, numbers) for vocab in vocabularies)
    torch.manual_seed(1)
    config = transformers.MarianConfig(
        vocab_size=len(numbers),
        d_model=sizes["d_model"],
        encoder_layers=sizes["layers"],
        decoder_layers=sizes["layers"],
        encoder_attention_heads=sizes["heads"],
        decoder_attention_heads=sizes["heads"],
        encoder_ffn_dim=sizes["ffn"],
        decoder_ffn_dim=sizes["ffn"],
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=numbers["<pad>"],
        eos_token_id=0,
        decoder_start_token_id=numbers["<pad>"],
        forced_eos_token_id=None,
    )
    model = transformers.MarianMTModel(config)
    _train(model, [(source.encode(s), target.encode(t)) for s, t in pairs], updates)
    model.eval().save_pretrained(folder)
    return Trained(model, source, target)


def read(folder: Path) -> Trained:
    """What `trained` left in a folder."""
    numbers = json.loads((folder / "vocab.json").read_text())
    sides = [Side(Vocabulary.load(folder / f"{n}.spm"), numbers) for n in ("source", "target")]
    return Trained(transformers.MarianMTModel.from_pretrained(folder).eval(), *sides)


def _train(model: Any, pairs: list[tuple[list[int], list[int]]], updates: int) -> None:
    batches, optimiser = _batches(pairs), torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    pad, choice = model.config.pad_token_id, random.Random(1)
    model.train()
    loss = 0.0
    for update in range(1, updates + 1):
        src, tgt = (_padded(side, pad) for side in zip(*choice.choice(batches), strict=True))
        begun = torch.cat([torch.full_like(tgt[:, :1], pad), tgt[:, :-1]], 1)
        logits = model(input_ids=src, attention_mask=src != pad, decoder_input_ids=begun).logits
        nats = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), tgt.flatten(), ignore_index=pad
        )
        optimiser.zero_grad()
        nats.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rate = RATE * min(update / WARMUP, (WARMUP / update) ** 0.5)
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.step()
        loss += float(nats.detach()) / 100
        if update % 100 == 0:
            print(f"update {update}: {loss:.3f} nats a subword", file=sys.stderr, flush=True)
            loss = 0.0


def _batches(pairs: list[tuple[list[int], list[int]]]) -> list[list[tuple[list[int], list[int]]]]:
    made: list[list[tuple[list[int], list[int]]]] = [[]]
    for pair in sorted(pairs, key=lambda pair: max(map(len, pair))):
        if made[-1] and max(map(len, pair)) * (len(made[-1]) + 1) > TOKENS:
            made.append([])
        made[-1].append(pair)
    return made


def _padded(rows: Sequence[list[int]], pad: int) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [pad] * (longest - len(row)) for row in rows])


@torch.no_grad()
def theirs(made: Trained, text: str, beam: int) -> Said:
    """What transformers translate, and the score. Lengths count the same, and unknown words are
    never produced, as with us; no beam ends before nothing better can come. Without a beam the
    score is the log probability."""
    src = made.source.encode(text)
    never = [made.target.numbers[name] for name in ("<pad>", "<unk>")]
    said = made.model.generate(
        torch.tensor([src]),
        num_beams=beam,
        max_new_tokens=2 * len(src) + 10,
        length_penalty=1.0,
        early_stopping="never" if beam > 1 else False,
        suppress_tokens=never,
        output_scores=True,
        return_dict_in_generate=True,
    )
    ids = said.sequences[0, 1:].tolist()
    if beam > 1:
        return Said(made.target.decode(ids), float(said.sequences_scores[0]), 0 in ids)
    steps = zip(said.scores, ids, strict=True)
    log_probs = [float(step[0].log_softmax(-1)[word]) for step, word in steps]
    return Said(made.target.decode(ids), sum(log_probs), 0 in ids)


def differences(made: Trained, model: Path, lines: Sequence[str], beam: int) -> list[Difference]:
    """The sentences that the model folder translates otherwise than transformers do.

    Scores of a beam are log probability by length. A beam of 1 is greedy where the length does not
    count: else a text that goes on after its first </s> may win."""
    options = TranslationOptions(beam=beam, length_penalty=1.0 if beam > 1 else 0.0)
    translator = Translator.load(model, options=options)
    found = []
    for ours in translator.translate(lines):
        said = theirs(made, ours.src, beam)
        if ours.tgt != said.text:
            found.append(Difference(ours.src, Said(ours.tgt, ours.score), said))
    return found


def to_the_end(
    live: Live, best: torch.Tensor, done: Finished, at: int, settings: SearchSettings
) -> torch.Tensor:
    """In the place of `_decided`: what no live hypothesis can win at any length."""
    return done.score[live.sentence, -1] >= best / live.max_len**settings.length_penalty


def short_pairs() -> list[tuple[str, str]]:
    """Different short pairs of a memory that ships."""
    segments = read_memories([MEMORY], "en", "fr")
    pairs = ((s.src, s.tgt) for s in segments if 2 <= len(s.src.split()) <= MOST_WORDS)
    fitting = (pair for pair in pairs if len(pair[1].split()) <= MOST_WORDS)
    return list(dict(islice(fitting, 3 * PAIRS)).items())[: PAIRS + HELD_OUT]


def main(folder: Path, updates: int) -> None:
    torch.set_num_threads(1)
    pairs = short_pairs()
    random.Random(1).shuffle(pairs)
    lines = [source for source, _ in pairs[:HELD_OUT]]
    hf, model = folder / "hf", folder / "model"
    made = read(hf) if hf.exists() else trained(hf, pairs[HELD_OUT:], updates)
    if not model.exists():
        import_marian(hf, model, "en", "fr")
    ends = {"": beam_search._decided, ", to the end": to_the_end}
    for beam, how in ((1, ""), (4, ""), (4, ", to the end")):
        with patch.object(beam_search, "_decided", ends[how]):
            found = differences(made, model, lines, beam)
        print(f"beam {beam}{how}: {len(lines) - len(found)} of {len(lines)} texts are the same")
        for source, *both in found:
            print(source)
            for who, said in zip(("ours  ", "theirs"), both, strict=True):
                print(f"  {who} {said.score:.5f}{'' if said.ended else ', cut'} {said.text}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
