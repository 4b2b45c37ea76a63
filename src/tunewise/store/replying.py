"""Connections whose server has to reply in time: one that hangs must not take the program with it."""

import functools
import time
from collections.abc import Callable, Generator
from math import inf
from typing import Any, TypeVar

from tunewise.errors import UnreachableStore

_T = TypeVar("_T")
REPLY_S = 60.0  # longer than any wait for a lock
_LOOK_S = 0.05  # between two looks at whether there is something to read


@functools.cache
def replying(connection: Any, place: str) -> Any:
    """Return a kind of psycopg's Connection whose statements raise UnreachableStore where no reply comes in `limit_s`.

    Such a connection is closed at once: nobody knows what the server is at.
    """

    def wait(db: Any, steps: Any, *args: Any, **named: Any) -> Any:
        named = named if args else {"interval": _LOOK_S, **named}
        return connection.wait(db, _until(time.monotonic() + db.limit_s, steps, db, place), *args, **named)

    return type("Replying", (connection,), {"wait": wait, "limit_s": REPLY_S, "is_silent": False})


def unhurried(work: Callable[[Any], _T]) -> Callable[[Any], _T]:
    """Return work that may take as long as it takes: somebody wants it done, however much there is."""

    def do(db: Any) -> _T:
        usual_s, db.limit_s = db.limit_s, inf
        try:
            return work(db)
        finally:
            db.limit_s = usual_s

    return do


def _until(deadline: float, steps: Any, db: Any, place: str) -> Generator[Any, Any, Any]:
    """Pass on the steps of a statement; psycopg resumes them now and then while there is nothing to read."""
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            db.is_silent = not ready
            if not ready and time.monotonic() > deadline:
                db.pgconn.finish()
                raise UnreachableStore(f"the store {place} does not reply; see what the server is busy with")
            wanted = steps.send(ready)
    except StopIteration as end:
        return end.value
    finally:
        db.is_silent = False
