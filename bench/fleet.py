"""A fleet on this machine: one Ray node beside three, replaying a recording whose every evaluation takes 50 ms.

Usage: python bench/fleet.py [--quick] [--json] [--sizing]

Each run collects the same table, from the first unit to the last; starting Ray and its nodes is not counted. Prints the
rates, their ratio, and what an evaluation costs beyond its 50 ms. With --sizing it also measures how many units a
second a driver hands out and how many trials a second the store takes, and computes from that what 1 to 1,000 devices
would need. Beyond the three nodes that were run, the table is arithmetic.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tunewise.cli.fleet import PROGRAM
from tunewise.cli.fleet_plan import read_plan
from tunewise.errors import NotFound
from tunewise.fleet.cluster import LocalNodes
from tunewise.fleet.supervisor import Supervisor
from tunewise.measure import procfs
from tunewise.session import configure
from tunewise.store import store_at

PAUSE_S = 0.05
RECORDED = "spaces/convolution-A100.json.gz"
DEVICES = (1, 3, 10, 100, 1_000)
KINDS = {"50 ms": PAUSE_S, "1 s": 1.0, "10 s": 10.0}
SLICE = 16  # evaluations of a unit


def recording(place: Path, size: int) -> Path:
    """Return a recorded space of at least so many configs, or one that is made up where there is none."""
    data = os.environ.get("TUNEWISE_DATA")
    if data and (Path(data) / RECORDED).exists():
        return Path(data) / RECORDED
    made = place / "made-up.json"
    cache = {
        f"{x},{y}": {"x": x, "y": y, "time": 1.0 + abs(x - 17) + 0.1 * y}
        for x in range(64)
        for y in range(-(-size // 64))
    }
    made.write_text(
        json.dumps({"device_name": "none", "kernel_name": "made-up", "tune_params_keys": ["x", "y"], "cache": cache})
    )
    return made


def write_plan(place: Path, size: int, *, kind: str = "collect", problems: int = 1) -> Path:
    path = place / "plan.toml"
    path.write_text(
        f'kind = "{kind}"\nbudget = {size}\n[[work]]\nreplay = "{recording(place, size)}"\npause_s = {PAUSE_S}\n'
        f"grid = {{number = {list(range(problems))}}}\n"
    )
    return path


@contextmanager
def ready_nodes(count: int) -> Iterator[LocalNodes]:
    """Start nodes and wait until all of them are up."""
    nodes = LocalNodes(count)
    try:
        nodes.start()
    except NotFound as error:  # such as on a machine so busy that Ray gives up: no figures, and a failure
        raise SystemExit(str(error)) from None
    try:
        deadline = time.monotonic() + 180
        while _agents(nodes) < count and time.monotonic() < deadline:
            time.sleep(0.2)
        yield nodes
    finally:
        nodes.stop()


def _agents(nodes: LocalNodes) -> int:
    assert nodes._keeper is not None
    names = (Path(f"/proc/{pid}/cmdline") for pid in procfs.descendants(nodes._keeper.pid))
    return sum(b"RuntimeEnvAgent" in name.read_bytes() for name in names if name.exists())


class Watch:
    """Notes when all devices took part and when the last evaluation, or unit, was done."""

    def __init__(self, devices: int, what: str) -> None:
        self._devices, self._what = devices, what
        self.latest = 0
        self.began: tuple[float, int] | None = None
        self.ended = (0.0, 0)

    def hear(self, message: dict[str, Any]) -> None:
        if "progress" not in message:
            return
        counts = message["progress"]
        self.latest = counts[self._what]
        if self.began is None and counts["nodes"] == self._devices:
            self.began = time.monotonic(), self.latest
        if self.latest > self.ended[1]:
            self.ended = time.monotonic(), self.latest


def run(nodes: LocalNodes, devices: int, plan: Path, home: Path, what: str) -> tuple[float, float]:
    """Return how many evaluations, or units done, there were while all devices took part, and in how many seconds."""
    configure(home=home)
    for variable in nodes.environment:
        name, _, value = variable.partition("=")
        os.environ[name] = value
    watch = Watch(devices, what)
    result = Supervisor(read_plan(plan), program=PROGRAM, hear=watch.hear, address=nodes.address).run()
    assert result.state == "done", result
    assert watch.began is not None
    return watch.ended[1] - watch.began[1], watch.ended[0] - watch.began[0]


def rate(devices: int, size: int) -> dict[str, float]:
    """Return evaluations a second of a fresh table on so many nodes."""
    with tempfile.TemporaryDirectory() as scratch, ready_nodes(devices) as nodes:
        home = Path(scratch) / "home"
        home.mkdir(0o700)
        evaluations, seconds = run(nodes, devices, write_plan(Path(scratch), size), home, "evaluations")
    per_s = evaluations / seconds
    return {"per_s": per_s, "seconds": seconds, "overhead_s": devices / per_s - PAUSE_S}


def driver_rate(units: int) -> float:
    """Return how many units a second a driver hands out and notes, where there is next to nothing to do for them."""
    with tempfile.TemporaryDirectory() as scratch, ready_nodes(3) as nodes:
        home = Path(scratch) / "home"
        home.mkdir(0o700)
        done, seconds = run(nodes, 3, write_plan(Path(scratch), 1, kind="verify", problems=units), home, "done")
    return done / seconds


def store_rates(seconds: float) -> dict[str, float]:
    """Return trials a second that stores take in the batches of a device, from one process."""
    sys.path.insert(0, str(Path(__file__).parent))
    import store as stores

    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch, stores.a_server(None) as address:
        for name, place in (("sqlite", Path(scratch) / "home"), ("postgres", address)):
            if place is not None:
                if isinstance(place, Path):
                    place.mkdir(0o700)
                found[name] = stores.added_per_s(place, 8, seconds)
                found[f"{name} in batches of 1000"] = stores.added_per_s(place, 1000, seconds)
                store_at(place).close()
    return found


def sizing(overhead_s: float, driver_per_s: float, store_per_s: float) -> list[dict[str, Any]]:
    """Return what so many devices would do and need; all but the first rows are on paper."""
    rows = []
    for what, pause_s in KINDS.items():
        for devices in DEVICES:
            per_s = devices / (pause_s + overhead_s)
            rows.append(
                {
                    "evaluation": what,
                    "devices": devices,
                    "per_hour": 3600 * per_s,
                    "store_share": per_s / store_per_s,
                    "driver_share": (per_s / SLICE) / driver_per_s,
                }
            )
    return rows


def report_sizing(found: dict[str, Any]) -> None:
    print(
        f"\ndriver: {found['driver_per_s']:.0f} units/s;  store: "
        + ", ".join(f"{name} {per_s:.0f} trials/s" for name, per_s in found["store_per_s"].items())
    )
    print("| an evaluation takes | devices | evaluations an hour | share of the store | share of a driver |")
    print("|---|---:|---:|---:|---:|")
    for row in found["sizing"]:
        print(
            f"| {row['evaluation']} | {row['devices']:,} | {row['per_hour']:,.0f} | {row['store_share']:.1%} "
            f"| {row['driver_share']:.1%} |"
        )
    print("above 3 devices this is computed from the rates above, not run")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--quick", action="store_true", help="200 evaluations instead of 2,000")
    parser.add_argument("--sizing", action="store_true", help="compute the table for 1 to 1,000 devices too")
    options = parser.parse_args()
    if find_spec("ray") is None:
        print("Ray is not installed: pip install 'tunewise[ray]'", file=sys.stderr)
        return
    size = 200 if options.quick else 2_000
    found: dict[str, Any] = {
        "evaluations": size,
        "load": os.getloadavg()[0],
        "one": rate(1, size),
        "three": rate(3, size),
    }
    found["ratio"] = found["three"]["per_s"] / found["one"]["per_s"]
    is_held = found["ratio"] >= 2.4
    found["targets"] = {"three nodes >= 2.4x one": is_held}
    if options.sizing:
        found["driver_per_s"] = driver_rate(200 if options.quick else 1_000)
        found["store_per_s"] = store_rates(1.0 if options.quick else 5.0)
        slowest = found["store_per_s"].get("postgres") or found["store_per_s"]["sqlite"]
        found["sizing"] = sizing(found["three"]["overhead_s"], found["driver_per_s"], slowest)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for name, devices in (("one", 1), ("three", 3)):
        row = found[name]
        print(
            f"{devices} node(s)  {row['per_s']:6.1f} evaluations/s  in {row['seconds']:6.1f} s  "
            f"{1e3 * row['overhead_s']:5.1f} ms an evaluation beyond its {1e3 * PAUSE_S:.0f} ms"
        )
    print(f"ratio three / one: {found['ratio']:.2f}   ({size} evaluations, load before {found['load']:.1f})")
    print(f"target three nodes >= 2.4x one: {'held' if is_held else 'not held'}")
    if options.sizing:
        report_sizing(found)


if __name__ == "__main__":
    main()
