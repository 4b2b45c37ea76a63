"""A second machine: evaluations to within 5 % of the optimum, beginning with a first machine's memory and without it.

Usage: python bench/second_machine.py [--quick] [--json] [--seeds N] [--budget N] [--first N] [--postgres] [--jobs N]

The recorded spaces lie in `spaces/` of the folder that TUNEWISE_DATA names. The first machine tunes a kernel by an
ordinary run of `--first` evaluations and keeps it in a store, an SQLite file or with --postgres a server's database.
The second one has another hardware id and an empty store of its own over the first one's, and is counted until its best
is within 5 % of what was recorded as its optimum; runs that do not get there count as the budget. Two readings:

same space      the second machine has another id, and measures exactly what the first one did
another device  the second machine is another recorded device of the same kernel, every ordered pair of them

Alone is the same run with the same seed over an empty store. In all runs the default, which is the config of median
time, is the first evaluation. Given are medians over seeds, of the second machine and alone.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from math import exp, log
from pathlib import Path
from statistics import median

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from tunewise.decision import Declaration, Hardware, Problem, Subject, Timing, environment  # noqa: E402
from tunewise.errors import MissingPart  # noqa: E402
from tunewise.formats.recorded import Recording, read  # noqa: E402
from tunewise.measure import Replay, Work  # noqa: E402
from tunewise.session import events  # noqa: E402
from tunewise.session.plan import Plan, Task  # noqa: E402
from tunewise.session.tune import tune  # noqa: E402
from tunewise.store import LayeredStore, MemoryStore, PostgresStore, SqliteStore, Store  # noqa: E402

NEAR = 1.05  # of the optimum
HALF = 0.5  # of the evaluations
WORSE = 1.25  # times the evaluations of a run alone: clearly worse
ELSEWHERE = 1000  # seeds of the first machine: its chance is not the second one's


class Reached(Exception):
    """The best is near enough to the optimum: the run need not go on."""


@dataclass(frozen=True)
class Pair:
    """How one second machine did: medians of evaluations, and how many of its runs got there."""

    first: str
    second: str
    alone: float
    told: float
    reached_alone: int
    reached_told: int
    seeds: int

    @property
    def ratio(self) -> float:
        """Evaluations with the first machine's memory over those without it."""
        return self.told / self.alone


@lru_cache
def recorded(file: Path) -> tuple[Recording, Replay]:
    (recording,) = read(file)
    return recording, Replay(recording.trials)


def task_of(recording: Recording, machine: str) -> Task:
    """Return the kernel as a decision of one problem, on a machine of some name."""
    ran = sorted(((s, places) for places, row in recording.rows.items() if (s := recording.times_s[row]) is not None))
    default = dict(recording.trials[recording.rows[ran[len(ran) // 2][1]]].config)
    declaration = Declaration(recording.kernel or "kernel", space=recording.space, default=default)
    hardware = Hardware("cuda", machine, "", 1, 2**34)
    subject = Subject(declaration.name, Problem({"size": 1}), (), environment(hardware))
    work = Work(lambda config: lambda: None, (), default, declaration.check)
    return Task(declaration, subject, work, hardware=hardware)


def needed(file: Path, machine: str, store: Store, *, seed: int, budget: int) -> int | None:
    """Return how many evaluations a run takes to come near the optimum; None if the budget is spent before."""
    recording, replay = recorded(file)
    done: list[int] = []

    def listener(event: events.Event) -> None:
        if isinstance(event, events.Evaluated):
            time_s = event.outcome.time_s if isinstance(event.outcome, Timing) else None
            if time_s is not None and time_s <= NEAR * recording.optimum_s:
                done.append(event.done)
                raise Reached

    try:
        tune(task_of(recording, machine), Plan(budget=budget, seed=seed, listener=listener), store, lambda _: replay)
    except Reached:
        return done[0]
    return None


def tuned(file: Path, store: Store, *, seed: int, budget: int) -> None:
    """Let the first machine tune a kernel, as anybody would."""
    recording, replay = recorded(file)
    tune(task_of(recording, name_of(file)), Plan(budget=budget, seed=ELSEWHERE + seed), store, lambda _: replay)


def name_of(file: Path) -> str:
    """Return the device, by the file: not every recording names it."""
    return file.name.partition(".")[0].partition("-")[2]


def counts(
    file: Path, others: Sequence[Path], seed: int, options: argparse.Namespace, url: str | None
) -> dict[str, int | None]:
    """Return what second machines need after one run of the first: alone, on the same space, and on other devices."""
    with shared(url, f"m{os.getpid()}") as team:
        tuned(file, team, seed=seed, budget=options.first)
        run = partial(needed, seed=seed, budget=options.budget)
        found = {"alone": run(file, "twin", MemoryStore()), "same": run(file, "twin", over(team))}
        return found | {other.name: run(other, name_of(other), over(team)) for other in others}


def over(team: Store) -> Store:
    """Return an empty store of one's own over the team's."""
    return LayeredStore(MemoryStore(), [team])


@contextmanager
def shared(url: str | None, name: str) -> Iterator[Store]:
    """Give an empty store for a first machine: a file, or a database on a server."""
    if url is None:
        with tempfile.TemporaryDirectory() as home:
            store: Store = SqliteStore(Path(home))
            yield store
            store.close()
        return
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"DROP DATABASE IF EXISTS {name}")
        db.execute(f"CREATE DATABASE {name}")
    store = PostgresStore(url.replace("/postgres?", f"/{name}?"))
    yield store
    store.close()


@contextmanager
def server(is_wanted: bool) -> Iterator[str | None]:
    """Start a PostgreSQL server that is stopped again, if one is wanted, and give its address."""
    if not is_wanted:
        yield None
        return
    if find_spec("psycopg") is None:
        raise MissingPart("psycopg is not installed: pip install 'tunewise[postgres]'")
    sys.path.append(str(Path(__file__).parent.parent / "tests" / "store"))
    import postgres_server

    try:
        running = postgres_server.started()
    except postgres_server.NoServer as error:
        raise MissingPart(f"there is no server for --postgres: {error}") from None
    try:
        yield running.url("postgres")
    finally:
        running.remove()


def measured(files: Sequence[Path], options: argparse.Namespace) -> tuple[list[Pair], list[Pair]]:
    """Return both readings: every space by itself, and every ordered pair of devices of one kernel."""
    others = {file: [o for o in files if o != file and kernel_of(o) == kernel_of(file)] for file in files}
    runs = [(file, others[file], seed) for file in files for seed in range(options.seeds)]
    with server(options.postgres) as url, ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as do:
        found = list(do.map(partial(_counted, options=options, url=url), runs))
    rows: dict[Path, dict[str, list[int | None]]] = {file: {} for file in files}
    for (file, *_), row in zip(runs, found, strict=True):
        for who, count in row.items():
            rows[file].setdefault(who, []).append(count)
    same = [pair(file, file, rows[file]["alone"], rows[file]["same"], options.budget) for file in files]
    across = [
        pair(file, other, rows[other]["alone"], rows[file][other.name], options.budget)
        for file in files
        for other in others[file]
    ]
    return same, across


def _counted(
    run: tuple[Path, Sequence[Path], int], *, options: argparse.Namespace, url: str | None
) -> dict[str, int | None]:
    return counts(*run, options, url)


def kernel_of(file: Path) -> str:
    return file.name.partition("-")[0]


def pair(first: Path, second: Path, alone: Sequence[int | None], told: Sequence[int | None], budget: int) -> Pair:
    """Return what became of all seeds of one pair."""
    middles = [median(budget if n is None else n for n in found) for found in (alone, told)]
    reached = [sum(n is not None for n in found) for found in (alone, told)]
    return Pair(name_of(first), second.name.partition(".")[0], *middles, *reached, len(told))


def geomean(pairs: Sequence[Pair]) -> float:
    return exp(sum(log(pair.ratio) for pair in pairs) / len(pairs))


def show(title: str, pairs: Sequence[Pair]) -> None:
    print(f"\n{title}: median evaluations to within 5 % of the optimum (runs that got there)")
    print(f"{'first machine':<15}{'second machine':<24}{'alone':>14}{'told':>14}{'ratio':>8}")
    for one in pairs:
        alone, told = _cell(one.alone, one.reached_alone, one), _cell(one.told, one.reached_told, one)
        print(f"{one.first:<15}{one.second:<24}{alone:>14}{told:>14}{one.ratio:8.2f}")
    over_half = sum(one.ratio > HALF for one in pairs)
    print(f"geometric mean {geomean(pairs):.2f}; over {HALF}: {over_half} of {len(pairs)}")


def _cell(evaluations: float, reached: int, one: Pair) -> str:
    return f"{evaluations:g} ({reached}/{one.seeds})"


def targets_of(readings: Mapping[str, Sequence[Pair]]) -> dict[str, bool]:
    means = {title: geomean(pairs) for title, pairs in readings.items()}
    worst = max((one for pairs in readings.values() for one in pairs), key=lambda one: one.ratio)
    said = f"{worst.ratio:.2f}x ({worst.first} before {worst.second})"
    return {
        **{f"{title}, {mean:.2f} of the evaluations, at most {HALF}": mean <= HALF for title, mean in means.items()},
        f"no second machine needs more than {WORSE}x, at worst {said}": worst.ratio <= WORSE,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 seeds, at most 100 evaluations")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--budget", type=int, help="of the second machine")
    parser.add_argument("--first", type=int, default=100, help="evaluations of the first machine")
    parser.add_argument("--postgres", action="store_true", help="the first machine's store is a server's database")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    options.seeds = options.seeds or (3 if options.quick else 20)
    options.budget = options.budget or (100 if options.quick else 400)
    files = sorted((Path(os.environ.get("TUNEWISE_DATA", "")) / "spaces").glob("*-*.json.gz"))
    files = [file for file in files if not file.name.endswith(".t4.json.gz")]
    if not files:
        print("no recorded spaces: set TUNEWISE_DATA to the folder whose spaces/ holds them", file=sys.stderr)
        return
    same, across = measured(files, options)
    readings = {title: pairs for title, pairs in (("same space", same), ("another device", across)) if pairs}
    targets = targets_of(readings)
    if options.json:
        told = {title: [asdict(one) | {"ratio": one.ratio} for one in pairs] for title, pairs in readings.items()}
        given = {"seeds": options.seeds, "budget": options.budget, "first": options.first}
        json.dump({**given, **told, "targets": targets}, sys.stdout)
        return
    print(f"{options.seeds} seeds, first machine {options.first} evaluations, second at most {options.budget}")
    for title, pairs in readings.items():
        show(title, pairs)
    print()
    for target, is_held in targets.items():
        print(f"target {target}: {'held' if is_held else 'not held'}")


if __name__ == "__main__":
    try:
        main()
    except MissingPart as error:
        print(error, file=sys.stderr)
