"""A translation and where it came from, as coloured text for people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TextIO

from tmnmt.cli.matches import has_colour, per_cent
from tmnmt.cli.streams import console as console_of
from tmnmt.quantities import quantity
from tmnmt.records import UnitLocation, as_written, words
from tmnmt.segments import Token, Translation, Work

if TYPE_CHECKING:
    from rich.text import Text

    from tmnmt.cli.output_report import Writing

STYLES = {"memory": "green", "cache": "magenta", "term": "cyan", "model": ""}
# where there is no colour
MARKS = {"memory": ("[", "]"), "cache": ("{", "}"), "term": ("<", ">"), "model": ("", "")}
# what was taken without the model, by origin
ORIGIN_TITLES = {
    "memory": "an exact match, as it stands",
    "adapted": "a full match, adapted in numbers, case, end mark or codes",
    "fuzzy": "a match worth less than 100, as it stands: a draft",
}
LEGEND = {
    "memory": "from the memory",
    "cache": "from the session cache",
    "term": "a term",
    "model": "from the model",
}


def explained(stream: TextIO) -> Writing:
    """Prints a translation for people to `stream`: coloured on a terminal, with brackets where
    there is no colour. One of a file has its place before it."""
    console = console_of(stream)
    colour = has_colour(console)
    console.print(legend(colour))

    def show(translation: Translation, location: UnitLocation | None = None) -> None:
        if location is not None:
            console.print(_place(location, colour))
        for line in lines_of(translation, colour):
            console.print(line)

    return show


def _place(location: UnitLocation, colour: bool) -> Text:
    from rich.text import Text

    name = f" {location.id}" if location.id else ""
    return Text(f"{location.file}:{location.line}{name}", style="dim" if colour else "")


def legend(colour: bool) -> Text:
    """What the colours or the brackets mean."""
    from rich.text import Text

    result = Text("  ").join(
        _marked(description, origin, colour) for origin, description in LEGEND.items()
    )
    return result.append(": a word by the greater part of its subwords")


def _marked(words: str, origin: str, colour: bool) -> Text:
    from rich.text import Text

    opening, closing = ("", "") if colour else MARKS[origin]
    return Text(opening + words + closing, style=STYLES[origin] if colour else "")


def lines_of(translation: Translation, colour: bool) -> Iterator[Text]:
    """Source, target by origin, the numbers behind it, and every match with what was
    read from it."""
    from rich.text import Text

    if not translation.src.strip():
        yield Text("")
        return
    yield Text(translation.src, style="dim" if colour else "")
    yield _target(translation, colour)
    if text := as_written(translation):
        yield Text(f"  written: {text}")
    if translation.origin in ORIGIN_TITLES:
        yield Text(f"  {ORIGIN_TITLES[translation.origin]}", style="dim" if colour else "")
    elif translation.tokens:
        yield Text("  " + numbers(translation), style="dim" if colour else "")
    if translation.work is not None:
        yield Text("  " + work_line(translation.work), style="dim" if colour else "")
    for number, match in enumerate(translation.matches):
        document = f"  ({match.segment.document})" if match.segment.document else ""
        reading = f"  {copied(translation, number)}" if translation.tokens else ""
        yield Text(f"  match {number + 1}  {match.score:.2f}{per_cent(match)}{reading}{document}")
        yield Text(f"    {match.segment.src}", style="dim" if colour else "")
        yield Text(f"    {match.segment.tgt}", style="green" if colour else "")
        if match.agreement is not None and match.agreement.rivals:
            yield Text(f"    {match.agreement}", style="yellow" if colour else "")
    yield Text("")


def _target(translation: Translation, colour: bool) -> Text:
    """The target by origin, as a whole where its tokens are not known."""
    from rich.text import Text

    if translation.tokens:
        return target(translation.tokens, colour)
    if translation.origin in ORIGIN_TITLES:
        return _marked(translation.tgt, "memory", colour)
    return Text(translation.tgt)


def target(tokens: tuple[Token, ...], colour: bool) -> Text:
    """The target's words, each in the colour (or the brackets) of what most of it came from."""
    from rich.text import Text

    runs = groupby(words(tokens), key=lambda word: word[1])
    return Text(" ").join(
        _marked(" ".join(word for word, _ in run), origin, colour) for origin, run in runs
    )


def numbers(translation: Translation) -> str:
    """Origins counted and the mean gates."""
    tokens = translation.tokens
    origins = Counter(token.origin for token in tokens)
    parts = [] if math.isnan(translation.score) else [f"score {translation.score:.3f}"]
    parts.append(", ".join(f"{count} {name}" for name, count in origins.most_common()))
    parts += [f"{name} gate {mean:.2f} on average" for name, mean in mean_gates(tokens).items()]
    return "; ".join(parts)


def work_line(work: Work) -> str:
    """How much every stage has done, in its order."""
    parts = []
    if work.search is not None:
        candidates, distances = work.search
        parts += [quantity(candidates, "candidate"), quantity(distances, "edit distance")]
    parts.append(f"keys of {quantity(work.pairs, 'pair')}, {quantity(work.positions, 'position')}")
    if work.lookups:
        lookups = quantity(work.lookups, "lookup")
        parts.append(f"{lookups} among all keys, {quantity(work.neighbours, 'neighbour')}")
    return "work: " + "; ".join(parts)


def mean_gates(tokens: Sequence[Token]) -> dict[str, float]:
    """How far what each memory layer did was let in, as the mean over all tokens, by its name; of
    those alone that were."""
    names = dict.fromkeys(entry.name for token in tokens for entry in token.provenance)
    sums = {
        name: sum(
            entry.gate for token in tokens for entry in token.provenance if entry.name == name
        )
        for name in names
    }
    return {name: total / len(tokens) for name, total in sums.items() if total}


def copied(translation: Translation, number: int) -> str:
    """How many subwords were read mostly from this match."""
    tokens = [token for token in translation.tokens if token.origin == "memory" and token.sources]
    heaviest = Counter(_heaviest(token) for token in tokens)
    return f"{heaviest[number]} of {quantity(len(translation.tokens), 'subword')}"


def _heaviest(token: Token) -> int:
    weights: dict[int, float] = {}
    for source in token.sources:
        weights[source.match] = weights.get(source.match, 0.0) + source.weight
    return max(weights, key=lambda match: weights[match])
