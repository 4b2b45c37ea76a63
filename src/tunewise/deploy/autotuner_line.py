"""The line on stderr about a call that takes its time: moving on a terminal, a line now and then elsewhere."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from tunewise.escaping import one_line

PATIENCE_S = 2.0  # a call that is done by then is never spoken of
_GLANCE_S = 0.25  # between two looks at how far the call is
_USUAL_COLUMNS = 80
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 4.0, 60.0  # between two lines of a log


class Line:
    """Says how far a call is while somebody waits for it. `text` is asked for so many columns, or None for any length.

    A thread of its own, because the program is busy; it holds no lock that a forked child could miss, as it writes to
    the descriptor and not to Python's stream.
    """

    def __init__(self, text: Callable[[int | None], str], patience_s: float = PATIENCE_S) -> None:
        self._text, self._patience_s = text, patience_s
        self.is_urgent = False  # set it to say something at once: no more than that is safe in a signal handler
        self._over = threading.Event()
        self._shown = 0  # columns of what stands on the terminal
        self._thread = threading.Thread(target=self._tell, name="tunewise-line", daemon=True)

    def begin(self) -> None:
        """Begin to wait."""
        self._thread.start()

    def end(self) -> None:
        """Say nothing more, and leave nothing on the terminal."""
        self._over.set()
        self._thread.join()

    def wipe(self) -> None:
        """Take the moving line away, so that something else can be written; it comes again."""
        if self._shown:
            _write(f"\r{' ' * self._shown}\r")
            self._shown = 0

    def _tell(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the program
        due_s, pause_s = time.monotonic() + self._patience_s, _FIRST_PAUSE_S
        while not self._over.wait(min(_GLANCE_S, self._patience_s)):
            if time.monotonic() < due_s and not self.is_urgent:
                continue
            self.is_urgent = False
            columns = _columns()
            if columns is not None:
                self._draw(one_line(self._text(columns - 1))[: columns - 1])
                continue
            _write(one_line(self._text(None)) + "\n")
            due_s, pause_s = time.monotonic() + pause_s, min(2 * pause_s, _LONGEST_PAUSE_S)
        self.wipe()

    def _draw(self, text: str) -> None:
        _write(f"\r{text}{' ' * (self._shown - len(text))}")
        self._shown = len(text)


def _descriptor() -> int | None:
    """Return the descriptor of stderr; None if something else stands in for it, such as a notebook, or nothing does."""
    stream = sys.__stderr__
    try:
        return stream.fileno() if stream is not None and stream is sys.stderr else None
    except (OSError, ValueError):  # it is closed
        return None


def _columns() -> int | None:
    """Return how wide the terminal is that stderr is; None if it is none."""
    descriptor = _descriptor()
    if descriptor is None or not os.isatty(descriptor):
        return None
    try:
        return os.get_terminal_size(descriptor).columns or _USUAL_COLUMNS
    except OSError:
        return _USUAL_COLUMNS


def _write(text: str) -> None:
    descriptor, stream = _descriptor(), sys.stderr
    try:
        if descriptor is not None:
            os.write(descriptor, text.encode(errors="backslashreplace"))
        elif stream is not None:
            stream.write(text)
            stream.flush()
    except (OSError, ValueError):  # nobody reads it any more
        return
