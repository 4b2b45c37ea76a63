"""Simulated annealing: a walk from neighbour to neighbour that takes steps uphill less and less, with restarts."""

from collections.abc import Sequence
from math import exp, inf, log

from tunewise.decision import Config, Places, Space, Trial
from tunewise.search.tried import Tried, at


class SimulatedAnnealing:
    """Walks downhill, and uphill with a chance that falls with the slope and with every step.

    Slopes are ratios of times, so that the temperature means the same on every space. Steps to configs that are known
    cost nothing. Where the walk has cooled down or sees nothing new around, it starts again somewhere else.
    """

    name = "annealing"
    HOT, COLD = 0.5, 0.01  # temperatures: at 0.5 a config 1.65x slower is taken with a chance of 1/e
    COOLING = 0.96
    START = 8  # random configs, of which the best is where the first walk begins
    FREE_STEPS = 50  # over known configs before a walk is given up

    def __init__(self, space: Space, *, seed: int = 0) -> None:
        self._tried = Tried(space, seed)
        self._here: Places | None = None
        self._near: list[Places] = []
        self._temperature = self.COLD  # of the first few the best is taken

    def ask(self, n: int) -> list[Config]:
        """Return steps from where the walk stands, or places to start from."""
        return self._tried.batch(n, self._step)

    def tell(self, trials: Sequence[Trial], *, origin: str = "") -> None:
        """Move to what was told, if it is better or chance will have it; failures are never moved to."""
        if origin:
            return
        for places, time_s in self._tried.hear(trials):
            self._consider(places, time_s)
        self._cool(len(trials))

    def _step(self) -> Places | None:
        """Return a new neighbour; None means that the walk starts again."""
        if len(self._tried.times) < self.START:
            return None
        for _ in range(self.FREE_STEPS):
            if self._here is None or not any(map(self._tried.is_new, self._near)):
                break
            places = self._tried.rng.choice(self._near)
            if self._tried.is_new(places):
                return places
            self._consider(places, self._tried.times.get(places, inf))
        if self._here is not None and not any(map(self._tried.is_new, self._near)):
            self._here, self._temperature = None, self.HOT
        return None

    def _cool(self, steps: int) -> None:
        if self._temperature == self.COLD:
            self._temperature = self.HOT if len(self._tried.times) >= self.START else self.COLD
            return
        self._temperature *= self.COOLING**steps
        if self._temperature <= self.COLD:
            self._here, self._temperature = None, self.HOT

    def _consider(self, places: Places, time_s: float) -> None:
        if time_s == inf:
            return
        if self._here is not None:
            uphill = log(time_s / self._tried.times[self._here])
            if uphill > 0 and self._tried.rng.random() >= exp(-uphill / self._temperature):
                return
        if places != self._here:
            self._here = places
            space = self._tried.space
            self._near = [space.places(config) for config in space.neighbors(at(space, places))]
