"""The race against seven fixed repeats, side by side on the C gemm's space: measuring time and regret.

Usage: python bench/racing.py [--quick] [--json]

Both try the same configs on the same shapes: those that random search tries. The peer calls each config once to warm
up and takes seven samples one after the other, and picks the smallest mean. Ours is the product's own tuning run with
the CPU time spent in the measurer added up: the race, which picks, and the paired final against the default, which the
peer does not have. Building and loading are counted for neither. Our pick is whom the race sends into the final.

Regret is the time of a pick over that of the best config. On a shared machine the order of near-equal configs itself
drifts by some percent from minute to minute, so neither a minute's best nor the better of two picks is a yardstick: the
best is the one whose samples have the smallest lower half mean over many laps of all good configs, taken before and
after every trial.
"""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import exp, inf, log
from statistics import mean
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from tunewise.decision import NO_CHECK, Config, Failure, Outcome, Timing, canonical, lower_half_mean  # noqa: E402
from tunewise.errors import MissingPart  # noqa: E402
from tunewise.measure import Work  # noqa: E402
from tunewise.measure.bench import Bench  # noqa: E402
from tunewise.measure.race import Round, race  # noqa: E402
from tunewise.session.plan import Plan, Task  # noqa: E402
from tunewise.session.tune import Tuning, tune  # noqa: E402
from tunewise.store import MemoryStore  # noqa: E402
from tunewise.workloads import find  # noqa: E402

SHAPES = [(256, 256, 256), (8, 1024, 512), (64, 64, 4096), (1024, 32, 128), (100, 500, 300), (384, 96, 700)]
REPEATS = 7
GOOD = 1.1  # a config within this of the best belongs to the yardstick
LAPS = 60


class Timed:
    """A bench that adds up the seconds it spends, by purpose."""

    def __init__(self, work: Work) -> None:
        self._bench = Bench(work)
        self.search_s = self.final_s = 0.0

    def first(self, config: Config, best_s: float = inf) -> Outcome:
        with self._count("search_s"):
            return self._bench.first(config, best_s)

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


class Yardstick:
    """How long the good configs of a shape take, in laps spread over the whole run."""

    def __init__(self, bench: Bench, configs: list[Config]) -> None:
        self._bench, self._rng = bench, random.Random(1)
        standings = list(race(bench, configs, (Round(5, 1.25), Round(15, GOOD)), self._rng))
        self._good = [gap.config for gap in standings[-1].order if gap.ratio <= GOOD]
        self._laps: list[dict[str, float]] = []

    def run(self, others: Sequence[Config] = (), laps: int = LAPS) -> None:
        """Time all good configs and some others, lap by lap."""
        field = [*self._good, *(config for config in others if config not in self._good)]
        for _ in range(laps):
            order = self._rng.sample(field, len(field))
            self._laps.append({canonical.encode(config): self._time(config) for config in order})

    def regret(self, pick: Config) -> float:
        """Return a pick's time over the best one's, from the laps it ran."""
        shared = [lap for lap in self._laps if canonical.encode(pick) in lap]
        always = [config for config in shared[0] if all(config in lap for lap in shared)]
        times_s = {config: lower_half_mean([lap[config] for lap in shared]) for config in always}
        return times_s[canonical.encode(pick)] / min(times_s.values())

    def _time(self, config: Config) -> float:
        outcome = self._bench.sample(config, 1)
        assert isinstance(outcome, Timing)
        return outcome.time_s


class Contest:
    """One shape: both pick again and again, and the yardstick is laid on before and after."""

    def __init__(self, decision: Any, shape: tuple[int, int, int], count: int) -> None:
        task = decision.bound().task(*decision.make_inputs(dict(zip("mnk", shape, strict=True))))
        work = Work(task.work.prepare, task.work.args, task.work.default, NO_CHECK, is_prebuilt=True)
        self._plan = Plan(strategy="random", budget=count)
        self._task = Task(task.declaration, task.subject, work)
        # Building and loading is over before either starts.
        self.configs = tried(replace(self._task, build=task.build), self._plan)
        self._yardstick = Yardstick(Bench(work), self.configs)
        self._yardstick.run()
        self._picks: dict[str, list[Config]] = {"ours": [], "fixed": []}
        self._spent_s = {"race": 0.0, "final": 0.0, "fixed": 0.0}

    def trial(self, number: int) -> None:
        """Let both pick once, the one that goes first changing from trial to trial."""
        turns = [self._race, self._fixed]
        for turn in turns if number % 2 else reversed(turns):
            turn()
        self._yardstick.run([pick for picks in self._picks.values() for pick in picks])

    def _race(self) -> None:
        bench, store = Timed(self._task.work), MemoryStore()
        self._picks["ours"].append(picked(tune(self._task, self._plan, store, lambda _: bench)))
        assert configs_in(store, self._task) == self.configs
        self._spent_s["race"] += bench.search_s
        self._spent_s["final"] += bench.final_s

    def _fixed(self) -> None:
        bench = Timed(self._task.work)
        self._picks["fixed"].append(fixed(bench, self.configs))
        self._spent_s["fixed"] += bench.search_s

    def result(self) -> dict[str, float]:
        """Return what was spent, and the regrets."""
        spent = self._spent_s
        return {
            "fixed_s": spent["fixed"],
            "race_s": spent["race"],
            "final_s": spent["final"],
            "less": spent["fixed"] / spent["race"],
            "less_with_final": spent["fixed"] / (spent["race"] + spent["final"]),
            "regret": geomean([self._yardstick.regret(pick) for pick in self._picks["ours"]]),
            "fixed_regret": geomean([self._yardstick.regret(pick) for pick in self._picks["fixed"]]),
        }


def tried(task: Task, plan: Plan) -> list[Config]:
    """Return the configs that a tuning run tries, in its order."""
    store = MemoryStore()
    tune(task, plan, store, Bench)
    return configs_in(store, task)


def configs_in(store: MemoryStore, task: Task) -> list[Config]:
    return list({canonical.encode(trial.config): trial.config for trial in store.trials(task.subject)}.values())


def picked(tuning: Tuning) -> Config:
    """Return whom the race sent into the final; whether it may replace the default is the final's business."""
    assert tuning.verdict is not None
    return tuning.verdict.challenger


def geomean(values: list[float]) -> float:
    return exp(mean(log(value) for value in values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two shapes, 80 configs, 2 trials")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    decision = find("gemm")
    shapes, count, trials = (SHAPES[:2], 80, 2) if options.quick else (SHAPES, 160, 12)
    contests = {shape: Contest(decision, shape, count) for shape in shapes}
    for number in range(trials):
        for contest in contests.values():
            contest.trial(number)
    rows = {shape: contest.result() for shape, contest in contests.items()}
    keys = ("less", "less_with_final", "regret", "fixed_regret")
    total = {key: geomean([row[key] for row in rows.values()]) for key in keys}
    target, is_held = ">= 4x less time (goal 5x) at regret <= 1.01", total["less"] >= 4 and total["regret"] <= 1.01
    if options.json:
        named = {"x".join(map(str, shape)): row for shape, row in rows.items()}
        json.dump({"shapes": named, "total": total, "targets": {target: is_held}}, sys.stdout, indent=2)
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
    print(f"target {target}: {'held' if is_held else 'not held'}")


if __name__ == "__main__":
    try:
        main()
    except MissingPart as error:
        print(error, file=sys.stderr)
