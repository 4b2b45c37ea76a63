"""Run as a script of its own: prints the OpenCL devices of this machine as JSON, and takes the drivers with it."""

import json
import sys
from typing import Any

_KINDS = ("gpu", "accelerator", "cpu")


def probe() -> list[dict[str, Any]]:
    """Return the facts of every device of every platform, in the drivers' order; empty if there is no driver."""
    import pyopencl as cl

    try:
        platforms = cl.get_platforms()
    except cl.LogicError:  # PLATFORM_NOT_FOUND
        return []
    return [
        {"place": (i, j), "platform": platform.name.strip(), **_facts(device, cl.device_type)}
        for i, platform in enumerate(platforms)
        for j, device in enumerate(platform.get_devices())
    ]


def _facts(device: Any, types: Any) -> dict[str, Any]:
    return {
        "name": device.name.strip(),
        "kind": next((kind for kind in _KINDS if device.type & getattr(types, kind.upper())), "other"),
        "version": device.version.strip(),
        "driver": device.driver_version.strip(),
        "units": device.max_compute_units,
        "memory_bytes": device.global_mem_size,
        "local_bytes": device.local_mem_size,
    }


if __name__ == "__main__":
    json.dump(probe(), sys.stdout)
