"""How fast a deep model scores candidates: ours by numpy against the same net as a PyTorch module, on one core.

A net is trained on a made-up tiled matrix product, then asked about problems it has not seen, each with 500 candidates.
All ways start from the features of a problem and end with a score for every candidate:

- ours: the `Scorer` that `Model.rank` asks; what the candidates alone tell was worked out when the model was loaded;
- module: the parameters of the candidates are put into arrays, the derived columns are worked out by numpy for all
  candidates at once, by the very formulas of the model, and a `torch.nn.Module` with the scaling inside is asked in
  eval mode under `inference_mode`: from problem and configs to scores, with nothing kept;
- module, kept arrays: the same with the parameters lying ready in arrays: the strongest rival, and the goal;
- module from rows: as `module`, the columns of each candidate worked out one after the other, as scripts often do;
- forward only: the module with all columns lying ready as a tensor: no features at all;
- layers only: its linear layers with the scaled inputs lying ready;
- plain Python: what ours falls back to where numpy is not installed.

All take turns at 20 problems each, on one thread; shown is the mean of the lower half, by the thread's CPU clock. With
one problem a turn, each way finds the caches full of the others' numbers: that is printed too.

Usage: python bench/serve.py [--quick] [--json]
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from itertools import product
from math import ceil
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402  # after the number of threads is set

from tunewise.decision import Config, lower_half_mean  # noqa: E402
from tunewise.errors import MissingPart  # noqa: E402
from tunewise.formats.dataset import TIMED, Column, DataSet, Rows  # noqa: E402
from tunewise.learn.module import module  # noqa: E402
from tunewise.learn.options import Training  # noqa: E402
from tunewise.learn.training import train  # noqa: E402
from tunewise.models import Model  # noqa: E402
from tunewise.models.scoring import Scorer  # noqa: E402

CANDIDATES, TARGET, CLOSE = 500, 5.0, 1e-4
CONFIGS: tuple[Config, ...] = tuple(
    {"block_m": m, "block_n": n, "block_k": k, "stages": stages, "warps": warps}
    for m, n, k, stages, warps in product((16, 32, 64, 128), (16, 32, 64, 128, 256), (16, 32, 64), (2, 3, 4), (2, 4, 8))
)[:CANDIDATES]


def seconds(m: float, n: float, k: float, is_half: float, config: Config) -> float:
    tile_m, tile_n, tile_k = (int(config[name]) for name in ("block_m", "block_n", "block_k"))
    waves = ceil(ceil(m / tile_m) * ceil(n / tile_n) / 108)
    size = tile_m * tile_n * ceil(k / tile_k) * tile_k
    speed = min(tile_m * tile_n / int(config["warps"]), 2048) ** 0.3 * (1 + 0.1 * int(config["stages"])) * (1 + is_half)
    return 5e-6 + waves * size * 1e-10 / speed * (1.5 if tile_m * tile_n * int(config["stages"]) > 65536 else 1)


def measured(problems: int) -> DataSet:
    chance = np.random.default_rng(0)
    sizes = np.round(np.exp(chance.uniform(np.log(16), np.log(8192), (problems, 3))))
    half = chance.integers(0, 2, problems).astype(np.float64)
    problem, config = (part.ravel() for part in np.mgrid[:problems, : len(CONFIGS)])
    times = np.array([seconds(*sizes[p], half[p], CONFIGS[c]) for p, c in zip(problem, config, strict=True)])
    times *= np.exp(0.02 * np.abs(chance.standard_normal(len(times))))
    rows = Rows(problem, config, np.full(len(times), TIMED, dtype=np.int8), times, np.arange(len(times) + 1))
    features = (
        *(Column(name, sizes[:, n]) for n, name in enumerate("mnk")),
        Column("dtype", half, ("float32", "half")),
    )
    return DataSet("made-up mm", features, CONFIGS, rows, default=0)


def ways_of(model: Model) -> dict[str, Callable[[dict[str, Any]], Any]]:
    """Return what scores a problem, by name; what depends on the candidates alone is made beforehand on every side."""
    import torch

    torch.set_num_threads(1)
    columns, net, served = model.columns, model.body, module(model.body)  # type: ignore[arg-type]
    settings = [columns.setting(choice) for choice in model.choices]
    ready = list(np.array(settings).T)
    scorer = Scorer(model.body, columns, model.choices)  # type: ignore[arg-type]
    first = columns.known(PROBLEM)
    assert first is not None
    by_rows = np.array([columns.row(first, setting) for setting in settings])
    tensor = torch.from_numpy(by_rows)
    scaled = served[0](tensor)  # type: ignore[union-attr]

    def by_module(problem: dict[str, Any]) -> Any:
        return by_arrays(problem, list(np.array([columns.setting(choice) for choice in model.choices]).T))

    def kept_arrays(problem: dict[str, Any]) -> Any:
        return by_arrays(problem, ready)

    def by_arrays(problem: dict[str, Any], given: list[Any]) -> Any:
        known = columns.known(problem)
        assert known is not None
        every = np.empty((len(columns.inputs) + len(columns.derived), len(settings)))
        for number, column in enumerate(columns.row(known, given)):  # type: ignore[arg-type]  # arrays, as in training
            every[number] = column
        with torch.inference_mode():
            return served(torch.from_numpy(every).T).numpy()

    def from_rows(problem: dict[str, Any]) -> Any:
        known = columns.known(problem)
        assert known is not None
        with torch.inference_mode():
            return served(torch.tensor([columns.row(known, one) for one in settings], dtype=torch.float64)).numpy()

    def ours(problem: dict[str, Any]) -> Any:
        known = columns.known(problem)
        assert known is not None
        return scorer.guesses(known)

    def forward(problem: dict[str, Any]) -> Any:
        with torch.inference_mode():
            return served(tensor).numpy()

    def layers(problem: dict[str, Any]) -> Any:
        with torch.inference_mode():
            return served[1:](scaled).numpy()

    def plain(problem: dict[str, Any]) -> Any:
        known = columns.known(problem)
        return [net.guess(columns.row(known, one)) for one in settings]  # type: ignore[union-attr, arg-type]

    modules = {"module": by_module, KEPT: kept_arrays, "module from rows": from_rows}
    return {"ours": ours, **modules, "forward only": forward, "layers only": layers, "plain Python": plain}


PROBLEM = {"m": 500, "n": 3000, "k": 1024, "dtype": "half"}
KEPT = "module, kept arrays"
COSTLY = ("module from rows", "plain Python")  # asked once a turn
ROW = 20  # problems a turn: one alone would find the other ways' numbers in the caches


def timed(
    ways: dict[str, Callable[[dict[str, Any]], Any]], problems: list[dict[str, Any]], row: int
) -> dict[str, float]:
    """Return the CPU seconds of one scoring: the ways take turns at `row` problems each; mean of the lower half."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for first in range(0, len(problems), row):
        for name, way in ways.items():
            some = problems[first : first + (1 if name in COSTLY else row)]
            start = time.thread_time()
            for problem in some:
                way(problem)
            taken[name].append((time.thread_time() - start) / len(some))
    return {name: lower_half_mean(times) for name, times in taken.items()}


def asked(count: int) -> list[dict[str, Any]]:
    chance = np.random.default_rng(1)
    sizes = np.round(np.exp(chance.uniform(np.log(16), np.log(8192), (count, 3)))).astype(int).tolist()
    return [{"m": m, "n": n, "k": k, "dtype": ("float32", "half")[i % 2]} for i, (m, n, k) in enumerate(sizes)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer problems to learn from and to ask about")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    model = train(
        measured(20 if options.quick else 60), Training(contenders=CANDIDATES, always_included=CONFIGS), "net"
    )
    ways = ways_of(model)
    problems = asked(200 if options.quick else 1000)
    compared = ("ours", "module", KEPT, "module from rows")
    scores = [{name: np.array(ways[name](problem)) for name in compared} for problem in problems[:20]]
    apart = max(float(np.abs(s["ours"] - s[name]).max()) for s in scores for name in compared)
    timed(ways, problems[:ROW], ROW)
    taken = timed(ways, problems, ROW)
    cold = timed({name: ways[name] for name in ("ours", KEPT)}, problems, 1)
    ratios = {name: taken[name] / taken["ours"] for name in taken if name != "ours"}
    targets = {
        f"{CANDIDATES} candidates {ratios['module']:.1f}x as fast as by the module, at least {TARGET:g}x": ratios[
            "module"
        ]
        >= TARGET,
        f"{ratios[KEPT]:.1f}x as fast where the module finds its arrays ready, at least {TARGET:g}x (goal)": ratios[
            KEPT
        ]
        >= TARGET,
        f"scores {apart:.1e} apart, at most {CLOSE:g}": apart <= CLOSE,
    }
    net = model.body
    shape = {"candidates": len(model.choices), "inputs": len(net.scales), "derived": len(model.columns.derived)}  # type: ignore[union-attr]
    if options.json:
        print(
            json.dumps({"model": shape, "seconds": taken, "cold": cold, "ratios": ratios, "targets": targets}, indent=2)
        )
        return
    print(", ".join(f"{number} {name}" for name, number in shape.items()))
    for name, second in taken.items():
        print(f"{name:20} {second * 1e6:10.1f} us  {second / taken['ours']:8.2f}x ours")
    alone, rival = cold["ours"], cold[KEPT]
    print(f"one problem a turn, caches cold: ours {alone * 1e6:.1f} us, {KEPT} {rival / alone:.2f}x ours")
    for text, held in targets.items():
        print(f"target {text}: {'held' if held else 'not held'}")


if __name__ == "__main__":
    try:
        main()
    except MissingPart as error:
        print(error, file=sys.stderr)
