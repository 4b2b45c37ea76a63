"""How good a model is on data it has not seen: regret, coverage, and what the default and one fixed choice would do."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from tunewise.decision import Config, Problem, canonical
from tunewise.errors import InvalidData
from tunewise.formats.dataset import DataSet, Flags, Floats, Numbers
from tunewise.formats.datasets import with_default
from tunewise.learn.data_report import noise_floor
from tunewise.learn.regret import charged, log_regrets, with_times
from tunewise.models import Model

TOP = (1, 3, 5, 10)
_WORST = 10  # problems that are named
_NOT_THERE = -1  # the number of a config that the data do not have


class Ranks(Protocol):
    """Anything that ranks the choices of a decision: a model, or generated code that was loaded."""

    @property
    def choices(self) -> Sequence[Mapping[str, Any]]:
        """The configs that the numbers of a ranking stand for."""

    def rank(self, features: Mapping[str, object], /) -> Sequence[Any]:
        """Return choices, best first, as numbers or as configs; empty: it abstains."""


@dataclass(frozen=True)
class Spread:
    """Regrets of many problems in three numbers."""

    geomean: float
    p95: float
    max: float

    def as_json(self) -> dict[str, float]:
        """Return the three as plain values."""
        return {"geomean": self.geomean, "p95": self.p95, "max": self.max}


class Case(NamedTuple):
    """One problem, what was answered, what would have been best, and the price."""

    problem: Problem
    chosen: Config | None  # None: the model abstained and there is no default
    best: Config
    regret: float


@dataclass(frozen=True)
class Validation:
    """How a model does on problems it has not seen, abstentions being answered by the default.

    `best_single` is the one choice that does best on these very problems, so its regret flatters it. `top` has the
    regret of the best of the first k choices. `counts` are AutoHeuristic's: correct (it named the fastest), wrong,
    unsure (it abstained); and unmeasured: what it named was never tried there, or is not in the data at all, and is
    scored as the default. `warnings` are reasons to doubt the figures, each a sentence.
    """

    decision: str
    problems: int
    coverage: float
    regret: Spread
    default_regret: Spread | None
    best_single_regret: Spread
    best_single: Config
    top: dict[int, float]
    speedup_over_default: float | None
    speedup_over_best_single: float
    noise_floor: float | None  # ratio of times below which a difference means nothing; None: rows have one sample
    counts: dict[str, int]
    by_category: dict[str, dict[str, Spread]] = field(default_factory=dict)
    worst: tuple[Case, ...] = ()
    regrets: dict[str, Floats] = field(default_factory=dict)  # of every problem: ours, default, best_single
    is_seen: bool = False  # the model was learned from these very data
    warnings: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return everything but the regrets of single problems as plain values."""
        return {
            "decision": self.decision,
            "problems": self.problems,
            "coverage": self.coverage,
            "regret": self.regret.as_json(),
            "default_regret": self.default_regret.as_json() if self.default_regret else None,
            "best_single_regret": self.best_single_regret.as_json(),
            "best_single": dict(self.best_single),
            "top": {str(k): regret for k, regret in self.top.items()},
            "speedup_over_default": self.speedup_over_default,
            "speedup_over_best_single": self.speedup_over_best_single,
            "noise_floor": self.noise_floor,
            "counts": dict(self.counts),
            "by_category": {
                name: {word: spread.as_json() for word, spread in spreads.items()}
                for name, spreads in self.by_category.items()
            },
            "worst": [
                {
                    "problem": dict(case.problem),
                    "chosen": None if case.chosen is None else dict(case.chosen),
                    "best": dict(case.best),
                    "regret": case.regret,
                }
                for case in self.worst
            ],
            "is_seen": self.is_seen,
            "warnings": list(self.warnings),
        }


def validate(model: Ranks, data: DataSet, *, default: Config | str | None = None, worst: int = _WORST) -> Validation:
    """Return how a model does on a data set; `default` names the fallback where the data do not, by a config or a word.

    Raises InvalidData where nothing ran on any problem, or the default is not among the configs.
    """
    known = with_times(data if default is None else with_default(data, default))
    rankings = ranked(model, known)
    costs = charged(known)
    answers = np.array([len(ranking) > 0 for ranking in rankings])
    first = np.array([ranking[0] if len(ranking) else _NOT_THERE for ranking in rankings], dtype=np.int64)
    ours = answered(costs, first, known.default)
    is_seen = _learned_from(model) == data.fingerprint
    single = int(costs.mean(axis=0).argmin())
    default_cost = None if known.default is None else costs[:, known.default]
    return Validation(
        decision=known.decision,
        problems=len(known),
        coverage=float(answers.mean()),
        regret=spread(ours),
        default_regret=None if default_cost is None else spread(default_cost),
        best_single_regret=spread(costs[:, single]),
        best_single=known.configs[single],
        top={k: _top(costs, rankings, known.default, k) for k in TOP},
        speedup_over_default=None if default_cost is None else float(np.exp((default_cost - ours).mean())),
        speedup_over_best_single=float(np.exp((costs[:, single] - ours).mean())),
        noise_floor=noise_floor(known.rows),
        counts=_counts(known, answers, first),
        by_category=_by_category(known, ours),
        worst=_worst(model, known, first, ours, worst),
        regrets=_regrets(ours, default_cost, costs[:, single]),
        is_seen=is_seen,
        warnings=_warnings(model, data, is_seen=is_seen),
    )


def ranked(model: Ranks, data: DataSet) -> list[Numbers]:
    """Return for every problem the numbers, in the data, of the configs a model ranks; none where it abstains.

    A config that is not in the data cannot be judged; it keeps its place, as -1.
    """
    known = {canonical.encode(dict(config)): number for number, config in enumerate(data.configs)}
    mine = [known.get(canonical.encode(dict(choice)), _NOT_THERE) for choice in model.choices]
    return [_numbers(model.rank(data.problem(number)), mine, known) for number in range(len(data))]


def answered(costs: Floats, first: Numbers, default: int | None) -> Floats:
    """Return the log regret of a first choice for every problem; -1 stands for the default, or the worst without."""
    fallback = costs.max(axis=1) if default is None else costs[:, default]
    chosen: Floats = np.where(first >= 0, costs[np.arange(len(costs)), first], fallback)
    return chosen


def spread(log_regret: Floats) -> Spread:
    """Return the geometric mean, the 95th percentile and the maximum of regrets given as logarithms."""
    if not len(log_regret):
        raise InvalidData("no problem to be judged on")
    regrets = np.exp(log_regret)
    return Spread(float(np.exp(log_regret.mean())), float(np.quantile(regrets, 0.95)), float(regrets.max()))


def _numbers(ranking: Iterable[Any], mine: Sequence[int], known: Mapping[str, int]) -> Numbers:
    found = [
        mine[item] if isinstance(item, int) else known.get(canonical.encode(dict(item)), _NOT_THERE) for item in ranking
    ]
    return np.array(found, dtype=np.int64)


def _top(costs: Floats, rankings: Sequence[Numbers], default: int | None, k: int) -> float:
    fallback = answered(costs, np.full(len(costs), _NOT_THERE), default)
    every = np.column_stack([costs, fallback])  # the last column is that of what is not there
    best = [
        every[number, ranking[:k]].min() if len(ranking) else fallback[number]
        for number, ranking in enumerate(rankings)
    ]
    return float(np.exp(np.mean(best)))


def _counts(data: DataSet, answers: Flags, first: Numbers) -> dict[str, int]:
    regret = np.where(first >= 0, log_regrets(data)[np.arange(len(data)), first], np.nan)
    correct, unmeasured = answers & (regret <= 0), answers & np.isnan(regret)
    return {
        "correct": int(correct.sum()),
        "wrong": int((answers & ~correct & ~unmeasured).sum()),
        "unsure": int((~answers).sum()),
        "unmeasured": int(unmeasured.sum()),
    }


def _by_category(data: DataSet, ours: Floats) -> dict[str, dict[str, Spread]]:
    found: dict[str, dict[str, Spread]] = {}
    for column in data.features:
        if column.words is not None:
            present = np.unique(column.values).astype(int)
            found[column.name] = {column.words[number]: spread(ours[column.values == number]) for number in present}
    return found


def _worst(model: Ranks, data: DataSet, first: Numbers, ours: Floats, count: int) -> tuple[Case, ...]:
    best = np.nanargmin(data.times_s, axis=1)
    cases = []
    for number in np.argsort(-ours, kind="stable")[:count]:
        problem = data.problem(number)
        chosen = data.configs[first[number]] if first[number] >= 0 else _elsewhere(model, problem, data)
        cases.append(Case(problem, chosen, data.configs[best[number]], float(np.exp(ours[number]))))
    return tuple(cases)


def _elsewhere(model: Ranks, problem: Problem, data: DataSet) -> Config | None:
    """Return the config that a model names and the data lack, or the default where it names none."""
    for named in model.rank(problem):
        return dict(model.choices[named] if isinstance(named, int) else named)
    return None if data.default is None else data.configs[data.default]


def _learned_from(model: Ranks) -> str | None:
    """Return the fingerprint of the data that a model was learned from, where it tells."""
    return model.card.fingerprint if isinstance(model, Model) else getattr(model, "fingerprint", None)


def _warnings(model: Ranks, data: DataSet, *, is_seen: bool) -> tuple[str, ...]:
    found = []
    if is_seen:
        found.append("the model was learned from these very data, so the figures flatter it; give problems held out")
    decision = model.card.decision if isinstance(model, Model) else getattr(model, "decision", None)
    if decision is not None and decision != data.decision:
        way = f"if they are about one decision, name it: --decision {decision}"
        found.append(f"the model is of the decision {decision} and the data are of {data.decision}; {way}")
    return tuple(found)


def _regrets(ours: Floats, default: Floats | None, single: Floats) -> dict[str, Floats]:
    found = {"ours": np.exp(ours), "best_single": np.exp(single)}
    if default is not None:
        found["default"] = np.exp(default)
    return found
