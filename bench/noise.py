"""How often noise fools us: A/A switches, gains found, wrong winners beside busy processes, next to plain means.

Usage: python bench/noise.py [--quick] [--json]

Every figure comes from the product's own measuring (an isolated worker, the race and the paired final) on a loop whose
cost is exact: 3 % more iterations is a 3 % gap. The peer in the same run is "smaller mean of blocks".
"""

import argparse
import json
import multiprocessing
import random
import sys
from collections.abc import Callable
from statistics import mean

from tunewise.decision import NO_CHECK, Config, Policy, Timing
from tunewise.measure import Measurer, Work, measurer_for
from tunewise.measure.compare import compare
from tunewise.measure.race import ROUNDS, race

STEPS = 6_000
PAIRS = 40


def spin(*, steps: int, twin: int) -> None:
    for _ in range(steps):
        pass


def work() -> Work:
    def prepare(config: Config) -> Callable[[], None]:
        return lambda: spin(**config)  # type: ignore[arg-type]

    return Work(prepare, (), config(1.0), NO_CHECK, policy=Policy(timeout_s=60))


def config(cost: float, twin: int = 0) -> dict[str, int]:
    return {"steps": round(STEPS * cost), "twin": twin}


def one(measurer: Measurer, which: Config) -> float:
    outcome = measurer.sample(which, 1)
    assert isinstance(outcome, Timing), outcome
    return outcome.samples_s[0]


def pair(measurer: Measurer, incumbent: Config, challenger: Config) -> tuple[float, float]:
    found = measurer.pair(incumbent, challenger)
    assert isinstance(found, tuple), found
    return found


def switches(measurer: Measurer, incumbent: Config, challenger: Config, trials: int) -> tuple[float, float]:
    """Return how often the challenger wins: by the paired final, and by the smaller mean of two blocks."""
    ours = theirs = 0
    for _ in range(trials):
        ours += compare(lambda turns: pair(measurer, incumbent, challenger), pairs=PAIRS).is_win
        blocks = [mean(one(measurer, which) for _ in range(PAIRS // 2)) for which in (incumbent, challenger)]
        theirs += blocks[1] < blocks[0]
    return ours / trials, theirs / trials


def wrong_winners(measurer: Measurer, trials: int) -> tuple[float, float]:
    """Return how often the slower of two configs 3 % apart is picked: by the race, and by the mean of 7 runs each."""
    fast, slow = config(1.0), config(1.03)
    ours = theirs = 0
    for trial in range(trials):
        order = [fast, slow] if trial % 2 else [slow, fast]
        standing = list(race(measurer, order, ROUNDS, random.Random(trial)))[-1]
        ours += standing.order[0].config != fast
        means = [mean(one(measurer, which) for _ in range(7)) for which in order]
        theirs += order[means.index(min(means))] != fast
    return ours / trials, theirs / trials


def burn() -> None:
    while True:
        sum(range(10_000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    trials = 30 if options.quick else 300
    measurer = measurer_for(work())
    try:
        same = switches(measurer, config(1.0), config(1.0, twin=1), trials)
        gain = switches(measurer, config(1.03), config(1.0), trials // 3)
        hogs = [multiprocessing.Process(target=burn, daemon=True) for _ in range(2)]
        for hog in hogs:
            hog.start()
        try:
            wrong = wrong_winners(measurer, trials)
            busy = switches(measurer, config(1.0), config(1.0, twin=1), trials // 3)
        finally:
            for hog in hogs:
                hog.kill()
    finally:
        measurer.close()
    rows = [
        ("A/A false switches", *same, "<= 0.01", same[0] <= 0.01),
        (f"3 % gain found with {PAIRS} pairs", *gain, ">= 0.90", gain[0] >= 0.90),
        ("A/A false switches beside 2 busy processes", *busy, "<= 0.01", busy[0] <= 0.01),
        ("wrong winner at a 3 % gap beside 2 busy processes", *wrong, "<= 0.02", wrong[0] <= 0.02),
    ]
    if options.json:
        fields = ("figure", "tunewise", "means", "target", "is_held")
        figures = [dict(zip(fields, row, strict=True)) for row in rows]
        targets = {f"{name} {target}": is_held for name, _, _, target, is_held in rows}
        json.dump({"figures": figures, "targets": targets}, sys.stdout, indent=2)
        return
    print(f"{'':50} {'tunewise':>9} {'means':>9}")
    for name, ours, theirs, target, is_held in rows:
        print(f"{name:50} {ours:9.3f} {theirs:9.3f}   target {target}: {'held' if is_held else 'not held'}")


if __name__ == "__main__":
    main()
