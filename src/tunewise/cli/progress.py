"""Progress of tuning runs: a moving line on a terminal, a few plain lines elsewhere; always on stderr."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import Protocol

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tunewise.cli.screen import Screen, count, one_line, seconds
from tunewise.decision import Proposal, Subject, Verdict
from tunewise.session import events
from tunewise.session.ladder import show

_LINES = 4  # a run writes about so many plain lines
_WIDE = 80  # columns of a terminal that has room for a bar and a clock


class Watcher(Protocol):
    """Hears the events of one tuning run after another."""

    def hear(self, event: events.Event) -> None:
        """Show an event."""


@contextmanager
def watching(screen: Screen) -> Iterator[Watcher]:
    """Give a listener for tuning runs, and tidy up behind it."""
    if not screen.err.is_terminal:
        yield Lines(screen)
        return
    # Measuring forks this process, and a thread that refreshes the screen must not be forked: refresh by hand.
    name, note = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[note]}"))
    columns = (name, BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), note)
    progress = Progress(
        *(columns if screen.err.width >= _WIDE else (name, MofNCompleteColumn(), note)),
        console=screen.err,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with progress:
        yield Bars(screen, progress)


class Lines:
    """A few plain lines a run, for logs and pipes."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._name = ""

    def hear(self, event: events.Event) -> None:
        """Print a line if the event is worth one."""
        if isinstance(event, events.Started):
            self._name = title(event.subject)
        text = _line(event)
        if text:
            self._screen.say(f"{self._name}: {text}")


class Bars:
    """One moving line a run."""

    def __init__(self, screen: Screen, progress: Progress) -> None:
        self._screen, self._progress = screen, progress
        self._task: TaskID | None = None

    def hear(self, event: events.Event) -> None:
        """Move the line of the run, or begin a new one."""
        if isinstance(event, events.Started):
            self._task = self._progress.add_task(title(event.subject), total=event.budget, note="starting")
        elif isinstance(event, events.Proposed | events.Waiting):
            if _line(event):
                self._screen.say(_line(event))
        elif self._task is not None:
            self._move(self._task, event)
        self._progress.refresh()

    def _move(self, task: TaskID, event: events.Event) -> None:
        if isinstance(event, events.Evaluated):
            self._progress.update(task, completed=event.done)
        if isinstance(event, events.Concluded):  # a small space is done before the budget is
            self._progress.update(task, total=self._progress.tasks[task].completed)
        self._progress.update(task, note=_note(event))


def title(subject: Subject) -> str:
    """Return a subject as people name it: `gemm k=64 m=256 n=256`."""
    return one_line(f"{subject.decision} {show(subject.problem)}")


def outcome(verdict: Verdict) -> str:
    """Return how a run ended, in a few words."""
    if verdict.ending == "win":
        pairs = len(verdict.challenger_s)
        return f"{verdict.gain:.2f}x over the default (p={verdict.p_value:.1g}, {pairs} pairs)"
    return (
        "tie: the default stays" if verdict.ending == "tie" else one_line(f"failed: {' '.join(verdict.detail.split())}")
    )


def _line(event: events.Event) -> str:
    if isinstance(event, events.Started):
        known = f", {event.known} known already" if event.known else ""
        return f"tuning, at most {count(event.budget, 'config')}{known}"
    if isinstance(event, events.Evaluated):
        is_due = event.done % max(1, event.budget // _LINES) == 0
        return f"{event.done}/{event.budget} configs, {_note(event)}" if is_due else ""
    if isinstance(event, events.Proposed):
        return _proposed(event.proposals)
    if isinstance(event, events.Waiting):
        return f"{title(event.subject)}: another process is tuning this; waiting for it"
    return outcome(event.verdict) if isinstance(event, events.Concluded) else ""


def _proposed(proposals: Sequence[Proposal]) -> str:
    """Return who proposes how many seeds, and every one of them that cannot be tried."""
    tried = Counter(p.by for p in proposals if p.kind != "user" and p.fate != "dropped")
    seeds = "seeds of " + ", ".join(f"{by} ({number})" for by, number in tried.items()) if tried else ""
    dropped = [f"seed of {p.by} dropped: {p.detail}" for p in proposals if p.fate == "dropped"]
    return "; ".join(filter(None, [seeds, *dropped]))


def _note(event: events.Event) -> str:
    if isinstance(event, events.Building):
        return f"compiling {event.configs}"
    if isinstance(event, events.Evaluated):
        if not isfinite(event.best_s):
            return "nothing timed yet"
        return f"best so far {seconds(event.best_s)}"  # single samples: no gain is claimed before the final
    if isinstance(event, events.Final):
        return "final pairs against the default"
    return outcome(event.verdict) if isinstance(event, events.Concluded) else ""
