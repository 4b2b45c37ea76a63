"""What a library's switch tells: a log of every problem and config, and a line for somebody who waits."""

import logging
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, isfinite

from tunewise.decision import Failure, Outcome, Subject, Verdict
from tunewise.deploy.autotuner_line import Line
from tunewise.errors import InvalidSetting
from tunewise.eventlog import logger
from tunewise.session import events, on_call
from tunewise.session.ladder import show
from tunewise.session.shelf import shown

_LEVELS = ("debug", "info", "warning", "error", "critical")
_SHORT = 12  # characters of a problem that a narrow terminal shows at least
_GOES_ON, _GOES_ON_WITHOUT = "goes on with the best so far", "goes on with the default"
_showing: set[Line] = set()  # what may stand on the terminal now: whoever logs there takes it away first
_FORMAT = logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s")


class Telling:
    """Hears the tuning runs of one library. Runs of several threads are told apart by their thread.

    `way_out` says how to tune nothing where Ctrl-C does not reach a run, and `goal` how many configs one comes to.
    """

    def __init__(self, library: str, way_out: Callable[[], str], goal: Callable[[str, int], int]) -> None:
        self.log = logger(f"{library}.autotuner")
        self._library, self._way_out, self._goal = library, way_out, goal
        self._here = threading.local()

    def hear(self, event: events.Event) -> None:
        """Log an event, and begin or end the line of a call that waits."""
        if isinstance(event, events.Started | events.Waiting) and self._run is None:
            self._run = run = _Run(event.subject)
            run.line = self._line(run)
            run.line.begin()
        if isinstance(event, events.Resumed):
            self._end()
        elif isinstance(event, events.Stopping):
            self._stop()
        else:
            self._tell(event)

    def overhear(self, event: events.Event) -> None:
        """Log an event of a run that nobody waits for."""
        if isinstance(event, events.Started):
            self._run = _Run(event.subject)
        self._tell(event)

    @property
    def _run(self) -> "_Run | None":
        """The run of this thread."""
        return getattr(self._here, "run", None)

    @_run.setter
    def _run(self, run: "_Run | None") -> None:
        self._here.run = run

    def _line(self, run: "_Run") -> Line:
        way_out = f"Ctrl-C {_GOES_ON}" if on_call.is_interruptible() else self._way_out()
        line = Line(lambda columns: run.text(self._library, way_out, columns))
        _showing.add(line)
        return line

    def _end(self) -> None:
        run, self._run = self._run, None
        if run is not None and run.line is not None:
            run.line.end()
            _showing.discard(run.line)

    def _stop(self) -> None:
        """Take in that somebody pressed Ctrl-C. This is inside a signal handler: nothing may be written or locked."""
        run = self._run
        if run is not None:
            run.is_stopping = True
            if run.line is not None:
                run.line.is_urgent = True

    def _tell(self, event: events.Event) -> None:
        run = self._run
        if run is None:
            return
        if isinstance(event, events.Started):
            run.goal = self._goal(event.subject.decision, event.budget)
        run.hear(event)
        self._write(run, event)

    def _write(self, run: "_Run", event: events.Event) -> None:
        level = logging.INFO if isinstance(event, events.Concluded) else logging.DEBUG
        if self.log.isEnabledFor(level):
            said = _said(event, run)
            if said:
                self.log.log(level, "%s: %s", run.title, said)


@dataclass(eq=False)
class _Run:
    """How far a tuning run is, and who shows it."""

    subject: Subject
    goal: int = 0
    done: int = 0
    gain: float = 1.0
    is_waiting: bool = False
    is_final: bool = False
    is_stopping: bool = False
    line: Line | None = None
    start_s: float = field(default_factory=time.monotonic)

    @property
    def title(self) -> str:
        """The problem as people name it: `mylib.forward (k=64 n=4096)`."""
        return shown(f"{self.subject.decision} ({show(self.subject.problem)})")

    def hear(self, event: events.Event) -> None:
        """Take in how far it is."""
        self.is_waiting, self.is_final = isinstance(event, events.Waiting), isinstance(event, events.Final)
        if isinstance(event, events.Evaluated):
            self.done = event.done
            if isfinite(event.best_s) and isfinite(event.default_s):
                self.gain = event.default_s / event.best_s

    def text(self, library: str, way_out: str, columns: int | None) -> str:
        """Return the line for somebody who waits; where it is too long for so many columns, a shorter one."""
        whole = f"{library}: tuning {self.title} {self._progress()}; {self._hint(way_out)}"
        if columns is None or len(whole) <= columns:
            return whole
        begin, end = f"{library}: ", f" {self._short_progress()}; {self._short_hint(way_out)}"
        room = max(columns - len(begin) - len(end), _SHORT)
        return begin + (self.title if len(self.title) <= room else self.title[: room - 3] + "...") + end

    def _progress(self) -> str:
        if self.is_waiting:
            return "in another process"
        best = f"best {self.gain:.1f}x the default" if self.gain >= 1.05 else "nothing better than the default yet"
        return f"{self.done} of {self.goal} configs, {best}{', being checked' if self.is_final else ''}"

    def _hint(self, way_out: str) -> str:
        if self.is_stopping:
            return "going on with that; Ctrl-C again interrupts the program"
        return way_out.replace(_GOES_ON, _GOES_ON_WITHOUT) if self.is_waiting else way_out

    def _short_progress(self) -> str:
        return "waits" if self.is_waiting else f"{self.done}/{self.goal}, best {self.gain:.1f}x"

    def _short_hint(self, way_out: str) -> str:
        return "Ctrl-C again interrupts" if self.is_stopping else way_out.replace(f" {_GOES_ON}", " goes on")


class _LastResort(logging.Handler):
    """Shows a library's log on stderr as long as the program has set up no logging of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless somebody else does."""
        try:
            if sys.stderr is None or _is_heard(logging.getLogger(record.name)):
                return
            for line in list(_showing):
                line.wipe()
            stream = sys.stderr
            stream.write(self.format(record) + "\n")
            stream.flush()
        except Exception:  # as every handler does: a log that fails must not fail the program
            self.handleError(record)


def _is_heard(log: logging.Logger | None) -> bool:
    """Return whether a handler other than ours, or one that does nothing, hears what a logger says."""
    while log is not None:
        if any(not isinstance(handler, _LastResort | logging.NullHandler) for handler in log.handlers):
            return True
        log = log.parent if log.propagate else None
    return False


def show_log(log: logging.Logger, variable: str, level: str) -> None:
    """Let a logger speak from a level on, on stderr where nothing else is set up; raises InvalidSetting for others."""
    if level.lower() not in _LEVELS:
        raise InvalidSetting(f"{variable}={level!r} is not one of {', '.join(_LEVELS)}")
    log.setLevel(level.upper())
    if not any(isinstance(handler, _LastResort) for handler in log.handlers):
        handler = _LastResort()
        handler.setFormatter(_FORMAT)
        log.addHandler(handler)


def _said(event: events.Event, run: _Run) -> str:
    if isinstance(event, events.Started):
        known = f", {event.known} known already" if event.known else ""
        return f"tuning, at most {run.goal} configs{known}"
    if isinstance(event, events.Waiting):
        return "another process is tuning this; waiting for it"
    if isinstance(event, events.Evaluated):
        return shown(f"{show(event.config)}: {_cost(event.outcome, event.default_s)} (proposed by {event.source})")
    if isinstance(event, events.Final):
        return shown(f"{show(event.challenger)} meets the default {show(event.incumbent)} in pairs")
    return _outcome(event.verdict, run) if isinstance(event, events.Concluded) else ""


def _cost(outcome: Outcome, default_s: float) -> str:
    if isinstance(outcome, Failure):
        return f"failed, {outcome.kind}: {outcome.detail.strip()}"
    compared = f", {default_s / outcome.time_s:.2f}x the default" if 0 < default_s < inf else ""
    return f"{_time(outcome.time_s)}{compared}"


def _outcome(verdict: Verdict, run: _Run) -> str:
    took = f"{verdict.evaluations} configs in {time.monotonic() - run.start_s:.1f} s"
    stopped = "; stopped, the next process goes on with it" if run.is_stopping else ""
    if verdict.ending == "win":
        gain = f"{verdict.gain:.2f}x the default" if verdict.challenger_s else "the default fails"
        return shown(f"{show(verdict.winner)} wins, {gain}; {took}{stopped}")
    if verdict.ending == "tie":
        return shown(f"the default {show(verdict.winner)} stays, nothing beats it; {took}{stopped}")
    return shown(f"failed, the default stays: {' '.join(verdict.detail.split())}; {took}{stopped}")


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
