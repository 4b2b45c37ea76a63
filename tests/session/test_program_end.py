"""What is counted reaches the store when a process ends, whatever kind of process it is and whatever it used last."""

import json
import multiprocessing
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tunewise as tw
from tunewise.session import context

PROGRAM = """
import sys
import tunewise as tw
first, second = sys.argv[1:]
decision = tw.Decision("asked", space=tw.Space({"tile": [1, 2]}), default={"tile": 1})
tw.configure(home=first)
decision.decide({"n": 1})
tw.configure(home=second)
for _ in range(7):
    decision.decide({"n": 2})
"""


kept: list[tw.Decision] = []


def make() -> tw.Decision:
    return tw.Decision("asked", space=tw.Space({"tile": [1, 2]}), default={"tile": 1})


def _ask(n: int) -> None:
    kept.append(make())  # counts of a decision that is gone are gone with it
    for _ in range(3):
        kept[0].decide({"n": n})


@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_children_of_multiprocessing_count_their_misses(home: Path, kind: str) -> None:
    make().decide({"n": 0})
    children = [multiprocessing.get_context(kind).Process(target=_ask, args=(n,)) for n in (1, 2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    counts = {miss.problem["n"]: miss.count for miss in context.current_store().misses("asked")}
    assert counts == {0: 1, 1: 3, 2: 3}


def test_counts_reach_the_store_that_was_configured_last(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM, tmp_path / "a", tmp_path / "b"], check=True)
    tw.configure(home=tmp_path / "b")
    assert [miss.count for miss in context.current_store().misses()] == [7]


def test_a_busy_program_gets_what_is_remembered(home: Path) -> None:
    work = tw.Decision(
        "busy", space=tw.Space({"tile": [1, 2]}), default={"tile": 1}, features=lambda n: {"n": n}, check=tw.NO_CHECK
    ).implementation(lambda n, *, tile: sum(range(2000 * tile)))
    for n in range(5):
        work.tune(n)
    work.decision.forget()
    is_over = threading.Event()

    def compute() -> None:
        while not is_over.is_set():
            json.dumps(list(range(200)))

    threads = [threading.Thread(target=compute) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        assert {work.decision.decide({"n": n}).rung for n in range(5)} == {"memory"}
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
