"""The session: declare, tune, decide and collect. The one room that knows measuring, searching and remembering."""

from tunewise.session.context import configure, mode, refresh
from tunewise.session.decision import Decision, choice
from tunewise.session.implementation import Implementation
from tunewise.session.ladder import Explanation, Step
from tunewise.session.plan import Plan
from tunewise.session.shelf import drop_heuristics, load_heuristic
from tunewise.session.tune import Tuning

__all__ = [
    "Decision",
    "Explanation",
    "Implementation",
    "Plan",
    "Step",
    "Tuning",
    "choice",
    "configure",
    "drop_heuristics",
    "load_heuristic",
    "mode",
    "refresh",
]
