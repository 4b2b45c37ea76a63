"""A program for other processes: a call that is tuned first, and somebody who presses Ctrl-C. Tells what it does."""

import json
import sys

from processes import work

from tunewise.session import context
from tunewise.session.events import Evaluated, Event, Stopping

WAITS_AFTER = int(sys.argv[1])  # evaluations; then it waits for a line
evaluations = 0


def tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def listen(event: Event) -> None:
    global evaluations
    if isinstance(event, Stopping):
        tell(stopping=True)
    if isinstance(event, Evaluated):
        tell(config=dict(event.config))
        evaluations += 1
        if evaluations == WAITS_AFTER:
            sys.stdin.readline()


if __name__ == "__main__":
    try:
        with context.within(context.frame("tune", thorough=True, listener=listen, is_patient=True)):
            answer = work.decide(1)
            tell(answer=dict(answer.config), reason=answer.reason)
            tell(again=dict(work.decide(1).config))
    except KeyboardInterrupt:
        tell(interrupted=True)
