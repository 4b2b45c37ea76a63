"""The race against seven fixed repeats, side by side on the C gemm's space: measuring time and regret.

Usage: python bench/racing.py [--quick] [--json]

Both try the same configs on the same shapes. The peer calls each config once to warm up and takes seven samples one
after the other, and picks the smallest mean. Ours is the product's own tuning run (race, check and paired final) with
the time spent in the measurer added up; building and loading are not counted for either. Regret is the time of the
pick over the better of both picks, in long interleaved rounds afterwards.
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
from statistics import mean
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from tunewise.decision import NO_CHECK, Config, Failure, Outcome, Timing, lower_half_mean  # noqa: E402
from tunewise.measure import Work  # noqa: E402
from tunewise.measure.bench import Bench  # noqa: E402
from tunewise.search import RandomSearch  # noqa: E402
from tunewise.session.plan import Plan, Task  # noqa: E402
from tunewise.session.tune import tune  # noqa: E402
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


def reference(bench: Bench, configs: list[Config], rounds: int) -> list[float]:
    """Return careful times: many interleaved rounds, lower half mean."""
    samples: list[list[float]] = [[] for _ in configs]
    order = list(range(len(configs)))
    for turn in range(rounds):
        random.Random(turn).shuffle(order)
        for place in order:
            outcome = bench.sample(configs[place], 1)
            assert isinstance(outcome, Timing)
            samples[place].append(outcome.samples_s[0])
    return [lower_half_mean(of_one) for of_one in samples]


def on_shape(decision: Any, shape: tuple[int, int, int], count: int, first: int) -> dict[str, float]:
    features = dict(zip("mnk", shape, strict=True))
    implementation = decision.bound()
    task = implementation.task(*decision.make_inputs(features))
    work = Work(task.work.prepare, task.work.args, task.work.default, NO_CHECK, is_prebuilt=True)
    configs = [work.default, *RandomSearch(decision.space).ask(count - 1)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(task.build, configs))
    for config in configs:
        work.prepare(config)  # loads the library: building is over before either starts
    ours, theirs = Timed(work), Timed(work)
    quiet = Task(task.declaration, task.subject, work)
    runs: list[Callable[[], Config]] = [
        lambda: tune(quiet, Plan(seeds=configs, budget=count), MemoryStore(), lambda _: ours).answer.config,
        lambda: fixed(theirs, configs),
    ]
    picks = {first: runs[first](), 1 - first: runs[1 - first]()}
    times = reference(Bench(work), [dict(picks[0]), dict(picks[1])], 60)
    return {
        "time_ratio": theirs.search_s / (ours.search_s + ours.final_s),
        "search_only_ratio": theirs.search_s / ours.search_s,
        "ours_s": ours.search_s + ours.final_s,
        "fixed_s": theirs.search_s,
        "regret": times[0] / min(times),
        "fixed_regret": times[1] / min(times),
    }


def geomean(values: list[float]) -> float:
    return exp(mean(log(value) for value in values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two shapes, 40 configs")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    decision = find("gemm")
    shapes, count = (SHAPES[:2], 40) if options.quick else (SHAPES, 160)
    rows = {shape: on_shape(decision, shape, count, turn % 2) for turn, shape in enumerate(shapes)}
    total = {key: geomean([row[key] for row in rows.values()]) for key in next(iter(rows.values()))}
    total["total_time_ratio"] = sum(r["fixed_s"] for r in rows.values()) / sum(r["ours_s"] for r in rows.values())
    if options.json:
        json.dump(
            {"shapes": {"x".join(map(str, s)): row for s, row in rows.items()}, "total": total}, sys.stdout, indent=2
        )
        return
    print(f"{count} configs a shape; 1 + {REPEATS} calls each against the race and its paired final")
    print(f"{'m x n x k':>16} {'fixed s':>8} {'ours s':>8} {'less':>6} {'regret':>7} {'fixed':>7}")
    for shape, row in rows.items():
        times = f"{row['fixed_s']:8.2f} {row['ours_s']:8.2f} {row['time_ratio']:5.1f}x"
        print(f"{'x'.join(map(str, shape)):>16} {times} {row['regret']:7.3f} {row['fixed_regret']:7.3f}")
    ratio, regret = total["time_ratio"], total["regret"]
    print(f"{'geometric mean':>16} {'':17} {ratio:5.1f}x {regret:7.3f} {total['fixed_regret']:7.3f}")
    is_held = ratio >= 4 and regret <= 1.01
    print(f"target >= 4x less time (goal 5x) at regret <= 1.01: {'held' if is_held else 'not held'}")


if __name__ == "__main__":
    main()
