"""Running a plan to its end: starts the driver, and starts it again, with the local nodes if need be, if it dies."""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from tunewise import errors, settings
from tunewise.errors import TunewiseError
from tunewise.fleet import lines, plans, ray_side
from tunewise.fleet.below import start_below
from tunewise.fleet.cluster import LocalNodes
from tunewise.fleet.plans import FleetPlan

Hear = Callable[[Mapping[str, Any]], None]
_SILENT_S = 120.0  # a driver that says nothing for so long is stuck
_PATIENCE_S = 300.0  # in which a cluster that is gone may come back
_AGAIN_S, _GLANCE_S = 1.0, 0.5
_TAIL = 4000
_MOST_IN_VAIN = 6
_STOPPED = {"state": "stopped", "units": 0, "done": 0, "known": 0, "evaluations": 0, "failed": (), "refused": ()}


@dataclass(frozen=True, slots=True)
class Result:
    """How a plan ended: `done` (with or without failed units), `stopped`, or `left` without anybody to do the rest."""

    state: str
    units: int = 0
    done: int = 0
    known: int = 0
    evaluations: int = 0
    failed: tuple[Mapping[str, str], ...] = ()
    refused: tuple[str, ...] = ()
    restarts: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class _Driver:
    process: "subprocess.Popen[bytes]"
    log: IO[bytes]
    heard_at: float = field(default_factory=time.monotonic)


class Supervisor:
    """Runs one plan. `program` is the module that is run as the process of a device; `hear` is told how it goes."""

    def __init__(
        self, plan: FleetPlan, *, program: str, hear: Hear, address: str = ray_side.AUTO, local_nodes: int = 0
    ) -> None:
        ray_side.ray()
        self._plan, self._program, self._hear, self._address = plan, program, hear, address
        self._nodes = LocalNodes(local_nodes) if local_nodes else None
        self._driver: _Driver | None = None
        self._before = self._latest = 0  # evaluations of earlier drivers, and of this one
        self._restarts = self._in_vain = 0
        self._is_stopping = False

    def run(self) -> Result:
        """Return how the plan ended; raises what the driver refuses, such as StoreError.

        The first KeyboardInterrupt lets the evaluations at hand finish, the second one ends everything at once.
        """
        began = time.monotonic()
        try:
            end = self._until_the_end()
        finally:
            self._close()
        return Result(
            state=end["state"],
            units=end["units"],
            done=end["done"],
            known=end["known"],
            evaluations=self._before + int(end["evaluations"]),
            failed=tuple(end["failed"]),
            refused=tuple(end["refused"]),
            restarts=self._restarts,
            seconds=time.monotonic() - began,
        )

    def _until_the_end(self) -> Mapping[str, Any]:
        lost_at: float | None = None
        while True:
            self._begin()
            heard = self._watched()
            if heard is not None and "end" in heard:
                end: Mapping[str, Any] = heard["end"]
                return end
            if heard is not None and heard["error"] == "NotFound" and self._can_start_one(lost_at):
                self._nodes = LocalNodes(1)
                continue
            if self._is_stopping:
                return _STOPPED
            lost_at = lost_at or time.monotonic()
            if heard is not None and (heard["error"] != "NotFound" or not self._restarts or self._is_out(lost_at)):
                raise _error(heard)
            if heard is None:
                lost_at = time.monotonic()
            self._again(heard)

    def _can_start_one(self, lost_at: float | None) -> bool:
        return self._address == ray_side.AUTO and self._nodes is None and lost_at is None

    def _is_out(self, lost_at: float) -> bool:
        return time.monotonic() - lost_at > _PATIENCE_S

    def _again(self, heard: Mapping[str, Any] | None) -> None:
        self._before, self._latest = self._before + self._latest, 0
        self._restarts += 1
        self._in_vain += 1
        if self._in_vain >= _MOST_IN_VAIN:
            raise TunewiseError(
                f"the driver of the fleet died {_MOST_IN_VAIN} times before a unit was done{self._last_words()}"
            )
        if self._nodes is not None and self._nodes.is_broken():
            self._hear({"say": "the head of the cluster is gone: starting the local nodes again"})
            self._nodes.stop()
        elif heard is None:
            self._hear({"say": f"the driver is gone{self._last_words()}: starting it again"})
        self._end_driver()
        time.sleep(_AGAIN_S)

    def _last_words(self) -> str:
        """Return what the driver left in its log, in brackets: Ray and Python tell the reason there."""
        if self._driver is None:
            return ""
        log = self._driver.log
        log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
        said = log.read().decode(errors="replace").strip().splitlines()
        return f" ({said[-1][-300:]})" if said else ""

    def _begin(self) -> None:
        if self._nodes is not None and not self._nodes.is_running:
            self._hear({"say": "starting Ray on this machine"})
            self._nodes.start()
        chosen = settings.current()
        place = chosen.store or chosen.home
        log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the driver
        environment = ["env", *self._nodes.environment] if self._nodes is not None else []
        command = [*environment, sys.executable, "-m", "tunewise.fleet.driver_process"]
        process = start_below(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self._driver = _Driver(process, log)
        job = {
            "plan": plans.written(self._plan),
            "program": self._program,
            "address": self._nodes.address if self._nodes is not None else self._address,
            # An address may hold a password, so each machine has its own way to it; a directory is told.
            "place": "" if settings.is_server(place) else str(place),
        }
        self._send(job)

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._driver is not None
        assert self._driver.process.stdin is not None
        try:
            lines.Writer(self._driver.process.stdin.fileno()).send(message)
        except OSError:
            return  # it is gone, which whoever watches it will see

    def _watched(self) -> Mapping[str, Any] | None:
        """Return the last word of the driver, or None if it died without one."""
        driver = self._driver
        assert driver is not None
        assert driver.process.stdout is not None
        reader = lines.Reader(driver.process.stdout.fileno())
        while True:
            try:
                if select.select([reader.fd], [], [], _GLANCE_S)[0]:
                    said = reader.read()
                    if said is None:
                        return None
                    driver.heard_at = time.monotonic()
                    last = [self._note(message) for message in said][-1:]
                    if last and last[0] is not None:
                        return last[0]
                if self._is_hopeless(driver):
                    return None
                for news in self._nodes.news() if self._nodes is not None else ():
                    self._hear({"say": news})
            except KeyboardInterrupt:
                self._stop()

    def _note(self, message: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Pass on how it goes; return the message if it is the last one of the driver."""
        if "end" in message or "error" in message:
            return message
        if "progress" in message:
            self._latest = int(message["progress"]["evaluations"])
            if message["progress"]["done"] > message["progress"]["known"]:
                self._in_vain = 0
            total = self._before + self._latest
            message = {**message, "progress": {**message["progress"], "evaluations": total}}
        self._hear(message)
        return None

    def _is_hopeless(self, driver: _Driver) -> bool:
        is_silent = time.monotonic() - driver.heard_at > _SILENT_S
        return is_silent or (self._nodes is not None and self._nodes.is_broken())

    def _stop(self) -> None:
        if self._is_stopping:
            raise KeyboardInterrupt
        self._is_stopping = True
        self._hear({"say": "stopping: the evaluations at hand are finished first; Ctrl-C again ends at once"})
        self._send({"stop": True})

    def _end_driver(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.process.kill()
            driver.process.wait()
            for pipe in (driver.process.stdin, driver.process.stdout, driver.log):
                if pipe is not None:
                    pipe.close()

    def _close(self) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # nothing of ours is left behind
        try:
            self._end_driver()
            if self._nodes is not None:
                self._nodes.stop()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def nodes_at(address: str) -> list[dict[str, Any]] | None:
    """Return the nodes of a cluster with their CPUs and GPUs; None if there is no cluster at the address."""
    ray_side.ray()
    command = [sys.executable, "-m", "tunewise.fleet.driver_process"]
    process = start_below(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    assert process.stdout is not None
    with process, process.stdin, process.stdout:
        lines.Writer(process.stdin.fileno()).send({"address": address})
        heard: Mapping[str, Any] = next(iter(lines.Reader(process.stdout.fileno())), {})
        process.kill()
    nodes: list[dict[str, Any]] | None = heard.get("nodes")
    return nodes


def _error(heard: Mapping[str, Any]) -> TunewiseError:
    kind = getattr(errors, str(heard["error"]), TunewiseError)
    error: TunewiseError = kind(str(heard["said"]))
    return error
