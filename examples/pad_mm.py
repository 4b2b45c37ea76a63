"""Pad a matrix or not: products of whole numbers, where rows a power of two apart fight for the same cache lines.

numpy multiplies whole numbers in plain loops that walk down the columns of the second matrix. A copy of it with longer
rows takes them apart, and a transposed copy makes each walk a straight one; but a copy costs time too.

Run it:    python examples/pad_mm.py --samples 150
It collects a log, trains a heuristic, generates code, uses it, and says what that was worth on problems never seen.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import geometric_mean

import numpy as np

import tunewise as tw
from tunewise.autoheuristic import AHContext, AutoHeuristic, LocalFeedback, switches, time_ms

NAME = "pad_mm"
CHOICES = ["plain", "pad", "transpose"]


def multiply(choice, a, b):
    if choice == "pad":
        apart = np.empty((b.shape[0], b.shape[1] + 16), b.dtype)
        apart[:, : b.shape[1]] = b
        b = apart[:, : b.shape[1]]
    elif choice == "transpose":
        b = np.asfortranarray(b)
    return a @ b


def question(a, b):
    """Return the choice to be made; step 1 of AutoHeuristic's users."""
    context = AHContext()
    context.add_feature("m", a.shape[0])
    context.add_feature("k", a.shape[1])
    context.add_feature("n", b.shape[1])
    context.add_feature("row_bytes", b.strides[0])
    feedback = LocalFeedback(lambda choice: time_ms(multiply, choice, a, b))
    return AutoHeuristic(lambda: "plain", CHOICES, feedback, context, NAME)


def pad_mm(a, b):
    return multiply(question(a, b).get_choice(), a, b)


def problem(number):
    """Return two matrices: half of them as wide as a power of two, as matrices often are."""
    chance = random.Random(number)
    m = round(2 ** chance.uniform(0, 5))
    k, n = (chance.choice([2 ** chance.randint(6, 10), round(2 ** chance.uniform(6, 9.5))]) for _ in "kn")
    values = np.random.default_rng(number)
    return tuple(values.integers(-99, 99, shape) for shape in ((m, k), (k, n)))


def collect(log, samples):
    """Step 2: run with collecting on. TUNEWISE_COLLECT=pad_mm TUNEWISE_LOG_PATH=... does the same from outside."""
    with switches(collect=NAME, log_path=log, repeats=2):
        for number in range(samples):
            pad_mm(*problem(number))


def learn(log, place):
    """Step 3: train and generate, as anybody would on the command line."""
    model, code = place / "pad_mm.json", place / "pad_mm.py"
    tunewise("train", log, "--name", NAME, "--default", "plain", "--out", model)
    tunewise("generate", model, "--lang", "python", "--out", code)
    return code


def compare(code, samples):
    """Step 4: use it, on problems that no training has seen, and print what each way costs against the best."""
    tw.load_heuristic(code)
    regrets = {"plain, the fallback": [], "pad always": [], "transpose always": [], "learned": []}
    for number in range(10_000, 10_000 + samples):
        a, b = problem(number)
        rounds = [{choice: time_ms(multiply, choice, a, b) for choice in CHOICES} for _ in range(2)]
        times = {choice: min(taken[choice] for taken in rounds) for choice in CHOICES}
        with switches(use=NAME):
            chosen = question(a, b).get_choice()
        for who, choice in zip(regrets, [*CHOICES, chosen], strict=True):
            regrets[who].append(times[choice] / min(times.values()))
    for who, values in regrets.items():
        print(f"{who:20} {geometric_mean(values):6.3f} of the best time, {max(values):6.2f} at worst")


def tunewise(*words):
    subprocess.run([sys.executable, "-m", "tunewise", *map(str, words)], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "log.txt"
        collect(log, options.samples)
        compare(learn(log, Path(place)), max(10, options.samples // 3))
