"""The colours of all pictures, for light and dark pages, as one short stylesheet."""

from collections.abc import Sequence

# Eight colours that colour-blind people can tell apart, for a white page and for a black one; dashes go on from there.
_LIGHT = ("#0072b2", "#d55e00", "#00805e", "#b3457f", "#9a6a00", "#6a51a3", "#1f1f1f", "#7a7a7a")
_DARK = ("#58b4f0", "#ff8f4f", "#2fcf9f", "#f08cc0", "#f0c040", "#b9a4f0", "#f0f0f0", "#a0a0a0")
_DASHES = (None, "7 4", "2 3")
_SHAPES = (
    "svg text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}svg .head{font-weight:600;"
    "font-size:15px}.end{text-anchor:end}.middle{text-anchor:middle}.axis,.line,.edge{fill:none}"
    ".line{stroke-width:2;stroke-linejoin:round}.dashed{stroke-dasharray:4 3}svg .strong{font-weight:600}"
    ".leaf{fill:none;stroke-width:1.2}svg .small{font-size:12px}"
)


def stylesheet() -> str:
    """Return the rules for the classes that pictures use: `c0` to `c7` for lines, `f0` to `f7` for areas, ..."""
    light = _page("#ffffff", "#1f2328", "#59636e", "#e3e7eb", "#f3f5f7") + _colours(_LIGHT)
    dark = _page("#0d1117", "#e6edf3", "#9aa4ae", "#252c35", "#161c24") + _colours(_DARK)
    return f"{_SHAPES}{light}@media (prefers-color-scheme:dark){{{dark}}}"


def line_class(number: int) -> str:
    """Return the class of the line of a number."""
    return f"c{number % len(_LIGHT)}"


def area_class(number: int) -> str:
    """Return the class of an area of the same colour as the line of that number."""
    return f"f{number % len(_LIGHT)}"


def dash(number: int) -> str | None:
    """Return what tells a line from the earlier one of the same colour; None for those that come first."""
    return _DASHES[number // len(_LIGHT) % len(_DASHES)]


def _page(paper: str, ink: str, soft: str, grid: str, box: str) -> str:
    return (
        f"svg .paper{{fill:{paper}}}svg .ink{{fill:{ink}}}svg .soft{{fill:{soft}}}"
        f".grid{{stroke:{grid};stroke-width:1}}.axis{{stroke:{soft}}}.edge{{stroke:{soft};stroke-opacity:.55}}"
        f".box{{fill:{box};stroke:{soft};stroke-opacity:.6}}.band{{fill:{soft};fill-opacity:.14}}.hint{{stroke:{soft}}}"
    )


def _colours(palette: Sequence[str]) -> str:
    return "".join(f".c{i}{{stroke:{colour}}}.f{i}{{fill:{colour}}}" for i, colour in enumerate(palette))
