"""What `tunewise doctor` finds out about the machine: the compiler, OpenCL, the load, the noise, what is installed."""

import importlib.metadata
import os
import time
from collections.abc import Callable, Iterator
from statistics import median, quantiles

from tunewise.cli.doctor_finding import Finding
from tunewise.cli.screen import count, seconds
from tunewise.decision import detect
from tunewise.decision.opencl import OpenCLDevice, devices, is_installed
from tunewise.errors import MissingPart
from tunewise.measure.compiler import find_compiler

_EXTRAS = {
    "tune": ("numpy", "scipy", "threadpoolctl"),
    "learn": ("lightgbm", "pyarrow"),
    "torch": ("torch",),
    "opencl": ("pyopencl",),
    "postgres": ("psycopg",),
    "ray": ("ray",),
    "dashboard": ("starlette", "uvicorn"),
}
_SAMPLES, _LOOP = 60, 20_000
_NOISY = 1.25  # the slowest tenth of samples against the median


def compiler() -> Iterator[Finding]:
    """Yield which C compiler there is."""
    try:
        found = find_compiler()
    except MissingPart as error:
        yield Finding("c-compiler", str(error), "warning")
        return
    yield Finding("c-compiler", f"{found.version} ({' '.join(found.command)})")


def opencl() -> Iterator[Finding]:
    """Yield which OpenCL devices can run a kernel, and why others cannot; nothing without the extra `opencl`."""
    if not is_installed():
        return
    try:
        known = devices()
    except MissingPart as error:
        yield Finding("opencl", str(error), "warning")
        return
    yield Finding("opencl", "; ".join(map(_described, known)))


def _described(device: OpenCLDevice) -> str:
    if device.fault:
        return f"{device.title} cannot run a kernel ({device.fault})"
    return f"{device.title}, driver {device.driver}"


def processor() -> Iterator[Finding]:
    """Yield what the processor is and how much it has to do."""
    machine = detect()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    is_busy = load > machine.cores
    advice = "; it has more to do than cores, so tune when it is quieter" if is_busy else ""
    described = f"{machine.name}, {count(machine.cores, 'core')}, load {load:.1f}"
    numbers = {"cores": machine.cores, "load": load}
    yield Finding("processor", f"{described}{advice}", "warning" if is_busy else "ok", numbers)


def noise() -> Iterator[Finding]:
    """Time the same loop again and again by both clocks: what differs is noise."""
    spreads = []
    for clock in (time.process_time, time.perf_counter):
        samples = [_one(clock) for _ in range(_SAMPLES)]
        spreads.append(quantiles(samples, n=10)[-1] / median(samples))
    cpu, wall = spreads
    step_s = time.get_clock_info("process_time").resolution
    shown = f"{cpu:.2f}x the median by CPU clock (step {seconds(step_s)}), {wall:.2f}x by wall clock"
    is_noisy = cpu > _NOISY
    advice = "; close other programs: small gains will not show" if is_noisy else ""
    text = f"the slowest tenth of equal loops takes {shown}{advice}"
    yield Finding("noise", text, "warning" if is_noisy else "ok", {"cpu_ratio": cpu, "wall_ratio": wall})


def extras() -> Iterator[Finding]:
    """Yield which extras are installed."""
    if not _version("numpy"):
        told = "not installed, and the built-in decisions need it: pip install 'tunewise[tune]'"
        yield Finding("numpy", told, "warning")
    absent = []
    for extra, distributions in _EXTRAS.items():
        versions = {name: _version(name) for name in distributions}
        if any(versions.values()):
            told = ", ".join(f"{name} {version or 'is not installed'}" for name, version in versions.items())
            yield Finding(f"extra-{extra}", told)
        else:
            absent.append(extra)
    yield Finding("other-extras", f"not installed: {', '.join(absent)}" if absent else "all installed")


def _one(clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(_LOOP):
        pass
    return clock() - start


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
