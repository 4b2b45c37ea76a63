"""Measuring honestly: benches, isolation, races, paired finals and replay. Nothing here decides or remembers."""

import sys

from tunewise import system
from tunewise.decision import Policy
from tunewise.errors import MissingPart
from tunewise.measure.inprocess import InProcess
from tunewise.measure.replay import Replay
from tunewise.measure.work import Measurer, Work

__all__ = ["InProcess", "Measurer", "Replay", "Work", "measurer_for", "why_not"]


def why_not(policy: Policy) -> str | None:
    """Return why nothing can be measured under a policy on this system, as a sentence; None if it can."""
    if _is_in_process(policy) or system.has_worker_processes():
        return None
    return (
        f"measuring in worker processes needs Linux 5.3 or newer, and this is {sys.platform}; tune on Linux and bring "
        "the results here, or use Policy(isolation='none'), which measures unprotected in this process"
    )


def measurer_for(work: Work) -> Measurer:
    """Return the measurer that suits a piece of work: isolated, unless its policy or a GPU in use forbids it.

    Raises MissingPart where the system has no worker processes.
    """
    if _is_in_process(work.policy):
        return InProcess(work)
    reason = why_not(work.policy)
    if reason is not None:
        raise MissingPart(reason)
    from tunewise.measure.isolated import Isolated  # answering needs none of it, and it loads on Linux only

    return Isolated(work)


def _is_in_process(policy: Policy) -> bool:
    """Return whether configs run in this process: their policy says so, or it has started the driver that they need.

    Such a driver would not survive a worker's fork.
    """
    torch = sys.modules.get("torch")
    if policy.isolation == "none" or (torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized()):
        return True
    if policy.clock != "device" or "pyopencl" not in sys.modules:
        return False
    from tunewise.measure import clruntime

    return clruntime.is_started()
