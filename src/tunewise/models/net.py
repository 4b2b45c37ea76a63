"""A small neural net as a body: how its inputs are scaled is part of it, so that training and use cannot differ."""

from collections.abc import Sequence
from functools import lru_cache
from math import copysign, isfinite, log1p
from operator import mul
from struct import calcsize, unpack

import msgspec

from tunewise.errors import InvalidModel
from tunewise.models.columns import Columns, Word
from tunewise.models.effort import AN_OPERATION, check_steps

MAX_LAYERS, MAX_WIDTH, MAX_WEIGHT = 6, 512, 1e6
MAX_WORK = 100_000_000  # products for one ranking, some seconds: 20,000 choices take a net of 5,000 weights
FAR = 8.0  # deviations from the mean: beyond it a net has seen nothing, and is asked as if it were this far


class Scale(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a column becomes an input: its logarithm, or the flag of a word, made to have mean 0 and deviation 1."""

    column: int
    mean: float
    deviation: float
    is_log: bool = False
    word: int | None = None

    def value(self, row: Sequence[float]) -> float:
        """Return the input for a row of all columns."""
        value = row[self.column]
        if self.word is not None:
            value = float(value == self.word)
        elif self.is_log:
            value = copysign(log1p(abs(value)), value)
        return min(max((value - self.mean) / self.deviation, -FAR), FAR)


class Layer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One matrix and its biases as little-endian single-precision numbers, a row an output."""

    inputs: int
    outputs: int
    weights: bytes = b""
    biases: bytes = b""

    def apply(self, values: Sequence[float]) -> list[float]:
        """Return the outputs before they are clipped."""
        rows = _rows(self.weights, self.inputs)
        biases = _rows(self.biases, self.outputs)[0]
        return [sum(map(mul, row, values), bias) for row, bias in zip(rows, biases, strict=True)]


class Level(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A small net over the problem alone: the logarithm of the seconds that its fast choices take."""

    scales: tuple[Scale, ...]
    layers: tuple[Layer, ...]

    def value(self, row: Sequence[float]) -> float:
        """Return the level of the problem of a row of all columns."""
        return _passed(self.scales, self.layers, row)


class Net(msgspec.Struct, frozen=True, tag="net", forbid_unknown_fields=True):
    """Layers whose last one has a single output, the logarithm of a time up to a constant; others clip below zero.

    `level` is what a guess is relative to: the sum of both is the logarithm of seconds. It is the same for all choices
    of a problem, so a ranking does without. `tensors` is the SHA-256 of the file that holds the weights, where they are
    kept in a file of their own.
    """

    scales: tuple[Scale, ...]
    layers: tuple[Layer, ...]
    tensors: str = ""
    level: Level | None = None

    def guess(self, row: Sequence[float], _: int = 0) -> float:
        """Return the logarithm of the time a row is expected to take, up to a constant of the problem."""
        return _passed(self.scales, self.layers, row)

    def check(self, columns: Columns, choices: int) -> None:
        """Raise InvalidModel unless the net has a guess for every row."""
        _check_stack(self.scales, self.layers, columns)
        if self.level is not None:
            _check_stack(self.level.scales, self.level.layers, columns)
            _check_problem_only(self.level.scales, columns)
        check_steps(choices, len(self.scales) + AN_OPERATION * columns.operations)
        work = choices * sum(layer.inputs * layer.outputs for layer in self.layers)
        if not 0 < work <= MAX_WORK:
            raise InvalidModel(f"a net that takes {work} products to rank {choices} choices; at most {MAX_WORK}")


def _passed(scales: Sequence[Scale], layers: Sequence[Layer], row: Sequence[float]) -> float:
    """Return what comes out of the last layer; the others clip below zero."""
    values = [scale.value(row) for scale in scales]
    for layer in layers[:-1]:
        values = [max(value, 0.0) for value in layer.apply(values)]
    return layers[-1].apply(values)[0]


@lru_cache(maxsize=64)
def _rows(packed: bytes, width: int) -> tuple[tuple[float, ...], ...]:
    """Return packed numbers as rows; a process asks few nets, and these many times."""
    numbers = unpack(f"<{len(packed) // calcsize('<f')}f", packed)
    return tuple(numbers[start : start + width] for start in range(0, len(numbers), width))


def _check_stack(scales: Sequence[Scale], layers: Sequence[Layer], columns: Columns) -> None:
    if not scales or not 0 < len(layers) <= MAX_LAYERS:
        raise InvalidModel(f"a net of {len(scales)} inputs and {len(layers)} layers; at most {MAX_LAYERS} layers")
    for scale in scales:
        _check_scale(scale, columns)
    width = len(scales)
    for layer in layers:
        _check_layer(layer, width)
        width = layer.outputs
    if width != 1:
        raise InvalidModel(f"a net of {width} outputs; it must have one")


def _check_problem_only(scales: Sequence[Scale], columns: Columns) -> None:
    sides = columns.sides
    for scale in scales:
        if sides[scale.column] != "problem":
            raise InvalidModel(f"the level of a net asks for column {scale.column}, which is not of the problem alone")


def _check_scale(scale: Scale, columns: Columns) -> None:
    total = len(columns.inputs) + len(columns.derived)
    if not 0 <= scale.column < total:
        raise InvalidModel(f"a net asks for column {scale.column} of {total}")
    column = columns.inputs[scale.column] if scale.column < len(columns.inputs) else None
    words = len(column.words) if isinstance(column, Word) else None
    if (scale.word is None) != (words is None) or not 0 <= (scale.word or 0) < (words or 1):
        raise InvalidModel(f"a net asks for word {scale.word} of column {scale.column}, which has {words or 'none'}")
    if not (isfinite(scale.mean) and isfinite(scale.deviation) and scale.deviation > 0):
        raise InvalidModel(f"a net scales column {scale.column} by {scale.mean} and {scale.deviation}")


def _check_layer(layer: Layer, width: int) -> None:
    if layer.inputs != width or not 0 < layer.outputs <= MAX_WIDTH or width > MAX_WIDTH:
        raise InvalidModel(f"a layer of {layer.inputs} inputs and {layer.outputs} outputs follows one of {width}")
    size = calcsize("<f") * layer.outputs
    if len(layer.weights) != size * layer.inputs or len(layer.biases) != size:
        raise InvalidModel("a net lacks its weights; they are in the .safetensors file beside it: load that path")
    numbers = unpack(f"<{layer.outputs * (layer.inputs + 1)}f", layer.weights + layer.biases)
    if not all(abs(number) <= MAX_WEIGHT for number in numbers):
        raise InvalidModel(f"a net has a weight that is no number of at most {MAX_WEIGHT:g}")
