"""What Inductor asks when it chooses a kernel for a matrix product on the CPU, as a decision and a problem of ours."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tunewise.decision import Environment, Policy, Problem, Space, Subject, detect, environment
from tunewise.decision.facts import MatmulFact
from tunewise.decision.listed import listed
from tunewise.deploy.inductor import torchside
from tunewise.session import Decision

BACKEND = "inductor-cpu"
THREADS = "threads"
WEIGHT = "weight"  # how a factor lies that is a constant: as the kernel likes it best
# Only `block` has register blocks of its own. The others say 1 and not 0: nothing is covered by tiles of no size, and
# a parameter that can be 0 would keep learners from working out how tiles fit a product.
ATEN: dict[str, Any] = {"kernel": "aten", "reg_m": 1, "reg_n": 1}
CPP: dict[str, Any] = {"kernel": "cpp", "reg_m": 1, "reg_n": 1}  # Inductor's template as Inductor itself writes it
BLOCK = "block"  # the same template with another register block
# With a constant weight these are one question: which of them Inductor asks depends on the dtype and the machine.
_OPS = {
    "mm": "linear",
    "addmm": "linear",
    "packed_linear": "linear",
    "linear_unary": "linear",
    "linear_binary": "linear",
    "bmm": "bmm",
}
OPS = ("linear", "bmm")
_DTYPES = ("float32", "bfloat16", "float16")
_ROWS, _VECTORS = (1, 2, 3, 4, 6, 8, 12, 16, 24), (1, 2, 3, 4, 8)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of Inductor's: the name it gave, the nodes it is about and where the result goes."""

    name: str
    nodes: Sequence[Any]
    layout: Any

    @property
    def op(self) -> str | None:
        """Which of our operations this is; None if it is none of them."""
        is_ours = str(self.layout.device) == "cpu" and _word(self.layout.dtype) in _DTYPES
        return _OPS.get(self.name) if is_ours else None

    def features(self, extern: str) -> dict[str, Any]:
        """Return the problem's features; `extern` is the library call that Inductor would make."""
        left = self.nodes[1] if self.name == "addmm" else self.nodes[0]
        m, n = torchside.hints(self.layout.size[-2:])
        whole: dict[str, Any] = {
            "m": m,
            "n": n,
            "k": torchside.hints(left.get_size()[-1:])[0],
            "dtype": _word(left.get_dtype()),
            "extern": extern,
            "dynamic": int(torchside.is_dynamic([*self.layout.size, *left.get_size()])),
        }
        # Both operations have the same features, so that one learns from what was measured of the other.
        if self.op == "linear":
            return {**whole, "b": 1, "lhs": _order(left), "rhs": WEIGHT}
        batch = torchside.hints(self.layout.size[:1])[0]
        return {**whole, "b": batch, "lhs": _order(left), "rhs": _order(self.nodes[1])}


@dataclass(frozen=True, eq=False)
class ProductDecision(Decision):
    """The decision which kernel a matrix product gets: a library's, or C++ that Inductor writes."""

    environment: Environment = field(kw_only=True)

    def subject(self, problem: Problem) -> Subject:
        """Return what a timing of this problem, with this machine's compiler, is about."""
        return Subject(self.name, problem, tuple(sorted(self.policy.key.items())), self.environment)


def is_offered(config: Mapping[str, Any], features: Mapping[str, Any], variants: bool) -> bool:
    """Return whether a config is a candidate for a product; all are but register blocks that do not suit it.

    A factor that is no constant is used as it lies if the block divides its rows. Otherwise compiled code copies it
    into blocks on every call, which was seen to take three times as long as the product.
    """
    if config["kernel"] != BLOCK:
        return True
    lies_well = features["rhs"] == "rows" and features["n"] % config["reg_n"] == 0
    return variants and (features["rhs"] == WEIGHT or lies_well)


def decision_for(op: str) -> ProductDecision:
    """Return the decision about an operation with as many threads as Inductor writes code for now."""
    return _decision(op, torchside.threads())


def name_of(op: str) -> str:
    """Return what the decision about an operation is called."""
    return f"torch.{op}"


@functools.cache
def configs() -> tuple[dict[str, Any], ...]:
    """Return every config that is tried here: the library, Inductor's own blocking, and register blocks that fit."""
    lanes, registers = torchside.vector_registers()
    blocks = [(rows, vectors) for vectors in _VECTORS for rows in _ROWS if _fits(rows, vectors, registers)]
    return (ATEN, CPP, *({"kernel": BLOCK, "reg_m": rows, "reg_n": vectors * lanes} for rows, vectors in blocks))


def _fits(rows: int, vectors: int, registers: int) -> bool:
    """Return whether a block's sums fit the registers with one row of the weight beside them, and fill them well.

    A single row cannot fill them; it needs several vectors at least, to hide the time one multiplication takes.
    """
    sums = rows * vectors
    fills = sums >= registers * 3 // 8 or (rows == 1 and vectors >= 4)
    return fills and sums + vectors <= registers


@functools.cache
def _decision(op: str, threads: int) -> ProductDecision:
    # Threads of OpenMP do not survive a fork: only single-threaded code can be timed in a worker.
    single = threads == 1
    policy = Policy(
        clock="cpu" if single else "wall",
        threads=threads,
        isolation="worker" if single else "none",
        compile_timeout_s=300.0,
    )
    params, rule = listed(configs())
    return ProductDecision(
        name_of(op),
        space=Space(params, (rule,)),
        default=ATEN,
        policy=policy,
        backend=BACKEND,
        facts=_matmul,
        environment=environment_here(threads),
    )


def environment_here(threads: int) -> Environment:
    """Return the environment of what is measured here: the CPU, torch's version, compiler, vector unit and threads.

    Threads are in the policy's key too; here they are, so that a model can be fenced by them.
    """
    return environment(detect("cpu"), libraries=("torch",), must={**torchside.facts(), THREADS: threads})


def _matmul(problem: Problem) -> MatmulFact:
    size = {name: int(problem.get(name, 1)) for name in ("b", "m", "n", "k")}
    dtype = str(problem["dtype"])
    return MatmulFact(size["m"], size["n"], size["k"], size["b"], dtypes=(dtype, dtype, dtype))


def _word(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _order(node: Any) -> str:
    """Return how a matrix lies in memory: by rows, by columns, or otherwise."""
    rows, columns = torchside.hints(node.get_stride()[-2:])
    size = torchside.hints(node.get_size()[-2:])
    if columns == 1 and rows in (size[1], 1):
        return "rows"
    return "columns" if rows == 1 and columns in (size[0], 1) else "other"
