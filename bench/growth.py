"""What a large memory costs: an answer that is known, one that is not, explain, best and memory, against ten problems.

Each size is filled at once and measured in a process of its own, which has read nothing before. The problems are sizes
of matrix products, near to each other in thousands; those asked for lie between them and beyond them.

Usage: python bench/growth.py [--quick] [--json]
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

SIZES, QUICK_SIZES = (10, 1_000, 100_000), (10, 1_000, 10_000)
ASKED = 300
FIGURES = {
    "known_ms": "a remembered problem, the first time",
    "unseen_ms": "a problem near to remembered ones",
    "far_ms": "a problem near to none",
    "first_ms": "the first question of a process",
    "explain_ms": "explain of an unknown problem",
    "tuned_ms": "an unknown problem after another was tuned",
    "best_ms": "the last 50 winners",
    "trials_ms": "the last 50 trials",
    "rss_mb": "memory of the process",
}
_MEASURE = "--measure"  # in a process of its own


def problems(count: int) -> Iterator[dict[str, int]]:
    """Yield different problems, the same ones in every run."""
    rng, seen = random.Random(0), set[tuple[int, int, int]]()
    while len(seen) < count:
        size = rng.randint(16, 8_192), rng.randint(16, 8_192), rng.choice([64, 128, 256, 512, 1_024, 2_048, 4_096])
        if size not in seen:
            seen.add(size)
            yield dict(zip("mnk", size, strict=True))


def declared() -> Any:
    """Return the decision that is asked."""
    import tunewise as tw

    decision = tw.Decision(
        "growth",
        space=tw.Space({"tile": [8, 16, 32]}),
        default={"tile": 8},
        features=lambda m, n, k: {"m": m, "n": n, "k": k},
    )
    decision.implementation(lambda m, n, k, *, tile: None)
    return decision


def fill(count: int) -> float:
    """Remember so many problems; return the seconds that took."""
    from tunewise.decision import Timing, Trial, Verdict
    from tunewise.formats.records import Record
    from tunewise.settings import current
    from tunewise.store import store_at

    decision, start = declared(), time.perf_counter()

    def records() -> Iterator[Record]:
        for problem in problems(count):
            subject = decision.subject(decision.problem(problem))
            yield Record(subject, Trial({"tile": 16}, Timing((0.5,)), "random", "r", 1.0))
            yield Record(
                subject, Verdict("win", {"tile": 8}, {"tile": 16}, (0.5,), (0.25,), 2.0, 0.001, 3, "r", at=1.0)
            )

    store = store_at(current().home)  # and not the one of programs, which does not wait as long as this takes
    store.absorb(records())
    store.close()
    return time.perf_counter() - start


def measure(count: int) -> dict[str, float]:
    """Return what questions cost in a process that has asked none."""
    from tunewise.session.recall import last_trials, last_winners

    decision, rng = declared(), random.Random(1)
    assert last_winners("growth", limit=1).total == count
    known = list(problems(min(count, ASKED)))
    rng.shuffle(known)
    near = [{name: size + 0.5 for name, size in problem.items()} for problem in known]
    far = [{**problem, "k": 10**9 + place} for place, problem in enumerate(near)]
    found = {"first_ms": median(times_ms(decision.decide, [{"m": 3, "n": 3, "k": 3}]))}
    found["far_ms"] = median(times_ms(decision.decide, far))
    found["unseen_ms"] = median(times_ms(decision.decide, near))
    found["known_ms"] = median(times_ms(decision.decide, known))
    found["explain_ms"] = median(times_ms(decision.explain, far[:10]))
    decision.tune({"m": 5, "n": 5, "k": 5}) if decision.inputs else decision.bound().tune(5, 5, 5)
    found["tuned_ms"] = median(times_ms(decision.decide, far))
    found["rss_mb"] = rss_mb()
    found["best_ms"] = median(times_ms(lambda _: last_winners("growth", limit=50), [{}] * 3))
    found["trials_ms"] = median(times_ms(lambda _: last_trials("growth", limit=50), [{}] * 3))
    return found


def times_ms(ask: Callable[[Mapping[str, Any]], object], asked: list[dict[str, Any]]) -> list[float]:
    taken = []
    for features in asked:
        start = time.perf_counter()
        ask(features)
        taken.append((time.perf_counter() - start) * 1e3)
    return taken


def rss_mb() -> float:
    """Return the memory of this process that is in use now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def own_process(work: str, count: int, home: Path) -> dict[str, float]:
    """Return what this script finds in a process of its own."""
    command = [sys.executable, __file__, _MEASURE, work, str(count)]
    env = {**os.environ, "TUNEWISE_HOME": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def judged(found: Mapping[str, Mapping[str, float]]) -> dict[str, bool | None]:
    """Return which targets the largest memory holds, beside the smallest."""
    small, large = (found[size] for size in (min(found, key=int), max(found, key=int)))
    return {
        "a problem near to none <= 1 ms": large["far_ms"] <= 1,
        "a problem near to remembered ones <= 1 ms": large["unseen_ms"] <= 1,
        "explain <= 50 ms": large["explain_ms"] <= 50,
        "memory within 60 MB": large["rss_mb"] - small["rss_mb"] <= 60,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smaller memory")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(_MEASURE, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        work, count = options.measure[0], int(options.measure[1])
        json.dump(measure(count) if work == "measure" else {"fill_s": fill(count)}, sys.stdout)
        return
    found: dict[str, dict[str, float]] = {}
    for size in QUICK_SIZES if options.quick else SIZES:
        with tempfile.TemporaryDirectory() as home:
            filled = own_process("fill", size, Path(home) / "home")
            found[str(size)] = {**own_process("measure", size, Path(home) / "home"), **filled}
    first, *_, last = found
    ratios = {name: found[last][name] / found[first][name] for name in FIGURES}
    targets = judged(found)
    if options.json:
        json.dump({"sizes": found, "ratios": ratios, "targets": targets}, sys.stdout, indent=2)
        return
    print(f"{'remembered problems':45}" + "".join(f"{int(size):>12,}" for size in found) + "    ratio")
    for name, said in FIGURES.items():
        unit = name.rpartition("_")[2].replace("mb", "MB")
        cells = "".join(f"{found[size][name]:9.2f} {unit}" for size in found)
        print(f"{said:45}{cells} {ratios[name]:7.1f}x")
    for target, is_held in targets.items():
        print(f"target {target}: {'held' if is_held else 'not held'}")


if __name__ == "__main__":
    main()
