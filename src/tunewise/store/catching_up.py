"""Writing later what a store could not take: a thread that tries now and then, as long as something waits."""

import threading
import time
import weakref
from typing import Protocol

_SHORTEST_PAUSE_S = 1.0


class Late(Protocol):
    """Something that waits to be written."""

    def catch_up(self) -> float | None:
        """Try to write what waits; return in how many seconds to try again, or None if nothing waits any more."""


def keep_trying(late: Late) -> None:
    """Call `late.catch_up()` beside the program until nothing waits, as long as it lives."""
    threading.Thread(target=_try, args=(weakref.ref(late),), name="tunewise-catch-up", daemon=True).start()


def _try(reference: "weakref.ref[Late]") -> None:
    pause_s: float | None = 0.0
    while pause_s is not None:
        time.sleep(max(pause_s, _SHORTEST_PAUSE_S))
        late = reference()
        if late is None:
            return
        pause_s = late.catch_up()
        del late  # nobody is kept alive over the pause
