"""Elements of HTML and SVG whose text is escaped because there is no other way to make one."""

import html
import re

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_EMPTY = {"meta", "br", "wbr", "col"}  # of HTML; they have no end


class Markup(str):
    """Text that is markup already. Only `element`, `escaped` and `fragment` make it, and the stylesheet is one."""

    __slots__ = ()


Child = Markup | str | float | None
Value = str | float | bool | None


def escaped(text: object) -> Markup:
    """Return a text as markup that shows it; characters that no document may hold become U+FFFD."""
    return Markup(html.escape(_NO_XML.sub("\ufffd", str(text))))


def element(tag: str, *children: Child, **attributes: Value) -> Markup:
    """Return an element; None among children and attributes is left out, and what is not Markup is escaped.

    `class_` becomes class, other underscores become hyphens, and True an attribute without a value.
    """
    start = "".join([tag, *(_attribute(name, value) for name, value in attributes.items())])
    if tag in _EMPTY:
        return Markup(f"<{start}>")
    return Markup(f"<{start}>{fragment(*children)}</{tag}>")


def fragment(*children: Child) -> Markup:
    """Return several children as one piece, without an element around them."""
    inside = (child if isinstance(child, Markup) else escaped(child) for child in children if child is not None)
    return Markup("".join(inside))


def short(text: str, most: int) -> str:
    """Return a text of at most so many characters, its end cut off with an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _attribute(name: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    spelled = name.rstrip("_").replace("_", "-")
    return f" {spelled}" if value is True else f' {spelled}="{escaped(_number(value))}"'


def _number(value: str | float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
