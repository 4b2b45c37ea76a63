import os
import random
import re
from pathlib import Path

import pytest
from faults import FAULTS, HEALTHY, LyingBench, noted, work

from tunewise.decision import Failure, Outcome, Timing
from tunewise.measure import procfs
from tunewise.measure.isolated import Isolated


def mismatch(name: str, outcome: Outcome) -> str | None:
    fault = FAULTS[name]
    if fault.kind is None:
        return None if isinstance(outcome, Timing) else f"{name}: {outcome}"
    if not isinstance(outcome, Failure) or outcome.kind not in (fault.kind, fault.also):
        return f"{name}: {outcome}"
    return None if re.search(fault.detail, outcome.detail) else f"{name}: {outcome}"


def run_round(scratch: Path, seed: int) -> list[str]:
    """Run all faults in a shuffled order with a healthy config after each, and return all that went wrong."""
    wrong = []
    order = random.Random(seed).sample(sorted(FAULTS), len(FAULTS))
    with Isolated(work(scratch), LyingBench) as isolated:
        isolated.first(HEALTHY)
        for name in order:
            wrong.append(mismatch(name, isolated.first({"fault": name})))
            healthy = isolated.first(HEALTHY)
            wrong.append(None if isinstance(healthy, Timing) else f"after {name}: {healthy}")
            alive = [pid for pid in noted(scratch) if procfs.is_alive(pid)]
            wrong.append(f"after {name}: {alive} live on" if alive else None)
    left = procfs.descendants(os.getpid())
    wrong.append(f"{left} live on" if left else None)
    wrong.append("unpickled" if (scratch / "unpickled").exists() else None)
    return [text for text in wrong if text]


def test_tuner_survives_a_round_of_all_faults(tmp_path: Path) -> None:
    assert run_round(tmp_path, seed=0) == []


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 21))
def test_tuner_survives_twenty_rounds_of_all_faults(tmp_path: Path, seed: int) -> None:
    assert run_round(tmp_path, seed) == []
