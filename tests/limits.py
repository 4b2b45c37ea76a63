"""How long tests wait. No test asserts a speed: a limit ends what hangs, and must not end what is only slow."""

import time

HANG_S = 1_800.0  # for what is bound to happen: on no machine, however busy, does it take longer unless it hangs
_SPIN_S = 0.02


def stretched(seconds: float) -> float:
    """Return a limit that one test waits out and another must keep, as long as it takes on a machine this busy now."""
    start, spun = time.perf_counter(), time.process_time()
    while (cpu := time.process_time() - spun) < _SPIN_S:
        pass
    return seconds * max(1.0, (time.perf_counter() - start) / cpu)
