"""Tables and short lists of a page: captions, numbers to the right, and a box that scrolls where the page is narrow."""

from collections.abc import Iterable, Mapping, Sequence

from tunewise.models.labels import shared
from tunewise.report.colours import area_class, dash, line_class
from tunewise.report.markup import Child, Markup, element

_BAR = "bar"


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Child]],
    *,
    numbers: Sequence[str] = (),
    strong: int | None = None,
) -> Markup:
    """Return a table in a box that scrolls; columns named in `numbers` stand right, the row `strong` is bold.

    The first cell of a row is its heading; a column without a name holds bars.
    """
    looks = ["number" if name in numbers else _BAR if not name else None for name in columns]
    head = [
        element("th", name, scope="col", class_=look) if name else element("td")
        for name, look in zip(columns, looks, strict=True)
    ]
    body = [
        element("tr", *_cells(row, looks), class_="ours" if number == strong else None)
        for number, row in enumerate(rows)
    ]
    drawn = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", element("tr", *head)),
        element("tbody", *body),
    )
    return element("div", drawn, class_="scroll", role="region", aria_label=caption, tabindex="0")


def bar(share: float, number: int = 0) -> Markup:
    """Return a bar as long as a share of its cell; the number beside it says the same, so it is hidden from readers."""
    filled = element("rect", width=round(100 * min(max(share, 0.0), 1.0), 2), height=10, class_=area_class(number))
    return element("svg", filled, viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true")


def figures(entries: Iterable[tuple[str, str, str]]) -> Markup:
    """Return the most important numbers, large: what it is, the number, and a remark."""
    boxes = [
        element("div", element("dt", name), element("dd", value), element("dd", remark, class_="remark"))
        for name, value, remark in entries
    ]
    return element("dl", *boxes, class_="figures")


def legend(entries: Iterable[tuple[int, str]]) -> Markup:
    """Return what the lines of a picture mean, by their numbers."""
    return element("ul", *(_entry(number, name) for number, name in entries), class_="legend")


def in_all(configs: Sequence[Mapping[str, object]]) -> Markup | None:
    """Return what the labels of configs leave out because it is the same in all of them."""
    told = ", ".join(f"{name}={value}" for name, value in shared(configs).items())
    return element("p", f"In all of them: {told}.", class_="soft") if told else None


def _entry(number: int, name: str) -> Markup:
    look = {"class_": f"line {line_class(number)}", "stroke_dasharray": dash(number)}
    sample = element("svg", element("line", **look, x1=0, y1=5, x2=26, y2=5), width=26, height=10, aria_hidden="true")
    return element("li", sample, element("span", name))


def _cells(row: Sequence[Child], looks: Sequence[str | None]) -> Iterable[Markup]:
    yield element("th", row[0], scope="row", class_=looks[0])
    for cell, look in zip(row[1:], looks[1:], strict=True):
        yield element("td", cell, class_=look)
