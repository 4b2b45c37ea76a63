"""What a config may leave changed in its process, and how the next one finds it as it was."""

import ctypes
import decimal
import gc
import importlib
import locale
import os
import random
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, cast

_SIGNALS = tuple(
    getattr(signal, f"SIG{name}")
    for name in ("HUP", "INT", "QUIT", "USR1", "USR2", "PIPE", "ALRM", "TERM", "CHLD", "VTALRM", "PROF", "XCPU", "XFSZ")
)
_LIMITS = tuple(
    getattr(resource, f"RLIMIT_{name}") for name in ("AS", "CORE", "CPU", "DATA", "FSIZE", "NOFILE", "NPROC", "STACK")
)
_FLOAT_STATE_BYTES = 64  # at least sizeof(fenv_t) on every platform we know


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of state: how it is read (None: not there yet) and how it is put back."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], Any]


class Baseline:
    """The state of this process at one moment, to go back to."""

    def __init__(self) -> None:
        self._known = {part.name: part.read() for part in PARTS}
        self._float_state = ctypes.create_string_buffer(_FLOAT_STATE_BYTES)
        _c_math().fegetenv(self._float_state)

    def restore(self) -> list[str]:
        """Put back what has changed and return its names; raises OSError or ValueError where the system forbids it.

        State that was not there before (numpy's, say, when a config was the first to import it) is learned instead.
        """
        changed = []
        for part in PARTS:
            now, before = part.read(), self._known[part.name]
            if before is None:
                self._known[part.name] = now
            elif now != before:
                part.write(before)
                changed.append(part.name)
        _c_math().fesetenv(self._float_state)  # always: its flags are never twice the same
        return changed


def preload() -> None:
    """Import what numpy, if it is in use, imports only when asked: its state can then be known from the start."""
    if _loaded("numpy") is not None:
        importlib.import_module("numpy.random")


def _set_environ(before: dict[str, str]) -> None:
    for name in [name for name in os.environ if name not in before]:
        del os.environ[name]
    os.environ.update(before)


def _cwd() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # a config deleted the directory it stands in
        return ""


def _umask() -> int:
    mask = os.umask(0o77)
    os.umask(mask)
    return mask


def _set_path(before: list[str]) -> None:
    sys.path[:] = before


def _streams() -> tuple[Any, ...]:
    return sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__, sys.excepthook, sys.displayhook


def _set_streams(before: tuple[Any, ...]) -> None:
    sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__ = before[:5]  # type: ignore[misc]
    sys.excepthook, sys.displayhook = before[5:]


def _set_filters(before: list[Any]) -> None:
    warnings.filters[:] = before  # type: ignore[index]  # a list, whatever typeshed promises
    warnings.simplefilter("default", append=True)  # this and the next line tell the C half that the list has changed
    warnings.filters.pop()  # type: ignore[attr-defined]


def _collector() -> tuple[Any, ...]:
    return gc.isenabled(), gc.get_threshold(), gc.get_debug()


def _set_collector(before: tuple[Any, ...]) -> None:
    enabled, threshold, debug = before
    (gc.enable if enabled else gc.disable)()
    gc.set_threshold(*threshold)
    gc.set_debug(debug)


def _handlers() -> list[Any]:
    return [signal.getsignal(number) for number in _SIGNALS]


def _set_handlers(before: list[Any]) -> None:
    for number, handler in zip(_SIGNALS, before, strict=True):
        if handler is not None:
            signal.signal(number, handler)


def _timers() -> tuple[Any, ...]:
    kinds = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
    return tuple(any(signal.getitimer(kind)) for kind in kinds)


def _stop_timers(_: Any) -> None:
    for kind in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(kind, 0)


def _mask() -> set[Any]:
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, []))


def _limits() -> list[tuple[int, int]]:
    return [resource.getrlimit(limit) for limit in _LIMITS]


def _set_limits(before: list[tuple[int, int]]) -> None:
    for limit, value in zip(_LIMITS, before, strict=True):
        resource.setrlimit(limit, value)


def _set_priority(before: int) -> None:
    os.setpriority(os.PRIO_PROCESS, 0, before)


def _decimal() -> tuple[Any, ...]:
    now = decimal.getcontext()
    flags = tuple(bool(now.flags[f]) for f in now.flags), tuple(bool(now.traps[t]) for t in now.traps)
    return now.prec, now.rounding, now.Emin, now.Emax, now.capitals, now.clamp, *flags


def _set_decimal(before: tuple[Any, ...]) -> None:
    context = decimal.Context(*before[:6])
    for table, values in ((context.flags, before[6]), (context.traps, before[7])):
        for name, value in zip(table, values, strict=True):
            table[name] = value
    decimal.setcontext(context)


def _loaded(name: str) -> Any:
    """Return a module that is imported already, or None: restoring must not import anything."""
    module = sys.modules.get(name)
    return module if isinstance(module, ModuleType) else None


def _numpy_random() -> Any:
    numpy = _loaded("numpy")
    if numpy is None or _loaded("numpy.random") is None:
        return None
    kind, keys, *rest = numpy.random.get_state()
    return kind, keys.tobytes(), rest


def _set_numpy_random(before: Any) -> None:
    numpy = _loaded("numpy")
    kind, keys, rest = before
    numpy.random.set_state((kind, numpy.frombuffer(keys, numpy.uint32), *rest))


def _numpy_errors() -> Any:
    numpy = _loaded("numpy")
    return None if numpy is None or not hasattr(numpy, "geterr") else numpy.geterr()


def _set_numpy_errors(before: Any) -> None:
    _loaded("numpy").seterr(**before)


def _torch() -> Any:
    torch = _loaded("torch")
    if torch is None or not hasattr(torch, "get_num_threads"):
        return None
    return (
        torch.get_num_threads(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.get_float32_matmul_precision(),
        torch.are_deterministic_algorithms_enabled(),
        (torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark),
        bytes(torch.get_rng_state().numpy()),
    )


def _set_torch(before: Any) -> None:
    torch = _loaded("torch")
    threads, dtype, grad, precision, deterministic, cudnn, state = before
    torch.set_num_threads(threads)
    torch.set_default_dtype(dtype)
    torch.set_grad_enabled(grad)
    torch.set_float32_matmul_precision(precision)
    torch.use_deterministic_algorithms(deterministic)
    torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark = cudnn
    torch.set_rng_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


@cache
def _c_math() -> Any:
    # Loading a library built with -ffast-math flushes denormals to zero from then on, for everybody.
    program = ctypes.CDLL(None)
    return program if hasattr(program, "fegetenv") else ctypes.CDLL("libm.so.6")


PARTS: tuple[Part, ...] = (
    Part("working directory", _cwd, os.chdir),
    Part("environment", lambda: dict(os.environ), _set_environ),
    Part("umask", _umask, os.umask),
    Part("import path", lambda: list(sys.path), _set_path),
    Part("streams", _streams, _set_streams),
    Part("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    Part("switch interval", sys.getswitchinterval, sys.setswitchinterval),
    Part("tracer", lambda: (sys.gettrace(),), lambda before: sys.settrace(*before)),
    Part("profiler", lambda: (sys.getprofile(),), lambda before: sys.setprofile(*before)),
    Part("warning filters", lambda: list(warnings.filters), _set_filters),
    Part("collector", _collector, _set_collector),
    Part("signal handlers", _handlers, _set_handlers),
    Part("signal mask", _mask, lambda before: signal.pthread_sigmask(signal.SIG_SETMASK, before)),
    Part("timers", _timers, _stop_timers),
    Part("resource limits", _limits, _set_limits),
    Part("affinity", lambda: os.sched_getaffinity(0), lambda before: os.sched_setaffinity(0, before)),
    Part("priority", lambda: os.getpriority(os.PRIO_PROCESS, 0), _set_priority),
    Part("decimal context", _decimal, _set_decimal),
    Part("locale", lambda: locale.setlocale(locale.LC_ALL), lambda before: locale.setlocale(locale.LC_ALL, before)),
    Part("random numbers", random.getstate, lambda before: random.setstate(cast(Any, before))),
    Part("numpy random numbers", _numpy_random, _set_numpy_random),
    Part("numpy errors", _numpy_errors, _set_numpy_errors),
    Part("torch", _torch, _set_torch),
)
