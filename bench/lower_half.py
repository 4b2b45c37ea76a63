"""Whether the middle one of an odd number of samples belongs to their lower half: who picks better without seeing all.

The measurements lie in `choices/` of the folder that TUNEWISE_DATA names, those with an odd number of samples a row.
Three or five samples of every config, drawn at random, pick the fastest config of each problem by the mean of their
lower half, once with the middle sample and once without. The pick is judged by the samples that were not drawn: their
lower half over that of the best config by all samples, geometric mean over problems and draws.

Usage: python bench/lower_half.py [--quick] [--json]
"""

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np

from tunewise.decision import half_of
from tunewise.formats.dataset import DataSet, Floats
from tunewise.formats.datasets import read

DRAWN = (3, 5)


def samples_of(data: DataSet) -> Floats | None:
    """Return the samples by problem, config and lap; None unless each pair has the same odd number of them."""
    counts = np.unique(np.diff(data.rows.starts))
    if len(counts) != 1 or counts[0] % 2 == 0 or counts[0] <= max(DRAWN):
        return None
    samples = np.full((len(data), len(data.configs), int(counts[0])), np.inf)
    samples[data.rows.problem, data.rows.config] = data.rows.samples_s.reshape(-1, int(counts[0]))
    return samples


def lower(samples: Floats, count: int) -> Floats:
    """Return the mean of the `count` fastest samples."""
    found: Floats = np.sort(samples, axis=2)[:, :, :count].mean(axis=2)
    return found


def lost(samples: Floats, drawn: int, repeats: int) -> dict[str, float]:
    """Return the regrets of both readings, from so many samples."""
    rng, logs = np.random.default_rng(0), {"with": [], "without": []}
    best = lower(samples, half_of(samples.shape[2])).min(axis=1)
    for _ in range(repeats):
        order = rng.permutation(samples.shape[2])
        seen, unseen = samples[:, :, order[:drawn]], samples[:, :, order[drawn:]]
        judged = np.log(lower(unseen, half_of(unseen.shape[2])) / best[:, None])
        for way, count in (("with", (drawn + 1) // 2), ("without", drawn // 2)):
            picks = lower(seen, count).argmin(axis=1)
            logs[way].append(float(np.take_along_axis(judged, picks[:, None], axis=1).mean()))
    return {way: float(np.exp(np.mean(found))) for way, found in logs.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10 draws instead of 100")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    files = sorted((Path(os.environ.get("TUNEWISE_DATA", "")) / "choices").glob("*.csv"))
    odd = {path.stem: found for path in files if (found := samples_of(read([path]))) is not None}
    if not odd:
        print("no samples in odd numbers: set TUNEWISE_DATA to the folder whose choices/ holds them", file=sys.stderr)
        return
    rows = {
        f"{name}, {drawn} samples": lost(samples, drawn, 10 if options.quick else 100)
        for name, samples in odd.items()
        for drawn in DRAWN
    }
    targets = {"no worse without the middle sample": all(row["without"] <= row["with"] for row in rows.values())}
    if options.json:
        print(json.dumps({"regret": rows, "targets": targets}))
        return
    for name, row in rows.items():
        print(f"{name:20} regret with the middle sample {row['with']:.3f}, without it {row['without']:.3f}")
    for target, is_held in targets.items():
        print(f"target {target}: {'held' if is_held else 'not held'}")


if __name__ == "__main__":
    main()
