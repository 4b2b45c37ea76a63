"""The store under a crowd: look-ups and inserts a second, latency, and how fast a dead tuner is replaced.

Prints, from one run: lookup+insert/s of 64 processes on one store beside plain sqlite3 used the way most programs use
it (deferred BEGIN, SELECT, INSERT, COMMIT, the default 5 s time-out), with the errors of each; the p99 of a look-up
while that goes on, and how many writes the slowest process got; and the time from killing the holder of a flight to its
successor holding it. Then the same crowd on a PostgreSQL server beside it, started for this run or given by its
address, and trials a second that are added one by one and in batches, to both.
"""

import argparse
import json
import multiprocessing
import os
import random
import signal
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tunewise.settings import Place
from tunewise.store import SqliteStore, store_at
from tunewise.testing.store_contract import subject, timed

PROCESSES = 64
CLIENTS = 32  # of a server
BATCH = 1_000
SAID = {True: "held", False: "not held", None: "not measured"}
_FORK = multiprocessing.get_context("fork")


def ours(place: int, home: Place, seconds: float) -> tuple[int, int, list[float]]:
    """Look up and insert through a store; return (done, errors, look-up latencies)."""
    store, rng, latencies, done, errors = store_at(home), random.Random(place), [], 0, 0
    store.verdicts(subject())  # opens it; what follows is what a running program pays
    mine, trial = subject(m=place), timed(8)
    others = [subject("looked-up", m) for m in range(PROCESSES)]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        asked = rng.choice(others)
        start = time.perf_counter()
        try:
            store.verdicts(asked)
            latencies.append(time.perf_counter() - start)
            store.add(mine, [trial])
            done += 1
        except Exception:
            errors += 1
    return done, errors, latencies


def naive(place: int, home: Path, seconds: float) -> tuple[int, int, list[float]]:
    """Look up and insert through plain sqlite3; return (done, errors, look-up latencies)."""
    latencies, done, errors, digest = [], 0, 0, subject(m=place).digest
    end = time.monotonic() + seconds
    db = None
    while time.monotonic() < end:
        try:
            if db is None:
                db = sqlite3.connect(home / "plain.sqlite3", isolation_level=None)
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("CREATE TABLE IF NOT EXISTS facts (id INTEGER PRIMARY KEY, key TEXT, body TEXT)")
                db.execute("CREATE INDEX IF NOT EXISTS facts_key ON facts (key)")
            db.execute("BEGIN")
            start = time.perf_counter()
            db.execute("SELECT body FROM facts WHERE key = ? LIMIT 1", (digest,)).fetchall()
            latencies.append(time.perf_counter() - start)
            db.execute("INSERT INTO facts (key, body) VALUES (?, ?)", (digest, "x" * 300))
            db.execute("COMMIT")
            done += 1
        except sqlite3.Error:
            errors += 1
            if db is not None and db.in_transaction:
                db.execute("ROLLBACK")
    return done, errors, latencies


def crowd(work: Callable[..., Any], home: Place, seconds: float, processes: int = PROCESSES) -> dict[str, float]:
    """Return the rate, errors and look-up p99 of many processes that start together on a new store."""
    if isinstance(home, Path):
        home.mkdir(mode=0o700)
    start, results = _FORK.Event(), _FORK.SimpleQueue()

    def run(place: int) -> None:
        start.wait()
        results.put(work(place, home, seconds))

    members = [_FORK.Process(target=run, args=(place,)) for place in range(processes)]
    for member in members:
        member.start()
    start.set()
    found = [results.get() for _ in members]
    for member in members:
        member.join()
    latencies = sorted(latency for _, _, each in found for latency in each)
    return {
        "per_s": sum(done for done, _, _ in found) / seconds,
        "errors": sum(errors for _, errors, _ in found),
        "slowest": min(done for done, _, _ in found) / max(statistics.median(done for done, _, _ in found), 1),
        "lookup_p50_s": latencies[len(latencies) // 2],
        "lookup_p99_s": latencies[int(len(latencies) * 0.99)],
    }


def quiet_lookup_p99(home: Path, count: int, clock: Callable[[], float]) -> float:
    """Return the p99 of look-ups by one process with no other on the store."""
    store, latencies = SqliteStore(home), []
    asked = [subject(m=place) for place in range(PROCESSES)]
    store.verdicts(asked[0])
    for place in range(count):
        start = clock()
        store.verdicts(asked[place % PROCESSES])
        latencies.append(clock() - start)
    return sorted(latencies)[int(count * 0.99)]


def takeover_s(home: Path) -> float:
    """Return the seconds from killing the holder of a flight to the moment a waiting process has it."""
    held, gained = os.pipe(), os.pipe()
    holder = _forked(lambda: _hold(home, held[1]))
    os.read(held[0], 1)
    waiter = _forked(lambda: _hold(home, gained[1]))
    time.sleep(0.1)
    start = time.perf_counter()
    os.kill(holder, signal.SIGKILL)
    os.read(gained[0], 1)
    seconds = time.perf_counter() - start
    os.kill(waiter, signal.SIGKILL)
    for pid in (holder, waiter):
        os.waitpid(pid, 0)
    for end in (*held, *gained):
        os.close(end)
    return seconds


def _forked(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


def _hold(home: Path, report: int) -> None:
    with SqliteStore(home).flight(subject()):
        os.write(report, b"x")
        time.sleep(60)


def added_per_s(place: Place, batch: int, seconds: float) -> float:
    """Return how many trials a second one process adds, so many at a time."""
    store, trials, added = store_at(place), [timed(8)] * batch, 0
    about = subject("batches", batch)
    store.add(about, trials)
    start = time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        store.add(about, trials)
        added += batch
    store.close()
    return added / spent


def side_by_side(seconds: float, address: str) -> dict[str, Any]:
    """Return the figures of both stores: a crowd of clients, single inserts and batches."""
    with tempfile.TemporaryDirectory() as scratch:
        places: dict[str, Place] = {"sqlite": Path(scratch) / "crowd", "postgres": address}
        figures = {
            name: {
                **crowd(ours, place, seconds, CLIENTS),
                "single_per_s": added_per_s(place, 1, seconds / 2),
                "batched_per_s": added_per_s(place, BATCH, seconds / 2),
            }
            for name, place in places.items()
        }
    return {**figures, "batch": BATCH, "clients": CLIENTS, "server": store_at(address).info().postgres}


@contextmanager
def a_server(address: str | None) -> Iterator[str | None]:
    """Give the address of a database: that named, or one on a server of our own, or None if there is no server."""
    if address is not None:
        yield address
        return
    if find_spec("psycopg") is None:
        print("the server is left out: psycopg is not installed: pip install 'tunewise[postgres]'", file=sys.stderr)
        yield None
        return
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "store"))
    import postgres_server

    try:
        server = postgres_server.started(is_durable=True)
    except postgres_server.NoServer as error:
        print(f"the server is left out: {error}", file=sys.stderr)
        yield None
        return
    try:
        yield server.database()
    finally:
        server.remove()


def report_server(found: dict[str, Any]) -> None:
    print(f"both stores, {found['clients']} clients (PostgreSQL {found['server']}), trials added by one process:")
    for name in ("sqlite", "postgres"):
        row = found[name]
        print(
            f"{name:8} {row['per_s']:7.0f} lookup+insert/s  {row['errors']:3.0f} errors  "
            f"look-up p50 {1e6 * row['lookup_p50_s']:6.0f} us  single {row['single_per_s']:6.0f}/s  "
            f"in batches of {found['batch']} {row['batched_per_s']:7.0f}/s"
        )
    print(f"COPY / single inserts on PostgreSQL: {copy_ratio(found):.1f}x")


def copy_ratio(found: dict[str, Any]) -> float:
    return float(found["postgres"]["batched_per_s"] / found["postgres"]["single_per_s"])


def measure(seconds: float, kills: int) -> dict[str, Any]:
    """Run everything once and return the figures."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        mine = crowd(ours, Path(scratch) / "ours", seconds)
        plain = crowd(naive, Path(scratch) / "naive", seconds)
        takeovers = [takeover_s(Path(scratch) / "ours") for _ in range(kills)]
        quiet = quiet_lookup_p99(Path(scratch) / "ours", 5_000, time.perf_counter)
        quiet_cpu = quiet_lookup_p99(Path(scratch) / "ours", 5_000, time.process_time)
    return {
        "processes": PROCESSES,
        "sqlite": sqlite3.sqlite_version,
        "load_before": load,
        "ours": mine,
        "naive": plain,
        "ratio": mine["per_s"] / max(plain["per_s"], 1e-9),
        "quiet_lookup_p99_s": quiet,
        "quiet_lookup_cpu_p99_s": quiet_cpu,
        "takeover_median_s": statistics.median(takeovers),
        "takeover_max_s": max(takeovers),
    }


def report(found: dict[str, Any]) -> None:
    for name in ("ours", "naive"):
        row = found[name]
        print(
            f"{name:6} {row['per_s']:9.0f} lookup+insert/s  {row['errors']:6.0f} errors  "
            f"look-up p50 {1e6 * row['lookup_p50_s']:7.0f} us  p99 {1e3 * row['lookup_p99_s']:7.2f} ms  "
            f"slowest writer {row['slowest']:.2f} of the median"
        )
    print(f"ratio ours / naive: {found['ratio']:.2f}   (SQLite {found['sqlite']}, {PROCESSES} processes)")
    print(f"load of the machine before: {found['load_before']:.1f} on {os.cpu_count()} cores")
    wall, cpu = 1e6 * found["quiet_lookup_p99_s"], 1e6 * found["quiet_lookup_cpu_p99_s"]
    print(f"look-up p99, no other process on the store: {wall:.0f} us on the wall, {cpu:.0f} us of CPU")
    print(f"takeover: median {1e3 * found['takeover_median_s']:.1f} ms, worst {1e3 * found['takeover_max_s']:.1f} ms")


def targets_of(found: dict[str, Any]) -> dict[str, bool | None]:
    """Return whether each target is held; None is for what was not measured, as there is no server."""
    server = found.get("server")
    return {
        "lookup+insert/s >= 2,000": found["ours"]["per_s"] >= 2000,
        "0 errors": found["ours"]["errors"] == 0,
        "the slowest of 64 writers >= a fifth of the median": found["ours"]["slowest"] >= 0.2,
        "look-up p99 <= 1 ms, no other process on the store": found["quiet_lookup_p99_s"] <= 1e-3,
        "takeover <= 1 s": found["takeover_max_s"] <= 1,
        "0 errors on PostgreSQL": server and server["postgres"]["errors"] == 0,
        "COPY batches >= 10x single inserts": server and copy_ratio(server) >= 10,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--quick", action="store_true", help="two seconds instead of ten")
    parser.add_argument("--server", metavar="ADDRESS", help="an empty PostgreSQL database instead of one of our own")
    options = parser.parse_args()
    seconds = 2.0 if options.quick else 10.0
    found = measure(seconds, 3 if options.quick else 20)
    with a_server(options.server) as address:
        if address is not None:
            found["server"] = side_by_side(seconds, address)
    found["targets"] = targets_of(found)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    report(found)
    if "server" in found:
        report_server(found["server"])
    for target, is_held in found["targets"].items():
        print(f"target {target}: {SAID[is_held]}")


if __name__ == "__main__":
    main()
