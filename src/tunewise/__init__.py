"""tunewise gives every performance decision a memory and good judgement.

Importing it does no work and loads nothing: each public name is fetched from its room when it is first used.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # what type checkers take for true; `typing` itself would cost a third of the import
if TYPE_CHECKING:
    from tunewise.decision import (
        NO_CHECK,
        Answer,
        AttentionFact,
        Check,
        Environment,
        Failure,
        Hardware,
        MatmulFact,
        Policy,
        Problem,
        Proposal,
        ReductionFact,
        Space,
        Timing,
        Trial,
        Verdict,
        boolean,
        integer,
        permutation,
        pow2,
    )
    from tunewise.deploy.autotuner import Autotuner
    from tunewise.deploy.inductor.backend import inductor
    from tunewise.errors import TunewiseError, TunewiseWarning
    from tunewise.heuristics import Case, Expert, Heuristic, On
    from tunewise.measure.ckernel import CKernel
    from tunewise.session import (
        Decision,
        Explanation,
        Implementation,
        Plan,
        Tuning,
        choice,
        configure,
        drop_heuristics,
        load_heuristic,
        mode,
        refresh,
    )

_ROOMS = {
    "tunewise.decision": (
        *("Answer", "AttentionFact", "Check", "Environment", "Failure", "Hardware", "MatmulFact", "NO_CHECK", "Policy"),
        *("Problem", "Proposal", "ReductionFact", "Space", "Timing", "Trial", "Verdict"),
        *("boolean", "integer", "permutation", "pow2"),
    ),
    "tunewise.deploy.autotuner": ("Autotuner",),
    "tunewise.deploy.inductor.backend": ("inductor",),
    "tunewise.errors": ("TunewiseError", "TunewiseWarning"),
    "tunewise.heuristics": ("Case", "Expert", "Heuristic", "On"),
    "tunewise.measure.ckernel": ("CKernel",),
    "tunewise.session": (
        *("Decision", "Explanation", "Implementation", "Plan", "Tuning"),
        *("choice", "configure", "drop_heuristics", "load_heuristic", "mode", "refresh"),
    ),
}
_WHERE = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "Answer",
    "AttentionFact",
    "Autotuner",
    "CKernel",
    "Case",
    "Check",
    "Decision",
    "Environment",
    "Expert",
    "Explanation",
    "Failure",
    "Hardware",
    "Heuristic",
    "Implementation",
    "MatmulFact",
    "NO_CHECK",
    "On",
    "Plan",
    "Policy",
    "Problem",
    "Proposal",
    "ReductionFact",
    "Space",
    "Timing",
    "Trial",
    "Tuning",
    "TunewiseError",
    "TunewiseWarning",
    "Verdict",
    "boolean",
    "choice",
    "configure",
    "drop_heuristics",
    "inductor",
    "integer",
    "load_heuristic",
    "mode",
    "permutation",
    "pow2",
    "refresh",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in ("autoheuristic", "torch"):
        return import_module(f"tunewise.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module 'tunewise' has no attribute {name!r}")
    value: object = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
