"""A GPU that is not there: torch is told the properties of an H100 or A100, and Inductor's own code does the rest.

The seam is what torch's driver tells of a device. Nothing is launched, so nothing of this says how fast anything is.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest
import sympy
import torch
from torch._dynamo import device_interface
from torch._inductor import ir
from torch._inductor.graph import GraphLowering
from torch._inductor.kernel_inputs import MMKernelInputs
from torch._inductor.lookup_table import LookupTableChoices
from torch._inductor.virtualized import V

from tunewise.deploy.inductor.gpu_lists import PlainConfig


def _properties(name: str, major: int, cores: int, shared_kib: int, **more: int) -> SimpleNamespace:
    return SimpleNamespace(
        name=name,
        gcnArchName=name,  # what torch built for CUDA puts there
        major=major,
        minor=0,
        multi_processor_count=cores,
        total_memory=80 << 30,
        warp_size=32,
        L2_cache_size=50 << 20,
        clock_rate=1_980_000,
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=shared_kib << 10,
        shared_memory_per_multiprocessor=(shared_kib + 1) << 10,
        **more,
    )


H100 = _properties("NVIDIA H100 80GB HBM3", 9, 132, 227)
A100 = _properties("NVIDIA A100-SXM4-80GB", 8, 108, 163)


@contextmanager
def faked(properties: SimpleNamespace = H100) -> Iterator[SimpleNamespace]:
    """Run a block in which torch believes that it has this GPU."""
    capability = (properties.major, properties.minor)
    cuda = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_properties": lambda *_: properties,
        "get_device_capability": lambda *_: capability,
        "get_device_name": lambda *_: properties.name,
    }
    interface = {
        **{name: cuda[name] for name in ("is_available", "device_count", "current_device", "get_device_properties")},
        "get_compute_capability": lambda *_: capability[0] * 10 + capability[1],
        "is_triton_capable": lambda *_: True,
        "raise_if_triton_unavailable": lambda *_: None,
    }
    worker = device_interface.CudaInterface.Worker
    with pytest.MonkeyPatch.context() as patch:
        for name, function in cuda.items():
            patch.setattr(torch.cuda, name, function)
        for name, function in interface.items():
            patch.setattr(device_interface.CudaInterface, name, staticmethod(function))
        for name in ("get_device_properties", "current_device"):
            patch.setattr(worker, name, staticmethod(cuda[name]))
        LookupTableChoices._get_device_key.cache_clear()
        yield properties
    LookupTableChoices._get_device_key.cache_clear()


@contextmanager
def plain_configs() -> Iterator[None]:
    """Run a block in which Inductor can list configs by itself where Triton is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        if find_spec("triton") is None:
            patch.setattr("torch._inductor.template_heuristics.triton.TritonConfig", PlainConfig)
        yield


@contextmanager
def graph() -> Iterator[GraphLowering]:
    """Run a block in which Inductor lowers a graph."""
    lowering = GraphLowering(torch.fx.symbolic_trace(lambda: 0))
    with V.set_graph_handler(lowering):
        yield lowering


def tensor(
    name: str, size: Sequence[Any], dtype: torch.dtype = torch.bfloat16, stride: Sequence[Any] | None = None
) -> Any:
    """Return an input of the graph on the GPU."""
    sizes = [sympy.Integer(one) if isinstance(one, int) else one for one in size]
    strides = stride or ir.FlexibleLayout.contiguous_strides(sizes)
    spaced = [sympy.Integer(one) if isinstance(one, int) else one for one in strides]
    buffer = ir.InputBuffer(name=name, layout=ir.FixedLayout(torch.device("cuda:0"), dtype, sizes, spaced))
    V.graph.graph_inputs[name] = buffer
    return ir.TensorBox.create(buffer)


def product(m: Any, n: Any, k: Any, dtype: torch.dtype = torch.bfloat16, batch: int | None = None) -> MMKernelInputs:
    """Return the inputs of an mm, or of a bmm with a batch."""
    outer = () if batch is None else (batch,)
    return realized(tensor("a", (*outer, m, k), dtype), tensor("b", (*outer, k, n), dtype))


def sum_product(m: int, n: int, k: int, dtype: torch.dtype = torch.bfloat16) -> MMKernelInputs:
    """Return the inputs of an addmm as Inductor hands them to Triton templates: the bias is spread over all rows."""
    bias = tensor("bias", (m, n), dtype, stride=(0, 1))
    return realized(bias, tensor("a", (m, k), dtype), tensor("b", (k, n), dtype), alpha=1, beta=1)


def realized(*boxes: Any, **scalars: int) -> MMKernelInputs:
    """Return boxes as the inputs of a product."""
    return MMKernelInputs([ir.ExternKernel.realize_input(box) for box in boxes], scalars=scalars)
