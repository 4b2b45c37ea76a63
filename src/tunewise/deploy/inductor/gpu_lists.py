"""The configs that Inductor itself lists for a product on a GPU: its spaces DEFAULT and EXHAUSTIVE."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from typing import Any, Literal

from tunewise.decision import Config
from tunewise.deploy.inductor import torchside
from tunewise.deploy.triton_configs import key_of
from tunewise.errors import InvalidSetting, MissingPart
from tunewise.formats.inductortable import config_of
from tunewise.formats.operands import OPS

SearchSpace = Literal["DEFAULT", "EXHAUSTIVE"]
SPACES: tuple[SearchSpace, ...] = ("DEFAULT", "EXHAUSTIVE")
_PLACES = ("torch._inductor.template_heuristics.triton", "torch._inductor.heuristics.template.triton")
_lock = threading.RLock()


class PlainConfig:
    """What Inductor reads of a `triton.Config`, for where there is no Triton."""

    def __init__(self, kwargs: dict[str, Any], num_stages: int = 3, num_warps: int = 4, **_: Any) -> None:
        self.kwargs, self.num_stages, self.num_warps = dict(kwargs), num_stages, num_warps


def listed(
    op: str, kernel_inputs: Any, space: SearchSpace = "DEFAULT", *, fits: bool = True, templates: Sequence[Any] = ()
) -> list[Config]:
    """Return the configs that Inductor lists for an op on its inputs, ATen first, each once.

    With `fits`, those that need more shared memory than the device has are left out, as Inductor estimates it.
    `templates` are those asked, by default ATen's and the plain Triton one. Raises MissingPart where the installed
    torch lists its configs otherwise.
    """
    found: dict[str, Config] = {}
    for choice in choices_of(op, kernel_inputs, space, fits=fits, templates=templates):
        config = config_of(choice.template.uid, choice.params.to_kwargs())
        if config is not None:
            found.setdefault(key_of(config), config)
    return list(found.values())


def choices_of(
    op: str, kernel_inputs: Any, space: SearchSpace = "DEFAULT", *, fits: bool = True, templates: Sequence[Any] = ()
) -> list[Any]:
    """Return what `listed` returns as Inductor's own choices, `KernelTemplateChoice`."""
    if op not in OPS or space not in SPACES:
        raise InvalidSetting(f"{op!r} in the space {space!r} is not one of {', '.join(OPS)} in {' or '.join(SPACES)}")
    choices = torchside.need("torch._inductor.choices", "InductorChoices")()
    if not hasattr(choices, "get_ktc"):
        raise MissingPart("InductorChoices of this torch has no get_ktc, which lists configs; use torch 2.13")
    wanted = {
        "max_autotune": True,
        "max_autotune_gemm_search_space": space,
        "max_autotune_prune_choices_based_on_shared_mem": fits,
    }
    with _patched(wanted):
        asked = templates or templates_of(op)
        return [choice for template in asked for choice in choices.get_ktc(kernel_inputs, template, op)]


def templates_of(op: str) -> tuple[Any, Any]:
    """Return ATen's choice for an op and the plain Triton template; raises MissingPart where torch has them not."""
    base = "bmm" if op == "bmm" else "mm"
    module = f"torch._inductor.kernel.{base}"
    return torchside.need(module, f"aten_{op}"), torchside.need(module, f"{base}_template")


@contextmanager
def _patched(wanted: dict[str, Any]) -> Iterator[None]:
    from torch._inductor import config

    known = {name: value for name, value in wanted.items() if hasattr(config, name)}
    with config.patch(known), nullcontext() if find_spec("triton") else _without_triton():
        yield


@contextmanager
def _without_triton() -> Iterator[None]:
    """Let Inductor list configs without Triton, where nobody else in this process can make any."""
    heuristics = _heuristics()
    with _lock:
        before, heuristics.TritonConfig = heuristics.TritonConfig, PlainConfig
        try:
            yield
        finally:
            heuristics.TritonConfig = before


def _heuristics() -> Any:
    """Return the module that lists configs, which torch has moved once."""
    for place in _PLACES:
        with suppress(MissingPart):
            return torchside.need(place)
    raise MissingPart(f"this torch lists the configs of its templates at none of {', '.join(_PLACES)}")
