"""Functions as implementations: what they must take, which ones can be timed, and those that are methods."""

import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tunewise.decision import Answer, Problem
from tunewise.errors import FailedInputs, InvalidDecision, MissingPart

if TYPE_CHECKING:
    from tunewise.session.decision import Decision
    from tunewise.session.implementation import Implementation
    from tunewise.session.ladder import Explanation
    from tunewise.session.plan import Task
    from tunewise.session.tune import Tuning

_LATER = {
    "a coroutine function": inspect.iscoroutinefunction,
    "an asynchronous generator": inspect.isasyncgenfunction,
    "a generator function": inspect.isgeneratorfunction,
}


def check_takes(decision: str, function: Callable[..., Any], names: Sequence[str]) -> None:
    """Raise InvalidDecision if a function cannot be called with the parameters of a decision as keywords."""
    if hasattr(function, "__signature__"):  # what it shows is not what it takes
        return
    try:
        parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):  # it does not tell
        return
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    taken = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    missing = [name for name in names if name not in taken]
    if missing:
        form = f"def {_name(function)}(..., *, {', '.join(names)})"
        raise InvalidDecision(
            f"{decision}: {_name(function)} does not take {', '.join(missing)} of the space; write {form}"
        )


@contextmanager
def making_inputs(decision: str, problem: Problem) -> Iterator[None]:
    """Raise FailedInputs where functions of the user's, called in this block, break for a problem."""
    try:
        yield
    except MissingPart:  # no other problem would do better
        raise
    except Exception as error:  # the user's function, on values that it does not take
        said = f"{type(error).__name__}: {error}"
        raise FailedInputs(f"{decision}: inputs fails for ({problem}) with {said}") from error


def check_timed(decision: str, function: Callable[..., Any]) -> None:
    """Raise InvalidDecision if a call of a function only prepares its work: its time would say nothing."""
    for kind, way in itertools.product(_LATER, getattr(function, "ways", (function,))):
        if _LATER[kind](way):
            raise InvalidDecision(
                f"{decision}: {_name(way)} is {kind}, whose calls do their work later, so that they cannot be "
                "timed; tune a function that runs it to its end"
            )


def takes(signature: inspect.Signature) -> list[inspect.Parameter]:
    """Return the parameters of a signature, whatever they are annotated with."""
    return [one.replace(annotation=one.empty) for one in signature.parameters.values()]


class Method:
    """An implementation as it is looked up on an object: the object comes first in every call, as for any method."""

    def __init__(self, made: "Implementation", owner: object) -> None:
        self.__func__, self.__self__ = made, owner
        self.__name__, self.__doc__ = _name(made), made.__doc__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Method) and self.__func__ is other.__func__ and self.__self__ is other.__self__

    def __hash__(self) -> int:
        return hash((self.__func__, id(self.__self__)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run with the config the ladder gives."""
        return self.__func__(self.__self__, *args, **kwargs)

    @property
    def decision(self) -> "Decision":
        """The decision that is made on every call."""
        return self.__func__.decision

    def decide(self, *args: Any, **kwargs: Any) -> Answer:
        """Return the answer for these arguments; in `tune` and `collect` mode, tune a new problem first."""
        return self.__func__.decide(self.__self__, *args, **kwargs)

    def tune(self, *args: Any, **plan: Any) -> "Tuning":
        """Tune the problem these arguments are, unless it is known."""
        return self.__func__.tune(self.__self__, *args, **plan)

    def explain(self, *args: Any, **kwargs: Any) -> "Explanation":
        """Return where the answer for these arguments comes from, rung by rung."""
        return self.__func__.explain(self.__self__, *args, **kwargs)

    def task(self, *args: Any, **kwargs: Any) -> "Task":
        """Return the tuning task these arguments are."""
        return self.__func__.task(self.__self__, *args, **kwargs)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
