"""An op of ours whose lowering asks AutoHeuristicSelectAlgorithm, as a maintainer would write it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._inductor import ir, lowering
from torch._inductor.codegen.cpp_bmm_template import CppBmmTemplate
from torch._inductor.select_algorithm import ExternKernelChoice, autotune_select_algorithm
from torch._inductor.utils import fresh_cache

from tunewise.autoheuristic import AHContext, AutoHeuristicSelectAlgorithm

NAME = "small_bmm"


def _twice(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    torch.bmm(a, b, out=out)
    return torch.bmm(a, b, out=out)


def _once(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    return torch.bmm(a, b, out=out)


ONCE = ExternKernelChoice(_once, name="tunewise_once")
TWICE = ExternKernelChoice(_twice, name="tunewise_twice")


@torch.library.custom_op("tunewise_ah::bmm", mutates_args=())
def bmm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.bmm(a, b)


@bmm.register_fake
def _(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.new_empty(a.shape[0], a.shape[1], b.shape[2])


@dataclass
class Lowering:
    """What the op's lowering does, and what it has seen."""

    externs: Sequence[ExternKernelChoice] = (TWICE, ONCE)
    cpp: bool = False
    top_k: int | None = None
    asked: list[AutoHeuristicSelectAlgorithm] = field(default_factory=list)
    offered: list[list[str]] = field(default_factory=list)  # what was left to Inductor, by name

    def __call__(self, a: Any, b: Any) -> Any:
        nodes = [ir.ExternKernel.realize_input(one) for one in (a, b)]
        (batch, m, k), n = nodes[0].get_size(), nodes[1].get_size()[2]
        layout = ir.FixedLayout(nodes[0].get_device(), nodes[0].get_dtype(), [batch, m, n])
        choices: list[Any] = [one.bind(nodes, layout) for one in self.externs]
        if self.cpp:
            CppBmmTemplate.add_choices(choices, layout, nodes)
        context = AHContext()
        for name, value in {"m": m, "n": n, "k": k}.items():
            context.add_feature(name, value)
        asked = AutoHeuristicSelectAlgorithm(lambda: None, choices, nodes, context, NAME)
        self.asked.append(asked)
        chosen = self._chosen(asked) or choices
        self.offered.append([one.name for one in chosen])
        autotune_select_algorithm(NAME, chosen, nodes, layout)
        return chosen[0].output_node()  # not the winner: a second compiler run would only cost time

    def _chosen(self, asked: AutoHeuristicSelectAlgorithm) -> list[Any] | None:
        if self.top_k is not None:
            return asked.get_top_k_choices_caller(self.top_k, always_included=["extern_tunewise_twice"])
        one = asked.get_choice_caller()
        return None if one is None else [one]


@contextmanager
def lowered_by(how: Lowering) -> Iterator[Lowering]:
    """Lower the op in this way; compiled code of before is forgotten, in memory and on disk."""
    torch._dynamo.reset()
    lowering.register_lowering(bmm._opoverload, type_promotion_kind=None)(how)
    inductor = torch._inductor.config.patch(force_disable_caches=True, **{"cpp.threads": 1})
    with fresh_cache(), inductor, torch._dynamo.config.patch(recompile_limit=64):  # one for each number of rows
        yield how


def run(*sizes: int, n: int = 16, k: int = 48) -> list[torch.Tensor]:
    """Compile the op for some numbers of rows, and return how far each result is from the right one."""
    compiled = torch.compile(lambda a, b: bmm(a, b), dynamic=False)
    generator = torch.Generator().manual_seed(0)
    pairs = [[torch.randn(4, *shape, generator=generator) for shape in ((m, k), (k, n))] for m in sizes]
    return [(compiled(a, b) - torch.bmm(a, b)).abs().max() for a, b in pairs]
