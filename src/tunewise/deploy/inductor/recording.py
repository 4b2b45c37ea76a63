"""Which products a real program asks for, and how often: every torch.compile in it listened to while it runs."""

import functools
import runpy
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tunewise.deploy.inductor import backend, torchside
from tunewise.deploy.inductor.listening import Heard, heard
from tunewise.deploy.inductor.problems import OPS, name_of
from tunewise.deploy.inductor.shapes import Shape, merged
from tunewise.errors import InvalidFile, NotFound

_COMPILE_FX = "torch._inductor.compile_fx"
_OP = {name_of(op): op for op in OPS}


@dataclass
class Graph:
    """One compiled graph: what Inductor asked while it was compiled, and how often the program called it."""

    asked: list[Heard] = field(default_factory=list)
    calls: int = 0


class Recorder:
    """Stands where graphs are handed to Inductor, and keeps what comes by in every thread."""

    def __init__(self, compile_fx: Callable[..., Any]) -> None:
        self.graphs: list[Graph] = []
        self._compile_fx = compile_fx
        self._inside = threading.local()

    def __call__(self, model: Any, inputs: Any, inner_compile: Any = None, **given: Any) -> Any:
        """Compile a graph and return it, counted; one that is on its way to Inductor by itself comes to us first."""
        if inner_compile is None:
            options = {**(given.get("config_patches") or {}), "tunewise_mode": "use"}
            return backend.tunewise(model, inputs, options=options)
        if getattr(self._inside, "is_busy", False):  # Inductor calls itself again with the options in place
            return self._compile_fx(model, inputs, inner_compile=inner_compile, **given)
        graph = Graph()
        self.graphs.append(graph)
        self._inside.is_busy = True
        try:
            listening = _that_listens(inner_compile, graph)
            return _counted(self._compile_fx(model, inputs, inner_compile=listening, **given), graph)
        finally:
            self._inside.is_busy = False


def record(run: Callable[[], object]) -> list[Shape]:
    """Run a program and return the products its compiled graphs are made of, those used most first.

    A shape's weight is how often the program computed it. Weights are held constant while it is recorded, as by
    `freezing`: that holds for what is compiled under `torch.no_grad()`. Caches of compiled graphs are not read.
    """
    with _recording() as recorder:
        run()
    used = merged(shape for graph in recorder.graphs for shape in _shapes(graph))
    return sorted(used, key=lambda shape: -shape.weight)


def record_script(path: Path | str, arguments: Sequence[str] = ()) -> list[Shape]:
    """Run a Python script and return its products as `record` does; what it prints goes to stderr.

    Raises NotFound where there is no such file, and InvalidFile, with the error, where the script breaks.
    """
    script = Path(path)
    if not script.is_file():
        raise NotFound(f"there is no script {str(path)!r}")
    return record(lambda: _run(script, arguments))


def shape_of(question: Heard) -> Shape | None:
    """Return the shape that a question was about; None where it was about something else than a product."""
    op, problem = _OP.get(question.decision), question.problem
    if op is None:
        return None
    m, n, k, b = (int(problem.get(name, 1)) for name in ("m", "n", "k", "b"))
    lhs, rhs = (str(problem.get(name, "rows")) if op == "bmm" else "rows" for name in ("lhs", "rhs"))
    return Shape(op, m, n, k, b, str(problem["dtype"]), lhs, rhs, bool(problem.get("dynamic", 0)))


def _shapes(graph: Graph) -> Iterator[Shape]:
    for question in graph.asked:
        shape = shape_of(question)
        if shape is not None and graph.calls:
            yield replace(shape, weight=float(graph.calls))


@contextmanager
def _recording() -> Iterator[Recorder]:
    module = torchside.need(_COMPILE_FX)
    torchside.need("torch._dynamo").reset()
    autograd = torchside.need("torch._functorch.config")
    before = module.compile_fx
    recorder = Recorder(before)
    with (
        torchside.need("torch._inductor.config").patch(freezing=True, fx_graph_cache=False),
        autograd.patch(enable_autograd_cache=False),
    ):
        module.compile_fx = recorder
        try:
            yield recorder
        finally:
            module.compile_fx = before


def _that_listens(inner_compile: Callable[..., Any], graph: Graph) -> Callable[..., Any]:
    """Return what compiles a graph; a backward graph comes later than its forward graph, and in another thread."""

    @functools.wraps(inner_compile)
    def listening(*args: Any, **kwargs: Any) -> Any:
        with heard() as asked:
            try:
                return inner_compile(*args, **kwargs)
            finally:
                graph.asked.extend(asked)

    return listening


def _counted(compiled: Callable[..., Any], graph: Graph) -> Callable[..., Any]:
    @functools.wraps(compiled)
    def call(*args: Any, **kwargs: Any) -> Any:
        graph.calls += 1
        return compiled(*args, **kwargs)

    return call


def _run(script: Path, arguments: Sequence[str]) -> None:
    """Run a script as Python would: with its own directory first to look for modules in, and its own arguments."""
    argv, path = sys.argv, sys.path[:]
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent))
    try:
        with redirect_stdout(sys.stderr):
            runpy.run_path(str(script), run_name="__main__")
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise InvalidFile(f"{script} ended with {ended.code!r}; run it by itself to see why") from None
    except Exception as error:  # the user's program, whatever it does
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise InvalidFile(f"{script} breaks with {said}; run it by itself first") from error
    finally:
        sys.argv, sys.path[:] = argv, path
