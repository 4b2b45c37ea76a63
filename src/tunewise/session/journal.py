"""What runs and look-ups tell those who operate them: events, see `tunewise.eventlog`."""

import time
from typing import Any

from tunewise.decision import Answer, Failure, Subject, Verdict
from tunewise.eventlog import DEBUG, INFO, WARNING, is_told, tell
from tunewise.session import events


class RunJournal:
    """Listens to one run and tells when it begins and how it ends."""

    def __init__(self, subject: Subject, run: str) -> None:
        self._subject, self._run = subject, run
        self._began = time.monotonic()
        self._done = self._failed = 0
        self._has_ended = False

    def hear(self, event: events.Event) -> None:
        """Take an event in; tell of a beginning and an end."""
        if isinstance(event, events.Started):
            self._tell(INFO, "run-started", "begins", budget=event.budget, known=event.known)
        elif isinstance(event, events.Evaluated):
            self._done = event.done
            self._failed += isinstance(event.outcome, Failure)
        elif isinstance(event, events.Concluded) and not self._has_ended:
            self._conclude(event.verdict)

    def end(self) -> None:
        """Tell that the run was broken off, unless it has ended."""
        if not self._has_ended:
            self._has_ended = True
            self._tell(INFO, "run-stopped", "is stopped", **self._spent())

    def _conclude(self, verdict: Verdict) -> None:
        self._has_ended = True
        found = {"ending": verdict.ending, "evaluations": verdict.evaluations, **self._spent()}
        if verdict.ending == "win":
            found |= {"gain": verdict.gain, "p_value": verdict.p_value}
        found |= {"time_s": verdict.time_s, "source": verdict.source or None}
        level = WARNING if verdict.ending == "failed" else INFO
        self._tell(level, "run-concluded", f"ends in a {verdict.ending}", **found)

    def _spent(self) -> dict[str, Any]:
        seconds = round(time.monotonic() - self._began, 3)
        return {"done": self._done, "failed": self._failed, "seconds": seconds}

    def _tell(self, level: int, event: str, does: str, **facts: Any) -> None:
        subject = self._subject
        text = f"{subject.decision} {subject.problem}: run {self._run[:8]} {does}"
        tell(level, event, text, **_about(subject), run=self._run, **facts)


def answered(subject: Subject, answer: Answer) -> None:
    """Tell which rung answered a first look-up, if anybody wants to know that much."""
    if is_told(DEBUG):
        text = f"{subject.decision} {subject.problem}: answered by {answer.rung}"
        tell(DEBUG, "answered", text, **_about(subject), rung=answer.rung, source=answer.source)


def _about(subject: Subject) -> dict[str, Any]:
    return {"decision": subject.decision, "problem": dict(subject.problem), "subject": subject.digest}
