"""Elements that change while a page is open: what each shows now stands in the page, and in a list by its name."""

from collections.abc import Iterable, Mapping, Sequence

from tunewise.report.markup import Child, Markup, Value, element, fragment

Shown = str | bool
_NOTHING = Markup("")


class Slots:
    """Makes a page and remembers what changes in it as `name.text`, `name.hidden` or `name.attribute` -> value.

    One description serves twice: as markup, which needs no script to be read, and as `values`, which a script puts into
    the same elements later. It must make the same elements whatever there is to tell: what is not needed is hidden.
    """

    def __init__(self, *, is_drawn: bool = True) -> None:
        self.values: dict[str, Shown] = {}
        self._is_drawn = is_drawn  # without it there are only values: viewers need no more from tick to tick

    def text(self, tag: str, name: str, text: str, **fixed: Value) -> Markup:
        """Return an element whose text changes."""
        self.values[f"{name}.text"] = text
        return element(tag, text, id=name, **fixed) if self._is_drawn else _NOTHING

    def fixed(self, tag: str, *children: Child, **attributes: Value) -> Markup:
        """Return an element that never changes itself."""
        return element(tag, *children, **attributes) if self._is_drawn else _NOTHING

    def element(
        self,
        tag: str,
        name: str,
        *children: Child,
        hidden: bool | None = None,
        changing: Mapping[str, str] | None = None,
        **fixed: Value,
    ) -> Markup:
        """Return an element that is hidden now and then, or whose attributes change."""
        attributes = changing or {}
        if hidden is not None:
            self.values[f"{name}.hidden"] = hidden
        self.values |= {f"{name}.{attribute}": value for attribute, value in attributes.items()}
        if not self._is_drawn:
            return _NOTHING
        shown = {attribute if attribute != "class" else "class_": value for attribute, value in attributes.items()}
        return element(tag, *children, id=name, hidden=hidden, **shown, **fixed)

    def sentence(self, name: str, text: str, look: str = "soft") -> Markup:
        """Return a paragraph that is hidden where there is nothing to say."""
        return self.element("p", name, self.text("span", f"{name}-text", text), hidden=not text, class_=look)


def table(
    slots: Slots,
    name: str,
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str | float]],
    *,
    most: int,
    total: int,
    things: str,
    numbers: Sequence[str] = (),
    dim: Iterable[int] = (),
) -> Markup:
    """Return a table with a fixed number of rows, hidden where there is none, and how many more there are below it.

    Columns named in `numbers` stand right, one without a name holds bars, and the rows `dim` stand back.
    """
    looks = ["number" if column in numbers else None if column else "bar" for column in columns]
    head = [
        slots.fixed("th", column, scope="col", class_=look) if column else slots.fixed("td")
        for column, look in zip(columns, looks, strict=True)
    ]
    empty = ["" if column else 0.0 for column in columns]
    set_back = set(dim)
    body = [
        slots.element(
            "tr",
            f"{name}-{number}",
            *_cells(slots, f"{name}-{number}", rows[number] if number < len(rows) else empty, looks),
            hidden=number >= len(rows),
            changing={"class": "dim" if number in set_back else ""},
        )
        for number in range(most)
    ]
    drawn = slots.fixed(
        "table",
        slots.fixed("caption", slots.fixed("span", caption)),
        slots.fixed("thead", slots.fixed("tr", *head)),
        slots.fixed("tbody", *body),
    )
    box = slots.element(
        "div", f"{name}-box", drawn, hidden=not rows, class_="scroll", role="region", aria_label=caption, tabindex="0"
    )
    more = total - min(most, len(rows))
    return fragment(box, slots.sentence(f"{name}-more", f"and {more:,} more {things}" if more > 0 else ""))


def _cells(slots: Slots, row: str, cells: Sequence[str | float], looks: Sequence[str | None]) -> Iterable[Markup]:
    for column, (cell, look) in enumerate(zip(cells, looks, strict=True)):
        name = f"{row}-{column}"
        if isinstance(cell, float):
            yield slots.fixed("td", bar(slots, name, cell), class_=look)
        elif column == 0:
            yield slots.text("th", name, cell, scope="row", class_=look)
        else:
            yield slots.text("td", name, cell, class_=look)


def bar(slots: Slots, name: str, share: float) -> Markup:
    """Return a bar as long as a share of its place; a number beside it says the same, so it is hidden from readers."""
    width = f"{100 * min(max(share, 0.0), 1.0):.2f}"
    filled = slots.element("rect", name, changing={"width": width}, height=10, class_="f0")
    return slots.fixed("svg", filled, viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true")
