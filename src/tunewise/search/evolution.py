"""Differential evolution on places: each config is challenged by itself plus a scaled difference of two others."""

from collections.abc import Sequence
from math import inf

from tunewise.decision import Config, Places, Space, Trial
from tunewise.search.tried import Tried


class DifferentialEvolution:
    """A population of configs, each replaced by its challenger if that is faster.

    Values count by their place in the parameter; what falls between two places is rounded, beyond the ends clamped,
    and a combination that breaks a rule moved to the nearest legal one.
    """

    name = "evolution"
    POPULATION = 20
    SCALE = 0.7  # of the difference
    CROSSING = 0.8  # chance that a parameter is taken from the challenger
    TRIES = 40  # at a challenger that is new, before a stranger is tried instead

    def __init__(self, space: Space, *, seed: int = 0) -> None:
        self._tried = Tried(space, seed)
        self._members: list[Places] = []
        self._turn = 0
        self._asked_for: dict[Places, int] = {}  # whom a pending challenger challenges
        self._born = 0

    def ask(self, n: int) -> list[Config]:
        """Return challengers of the members in turn, or strangers until there are enough members."""
        return self._tried.batch(n, self._newborn)

    def tell(self, trials: Sequence[Trial], *, origin: str = "") -> None:
        """Let what was told replace whom it challenged, or the slowest member if it challenged nobody."""
        if origin:
            return
        for places, time_s in self._tried.hear(trials):
            member = self._asked_for.pop(places, None)
            if time_s == inf or places in self._members:
                continue
            if member is None and len(self._members) < self.POPULATION:
                self._members.append(places)
            else:
                self._duel(self._slowest() if member is None else member, places)

    def _newborn(self) -> Places | None:
        self._born += 1
        return self._challenger() if self._born > self.POPULATION and len(self._members) > 3 else None

    def _challenger(self) -> Places | None:
        """Return a new config that challenges the member whose turn it is; known ones are dealt with at once."""
        for _ in range(self.TRIES):
            self._turn = (self._turn + 1) % len(self._members)
            places = self._tried.legal(self._combined(self._turn))
            if places is None:
                continue
            if self._tried.is_new(places):
                self._asked_for[places] = self._turn
                return places
            self._duel(self._turn, places)
        return None

    def _combined(self, turn: int) -> Places:
        rng, params = self._tried.rng, self._tried.space.params
        others = [member for which, member in enumerate(self._members) if which != turn]
        base, plus, minus = rng.sample(others, 3)
        target, always = self._members[turn], rng.randrange(len(params))
        places = []
        for which, param in enumerate(params):
            moved = base[which] + self.SCALE * (plus[which] - minus[which])
            is_taken = which == always or rng.random() < self.CROSSING
            places.append(min(len(param) - 1, max(0, round(moved))) if is_taken else target[which])
        return tuple(places)

    def _duel(self, member: int, places: Places) -> None:
        times = self._tried.times
        if places not in self._members and times.get(places, inf) < times[self._members[member]]:
            self._members[member] = places

    def _slowest(self) -> int:
        return max(range(len(self._members)), key=lambda which: self._tried.times[self._members[which]])
