"""Ranks of a job launch an autotuned kernel with the same config, whatever each of them finds the fastest."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

PROGRAM = Path(__file__).with_name("triton_ranks.py")


def run(place: Path, scene: str, size: int = 3) -> list[Any]:
    """Return what each rank of a job saw."""
    env = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "TMPDIR": str(place)}
    command = [sys.executable, "-W", "ignore", str(PROGRAM), str(place), str(size), scene]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads((place / f"{rank}.json").read_text()) for rank in range(size)]


def test_ranks_launch_one_config_in_every_mode_that_times_some(tmp_path: Path) -> None:
    seen = run(tmp_path, "every_mode")
    assert len({tuple(launched for launched, *_ in rank) for rank in seen}) == 1
    for rank in seen:
        for launched, _, again, timed_again, answer in rank:
            assert (again, timed_again, answer) == (launched, 0, launched)
    assert all(any(rank[place][1] for rank in seen) for place in range(3))  # somebody timed


def test_a_rank_that_comes_late_times_nothing(tmp_path: Path) -> None:
    first, second, late = run(tmp_path, "one_is_late")
    assert late == [first[0], 0]
    assert second[0] == first[0]


def test_a_rank_where_nothing_runs_publishes_nothing(tmp_path: Path) -> None:
    seen = run(tmp_path, "one_cannot_run_anything")
    assert len({launched for launched, _ in seen}) == 1
    assert sum(timed for _, timed in seen) > 0


def test_a_rank_that_has_only_the_default_left_launches_what_stands(tmp_path: Path) -> None:
    first, *others = run(tmp_path, "one_has_only_the_default_left")
    assert others == [first] * 2
    assert first != ["16 1 2"]


@pytest.mark.parametrize("scene", ["old_triton", "broken_features"])
def test_ranks_launch_the_default_where_nobody_would_hear_the_winner(tmp_path: Path, scene: str) -> None:
    assert run(tmp_path, scene) == [["16 1 2", 0]] * 3


def test_ranks_whose_versions_list_other_configs_launch_the_default(tmp_path: Path) -> None:
    assert run(tmp_path, "other_menu") == [["16 1 2"]] * 3
