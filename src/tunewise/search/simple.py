"""Strategies that need no model: everything in order, everything by chance, and downhill from the best so far."""

import random
from collections.abc import Iterator, Sequence

from tunewise.decision import Config, Places, Space, Timing, Trial


class Exhaustive:
    """Every config, in the space's order."""

    name = "exhaustive"

    def __init__(self, space: Space, *, seed: int = 0) -> None:
        self._space = space
        self._rest: Iterator[Config] = iter(space)
        self._told: set[Places] = set()

    def ask(self, n: int) -> list[Config]:
        """Return the next configs that nobody told about yet."""
        asked: list[Config] = []
        for config in self._rest:
            if self._space.places(config) not in self._told:
                asked.append(config)
            if len(asked) >= n:
                break
        return asked

    def tell(self, trials: Sequence[Trial]) -> None:
        """Remember which configs need not be asked."""
        self._told.update(self._space.places(t.config) for t in trials if t.config in self._space)


class RandomSearch:
    """Legal configs by chance, each at most once."""

    name = "random"

    def __init__(self, space: Space, *, seed: int = 0) -> None:
        self._space = space
        self._rng = random.Random(seed)
        self._seen: set[Places] = set()

    def ask(self, n: int) -> list[Config]:
        """Return fresh random configs; fewer than `n` only when the space is used up."""
        asked: list[Config] = []
        # Ask for more than is needed, because some were seen before; the last ones come from a complete listing.
        for config in self._space.sample(n + len(self._seen), self._rng):
            places = self._space.places(config)
            if places not in self._seen and len(asked) < n:
                self._seen.add(places)
                asked.append(config)
        return asked

    def tell(self, trials: Sequence[Trial]) -> None:
        """Never ask what was told."""
        self.forbid([trial.config for trial in trials if trial.config in self._space])

    def forbid(self, configs: Sequence[Config]) -> None:
        """Never ask these."""
        self._seen.update(self._space.places(config) for config in configs)


class LocalSearch:
    """The neighbours of the best configs so far, the default's to begin with, among random ones that grow fewer."""

    name = "local"
    START = 16  # configs known before neighbours outnumber random ones
    EXPLORE = (0.5, 0.25)  # random share of a batch, before and after
    ELITE = 5  # whose neighbours are tried, best first

    def __init__(self, space: Space, *, seed: int = 0) -> None:
        self._space = space
        self._random = RandomSearch(space, seed=seed)
        self._rng = random.Random(seed + 1)
        self._seen: set[Places] = set()
        self._times: dict[Places, float] = {}
        self._configs: dict[Places, Config] = {}

    def ask(self, n: int) -> list[Config]:
        """Return neighbours of the best configs, best first, filled up with random ones."""
        asked: list[Config] = []
        if self._times:
            share = self.EXPLORE[len(self._times) > self.START]
            asked = self._near_the_best(sum(self._rng.random() >= share for _ in range(n)))
            self._random.forbid(asked)
        asked += self._random.ask(n - len(asked))
        self._seen.update(self._space.places(config) for config in asked)
        return asked

    def tell(self, trials: Sequence[Trial]) -> None:
        """Remember times; a failed config is never asked again and has no neighbours."""
        self._random.tell(trials)
        for trial in trials:
            if trial.config in self._space:
                places = self._space.places(trial.config)
                self._seen.add(places)
                if isinstance(trial.outcome, Timing):
                    self._times[places] = trial.outcome.time_s
                    self._configs[places] = trial.config

    def _near_the_best(self, n: int) -> list[Config]:
        asked: dict[Places, Config] = {}
        for best in sorted(self._times, key=lambda places: (self._times[places], places))[: self.ELITE]:
            near = self._space.neighbors(self._configs[best])
            self._rng.shuffle(near)
            for config in near:
                places = self._space.places(config)
                if places not in self._seen and len(asked) < n:
                    asked[places] = config
        return list(asked.values())
