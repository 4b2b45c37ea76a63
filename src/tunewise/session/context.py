"""What is in force here and now: settings, store and mode. Nothing is read or opened before it is needed."""

import functools
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from tunewise import eventlog, settings
from tunewise.decision import Policy, Rung
from tunewise.errors import InvalidSetting
from tunewise.formats.pins import read as read_pins
from tunewise.session import amounts, determinism
from tunewise.session.events import Listener, ignore
from tunewise.settings import Mode, OnDeterministic, Trust
from tunewise.store import Store, hasty, open_store, renew_in_children


class Forgetful(Protocol):
    """Something that keeps answers in memory and can be told to look again."""

    def forget(self) -> None:
        """Drop the answers kept in memory."""


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """One `with tw.mode(...)` block. Compared by identity, so that it is cheap as part of a key."""

    mode: Mode
    accept: frozenset[str] = frozenset()
    budget: int | None = None
    seconds: float | None = None
    total_seconds: float | None = None
    thorough: bool = False
    background: bool = False
    warmup_steps: int | None = None
    steps: int | None = None
    listener: Listener = ignore
    is_measured: bool = False  # a candidate that is being measured asks: nobody counts that
    is_patient: bool = False  # Ctrl-C ends a tuning run, not the program: it goes on with what the run has found

    @property
    def plan(self) -> dict[str, Any]:
        """What the block says about each tuning run, as keywords of `Plan`."""
        bounds = {"budget": self.budget, "seconds": self.seconds}
        said = {name: value for name, value in bounds.items() if value is not None}
        return {**said, "thorough": self.thorough, "listener": self.listener}

    def policy(self, usual: Policy) -> Policy:
        """Return how a decision is measured here, where `usual` is its own policy.

        What is found is filed under its own policy all the same: steps fixed by a block are an effort, as a budget is.
        """
        if self.warmup_steps is None and self.steps is None:
            return usual
        warmup_steps = usual.warmup_steps if self.warmup_steps is None else self.warmup_steps
        return replace(usual, warmup_steps=warmup_steps, steps=usual.steps if self.steps is None else self.steps)


_ACCEPTABLE: frozenset[Rung] = frozenset({"table", "promoted", "learned", "near"})
_KEPT_FRAMES = 256  # blocks that differ; what was answered in one is at hand when its like is entered again
FRAME: ContextVar[Frame | None] = ContextVar("tunewise_frame", default=None)


class _Process:
    """The one mutable thing: what this process has opened so far, and who keeps answers."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.store: Store | None = None
        self.hasty_store: Store | None = None  # the same, for questions that must not wait
        self.forgetful: weakref.WeakSet[Forgetful] = weakref.WeakSet()
        renew_in_children(self)

    def renew(self) -> None:
        """Begin a forked child with a lock of its own."""
        self.lock = threading.RLock()


_process = _Process()


def current_store() -> Store:
    """Return the store in force, opened the first time; trouble with it costs one warning and no more."""
    with _process.lock:
        store = _process.store
        if store is None:
            eventlog.put_in_force(settings.current().events, settings.current().events_level)
            store = open_store(settings.current(), heard=_heard)
            _process.hasty_store = hasty(store)
            _process.store = store  # last: a signal may come in between
        return store


def hasty_store() -> Store:
    """Return the store in force for a question that would rather go on without an answer than wait for a server."""
    with _process.lock:
        store = current_store()
        return _process.hasty_store or store


def is_current(store: Store) -> bool:
    """Return whether a store is still the one in force; another home may have been set since."""
    return store in (_process.store, _process.hasty_store)


def configure(
    *,
    home: str | Path | None = None,
    store: str | Path | None = None,
    mode: Mode | None = None,
    layers: Iterable[str | Path] | None = None,
    heuristics: Iterable[str | Path] | None = None,
    log_path: str | Path | None = None,
    opencl_device: str | None = None,
    ranks_limit_s: float | None = None,
    on_deterministic: OnDeterministic | None = None,
    pins: Iterable[str | Path] | None = None,
    trust: Trust | None = None,
    signs: bool | None = None,
    events: str | Path | None = None,
    events_level: str | None = None,
) -> None:
    """Set for this process what the environment variables set: where the store lies, the mode, read-only layers.

    `home` is a directory; `store` is a PostgreSQL database (`postgresql://...`) that is used instead of the file in
    the home, or another directory, and `layers` are such places too. `heuristics` are files and directories of
    heuristics that may answer, and `log_path` is where AutoHeuristic logs go; `opencl_device` is the device that
    OpenCL kernels run on, and `ranks_limit_s` in how many seconds the ranks of a job must agree on a problem;
    `on_deterministic` is what tuning does where nothing may be measured, `error` or `warn`, and `pins` are files of
    frozen answers; `trust` says whose verdicts in a shared store answer: `own`, those of this home; `host`, also those
    of this machine; or `all`. With `signs=False` runs and look-ups do not tell the store what they are at. `events` is
    a file that every event is written to as a line of JSON, or `stderr`, from `events_level` on: `debug`, `info`,
    `warning`. What is left out falls back to the environment, which is read again. Answers kept in memory are dropped.
    Raises InvalidSetting, or InvalidFile for a pins file that is none.
    """
    fresh = settings.load()
    if home is not None:  # with its own store: what an argument says counts before the environment
        fresh = replace(fresh, home=Path(home).expanduser().absolute(), store=None)
    if store is not None:
        fresh = replace(fresh, store=settings.parse_place(store))
    if mode is not None:
        fresh = replace(fresh, mode=settings.parse_mode(mode))
    if layers is not None:
        fresh = replace(fresh, layers=tuple(settings.parse_place(layer, "layers") for layer in layers))
    if heuristics is not None:
        fresh = replace(fresh, heuristics=tuple(Path(place).expanduser().absolute() for place in heuristics))
    if log_path is not None:
        fresh = replace(fresh, log_path=Path(log_path).expanduser().absolute())
    if opencl_device is not None:
        fresh = replace(fresh, opencl_device=opencl_device)
    if ranks_limit_s is not None:
        fresh = replace(fresh, ranks_limit_s=settings.parse_limit(ranks_limit_s))
    if on_deterministic is not None:
        fresh = replace(fresh, on_deterministic=settings.parse_on_deterministic(on_deterministic))
    if pins is not None:
        fresh = replace(fresh, pins=_sound_pins(pins))
    if trust is not None:
        fresh = replace(fresh, trust=settings.parse_trust(trust))
    if signs is not None:
        fresh = replace(fresh, signs=bool(signs))
    if events is not None:
        fresh = replace(fresh, events=settings.parse_events(events))
    if events_level is not None:
        fresh = replace(fresh, events_level=settings.parse_events_level(events_level))
    with _process.lock:
        if _process.store is not None:
            _process.store.close()
        _process.store = None
        settings.put_in_force(fresh)
        eventlog.put_in_force(fresh.events, fresh.events_level)
    refresh()


def _sound_pins(paths: Iterable[str | Path]) -> tuple[Path, ...]:
    """Return the places of pins files; raises InvalidFile for what is none: who names one here wants it to count."""
    said = f"pins={str(paths)!r} is not a list of files, such as ['pins.json']"
    if isinstance(paths, str | Path):
        raise InvalidSetting(said)
    try:
        found = tuple(Path(path).expanduser().absolute() for path in paths)
    except (TypeError, RuntimeError) as error:  # the latter is the home directory of nobody
        raise InvalidSetting(f"{said}: {error}") from None
    for path in found:
        read_pins(path)
    return found


def refresh() -> None:
    """Drop all answers kept in memory, so that the next question looks into the store again."""
    for holder in holders():
        holder.forget()


def _heard(decision: str | None) -> None:
    """Drop the answers of a decision for which another process has concluded something; None: of all."""
    for holder in holders():
        if decision is None or getattr(holder, "name", None) == decision:
            holder.forget()


def holders() -> list[Forgetful]:
    """Return everything that keeps answers in memory and is alive."""
    return list(_process.forgetful)


def remember_to_forget(holder: Forgetful) -> None:
    """Let `refresh` reach a holder of answers for as long as it lives."""
    _process.forgetful.add(holder)


@contextmanager
def mode(
    name: Mode,
    *,
    accept: Iterable[Rung] = (),
    budget: int | None = None,
    seconds: float | None = None,
    total_seconds: float | None = None,
    thorough: bool = False,
    background: bool = False,
    warmup_steps: int | None = None,
    steps: int | None = None,
) -> Iterator[None]:
    """Run a block in a mode: `use`, `tune`, `collect`, `replay` or `off`. The innermost block wins.

    In `tune`, `accept` names further rungs that count as good enough (`accept=["learned", "near"]`); `budget` and
    `seconds` bound each tuning run, and `total_seconds` all of them in this process together. `thorough` measures the
    whole space, and `background` tunes beside the program, whose calls go on with the best answer there is.
    `warmup_steps` and `steps` fix how often the best configs are called and timed. Raises Nondeterministic where the
    block would measure while PyTorch is to be deterministic.
    """
    if name in settings.MEASURING and determinism.is_on():
        determinism.refuse(f"what this {name!r} block asks", "PyTorch is to use deterministic algorithms")
    block = frame(
        name,
        accept=_rungs(accept),
        budget=budget,
        seconds=seconds,
        total_seconds=total_seconds,
        thorough=thorough,
        background=background,
        warmup_steps=warmup_steps,
        steps=steps,
    )
    with within(block):
        yield


@contextmanager
def within(block: Frame | None) -> Iterator[None]:
    """Run as in a block; None is outside of all blocks."""
    token = FRAME.set(block)
    try:
        yield
    finally:
        FRAME.reset(token)


def frame(name: Mode, *, accept: frozenset[str] = frozenset(), **bounds: Any) -> Frame:
    """Return a frame, the same one for the same arguments; raises InvalidSetting for values that make no sense."""
    check_bounds(accept, bounds)
    for which in ("thorough", "background"):
        if type(bounds.get(which, False)) is not bool:
            raise InvalidSetting(f"{which}={bounds[which]!r} is neither True nor False")
    # A number of steps that makes no sense is refused here, and one that is too small warns.
    Frame(settings.parse_mode(name), accept, **bounds).policy(Policy())
    return _frame(name, accept, **bounds)


@functools.lru_cache(_KEPT_FRAMES)
def _frame(name: Mode, accept: frozenset[str], **bounds: Any) -> Frame:
    return Frame(name, accept, **bounds)


@contextmanager
def measured() -> Iterator[None]:
    """Run candidates: one that makes decisions of its own must not measure them, and nobody counts its questions."""
    with within(frame("use", is_measured=True)):
        yield


def _rungs(accept: Iterable[str]) -> frozenset[str]:
    if isinstance(accept, str):
        raise InvalidSetting(f"accept={accept!r} is a word; give a list of rungs, such as accept=[{accept!r}]")
    try:
        return frozenset(accept)
    except TypeError:
        raise InvalidSetting(f"accept={accept!r} is not a list of rungs, such as accept=['near']") from None


def check_bounds(accept: frozenset[str], bounds: Mapping[str, Any]) -> None:
    """Raise InvalidSetting unless the rungs can be accepted and the budget and the times are what a run may spend."""
    unknown = accept - _ACCEPTABLE
    if unknown:
        there_are = ", ".join(sorted(_ACCEPTABLE))
        raise InvalidSetting(f"accept={sorted(unknown)} is not a rung that can be accepted; there are: {there_are}")
    for which in ("seconds", "total_seconds"):
        amounts.check_seconds(which, bounds.get(which))
    if bounds.get("budget") is not None:
        amounts.check_budget(bounds["budget"])
