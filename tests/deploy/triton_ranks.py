"""A job of ranks that launch autotuned kernels, each of which another config is the fastest for; Triton is a stand-in.

Started as a program with a directory, a number of ranks and the name of a scene; each rank writes what it saw.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch.distributed as dist
from triton_standins import Autotuner, Config, Tensor, forty

import tunewise as tw
from tunewise.decision import Failure, Timing, Trial
from tunewise.deploy import triton_harvest
from tunewise.deploy.triton import tuned
from tunewise.errors import MissingPart
from tunewise.session import context


class Rank:
    """A rank with its Triton."""

    def __init__(self, place: Path, rank: int, size: int) -> None:
        self.place, self.rank, self.size = place, rank, size
        self.knobs = SimpleNamespace(listener=None)
        self.is_broken = False
        triton_harvest._knobs = lambda: self.knobs

    def time_ms(self, config: Config, args: Mapping[str, Any]) -> float:
        """Return the time of a launch: the fastest of the first five is another one on each rank."""
        time.sleep(0.002)
        return float("inf") if self.is_broken else 1.0 + (KEYS.index(key_of(config)) + self.rank) % 5

    def launches(self, n: int, **options: Any) -> list[Any]:
        """Launch a kernel made anew; return which config, and how many were timed."""
        tuner = Autotuner(forty(), time_ms=self.time_ms, knobs=self.knobs)
        tuned(**options)(tuner)
        tuner.run(Tensor(), Tensor(), n)
        assert tuner.best_config is not None
        return [key_of(tuner.best_config), len(tuner.timed), tuner]

    def waits_for(self, *marks: str) -> None:
        deadline = time.monotonic() + 60
        while not all((self.place / mark).exists() for mark in marks):
            assert time.monotonic() < deadline, marks
            time.sleep(0.005)

    def meets(self, where: str) -> None:
        (self.place / f"{where} {self.rank}").touch()
        self.waits_for(*(f"{where} {rank}" for rank in range(self.size)))


def key_of(config: Config) -> str:
    return f"{config.kwargs['block']} {config.num_warps} {config.num_stages}"


KEYS = [key_of(config) for config in forty()]


def every_mode(me: Rank) -> list[Any]:
    """Launch one problem in each mode that times something, all ranks at once, and ask for it again."""
    seen = []
    for place, mode in enumerate(("use", "tune", "collect")):
        with tw.mode(mode):  # type: ignore[arg-type]
            launched, timed, tuner = me.launches(256 << place)
        again, never, _ = me.launches(256 << place)
        features = {"n": 256 << place, "x_dtype": "float16", "y_dtype": "float16"}
        config = tuner.early_config_prune.decision.decide(features).config
        answer = f"{config['block']} {config['num_warps']} {config['num_stages']}"
        seen.append([launched, timed > 1, again, never, answer])
    return seen


def one_is_late(me: Rank) -> list[Any]:
    """The last rank launches when the others have."""
    if me.rank == me.size - 1:
        me.waits_for(*(f"launched {rank}" for rank in range(me.size - 1)))
    launched, timed, _ = me.launches(256)
    (me.place / f"launched {me.rank}").touch()
    return [launched, timed]


def one_cannot_run_anything(me: Rank) -> list[Any]:
    """On the first rank no config of the short list runs, when the others have launched."""
    if me.rank == 0:
        me.is_broken = True
        me.launches(512)  # nothing runs: nothing is published
    me.meets("begun")
    me.is_broken = False
    launched, timed, _ = me.launches(512)
    return [launched, timed]


def one_has_only_the_default_left(me: Rank) -> list[Any]:
    """On the first rank all but the default has failed before, and it launches last."""
    tuner = Autotuner(forty()[:5], time_ms=me.time_ms, knobs=me.knobs)
    tuned()(tuner)
    decision = tuner.early_config_prune.decision  # type: ignore[union-attr]
    if me.rank == 0:
        subject = decision.subject(decision.problem({"n": 256, "x_dtype": "float16", "y_dtype": "float16"}))
        failed = [Trial(config, Failure("constraints")) for config in list(decision.space)[1:]]
        ran = Trial(decision.default, Timing((1.0,)))
        context.current_store().add(subject, [ran, *failed])
        me.waits_for("launched 1", "launched 2")
    tuner.run(Tensor(), Tensor(), 256)
    (me.place / f"launched {me.rank}").touch()
    assert tuner.best_config is not None
    return [key_of(tuner.best_config)]


def old_triton(me: Rank) -> list[Any]:
    """Triton tells nobody what it measures."""

    def missing() -> Any:
        raise MissingPart("Triton tells nobody")

    triton_harvest._knobs = missing
    return me.launches(256)[:2]


def broken_features(me: Rank) -> list[Any]:
    """The function that makes the problem raises."""
    return me.launches(256, features=lambda args: {"n": args["no such argument"]})[:2]


def other_menu(me: Rank) -> list[Any]:
    """The last rank runs another version, which lists fewer configs."""
    configs = forty()[: 30 if me.rank == me.size - 1 else 40]
    tuner = Autotuner(configs, time_ms=me.time_ms, knobs=me.knobs)
    tuned()(tuner)
    tuner.run(Tensor(), Tensor(), 256)
    assert tuner.best_config is not None
    return [key_of(tuner.best_config)]


SCENES = {
    scene.__name__: scene
    for scene in (
        every_mode,
        one_is_late,
        one_cannot_run_anything,
        one_has_only_the_default_left,
        old_triton,
        broken_features,
        other_menu,
    )
}


def play(place: Path, rank: int, size: int, scene: str) -> None:
    os.environ |= {"TUNEWISE_HOME": str(place / f"home{rank}"), "TUNEWISE_RANKS_LIMIT_S": "20"}
    tw.configure()
    dist.init_process_group("gloo", init_method=f"file://{place}/store", rank=rank, world_size=size)
    me = Rank(place, rank, size)
    seen = SCENES[scene](me)
    me.meets("end")
    (place / f"{rank}.json").write_text(json.dumps(seen))


def main(place: Path, size: int, scene: str) -> None:
    pids = []
    for rank in range(size):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                play(place, rank, size, scene)
                code = 0
            finally:
                if code:
                    import traceback

                    traceback.print_exc()
                os._exit(code)
        pids.append(pid)
    sys.exit(max(os.waitpid(pid, 0)[1] for pid in pids) and 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
