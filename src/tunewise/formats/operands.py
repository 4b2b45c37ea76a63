"""Operands of matrix products: sizes and strides of tensors as the features of a problem, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tunewise.decision import Feature

OPS = ("mm", "addmm", "bmm")
FEATURES = ("b", "m", "n", "k", "dtype", "dynamic", "lhs", "rhs", "bias")
ROWS, COLUMNS, PADDED, OTHER, VECTOR = "rows", "columns", "-padded", "other", "vector"


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a product reads: the type of its numbers, its sizes, and how far apart neighbours lie."""

    dtype: str
    size: tuple[int, ...]
    stride: tuple[int, ...]


def features_of(op: str, operands: Sequence[Operand], *, is_dynamic: bool = False) -> dict[str, Feature]:
    """Return the problem that an op on these operands is: b (of bmm), m, n, k, dtype and a word for each layout.

    For addmm the first operand is the bias. With `is_dynamic`, sizes may be others when the program runs. Raises
    ValueError where they are no operands of the op.
    """
    *others, a, b = operands
    dtypes = {operand.dtype for operand in operands}
    is_product = len(a.size) == len(b.size) == _rank(op) and a.size[-1] == b.size[-2] and a.size[:-2] == b.size[:-2]
    if not is_product or len(others) != _has_bias(op) or len(dtypes) != 1:
        raise ValueError(f"{op} does not take {', '.join(map(_shown, operands))}")
    batch: dict[str, Feature] = {"b": a.size[0]} if op == "bmm" else {}
    sizes: dict[str, Feature] = {"m": a.size[-2], "n": b.size[-1], "k": a.size[-1], "dynamic": int(is_dynamic)}
    words = {"dtype": a.dtype, "lhs": layout(a.size, a.stride), "rhs": layout(b.size, b.stride)}
    return {**batch, **sizes, **words, **({"bias": _bias_word(others[0])} if others else {})}


def operands_of(op: str, problem: Mapping[str, Any]) -> tuple[Operand, ...]:
    """Return the operands that a problem of an op has; raises ValueError where its layouts do not tell the strides."""
    names = ("m", "n", "k", *(("b",) if op == "bmm" else ()))
    m, n, k, *batch = (_whole(name, problem.get(name)) for name in names)
    dtype = problem.get("dtype")
    if op not in OPS or not isinstance(dtype, str) or not dtype.isidentifier():
        raise ValueError(f"no {op} has the numbers dtype={dtype!r:.100}; ops are {', '.join(OPS)}")
    shapes = {"bias": (m, n), "lhs": (*batch, m, k), "rhs": (*batch, k, n)}
    wanted = [name for name in shapes if name != "bias" or _has_bias(op)]
    return tuple(Operand(dtype, shapes[name], _strides(name, problem, shapes[name])) for name in wanted)


def layout(size: Sequence[int], stride: Sequence[int]) -> str:
    """Return how a matrix, or a batch of them, lies in memory.

    `rows` and `columns` have no gaps and tell the strides; with gaps they are `rows-padded` and `columns-padded`, and
    anything else is `other`.
    """
    whole, turned = contiguous(size), _turned(size)
    if tuple(stride) in (whole, turned):
        return ROWS if tuple(stride) == whole else COLUMNS
    if stride[-1] == 1:
        return ROWS + PADDED
    return COLUMNS + PADDED if stride[-2] == 1 else OTHER


def _strides(name: str, problem: Mapping[str, Any], size: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of an operand; one of which no layout is told is a plain matrix, or a bias for every row."""
    word = problem.get(name, VECTOR if name == "bias" else ROWS)
    if word == VECTOR and name == "bias":
        return (0, 1)
    if word not in (ROWS, COLUMNS):
        raise ValueError(f"the layout {word!r:.100} does not tell how far apart numbers lie; {ROWS} and {COLUMNS} do")
    return contiguous(size) if word == ROWS else _turned(size)


def contiguous(size: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a tensor whose rows lie one after the other."""
    stride, found = 1, list[int]()
    for length in reversed(size):
        found.append(stride)
        stride *= length
    return tuple(reversed(found))


def _turned(size: Sequence[int]) -> tuple[int, ...]:
    *batch, rows, columns = size
    *outer, far, near = contiguous((*batch, columns, rows))
    return (*outer, near, far)


def _bias_word(bias: Operand) -> str:
    is_vector = len(bias.size) == 1 or bias.stride == (0, 1)
    return VECTOR if is_vector else layout(bias.size, bias.stride)


def _rank(op: str) -> int:
    return 3 if op == "bmm" else 2


def _has_bias(op: str) -> bool:
    return op == "addmm"


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}={value!r:.100} is not a number of rows or columns")
    return value


def _shown(operand: Operand) -> str:
    return f"{operand.dtype}{list(operand.size)}"
