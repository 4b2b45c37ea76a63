"""A custom op inside Inductor: its implementations become choices; the best known one is taken, or all are measured."""

import functools
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from tunewise.decision import CHOICE
from tunewise.deploy.inductor import torchside
from tunewise.deploy.inductor.choices import watch
from tunewise.deploy.inductor.steering import Steering, active, report
from tunewise.errors import BuildError
from tunewise.session import Decision, Implementation, mode
from tunewise.settings import Mode

Way = Callable[..., Any]


class _Asked(threading.local):
    """The op that this thread is lowering, if it is one of ours."""

    call: "_Call | None" = None


_asked = _Asked()


def register(op: Any, name: str, ways: Mapping[str, Way], decision: Decision) -> None:
    """Let Inductor lower an op by the implementation that the decision's ladder answers."""
    from torch._inductor.kernel.custom_op import CustomOpConfig, register_custom_op_autotuning
    from torch._inductor.lowering import user_lowerings

    named = {word: _named(word, way) for word, way in ways.items()}

    def configs(inputs: Mapping[str, Any]) -> list[Any]:
        call = _asked.call
        return [CustomOpConfig(named[word]) for word in (named if call is None else call.words)]

    register_custom_op_autotuning(op, config_generator=configs, name=re.sub(r"\W+", "_", name))
    choosing = user_lowerings[op]

    @functools.wraps(choosing)
    def lower(*args: Any, tunewise: str = "", **kwargs: Any) -> Any:
        call = _Call(decision, named, args, kwargs)
        try:
            with _lowering(call):
                return choosing(*args, **kwargs)
        except Exception as error:  # whatever it is, the op can be called as it is
            report(name, error)
            return None

    user_lowerings[op] = lower
    watch(decision)


def mode_of(decision: Decision) -> Mode:
    """Return the mode that counts for an op that is compiled now: our backend's, or else the decision's."""
    return (active() or Steering()).mode_of(decision)


@dataclass
class _Call:
    """One call of an op in a graph that is being lowered."""

    decision: Decision
    ways: Mapping[str, Way]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    words: Sequence[str] = ()  # of the implementations that become choices
    refused: dict[str, str] = field(default_factory=dict)  # why others do not, where all are wanted
    is_to_measure: bool = field(default=False, init=False)

    def ask(self) -> None:
        """Find out which implementations are wanted: the one that is known to be best, or all, to be measured."""
        assert self.decision.features is not None
        with _mode_in_force(), _fake_mode():
            args, kwargs = self._each(_as_fake)
            answer, now = self.decision.decide(self.decision.features(*args, **kwargs)), self.decision.mode_in_force()
        self.is_to_measure = now == "collect" or (now == "tune" and answer.rung not in ("pin", "memory"))
        self.words = self._traceable() if self.is_to_measure else [str(answer.config[CHOICE])]

    def narrow(self, choices: list[Any]) -> list[Any]:
        """Return the one choice to take, or all where none is ours or Inductor is to measure them."""
        ours = {word: one for one in choices for word, way in self.ways.items() if one.decomposition is way}
        if not ours:
            return choices
        word = self.words[0]
        if self.is_to_measure:
            if any(node.get_device().type != "cpu" for one in ours.values() for node in one.input_nodes):
                return choices  # Inductor knows how to time what other devices do
            word = self._measured(ours)
        chosen = ours.get(word) or ours.get(str(self.decision.default[CHOICE]))
        return choices if chosen is None else [chosen]

    def _traceable(self) -> list[str]:
        """Return the implementations whose result is laid out like the default's; why others' is not is remembered."""
        default = str(self.decision.default[CHOICE])
        with _fake_mode():
            args, kwargs = self._each(_as_fake)
            wanted = _layout(self.ways[default](*args, **kwargs))
            for word, way in self.ways.items():
                try:
                    found = _layout(way(*args, **kwargs))
                except Exception as error:  # a candidate's own trouble
                    self.refused[word] = f"{type(error).__name__}: {error}"
                else:
                    if found != wanted:
                        self.refused[word] = f"the result is {found} and not {wanted}, as of the default"
        return [word for word in self.ways if word not in self.refused]

    def _measured(self, ours: Mapping[str, Any]) -> str:
        """Measure the compiled implementations by our protocol, remember that, and return the best one's word."""
        import torch

        with _fake_mode():
            args, kwargs = self._each(_as_fake)
        compiled = {word: _compiled(one) for word, one in ours.items()}
        strides = [arg.stride() for arg in (*args, *kwargs.values()) if isinstance(arg, torch.Tensor)]

        def run(*args: Any, choice: str, **kwargs: Any) -> Any:
            if choice not in compiled:
                raise BuildError(self.refused.get(choice, "Inductor made no choice of it: it looks at its very sizes"))
            tensors = [arg for arg in (*args, *kwargs.values()) if isinstance(arg, torch.Tensor)]
            return compiled[choice](*map(_laid_out, tensors, strides))

        with _mode_in_force(), torch.no_grad():
            real = [_filled(arg) for arg in args], {name: _filled(arg) for name, arg in kwargs.items()}
            answer = Implementation(self.decision, run).decide(*real[0], **real[1])
        return str(answer.config[CHOICE])

    def _each(self, change: Callable[[Any], Any]) -> tuple[list[Any], dict[str, Any]]:
        return [change(arg) for arg in self.args], {name: change(arg) for name, arg in self.kwargs.items()}


@contextmanager
def _lowering(call: _Call) -> Iterator[None]:
    _ensure_registered()
    before = _asked.call
    try:
        call.ask()
    except Exception as error:  # a function of the user's, for one
        report(call.decision.name, error)
        call.words = [str(call.decision.default[CHOICE])]
    _asked.call = call
    try:
        yield
    finally:
        _asked.call = before


def _narrowed(choices: list[Any]) -> list[Any]:
    """Return what Inductor is to choose from; all there are where no op of ours is being lowered. Never raises."""
    call = _asked.call
    if call is None:
        return choices
    try:
        return call.narrow(choices)
    except Exception as error:  # whatever it is, Inductor can choose itself
        report(call.decision.name, error)
        return choices


def _ensure_registered() -> None:
    """Have our function in Inductor's list, once; anybody may have cleared the list meanwhile."""
    from torch._inductor import select_algorithm

    get_cache: Any = getattr(select_algorithm, "get_algorithm_selector_cache", None)
    cache: Any = get_cache() if get_cache is not None else select_algorithm._ALGORITHM_SELECTOR_CACHE
    if _narrowed not in getattr(cache, "preprocessing_fns", ()):
        select_algorithm.add_preprocessing_fn(_narrowed)


def _compiled(choice: Any) -> Callable[..., Any]:
    """Return the code that Inductor makes of a choice, or a function that says why it could not."""
    try:
        choice._ensure_compiled()
    except Exception as error:  # a candidate's own trouble
        return functools.partial(_broken, f"{type(error).__name__}: {error}")
    call, sizes = choice._compiled_module.call, list(choice.sym_input_values)

    def run(*tensors: Any) -> Any:
        return call([*sizes, *tensors])[0]

    return run


def _broken(said: str, *tensors: Any) -> Any:
    raise BuildError(said)


def _named(word: str, way: Way) -> Way:
    """Return an implementation under its own word, which is how Inductor's names and ours meet."""

    def implementation(*args: Any, **kwargs: Any) -> Any:
        return way(*args, **kwargs)

    implementation.__name__ = re.sub(r"\W+", "_", word)
    return implementation


def _mode_in_force() -> AbstractContextManager[None]:
    ours = active()
    if ours is None or ours.mode is None:
        return nullcontext()
    return mode(ours.mode, budget=ours.budget, seconds=ours.seconds)


def _fake_mode() -> Any:
    from torch._inductor.virtualized import V

    return V.fake_mode


def _as_fake(value: Any) -> Any:
    """Return an argument as the user's functions know it: a tensor without data, dynamic sizes as they were traced."""
    from torch._inductor.ir import IRNode, ir_node_to_tensor

    if isinstance(value, IRNode):
        return ir_node_to_tensor(value, replace_symbols_with_hints=True)
    return value if value is None or isinstance(value, int | float | str) else torchside.hints([value])[0]


def _filled(value: Any) -> Any:
    """Return a tensor laid out like one without data, with values by chance; anything else as it is."""
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    real = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    chance = torch.Generator(device=value.device).manual_seed(0)
    return real.normal_(generator=chance) if value.dtype.is_floating_point else real.random_(0, 2, generator=chance)


def _laid_out(tensor: Any, strides: tuple[int, ...]) -> Any:
    """Return a tensor with the strides that compiled code insists on: a copy made for a check has lost the gaps."""
    import torch

    if tensor.stride() == strides:
        return tensor
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def _layout(result: Any) -> str:
    sizes = "x".join(map(str, result.shape))
    return f"{str(result.dtype).removeprefix('torch.')} {sizes} by strides {tuple(result.stride())}"
