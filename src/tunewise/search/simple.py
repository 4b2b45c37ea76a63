"""Strategies that need no model: everything in order, everything by chance, and downhill from the best so far."""

import random
from collections.abc import Iterable, Iterator, Sequence

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

    def tell(self, trials: Sequence[Trial], *, origin: str = "") -> None:
        """Remember which configs need not be asked; what was measured elsewhere still must be."""
        if not origin:
            self._told.update(self._space.places(t.config) for t in trials if t.config in self._space)


class RandomSearch:
    """Legal configs by chance, each at most once."""

    name = "random"
    SPARE = 8  # drawn beyond what is needed: some were seen before

    def __init__(self, space: Space, *, seed: int = 0) -> None:
        self._space = space
        self._rng = random.Random(seed)
        self._seen: set[Places] = set()
        self._rest: list[Config] | None = None  # what is left, shuffled, once so much is seen that draws find little

    def ask(self, n: int) -> list[Config]:
        """Return fresh random configs; fewer than `n` only when the space is used up."""
        asked: list[Config] = []
        if self._rest is None:
            self._take(self._space.sample(n + self.SPARE, self._rng), n, asked)
        if len(asked) < n:
            self._take(self._left(), n, asked)
        return asked

    def tell(self, trials: Sequence[Trial], *, origin: str = "") -> None:
        """Never ask what was told; what was measured elsewhere says nothing here."""
        if not origin:
            self.forbid([trial.config for trial in trials if trial.config in self._space])

    def forbid(self, configs: Sequence[Config]) -> None:
        """Never ask these."""
        self._seen.update(self._space.places(config) for config in configs)

    def _take(self, configs: Iterable[Config], n: int, asked: list[Config]) -> None:
        for config in configs:
            places = self._space.places(config)
            if places not in self._seen:
                self._seen.add(places)
                asked.append(config)
            if len(asked) >= n:
                break

    def _left(self) -> Iterator[Config]:
        if self._rest is None:
            self._rest = [config for config in self._space if self._space.places(config) not in self._seen]
            self._rng.shuffle(self._rest)
        while self._rest:
            yield self._rest.pop()


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

    def tell(self, trials: Sequence[Trial], *, origin: str = "") -> None:
        """Remember times; a failed config is never asked again and has no neighbours."""
        if origin:
            return
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
