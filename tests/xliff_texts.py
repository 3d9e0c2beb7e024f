"""Random contents of <source> and <target>, and files of them, for hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from hypothesis import strategies as st

_LETTERS = st.text("abé€𝒳 \n\t&<>\"'", max_size=6).map(escape)
_WORDS = _LETTERS | st.sampled_from(["&#65;", "<![CDATA[<b>&]]>", "<!-- <g> -->", "<?p <x ?>"])
_ID = st.sampled_from("1234")
_NATIVE = st.sampled_from(["", "&lt;b&gt;", "x<sub>alt <!-- > --></sub>y"])
_ALONE1 = st.one_of(
    st.builds('<x id="{}" ctype="{}"/>'.format, _ID, st.sampled_from(["lb", "image", ">"])),
    st.builds(
        "<{0} id='{1}' rid='{1}'>{2}</{0}>".format, st.sampled_from(["bpt", "ept"]), _ID, _NATIVE
    ),
    st.builds('<{} id="{}"/>'.format, st.sampled_from(["bx", "ex", "g", "ph"]), _ID),
    st.builds('<ph id="{}">{}</ph>'.format, _ID, _NATIVE),
    st.builds(
        '<it id="{}" pos="{}">{}</it>'.format, _ID, st.sampled_from(["open", "close"]), _NATIVE
    ),
    st.just('<o:own xmlns:o="urn:o">text<o:own/></o:own>'),
)
_ALONE2 = st.one_of(
    st.builds('<ph id="{}" canReorder="{}"/>'.format, _ID, st.sampled_from(["yes", "no"])),
    st.builds('<sc id="{}"/>'.format, _ID),
    st.builds('<ec startRef="{}" />'.format, _ID),
    st.builds('<sm id="{}" type="comment"/>'.format, _ID),
    st.builds('<em startRef="{}"/>'.format, _ID),
    st.just('<cp hex="0001"/>'),
    st.builds('<pc id="{}"/>'.format, _ID),
)
_AROUND1 = st.sampled_from(
    [
        "<g id='{}'>{}</g >",
        '<mrk mid="{}" mtype="term">{}</mrk>',
        '<mrk mid="{}" mtype="protected">{}</mrk>',
    ]
)
_AROUND2 = st.sampled_from(
    ['<pc id="{}">{}</pc>', '<mrk id="{}">{}</mrk>', '<mrk id="{}" translate="no">{}</mrk>']
)


def _contents(
    alone: st.SearchStrategy[str], around: st.SearchStrategy[str]
) -> st.SearchStrategy[str]:
    inside = st.recursive(
        _WORDS | alone,
        lambda inner: st.builds(str.format, around, _ID, st.lists(inner, max_size=3).map("".join)),
        max_leaves=8,
    )
    return st.lists(inside, max_size=4).map("".join)


CONTENTS1 = _contents(_ALONE1, _AROUND1)
CONTENTS2 = _contents(_ALONE2, _AROUND2)

Pair = tuple[str, str | None]  # the contents of a source and of its target


def file1(pairs: Sequence[Pair], attributes: str = "") -> str:
    """An XLIFF 1.2 of these units, numbered."""
    units = "\n".join(
        f'<trans-unit id="{number}"><source>{source}</source>\n {_target(target)}</trans-unit>'
        for number, (source, target) in enumerate(pairs)
    )
    return (
        '<?xml version="1.0"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
        '<file original="a.html" source-language="en" target-language="fr" datatype="html"'
        f"{attributes}>\n<body>{units}</body></file></xliff>\n"
    )


def file2(pairs: Sequence[Pair]) -> str:
    """An XLIFF 2.0 of these segments, one a unit."""
    units = "\n".join(
        f'<unit id="{number}"><segment><source>{source}</source>{_target(target)}</segment></unit>'
        for number, (source, target) in enumerate(pairs)
    )
    return (
        '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" '
        f'trgLang="fr"><file id="f">{units}</file></xliff>'
    )


def _target(content: str | None) -> str:
    return "" if content is None else f"<target>{content}</target>"
