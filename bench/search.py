"""Our strategies beside Kernel Tuner and Optuna on recorded GPU kernels, in one run: best time found / optimum.

Usage: python bench/search.py [--quick] [--json] [--ablations] [--only NAMES] [--seeds N] [--budget N] [--jobs N]

The recorded spaces lie in `spaces/` of the folder that TUNEWISE_DATA names. Failed configs count as evaluations and
repeats are free, for everybody; every run has a search space of its own, because a cache that lives across runs would
flatter whoever has it. Kernel Tuner runs as shipped on exactly the recorded configs, through its own simulation
runner; Optuna runs through our adapter, which answers repeats and configs that break a rule without charge. What is
not installed is said in a sentence and left out.
"""

import argparse
import importlib.util
import json
import multiprocessing
import os
import random
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from tunewise.decision import Failure  # noqa: E402
from tunewise.formats.recorded import Recording, read  # noqa: E402
from tunewise.search import WITHOUT  # noqa: E402
from tunewise.session.replaying import Replayed, replay  # noqa: E402
from tunewise.session.scores import Score, marks, score_space  # noqa: E402

SPACES = ("convolution-A100", "convolution-MI250X", "gemm-RTX2080Ti", "gemm-RTX3090", "pnpoly-RTX3090")
NOISY = "auto, one sample"  # told one recorded sample of each config instead of its mean
OURS = ("auto", NOISY, "local", "annealing", "genetic", "evolution", "random")
OPTUNA = ("optuna:tpe",)
KERNEL_TUNER = {
    "kt: tabu + grey wolf": "adaptive_tabu_greywolf",
    "kt: genetic": "genetic_algorithm",
    "kt: diff. evolution": "diff_evo",
    "kt: annealing": "simulated_annealing",
}
SAID = {True: "held", False: "not held", None: "not measured"}
_ERRORS = {"compile": "CompilationFailedConfig", "constraints": "InvalidConfig"}


@lru_cache
def recorded(file: Path) -> Recording:
    (recording,) = read(file)
    return recording


def run(strategy: str, file: Path, budget: int, seed: int) -> Replayed:
    """Return how one run of anybody's strategy went."""
    if strategy in KERNEL_TUNER:
        return kernel_tuner_run(KERNEL_TUNER[strategy], recorded(file), budget, seed)
    if strategy == NOISY:
        return replay(recorded(file), "auto", budget=budget, seed=seed, noise=True)
    return replay(recorded(file), strategy, budget=budget, seed=seed)


def kernel_tuner_run(name: str, recording: Recording, budget: int, seed: int) -> Replayed:
    """Return how Kernel Tuner went, on a search space that was built for this run."""
    import numpy
    from kernel_tuner import util
    from kernel_tuner.interface import Options, strategy_map
    from kernel_tuner.runners.simulation import SimulationRunner
    from kernel_tuner.searchspace import Searchspace

    class Traced(SimulationRunner):  # type: ignore[misc]
        """Kernel Tuner's simulation, which also notes the order in which configs are first seen."""

        order: dict[str, None] = {}  # noqa: RUF012

        def run(self, parameter_space: Any, tuning_options: Any) -> Any:
            elements = [tuple(element) for element in parameter_space]
            results = super().run(elements, tuning_options)
            for element, result in zip(elements, results, strict=True):
                if result is not None:
                    self.order.setdefault(",".join(map(str, element)))
            return results

    random.seed(seed)
    numpy.random.seed(seed)
    params = {param.name: list(param.values) for param in recording.space.params}
    cache = kernel_tuner_cache(recording, util)
    options = Options(
        tune_params=params,
        objective=["time"],
        objective_higher_is_better=[False],
        strategy_options=Options(max_fevals=budget),
        cache=cache,
        cachefile=None,
        metrics=None,
        verbose=False,
        restrictions=[],
        seed=seed,
    )
    options["budget"] = util.TuningBudget(None, min(budget, len(cache)))
    quiet = Options(quiet=True)
    runner = Traced(None, Options(kernel_name=recording.kernel), quiet, 1, None)
    runner.order = {}
    start = time.process_time()
    space = Searchspace(None, None, None, from_cache={"tune_params": params, "cache": cache})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        strategy_map[name].tune(space, runner, options)
    spent_s = time.process_time() - start
    rows = {key: row for row, key in enumerate(cache)}
    return traced(recording, [rows[key] for key in runner.order][:budget], spent_s)


def kernel_tuner_cache(recording: Recording, util: Any) -> dict[str, dict[str, Any]]:
    """Return a recording as Kernel Tuner holds it in memory."""
    cache = {}
    for trial, time_s in zip(recording.trials, recording.times_s, strict=True):
        record: dict[str, Any] = {name: trial.config[name] for name in recording.space.names}
        if isinstance(trial.outcome, Failure):
            error = getattr(util, _ERRORS.get(trial.outcome.kind, "RuntimeFailedConfig"))()
            record |= {"time": error, "__error__": error}
        else:
            assert time_s is not None
            record |= {"time": 1e3 * time_s, "compile_time": 0.0, "verification_time": 0.0, "benchmark_time": 0.0}
        cache[",".join(str(value) for value in list(record.values())[: len(recording.space.names)])] = record
    return cache


def traced(recording: Recording, rows: Sequence[int], spent_s: float) -> Replayed:
    curve, best_s = [], recording.worst_s
    for row in rows:
        time_s = recording.times_s[row]
        best_s = best_s if time_s is None else min(best_s, time_s)
        curve.append(best_s / recording.optimum_s)
    return Replayed(tuple(curve), tuple(rows), spent_s)


def present(wanted: Sequence[str]) -> Iterator[str]:
    """Yield the strategies that can run here; the others are named on stderr."""
    parts = {"kernel_tuner": [n for n in wanted if n in KERNEL_TUNER], "optuna": [n for n in wanted if n in OPTUNA]}
    missing = {name for part, names in parts.items() if importlib.util.find_spec(part) is None for name in names}
    for part, names in parts.items():
        if missing & set(names):
            print(f"{part} is not installed: {', '.join(names)} left out", file=sys.stderr)
    yield from (name for name in wanted if name not in missing)


def scores(strategies: Sequence[str], files: Sequence[Path], options: argparse.Namespace) -> Iterator[Score]:
    """Yield each strategy's score as soon as its runs are done."""
    runs = [
        (name, file, options.budget, seed) for name in strategies for file in files for seed in range(options.seeds)
    ]
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        results = pool.map(run, *zip(*runs, strict=True))
        for name in strategies:
            spaces = [
                score_space(
                    file.name, recorded(file).optimum_s, [next(results) for _ in range(options.seeds)], options.budget
                )
                for file in files
            ]
            yield Score(name, options.budget, options.seeds, tuple(spaces))


def row(score: Score) -> str:
    values = "".join(f"{score.geomean[n]:8.3f}" for n in marks(score.budget))
    return f"{score.strategy:<22}{values}{score.overhead_ms:9.2f}"


def best_peer(found: Sequence[Score], budget: int) -> dict[int, float]:
    """Return what the best peer reached at each mark; empty if no peer ran."""
    peers = [score for score in found if score.strategy in (*KERNEL_TUNER, *OPTUNA)]
    return {n: min(score.geomean[n] for score in peers) for n in marks(budget)} if peers else {}


def excess(found: Sequence[Score], best: Mapping[int, float]) -> dict[int, float]:
    """Return our distance to the optimum over the best peer's, at each mark."""
    (ours,) = (score for score in found if score.strategy == "auto")
    return {n: (ours.geomean[n] - 1) / max(best[n] - 1, 1e-9) for n in best}


def targets_of(found: Sequence[Score], budget: int) -> dict[str, bool | None]:
    """Return whether each target is held; None is for what was not measured."""
    named = {score.strategy: score.geomean for score in found}
    is_noise_measured = NOISY in named and 100 in marks(budget)
    ratios = excess(found, best_peer(found, budget)).values()
    return {
        "noise costs at most 0.01 @100": named[NOISY][100] - named["auto"][100] <= 0.01 if is_noise_measured else None,
        "ahead of the best peer at every budget": max(ratios) < 1 if ratios else None,
        "half the excess of the best peer at every budget (goal)": max(ratios) <= 0.5 if ratios else None,
    }


def compare(found: Sequence[Score], budget: int) -> None:
    """Print how we stand against the peers and our targets."""
    best = best_peer(found, budget)
    if best:
        print(f"{'best peer':<22}" + "".join(f"{value:8.3f}" for value in best.values()))
        ratios = excess(found, best)
        print(f"{'excess, ours / peer':<22}" + "".join(f"{ratio:8.2f}" for ratio in ratios.values()))
    for target, is_held in targets_of(found, budget).items():
        print(f"target {target}: {SAID[is_held]}")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two spaces, 3 seeds, 50 evaluations")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ablations", action="store_true", help="variants of auto instead of the peers")
    parser.add_argument("--only", help="names of strategies with commas between them; auto is always in")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    options.seeds = options.seeds or (3 if options.quick else 20)
    options.budget = options.budget or (50 if options.quick else 400)
    return options


def main() -> None:
    options = parsed()
    folder = Path(os.environ.get("TUNEWISE_DATA", "")) / "spaces"
    names = (SPACES[0], SPACES[-1]) if options.quick else SPACES
    files = [file for name in names if (file := folder / f"{name}.json.gz").is_file()]
    if not files:
        print("no recorded spaces: set TUNEWISE_DATA to the folder whose spaces/ holds them", file=sys.stderr)
        return
    wanted = ("auto", *WITHOUT) if options.ablations else (*OURS, *KERNEL_TUNER, *OPTUNA)
    if options.only:
        wanted = tuple(name for name in wanted if name in ("auto", *options.only.split(",")))
    found = []
    if not options.json:
        print(f"{len(files)} spaces, {options.seeds} seeds; geometric mean of best time found / optimum")
        print(f"{'strategy':<22}" + "".join(f"{f'@{n}':>8}" for n in marks(options.budget)) + f"{'ms/eval':>9}")
    for score in scores(list(present(wanted)), files, options):
        found.append(score)
        print(row(score), file=sys.stderr if options.json else sys.stdout, flush=True)
    if options.json:
        rows = [{"strategy": s.strategy, "geomean": s.geomean, "overhead_ms": s.overhead_ms} for s in found]
        told = {"spaces": list(names), "seeds": options.seeds, "budget": options.budget, "rows": rows}
        json.dump({**told, "targets": targets_of(found, options.budget)}, sys.stdout)
        return
    compare(found, options.budget)


if __name__ == "__main__":
    main()
