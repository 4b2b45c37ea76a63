"""What we need of Ray, in one place: it is imported here only, and only when a fleet runs."""

import importlib
import logging
import socket
import sys
from collections.abc import Mapping
from typing import Any

from tunewise import settings, system
from tunewise.errors import MissingPart, NotFound
from tunewise.fleet.actor import DeviceActor

AUTO = "auto"
_PROBE_S = 5.0
_THREADS = 4  # of an actor: one works, the others answer how it goes


def ray() -> Any:
    """Return Ray; raises MissingPart if it is not installed, or the system has no worker processes to measure in."""
    if not system.has_worker_processes():
        raise MissingPart(f"a fleet needs Linux 5.3 or newer, and this is {sys.platform}; start it on Linux")
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise MissingPart(f"a fleet needs Ray ({error}): pip install 'tunewise[ray]'") from None


def connect(address: str) -> None:
    """Join a cluster as its driver; raises NotFound if there is none at the address."""
    found = _known_cluster() if address == AUTO else address
    if found is None or not _answers(found):  # Ray would wait for minutes, and then end the process
        raise NotFound(f"there is no Ray cluster at {found or 'this machine'}; start one with: ray start --head")
    try:
        ray().init(address=found, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise NotFound(f"there is no Ray cluster at {address} ({said}); start one with: ray start --head") from None


def alive_nodes() -> list[dict[str, Any]]:
    """Return the nodes that the cluster counts as alive."""
    return [node for node in ray().nodes() if node["Alive"]]


def shape(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return what counts of a node: where it is, and what it has. One without CPUs is to be left alone."""
    has = node["Resources"]
    return {"host": node["NodeManagerHostname"], "cpus": int(has.get("CPU", 0)), "gpus": int(has.get("GPU", 0))}


def start_actor(node: str, gpus: int, program: str, opening: str) -> Any:
    """Return the handle of a new actor on a node; it is started in the background."""
    scheduling = importlib.import_module("ray.util.scheduling_strategies")
    pinned = scheduling.NodeAffinitySchedulingStrategy(node, soft=False)
    options = {"num_cpus": 0, "num_gpus": gpus, "max_concurrency": _THREADS, "max_restarts": 0}
    return ray().remote(**options)(DeviceActor).options(scheduling_strategy=pinned).remote(program, opening)


def failure() -> type[Exception]:
    """Return what Ray raises where an actor or its node is gone."""
    error: type[Exception] = importlib.import_module("ray.exceptions").RayError
    return error


def _known_cluster() -> str | None:
    """Return the cluster that RAY_ADDRESS or the last `ray start` on this machine names, or None.

    Ray itself would also join any that runs here, such as the nodes of somebody's --local-nodes.
    """
    told = settings.variable("RAY_ADDRESS")
    if told and told != AUTO:
        return told
    services = importlib.import_module("ray._private.services")
    find = getattr(services, "find_bootstrap_address", None)
    found = find(None) if find is not None else None
    return str(found) if found else None


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        return True  # ray://... and the like: Ray knows
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PROBE_S).close()
    except OSError:
        return False
    return True
