"""Isolated measuring: whatever a config does to its process, the tuner goes on and knows what happened."""

import gc
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from types import TracebackType
from typing import Self

from tunewise.decision import Config, Failure, Outcome, canonical
from tunewise.measure import pollution, procfs
from tunewise.measure.bench import MAX_TURNS, Bench
from tunewise.measure.frames import BadFrame, Job, Reply, outcome_of
from tunewise.measure.leash import Bounds, Held, Leash, Lost, ZygoteGone
from tunewise.measure.work import Measurer, Work
from tunewise.measure.worker import Assignment

MAX_USES = 500  # new configs a worker sees before it is replaced
MAX_GROWTH_BYTES = 500 << 20
_VARIANTS = 2  # inputs that checking makes up besides those given
_LEAST_BUILD_S, _UNUSUAL = 10.0, 20.0  # so much longer than usual is a hang, not a build
_CHECK_TURNS = 4  # a bench gives up repeating a slow check about then


@dataclass
class Shift:
    """A worker and what it has been through."""

    worker: Held
    seen: set[str] = field(default_factory=set)  # configs it has prepared
    last: str = ""
    uses: int = 0
    is_tainted: bool = False

    def is_fit_for(self, key: str, *, is_fresh_wanted: bool) -> bool:
        """Return whether a config may run here: its own leavings are a config's own trouble, never the next one's."""
        if self.last and key != self.last and (is_fresh_wanted or self.is_tainted or self.uses >= MAX_USES):
            return False
        return self.worker.is_quiet()


class Isolated:
    """Runs configs in a worker process that is replaced after a crash, a time-out or 500 configs.

    A zygote is forked from this process by the first job, so functions, closures and arrays are simply there as they
    were then; what this process changes later, the workers do not see. Files that were open for writing, sockets and
    terminals are /dev/null in there. Threads share one worker, one job at a time; a process forked from this one that
    goes on using the object starts a zygote of its own. Close it, or use it in a `with`: nothing is left behind, and
    nothing is either when this process is killed.
    """

    def __init__(self, work: Work, bench: Callable[[Work], Measurer] = Bench) -> None:
        self._work = work
        self._policy = work.policy
        self._make_bench = bench
        self._limit_bytes = 0
        self._settling_s: float | None = None  # what a job on a new worker took when it went well
        self._usual_s: float | None = None  # the longest that building a config took when it went well
        self._owner = os.getpid()
        self._lock = threading.RLock()
        self._leash: Leash | None = None
        self._shift: Shift | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def first(self, config: Config, best_s: float = inf) -> Outcome:
        """Prepare and launch a config in the worker and return one sample; a crash, hang or leak is a Failure."""
        limit = best_s if best_s < inf else None
        outcome = self._do(Job(verb="first", config=dict(config), best_s=limit), calls=1)
        assert outcome is not None
        return outcome

    def sample(self, config: Config, n: int) -> Outcome:
        """Return `n` samples from the worker; a worker that has not seen the config prepares it again."""
        outcome = self._do(Job(verb="sample", config=dict(config), n=n), calls=n + (self._policy.warmup_steps or 0))
        assert outcome is not None
        return outcome

    def pair(self, incumbent: Config, challenger: Config, turns: int | None = None) -> tuple[float, float] | Failure:
        """Time two configs by turns in one worker; if it dies, the challenger is to blame."""
        job = Job(verb="pair", config=dict(challenger), rival=dict(incumbent), n=turns or 0)
        outcome = self._do(job, calls=2 * MAX_TURNS)
        assert outcome is not None
        return outcome if isinstance(outcome, Failure) else (outcome.samples_s[0], outcome.samples_s[1])

    def verify(self, config: Config, repeats: int = 1) -> Failure | None:
        """Check a config in the worker on all inputs, `repeats` times; return what is wrong, or None."""
        self._disown_copies()
        if repeats > 1:  # a winner is not believed in a process that others have been through
            with self._lock:
                self._start_over()
        turns = min(repeats, _CHECK_TURNS)
        outcome = self._do(Job(verb="verify", config=dict(config), n=repeats), calls=turns * self._inputs())
        return outcome if isinstance(outcome, Failure) else None

    def close(self) -> None:
        """Kill the worker, the zygote and all that configs left behind; harmless twice. A later job starts anew."""
        self._disown_copies()
        with self._lock:
            leash, self._leash = self._leash, None
            self._end_shift()
            if leash is not None:
                leash.close()

    def _do(self, job: Job, calls: int) -> Outcome | None:
        self._disown_copies()
        with self._lock:
            for _ in range(2):
                try:
                    return self._attempt(job, calls)
                except ZygoteGone:  # killed from outside, or by the kernel for lack of memory
                    self.close()
                except OSError as error:
                    self.close()
                    return Failure("crash", f"no worker can be started: {error}")
            return Failure("crash", "the process that starts the workers was killed twice")

    def _attempt(self, job: Job, calls: int) -> Outcome | None:
        shift = self._fit_shift(job)
        bounds = Bounds(self._allowed_s(job, calls, shift), self._limit_bytes)
        start = time.monotonic()
        try:
            reply = shift.worker.ask(job, bounds)
            if reply.is_refused and shift.seen:
                self._clear()
                return self._attempt(job, calls)
            outcome = outcome_of(job, reply)
        except (Lost, BadFrame) as error:
            return self._lost(shift, error)
        except BaseException:  # Ctrl-C: nobody will read what the worker answers
            self._start_over()
            raise
        self._remember(job, reply, is_first_try=not shift.seen, took_s=time.monotonic() - start)
        return _with_output(outcome, shift.worker) if isinstance(outcome, Failure) else outcome

    def _fit_shift(self, job: Job) -> Shift:
        """Return a worker that may run a job: the one that is there, or a new one."""
        key = canonical.encode(job.config)
        is_fresh_wanted = self._policy.isolation == "fresh"
        if self._shift is not None and not self._shift.is_fit_for(key, is_fresh_wanted=is_fresh_wanted):
            self._clear()
        if self._leash is None:
            self._limit_bytes = self._policy.memory_limit_bytes or procfs.available_bytes() // 2
            pollution.preload()
            self._leash = Leash(self._assignment())
        if self._shift is None:
            self._shift = Shift(self._leash.fork())
        self._shift.last = key
        return self._shift

    def _assignment(self) -> Assignment:
        return Assignment(self._work, self._make_bench, self._limit_bytes, random.getstate(), gc.isenabled())

    def _allowed_s(self, job: Job, calls: int, shift: Shift) -> float:
        """Return the seconds until a job counts as hung: so many calls, and what must be built or worked out before."""
        allowed = self._policy.timeout_s * calls
        if job.verb == "first" or shift.last not in shift.seen:
            allowed += self._building_s()
        if shift.seen or not self._work.check.is_on:
            return allowed
        # A new worker works out the right results first, twice for each input; for that it builds the default.
        most = self._policy.timeout_s * 2 * self._inputs()
        if job.config != self._work.default:
            most += self._building_s()
        return allowed + (most if self._settling_s is None else min(most, 1 + 5 * self._settling_s))

    def _building_s(self) -> float:
        """Return how long building may take: all that the policy allows, until the first one shows what is usual."""
        most = self._policy.compile_timeout_s
        return most if self._usual_s is None else min(most, max(_LEAST_BUILD_S, _UNUSUAL * self._usual_s))

    def _inputs(self) -> int:
        return 1 + len(self._work.inputs) + _VARIANTS

    def _remember(self, job: Job, reply: Reply, *, is_first_try: bool, took_s: float) -> None:
        shift, leash = self._shift, self._leash
        assert shift is not None
        assert leash is not None
        if is_first_try and reply.kind is None:
            self._settling_s = took_s
        if reply.compile_s is not None:
            self._usual_s = max(self._usual_s or 0.0, reply.compile_s)
        shift.seen.add(shift.last)
        shift.is_tainted |= bool(reply.taint)
        if job.verb == "first":
            shift.uses += 1
            grown = shift.worker.grown_bytes() + shift.worker.shared_growth_bytes()
            shift.is_tainted |= grown > MAX_GROWTH_BYTES or leash.has_strays(shift.worker.pid)

    def _lost(self, shift: Shift, error: Lost | BadFrame) -> Failure:
        """End the worker and return what became of the config."""
        assert self._leash is not None
        ending = self._leash.clear()
        if isinstance(error, Lost):
            failure = Failure(error.kind, error.detail or ending)
        else:
            failure = Failure("runtime", f"the worker's reply is not valid: {error}")
        failure = _with_output(failure, shift.worker)
        self._end_shift()
        return failure

    def _clear(self) -> None:
        if self._leash is not None:
            self._leash.clear()
        self._end_shift()

    def _start_over(self) -> None:
        """Let the next job begin in a new worker, below a new zygote if the old one is gone."""
        try:
            self._clear()
        except ZygoteGone:
            self.close()

    def _end_shift(self) -> None:
        shift, self._shift = self._shift, None
        if shift is not None:
            shift.worker.close()

    def _disown_copies(self) -> None:
        """In a process that somebody forked from the tuner: forget its zygote, and its lock that nobody may release."""
        if self._owner == os.getpid():
            return
        self._owner, self._lock = os.getpid(), threading.RLock()
        leash, self._leash = self._leash, None
        self._end_shift()
        if leash is not None:
            leash.abandon()


def _with_output(failure: Failure, worker: Held) -> Failure:
    output = worker.output()
    return Failure(failure.kind, f"{failure.detail}\n{output}") if output else failure
