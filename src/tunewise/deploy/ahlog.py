"""The log that an AutoHeuristic collects into: rows are appended whole, and never to a log about something else."""

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from tunewise.decision import CHOICE, canonical
from tunewise.decision.regular import open_regular
from tunewise.errors import InvalidData, InvalidFile
from tunewise.formats.rows import rows_text

FEEDBACK = "feedback"
_MAX_LINE = 1 << 20

Row = tuple[str, ...]  # the features' values as they are spelled, then the choice


class Log:
    """One log of one decision. Rows are added, never changed; several processes may add to one file.

    A row is in the file once `add` has returned. What another process has torn costs its own row and no other.
    """

    def __init__(self, path: Path, about: Mapping[str, Any], features: Sequence[str]) -> None:
        if {CHOICE, FEEDBACK} & set(features):
            raise InvalidData(f"a feature is named {CHOICE} or {FEEDBACK}, which {path} keeps for itself; rename it")
        self.path, self._about, self._header = path, dict(about), [*features, CHOICE, FEEDBACK]
        self._seen: tuple[int, int] | None = None  # which file was counted, and how much of it
        self._counts: Counter[Row] = Counter()

    @property
    def key(self) -> str:
        """A word that is equal only for logs of one file about the same."""
        return canonical.digest([str(self.path), self._about, self._header])

    def counts(self) -> Counter[Row]:
        """Return how often each problem and choice is in the log; a file that has grown meanwhile is read again.

        Raises InvalidData where the file is about something else, InvalidFile where it is no log.
        """
        if self._state() != self._seen:
            self._counts = self._read()
            self._seen = self._state()
        return self._counts

    def add(self, rows: Iterable[tuple[Row, float]]) -> None:
        """Append rows with their feedback in milliseconds, infinite for what failed, all in one write."""
        rows = list(rows)
        counts = self.counts()
        text = rows_text([*row, repr(float(feedback_ms))] for row, feedback_ms in rows)
        try:
            self._append(text)
        except OSError as error:
            raise InvalidFile(f"log {self.path} cannot be written: {error.strerror}; set another log path") from None
        counts.update(row for row, _ in rows)
        self._seen = self._state()

    def _append(self, text: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file, _locked(file):
            size = file.seek(0, os.SEEK_END)
            if size == 0:
                text = canonical.encode(self._about) + "\n" + rows_text([self._header]) + text
            else:
                self._check_head(file)  # another process may have begun it since it was read
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    text = "\n" + text  # whoever wrote last was killed in the middle of a row
            file.write(text.encode())

    def _state(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size

    def _read(self) -> Counter[Row]:
        try:
            with io.TextIOWrapper(open_regular(self.path), "utf-8", "replace", newline="") as file:
                first = file.readline(_MAX_LINE)
                if not first:
                    return Counter()
                rows = csv.reader(file)
                self._check(first, rows)
                return Counter(tuple(row[:-1]) for row in rows if len(row) == len(self._header))
        except FileNotFoundError:
            return Counter()
        except OSError as error:
            raise InvalidFile(f"log {self.path} cannot be read: {error.strerror}; set another log path") from None
        except csv.Error as error:
            raise InvalidFile(f"log {self.path} is damaged: {error}; set another log path") from None

    def _check_head(self, file: BinaryIO) -> None:
        file.seek(0)
        lines = (line.decode("utf-8", "replace") for line in file)
        self._check(next(lines, ""), csv.reader(lines))

    def _check(self, first: str, rows: Iterator[list[str]]) -> None:
        try:
            held = canonical.decode(first)
        except ValueError:
            held = None
        if not isinstance(held, dict):
            raise InvalidFile(f"{self.path} is no AutoHeuristic log: its first line is not JSON; set another log path")
        for name, ours in self._about.items():
            if canonical.encode(held.get(name)) != canonical.encode(ours):
                said = f"its {name} is {held.get(name)!r}, and here it is {ours!r}"
                place = "a directory, for a log of each" if name == "name" else "another log path"
                raise InvalidData(f"log {self.path} is about something else: {said}; set {place}")
        names = next(rows, [])
        if names != self._header:
            said = f"its columns are {','.join(names)}, and here they are {','.join(self._header)}"
            raise InvalidData(f"log {self.path} is about something else: {said}; set another log path")


@contextmanager
def _locked(file: BinaryIO) -> Iterator[None]:
    """Keep others out of a file, threads of this process too, which a lock of the process would let in."""
    try:
        import fcntl
    except ImportError:  # Windows: a row is written at once, and nobody is kept out
        yield
        return
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
        file.flush()
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)  # a child made meanwhile has the file open, and would go on to hold it


def log_file(place: Path, name: str) -> Path:
    """Return the log of a decision at a place: the file itself, or a file in it where the place is a directory."""
    if not place.is_dir():
        return place
    return place / f"{re.sub(r'[^A-Za-z0-9_-]+', '-', name)[:60]}-{canonical.digest(name)[:8]}.txt"
