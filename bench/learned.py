"""What learning is worth on measured decisions: our code against the default, one fixed choice and AutoHeuristic.

The decisions lie in `choices/` of the folder that TUNEWISE_DATA names. Each is split by problem, 70 to 30, five times;
a model is trained on the larger part, written as Python code, and the code is judged on the other: chosen time / best
time, geometric mean over problems and splits; 95th percentile per decision. Where the code abstains, the default
answers. The best single choice is found on the training part. AutoHeuristic's figures are those of PyTorch's own
decision-tree trainer on the same files and shares, as published with the data; it is not run here.

A time is the mean of the lower half of its samples. On a busy machine that is noisy too: "known" is what one would lose
who knew the lower quartile of every choice's samples, which is nearer to the truth, and took the least of all choices.
Of a whole space it is also told for the choices that the tree may take and the default that it falls back on, and what
the best of the ranker's first three loses.

Five splits of 40 problems are few: `--only c_gemm --splits 20` tells how far luck goes.

Usage: python bench/learned.py [--only NAME] [--splits N] [--quick] [--json]
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
from tunewise.learn.regret import charged, expected
from tunewise.learn.split import by_problem
from tunewise.learn.training import train
from tunewise.learn.validate import validate
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
TOP_HARD, TOP_MEANT = 1.05, 1.03


def single_on(train_part: DataSet, test_part: DataSet) -> float:
    """Return the log regret, on the test part, of the choice that does best on the training part."""
    return float(charged(test_part)[:, charged(train_part).mean(axis=0).argmin()].mean())


def known_on(data: DataSet, choices: list[int] | slice = slice(None)) -> float:
    """Return the log regret of whoever takes the least lower quartile of some choices, judged like everybody."""
    firsts = expected(data)[:, choices].argmin(axis=1)
    return float(np.take_along_axis(charged(data)[:, choices], firsts[:, None], axis=1).mean())


def judge(train_part: DataSet, test_part: DataSet, portfolio: int | None) -> dict[str, float]:
    """Return how generated code does, in logarithms, and the seconds it took to learn it."""
    options = Training() if portfolio is None else Training(portfolio=portfolio)
    start = time.process_time()
    model = train(train_part, options, "tree")
    seconds = time.process_time() - start
    found = validate(parse_source(python_source(model)), test_part)
    assert found.default_regret is not None
    logs = {"ours": found.regret.geomean, "p95": found.regret.p95, "default": found.default_regret.geomean}
    if portfolio is not None:
        logs["top3"] = validate(train(train_part, Training(), "ranker"), test_part).top[3]
    figures = {key: float(np.log(value)) for key, value in logs.items()}
    if portfolio is not None:
        named = {test_part.configs.index(choice) for choice in model.choices}
        figures["known_few"] = known_on(test_part, sorted(named | {test_part.default}))
    return {**figures, "known": known_on(test_part), "coverage": found.coverage, "cpu_s": seconds}


def figures_of(path: Path, splits: int) -> dict[str, Any]:
    data = read([path])
    name = path.stem
    found = []
    for seed in range(splits):
        train_part, test_part = by_problem(data, 0.3, seed)
        found.append(judge(train_part, test_part, SPACES.get(name)))
        found[-1]["best_single"] = single_on(train_part, test_part)
    means = {key: float(np.mean([split[key] for split in found])) for key in found[0]}
    ratios = {key: float(np.exp(mean)) for key, mean in means.items() if key not in ("coverage", "cpu_s")}
    figures = {"decision": name, "problems": len(data), "configs": len(data.configs), **ratios}
    return {**figures, "autoheuristic": AUTOHEURISTIC.get(name), "coverage": means["coverage"], "cpu_s": means["cpu_s"]}


def geomean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def targets_of(rows: list[dict[str, Any]]) -> dict[str, bool]:
    few = [row for row in rows if row["decision"] not in SPACES]
    return {**(_targets_of_few(few) if few else {}), **_targets_of_spaces([row for row in rows if row not in few])}


def _targets_of_few(few: list[dict[str, Any]]) -> dict[str, bool]:
    peers = [row for row in few if row["autoheuristic"]]
    ours, p95 = geomean([row["ours"] for row in few]), geomean([row["p95"] for row in few])
    return {
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


def _targets_of_spaces(spaces: list[dict[str, Any]]) -> dict[str, bool]:
    targets = {}
    for row in spaces:
        told = f"{row['decision']} {row['ours']:.3f} with a portfolio of {SPACES[row['decision']]}"
        targets[f"{told} <= {SPACE_HARD}"] = row["ours"] <= SPACE_HARD
        targets[f"{told} <= {SPACE_MEANT} (goal)"] = row["ours"] <= SPACE_MEANT
        told = f"{row['decision']} {row['top3']:.3f} with the ranker's first three"
        targets[f"{told} <= {TOP_HARD}"] = row["top3"] <= TOP_HARD
        targets[f"{told} <= {TOP_MEANT} (goal)"] = row["top3"] <= TOP_MEANT
    return targets


def show(rows: list[dict[str, Any]]) -> None:
    print("decision        default   single AutoHeur.    ours     p95   known  cover  cpu s")
    for row in rows:
        peer = f"{row['autoheuristic']:9.3f}" if row["autoheuristic"] else f"{'-':>9}"
        print(
            f"{row['decision']:14} {row['default']:8.3f} {row['best_single']:8.3f} {peer} {row['ours']:7.3f} "
            f"{row['p95']:7.3f} {row['known']:7.3f} {row['coverage']:6.2f} {row['cpu_s']:6.1f}"
        )
        if "known_few" in row:
            few, three = (
                f"{row['known_few']:.3f} among the choices of the tree and the default",
                f"{row['top3']:.3f} by its first three",
            )
            print(f"{'':14} known {few}; the ranker {three}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", help="of one decision")
    parser.add_argument("--splits", type=int, default=5, metavar="N", help="how often to split (5)")
    parser.add_argument("--quick", action="store_true", help="two splits instead of five")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = os.environ.get("TUNEWISE_DATA", "")
    files = sorted((Path(folder) / "choices").glob("*.csv")) if folder else []
    files = [path for path in files if options.only in (None, path.stem)]
    if not files:
        print("no measured decisions: set TUNEWISE_DATA to the folder whose choices/ holds them", file=sys.stderr)
        return
    rows = [figures_of(path, 2 if options.quick else options.splits) for path in files]
    targets = targets_of(rows)
    if options.json:
        print(json.dumps({"decisions": rows, "targets": targets}, indent=2))
        return
    show(rows)
    for target, held in targets.items():
        print(f"target {target}: {'held' if held else 'not held'}")


if __name__ == "__main__":
    main()
