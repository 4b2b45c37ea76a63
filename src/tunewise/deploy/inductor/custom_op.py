"""An op of torch made from Python functions: its signature, what tracing sees of it, and its gradient."""

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

from tunewise.errors import InvalidDecision

_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")
_TOKEN = "tunewise"  # the argument that tells compilers' caches what steers


def register(name: str, default: Callable[..., Any], run: Callable[..., Any], schema: str | None) -> Any:
    """Register an op and return its overload: `run` does the work, `default` tells its result's shape and gradient."""
    import torch

    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidDecision(f"custom_decision: the name {name!r} is not one of an op, such as 'mylib::softmax'")
    op: Any = torch.library.custom_op(
        name, _without_token(run), mutates_args=(), schema=schema_of(name, default, schema)
    )
    op.register_fake(_without_token(default))
    op.register_autograd(functools.partial(_backward, default), setup_context=_setup)
    return op._opoverload


def schema_of(name: str, function: Callable[..., Any], schema: str | None = None) -> str:
    """Return the op's signature in torch's words: of the annotations, or tensors and what the defaults tell."""
    import torch

    if schema is None:
        try:
            schema = str(torch.library.infer_schema(_annotated(function), mutates_args=()))
        except (ValueError, TypeError) as error:
            said = f"{name}: its signature cannot be told from the default implementation: {error}"
            raise InvalidDecision(f"{said}; pass schema='(Tensor x, int n) -> Tensor'") from None
    arguments, arrow, result = schema.rpartition(") ->")
    if not arrow or not arguments.startswith("("):
        raise InvalidDecision(f"{name}: schema={schema!r} is not a signature such as '(Tensor x, int n) -> Tensor'")
    more = ", " if "*, " in arguments else ", *, "
    return f"{arguments}{more}str {_TOKEN}=''{arrow}{result}"


def constant(function: Callable[[], str]) -> Callable[[], str]:
    """Return a function that tracing calls at once, to put what it returns into the graph."""
    import torch

    @functools.wraps(function)
    def told() -> str:
        return function()

    return torch.compiler.assume_constant_result(told)  # type: ignore[no-any-return]


def is_compiling() -> Callable[[], bool]:
    """Return torch's function that tells whether a call is being traced."""
    import torch

    asks: Callable[[], bool] = torch.compiler.is_compiling
    return asks


def threads() -> int:
    """Return how many threads torch uses for one op."""
    import torch

    return int(torch.get_num_threads())


def _annotated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the same signature with the annotations that are missing: tensors, or as the default is."""
    import torch

    def stub() -> None:
        raise NotImplementedError

    signature = inspect.signature(function)
    empty, whole = inspect.Parameter.empty, []
    for one in signature.parameters.values():
        kind = one.annotation
        if kind is empty:
            kind = torch.Tensor if one.default is empty else type(one.default)
        whole.append(one.replace(annotation=kind))
    result = torch.Tensor if signature.return_annotation is empty else signature.return_annotation
    stub.__signature__ = signature.replace(parameters=whole, return_annotation=result)  # type: ignore[attr-defined]
    return stub


def _without_token(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, tunewise: str = "", **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Any, keyword_only_inputs: dict[str, Any]) -> None:
    import torch

    ctx.places = [place for place, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
    ctx.save_for_backward(*(inputs[place] for place in ctx.places))
    ctx.rest = [None if place in ctx.places else value for place, value in enumerate(inputs)]
    ctx.keywords = {name: value for name, value in keyword_only_inputs.items() if name != _TOKEN}


def _backward(default: Callable[..., Any], ctx: Any, gradient: Any) -> tuple[Any, ...]:
    """Return the gradients, through the default implementation worked out once more."""
    import torch

    args, wanted = list(ctx.rest), []
    with torch.enable_grad():
        for place, saved in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[place] = saved.detach()
            if ctx.needs_input_grad[place]:
                wanted.append(args[place].requires_grad_())
        result = default(*args, **ctx.keywords)
    found = dict(zip(map(id, wanted), torch.autograd.grad(result, wanted, gradient, allow_unused=True), strict=True))
    return tuple(found.get(id(arg)) for arg in args)
