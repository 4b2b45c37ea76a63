"""Arguments and sizes that do not fit an OpenCL kernel: one sentence each, and nothing of them gets to the driver."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tunewise.errors import KernelError, MissingPart, NotFound
from tunewise.measure.clarguments import Local
from tunewise.measure.clkernel import OpenCLKernel

_DEADLINE_S = 120.0

# A driver that is started in the tests' own process could not be used by workers that later tests fork from it.
SCRIPT = """
import json
from dataclasses import replace
import numpy as np
from tunewise.measure import clruntime
from tunewise.measure.clkernel import Local, OpenCLKernel

TEXT = '''
__kernel void scale(__global const float *x, __global float *out, __local float *room, float a, int n, uchar c)
{
    int i = get_global_id(0);
    if (i < n) out[i] = a * x[i] + c;
}
'''
x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
scale = OpenCLKernel(TEXT, "scale", writes=(1,))
fits = {"x": x, "out": out, "room": Local(4), "a": 2.0, "n": 64, "c": 1}


def said(kernel=scale, size=(64,), group=(8,), **args):
    out[...] = 0
    try:
        kernel.run(*{**fits, **args}.values(), defines={}, global_size=size, local_size=group)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return float(out.sum())


def buffers_of_copies():
    # the bytes of the buffers that three builds leave on a device with memory of its own
    clruntime._Process.runtimes.clear()
    start = clruntime._start
    clruntime._start = lambda chosen: replace(start(chosen), shares_memory=False)
    kernel = OpenCLKernel(TEXT, "scale", writes=(1,))
    for items in (64, 32, 16):
        args = {**fits, "x": x[:items], "out": out[:items], "n": items}
        kernel.run(*args.values(), defines={"WAY": items}, global_size=(64,), local_size=(8,))
    return sorted(buffer.size for buffer in kernel._buffers.values())


print(json.dumps({
    "all fits": said(),
    "numpy's numbers": said(n=np.int64(64), a=np.float64(2), c=np.array(1)),
    "a whole float": said(n=64.0),
    "no pointer": said(x=None),
    "a list": said(x=[1.0]),
    "half an int": said(n=64.5),
    "too large an int": said(n=2**40),
    "below an unsigned": said(c=-1),
    "infinity": said(n=float("inf")),
    "an array for local memory": said(room=x),
    "a read-only result": said(out=np.frombuffer(bytes(256), np.float32)),
    "writes into a number": said(OpenCLKernel(TEXT, "scale", writes=(1, 4))),
    "writes beyond": said(OpenCLKernel(TEXT, "scale", writes=(9,))),
    "an int for a size": said(size=64),
    "half a size": said(size=(64.5,)),
    "below nothing": said(size=(-4,)),
    "an empty group": said(group=(0,)),
    "no such kernel": said(OpenCLKernel(TEXT, "scales", writes=(1,))),
    "buffers": buffers_of_copies(),
}))
"""
FITS = {"all fits": 192.0, "numpy's numbers": 192.0, "a whole float": 192.0}
REFUSED = {
    "no pointer": "KernelError: scale: argument 0 (x) is a pointer and was given None",
    "a list": "KernelError: scale: argument 0 (x) cannot be a list: ",
    "half an int": "KernelError: scale: argument 4 (n) is int32, which cannot hold 64.5",
    "too large an int": "KernelError: scale: argument 4 (n) is int32, which cannot hold 1099511627776",
    "below an unsigned": "KernelError: scale: argument 5 (c) is uint8, which cannot hold -1",
    "infinity": "KernelError: scale: argument 4 (n) is int32, which cannot hold inf",
    "an array for local memory": "KernelError: scale: argument 2 (room) cannot be a ndarray: ",
    "a read-only result": "KernelError: scale: argument 1 (out) is written into, but the array is read-only",
    "writes into a number": "KernelError: scale: writes=(1, 4), but argument 4 is no array",
    "writes beyond": "KernelError: scale: writes=(9,), but argument 9 is no array",
    "an int for a size": "KernelError: global_size=64 is not a tuple of whole numbers",
    "half a size": "KernelError: global_size=(64.5,) is not a tuple of whole numbers",
    "below nothing": "KernelError: global_size=(-4,) has a number below 0",
    "an empty group": "KernelError: local_size=(0,) has a number below 1",
    "no such kernel": "BuildError: scales is built, but it has no kernel 'scales'; its kernels: scale",
}


@pytest.fixture(scope="module")
def answers(pocl: None) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=_DEADLINE_S, check=True
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_numbers_get_the_type_that_the_kernel_declares(answers: dict[str, Any]) -> None:
    assert {what: answers[what] for what in FITS} == FITS


def test_all_builds_of_a_kernel_share_the_buffers_of_a_device(answers: dict[str, Any]) -> None:
    assert answers["buffers"] == [64, 64]  # of the last call's two arrays


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused_in_one_sentence(answers: dict[str, Any], what: str) -> None:
    assert str(answers[what]).startswith(REFUSED[what])


@pytest.mark.parametrize("size", [0, -1, 1.5, "64", True])
def test_local_memory_is_a_whole_number_of_bytes(size: int) -> None:
    with pytest.raises(KernelError, match="is not a whole number of bytes of at least 1"):
        Local(size)


@pytest.mark.parametrize("writes", [1, None, (-1,), ("out",)])
def test_what_a_kernel_writes_are_places(writes: tuple[int, ...]) -> None:
    with pytest.raises(KernelError, match="are not places of arguments, from 0 on"):
        OpenCLKernel("text()", "scale", writes=writes)


def test_the_name_of_a_file_given_as_a_text_is_told_from_a_source() -> None:
    with pytest.raises(MissingPart, match=r"'scale.cl' is no OpenCL source; the name of a file .* pathlib.Path"):
        OpenCLKernel("scale.cl", "scale", writes=()).tunewise_fingerprint()


def test_a_device_of_another_kind_is_no_opencl_device() -> None:
    with pytest.raises(NotFound, match="'cuda:0' is no OpenCL device; write 'opencl'"):
        OpenCLKernel("text()", "scale", writes=(), device="cuda:0").facts()
