"""Tuning one problem together: rounds of candidates that ranks claim one by one, then one rank's final for all.

Rounds rather than one fixed list: what all ranks have measured so far decides what is worth measuring next, as in a run
of one process. One rank asks the search for the next round and publishes it; whatever was published first is the list
of all, so nothing depends on who that is or what its store knows. What cannot learn anyway (a space that is measured
completely) is one long round. Every rank times each candidate beside the default on its own core, the same number of
times, and publishes the ratio: cores and machines differ in speed.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count, islice
from math import inf

from tunewise.decision import Config, Failure, Outcome, Places, Space, Timing, Trial, Verdict
from tunewise.fleet import notes, presence
from tunewise.fleet.boards import Board, Lost, wait_for
from tunewise.fleet.notes import Candidate, Candidates, Result, Terms
from tunewise.measure.race import ENTRY
from tunewise.search import Seeded
from tunewise.session import events
from tunewise.session.plan import Plan, Task
from tunewise.session.run import Run

_SEARCHING, _GATHERING = 0.5, 0.6  # shares of the limit: until then candidates are begun, and results waited for
_REPEATS, _FOR_DATA = 3, 5  # samples of a candidate, beside as many of the default
_LONGEST = 250  # candidates of a round
_PER_RANK = 2  # candidates of a round a rank, where the next round is to learn from this one
_WHOLE = ("exhaustive", "random")  # searches that learn nothing from a round
_FINALISTS, _NEAR = 2, 1.1  # so many of those within this of the best are measured again by whoever ends the run
_SLOWEST = 4.0  # times as long as a candidate took here may others take before they are not waited for
_SLACK_S = 1.0
_COUNTED = 2000  # configs that are counted one by one


class Clock:
    """The time a problem has, counted from when this rank asked."""

    def __init__(self, limit_s: float) -> None:
        self._start, self._limit_s = time.monotonic(), limit_s

    def share(self, part: float) -> float:
        """Return when a part of the time is over."""
        return self._start + part * self._limit_s

    @property
    def seconds(self) -> float:
        """How long it has been."""
        return time.monotonic() - self._start


class Together:
    """One rank's part in a tuning run of many."""

    def __init__(self, board: Board, key: str, me: str, ranks: int, clock: Clock) -> None:
        self._board, self._key, self._me, self._ranks, self._clock = board, key, me, ranks, clock
        self._results: dict[Places, Result] = {}
        self._told: set[Places] = set()  # to the search
        self._configs: dict[Places, Candidate] = {}
        self._owners: dict[Places, str] = {}
        self._asking: Seeded | None = None
        self._failed: Verdict | None = None
        self._proposers = 0  # that were given up
        self._is_open = False
        self._slowest_s = 0.0

    def go(self, run: Run, task: Task, plan: Plan) -> Verdict | None:
        """Take part; return the verdict if it falls to this rank to give it, None if another has done so or will."""
        self._run, self._space = run, task.declaration.space
        self._default = self._space.places(task.declaration.default)
        self._is_complete = plan.measure_all
        repeats = task.work.policy.steps or (_FOR_DATA if plan.measure_all else _REPEATS)
        terms = Terms(run.id, _within(plan.budget, self._space), repeats)
        self._terms = notes.read(self._publish("terms", terms), Terms) or terms
        run.id = self._terms.run
        self._search()
        end = self._end(lambda: plan.listener(events.Waiting(task.subject)))
        if end is None:
            return None
        try:
            self._open()
            verdict = run.whole(self._failed or self._final())
        except BaseException:
            with suppress(Lost):
                self._publish(f"{end}/resigned", self._me)
            raise
        return replace(verdict, evaluations=len({*run.known, *self._results}))

    def _open(self) -> bool:
        """Measure the default, once, before anything that is compared with it; return False if that fails for good."""
        if not self._is_open:
            self._is_open, self._failed = True, self._run.open()
        return self._failed is None

    def _search(self) -> None:
        """Measure round after round until the budget is spent, the time is over or another rank ends the run."""
        asked = 1
        for number in count():
            if asked >= self._terms.budget or self._is_over():
                return
            batch = self._candidates(number, self._terms.budget - asked)
            if not batch:
                return
            asked += len(batch)
            for place, candidate in enumerate(batch):
                if self._is_over():
                    return
                if self._publish(f"{number}/{place}/by", self._me) == self._me:
                    if not self._open():
                        return
                    self._measure(f"{number}/{place}", candidate)
            self._gather(number, batch)

    def _is_over(self) -> bool:
        is_late = time.monotonic() > self._clock.share(_SEARCHING) or self._run.is_over()
        return is_late or self._read("end/0") is not None or self._read("answer") is not None

    def _candidates(self, number: int, most: int) -> Sequence[Candidate]:
        """Return the list of a round; empty where the search is over."""
        found = notes.read(self._listed(f"{number}/list", most), Candidates)
        legal = [] if found is None else [c for c in found.configs if c.config in self._space]
        self._configs.update((self._space.places(c.config), c) for c in legal)
        return legal[:most]

    def _listed(self, key: str, most: int) -> str:
        """Return what one rank proposes for all, the same one every time; the next one if that one dies or hangs."""
        while True:
            proposer = self._publish(f"proposer/{self._proposers}", self._me)
            if proposer == self._me:
                return self._read(key) or self._publish(key, self._proposed(most))
            said = self._awaited(key, proposer)
            if said is not None or self._is_over():
                return said or ""
            self._proposers += 1

    def _awaited(self, key: str, author: str) -> str | None:
        """Return what another rank is about to publish, or None as soon as it is not to be expected any more."""
        until = min(time.monotonic() + _SLACK_S + _SLOWEST * self._slowest_s, self._clock.share(_GATHERING))
        return self._wait(key, author, until, unless="end/0")

    def _proposed(self, most: int) -> Candidates:
        if not self._open():
            return Candidates()
        asking = self._asking = self._asking or self._run.asking()
        untold = [places for places in self._results if places not in self._told]
        asking.tell([Trial(self._configs[places].config, self._outcome(places)) for places in untold])
        self._told.update(untold)
        n = min(most, _LONGEST if asking.name in _WHOLE else max(4, _PER_RANK * self._ranks))
        fresh: list[Config] = []
        while not fresh and (asked := asking.ask(n)):  # what another rank proposed may still be without a result
            fresh = [c for c in asked if self._space.places(c) not in {*self._configs, self._default}]
        return notes.fitting([Candidate(dict(c), (asking.proposer(c) or asking.name)[:200]) for c in fresh])

    def _outcome(self, places: Places) -> Outcome:
        """Return what became of a candidate, as a search here would have seen it."""
        default = self._run.known[self._default]
        return notes.outcome_of(self._results[places], default.time_s if isinstance(default, Timing) else 1.0)

    def _measure(self, key: str, candidate: Candidate) -> None:
        start = time.monotonic()
        outcome = self._run.evaluate(candidate.config, candidate.source)
        if outcome is not None:
            self._publish(f"{key}/result", notes.result_of(outcome, self._ratio(candidate.config, outcome)))
        self._slowest_s = max(self._slowest_s, time.monotonic() - start)

    @property
    def _ratios(self) -> dict[Places, float]:
        return {places: result.ratio for places, result in self._results.items() if result.ratio is not None}

    def _ratio(self, config: Config, outcome: Outcome) -> float | None:
        """Return the time of a config over the default's; of those that may win, by turns."""
        default = self._run.known[self._default]
        if isinstance(outcome, Failure):
            return None
        if isinstance(default, Failure):
            return outcome.time_s
        ratio = outcome.time_s / default.time_s
        if not self._is_complete and ratio > ENTRY * min([1.0, *self._ratios.values()]):
            return ratio  # hopeless
        return self._run.beside_default(config, self._terms.repeats)

    def _gather(self, number: int, batch: Sequence[Candidate]) -> None:
        """Hear what became of a round, for as long as those who measure it live and are not much slower than we."""
        until = min(time.monotonic() + _SLACK_S + _SLOWEST * self._slowest_s, self._clock.share(_GATHERING))
        for place, candidate in enumerate(batch):
            key = f"{number}/{place}"
            owner = self._read(f"{key}/by") or ""
            said = self._wait(f"{key}/result", owner, until)
            self._hear(candidate, owner, None if said is None else notes.read(said, Result))

    def _hear(self, candidate: Candidate, owner: str, result: Result | None) -> None:
        if result is not None:
            places = self._space.places(candidate.config)
            self._owners[places], self._results[places] = owner, result

    def _end(self, tell: Callable[[], None]) -> str | None:
        """Return the key of this rank's right to end the run; None if another does, or nobody in time.

        It is the first to get there who does, or the next one if the first has died or resigned.
        """
        self._give_way()
        for number in count():
            end = f"end/{number}"
            finisher = self._publish(end, self._me)
            if finisher == self._me:
                is_late = time.monotonic() >= self._clock.share(1) or self._read("answer") is not None
                return None if is_late else end
            tell()
            if self._wait("answer", finisher, self._clock.share(1), unless=f"{end}/resigned") is not None:
                return None
            if time.monotonic() >= self._clock.share(1):
                return None
        raise AssertionError("somebody ends the run")

    def _give_way(self) -> None:
        """Wait a little for the rank that measured the best: it need not measure that again."""
        best = self._finalists()[:1]
        if best and self._failed is None and self._owners[best[0]] != self._me:
            self._wait("end/0", self._owners[best[0]], min(time.monotonic() + _SLACK_S, self._clock.share(_GATHERING)))

    def _final(self) -> Verdict:
        """Let the best of all ranks meet the default here."""
        for number in count():  # what came in after we stopped waiting for it, and what others did meanwhile
            said = self._read(f"{number}/list")
            found = None if said is None else notes.read(said, Candidates)
            if found is None or not found.configs:
                break
            for place, candidate in enumerate(found.configs):
                result = self._read(f"{number}/{place}/result")
                if result is not None and candidate.config in self._space:
                    self._configs[self._space.places(candidate.config)] = candidate
                    self._hear(candidate, "", notes.read(result, Result))
        for places in self._finalists():
            candidate = self._configs[places]
            self._run.evaluate(candidate.config, candidate.source, insist=True)
        return self._run.final()

    def _finalists(self) -> list[Places]:
        ratios = self._ratios
        best = min(ratios.values(), default=inf)
        near = [places for places, ratio in ratios.items() if ratio <= _NEAR * best]
        return sorted(near, key=lambda places: (ratios[places], places))[:_FINALISTS]

    def _publish(self, key: str, note: notes.Note | str) -> str:
        return self._board.publish(f"{self._key}/{key}", note if isinstance(note, str) else notes.write(note))

    def _read(self, key: str) -> str | None:
        return self._board.read(f"{self._key}/{key}")

    def _wait(self, key: str, author: str, until: float, unless: str | None = None) -> str | None:
        """Return what stands under a key; None if that takes too long, or its author has died or resigned."""

        def look() -> str | None:
            found = self._read(key)
            if found is None and (presence.is_idle(author) or (unless and self._read(unless))):
                return self._read(key) or ""
            return found

        return wait_for(look, until) or None


def _within(budget: int, space: Space) -> int:
    """Return a budget that is no larger than the space, as far as that is quickly known."""
    return budget if budget > _COUNTED else max(1, sum(1 for _ in islice(space, budget)))
