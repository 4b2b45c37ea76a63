"""The race against seven fixed repeats, side by side on the C gemm's space: measuring time and regret.

Usage: python bench/racing.py [--quick] [--json]

Both try the same configs on the same shapes. The peer calls each config once to warm up and takes seven samples one
after the other, and picks the smallest mean. Ours is the product's own tuning run with the CPU time spent in the
measurer added up: the race, which picks, and the paired final against the default, which the peer does not have.
Building and loading are counted for neither. Regret is the time of a pick over that of the best config, which many
more laps over all of them find beforehand; our pick is whom the race sends into the final.
"""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import exp, inf, log
from statistics import mean, median
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from tunewise.decision import NO_CHECK, Config, Failure, Outcome, Timing  # noqa: E402
from tunewise.measure import Work  # noqa: E402
from tunewise.measure.bench import Bench  # noqa: E402
from tunewise.measure.race import Round, race  # noqa: E402
from tunewise.search import RandomSearch  # noqa: E402
from tunewise.session.plan import Plan, Task  # noqa: E402
from tunewise.session.tune import Tuning, tune  # noqa: E402
from tunewise.store import MemoryStore  # noqa: E402
from tunewise.workloads import find  # noqa: E402

SHAPES = [(256, 256, 256), (8, 1024, 512), (64, 64, 4096), (1024, 32, 128), (100, 500, 300), (384, 96, 700)]
REPEATS = 7


class Timed:
    """A bench that adds up the seconds it spends, by purpose."""

    def __init__(self, work: Work) -> None:
        self._bench = Bench(work)
        self.search_s = self.final_s = 0.0

    def first(self, config: Config, hopeless_s: float = inf) -> Outcome:
        with self._count("search_s"):
            return self._bench.first(config, hopeless_s)

    def sample(self, config: Config, n: int) -> Outcome:
        with self._count("search_s"):
            return self._bench.sample(config, n)

    def pair(self, incumbent: Config, challenger: Config, turns: int | None = None) -> tuple[float, float] | Failure:
        with self._count("final_s"):
            return self._bench.pair(incumbent, challenger, turns)

    def verify(self, config: Config, repeats: int = 1) -> Failure | None:
        return self._bench.verify(config, repeats)

    def close(self) -> None:
        self._bench.close()

    @contextmanager
    def _count(self, name: str) -> Iterator[None]:
        start = time.process_time()
        yield
        setattr(self, name, getattr(self, name) + time.process_time() - start)


def fixed(bench: Timed, configs: list[Config]) -> Config:
    """Return the pick of seven fixed repeats."""
    means = {}
    for place, config in enumerate(configs):
        launch = bench.first(config)
        outcome = bench.sample(config, REPEATS - 1)
        assert isinstance(launch, Timing)
        assert isinstance(outcome, Timing)
        means[place] = mean((*launch.samples_s, *outcome.samples_s))
    return configs[min(means, key=lambda place: means[place])]


def best_of(bench: Bench, configs: list[Config]) -> Config:
    """Return the best of all configs, found with far more laps than either protocol takes."""
    order = list(race(bench, configs, (Round(5, 1.2), Round(30, 1.05), Round(60, 1.02)), random.Random(1)))[-1].order
    return order[0].config


def apart(bench: Bench, pick: Config, best: Config, pairs: int = 60) -> float:
    """Return a pick's time over the best one's, from many pairs timed by turns."""
    if pick == best:
        return 1.0
    taken = [bench.pair(pick, best) for _ in range(pairs)]
    return median(pair[0] / pair[1] for pair in taken if isinstance(pair, tuple))


def on_shape(decision: Any, shape: tuple[int, int, int], count: int, trials: int) -> dict[str, float]:
    features = dict(zip("mnk", shape, strict=True))
    implementation = decision.bound()
    task = implementation.task(*decision.make_inputs(features))
    work = Work(task.work.prepare, task.work.args, task.work.default, NO_CHECK, is_prebuilt=True)
    configs = [work.default, *RandomSearch(decision.space).ask(count - 1)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(task.build, configs))
    for config in configs:
        work.prepare(config)  # loads the library: building is over before either starts
    best = best_of(Bench(work), configs)
    results = [trial(Task(task.declaration, task.subject, work), configs, best, turn % 2) for turn in range(trials)]
    fixed_s, race_s, final_s = (sum(result[key] for result in results) for key in ("fixed_s", "race_s", "final_s"))
    return {
        "fixed_s": fixed_s,
        "race_s": race_s,
        "final_s": final_s,
        "less": fixed_s / race_s,
        "less_with_final": fixed_s / (race_s + final_s),
        "regret": geomean([result["regret"] for result in results]),
        "fixed_regret": geomean([result["fixed_regret"] for result in results]),
    }


def picked(tuning: Tuning) -> Config:
    """Return whom the race sent into the final; whether it may replace the default is the final's business."""
    assert tuning.verdict is not None
    return tuning.verdict.challenger


def trial(task: Task, configs: list[Config], best: Config, first: int) -> dict[str, float]:
    """Let both pick once, the one that goes first changing from trial to trial."""
    ours, theirs = Timed(task.work), Timed(task.work)
    plan = Plan(seeds=configs, budget=len(configs))
    runs: list[Callable[[], Config]] = [
        lambda: picked(tune(task, plan, MemoryStore(), lambda _: ours)),
        lambda: fixed(theirs, configs),
    ]
    picks = {first: runs[first](), 1 - first: runs[1 - first]()}
    bench = Bench(task.work)
    return {
        "fixed_s": theirs.search_s,
        "race_s": ours.search_s,
        "final_s": ours.final_s,
        "regret": apart(bench, dict(picks[0]), best),
        "fixed_regret": apart(bench, dict(picks[1]), best),
    }


def geomean(values: list[float]) -> float:
    return exp(mean(log(value) for value in values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two shapes, 80 configs, 2 trials")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    decision = find("gemm")
    shapes, count, trials = (SHAPES[:2], 80, 2) if options.quick else (SHAPES, 160, 4)
    rows = {shape: on_shape(decision, shape, count, trials) for shape in shapes}
    keys = ("less", "less_with_final", "regret", "fixed_regret")
    total = {key: geomean([row[key] for row in rows.values()]) for key in keys}
    if options.json:
        json.dump(
            {"shapes": {"x".join(map(str, s)): row for s, row in rows.items()}, "total": total}, sys.stdout, indent=2
        )
        return
    print(f"{count} configs a shape; 1 + {REPEATS} calls each against the race; the final against the default is extra")
    spending = f"{'fixed s':>8} {'race s':>8} {'less':>6} {'final s':>8} {'less':>6}"
    print(f"{'m x n x k':>16} {spending} {'regret':>7} {'fixed':>7}")
    for shape, row in rows.items():
        spent = f"{row['fixed_s']:8.2f} {row['race_s']:8.2f} {row['less']:5.1f}x"
        final = f"{row['final_s']:8.2f} {row['less_with_final']:5.1f}x"
        print(f"{'x'.join(map(str, shape)):>16} {spent} {final} {row['regret']:7.3f} {row['fixed_regret']:7.3f}")
    means = f"{total['less']:5.1f}x {'':8} {total['less_with_final']:5.1f}x"
    print(f"{'geometric mean':>16} {'':17} {means} {total['regret']:7.3f} {total['fixed_regret']:7.3f}")
    is_held = total["less"] >= 4 and total["regret"] <= 1.01
    print(f"target >= 4x less time (goal 5x) at regret <= 1.01: {'held' if is_held else 'not held'}")


if __name__ == "__main__":
    main()
