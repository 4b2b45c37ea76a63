"""What the ranks of test jobs do: each scene is one rank's part, and returns what it saw."""

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import tunewise as tw
from tunewise.decision import Verdict
from tunewise.session import agreeing, context, traced
from tunewise.session.run import Run

WAYS = list(range(12))
IN_PROCESS = tw.Policy(isolation="none")


class Rank:
    """A rank in its scene."""

    def __init__(self, spec: Mapping[str, Any], rank: int, port: int) -> None:
        self.rank, self.size, self.place, self.args = rank, spec["size"], Path(spec["place"]), spec["args"]
        self.address, self.port = spec["args"].get("address", "127.0.0.1"), port

    def joins(self, store: str) -> None:
        """Join the group."""
        import torch.distributed as dist

        where = f"file://{self.place}/store" if store == "file" else f"tcp://{self.address}:{self.port}"
        dist.init_process_group("gloo", init_method=where, rank=self.rank, world_size=self.size)

    def marks(self, what: str, text: str = "") -> bool:
        """Leave a mark that the others see; return whether nobody had before."""
        try:
            with open(self.place / what, "x") as stream:
                stream.write(text)
        except FileExistsError:
            return False
        return True

    def sees(self, what: str) -> bool:
        """Return whether somebody left a mark."""
        return (self.place / what).exists()

    def waits_for(self, *marks: str) -> None:
        """Wait for marks."""
        deadline = time.monotonic() + 1_800
        while not all(map(self.sees, marks)):
            assert time.monotonic() < deadline, marks
            time.sleep(0.005)

    def meets(self, where: str) -> None:
        """Wait for all ranks."""
        self.marks(f"{where} {self.rank}")
        self.waits_for(*(f"{where} {rank}" for rank in range(self.size)))

    def dies(self, number: signal.Signals) -> None:
        """Send a signal to this very process, and do nothing more."""
        self.marks("victim", str(os.getpid()))
        os.kill(os.getpid(), number)
        time.sleep(600)

    def buries(self) -> None:
        """End the victim for good, once every other rank has its answer."""
        self.marks(f"done {self.rank}")
        if sum(self.sees(f"done {rank}") for rank in range(self.size)) == self.size - 1:
            with suppress(ProcessLookupError):
                os.kill(int((self.place / "victim").read_text()), signal.SIGKILL)


def play(spec: Mapping[str, Any], rank: int, port: int) -> Any:
    """Join the group and play a part."""
    if "limit_s" in spec["args"]:
        os.environ["TUNEWISE_RANKS_LIMIT_S"] = str(spec["args"]["limit_s"])
    tw.configure()
    me = Rank(spec, rank, port)
    me.joins(spec["store"])
    return SCENES[spec["scene"]](me)


def function(name: str = "spin", at: Callable[[int, int], None] = lambda n, way: None, **facts: Any) -> Any:
    """Return a function whose best way depends a little on its problem; `at` hears of every call."""
    declared: dict[str, Any] = {
        "space": tw.Space({"way": WAYS}),
        "default": {"way": 0},
        "features": lambda n: {"n": n},
        "inputs": lambda problem, seed: (problem["n"],),
        "policy": IN_PROCESS,
        "near": 1,
    }
    made = tw.Decision(name, **{**declared, **facts})

    @made.implementation
    def spin(n: int, way: int, **more: int) -> int:
        at(n, way)
        for _ in range(20 + 3 * abs(n % 12 - way)):
            pass
        return n

    return spin


def close_problems(me: Rank) -> Any:
    """Tune many problems, all ranks at once, and ask for all of them again."""
    spin, problems = function(), range(1000, 1000 + me.args["problems"])
    tunings = [spin.tune(n) for n in problems]
    again = [way_of(spin.decide(n)) for n in problems]
    me.meets("end")  # as programs do: the store that ranks on several machines agree in ends with rank 0
    return {
        "ways": [way_of(tuning.answer) for tuning in tunings],
        "measured": sum(tuning.measured for tuning in tunings),
        "again": again,
        "kept": [way_of(context.current_store().verdicts(subject_of(spin, n))[-1]) for n in problems],
        "verdicts": [len(context.current_store().verdicts(subject_of(spin, n))) for n in problems],
        "board": board_of(),
    }


def one_dies(me: Rank) -> Any:
    """Tune two problems; in the second, somebody is killed, stopped or hangs: the leader in the search, or who ends it.

    The first one is there so that all ranks have met.
    """
    sign, calls = getattr(signal, me.args["signal"]), me.args.get("calls")
    is_in_second, in_search, heard = False, me.args["who"] == "leader", 0

    def at(n: int, way: int) -> None:
        nonlocal heard
        if not in_search or not is_in_second:
            return
        heard += 1
        if me.rank == 0 and (way != 0 if calls is None else heard > calls) and me.marks("died"):
            me.dies(sign)
        if me.rank != 0 and calls is None and heard == 1:
            me.waits_for("died")  # or they might be done before the leader has anything to measure

    def final(run: Run) -> Verdict:
        if not in_search and is_in_second and me.marks("died"):
            me.dies(sign)
        return usual(run)

    usual, Run.final = Run.final, final  # type: ignore[method-assign, assignment]
    spin = function(at=at)
    first = spin.tune(1000)
    is_in_second = True
    start = time.monotonic()
    second = spin.tune(1003)
    seconds = time.monotonic() - start
    me.buries()
    reason = second.answer.reason
    return {
        "first": way_of(first.answer),
        "ways": [way_of(second.answer), way_of(spin.decide(1003))],
        "seconds": seconds,
        "reason": reason,
        "board": board_of(),
    }


def store_hangs(me: Rank) -> Any:
    """The rank that hosts the store is stopped, while one asks something, and wakes up; then all ask all."""
    from tunewise.fleet import ranks

    spin = function()
    spin.tune(1000)  # so that all have met
    if me.rank == 0:
        me.marks("host", str(os.getpid()))
    me.meets("met")
    if me.rank == 1:
        host = int((me.place / "host").read_text())
        os.kill(host, signal.SIGSTOP)
        try:
            spin.tune(1003)
        finally:
            os.kill(host, signal.SIGCONT)
        while ranks.current()._board._late:  # type: ignore[union-attr]
            time.sleep(0.005)
        me.marks("awake")
    me.waits_for("awake")
    if me.rank == 1:
        me.waits_for("done 0", "done 2")  # who could not reach the others asks last
    ways = [way_of(spin.tune(n).answer) for n in range(1003, 1007)]
    me.marks(f"done {me.rank}")
    me.meets("end")
    return {"ways": ways, "board": board_of()}


def leader_dies_first(me: Rank) -> Any:
    """The rank that hosts the store dies before some ranks have asked anything."""

    begun: list[bool] = []

    def at(n: int, way: int) -> None:
        if not begun:
            begun.append(me.marks("begun"))

    spin = function(at=at)
    if me.rank == 0:
        me.waits_for("begun")
        me.dies(signal.SIGKILL)
    if me.rank >= 2:
        me.waits_for("done 1")
    answer = spin.tune(1003).answer
    me.marks(f"done {me.rank}")
    return {"way": way_of(answer), "reason": answer.reason}


def warm_rank(me: Rank) -> Any:
    """One rank knows the answer and asks when the others are in the middle of measuring."""

    def at(n: int, way: int) -> None:
        me.marks("begun")
        me.waits_for("answered")

    spin = function(at=at)
    if me.rank == 1:
        remember(spin, 1003, 7)
        me.waits_for("begun")
    tuning = spin.tune(1003)
    me.marks("answered")
    return {"way": way_of(tuning.answer), "measured": tuning.measured}


def warm_caches(me: Rank) -> Any:
    """Every rank remembers something else; nobody measures. The last one is late, and has a pin of its own."""
    problems = list(range(20))
    spin = function()
    for n in problems:
        remember(spin, n, 1 + (me.rank + n) % 11)
    if me.rank == me.size - 1:
        me.waits_for(*(f"done {rank}" for rank in range(me.size - 1)))
    order = problems[me.rank :] + problems[: me.rank]
    ways = {n: way_of(spin.decide(n)) for n in order}
    me.marks(f"done {me.rank}")
    unknown = way_of(spin.decide(500))
    off = spin.decision.decide({"n": 3}, mode="off").config["way"]
    spin.decision.pin({"way": me.rank}, n=3)
    return {"ways": [ways[n] for n in problems], "unknown": unknown, "off": off, "pinned": way_of(spin.decide(3))}


def traced_code(me: Rank) -> Any:
    """Code is traced in `tune` mode; only the last rank knows something that is near."""
    spin = function(near=2)
    if me.rank == me.size - 1:
        remember(spin, 1000, 7)
        me.waits_for("traced 0")
    with tw.mode("tune"):
        way = way_of(traced.decide(spin.decision, {"n": 1003}))
    me.marks(f"traced {me.rank}")
    return {"ways": [way]}


def some_never_ask(me: Rank) -> Any:
    """The last rank never asks, the last but one when the others have their answer; in `tune` mode."""
    if me.rank == me.size - 1:
        me.waits_for("late")
        return "silent"
    calls: list[int] = []
    spin = function(at=lambda n, way: calls.append(way))
    if me.rank == me.size - 2:
        me.waits_for(*(f"done {rank}" for rank in range(me.size - 2)))
    with tw.mode("tune"):
        way = way_of(spin.decide(1003))
        first = len(calls)
        spin(1003)
    me.marks(f"done {me.rank}")
    if me.rank == me.size - 2:
        me.marks("late")
    return {"way": way, "calls": first, "then": len(calls) - first}


def groups_and_forks(me: Rank) -> Any:
    """A child that is forked answers alone; so does a process whose group is gone; a new group agrees anew."""
    import torch.distributed as dist

    spin = function()
    remember(spin, 1, 1 + me.rank)
    seen: dict[str, Any] = {"first": way_of(spin.decide(1))}
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writing, str(agreeing.agreement()).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    seen["in a child"] = os.read(reading, 100).decode()
    dist.barrier()
    dist.destroy_process_group()
    seen["after"] = str(agreeing.agreement())
    context.refresh()
    seen["alone"] = way_of(spin.decide(1))
    me.meets("left")
    me.place = me.place / "again"
    me.place.mkdir(exist_ok=True)
    me.joins("file")
    if me.rank == 0:
        me.waits_for("asked")
    spin.decide(2)  # nothing is known of it: this is where the new group is joined
    seen["second"] = way_of(spin.decide(1))
    me.marks("asked")
    return seen


def chaos(me: Rank) -> Any:
    """Tune some problems while ranks are killed at any moment; what each one heard is noted as it goes."""
    if str(me.rank) in me.args["deaths"]:
        threading.Timer(me.args["deaths"][str(me.rank)], lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    spin = function()
    with open(me.place / f"heard {me.rank}", "w") as heard:
        for n in range(1000, 1000 + me.args["problems"]):
            heard.write(f"{n} {way_of(spin.tune(n).answer)}\n")
            heard.flush()
    return "alive"


def threads_of_a_rank(me: Rank) -> Any:
    """Two threads of every rank ask for the same problem at once."""
    spin, tunings = function(), list[Any]()
    threads = [threading.Thread(target=lambda: tunings.append(spin.tune(1003))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"ways": [way_of(t.answer) for t in tunings], "measured": sorted(t.measured for t in tunings)}


VERSIONS: dict[str, dict[str, Any]] = {  # of a program, by what they declare otherwise
    "space": {"space": tw.Space({"way": [*WAYS[:6], 99]})},
    "parameter": {"space": tw.Space({"way": WAYS, "more": [1, 2]}), "default": {"way": 0, "more": 1}},
    "rule": {"space": tw.Space({"way": WAYS}, ["way < 9"])},
    "policy": {"policy": tw.Policy(isolation="none", clock="wall")},
    "default": {"default": {"way": 1}},
    "features": {"features": lambda n: {"n": n, "m": 1}},
    "check": {"check": tw.Check(rtol=0.5)},
    "version": {"version": "2"},
    "library": {"libraries": ("msgspec",)},
    "apart": {"space": tw.Space({"way": [50, 51]}), "default": {"way": 50}},
}


def versions_differ(me: Rank) -> Any:
    """Some ranks run another version of the program; all ask what each of them remembers otherwise, and then tune."""
    is_other = me.rank in me.args["others"]
    if me.args["kind"] == "code":
        most = 3 if is_other else 100
        facts: dict[str, Any] = {"space": tw.Space({"way": WAYS}, [(lambda way: way < most, "few ways")])}
    else:
        facts = VERSIONS[me.args["kind"]] if is_other else {}
    calls: list[int] = []
    spin = function(at=lambda n, way, **more: calls.append(n), **facts)
    default = spin.decision.default
    best = {**default, "way": {"space": 99, "apart": 51}.get(me.args["kind"], 8) if is_other else 7}
    extra = {"m": 1} if me.args["kind"] == "features" else {}
    won = Verdict("win", default, best, (2e-6,) * 10, (1e-6,) * 10, 2.0, 0.001, run=f"of {me.rank}")
    context.current_store().conclude(spin.decision.subject(spin.decision.problem({"n": 1000, **extra})), won)
    time.sleep(me.args.get("late_s", {}).get(str(me.rank), 0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.monotonic()
        ways = [way_of(spin.decide(1000)), way_of(spin.tune(1001).answer)]
        with tw.mode("tune"):
            ways.append(way_of(spin.decide(1002)))
            only_some = way_of(spin.tune(2000 + me.rank % 2).answer)
        seconds = time.monotonic() - start
        me.meets("asked")
        ways.append(way_of(spin.decide(1003)))
    me.meets("end")
    said = [str(one.message) for one in caught if "rank" in str(one.message)]
    return {"ways": ways, "some": only_some, "said": said, "measured": len(calls), "seconds": seconds}


def remember(spin: Any, n: int, way: int) -> None:
    """Put a verdict into this rank's own store."""
    subject = subject_of(spin, n)
    run = f"run of way {way}"
    won = Verdict("win", {"way": 0}, {"way": way}, (2e-6,) * 10, (1e-6,) * 10, 2.0, 0.001, evaluations=12, run=run)
    context.current_store().conclude(subject, won)


def subject_of(spin: Any, n: int) -> Any:
    """Return what a store files a problem under."""
    return spin.decision.subject(spin.decision.problem({"n": n}))


def way_of(found: Any) -> Any:
    """Return the way of an answer or a verdict."""
    return (found.winner if isinstance(found, Verdict) else found.config)["way"]


def board_of() -> str:
    """Return which kind of board this rank uses."""
    from tunewise.fleet import ranks

    joined = ranks.current()
    if joined is None or joined._is_lost:
        return "alone"
    return type(joined._board).__name__


SCENES: dict[str, Callable[[Rank], Any]] = {
    scene.__name__: scene
    for scene in (
        close_problems,
        one_dies,
        store_hangs,
        leader_dies_first,
        warm_rank,
        warm_caches,
        traced_code,
        some_never_ask,
        groups_and_forks,
        chaos,
        threads_of_a_rank,
        versions_differ,
    )
}
