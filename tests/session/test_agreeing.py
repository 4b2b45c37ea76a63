"""What a process answered before it was one of a group is not kept in the group."""

from pathlib import Path
from typing import Any

import pytest

import tunewise as tw
from tunewise.decision import Verdict
from tunewise.session import context

distributed: Any = pytest.importorskip("torch.distributed", reason="PyTorch is not installed")


def remember(decision: tw.Decision, way: int) -> None:
    won = Verdict("win", {"way": 0}, {"way": way}, (2e-6,) * 10, (1e-6,) * 10, 2.0, 0.001, run=f"run of way {way}")
    context.current_store().conclude(decision.subject(decision.problem({"n": 1})), won)


def test_answers_from_before_a_group_are_dropped_at_the_next_look_up_of_any(home: Path, tmp_path: Path) -> None:
    decision = tw.Decision("grouped", space=tw.Space({"way": [0, 1, 2]}), default={"way": 0})
    remember(decision, 1)

    def asked() -> list[int]:
        with tw.mode("use"):
            inside = decision.decide({"n": 1}).config["way"]
        return [inside, decision.decide({"n": 1}).config["way"]]

    assert asked() == [1, 1]
    remember(decision, 2)
    assert asked() == [1, 1]  # at hand
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        assert asked() == [2, 2]
    finally:
        distributed.destroy_process_group()
