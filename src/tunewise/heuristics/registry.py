"""The expert heuristics that ship, by the backend they are for: adding one is a class and a line here."""

from collections.abc import Mapping

from tunewise.heuristics.expert import Expert
from tunewise.heuristics.experts.c_gemm import RegisterTile
from tunewise.heuristics.experts.c_rows import SoftmaxVectors
from tunewise.heuristics.experts.c_stencil import StencilTile
from tunewise.heuristics.experts.cute import TwoCtaCluster
from tunewise.heuristics.experts.nvidia import NvidiaCute, NvidiaTriton
from tunewise.heuristics.experts.triton_gemm import SkinnyGemm, SplitK, SquareGemm
from tunewise.heuristics.experts.triton_rows import PersistentReduction, SoftmaxRows

BY_BACKEND: Mapping[str, tuple[type[Expert], ...]] = {
    "c": (RegisterTile, StencilTile, SoftmaxVectors),
    "triton": (SkinnyGemm, SquareGemm, SplitK, PersistentReduction, SoftmaxRows, NvidiaTriton),
    "cute": (TwoCtaCluster, NvidiaCute),
}


def experts_of(backend: str) -> tuple[Expert, ...]:
    """Return the shipped heuristics for the decisions of a backend, in the order they are asked."""
    return tuple(expert() for expert in BY_BACKEND.get(backend, ()))
