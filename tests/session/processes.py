"""A tuning program for other processes: prints every acknowledged evaluation, so that a test can kill it anywhere."""

import json
import os
import sys
import time
from pathlib import Path

import tunewise as tw
from tunewise.session.events import Concluded, Evaluated, Event

LOG = Path(os.environ["EVALUATION_LOG"])

decision = tw.Decision(
    "killed",
    space=tw.Space({"a": list(range(6)), "b": list(range(6))}),
    default={"a": 0, "b": 0},
    features=lambda n: {"n": n},
    inputs=lambda problem, seed: (problem["n"],),
    policy=tw.Policy(min_sample_s=1e-5),
    check=tw.NO_CHECK,
)


@decision.implementation
def work(n: int, *, a: int, b: int) -> None:
    end = time.process_time() + 2e-4 * (1 + abs(a - 3) + abs(b - 4))
    while time.process_time() < end:
        pass


def note(text: str) -> None:
    with LOG.open("a") as file:  # one short write: whole or not at all
        file.write(text + "\n")


def listen(event: Event) -> None:
    if isinstance(event, Evaluated):
        note(json.dumps({"pid": os.getpid(), "config": dict(event.config)}))
        print("acknowledged", flush=True)
    if isinstance(event, Concluded):
        note(json.dumps({"pid": os.getpid(), "run": event.verdict.run}))


if __name__ == "__main__":
    answer = work.tune(int(sys.argv[1]), budget=36, listener=listen).answer
    print(json.dumps({"rung": answer.rung, "config": dict(answer.config)}), flush=True)
