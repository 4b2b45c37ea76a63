"""Which of Inductor's choices for a product on a GPU are left: the predicted configs and ATen, or all of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tunewise.decision import Answer, Config, Problem
from tunewise.deploy.inductor import torchside
from tunewise.deploy.inductor.gpu_problems import GpuDecision, decision_for, hardware_of, problem_of
from tunewise.deploy.inductor.gpu_ranking import ranked
from tunewise.deploy.inductor.steering import Steering, guarded
from tunewise.deploy.triton_configs import key_of
from tunewise.errors import MissingPart
from tunewise.eventlog import logger
from tunewise.formats.inductortable import ATEN, KERNEL, TMA, TUNABLE, config_of, kernel_of
from tunewise.formats.operands import OPS
from tunewise.session import context
from tunewise.settings import Mode

_log = logger(__name__)
_EXTERN, _TRITON = "aten::", "triton::"
_ASKED_APART = ("addmm",)  # ops whose templates Inductor asks for after ATen, in calls of their own
_EVEN, _HINT = "EVEN_K", "hint_override"


def finalized(
    steering: Steering,
    template_choices: Mapping[str, Iterable[Any]],
    kernel_inputs: Any,
    templates: Sequence[Any],
    op_name: str,
) -> list[Any]:
    """Return the choices that Inductor is to make kernels of: what `_finalize_template_configs` returns.

    Where a config is predicted, those are the best `top_k` and ATen. Where everything is to be measured, it is the list
    as Inductor made it; and where nothing is known, or something of ours goes wrong, what `without_us` leaves.
    """
    offered = [choice for choices in template_choices.values() for choice in choices]
    if kernel_inputs.device_type == "cpu":
        return offered
    call = Call(op_name, kernel_inputs, offered)
    if op_name not in OPS or kernel_inputs.device_type != "cuda":
        return without_us(call, steering)
    what = f"{op_name} on a GPU"
    chosen: list[Any] = guarded(what, lambda: _steered(steering, call), lambda: without_us(call, steering))
    return chosen


def without_us(call: "Call", steering: Steering) -> list[Any]:
    """Return what Inductor would choose from if we had not asked it for candidates: see `wants_autotuning`."""
    if steering.wants_autotuning:
        return call.offered
    if call.op in _ASKED_APART and not call.extern and _is_aten_on():
        return []  # ATen has a call of its own, which came before
    return call.extern[:1] or call.offered


@dataclass(frozen=True, eq=False)
class Call:
    """One question of Inductor: an op, its inputs, and the choices it has for it. addmm takes several such calls."""

    op: str
    inputs: Any
    offered: list[Any]

    @property
    def extern(self) -> list[Any]:
        """The choices that are no template: ATen's, which are never dropped."""
        return [choice for choice in self.offered if choice.template.uid.startswith(_EXTERN)]

    @property
    def unknown(self) -> list[str]:
        """The Triton templates that our configs have no word for: those for Blackwell, or for one of several hints."""
        of_triton = [choice for choice in self.offered if choice.template.uid.startswith(_TRITON)]
        strange = [one for one in of_triton if kernel_of(one.template.uid) is None or is_for_a_hint(one)]
        return sorted({choice.template.uid for choice in strange})

    def problem(self) -> Problem:
        """Return the problem that is asked about."""
        return problem_of(self.op, self.inputs.nodes())

    def configs(self) -> dict[str, Any]:
        """Return the choices of Triton templates by our config's key; of those that are one to us, the first."""
        found: dict[str, Any] = {}
        for choice in self.offered:
            config = config_of(choice.template.uid, choice.params.to_kwargs())
            if config is not None and config[KERNEL] != ATEN:
                found.setdefault(key_of(config), choice)
        return found

    def base(self, kernel: object) -> Any | None:
        """Return a choice of a kernel's template that others can be made of, or None where it is not offered."""
        return next((choice for choice in self.offered if kernel_of(choice.template.uid) == kernel), None)


def _steered(steering: Steering, call: Call) -> list[Any]:
    decision = decision_for(call.op, hardware_of(call.inputs.device()))
    mode = steering.mode_of(decision)
    if mode == "off":
        return without_us(call, steering)
    if mode == "collect" or len(call.extern) == len(call.offered):
        return call.offered
    if call.unknown:
        _log.info("%s: not steered, for tunewise has no configs of %s", call.op, ", ".join(call.unknown))
        return without_us(call, steering)
    problem = call.problem()
    answer = _asked(decision, problem, mode)
    if mode == "tune" and not _is_known(decision, problem, answer, call):
        return call.offered
    if mode == "use" and answer.rung == "default":
        return without_us(call, steering)
    chosen = left(call, ranked(decision, problem, answer, steering.top_k), is_aten_on=_is_aten_on())
    return without_us(call, steering) if chosen is None else chosen


def left(call: Call, wanted: Sequence[Config], *, is_aten_on: bool = True) -> list[Any] | None:
    """Return the choices for predicted configs, best first, then ATen's; None where none can be had.

    A config that is not offered is made of a choice that is. Without `is_aten_on` Inductor was told to do without ATen,
    and there must be something else.
    """
    listed = call.configs()
    found = (_choice(call, config, listed) for config in wanted if config[KERNEL] != ATEN)
    picked = [choice for choice in found if choice is not None]
    has_templates = any(choice.template.uid.startswith(_TRITON) for choice in call.offered)
    is_aten_wanted = any(config[KERNEL] == ATEN for config in wanted)
    # Of addmm, ATen and what is neither ATen nor Triton are asked for apart: nothing is left of the latter.
    if picked or (is_aten_on and (is_aten_wanted or not (has_templates or call.extern))):
        return [*picked, *call.extern]
    return None


def made(base: Any, config: Config, k: Any) -> Any:
    """Return a choice with another config than its base, a choice of the same product and template.

    Only what may be tuned is changed, and EVEN_K, which follows from BLOCK_K, is found as Inductor finds it: with that
    of another BLOCK_K the kernel would read past the end of every row.
    """
    options = {**base.params.to_kwargs(), **{name: config[name] for name in TUNABLE}}
    if _EVEN in options:
        options[_EVEN] = is_multiple(k, int(config["BLOCK_K"]))  # type: ignore[arg-type]
    return type(base)(
        template=base.template,
        params=type(base.params).from_dict(options),
        extra_kwargs=base.extra_kwargs,
        layout=base.layout,
        inputs=base.inputs,
    )


def is_multiple(size: Any, block: int) -> bool:
    """Return whether a size is known to be a multiple of a block, whatever it turns out to be when the kernel runs."""
    if isinstance(size, int):
        return size % block == 0
    sizevars = torchside.need("torch._inductor.virtualized", "V").graph.sizevars
    return bool(sizevars.statically_known_multiple_of(size, block))


def is_for_a_hint(choice: Any) -> bool:
    """Return whether a choice is for one size of several that Inductor was told to expect (`multi_kernel_hints`)."""
    return choice.params.to_kwargs().get(_HINT) is not None


def _choice(call: Call, config: Config, listed: Mapping[str, Any]) -> Any | None:
    key = key_of(config)
    if key in listed:
        return listed[key]
    base = call.base(config[KERNEL])
    if base is None or (config[KERNEL] == TMA and int(config["num_warps"]) < 4):  # type: ignore[arg-type]
        return None  # with fewer warps the persistent template is not safe, as Inductor says of it
    return made(base, config, call.inputs.mnk_symbolic()[2])


def _asked(decision: GpuDecision, problem: Problem, mode: Mode) -> Answer:
    if decision.mode_in_force() == mode:
        return decision.decide(problem)
    with context.mode(mode):
        return decision.decide(problem)


def _is_known(decision: GpuDecision, problem: Problem, answer: Answer, call: Call) -> bool:
    """Return whether an answer needs no measurement: pinned, accepted, or measured with all that is offered."""
    frame = context.FRAME.get()
    if answer.rung == "pin" or (frame is not None and answer.rung in frame.accept):
        return True
    tried = {key_of(trial.config) for trial in context.current_store().trials(decision.subject(problem))}
    return answer.rung == "memory" and call.configs().keys() <= tried


def _is_aten_on() -> bool:
    """Return whether Inductor is free to call ATen: `max_autotune_gemm_backends` may forbid it, or torch not tell."""
    try:
        return bool(torchside.need("torch._inductor.utils", "use_aten_gemm_kernels")())
    except MissingPart:
        return False
