"""What a search has tried: shared by the strategies that walk, breed or combine what they know."""

import random
from collections.abc import Callable, Sequence
from math import inf

from tunewise.decision import Config, Places, Space, Timing, Trial, Value
from tunewise.search.simple import RandomSearch


class Tried:
    """Configs that were asked or told, their times, and fresh ones by chance."""

    def __init__(self, space: Space, seed: int) -> None:
        self.space = space
        self.rng = random.Random(seed + 1)
        self.times: dict[Places, float] = {}  # infinite where the config failed
        self._random = RandomSearch(space, seed=seed)
        self._asked: set[Places] = set()

    def is_new(self, places: Places) -> bool:
        """Return whether a config was neither asked nor told."""
        return places not in self._asked and places not in self.times

    def ask(self, places: Places) -> Config:
        """Return the config at some places, and mark it as asked."""
        config = at(self.space, places)
        self._asked.add(places)
        self._random.forbid([config])
        return config

    def fresh(self) -> Config | None:
        """Return a random config that was not tried, marked as asked; None when the space is used up."""
        found = self._random.ask(1)
        self._asked.update(self.space.places(config) for config in found)
        return found[0] if found else None

    def batch(self, n: int, propose: Callable[[], Places | None]) -> list[Config]:
        """Return `n` configs as proposed, or by chance where nothing is; fewer only when the space is used up."""
        asked: list[Config] = []
        while len(asked) < n:
            places = propose()
            config = self.fresh() if places is None else self.ask(places)
            if config is None:
                break
            asked.append(config)
        return asked

    def hear(self, trials: Sequence[Trial]) -> list[tuple[Places, float]]:
        """Remember trials and return the places and time of those that the space has."""
        self._random.tell(trials)
        heard = [(self.space.places(t.config), _time_s(t)) for t in trials if t.config in self.space]
        self.times.update(heard)
        return heard

    def is_legal(self, places: Places) -> bool:
        """Return whether a config lies at some places."""
        return at(self.space, places) in self.space

    def legal(self, places: Places) -> Places | None:
        """Return places if a config lies there, else those of the nearest one; None if none is near."""
        if self.is_legal(places):
            return places
        repaired = self.space.repair(at(self.space, places))
        return None if repaired is None else self.space.places(repaired)


def at(space: Space, places: Places) -> dict[str, Value]:
    """Return the values at some places, legal or not."""
    return {param.name: param.values[place] for param, place in zip(space.params, places, strict=True)}


def _time_s(trial: Trial) -> float:
    return trial.outcome.time_s if isinstance(trial.outcome, Timing) else inf
