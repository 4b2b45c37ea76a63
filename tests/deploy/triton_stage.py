"""A stage for Triton without a GPU: its own autotuner, compiler and launcher run; only the device driver is a stand-in.

The driver is the lowest seam there is: it names the target, loads a binary, launches it and hands out the benchmarker.
This one loads nothing, notes each launch, and "times" a launch by a formula.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.compiler import max_shared_mem
from triton.runtime import driver

H100 = GPUTarget("cuda", 90, 32)
MAX_SHARED_BYTES = 232448  # of an H100


@dataclass(frozen=True, slots=True)
class Tensor:
    """What a launch needs of a tensor: a type, and an address that is a multiple of 16."""

    dtype: Any

    def data_ptr(self) -> int:
        return 1 << 20


@dataclass
class Launch:
    """One launch: the grid and what the compiled kernel was built with."""

    grid: tuple[int, int, int]
    metadata: Any
    args: tuple[Any, ...]


@dataclass
class Notes:
    """What happened on the stage."""

    launches: list[Launch] = field(default_factory=list)
    benchmarks: int = 0
    time_ms: Callable[[Launch], float] = lambda launch: 1.0
    max_shared_bytes: int = MAX_SHARED_BYTES

    def bench(self, call: Callable[[], object], quantiles: Sequence[float] = (), **_: Any) -> list[float]:
        """Launch once and return the formula's milliseconds as the quantiles 0.5, 0.2 and 0.8."""
        self.benchmarks += 1
        call()
        median = self.time_ms(self.launches[-1])
        return [median, median * 0.99, median * 1.02]


class StandIn(DriverBase):
    """A driver for an H100 that is not there."""

    def __init__(self, notes: Notes, target: GPUTarget = H100) -> None:
        self.notes, self.target, self.utils = notes, target, _Utils(notes)

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_active_torch_device(self) -> Any:
        raise NotImplementedError

    def get_benchmarker(self) -> Callable[..., Any]:
        return self.notes.bench

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., None]:
        def launch(x: int, y: int, z: int, stream: int, function: Any, packed: Any, *rest: Any) -> None:
            self.notes.launches.append(Launch((x, y, z), metadata, rest[3:]))

        return launch


@dataclass
class _Utils:
    notes: Notes

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": self.notes.max_shared_bytes, "multiprocessor_count": 132, "warpSize": 32}

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[None, int, int, int, int]:
        return None, 1, 32, 0, 1024  # a module of None is one that need not be unloaded


@contextmanager
def staged(target: GPUTarget = H100) -> Iterator[Notes]:
    """Run a block with the stand-in as Triton's driver, and give what happens there."""
    notes, before = Notes(), driver._active
    driver.set_active(StandIn(notes, target))
    try:
        yield notes
    finally:
        driver._active = before
        max_shared_mem.cache_clear()  # what a device has is asked once
        triton.knobs.autotuning.listener = None
