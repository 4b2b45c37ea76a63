"""Nets by numpy: the inputs of many rows as one array, and all choices of a problem scored at once.

Training takes its inputs from here too, so what a net is served cannot differ from what it was trained on.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunewise.models.columns import Columns, Number
from tunewise.models.net import FAR, Layer, Net, Scale
from tunewise.models.pool import Pool, pool

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Numbers = NDArray[np.int64]


def seen(values: Any, scale: Scale) -> Floats:
    """Return a column as a net sees it before it is scaled: the flag of a word, a logarithm, or as it is."""
    if scale.word is not None:
        values = (values == scale.word).astype(np.float64)
    elif scale.is_log:
        values = np.copysign(np.log1p(np.abs(values)), values)
    shown: Floats = values
    return shown


def inputs(columns: Columns, scales: Sequence[Scale], values: Floats) -> Floats:
    """Return what the first layer is given, a row for every row of inputs: the numbers that `Scale.value` has.

    They may differ in a last bit where numpy works out logarithms in another way.
    """
    every = columns.row(list(values.T))
    scaled = [(seen(every[scale.column], scale) - scale.mean) / scale.deviation for scale in scales]
    limited: Floats = np.clip(np.stack(scaled, axis=1), -FAR, FAR)
    return limited


def outputs(layers: Sequence[Layer], given: Floats) -> Floats:
    """Return what the last layer says of every row of inputs."""
    values = given
    for number, layer in enumerate(layers):
        weights, biases = unpacked(layer)
        values = values @ weights.T + biases
        if number < len(layers) - 1:
            values = np.maximum(values, 0.0)
    said: Floats = values[:, 0]
    return said


def unpacked(layer: Layer) -> tuple[Floats, Floats]:
    """Return the weights of a layer, a row an output, and its biases."""
    weights = np.frombuffer(layer.weights, dtype="<f4").astype(np.float64).reshape(layer.outputs, layer.inputs)
    return weights, np.frombuffer(layer.biases, dtype="<f4").astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Asked:
    """Places of the pool that become inputs, flags of words first, then logarithms, then the rest; and how."""

    places: Numbers
    words: Floats
    logs: slice
    means: Floats
    factors: Floats

    def scaled(self, values: Floats) -> Floats:
        """Return the inputs, and a 1 after the last."""
        found = np.empty(len(self.places) + 1)
        given = found[:-1]
        np.take(values, self.places, out=given, mode="clip")
        if count := len(self.words):
            given[:count] = given[:count] == self.words
        logs = given[self.logs]
        np.copysign(np.log1p(np.abs(logs)), logs, out=logs)
        given -= self.means
        given *= self.factors
        np.minimum(np.maximum(given, -FAR, out=given), FAR, out=given)  # np.clip takes three times as long
        found[-1] = 1.0
        return found


class Scorer:
    """What a net guesses of all choices of a problem; what the choices alone tell is worked out once.

    The first layer is linear: columns of the config add the same to it for every problem, and columns of the problem
    the same for every choice. Only columns of both are left. Biases are one more weight, of an input that is always 1.
    """

    def __init__(self, net: Net, columns: Columns, choices: Sequence[Mapping[str, object]]) -> None:
        settings = np.array([columns.setting(choice) for choice in choices], dtype=np.float64)
        sides = columns.sides
        own, config, both = (
            [number for number, scale in enumerate(net.scales) if sides[scale.column] == side]
            for side in ("problem", "config", "both")
        )
        weights, self._biases = unpacked(net.layers[0])
        self._pool = pool(columns, settings)
        self._asked, places = _asked(self._pool, net.scales, [*own, *both])
        self._own = np.array([places[number][0] for number in own], dtype=np.int64)
        self._own_weights = np.ascontiguousarray(weights[:, own])
        spread = [places[n][self._pool.combinations[net.scales[n].column]] for n in both]
        self._given = np.array([*spread, np.full(len(settings), len(self._asked.places))])
        self._weights = _with_bias(weights[:, both], np.zeros(len(weights)))
        self._fixed = _fixed(columns, net.scales, config, weights, settings)
        self._later = tuple(_with_bias(*unpacked(layer)) for layer in net.layers[1:])
        self._local = threading.local()

    def guesses(self, known: Sequence[float]) -> Singles:
        """Return what `Net.guess` has for every choice, in single precision; `known` are the problem's inputs."""
        scaled = self._asked.scaled(self._pool.filled(known))
        given, weights, values, *later = self._workspace()
        weights[:-1, -1] = self._own_weights @ scaled[self._own] + self._biases
        np.take(scaled.astype(np.float32), self._given, out=given, mode="clip")
        np.matmul(weights, given, out=values)
        values += self._fixed
        for weights, output in zip(self._later, later, strict=True):
            np.maximum(values, 0.0, out=values)
            values = np.matmul(weights, values, out=output)
        scores: Singles = values[0].copy()
        return scores

    def _workspace(self) -> list[Singles]:
        """Return arrays to work in, one set a thread: fresh ones would cost a third more, in page faults."""
        if not hasattr(self._local, "arrays"):
            heights = [len(self._weights), *map(len, self._later)]
            arrays = [np.empty((height, self._given.shape[1]), dtype=np.float32) for height in heights]
            self._local.arrays = [np.empty(self._given.shape, dtype=np.float32), self._weights.copy(), *arrays]
        found: list[Singles] = self._local.arrays
        return found


def _asked(one: Pool, scales: Sequence[Scale], numbers: Sequence[int]) -> tuple[_Asked, dict[int, Numbers]]:
    """Return how some inputs are made of the pool, and of each of them where its numbers are then."""
    order = sorted(numbers, key=lambda n: (scales[n].word is None, not scales[n].is_log))
    some = [scales[n] for n in order]
    lengths = [_length(one, scale.column) for scale in some]
    ends = np.cumsum(lengths, dtype=np.int64)
    places = [one.starts[scale.column] + np.arange(length) for scale, length in zip(some, lengths, strict=True)]
    words = np.array([scale.word for scale in some if scale.word is not None], dtype=np.float64)  # each is one flag
    logs = sum(length for scale, length in zip(some, lengths, strict=True) if scale.is_log and scale.word is None)
    asked = _Asked(
        np.concatenate([np.empty(0, dtype=np.int64), *places]),
        words,
        slice(len(words), len(words) + logs),
        np.repeat([scale.mean for scale in some], lengths),
        np.repeat([1 / scale.deviation for scale in some], lengths),
    )
    return asked, {n: end - length + np.arange(length) for n, end, length in zip(order, ends, lengths, strict=True)}


def _length(one: Pool, column: int) -> int:
    combinations = one.combinations[column]
    return 1 if combinations is None else int(combinations.max()) + 1


def _fixed(
    columns: Columns, scales: Sequence[Scale], numbers: Sequence[int], weights: Floats, settings: Floats
) -> Singles:
    """Return what columns of the config add to the first layer, a column a choice."""
    # Columns of the config look at nothing else, so any problem will do.
    any_problem = np.array([[column.low if isinstance(column, Number) else 0.0 for column in columns.problem]])
    every = np.hstack([np.repeat(any_problem, len(settings), axis=0), settings])
    added = np.zeros((len(weights) + 1, len(settings)), dtype=np.float32)
    if numbers:
        given = inputs(columns, [scales[number] for number in numbers], every)
        added[:-1] = weights[:, list(numbers)] @ given.T
    return added


def _with_bias(weights: Floats, biases: Floats) -> Singles:
    """Return weights for values that end with a 1, which give values that end with a 1: the last row hands it on."""
    wide = np.zeros((len(weights) + 1, weights.shape[1] + 1), dtype=np.float32)
    wide[:-1, :-1], wide[:-1, -1] = weights, biases
    wide[-1, -1] = 1.0
    return wide
