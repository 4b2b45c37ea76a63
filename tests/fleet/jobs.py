"""Jobs of real ranks for tests: one process imports torch once, and forks the ranks of every job from there."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PATIENCE_S = 1_800.0  # after which a job that hangs is killed, and its test fails


class Foreman:
    """Starts jobs: each a group of ranks with a home of their own, which play a scene and say what they saw."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._number = 0
        env = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "TORCH_CPP_LOG_LEVEL": "FATAL"}
        env = {name: value for name, value in env.items() if not name.startswith("TUNEWISE_")}
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, scene: str, size: int, *, store: str = "tcp", homes: Path | None = None, **args: Any) -> list[Any]:
        """Return what each rank saw, in order; None for one that was killed."""
        self._number += 1
        place = self.last
        spec = {"scene": scene, "size": size, "store": store, "place": str(place), "args": args}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**spec, "homes": str(homes or place)}) + "\n")
        self._process.stdin.flush()
        seen: list[Any] = json.loads(self._process.stdout.readline())
        return seen

    @property
    def last(self) -> Path:
        """The directory of the last job."""
        return self.place / str(self._number)

    def close(self) -> None:
        """End the process; its jobs have ended before."""
        self._process.communicate(timeout=_PATIENCE_S)


def _serve() -> None:
    import scenes
    import torch.distributed  # noqa: F401  once, for all ranks

    for line in sys.stdin:
        spec = json.loads(line)
        place = Path(spec["place"])
        place.mkdir(parents=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        ranks = []
        for rank in range(spec["size"]):
            pid = os.fork()
            if pid == 0:
                _be_rank(scenes, spec, rank, port)
            ranks.append(pid)
        _wait(ranks)
        said = [place / f"{rank}.json" for rank in range(spec["size"])]
        sys.stdout.write(json.dumps([json.loads(p.read_text()) if p.exists() else None for p in said]) + "\n")
        sys.stdout.flush()


def _be_rank(scenes: Any, spec: Mapping[str, Any], rank: int, port: int) -> None:
    place = Path(spec["place"])
    code = 1
    try:
        sys.stdout = sys.stderr
        os.environ["TUNEWISE_HOME"] = str(Path(spec["homes"]) / f"home{0 if spec['args'].get('one_home') else rank}")
        tempfile.tempdir = str(place / f"tmp{rank if spec['args'].get('apart') else ''}")
        Path(tempfile.tempdir).mkdir(exist_ok=True)
        seen = scenes.play(spec, rank, port)
        (place / f"{rank}.part").write_text(json.dumps(seen))
        (place / f"{rank}.part").rename(place / f"{rank}.json")
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        import atexit

        atexit._run_exitfuncs()  # as a process that is not forked would
        os._exit(code)


def _wait(ranks: list[int]) -> None:
    deadline, left = time.monotonic() + _PATIENCE_S, set(ranks)
    while left:
        for pid in list(left):
            if os.waitpid(pid, os.WNOHANG)[0]:
                left.discard(pid)
        if time.monotonic() > deadline:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


if __name__ == "__main__":
    _serve()
