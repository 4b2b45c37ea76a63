"""What tuning in the background costs the calls of a program: the same calls with it and without, side by side.

The program runs on one core and the tuning beside it on another. New problems arrive all the time; a call takes about
half a millisecond. Every repeat is two fresh processes, one of each kind.

Usage: python bench/background.py [--repeats N] [--quick] [--json]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from statistics import median
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
KINDS = ("none", "background")


def program(kind: str, calls: int, problems: int) -> dict[str, Any]:
    """Return how long each call took in this process, in milliseconds, and what the program knows at its end."""
    import numpy as np

    import tunewise as tw
    from tunewise.session import background

    rng = np.random.default_rng(0)
    right = rng.standard_normal((96, 96))
    lefts = [rng.standard_normal((96 + i, 96)) for i in range(problems + 1)]
    passes = tw.Space({"passes": [10, 9, 11, 12]})
    decision = tw.Decision(
        "product", space=passes, default={"passes": 10}, features=lambda a: {"rows": len(a)}, check=tw.NO_CHECK, near=1
    )

    @decision.implementation
    def product(a: Any, *, passes: int) -> Any:
        for _ in range(passes):
            result = a @ right
        return result

    block = tw.mode("tune", background=True) if kind == "background" else nullcontext()
    with block:
        product(lefts[-1])  # the thread that sees to the background is there, and free to use all cores
        background.wait()
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        for _ in range(200):
            product(lefts[-1])
        times = run(product, lefts, calls, problems)
        remembered = sum(product.decide(a).rung == "memory" for a in lefts[:problems])
        background.wait()
        in_the_end = sum(product.decide(a).rung == "memory" for a in lefts[:problems])
    return {"ms": times, "remembered_at_last_call": remembered, "remembered": in_the_end}


def run(product: Any, lefts: list[Any], calls: int, problems: int) -> list[float]:
    times = []
    for i in range(calls):
        known = 1 + i * problems // calls  # one more problem every so often
        # The newest problem is asked at once, the others in turn.
        a = lefts[known - 1] if i * problems % calls < problems else lefts[i % known]
        start = time.perf_counter()
        product(a)
        times.append((time.perf_counter() - start) * 1e3)
    return times


def measured(kind: str, calls: int, problems: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        environ = {**os.environ, **dict.fromkeys(THREADS, "1"), "TUNEWISE_HOME": home}
        command = [sys.executable, __file__, "--as", kind, "--calls", str(calls), "--problems", str(problems)]
        ran = subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=True)
    found = json.loads(ran.stdout)
    times = sorted(found.pop("ms"))
    at = {f"p{p:g}": times[min(len(times) - 1, int(len(times) * p / 100))] for p in (50, 99, 99.9)}
    return {**at, "max": times[-1], **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="fewer calls and repeats")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--as", dest="kind", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--calls", type=int, default=20_000, help=argparse.SUPPRESS)
    parser.add_argument("--problems", type=int, default=36, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kind:
        json.dump(program(options.kind, options.calls, options.problems), sys.stdout)
        return
    repeats, calls, problems = (2, 5_000, 12) if options.quick else (options.repeats, options.calls, options.problems)
    if len(os.sched_getaffinity(0)) < 2:
        print("this machine has one core only: the figures say how well it is shared", file=sys.stderr)
    rows = [{kind: measured(kind, calls, problems) for kind in KINDS} for _ in range(repeats)]
    delays = [row["background"]["p99"] - row["none"]["p99"] for row in rows]
    picked_up = all(row["background"]["remembered"] == problems for row in rows)
    figures = {
        "calls": calls,
        "problems": problems,
        "repeats": rows,
        "p50_delay_ms": median(row["background"]["p50"] - row["none"]["p50"] for row in rows),
        "p99_delay_ms": median(delays),
        "p99_delays_ms": delays,
        "targets": {
            "delay at p99 <= 1 ms": median(delays) <= 1,
            "winners are picked up without a restart": picked_up,
        },
    }
    if options.json:
        json.dump(figures, sys.stdout, indent=2)
        return
    print(f"{calls} calls, {problems} problems that arrive one after the other; milliseconds a call")
    print(f"{'':12}{'p50':>9}{'p99':>9}{'p99.9':>9}{'max':>9}   known at the last call, and in the end")
    for row in rows:
        for kind, told in row.items():
            cells = "".join(f"{told[name]:9.3f}" for name in ("p50", "p99", "p99.9", "max"))
            print(f"{kind:12}{cells}   {told['remembered_at_last_call']}, {told['remembered']}")
    print(
        f"delay at p50 {figures['p50_delay_ms']:+.3f} ms, at p99 {figures['p99_delay_ms']:+.3f} ms (median of repeats)"
    )
    for target, is_held in figures["targets"].items():
        print(f"target {target}: {'held' if is_held else 'not held'}")


if __name__ == "__main__":
    main()
