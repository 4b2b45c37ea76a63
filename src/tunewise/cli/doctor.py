"""`tunewise doctor`: is everything here that good measuring and remembering need?"""

import importlib.metadata
import os
import platform
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles

import click

import tunewise
from tunewise import settings
from tunewise.cli.home import sound_store
from tunewise.cli.screen import Screen, count, example, json_option, seconds
from tunewise.decision import detect
from tunewise.errors import MissingPart, StoreError
from tunewise.measure.compiler import find_compiler
from tunewise.store.home import file_system, why_remote, why_unsafe

_EXTRAS = {
    "tune": ("numpy", "scipy", "threadpoolctl"),
    "learn": ("lightgbm", "pyarrow"),
    "torch": ("torch",),
    "opencl": ("pyopencl",),
    "postgres": ("psycopg",),
    "ray": ("ray",),
    "dashboard": ("starlette", "uvicorn"),
}
_WAL_RESET_FIXED = (3, 51, 3)
_SAMPLES, _LOOP = 60, 20_000
_NOISY = 1.25  # the slowest tenth of samples against the median


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    value: str
    is_trouble: bool = False


@click.command(epilog=example("tunewise doctor", "tunewise doctor --json"))
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check that everything is in order.

    Versions, the home directory, the store, the C compiler, the noise and the settings in force are looked at; what
    needs a look is marked with !. The exit code is 1 if the store cannot be used.
    """
    screen: Screen = ctx.obj
    findings = list(examine())
    if as_json:
        screen.json({"findings": [asdict(finding) for finding in findings]})
    else:
        rows = [("!" if found.is_trouble else "", found.name, found.value) for found in findings]
        screen.table(("", "what", "found"), rows)
        troubles = sum(found.is_trouble for found in findings)
        screen.say(f"{count(troubles, 'finding')} marked ! to look at" if troubles else "everything is in order")
    if any(found.is_trouble and found.name in ("home", "store") for found in findings):
        ctx.exit(1)


def examine() -> Iterator[Finding]:
    """Yield what was found, one thing after another."""
    yield Finding("tunewise", tunewise.__version__)
    yield Finding("python", f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}")
    yield _sqlite()
    store = _store()  # makes the home if it is missing
    yield _home(settings.current().home)
    yield store
    yield _compiler()
    yield _cores()
    yield _noise()
    for name, value in settings.in_force().items():
        yield Finding(name, value)
    yield from _extras()


def _sqlite() -> Finding:
    note = ""
    if sqlite3.sqlite_version_info < _WAL_RESET_FIXED:
        note = " (a bug of versions before 3.51.3 can lose data; our own lock around every write keeps it out)"
    return Finding("sqlite", f"{sqlite3.sqlite_version}{note}")


def _home(home: Path) -> Finding:
    if settings.current().store is not None and not home.exists():
        return Finding("home", f"{home} (not made yet: the store lies elsewhere)")
    if not home.is_dir():
        return Finding("home", f"{home} is not a directory; set TUNEWISE_HOME to one that can be made", is_trouble=True)
    reason = why_unsafe(home) or why_remote(home)
    if reason is not None:
        return Finding("home", reason, is_trouble=True)
    free = shutil.disk_usage(home).free / 2**30
    mode = f"{home.stat().st_mode & 0o777:04o}"
    return Finding("home", f"{home} ({file_system(home) or 'unknown file system'}, mode {mode}, {free:.1f} GiB free)")


def _store() -> Finding:
    try:
        held = sound_store().info()
    except StoreError as error:
        return Finding("store", str(error), is_trouble=True)
    holds = {"trial": held.trials, "verdict": held.verdicts, "problem": held.subjects, "miss": held.misses}
    counts = ", ".join(count(number, thing) for thing, number in holds.items())
    layers = f", over {count(len(held.layers), 'layer')}" if held.layers else ""
    where = f"{held.place}: " if held.postgres else ""
    return Finding("store", f"{where}{counts}, {held.size_bytes / 1024:.0f} KiB, schema {held.schema}{layers}")


def _compiler() -> Finding:
    try:
        found = find_compiler()
    except MissingPart as error:
        return Finding("c compiler", str(error), is_trouble=True)
    return Finding("c compiler", f"{found.version} ({' '.join(found.command)})")


def _cores() -> Finding:
    machine = detect()
    load = os.getloadavg()[0]
    is_busy = load > machine.cores
    advice = "; it has more to do than cores, so tune when it is quieter" if is_busy else ""
    described = f"{machine.name}, {count(machine.cores, 'core')}, load {load:.1f}"
    return Finding("processor", f"{described}{advice}", is_trouble=is_busy)


def _noise() -> Finding:
    """Time the same loop again and again by both clocks: what differs is noise."""
    spreads = []
    for clock in (time.process_time, time.perf_counter):
        samples = [_one(clock) for _ in range(_SAMPLES)]
        spreads.append(quantiles(samples, n=10)[-1] / median(samples))
    cpu, wall = spreads
    resolution = seconds(time.get_clock_info("process_time").resolution)
    shown = f"{cpu:.2f}x the median by CPU clock (step {resolution}), {wall:.2f}x by wall clock"
    advice = "; close other programs: small gains will not show" if cpu > _NOISY else ""
    return Finding("noise", f"the slowest tenth of equal loops takes {shown}{advice}", is_trouble=cpu > _NOISY)


def _one(clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(_LOOP):
        pass
    return clock() - start


def _extras() -> Iterator[Finding]:
    if not _version("numpy"):
        told = "not installed, and the built-in decisions need it: pip install 'tunewise[tune]'"
        yield Finding("numpy", told, is_trouble=True)
    absent = []
    for extra, distributions in _EXTRAS.items():
        versions = {name: _version(name) for name in distributions}
        if any(versions.values()):
            told = ", ".join(f"{name} {version or 'is not installed'}" for name, version in versions.items())
            yield Finding(f"extra {extra}", told)
        else:
            absent.append(extra)
    yield Finding("other extras", f"not installed: {', '.join(absent)}" if absent else "all installed")


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
