"""A decision to try things on: two step counts, and a record of every config that ran."""

import time
from collections import Counter
from typing import Any

import tunewise as tw

IN_PROCESS = tw.Policy(isolation="none", min_sample_s=1e-5)


def burn(steps: int) -> None:
    end = time.process_time() + steps * 2e-5
    while time.process_time() < end:
        pass


class Loop:
    """A decision over two step counts, with a record of every config that ran."""

    def __init__(self, name: str = "loop", **facts: Any) -> None:
        self.calls: Counter[int] = Counter()
        facts = {"features": lambda n: {"n": n}, "inputs": lambda problem, seed: (problem["n"],), **facts}
        self.decision = tw.Decision(
            name, space=tw.Space({"steps": [1, 4]}), default={"steps": 4}, policy=IN_PROCESS, **facts
        )

        @self.decision.implementation
        def loop(n: int, *, steps: int) -> int:
            self.calls[steps] += 1
            burn(steps)
            return n

        self.loop = loop

    @property
    def rung(self) -> str:
        return self.decision.decide({"n": 8}).rung
