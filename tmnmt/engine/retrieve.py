"""The best pairs for a sentence out of several memories, and of what a session has confirmed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tmnmt.codes.record import Beside, Code, Text, inline, native
from tmnmt.codes.tags import html_tags, with_tags
from tmnmt.config.options import Penalties, Search, Selection
from tmnmt.engine.verbatim import has_codes, value_of, worth_most
from tmnmt.index.base import Index, best_of
from tmnmt.index.covering import covering
from tmnmt.index.embedded.delta import Delta
from tmnmt.index.pairs import OVERSAMPLED, copies, distinct
from tmnmt.index.same_skeleton import SKELETONS_A_QUERY, of_skeleton, same_skeleton
from tmnmt.index.select import candidates, selected
from tmnmt.index.skeleton import skeleton
from tmnmt.index.worth import FULL, IN_FULL, Asked, Trust, most_worth, valued
from tmnmt.segments import Match
from tmnmt.text import words

SHORT = 3  # words: of a shorter segment a similar one mostly says something else


class Retriever:
    """Searches `indexes`, which are trusted in this order (`trust`; not given, in full). Of pairs
    with equal source and target only the first is given; which of them, `selection` says."""

    def __init__(
        self,
        indexes: Sequence[Index],
        top_k: int,
        threshold: float,
        selection: Selection = Selection(),
        short_threshold: float = Search.short_threshold,
        penalties: Penalties = Penalties(),
        trust: Sequence[Trust] = (),
    ) -> None:
        self.indexes = list(indexes)
        self.top_k = top_k
        self.threshold = threshold
        self.selection, self.short_threshold = selection, short_threshold
        self.penalties = penalties
        self.trust = [*trust, *[IN_FULL] * (len(self.indexes) - len(trust))]

    def search(
        self,
        texts: Sequence[str],
        confirmed: Sequence[Delta] = (),
        codes: Sequence[Sequence[Code] | None] = (),
        beside: Sequence[Beside] = (),
    ) -> list[tuple[Match, ...]]:
        """For every text its at most `top_k` distinct pairs, chosen from the best; of equal score
        the newest is the better one, then the one with the smallest id. Where a memory is trusted
        less, they are chosen by what they are worth. Each says what it is worth.

        confirmed: for every text what its session has confirmed and no index keeps, which is
        searched, too. codes, beside: as in `exact`; they count for what a match is worth, and not
        for which are found."""
        if not texts:
            return []
        count = candidates(self.selection, self.top_k) * OVERSAMPLED
        answers = [index.search(texts, count, self.threshold) for index in self.indexes]
        if confirmed:
            pairs = zip(texts, confirmed, strict=True)
            answers.append([delta.search(text, self.threshold, False, "") for text, delta in pairs])
        return [
            tuple(self._choose(one, [answer[at] for answer in answers]))
            for at, one in enumerate(_asked(texts, codes, beside))
        ]

    def fragments(self, text: str, k: int) -> tuple[Match, ...]:
        """At most `k` distinct pairs that together cover most of the rare phrases of a text, of the
        first memory that has any."""
        for index in self.indexes:
            if matches := distinct(covering(index, text, k)):
                return tuple(matches)
        return ()

    def exact(
        self,
        texts: Sequence[str],
        codes: Sequence[Sequence[Code] | None] = (),
        beside: Sequence[Beside] = (),
        confirmed: Sequence[Delta] = (),
        least: int = FULL,
    ) -> list[Match | None]:
        """For every text the match whose target is taken as it stands, or adapted: one that is
        worth `least` or more. None where no memory holds one.

        codes: of every text; where a pair has the same ones, others do not count. None: they are
        not looked at. beside: the texts before and after each, and its id. confirmed: as in
        `search`."""
        asked = _asked(texts, codes, beside)
        alike = [copies(index, texts) for index in self.indexes]
        every = self._valued(alike, asked)
        by_trust = zip(self.indexes, self.trust, strict=True)
        tagged = [tags_as_text(index, asked, self.penalties, trust) for index, trust in by_trust]
        as_text = [[match for by_text in tagged for match in by_text[one]] for one in asked]
        taken = [
            worth_most(theirs, least) or worth_most(matches, least)
            for theirs, matches in zip(as_text, every, strict=True)
        ]
        # where the text itself is worth enough, no other of its skeleton is looked for
        left = [row for row, match in enumerate(taken) if match is None or value_of(match) < FULL]
        others = [asked[row] for row in left]
        by_index = [_near(index, [one.text for one in others], least) for index in self.indexes]
        deltas = [confirmed[row] for row in left] if confirmed else []
        valued = self._valued(by_index, others, deltas)
        for row, matches in zip(left, valued, strict=True):
            other, same = worth_most(matches, least), taken[row]
            if same is None or (other is not None and value_of(other) > value_of(same)):
                taken[row] = other
        trusted = {
            id(match.segment): trust
            for answers in (alike, by_index)
            for by_text, trust in zip(answers, self.trust, strict=True)
            for matches in by_text.values()
            for match in matches
        }
        return [
            match and self._less_for_codes(match, one, trusted.get(id(match.segment), IN_FULL))
            for match, one in zip(taken, asked, strict=True)
        ]

    def _valued(
        self,
        by_index: Sequence[dict[str, list[Match]]],
        asked: Sequence[Asked],
        confirmed: Sequence[Delta] = (),
    ) -> list[list[Match]]:
        """For every text what all indexes have found for it, with its worth; and what its session
        has `confirmed` of its skeleton."""
        every = []
        for at, one in enumerate(asked):
            alike = [by_text[one.text] for by_text in by_index]
            sources: list[tuple[Index | None, Trust]] = [
                *zip(self.indexes, self.trust, strict=True)
            ]
            if confirmed:
                alike.append(_of_session(one.text, confirmed[at]))
                sources.append((None, IN_FULL))
            codes = one.codes
            has_same_codes = codes is not None and any(
                has_codes(m, codes) for matches in alike for m in matches
            )
            query = one if has_same_codes else replace(one, codes=None)
            every.append(
                [
                    match
                    for matches, (index, trust) in zip(alike, sources, strict=True)
                    for match in valued(query, matches, index, self.penalties, trust)
                ]
            )
        return every

    def least(self, text: str) -> float:
        """The score that a match of a text must have."""
        return max(self.threshold, self.short_threshold if words(text) <= SHORT else 0.0)

    def _choose(self, asked: Asked, by_index: Sequence[list[Match]]) -> list[Match]:
        text = asked.text
        least = self.least(text)
        sources: list[tuple[Index | None, Trust]] = [
            *zip(self.indexes, self.trust, strict=True),
            (None, IN_FULL),  # what was confirmed is the user's own
        ]
        source_of = {
            id(match.segment): source
            for source, matches in zip(sources, by_index, strict=False)
            for match in matches
        }
        every = [match for matches in by_index for match in matches if match.score >= least]

        def with_worth(match: Match, asked: Asked) -> Match:
            index, trust = source_of[id(match.segment)]
            [one] = valued(replace(asked, codes=None), [match], index, self.penalties, trust)
            return self._less_for_codes(one, asked, trust)

        if any(each != IN_FULL for each in self.trust):
            best = most_worth([with_worth(match, Asked(text)) for match in every], len(every))
        else:
            best = best_of(every, len(every))
        pairs = distinct(best)[: candidates(self.selection, self.top_k)]
        chosen = selected(self.selection, text, pairs, self.top_k)
        return [with_worth(match, asked) for match in chosen]

    def _less_for_codes(self, match: Match, asked: Asked, trust: Trust) -> Match:
        """The match, worth less where its codes are others than those of the text."""
        off = self.penalties.penalty_codes
        if match.worth is None or asked.codes is None or has_codes(match, asked.codes) or not off:
            return match
        [one] = valued(asked, [match], None, self.penalties, trust)
        return replace(match, worth=one.worth)


def _asked(
    texts: Sequence[str], codes: Sequence[Sequence[Code] | None], beside: Sequence[Beside]
) -> list[Asked]:
    """The texts with their codes and places; without codes or places where none are given."""
    return [
        Asked(text, tuple(own) if own is not None else None, *near)
        for text, own, near in zip(
            texts, codes or [None] * len(texts), beside or [("", "")] * len(texts), strict=True
        )
    ]


def tags_as_text(
    index: Index, asked: Sequence[Asked], penalties: Penalties, trust: Trust
) -> dict[Asked, list[Match]]:
    """For every text its copies that have the same tags as text: a catalogue that became a memory
    has them so. Here they are codes."""
    written = {one: _as_text(one) for one in asked}
    copied = copies(index, [text for text in written.values() if text])
    return {
        one: [
            match
            for match in valued(one, [*map(_tagged, copied[text])], index, penalties, trust)
            if has_codes(match, one.codes or ())
        ]
        if text
        else []
        for one, text in written.items()
    }


def _as_text(asked: Asked) -> str:
    """The text with its tags in it, as its own format has them; "" where it has no codes but
    placeholders, or one that does not say what it is there."""
    codes = asked.codes or ()
    if not (own := inline(codes)) or not all(map(native, own)):
        return ""
    return Text(asked.text, tuple(replace(code, markup=native(code)) for code in codes)).written()


def _tagged(match: Match) -> Match:
    """The match with codes in place of the tags in its texts."""
    segment = match.segment
    src, tgt = (with_tags(Text(side), html_tags) for side in (segment.src, segment.tgt))
    plain = replace(segment, src=src.plain, tgt=tgt.plain)
    return replace(match, segment=replace(plain, src_codes=src.codes, tgt_codes=tgt.codes))


def _near(index: Index, texts: Sequence[str], least: int) -> dict[str, list[Match]]:
    """For every text what may be worth `least` beside segments of the same text: some of the same
    skeleton; and where a full match is not asked for, the most alike."""
    alike = same_skeleton(index, texts)
    if least >= FULL:
        return dict(zip(texts, alike, strict=True))
    similar = index.search(texts, SKELETONS_A_QUERY, least / FULL)
    return {
        text: [*{match.segment.id: match for match in (*bones, *others)}.values()]
        for text, bones, others in zip(texts, alike, similar, strict=True)
    }


def _of_session(text: str, confirmed: Delta) -> list[Match]:
    return of_skeleton(text, confirmed.same_skeleton(skeleton(text)), SKELETONS_A_QUERY)
