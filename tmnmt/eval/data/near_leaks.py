"""Near leaks: references that stand as they are in a memory, or in what a model has learned from,
whatever their source is there. A system can then have them ready, though no test source is known
to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tmnmt.text import normalise, words

FEWEST_WORDS = 8  # of a reference; shorter ones are alike by chance


@dataclass(frozen=True)
class NearLeaks:
    """places: by the name of a memory or of a model's training text, the numbers of the test
    segments of which a reference stands there. unknown: the models of which no training text is
    named."""

    places: Mapping[str, Sequence[int]]
    unknown: Sequence[str] = ()

    @property
    def segments(self) -> list[int]:
        """The test segments that any place has, in order."""
        return sorted({number for numbers in self.places.values() for number in numbers})


def long_targets(targets: Iterable[str]) -> set[int]:
    """The targets of FEWEST_WORDS words or more, each as a hash of what `normalise` makes of it."""
    return {hash(normalise(target)) for target in targets if words(target) >= FEWEST_WORDS}


def near_leaks(
    references: Sequence[Sequence[str]],
    places: Mapping[str, Collection[int]],
    unknown: Sequence[str] = (),
) -> NearLeaks:
    """references: R lists. places: by place its `long_targets`."""
    hashes = [long_targets(of_segment) for of_segment in zip(*references, strict=True)]
    return NearLeaks(
        {
            name: [
                number
                for number, forms in enumerate(hashes)
                if any(form in targets for form in forms)
            ]
            for name, targets in places.items()
        },
        unknown,
    )
