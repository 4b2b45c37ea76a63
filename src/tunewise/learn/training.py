"""From a data set to a model: what every learner needs done before and after, and the choice between learners."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import product
from typing import Protocol

import msgspec
import numpy as np

from tunewise.decision import Scalar
from tunewise.errors import InvalidData, NotFound
from tunewise.formats.dataset import DataSet
from tunewise.learn.gbdt import GbdtLearner
from tunewise.learn.hooks import filtered, further, place_of, weighing
from tunewise.learn.net import NetLearner
from tunewise.learn.options import Training
from tunewise.learn.ranker import RankerLearner
from tunewise.learn.regression import RegressionLearner
from tunewise.learn.regret import charged, with_times
from tunewise.learn.split import by_problem, folds, parts_of
from tunewise.learn.teacher import named_in
from tunewise.learn.tree import TreeLearner, sampled
from tunewise.learn.validate import Validation, spread, validate
from tunewise.models import Card, Model

AUTO = "auto"
# Of the facts about a device, those that two of one model share; how many cores a process may use is not among them.
_MODEL = ("hardware.kind", "hardware.name", "hardware.capability", "hardware.shared_memory")
_FOLDS = 3  # for learners that do not hold out problems themselves


class Learner(Protocol):
    """Makes a model from measurements."""

    @property
    def name(self) -> str:
        """What people call it."""

    def fit(self, data: DataSet, options: Training) -> Model:
        """Return the model; scores in its card are those of problems that were held out."""


LEARNERS: tuple[Learner, ...] = (TreeLearner(), RegressionLearner(), RankerLearner(), GbdtLearner(), NetLearner())


def train(data: DataSet, options: Training = Training(), learner: str | Learner = AUTO) -> Model:  # noqa: B008  # frozen
    """Return a model learned from a data set, its card filled in; equal data, options and days give equal models.

    `learner` is a learner or the name of one of ours; `auto` chooses. Raises InvalidData where nothing can be learned
    or a hook does not fit the data, NotFound for a learner that does not exist, and MissingPart where a learner needs
    a package that is not installed.
    """
    ready = prepared(data, options)
    named_in(ready, options)  # a config that is not there is told before minutes of work
    if options.weights is not None:
        options = replace(options, weights=weighing(ready, options.weights))
    known, held = _apart(ready, options)
    fits = [_scored(*fitted, known) for fitted in _fits(known, options, learner)]
    model = smallest(fits, options)
    scores = {**model.card.scores, **_beside(sampled(known, options.seed))}
    if held is not None:
        scores |= _named("test", validate(model, held))
    for name, other in options.evaluation.items():
        scores |= _named(name, validate(model, prepared(other, replace(options, filter_rows=None))))
    return msgspec.structs.replace(model, card=_card(model, data, known, options, scores))


def prepared(data: DataSet, options: Training) -> DataSet:
    """Return the data as the options want them: filtered, with a name, a default and further features."""
    wanted = filtered(data, options)
    if not wanted.features:
        raise InvalidData(f"{wanted.decision}: the problems have no features, so no model can tell them apart")
    wanted = with_times(wanted)
    if options.default is not None:
        wanted = replace(wanted, default=place_of(wanted, options.default, "default"))
    if options.name is not None:
        wanted = replace(wanted, decision=options.name)
    if options.add_features:
        wanted = replace(wanted, features=(*wanted.features, *further(wanted, options)))
    return wanted


def learner_called(name: str) -> Learner:
    """Return a learner by its name; raises NotFound for any other name."""
    for learner in LEARNERS:
        if learner.name == name:
            return learner
    known = ", ".join([AUTO, *(learner.name for learner in LEARNERS)])
    raise NotFound(f"there is no learner {name!r}; the learners are {known}")


def _learner(asked: str | Learner) -> Learner:
    if isinstance(asked, str):
        return learner_called(asked)
    if isinstance(asked, type) or not callable(getattr(asked, "fit", None)) or not hasattr(asked, "name"):
        raise InvalidData(f"{asked!r} is no learner; give a name, or an object with a name and fit(data, options)")
    return asked


def smallest(models: Sequence[Model], options: Training) -> Model:
    """Return the first model, they come smallest first, whose held-out regret is within tolerance of the best."""
    if len(models) == 1 or not all("regret" in model.card.scores for model in models):
        return models[0]
    regrets = [np.log(model.card.scores["regret"]) for model in models]
    return next(m for m, regret in zip(models, regrets, strict=True) if regret <= min(regrets) + options.readable)


def _fits(data: DataSet, options: Training, asked: str | Learner) -> list[tuple[Learner, Training, Model]]:
    """Return everything that was tried: each learner in question, with each setting of the grid."""
    learners = _candidates(data, options) if asked == AUTO else [_learner(asked)]
    tried = product(*options.grid.values())
    settings = [replace(options, **dict(zip(options.grid, values, strict=True))) for values in tried]
    return [(learner, setting, learner.fit(data, setting)) for learner in learners for setting in settings]


def _candidates(data: DataSet, options: Training) -> list[Learner]:
    """Return the learners to compare: a tree says all there is to say of few choices, a forest ranks many.

    What is said of leaves, a tree alone can follow.
    """
    if len(data.configs) <= options.portfolio or options.unsafe is not None:
        return [TreeLearner()]
    return [learner for learner in LEARNERS if learner.name in ("tree", "ranker")]


def _scored(learner: Learner, options: Training, model: Model, data: DataSet) -> Model:
    """Return the model with its held-out regret in its card; learners that hold out problems themselves know it.

    Where all problems are one, none can be held out, and nothing is said.
    """
    if "regret" in model.card.scores or parts_of(data) < 2:
        return model
    scores = [
        validate(learner.fit(known, options), held)
        for known, held in folds(data, min(_FOLDS, parts_of(data)), options.seed)
    ]
    lost = np.concatenate([score.regrets["ours"] for score in scores])
    found = {"regret": float(np.exp(np.log(lost).mean())), "p95": float(np.quantile(lost, 0.95))}
    card = msgspec.structs.replace(model.card, scores={**found, "problems": float(len(lost))})
    return msgspec.structs.replace(model, card=card)


def _beside(data: DataSet) -> dict[str, float]:
    """Return what the default and the best single choice cost on the problems at hand, to compare a model with."""
    costs = charged(data)
    scores = {"best_single_regret": spread(costs[:, costs.mean(axis=0).argmin()]).geomean}
    return scores if data.default is None else {**scores, "default_regret": spread(costs[:, data.default]).geomean}


def _apart(data: DataSet, options: Training) -> tuple[DataSet, DataSet | None]:
    return by_problem(data, options.test_share, options.seed) if options.test_share else (data, None)


def _named(name: str, found: Validation) -> dict[str, float]:
    scores = {f"{name}.regret": found.regret.geomean, f"{name}.p95": found.regret.p95}
    return {**scores, f"{name}.coverage": found.coverage, f"{name}.problems": float(found.problems)}


def _card(model: Model, data: DataSet, known: DataSet, options: Training, scores: Mapping[str, float]) -> Card:
    return msgspec.structs.replace(
        model.card,
        decision=known.decision,
        fence=dict(options.fence) if options.fence is not None else fence_of(data),
        fingerprint=data.fingerprint,
        created=options.created or date.today().isoformat(),
        scores={name: float(f"{score:.5g}") for name, score in scores.items()},
    )


def fence_of(data: DataSet) -> dict[str, Scalar]:
    """Return what all devices of the data share of what makes one model of a device: where a model may be used."""
    first, *others = data.devices or ({},)
    shared = {name: first[name] for name in _MODEL if name in first and all(o.get(name) == first[name] for o in others)}
    return {name: value for name, value in shared.items() if isinstance(value, int | float | str | bool)}
