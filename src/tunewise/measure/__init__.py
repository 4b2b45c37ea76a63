"""Measuring honestly: benches, isolation, races, paired finals and replay. Nothing here decides or remembers."""

import sys

from tunewise.measure.inprocess import InProcess
from tunewise.measure.isolated import Isolated, why_not
from tunewise.measure.replay import Replay
from tunewise.measure.work import Measurer, Work

__all__ = ["InProcess", "Isolated", "Measurer", "Replay", "Work", "measurer_for"]


def measurer_for(work: Work) -> Measurer:
    """Return the measurer that suits a piece of work: isolated, unless its policy, the system or a GPU forbids it."""
    if work.policy.isolation == "none" or _is_device_in_use() or why_not() is not None:
        return InProcess(work)
    return Isolated(work)


def _is_device_in_use() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "cuda") and bool(torch.cuda.is_initialized())
