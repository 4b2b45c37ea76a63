"""What hooks and options of the user's say about the data, checked: a fault is told where it is made."""

from collections.abc import Callable, Sequence
from math import isfinite

import numpy as np

from tunewise.decision import Config, Feature, canonical
from tunewise.errors import InvalidData
from tunewise.formats.dataset import Column, DataSet, Floats
from tunewise.formats.datasets import with_default
from tunewise.learn.options import Training

Weights = Callable[[DataSet], Floats]


def place_of(data: DataSet, config: Config | str, option: str) -> int:
    """Return the number of a config that an option names: all of it, or the value of its only parameter.

    Raises InvalidData where that is not exactly one config of the data.
    """
    try:
        place = with_default(data, config).default
    except (InvalidData, TypeError, ValueError):  # no config at all makes the last two
        such = canonical.encode(dict(data.configs[0]))
        known = f"the {len(data.configs)} configs, such as {such}"
        raise InvalidData(f"{data.decision}: {option} names {config!r}, which is not one of {known}") from None
    assert place is not None
    return place


def filtered(data: DataSet, options: Training) -> DataSet:
    """Return the data that are to be learned from."""
    if options.filter_rows is None:
        return data
    wanted = options.filter_rows(data)
    if not isinstance(wanted, DataSet):
        raise InvalidData(f"{data.decision}: filter_rows returned {_kind(wanted)}; return a DataSet, such as data.take")
    return wanted


def further(data: DataSet, options: Training) -> list[Column]:
    """Return the features that are added to the data's own."""
    twice = [name for name in options.add_features if name in data.names]
    if twice:
        raise InvalidData(f"{data.decision}: add_features names {twice[0]}, which the data have already; rename it")
    problems = [data.problem(number) for number in range(len(data))]
    return [
        _column(name, [_feature(name, function(problem)) for problem in problems])
        for name, function in options.add_features.items()
    ]


def weighing(data: DataSet, hook: Weights) -> Weights:
    """Return a hook for weights whose answers are checked, and whose answer for all data was found sound.

    Of a part of the data in which nothing counts, all counts alike.
    """
    if not _weights(data, hook).any():
        raise InvalidData(f"{data.decision}: all weights are 0, so no problem counts; give one a larger weight")

    def weighed(part: DataSet) -> Floats:
        weights = _weights(part, hook)
        return weights if weights.any() else np.ones(len(part))

    return weighed


def _weights(data: DataSet, hook: Weights) -> Floats:
    said = hook(data)
    try:
        weights = np.asarray(said, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidData(f"{data.decision}: weights returned {_kind(said)}; return a number a problem") from None
    if weights.shape != (len(data),):
        many = f"{' x '.join(map(str, weights.shape))} numbers" if weights.shape else "one number"
        raise InvalidData(f"{data.decision}: weights returned {many} for {len(data)} problems; return one each")
    wrong = weights[~(np.isfinite(weights) & (weights >= 0))]
    if len(wrong):
        raise InvalidData(f"{data.decision}: weights returned {wrong[0]}; return finite numbers that are not negative")
    return weights


def _feature(name: str, value: object) -> Feature:
    if isinstance(value, str):
        return value
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidData(f"the added feature {name} is {_kind(value)}; return a number or a word") from None
    if not isfinite(number):
        raise InvalidData(f"the added feature {name} is {number} for a problem; return a finite number or a word")
    return value  # type: ignore[return-value]


def _column(name: str, values: Sequence[Feature]) -> Column:
    if not any(isinstance(value, str) for value in values):
        return Column(name, np.array(values, dtype=np.float64))
    words = tuple(sorted({str(value) for value in values}))
    places = {word: float(place) for place, word in enumerate(words)}
    return Column(name, np.array([places[str(value)] for value in values]), words)


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
