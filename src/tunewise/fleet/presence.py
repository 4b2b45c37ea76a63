"""Who takes part: a name for each process by which others on the same machine see whether it still lives."""

import os
from functools import cache
from pathlib import Path

from tunewise import system

_ENDED, _STOPPED = "ZXx", "Tt"  # states of a process, in Linux's letters
_START = 19  # field of /proc/PID/stat behind the name: when the process started, in ticks since the machine did


@cache
def host() -> str:
    """Return what tells this machine, and this container on it, from others; empty where the system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def name(rank: int) -> str:
    """Return the name of this process; never the same for two, also where numbers of processes are used again."""
    return f"{host()}|{os.getpid()}|{_stat(os.getpid())[1]}|{rank}"


def rank_of(other: str) -> str:
    """Return the rank in a name, for people."""
    return other.rpartition("|")[2][:9]


def is_gone(other: str) -> bool:
    """Return whether a process is known to have ended. Of one on another machine nobody here knows that."""
    return _is(other, _ENDED)


def is_idle(other: str) -> bool:
    """Return whether a process is known to have ended or to be stopped: not worth waiting for, whatever it promised."""
    return _is(other, _ENDED + _STOPPED)


def _is(other: str, states: str) -> bool:
    """Return whether a process is in one of some states, or a different one has its number by now."""
    place, _, rest = other.partition("|")
    pid, _, started = rest.rpartition("|")[0].partition("|")
    if not place or place != host() or not pid.isdigit() or len(pid) > 9:
        return False
    state, start = _stat(int(pid))
    return state in states or start != started


def age_s() -> float:
    """Return how long ago this process started; as long as the machine has been on where the system does not say."""
    started = _stat(os.getpid())[1]
    return system.uptime_s() - (int(started) / os.sysconf("SC_CLK_TCK") if started else 0.0)


def _stat(pid: int) -> tuple[str, str]:
    """Return the state of a process and when it started, in ticks; both empty if there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0], fields[_START]
    except (OSError, IndexError):
        return "", ""
