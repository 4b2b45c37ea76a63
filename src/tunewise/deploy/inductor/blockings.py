"""More C++ candidates than the one Inductor offers: its GEMM template with other register blocks.

Inductor takes one blocking by rule. Both wrappers below stay out of the way unless a steering is active in the thread:
the first remembers how a candidate was made, the second gives the template the block that is asked for.
"""

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tunewise.deploy.inductor import torchside
from tunewise.deploy.inductor.steering import active

_GEMM = "torch._inductor.codegen.cpp_gemm_template"
_MAKE = "_tunewise_make"
_forced = threading.local()

Block = tuple[int, int]
Make = Callable[[Block], Any]


def install() -> None:
    """Wrap the template, once: harmless to call again."""
    gemm = torchside.need(_GEMM)
    if getattr(gemm.create_micro_gemm, "_is_tunewise", False):
        return
    gemm.create_micro_gemm = _with_forced_block(gemm.create_micro_gemm)
    add = gemm.CppGemmTemplate.__dict__["add_choices"].__func__
    gemm.CppGemmTemplate.add_choices = classmethod(_that_remembers(add))


def maker_of(choice: Any) -> Make | None:
    """Return what makes the same candidate with another register block, or None if that cannot be told."""
    return getattr(choice, _MAKE, None)


def _that_remembers(add: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(add)
    def add_choices(cls: type, choices: list[Any], *args: Any, **kwargs: Any) -> Any:
        before = len(choices)
        made = add(cls, choices, *args, **kwargs)
        if (
            active() is not None
            and len(choices) == before + 1
            and cls.__name__ in ("CppGemmTemplate", "CppBmmTemplate")
        ):
            setattr(choices[-1], _MAKE, functools.partial(_make, add, cls, args, kwargs))
        return made

    return add_choices


def _make(add: Callable[..., Any], cls: type, args: Any, kwargs: Any, block: Block) -> Any:
    made: list[Any] = []
    with _forcing(block):
        add(_variant(cls, block), made, *args, **kwargs)
    return made[0]


@functools.cache
def _variant(base: Any, block: Block) -> type:
    """Return a template that is written with one register block, now and whenever Inductor writes it again."""

    class Variant(base):  # type: ignore[misc]
        def render(self, *args: Any, **kwargs: Any) -> Any:
            with _forcing(block):
                return super().render(*args, **kwargs)

    Variant.__name__, Variant.__qualname__ = base.__name__, base.__qualname__
    return Variant


def _with_forced_block(create: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(create)
    def create_micro_gemm(*args: Any, **kwargs: Any) -> Any:
        block = getattr(_forced, "block", None)
        own = create(*args, **kwargs)
        return own if block is None else _forced_gemm(own, block)

    create_micro_gemm._is_tunewise = True  # type: ignore[attr-defined]
    return create_micro_gemm


def _forced_gemm(own: Any, block: Block) -> Any:
    """Return the vector micro-kernel with a block, in the types of the one that Inductor would take."""
    micro = torchside.need("torch._inductor.codegen.cpp_micro_gemm", "CppMicroGemmFP32Vec")
    blocking = torchside.need("torch._inductor.codegen.cpp_utils", "GemmBlocking")(*block, 1)
    return micro(own.name, own.input_dtype, own.input2_dtype, own.output_dtype, own.compute_dtype, blocking, own.alpha)


@contextmanager
def _forcing(block: Block) -> Iterator[None]:
    before = getattr(_forced, "block", None)
    _forced.block = block
    try:
        yield
    finally:
        _forced.block = before
