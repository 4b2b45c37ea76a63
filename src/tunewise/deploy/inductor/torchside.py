"""What we use of torch's insides, found by looking: all of it is private there and has moved before."""

import functools
import platform
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, ClassVar

from tunewise.errors import MissingPart

_LANES_OF_BITS = 32  # a vector lane holds one float32


def need(module: str, *names: str) -> Any:
    """Return a module of torch's, or the first of these names in it; raises MissingPart where this torch has none."""
    try:
        found = import_module(module)
    except ImportError as error:
        way = "pip install 'tunewise[torch]'" if error.name == "torch" else "use torch 2.6 or later"
        raise MissingPart(f"steering torch.compile needs {module}, which is not there; {way}") from None
    if not names:
        return found
    for name in names:
        if hasattr(found, name):
            return getattr(found, name)
    raise MissingPart(f"this torch has no {module}.{names[0]}; use torch 2.6 or later")


def hints(sizes: Sequence[Any]) -> list[int]:
    """Return sizes as whole numbers: a dynamic one is what it was when the program was traced."""
    graph = need("torch._inductor.virtualized").V.graph
    told = []
    for size in sizes:
        if isinstance(size, int) or getattr(size, "is_number", False):
            told.append(int(size))
            continue
        of = getattr(graph.sizevars, "optimization_hint", None) or graph.sizevars.size_hint
        told.append(int(of(size, fallback=1)))
    return told


def is_dynamic(sizes: Sequence[Any]) -> bool:
    """Return whether one of the sizes is known only when the program runs."""
    return not all(isinstance(size, int) or getattr(size, "is_number", False) for size in sizes)


def is_extern(choice: Any) -> bool:
    """Return whether a choice calls a library (ATen, MKL, oneDNN) instead of code that Inductor writes."""
    return isinstance(choice, need("torch._inductor.select_algorithm", "ExternKernelCaller"))


def cpp_template(choice: Any) -> Any | None:
    """Return the C++ GEMM template behind a choice, or None if it is another kind of choice."""
    template = getattr(getattr(choice, "_wrapped", choice), "template", None)
    return template if hasattr(template, "register_blocking") else None


@functools.cache
def kernel_cache() -> Any:
    """Return Inductor's cache of compiled C++ code, which compiles a single kernel with precompiled headers.

    Inductor has them for whole graphs only. Three quarters of the time that a candidate takes to compile is headers.
    """
    codecache = need("torch._inductor.codecache")
    header = getattr(getattr(codecache, "CppPythonBindingsCodeCache", None), "_get_uncompiled_header", None)
    if header is None:
        return codecache.CppCodeCache

    make: Any = header

    class WithHeaders(codecache.CppCodeCache):  # type: ignore[misc, name-defined]
        cache: ClassVar[dict[str, Any]] = {}

        @classmethod
        def _get_uncompiled_header(cls, device: str) -> Any:
            return make(device)

    return WithHeaders


def plain_dispatch() -> AbstractContextManager[object]:
    """Return a context in which torch's operations are called as in a running program.

    During compilation each goes through Python first. That makes a library's kernel 15 us slower than it is, and the
    code that Inductor writes is not slowed: Inductor's own timings prefer that for small products.
    """
    found: Any = getattr(need("torch._dispatch.python"), "no_python_dispatcher", nullcontext)
    return found()  # type: ignore[no-any-return]


def drop_compiled(made: Any) -> None:
    """Remove what was just compiled from the cache of compiled graphs on this disk, where it is in there."""
    key = getattr(made, "_fx_graph_cache_key", None)
    place = getattr(need("torch._inductor.codecache", "FxGraphCache"), "_get_tmp_dir_for_key", None)
    if key and place is not None:
        shutil.rmtree(place(key), ignore_errors=True)


def threads() -> int:
    """Return how many threads Inductor's C++ code is written for."""
    return int(need("torch._inductor.utils", "parallel_num_threads")())


@functools.cache
def vector_registers() -> tuple[int, int]:
    """Return how many float32 fit a vector register here, and how many such registers a program has."""
    bits = int(need("torch._inductor.cpu_vec_isa", "pick_vec_isa")().bit_width() or 0)
    return max(1, bits // _LANES_OF_BITS), 32 if bits >= 512 or platform.machine() == "aarch64" else 16


@functools.cache
def compiler() -> str:
    """Return the C++ compiler that Inductor calls, with its version; empty where there is none."""
    try:
        command = str(need("torch._inductor.cpp_builder", "get_cpp_compiler")())
        if shutil.which(command) is None:
            return ""
        said = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except Exception:  # Inductor raises what it likes where no compiler is found
        return ""
    return said.splitlines()[0].strip() if said else command


def facts() -> dict[str, str | int]:
    """Return what must be alike besides the device and torch's version for two timings to be comparable."""
    isa = need("torch._inductor.cpu_vec_isa", "pick_vec_isa")()
    return {"cpp": compiler(), "isa": str(isa) or "none"}
