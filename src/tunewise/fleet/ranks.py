"""Ranks that answer alike: each answer is published once, by whoever has it first, and is everybody's from then on."""

import atexit
import threading
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import msgspec

from tunewise import settings
from tunewise.decision import Answer, Declaration, Failure, Subject, Verdict
from tunewise.errors import MeasureWarning
from tunewise.fleet import notes, presence
from tunewise.fleet.boards import Board, Lost
from tunewise.fleet.meeting import Group, meet
from tunewise.fleet.notes import Standing
from tunewise.fleet.requests import Asked, Requests
from tunewise.fleet.together import Clock, Together
from tunewise.measure.work import Measurer, Work
from tunewise.session import context, events
from tunewise.session.ladder import Question, in_force, remembered
from tunewise.session.plan import Plan, Task
from tunewise.session.run import Run
from tunewise.session.tune import Tuning, question_of, settled, widened
from tunewise.store import Store, renew_in_children
from tunewise.store.locks import Turns

_TURN_S = 1.0  # to wait for the right to write a verdict
_LOST = "lost"  # key on the board: some rank could not reach it for a while


class Ranks:
    """What this process has agreed on with the other ranks of its group, and how it comes to agree on more.

    Whatever was published first for a problem stands for all ranks for as long as the group lives. Without a board (the
    other ranks cannot be reached) every answer is the default, which all ranks know.
    """

    def __init__(self, board: Board | None, rank: int, size: int) -> None:
        self._board, self._rank, self._size = board, rank, size
        self._requests = Requests(board, rank, size, settings.current().ranks_limit_s)
        self._me = presence.name(rank)
        self._warned: set[str] = set()  # places of requests
        self._stands: dict[str, Standing] = {}
        self._turns = Turns()
        self._is_lost = False  # when it was last asked
        self._is_wary = False

    def agreed(self, question: Question, answer: Answer) -> Answer:
        """Return what stands for all ranks: this answer, or the one that another published before."""
        asked = self._requests.asked(question.declaration, question.subject)
        stands = self._stands.get(asked.key) or self._published(asked, self._offer(question, answer))
        return self._answer(stands, question.declaration, answer)

    def standing(self, question: Question) -> Answer | None:
        """Return what stands for all ranks, or None where nothing does yet. As good as memory: nothing changes it."""
        asked = self._requests.asked(question.declaration, question.subject)
        stands = self._looked_up(asked)
        return None if stands is None else self._adopted(stands, question, asked)

    def tuned(self, task: Task, plan: Plan, store: Store, make_measurer: Callable[[Work], Measurer]) -> Tuning:
        """Tune a problem together with whoever else asks it; return within the limit what stands for all ranks."""
        clock = Clock(settings.current().ranks_limit_s - (self._board.patience_s if self._board else 0.0))
        asked = self._requests.asked(task.declaration, task.subject)
        if not self._turns.take(asked.key, clock.share(1) - time.monotonic()):
            return self._given_up(asked)
        try:
            return self._tuned(asked, task, widened(task, plan), store, make_measurer, clock)
        finally:
            self._turns.give(asked.key)

    def close(self) -> None:
        """Leave the group."""
        if self._board is not None:
            self._board.close()

    def _tuned(
        self,
        asked: Asked,
        task: Task,
        plan: Plan,
        store: Store,
        make_measurer: Callable[[Work], Measurer],
        clock: Clock,
    ) -> Tuning:
        question = question_of(task, store)
        stands = self._looked_up(asked)
        if stands is None:
            known = settled(question, plan)
            if known is not None:
                stands = self._published(asked, self._offer(question, known))
            elif self._difference(asked):
                stands = self._published(asked, self._default(asked, "", str(self._rank)))
        if stands is not None:
            return Tuning(self._adopted(stands, question, asked))
        measurer = make_measurer(task.work)
        run = Run(task, plan, store, measurer)
        try:
            with context.measured():
                stands = self._found_together(asked, run, task, plan, clock)
        finally:
            measurer.close()
        answer = self._adopted(stands, question, asked)
        verdict = notes.verdict_in(stands, task.declaration.space)
        if verdict is not None:
            run.tell(events.Concluded(verdict))
        failures = Counter(str(o.kind) for o in run.known.values() if isinstance(o, Failure))
        evaluations = len(run.known) if verdict is None else verdict.evaluations
        return Tuning(answer, verdict, evaluations, run.measured, dict(failures), clock.seconds, run.is_stopped)

    def _found_together(self, asked: Asked, run: Run, task: Task, plan: Plan, clock: Clock) -> Standing:
        assert self._board is not None
        try:
            verdict = Together(self._board, asked.key, self._me, self._size, clock).go(run, task, plan)
        except Lost as lost:
            return self._lost(lost, asked)
        if verdict is None:
            return self._looked_up(asked) or self._timed_out(asked)
        if verdict.ending == "failed":
            warnings.warn(f"{asked.declaration.name}: {verdict.detail}", MeasureWarning, stacklevel=6)
        answer = Answer(verdict.winner, "memory", f"run {verdict.run[:8]}", "just tuned", None, verdict.time_s)
        kept = None if run.is_stopped else verdict  # a search that somebody stopped is not over
        return self._published(asked, notes.standing_of(answer, str(self._rank), kept))

    def _given_up(self, asked: Asked) -> Tuning:
        stands = self._looked_up(asked) or self._timed_out(asked)
        return Tuning(self._answer(stands, asked.declaration, None))

    def _offer(self, question: Question, answer: Answer) -> Standing:
        """Return an answer as it is published; what was measured, with the verdict it was read off."""
        verdict: Verdict | None = None
        if answer.rung == "memory":
            verdict = in_force(question.store.verdicts(question.subject), question.declaration)
        return notes.standing_of(answer, str(self._rank), verdict, question.subject.digest)

    def _looked_up(self, asked: Asked) -> Standing | None:
        """Return what stands, or None if nothing does; the default where nobody can tell."""
        stands = self._stands.get(asked.key)
        if stands is not None:
            return stands
        if self._board is None:
            return self._unreachable(asked)
        try:
            said = self._board.read(f"{asked.key}/answer")
            if said is None and self._was_lost(self._board):
                return self._published(asked, self._default(asked, "", by=""))
            return None if said is None else self._heard(asked, said)
        except Lost as lost:
            return self._lost(lost, asked)

    def _published(self, asked: Asked, standing: Standing) -> Standing:
        """Publish an answer, the default where ranks ask for different things; return the one that stands."""
        if self._board is None:
            return self._unreachable(asked)
        try:
            if self._was_lost(self._board):
                standing = self._default(asked, "the other ranks could not be reached for a while", by="")
            elif parts := self._difference(asked):
                reason = f"the ranks ask for different things: {', '.join(parts)}"[: notes.SHOWN]
                standing = self._default(asked, reason, str(self._rank))
            standing = msgspec.structs.replace(standing, request=asked.request)
            return self._heard(asked, self._board.publish(f"{asked.key}/answer", notes.write(standing)))
        except Lost as lost:
            return self._lost(lost, asked)

    def _difference(self, asked: Asked) -> list[str]:
        """Return the parts in which ranks ask for different things, with a warning the first time."""
        try:
            parts = self._requests.difference(asked)
        except Lost:
            return []  # whoever looks for the answer next finds out, and says so
        if parts and asked.place not in self._warned:
            self._warned.add(asked.place)
            said = self._requests.described(asked, parts)
            own = "; the first default that was published is used where it is in a rank's space"
            warnings.warn(
                f"{asked.declaration.name}: the ranks ask for different things, so new problems get the default: {said}"
                + (own if "default" in parts else ""),
                MeasureWarning,
                stacklevel=6,
            )
        return parts

    def _was_lost(self, board: Board) -> bool:
        """Return whether any rank has lost the board once: should it happen again, that one will use the default."""
        self._is_wary = self._is_wary or board.read(_LOST) is not None
        return self._is_wary

    def _timed_out(self, asked: Asked) -> Standing:
        """Return what stands when the time is up: the default, unless another rank was faster after all."""
        said = f"the ranks did not agree within {settings.current().ranks_limit_s:g} s"
        stands = self._published(asked, self._default(asked, said, str(self._rank)))
        if stands.reason == said:
            name = asked.declaration.name
            warnings.warn(f"{name}: {said}, so the default stands for all", MeasureWarning, stacklevel=6)
        return stands

    def _lost(self, lost: Lost, asked: Asked) -> Standing:
        if not self._is_lost:
            self._is_lost = True
            warnings.warn(
                f"the other ranks cannot be reached ({lost}): what is not agreed on yet is the default from now on",
                MeasureWarning,
                stacklevel=6,
            )
        return self._unreachable(asked)

    def _unreachable(self, asked: Asked) -> Standing:
        """Return the default; should the board come back to life, others are to find it there."""
        default = self._default(asked, "the other ranks cannot be reached", by="")
        stands = self._stands.setdefault(asked.key, default)  # another thread of this rank may have heard it
        if self._board is not None:
            self._board.leave_word(_LOST, presence.rank_of(self._me))
            self._board.leave_word(f"{asked.key}/answer", notes.write(stands))
        return stands

    def _default(self, asked: Asked, reason: str, by: str) -> Standing:
        return notes.standing_of(Answer(asked.declaration.default, "default", "ranks", reason), by)

    def _heard(self, asked: Asked, said: str) -> Standing:
        """Return what was published as an answer; this rank's default where it is no config of its space."""
        stands = notes.read(said, Standing)
        if stands is None or stands.request not in ("", asked.request):
            self._difference(asked)
        if stands is None or notes.config_in(asked.declaration.space, stands.config) is None:
            self._warn_alone(asked)
            stands = self._default(asked, "what stands for all ranks is not a config of this space", by="")
        self._is_lost = False
        return self._stands.setdefault(asked.key, stands)

    def _warn_alone(self, asked: Asked) -> None:
        """Warn once that this rank differs from the others; a warning about what ranks ask for has said it."""
        if asked.place not in self._warned:
            self._warned.add(asked.place)
            warnings.warn(
                f"{asked.declaration.name}: what stands for all ranks is not in the space of rank {self._rank}, "
                "which uses its default: do all ranks run the same version?",
                MeasureWarning,
                stacklevel=6,
            )

    def _answer(self, stands: Standing, declaration: Declaration, own: Answer | None) -> Answer:
        """Return what stands as an answer: one's own, if that is what it is."""
        config = declaration.space.config(stands.config)
        if own is not None and dict(own.config) == config:
            return own
        reason = f"rank {stands.by} published it first: {stands.reason}" if stands.by else stands.reason
        rung = "memory" if own is None or own.rung == "memory" else stands.rung  # nothing is measured after that
        return Answer(
            MappingProxyType(config), rung, stands.source or "ranks", reason, stands.confidence, stands.time_s
        )

    def _adopted(self, stands: Standing, question: Question, asked: Asked) -> Answer:
        """Return what stands, kept in this rank's own store, so that the next job starts from memory."""
        subject, store = question.subject, question.store
        verdict = notes.verdict_in(stands, question.declaration.space)
        if stands.request != asked.request:  # measured by a rank that asks for something else
            verdict = None
        if verdict is not None and stands.subject in ("", subject.digest):
            _keep(store, subject, verdict)
        own = remembered(question)
        return self._answer(stands, question.declaration, own if verdict is not None else None)


def _keep(store: Store, subject: Subject, verdict: Verdict) -> None:
    """Conclude a run in a store, unless another rank that uses the same one has done so."""
    flight = store.flight(subject)
    flight.acquire(_TURN_S)  # in vain where somebody else tunes the same problem: twice in the record does no harm
    try:
        if all(known.run != verdict.run for known in store.verdicts(subject)):
            store.conclude(subject, verdict)
            store.forget_miss(subject)
    finally:
        flight.release()


class _Process:
    """What this process has joined: the one thing here that changes."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.group: Callable[[], Any] = lambda: None  # the group joined, for as long as it lives
        self.ranks: Ranks | None = None
        renew_in_children(self)

    def renew(self) -> None:
        """Begin a forked child alone, with a lock of its own."""
        self.lock = threading.RLock()
        self.group, self.ranks = (lambda: None), None


_process = _Process()


def current() -> Ranks | None:
    """Return what this process has agreed on in its group, joined the first time; None for a group of one."""
    from torch import distributed

    world = distributed.group.WORLD
    if _process.group() is world:
        return _process.ranks
    with _process.lock:
        if _process.group() is world:
            return _process.ranks
        leave()
        joined = _process.ranks = None if distributed.get_world_size() < 2 else _joined()
        _process.group = weakref.ref(world)
    context.refresh()  # answers of before are this process's own
    return joined


def leave() -> None:
    """Leave the group that was joined, if there is one; the next question joins again."""
    ranks, _process.ranks = _process.ranks, None
    _process.group = lambda: None
    if ranks is not None:
        ranks.close()


def _joined() -> Ranks:
    from torch import distributed
    from torch.distributed.distributed_c10d import _get_default_store

    atexit.unregister(leave)
    atexit.register(leave)
    group = Group(_get_default_store(), distributed.get_rank(), distributed.get_world_size())
    try:
        board: Board | None = meet(group, settings.current().ranks_limit_s)
    except Lost as lost:
        board = None
        said = f"the other ranks cannot be reached ({lost}): every answer is the default"
        warnings.warn(said, MeasureWarning, stacklevel=6)
    return Ranks(board, group.rank, group.size)
