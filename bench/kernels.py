"""The built-in C kernels: our default beside numpy on one thread, and how much better a config of the space can be.

For every kernel and several shapes, the default, numpy and a sample of the space take turns in shuffled rounds on the
CPU clock; a time is the mean of the lower half of its samples. Printed are default / numpy (below 1: the default is
faster) and headroom = default / best of the sample. With --quick: fewer configs and shapes. With --json: one object.
"""

import argparse
import importlib
import json
import os
import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tunewise.decision import lower_half_mean
from tunewise.errors import MissingPart
from tunewise.workloads import find

HONEST_GEMM = 1.25  # the default's time on a square product, against numpy's

FUNCTION = {"gemm": "matmul", "conv2d": "correlate", "softmax": "softmax"}
SHAPES: dict[str, list[dict[str, int]]] = {
    "gemm": [
        {"m": m, "n": n, "k": k}
        for m, n, k in [
            *((256, 256, 256), (8, 1024, 256), (64, 64, 4096), (2048, 16, 64), (1, 1024, 1024)),
            *((512, 512, 512), (100, 100, 100), (1024, 8, 1024), (17, 500, 90), (384, 40, 384)),
        ]
    ],
    "conv2d": [
        {"h": h, "w": w, "fh": fh, "fw": fw}
        for h, w, fh, fw in [
            *((256, 256, 3, 3), (128, 128, 7, 7), (200, 200, 15, 15), (1024, 1024, 3, 3)),
            *((64, 64, 5, 5), (32, 4096, 1, 9), (512, 40, 9, 1)),
        ]
    ],
    "softmax": [
        {"rows": rows, "columns": columns}
        for rows, columns in [(1024, 64), (64, 1000), (4096, 10), (1, 262144), (64, 4096), (2048, 17), (512, 2048)]
    ],
}


def matmul(a: Any, b: Any) -> Any:
    return a @ b


def correlate(image: Any, kernel: Any) -> Any:
    import numpy as np

    height, width = (image.shape[axis] - kernel.shape[axis] + 1 for axis in (0, 1))
    out = np.zeros((height, width), np.float32)
    for (dy, dx), weight in np.ndenumerate(kernel):
        out += weight * image[dy : dy + height, dx : dx + width]
    return out


def softmax(x: Any) -> Any:
    import numpy as np

    e = np.exp(x - x.max(axis=1, keepdims=True))
    e /= e.sum(axis=1, keepdims=True)
    return e


NUMPY: dict[str, Callable[..., Any]] = {"gemm": matmul, "conv2d": correlate, "softmax": softmax}


def time_in_turns(calls: list[Callable[[], object]], rounds: int, cutoff: float = 3.0) -> list[float]:
    """Return seconds per call; what is beyond `cutoff` times the best after the first round is not run again."""
    samples: list[list[float]] = [[] for _ in calls]
    repeats = [max(1, int(2e-4 / max(_seconds(call, 1), 1e-7))) for call in calls]
    alive = list(range(len(calls)))
    for turn in range(rounds):
        random.shuffle(alive)
        for which in alive:
            samples[which].append(_seconds(calls[which], repeats[which]))
        if turn == 1:
            best = min(min(s) for s in samples)
            alive = [which for which in alive if which < 2 or min(samples[which]) <= cutoff * best]
    return [lower_half_mean(s) for s in samples]


def _seconds(call: Callable[[], object], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats


def measure(kernel: str, shape: dict[str, int], configs: list[dict[str, Any]], rounds: int) -> dict[str, Any]:
    decision = find(kernel)
    function = getattr(_module(kernel), FUNCTION[kernel]).__wrapped__  # the bare function: nobody is asked
    args = decision.make_inputs(shape)
    default = dict(decision.default)
    calls = [lambda: NUMPY[kernel](*args), lambda: function(*args, **default)]
    calls += [lambda config=config: function(*args, **config) for config in configs]
    others_s = time_in_turns(calls, rounds)[2:]
    # The best of many noisy times flatters itself: time the few best again, beside the default.
    finalists = sorted(range(len(configs)), key=others_s.__getitem__)[:5]
    numpy_s, default_s, *finals_s = time_in_turns([calls[0], calls[1], *(calls[2 + f] for f in finalists)], 2 * rounds)
    best_s = min(default_s, *finals_s)
    best = default if best_s == default_s else configs[finalists[finals_s.index(best_s)]]
    return {
        "kernel": kernel,
        "shape": shape,
        "default_us": default_s * 1e6,
        "default_over_numpy": default_s / numpy_s,
        "headroom": default_s / best_s,
        "best": best,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # numpy's library reads them once, when it is imported
    random.seed(0)
    count, rounds, shapes = (24, 7, 3) if options.quick else (100, 11, 99)
    rows = []
    for kernel in SHAPES:
        decision = find(kernel)
        configs = decision.space.sample(count, seed=0)
        start = time.perf_counter()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(_module(kernel).COMPILED.build, [dict(decision.default), *configs]))
        build_s = time.perf_counter() - start
        if not options.json:
            print(f"{kernel}: {decision.space.count()} configs, {len(configs)} sampled, ready in {build_s:.1f} s")
        for shape in SHAPES[kernel][:shapes]:
            row = measure(kernel, shape, configs, rounds)
            rows.append(row)
            if not options.json:
                _show(row)
    square = rows[0]["default_over_numpy"]
    target, is_held = f"default gemm / numpy <= {HONEST_GEMM} on 256 x 256 x 256", bool(square <= HONEST_GEMM)
    if options.json:
        print(json.dumps({"rows": rows, "targets": {target: is_held}}))
    else:
        print(f"target {target}: {'held' if is_held else 'not held'} ({square:.2f})")


def _module(kernel: str) -> Any:
    return importlib.import_module(f"tunewise.workloads.{kernel}")


def _show(row: dict[str, Any]) -> None:
    shape = "x".join(str(size) for size in row["shape"].values())
    best = " ".join(f"{name}={value}" for name, value in row["best"].items())
    print(
        f"  {shape:>16}  default {row['default_us']:9.1f} us  default/numpy {row['default_over_numpy']:5.2f}"
        f"  headroom {row['headroom']:5.2f}  best: {best}",
        flush=True,
    )


if __name__ == "__main__":
    try:
        main()
    except MissingPart as error:
        print(error, file=sys.stderr)
