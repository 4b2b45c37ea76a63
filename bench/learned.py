"""What learning is worth on measured decisions: our code against the default, one fixed choice and AutoHeuristic.

The decisions lie in `choices/` of the folder that TUNEWISE_DATA names. Each is split by problem, 70 to 30, five times;
a model is trained on the larger part, written as Python code, and the code is judged on the other: chosen time / best
time, geometric mean over problems and splits; 95th percentile per decision. Where the code abstains, the default
answers. The best single choice is found on the training part. AutoHeuristic's figures are those of PyTorch's own
decision-tree trainer on the same files and shares, as published with the data; it is not run here.

Usage: python bench/learned.py [--quick] [--json]
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from tunewise.codegen import python_source
from tunewise.formats.dataset import DataSet
from tunewise.formats.datasets import read
from tunewise.learn.options import Training
from tunewise.learn.regret import charged
from tunewise.learn.split import by_problem
from tunewise.learn.training import train
from tunewise.learn.validate import Validation, validate
from tunewise.models.source import parse_source

AUTOHEURISTIC = {
    "py_conv1d": 1.080,
    "py_isin": 3.287,
    "py_sort": 1.262,
    "py_cdist": 1.345,
    "py_sparse": 1.129,
    "port_gemm": 1.341,
    "port_softmax": 5.693,
}
SPACES = {"c_gemm": 6}  # whole spaces, and how many of their configs a tree may know
HARD, MEANT = 1.07, 1.05
HARD_P95, MEANT_P95 = 1.45, 1.35
SPACE_HARD, SPACE_MEANT = 1.15, 1.12


def single_on(train_part: DataSet, test_part: DataSet) -> float:
    """Return the log regret, on the test part, of the choice that does best on the training part."""
    return float(charged(test_part)[:, charged(train_part).mean(axis=0).argmin()].mean())


def judge(train_part: DataSet, test_part: DataSet, portfolio: int | None) -> tuple[Validation, float]:
    """Return how generated code does, and the seconds it took to learn it."""
    options = Training() if portfolio is None else Training(portfolio=portfolio)
    start = time.process_time()
    model = train(train_part, options, "tree")
    seconds = time.process_time() - start
    return validate(parse_source(python_source(model)), test_part), seconds


def figures_of(path: Path, splits: int) -> dict[str, Any]:
    data = read([path])
    name = path.stem
    found: dict[str, list[float]] = {key: [] for key in ("ours", "p95", "default", "best_single", "coverage", "cpu_s")}
    for seed in range(splits):
        train_part, test_part = by_problem(data, 0.3, seed)
        result, seconds = judge(train_part, test_part, SPACES.get(name))
        assert result.default_regret is not None
        found["ours"].append(np.log(result.regret.geomean))
        found["p95"].append(np.log(result.regret.p95))
        found["default"].append(np.log(result.default_regret.geomean))
        found["best_single"].append(single_on(train_part, test_part))
        found["coverage"].append(result.coverage)
        found["cpu_s"].append(seconds)
    means = {key: float(np.mean(values)) for key, values in found.items()}
    ratios = {key: float(np.exp(means[key])) for key in ("ours", "p95", "default", "best_single")}
    figures = {"decision": name, "problems": len(data), "configs": len(data.configs), **ratios}
    return {**figures, "autoheuristic": AUTOHEURISTIC.get(name), "coverage": means["coverage"], "cpu_s": means["cpu_s"]}


def geomean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def targets_of(rows: list[dict[str, Any]]) -> dict[str, bool]:
    few = [row for row in rows if row["decision"] not in SPACES]
    peers = [row for row in few if row["autoheuristic"]]
    ours, p95 = geomean([row["ours"] for row in few]), geomean([row["p95"] for row in few])
    targets = {
        "below AutoHeuristic everywhere": all(row["ours"] < row["autoheuristic"] for row in peers),
        "below the best single choice everywhere": all(row["ours"] < row["best_single"] for row in few),
        "nowhere above the default": all(row["ours"] <= row["default"] for row in few),
        "coverage >= 0.5 where the default's regret exceeds 1.15": all(
            row["coverage"] >= 0.5 for row in few if row["default"] > 1.15
        ),
        f"geometric mean {ours:.3f} <= {HARD}": ours <= HARD,
        f"geometric mean {ours:.3f} <= {MEANT} (goal)": ours <= MEANT,
        f"p95 {p95:.3f} <= {HARD_P95}": p95 <= HARD_P95,
        f"p95 {p95:.3f} <= {MEANT_P95} (goal)": p95 <= MEANT_P95,
    }
    for row in rows:
        if row["decision"] in SPACES:
            told = f"{row['decision']} {row['ours']:.3f} with a portfolio of {SPACES[row['decision']]}"
            targets[f"{told} <= {SPACE_HARD}"] = row["ours"] <= SPACE_HARD
            targets[f"{told} <= {SPACE_MEANT} (goal)"] = row["ours"] <= SPACE_MEANT
    return targets


def show(rows: list[dict[str, Any]]) -> None:
    print("decision        default   single AutoHeur.    ours     p95  cover  cpu s")
    for row in rows:
        peer = f"{row['autoheuristic']:9.3f}" if row["autoheuristic"] else f"{'-':>9}"
        print(
            f"{row['decision']:14} {row['default']:8.3f} {row['best_single']:8.3f} {peer} {row['ours']:7.3f} "
            f"{row['p95']:7.3f} {row['coverage']:6.2f} {row['cpu_s']:6.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two splits instead of five")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = os.environ.get("TUNEWISE_DATA", "")
    files = sorted((Path(folder) / "choices").glob("*.csv")) if folder else []
    if not files:
        print("no measured decisions: set TUNEWISE_DATA to the folder whose choices/ holds them", file=sys.stderr)
        return
    rows = [figures_of(path, 2 if options.quick else 5) for path in files]
    targets = targets_of(rows)
    if options.json:
        print(json.dumps({"decisions": rows, "targets": targets}, indent=2))
        return
    show(rows)
    for target, held in targets.items():
        print(f"target {target}: {'held' if held else 'not held'}")


if __name__ == "__main__":
    main()
