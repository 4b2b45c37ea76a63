"""What a product on a GPU is to us: the problem that its input nodes are, and the decision about it."""

import functools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tunewise.decision import Hardware, MatmulFact, Problem, Space, detect, integer
from tunewise.decision.facts import COLUMN, ROW
from tunewise.deploy.inductor import torchside
from tunewise.deploy.triton_kernel import POLICY
from tunewise.formats.inductortable import ATEN, DECISION, KERNEL, TMA, TRITON, TUNABLE
from tunewise.formats.operands import COLUMNS, OPS, Operand, features_of
from tunewise.session import Decision

LIBRARIES = ("torch", "triton")  # whose versions must match: they write and compile the kernels
_BLOCKS = (0, 16, 32, 64, 128, 256, 512)
_PARAMS: Mapping[str, Any] = {
    KERNEL: (ATEN, TRITON, TMA),
    **dict.fromkeys(("BLOCK_M", "BLOCK_N", "BLOCK_K"), _BLOCKS),
    "GROUP_M": (0, 1, 2, 4, 8, 16, 32),
    "num_stages": integer(0, 8),
    "num_warps": (0, 1, 2, 4, 8, 16),
}
DEFAULT: Mapping[str, Any] = {KERNEL: ATEN, **dict.fromkeys(TUNABLE, 0)}


@dataclass(frozen=True, eq=False)
class GpuDecision(Decision):
    """The decision how a product is computed on a GPU: by ATen, the default, or by a config of a Triton template."""

    on: Hardware = field(kw_only=True)

    def hardware(self) -> Hardware:
        """Return the device that the decision is about; it need not be here."""
        return self.on


@functools.cache
def space() -> Space:
    """Return all configs that a template of Inductor can be given, far more than it lists; ATen's is all zeros."""
    only_zero = [f"({KERNEL} == '{ATEN}') == ({name} == 0)" for name in TUNABLE]
    return Space(_PARAMS, [*only_zero, "num_warps * 256 <= BLOCK_M * BLOCK_N"])  # a warp computes 16 x 16 numbers


@functools.cache
def decision_for(op: str, hardware: Hardware) -> GpuDecision:
    """Return the decision about an op (mm, addmm or bmm) on a device, named `torch.cuda.<op>`."""
    assert op in OPS
    return GpuDecision(
        f"{DECISION}{op}",
        space=space(),
        default=dict(DEFAULT),
        facts=_facts,
        policy=POLICY,
        backend="triton",
        libraries=LIBRARIES,
        on=hardware,
    )


def decisions_here() -> dict[str, GpuDecision]:
    """Return the decisions about products on the GPU that torch uses now, by name; none where there is no GPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return {}
    here = detect("cuda")
    return {f"{DECISION}{op}": decision_for(op, here) for op in OPS}


def hardware_of(device: Any) -> Hardware:
    """Return the GPU that a torch device is; raises MissingPart where there is none."""
    return detect("cuda" if device.index is None else f"cuda:{device.index}")


def problem_of(op: str, nodes: Sequence[Any]) -> Problem:
    """Return the problem that an op on Inductor's input nodes is; raises ValueError where they are of no such op."""
    is_dynamic = torchside.is_dynamic([size for node in nodes for size in node.get_size()])
    return Problem(features_of(op, [operand_of(node) for node in nodes], is_dynamic=is_dynamic))


def operand_of(node: Any) -> Operand:
    """Return an input node as an operand; of sizes that may change, their hints."""
    dtype = str(node.get_dtype()).removeprefix("torch.")
    size, stride = torchside.hints(node.get_size()), torchside.hints(node.get_stride())
    return Operand(dtype, tuple(size), tuple(stride))


def _facts(problem: Problem) -> MatmulFact:
    dtype, words = str(problem["dtype"]), (problem.get("lhs"), problem.get("rhs"))
    first, second = (COLUMN if str(word).startswith(COLUMNS) else ROW for word in words)
    m, n, k, batch = (int(problem.get(name, 1)) for name in ("m", "n", "k", "b"))
    return MatmulFact(m, n, k, batch, (dtype, dtype, dtype), (first, second))
