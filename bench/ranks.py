"""Tuning by ranks together beside each rank alone: evaluations, seconds and disagreements, in one run.

Usage: python bench/ranks.py [--quick] [--json]

The ranks of a torch.distributed group (gloo) tune close problems: how many rows of a matrix to take at once, and in
which order to sum them. First each rank tunes all of them alone, all at the same time, as programs do whose ranks know
nothing of each other; then a fresh set of ranks does it together. Every rank has a store of its own, empty at first.
Then one process times what was chosen and every other config side by side: regret is chosen time / best time.
"""

import argparse
import json
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

import tunewise as tw  # noqa: E402
from tunewise.decision import lower_half_mean  # noqa: E402

ROWS = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128]
LAPS = 15


def decision() -> Any:
    """Return a real choice: the softmax of a matrix, some rows at a time, in one of two ways."""
    made = tw.Decision(
        "row-softmax",
        space=tw.Space({"rows": ROWS, "in_place": [False, True]}),
        default={"rows": 1, "in_place": False},
        features=lambda x: {"m": x.shape[0], "n": x.shape[1]},
        inputs=lambda problem, seed: (np.random.default_rng(seed).random((problem["m"], problem["n"])),),
        near=1,
    )

    @made.implementation
    def softmax(x: Any, *, rows: int, in_place: bool) -> Any:
        out = np.empty_like(x)
        for start in range(0, len(x), rows):
            part = x[start : start + rows]
            top = part.max(axis=1, keepdims=True)
            if in_place:
                target = out[start : start + rows]
                np.subtract(part, top, out=target)
                np.exp(target, out=target)
                target /= target.sum(axis=1, keepdims=True)
            else:
                shifted = np.exp(part - top)
                out[start : start + rows] = shifted / shifted.sum(axis=1, keepdims=True)
        return out

    return softmax


def problems(count: int) -> list[dict[str, int]]:
    return [{"m": 200 + 8 * number, "n": 96 + 4 * number} for number in range(count)]


def rank(number: int, size: int, port: int | None, count: int, home: str, seen: Any) -> None:
    """Be a rank: alone without a port, otherwise together with the others."""
    import torch.distributed as dist

    tw.configure(home=home)
    if port is not None:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=number, world_size=size)
    softmax, start = decision(), time.monotonic()
    tunings = [softmax.decision.tune(problem) for problem in problems(count)]
    seconds = time.monotonic() - start
    configs = [dict(tuning.answer.config) for tuning in tunings]
    seen.put((number, configs, sum(tuning.measured for tuning in tunings), seconds))
    if port is not None:
        dist.barrier()
        dist.destroy_process_group()


def job(size: int, count: int, *, together: bool) -> dict[str, Any]:
    """Run a job and return its evaluations, the seconds of its slowest rank, and what each rank chose."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    forking = multiprocessing.get_context("fork")  # torch is imported once; nothing of it has started yet
    seen = forking.Queue()
    with tempfile.TemporaryDirectory() as homes:
        ranks = [
            forking.Process(target=rank, args=(n, size, port if together else None, count, f"{homes}/{n}", seen))
            for n in range(size)
        ]
        for process in ranks:
            process.start()
        found = sorted(seen.get(timeout=600) for _ in ranks)
        for process in ranks:
            process.join()
    chosen = [configs for _, configs, _, _ in found]
    return {
        "evaluations": sum(measured for _, _, measured, _ in found),
        "seconds": max(seconds for *_, seconds in found),
        "disagreements": sum(any(a != b for b in ways) for a, *ways in zip(*chosen, strict=True)),
        "chosen": chosen,
    }


def regret(chosen: Sequence[Sequence[dict[str, Any]]], count: int) -> float:
    """Return the geometric mean over ranks and problems of chosen time / best time, all configs timed by turns."""
    softmax = decision()
    logs: list[float] = []
    for number, problem in enumerate(problems(count)):
        (x,) = softmax.decision.make_inputs(problem)
        configs = list(softmax.decision.space)
        taken: list[list[float]] = [[] for _ in configs]
        for _ in range(LAPS):
            for config, samples in zip(configs, taken, strict=True):
                start = time.thread_time()
                softmax.__wrapped__(x, **config)
                samples.append(time.thread_time() - start)
        times = [lower_half_mean(samples) for samples in taken]
        logs += [log(times[configs.index(ways[number])] / min(times)) for ways in chosen]
    return exp(sum(logs) / len(logs))


def report(found: dict[str, Any]) -> None:
    """Print what came out, as ratios."""
    alone, together = found["alone"], found["together"]
    print(f"{found['ranks']} ranks, {found['problems']} problems, {found['configs']} configs")
    print(f"{'':<10}{'evaluations':>12}{'seconds':>9}{'disagreements':>15}{'regret':>8}")
    for name in ("alone", "together"):
        row = found[name]
        numbers = f"{row['evaluations']:>12}{row['seconds']:>9.2f}{row['disagreements']:>15}{row['regret']:>8.3f}"
        print(f"{name:<10}{numbers}")
    evaluations = together["evaluations"] / alone["evaluations"]
    print(f"together / alone: evaluations {evaluations:.3f}, seconds {together['seconds'] / alone['seconds']:.3f}")
    for target, is_held in found["targets"].items():
        print(f"target {target}: {'held' if is_held else 'not held'}")


def targets_of(found: dict[str, Any]) -> dict[str, bool]:
    evaluations = found["together"]["evaluations"] / found["alone"]["evaluations"]
    return {
        "evaluations together at most a third (for 4 ranks or more)": evaluations <= 1 / 3,
        "no disagreements together": found["together"]["disagreements"] == 0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 problems")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        import torch.distributed  # noqa: F401
    except ImportError:
        print("PyTorch is not installed: pip install 'tunewise[torch]'", file=sys.stderr)
        return
    count = 3 if options.quick else 12
    with tempfile.TemporaryDirectory() as home:
        tw.configure(home=Path(home))
        found: dict[str, Any] = {"ranks": options.ranks, "problems": count, "configs": 2 * len(ROWS)}
        for name, is_together in (("alone", False), ("together", True)):
            row = job(options.ranks, count, together=is_together)
            found[name] = {**row, "regret": regret(row.pop("chosen"), count)}
            found[name].pop("chosen", None)
    found["targets"] = targets_of(found)
    if options.json:
        json.dump(found, sys.stdout)
        return
    report(found)


if __name__ == "__main__":
    main()
