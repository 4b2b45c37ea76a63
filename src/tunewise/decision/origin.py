"""Origins: where a run took place, as far as its id or the home that measured it can tell."""

import functools
import hashlib
import socket
import uuid
from pathlib import Path
from typing import Literal

Origin = Literal["own", "host", "elsewhere"]  # this home; another one that says it is on this machine; any other
_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_DIGITS = 16


def run_id() -> str:
    """Return a new id for a run: 16 random hex digits, and 16 that are the same for all runs on this machine."""
    return uuid.uuid4().hex[:_DIGITS] + _host()


def origin_of(run: str) -> Origin:
    """Return where a run says that it took place. Whoever can write to a store can copy that from another run."""
    return "host" if len(run) == 2 * _DIGITS and run.endswith(_host()) else "elsewhere"


@functools.cache
def _host() -> str:
    """Return digits that tell machines apart and from which nobody can read a name."""
    return hashlib.blake2b(
        _machine().encode(errors="replace"), digest_size=_DIGITS // 2, person=b"tunewise"
    ).hexdigest()


def _machine() -> str:
    for path in _MACHINE_IDS:
        try:
            text = path.read_text(errors="replace").strip()
        except OSError:
            continue
        if text and text != "uninitialized":
            return text
    return socket.gethostname()
