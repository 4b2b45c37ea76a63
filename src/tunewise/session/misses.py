"""Misses: questions nobody could answer from memory, counted cheaply and kept for tuning later."""

import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from tunewise.decision import Answer, Problem, Subject
from tunewise.store import Store, before_closing, renew_in_children

_LIMIT = 10_000  # problems counted by one process


class Misses:
    """Answers given without knowledge, with how often they were asked for; counts reach the store at 1, 2, 4, 8, ..."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may ask a question in the middle of another
        self._open: dict[tuple[Any, ...], _Count] = {}
        self._is_registered = False
        renew_in_children(self)

    def again(self, key: tuple[Any, ...]) -> Answer | None:
        """Return the answer given before and count the question, or None if it was never asked."""
        with self._lock:
            try:
                count = self._open.get(key)
            except TypeError:  # unhashable features are told off elsewhere
                return None
            if count is None:
                return None
            count.asked += 1
            if count.asked & (count.asked - 1) == 0:
                count.write()
            return count.answer

    def first(self, key: tuple[Any, ...], answer: Answer, subject: Subject, store: Store) -> None:
        """Keep a new miss and write it down at once."""
        with self._lock:
            if not self._is_registered:
                self._is_registered = True
                before_closing(partial(_flush, weakref.ref(self)))
            if len(self._open) < _LIMIT:
                self._open[key] = count = _Count(answer, subject, store)
                count.write()

    def drop(self, problem: Problem) -> None:
        """Forget the counts of a problem that has been tuned, written or not."""
        with self._lock:
            self._open = {key: count for key, count in list(self._open.items()) if key[1] != problem}

    def renew(self) -> None:
        """Begin anew in a forked child: its parent writes what was counted before."""
        self._lock, self._open = threading.RLock(), {}

    def flush(self, is_meant: Callable[[Problem], bool] = lambda problem: True) -> None:
        """Write the counts that are not written yet and start anew: of all problems, or of those that are meant."""
        with self._lock:
            counts = {key: count for key, count in list(self._open.items()) if is_meant(key[1])}
            self._open = {key: count for key, count in list(self._open.items()) if key not in counts}
            for count in counts.values():
                count.write()


class _Count:
    def __init__(self, answer: Answer, subject: Subject, store: Store) -> None:
        self.answer, self._subject, self._store = answer, subject, store
        self.asked, self._written = 1, 0

    def write(self) -> None:
        if self.asked > self._written:
            new, self._written = self.asked - self._written, self.asked
            self._store.miss(self._subject, new)


def _flush(reference: "weakref.ref[Misses]") -> None:
    misses = reference()
    if misses is not None:
        misses.flush()
