"""Matches and translations as JSON says them, and tokens joined to words."""

from __future__ import annotations

import json
import math
import re
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from tmnmt.checks import CHECKS, Check, checks
from tmnmt.codes.record import Text
from tmnmt.codes.stored import listed
from tmnmt.segments import Alternative, Match, Segment, Token, Translation

_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")  # sentencepiece's byte fallback
# of what memory layers did with a token: properties of `Token`
TOKEN_SUMS = (
    "recalled",
    "copied",
    "copy_gate",
    "recall_gate",
    "fusion_gate",
    "cache_gate",
    "cache_effect",
    "fusion_effect",
)
DIGITS = 8  # of probabilities in JSON: their sums stay exact to 1e-5


def match_record(match: Match) -> dict[str, Any]:
    """{"id", "src", "tgt", "score", "document"}; the score to 8 digits. Where it is known what the
    match is worth, also "worth" and "reasons" (points by what they are for), and "adapted", its
    translation with the numbers or the case of the text, where that is another. Of a match that is
    taken as it stands, "agreement": {"copies", "total"}, and "rivals": [{"tgt", "copies"}] where
    the memories contradict themselves.

    match: the match."""
    segment = match.segment
    score = round(match.score, DIGITS)
    record: dict[str, Any] = {
        "id": segment.id,
        "src": segment.src,
        "tgt": segment.tgt,
        "score": score,
        "document": segment.document,
    }
    if match.worth is not None:
        record |= {"worth": match.worth.value, "reasons": dict(match.worth.reasons)}
        record |= {"adapted": match.worth.tgt} if match.worth.tgt else {}
    if (agreement := match.agreement) is not None:
        record["agreement"] = {"copies": agreement.copies, "total": agreement.total}
        rivals = [rival._asdict() for rival in agreement.rivals]
        record["agreement"] |= {"rivals": rivals} if rivals else {}
    return record


def token_record(token: Token) -> dict[str, Any]:
    """Every field of a token, and the sums over memory layers (`TOKEN_SUMS`); numbers to 8 digits,
    null where infinite.

    token: the token."""
    sums = {name: _rounded(getattr(token, name)) for name in TOKEN_SUMS}
    fields = {name: _rounded(value) for name, value in asdict(token).items()}
    lists = ("provenance", "sources", "attention", "slots")
    return fields | sums | {name: fields[name] for name in lists}


def alternative_record(alternative: Alternative) -> dict[str, Any]:
    """{"text", "probability", "origin", "tokens": [...]}. The origin is that of the greater part of
    the tokens.

    alternative: the alternative."""
    origin = Counter(token.origin for token in alternative.tokens).most_common(1)[0][0]
    tokens = [token_record(token) for token in alternative.tokens]
    return {
        "text": alternative.text,
        "probability": _rounded(alternative.probability),
        "origin": origin,
        "tokens": tokens,
    }


class UnitLocation(NamedTuple):
    """The segment of a file that a translation is of.

    file: the path of the file.
    line: its line, from 1.
    id: its name there; "" where it has none.
    context: what tells it from another one of the same source, such as msgctxt.
    repetition: whether it repeats an earlier segment."""

    file: str
    line: int
    id: str = ""
    context: str = ""
    repetition: bool = False


def json_line(translation: Translation, location: UnitLocation | None = None) -> str:
    """The record of a translation on one line.

    translation: the translation.
    location: the segment of a file that it is of; None where it is of none."""
    return json.dumps(translation_record(translation, location), ensure_ascii=False)


def translation_record(
    translation: Translation, location: UnitLocation | None = None
) -> dict[str, Any]:
    """{"src", "tgt", "origin", "score", "low", "unknown", "missing_numbers": [...], "checks":
    [...], "matches": [...], "tokens": [...]}; numbers to 8 digits, null where they are infinite or
    unknown.

    The missing numbers are those of the source that the model's translation lacks. The checks are
    what is found in it (`tmnmt.checks`), {"name", "what"} each. A segment with codes has
    "src_codes" and "tgt_codes", too, and one of a file begins with "file", "line", "id", "context"
    and "repetition". One with next best translations has "others", {"tgt", "score"} each. One with
    tokens, of a model that can say, has "confidence" and "words", {"text", "confidence"} each. One
    with tokens that the model has written has "work", the numbers of `tmnmt.segments.Work`.

    translation: the translation.
    location: the segment of a file that it is of; None where it is of none."""
    from tmnmt.numbers import missing_numbers

    is_own = translation.origin == "model"
    line = (location._asdict() if location is not None else {}) | {
        "src": translation.src,
        "tgt": translation.tgt,
        "origin": translation.origin,
        "score": _rounded(translation.score),
        "low": translation.low,
        "unknown": translation.unknown,
        "missing_numbers": missing_numbers(translation.src, translation.tgt) if is_own else [],
        "checks": [check._asdict() for check in checks_of(translation)],
        "matches": [match_record(match) for match in translation.matches],
        "tokens": [token_record(token) for token in translation.tokens],
    }
    line |= _codes_record(translation)
    if translation.confidence is not None:
        line["confidence"] = _rounded(translation.confidence)
        line["words"] = [
            {"text": word.text, "confidence": _rounded(word.confidence)}
            for word in translation.words
        ]
    if (work := translation.work) is not None:
        search = work.search._asdict() if work.search is not None else None
        line["work"] = {**work._asdict(), "search": search}
    if translation.others:
        line["others"] = [{"tgt": o.tgt, "score": _rounded(o.score)} for o in translation.others]
    return line


def pair_record(pair: Segment) -> dict[str, Any]:
    """{"src", "tgt"}; with codes, "src_codes" and "tgt_codes", too.

    pair: the pair."""
    return {"src": pair.src, "tgt": pair.tgt} | _codes_record(pair)


def _codes_record(pair: Translation | Segment) -> dict[str, Any]:
    if not (pair.src_codes or pair.tgt_codes):
        return {}
    return {
        "src_codes": listed(pair.src, pair.src_codes),
        "tgt_codes": listed(pair.tgt, pair.tgt_codes),
    }


def checks_of(translation: Translation) -> list[Check]:
    """What the checks find in a translation; in what a person wrote, placeholders and terms alone.

    translation: the translation."""
    from tmnmt.numbers import missing_numbers

    if not translation.origin:
        return [*translation.user_checks]
    src = Text(translation.src, translation.src_codes)
    tgt = Text(translation.tgt, translation.tgt_codes)
    if translation.origin != "model":
        return [*checks(src, tgt, ("placeholders",)), *translation.user_checks]
    lacking = missing_numbers(translation.src, translation.tgt)
    numbers = [Check("numbers", ", ".join(lacking))] if lacking else []
    return [*numbers, *checks(src, tgt, CHECKS), *translation.user_checks]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS) if math.isfinite(value) else None  # JSON has no infinity
    if isinstance(value, tuple | list):
        return [_rounded(item) for item in value]
    return {k: _rounded(v) for k, v in value.items()} if isinstance(value, dict) else value


def as_written(translation: Translation) -> str:
    """The target, where it is not what its tokens say by themselves: tags and placeholders are put
    in behind the model, capitals and numbers are mended. "" where it is.

    translation: the translation."""
    text = "".join(decode_subwords([token.text for token in translation.tokens])).strip()
    return "" if not text or text == translation.tgt.strip() else translation.tgt


def words(tokens: Sequence[Token]) -> list[tuple[str, str]]:
    """Subwords joined to words, each with the origin of the greater part of its subwords.

    tokens: the subwords."""
    return join_subwords([(token.text, token.origin) for token in tokens])


def join_subwords(subwords: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Subwords with their origins joined to words, each with the origin of the greater part of its
    subwords.

    subwords: the subwords, as the vocabulary writes them, each with its origin."""
    words: list[tuple[list[str], list[str]]] = []
    for text, origin in subwords:
        if not words or text.startswith("▁"):
            words.append(([], []))
        words[-1][0].append(text)
        words[-1][1].append(origin)
    return [
        ("".join(decode_subwords(pieces)).strip(" "), Counter(origins).most_common(1)[0][0])
        for pieces, origins in words
    ]


def decode_subwords(pieces: Sequence[str]) -> list[str]:
    """The text of every subword, with a blank where a word starts. Bytes such as <0xE2> are put
    together to characters, which stand at the last of their bytes; the others have no text.

    pieces: the subwords, as the vocabulary writes them."""
    decoder = getincrementaldecoder("utf-8")("replace")
    texts = []
    for piece in pieces:
        byte = _BYTE.fullmatch(piece)
        if byte:
            texts.append(decoder.decode(bytes([int(byte[1], 16)])))
        else:
            texts.append(decoder.decode(b"", final=True) + piece.replace("▁", " "))
    if texts:
        texts[-1] += decoder.decode(b"", final=True)
    return texts
