"""Measuring many products by compiling a small program for each: the data that models are learned from."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tunewise.deploy.inductor import torchside
from tunewise.deploy.inductor.backend import inductor
from tunewise.deploy.inductor.listening import Heard, heard
from tunewise.deploy.inductor.shapes import Shape
from tunewise.settings import Mode

Made = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Collected:
    """What compiling the program of one shape came to. `asked` are Inductor's questions with what was measured.

    It is empty where Inductor had nothing to choose from; `trouble` says why a program could not be compiled or run.
    """

    shape: Shape
    asked: tuple[Heard, ...]
    seconds: float
    trouble: str = ""


def collect(
    shapes: Iterable[Shape],
    *,
    mode: Mode = "collect",
    variants: bool = True,
    seconds: float | None = None,
    seconds_each: float | None = None,
    seed: int = 0,
) -> Iterator[Collected]:
    """Compile and measure a program for every shape, and yield what came of it; the store keeps every timing.

    What the store knows already is not measured again, so a run that was stopped goes on where it was. It ends early,
    between two shapes, when `seconds` are over; `seconds_each` bounds one shape.
    """
    end = float("inf") if seconds is None else time.monotonic() + seconds
    for shape in shapes:
        if time.monotonic() >= end:
            return
        yield _collected(shape, mode, variants, seconds_each, seed)


def program(shape: Shape, seed: int = 0) -> Made:
    """Return a program that is one product, and arguments for it: a module with a constant weight, or bmm.

    Equal shapes and seeds give equal numbers.
    """
    torch = torchside.need("torch")
    dtype = getattr(torch, shape.dtype)
    numbers = torch.Generator().manual_seed(seed)

    def random(*size: int) -> Any:
        return torch.randn(*size, generator=numbers).to(dtype)

    if shape.op == "bmm":
        left, right = random(shape.b, shape.m, shape.k), random(shape.b, shape.k, shape.n)
        return torch.bmm, (_lying(left, shape.lhs), _lying(right, shape.rhs))
    module = torch.nn.Linear(shape.k, shape.n, bias=shape.op != "mm", dtype=dtype).eval()
    with torch.no_grad():
        module.weight.copy_(random(shape.n, shape.k) / shape.k**0.5)
    return module, (random(shape.m, shape.k),)


def compiled(made: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return a program compiled anew, whatever was compiled in this process before."""
    torch = torchside.need("torch")
    torch._dynamo.reset()
    return torch.compile(made, **options)  # type: ignore[no-any-return]


def _lying(factor: Any, order: str) -> Any:
    return factor.mT.contiguous().mT if order == "columns" else factor


def _collected(shape: Shape, mode: Mode, variants: bool, seconds: float | None, seed: int) -> Collected:
    torch = torchside.need("torch")
    start, trouble = time.monotonic(), ""
    with heard() as asked, torch.no_grad(), inductor(mode=mode, variants=variants, seconds=seconds, freezing=True):
        try:
            made, inputs = program(shape, seed)
            compiled(made, backend="tunewise", dynamic=shape.dynamic)(*inputs)
        except Exception as error:  # one shape that cannot be compiled is a fact about it; the others go on
            trouble = f"{type(error).__name__}: {error}"
    return Collected(shape, tuple(asked), time.monotonic() - start, trouble)
