"""OpenCL kernels: a source, `-D` parameters and work-group sizes become a call on numpy arrays, timed by the device."""

import functools
import operator
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tunewise.decision import Policy, canonical
from tunewise.decision.opencl import choose
from tunewise.errors import BuildError, KernelError, LimitExceeded
from tunewise.measure import sources
from tunewise.measure.clarguments import Arguments, Buffers, Local
from tunewise.measure.clocks import DEVICE
from tunewise.measure.clruntime import Runtime, check_items, opencl, runtime
from tunewise.measure.sources import Define

__all__ = ["POLICY", "Local", "OpenCLKernel"]

# A launch costs the host a hundred microseconds, and events tell its time to the nanosecond: a few make a sample.
POLICY = Policy(clock="device", min_sample_s=2e-5)
_ALWAYS = ("-cl-kernel-arg-info", "-w")  # warnings of a build that goes well would only clutter the output
_LAST_LINES = 12
_MAX_LOG = 4000


class OpenCLKernel:
    """One kernel of an OpenCL source, built for any set of `-D` parameters.

    `source` is a path, or the text itself. A call gives the kernel's arguments by position: contiguous numpy arrays
    for `__global` and `__constant` pointers, numbers, and `Local(bytes)` for `__local` ones; after it, the arrays at
    the places `writes` hold what the kernel wrote. `device` is `opencl` (the one of the settings, otherwise a GPU if
    there is one), `opencl:NUMBER` or `opencl:PART OF A NAME`. OpenCL is started by the first call, in the process that
    makes it: a worker, where configs are measured.
    """

    def __init__(
        self,
        source: Path | str,
        function: str,
        *,
        writes: Sequence[int],
        flags: Sequence[str] = (),
        device: str = "opencl",
    ) -> None:
        if not isinstance(writes, Sequence) or any(type(place) is not int or place < 0 for place in writes):
            raise KernelError(f"{function}: writes={writes!r} are not places of arguments, from 0 on, such as (2,)")
        self._source, self._function, self._writes = source, function, tuple(writes)
        self._flags, self.device = tuple(flags), device
        self._built: dict[tuple[Runtime, tuple[tuple[str, Define], ...]], _Built] = {}
        self._buffers: Buffers = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The name that messages use: the file's, or the function's if the source is a text."""
        return self._source.name if isinstance(self._source, Path) else self._function

    @property
    def writes(self) -> tuple[int, ...]:
        """The places of the arguments that the kernel writes into."""
        return self._writes

    def run(
        self,
        *args: Any,
        defines: Mapping[str, Define],
        global_size: Sequence[int],
        local_size: Sequence[int] | None = None,
    ) -> None:
        """Run the kernel once and wait for it; the device's own time for it goes to the clock `device`.

        `global_size` is rounded up to whole work-groups: the kernel must look where it stands. `local_size` left out is
        the driver's choice. Raises LimitExceeded for a work-group or local memory beyond the device's limits,
        BuildError with the last lines of the log if the source does not build, and KernelError for arguments that do
        not fit and a launch that fails.
        """
        here = runtime(self.device)
        items = _whole("global_size", global_size, least=0)
        group = None if local_size is None else _whole("local_size", local_size, least=1)
        if group is not None:
            self._must_fit(lambda: here.check(group), defines)
        with self._lock:
            built = self._load(here, defines)
            self._must_fit(lambda: built.check(group, args), defines)
            built.launch(args, _rounded(items, group), group, self._writes)

    def facts(self) -> dict[str, str]:
        """Return what must be equal for a measurement of this kernel to count: driver, kernel source and flags."""
        opencl()  # imported here, before workers are forked: they need not do it again
        chosen = choose(self.device)
        return {
            "opencl.driver": f"{chosen.platform} {chosen.driver}",
            "kernel": self.tunewise_fingerprint(),
            "flags": " ".join(self._flags),
        }

    def tunewise_fingerprint(self) -> str:
        """Return 32 hex digits that change with the source, its local headers and the kernel's name."""
        return canonical.digest([self._function, self._texts])[:32]

    @functools.cached_property
    def _texts(self) -> list[str]:
        return sources.texts(self._source, "OpenCL")

    def _load(self, here: Runtime, defines: Mapping[str, Define]) -> "_Built":
        key = here, tuple(defines.items())
        if key not in self._built:
            self._built[key] = self._build(here, sources.options(defines))
        return self._built[key]

    def _build(self, here: Runtime, options: Sequence[str]) -> "_Built":
        cl = opencl()
        program = cl.Program(here.context, sources.labelled(self._texts[0], self.name, "kernel.cl"))
        headers = (f"-I{self._source.resolve().parent}",) if isinstance(self._source, Path) else ()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Asked before the build, pyopencl leaves caching to the driver and writes no files of its own.
            program.get_info(cl.program_info.REFERENCE_COUNT)
            try:
                program.build([*_ALWAYS, *self._flags, *options, *headers], [here.device])
            except cl.Error as error:
                said = _tail(program.get_build_info(here.device, cl.program_build_info.LOG), str(error))
                raise BuildError(
                    f"{self.name} does not build with {' '.join(options) or 'no parameters'}: the driver said\n{said}"
                ) from None
            try:
                kernel = cl.Kernel(program, self._function)
            except cl.Error:
                known = program.get_info(cl.program_info.KERNEL_NAMES).replace(";", ", ") or "none"
                raise BuildError(
                    f"{self.name} is built, but it has no kernel {self._function!r}; its kernels: {known}"
                ) from None
        return _Built(kernel, Arguments(kernel, self._buffers), here)

    def _must_fit(self, check: Callable[[], None], defines: Mapping[str, Define]) -> None:
        try:
            check()
        except LimitExceeded as error:
            said = " ".join(sources.options(defines))
            raise LimitExceeded(f"{self.name} with {said or 'no parameters'}: {error}") from None


class _Built:
    """A kernel built for one set of parameters."""

    def __init__(self, kernel: Any, arguments: Arguments, here: Runtime) -> None:
        self._kernel, self._arguments, self._here = kernel, arguments, here
        info = opencl().kernel_work_group_info
        self._fixed = tuple(self._ask(info.COMPILE_WORK_GROUP_SIZE))
        self._max_items = int(self._ask(info.WORK_GROUP_SIZE))
        self._local_bytes = int(self._ask(info.LOCAL_MEM_SIZE))

    def check(self, group: tuple[int, ...] | None, args: Sequence[Any]) -> None:
        """Raise LimitExceeded if a work-group is not one this kernel can run in, or needs too much local memory."""
        if group is not None and any(self._fixed) and (*group, 1, 1)[:3] != self._fixed:
            raise LimitExceeded(
                f"a work-group of {_shape(group)} is not the {_shape(self._fixed)} that the kernel demands "
                "(reqd_work_group_size)"
            )
        if group is not None:
            check_items(group, self._max_items, "that this kernel can have (CL_KERNEL_WORK_GROUP_SIZE)")
        # PoCL takes any amount and writes beyond its own: nobody checks this if we do not.
        asked = self._local_bytes + self._arguments.local_bytes(args)
        if asked > self._here.local_bytes:
            raise LimitExceeded(
                f"{asked} bytes of local memory are more than the {self._here.local_bytes} that the device has "
                "(CL_DEVICE_LOCAL_MEM_SIZE)"
            )

    def launch(
        self, args: Sequence[Any], size: Sequence[int], group: Sequence[int] | None, writes: Sequence[int]
    ) -> None:
        """Run on the arguments, wait, and let the arrays that were written hold the result."""
        cl, queue = opencl(), self._here.queue
        try:
            given = self._arguments.give(self._here, args, writes)
            event = cl.enqueue_nd_range_kernel(queue, self._kernel, size, group)
            given.take_back(self._here)  # queued behind the kernel: one wait instead of two
            event.wait()
            DEVICE.add((event.profile.end - event.profile.start) * 1e-9)
        except cl.MemoryError as error:
            raise MemoryError(str(error)) from None
        except cl.Error as error:
            raise KernelError(f"{self._kernel.function_name} did not run: {error}") from None

    def _ask(self, what: Any) -> Any:
        return self._kernel.get_work_group_info(what, self._here.device)


def _whole(what: str, sizes: Sequence[int], *, least: int) -> tuple[int, ...]:
    try:
        found = tuple(operator.index(size) for size in sizes)
    except TypeError:
        raise KernelError(f"{what}={sizes!r} is not a tuple of whole numbers, such as (64, 1)") from None
    if min(found, default=least) < least:
        raise KernelError(f"{what}={found} has a number below {least}")
    return found


def _rounded(size: tuple[int, ...], group: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return a size in whole work-groups."""
    if group is None:
        return size
    if len(size) != len(group):
        raise KernelError(f"global_size={size} and local_size={group} differ in dimensions")
    return tuple(-(-items // step) * step for items, step in zip(size, group, strict=True))


def _shape(group: Sequence[int]) -> str:
    return " x ".join(map(str, group))


def _tail(log: str, otherwise: str) -> str:
    lines = [line.rstrip() for line in (log or otherwise)[-_MAX_LOG:].strip().splitlines() if line.strip()]
    return "\n".join(lines[-_LAST_LINES:]) or "(nothing)"
