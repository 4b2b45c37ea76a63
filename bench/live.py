"""What viewers of the live page cost the tuning that they watch: the same runs with 50 of them and without, in pairs.

A run tunes a replayed space, so both sides of a pair do exactly the same work: a search, a kernel that burns a fixed
number of steps for every sample, every trial written to the store, and signs of life. The page is served and looked at
by processes of their own. Sides change places from pair to pair. Prints the ratio of the times with viewers to those
without, by the wall clock and by the CPU clock of the tuning process, and what the paired test of our own finals says.

Usage: python bench/live.py [--pairs N] [--viewers N] [--quick] [--json]
"""

import argparse
import itertools
import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import tunewise as tw
from tunewise.decision import Config, Outcome, Timing, Trial
from tunewise.measure import Replay
from tunewise.measure.compare import compare
from tunewise.session.context import current_store
from tunewise.session.tune import tune

STEPS = 10_000  # of the kernel, a sample: about half a millisecond


class Burning(Replay):
    """Answers from recorded trials, after work that is the same every time."""

    def first(self, config: Config, best_s: float = 1e9) -> Outcome:
        burn(1)
        return super().first(config, best_s)

    def sample(self, config: Config, n: int) -> Outcome:
        burn(n)
        return super().sample(config, n)


def burn(times: int) -> int:
    total = 0
    for step in range(STEPS * times):
        total += step
    return total


def recorded() -> tuple[tw.Space, list[Trial]]:
    space = tw.Space({"tile": list(range(1, 33)), "unroll": [1, 2, 4, 8], "order": ["ij", "ji"]})
    times = (1e-3 * (1 + abs(c["tile"] - 20) / 9 + 1 / c["unroll"] + (c["order"] == "ij") / 3) for c in space)
    return space, [Trial(config, Timing((time_s,))) for config, time_s in zip(space, times, strict=True)]


def tuner(seconds: float) -> Callable[[], tuple[float, float]]:
    """Return a function that tunes new decisions, always as many, and returns its wall and CPU seconds."""
    space, trials = recorded()
    default = space.config({"tile": 1, "unroll": 1, "order": "ij"})
    numbers = itertools.count()

    def tune_one() -> None:
        # A decision of its own: what is known of other problems would make every search a little longer.
        decision = tw.Decision(f"watched-{next(numbers)}", space=space, default=default, features=lambda n: {"n": n})
        plan = tw.Plan(budget=100, heuristics=False)
        task = decision.implementation(kernel).task(1)
        tuning = tune(task, plan, current_store(), lambda work: Burning(trials))
        assert tuning.verdict is not None

    tune_one()
    start = time.perf_counter()
    tune_one()
    count = max(1, round(seconds / (time.perf_counter() - start)))

    def work() -> tuple[float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(count):
            tune_one()
        return time.perf_counter() - wall, time.process_time() - cpu

    return work


def kernel(n: int, **config: Any) -> int:
    """Stand for what is tuned; its times are recorded."""
    return n


def look_on(address: str, viewers: int) -> None:
    """Let viewers come and go as stdin says `on` and `off`; say how many events they have seen."""
    parts = urlsplit(address)
    token, port = parts.query.partition("=")[2], parts.port
    request = f"GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    waiting = selectors.DefaultSelector()
    waiting.register(sys.stdin, selectors.EVENT_READ)
    open_ones: dict[socket.socket, int] = {}
    is_told = True
    while True:
        for key, _ in waiting.select():
            if key.fileobj is sys.stdin:
                word = sys.stdin.readline().strip()
                for one in open_ones:
                    waiting.unregister(one)
                    one.close()
                seen = sum(open_ones.values())
                open_ones.clear()
                if word == "on":
                    for _ in range(viewers):
                        one = socket.create_connection(("127.0.0.1", port))
                        one.sendall(request)
                        waiting.register(one, selectors.EVENT_READ)
                        open_ones[one] = 0
                    is_told = False
                elif word == "off":
                    print(seen, flush=True)
                else:
                    return
            else:
                one = key.fileobj
                assert isinstance(one, socket.socket)
                said = one.recv(1 << 16)
                assert said, "the server let a viewer go"
                open_ones[one] += said.count(b"data: ")
        if not is_told and all(open_ones.values()):
            is_told = True
            print("all", flush=True)


@contextmanager
def started(*command: str) -> Iterator["subprocess.Popen[str]"]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, *command], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def served(server: "subprocess.Popen[str]") -> str:
    assert server.stdout is not None
    lines = []
    for line in server.stdout:
        lines.append(line)
        if line == "}\n":
            return str(json.loads("".join(lines))["address"])
    raise SystemExit("the server of the live page ended before it said its address; see: tunewise live")


def told(process: "subprocess.Popen[str]", word: str) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    print(word, file=process.stdin, flush=True)
    return process.stdout.readline().strip()


def measured(pairs: int, viewers: int, seconds: float) -> dict[str, Any]:
    """Return the seconds of both sides of every pair, and what the viewers saw."""
    rows: list[dict[str, tuple[float, float]]] = []
    events, watched_s, server_s = 0, 0.0, 0.0
    with started("-m", "tunewise", "live", "--json", "--port", "0") as server:
        address = served(server)
        with started(__file__, "--look-on", address, "--viewers", str(viewers)) as crowd:
            work = tuner(seconds)
            for number in range(pairs):
                row = {}
                for side in ("with", "without") if number % 2 else ("without", "with"):
                    if side == "with":
                        assert told(crowd, "on") == "all"
                        begun, used_s = time.perf_counter(), cpu_s(server.pid)
                    row[side] = work()
                    if side == "with":
                        watched_s += time.perf_counter() - begun
                        server_s += cpu_s(server.pid) - used_s
                        events += int(told(crowd, "off"))
                rows.append(row)
    return {"rows": rows, "events": events, "watched_s": watched_s, "server_cpu_share": server_s / watched_s}


def cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def judged(rows: list[dict[str, tuple[float, float]]], clock: int) -> dict[str, Any]:
    """Return what the pairs say by one clock: 0 is the wall's, 1 the CPU's."""
    taken = iter([(row["with"][clock], row["without"][clock]) for row in rows])
    said = compare(lambda turns: next(taken), pairs=len(rows))
    return {"ratio": said.gain, "p_value": said.p_value, "is_slower": said.is_win}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter pairs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--look-on", metavar="ADDRESS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.look_on:
        look_on(options.look_on, options.viewers)
        return
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        print("starlette or uvicorn is not installed: pip install 'tunewise[dashboard]'", file=sys.stderr)
        return
    pairs, seconds = (8, 1.0) if options.quick else (options.pairs, 3.0)
    with tempfile.TemporaryDirectory() as home:
        os.environ["TUNEWISE_HOME"] = home
        tw.configure()
        found = measured(pairs, options.viewers, seconds)
        tw.configure()
    figures = {name: judged(found["rows"], clock) for clock, name in enumerate(("wall", "cpu"))}
    is_held = not any(one["is_slower"] for one in figures.values())
    if options.json:
        json.dump({**found, **figures, "targets": {"no measurable slow-down": is_held}}, sys.stdout, indent=2)
        return
    slice_s = median(row["without"][0] for row in found["rows"])
    print(
        f"{pairs} pairs of {slice_s:.1f} s of tuning; {options.viewers} viewers looked on for "
        f"{found['watched_s']:.0f} s and saw {found['events']:,} events"
    )
    print(f"the server took {found['server_cpu_share']:.1%} of a core meanwhile")
    for name, one in figures.items():
        print(f"{name:5} with viewers / without: {one['ratio']:.4f} (sign test p {one['p_value']:.3f})")
    print(f"target no measurable slow-down: {'held' if is_held else 'not held'}")


if __name__ == "__main__":
    main()
