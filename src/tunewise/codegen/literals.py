"""Values as literals of Python and C: the only way a name, a word or a number enters generated code."""

from collections.abc import Iterable, Mapping, Sequence

from tunewise.decision import Scalar
from tunewise.errors import InvalidModel

_WIDTH = 116


def python(value: Scalar) -> str:
    """Return a scalar as a Python literal of printable ASCII."""
    if not isinstance(value, str):
        return repr(value)
    text = ascii(value)
    return text if "'" in value or '"' in value else f'"{text[1:-1]}"'


def python_float(value: float) -> str:
    """Return a number as a literal that is read back as exactly that double."""
    return repr(float(value))


def python_tuple(parts: Iterable[str]) -> str:
    """Return literals as a tuple."""
    listed = list(parts)
    return f"({listed[0]},)" if len(listed) == 1 else f"({', '.join(listed)})"


def python_dict(config: Mapping[str, Scalar]) -> str:
    """Return a config as a dict."""
    return "{" + ", ".join(f"{python(name)}: {python(value)}" for name, value in config.items()) + "}"


def folded(head: str, parts: Sequence[str], remark: str = "") -> list[str]:
    """Return the lines of `head` and a tuple, on one line where it fits, and with the remark as its comment."""
    comment = f"  # {remark}" if remark else ""
    line = f"{head}{python_tuple(parts)}"
    if len(line) <= _WIDTH - 20 or len(parts) < 2:
        return [f"{line}{comment}"]
    lines, current = [f"{head}({comment}"], ""
    for part in parts:
        if current and len(current) + len(part) > _WIDTH - 30:
            lines.append(f"    {current.rstrip()}")
            current = ""
        current += f"{part}, "
    return [*lines, f"    {current.rstrip()}", ")"]


def folded_sum(head: str, formula: str, end: str = "") -> list[str]:
    """Return the lines of `head` and a formula, on one line where it fits, and else a line for each of its terms."""
    first, *others = formula.split(" + ")
    line = f"{head}{formula}{end}"
    if len(line) <= _WIDTH - 20 or not others:
        return [line]
    return [f"{head}(", f"    {first}", *(f"    + {term}" for term in others), f"){end}"]


def c_string(text: str) -> str:
    """Return a text as a C string in UTF-8; raises InvalidModel for a zero byte, where C would end it."""
    raw = text.encode()
    if 0 in raw:
        raise InvalidModel(f"the text {text[:40]!r} holds a zero character, which no C string can; rename it")
    return '"' + "".join(_c_character(byte) for byte in raw) + '"'


def c_remark(text: str) -> str:
    """Return a remark that cannot end a C comment, begin another or hold a trigraph."""
    for wrong, right in (("*/", "* /"), ("/*", "/ *"), ("??", "? ?")):
        while wrong in text:
            text = text.replace(wrong, right)
    return text


def c_integer(value: int) -> str:
    """Return a whole number of 64 bits; the smallest one has no literal of its own."""
    return f"(-{-(value + 1)}LL - 1)" if value == -(1 << 63) else f"{value}LL"


def dot_string(text: str, *, is_left: bool = False) -> str:
    """Return a text as a quoted DOT string of printable ASCII; a line end in it is one of the label.

    Lines of a label stand in the middle, or where it `is_left`, begin at the left.
    """
    lines = (ascii(line)[1:-1].replace("\\'", "'") for line in text.split("\n"))
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return '"' + ("".join(f"{line}\\l" for line in escaped) if is_left else "\\n".join(escaped)) + '"'


def _c_character(byte: int) -> str:
    character = chr(byte)
    return character if 32 <= byte < 127 and character not in '"\\?' else f"\\{byte:03o}"
