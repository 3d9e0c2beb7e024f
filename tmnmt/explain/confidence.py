"""Says how likely every word of a translation is right, and how likely the whole of it is. It is a
logistic regression over what the decoder did, and it was fitted on text that the decoder has not
learned (`eval/confidence.py`).

    p = 1 / (1 + exp(-(b + w x)))

A word counts as right where TER's alignment finds it in the reference, and a segment where TER is
0.1 or less. The signs x that are looked at are `WORD` and `SEGMENT` below. Their weights lie beside
the model, in confidence.json.

A translation that is taken from a memory is not surer than the memory. `of_agreement` says how
likely it is right, by how many segments agree on it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tmnmt.config.options import TranslationOptions
from tmnmt.engine.extension import DecodedPiece, Extension
from tmnmt.errors import ModelError, short_repr
from tmnmt.models.folder import CHECKSUMS, CONFIDENCE_FILE, Model, read_checked, reason_of
from tmnmt.records import decode_subwords
from tmnmt.segments import Agreement, Token, Translation, Word

FORMAT = 1
MOST_BYTES = 1 << 14
MIN_PROBABILITY = 1e-6  # of probabilities, before their logarithm is taken
WINDOW = 2  # words before and behind that are looked at
Signs = dict[str, float]
# of the logistic regression of whether what is taken from a memory is right on `agreement_signs`,
# fitted on law by eval/agreement.py
AGREEMENT = {"bias": 0.7, "share": 2.41, "few": -1.91}

WORD = (
    "log_prob",  # mean of the subwords
    "log_prob_min",
    "prob_min",
    "plain",  # mean log probability of the base
    "copied",  # share of the probability that is copied from pairs
    "recalled",  # and from the session cache
    "copy_gate",
    "q",  # of the position that is read most
    "fuzzy",  # mean fuzzy score of what is read
    "copied_fuzzy",
    "before",  # mean log probability of the words before
    "behind",
    "segment",  # mean log probability of all subwords
    "best",  # fuzzy score of the best match
    "copied_best",
    "gate_best",
    "in_matches",  # share of four matches whose translation has the word
    "taken",  # 1 of a text that a memory holds
)
SEGMENT = ("log_prob", "log_prob_min", "logit", "logit_min", "copied", "best", "length", "taken")


@dataclass(frozen=True)
class Confidence(Extension):
    """The weights of both regressions, in which "bias" is b.

    words: the weights of the regression of words.
    segment: the weights of the regression of segments.
    min_confidence: the confidence from which on segments can be released, with a precision of 90 %
    on the text that the regression was fitted on."""

    words: Mapping[str, float]
    segment: Mapping[str, float]
    min_confidence: float

    @classmethod
    def load(cls, model: Model) -> Confidence | None:
        """Reads the weights of a model; None where it has none.

        model: the model.

        Raises ModelError where its file is damaged, or was made for another base."""
        if CONFIDENCE_FILE not in model.config[CHECKSUMS]:
            return None
        path = model.folder / CONFIDENCE_FILE
        content = read_checked(path, model.config, MOST_BYTES, "no confidence of a model is")
        try:
            record = json.loads(content)
            if record["format"] != FORMAT or record["model"] != model.hash:
                raise ValueError(
                    f"format {short_repr(record['format'])} of model "
                    f"{short_repr(record['model'])}, wanted: {FORMAT} of {model.hash}"
                )
            return cls(
                _weights(record["words"], WORD),
                _weights(record["segment"], SEGMENT),
                _number(record["least"]),
            )
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise ModelError(f"{path}: no confidence of this model: {reason_of(error)}") from error

    def annotate(
        self, translation: Translation, decoded: DecodedPiece | None = None
    ) -> Translation:
        """An explained translation with its words and the confidence."""
        groups = by_words(translation.tokens)
        if not groups:
            return translation
        logits = [logit(self.words, signs) for signs in word_signs(translation, groups)]
        whole = logit(self.segment, segment_signs(translation, groups, logits))
        texts = decode_subwords([token.text for token in translation.tokens])
        words = list[Word]()
        start = 0
        for group, word_logit in zip(groups, logits, strict=True):
            text = "".join(texts[start : start + len(group)]).strip(" ")
            words.append(Word(text, probability(word_logit)))
            start += len(group)
        rated = replace(translation, words=tuple(words), confidence=probability(whole))
        return _no_surer_than_the_memory(rated)


def load_confidence(model: Model, options: TranslationOptions) -> Confidence | None:
    """The confidence of a model, as `Confidence.load` reads it.

    model: the model.
    options: the options of its translations, which do not matter."""
    return Confidence.load(model)


def agreement_signs(agreement: Agreement) -> Signs:
    """The signs of an agreement: the share of segments that have what is taken, and whether there
    are few of them.

    agreement: how far the memories agree."""
    return {"share": agreement.copies / agreement.total, "few": 1 / agreement.copies}


def of_agreement(agreement: Agreement) -> float:
    """How likely a translation that so many segments have is right for another document, from 0 to
    1.

    agreement: how far the memories agree."""
    signs = agreement_signs(agreement)
    return probability(
        AGREEMENT["bias"] + sum(AGREEMENT[name] * value for name, value in signs.items())
    )


def _no_surer_than_the_memory(rated: Translation) -> Translation:
    """The translation with at most the confidence that the agreement of the memories allows. The
    same limit holds for its words, except for those that all rivals have, too."""
    agreements = (match.agreement for match in rated.matches)
    agreement = next(filter(None, agreements), None)
    if agreement is None or rated.confidence is None:
        return rated
    limit = of_agreement(agreement)
    rivals = [rival.tgt.split() for rival in agreement.rivals]
    words = tuple(
        word
        if rivals and all(word.text in rival_words for rival_words in rivals)
        else replace(word, confidence=min(word.confidence, limit))
        for word in rated.words
    )
    return replace(rated, words=words, confidence=min(rated.confidence, limit))


def _weights(weights: Any, names: Sequence[str]) -> dict[str, float]:
    """Reads weights. Raises ValueError where they belong to other signs."""
    if not isinstance(weights, dict) or set(weights) != {"bias", *names}:
        raise ValueError("its weights are those of other signs")
    return {name: _number(value) for name, value in weights.items()}


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"{short_repr(value)} is no number")
    return float(value)


def by_words(tokens: Sequence[Token]) -> list[list[Token]]:
    """Groups subwords by words. A word ends where a blank follows.

    tokens: the subwords of a translation."""
    words = list[list[Token]]()
    for token in tokens:
        if not words or token.text.startswith("▁"):
            words.append([])
        words[-1].append(token)
    return words


def word_signs(translation: Translation, words: Sequence[Sequence[Token]]) -> list[Signs]:
    """The signs of every word.

    translation: an explained translation.
    words: its subwords, by words."""
    logs = [[_log(token.probability) for token in word] for word in words]
    means = [_mean(of_word) for of_word in logs]
    whole = _mean([log_prob for of_word in logs for log_prob in of_word])
    matches = [match.segment.tgt.split() for match in translation.matches]
    best, is_taken = _best(translation), float(translation.origin != "model")
    signs = list[Signs]()
    for index, word in enumerate(words):
        text = "".join(decode_subwords([token.text for token in word])).strip()
        copied, gate = _copied(word), _mean([token.copy_gate for token in word])
        fuzzy = _mean([_fuzzy(token, translation) for token in word])
        signs.append(
            {
                "log_prob": means[index],
                "log_prob_min": min(logs[index]),
                "prob_min": math.exp(min(logs[index])),
                "plain": _mean([_log(token.plain) for token in word]),
                "copied": copied,
                "recalled": _mean([t.recalled / max(t.probability, MIN_PROBABILITY) for t in word]),
                "copy_gate": gate,
                "q": _mean([max((s.weight for s in t.attention), default=0.0) for t in word]),
                "fuzzy": fuzzy,
                "copied_fuzzy": copied * fuzzy,
                "before": _mean(means[max(0, index - WINDOW) : index]),
                "behind": _mean(means[index + 1 : index + 1 + WINDOW]),
                "segment": whole,
                "best": best,
                "copied_best": copied * best,
                "gate_best": gate * best,
                "in_matches": sum(text in match for match in matches[:4]) / 4,
                "taken": is_taken,
            }
        )
    return signs


def segment_signs(
    translation: Translation, words: Sequence[Sequence[Token]], logits: Sequence[float]
) -> Signs:
    """The signs of the whole translation.

    translation: an explained translation.
    words: its subwords, by words.
    logits: b + w x of every word."""
    logs = [_log(token.probability) for word in words for token in word]
    return {
        "log_prob": _mean(logs),
        "log_prob_min": min(logs),
        "logit": _mean(logits),
        "logit_min": min(logits),
        "copied": _mean([_copied(word) for word in words]),
        "best": _best(translation),
        "length": math.log(len(words)),
        "taken": float(translation.origin != "model"),
    }


def logit(weights: Mapping[str, float], signs: Signs) -> float:
    """The value b + w x.

    weights: w by the names of the signs, and b by "bias".
    signs: x by the same names."""
    return weights["bias"] + sum(weights[name] * value for name, value in signs.items())


def probability(logit: float) -> float:
    """The value 1 / (1 + exp(-x)).

    logit: x."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))


def _log(p: float) -> float:
    return math.log(max(p, MIN_PROBABILITY))


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def _copied(word: Sequence[Token]) -> float:
    return _mean([token.copied / max(token.probability, MIN_PROBABILITY) for token in word])


def _fuzzy(token: Token, translation: Translation) -> float:
    """The fuzzy scores of what a token has read, summed by their weights."""
    matches = translation.matches
    sources = [s for s in token.attention if s.match < len(matches)]
    return sum(s.weight * matches[s.match].score for s in sources)


def _best(translation: Translation) -> float:
    return max((match.score for match in translation.matches), default=0.0)
