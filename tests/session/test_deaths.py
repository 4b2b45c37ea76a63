"""Several processes and sudden deaths: one tuning run a problem, nothing acknowledged is lost, no process is left."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tunewise as tw
from limits import HANG_S
from tunewise.decision import Timing, canonical
from tunewise.session import context

PROGRAM = Path(__file__).with_name("processes.py")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    place = tmp_path / "evaluations"
    place.touch()
    return place


def start(log: Path, problem: int = 1) -> "subprocess.Popen[str]":
    environ = {**os.environ, "EVALUATION_LOG": str(log)}
    command = [sys.executable, str(PROGRAM), str(problem)]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: "subprocess.Popen[str]") -> dict[str, Any]:
    out, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, err
    answer: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return answer


def entries(log: Path, key: str) -> list[dict[str, Any]]:
    return [entry for entry in map(json.loads, log.read_text().splitlines()) if key in entry]


def kill_after(process: "subprocess.Popen[str]", acknowledged: int) -> None:
    assert process.stdout is not None
    for _ in range(acknowledged):
        if not process.stdout.readline():
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()


def remembered() -> Counter[str]:
    """Count the first measurements of every config in the store: trials that a strategy, not the race, asked for."""
    tw.configure()
    store = context.current_store()
    counts: Counter[str] = Counter()
    for subject in store.subjects("killed"):
        for trial in store.trials(subject):
            if trial.source not in ("race", "check", "final"):
                counts[f"{subject.problem}/{canonical.encode(dict(trial.config))}"] += 1
                assert isinstance(trial.outcome, Timing)
    return counts


def killed_and_resumed(log: Path, problem: int, points: list[int]) -> None:
    for point in points:
        kill_after(start(log, problem), point)
    assert finish(start(log, problem))["rung"] == "memory"


def check_nothing_lost(log: Path, deaths: int) -> None:
    counts = remembered()
    acknowledged = {canonical.encode(entry["config"]) for entry in entries(log, "config")}
    kept = {key.split("/", 1)[1] for key in counts}
    assert acknowledged <= kept
    assert sum(count - 1 for count in counts.values()) <= deaths


def test_a_run_killed_at_random_points_loses_nothing_and_resumes(log: Path) -> None:
    rng = random.Random(5)
    killed_and_resumed(log, 1, [rng.randrange(1, 8) for _ in range(5)])
    check_nothing_lost(log, 5)


@pytest.mark.parametrize("seed", range(4))
def test_twenty_kills_lose_nothing(log: Path, seed: int) -> None:
    rng = random.Random(seed)
    points = [rng.randrange(1, 10) for _ in range(5)]
    killed_and_resumed(log, seed, points)
    check_nothing_lost(log, len(points))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(40))
def test_two_hundred_kills_lose_nothing(log: Path, seed: int) -> None:
    rng = random.Random(100 + seed)
    points = [rng.randrange(1, 10) for _ in range(5)]
    killed_and_resumed(log, seed, points)
    check_nothing_lost(log, len(points))


def herd(log: Path, size: int) -> None:
    answers = [finish(process) for process in [start(log) for _ in range(size)]]
    assert len(entries(log, "run")) == 1
    assert max(remembered().values()) == 1
    assert len({canonical.encode(answer) for answer in answers}) == 1


def test_sixteen_processes_tune_one_problem_once(log: Path) -> None:
    herd(log, 16)


@pytest.mark.full
def test_sixty_four_processes_tune_one_problem_once(log: Path) -> None:
    herd(log, 64)


def test_when_the_holder_is_killed_another_takes_over(log: Path) -> None:
    holder = start(log)
    assert holder.stdout is not None
    holder.stdout.readline()
    waiting = [start(log) for _ in range(4)]
    holder.kill()
    holder.communicate()
    answers = [finish(process) for process in waiting]
    assert len(entries(log, "run")) == 1
    assert len({canonical.encode(answer) for answer in answers}) == 1
