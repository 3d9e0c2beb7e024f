"""One contender of decode_peers.py: runs in a virtual environment that has its library and need not
have the others.

    python decode_worker.py JOB.json '{"library": "joeynmt", ...}'

JOB.json: `threads`, `beam`, `steps`, `vocabulary` (its size), `sizes` of our model, `transformer`
(those of the peers' Transformers), and `batches`, by name: lists of batches of sentences as ids
from 4 on. Prints one line of JSON when ready; then for every name on stdin it decodes those
batches, every output `steps` long, and prints how long it took. But for ours the weights are
random: they do not change how much there is to do.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

Batch = list[list[int]]
Decode = Callable[[Batch], int]  # gives the number of target tokens
PAD, BOS, EOS = 1, 2, 3  # in every vocabulary but ours


def ours(job: dict[str, Any], options: dict[str, Any]) -> tuple[torch.nn.Module, Decode]:
    from tmnmt import vocab
    from tmnmt.allocator import keep_freed
    from tmnmt.engine.beam_search import SearchSettings, beam_search
    from tmnmt.engine.settings import Settings
    from tmnmt.keys.pair_keys import padded
    from tmnmt.layers.combine import LayerInputs
    from tmnmt.models.folder import load_model
    from tmnmt.models.rnnsearch import RNNsearch
    from tmnmt.models.transformer import Transformer
    from tmnmt.translator import Translator

    keep_freed()
    model = load_model(Path(options["model"]))
    assert isinstance(model.backbone, RNNsearch | Transformer)
    with torch.no_grad():
        model.backbone.output_bias[vocab.EOS] = -torch.inf
    backbone = Translator(
        model, None, [], Settings(precision=options["precision"])
    ).pipeline.backbone
    settings = SearchSettings(beam=job["beam"])

    def decode(batch: Batch) -> int:
        rows = [[*row, vocab.EOS] for row in batch]
        with torch.inference_mode():
            encoded = backbone.encode(padded(rows, "cpu"), torch.tensor([len(row) for row in rows]))
            found = beam_search(
                backbone, None, encoded, LayerInputs(), [job["steps"]] * len(rows), settings
            )
        return sum(len(best.ids) for best in found)

    return model.backbone, decode


def joey(job: dict[str, Any], options: dict[str, Any]) -> tuple[torch.nn.Module, Decode]:
    from types import SimpleNamespace

    from joey_worker import configuration
    from joeynmt.batch import Batch as JoeyBatch
    from joeynmt.model import build_model
    from joeynmt.search import search
    from joeynmt.vocabulary import Vocabulary

    special = SimpleNamespace(
        unk_token="<unk>",
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        sep_token=None,
        lang_tags=[],
        unk_id=0,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
    )
    vocabulary = Vocabulary(_words(job), special)
    sizes = {**job["sizes"], **options, "dropout": 0.0, "batch_tokens": 1}
    model = build_model(configuration(Path(), sizes)["model"], vocabulary, vocabulary).eval()

    def decode(batch: Batch) -> int:
        src, lengths = _padded(batch)
        given = JoeyBatch(
            src,
            lengths,
            None,
            None,
            None,
            torch.arange(len(batch)),
            torch.device("cpu"),
            PAD,
            EOS,
            is_train=False,
        )
        output, _, _ = search(
            model, given, job["steps"], job["beam"], 1.0, min_output_length=job["steps"]
        )
        return int((output != PAD).sum())

    return model, decode


def eole(job: dict[str, Any], options: dict[str, Any]) -> tuple[torch.nn.Module, Decode]:
    import pyonmttok
    from eole.config.models import RnnModelConfig
    from eole.config.run import PredictConfig
    from eole.models.model import EncoderDecoderModel
    from eole.predict.beam_search import GNMTGlobalScorer
    from eole.predict.translator import Translator

    sizes = job["sizes"]
    words = pyonmttok.build_vocab_from_tokens(_words(job))
    special = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    vocabs = {"src": words, "tgt": words, "specials": special, "decoder_start_token": "<s>"}
    side = {"layers": 1, "rnn_type": "GRU", "hidden_size": sizes["hidden"]}
    config = RnnModelConfig(
        embeddings={
            "word_vec_size": sizes["embedding"],
            "src_word_vec_size": sizes["embedding"],
            "tgt_word_vec_size": sizes["embedding"],
        },
        encoder={**side, "src_word_vec_size": sizes["embedding"]},
        decoder={**side, "tgt_word_vec_size": sizes["embedding"], "global_attention": "mlp"},
        rnn_type="GRU",
        input_feed=True,
        share_embeddings=True,
        share_decoder_embeddings=False,
    )
    asked = PredictConfig.model_construct(
        beam_size=job["beam"],
        min_length=job["steps"],
        max_length=job["steps"],
        max_length_ratio=0,
        transforms=[],
    )
    model = EncoderDecoderModel.build_blocks(config, vocabs, asked)
    model.build_generator(config, asked, vocabs)
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.1, 0.1)
    scorer = GNMTGlobalScorer.from_config(asked)
    translator = Translator(
        model.eval(),
        vocabs,
        asked,
        config,
        device_id=-1,
        global_scorer=scorer,
        logger=logging.getLogger(),
    )

    def decode(batch: Batch) -> int:
        src, lengths = _padded(batch)
        given = {"src": src, "srclen": lengths, "ind_in_bucket": list(range(len(batch)))}
        found = translator.predict_batch(given, attn_debug=False)
        return sum(len(best[0]) for best in found["predictions"])

    return model, decode


def marian(job: dict[str, Any]) -> torch.nn.Module:
    """A Transformer as Marian's, of random weights; as there padding is the last id, beyond the
    others."""
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(1)
    sizes = job["transformer"]
    sides = {
        f"{side}_{name}": size
        for side in ("encoder", "decoder")
        for name, size in (
            ("layers", sizes[f"{side}_layers"]),
            ("ffn_dim", sizes["feed_forward"]),
            ("attention_heads", sizes["heads"]),
        )
    }
    config = MarianConfig(
        vocab_size=job["vocabulary"] + 1,
        d_model=sizes["hidden"],
        max_position_embeddings=512,
        eos_token_id=EOS,
        pad_token_id=job["vocabulary"],
        decoder_start_token_id=job["vocabulary"],
        forced_eos_token_id=None,
        **sides,
    )
    return MarianMTModel(config).eval()


def transformers(job: dict[str, Any], options: dict[str, Any]) -> tuple[torch.nn.Module, Decode]:
    model: Any = marian(job)
    pad = job["vocabulary"]

    def decode(batch: Batch) -> int:
        src, _ = _padded(batch, pad)
        with torch.inference_mode():
            found = model.generate(
                input_ids=src,
                attention_mask=src != pad,
                num_beams=job["beam"],
                do_sample=False,
                min_new_tokens=job["steps"],
                max_new_tokens=job["steps"],
            )
        return int((found[:, 1:] != pad).sum())

    return model, decode


def ctranslate2(job: dict[str, Any], options: dict[str, Any]) -> tuple[torch.nn.Module, Decode]:
    """The same model, converted."""
    import ctranslate2 as library
    from ctranslate2.converters.transformers import MarianMTLoader

    model, words = marian(job), _words(job)
    spec = MarianMTLoader().get_model_spec(model)
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.bos_token = words[BOS]
    spec.config.eos_token = words[EOS]
    spec.config.unk_token = words[0]
    spec.config.decoder_start_token = words[EOS]  # whatever it is: padding is not converted
    spec.validate()
    spec.optimize(quantization=options["precision"])
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        translator = library.Translator(
            folder,
            device="cpu",
            compute_type=options["precision"],
            intra_threads=job["threads"],
            inter_threads=1,
        )

    def decode(batch: Batch) -> int:
        found = translator.translate_batch(
            [[words[i] for i in (*row, EOS)] for row in batch],
            beam_size=job["beam"],
            min_decoding_length=job["steps"],
            max_decoding_length=job["steps"],
        )
        return sum(len(best.hypotheses[0]) for best in found)

    return model, decode


def _words(job: dict[str, Any]) -> list[str]:
    return ["<unk>", "<pad>", "<s>", "</s>", *(f"w{i}" for i in range(4, job["vocabulary"]))]


def _padded(batch: Batch, pad: int = PAD) -> tuple[torch.Tensor, torch.Tensor]:
    """With </s>: (B, S) and the lengths (B,)."""
    rows = [torch.tensor([*row, EOS]) for row in batch]
    lengths = torch.tensor([len(row) for row in rows])
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad), lengths


LIBRARIES = {
    "tmnmt": ours,
    "joeynmt": joey,
    "eole": eole,
    "transformers": transformers,
    "ctranslate2": ctranslate2,
}


def main(job: dict[str, Any], options: dict[str, Any]) -> None:
    logging.disable(logging.INFO)
    torch.set_num_threads(job["threads"])
    library = options["library"]
    with contextlib.redirect_stdout(sys.stderr):
        model, decode = LIBRARIES[library](job, options)
    parameters = sum(
        p.numel() for name, p in model.named_parameters() if "positions" not in name
    )  # sinusoids
    print(
        json.dumps(
            {"parameters": parameters, "versions": {p: version(p) for p in (library, "torch")}}
        ),
        flush=True,
    )
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        with contextlib.redirect_stdout(sys.stderr):
            tokens = sum(decode(batch) for batch in job["batches"][line.strip()])
        spent = {"cpu_seconds": time.process_time() - cpu, "seconds": time.perf_counter() - wall}
        print(json.dumps({"tokens": tokens, **spent}), flush=True)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()), json.loads(sys.argv[2]))
