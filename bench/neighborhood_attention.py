"""Neighborhood attention, tuned at its first call, against its default tiles and the best tiles of an exhaustive run.

64 by 64 tokens, 2 heads of width 32, float32, one thread, kernel sizes 7, 15 and 31, dilation 1 and 2, forward pass
(and with --backward the backward pass). For each problem the switch is turned on and the op called once: that tunes it
with the standard effort. Then all configs there are race in the same process, by turns: who is far behind drops out,
and the tuned and the default tiles stay in to the end. The tuned tiles meet the default in the paired test of tuning.
Results are compared with the plain reference.

Usage: python bench/neighborhood_attention.py [--quick] [--backward] [--json]
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

if find_spec("torch") is None:
    print("PyTorch is not installed: pip install 'tunewise[torch]'", file=sys.stderr)
    raise SystemExit(0)

import neighborhood_attention as na
import torch
import torch._inductor.config as inductor_config
from neighborhood_attention import tuning
from neighborhood_attention.window import axes_of

import tunewise as tw
from tunewise.decision import canonical, lower_half_mean
from tunewise.measure.compare import compare

GRID, HEADS, WIDTH = (64, 64), 2, 32
KERNELS, DILATIONS = (7, 15, 31), (1, 2)
ROUNDS = ((2, 1.3), (4, 1.12), (8, 1.05), (16, 0.0))  # samples of everybody, and who may go on
MUST, GOAL, RIGHT = 1.05, 1.8, 1e-4


def run_s(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def race(runs: dict[str, Callable[[], Any]], kept: set[str]) -> dict[str, float]:
    """Return the seconds of those that reached the last round; `kept` always do."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    chance, alive = random.Random(0), list(runs)
    for samples, limit in ROUNDS:
        for _ in range(samples):
            chance.shuffle(alive)
            for name in alive:
                taken[name].append(run_s(runs[name]))
        times = {name: lower_half_mean(taken[name]) for name in alive}
        if limit:
            alive = [name for name in alive if name in kept or times[name] <= limit * min(times.values())]
    return times


def paired(incumbent: Callable[[], Any], challenger: Callable[[], Any]) -> Any:
    def pair(turns: int | None) -> tuple[float, float]:
        both: tuple[list[float], list[float]] = ([], [])
        for turn in range(turns or 3):
            for which in (0, 1) if turn % 2 else (1, 0):
                both[which].append(run_s((incumbent, challenger)[which]))
        return lower_half_mean(both[0]), lower_half_mean(both[1])

    return compare(pair)


def judged(way: tw.Implementation, args: tuple[Any, ...], is_quick: bool) -> dict[str, Any]:
    """Tune one problem by one call, and return how the answer does beside all other configs."""
    start = time.monotonic()
    answer = way.decide(*args)
    tuning_s = time.monotonic() - start
    assert answer.rung == "memory", answer
    default, tuned = dict(way.decision.default), dict(answer.config)

    def of(config: dict[str, Any]) -> Callable[[], Any]:
        return lambda: way._function(*args, **config)

    configs = [dict(config) for config in way.decision.space if not is_quick or is_plain(config)]
    named = {canonical.encode(config): config for config in [default, tuned, *configs]}
    runs = {name: of(config) for name, config in named.items()}
    for run in runs.values():
        run()  # compiles
    names = canonical.encode(default), canonical.encode(tuned)
    times = race(runs, set(names))
    best = min(times, key=times.__getitem__)
    gain = paired(runs[names[0]], runs[names[1]])
    loss = paired(runs[names[1]], runs[names[0]])
    return {
        "tuned": tuned,
        "best": named[best],
        "configs": len(runs),
        "tuning_s": tuning_s,
        "tuned_s": times[names[1]],
        "regret": times[names[1]] / times[best],
        "speedup": gain.gain,
        "p_value": gain.p_value,
        "slower": bool(loss.is_win),
    }


def is_plain(config: Any) -> bool:
    """Return whether queries and keys have the same tiles, or keys are not split."""
    if "kv_split" in config:
        return bool(config["kv_split"] == 1)
    q_tile, kv_tile = tuning.forward_tiles(config)
    return q_tile == kv_tile


def error(kernel: int, dilation: int, config: dict[str, Any]) -> float:
    """Return how far results and gradients are from the reference, by the tiles of a config."""
    torch.manual_seed(0)
    tensors = [torch.randn(1, *GRID, HEADS, WIDTH, requires_grad=True) for _ in range(3)]
    grad = torch.randn(1, *GRID, HEADS, WIDTH)
    found = []
    for attention, shapes in ((na.na2d, tile_shapes(config)), (na.reference, {})):
        out = attention(*tensors, kernel, dilation, **shapes)
        found.append([out.detach(), *torch.autograd.grad(out, tensors, grad)])
    return max(float((ours - theirs).abs().max()) for ours, theirs in zip(*found, strict=True))


def tile_shapes(config: dict[str, Any]) -> dict[str, Any]:
    if "kv_split" in config:
        tile, kv_split = tuning.backward_tiles(config)
        return {"backward_q_tile_shape": tile, "backward_kv_splits": kv_split}
    return dict(zip(("q_tile_shape", "kv_tile_shape"), tuning.forward_tiles(config), strict=True))


def problem(kernel: int, dilation: int) -> dict[str, Any]:
    axes = axes_of(GRID, kernel, dilation, False)
    return tuning.features(torch.empty(1, 1, HEADS, WIDTH), torch.empty(WIDTH), axes)


def report(title: str, row: dict[str, Any], to: TextIO) -> None:
    slower = ", SLOWER than the default" if row["slower"] else ""
    print(
        f"  {title:36} tuned / best {row['regret']:.3f}  default / tuned {row['speedup']:.2f} (p {row['p_value']:.4f})"
        f"  {row['tuned_s'] * 1e3:6.1f} ms  {_sides(row['tuned'])} (best {_sides(row['best'])} of {row['configs']})"
        f"  first call {row['tuning_s']:.0f} s{slower}",
        file=to,
        flush=True,
    )


def _sides(config: dict[str, int]) -> str:
    return "-".join(str(side) for side in config.values())


def targets_of(rows: dict[str, dict[str, Any]]) -> dict[str, bool]:
    ahead = {title: row for title, row in rows.items() if title.startswith("forward")}
    small = min(row["speedup"] for title, row in ahead.items() if "kernel 7" in title)
    worst = max(row["regret"] for row in ahead.values())
    off = max(row["error"] for row in rows.values())
    slower = sum(row["slower"] for row in rows.values())
    return {
        f"tuned / best <= {MUST} on each forward problem ({worst:.3f} at worst)": worst <= MUST,
        "never slower than the default by the paired test": slower == 0,
        f"kernel 7 at least {GOAL}x the default ({small:.2f})": small >= GOAL,
        f"results and gradients within {RIGHT} of the reference ({off:.1e})": off <= RIGHT,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="kernel 7 alone, against tiles that are equal for keys")
    parser.add_argument("--backward", action="store_true", help="the backward pass too")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    inductor_config.cpp.threads = 1
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as home:
        tw.configure(home=home)
        na.use_autotuner(forward_pass=True, backward_pass=True)
        passes = {"forward": tuning.forward_pass(2), **({"backward": tuning.backward_pass(2)} if args.backward else {})}
        for kernel in KERNELS[:1] if args.quick else KERNELS:
            for dilation in DILATIONS[:1] if args.quick else DILATIONS:
                for name, way in passes.items():
                    title = f"{name}, kernel {kernel}, dilation {dilation}"
                    inputs = way.decision.make_inputs(problem(kernel, dilation))
                    row = judged(way, inputs, args.quick)
                    with na.autotuning(False, False):
                        row["error"] = error(kernel, dilation, row["tuned"])
                    report(title, row, sys.stderr if args.json else sys.stdout)
                    rows[title] = row
    targets = targets_of(rows)
    if args.json:
        print(json.dumps({"problems": rows, "targets": targets}))
        return
    for target, is_held in targets.items():
        print(f"target {target}: {'held' if is_held else 'not held'}")


if __name__ == "__main__":
    main()
