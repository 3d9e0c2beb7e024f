"""Takes over a segment that the memory holds itself. Its translation there is taken as it stands,
as translators expect of an exact match, or it is adapted where numbers or case are all that
differs.

The model is not asked. So the probability is 1, and the score, which is its logarithm, is 0. Every
subword counts as copied from that pair with weight 1, from the place where it stands there. What
was put into the translation stands nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tmnmt.codes.record import Code, alike
from tmnmt.index.fuzzy import SLACK, word_edits
from tmnmt.index.match_value import FULL
from tmnmt.segments import Agreement, Match, MemorySource, Provenance, Rival, Token, Translation
from tmnmt.text import normalise
from tmnmt.vocab import Vocabulary

RIVALS = 5  # other translations that are told


def has_codes(match: Match, codes: Sequence[Code]) -> bool:
    """Whether the source of a match has the codes of a text. Placeholders that are written in the
    text do not count.

    match: the match.
    codes: the codes of the text."""
    return alike(match.segment.src_codes, codes)


def agreeing(matches: Sequence[Match], codes: Sequence[Code] | None) -> Sequence[Match]:
    """The matches that have the codes of a text. Where there are none, or where no codes are given,
    these are all matches.

    matches: the matches.
    codes: the codes of the text; None where it can have none."""
    if codes is None:
        return matches
    return [match for match in matches if has_codes(match, codes)] or matches


def commonest(matches: Sequence[Match]) -> Match | None:
    """The newest match of the most frequent target; None where there is no match. Of targets that
    are equally frequent, the one with the newest match is taken.

    matches: exact matches, which may have several targets."""
    times = Counter(match.tgt for match in matches)
    # of equal ones the first, which every index answers with the newest and then the smallest id
    # first
    return max(matches, key=lambda m: (times[m.tgt], m.segment.changed), default=None)


def worth_most(matches: Sequence[Match], min_worth: int) -> Match | None:
    """The commonest target of the greatest worth, with how far the other matches agree; None where
    there is none. Matches that need no change come first.

    matches: the matches, with their worth.
    min_worth: what a match has to be worth at least, from 0 to 102."""
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
    """How many matches translate as one match does. Blanks do not count.

    match: the match.
    equals: all matches that are worth the same."""
    times, texts = Counter[str](), dict[str, str]()
    for tgt, count in Counter(equal.tgt for equal in equals).items():
        text = normalise(tgt)
        times[text] += count
        texts.setdefault(text, tgt)
    target = normalise(match.tgt)
    rivals = [Rival(texts[text], count) for text, count in times.most_common() if text != target]
    return Agreement(times[target], len(equals), tuple(rivals[:RIVALS]))


def value_of(match: Match) -> int:
    """What a match is worth, from 0 to 102. Where this was not computed, it is the fuzzy score in
    per cent.

    match: the match."""
    return match.worth.value if match.worth is not None else int(FULL * match.score + SLACK)


def value_but_codes(match: Match) -> int:
    """What a match would be worth if it had the codes of the text, which its translation gets.

    match: the match."""
    reasons = match.worth.reasons if match.worth is not None else ()
    return value_of(match) - sum(reason.points for reason in reasons if reason.what == "codes")


def copy_match(
    text: str,
    match: Match,
    listed_matches: Sequence[Match],
    vocab: Vocabulary | None = None,
    explain: bool = False,
) -> Translation:
    """The translation that takes over the target of a match.

    text: the text that is translated.
    match: the match, which is one of those listed.
    listed_matches: the matches that the translation lists.
    vocab: the vocabulary by which tokens are made; None makes none.
    explain: whether every subword comes with its origin."""
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
    """The origin of a translation that is taken from a match: "memory" for a full match as it
    stands, "adapted" for a full match with something put in, and "fuzzy" for one that is worth less
    than 100 for another reason than its codes, which the translation gets from its source.

    match: the match."""
    if value_but_codes(match) < FULL:
        return "fuzzy"
    return "memory" if match.edits == 0 and match.tgt == match.segment.tgt else "adapted"


def _places(ids: Sequence[int], theirs: Sequence[int]) -> list[int | None]:
    """Where every subword stands in the pair's target, with None for what was put in."""
    places: list[int | None] = [None] * len(ids)
    edits = word_edits(list(map(str, ids)), list(map(str, theirs)))
    for tag, start, end, their_start, their_end in edits:
        if tag == "equal":
            places[start:end] = range(their_start, their_end)
    return places


def _copied(text: str, sources: tuple[MemorySource, ...]) -> Token:
    copied = Provenance("copy", weight=1.0, gate=1.0, source="memory", is_mixed=True)
    return Token(text, "memory", 1.0, 0.0, 0.0, (copied,), sources=sources, attention=sources)
