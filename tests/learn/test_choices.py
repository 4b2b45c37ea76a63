"""On measured decisions the learned tree beats the default, the best single choice and AutoHeuristic's own trainer."""

import os
from pathlib import Path

import numpy as np
import pytest

from tunewise.formats.datasets import read
from tunewise.learn.options import Training
from tunewise.learn.regret import charged
from tunewise.learn.split import by_problem
from tunewise.learn.training import train
from tunewise.learn.validate import Validation, validate

FOLDER = Path(os.environ.get("TUNEWISE_DATA", "")) / "choices"
AUTOHEURISTIC = {
    "py_conv1d": 1.080,
    "py_isin": 3.287,
    "py_sort": 1.262,
    "py_cdist": 1.345,
    "py_sparse": 1.129,
    "port_gemm": 1.341,
    "port_softmax": 5.693,
}

pytestmark = pytest.mark.skipif(
    "TUNEWISE_DATA" not in os.environ, reason="TUNEWISE_DATA does not name the folder of measured decisions"
)


def judged(name: str, seed: int) -> tuple[Validation, float]:
    """Return how a tree does on held-out problems, and the log regret there of the best choice of the others."""
    known, held = by_problem(read([FOLDER / f"{name}.csv"]), 0.3, seed)
    single = charged(known).mean(axis=0).argmin()
    return validate(train(known, Training(), "tree"), held), float(charged(held)[:, single].mean())


@pytest.mark.parametrize("name", ["port_softmax", "py_cdist"])
def test_a_tree_beats_all_that_is_usual(name: str) -> None:
    found, single = judged(name, seed=0)
    assert found.default_regret is not None
    usual = (AUTOHEURISTIC[name], float(np.exp(single)), found.default_regret.geomean)
    assert found.regret.geomean < min(usual)
    assert found.coverage >= 0.5


@pytest.mark.full
def test_trees_keep_the_promised_regret_over_all_decisions() -> None:
    ours, tails = [], []
    for name, peer in AUTOHEURISTIC.items():
        splits = [judged(name, seed) for seed in range(5)]
        regret = np.mean([np.log(found.regret.geomean) for found, _ in splits])
        default = np.mean([np.log(found.default_regret.geomean) for found, _ in splits if found.default_regret])
        assert regret < min(np.log(peer), np.mean([single for _, single in splits]), default), name
        assert default < np.log(1.15) or np.mean([found.coverage for found, _ in splits]) >= 0.5, name
        ours.append(regret)
        tails.append(np.mean([np.log(found.regret.p95) for found, _ in splits]))
    assert np.exp(np.mean(ours)) <= 1.07
    assert np.exp(np.mean(tails)) <= 1.45
