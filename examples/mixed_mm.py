"""One of several kernels: floats times weights kept as 8-bit whole numbers, with a scale for every group of rows.

The plain way turns all weights into scaled floats first. For a few rows it is cheaper to multiply each group with bare
weights and to scale the small results; large weights are better turned by parts, which stay in the cache.

Run it:    python examples/mixed_mm.py --num-samples 150
It collects a log, trains a heuristic, generates code, uses it, and says what that was worth on problems never seen.
"""

import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import geometric_mean

import numpy as np

import tunewise as tw
from tunewise.autoheuristic import BenchmarkRunner, time_ms

GROUP = 32  # rows of weights that share their scales


def dequantise(x, weights, scales):
    return x @ _floats(weights, scales)


def by_group(x, weights, scales):
    groups = x.reshape(len(x), -1, GROUP).transpose(1, 0, 2)
    parts = groups @ weights.reshape(-1, GROUP, weights.shape[1]).astype(np.float32)
    return np.einsum("gmn,gn->mn", parts, scales)


def by_rows(x, weights, scales, step=8):
    result = np.zeros((len(x), weights.shape[1]), np.float32)
    for g in range(0, len(scales), step):
        rows = slice(g * GROUP, (g + step) * GROUP)
        result += x[:, rows] @ _floats(weights[rows], scales[g : g + step])
    return result


def by_columns(x, weights, scales, step=256):
    result = np.empty((len(x), weights.shape[1]), np.float32)
    for j in range(0, weights.shape[1], step):
        columns = slice(j, j + step)
        result[:, columns] = x @ _floats(weights[:, columns], scales[:, columns])
    return result


def _floats(weights, scales):
    scaled = weights.reshape(-1, GROUP, weights.shape[1]) * scales[:, None, :]
    return scaled.reshape(weights.shape)


KERNELS = {kernel.__name__: kernel for kernel in (dequantise, by_group, by_rows, by_columns)}


class MixedMM(BenchmarkRunner):
    """Collects how long every kernel takes on shapes drawn at random."""

    def __init__(self):
        super().__init__("mixed_mm")

    def create_input(self):
        """Return floats, weights and scales of a shape drawn at random."""
        m, groups, n = (round(2 ** random.uniform(low, high)) for low, high in ((0, 8), (0, 6), (5, 11)))
        x = np.random.standard_normal((m, groups * GROUP)).astype(np.float32)
        weights = np.random.randint(-127, 128, (groups * GROUP, n), dtype=np.int8)
        return x, weights, np.random.uniform(0.5, 2, (groups, n)).astype(np.float32)

    def get_features(self, x, weights, scales):
        """Return the shape."""
        return {"m": x.shape[0], "k": x.shape[1], "n": weights.shape[1]}

    def get_choices(self, *args):
        """Return the kernels' names, the fallback first."""
        return list(KERNELS)

    def run_choice(self, choice, *args):
        """Multiply by one kernel."""
        return KERNELS[choice](*args)


def learn(log, place):
    model, code = place / "mixed_mm.json", place / "mixed_mm.py"
    tunewise("train", log, "--default", "dequantise", "--out", model)
    tunewise("generate", model, "--lang", "python", "--out", code)
    return code


def compare(code, samples):
    """Print what each kernel costs against the best, and what the generated code costs, on problems never seen."""
    (heuristic,) = tw.load_heuristic(code)
    runner, regrets = MixedMM(), {who: [] for who in [*KERNELS, "learned"]}
    random.seed("unseen")
    for _ in range(samples):
        args = runner.create_input()
        rounds = [{name: time_ms(kernel, *args) for name, kernel in KERNELS.items()} for _ in range(2)]
        times = {name: min(taken[name] for taken in rounds) for name in KERNELS}
        chosen = heuristic.choose(runner.get_features(*args)) or {"choice": "dequantise"}
        for who, kernel in zip(regrets, [*KERNELS, chosen["choice"]], strict=True):
            regrets[who].append(times[kernel] / min(times.values()))
    for who, values in regrets.items():
        print(f"{who:12} {geometric_mean(values):6.3f} of the best time, {max(values):6.2f} at worst")


def tunewise(*words):
    subprocess.run([sys.executable, "-m", "tunewise", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    runner = MixedMM()
    runner.parser.set_defaults(num_samples=60, num_reps=2)
    with tempfile.TemporaryDirectory() as place:
        runner.parser.set_defaults(out=str(Path(place) / "log.txt"))
        log = runner.run()
        compare(learn(log, Path(place)), max(10, runner.args.num_samples // 3))
