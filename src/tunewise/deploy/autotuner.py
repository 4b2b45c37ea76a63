"""The switch that a library gives to its users: new problems are tuned at their first call, forward and backward."""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from tunewise import settings
from tunewise.deploy.autotuner_position import (
    STANDARD_BUDGET,
    Effort,
    Pass,
    Position,
    parse_pass,
    prefix_of,
    read_position,
)
from tunewise.deploy.autotuner_telling import Telling, show_log
from tunewise.errors import InvalidDecision
from tunewise.session import Decision, Implementation, choice, context, determinism
from tunewise.session.context import Frame
from tunewise.store import renew_in_children

Adopted = TypeVar("Adopted", Decision, Implementation)

_COUNTABLE = 10_000  # configs, before the rules: a space of more is not counted just to say how far a run is


@dataclass(frozen=True, slots=True)
class _Setting:
    """A position with the frames it puts its decisions into; None: whatever governs a decision without a switch."""

    position: Position
    forward: Frame | None = None
    backward: Frame | None = None


# What `with tuner.autotuning(...)` blocks say here, by switch: a thread or task never sees the blocks of another.
_BLOCKS: ContextVar[Mapping["Autotuner", _Setting]] = ContextVar("tunewise_autotuners", default=MappingProxyType({}))


class Autotuner:
    """The switch of one library: off until somebody turns it, and the same for the whole process.

    `name` is the library's: `Autotuner("mylib")` heeds MYLIB_AUTOTUNE and MYLIB_LOG_LEVEL, from the first question on,
    and logs as `mylib.autotuner`. A decision joins by `switch=tuner.forward` or `switch=tuner.backward`; `decision` and
    `choice` make such ones. The keywords are the library's standard effort: at most 40 configs a problem, or fewer
    where trying one is dear. A `with tw.mode(...)` block outranks the switch; the switch, once it was turned, outranks
    the decision's own mode and TUNEWISE_MODE.
    """

    def __init__(
        self,
        name: str,
        *,
        accept: Iterable[str] | str = (),
        background: bool = False,
        budget: int = STANDARD_BUDGET,
        seconds: float | None = None,
        total_seconds: float | None = None,
    ) -> None:
        self.name, self.prefix = name, prefix_of(name)
        self._standard = Position().turned(
            accept=accept, background=background, budget=budget, seconds=seconds, total_seconds=total_seconds
        )
        self._telling = Telling(name, self._way_out, self._goal)
        self._lock = threading.RLock()
        self._turned: _Setting | None = None  # by the program
        self._asked: _Setting | None = None  # by the environment
        renew_in_children(self)
        context.remember_to_forget(self)

    def __repr__(self) -> str:
        position = self.position
        said = ", ".join(f"{one} {'on' if position.effort(one).is_on else 'off'}" for one in ("forward", "backward"))
        return f"Autotuner({self.name!r}: {said})"

    def use_autotuner(
        self,
        forward_pass: bool | None = True,
        backward_pass: bool | None = False,
        thorough_mode_forward: bool | None = None,
        thorough_mode_backward: bool | None = None,
        warmup_steps_forward: int | None = None,
        warmup_steps_backward: int | None = None,
        steps_forward: int | None = None,
        steps_backward: int | None = None,
        *,
        accept: Iterable[str] | str | None = None,
        background: bool | None = None,
        budget: int | None = None,
        seconds: float | None = None,
        total_seconds: float | None = None,
    ) -> None:
        """Turn the switch for this process: from now on the first call of each new problem is tuned and remembered.

        None leaves a setting as it is, and `(False, False)` is off. The standard effort measures at most 40 configs a
        problem (`budget`) unless the library says otherwise, the thorough one the whole space. `warmup_steps_*` and
        `steps_*` fix how often the best configs are called and timed; fewer than 5 steps warn. `accept` names rungs
        that are good enough without tuning (`["learned", "near"]`), `background` tunes beside the program, `seconds`
        bounds each run and `total_seconds` all of them in this process; `math.inf` takes such a bound away.

        Raises InvalidSetting for values that make no sense, and Nondeterministic where PyTorch is to be deterministic
        (or warns, if the settings say so); nothing is changed then.
        """
        turned = self._of_process().position.turned(
            *(forward_pass, backward_pass, thorough_mode_forward, thorough_mode_backward),
            *(warmup_steps_forward, warmup_steps_backward, steps_forward, steps_backward),
            accept=accept,
            background=background,
            budget=budget,
            seconds=seconds,
            total_seconds=total_seconds,
        )
        if self._is_allowed(turned):
            self._turn(turned)

    def disable_autotuner(self) -> None:
        """Tune nothing from now on; what is remembered is still used, and the efforts are kept for the next time."""
        self._turn(self._of_process().position.turned(False, False))

    def reset(self) -> None:
        """Put the switch back to where the environment puts it, with the library's standard effort."""
        with self._lock:
            self._turned = None
        self.forget()
        self._forget_answers()

    @contextmanager
    def autotuning(
        self, forward_pass: bool | None = True, backward_pass: bool | None = False, *efforts: Any, **bounds: Any
    ) -> Iterator[None]:
        """Run a block with the switch turned as by `use_autotuner`, which has the same arguments.

        Before and after the block all is as it was, also where it ends with an error. It holds for this thread or task
        only: a thread that is started inside begins outside of it.
        """
        turned = self.position.turned(forward_pass, backward_pass, *efforts, **bounds)
        setting = self._made(turned) if self._is_allowed(turned) else self._setting()
        token = _BLOCKS.set(MappingProxyType({**_BLOCKS.get(), self: setting}))
        try:
            yield
        finally:
            _BLOCKS.reset(token)

    def is_autotuner_enabled(self, pass_: str | None = None) -> bool:
        """Return whether new problems are tuned here: those of one pass, `forward` or `backward`, or of any."""
        return self.position.is_on if pass_ is None else self.position.effort(parse_pass(pass_)).is_on

    def is_autotuner_enabled_for_forward(self) -> bool:
        """Return whether new problems of the forward pass are tuned here."""
        return self.position.forward.is_on

    def is_autotuner_enabled_for_backward(self) -> bool:
        """Return whether new problems of the backward pass are tuned here."""
        return self.position.backward.is_on

    @property
    def position(self) -> Position:
        """Where the switch stands here: both passes with their efforts, and what a run may spend."""
        return self._setting().position

    def forward(self) -> Frame | None:
        """Return what governs the library's forward decisions here; give it to them as `switch=tuner.forward`."""
        return self._setting().forward

    def backward(self) -> Frame | None:
        """Return what governs the library's backward decisions here; give it to them as `switch=tuner.backward`."""
        return self._setting().backward

    def decision(self, name: str, pass_: str = "forward", **declaration: Any) -> Decision:
        """Return a decision that the switch governs, declared as any `Decision`."""
        return Decision(name, switch=self._switch(pass_), **declaration)

    def choice(
        self, name: str, ways: Mapping[str, Callable[..., Any]], pass_: str = "forward", **declaration: Any
    ) -> Implementation:
        """Return a function that does one thing in one of several ways, governed by the switch; see `tw.choice`."""
        return choice(name, ways, switch=self._switch(pass_), **declaration)

    def adopt(self, what: Adopted, pass_: str = "forward") -> Adopted:
        """Let the switch govern a decision, or an implementation's, that was declared without it; return what came."""
        decision = what.decision if isinstance(what, Implementation) else what
        if not isinstance(decision, Decision):
            raise InvalidDecision(f"{self.name}: {what!r} is neither a decision nor an implementation of one")
        decision.follow(self._switch(pass_))
        return what

    def forget(self) -> None:
        """Heed settings that have changed, and read the environment again at the next question."""
        with self._lock:
            self._asked = None
            self._turned = self._turned and self._made(self._turned.position)

    def renew(self) -> None:
        """Begin a forked child with a lock of its own; the switch stands as in the parent."""
        self._lock = threading.RLock()

    def _setting(self) -> _Setting:
        return _BLOCKS.get().get(self) or self._of_process()

    def _of_process(self) -> _Setting:
        """Return where the switch stands outside of all blocks."""
        return self._turned or self._asked or self._read()

    def _read(self) -> _Setting:
        """Return what the environment asks for, and let the log speak as it says."""
        with self._lock:
            level, text = (settings.library_setting(self.prefix, name) for name in ("LOG_LEVEL", "AUTOTUNE"))
            if level is not None:
                show_log(self._telling.log, f"{self.prefix}_LOG_LEVEL", level)
            asked = text and self._made(read_position(f"{self.prefix}_AUTOTUNE", text, self._standard))
            self._asked = setting = asked or _Setting(self._standard)
            return setting

    def _is_allowed(self, position: Position) -> bool:
        """Return whether the switch may be put there; raises Nondeterministic, or warns, where nothing may be tuned."""
        if not position.is_on or not determinism.is_on():
            return True
        determinism.refuse(f"what {self.name} is asked", "PyTorch is to use deterministic algorithms")
        return False

    def _turn(self, position: Position) -> None:
        with self._lock:
            self._turned = self._made(position)
        self._forget_answers()

    def _made(self, position: Position) -> _Setting:
        return _Setting(position, self._frame(position, position.forward), self._frame(position, position.backward))

    def _frame(self, position: Position, effort: Effort) -> Frame | None:
        if not effort.is_on:  # who switches tuning off does not switch on what an operator has forbidden
            return None if settings.current().mode in ("replay", "off") else Frame("use")
        return Frame(
            "tune",
            position.accept,
            **position.bounds,
            thorough=effort.thorough,
            background=position.background,
            warmup_steps=effort.warmup_steps,
            steps=effort.steps,
            listener=self._telling.overhear if position.background else self._telling.hear,
            is_patient=True,
        )

    def _switch(self, pass_: str) -> Callable[[], Frame | None]:
        which: Pass = parse_pass(pass_)
        return self.forward if which == "forward" else self.backward

    def _governed(self) -> list[Decision]:
        """Return the living decisions that the switch governs."""
        decisions = (holder for holder in context.holders() if isinstance(holder, Decision))
        return [one for one in decisions if getattr(one.switch, "__self__", None) is self]

    def _forget_answers(self) -> None:
        for decision in self._governed():
            decision.forget()

    def _way_out(self) -> str:
        """Return how not to wait the next time, where Ctrl-C does not help: what the program says outranks the rest."""
        is_said = self in _BLOCKS.get() or self._turned is not None
        return f"{'disable_autotuner()' if is_said else f'{self.prefix}_AUTOTUNE=0'} tunes nothing"

    def _goal(self, decision: str, budget: int) -> int:
        """Return how many configs a run may come to: its budget, or less where the space is small."""
        for one in self._governed():
            if one.name == decision and math.prod(len(param) for param in one.space.params) <= _COUNTABLE:
                return min(budget, one.space.count())
        return budget
