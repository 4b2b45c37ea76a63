"""Static screening: which configs of a Triton kernel can run on a GPU that is not here, and what they need of it."""

import contextlib
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import msgspec

from tunewise import system
from tunewise.decision import Config, Failure, Hardware, Trial
from tunewise.decision.devices import completed, known_device
from tunewise.deploy import triton_children
from tunewise.deploy.triton_compile import Build, Needs, build, check_whole
from tunewise.deploy.triton_configs import Menu, TritonConfig
from tunewise.deploy.triton_kernel import capability_of, is_autotuner, kernel_of
from tunewise.errors import InvalidDecision, InvalidSetting, MissingPart, NotFound
from tunewise.measure.kerneldir import kernel_dir

_THREADS = 1024  # of one block
_REGISTERS = 1 << 16  # of one block, on all NVIDIA GPUs that Triton compiles for
_WARPS = {"cuda": 32, "hip": 64}


@dataclass(frozen=True, slots=True)
class Screened:
    """A config, what it needs, and why it cannot run; 0 where it did not compile."""

    config: Config
    shared_bytes: int = 0  # of a block
    registers: int = 0  # of a thread
    spill_bytes: int = 0  # of a thread
    failure: Failure | None = None

    @property
    def features(self) -> dict[str, int]:
        """What the compiled kernel needs, as features of the config."""
        return {"shared_bytes": self.shared_bytes, "registers": self.registers, "spill_bytes": self.spill_bytes}

    @property
    def trial(self) -> Trial | None:
        """The failure as a trial for the store, or None for a config that can run: it was not timed."""
        return None if self.failure is None else Trial(self.config, self.failure, "screen")


def screen(
    kernel: Any,
    configs: Sequence[TritonConfig] | None = None,
    *,
    signature: Mapping[str, str],
    target: Any,
    timeout_s: float = 60.0,
    constants: Mapping[str, Any] | None = None,
    aligned: Iterable[str] | None = None,
    at_once: int | None = None,
) -> list[Screened]:
    """Return what each config needs on a target, in their order, by compiling it there; no GPU is needed.

    `kernel` is a jitted function, or an autotuned one whose own configs are taken. `signature` gives the types of the
    arguments that are no constants, such as `{"x": "*fp16", "n": "i32"}`, and `constants` the constants that no config
    sets. `target` is a GPU by name, such as `H100`, a Hardware or a triton GPUTarget. Pointers and integers count as
    multiples of 16 unless `aligned` names those that are: without that hint Triton neither vectorises nor pipelines.

    Each config compiles in a child of its own with `timeout_s` to do it, `at_once` of them at a time. Results are kept
    by source, config, types and target; a time-out and a crash are not. Raises NotFound for an unknown GPU,
    InvalidSetting for a time-out or a number of children that makes no sense, and InvalidDecision where there is no
    kernel, no config, or an argument has neither a type nor a value.
    """
    _check_limits(timeout_s, at_once)
    jit, listed = _parts(kernel)
    menu = Menu(tuple(listed if configs is None else configs))
    if configs is None and not menu.configs:
        raise InvalidDecision(f"{jit.__name__} has no configs to screen: pass some, or a kernel with @triton.autotune")
    hardware, aim = _aim(target)
    job = build(jit, signature, aim, constants or {}, None if aligned is None else frozenset(aligned))
    points = [menu.config_of(config) for config in menu.configs]
    for point in points:
        check_whole(job, point)
    found = _all_needs(job, points, timeout_s, at_once or system.cores())
    return [_screened(point, needs, hardware, aim) for point, needs in zip(points, found, strict=True)]


def _check_limits(timeout_s: float, at_once: int | None) -> None:
    if not isinstance(timeout_s, int | float) or not 0 < timeout_s < inf:
        raise InvalidSetting(f"timeout_s={timeout_s!r} is not a number of seconds above 0")
    if at_once is not None and (type(at_once) is not int or at_once < 1):
        raise InvalidSetting(f"at_once={at_once!r} is not a number of children of at least 1")


def _parts(kernel: Any) -> tuple[Any, Sequence[TritonConfig]]:
    """Return the jitted function and the configs listed for it."""
    if is_autotuner(kernel):
        return kernel_of(kernel).jit, kernel.configs
    if not hasattr(kernel, "arg_names"):
        raise InvalidDecision(f"{kernel!r} is no kernel of Triton's: pass what @triton.jit or @triton.autotune made")
    return kernel, ()


def _aim(target: Any) -> tuple[Hardware, Any]:
    try:
        from triton.backends.compiler import GPUTarget
    except ImportError:
        raise MissingPart("Triton is not installed: pip install 'tunewise[triton]'") from None
    if isinstance(target, GPUTarget):
        bare = Hardware(target.backend, f"{target.backend} {target.arch}", capability_of(target), 0, 0)
        return completed(bare), target
    hardware = known_device(target) if isinstance(target, str) else target
    if not isinstance(hardware, Hardware):
        raise NotFound(f"no GPU named {target!r} is known; give a triton GPUTarget or a tunewise.Hardware instead")
    capability = hardware.capability
    arch = int(capability.replace(".", "")) if hardware.kind == "cuda" else capability
    return completed(hardware), GPUTarget(hardware.kind, arch, _WARPS.get(hardware.kind, 32))


def _all_needs(job: Build, points: Sequence[Config], timeout_s: float, at_once: int) -> list[Needs | Failure]:
    """Return what each config needs: as kept, or by compiling it now."""
    names = [f"screened-{job.digest(point)}.json" for point in points]
    known: dict[str, Needs | Failure] = {name: needs for name in names if (needs := _kept(name)) is not None}
    open_jobs = {name: point for name, point in zip(names, points, strict=True) if name not in known}
    compiling = [functools.partial(_encoded, job, point) for point in open_jobs.values()]
    for name, said in zip(open_jobs, triton_children.run(compiling, timeout_s=timeout_s, at_once=at_once), strict=True):
        known[name] = said if isinstance(said, Failure) else _decoded(said)
        if not isinstance(said, Failure):
            _keep(name, said)
    return [known[name] for name in names]


def _screened(config: Config, needs: Needs | Failure, hardware: Hardware, target: Any) -> Screened:
    if isinstance(needs, Failure):
        return Screened(config, failure=needs)
    if needs.refused:
        return Screened(config, failure=Failure("compile", needs.refused))
    reason = _why_not(config, needs, hardware, target)
    failure = None if reason is None else Failure("constraints", reason)
    return Screened(config, needs.shared_bytes, needs.registers, needs.spill_bytes, failure)


def _why_not(config: Config, needs: Needs, hardware: Hardware, target: Any) -> str | None:
    """Return why a compiled config cannot be launched on a device, or None if it can."""
    threads = int(str(config["num_warps"])) * int(target.warp_size)
    if 0 < hardware.shared_bytes < needs.shared_bytes:
        return f"needs {needs.shared_bytes} bytes of shared memory, and {hardware.name} has {hardware.shared_bytes}"
    if threads > _THREADS:
        return f"needs {threads} threads in a block, and {hardware.name} takes {_THREADS}"
    if hardware.kind == "cuda" and threads * needs.registers > _REGISTERS:
        return f"needs {threads} x {needs.registers} registers, and {hardware.name} has {_REGISTERS} for a block"
    return None


def _encoded(job: Build, point: Config) -> bytes:
    return msgspec.json.encode(job.needs(point))


def _decoded(said: bytes) -> Needs:
    return msgspec.json.decode(said, type=Needs)


def _kept(name: str) -> Needs | None:
    path = kernel_dir().find(name)
    with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):  # a damaged file is compiled anew
        return None if path is None else _decoded(path.read_bytes())
    return None


def _keep(name: str, said: bytes) -> None:
    with contextlib.suppress(OSError), kernel_dir().new_file(name) as path:
        path.write_bytes(said)
