"""Decisions that come with tunewise: C and OpenCL kernels and choices between library functions, real work anywhere."""

import difflib
import importlib
from typing import TYPE_CHECKING, Literal

from tunewise.errors import MissingPart, NotFound

if TYPE_CHECKING:
    from tunewise.session import Decision

# name -> the module that declares it; a module is imported when one of its decisions is asked for, not before
_MODULES = {
    "gemm": "gemm",
    "conv2d": "conv2d",
    "softmax": "softmax",
    "convolve1d": "library",
    "isin": "library",
    "sort": "library",
    "opencl-gemm": "opencl_gemm",
    "opencl-conv2d": "opencl_conv2d",
    "opencl-softmax": "opencl_softmax",
}
Backend = Literal["c", "python", "opencl"]


def names(*, backend: Backend | None = None) -> tuple[str, ...]:
    """Return the built-in decisions: all of them, or only those of a backend."""
    return tuple(name for name in _MODULES if backend is None or _backend(name) == backend)


def find(name: str) -> "Decision":
    """Return a built-in decision; raises NotFound for any other name, and MissingPart if numpy is not installed."""
    if name not in _MODULES:
        close = difflib.get_close_matches(str(name), _MODULES, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(_MODULES)}"
        raise NotFound(f"there is no built-in decision {name!r}; {hint}")
    try:
        module = importlib.import_module(f"tunewise.workloads.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        extra = "opencl" if _backend(name) == "opencl" else "tune"  # pyopencl brings numpy along
        raise MissingPart(f"the built-in decision {name!r} needs numpy: pip install 'tunewise[{extra}]'") from None
    decision: Decision = module.DECISIONS[name]
    return decision


def _backend(name: str) -> Backend:
    module = _MODULES[name]
    if module.startswith("opencl_"):
        return "opencl"
    return "python" if module == "library" else "c"
