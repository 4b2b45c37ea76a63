"""The switches of AutoHeuristic decisions: collect, use and where the log goes, by block, mode or environment."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from tunewise import settings
from tunewise.session import context
from tunewise.settings import Mode


@dataclass(frozen=True, slots=True)
class Switches:
    """What a block switches on, by the decisions' names; `log_path` None leaves that to the environment."""

    collect: frozenset[str] = frozenset()
    use: frozenset[str] = frozenset()
    log_path: Path | None = None
    repeats: int = 1  # how often each choice of a problem is measured


_SWITCHES: ContextVar[Switches | None] = ContextVar("tunewise_switches", default=None)


@contextmanager
def switches(
    *,
    collect: Iterable[str] | str = (),
    use: Iterable[str] | str = (),
    log_path: str | Path | None = None,
    repeats: int = 1,
) -> Iterator[None]:
    """Run a block with decisions collecting or using their heuristics; the innermost block counts alone.

    They are given by their names, or as one text with commas between them, as the environment has it.
    """
    place = None if log_path is None else Path(log_path).expanduser().absolute()
    token = _SWITCHES.set(Switches(_names(collect), _names(use), place, repeats))
    try:
        yield
    finally:
        _SWITCHES.reset(token)


def is_collecting(name: str) -> bool:
    """Return whether a decision collects here and now."""
    block = _SWITCHES.get()
    return name in block.collect if block is not None else _is_on("collect", name in settings.current().collect)


def is_using(name: str) -> bool:
    """Return whether a decision uses what was learned, here and now."""
    block = _SWITCHES.get()
    return name in block.use if block is not None else _is_on("use", name in settings.current().use)


def log_place() -> Path:
    """Return where logs go: a file, or a directory with a file for each decision."""
    block, here = _SWITCHES.get(), settings.current()
    chosen = here.log_path if block is None or block.log_path is None else block.log_path
    if chosen is not None:
        return chosen
    place = here.home / "autoheuristic"
    place.mkdir(parents=True, mode=0o700, exist_ok=True)
    return place


def repeats_wanted() -> int:
    """Return how often each choice of a problem is to be measured."""
    block = _SWITCHES.get()
    return 1 if block is None else block.repeats


def _is_on(mode: Mode, is_named: bool) -> bool:
    frame = context.FRAME.get()
    return frame.mode == mode if frame is not None else is_named or settings.current().mode == mode


def _names(given: Iterable[str] | str) -> frozenset[str]:
    return settings.parse_names(given) if isinstance(given, str) else frozenset(given)
