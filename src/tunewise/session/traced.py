"""Decisions inside torch.compile: answered once, while the code is traced, and written into the graph as constants.

Nothing is measured there: what is not known is a miss, to be tuned before or after. Nothing here imports torch: Dynamo
looks for two attributes of the functions that it meets, and finds them.
"""

import itertools
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from tunewise.decision import Answer
from tunewise.decision.buckets import Bucket, next_edge, next_pow2
from tunewise.session import agreeing
from tunewise.settings import MEASURING

if TYPE_CHECKING:
    from tunewise.session.decision import Decision
    from tunewise.session.implementation import Implementation
    from tunewise.settings import Mode

_F = TypeVar("_F", bound=Callable[..., Any])
_MOST = 1000  # answers kept for the traces that are being made; each is read at once, part by part

_answers: dict[int, Answer] = {}
_tickets = itertools.count()


def instead_of(function: Callable[..., Any], traced: Callable[..., Any]) -> None:
    """Have torch.compile trace another function wherever it meets this one. Elsewhere nothing changes."""
    function._torchdynamo_inline = traced  # type: ignore[attr-defined]


def call(made: "Implementation", *args: Any, **kwargs: Any) -> Any:
    """Return what an implementation returns, with the config that is known best while the code is traced."""
    config = decide(made.decision, made._features(args, kwargs)).config
    return made._function(*args, **{**config, **kwargs})


def decide(decision: "Decision", features: Mapping[str, Any], *, mode: "Mode | None" = None) -> Answer:
    """Return the answer for a problem as constants of the graph; another problem is traced, and answered, anew."""
    buckets = decision.buckets
    asked = tuple((name, _known(features[name], buckets.get(name))) for name in features)
    ticket = _ask(decision, asked, mode)
    config = {_name(ticket, place): _value(ticket, place) for place in range(_size(ticket))}
    said = [_said(ticket, part) for part in ("rung", "source", "reason", "confidence", "time_s")]
    return Answer(config, *said)


def _known(value: Any, bucket: Bucket | None) -> Any:
    """Return a feature as a constant. What stands for a bucket is found by comparisons: all of it shares one trace."""
    if bucket is not None and not callable(bucket):
        value = next_pow2(value) if isinstance(bucket, str) else next_edge(value, bucket)
    return operator.index(value) if isinstance(value, int) else value


def _constant(function: _F) -> _F:
    """Have torch.compile call a function while it traces, and take the result for a constant."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


@_constant
def _ask(decision: "Decision", features: tuple[tuple[str, Any], ...], mode: "Mode | None") -> int:
    """Return a ticket for an answer: plain numbers and words are all that can be a constant."""
    ticket, asked = next(_tickets), dict(features)
    answer = decision.decide(asked, mode=mode)
    if decision.mode_in_force(mode) in MEASURING:  # nothing is measured after this: other ranks must trace the same
        answer = agreeing.agreed(decision._question(decision.problem(asked)), answer)
    _answers[ticket] = answer
    _answers.pop(ticket - _MOST, None)
    return ticket


@_constant
def _size(ticket: int) -> int:
    return len(_answers[ticket].config)


@_constant
def _name(ticket: int, place: int) -> str:
    return list(_answers[ticket].config)[place]


@_constant
def _value(ticket: int, place: int) -> Any:
    return list(_answers[ticket].config.values())[place]


@_constant
def _said(ticket: int, part: str) -> Any:
    return getattr(_answers[ticket], part)
