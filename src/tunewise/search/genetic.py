"""A genetic algorithm: the fittest configs breed, by uniform crossover and small mutations."""

from collections.abc import Sequence
from math import inf

from tunewise.decision import Config, Places, Space, Trial
from tunewise.search.tried import Tried


class Genetic:
    """Keeps the best configs known as its population and replaces them one by one, so that any batch size will do."""

    name = "genetic"
    POPULATION = 20
    TOURNAMENT = 3
    TRIES = 20  # at a child that is legal and new, before a stranger joins instead

    def __init__(self, space: Space, *, seed: int = 0) -> None:
        self._tried = Tried(space, seed)
        self._population: list[tuple[float, Places]] = []  # best first
        self._born = 0

    def ask(self, n: int) -> list[Config]:
        """Return children of the population, or strangers until there is one."""
        return self._tried.batch(n, self._newborn)

    def tell(self, trials: Sequence[Trial], *, origin: str = "") -> None:
        """Let what was told join the population if it is fit enough; failures never are."""
        if origin:
            return
        joined = {places: time_s for time_s, places in self._population}
        joined.update((places, time_s) for places, time_s in self._tried.hear(trials) if time_s < inf)
        self._population = sorted((time_s, places) for places, time_s in joined.items())[: self.POPULATION]

    def _newborn(self) -> Places | None:
        self._born += 1
        return self._child() if self._born > self.POPULATION and len(self._population) > 1 else None

    def _child(self) -> Places | None:
        for attempt in range(self.TRIES):
            places = self._mutated(self._crossed(self._parent(), self._parent()))
            # Most children of legal parents are legal; repairing is dear, so it waits until chance has failed.
            if attempt < self.TRIES // 2 and not self._tried.is_legal(places):
                continue
            legal = self._tried.legal(places)
            if legal is not None and self._tried.is_new(legal):
                return legal
        return None

    def _parent(self) -> Places:
        """Return the fittest of a few: the population is sorted."""
        drawn = (self._tried.rng.randrange(len(self._population)) for _ in range(self.TOURNAMENT))
        return self._population[min(drawn)][1]

    def _crossed(self, mother: Places, father: Places) -> Places:
        pairs = zip(mother, father, strict=True)
        return tuple(one if self._tried.rng.random() < 0.5 else other for one, other in pairs)

    def _mutated(self, places: Places) -> Places:
        """Return places with one of them, on average, moved next door."""
        rng, params = self._tried.rng, self._tried.space.params
        chance, moved = 1 / len(params), list(places)
        for which, param in enumerate(params):
            if rng.random() < chance:
                moved[which] = rng.choice(param.neighbors(places[which]) or [places[which]])
        return tuple(moved)
