"""Ray nodes on this machine, for trying a plan: one keeper process holds them all, and clears up when we are gone."""

import os
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tunewise.errors import NotFound
from tunewise.fleet import lines
from tunewise.fleet.below import adopt_orphans, bury, end_all, end_those_of, start_below
from tunewise.measure import procfs

_START_S = 90.0
_STORE_BYTES = 80_000_000  # Ray's object store: nothing of ours goes through it
_STOP_S = 10.0
_MOST_MENDED = 3  # times that a node is started again
_ROUND_S = 0.25
_UP = "Ray runtime started"  # in the log of a node that is


class LocalNodes:
    """A head and further nodes, as whoever runs a plan sees them. Nodes that die are started again, the head apart."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._keeper: subprocess.Popen[bytes] | None = None
        self._reader: lines.Reader | None = None
        self._place = ""  # of Ray's files
        self.address = ""
        self.environment: list[str] = []  # variables that whoever joins needs

    @property
    def is_running(self) -> bool:
        """Whether nodes were started and not stopped."""
        return self._keeper is not None

    def start(self) -> str:
        """Start all nodes and return the address; raises NotFound if the head does not come up."""
        self._place = tempfile.mkdtemp(prefix="tw-ray-", dir=_short(Path(tempfile.gettempdir())))
        command = [sys.executable, "-m", "tunewise.fleet.cluster", str(self._count), self._place]
        # Not killed with us, as our other children are: it sees our end by itself, and then clears up.
        keeper = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        assert keeper.stdout is not None
        self._keeper, self._reader = keeper, lines.Reader(keeper.stdout.fileno())
        said = self._reader.read() or [{"error": "its keeper died"}]
        if "address" not in said[0]:
            raise NotFound(f"no Ray node could be started on this machine: {said[0]['error']}")
        self.address, self.environment = str(said[0]["address"]), [str(one) for one in said[0]["environment"]]
        return self.address

    def news(self) -> list[str]:
        """Return what happened to nodes since the last time, for people."""
        found: list[str] = []
        while self._reader is not None and select.select([self._reader.fd], [], [], 0)[0]:
            said = self._reader.read()
            if said is None:
                break
            found += [str(message["say"]) for message in said if "say" in message]
        return found

    def is_broken(self) -> bool:
        """Return whether the head is gone."""
        return self._keeper is not None and self._keeper.poll() is not None

    def stop(self) -> None:
        """End every process of every node, and leave nothing behind."""
        keeper, self._keeper, self._reader = self._keeper, None, None
        if keeper is None:
            return
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        keeper.stdin.close()
        try:
            keeper.wait(2 * _STOP_S)
        except subprocess.TimeoutExpired:
            keeper.kill()
            keeper.wait()
        keeper.stdout.close()
        if keeper.returncode:  # it was killed, and has not cleared up
            end_those_of(self._place)
            shutil.rmtree(self._place, ignore_errors=True)


class Keeper:
    """The nodes as their keeper sees them: each is a `ray start --block` in a session of its own.

    When an agent of a node dies, Ray ends the node's raylet, and `ray start --block` goes on without it: so a node
    counts as alive while both run.
    """

    def __init__(self, count: int, place: Path) -> None:
        # Ray opens its own directory to everybody; ours, around it, is for this user alone.
        self._count, self._place, self._temp = count, place, place / "r"
        self._nodes: list[subprocess.Popen[bytes]] = []  # the head first
        self.environment = token_in(place / "token")
        self._mended = [0] * count
        self._raylets = [0] * count  # processes; 0 until a node is up
        self.address = ""

    def start(self) -> None:
        """Start the head; raises NotFound if it does not come up."""
        options = ("--head", "--port=0", "--include-dashboard=false", f"--temp-dir={self._temp}")
        self._nodes.append(self._started(0, *options))
        told, deadline = self._temp / "ray_current_cluster", time.monotonic() + _START_S
        while not self.address:
            if time.monotonic() > deadline or not self.has_head():
                raise NotFound(self._last_words(0))
            time.sleep(0.05)
            self.address = told.read_text().strip() if told.exists() else ""

    def grow(self) -> None:
        """Start the next node if the last one is up: two that start at once may take each other's sockets."""
        place = len(self._nodes)
        if place < self._count and self._is_up(place - 1):
            self._nodes.append(self._started(place, f"--address={self.address}"))

    def has_head(self) -> bool:
        """Return whether the head is alive: without it there is no cluster."""
        return not self._is_gone(0)

    def mend(self) -> str | None:
        """Start a node again that is gone, the head apart; return what to say about it, or None if there is nothing."""
        for place in range(1, len(self._nodes)):
            if self._mended[place] <= _MOST_MENDED and self._is_gone(place):
                said = f"node {place + 1} of {self._count} is gone ({self._cleared(place)})"
                self._mended[place] += 1
                if self._mended[place] > _MOST_MENDED:
                    return f"{said}: it is left out, as it was started again {_MOST_MENDED} times"
                self._nodes[place] = self._started(place, f"--address={self.address}")
                return f"{said}: starting it again"
        return None

    def _is_gone(self, place: int) -> bool:
        node = self._nodes[place]
        if node.poll() is None and not self._raylets[place] and self._is_up(place):
            self._raylets[place] = _raylet_of(node.pid)
        return node.poll() is not None or (self._raylets[place] != 0 and not procfs.is_alive(self._raylets[place]))

    def _is_up(self, place: int) -> bool:
        return _UP in (self._place / f"node-{place}.log").read_text(errors="replace")

    def _cleared(self, place: int) -> str:
        """End what is left of a node that is gone; return what it was that ended."""
        node = self._nodes[place]
        if node.poll() is not None:
            return self._last_words(place)
        procfs.kill([*procfs.descendants(node.pid), node.pid])
        node.wait()
        return "Ray ended its raylet, as it does when an agent dies"

    def _started(self, place: int, *words: str) -> "subprocess.Popen[bytes]":
        shape = ("--num-cpus=1", "--num-gpus=0", f"--object-store-memory={_STORE_BYTES}")
        quiet = ("--block", "--disable-usage-stats", "--log-style=record", "--log-color=false")
        program = [sys.executable, "-m", "ray.scripts.scripts", "start"]
        command = ["env", *self.environment, *program, *quiet, *shape, *words]
        self._raylets[place] = 0
        with (self._place / f"node-{place}.log").open("wb") as log:
            return start_below(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _last_words(self, place: int) -> str:
        said = (self._place / f"node-{place}.log").read_text(errors="replace").strip().splitlines()
        return said[-1].rpartition(" -- ")[2][-300:] if said else "it said nothing"  # after the time and place


def _raylet_of(node: int) -> int:
    """Return the process of a node's raylet; -1, which no process is, if it has ended."""
    for pid in procfs.descendants(node):
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].endswith(b"/raylet"):
                return pid
    return -1


def token_in(path: Path) -> list[str]:
    """Write a new token and return the variables that make Ray ask for it: its ports are open to the network."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_hex(32))
    return ["RAY_AUTH_MODE=token", f"RAY_AUTH_TOKEN_PATH={path}"]


def main(count: int, place: Path) -> None:
    """Keep so many nodes, with their files in a directory, until standard input is closed, or the head is gone."""
    told, asked = lines.Writer(lines.own_output()), lines.Reader(0)
    adopt_orphans()
    keeper = Keeper(count, place)
    try:
        keeper.start()
        told.send({"address": keeper.address, "environment": keeper.environment})
        while keeper.has_head():
            if select.select([asked.fd], [], [], _ROUND_S)[0] and asked.read() is None:
                break
            keeper.grow()
            if said := keeper.mend():
                told.send({"say": said})
            bury()
    except NotFound as error:
        told.send({"error": str(error)})
    finally:
        end_all(_STOP_S)
        shutil.rmtree(place, ignore_errors=True)
        os._exit(0)


def _short(place: Path) -> Path:
    """Return a directory for temporary files whose path leaves room for the names of Ray's sockets."""
    return place if len(str(place)) < 20 else Path("/tmp")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
