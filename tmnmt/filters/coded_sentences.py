"""Sentences with codes between them, such as a line break or a footnote number: each is translated
as a text of its own, and what stands between them stands there again.

    The permit is valid.<sup>1</sup> The fee is $250.    the text
    The permit is valid.     The fee is $250.            its sentences
    <sup>1</sup>                                         what stands between them

A line break ends a sentence, unless the next line goes on in small letters. Other codes stand
between sentences where a mark says that one ends. A span that is inside one sentence stays in
it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tmnmt.codes.breaks import is_tab, line_ends
from tmnmt.codes.notes import notes
from tmnmt.codes.record import Part, Source, Text, join_parts, pairs
from tmnmt.filters.contract import Filter, Split, Undo
from tmnmt.filters.sentence_ends import WORDS, is_abbreviated, words

_RUN = re.compile(r"\s+|\S+")
_BULLET = re.compile(r"[-–—•·▪◦‣*+>]+")
_CLOSING = "\"'”’»)\\]"
_SENTENCE_END = re.compile(rf"([.!?…。！？])[{_CLOSING}]*$")
_LINE_END = re.compile(rf"[.!?…。！？:;：；][{_CLOSING}]*$")
_OPENING = "\"'“‘«([¿¡ \u00a0\u202f"


class CodedSentences(Filter):
    """Translates sentences one by one that a line break or another code stands between."""

    is_for_people = True

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        parts = coded_sentences(source) if isinstance(source, Text) else None
        return source, None if parts is None else SplitSentences(parts)


@dataclass(frozen=True)
class Sentences:
    """The sentences of a text. `frames`: what stands before each, and behind the last."""

    frames: tuple[tuple[Part, ...], ...]
    texts: tuple[Text, ...]

    def join(self, texts: Sequence[Text]) -> Text:
        """The whole text, with other sentences between the frames.

        texts: the sentences, in order."""
        parts = [*self.frames[0]]
        for text, frame in zip(texts, self.frames[1:], strict=True):
            parts += [*map(_spaced, text.parts()), *frame]
        return join_parts(parts)


def _spaced(part: Part) -> Part:
    """A blank that stood at an end of a sentence, between words."""
    if isinstance(part, str) or part[0].kind != "blank":
        return part
    return part[0], part[1] or " "


class SplitSentences(Split):
    """The sentences of one text, and what stands between them."""

    is_optional = True

    def __init__(self, parts: Sentences) -> None:
        """parts: the sentences, and what stands between them."""
        self._sentences = parts
        self.texts = parts.texts

    def pairs(self, src: Text, tgt: Text) -> list[tuple[Text, Text] | None]:
        """The sentences of a pair that has as many on both sides."""
        sides = [coded_sentences(side) for side in (src, tgt)]
        texts = [side.texts if side is not None else () for side in sides]
        if any(len(side) != len(self.texts) for side in texts):
            return [None for _ in self.texts]
        return [*zip(*texts, strict=True)]

    def join(self, targets: Sequence[Text]) -> Text:
        return self._sentences.join(targets)


def coded_sentences(text: Text) -> Sentences | None:
    """The sentences of a text that have codes between them; None where there are fewer than two.

    text: the text."""
    if not text.codes:
        return None
    runs = _Runs(text)
    cores = runs.cores()
    return runs.sentences(cores) if len(cores) > 1 else None


class _Runs:
    """A text as words, white space and codes, each by itself."""

    def __init__(self, text: Text) -> None:
        self.parts = [part for whole in text.parts() for part in _cut(whole)]
        places = [index for index, part in enumerate(self.parts) if not isinstance(part, str)]
        self.partners = {places[a]: places[b] for a, b in pairs(text.codes).items()}
        in_notes = {i for a, b in notes(text).items() for i in range(places[a], places[b])}
        self._is_word = [
            _is_word(part) and index not in in_notes for index, part in enumerate(self.parts)
        ]
        self._leave_out_bullets()

    def _leave_out_bullets(self) -> None:
        """Lets the mark of a list stand between the sentences, and not in the one behind it."""
        begins_line = True
        for index, part in enumerate(self.parts):
            if _is_line_end(part):
                begins_line = True
            elif self._is_word[index]:
                is_bullet = isinstance(part, str) and _BULLET.fullmatch(part) is not None
                if begins_line and is_bullet and _plain_at(self.parts, index + 1).isspace():
                    self._is_word[index] = False
                begins_line = False

    def cores(self) -> list[tuple[int, int]]:
        """From where to where the words of every sentence stand."""
        cores = list[tuple[int, int]]()
        for start, end in self._word_runs():
            if cores and not self._ends(cores[-1], start):
                cores[-1] = cores[-1][0], end
            else:
                cores.append((start, end))
        return cores

    def _word_runs(self) -> Iterator[tuple[int, int]]:
        """Stretches of words with nothing between them."""
        start = -1
        for index, is_word in enumerate([*self._is_word, False]):
            if is_word and start < 0:
                start = index
            elif not is_word and start >= 0:
                yield start, index
                start = -1

    def _ends(self, core: tuple[int, int], following: int) -> bool:
        """Whether a sentence ends between words and those that follow."""
        gap = self.parts[core[1] : following]
        preceding, rest = self._text(*core), self._text(following, len(self.parts))
        if not (_has_letters(preceding) and _has_letters(rest)):
            return False
        codes = [part for part in gap if not isinstance(part, str)]
        if any(is_tab(*part) for part in codes):
            return True
        first = rest.lstrip(_OPENING)[:1]
        if lines := sum(line_ends(*part) for part in codes):
            return lines > 1 or not first.islower() or _LINE_END.search(preceding) is not None
        is_apart = any(_plain(part).isspace() for part in gap) or any(
            code.kind == "standalone" for code, _ in codes
        )
        inline = [code for code, _ in codes if code.kind != "blank"]
        mark = _SENTENCE_END.search(preceding)
        if mark is None or not (inline and is_apart and first.isalpha()) or first.islower():
            return False
        if mark[1] == "." and is_abbreviated(preceding[: mark.start()]):
            return False
        return min(words(preceding), words(rest)) >= WORDS or mark[1] in "。！？"

    def _text(self, start: int, end: int) -> str:
        return "".join(
            _plain(part)
            for part, is_word in zip(self.parts[start:end], self._is_word[start:end], strict=True)
            if is_word or _plain(part).isspace()
        )

    def sentences(self, cores: Sequence[tuple[int, int]]) -> Sentences:
        """The sentences with the spans that are inside each."""
        frames, texts, offset = list[tuple[Part, ...]](), list[Text](), 0
        for number, (start, end) in enumerate(cores):
            following = cores[number + 1][0] if number + 1 < len(cores) else len(self.parts)
            first = self._first(offset, start, end)
            last = self._last(start, end, following)
            frames.append(tuple(self.parts[offset:first]))
            texts.append(join_parts(self.parts[first:last]))
            offset = last
        return Sentences((*frames, tuple(self.parts[offset:])), tuple(texts))

    def _first(self, offset: int, start: int, end: int) -> int:
        """Where a sentence begins whose words stand from `start` to `end`: with the first code that
        opens a span which closes among them."""
        return next(
            (i for i in range(offset, start) if start <= self.partners.get(i, -1) < end), start
        )

    def _last(self, start: int, end: int, following: int) -> int:
        """Where it ends: with the last code that closes a span which opens among its words."""
        closing = [close for open, close in self.partners.items() if start <= open < end]
        return max([end, *(close + 1 for close in closing if close < following)])


def _cut(part: Part) -> Sequence[Part]:
    return _RUN.findall(part) if isinstance(part, str) else [part]


def _plain(part: Part) -> str:
    return part if isinstance(part, str) else part[1]


def _plain_at(parts: Sequence[Part], index: int) -> str:
    return _plain(parts[index]) if index < len(parts) else ""


def _is_word(part: Part) -> bool:
    """Whether it is no white space, and no code without words."""
    return bool(_plain(part).strip()) and not _is_line_end(part)


def _is_line_end(part: Part) -> bool:
    return not isinstance(part, str) and (line_ends(*part) > 0 or is_tab(*part))


def _has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))
