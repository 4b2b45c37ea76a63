"""The bench: prepares, runs, times and checks the configs of one piece of work, in whatever process it stands."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from math import inf
from time import perf_counter, process_time  # bound now, so that no config can bend them later
from typing import Any

from tunewise import system
from tunewise.decision import Args, Config, Failure, Outcome, Timing, canonical, lower_half_mean
from tunewise.errors import BuildError, KernelError, LimitExceeded
from tunewise.measure import results
from tunewise.measure.clocks import CLOCKS, DEVICE, MAX_CALLS, calls_for, cost_of, time_calls, time_each
from tunewise.measure.oracle import Oracle
from tunewise.measure.work import Work

_MAX_COPIES = 64  # arguments copied ahead for one sample of a function that changes them
_MAX_CHECK_S = 2.0  # repeated checks of a winner stop here
_SUSPICIOUS = 3.0  # this much slower on fresh arguments than on known ones: it remembers instead of computing
_PAIR_S = 3e-3  # a pair takes about this long where calls are short
MIN_TURNS, MAX_TURNS = 3, 15  # beside a busy process, 15 turns of 0.1 ms tell 3 % apart 97 times in 100; one turn 62
_SHORT = 4  # times shorter than it should be, a sample says that something disturbed the one its length was set by
_HOPELESS = 1.45  # a first launch this much slower than the best so far is not repeated
_LOADING_S = 1e-4  # besides, it finds cold caches and new code: it may take this much longer than a later call
_CLEARLY = 1.15  # this much slower is enough where it is known how much longer launches take than later calls
_LAUNCHES, _RECENT = 8, 40  # that tell so: at least, and at most
_WAITING_CALLS = 3  # all of them must have waited
_DETAIL = 2000


class Bench:
    """Runs configs and times them where it stands; an ordinary exception of a config becomes a Failure.

    Whatever kills the process kills the bench too: `Isolated` keeps one in a worker for that reason.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._clock = CLOCKS[work.policy.clock]
        self._cost_s = cost_of(self._clock)
        self._ready: dict[str, Callable[..., Any]] = {}
        self._calls: dict[str, int] = {}  # how many calls make a sample of a config
        self._longer_s: deque[float] = deque(maxlen=_RECENT)  # first launches than later calls
        self._oracle = Oracle(work, self._function)
        self._sweep: bytearray | None = None
        self._most_calls = 1 if work.policy.cache == "cold" else MAX_CALLS

    def first(self, config: Config, best_s: float = inf) -> Outcome:
        """Prepare and launch a config, check the result on the tuned arguments, and return one warm sample."""
        outcome: Outcome = self._guard(lambda: self._first(config, best_s))
        return outcome

    def sample(self, config: Config, n: int) -> Outcome:
        """Return `n` samples of a config, prepared again if this bench has not seen it."""
        outcome: Outcome = self._guard(lambda: self._sample(config, n))
        return outcome

    def pair(self, incumbent: Config, challenger: Config, turns: int | None = None) -> tuple[float, float] | Failure:
        """Time two configs by turns; return the lower half mean of each."""
        found: tuple[float, float] | Failure = self._guard(lambda: self._pair(incumbent, challenger, turns))
        return found

    def verify(self, config: Config, repeats: int = 1) -> Failure | None:
        """Check a config on all inputs, `repeats` times (fewer if that takes too long); None if it is right."""
        outcome = self._guard(lambda: self._verify(config, repeats))
        return outcome if isinstance(outcome, Failure) else None

    def close(self) -> None:
        """Drop what was prepared."""
        self._ready.clear()

    def _first(self, config: Config, best_s: float) -> Outcome:
        self._oracle.prepare()
        start = perf_counter()
        function = self._function(config)
        launch = self._oracle.launch(function, 0, self._clock)
        compile_s = perf_counter() - start
        if launch.reason is not None:
            return Failure("correctness", launch.reason)
        if self._work.is_prebuilt and self._is_hopeless(launch.least_s, best_s):
            return Timing((launch.seconds,), compile_s)
        sample_s, self._calls[canonical.encode(config)] = self._calibrate(function)
        self._longer_s.append(launch.least_s - sample_s)
        return Timing((sample_s,), compile_s)

    def _is_hopeless(self, launch_s: float, best_s: float) -> bool:
        """Return whether a first launch says enough: most launches here are not that much slower than later calls."""
        limit_s = _HOPELESS * best_s + _LOADING_S
        if len(self._longer_s) >= _LAUNCHES:
            limit_s = min(limit_s, _CLEARLY * best_s + max(sorted(self._longer_s)[int(0.9 * len(self._longer_s))], 0.0))
        return launch_s > limit_s

    def _sample(self, config: Config, n: int) -> Outcome:
        while True:
            function, calls = self._warm(config)
            samples_s = tuple(self._timed(function, calls) for _ in range(n))
            if not self._is_lengthened(config, calls, samples_s):
                return Timing(samples_s)

    def _pair(self, incumbent: Config, challenger: Config, turns: int | None) -> tuple[float, float]:
        both = incumbent, challenger
        while True:
            sides = _alike([self._warm(config) for config in both])
            taken = self._by_turns(sides, turns)
            longer = [self._is_lengthened(*one) for one in zip(both, (calls for _, calls in sides), taken, strict=True)]
            if not any(longer):
                return lower_half_mean(taken[0]), lower_half_mean(taken[1])

    def _by_turns(
        self, sides: Sequence[tuple[Callable[..., Any], int]], turns: int | None
    ) -> tuple[list[float], list[float]]:
        taken: tuple[list[float], list[float]] = ([], [])
        spent_s, turn = 0.0, 0
        while turn < (turns or MIN_TURNS) or (turns is None and turn < MAX_TURNS and spent_s < _PAIR_S):
            for which in (0, 1) if turn % 2 else (1, 0):
                function, calls = sides[which]
                taken[which].append(self._timed(function, calls))
                spent_s += taken[which][-1] * calls
            turn += 1
        return taken

    def _verify(self, config: Config, repeats: int) -> Outcome | None:
        function = self._function(config)
        waited = self._waits(function)
        if waited is not None:
            return Failure("runtime", waited)
        if not self._work.check.is_on:
            return None
        deadline = perf_counter() + _MAX_CHECK_S
        for turn in range(repeats):
            for which in range(self._oracle.count):
                reason = self._oracle.launch(function, which, self._clock).reason
                if reason is not None:
                    return Failure("correctness", reason)
            if turn and perf_counter() > deadline:
                break
        if repeats > 1 and self._remembers(config, function):
            return Failure("correctness", "fast only on arguments it has seen before: it remembers results")
        return None

    def _waits(self, function: Callable[..., Any]) -> str | None:
        """Return how a call waits for somebody else instead of computing, where only computing is on the clock.

        A busy machine makes calls wait too, but against their will: those switches are counted apart.
        """
        if self._work.policy.clock != "cpu":
            return None
        said = None
        for _ in range(_WAITING_CALLS):
            args, switches = self._args(), system.waits()
            wall, cpu = perf_counter(), process_time()
            function(*args)
            wall, cpu = perf_counter() - wall, process_time() - cpu
            if wall < 3 * cpu + 1e-3 or system.waits() == switches:
                return None
            said = f"waits instead of computing ({wall:.2g} s for {cpu:.2g} s of CPU); use Policy(clock='wall')"
        return said

    def _remembers(self, config: Config, function: Callable[..., Any]) -> bool:
        """Return whether fresh copies of the arguments are much slower than known ones, compared with the default."""
        ours = self._freshness(function)
        return ours > _SUSPICIOUS and ours > _SUSPICIOUS * self._freshness(self._function(self._work.default))

    def _freshness(self, function: Callable[..., Any]) -> float:
        known = [time_each(self._clock, function, [self._args()]) for _ in range(9)]
        fresh = [time_each(self._clock, function, [args]) for args in _fresh(self._work.args, 9)]
        return lower_half_mean(fresh) / max(lower_half_mean(known), 1e-6)

    def _warm(self, config: Config) -> tuple[Callable[..., Any], int]:
        """Return a config's function, called before in this process, and how many calls make a sample."""
        key, function = canonical.encode(config), self._function(config)
        if key not in self._calls:
            self._once(function)
            _, self._calls[key] = self._calibrate(function)
        return function, self._calls[key]

    def _calibrate(self, function: Callable[..., Any]) -> tuple[float, int]:
        """Return a sample that lasts long enough, and how many calls that took.

        A single short call says little: the clock itself and the first touch cost more than the work.
        """
        calls = 1
        while True:
            sample_s = self._timed(function, calls)
            if sample_s <= 0 and self._clock is DEVICE:
                raise KernelError("the call reported no work of a device; use another clock than 'device' for it")
            wanted = calls_for(sample_s, self._work.policy.min_sample_s)
            if wanted <= calls or calls >= self._most_calls:
                return sample_s, calls
            calls = min(self._most_calls, max(2 * calls, wanted))

    def _is_lengthened(self, config: Config, calls: int, samples_s: Sequence[float]) -> bool:
        """Return whether samples are far too short to be compared with others; the next ones have more calls."""
        least_s, wanted_s = min(samples_s, default=inf), self._work.policy.min_sample_s
        if calls >= self._most_calls or _SHORT * least_s * calls >= wanted_s:
            return False
        self._calls[canonical.encode(config)] = min(self._most_calls, max(2 * calls, calls_for(least_s, wanted_s)))
        return True

    def _function(self, config: Config) -> Callable[..., Any]:
        key = canonical.encode(config)
        if key not in self._ready:
            self._ready[key] = self._work.prepare(config)
        return self._ready[key]

    def _args(self) -> Args:
        return results.copied(self._work.args) if self._oracle.changes_args else self._work.args

    def _once(self, function: Callable[..., Any]) -> float:
        return time_each(self._clock, function, [self._args()])

    def _timed(self, function: Callable[..., Any], calls: int) -> float:
        if self._work.policy.cache == "cold":
            self._evict()
            return self._once(function)
        if self._oracle.changes_args:
            return time_each(self._clock, function, [self._args() for _ in range(min(calls, _MAX_COPIES))])
        return time_calls(self._clock, function, self._work.args, calls, self._cost_s)

    def _evict(self) -> None:
        if self._sweep is None:
            self._sweep = bytearray(64 << 20)
        self._sweep[::64] = bytes(len(self._sweep) // 64)

    def _guard(self, run: Callable[[], Any]) -> Any:
        try:
            return _plausible(run())
        except MemoryError as error:
            return Failure("memory", f"MemoryError: {error}"[:_DETAIL])
        except BuildError as error:
            return Failure("compile", str(error)[-_DETAIL:])
        except LimitExceeded as error:
            return Failure("constraints", str(error)[:_DETAIL])
        except Exception as error:
            return Failure("runtime", f"{type(error).__name__}: {error}"[:_DETAIL])


def _alike(sides: Sequence[tuple[Callable[..., Any], int]]) -> list[tuple[Callable[..., Any], int]]:
    """Return both sides of a pair with the same number of calls a sample, unless they are far apart anyway."""
    fewest, most = min(calls for _, calls in sides), max(calls for _, calls in sides)
    return [(function, most if most <= 4 * fewest else calls) for function, calls in sides]


def _plausible(outcome: Any) -> Any:
    """Return an outcome as it is, unless a clock that was tampered with shows no time at all."""
    samples_s = outcome.samples_s if isinstance(outcome, Timing) else outcome if isinstance(outcome, tuple) else ()
    if not all(0 < sample < inf for sample in samples_s):
        return Failure("runtime", f"the clock shows {min(samples_s)!r} s for a call")
    return outcome


def _fresh(args: Args, n: int) -> Iterator[Args]:
    for _ in range(n):
        yield results.copied(args)
