"""What memory is worth: `auto` told first what other devices measured, rightly or wrongly, beside itself untold.

Usage: python bench/priors.py [--quick] [--json] [--seeds N] [--budget N] [--jobs N]

The recorded spaces lie in `spaces/` of the folder that TUNEWISE_DATA names. For each recording of a kernel that was
recorded on several devices, the donors are all other recordings of that kernel. They are told as they are (related);
with their times reversed, so that the best config looks like the worst; and with another kernel's times dealt out to
our configs by chance (random).
"""

import argparse
import json
import multiprocessing
import os
import random
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import lru_cache
from math import exp, log
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from tunewise.decision import Timing, Trial  # noqa: E402
from tunewise.formats.recorded import Recording, read  # noqa: E402
from tunewise.session.replaying import Replayed, replay  # noqa: E402
from tunewise.session.scores import geomean, marks  # noqa: E402

REFERENCE = {10: 1.112, 25: 1.075, 50: 1.069, 100: 1.061}  # a plain Gaussian process with the donors' mean
HARMLESS = 1.02  # a wrong prior may cost this factor, from 25 evaluations on


@lru_cache
def recorded(file: Path) -> Recording:
    (recording,) = read(file)
    return recording


def none(own: Recording, files: Sequence[Path], seed: int) -> list[Recording]:
    return []


def related(own: Recording, files: Sequence[Path], seed: int) -> list[Recording]:
    """Return the other recordings of the same kernel."""
    others = [other for file in files if (other := recorded(file)).kernel == own.kernel]
    return [other for other in others if other.times_s != own.times_s]


def backwards(own: Recording, files: Sequence[Path], seed: int) -> list[Recording]:
    """Return the related recordings with the fastest config as slow as the slowest, and so on."""
    return [
        with_times(donor, [_mirrored(donor, time_s) for time_s in donor.times_s]) for donor in related(own, files, 0)
    ]


def _mirrored(donor: Recording, time_s: float | None) -> float | None:
    return None if time_s is None else exp(log(donor.optimum_s) + log(donor.worst_s) - log(time_s))


def dealt(own: Recording, files: Sequence[Path], seed: int) -> list[Recording]:
    """Return our own configs with the times of another kernel's, dealt out by chance."""
    rng = random.Random(f"deal {seed}")
    strangers = [other for file in files if (other := recorded(file)).kernel != own.kernel]
    donors = rng.sample(strangers, 2)
    return [with_times(own, rng.choices(donor.times_s, k=len(own.trials)), donor.name) for donor in donors]


def with_times(like: Recording, times_s: Sequence[float | None], name: str = "") -> Recording:
    pairs = zip(like.trials, times_s, strict=True)
    trials = (Trial(t.config, t.outcome if time_s is None else Timing((time_s,))) for t, time_s in pairs)
    return replace(like, name=name or like.name, trials=tuple(trials))


PRIORS: dict[str, Callable[[Recording, Sequence[Path], int], list[Recording]]] = {
    "none": none,
    "related": related,
    "reversed": backwards,
    "random": dealt,
}


def run(prior: str, file: Path, files: Sequence[Path], budget: int, seed: int) -> Replayed:
    own = recorded(file)
    return replay(own, "auto", budget=budget, seed=seed, priors=PRIORS[prior](own, files, seed))


def measured(files: Sequence[Path], own: Sequence[Path], options: argparse.Namespace) -> dict[str, dict[int, float]]:
    runs = [
        (prior, file, files, options.budget, seed) for prior in PRIORS for file in own for seed in range(options.seeds)
    ]
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        results = list(pool.map(run, *zip(*runs, strict=True)))
    found = {
        prior: [result for (name, *_), result in zip(runs, results, strict=True) if name == prior] for prior in PRIORS
    }
    return {
        prior: {n: geomean(result.after(n) for result in rows) for n in marks(options.budget)}
        for prior, rows in found.items()
    }


def show(found: dict[str, dict[int, float]]) -> None:
    at = list(found["none"])
    print(f"{'prior':<22}" + "".join(f"{f'@{n}':>8}" for n in at))
    for prior, values in found.items():
        print(f"{prior:<22}" + "".join(f"{values[n]:8.3f}" for n in at))
    print(f"{'reference, related':<22}" + "".join(f"{REFERENCE[n]:8.3f}" if n in REFERENCE else f"{'':8}" for n in at))
    for target, is_held in targets_of(found).items():
        print(f"target {target}: {'held' if is_held else 'not held'}")


def targets_of(found: dict[str, dict[int, float]]) -> dict[str, bool]:
    at = list(found["none"])
    is_ahead = all(found["related"][n] < REFERENCE[n] for n in at if n in REFERENCE)
    worst = max(found[wrong][n] / found["none"][n] for wrong in ("reversed", "random") for n in at if n >= 25)
    return {
        "a related prior beats the reference": is_ahead,
        f"a wrong prior costs {worst:.3f}x from 25 on, at most {HARMLESS}x": worst <= HARMLESS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 seeds, 25 evaluations")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    options.seeds = options.seeds or (3 if options.quick else 20)
    options.budget = options.budget or (25 if options.quick else 100)
    files = sorted((Path(os.environ.get("TUNEWISE_DATA", "")) / "spaces").glob("*-*.json.gz"))
    files = [file for file in files if not file.name.endswith(".t4.json.gz")]
    own = [file for file in files if related(recorded(file), files, 0)]
    if not own:
        print(
            "no kernel recorded on two devices: set TUNEWISE_DATA to the folder whose spaces/ holds them",
            file=sys.stderr,
        )
        return
    found = measured(files, own, options)
    if options.json:
        names = [file.name for file in own]
        told = {"seeds": options.seeds, "recordings": names, "priors": found, "targets": targets_of(found)}
        json.dump(told, sys.stdout)
        return
    print(f"{len(own)} recordings, {options.seeds} seeds; geometric mean of best time found / optimum")
    show(found)


if __name__ == "__main__":
    main()
