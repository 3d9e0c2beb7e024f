"""A segment that the memory holds itself: its translation there as it stands, as translators expect
of an exact match; or adapted, where numbers or case are all that differs.

The model is not asked: probability 1, score 0 (the logarithm of it), every subword copied from that
pair, and read from where it stands there, with weight 1. What was put into it stands nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tmnmt.codes.record import Code, alike, inline
from tmnmt.index.fuzzy import SLACK, word_edits
from tmnmt.index.match_value import FULL
from tmnmt.segments import Agreement, Match, MemorySource, Provenance, Rival, Token, Translation
from tmnmt.text import normalise
from tmnmt.vocab import Vocabulary

RIVALS = 5  # other translations that are told


def has_codes(match: Match, codes: Sequence[Code]) -> bool:
    """Whether its source has these codes, but for placeholders that are written in the text."""
    return alike(inline(match.segment.src_codes), inline(codes))


def agreeing(matches: Sequence[Match], codes: Sequence[Code] | None) -> Sequence[Match]:
    """Those that have these codes; where there are none, or no codes are given, all."""
    if codes is None:
        return matches
    return [match for match in matches if has_codes(match, codes)] or matches


def commonest(matches: Sequence[Match]) -> Match | None:
    """Of exact matches, which may have several targets, the newest of the most frequent target; of
    targets that are as frequent the one with the newest match. None where there is none."""
    times = Counter(match.tgt for match in matches)
    # of equal ones the first, which every index answers with the newest and then the smallest id
    # first
    return max(matches, key=lambda m: (times[m.tgt], m.segment.changed), default=None)


def worth_most(matches: Sequence[Match], min_worth: int) -> Match | None:
    """Of matches that are worth `min_worth` or more, the commonest target of the greatest worth;
    those that need no change come first. It says how far the others agree. None where there is
    none."""
    values = [match.worth.value if match.worth is not None else 0 for match in matches]
    best = max(values, default=0)
    if best < min_worth:
        return None
    equals = [match for match, value in zip(matches, values, strict=True) if value == best]
    most_alike = max(match.score for match in equals)
    whole = [match for match in equals if match.score == most_alike]
    chosen_from = whole if most_alike == 1.0 or best < FULL else equals
    match = commonest(chosen_from)
    return match and replace(match, agreement=agreement_of(match, chosen_from))


def agreement_of(match: Match, equals: Sequence[Match]) -> Agreement:
    """How many of these matches, which are worth the same, translate as `match` does, blanks
    aside."""
    times, texts = Counter[str](), dict[str, str]()
    for tgt, count in Counter(equal.tgt for equal in equals).items():
        text = normalise(tgt)
        times[text] += count
        texts.setdefault(text, tgt)
    target = normalise(match.tgt)
    rivals = [Rival(texts[text], count) for text, count in times.most_common() if text != target]
    return Agreement(times[target], len(equals), tuple(rivals[:RIVALS]))


def value_of(match: Match) -> int:
    """What a match is worth; where nobody has said, its fuzzy score in per cent."""
    return match.worth.value if match.worth is not None else int(FULL * match.score + SLACK)


def value_but_codes(match: Match) -> int:
    """What a match would be worth with the codes of the text, which its translation gets."""
    reasons = match.worth.reasons if match.worth is not None else ()
    return value_of(match) - sum(reason.points for reason in reasons if reason.what == "codes")


def copy_match(
    text: str,
    match: Match,
    listed_matches: Sequence[Match],
    vocab: Vocabulary | None = None,
    explain: bool = False,
) -> Translation:
    """The target of `match`, which is among the matches that are told; with `explain` the origin of
    every subword."""
    segments = [listed.segment for listed in listed_matches]
    is_listed = match.segment in segments
    number = segments.index(match.segment) if is_listed else 0
    matches = (*listed_matches[:number], match, *listed_matches[number + is_listed :])
    tokens: tuple[Token, ...] = ()
    if vocab is not None and explain:
        ids, theirs = vocab.encode(match.tgt), vocab.encode(match.segment.tgt)
        tokens = tuple(
            _copied(
                vocab.piece(word),
                () if position is None else (MemorySource(number, position, 1.0),),
            )
            for word, position in zip(ids, _places(ids, theirs), strict=True)
        )
    return Translation(text, match.tgt, 0.0, matches, tokens, origin_of(match))


def origin_of(match: Match) -> str:
    """What a translation that is taken from this match is: "memory", a full match as it stands;
    "adapted", a full match with something put in; "fuzzy", one that is worth less than 100 for
    another reason than its codes, which the translation gets from its source."""
    if value_but_codes(match) < FULL:
        return "fuzzy"
    return "memory" if match.edits == 0 and match.tgt == match.segment.tgt else "adapted"


def _places(ids: Sequence[int], theirs: Sequence[int]) -> list[int | None]:
    """Where every subword stands in the pair's own target; None of what was put in."""
    places: list[int | None] = [None] * len(ids)
    edits = word_edits(list(map(str, ids)), list(map(str, theirs)))
    for tag, start, end, their_start, their_end in edits:
        if tag == "equal":
            places[start:end] = range(their_start, their_end)
    return places


def _copied(text: str, sources: tuple[MemorySource, ...]) -> Token:
    copied = Provenance("copy", weight=1.0, gate=1.0, source="memory", is_mixed=True)
    return Token(text, "memory", 1.0, 0.0, 0.0, (copied,), sources=sources, attention=sources)
