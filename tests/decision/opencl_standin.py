"""Stands in for pyopencl: $STANDIN names a platform by what becomes of a kernel there, such as `unknown-cpu works`."""

import os
import time

print("a driver that prints to stdout")


class Error(Exception):
    pass


class LogicError(Error):
    pass


class device_type:  # noqa: N801  # pyopencl's names
    GPU, ACCELERATOR, CPU = 1, 2, 4


class program_info:  # noqa: N801
    REFERENCE_COUNT = 0


class program_build_info:  # noqa: N801
    LOG = 0


class mem_flags:  # noqa: N801
    READ_WRITE = 0


class Device:
    version, driver_version = "OpenCL 3.0", "1"
    max_compute_units, global_mem_size, local_mem_size = 2, 1 << 30, 1 << 16

    def __init__(self, fate: str) -> None:
        self.name = self.fate = fate
        self.type = device_type.CPU if fate == "works" else device_type.GPU


class Platform:
    name = "Stand-in"

    def __init__(self, fate: str) -> None:
        self._fate = fate

    def get_devices(self) -> list[Device]:
        if self._fate == "unlisted":
            raise Error("clGetDeviceIDs failed: OUT_OF_HOST_MEMORY")
        return [Device(self._fate)]


def get_platforms() -> list[Platform]:
    fates = os.environ["STANDIN"].split()
    if not fates:
        raise LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")
    if "no-list" in fates:
        os.abort()
    return [Platform(fate) for fate in fates]


class Context:
    def __init__(self, devices: list[Device]) -> None:
        (self.device,) = devices
        if self.device.fate == "no-context":
            raise Error("Context failed: OUT_OF_RESOURCES")


class CommandQueue:
    def __init__(self, context: Context, device: Device) -> None:
        assert context.device is device


class Program:
    def __init__(self, context: Context, source: str) -> None:
        assert "squares" in source
        self.device = context.device

    def get_info(self, what: int) -> int:
        return 1

    def build(self) -> None:
        if self.device.fate == "unknown-cpu":
            raise Error("clBuildProgram failed: BUILD_PROGRAM_FAILURE")
        if self.device.fate == "crashes":
            os.abort()
        if self.device.fate == "hangs":
            time.sleep(600)

    def get_build_info(self, device: Device, what: int) -> str:
        return "error: unknown target CPU 'generic'\nDevice failed to build the program\n"


class Buffer:
    def __init__(self, context: Context, flags: int, size: int) -> None:
        self.size = size


class Kernel:
    def __init__(self, program: Program, name: str) -> None:
        assert name == "squares"
        self.is_wrong = program.device.fate == "wrong"

    def set_arg(self, place: int, buffer: Buffer) -> None:
        self.buffer = buffer


def enqueue_nd_range_kernel(queue: CommandQueue, kernel: Kernel, size: tuple[int], group: None) -> None:
    kernel.buffer.values = [0 if kernel.is_wrong else i * i for i in range(*size)]


def enqueue_copy(queue: CommandQueue, result: "memoryview", buffer: Buffer) -> None:
    for place, value in enumerate(buffer.values):
        result[place] = value
