"""A call of a Helion kernel as one of our problems: the features of its arguments, and where it would run."""

import functools
import hashlib
import inspect
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tunewise.decision import (
    Declaration,
    Fact,
    Feature,
    Hardware,
    MatmulFact,
    Problem,
    Subject,
    detect,
    environment,
)
from tunewise.deploy.helion_space import Knobs, knobs_of
from tunewise.errors import InvalidProblem, MissingPart

PREFIX = "helion."  # of a decision's name; the kernel's own follows
BACKEND = "helion"  # whose experts are asked
_POLICY = (("measured_by", "helion"),)
_COMPILERS = {"pallas": ("jax",), "triton": ("triton",), "tileir": ("triton",), "cute": ("nvidia-cutlass-dsl",)}
# Settings that change the code of a kernel, and so its times. What only one version of Helion has is left out there.
_CODE_SETTINGS = (
    *("allow_warp_specialize", "dot_precision", "fast_math", "index_dtype", "pallas_interpret"),
    *("persistent_reserved_sms", "static_shapes", "triton_do_not_specialize"),
)
_MAX_DEPTH = 2  # of lists in arguments; deeper ones say nothing that a heuristic could use


@dataclass(frozen=True, eq=False)
class Call:
    """A kernel and the arguments it is tuned for. `env` is Helion's CompileEnvironment of the bound kernel."""

    name: str
    function: Any
    args: tuple[Any, ...]
    env: Any

    @functools.cached_property
    def knobs(self) -> Knobs:
        """The kernel's search space."""
        return knobs_of(self.env.config_spec, self.env.settings)

    @functools.cached_property
    def hardware(self) -> Hardware:
        """The device the arguments are on."""
        return _hardware(self.env.device)

    @functools.cached_property
    def subject(self) -> Subject:
        """What a measurement of this call, here and now, is about."""
        backend = str(self.env.backend_name)
        must = {"helion.backend": backend, "kernel": _source_hash(self.function), **_code_settings(self.env.settings)}
        libraries = ("helion", "torch", *_COMPILERS.get(backend, ()))
        here = environment(self.hardware, libraries=libraries, must=must)
        return Subject(PREFIX + self.name, Problem(features_of(self.args)), _POLICY, here)

    @functools.cached_property
    def declaration(self) -> Declaration:
        """The kernel as a decision of ours; made anew for every call, because Helion's space depends on the shapes."""
        return Declaration(
            PREFIX + self.name,
            space=self.knobs.space,
            default=self.knobs.default,
            facts=lambda problem: tuple(_facts(self.env.config_spec)),
            backend=BACKEND,
            device=str(self.env.device) if self.hardware.kind == "cuda" else "cpu",
        )


def call_of(bound: Any, args: Sequence[Any]) -> Call:
    """Return the call of a bound kernel with arguments."""
    return Call(str(bound.kernel.name), bound.kernel.fn, tuple(args), bound.env)


def single_call(bound: Any, args: Sequence[Any]) -> Call:
    """Return the call of one kernel on one device; raises InvalidProblem for several shapes or ranks at once."""
    if hasattr(args, "cases"):
        raise InvalidProblem("one config for several shapes at once is not remembered")
    import torch.distributed

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        raise InvalidProblem("ranks that tune together must agree, and each has a memory of its own")
    return call_of(bound, args)


def call_in(env: Any, device_ir: Any) -> Call:
    """Return the call that Helion is binding at the moment; raises MissingPart where this Helion does not say."""
    host = getattr(device_ir, "host_function", None)
    args = getattr(env, "runtime_arg_values_by_name", None)
    if host is None or not args:
        raise MissingPart("this version of Helion does not tell a heuristic which kernel it binds; use seed_configs")
    return Call(str(host.name), host.fn, tuple(args.values()), env)


def features_of(args: Sequence[Any]) -> dict[str, Feature]:
    """Return the features of arguments, by the names Helion's own ahead-of-time tuning gives them.

    `arg0_dim1` is a size, `arg0_dtype` a word, `arg0_contiguous` 0 or 1, and `arg2_scalar` a number.
    """
    return {name: value for place, arg in enumerate(args) for name, value in _features(f"arg{place}", arg, 0)}


def _features(name: str, arg: Any, depth: int) -> Iterator[tuple[str, Feature]]:
    if hasattr(arg, "shape") and hasattr(arg, "dtype"):
        yield from ((f"{name}_dim{axis}", int(size)) for axis, size in enumerate(arg.shape))
        yield f"{name}_dtype", str(arg.dtype).removeprefix("torch.")
        if hasattr(arg, "is_contiguous"):
            yield f"{name}_contiguous", int(arg.is_contiguous())
    elif isinstance(arg, bool | int | float):
        yield f"{name}_scalar", arg if not isinstance(arg, bool) else int(arg)
    elif isinstance(arg, str):
        yield f"{name}_word", arg
    elif isinstance(arg, list | tuple) and depth < _MAX_DEPTH:
        for place, item in enumerate(arg):
            yield from _features(f"{name}_{place}", item, depth + 1)


def _hardware(device: Any) -> Hardware:
    kind = str(getattr(device, "type", device))
    try:
        return detect(str(device) if kind == "cuda" else kind)
    except MissingPart:  # a TPU, or a GPU that torch has another name for
        return Hardware(kind, kind, "", 0, 0)


def _source_hash(function: Any) -> str:
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):  # typed at a prompt
        text = getattr(getattr(function, "__code__", None), "co_code", b"").hex()
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _code_settings(settings: Any) -> Mapping[str, str]:
    return {f"helion.{name}": str(getattr(settings, name)) for name in _CODE_SETTINGS if hasattr(settings, name)}


def _facts(config_spec: Any) -> Iterator[Fact]:
    """Yield the products of matrices that Helion found in the kernel and knows the sizes of."""
    for fact in getattr(config_spec, "matmul_facts", ()):
        sizes: list[Any] = [getattr(fact, f"static_{axis}", None) for axis in "mnk"]
        if all(isinstance(size, int) for size in sizes):
            dtypes = [str(getattr(fact, name, "float32")).removeprefix("torch.") for name in ("lhs_dtype", "rhs_dtype")]
            try:
                m, n, k = (int(size) for size in sizes)
                yield MatmulFact(m, n, k, dtypes=(dtypes[0], dtypes[1], dtypes[0]))
            except InvalidProblem:  # an empty product
                continue
