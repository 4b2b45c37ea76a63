"""Measuring honestly: benches, isolation, races, paired finals and replay. Nothing here decides or remembers."""

import sys

from tunewise.measure.inprocess import InProcess
from tunewise.measure.isolated import Isolated, why_not
from tunewise.measure.replay import Replay
from tunewise.measure.work import Measurer, Work

__all__ = ["InProcess", "Isolated", "Measurer", "Replay", "Work", "measurer_for"]


def measurer_for(work: Work) -> Measurer:
    """Return the measurer that suits a piece of work: isolated, unless its policy, the system or a GPU forbids it."""
    if work.policy.isolation == "none" or _is_device_in_use(work) or why_not() is not None:
        return InProcess(work)
    return Isolated(work)


def _is_device_in_use(work: Work) -> bool:
    """Return whether this process has started a driver that the work needs: it would not survive a worker's fork."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized():
        return True
    if work.policy.clock != "device" or "pyopencl" not in sys.modules:
        return False
    from tunewise.measure import clruntime

    return clruntime.is_started()
