"""Reads files in a process of its own and tells for each what it cost: `bomb_reader.py FILE...`."""

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tunewise.errors import InvalidFile
from tunewise.formats import datasets, foreign, recorded
from tunewise.formats.arrow import arrow_library

READERS: dict[str, Callable[[Path], Any]] = {
    "recorded": recorded.read,
    "foreign": foreign.read,
    "datasets": lambda path: datasets.read([path]),
}


def main() -> None:
    arrow_library()  # what importing it takes is nobody's fault
    told: dict[str, dict[str, tuple[str, float, int]]] = {}
    for path in map(Path, sys.argv[1:]):
        told[path.name] = {name: _cost(read, path) for name, read in READERS.items()}
    print(json.dumps(told))


def _cost(read: Callable[[Path], Any], path: Path) -> tuple[str, float, int]:
    """Return what became of a file, the seconds of processor it took, and the MiB this process has held at most."""
    begin = time.process_time()
    try:
        read(path)
        outcome = "read"
    except InvalidFile as error:
        outcome = f"refused: {error}"
    return outcome, time.process_time() - begin, _peak_mib()


def _peak_mib() -> int:
    (found,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found) // 1024


main()
