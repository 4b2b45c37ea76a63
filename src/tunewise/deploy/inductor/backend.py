"""The Dynamo backend `tunewise`: Inductor, with the choice of kernels answered by what is known and learned."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from tunewise.deploy.inductor import blockings, gpu_timings, rendering, selecting, torchside
from tunewise.deploy.inductor.choices import choices_class, decisions
from tunewise.deploy.inductor.steering import Steering, breaks, guarded, steered
from tunewise.errors import InvalidSetting
from tunewise.settings import Mode

_OURS = "tunewise_"  # options of `torch.compile(options=...)` that are ours
_SETTINGS = ("mode", "top_k", "variants", "budget", "seconds")  # what they set
_frame = threading.local()


def tunewise(gm: Any, example_inputs: Any, **kwargs: Any) -> Callable[..., Any]:
    """Compile a graph as Inductor does, steered: what `torch.compile(model, backend="tunewise")` calls.

    `options` are Inductor's, and those of `inductor()` with `tunewise_` before their names; `mode` is Inductor's.
    Raises InvalidSetting, as Inductor does for its own, where an option is not there or its value makes no sense.
    """
    patches = _patches(kwargs.get("mode"), kwargs.get("options"))
    asked = _asked({name: patches.pop(name) for name in list(patches) if name.startswith(_OURS)})
    compile_fx = torchside.need("torch._inductor.compile_fx")
    ready = guarded("a graph", lambda: _prepared(asked, patches), lambda: None)
    if ready is None:
        return compile_fx.compile_fx(gm, example_inputs, config_patches=patches)  # type: ignore[no-any-return]
    handler, ours = ready

    def inner(graph: Any, inputs: Any, **given: Any) -> Any:
        virtualized = torchside.need("torch._inductor.virtualized").V
        before = breaks()
        with steered(handler.steering), virtualized.set_choices_handler(handler):
            made = compile_fx.compile_fx_inner(graph, inputs, **given)
        if breaks() != before:  # what stands in for our answers must not be found as ours later
            torchside.drop_compiled(made)
        return made

    return compile_fx.compile_fx(gm, example_inputs, inner_compile=inner, config_patches=ours)  # type: ignore[no-any-return]


@contextmanager
def inductor(
    *,
    mode: Mode | None = None,
    top_k: int = 1,
    variants: bool = True,
    budget: int | None = None,
    seconds: float | None = None,
    freezing: bool | None = None,
) -> Iterator[None]:
    """Set how graphs are steered that the backend `tunewise` compiles in this block and thread.

    `mode` is one of use, tune, collect, replay and off. `freezing` turns Inductor's constant weights on, without which
    a Linear has no C++ candidate; it holds for graphs compiled under `torch.no_grad()`. A graph is compiled when it is
    first called: that call must be inside the block. Of blocks in blocks the innermost counts, alone.
    """
    steering = Steering(mode=mode, top_k=top_k, variants=variants, budget=budget, seconds=seconds)
    config = torchside.need("torch._inductor.config")
    before = getattr(_frame, "steering", None)
    with ExitStack() as stack:
        if freezing is not None:
            stack.enter_context(config.patch(freezing=freezing))
        _frame.steering = steering
        try:
            yield
        finally:
            _frame.steering = before


def _asked(options: Mapping[str, Any]) -> Steering:
    """Return the steering of the block around this compilation, with the options that `torch.compile` was given."""
    unknown = sorted(options.keys() - {_OURS + name for name in _SETTINGS})
    if unknown:
        known = ", ".join(_OURS + name for name in _SETTINGS)
        raise InvalidSetting(f"there is no option {unknown[0]!r} of the backend tunewise; there are {known}")
    base = getattr(_frame, "steering", None) or Steering()
    return replace(base, **{name.removeprefix(_OURS): value for name, value in options.items()})


def _prepared(asked: Steering, patches: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the handler of a compilation that begins now, with Inductor's settings; our hooks are in torch then."""
    blockings.install()
    selecting.install()
    rendering.install()
    gpu_timings.install()
    config = torchside.need("torch._inductor.config")
    wanted = [patches.get(name, getattr(config, name)) for name in ("max_autotune", "max_autotune_gemm")]
    steering = replace(asked, wants_autotuning=any(wanted))
    handler = choices_class()(steering)
    ours = {**patches, "max_autotune_gemm": True, "inductor_choices_class": lambda: handler}
    if any(steering.mode_of(decision) in ("tune", "collect") for decision in decisions().values()):
        ours |= dict.fromkeys(("fx_graph_cache", "fx_graph_remote_cache"), False)  # a hit would measure nothing
    return handler, ours


def _patches(mode: str | None, options: Mapping[str, Any] | None) -> dict[str, Any]:
    named = torchside.need("torch._inductor").list_mode_options(mode) if mode and mode != "default" else {}
    return {**named, **{name.replace("-", "_"): value for name, value in (options or {}).items()}}
