"""Timing the kernels Inductor has for one product: by our own race, their results compared with the library's."""

import contextvars
import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tunewise.decision import Check, Config, canonical
from tunewise.deploy.inductor import torchside
from tunewise.deploy.inductor.menus import Menu
from tunewise.deploy.inductor.problems import Asked, ProductDecision, is_offered
from tunewise.deploy.inductor.steering import Steering
from tunewise.errors import BuildError, LimitExceeded
from tunewise.eventlog import logger
from tunewise.measure import Measurer, Work, measurer_for
from tunewise.session import context, shelf
from tunewise.session.plan import Plan, Task
from tunewise.session.tune import Tuning, tune

_log = logger("tunewise.inductor")
_CHECK = Check(variants=False)  # a second set of inputs takes their place: these functions take a number, no arrays
_SETS = 2


@dataclass
class Kitchen:
    """Makes the choices of one menu ready to run on example inputs of its own."""

    asked: Asked
    menu: Menu
    generators: Mapping[int, Any] | None
    sets: list[Any] = field(default_factory=list)
    choices: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def stock(self, configs: Sequence[Config]) -> None:
        """Make inputs, and write the code of every config: both need the graph, which other threads do not see."""
        for config in configs:
            key = canonical.encode(dict(config))
            try:
                self.choices[key] = self.menu.choice(config)
            except Exception as error:  # the template refuses a block: a fact about that config
                self.refused[key] = f"{type(error).__name__}: {error}"
        cache = torchside.need("torch._inductor.select_algorithm", "AlgorithmSelectorCache")
        asked = (self.asked.nodes, self.asked.layout, self.generators)
        self.sets = [cache.get_inputs([self.menu.extern, self.menu.cpp], *asked) for _ in range(_SETS)]

    def build(self, config: Config) -> object:
        """Compile a config; raises BuildError with what the compiler said."""
        choice = self._choice(config)
        if not torchside.is_extern(choice):
            try:
                _library(choice)
            except Exception as error:
                raise BuildError(str(error)) from error
        return None

    def prepare(self, config: Config) -> Callable[[int], Any]:
        """Return a function that runs a config on one of the sets of inputs and returns the result."""
        choice = self._choice(config)
        runs = [_run_of(choice, inputs) for inputs in self.sets]
        return lambda which: runs[which]()

    def _choice(self, config: Config) -> Any:
        key = canonical.encode(dict(config))
        if key in self.refused:
            raise BuildError(self.refused[key])
        if key not in self.choices:
            raise LimitExceeded("it is one of the register blocks that are left out here")
        return self.choices[key]


def measured(decision: ProductDecision, features: Mapping[str, Any], kitchen: Kitchen, steering: Steering) -> Tuning:
    """Tune one problem, unless it is known, and return what came of it; everything measured is remembered."""
    problem, mode = decision.problem(features), steering.mode_of(decision)
    configs = [config for config in decision.space if is_offered(config, features, steering.variants)]

    def stocked(work: Work) -> Measurer:  # asked for only where something is to be measured
        kitchen.stock(configs)
        return measurer_for(work)

    task = Task(
        decision,
        decision.subject(problem),
        Work(
            prepare=kitchen.prepare,
            args=(0,),
            inputs=tuple((which,) for which in range(1, _SETS)),
            default=dict(decision.default),
            check=_CHECK,
            policy=decision.policy,
            is_prebuilt=True,
        ),
        _in_this_context(kitchen.build),
        decision.hardware(),
        shelf.sources_for(decision),
    )
    budget = len(configs) if steering.budget is None else steering.budget
    # What is offered here may be less than the space: as seeds those come first, and the budget ends with them.
    seeds = [] if len(configs) == decision.space.count() else configs[1:]
    plan = Plan(budget=budget, seconds=steering.seconds, seeds=seeds, measure_all=mode == "collect")
    try:
        with torchside.plain_dispatch():
            tuning = tune(task, plan, context.current_store(), stocked)
    finally:
        decision.forget()
    _log.info("%s(%s): %s measured, %s", decision.name, problem, tuning.measured, tuning.answer.reason)
    return tuning


def _in_this_context(function: Callable[[Config], object]) -> Callable[[Config], object]:
    """Return a function for other threads that sees the settings of Inductor which are in force in this one."""
    here = contextvars.copy_context()

    def run(config: Config) -> object:
        return here.copy().run(function, config)

    return run


def _run_of(choice: Any, inputs: Any) -> Callable[[], Any]:
    """Return a call of a choice that returns its result, in memory of its own that no earlier result is left in."""
    given, out = inputs.get_benchmark_tensors(torchside.is_extern(choice)).unpack()
    own = out.clone().fill_(float("nan"))
    if torchside.is_extern(choice):
        return _extern_run(choice, given, own)
    return _written_run(choice, given, own)


def _extern_run(choice: Any, given: Any, out: Any) -> Callable[[], Any]:
    call = choice.to_callable()
    if choice.has_out_variant:
        return lambda: call(*given, out=out)
    return lambda: call(*given)


def _written_run(choice: Any, given: Any, out: Any) -> Callable[[], Any]:
    prepare = getattr(choice, "_preprocessor", None)
    packed, target = (given, out) if prepare is None else prepare(given, out)
    run = _loaded(choice, [*packed, target])
    repack = _repacking(choice, given)

    def call(kept: Any = packed) -> Any:  # the code is called with addresses: what lies there must live as long as it
        repack()
        run()
        return target

    return call


def _library(choice: Any) -> Any:
    """Return the compiled code of a choice, compiled now unless a disk has it."""
    return torchside.kernel_cache().load(_request(choice).source_code, device_type="cpu")


def _loaded(choice: Any, tensors: Sequence[Any]) -> Callable[[], object]:
    """Return the compiled code of a choice as a call on the addresses of tensors."""
    request = _request(choice)
    function = getattr(_library(choice), request.kernel_name)
    given = [ctypes.c_ulonglong(tensor.data_ptr()) for tensor in tensors] + list(request.extra_args)
    function.argtypes = [ctypes.c_ulonglong] * len(given)
    return functools.partial(function, *given)


def _request(choice: Any) -> Any:
    return getattr(choice, "_wrapped", choice).bmreq


def _repacking(choice: Any, given: Any) -> Callable[[], object]:
    """Return what costs as much as the packing that compiled code does on every call; Inductor times without it.

    A factor that is no constant and does not lie by rows is copied into blocks each time: one copy of it is charged.
    """
    template = torchside.cpp_template(choice)
    if template is None or not template.should_block_weights or given[-1].dim() != 3:
        return lambda: None
    factor = given[-1]
    blocks = factor.contiguous()
    return lambda: blocks.copy_(factor)
