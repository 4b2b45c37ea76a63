"""One op in several implementations: eager code calls the best known, and torch.compile gets them as its choices."""

import inspect
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from tunewise.decision import CHOICE, Answer, Check, Policy, Space
from tunewise.decision.source import fingerprint
from tunewise.deploy.inductor import custom_lowering, custom_op
from tunewise.deploy.inductor.steering import Steering, active, guarded
from tunewise.errors import InvalidDecision
from tunewise.session import Decision, Explanation, choice
from tunewise.settings import Mode

Way = Callable[..., Any]


def custom_decision(
    name: str,
    implementations: Mapping[str, Way],
    *,
    default: str,
    features: Callable[..., Mapping[str, Any]] | None = None,
    check: Check | None = None,
    policy: Policy | None = None,
    mode: Mode | None = None,
    schema: str | None = None,
    version: str = "",
) -> "CustomDecision":
    """Return a function that does one thing in one of several ways, in eager code and inside torch.compile.

    `name` is that of an op, such as `mylib::softmax`, which is registered here. The implementations are functions of
    tensors, numbers and words that return one tensor of the same layout, and change nothing. `features` tells a problem
    from its arguments; left out, those are the sizes and types of all tensors, and the numbers and words. Compiled code
    is measured as Inductor compiles it, under `name`; eager code as it is, under `name` and `.eager`. `schema` is the
    op's signature where the annotations of the default implementation do not tell it.
    """
    if not isinstance(implementations, Mapping) or not all(callable(way) for way in implementations.values()):
        raise InvalidDecision(
            f"{name}: implementations must map words to functions, such as {{'plain': f, 'split': g}}"
        )
    if default not in implementations:
        raise InvalidDecision(f"{name}: default={default!r} is not one of {', '.join(map(str, implementations))}")
    facts: dict[str, Any] = {
        "features": features or features_of(implementations[default]),
        "check": check or Check(),
        "policy": policy or _policy(),
        "libraries": ("torch",),
        "mode": mode,
        "version": version,
    }
    return CustomDecision(name, dict(implementations), default, schema, facts)


class CustomDecision:
    """An op of several implementations. Call it; ask, pin or explain what it does in compiled code by `decision`."""

    def __init__(
        self, name: str, ways: Mapping[str, Way], default: str, schema: str | None, facts: Mapping[str, Any]
    ) -> None:
        space, source = Space({CHOICE: list(ways)}), fingerprint(tuple(ways.values()))
        self.name, self.ways, self.default = name, ways, default
        self.eager = choice(f"{name}.eager", ways, default=default, **facts)
        self.decision = Decision(name, space=space, default={CHOICE: default}, backend="inductor-cpu", **facts)
        self.decision.implementation(facts=lambda: {"source": source})(lambda *args, choice: ways[choice](*args))
        self._state = custom_op.constant(self.state)
        self._is_compiling = custom_op.is_compiling()
        self.op = custom_op.register(name, ways[default], self.eager, schema)
        self._is_lowered = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do the work by the implementation that is known to be best; while compiling, leave a call of the op."""
        if self._is_compiling():
            return self.op(*args, **kwargs, tunewise=self._state())
        return self.eager(*args, **kwargs)

    def decide(self, *args: Any, **kwargs: Any) -> Answer:
        """Return which implementation compiled code would use for these arguments. Never measures."""
        return self.decision.decide(self._features(args, kwargs))

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Return where the answer for compiled code comes from, rung by rung."""
        return self.decision.explain(self._features(args, kwargs))

    def state(self) -> str:
        """Return a word for all that steers: compiled code of another word is not taken from a compiler's cache.

        In the modes that measure no two words are equal, since only code that is compiled anew is measured.
        """
        self._let_inductor_know()
        mode = custom_lowering.mode_of(self.decision)
        if mode in ("tune", "collect"):
            return uuid.uuid4().hex[:16]
        return (active() or Steering()).identity({self.name: self.decision})[:16]

    def _let_inductor_know(self) -> None:
        """Register the implementations with Inductor, now that something is compiled: importing it takes seconds."""
        if not self._is_lowered:
            self._is_lowered = True
            guarded(self.name, lambda: custom_lowering.register(self.op, self.name, self.ways, self.decision), _nothing)

    def _features(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        assert self.decision.features is not None
        return self.decision.features(*args, **kwargs)


def features_of(function: Way) -> Callable[..., dict[str, Any]]:
    """Return a function of a call's arguments: sizes and types of tensors, and numbers and words, by their names."""
    signature = inspect.signature(function)

    def features(*args: Any, **kwargs: Any) -> dict[str, Any]:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        found: dict[str, Any] = {}
        for name, value in given.arguments.items():
            if hasattr(value, "shape"):
                found |= {f"{name}{place}": int(size) for place, size in enumerate(value.shape)}
                found[f"{name}_dtype"] = str(value.dtype).removeprefix("torch.")
            elif isinstance(value, int | float | str):
                found[name] = value
        return found

    return features


def _nothing() -> None:
    """Leave the op as it is: compiled code calls it, and it chooses as eager code does."""


def _policy() -> Policy:
    """Return how to measure with the threads that torch has now: a forked worker cannot use more than one."""
    threads = custom_op.threads()
    return Policy() if threads == 1 else Policy(clock="wall", threads=threads, isolation="none")
