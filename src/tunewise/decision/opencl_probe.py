"""Run as a script of its own: asks the OpenCL drivers, answers in JSON, and takes the drivers with it.

Without arguments it lists the devices of this machine. With the place of one, `PLATFORM DEVICE`, it builds and runs a
kernel there, and tells why that failed: an empty text means that the device works.
"""

import json
import os
import sys
import warnings
from array import array
from typing import Any

_KINDS = ("gpu", "accelerator", "cpu")
_ITEMS = 16
_SOURCE = "__kernel void squares(__global int *out) { int i = get_global_id(0); out[i] = i * i; }"


def probe() -> list[dict[str, Any]]:
    """Return the facts of every device of every platform, in the drivers' order; empty if there is no driver."""
    import pyopencl as cl

    try:
        platforms = cl.get_platforms()
    except cl.LogicError:  # PLATFORM_NOT_FOUND
        return []
    found: list[dict[str, Any]] = []
    errors = []
    for i, platform in enumerate(platforms):
        try:
            devices = enumerate(platform.get_devices())
            found += [{"place": (i, j), "platform": platform.name.strip(), **_facts(one, cl)} for j, one in devices]
        except cl.Error as error:  # a driver without its hardware, say: the others may have theirs
            errors.append(error)
    if errors and not found:
        raise errors[0]
    return found


def fault(platform: int, device: int) -> str:
    """Return why a device cannot build and run a kernel; empty if it can."""
    import pyopencl as cl

    here = cl.get_platforms()[platform].get_devices()[device]
    context = cl.Context([here])
    program = cl.Program(context, _SOURCE)
    warnings.simplefilter("ignore")
    program.get_info(cl.program_info.REFERENCE_COUNT)  # leaves pyopencl's own cache out: the driver must build
    try:
        program.build()
    except cl.Error as error:
        log = program.get_build_info(here, cl.program_build_info.LOG)
        return next(line.strip() for line in f"{log or ''}\n{error}\n{error!r}".splitlines() if line.strip())
    result = array("i", [-1] * _ITEMS)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, _ITEMS * result.itemsize)
    queue = cl.CommandQueue(context, here)
    kernel = cl.Kernel(program, "squares")
    kernel.set_arg(0, buffer)
    cl.enqueue_nd_range_kernel(queue, kernel, (_ITEMS,), None)
    cl.enqueue_copy(queue, result, buffer)
    return "" if list(result) == [i * i for i in range(_ITEMS)] else "a kernel computes wrong numbers"


def _facts(device: Any, cl: Any) -> dict[str, Any]:
    return {
        "name": device.name.strip(),
        "kind": next((kind for kind in _KINDS if device.type & getattr(cl.device_type, kind.upper())), "other"),
        "version": device.version.strip(),
        "driver": device.driver_version.strip(),
        "units": device.max_compute_units,
        "memory_bytes": device.global_mem_size,
        "local_bytes": device.local_mem_size,
    }


if __name__ == "__main__":
    answers = os.dup(1)
    os.dup2(2, 1)  # what drivers print is no part of the answer
    place = [int(number) for number in sys.argv[1:]]
    with os.fdopen(answers, "w") as out:
        json.dump(fault(*place) if place else probe(), out)
    os._exit(0)  # some drivers crash while a process ends: what they answered stands
