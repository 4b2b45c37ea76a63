"""Building large spaces: our table of every legal config beside Kernel Tuner's search space, in one run.

Usage: python bench/spaces.py [--quick] [--json]

Reads the definitions in large_spaces/ of the folder that TUNEWISE_DATA names. For each of them both sides build the
space anew in every round, one after the other and in turns, on one thread; printed are the medians of the CPU seconds,
their ratio, and whether both hold the same configs. Then 1,000 uniform draws from spaces of 10**12 configs and more,
which no table could hold. Kernel Tuner is asked for only if it is installed beside tunewise.
"""

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from tunewise.decision import Space, integer, pow2

TARGET = 10
SAID = {True: "held", False: "not held", None: "not measured"}
NO_LIMIT = 1 << 40  # threads a block: the definitions say themselves what is too many
NAMES = "abcdefgh"
HUGE: dict[str, Callable[[], Space]] = {
    "a chain of divisors under one product": lambda: Space(
        {name: integer(1, 64) for name in NAMES},
        ["a*b*c*d*e*f*g*h <= 2**20", *(f"{y} % {x} == 0" for x, y in pairwise(NAMES))],
    ),
    "one product of eight": lambda: Space({name: integer(1, 64) for name in NAMES}, ["a*b*c*d*e*f*g*h <= 2**20"]),
    "one sum of eight, exact": lambda: Space({name: integer(1, 64) for name in NAMES}, ["a+b+c+d+e+f+g+h == 40"]),
    "tiles of a blocked kernel": lambda: Space(
        {name: pow2(1, 4096) for name in "abcdefghijkl"},
        ["a*b*c*d*e*f*g*h*i*j*k*l <= 2**20", "a*b <= c*d", "(a*e + f) * (b*g + h) * 4 <= 49152"],
    ),
}


def definitions() -> list[dict[str, Any]]:
    folder = Path(os.environ.get("TUNEWISE_DATA", "")) / "large_spaces"
    files = sorted(folder.glob("*.json")) if os.environ.get("TUNEWISE_DATA") else []
    return [json.loads(file.read_text()) for file in files]


def ours(definition: dict[str, Any]) -> Any:
    space = Space(definition["params"], definition["restrictions"])
    return space, space.table()


def theirs(definition: dict[str, Any]) -> Any:
    from kernel_tuner.searchspace import Searchspace

    return Searchspace(definition["params"], definition["restrictions"], NO_LIMIT)


def cpu_s(build: Callable[[dict[str, Any]], Any], definition: dict[str, Any]) -> tuple[float, Any]:
    gc.collect()
    start = time.process_time()
    built = build(definition)
    return time.process_time() - start, built


def our_configs(built: Any) -> set[tuple[Any, ...]]:
    space, table = built
    columns = [[param.values[place] for place in table[:, i].tolist()] for i, param in enumerate(space.params)]
    return set(zip(*columns, strict=True))


def compared(definition: dict[str, Any], rounds: int) -> dict[str, Any]:
    sides = {"ours": ours, "theirs": theirs} if find_spec("kernel_tuner") else {"ours": ours}
    times: dict[str, list[float]] = {side: [] for side in sides}
    built: dict[str, Any] = {}
    for turn in range(rounds):
        for side in list(sides)[:: -1 if turn % 2 else 1]:
            built.pop(side, None)
            seconds, built[side] = cpu_s(sides[side], definition)
            times[side].append(seconds)
    found = {"name": definition["name"], "configs": len(built["ours"][1]), "ours_s": median(times["ours"])}
    if "theirs" in sides:
        theirs_s = median(times["theirs"])
        same = our_configs(built["ours"]) == set(map(tuple, built["theirs"].list))
        found |= {"theirs_s": theirs_s, "ratio": theirs_s / found["ours_s"], "same": same}
    return found


def drawn(name: str) -> dict[str, Any]:
    space = HUGE[name]()
    start = time.process_time()
    sample = space.sample(1000, 1)
    seconds = time.process_time() - start
    points = 1
    for param in space.params:
        points *= len(param)
    return {"name": name, "points": points, "legal": space.count(), "drawn": len(sample), "seconds": seconds}


def targets_of(figures: dict[str, Any]) -> dict[str, bool | None]:
    is_held = None
    if "ratio" in figures:
        is_held = figures["ratio"] >= TARGET and all(found["same"] for found in figures["spaces"])
    return {f">= {TARGET}x faster than Kernel Tuner, the same configs": is_held}


def report(figures: dict[str, Any]) -> None:
    for found in figures["spaces"]:
        line = f"{found['name']:<14} {found['configs']:>8} configs   ours {found['ours_s'] * 1e3:7.1f} ms"
        if "theirs_s" in found:
            same = "the same configs" if found["same"] else "OTHER configs"
            line += f"   Kernel Tuner {found['theirs_s'] * 1e3:8.1f} ms   {found['ratio']:6.1f}x   {same}"
        print(line)
    for found in figures["draws"]:
        print(
            f"{found['drawn']} draws in {found['seconds']:.2f} s from {found['legal']:.3g} legal of "
            f"{found['points']:.3g}: {found['name']}"
        )
    if "ratio" in figures:
        print(f"geometric mean {figures['ratio']:.1f}x")
    for target, is_held in figures["targets"].items():
        print(f"target {target}: {SAID[is_held]}")
    for sentence in figures["missing"]:
        print(sentence)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")  # numpy is not imported yet
    known = definitions()
    figures: dict[str, Any] = {
        "spaces": [compared(definition, 3 if options.quick else 7) for definition in known],
        "draws": [drawn(name) for name in HUGE],
        "missing": [],
    }
    if not known:
        figures["missing"].append("No definitions: set TUNEWISE_DATA to the folder that holds large_spaces/.")
    if find_spec("kernel_tuner") is None:
        figures["missing"].append("No peer: install kernel-tuner 1.5 beside tunewise to compare with it.")
    elif known:
        figures["ratio"] = geometric_mean(found["ratio"] for found in figures["spaces"])
    figures["targets"] = targets_of(figures)
    if options.json:
        json.dump(figures, sys.stdout, indent=2)
        return
    report(figures)


if __name__ == "__main__":
    main()
