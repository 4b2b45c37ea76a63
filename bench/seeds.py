"""Seeds for the C gemm: evaluations to within 5 % of the best known, with seeds and without, on measured tables.

Usage: python bench/seeds.py [--table FILE] [--shapes MxNxK,...] [--quick] [--json] [--runs N] [--budget N]

First every config of the space (where a shape is too slow for that: a sample of at least 1,000, with all seeds in it)
is timed in shuffled, interleaved rounds on the CPU clock, and the better ones again and again; configs that make the
kernel do exactly the same, because a block is larger than the matrix, share one time. The tables go into FILE, and
later runs read them from there. Then every kind of seeds is replayed on the same tables with the same random seeds:
the default is evaluated first, as in a real run, then the seeds, then what `auto` asks. A kind of seeds is a function
in KINDS.

Learned seeds come from other shapes: as many as LESSONS says, drawn at random between 1 and 2,048 in every number, of
each of which OF_A_LESSON random configs are timed; what `tunewise learn --seeds` makes of that proposes three configs.
Of a table that is a sample, only seeds that are in it can be tried.
"""

import argparse
import gzip
import json
import os
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import exp, log, prod
from pathlib import Path
from statistics import median
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from tunewise.decision import Config, Space, Timing, Trial, canonical, detect, lower_half_mean  # noqa: E402
from tunewise.errors import MissingPart  # noqa: E402
from tunewise.heuristics.case import Case  # noqa: E402
from tunewise.heuristics.registry import experts_of  # noqa: E402
from tunewise.learn.seeds import train_seeds  # noqa: E402
from tunewise.learn.store_data import from_store  # noqa: E402
from tunewise.models import Model  # noqa: E402
from tunewise.search import Seed, Seeded, make  # noqa: E402
from tunewise.store import MemoryStore  # noqa: E402
from tunewise.workloads import gemm  # noqa: E402

SHAPES = (
    *("256x256x256", "8x1024x256", "64x64x4096", "2048x16x64", "1x1024x1024", "100x100x100"),
    *("1024x8x1024", "17x500x90", "384x40x384", "32x32x32", "96x768x128", "400x400x64"),
    *("40x40x1000", "4x2000x500", "128x128x128", "2000x30x30", "700x300x90"),
)
QUICK = ("100x100x100", "17x500x90", "2048x16x64")
WITHIN, SHARE = 1.05, 0.5  # of the best known; of the evaluations that `auto` needs alone
LEAST = 1_000  # configs in a table that is not the whole space
# Samples to add, and who stays, against the best.
ROUNDS = ((3, 2.0), (9, 1.35), (16, 1.2), (32, 1.1), (64, 1.06))
SAMPLE_S = 1e-4
LUCKY = 4  # times that may be too short by chance: the next one counts as the best so far

LESSONS, OF_A_LESSON, LARGEST, FLOPS = 200, 150, 2048, (2e4, 3e8)
LESSON_ROUNDS = ((3, 1.5), (8, 1.2), (16, 1.1))
OF_A_MODEL = 3  # seeds, as many as a tuning run takes of a model

Key = tuple[Any, ...]
Lesson = Sequence[tuple[Config, float]]  # configs and their times on one shape
Lessons = Mapping[str, Lesson]  # by shape


@dataclass(frozen=True)
class Table:
    """What was measured of one shape: the time of every config, which is the same for all that do the same work."""

    shape: str
    times_s: Mapping[Key, float]

    @property
    def problem(self) -> dict[str, int]:
        """The shape as features."""
        return dict(zip("mnk", map(int, self.shape.split("x")), strict=True))

    @property
    def best_s(self) -> float:
        """The shortest time: the best known."""
        return min(self.times_s.values())

    def time_s(self, config: Config) -> float | None:
        """Return the time of a config, or None if it was not measured."""
        return self.times_s.get(work(self.problem, config))

    def space(self) -> Space:
        """Return the whole space where all of it was measured, and otherwise the part that was."""
        configs = [config for config in gemm.GEMM.space if self.time_s(config) is not None]
        if len(configs) == gemm.GEMM.space.count():
            return gemm.GEMM.space
        order = {param.name: list(param.values) for param in gemm.GEMM.space.params}
        return Space.of(configs, order)


def work(problem: Mapping[str, int], config: Mapping[str, Any]) -> Key:
    """Return what the kernel does for a config: its code, and its blocks cut to the matrices, as gemm.c does."""
    rows, columns = config["mr"], config["nv"] * config["vector"]
    mc, nc = (-(-min(block, size) // step) * step for block, size, step in (
        (config["mc"], problem["m"], rows),
        (config["nc"], problem["n"], columns),
    ))  # fmt: skip
    return (*(config[name] for name in gemm.COMPILED.names), mc, nc, min(config["kc"], problem["k"]))


# The kinds of seeds: what each proposes for a shape, best first. `model` has learned from other shapes.


def no_seeds(table: Table, model: Model | None) -> list[Seed]:
    """Return nothing: `auto` on its own."""
    return []


def expert_seeds(table: Table, model: Model | None) -> list[Seed]:
    """Return what the expert heuristics that ship for C kernels propose, in the order they are asked."""
    decision = gemm.GEMM
    problem = decision.problem(table.problem)
    case = Case(decision.derive(problem), detect(), decision.space, decision.default, decision.facts_of(problem))
    experts = [expert for expert in experts_of(decision.backend) if expert.hardware.why_not(case.hardware) is None]
    return [usable(seed, expert.name) for expert in experts for seed in expert.seeds(case)[: expert.most]]


def usable(seed: Config, by: str) -> Seed:
    """Return a seed as the session tries it: completed from the default, and repaired."""
    config = {**gemm.GEMM.default, **seed}
    legal = config if gemm.GEMM.space.why_not(config) is None else gemm.GEMM.space.repair(config)
    assert legal is not None, f"{config} cannot be repaired"
    return Seed(gemm.GEMM.space.config(legal), by, is_insisted=False)


def learned_seeds(table: Table, model: Model | None) -> list[Seed]:
    """Return what a model that has not seen the shape ranks first, of what the table can tell."""
    if model is None:
        return []
    found = (usable(model.choices[number], "learned") for number in model.rank(table.problem))
    return list(islice((seed for seed in found if table.time_s(seed.config) is not None), OF_A_MODEL))


KINDS: dict[str, Callable[[Table, Model | None], list[Seed]]] = {
    "none": no_seeds,
    "expert": expert_seeds,
    "learned": learned_seeds,
}


def taught(lessons: Lessons, shapes: Sequence[str]) -> Model:
    """Return the model that is learned from the lessons, without those of some shapes."""
    store = MemoryStore()
    for shape, lesson in lessons.items():
        if shape not in shapes:
            trials = [Trial(config, Timing((time_s,))) for config, time_s in lesson]
            store.add(gemm.GEMM.subject(gemm.GEMM.problem(Table(shape, {}).problem)), trials)
    return train_seeds(from_store(store, gemm.GEMM.name))


def drawn(count: int) -> list[str]:
    """Return shapes, equally likely on a logarithmic scale, without those that take hardly any time or very long."""
    rng, found = random.Random("lessons"), dict[str, None]()
    while len(found) < count:
        sizes = [round(exp(rng.uniform(0.0, log(LARGEST)))) for _ in "mnk"]
        if FLOPS[0] <= 2 * prod(sizes) <= FLOPS[1]:
            found["x".join(map(str, sizes))] = None
    return list(found)


def lesson(shape: str) -> Lesson:
    """Time random configs on a shape."""
    problem = Table(shape, {}).problem
    configs = {work(problem, config): config for config in gemm.GEMM.space.sample(OF_A_LESSON, random.Random(shape))}
    args = gemm.GEMM.make_inputs(problem)
    times_s = _raced(list(configs.values()), list(configs), args, shape, LESSON_ROUNDS)
    return [(config, times_s[key]) for key, config in configs.items()]


def evaluations(table: Table, space: Space, seeds: Sequence[Seed], run: int, budget: int) -> int:
    """Return the evaluations it took to come within 5 % of the best known; one more than the budget if it did not."""
    asking = Seeded(space, seeds, make("auto", space, seed=run, budget=budget), seed=run)
    config, seen = dict(gemm.GEMM.default), set[str]()
    while len(seen) < budget:
        seen.add(canonical.encode(config))
        time_s = table.time_s(config)
        assert time_s is not None
        if time_s <= WITHIN * table.best_s:
            return len(seen)
        asking.tell([Trial(config, Timing((time_s,)))])
        while canonical.encode(config) in seen:
            asked = asking.ask(1)
            if not asked:
                return budget + 1
            config = dict(asked[0])
    return budget + 1


def measured(shape: str, seconds: float) -> Table:
    """Time a shape: everything if that takes about `seconds` for the first round, otherwise a sample of the space."""
    table = Table(shape, {})
    configs = {work(table.problem, config): config for config in gemm.GEMM.space}
    args = gemm.GEMM.make_inputs(table.problem)
    default = dict(gemm.GEMM.default)
    call = partial(gemm.matmul.__wrapped__, *args, **default)
    call()  # which builds and loads it
    call_s = max(SAMPLE_S, _seconds(call, 3))
    keys = list(configs)
    most = max(LEAST, int(seconds / (1.5 * (ROUNDS[0][0] + 3) * call_s)))
    if len(keys) > most:
        always = [work(table.problem, config) for config in (default, *proposed(table))]
        keys = list(dict.fromkeys([*always, *random.Random(shape).sample(keys, most)]))
    return Table(shape, _raced([configs[key] for key in keys], keys, args, shape))


def proposed(table: Table) -> list[Config]:
    """Return what any kind of seeds that has not learned proposes for a shape."""
    return [seed.config for kind in KINDS.values() for seed in kind(table, None)]


def _raced(
    configs: Sequence[Config],
    keys: Sequence[Key],
    args: tuple[Any, ...],
    shape: str,
    rounds: Sequence[tuple[int, float]] = ROUNDS,
) -> dict[Key, float]:
    function = gemm.matmul.__wrapped__  # the bare function: nobody is asked
    calls = [partial(function, *args, **config) for config in configs]
    repeats = [max(1, int(SAMPLE_S / max(_seconds(call, 1), 1e-7))) for call in calls]
    samples: list[list[float]] = [[] for _ in keys]
    alive, rng = list(range(len(keys))), random.Random(shape)
    for more, factor in rounds:
        for _ in range(more):
            rng.shuffle(alive)
            for which in alive:
                samples[which].append(_seconds(calls[which], repeats[which]))
        times_s = [lower_half_mean(sample) for sample in samples]
        ahead = sorted(times_s[which] for which in alive)
        limit_s = factor * ahead[min(LUCKY, len(ahead) - 1)]
        alive = [which for which in alive if times_s[which] <= limit_s]
    print(f"{shape}: {len(alive)} of {len(keys)} within {factor} of the best", file=sys.stderr)
    # Whoever dropped out early has few samples, and a lucky one is no best known: it is as slow as the last finalist.
    finalists = set(alive)
    return {
        key: time_s if which in finalists else max(limit_s, time_s)
        for which, (key, time_s) in enumerate(zip(keys, times_s, strict=True))
    }


def _seconds(call: Callable[[], Any], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats


def machine() -> str:
    """Return what a table is of: the CPU, its instruction sets, and the kernel as it was built."""
    return canonical.encode([detect().name, list(detect().isa), sorted(gemm.KERNEL.facts().items())])


def load(path: Path | None) -> tuple[dict[str, Table], dict[str, Lesson]]:
    """Return the tables and lessons of a file, by shape; none where there is no file."""
    if path is None or not path.is_file():
        return {}, {}
    held = json.loads(gzip.decompress(path.read_bytes()))
    if held["machine"] != machine():
        raise SystemExit(f"{path} was measured on {held['machine']}, not here; give another --table")
    tables = {shape: Table(shape, {tuple(key): s for key, s in rows}) for shape, rows in held["tables"].items()}
    return tables, held.get("lessons", {})


def save(path: Path, tables: Mapping[str, Table], lessons: Lessons) -> None:
    """Write tables and lessons to a file."""
    rows = {shape: [[list(key), s] for key, s in table.times_s.items()] for shape, table in tables.items()}
    held = {"machine": machine(), "tables": rows, "lessons": lessons}
    path.write_bytes(gzip.compress(json.dumps(held).encode(), 6))


def replayed(tables: Sequence[Table], model: Model, runs: int, budget: int) -> list[dict[str, Any]]:
    """Return, for every shape, the first seed's place and the evaluations that each kind of seeds took."""
    rows = []
    for table in tables:
        space = table.space()
        row: dict[str, Any] = {"shape": table.shape, "configs": len(table.times_s), "best_us": 1e6 * table.best_s}
        row["default"] = (table.time_s(gemm.GEMM.default) or 0) / table.best_s
        for kind, propose in KINDS.items():
            seeds = propose(table, model)
            times_s = [time_s for seed in seeds if (time_s := table.time_s(seed.config)) is not None]
            needed = [evaluations(table, space, seeds, run, budget) for run in range(runs)]
            row[kind] = {"needed": needed, "median": median(needed), "seeds": [s / table.best_s for s in times_s]}
        rows.append(row)
    return rows


def show(rows: Sequence[Mapping[str, Any]], budget: int) -> None:
    """Print a line a shape."""
    print("median evaluations to within 5 % of the best known; seeds as time / best known, in the order they are tried")
    print(
        f"{'shape':<15}{'works':>7}{'best us':>9}{'default':>8}" + "".join(f"{kind:>8}" for kind in KINDS) + "  seeds"
    )
    for row in rows:
        needed = "".join(_count(row[kind]["median"], budget) for kind in KINDS)
        seeds = "  ".join(" ".join(f"{ratio:.2f}" for ratio in row[kind]["seeds"]) for kind in KINDS)
        print(f"{row['shape']:<15}{row['configs']:>7}{row['best_us']:>9.1f}{row['default']:>8.2f}{needed}{seeds}")


def _count(needed: float, budget: int) -> str:
    return f"{'>' if needed > budget else ''}{min(needed, budget):g}".rjust(8)


def verdicts(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return, for every kind, its evaluations over those without seeds: of geometric means over shapes and runs."""
    means = {kind: exp(_mean([log(n) for row in rows for n in row[kind]["needed"]])) for kind in KINDS}
    return {kind: mean / means["none"] for kind, mean in means.items()}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three small shapes, 3 runs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--table", type=Path, help="where measured tables are kept and read")
    parser.add_argument("--shapes", help="such as 64x64x64,1x512x512")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--seconds", type=float, help="for the first round of a table")
    options = parser.parse_args()
    options.runs = options.runs or (3 if options.quick else 10)
    options.lessons = 40 if options.quick else LESSONS
    options.seconds = options.seconds or (5 if options.quick else 30)
    options.shapes = options.shapes.split(",") if options.shapes else list(QUICK if options.quick else SHAPES)
    return options


def main() -> None:
    options = parsed()
    tables, lessons = load(options.table)
    for shape in options.shapes:
        if shape not in tables or any(tables[shape].time_s(config) is None for config in proposed(tables[shape])):
            tables[shape] = measured(shape, options.seconds)
            if options.table:
                save(options.table, tables, lessons)
    for shape in drawn(options.lessons):
        if shape not in lessons:
            lessons[shape] = lesson(shape)
    if options.table:
        save(options.table, tables, lessons)
    model = taught({shape: lessons[shape] for shape in drawn(options.lessons)}, options.shapes)
    rows = replayed([tables[shape] for shape in options.shapes], model, options.runs, options.budget)
    shares = verdicts(rows)
    targets = {
        f"{kind} seeds need {share:.2f} of the evaluations of auto, at most {SHARE:g}": share <= SHARE
        for kind, share in shares.items()
        if kind != "none"
    }
    if options.json:
        told = {"rows": rows, "shares": shares, "runs": options.runs, "budget": options.budget, "targets": targets}
        json.dump(told, sys.stdout)
        return
    show(rows, options.budget)
    for target, is_held in targets.items():
        print(f"target {target}: {'held' if is_held else 'not held'}")


if __name__ == "__main__":
    try:
        main()
    except MissingPart as error:
        print(error, file=sys.stderr)
