"""Expert heuristics: rules of thumb, written by somebody who knows, that say what to try first."""

from collections.abc import Sequence
from typing import ClassVar

from tunewise.decision import Config
from tunewise.heuristics.case import Case
from tunewise.heuristics.matching import ANYWHERE, On

MOST = 9  # seeds that a heuristic may declare: it is focused and opinionated


class Expert:
    """A rule of thumb. Subclass it, name it, say which backend it is for, and give `seeds`; the rest is optional.

    `decision` binds it to one decision, `hardware` to some devices, `most` says how many seeds it may propose, and
    with `is_promoted` its first seed replaces the default when nothing better is known. A class of somebody else that
    has a `name` and `seeds` will do as well: what it lacks is taken from here.
    """

    name: ClassVar[str] = ""
    backend: ClassVar[str] = ""  # of the decisions it is asked about; empty: of all
    decision: ClassVar[str] = ""  # the only one it is asked about; empty: all of its backend
    hardware: ClassVar[On] = ANYWHERE
    most: ClassVar[int] = 1
    is_promoted: ClassVar[bool] = False

    def seeds(self, problem: Case) -> Sequence[Config]:
        """Return guesses, best first, which may be parts of configs; empty means that it does not apply."""
        raise NotImplementedError

    def neighbors(self, problem: Case, config: Config) -> Sequence[Config]:
        """Return what else to try once `config` is the best so far; none unless a rule knows better than the search."""
        return ()
