"""Seeds first: a strategy that begins with what others propose."""

from collections.abc import Sequence

from tunewise.decision import Config, Places, Space, Trial
from tunewise.search.base import Strategy


class Seeded:
    """Asks the seeds in rank order, then whatever the strategy behind it asks, and nothing twice."""

    def __init__(self, space: Space, seeds: Sequence[Config], then: Strategy) -> None:
        self.name = then.name
        self._space = space
        self._then = then
        self._asked: set[Places] = set()
        self._seeds = list(seeds)

    def ask(self, n: int) -> list[Config]:
        """Return seeds while there are any, then the strategy's own proposals."""
        asked: list[Config] = []
        while self._seeds and len(asked) < n:
            self._take(self._seeds.pop(0), asked)
        while len(asked) < n:
            proposed = self._then.ask(n - len(asked))
            if not proposed:
                break
            for config in proposed:
                self._take(config, asked)
        return asked

    def tell(self, trials: Sequence[Trial], *, origin: str = "") -> None:
        """Pass everything on."""
        self._then.tell(trials, origin=origin)

    def _take(self, config: Config, asked: list[Config]) -> None:
        places = self._space.places(config)
        if places not in self._asked:
            self._asked.add(places)
            asked.append(config)
