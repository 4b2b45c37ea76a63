"""A program for other processes that tunes in the background; the test kills or interrupts it there."""

import os
import sys
import time
from pathlib import Path

import tunewise as tw
from tunewise.session import background

PLACE = Path(os.environ["BACKGROUND_PLACE"])  # whoever measures writes its process id here

decision = tw.Decision(
    "beside",
    space=tw.Space({"steps": [1, 2, 3, 4]}),
    default={"steps": 4},
    features=lambda n: {"n": n},
    policy=tw.Policy(clock="wall"),
    check=tw.NO_CHECK,
)


@decision.implementation
def work(n: int, *, steps: int) -> int:
    (PLACE / str(os.getpid())).touch()
    time.sleep(n * 1e-3)
    return n


if __name__ == "__main__":
    with tw.mode("tune", background=True):
        work(int(sys.argv[1]))
        print("called", flush=True)
        try:
            background.wait()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            background.wait()
        print(work.decide(int(sys.argv[1])).rung, flush=True)
