"""Events for operations: one line of JSON each, in a file that many processes write to and others may rotate."""

import json
import logging
import os
import re
import warnings
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from tunewise import system
from tunewise.errors import EventsWarning
from tunewise.escaping import harmless, one_line

Level = Literal["debug", "info", "warning"]
Target = Path | Literal["stderr"]
DEBUG, INFO, WARNING = logging.DEBUG, logging.INFO, logging.WARNING
NAME = "tunewise.events"  # the logger that events go through, for programs that set up logging themselves
_STDERR = 2
_TRACEBACK = logging.Formatter()
_LONGEST_TEXT = 2_000
_PLACES = (
    (re.compile(r'server (?:at|on socket) "[^"]*"(?: \([^)]*\))?'), "server"),
    (re.compile(r'host name "[^"]*"'), "host name"),
    (re.compile(r"\buser \d+"), "another user"),
    (re.compile(r"[^\s(]*/[^\s;,)]+"), "..."),
)
_EVENTS = logging.getLogger(NAME)
_LONGEST_PART = 4_096  # of a line: what is longer, such as a problem with names without end, is left out


def logger(name: str) -> logging.Logger:
    """Return a logger of ours: what it says is one line that no terminal obeys, whoever the text is from."""
    log = logging.getLogger(name)
    log.addFilter(_written_out)
    return log


def _written_out(record: logging.LogRecord) -> bool:
    """Write out what a terminal would obey in a record, and let it pass."""
    try:
        record.msg, record.args = one_line(record.getMessage()), ()
    except Exception:  # somebody else's text that breaks when it is asked for: handlers report that, and go on
        return True
    if record.exc_info and not record.exc_text:
        record.exc_text = harmless(_TRACEBACK.formatException(record.exc_info))
    return True


def tell(level: int, event: str, text: str, **facts: Any) -> None:
    """Tell of an event: to the file in force, and to whatever the program has set up for the logger.

    Records have the attributes `event`, a name that stays, and `facts`, plain values of JSON. Never raises, but for
    a warning that the program has turned into an error.
    """
    sink, log = _Process.sink, _EVENTS
    is_heard = _is_heard(level)
    if not is_heard and (sink is None or level < sink.level):
        return
    said = {"event": event, "facts": {name: _plain(value) for name, value in facts.items()}}
    record = log.makeRecord(NAME, level, "(tunewise)", 0, one_line(text), (), None, extra=said)
    if sink is not None and level >= sink.level:
        sink.handle(record)
    if is_heard:
        log.handle(record)


def is_told(level: int) -> bool:
    """Return whether anybody would hear of an event of this level."""
    return (_Process.sink is not None and level >= _Process.sink.level) or _is_heard(level)


def _is_heard(level: int) -> bool:
    """Return whether the program has set up for events of a level, without the lock of `logging`.

    That lock stays taken where an exception of a signal handler comes at the wrong moment, and every look-up asks this.
    """
    return _EVENTS.manager.disable < level and _EVENTS.getEffectiveLevel() <= level and _EVENTS.hasHandlers()


def put_in_force(target: Target | None, level: Level) -> None:
    """Write events from a level on, and what the library logs, to a file or stderr; None: nowhere."""
    before, number = _Process.sink, logging.getLevelNamesMapping()[level.upper()]
    if before is not None and (before.target, before.level) == (target, number):
        return
    _Process.sink = None if target is None else EventsHandler(target, number)
    library = logging.getLogger("tunewise")
    for handler in [handler for handler in library.handlers if isinstance(handler, _Overhearing)]:
        library.removeHandler(handler)
    if _Process.sink is not None:
        library.addHandler(_Overhearing(_Process.sink))
    if before is not None:
        before.close()


class EventsHandler(logging.Handler):
    """Appends a line to a file in one write, so that lines of many processes stay whole.

    The file is opened when there is something to write, again when it has been renamed or removed, and with mode 0600
    if it is new. What cannot be written is dropped; the first time costs one warning.
    """

    def __init__(self, target: Target, level: int = INFO) -> None:
        super().__init__(level)
        self.target = target
        self._fd: int | None = None
        self._is_torn = self._has_warned = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record as one line."""
        raw = line(record).encode()
        try:
            self._write(b"\n" + raw if self._is_torn else raw)
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                told = f"events cannot be written to {self.target}: {error.strerror}; they are dropped until they can"
                warnings.warn(told, EventsWarning, stacklevel=2)

    def close(self) -> None:
        """Let go of the file; the next event opens it again."""
        self.acquire()
        try:
            self._let_go()
        finally:
            self.release()
        super().close()

    def _write(self, raw: bytes) -> None:
        written = os.write(self._descriptor(), raw)
        self._is_torn = written != len(raw)  # the disk took a part only: the next line must not go on in this one
        if self._is_torn:
            raise OSError(0, "the disk took a part of a line only")

    def _descriptor(self) -> int:
        if not isinstance(self.target, Path):
            return _STDERR
        if self._fd is not None and _identity(os.fstat(self._fd)) != _identity_at(self.target):
            self._let_go()  # rotated: the lines to come belong to the file of that name
        if self._fd is None:
            # A pipe that nobody reads must not stop the program.
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | system.BINARY | system.NONBLOCK
            self._fd = os.open(self.target, flags, 0o600)
        return self._fd

    def _let_go(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


class _Overhearing(logging.Handler):
    """Writes what else the library logs to the file of events; whoever heard of it before still does."""

    def __init__(self, sink: EventsHandler) -> None:
        super().__init__()
        self._sink = sink

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on a record that is no event: those have been written."""
        if not hasattr(record, "event") and record.levelno >= self._sink.level:
            self._sink.handle(record)
        last = logging.lastResort  # it speaks where there is no handler at all, and now there is this one
        if last is not None and record.levelno >= last.level and not hasattr(record, "event") and _is_alone(self):
            last.handle(record)


class _Process:
    """Where events go in this process."""

    sink: EventsHandler | None = None


def line(record: logging.LogRecord) -> str:
    """Return a record as one line of JSON: time, level, event, process, and what else there is to say."""
    at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    said: dict[str, Any] = {"time": at, "level": record.levelname.lower(), "event": getattr(record, "event", "log")}
    said["pid"] = os.getpid()
    if hasattr(record, "event"):
        said |= getattr(record, "facts", {})
    else:
        said |= {"logger": record.name, "text": record.getMessage()[:_LONGEST_TEXT]}
    parts = {name: json.dumps(value, default=str) for name, value in said.items()}
    kept = (f"{json.dumps(name)}: {text}" for name, text in parts.items() if len(text) <= _LONGEST_PART)
    return "{" + ", ".join(kept) + "}\n"


def bare(text: str) -> str:
    """Return what went wrong without where: the first words, which name the thing, paths and servers are left out."""
    said = text.partition(": ")[2] or text
    for pattern, instead in _PLACES:
        said = pattern.sub(instead, said)
    return said


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value


def _is_alone(handler: logging.Handler) -> bool:
    """Return whether a handler of the library's logger is the only one that hears it."""
    library = logging.getLogger("tunewise")
    return library.handlers == [handler] and not (library.propagate and logging.getLogger().handlers)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _identity_at(path: Path) -> tuple[int, int] | None:
    try:
        return _identity(os.stat(path))
    except OSError:
        return None
