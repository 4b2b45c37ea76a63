"""What is going on right now, as plain values gathered from a store alone, so that any process may look."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tunewise.errors import StoreError
from tunewise.report.live_board import Board
from tunewise.report.live_signs import RUNGS, Ladder, Node, Plan, Run, text
from tunewise.report.live_wins import Concluded, Heuristic
from tunewise.store import Store, StoreInfo

DAY_S = 86_400.0
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Most:
    """How many rows of a kind are told; the others are counted."""

    running: int = 50
    finished: int = 50
    ladder: int = 200
    heuristics: int = 200
    plans: int = 20
    nodes: int = 1_000


@dataclass(frozen=True, slots=True)
class Listed(Generic[_T]):
    """The first rows of a list, and how many there are beyond them."""

    rows: tuple[_T, ...] = ()
    more: int = 0

    @property
    def total(self) -> int:
        """How many there are in all."""
        return len(self.rows) + self.more


@dataclass(frozen=True, slots=True)
class Missing:
    """Problems of a decision that were asked about in vain and wait to be tuned."""

    decision: str
    problems: int
    asked: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """What it takes long to count in a large store: it is counted now and then, and told with its time."""

    at: float = 0.0
    took_s: float = 0.0
    info: StoreInfo | None = None  # None: not counted yet, or the store could not be read
    missing: tuple[Missing, ...] = ()
    heuristics: tuple[Heuristic, ...] = ()
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """How the store is: what it holds, what is wrong with it if anything, and how long it takes to answer."""

    info: StoreInfo | None = None
    trouble: str | None = None
    read_s: float = 0.0  # reading the signs of life took so long
    counted_at: float = 0.0
    counted_s: float = 0.0  # counting what the store holds took so long


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything the live page tells, at one moment. Counts are over all of the last day, lists over their rows."""

    at: float
    running: Listed[Run] = Listed()  # those heard of lately first, then the newest; stale ones last
    finished: Listed[Run] = Listed()  # the latest first
    runs: Mapping[str, int] = field(default_factory=dict)  # by state; `stale` are running and not heard of
    evaluations: int = 0
    failures: int = 0
    ladder: Listed[Ladder] = Listed()  # the most asked decisions first
    rungs: Mapping[str, int] = field(default_factory=dict)  # of all decisions
    missing: Listed[Missing] = Listed()  # the most asked first
    heuristics: Listed[Heuristic] = Listed()  # the most often asked first
    plans: Listed[Plan] = Listed()  # those that run first, then the latest
    nodes: Listed[Node] = Listed()  # busy ones first
    node_states: Mapping[str, int] = field(default_factory=dict)  # by state; `stale` are busy and not heard of
    health: Health = Health()


def snapshot(store: Store, now: float, *, most: Most | None = None) -> Snapshot:
    """Return what is going on, counted afresh; trouble with the store is told inside and never raised."""
    start = time.perf_counter()
    try:
        signs, trouble = store.signs(since=now - DAY_S), None
    except StoreError as error:
        signs, trouble = [], str(error)
    read_s = time.perf_counter() - start
    return told(Board(signs), count(store, now), now, read_s=read_s, trouble=trouble, most=most)


def told(
    board: Board,
    ledger: Ledger,
    now: float,
    *,
    read_s: float = 0.0,
    trouble: str | None = None,
    most: Most | None = None,
) -> Snapshot:
    """Return what signs of life and a ledger tell."""
    most = most or Most()
    states, asked, nodes = board.states(now), board.ladder(), board.nodes(now)
    running, finished = board.running(now, most.running), board.finished(now, most.finished)
    going = states["running"] + states["stale"]
    return Snapshot(
        at=now,
        running=Listed(tuple(running), going - len(running)),
        finished=Listed(tuple(finished), sum(states.values()) - going - len(finished)),
        runs=dict(states),
        evaluations=board.evaluations,
        failures=board.failures,
        ladder=_first(asked, most.ladder),
        rungs=_rungs(asked),
        missing=_first(ledger.missing, most.ladder),
        heuristics=_first(ledger.heuristics, most.heuristics),
        plans=_first(board.plans(now), most.plans),
        nodes=_first(nodes, most.nodes),
        node_states=dict(Counter("stale" if node.is_stale else node.state for node in nodes)),
        health=Health(ledger.info, trouble or ledger.trouble, read_s, ledger.at, ledger.took_s),
    )


def count(store: Store, now: float, concluded: Concluded | None = None) -> Ledger:
    """Return what the store holds; a large one takes seconds, less where `concluded` knows its verdicts."""
    start = time.perf_counter()
    try:
        info, missing = store.info(), _missing(store)
        verdicts = sum(held.verdicts for held in (info, *info.layers))
        heuristics = (concluded or Concluded()).heuristics(store, verdicts)
    except StoreError as error:
        return Ledger(now, time.perf_counter() - start, trouble=str(error))
    return Ledger(now, time.perf_counter() - start, info, missing, heuristics, _trouble(info))


def _first(rows: Sequence[_T], most: int) -> Listed[_T]:
    return Listed(tuple(rows[:most]), max(0, len(rows) - most))


def _rungs(asked: Iterable[Ladder]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in asked:
        total.update(one.rungs)
    return {rung: total[rung] for rung in RUNGS}


def _missing(store: Store) -> tuple[Missing, ...]:
    problems: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for miss in store.misses():
        problems[miss.decision] += 1
        asked[miss.decision] += miss.count
    rows = (Missing(text(decision), number, asked[decision]) for decision, number in problems.items())
    return tuple(sorted(rows, key=lambda row: (-row.asked, row.decision)))


def _trouble(info: StoreInfo) -> str | None:
    return next((held.trouble for held in (info, *info.layers) if held.trouble is not None), None)
