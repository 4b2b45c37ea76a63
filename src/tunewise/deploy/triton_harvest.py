"""Harvest: listens to Triton's autotuner, keeps all that it measures, and passes it on to whoever listened before."""

import sys
import weakref
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from tunewise import settings
from tunewise.decision import Problem
from tunewise.deploy.triton_configs import Menu
from tunewise.deploy.triton_kernel import Kernel, feature_of, is_autotuner, kernel_of
from tunewise.deploy.triton_trials import Asked, Heard, keep
from tunewise.errors import MissingPart
from tunewise.eventlog import logger
from tunewise.session import context

_FRAMES = 12  # between Triton's autotuner and us: others may listen in between

_log = logger(__name__)
_reported: set[tuple[str, str]] = set()
_is_hearing: ContextVar[bool] = ContextVar("tunewise_triton_is_hearing", default=False)


class Recogniser(Protocol):
    """Somebody who may know what an autotuning run was about."""

    def recognise(self, heard: Heard) -> Asked | None:
        """Return what it was about, or None where it was about something else."""

    def kept(self, asked: Asked) -> None:
        """Hear that a run it recognised is in the store now."""

    def settle(self, asked: Asked, heard: Heard) -> None:
        """Settle what Triton launches after a run it recognised."""


class Harvest:
    """Keeps what Triton's autotuner measures until it is stopped; as a context manager, until the end of the block."""

    def __init__(self) -> None:
        self.kept = 0  # timings and failures put into the store

    def start(self) -> Self:
        """Begin to listen, and return this; raises MissingPart where Triton is missing or too old."""
        listen()
        _harvests.add(self)
        return self

    def stop(self) -> None:
        """Listen no more. Whoever listened before us, or put himself in front of us, goes on."""
        _harvests.discard(self)
        if not _harvests and not _recognisers:
            _unlisten()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


_harvests: set[Harvest] = set()
_recognisers: "weakref.WeakSet[Recogniser]" = weakref.WeakSet()


@dataclass(eq=False)
class Ear:
    """The listener that Triton calls: it keeps what it hears, then tells whoever listened before."""

    before: Callable[..., Any] | None

    def __call__(self, **told: Any) -> None:
        """Keep what Triton measured and pass it on. Nothing of ours raises; what the other listener raises does."""
        token = None
        if not _is_hearing.get():  # else an ear of ours in front of somebody else's has kept it already
            token = _is_hearing.set(True)
            _keep_or_report(told)
        try:
            if self.before is not None:
                self.before(**told)
        finally:
            if token is not None:
                _is_hearing.reset(token)


def listen() -> None:
    """Put an ear of ours in front of whoever listens to Triton's autotuner now, unless one is there already."""
    knobs = _knobs()
    if not isinstance(knobs.listener, Ear):
        knobs.listener = Ear(knobs.listener)


def ask_about_runs(recogniser: Recogniser) -> None:
    """Let somebody say what runs were about, for as long as he lives; the first that knows has the word."""
    _recognisers.add(recogniser)


def report(kernel: str, said: str, error: Exception) -> None:
    """Log what of ours went wrong, once for each kernel and kind of trouble; the kernel is launched all the same."""
    if (kernel, said) not in _reported:
        _reported.add((kernel, said))
        _log.warning("%s: %s: %s: %s", kernel, said, type(error).__name__, error)


def _keep_or_report(told: Mapping[str, Any]) -> None:
    try:
        heard = Heard(*(told[name] for name in Heard.__dataclass_fields__))
        known = ((who, who.recognise(heard)) for who in list(_recognisers))
        who, asked = next(((who, asked) for who, asked in known if asked is not None), (None, None))
        if asked is None and _harvests:
            asked = _seen_from_here(heard)
        if asked is None or _is_off(asked.decision):
            return
        try:
            kept = keep(asked, heard)
            if who is not None:
                who.kept(asked)
        finally:
            if who is not None:
                who.settle(asked, heard)
        for harvest in _harvests:
            harvest.kept += kept
    except Exception as error:  # the user's kernel goes on, whatever is wrong with us
        function = getattr(told.get("fn"), "fn", None)
        report(str(getattr(function, "__name__", "a kernel")), "its timings are not kept", error)


def _seen_from_here(heard: Heard) -> Asked:
    """Return what a run was about, with the names that its autotuner knows and the listener is not told."""
    kernel, given = _running(heard)
    numbered = {f"key_{place}": feature_of(value) for place, value in enumerate(heard.key)}
    problem = numbered if given is None else kernel.problem(given)
    return Asked(kernel.name, kernel, Problem(problem), kernel.menu.default())


def _running(heard: Heard) -> tuple[Kernel, dict[str, Any] | None]:
    """Return the kernel whose autotuner is calling us, and the arguments of its call if they can be seen."""
    kernel = Kernel(heard.fn, (), tuple(heard.fn.arg_names), Menu(tuple(heard.configs_timings)))
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_FRAMES):
        if frame is None:
            break
        one, keywords = frame.f_locals.get("self"), frame.f_locals.get("kwargs")
        if is_autotuner(one) and kernel_of(one).jit is heard.fn:
            kernel = kernel_of(one)
            given = {**(getattr(one, "nargs", None) or {}), **(keywords or {})}
            if kernel.key(given) == tuple(heard.key):
                return kernel, given
        frame = frame.f_back
    return kernel, None


def _is_off(decision: str) -> bool:
    frame = context.FRAME.get()
    return (frame.mode if frame is not None else settings.current().mode_of(decision)) == "off"


def _unlisten() -> None:
    knobs = _knobs()
    if isinstance(knobs.listener, Ear):
        knobs.listener = knobs.listener.before


def _knobs() -> Any:
    try:
        import triton
    except ImportError:
        raise MissingPart("Triton is not installed: pip install 'tunewise[triton]'") from None
    knobs = getattr(getattr(triton, "knobs", None), "autotuning", None)
    if not hasattr(knobs, "listener"):
        raise MissingPart(f"Triton {triton.__version__} tells nobody what it measures; version 3.8 and later do")
    return knobs
