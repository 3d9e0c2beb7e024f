"""HTML as a tree: text becomes markup only when the tree is written, and is escaped there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, tostring

UNKNOWN = "–"  # of a figure that is not there
Child = Element | str


def e(tag: str, *children: Child, **attributes: str) -> Element:
    """An element with its children; `class_` is the attribute class, `data_x` is data-x."""
    element = Element(
        tag, {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    )
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            element.append(child)
            last = child
        elif last is None:
            element.text = (element.text or "") + child
        else:
            last.tail = (last.tail or "") + child
    return element


def html(element: Element) -> str:
    return tostring(element, encoding="unicode", method="html")


@dataclass(frozen=True)
class Cell:
    """A figure; `subtext` stands under it in small, `mark` behind it, with `label` for those who do
    not see it."""

    text: str
    subtext: str = ""
    best: bool = False
    mark: str = ""
    label: str = ""


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Child | Cell]],
    text_columns: int = 1,
) -> Element:
    """A table in a frame that scrolls by itself; the first cell of a row is its header. The first
    `text_columns` columns are text, the others figures."""
    head = e(
        "thead",
        e(
            "tr",
            *(
                e("th", name, scope="col", class_=_kind(i, text_columns))
                for i, name in enumerate(columns)
            ),
        ),
    )
    body = e(
        "tbody",
        *(e("tr", *(_cell(i, cell, text_columns) for i, cell in enumerate(row))) for row in rows),
    )
    whole = e("table", e("caption", e("span", caption)), head, body)
    return e("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _cell(column: int, cell: Child | Cell, text_columns: int) -> Element:
    kind = _kind(column, text_columns)
    content = _figure(cell) if isinstance(cell, Cell) else [cell]
    return e("td", *content, class_=kind) if column else e("th", *content, scope="row", class_=kind)


def _figure(cell: Cell) -> list[Child]:
    children: list[Child] = [e("strong", cell.text) if cell.best else cell.text]
    if cell.mark:
        children += [
            e(
                "span",
                cell.mark,
                e("span", f" {cell.label}", class_="unseen"),
                class_="mark",
                title=cell.label,
            )
        ]
    if cell.subtext:
        children.append(e("small", cell.subtext))
    return children


def _kind(column: int, text_columns: int) -> str:
    return "text" if column < text_columns else "figure"


def figure(value: float | None, digits: int = 2) -> str:
    """A number with so many digits behind the point; a dash when there is none."""
    return UNKNOWN if value is None else f"{value:,.{digits}f}".replace("-", "−")


def share(value: float | None) -> str:
    """A share of one as a percentage."""
    return UNKNOWN if value is None else f"{100 * value:.1f} %"
