"""`tunewise doctor`: is everything here that good measuring and remembering need?"""

import os
import platform
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

import click

import tunewise
from tunewise import settings
from tunewise.cli import doctor_machine, doctor_store
from tunewise.cli.doctor_finding import Finding
from tunewise.cli.screen import Screen, count, example, json_option

_WAL_RESET_FIXED = (3, 51, 3)
_VITAL = ("settings", "store")
_MARKS = {"ok": "", "warning": "!", "trouble": "!!"}
Check = Callable[[], Iterable[Finding]]


@click.command(epilog=example("tunewise doctor", "tunewise doctor --json --quick"))
@click.option("--quick", is_flag=True, help="Do not measure the noise, which takes most of the time.")
@json_option
@click.pass_context
def doctor(ctx: click.Context, quick: bool, as_json: bool) -> None:
    """Check that everything is in order.

    Versions, the home directory, the store, the C compiler, OpenCL, the noise and the settings in force are looked at;
    what needs a look is marked with !, and with !! if nothing can be remembered without it. The exit code is 1 in that
    case only. A store that does not answer is waited for 15 seconds, an OpenCL driver for a minute.
    """
    screen: Screen = ctx.obj
    findings = list(examine(quick=quick))
    worst = status(findings)
    if as_json:
        screen.json({"status": worst, "findings": findings})
    else:
        screen.table(("", "what", "found"), [(_MARKS[one.level], one.name, one.value) for one in findings])
        marked = sum(one.level != "ok" for one in findings)
        screen.say(f"{count(marked, 'finding')} marked ! to look at" if marked else "everything is in order")
    if worst == "trouble":
        ctx.exit(1)


def status(findings: Iterable[Finding]) -> Literal["ok", "warning", "trouble"]:
    """Return the worst level among findings."""
    levels = {finding.level for finding in findings}
    if "trouble" in levels:
        return "trouble"
    return "warning" if "warning" in levels else "ok"


def examine(*, quick: bool = False) -> Iterator[Finding]:
    """Yield what was found, one thing after another; a look that breaks is a finding too, and nothing is raised."""
    looks: dict[str, Check] = {
        "versions": _versions,
        "store": doctor_store.store_and_home,
        "c-compiler": doctor_machine.compiler,
        "opencl": doctor_machine.opencl,
        "processor": doctor_machine.processor,
        "noise": (lambda: ()) if quick else doctor_machine.noise,
        "settings": _settings,
        "events": _events,
        "extras": doctor_machine.extras,
    }
    for name, look in looks.items():
        yield from _looked(name, look)


def _looked(name: str, look: Check) -> Iterator[Finding]:
    try:
        yield from look()
    except Exception as error:  # whatever is wrong with this machine, monitoring gets an answer
        level: Literal["warning", "trouble"] = "trouble" if name in _VITAL else "warning"
        yield Finding(name, f"{error} ({type(error).__name__})", level)


def _versions() -> Iterator[Finding]:
    yield Finding("tunewise", tunewise.__version__)
    yield Finding("python", f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}")
    note = ""
    if sqlite3.sqlite_version_info < _WAL_RESET_FIXED:
        note = " (a bug of versions before 3.51.3 can lose data; our own lock around every write keeps it out)"
    yield Finding("sqlite", f"{sqlite3.sqlite_version}{note}")


def _settings() -> Iterator[Finding]:
    settings.current()  # a value that makes no sense is the finding
    for name, value in settings.in_force().items():
        yield Finding(name, value)


def _events() -> Iterator[Finding]:
    """Yield where events go, if anywhere: a file that cannot be written loses them without a word but one."""
    target = settings.current().events
    if not isinstance(target, Path):
        return
    is_writable = os.access(target if target.exists() else target.parent, os.W_OK) and not target.is_dir()
    if is_writable:
        yield Finding("events", str(target))
    else:
        yield Finding("events", f"{target} cannot be written; set TUNEWISE_EVENTS to a file that can be", "warning")
