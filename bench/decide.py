"""What an answer costs: a warm decision against a bare dict look-up on a tuple key, and the import against none.

A warm decision is one that memory answers, or a heuristic that was asked before.

Usage: python bench/decide.py [--quick] [--json]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import timeit
from statistics import median
from typing import Any

MODULES = ("numpy", "torch", "sklearn", "click", "rich", "msgspec", "sqlite3")


def best_s(statement: str, names: dict[str, object], number: int, rounds: int) -> list[float]:
    taken = timeit.repeat(statement, timer=time.process_time, globals=names, number=number, repeat=rounds)
    return [seconds / number for seconds in taken]


def start_up_s(code: str, rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - start)
    return times


def imported() -> list[str]:
    code = f"import tunewise, sys; print(*(name for name in {MODULES!r} if name in sys.modules))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def save_heuristic(place: str) -> None:
    from tunewise.models import Card, Columns, Leaf, Model, Number, Tree, save

    os.mkdir(place)
    columns = Columns(tuple(Number(name, 1, 1000) for name in "mnk"))
    model = Model(card=Card(decision="learned"), choices=({"x": 2},), columns=columns, body=Tree((Leaf((0,)),)))
    save(model, os.path.join(place, "learned.json"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    number, rounds = (50_000, 5) if options.quick else (200_000, 15)
    with tempfile.TemporaryDirectory() as home:
        os.environ["TUNEWISE_HOME"] = home
        import tunewise as tw

        space = tw.Space({"x": [1, 2]})
        decision = tw.Decision(
            "bench", space=space, default={"x": 1}, features=lambda m, n, k: {"m": m, "n": n, "k": k}
        )
        run = decision.implementation(lambda m, n, k, *, x: None)
        run.tune(64, 128, 256)
        learned = tw.Decision("learned", space=space, default={"x": 1})
        save_heuristic(os.path.join(home, "heuristics"))
        tw.refresh()  # tuning has looked for heuristics before there was one
        assert learned.decide({"m": 64, "n": 128, "k": 256}).rung == "learned"
        names = {
            "decide": decision.decide,
            "learned": learned.decide,
            "features": {"m": 64, "n": 128, "k": 256},
            "run": run,
        }
        table = {(64, 128, 256): 1}
        names |= {"table": table, "key": (64, 128, 256)}
        # Interleaved, and the best of each: the machine only ever makes a look-up slower.
        lookups, decisions, answers, calls = [], [], [], []
        for _ in range(rounds):
            lookups += best_s("table[key]", names, number, 1)
            decisions += best_s("decide(features)", names, number, 1)
            answers += best_s("learned(features)", names, number, 1)
            calls += best_s("run(64, 128, 256)", names, number // 4, 1)
    empty, loaded = [], []
    for _ in range(5 if options.quick else 21):
        empty += start_up_s("pass", 1)
        loaded += start_up_s("import tunewise", 1)
    figures: dict[str, Any] = {
        "dict_us": min(lookups) * 1e6,
        "decide_us": min(decisions) * 1e6,
        "decide_over_dict": min(decisions) / min(lookups),
        "learned_us": min(answers) * 1e6,
        "learned_over_dict": min(answers) / min(lookups),
        "call_us": min(calls) * 1e6,
        "import_over_empty": median(loaded) / median(empty),
        "imports": imported(),
    }
    is_held = max(figures["decide_over_dict"], figures["learned_over_dict"]) <= 10
    figures["targets"] = {"decision <= 10x the look-up": is_held}
    if options.json:
        json.dump(figures, sys.stdout, indent=2)
        return
    print(f"bare dict look-up on a tuple key     {figures['dict_us']:8.3f} us")
    print(f"warm decision, features extracted    {figures['decide_us']:8.3f} us = {figures['decide_over_dict']:.1f}x")
    print(f"the same, answered by a heuristic    {figures['learned_us']:8.3f} us = {figures['learned_over_dict']:.1f}x")
    print(f"whole call of a tuned function       {figures['call_us']:8.3f} us")
    pulled = ", ".join(figures["imports"]) or "nothing"
    print(f"import tunewise / empty interpreter  {figures['import_over_empty']:8.2f}x, pulling in {pulled}")
    print(f"target decision <= 10x the look-up: {'held' if is_held else 'not held'}")


if __name__ == "__main__":
    main()
