"""What a driver tells of its plan and devices: remarks and counts to whoever started it, signs to the store, events."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tunewise.eventlog import tell
from tunewise.fleet import lines, plans
from tunewise.fleet.plans import FleetPlan, Unit
from tunewise.fleet.signs import Signs
from tunewise.store import Store

_MOST_AT_HAND = 10  # units named in a message


@dataclass(slots=True)
class Held:
    """One device as the driver sees it."""

    key: str
    node: str
    place: str  # for people
    actor: Any
    opened_at: float
    name: str = ""
    kind: str = ""
    unit: Unit | None = None
    calls: dict[str, Any] = field(default_factory=dict)  # what is asked -> reference of the answer
    asked_at: float = 0.0  # the last look
    evaluations: int = 0
    done: int = 0
    failed: int = 0
    since: float = field(default_factory=time.time)


class Teller:
    """Tells how one plan goes."""

    def __init__(self, plan: FleetPlan, told: lines.Writer, store: Store) -> None:
        self._plan, self._told, self._signs, self._began = plan, told, Signs(store), time.time()

    def say(self, text: str) -> None:
        """Pass on a remark for people."""
        self._told.send({"say": text})

    def progress(self, counts: Mapping[str, Any], held: Sequence[Held], ended: str) -> None:
        """Tell how far the plan is and what its devices are at; `ended` is why it is over, or nothing."""
        for device in held:
            if device.kind:
                self.show(device)
        at_hand = [plans.title(self._plan, device.unit) for device in held if device.unit is not None]
        self._told.send({"progress": counts, "at": at_hand[:_MOST_AT_HAND]})
        body = {"name": self._plan.name, "kind": self._plan.kind, **counts, "began": self._began}
        states = {"": "running", "done": "done"}
        body |= {"state": states.get(ended, "stopped"), "failed": body.pop("failures")}
        self._signs.say("plan", self._plan.id, body)

    def show(self, held: Held) -> None:
        """Give a sign of a device."""
        self._signs.say("node", held.key, self._body(held, "idle" if held.unit is None else "busy"))

    def gone(self, held: Held) -> None:
        """Give the last sign of a device."""
        self._signs.forget("node", held.key, self._body(held, "gone"))

    def log(self, held: Held, level: int, event: str) -> None:
        """Tell those who operate the fleet; not by the node's name, which may be a host's."""
        plan = self._plan.id
        facts = {"plan": plan, "node": held.key, "device": held.name, "done": held.done, "failed": held.failed}
        tell(level, event, f"{event} in plan {plan}: {held.name or held.key}", **facts)

    def close(self) -> None:
        """Give the last signs."""
        self._signs.close()

    def _body(self, held: Held, state: str) -> dict[str, Any]:
        return {
            "plan": self._plan.id,
            "name": held.place,
            "device": held.name,
            "state": state,
            "unit": None if held.unit is None else plans.title(self._plan, held.unit)[:500],
            "done": held.done,
            "failed": held.failed,
            "evaluations": held.evaluations,
            "since": held.since,
        }
