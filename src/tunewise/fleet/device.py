"""The process of one device: opens a plan, does the units it is handed, and ends with whoever started it."""

import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tunewise import settings, system
from tunewise.decision import canonical
from tunewise.errors import StoreError, TunewiseError
from tunewise.fleet import lines, plans
from tunewise.fleet.doing import Doer
from tunewise.fleet.patient import PATIENCE_S, PatientStore
from tunewise.fleet.rehearsal import Declared, Rehearsed, Target
from tunewise.session import Decision, configure
from tunewise.store import LayeredStore, SafeStore, Store, store_at

Finder = Callable[[Sequence[str]], list[Decision]]
HANDSHAKE = "fleet"  # the kind of sign by which a device knows that its store is the one of whoever runs the plan
_TICK_S = 1.0
_HANDSHAKE_S = 3.0


class Presence:
    """Knows when this process was held up: stopped, swapped out, or on a machine that slept."""

    def __init__(self) -> None:
        self._last = _now()
        self._was_away = False

    def tick(self) -> None:
        """Note that the process runs; called once a second."""
        self._was_away = self.is_away()
        self._last = _now()

    def is_away(self) -> bool:
        """Return whether it was held up for so long that others may have taken over, since it last came back."""
        return self._was_away or _now() - self._last > PATIENCE_S

    def come_back(self) -> None:
        """Begin anew with a unit that was handed out after any of that."""
        self._last, self._was_away = _now(), False


class Device:
    """One device of a fleet, as its own process sees it."""

    def __init__(self, find: Finder, said: lines.Writer) -> None:
        self._find, self._said = find, said
        self._presence = Presence()
        self._stopping = threading.Event()
        self._evaluations = 0
        self._doer: Doer | None = None

    def stop(self) -> None:
        """Let the evaluation at hand be the last one of the unit."""
        self._stopping.set()

    def tick(self) -> None:
        """Note that the process runs."""
        self._presence.tick()

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a message: what the device is, or what became of a unit."""
        if "open" in message:
            try:
                return self._open(message["open"])
            except TunewiseError as error:
                return {"refused": str(error)}
        assert self._doer is not None
        self._presence.come_back()
        report = self._doer.do(plans.unit_of(message["unit"]))
        return {"report": asdict(report), "evaluations": self._evaluations}

    def _open(self, opening: Mapping[str, Any]) -> dict[str, Any]:
        plan = plans.read(opening["plan"])
        if opening["place"]:
            configure(store=opening["place"])
        store = PatientStore(_store(), is_away=self._presence.is_away)
        _meet(store, opening["token"])
        if plan.directory and os.path.isdir(plan.directory):
            os.chdir(plan.directory)
        targets = [self._target(work) for work in plan.work]
        self._doer = Doer(plan, targets, store, stop=self._stopping.is_set, tell=self._count)
        facts = [_facts(target, work) for target, work in zip(targets, plan.work, strict=True)]
        name = str(next((fact["hardware.name"] for fact in facts), "unknown"))
        return {"device": {"kind": canonical.digest(facts)[:16], "name": name, "pid": os.getpid()}}

    def _target(self, work: plans.Work) -> Target:
        if work.replay:
            return Rehearsed(Path(work.replay), work.pause_s)
        return Declared(self._find([work.target])[0])

    def _count(self) -> None:
        self._evaluations += 1
        self._said.send({"evaluations": self._evaluations})


def serve(find: Finder) -> None:
    """Be a device: answer messages on standard input until it is closed. `find` finds the decisions of targets."""
    said = lines.Writer(lines.own_output())
    device, asked = Device(find, said), queue.Queue[dict[str, Any]]()
    for watch in (lambda: _listen(device, asked), lambda: _tick(device)):
        threading.Thread(target=watch, daemon=True).start()
    while True:
        said.send(device.answer(asked.get()))


def _listen(device: Device, asked: "queue.Queue[dict[str, Any]]") -> None:
    """Pass messages on; a stop is heard at once, and the end of whoever hands out units is ours."""
    try:
        for message in lines.Reader(0):
            if "stop" in message:
                device.stop()
            else:
                asked.put(message)
    finally:
        os.kill(os.getpid(), signal.SIGKILL)  # a measurement under way must not be written any more


def _tick(device: Device) -> None:
    while True:
        time.sleep(_TICK_S)
        device.tick()


def _store() -> Store:
    chosen = settings.current()
    top = store_at(chosen.store or chosen.home)
    if not chosen.layers:
        return top
    return LayeredStore(top, [SafeStore(store_at(layer, is_shared=True)) for layer in chosen.layers])


def _meet(store: Store, token: str) -> None:
    """Raise StoreError unless this store is the one that the plan is run for: a sign given there must be here."""
    deadline = time.monotonic() + _HANDSHAKE_S
    while not any(sign.key == token for sign in store.signs(HANDSHAKE)):
        if time.monotonic() > deadline:
            chosen = settings.current()
            raise StoreError(
                f"the store of this node, {settings.shown(chosen.store or chosen.home)}, is not that of whoever runs "
                "the plan; start Ray on every node with TUNEWISE_STORE set to one PostgreSQL address"
            )
        time.sleep(0.2)


def _facts(target: Target, work: plans.Work) -> dict[str, Any]:
    return target.subject(work.problems[0]).environment.must


def _now() -> float:
    return system.uptime_s()
