"""Triton kernels that remember: what `@triton.autotune` measures is kept, and what is known is not measured again."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tunewise.deploy.triton_answers import Answers, Options
from tunewise.deploy.triton_harvest import Harvest
from tunewise.deploy.triton_kernel import autotuner_of
from tunewise.deploy.triton_screen import Screened, screen

__all__ = ["Answers", "Harvest", "Screened", "answers", "harvest", "screen", "tuned"]

K = TypeVar("K")
Features = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def harvest() -> Harvest:
    """Begin to keep what Triton's autotuner measures, of every kernel, and return what stops that.

    `with harvest():` keeps it for a block, `harvest()` alone until the process ends. Timings become trials of a
    decision named after the kernel's module and name. Raises MissingPart where Triton is missing or too old.
    """
    return Harvest().start()


def answers(
    name: str | None = None,
    *,
    top_k: int = 5,
    default: Mapping[str, Any] | None = None,
    features: Features | None = None,
    **declared: Any,
) -> Answers:
    """Return a function for `prune_configs_by={"early_config_prune": ...}` that answers for a kernel.

    It takes what `tuned` takes, and is for kernels whose `@triton.autotune` you write yourself.
    """
    return Answers(Options(name, top_k, default, features, declared))


def tuned(
    name: str | None = None,
    *,
    top_k: int = 5,
    default: Mapping[str, Any] | None = None,
    features: Features | None = None,
    **declared: Any,
) -> Callable[[K], K]:
    """Return a decorator for a kernel with `@triton.autotune`: it keeps all timings and answers what is known.

    A known problem is launched with its config and nothing is timed; of an unknown one `top_k` configs are timed, the
    default among them: the first that is listed, or the first that has the values `default`. `name` is the decision's
    (else the kernel's module and name). `features` makes the problem from a call's arguments, by name (else it is the
    autotuner's key and the tensors' types). What else a decision declares, such as `derived` or `near`, goes with it.
    The kernel comes back as it was: the same object, called the same way.
    """

    def decorate(kernel: K) -> K:
        answers(name, top_k=top_k, default=default, features=features, **declared).attach(autotuner_of(kernel))
        return kernel

    return decorate
