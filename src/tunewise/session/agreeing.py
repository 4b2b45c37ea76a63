"""Processes that must answer alike: the ranks of one job. Who brings them together is asked here, and only here."""

import sys
import weakref
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from tunewise.decision import Answer
from tunewise.measure.work import Measurer, Work
from tunewise.session.ladder import Question
from tunewise.session.plan import Plan, Task
from tunewise.session.tune import Tuning, tune
from tunewise.store import Store, renew_in_children

# Named by text: a room to the left of this one, entered only where a program has made its processes into a group.
_RANKS = "tunewise.fleet.ranks"


class Agreement(Protocol):
    """Processes that publish each answer once, and all use what was published first."""

    def agreed(self, question: Question, answer: Answer) -> Answer:
        """Return what stands for all processes: this answer, or the one that another published before."""

    def standing(self, question: Question) -> Answer | None:
        """Return what stands for all processes already, or None; as good as memory."""

    def tuned(self, task: Task, plan: Plan, store: Store, make_measurer: Callable[[Work], Measurer]) -> Tuning:
        """Tune a problem together; return within the limit, with what stands for all processes."""


class _Process:
    """The group that this process has from its parent: a forked child is no rank, though its memory says so."""

    def __init__(self) -> None:
        self.inherited: Any = None
        self.seen: Callable[[], Any] = lambda: None  # the last group, for as long as it lives
        renew_in_children(self)

    def renew(self) -> None:
        """Begin a forked child alone."""
        self.inherited = _group()


_process = _Process()


def agreement() -> Agreement | None:
    """Return what this process has joined, or None where it answers alone."""
    group = _group()
    if group is None or group is _process.inherited:
        return None
    joined: Agreement | None = import_module(_RANKS).current()
    return joined


def is_new_group() -> bool:
    """Return whether this process has become part of a group since this was last asked."""
    group = _group()
    if group is None or group is _process.seen():
        return False
    _process.seen = weakref.ref(group)
    return True


def agreed(question: Question, answer: Answer) -> Answer:
    """Return the answer that stands here: this one, unless other processes have their say. Pins are nobody else's."""
    joined = None if answer.rung == "pin" else agreement()
    return answer if joined is None else joined.agreed(question, answer)


def standing(question: Question) -> Answer | None:
    """Return what stands already where other processes have their say, or None."""
    joined = agreement()
    return None if joined is None else joined.standing(question)


def tuned(task: Task, plan: Plan, store: Store, make_measurer: Callable[[Work], Measurer]) -> Tuning:
    """Tune a problem, alone or together with the processes that must answer alike."""
    joined = agreement()
    return (tune if joined is None else joined.tuned)(task, plan, store, make_measurer)


def _group() -> Any:
    """Return the group that torch.distributed has made of this process and others, or None."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.group.WORLD
