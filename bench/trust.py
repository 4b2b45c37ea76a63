"""How far seeds are trusted: what a good first seed saves, and what a heuristic of the worst configs costs.

Usage: python bench/trust.py [--quick] [--json] [--runs N]

The recorded spaces lie in `spaces/` of the folder that TUNEWISE_DATA names. A good first seed is drawn from the configs
within 10 % of the optimum; told is how many evaluations it then takes to come within 5 %. The bad heuristics propose
the slowest config, the nine slowest, or nine that fail; told is the curve with them over the curve without, with the
same random seeds.
"""

import argparse
import json
import os
import random
import sys
from collections.abc import Callable, Sequence
from math import exp, isfinite, log
from pathlib import Path
from statistics import fmean, median
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from tunewise.decision import Config  # noqa: E402
from tunewise.formats.recorded import Recording, read  # noqa: E402
from tunewise.session.replaying import replay  # noqa: E402

SPACES = ("convolution-A100", "convolution-MI250X", "gemm-RTX2080Ti", "gemm-RTX3090", "pnpoly-RTX3090")
NEAR, WITHIN, EVALUATIONS = 1.10, 1.05, 5
MARKS, COSTS_AT_MOST = (25, 30, 40, 50, 75, 100), 1.02
MOST = 9  # seeds of one heuristic

Seeds = Callable[[Recording, random.Random], Sequence[Config]]


def good(recording: Recording, rng: random.Random) -> list[Config]:
    limit_s = NEAR * recording.optimum_s
    timed = zip(recording.trials, recording.times_s, strict=True)
    return [rng.choice([trial.config for trial, time_s in timed if time_s is not None and time_s <= limit_s])]


def slowest(recording: Recording, rng: random.Random) -> list[Config]:
    timed = [(time_s, at) for at, time_s in enumerate(recording.times_s) if time_s is not None]
    return [recording.trials[at].config for _, at in sorted(timed, reverse=True)[:MOST]]


def the_slowest(recording: Recording, rng: random.Random) -> list[Config]:
    return slowest(recording, rng)[:1]


def failing(recording: Recording, rng: random.Random) -> list[Config]:
    failed = [t.config for t, time_s in zip(recording.trials, recording.times_s, strict=True) if time_s is None]
    return rng.sample(failed, min(MOST, len(failed)))


BAD: dict[str, Seeds] = {"the slowest": the_slowest, "nine slowest": slowest, "nine that fail": failing}


def needed(recording: Recording, runs: int, seeds: Seeds | None) -> list[float]:
    """Return the evaluations to within 5 %, a number a run."""
    found = []
    for run in range(runs):
        first = seeds(recording, random.Random(run)) if seeds is not None else ()
        found.append(replay(recording, "auto", budget=MARKS[-1], seed=run, seeds=first).needed(WITHIN))
    return found


def cost(recording: Recording, runs: int, seeds: Seeds) -> list[list[float]]:
    """Return the logarithm of with / without at every mark, a row a run; no rows where there are no such configs."""
    rows = []
    for run in range(runs):
        first = seeds(recording, random.Random(run))
        if not first:
            return []
        ours = replay(recording, "auto", budget=MARKS[-1], seed=run, seeds=first)
        none = replay(recording, "auto", budget=MARKS[-1], seed=run)
        rows.append([log(ours.after(mark) / none.after(mark)) for mark in MARKS])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two spaces, 3 runs each")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int)
    options = parser.parse_args()
    runs = options.runs or (3 if options.quick else 20)
    folder = Path(os.environ.get("TUNEWISE_DATA", "")) / "spaces"
    names = SPACES[::4] if options.quick else SPACES
    files = [file for name in names if (file := folder / f"{name}.json.gz").is_file()]
    if not files:
        print("no recorded spaces: set TUNEWISE_DATA to the folder whose spaces/ holds them", file=sys.stderr)
        return
    recordings = [read(file)[0] for file in files]
    seeded = [n for recording in recordings for n in needed(recording, runs, good)]
    alone = [n for recording in recordings for n in needed(recording, runs, None)]
    costs = {name: [row for recording in recordings for row in cost(recording, runs, bad)] for name, bad in BAD.items()}
    curves = {name: [exp(fmean(column)) for column in zip(*rows, strict=True)] for name, rows in costs.items()}
    result: dict[str, Any] = {
        "runs": runs,
        "median_evaluations": {"good first seed": median(seeded), "none": median(alone)},
        "with_over_without": {name: dict(zip(MARKS, curve, strict=True)) for name, curve in curves.items()},
    }
    targets = targets_of(result)
    if options.json:
        reached = {name: n if isfinite(n) else None for name, n in result["median_evaluations"].items()}
        print(json.dumps({**result, "median_evaluations": reached, "targets": targets}))
        return
    print(text(result))
    for target, is_held in targets.items():
        print(f"target {target}: {'held' if is_held else 'not held'}")


def targets_of(result: dict[str, Any]) -> dict[str, bool]:
    count, curves = result["median_evaluations"]["good first seed"], result["with_over_without"]
    worst = max((value for curve in curves.values() for value in curve.values()), default=0.0)
    return {
        f"{count:g} evaluations with a good first seed, at most {EVALUATIONS}": count <= EVALUATIONS,
        f"the worst heuristic costs {worst:.3f}x from {MARKS[0]} on, at most {COSTS_AT_MOST}": worst <= COSTS_AT_MOST,
    }


def text(result: dict[str, Any]) -> str:
    medians, curves = result["median_evaluations"], result["with_over_without"]
    lines = [f"median evaluations to within 5 %: {medians['good first seed']:g} with a good first seed,"]
    lines[0] += f" {medians['none']:g} without"
    lines += ["", "with a heuristic of the worst / without"]
    lines += [f"{'':<16}" + "".join(f"{f'@{mark}':>8}" for mark in MARKS)]
    lines += [f"{name:<16}" + "".join(f"{value:8.3f}" for value in curve.values()) for name, curve in curves.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
