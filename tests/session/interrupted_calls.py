"""A program for other processes: ordinary calls of two decisions, with a signal every few milliseconds that raises."""

import json
import random
import signal
import sys
import threading
from types import FrameType

import tunewise as tw

CALLS, SEED = int(sys.argv[1]), int(sys.argv[2])


class Interrupted(Exception):
    """What a notebook's interrupt or a time-out raises in the middle of a call."""


def make(name: str) -> tw.Decision:
    return tw.Decision(name, space=tw.Space({"tile": [1, 2, 4]}), default={"tile": 1})


def interrupt(number: int, stack: FrameType | None) -> None:
    global is_inside
    if is_inside:
        is_inside = False
        asked_in_handler.append(in_handler.decide({"n": rng.randrange(CALLS)}).rung)
        raise Interrupted


rng, is_inside, interrupts = random.Random(SEED), False, 0
asked, in_handler, asked_in_handler = make("asked"), make("in-handler"), list[str]()
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.003)
for call in range(CALLS):
    try:
        is_inside = True
        asked.decide({"n": rng.randrange(CALLS)})
        if call % 50 == 0:
            asked.explain({"n": call})
            asked.forget()
        is_inside = False
    except Interrupted:
        is_inside = False
        interrupts += 1
signal.setitimer(signal.ITIMER_REAL, 0)
print(json.dumps({"interrupts": interrupts, "in_handler": len(asked_in_handler), "threads": threading.active_count()}))
