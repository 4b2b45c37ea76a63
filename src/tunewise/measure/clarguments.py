"""Arguments of an OpenCL kernel: numpy arrays become buffers, numbers get the type that the kernel declares."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tunewise.errors import KernelError
from tunewise.measure.clruntime import Runtime, opencl

# OpenCL's names for numbers, and numpy's
_WORDS = ["char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "double"]
_DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
_TYPES = dict(zip(_WORDS, _DTYPES, strict=True))
_DECLARED = re.compile(r"(?:(unsigned) )?([a-z]+?)(?:2|3|4|8|16)?(\*?)")


@dataclass(frozen=True, slots=True)
class Local:
    """Local memory of so many bytes for a `__local` pointer; a work-group shares it."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class Declared:
    """What a kernel says of one argument; `type` is numpy's word for the number, empty if it is no plain one."""

    name: str
    type: str
    is_pointer: bool


@dataclass
class Arguments:
    """The arguments of one built kernel. Buffers of devices with memory of their own are made once and refilled."""

    kernel: Any
    declared: list[Declared] = field(init=False)
    _buffers: dict[tuple[int, int], Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.declared = [_declared(self.kernel, place) for place in range(self.kernel.num_args)]

    def local_bytes(self, args: Sequence[Any]) -> int:
        """Return how much local memory arguments ask for."""
        return sum(arg.size_bytes for arg in args if isinstance(arg, Local))

    def give(self, here: Runtime, args: Sequence[Any], writes: Sequence[int]) -> "Given":
        """Hand arguments to the kernel; raises KernelError for one that does not fit what the kernel declares."""
        name = self.kernel.function_name
        if len(args) != len(self.declared):
            raise KernelError(f"{name} takes {len(self.declared)} arguments and was given {len(args)}")
        buffers, written = [], []
        for place, (arg, declared) in enumerate(zip(args, self.declared, strict=True)):
            if hasattr(arg, "dtype") and getattr(arg, "ndim", 0) > 0:
                _check_array(name, place, arg, declared)
                buffer = self._buffer(here, place, arg, is_written=place in writes)
                self.kernel.set_arg(place, buffer)
                buffers.append(buffer)
                if place in writes and buffer is not None:
                    written.append((arg, buffer))
            else:
                self.kernel.set_arg(place, _plain(name, place, arg, declared))
        return Given(buffers, written)

    def _buffer(self, here: Runtime, place: int, array: Any, *, is_written: bool) -> Any:
        cl = opencl()
        if not array.nbytes:
            return None  # OpenCL knows no buffers of nothing
        if here.shares_memory:
            access = cl.mem_flags.READ_WRITE if is_written else cl.mem_flags.READ_ONLY
            return cl.Buffer(here.context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=array)
        key = (place, array.nbytes)
        if key not in self._buffers:
            self._buffers = {known: buffer for known, buffer in self._buffers.items() if known[0] != place}
            self._buffers[key] = cl.Buffer(here.context, cl.mem_flags.READ_WRITE, array.nbytes)
        cl.enqueue_copy(here.queue, self._buffers[key], array)
        return self._buffers[key]


@dataclass(frozen=True, slots=True)
class Given:
    """The buffers of a launch, which must live until it ends, and those of them that the kernel writes into."""

    buffers: Sequence[Any]
    written: Sequence[tuple[Any, Any]]

    def take_back(self, here: Runtime) -> None:
        """Let the arrays hold what the kernel wrote."""
        cl = opencl()
        for array, buffer in self.written:
            if here.shares_memory:
                mapped, _ = cl.enqueue_map_buffer(here.queue, buffer, cl.map_flags.READ, 0, array.shape, array.dtype)
                mapped.base.release(here.queue)
            else:
                cl.enqueue_copy(here.queue, array, buffer)


def _declared(kernel: Any, place: int) -> Declared:
    cl = opencl()
    try:
        word = kernel.get_arg_info(place, cl.kernel_arg_info.TYPE_NAME)
        name = kernel.get_arg_info(place, cl.kernel_arg_info.NAME)
    except cl.Error:  # a driver that does not say
        return Declared(str(place), "", False)
    found = _DECLARED.fullmatch(word.strip())
    if found is None:
        return Declared(name, "", word.endswith("*"))
    return Declared(name, _TYPES.get(("u" if found[1] else "") + found[2], ""), bool(found[3]))


def _check_array(kernel: str, place: int, array: Any, declared: Declared) -> None:
    if not array.flags.c_contiguous:
        raise KernelError(f"{kernel}: argument {place} ({declared.name}) is not contiguous; use np.ascontiguousarray")
    if declared.type and array.dtype != declared.type:
        raise KernelError(f"{kernel}: argument {place} ({declared.name}) is {array.dtype}, not {declared.type}")


def _plain(kernel: str, place: int, arg: Any, declared: Declared) -> Any:
    """Return a number in the type that the kernel declares, local memory as OpenCL has it, and all else as it is."""
    if isinstance(arg, Local):
        return opencl().LocalMemory(arg.size_bytes)
    if declared.is_pointer and isinstance(arg, int | float):
        raise KernelError(f"{kernel}: argument {place} ({declared.name}) is a pointer and was given the number {arg!r}")
    if isinstance(arg, int | float):
        import numpy as np

        kind = declared.type or ("int32" if isinstance(arg, int) else "float32")
        return np.dtype(kind).type(arg)
    return arg
