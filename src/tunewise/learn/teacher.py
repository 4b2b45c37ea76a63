"""A strong, unreadable model of what every choice costs: it answers for problems that nobody measured."""

from collections.abc import Callable, Sequence

import numpy as np

from tunewise.formats.dataset import Floats
from tunewise.learn.columns import Frame, smooth
from tunewise.models import Derived

Teacher = Callable[[Frame], Floats]

_TREES = 200
_CAP = 1.5  # log regret: a choice that is five times too slow is no worse to pick than one that is ten times too slow


def teach(known: Frame, derived: Sequence[Derived], costs: Floats, weights: Floats, seed: int) -> Teacher:
    """Return a function that guesses the log regret of every choice for other problems: extremely random trees."""
    from sklearn.ensemble import ExtraTreesRegressor

    trees = ExtraTreesRegressor(_TREES, random_state=seed, n_jobs=1)
    targets = np.minimum(costs, _CAP)
    trees.fit(smooth(known, derived), targets.ravel() if targets.shape[1] == 1 else targets, sample_weight=weights)

    def guess(problems: Frame) -> Floats:
        guessed: Floats = trees.predict(smooth(problems, derived)).reshape(len(problems), -1)
        return guessed

    return guess
