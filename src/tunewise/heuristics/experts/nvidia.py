"""NVIDIA's own matmul heuristics (the extra `nvidia`) as a source of seeds, asked in a child process."""

import functools
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from tunewise.decision import Config, MatmulFact
from tunewise.decision.devices import known_device
from tunewise.decision.facts import COLUMN
from tunewise.heuristics import roles
from tunewise.heuristics.case import Case
from tunewise.heuristics.expert import Expert
from tunewise.heuristics.matching import On

PATIENCE_S = 1.5  # a heuristic has two seconds to answer
_PACKAGE = "nvMatmulHeuristics"
_CHILD = Path(__file__).with_name("nvidia_child.py")
# A device of our table -> its name in the package, or that of the nearest relative with as many SMs.
_GPUS = {
    "NVIDIA A100-SXM4-40GB": "A100_SXM_80GB",
    "NVIDIA A100-SXM4-80GB": "A100_SXM_80GB",
    "NVIDIA A100 80GB PCIe": "A100_PCIE_80GB",
    "NVIDIA A10": "A10_PCIE",
    "NVIDIA GeForce RTX 3090": "RTX_3090",
    "NVIDIA RTX A6000": "RTX_A6000",
    "NVIDIA L4": "L4",
    "NVIDIA L40S": "L40S",
    "NVIDIA GeForce RTX 4090": "RTX_4090",
    "NVIDIA H100 80GB HBM3": "H100_SXM",
    "NVIDIA H100 PCIe": "H100_PCIE",
    "NVIDIA H200": "H200_SXM",
    "NVIDIA GH200 480GB": "H200_SXM",
    "NVIDIA B200": "B200",
    "NVIDIA GeForce RTX 5090": "RTX_5090",
}
_LETTERS = {"float16": "H", "bfloat16": "T", "float32": "S"}

Tile = dict[str, int]


class NvidiaTriton(Expert):
    """The tiles that nvMatmulHeuristics estimates to be fastest for Triton, for float16, bfloat16 and float32."""

    name = "nvidia-matmul"
    backend = "triton"
    hardware = On(kinds=("cuda",))
    most = 5
    target: ClassVar[str] = "TRITON"
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = roles.TILE

    def seeds(self, problem: Case) -> Sequence[Config]:
        """Return NVIDIA's best tiles; none without the package, for a device it does not know, or if it breaks."""
        fact, played = problem.fact(MatmulFact), roles.cast(problem.space, self.spellings)
        asked = None if fact is None else question(fact, problem.hardware.name, self.target, self.most)
        if asked is None or not played.has("m", "n") or importlib.util.find_spec(_PACKAGE) is None:
            return []
        return [played.config(**tile) for tile in _remembered(asked)]


class NvidiaCute(NvidiaTriton):
    """The tiles and clusters that nvMatmulHeuristics estimates to be fastest for CUTLASS 3."""

    name = "nvidia-matmul-cute"
    backend = "cute"
    target = "CUTLASS3"
    spellings = roles.CLUSTER


def question(fact: MatmulFact, device: str, target: str, count: int) -> bytes | None:
    """Return what the child is to be asked, as JSON; None for a device or a type that the package does not know."""
    known, letters = known_device(device), [_LETTERS.get(dtype.rpartition(".")[2]) for dtype in fact.dtypes]
    if known is None or known.name not in _GPUS or None in letters or letters[0] != letters[1]:
        return None
    turned = "".join("T" if layout == COLUMN else "N" for layout in fact.layouts)
    size = {"m": fact.m, "n": fact.n, "k": fact.k, "batch": fact.batch, "layout": f"{turned}_ROW_MAJOR"}
    kind = {"precision": f"{letters[0]}S{letters[2]}", "gpu": _GPUS[known.name], "target": target, "count": count}
    return msgspec.json.encode(size | kind)


def ask(asked: bytes, command: Sequence[str], timeout_s: float = PATIENCE_S) -> list[Tile]:
    """Return the tiles that a child process prints; none if it is silent, too slow, or prints something else.

    A child that dies after it has printed its tiles has answered: the library may crash when it is put away.
    """
    import subprocess  # here, for few who import tunewise ask NVIDIA

    try:
        done = subprocess.run(command, input=asked, capture_output=True, timeout=timeout_s, check=False)
        return msgspec.json.decode(done.stdout, type=list[Tile])
    except (OSError, subprocess.TimeoutExpired, msgspec.MsgspecError):
        return []


@functools.lru_cache(maxsize=256)
def _remembered(asked: bytes) -> tuple[Mapping[str, Any], ...]:
    return tuple(ask(asked, [sys.executable, "-P", str(_CHILD)]))
