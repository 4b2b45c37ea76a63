"""Messages between a process and its child: one JSON object a line, over pipes that user code cannot print into."""

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from tunewise.decision import canonical
from tunewise.errors import InvalidData

MAX_BYTES = 16 << 20  # of one line: a plan with many problems is the longest there is
_READ = 1 << 16


class Writer:
    """Writes messages to a pipe, each whole, from any thread."""

    def __init__(self, fd: int) -> None:
        self._fd, self._lock = fd, threading.Lock()

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one message; raises OSError (BrokenPipeError) where nobody reads any more."""
        rest = memoryview(canonical.encode(message).encode() + b"\n")
        with self._lock:
            while rest:
                rest = rest[os.write(self._fd, rest) :]


class Reader:
    """Reads messages from a pipe; raises InvalidData for anything that `Writer` cannot have written."""

    def __init__(self, fd: int) -> None:
        self.fd, self._rest = fd, b""

    def read(self) -> list[dict[str, Any]] | None:
        """Wait for something to be written and return the messages that are whole; None once the pipe is closed."""
        try:
            read = os.read(self.fd, _READ)
        except OSError:  # closed at our own end while the process winds up
            return None
        if not read:
            return None
        *whole, self._rest = (self._rest + read).split(b"\n")
        if len(self._rest) > MAX_BYTES:
            raise InvalidData(f"a message between processes is longer than the {MAX_BYTES >> 20} MB allowed")
        return [_message(line) for line in whole]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while (found := self.read()) is not None:
            yield from found


def own_output() -> int:
    """Return a descriptor for what was our standard output; from now on what anybody prints goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


def _message(line: bytes) -> dict[str, Any]:
    try:
        found = canonical.decode(line, MAX_BYTES)
    except ValueError as error:
        raise InvalidData(f"a message between processes is {error}") from None
    if not isinstance(found, dict):
        raise InvalidData(f"a message between processes is a {type(found).__name__}, not an object")
    return found
