"""The measures of Hashimoto et al. 2019, on lines worked by hand."""

from __future__ import annotations

import pytest
from sacrebleu import corpus_bleu

from tmnmt.eval.measures.tagged import tagged, without_tags

REFERENCE = 'Click <b id="1">the big red Save button</b> <ph/>now &amp; here, at once.'


@pytest.mark.parametrize(
    ("line", "structure", "match"),
    [
        (REFERENCE, 100, 100),
        ("<b>x</b><ph></ph>", 100, 100),  # names and nesting alone
        ("<ph/><b>x</b>", 100, 0),
        ("<b>x<ph/></b>", 100, 0),
        ("<b>x</b>", 100, 0),
        ("<b>x<ph/>", 0, 0),
        ("<b>x</b><ph/> & y", 0, 0),
    ],
)
def test_an_output_is_well_formed_and_has_the_elements_of_the_reference(
    line: str, structure: float, match: float
) -> None:
    found = tagged([line], [REFERENCE])
    assert (found.structure, found.match, found.lines) == (structure, match, 1)


def test_stretches_are_compared_in_their_places() -> None:
    moved = 'Click the big <b id="1">red Save button</b> <ph/>now &amp; here, at once.'
    right, wrong, lost = (
        tagged([line], [REFERENCE]) for line in (REFERENCE, moved, without_tags(REFERENCE))
    )
    assert right.xml_bleu == pytest.approx(100)
    assert 0 < wrong.xml_bleu < 100 and wrong.text_bleu == pytest.approx(100)
    assert lost.xml_bleu == 0 and lost.text_bleu == pytest.approx(100)
    parts = ["Click the big ", "red Save button", " ", "", "now & here, at once."]
    wanted = ["Click ", "the big red Save button", " ", "", "now & here, at once."]
    assert wrong.xml_bleu == pytest.approx(corpus_bleu(parts, [wanted]).score)


def test_a_reference_that_is_broken_and_no_line_at_all_are_errors() -> None:
    with pytest.raises(ValueError, match="not well-formed: '<b>'"):
        tagged([""], ["<b>"])
    with pytest.raises(ValueError, match="no line"):
        tagged([], [])
