"""Seeds first: a strategy that begins with what others propose, for as long as they prove right."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from tunewise.decision import Config, Places, Space, Timing, Trial
from tunewise.search.base import Strategy

_POOR = 1.5  # times the best of others: whoever proposed that is not asked for more
_LEAD = 1.2  # of a seed over all that others proposed, before its surroundings are looked at
_AROUND = 3  # configs around a seed that leads
_MOVES_EVERY = 4  # configs, of which one may be a move of a heuristic's
_IN_VAIN = 6  # moves that brought nothing, after which there are no more


@dataclass(frozen=True, slots=True)
class Seed:
    """A config to try first, and who proposed it. What a user insists on is tried whatever became of the others."""

    config: Config
    by: str = "user"
    is_insisted: bool = True


Moves = Callable[[Config], Sequence[Seed]]  # what heuristics would try next to a config


class Seeded:
    """Asks seeds in order, then what the strategy behind it asks, and nothing twice.

    A proposer whose seed is poor or fails is not asked for another one. Around a seed that leads by far, a few single
    steps are tried before the strategy goes on. `moves` gives what heuristics would try next to the best so far.
    """

    def __init__(
        self, space: Space, seeds: Sequence[Seed], then: Strategy, *, seed: int = 0, moves: Moves | None = None
    ) -> None:
        self.name = then.name
        self.dropped: list[tuple[Seed, str]] = []  # never asked, and why
        self._space, self._then, self._moves = space, then, moves
        self._rng = random.Random(seed)
        self._queue = list(seeds)
        self._proposers: dict[Places, str] = {}
        self._asked: set[Places] = set()
        self._times: dict[Places, float] = {}  # infinite where a config failed
        self._best_s = inf
        self._best: Config | None = None
        self._around: Iterator[Config] | None = None
        self._moving: list[Seed] = []
        self._moved: dict[Places, str] = {}
        self._in_vain = 0

    def ask(self, n: int) -> list[Config]:
        """Return seeds while there are any to ask, then the strategy's own proposals."""
        asked: list[Config] = []
        while len(asked) < n:
            config = self._before_strategy()
            if config is not None:
                self._take(config, asked)
            # How the seeds asked just now do decides whether the next one is asked.
            elif (asked and self._queue) or not self._ask_strategy(n - len(asked), asked):
                break
        return asked

    def tell(self, trials: Sequence[Trial], *, origin: str = "") -> None:
        """Pass everything on, and see how the seeds did."""
        if not origin:
            for trial in trials:
                self._hear(trial)
        self._then.tell(trials, origin=origin)

    @property
    def waiting(self) -> tuple[Seed, ...]:
        """The seeds that were not asked yet."""
        return tuple(self._queue)

    def proposer(self, config: Config) -> str | None:
        """Return which heuristic or user an asked config came from, or None if the search itself proposed it."""
        places = self._space.places(config)
        return self._proposers.get(places) or self._moved.get(places)

    def _ask_strategy(self, n: int, asked: list[Config]) -> bool:
        """Add what the strategy proposes, one at a time while a seed or a move may be next; False: it is finished."""
        proposed = self._then.ask(1 if self._queue or self._moves else n)
        for config in proposed:
            self._take(config, asked)
        return bool(proposed)

    def _take(self, config: Config, asked: list[Config]) -> None:
        places = self._space.places(config)
        if places not in self._asked:
            self._asked.add(places)
            asked.append(config)

    def _hear(self, trial: Trial) -> None:
        if trial.config not in self._space:
            return
        places = self._space.places(trial.config)
        time_s = trial.outcome.time_s if isinstance(trial.outcome, Timing) else inf
        self._times[places] = time_s
        if places in self._moved:
            self._in_vain = 0 if time_s < self._best_s else self._in_vain + 1
        if time_s < self._best_s:
            self._best_s, self._best = time_s, trial.config
            if self._moves is not None:
                self._moving = list(self._moves(trial.config))

    def _before_strategy(self) -> Config | None:
        for offer in (self._seed, self._nearby, self._move):
            config = offer()
            if config is not None:
                return config
        return None

    def _seed(self) -> Config | None:
        """Return the next seed whose turn it is; those of proposers that were wrong are dropped on the way."""
        for seed in list(self._queue):
            if not seed.is_insisted:
                poor = self._why_poor(seed.by)
                if poor is not None:
                    self._queue.remove(seed)
                    self.dropped.append((seed, poor))
                    continue
                if self._is_unproven(seed.by):
                    continue
            self._queue.remove(seed)
            self._proposers.setdefault(self._space.places(seed.config), seed.by)
            return seed.config
        return None

    def _is_unproven(self, proposer: str) -> bool:
        """Return whether an earlier seed of a proposer is still to be measured, or has nothing to be compared with."""
        own = [places for places, by in self._proposers.items() if by == proposer]
        return bool(own) and (any(places not in self._times for places in own) or self._others_s(proposer) == inf)

    def _why_poor(self, proposer: str) -> str | None:
        others_s = self._others_s(proposer)
        for places, by in self._proposers.items():
            time_s = self._times.get(places)
            if by == proposer and time_s is not None and time_s > _POOR * others_s:
                how = "failed" if time_s == inf else f"took {time_s / others_s:.1f} times the best of others"
                return f"an earlier seed of {proposer} {how}"
        return None

    def _others_s(self, proposer: str) -> float:
        """Return the best time of what a proposer did not propose."""
        return min((t for places, t in self._times.items() if self._proposers.get(places) != proposer), default=inf)

    def _nearby(self) -> Config | None:
        """Return a single step from the best, if that is a seed which leads by far; a few of them, once."""
        if self._around is None and self._leads():
            assert self._best is not None
            steps = self._space.neighbors(self._best)
            self._around = iter(self._rng.sample(steps, min(_AROUND, len(steps))))
        return next(self._around, None) if self._around is not None else None

    def _leads(self) -> bool:
        if self._best is None or self._queue:
            return False
        places = self._space.places(self._best)
        others_s = [t for other, t in self._times.items() if other not in self._proposers]
        return places in self._proposers and min(others_s, default=0.0) >= _LEAD * self._best_s

    def _move(self) -> Config | None:
        if self._in_vain >= _IN_VAIN or len(self._asked) % _MOVES_EVERY:
            return None
        while self._moving:
            move = self._moving.pop(0)
            places = self._space.places(move.config)
            if places not in self._asked:  # or else whoever asked it first proposed it
                self._moved[places] = move.by
                return move.config
        return None
