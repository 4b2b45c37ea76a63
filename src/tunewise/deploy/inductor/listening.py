"""What Inductor asked and what it was told, for whoever wants to know: collectors, recorders and reports."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tunewise.decision import Answer, Problem

_here = threading.local()


@dataclass(frozen=True, slots=True)
class Heard:
    """One question of a compilation: the decision, the problem and its answer; `measured` configs were timed for it."""

    decision: str
    problem: Problem
    answer: Answer
    measured: int = 0


@contextmanager
def heard() -> Iterator[list[Heard]]:
    """Give a list that grows with every question that compilations in this thread ask inside the block."""
    before: list[list[Heard]] = getattr(_here, "lists", [])
    mine: list[Heard] = []
    _here.lists = [*before, mine]
    try:
        yield mine
    finally:
        _here.lists = before


def tell(question: Heard) -> None:
    """Let everybody know who listens in this thread."""
    for told in getattr(_here, "lists", ()):
        told.append(question)
