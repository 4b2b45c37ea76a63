"""What an autotuned kernel is to us: its name, the problem its arguments are, and where it runs."""

import inspect
import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tunewise.decision import Environment, Feature, Hardware, Policy, canonical, detect, environment
from tunewise.decision.declaration import MAX_NAME
from tunewise.decision.source import fingerprint
from tunewise.deploy.triton_configs import Menu, plain
from tunewise.errors import InvalidDecision
from tunewise.eventlog import logger

POLICY = Policy(clock="device", cache="cold")  # how triton.testing.do_bench times: by events, the cache cleared
_log = logger(__name__)
_PARTS = ("fn", "configs", "keys", "arg_names")


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel below `@triton.autotune`: the function, the arguments it is tuned by, and the configs listed for it."""

    jit: Any  # the triton.JITFunction
    keys: tuple[str, ...]
    arg_names: tuple[str, ...]
    menu: Menu

    @property
    def name(self) -> str:
        """The name of the kernel's decision: its module and its own."""
        return name_of(self.jit)

    def problem(self, given: Mapping[str, Any]) -> dict[str, Feature]:
        """Return the features of a call from its arguments: those in the autotuner's key, and what tensors hold."""
        args = self._arguments(given)
        row = {name: feature_of(args[name]) for name in self.keys if name in args}
        types = {name: str(arg.dtype).removeprefix("torch.") for name, arg in args.items() if hasattr(arg, "dtype")}
        return {**{f"{name}_dtype": word for name, word in types.items()}, **row}

    def key(self, given: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the key under which Triton's autotuner files a call."""
        args = self._arguments(given)
        types = [str(arg.dtype) for arg in args.values() if hasattr(arg, "dtype")]
        return (*(args[name] for name in self.keys if name in args), *types)

    def environment(self) -> Environment:
        """Return what must match for a timing to count: the device, Triton's version and the kernel's source."""
        return environment(device(), libraries=["triton"], must={"source": source_of(self.jit)})

    def _arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in given.items() if name in self.arg_names}


def autotuner_of(decorated: Any) -> Any:
    """Return the autotuner below decorators such as `@triton.heuristics`; raises InvalidDecision if there is none."""
    inner = decorated
    while inner is not None and not inspect.isfunction(inner):
        if is_autotuner(inner):
            return inner
        inner = getattr(inner, "fn", None)
    what = getattr(decorated, "__name__", type(decorated).__name__)
    raise InvalidDecision(f"{what} is not autotuned: put the decorator above @triton.autotune(...)")


def is_autotuner(thing: object) -> bool:
    """Return whether a thing has what we need of `triton.runtime.Autotuner`."""
    return all(hasattr(thing, name) for name in _PARTS)


def kernel_of(autotuner: Any) -> Kernel:
    """Return the kernel an autotuner tunes."""
    jit = autotuner.fn
    while not inspect.isfunction(jit) and not inspect.isfunction(jit.fn):
        jit = jit.fn
    return Kernel(jit, tuple(autotuner.keys), tuple(autotuner.arg_names), Menu(tuple(autotuner.configs)))


def name_of(jit: Any) -> str:
    """Return the module and name of a jitted function, cut to what a decision may be called."""
    function = getattr(jit, "fn", jit)
    name = f"{function.__module__}.{function.__qualname__}"
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 17]}-{canonical.digest(name)[:16]}"


_sources: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()  # by Python function


def source_of(jit: Any) -> str:
    """Return a digest of a kernel's code, of the functions it calls and of the constants it takes from its module.

    Unlike the key Triton caches by, it stays the same where the kernel only moves to another line.
    """
    function = getattr(jit, "fn", jit)
    if function not in _sources:
        _sources[function] = canonical.digest([fingerprint(function), _constants(jit)])[:32]
    return _sources[function]


def _constants(jit: Any) -> list[tuple[str, str]]:
    """Return the constants a kernel takes from its module, which Triton notes when it is asked for its own key."""
    try:
        _ = jit.cache_key
    except Exception as error:  # the kernel takes what Triton does not allow, and will say so when it is launched
        _log.debug("%s has no key: %s", name_of(jit), error)
    noted = getattr(jit, "used_global_vals", None) or {}
    return sorted((str(name), repr(value)) for (name, _), (value, _) in noted.items())


def device() -> Hardware:
    """Return the device that Triton launches on; the CPU where it has no driver, as under its interpreter."""
    try:
        from triton.runtime import driver

        active = driver.active
        target, index = active.get_current_target(), active.get_current_device()
    except Exception:  # no Triton, or no device: its own classes of errors differ from version to version
        return detect("cpu")
    found = _of_torch(index) or Hardware(
        target.backend, f"{target.backend} {target.arch}", "", _cores(active, index), 0
    )
    return replace(found, kind=target.backend, capability=capability_of(target))


def capability_of(target: Any) -> str:
    """Return what a target can do as hardware calls it: `9.0` for the CUDA architecture 90, others by their name."""
    return f"{target.arch // 10}.{target.arch % 10}" if isinstance(target.arch, int) else str(target.arch)


def _of_torch(index: int) -> Hardware | None:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return detect(f"cuda:{index}")


def _cores(active: Any, index: int) -> int:
    try:
        return int(active.utils.get_device_properties(index)["multiprocessor_count"])
    except Exception:  # a driver that does not count them
        return 0


def feature_of(value: Any) -> Feature:
    """Return an argument as a feature: a number or a word."""
    word = plain(value)
    return "none" if word is None else word
