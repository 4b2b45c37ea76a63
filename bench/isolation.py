"""What isolation costs: an evaluation in the worker against one in this process, recovery after a crash, timing bias.

Run it as `python bench/isolation.py [--quick] [--json] [--torch]`; `--torch` imports torch first, as a large program
would. Both sides take turns in one run, so whatever else the machine does befalls both.
"""

import argparse
import ctypes
import importlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np

from tunewise.decision import Config, Failure, Policy, Timing
from tunewise.measure.bench import Bench
from tunewise.measure.isolated import Isolated
from tunewise.measure.work import Measurer, Work

BOUNDS = {
    "overhead, same config": (0.5, "ms"),
    "overhead, other config": (0.5, "ms"),
    "recovery, next evaluation": (50.0, "ms"),
    "bias, isolated / in process": (0.02, "x"),  # to either side of 1
}


def prepare(config: Config) -> Callable[..., Any]:
    if config["way"] == "crash":
        return lambda *args: ctypes.string_at(0)
    if config["way"] == "matmul":
        return lambda a, b, out: np.dot(a, b, out=out)
    return lambda *args: None


def work(way: str, *args: Any, min_sample_s: float) -> Work:
    return Work(prepare, args, {"way": way}, policy=Policy(min_sample_s=min_sample_s))


def took_ms(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1e3


def sampled(measurer: Measurer, way: str, n: int = 1) -> Timing:
    outcome = measurer.sample({"way": way}, n)
    assert isinstance(outcome, Timing), outcome
    return outcome


def overhead_ms(turns: int) -> dict[str, float]:
    """Return what isolation adds to one sample of a function that does nothing: the median, by who ran before."""
    task = work("a", min_sample_s=1e-7)
    rows: dict[str, list[float]] = {"in process": [], "same config": [], "other config": []}
    inside = Bench(task)
    with Isolated(task) as isolated:
        for measurer in (inside, isolated):
            for way in ("a", "b"):
                measurer.first({"way": way})
        for turn in range(turns):
            way = "ab"[turn % 2]
            rows["other config"].append(took_ms(partial(sampled, isolated, way)))
            rows["same config"].append(took_ms(partial(sampled, isolated, way)))
            rows["in process"].append(took_ms(partial(sampled, inside, way)))
    costs = {name: median(row) for name, row in rows.items()}
    return {name: costs[name] - costs["in process"] for name in ("same config", "other config")}


def recovery_ms(turns: int) -> dict[str, float]:
    """Return the median times from a crashing job to its Failure, and of the healthy job after it."""
    seen, recovered = [], []
    with Isolated(work("a", min_sample_s=1e-7)) as isolated:
        isolated.first({"way": "a"})
        for _ in range(turns):
            seen.append(took_ms(lambda: crash(isolated)))
            recovered.append(took_ms(lambda: sampled(isolated, "a")))
    return {"crash seen": median(seen), "next evaluation": median(recovered)}


def crash(isolated: Isolated) -> None:
    outcome = isolated.sample({"way": "crash"}, 1)
    assert isinstance(outcome, Failure), outcome


def bias(turns: int) -> float:
    """Return the time of a real numpy product measured in isolation, over the same measured in this process."""
    rng = np.random.default_rng(0)
    # The product is written in place: two processes' allocators differ by more than what is measured here.
    task = work("matmul", rng.random((160, 160)), rng.random((160, 160)), np.empty((160, 160)), min_sample_s=1e-3)
    task = replace(task, writes=(2,))
    inside = Bench(task)
    ratios = []
    with Isolated(task) as isolated:
        for measurer in (inside, isolated):
            measurer.first({"way": "matmul"})
        for turn in range(turns):
            pair: tuple[Measurer, Measurer] = (inside, isolated)
            times = {one: sampled(one, "matmul", 4).time_s for one in (pair if turn % 2 else pair[::-1])}
            ratios.append(times[isolated] / times[inside])
    return median(ratios)


def target(name: str) -> str:
    bound, unit = BOUNDS[name]
    return f"1 +- {bound:g}" if unit == "x" else f"<= {bound:g} {unit}"


def is_held(name: str, value: float) -> bool:
    bound, unit = BOUNDS[name]
    return abs(value - 1) <= bound if unit == "x" else value <= bound


def report(figures: dict[str, float]) -> None:
    for name, value in figures.items():
        _, unit = BOUNDS.get(name, (None, "ms"))
        verdict = ""
        if name in BOUNDS:
            verdict = f"   target {target(name)}: {'held' if is_held(name, value) else 'not held'}"
        print(f"{name:<36} {value:8.3f} {unit}{verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--torch", action="store_true", help="import torch first")
    options = parser.parse_args()
    if options.torch:
        if find_spec("torch") is None:
            print("PyTorch is not installed: pip install 'tunewise[torch]'", file=sys.stderr)
            return
        importlib.import_module("torch")
    scale = 1 if options.quick else 5
    figures = {f"overhead, {name}": value for name, value in overhead_ms(400 * scale).items()}
    figures |= {f"recovery, {name}": value for name, value in recovery_ms(20 * scale).items()}
    figures["bias, isolated / in process"] = bias(60 * scale)
    if options.json:
        targets = {f"{name} {target(name)}": is_held(name, figures[name]) for name in BOUNDS}
        print(json.dumps({**figures, "targets": targets}))
        return
    report(figures)


if __name__ == "__main__":
    main()
