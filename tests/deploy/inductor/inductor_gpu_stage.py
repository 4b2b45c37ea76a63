"""A stage for Inductor's lowerings with Triton for a faked H100: only the device and the benchmark are stand-ins."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from inductor_fake_gpu import faked, graph, tensor
from torch._inductor import config as inductor_config
from torch._inductor import select_algorithm
from torch._inductor.codegen.common import init_backend_registration
from torch._inductor.kernel import bmm, mm
from torch._inductor.utils import fresh_cache
from torch._inductor.virtualized import V
from triton_stage import staged

from tunewise.decision import Config
from tunewise.deploy.inductor import gpu_timings
from tunewise.deploy.inductor.choices import choices_class
from tunewise.deploy.inductor.gpu_problems import decision_for
from tunewise.deploy.inductor.steering import Steering, steered

LOWERINGS = {"mm": mm.tuned_mm, "addmm": mm.tuned_addmm, "bmm": bmm.tuned_bmm}
PATCHES = {"max_autotune": True, "max_autotune_gemm_backends": "ATEN,TRITON", "benchmark_epilogue_fusion": False}
BATCH = 4


class Notes:
    """How often Inductor benchmarks."""

    def __init__(self) -> None:
        self.benchmarks = 0

    def benchmark(self, choices: list[Any]) -> dict[Any, float]:
        """Time choices by a formula: the larger its tile the faster, and ATen in between."""
        self.benchmarks += 1
        return {choice: _time_ms(choice) for choice in choices}


def _time_ms(choice: Any) -> float:
    config = gpu_timings.config_of_choice(choice)
    assert config is not None
    return 0.5 if config["kernel"] == "aten" else 1e3 / int(config["BLOCK_M"]) / int(config["BLOCK_N"])  # type: ignore[arg-type]


@contextmanager
def on_stage() -> Iterator[Notes]:
    """Let Inductor lower products for an H100 with Triton, its caches fresh, and count its benchmarks."""
    noted, cache = Notes(), select_algorithm.AlgorithmSelectorCache
    selector = select_algorithm.get_algorithm_selector_cache()
    init_backend_registration()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "benchmark", lambda self, choices, *_, **__: noted.benchmark(choices))
        patch.setattr(cache, "make_precompile_fn", lambda *_, **__: dict)
        patch.setattr(cache, "log_results", staticmethod(lambda *_, **__: None))
        patch.setattr(selector, "feedback_saver_fns", [gpu_timings.save])
        with staged(), fresh_cache(), faked(), graph(), inductor_config.patch(PATCHES):
            yield noted
    decision_for.cache_clear()


def lower(
    op: str, how: Steering, m: int = 512, n: int = 512, k: int = 512, *, dtype: Any = None, handler: Any = None
) -> list[Any]:
    """Lower an op as torch.compile does, and return the choices that Inductor had, of our handler or another."""
    seen: list[Any] = []

    def see(choices: list[Any]) -> list[Any]:
        seen.extend(choices)
        return choices

    kinds = {} if dtype is None else {"dtype": dtype}
    batch = (BATCH,) if op == "bmm" else ()
    operands = [tensor("a", (*batch, m, k), **kinds), tensor("b", (*batch, k, n), **kinds)]
    bias = [tensor("bias", (n,), **kinds)] if op == "addmm" else []
    selector = select_algorithm.get_algorithm_selector_cache()
    chosen = V.set_choices_handler(handler or choices_class()(how))
    with pytest.MonkeyPatch.context() as patch, steered(how), chosen:
        patch.setattr(selector, "preprocessing_fns", [*selector.preprocessing_fns, see])
        LOWERINGS[op](*bias, *operands)
    return seen


def configs(choices: list[Any]) -> list[Config | None]:
    """Return choices as configs of ours."""
    return [gpu_timings.config_of_choice(choice) for choice in choices]
