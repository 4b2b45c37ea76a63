"""The few choices that together lose little: a greedy cover on regret."""

from collections.abc import Sequence

import numpy as np

from tunewise.formats.dataset import Floats, Numbers

_WORTH = 5e-4  # of log regret, on average: what a further choice must save to be kept


def cover(costs: Floats, weights: Floats, limit: int, always: Sequence[int] = (), free: int | None = None) -> Numbers:
    """Return the numbers of at most `limit` choices, in ascending order, whose best costs little on every problem.

    `costs` are log regrets, a row a problem. Those in `always` are in, whatever they cost and whatever the limit. The
    one that is `free` is in too and takes no place, unless it is one of those.
    """
    chosen = list(dict.fromkeys(always if free is None else [*always, free]))
    fixed, limit = len(chosen), limit + len(chosen) - len(set(always))
    best = costs[:, chosen].min(axis=1) if chosen else np.full(len(costs), np.inf)
    while len(chosen) < min(limit, costs.shape[1]):
        reached = np.average(np.minimum(best[:, None], costs), axis=0, weights=weights)
        choice = int(reached.argmin())
        if choice in chosen or (chosen and np.average(best, weights=weights) - reached[choice] < _WORTH):
            break
        chosen.append(choice)
        best = np.minimum(best, costs[:, choice])
        chosen = _swapped(costs, weights, chosen, fixed)
        best = costs[:, chosen].min(axis=1)
    return np.array(sorted(chosen), dtype=np.int64)


def _swapped(costs: Floats, weights: Floats, chosen: list[int], fixed: int) -> list[int]:
    """Return the choices after each was exchanged, once, for whatever does best beside the others."""
    result = list(chosen)
    for place in range(fixed, len(result)):
        others = [choice for number, choice in enumerate(result) if number != place]
        best = costs[:, others].min(axis=1) if others else np.full(len(costs), np.inf)
        reached = np.average(np.minimum(best[:, None], costs), axis=0, weights=weights)
        if reached.min() < reached[result[place]]:
            result[place] = int(reached.argmin())
    return result
