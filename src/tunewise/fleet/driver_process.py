"""The process that a driver runs in: joins the cluster, does as it is told, and tells how it goes.

It is one of its own, because a Ray driver ends with its cluster's head; whoever started it starts it again.
"""

import os
import signal
import threading
from typing import Any

from tunewise.errors import TunewiseError
from tunewise.fleet import lines, plans, ray_side
from tunewise.fleet.driver import Driver
from tunewise.session import configure

_JOINING_S = 30.0


def main() -> None:
    """Be the driver: the first message says where and what to run, a later one asks to stop.

    Without a plan it tells which nodes there are.
    """
    told, asked = lines.Writer(lines.own_output()), iter(lines.Reader(0))
    job = next(asked, {})
    try:
        watch = threading.Timer(_JOINING_S, _give_up, (told, job["address"]))
        watch.start()
        ray_side.connect(job["address"])
        watch.cancel()
        if "plan" not in job:
            told.send({"nodes": [ray_side.shape(node) for node in ray_side.alive_nodes()]})
            os._exit(0)
        if job["place"]:
            configure(store=job["place"])
        driver = Driver(plans.read(job["plan"]), job["program"], job["place"], told)
        threading.Thread(target=_listen, args=(asked, driver), daemon=True).start()
        told.send({"end": driver.run()})
    except TunewiseError as error:
        told.send({"error": type(error).__name__, "said": str(error)})
    os._exit(0)  # Ray's own end takes seconds, and the cluster notices ours at once


def _listen(asked: Any, driver: Driver) -> None:
    for message in asked:
        if "stop" in message:
            driver.stop()
    os.kill(os.getpid(), signal.SIGKILL)  # whoever started us is gone: nobody may go on measuring for it


def _give_up(told: lines.Writer, address: str) -> None:
    """End a driver that Ray keeps waiting for a cluster which does not let it in."""
    said = (
        f"the Ray cluster at {address} let nobody in within {_JOINING_S:g} s; see whether it is well with: ray status"
    )
    told.send({"error": "NotFound", "said": said})
    os._exit(1)


if __name__ == "__main__":
    main()
