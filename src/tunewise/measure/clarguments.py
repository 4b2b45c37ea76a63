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
Buffers = dict[tuple[Runtime, int], Any]  # by device and place of the argument
_DECLARED = re.compile(r"(?:(unsigned) )?([a-z]+?)(?:2|3|4|8|16)?(\*?)")


@dataclass(frozen=True, slots=True)
class Local:
    """Local memory of so many bytes for a `__local` pointer; a work-group shares it."""

    size_bytes: int

    def __post_init__(self) -> None:
        if type(self.size_bytes) is not int or self.size_bytes < 1:
            raise KernelError(f"Local({self.size_bytes!r}) is not a whole number of bytes of at least 1")


@dataclass(frozen=True, slots=True)
class Declared:
    """What a kernel says of one argument; `type` is numpy's word for the number, empty if it is no plain one."""

    name: str
    type: str
    is_pointer: bool


@dataclass
class Arguments:
    """The arguments of one built kernel.

    Buffers of devices with memory of their own are made once and refilled. All builds of a kernel share `buffers`: with
    some for each, the memory of a device would be full after a few hundred configs.
    """

    kernel: Any
    buffers: Buffers
    declared: list[Declared] = field(init=False)

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
        for place in writes:
            if place >= len(args) or not _is_array(args[place]):
                raise KernelError(f"{name}: writes={tuple(writes)}, but argument {place} is no array")
        buffers, written = [], []
        for place, (arg, declared) in enumerate(zip(args, self.declared, strict=True)):
            which = f"{name}: argument {place} ({declared.name})"
            if _is_array(arg):
                _check_array(which, arg, declared, is_written=place in writes)
                buffer = self._buffer(here, place, arg, is_written=place in writes)
                self._set(place, buffer, which, arg)
                buffers.append(buffer)
                if place in writes and buffer is not None:
                    written.append((arg, buffer))
            else:
                self._set(place, _plain(which, arg, declared), which, arg)
        return Given(buffers, written)

    def _set(self, place: int, value: Any, which: str, arg: Any) -> None:
        cl = opencl()
        try:
            self.kernel.set_arg(place, value)
        except cl.Error as error:
            raise KernelError(f"{which} cannot be a {type(arg).__name__}: {error}") from None

    def _buffer(self, here: Runtime, place: int, array: Any, *, is_written: bool) -> Any:
        cl = opencl()
        if not array.nbytes:
            return None  # OpenCL knows no buffers of nothing
        if here.shares_memory:
            access = cl.mem_flags.READ_WRITE if is_written else cl.mem_flags.READ_ONLY
            return cl.Buffer(here.context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=array)
        buffer = self.buffers.get((here, place))
        if buffer is None or buffer.size != array.nbytes:
            self.buffers.pop((here, place), None)  # before there is another: both may be too much
            buffer = self.buffers[here, place] = cl.Buffer(here.context, cl.mem_flags.READ_WRITE, array.nbytes)
        cl.enqueue_copy(here.queue, buffer, array)
        return buffer


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


def _is_array(arg: Any) -> bool:
    return hasattr(arg, "dtype") and getattr(arg, "ndim", 0) > 0


def _check_array(which: str, array: Any, declared: Declared, *, is_written: bool) -> None:
    if not array.flags.c_contiguous:
        raise KernelError(f"{which} is not contiguous; use np.ascontiguousarray")
    if declared.type and array.dtype != declared.type:
        raise KernelError(f"{which} is {array.dtype}, not {declared.type}")
    if is_written and not array.flags.writeable:
        raise KernelError(f"{which} is written into, but the array is read-only; pass a copy")


def _plain(which: str, arg: Any, declared: Declared) -> Any:
    """Return a number in the type that the kernel declares, local memory as OpenCL has it, and all else as it is."""
    if isinstance(arg, Local):
        return opencl().LocalMemory(arg.size_bytes)
    number = arg.item() if hasattr(arg, "dtype") else arg  # numpy's numbers too
    if declared.is_pointer and (number is None or isinstance(number, int | float)):
        raise KernelError(f"{which} is a pointer and was given {number!r}")
    if isinstance(number, int | float):
        return _as_declared(which, number, declared)
    return arg


def _as_declared(which: str, number: int | float, declared: Declared) -> Any:
    import numpy as np

    kind = np.dtype(declared.type or ("int32" if isinstance(number, int) else "float32"))
    if kind.kind == "f":
        return kind.type(number)
    limits = np.iinfo(kind)
    if number != number or not limits.min <= number <= limits.max or int(number) != number:
        raise KernelError(f"{which} is {declared.type or kind}, which cannot hold {number!r}")
    return kind.type(int(number))
