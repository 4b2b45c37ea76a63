"""What steers torch.compile in a thread right now, and the identity by which compile caches know it."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tunewise
from tunewise.decision import canonical
from tunewise.decision.source import fingerprint
from tunewise.errors import InvalidSetting
from tunewise.eventlog import logger
from tunewise.session import Decision, context, shelf
from tunewise.session.ladder import in_force
from tunewise.settings import Mode, parse_mode

_log = logger("tunewise.inductor")
_here = threading.local()
_reported: set[tuple[str, str]] = set()


@dataclass(frozen=True, kw_only=True)
class Steering:
    """How the products of one compilation are chosen.

    `mode` None is what the decision itself, the block or the environment says. `top_k` is how many of a model's
    choices Inductor gets to time where it answers (1: none, the first is taken), and `variants` whether C++ code with
    register blocks that Inductor does not offer is made. `wants_autotuning` tells whether the user asked Inductor to
    autotune: then it does so wherever we have no answer.
    """

    mode: Mode | None = None
    top_k: int = 1
    variants: bool = True
    budget: int | None = None
    seconds: float | None = None
    wants_autotuning: bool = False

    def __post_init__(self) -> None:
        if self.mode is not None:
            parse_mode(self.mode)
        for name in ("top_k",) if self.budget is None else ("top_k", "budget"):
            given = getattr(self, name)
            if type(given) is not int or given < 1:
                raise InvalidSetting(f"{name}={given!r} is not a whole number of at least 1")
        if type(self.variants) is not bool:
            raise InvalidSetting(f"variants={self.variants!r} is neither True nor False")
        if self.seconds is not None and not (type(self.seconds) in (int, float) and self.seconds > 0):
            raise InvalidSetting(f"seconds={self.seconds!r} is not a positive time")

    def mode_of(self, decision: Decision) -> Mode:
        """Return the mode that counts for a decision here."""
        return decision.mode_in_force(self.mode)

    def identity(self, decisions: Mapping[str, Decision]) -> str:
        """Return a digest of all that these decisions could be answered from: equal digests give equal answers."""
        modes = {name: self.mode_of(decision) for name, decision in decisions.items()}
        own = {"version": tunewise.__version__, "top_k": self.top_k, "variants": self.variants, "modes": modes}
        asked = {"autotuning": self.wants_autotuning, "budget": self.budget, "seconds": self.seconds}
        known = {name: _known(decision) for name, decision in decisions.items() if modes[name] != "off"}
        return canonical.digest({**own, **asked, "known": known})


def active() -> Steering | None:
    """Return what steers the compilation going on in this thread, or None."""
    return getattr(_here, "steering", None)


@contextmanager
def steered(steering: Steering) -> Iterator[None]:
    """Let a steering be active in this thread."""
    before, _here.steering = active(), steering
    try:
        yield
    finally:
        _here.steering = before


def guarded(what: str, ours: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """Return what our code gives; where it breaks, one warning and what would be there without us."""
    try:
        return ours()
    except Exception as error:  # the user's compilation goes on, whatever is wrong with us
        report(what, error)
        _here.breaks = breaks() + 1
        return otherwise()


def breaks() -> int:
    """Return how often something of ours broke in this thread: what was compiled meanwhile is not what we would say."""
    return getattr(_here, "breaks", 0)


def report(what: str, error: BaseException) -> None:
    """Log, once for a thing and its error, that something goes on without us."""
    said = f"{type(error).__name__}: {error}"
    if (what, said) not in _reported:
        _reported.add((what, said))
        _log.warning("%s is compiled as if tunewise were not there: %s", what, shelf.shown(said))


def _known(decision: Decision) -> dict[str, Any]:
    """Return what may answer a decision: pins, the winners remembered, heuristics."""
    store = context.current_store()
    winners = {}
    for one in store.tuned(decision.name).rows:
        verdict = in_force(one.verdicts, decision)
        if verdict is not None:
            winners[one.subject.digest] = canonical.encode(dict(verdict.winner))
    loaded = [_identity(source) for source in shelf.sources_for(decision)]
    pins = [[dict(pin.config), dict(pin.when)] for pin in decision.pins]
    return {"winners": winners, "heuristics": loaded, "pins": pins}


def _identity(source: Any) -> list[str]:
    """Return what tells a heuristic from another one, also from a newer one of the same name."""
    made_of = getattr(source, "fingerprint", "") or fingerprint(getattr(source, "ranking", type(source)))
    return [type(source).__name__, shelf.name_of(source), str(made_of)]
