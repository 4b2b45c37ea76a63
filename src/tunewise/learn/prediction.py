"""How well a model predicts times, beside how well it chooses: errors of log time and of time, and its worst misses.

Logarithms are natural ones of seconds. Most models know time up to a factor of the problem only: their predictions are
moved, problem by problem, to the mean of what was measured there before they are compared, and `is_centred` says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tunewise.decision import Config, Problem, canonical
from tunewise.errors import InvalidData
from tunewise.formats.dataset import TIMED, DataSet, Floats, Numbers
from tunewise.learn.columns import worked_out
from tunewise.learn.forests import evaluate
from tunewise.models import Forest, Model, Net, Work
from tunewise.models.scoring import inputs, outputs

WORST = 10
DECISION = "decision"  # what errors are told apart by where those of several decisions are put together


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of many predictions: of natural log seconds, and of milliseconds."""

    rows: int
    problems: int
    mse: float
    rmse_ms: float

    @property
    def rmse(self) -> float:
        """The root of the mean square error of log time: 0.1 is about 10 % off."""
        return float(np.sqrt(self.mse))

    def as_json(self) -> dict[str, float]:
        """Return all four and the root as plain values."""
        return {
            "rows": self.rows,
            "problems": self.problems,
            "mse_log": self.mse,
            "rmse_log": self.rmse,
            "rmse_ms": self.rmse_ms,
        }


@dataclass(frozen=True, slots=True)
class Miss:
    """One prediction and what was measured, in seconds."""

    decision: str
    problem: Problem
    config: Config
    predicted_s: float
    actual_s: float

    @property
    def factor(self) -> float:
        """How many times too long or too short the prediction is: 1 or more."""
        return max(self.predicted_s / self.actual_s, self.actual_s / self.predicted_s)

    def as_json(self) -> dict[str, Any]:
        """Return the miss as plain values."""
        return {
            "decision": self.decision,
            "problem": dict(self.problem),
            "config": dict(self.config),
            "predicted_s": self.predicted_s,
            "actual_s": self.actual_s,
        }


@dataclass(frozen=True)
class Prediction:
    """How well a model predicts times; `unknown` rows were measured, but are outside of what the model speaks of.

    `by` has the errors of every word of the features asked for. Failures have no time and are not counted.
    """

    decision: str
    is_centred: bool
    errors: Errors
    unknown: int = 0
    by: Mapping[str, Mapping[str, Errors]] = field(default_factory=dict)
    worst: tuple[Miss, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "decision": self.decision,
            "is_centred": self.is_centred,
            **self.errors.as_json(),
            "unknown": self.unknown,
            "by": {name: {word: found.as_json() for word, found in words.items()} for name, words in self.by.items()},
            "worst": [miss.as_json() for miss in self.worst],
        }


def predicts_times(model: object) -> bool:
    """Return whether a model guesses times; a tree knows the best only, and some forests an order only."""
    return isinstance(model, Model) and (isinstance(model.body, Net) or _is_timed(model.body))


def prediction(model: Model, data: DataSet, *, worst: int = WORST, by: Sequence[str] | None = None) -> Prediction:
    """Return how well a model predicts the times of a data set.

    `by` names features of words to tell errors apart by; None: all there are. Raises InvalidData for a model that
    guesses no times, a feature that is none of words, and data of which the model knows nothing.
    """
    if not predicts_times(model):
        raise InvalidData(
            f"{model.card.decision}: this model ranks choices and predicts no times; train a ranker or net"
        )
    names = _word_features(data, by)
    known = _known_rows(model, data)
    if not len(known.rows):
        raise InvalidData(f"{data.decision}: the model of {model.card.decision} knows none of the measured rows")
    return Prediction(
        decision=data.decision,
        is_centred=known.is_centred,
        errors=known.errors(np.ones(len(known.rows), dtype=np.bool_)),
        unknown=known.unknown,
        by={name: known.by(data, name) for name in names},
        worst=known.worst(data, worst),
    )


def together(found: Iterable[Prediction], decision: str = "all", *, worst: int = WORST) -> Prediction:
    """Return the predictions of several decisions as one, which also tells them apart by `decision`.

    Where one is centred, all are said to be. Raises InvalidData for none at all.
    """
    every = list(found)
    if not every:
        raise InvalidData("there are no predictions to be put together")
    by: dict[str, dict[str, list[Errors]]] = {}
    for one in every:
        for name, words in {**one.by, DECISION: {one.decision: one.errors}}.items():
            for word, errors in words.items():
                by.setdefault(name, {}).setdefault(word, []).append(errors)
    misses = sorted((miss for one in every for miss in one.worst), key=lambda miss: -miss.factor)
    return Prediction(
        decision=decision,
        is_centred=any(one.is_centred for one in every),
        errors=_pooled([one.errors for one in every]),
        unknown=sum(one.unknown for one in every),
        by={name: {word: _pooled(parts) for word, parts in words.items()} for name, words in by.items()},
        worst=tuple(misses[:worst]),
    )


@dataclass(frozen=True, eq=False)
class _Known:
    """The measured rows that a model has a word on, with logarithms of what it says and of what was measured."""

    rows: Numbers
    problem: Numbers
    predicted: Floats
    actual: Floats
    unknown: int
    is_centred: bool

    def errors(self, some: Any) -> Errors:
        """Return the errors of the rows that are flagged."""
        predicted, actual = self.predicted[some], self.actual[some]
        of_ms = 1e3 * (np.exp(predicted) - np.exp(actual))
        problems = len(np.unique(self.problem[some]))
        mse = float(((predicted - actual) ** 2).mean())
        return Errors(len(actual), problems, mse, float(np.sqrt((of_ms**2).mean())))

    def by(self, data: DataSet, name: str) -> dict[str, Errors]:
        """Return the errors of every word of a feature."""
        column = next(column for column in data.features if column.name == name)
        values = column.values[self.problem]
        return {str(column.words[int(word)]): self.errors(values == word) for word in np.unique(values)}  # type: ignore[index]

    def worst(self, data: DataSet, count: int) -> tuple[Miss, ...]:
        """Return the predictions that are farthest off, worst first."""
        order = np.argsort(-np.abs(self.predicted - self.actual), kind="stable")[:count]
        return tuple(
            Miss(
                data.decision,
                data.problem(int(self.problem[place])),
                data.configs[int(data.rows.config[self.rows[place]])],
                float(np.exp(self.predicted[place])),
                float(data.rows.time_s[self.rows[place]]),
            )
            for place in order
        )


def _known_rows(model: Model, data: DataSet) -> _Known:
    timed = np.flatnonzero(data.rows.status == TIMED)
    problems, settings = _inputs(model, data)
    config = data.rows.config[timed]
    values, choice = np.hstack([problems[data.rows.problem[timed]], settings[config]]), _choices(model, data)[config]
    has = ~np.isnan(values).any(axis=1) & (choice >= 0)
    rows = timed[has]
    problem, actual = data.rows.problem[rows], np.log(data.rows.time_s[rows])
    predicted = _guesses(model, values[has], choice[has])
    is_centred = not (isinstance(model.body, Net) and model.body.level is not None)
    if is_centred and len(rows):
        count = np.maximum(np.bincount(problem), 1)
        predicted = predicted + (np.bincount(problem, weights=actual - predicted) / count)[problem]
    return _Known(rows, problem, predicted, actual, int(len(timed) - len(rows)), is_centred)


def _inputs(model: Model, data: DataSet) -> tuple[Floats, Floats]:
    """Return the inputs of every problem and of every config; NaN where the model does not know one."""
    columns = model.columns
    problems = [columns.known(data.problem(number)) or [np.nan] * len(columns.problem) for number in range(len(data))]
    settings = [[column.value(config.get(column.name)) for column in columns.config] for config in data.configs]
    return np.array(problems, dtype=np.float64), np.array(settings, dtype=np.float64).reshape(len(settings), -1)


def _choices(model: Model, data: DataSet) -> Numbers:
    """Return which choice of a model each config is; -1 where it is none and the model knows its own choices only."""
    if not isinstance(model.body, Forest) or model.body.work is None:
        return np.zeros(len(data.configs), dtype=np.int64)
    numbers = {canonical.encode(choice): number for number, choice in enumerate(model.choices)}
    return np.array([numbers.get(canonical.encode(config), -1) for config in data.configs], dtype=np.int64)


def _guesses(model: Model, values: Floats, choice: Numbers) -> Floats:
    body = model.body
    if isinstance(body, Forest):
        columns = np.stack(worked_out(values, model.columns.derived), axis=1)
        added = evaluate(body, columns)
        return added if body.work is None else added + _of_work(body.work, columns, choice)
    assert isinstance(body, Net)
    guessed = outputs(body.layers, inputs(model.columns, body.scales, values))
    if body.level is not None:
        guessed = guessed + outputs(body.level.layers, inputs(model.columns, body.level.scales, values))
    return guessed


def _of_work(work: Work, columns: Floats, choice: Numbers) -> Floats:
    """Return what the time of work adds to guesses."""
    rates = np.array(work.rates)[choice]
    seconds = rates[:, 0] + (columns[:, list(work.amounts)] * rates[:, 1:]).sum(axis=1)
    told: Floats = work.share * np.log(seconds)
    return told


def _is_timed(body: object) -> bool:
    return isinstance(body, Forest) and not body.is_order


def _word_features(data: DataSet, by: Sequence[str] | None) -> list[str]:
    words = [column.name for column in data.features if column.is_word]
    for name in by or ():
        if name not in words:
            known = ", ".join(words) or "none"
            raise InvalidData(
                f"{data.decision}: {name!r} is no feature of words to tell errors apart by; these are {known}"
            )
    return words if by is None else list(dict.fromkeys(by))


def _pooled(parts: Sequence[Errors]) -> Errors:
    rows = sum(part.rows for part in parts)
    mse, square = (
        sum(part.rows * value for part, value in zip(parts, values, strict=True)) / rows
        for values in ([part.mse for part in parts], [part.rmse_ms**2 for part in parts])
    )
    return Errors(rows, sum(part.problems for part in parts), mse, float(np.sqrt(square)))
