"""A model's choices against Inductor's max-autotune on one program, in one run: time to compile, and time to run."""

import functools
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any

from tunewise.decision import NO_CHECK, Config, Failure, Policy, Problem, lower_half_mean
from tunewise.deploy.inductor import torchside
from tunewise.deploy.inductor.backend import inductor
from tunewise.deploy.inductor.collecting import program
from tunewise.deploy.inductor.listening import Heard, heard
from tunewise.deploy.inductor.problems import OPS, decision_for
from tunewise.deploy.inductor.shapes import Shape
from tunewise.errors import InvalidSetting, KernelError
from tunewise.formats.diode_shapes import Solution
from tunewise.measure import InProcess, Work

MAX_AUTOTUNE, MEASURED, SOLUTION = "max-autotune", "measured", "solution"
_ROUNDS = 15
# Inductor prints what it timed; whoever compares programs gets to see a table of ours.
_QUIET = {"max_autotune_report_choices_stats": False, "autotune_num_choices_displayed": 0}


@dataclass(frozen=True, slots=True)
class Way:
    """One way to get a program compiled: by Inductor alone, or steered in a mode of ours, or with one config."""

    name: str
    steering: Mapping[str, Any] | None = None
    solution: Solution | None = None

    @property
    def options(self) -> dict[str, Any]:
        """What `torch.compile` is told."""
        if self.steering is None:
            return {"backend": "inductor", "options": {"max_autotune": True}}
        return {"backend": "tunewise"}


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one way: seconds of the first call, seconds of a later one, and how far results are off.

    `error` is relative to what the program gives without a compiler. `asked` has what we answered, and why.
    """

    way: str
    compile_s: float
    run_s: float
    error: float
    asked: tuple[Heard, ...] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """All ways of one program, by name; `trouble` says why they could not be compared."""

    runs: Mapping[str, Run] = field(default_factory=dict)
    shape: Shape | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Ready:
    """A program compiled in one way: what is called, its first result, the seconds of that call, what was asked."""

    function: Callable[..., Any]
    result: Any
    compile_s: float
    asked: tuple[Heard, ...]


def ways_of(top: Sequence[int] = (1,), *, variants: bool = True, measured: bool = False) -> list[Way]:
    """Return max-autotune and the model's first k choices, for each k; with `measured` our own search too.

    `variants` says whether register blocks are candidates that Inductor does not offer.
    """
    if not top or any(type(k) is not int or k < 1 for k in top):
        raise InvalidSetting(f"top={list(top)} is not a list of whole numbers of at least 1")
    steered = [Way(f"top-{k}", {"mode": "use", "top_k": k, "variants": variants}) for k in dict.fromkeys(top)]
    own = [Way(MEASURED, {"mode": "collect", "variants": variants})] if measured else []
    return [Way(MAX_AUTOTUNE), *steered, *own]


def compare(
    made: Callable[..., Any], inputs: Sequence[Any], ways: Sequence[Way] | None = None, *, seed: int = 0
) -> Compared:
    """Compile a program in every way, each as if nothing had been compiled before, and time them by turns.

    What answers is what is in force: memory first, then models. Weights are held constant, and no gradients are asked
    for. Raises KernelError where a compiled program breaks or is compiled again while it is timed.
    """
    torch = torchside.need("torch")
    wanted = list(ways_of() if ways is None else ways)
    with torch.no_grad():
        _warm_up()
        expected = made(*inputs)
        shuffled = random.Random(seed).sample(wanted, len(wanted))
        shuffled.sort(key=lambda way: way.name == MEASURED)  # last: what it remembers would answer for the others
        ready = {way.name: compiled_in(way, made, inputs) for way in shuffled}
        taken_s = _by_turns({name: one.function for name, one in ready.items()}, tuple(inputs), seed)
    runs = {name: _run(name, one, taken_s[name], expected) for name, one in ready.items()}
    return Compared({way.name: runs[way.name] for way in wanted})


def compare_shapes(
    shapes: Iterable[Shape],
    ways: Sequence[Way] | None = None,
    *,
    solutions: Sequence[Solution] = (),
    seconds: float | None = None,
    seed: int = 0,
) -> Iterator[Compared]:
    """Yield how the program of every shape compares; it ends early, between two shapes, when `seconds` are over.

    A shape that `solutions` name a config for has one way more: that config.
    """
    end = float("inf") if seconds is None else time.monotonic() + seconds
    plain = list(ways_of() if ways is None else ways)
    for shape in shapes:
        if time.monotonic() >= end:
            return
        torchside.need("torch._dynamo").reset()
        named = [Way(SOLUTION, {"mode": "replay"}, one) for one in solutions if is_for(one, shape)]
        try:
            found = compare(*program(shape, seed), [*plain, *named[:1]], seed=seed)
        except Exception as error:  # one shape that cannot be compiled is a fact about it; the others go on
            found = Compared(trouble=f"{type(error).__name__}: {error}")
        yield replace(found, shape=shape)


def is_for(solution: Solution, shape: Shape) -> bool:
    """Return whether a solution names a config for a shape: what it tells of sizes and types is what the shape has."""
    known = {"b": shape.b, **shape.features}
    return all(known.get(name) == value for name, value in solution.sizes.items())


def _run(name: str, one: Ready, run_s: float, expected: Any) -> Run:
    return Run(name, one.compile_s, run_s, _error(one.result, expected), one.asked)


@functools.cache
def _warm_up() -> None:
    """Compile something small once: what Inductor loads and tries out at first is nobody's to pay for."""
    module = torchside.need("torch").nn.Linear(16, 16).eval()
    compiled_in(Way(MAX_AUTOTUNE), module, (torchside.need("torch").randn(8, 16),))


def compiled_in(way: Way, made: Callable[..., Any], inputs: Sequence[Any]) -> Ready:
    """Return a program compiled with empty caches, and how long that and the first call took."""
    torch, fresh_cache = torchside.need("torch"), torchside.need("torch._inductor.utils", "fresh_cache")
    config = torchside.need("torch._inductor.config")
    function = torch.compile(_anew(made), dynamic=False, **way.options)
    settings = {"freezing": True, **{name: value for name, value in _QUIET.items() if hasattr(config, name)}}
    with fresh_cache(), config.patch(settings), _steered(way), heard() as asked:
        start = time.perf_counter()
        result = function(*inputs)
        return Ready(function, result, time.perf_counter() - start, tuple(asked))


@contextmanager
def _steered(way: Way) -> Iterator[None]:
    if way.steering is None:
        yield
        return
    with inductor(**way.steering), _pinned(way.solution):
        yield


@contextmanager
def _pinned(solution: Solution | None) -> Iterator[None]:
    """Insist on a solution's config for its sizes, beside what is pinned already."""
    if solution is None:
        yield
        return
    pinned = [(decision_for(op), decision_for(op).pins) for op in OPS]
    try:
        for decision, _ in pinned:
            decision.pin(_ours(solution.config), **_sizes(solution.sizes, decision.name))
        yield
    finally:
        for decision, before in pinned:
            decision.unpin()
            for pin in before:
                decision.pin(pin.config, **dict(pin.when))  # type: ignore[arg-type]


def _ours(config: Config) -> Config:
    if config.get("kernel") == "triton":
        raise InvalidSetting(
            "the solution's config is a Triton template's, for GPUs; on a CPU it has kernel, reg_m and reg_n"
        )
    return config


def _sizes(sizes: Problem, decision: str) -> dict[str, Any]:
    return {name: value for name, value in sizes.items() if name != "b" or decision.endswith("bmm")}


def _anew(made: Callable[..., Any]) -> Callable[..., Any]:
    """Return a program in code that Dynamo has never seen: it would take what it compiled for the same code before."""

    def run(*args: Any) -> Any:
        return made(*args)

    return FunctionType(run.__code__.replace(), run.__globals__, run.__name__, None, run.__closure__)


def _by_turns(functions: Mapping[str, Callable[..., Any]], args: tuple[Any, ...], seed: int) -> dict[str, float]:
    """Return the seconds of a call of each, timed by turns in another order every round."""
    bench = InProcess(
        Work(
            prepare=lambda config: functions[str(config["way"])],
            args=args,
            default={"way": next(iter(functions))},
            check=NO_CHECK,
            policy=_policy(),
        )
    )
    samples: dict[str, list[float]] = {name: [] for name in functions}
    rng, before = random.Random(seed), _graphs()
    for _ in range(_ROUNDS):
        for name in rng.sample(list(functions), len(functions)):
            taken = bench.sample({"way": name}, 1)
            if isinstance(taken, Failure):
                raise KernelError(f"{name}: {taken.kind}: {taken.detail}")
            samples[name].extend(taken.samples_s)
    if _graphs() != before:
        raise KernelError("the program was compiled again while it was timed; its times say nothing")
    return {name: lower_half_mean(taken_s) for name, taken_s in samples.items()}


def _policy() -> Policy:
    threads = torchside.threads()
    return Policy(clock="cpu" if threads == 1 else "wall", threads=threads, isolation="none")


def _graphs() -> int:
    """Return how many graphs Dynamo has made in this process."""
    return int(torchside.need("torch._dynamo.utils").counters["stats"]["unique_graphs"])


def _error(result: Any, expected: Any) -> float:
    """Return how far a result is off, relative to the size of the expected one; infinite where they do not compare."""
    if not hasattr(result, "shape") or result.shape != expected.shape:
        return float("inf") if hasattr(expected, "shape") else 0.0
    right = expected.double()
    size = float(right.norm())
    off = float((result.double() - right).norm())
    return off / size if size else off
