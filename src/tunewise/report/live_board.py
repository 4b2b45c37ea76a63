"""The latest signs of life of everybody, summed up as they come, so that a look costs what has changed."""

from collections import Counter
from collections.abc import Iterable
from heapq import nlargest
from itertools import chain

from tunewise.report.live_signs import (
    GONE_S,
    NODE_STATES,
    STALE_S,
    Ladder,
    Node,
    Plan,
    Run,
    lookups_of,
    node_of,
    number,
    plan_of,
    run_of,
    state_of,
    whole,
)
from tunewise.store import Sign


class Board:
    """Keeps one sign of a kind and key: the one that was put last."""

    def __init__(self, signs: Iterable[Sign] = ()) -> None:
        self.evaluations = 0  # of all runs
        self.failures = 0
        self._signs: dict[tuple[str, str], Sign] = {}
        self._running: dict[str, Sign] = {}
        self._ended: dict[str, Sign] = {}
        self._states: Counter[str] = Counter()  # of those that ended
        self._asked: Counter[tuple[str, str]] = Counter()  # look-ups by decision and rung
        self.put(signs)

    def put(self, signs: Iterable[Sign]) -> None:
        """Take signs in; one that is known is passed over."""
        for sign in signs:
            known = self._signs.get((sign.kind, sign.key))
            if known is None or known.at != sign.at:
                if known is not None:
                    self._count(known, -1)
                self._signs[sign.kind, sign.key] = sign
                self._count(sign, 1)

    def keep(self, signs: Iterable[Sign]) -> None:
        """Take signs in and forget all others."""
        found = list(signs)
        self.put(found)
        for key in self._signs.keys() - {(sign.kind, sign.key) for sign in found}:
            self._count(self._signs.pop(key), -1)

    def states(self, now: float) -> Counter[str]:
        """Return how many runs are in each state.

        `stale` are those that say they run and were not heard of; after an hour they count as stopped.
        """
        silent = [now - sign.at for sign in self._running.values()]
        gone, stale = sum(age > GONE_S for age in silent), sum(STALE_S < age <= GONE_S for age in silent)
        return Counter(running=len(silent) - stale - gone, stale=stale, stopped=gone) + self._states

    def running(self, now: float, most: int) -> list[Run]:
        """Return runs that go on, the newest first, and stale ones last."""

        def rank(sign: Sign) -> tuple[bool, float]:
            is_stale = now - sign.at > STALE_S
            return not is_stale, sign.at if is_stale else number(sign.body.get("began")) or 0.0

        going = (sign for sign in self._running.values() if now - sign.at <= GONE_S)
        return [run_of(sign, now) for sign in nlargest(most, going, key=rank)]

    def finished(self, now: float, most: int) -> list[Run]:
        """Return runs that ended, or were not heard of for an hour, the latest first."""
        gone = (sign for sign in self._running.values() if now - sign.at > GONE_S)
        latest = nlargest(most, chain(self._ended.values(), gone), key=lambda sign: sign.at)
        return [run_of(sign, now) for sign in latest]

    def ladder(self) -> list[Ladder]:
        """Return the look-ups of all processes together by decision, the most asked first."""
        counted: dict[str, Counter[str]] = {}
        for (decision, rung), answered in self._asked.items():
            if answered:
                counted.setdefault(decision, Counter())[rung] = answered
        found = (Ladder(decision, rungs) for decision, rungs in counted.items())
        return sorted(found, key=lambda one: (-one.lookups, one.decision))

    def plans(self, now: float) -> list[Plan]:
        """Return the plans, those that run first, then the latest."""
        found = [plan_of(sign, now) for sign in self._of("plan")]
        return sorted(found, key=lambda plan: (plan.state != "running", plan.is_stale, -plan.at))

    def nodes(self, now: float) -> list[Node]:
        """Return the nodes: busy ones, idle ones, those that are gone, stale ones; by name within."""
        found = [node_of(sign, now) for sign in self._of("node")]
        return sorted(found, key=lambda node: (node.is_stale, NODE_STATES.index(node.state), node.name, node.key))

    def _of(self, kind: str) -> list[Sign]:
        return [sign for (given, _), sign in self._signs.items() if given == kind]

    def _count(self, sign: Sign, times: int) -> None:
        """Add a sign to the sums, or take it out of them."""
        if sign.kind == "ladder":
            for decision, rung, answered in lookups_of(sign):
                self._asked[decision, rung] += times * answered
        elif sign.kind == "run":
            self.evaluations += times * whole(sign.body.get("done"))
            self.failures += times * whole(sign.body.get("failed"))
            is_running = (state := state_of(sign)) == "running"
            if not is_running:
                self._states[state] += times
            shelf = self._running if is_running else self._ended
            if times > 0:
                shelf[sign.key] = sign
            else:
                del shelf[sign.key]
