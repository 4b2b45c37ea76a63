"""What a call does in a mode that measures: tune first, within its means; or answer, and tune beside the program."""

import functools
import warnings
from collections.abc import Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from tunewise.decision import Answer, Args, Problem
from tunewise.errors import MeasureWarning
from tunewise.measure import why_not
from tunewise.session import agreeing, background, context, determinism, on_call
from tunewise.settings import Mode

if TYPE_CHECKING:
    from tunewise.session.decision import Decision
    from tunewise.session.implementation import Implementation
    from tunewise.session.tune import Tuning

_PLAIN = context.Frame("tune")  # where the mode comes from elsewhere: a tuning run has its usual bounds


def wants_all(decision: "Decision") -> bool:
    """Return whether a remembered answer is not enough here: every config is to be measured."""
    frame = decision.frame()
    return (frame is not None and frame.thorough) or decision.mode_in_force() == "collect"


class Call:
    """One call whose problem is to be tuned, as far as what governs it allows."""

    def __init__(self, made: "Implementation", args: Args, kwargs: Mapping[str, Any], features: Mapping[str, Any]):
        self._made, self._args, self._kwargs, self._features = made, args, kwargs, features
        self._decision = made.decision
        self._mode: Mode = self._decision.mode_in_force()
        self._frame = self._decision.frame() or _PLAIN
        self._problem: Problem = self._decision.problem(features)

    def answer(self, known: Answer) -> Answer:
        """Return what this call goes on with, where `known` is what the ladder says; tune first if that is due."""
        if known.rung == "memory" and self._is_complete():
            return known
        own = self._decision._own
        if known.rung in self._frame.accept or not on_call.may_spend(self._frame):
            return own.stopped.get(self._key) or self._agreed(known)
        if self._key in own.stopped:
            return own.stopped[self._key]
        reason = why_not(self._decision.policy)
        if reason is not None:
            _warn_once(reason)
            return self._agreed(known)
        return self._beside(known) if self._frame.background else self._tuned()

    @property
    def _key(self) -> tuple[object, ...]:
        """What is done once in a process: another effort, or another store, is another thing."""
        return context.current_store(), self._mode, self._frame.thorough, self._problem

    def _is_complete(self) -> bool:
        """Return whether a remembered problem has all that is asked for, as far as this process knows."""
        return not wants_all(self._decision) or self._key in self._decision._own.complete

    def _agreed(self, answer: Answer) -> Answer:
        return agreeing.agreed(self._decision._question(self._problem), answer)

    def _tuned(self) -> Answer:
        own = self._decision._own
        with on_call.spending(self._frame) as plan:
            tuning = self._tune(plan)
        if tuning.is_stopped:
            own.stopped[self._key] = tuning.answer
        else:
            own.complete.add(self._key)
        return tuning.answer

    def _tune(self, plan: Mapping[str, Any]) -> "Tuning":
        chosen = self._made._planned({"measure_all": self._mode == "collect", **plan})
        return self._made._tune(self._args, self._kwargs, self._features, chosen)

    def _beside(self, known: Answer) -> Answer:
        """Return the answer there is, and have a better one found in the background.

        Processes that must answer alike never do that: they would not pick it up at the same call.
        """
        if agreeing.agreement() is not None:
            return self._agreed(known)
        own, key = self._decision._own, self._key
        with own.lock:
            if key not in own.asked and background.submit(self._job()):
                own.asked.add(key)
        return known

    def _job(self) -> background.Job:
        # The thread that sees to it has a context of its own, without this one's blocks and switches.
        decision, here = self._decision, copy_context()

        def run() -> None:
            self._tune(on_call.bounds(self._frame))

        def pick_up() -> None:
            decision._look_again(self._features)
            decision._own.complete.add(self._key)

        return background.Job(
            name=f"{decision.name} ({self._problem})",
            is_forked=decision.device == "cpu" and decision.policy.isolation != "none",
            threads=decision.policy.threads,
            is_due=self._is_due,
            run=lambda: here.run(run),
            spend=on_call.count,
            pick_up=lambda: here.run(pick_up),
        )

    def _is_due(self) -> bool:
        """Return whether it may still be tuned when its turn comes, with the arguments as they are then."""
        if determinism.is_on() or not on_call.may_spend(self._frame):
            return False
        try:
            return self._decision.problem(self._made._features(self._args, self._kwargs)) == self._problem
        except Exception:  # the program has changed what the call was made with
            return False


@functools.cache
def _warn_once(reason: str) -> None:
    """Warn that a mode which measures only answers here; once in a process, however many calls there are."""
    warnings.warn(f"nothing is tuned: {reason}", MeasureWarning, stacklevel=2)
