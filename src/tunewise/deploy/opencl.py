"""OpenCL: a kernel file with `-D` parameters and work-group sizes is a decision, run and timed by any device."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tunewise.decision import Config, Policy, Problem, Space
from tunewise.decision.opencl import OpenCLDevice, choose, devices
from tunewise.measure.clkernel import POLICY, Local, OpenCLKernel
from tunewise.session import Decision, Implementation

__all__ = ["POLICY", "Local", "OpenCLDevice", "OpenCLKernel", "choose", "devices", "kernel_decision"]

Sizes = tuple[Sequence[int], Sequence[int] | None]  # the global size, and the local one (None: the driver's choice)


def kernel_decision(
    name: str,
    kernel: OpenCLKernel,
    *,
    space: Space,
    default: Mapping[str, Any],
    features: Callable[..., Mapping[str, Any]],
    sizes: Callable[[Problem, Config], Sizes],
    policy: Policy = POLICY,
    **facts: Any,
) -> Implementation:
    """Return a function that runs a kernel with the config known to be best here; its arguments are the kernel's.

    Every parameter of the space is a `-D NAME=value` of the build. `features` makes the problem from the arguments,
    and `sizes` the global and local size from (problem, config). `facts` are those of `Decision`: `inputs` to tune by
    features, `check`, `derived` and so on. Times are the device's own.
    """
    decision = Decision(
        name,
        space=space,
        default=default,
        features=features,
        policy=policy,
        backend="opencl",
        device=kernel.device,
        **{"libraries": ("pyopencl",), **facts},
    )

    def run(*args: Any, **config: Any) -> None:
        global_size, local_size = sizes(Problem(features(*args)), config)
        kernel.run(*args, defines=config, global_size=global_size, local_size=local_size)

    run.__name__ = run.__qualname__ = name
    return decision.implementation(facts=kernel.facts, writes=kernel.writes)(run)
