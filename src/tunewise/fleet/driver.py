"""The driver of a fleet: keeps an actor on every device of a Ray cluster, and hands out units until none is left."""

import os
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tunewise import settings
from tunewise.decision import canonical
from tunewise.errors import StoreError
from tunewise.eventlog import INFO, WARNING
from tunewise.fleet import lines, plans, ray_side
from tunewise.fleet.device import HANDSHAKE
from tunewise.fleet.line import Line
from tunewise.fleet.plans import FleetPlan, Unit
from tunewise.fleet.telling import Held, Teller
from tunewise.session.context import current_store
from tunewise.store import Sign

PATIENCE_S = 60.0  # for a device that does not answer, and for a node where there is none
_OPENING_S = 180.0
_ROUND_S = 0.2
_NODES_S, _LOOK_S, _TELL_S = 1.0, 1.0, 0.5
_WINDING_UP_S = 60.0  # for the evaluations at hand when somebody wants to stop
_MOST_OPENINGS = 5  # of a device that dies or is lost before it has done anything
_MOST_REFUSALS = 3
_AGAIN_S = 3.0  # until a device that was lost is started again


class Driver:
    """Hands out the units of one plan to the devices of one cluster."""

    def __init__(self, plan: FleetPlan, program: str, place: str, told: lines.Writer) -> None:
        self._plan, self._program = plan, program
        self._units = plans.units(plan)
        self._token = canonical.digest([plan.id, os.getpid(), time.time(), socket.gethostname()])[:32]
        self._opening = canonical.encode({"plan": plans.written(plan), "place": place, "token": self._token})
        self._lines: dict[str, Line] = {}
        self._held: dict[str, Held] = {}
        self._not_before: dict[str, float] = {}  # device -> when it may be started (again)
        self._openings: dict[str, int] = {}
        self._refused: dict[str, str] = {}  # device -> why
        self._without = time.monotonic()  # since when there is a kind without devices
        self._evaluations = 0  # of devices that are gone
        self._known = 0
        self._due = dict.fromkeys(("nodes", "look", "tell"), 0.0)
        self._stopping_at: float | None = None
        self._is_stopping = threading.Event()
        self._teller = Teller(plan, told, current_store())

    def stop(self) -> None:
        """Hand out no more units; from any thread."""
        self._is_stopping.set()

    def run(self) -> dict[str, Any]:
        """Return how it ended, once all units are done or failed, nobody is left to do them, or somebody stopped it."""
        self._shake_hands()
        state = ""
        while not state:
            self._enlist()
            self._hand_out()
            self._collect()
            self._look()
            self._tell()
            state = self._ending()
        return self._end(state)

    def _shake_hands(self) -> None:
        current_store().show(Sign(HANDSHAKE, self._token, time.time(), {"plan": self._plan.id}))

    def _enlist(self) -> None:
        """Start an actor on every device that has none."""
        if not self._is_due("nodes", _NODES_S) or self._is_stopping.is_set():
            return
        nodes = ray_side.alive_nodes()
        _check_store(nodes)
        for node in nodes:
            shape = ray_side.shape(node)
            gpus = int(shape["gpus"])
            for place in range(gpus or (self._plan.devices if shape["cpus"] else 0)):
                key = f"{node['NodeID'][:12]}.{place}"
                if key not in self._held and key not in self._refused and self._is_time(key):
                    self._start(key, node, min(gpus, 1))

    def _is_time(self, key: str) -> bool:
        return time.monotonic() >= self._not_before.get(key, 0.0)

    def _start(self, key: str, node: Mapping[str, Any], gpus: int) -> None:
        self._shake_hands()  # signs go after a while
        actor = ray_side.start_actor(node["NodeID"], gpus, self._program, self._opening)
        place = f"{node['NodeManagerHostname']} {key}"
        held = self._held[key] = Held(key, node["NodeID"], place, actor, time.monotonic())
        held.calls["open"] = actor.open.remote()

    def _hand_out(self) -> None:
        if self._is_stopping.is_set():
            self._ask_to_stop()
            return
        for held in self._held.values():
            line = self._lines.get(held.kind)
            if line is not None and held.unit is None and (unit := line.take()) is not None:
                held.unit = unit
                held.calls["work"] = held.actor.work.remote(canonical.encode(asdict(unit)))
                self._teller.show(held)

    def _ask_to_stop(self) -> None:
        if self._stopping_at is None:
            self._stopping_at = time.monotonic()
            for held in self._held.values():
                held.actor.stop.remote()

    def _collect(self) -> None:
        """Wait a moment for answers, and note what they say."""
        refs = {ref: (held, asked) for held in self._held.values() for asked, ref in held.calls.items()}
        if not refs:
            time.sleep(_ROUND_S)
            return
        ray = ray_side.ray()
        ready, _ = ray.wait(list(refs), num_returns=1, timeout=_ROUND_S)
        if ready:
            ready, _ = ray.wait(list(refs), num_returns=len(refs), timeout=0)
        for ref in ready:
            held, asked = refs[ref]
            if held.calls.pop(asked, None) is None:  # of a device that was lost a moment ago
                continue
            try:
                answer = canonical.decode(ray.get(ref), lines.MAX_BYTES)
            except ray_side.failure():
                self._lose(held)
            else:
                self._heard(held, asked, answer)

    def _heard(self, held: Held, asked: str, answer: Mapping[str, Any]) -> None:
        held.evaluations = int(answer.get("evaluations", held.evaluations))
        if "refused" in answer:
            self._refuse(held, str(answer["refused"]))
        elif asked == "open":
            self._opened(held, answer)
        elif asked == "work":
            self._worked(held, answer)

    def _opened(self, held: Held, answer: Mapping[str, Any]) -> None:
        if "device" not in answer:
            self._lose(held, f"its process died {answer['died']}")
            return
        held.kind, held.name = answer["device"]["kind"], answer["device"]["name"]
        if held.kind not in self._lines:
            if self._lines:
                self._teller.say(
                    f"{held.place} differs from the nodes before it in hardware or versions: it does all units too"
                )
            self._lines[held.kind] = Line(self._units)
        self._teller.say(f"{held.place}: {held.name} takes part")
        self._teller.log(held, INFO, "node-joined")
        self._teller.show(held)

    def _worked(self, held: Held, answer: Mapping[str, Any]) -> None:
        unit, line = held.unit, self._lines[held.kind]
        assert unit is not None
        held.unit = None
        self._openings.pop(held.key, None)
        if "died" in answer:
            line.died(unit, str(answer["died"]))
            self._teller.say(f"{held.place}: the process doing {plans.title(self._plan, unit)} died {answer['died']}")
        else:
            self._note(held, line, unit, answer["report"])
        self._teller.show(held)

    def _note(self, held: Held, line: Line, unit: Unit, report: Mapping[str, Any]) -> None:
        state = report["state"]
        if state == "done":
            held.done += 1
            self._known += bool(report["known"])
            line.end(unit)
        elif state == "failed":
            held.failed += 1
            line.fail(unit, str(report["why"]))
            self._teller.say(f"failed: {plans.title(self._plan, unit)}: {report['why']}")
        else:
            line.give_back(unit, is_busy=state == "busy")

    def _refuse(self, held: Held, why: str) -> None:
        """Leave a device out that cannot take part; it is asked again before that: a store may be away for a moment."""
        tries = self._openings[held.key] = self._openings.get(held.key, 0) + 1
        self._not_before[held.key] = time.monotonic() + _AGAIN_S * tries
        if tries >= _MOST_REFUSALS:
            self._refused[held.key] = why
            self._teller.say(f"{held.place} is left out: {why}")
        if held.unit is not None:
            self._lines[held.kind].give_back(held.unit)
        self._drop(held)

    def _lose(self, held: Held, how: str = "") -> None:
        """Put back what a device had in hand, and start it again after a while if its node is still there."""
        self._teller.log(held, WARNING, "node-lost")
        said = f": {how}" if how else ""
        self._teller.say(
            f"{held.place} is lost{said}"
            + (f", {plans.title(self._plan, held.unit)} goes elsewhere" if held.unit else "")
        )
        if held.unit is not None:
            self._lines[held.kind].lost(held.unit)
        self._openings[held.key] = self._openings.get(held.key, 0) + 1
        self._not_before[held.key] = time.monotonic() + _AGAIN_S * self._openings[held.key]
        if self._openings[held.key] >= _MOST_OPENINGS:
            self._refused[held.key] = f"it was lost {_MOST_OPENINGS} times in a row{said}"
        self._drop(held)

    def _drop(self, held: Held) -> None:
        del self._held[held.key]
        held.calls.clear()
        self._evaluations += held.evaluations
        ray_side.ray().kill(held.actor)
        held.unit = None
        self._teller.gone(held)

    def _look(self) -> None:
        """Ask the busy ones how it goes; who does not answer for long is lost."""
        now = time.monotonic()
        for held in list(self._held.values()):
            if "open" in held.calls and now - held.opened_at > _OPENING_S:
                self._lose(held, f"it did not open within {_OPENING_S:g} s")
            elif "look" in held.calls and now - held.asked_at > PATIENCE_S:
                self._lose(held, f"it did not answer for {PATIENCE_S:g} s")
        # A thousand devices are not asked a thousand times a second.
        if self._is_due("look", max(_LOOK_S, len(self._held) / 200)):
            for held in self._held.values():
                if held.unit is not None and "look" not in held.calls:
                    held.calls["look"], held.asked_at = held.actor.look.remote(), now

    def _ending(self) -> str:
        """Return why it is over, or nothing."""
        if self._lines and all(line.is_over for line in self._lines.values()):
            return "done"
        if self._is_stopping.is_set():
            started = self._stopping_at or time.monotonic()
            is_idle = all(held.unit is None for held in self._held.values())
            return "stopped" if is_idle or time.monotonic() - started > _WINDING_UP_S else ""
        present = {held.kind for held in self._held.values()}
        waiting = [kind for kind, line in self._lines.items() if not line.is_over and kind not in present]
        if not waiting and (self._lines or any("open" in held.calls for held in self._held.values())):
            self._without = time.monotonic()
        elif self._refused and not self._held:
            return "refused"
        return "left" if time.monotonic() - self._without > PATIENCE_S else ""

    def _end(self, state: str) -> dict[str, Any]:
        self._tell(is_last=state)
        for held in list(self._held.values()):
            self._drop(held)
        self._teller.close()
        failed = [
            {"unit": plans.title(self._plan, unit), "why": line.failed[unit.id]}
            for line in self._lines.values()
            for unit in self._units
            if unit.id in line.failed
        ]
        return {"state": state, "failed": failed, "refused": sorted(set(self._refused.values())), **self._counts()}

    def _counts(self) -> dict[str, Any]:
        each = list(self._lines.values())
        return {
            "units": len(self._units) * max(1, len(each)),
            "done": sum(len(line.done) for line in each),
            "known": self._known,
            "running": sum(held.unit is not None for held in self._held.values()),
            "nodes": sum(bool(held.kind) for held in self._held.values()),
            "evaluations": self._evaluations + sum(held.evaluations for held in self._held.values()),
        }

    def _tell(self, is_last: str = "") -> None:
        if not is_last and not self._is_due("tell", _TELL_S):
            return
        counts = {**self._counts(), "failures": sum(len(line.failed) for line in self._lines.values())}
        self._teller.progress(counts, list(self._held.values()), is_last)

    def _is_due(self, what: str, pause_s: float) -> bool:
        now = time.monotonic()
        if now < self._due[what]:
            return False
        self._due[what] = now + pause_s
        return True


def _check_store(nodes: list[dict[str, Any]]) -> None:
    """Raise StoreError where machines are to share a file."""
    chosen = settings.current()
    place = chosen.store or chosen.home
    machines = {node["NodeManagerAddress"] for node in nodes}
    if len(machines) > 1 and not settings.is_server(place):
        raise StoreError(
            f"a plan on {len(machines)} machines needs a store that they share, and {place} is a file on this one: "
            "set TUNEWISE_STORE to a PostgreSQL address on each of them"
        )
