"""Shapes of matrix products to measure: drawn in several ways, or those of real programs with how often they came."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from tunewise.decision import Feature, Problem
from tunewise.decision.draws import Draw, LogNormal, LogUniform, OneOf
from tunewise.errors import InvalidProblem
from tunewise.formats.diode_shapes import read_shapeset
from tunewise.formats.writing import json_text, replaced

OPS = ("mm", "addmm", "bmm", "linear")
SIZE_BYTES: Mapping[str, int] = {
    **dict.fromkeys(("float64", "int64"), 8),
    **dict.fromkeys(("float32", "int32"), 4),
    **dict.fromkeys(("float16", "bfloat16", "int16"), 2),
    **dict.fromkeys(("int8", "uint8", "float8_e4m3fn", "float8_e5m2"), 1),
}
# Mean and deviation of the natural logarithm of the sizes in real programs, as diode's authors counted them.
_REAL = {"m": (6.573, 2.556), "n": (5.914, 1.670), "k": (6.205, 2.165)}
_REAL_MULTIPLE = 8
_PATIENCE = 1000  # draws in a row that bring nothing new, before what there is has to do


@dataclass(frozen=True, slots=True)
class Shape:
    """One product: b matrices (bmm only) of m x k times k x n. `weight` says how often a program asks for it.

    `lhs` and `rhs` say how the factors of bmm lie in memory, by `rows` or by `columns`; the sizes of a `dynamic` one
    are known only when the program runs.
    """

    op: str
    m: int
    n: int
    k: int
    b: int = 1
    dtype: str = "float32"
    lhs: str = "rows"
    rhs: str = "rows"
    dynamic: bool = False
    weight: float = field(default=1.0, compare=False)

    @property
    def features(self) -> dict[str, Feature]:
        """The features of the problem, by the names that decisions about products use; b of bmm only."""
        sizes: dict[str, Feature] = {"m": self.m, "n": self.n, "k": self.k, "dtype": self.dtype}
        return {"b": self.b, **sizes} if self.op == "bmm" else sizes

    @property
    def memory_bytes(self) -> int:
        """What both operands and the result take together."""
        numbers = self.b * (self.m * self.k + self.k * self.n + self.m * self.n)
        return numbers * _size_bytes(self.dtype)

    @property
    def multiply_adds(self) -> int:
        """How many numbers are multiplied and added."""
        return self.b * self.m * self.n * self.k


@dataclass(frozen=True, slots=True)
class Limits:
    """What a shape may be: every size from `low` to `high`, at most `batch` matrices, and a bound on memory and work.

    A shape that is beyond a bound is drawn again; no bound on `multiply_adds` is None.
    """

    low: int = 1
    high: int = 8192
    batch: int = 64
    memory_bytes: int = 1 << 30
    multiply_adds: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.low <= self.high or self.batch < 1:
            raise InvalidProblem(
                f"no sizes are from {self.low} to {self.high} in batches up to {self.batch}: give 1 <= low <= high"
            )

    def why_not(self, shape: Shape) -> str | None:
        """Return the first reason why a shape is beyond the limits, or None if it is within."""
        for name in ("m", "n", "k"):
            if not self.low <= getattr(shape, name) <= self.high:
                return f"{name}={getattr(shape, name)} is not from {self.low} to {self.high}"
        if not 1 <= shape.b <= self.batch:
            return f"b={shape.b} is not from 1 to {self.batch}"
        if shape.memory_bytes > self.memory_bytes:
            return f"it takes {shape.memory_bytes} bytes, more than {self.memory_bytes}"
        if self.multiply_adds is not None and shape.multiply_adds > self.multiply_adds:
            return f"it takes {shape.multiply_adds} multiply-adds, more than {self.multiply_adds}"
        return None


ANY = Limits()
Sampler = Callable[[int, Sequence[str], Sequence[str], int, Limits], list[Shape]]


def random_shapes(
    count: int, ops: Sequence[str], dtypes: Sequence[str], seed: int = 0, limits: Limits = ANY
) -> list[Shape]:
    """Return up to `count` different shapes, every order of magnitude of a size as likely as any other."""
    return _drawn(dict.fromkeys("mnk", LogUniform(limits.low, limits.high)), count, ops, dtypes, seed, limits)


def power_of_two_shapes(
    count: int, ops: Sequence[str], dtypes: Sequence[str], seed: int = 0, limits: Limits = ANY
) -> list[Shape]:
    """Return up to `count` different shapes whose sizes are powers of two; raises InvalidProblem if none is allowed."""
    powers = tuple(1 << e for e in range(limits.high.bit_length()) if limits.low <= 1 << e <= limits.high)
    if not powers:
        raise InvalidProblem(f"there is no power of two from {limits.low} to {limits.high}; widen the limits")
    return _drawn(dict.fromkeys("mnk", OneOf(powers)), count, ops, dtypes, seed, limits)


def log_normal_shapes(
    count: int, ops: Sequence[str], dtypes: Sequence[str], seed: int = 0, limits: Limits = ANY
) -> list[Shape]:
    """Return up to `count` different shapes as real programs have them: multiples of 8, cut off at the limits."""
    draws = {name: LogNormal(*real, _REAL_MULTIPLE) for name, real in _REAL.items()}
    return _drawn(draws, count, ops, dtypes, seed, limits)


SAMPLERS: Mapping[str, Sampler] = {
    "random": random_shapes,
    "power-of-two": power_of_two_shapes,
    "log-normal": log_normal_shapes,
}


def shapeset_shapes(
    path: Path | str,
    count: int | None = None,
    ops: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    seed: int = 0,
    limits: Limits = ANY,
) -> list[Shape]:
    """Return the different shapes of a diode shapeset that are within the limits, weighted by how often each comes.

    All of them in the order of the file, or `count` drawn from them; of all ops, or of some; with the types the file
    tells, or each with all those given instead. Raises NotFound, or InvalidFile for a file that is none.
    """
    found = merged(
        shape
        for op, problem in read_shapeset(path)
        if not ops or op in ops
        for shape in _in_types(op, problem, dtypes)
        if limits.why_not(shape) is None
    )
    if count is None:
        return found
    random.Random(seed).shuffle(found)
    return found[:count]


def write_shapeset(shapes: Iterable[Shape], path: Path | str) -> None:
    """Write shapes as a diode shapeset in JSON, whole or not at all; a weight is told as `count`."""
    operations: dict[str, dict[str, list[dict[str, Feature]]]] = {}
    for shape in shapes:
        operations.setdefault(shape.op, {"shapes": []})["shapes"].append(_told(shape))
    with replaced(Path(path)) as part:
        part.write_bytes(json_text({"operations": operations}, indent=1))


def _told(shape: Shape) -> dict[str, Feature]:
    sizes: dict[str, Feature] = {"B": shape.b, "M": shape.m, "N": shape.n, "K": shape.k}
    types: dict[str, Feature] = dict.fromkeys(("M_dtype", "K_dtype", "out_dtype"), shape.dtype)
    plain = Shape(shape.op, shape.m, shape.n, shape.k)
    further = {name: getattr(shape, name) for name in ("lhs", "rhs") if getattr(shape, name) != getattr(plain, name)}
    return {**sizes, **types, **further, **({"dynamic": 1} if shape.dynamic else {}), "count": shape.weight}


def merged(shapes: Iterable[Shape]) -> list[Shape]:
    """Return different shapes in the order they first come, each with the weights of all that are equal to it."""
    weights: dict[Shape, float] = {}
    for shape in shapes:
        weights[shape] = weights.get(shape, 0.0) + shape.weight
    return [replace(shape, weight=weight) for shape, weight in weights.items()]


def _drawn(
    sizes: Mapping[str, Draw], count: int, ops: Sequence[str], dtypes: Sequence[str], seed: int, limits: Limits
) -> list[Shape]:
    """Return different shapes, each op in each type as often as any other while there are more to be had of it.

    The first shapes of a longer list are those of a shorter one with the same seed, so that a data set can grow.
    """
    kinds = _kinds(ops, dtypes)
    rng = random.Random(seed)
    found: dict[Shape, None] = {}
    turn = 0
    while kinds and len(found) < count:
        turn %= len(kinds)
        shape = _fresh(sizes, kinds[turn], rng, limits, found)
        if shape is None:
            del kinds[turn]
        else:
            found[shape] = None
            turn += 1
    return list(found)


def _fresh(
    sizes: Mapping[str, Draw], kind: tuple[str, str], rng: random.Random, limits: Limits, found: Mapping[Shape, None]
) -> Shape | None:
    """Return a shape of one op and type that is new and within the limits, or None where none turns up."""
    op, dtype = kind
    for _ in range(_PATIENCE):
        m, n, k = (_within(sizes[name].draw(rng), limits) for name in "mnk")
        b = int(LogUniform(1, limits.batch).draw(rng)) if op == "bmm" else 1
        shape = Shape(op, m, n, k, b, dtype)
        if shape not in found and limits.why_not(shape) is None:
            return shape
    return None


def _within(size: Feature, limits: Limits) -> int:
    return min(limits.high, max(limits.low, int(size)))


def _kinds(ops: Sequence[str], dtypes: Sequence[str]) -> list[tuple[str, str]]:
    """Return every op in every type; raises InvalidProblem for one that does not exist."""
    for op in ops:
        if op not in OPS:
            raise InvalidProblem(f"op {op!r} is not one of {', '.join(OPS)}")
    for dtype in dtypes:
        _size_bytes(dtype)
    return list(dict.fromkeys(product(ops, dtypes)))


def _in_types(op: str, problem: Problem, dtypes: Sequence[str]) -> Iterator[Shape]:
    m, n, k, b = (int(problem.get(name, 1)) for name in ("m", "n", "k", "b"))
    lhs, rhs = (str(problem.get(name, "rows")) for name in ("lhs", "rhs"))
    weight = float(problem.get("count", 1))
    for dtype in dtypes or (str(problem["dtype"]),):
        yield Shape(op, m, n, k, b, dtype, lhs, rhs, bool(problem.get("dynamic", 0)), weight)


def _size_bytes(dtype: str) -> int:
    if dtype not in SIZE_BYTES:
        raise InvalidProblem(f"dtype {dtype!r} is not one of {', '.join(SIZE_BYTES)}")
    return SIZE_BYTES[dtype]
