"""Translations that are the target of a match as it stands, although the source of the match says
something else. A decoder that follows a good pair word by word may pass over what its own source
has in another place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from tmnmt.checks import Check
from tmnmt.index.fuzzy import word_edits
from tmnmt.index.skeleton import NUMBER, bone, skeleton
from tmnmt.languages import data_for
from tmnmt.segments import Translation
from tmnmt.text import match_tokens, token_spans

Pair = tuple[str, str]  # source, target


class SourceEdit(NamedTuple):
    """A stretch of words that a pair's source has where another source has other words. Either may
    be empty.

    start: where it begins in the pair's source, in match tokens.
    end: where it ends there.
    new_start: where it begins in the other source, in match tokens.
    new_end: where it ends there."""

    start: int
    end: int
    new_start: int
    new_end: int


def source_edits(src: str, other: str, lang: str) -> list[SourceEdit]:
    """Where two sources differ in words. Numbers, case, punctuation and articles do not count.

    src: the source of a pair.
    other: the other source.
    lang: their language."""
    tokens, others = (
        [bone(token) or token for token in match_tokens(text)] for text in (src, other)
    )
    slight = {NUMBER, *data_for(lang).small_words.get("", "").split()}
    runs = groupby(word_edits(tokens, others), lambda edit: edit.tag == "equal")
    stretches = [[*run] for is_equal, run in runs if not is_equal]
    edits = [
        SourceEdit(run[0].x_start, run[-1].x_end, run[0].y_start, run[-1].y_end)
        for run in stretches
    ]
    return [
        edit
        for edit in edits
        if any(
            bone(word) and word not in slight
            for word in (*tokens[edit.start : edit.end], *others[edit.new_start : edit.new_end])
        )
    ]


def replayed(pairs: Sequence[Pair], src: str, tgt: str, lang: str) -> Pair | None:
    """The first of the pairs whose target a translation is, but for numbers, case and punctuation,
    and whose source differs from its source in words; None where there is none, and where a pair
    with this target has the source.

    pairs: the pairs.
    src: the source.
    tgt: its translation.
    lang: the language of the source."""
    target = skeleton(tgt)
    same = [pair for pair in pairs if target and skeleton(pair[1]) == target]
    edited = [pair for pair in same if source_edits(pair[0], src, lang)]
    return edited[0] if len(edited) == len(same) and edited else None


def replay_checks(translation: Translation, lang: str) -> list[Check]:
    """The check that names a replay in a finished translation.

    translation: what the model wrote, with its matches.
    lang: the language of the source."""
    if translation.origin != "model":
        return []
    pairs = [(match.segment.src, match.segment.tgt) for match in translation.matches]
    pair = replayed(pairs, translation.src, translation.tgt, lang)
    if pair is None:
        return []
    edits = source_edits(pair[0], translation.src, lang)
    return [Check("replay", "; ".join(_in_words(edit, pair[0], translation.src) for edit in edits))]


def _in_words(edit: SourceEdit, src: str, other: str) -> str:
    theirs = _stretch(src, edit.start, edit.end)
    ours = _stretch(other, edit.new_start, edit.new_end)
    return f"{theirs or 'nothing'} (match) for {ours or 'nothing'}"


def _stretch(text: str, start: int, end: int) -> str:
    spans = token_spans(text)
    return text[spans[start][0] : spans[end - 1][1]] if end > start else ""
