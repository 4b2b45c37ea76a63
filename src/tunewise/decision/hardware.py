"""Hardware and environment: where a measurement was made, sorted into what must match, what warns, what is ignored."""

import functools
import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from tunewise import settings, system
from tunewise.errors import InvalidDecision, MissingPart

Match = Literal["must", "warn", "ignore"]
_GPU_KINDS = ("cuda", "hip")

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")

# Instruction sets that change which code is fast; other flags only make keys differ for nothing.
_ISA = (
    *("sse4_2", "avx", "fma", "avx2", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "avx512_fp16"),
    *("amx_tile", "amx_int8", "amx_bf16", "neon", "asimd", "sve", "sve2"),
)


@dataclass(frozen=True, slots=True)
class Hardware:
    """A device: what kind, which one, how large."""

    kind: str
    name: str
    capability: str  # instruction set architecture, or compute capability of a GPU
    cores: int
    memory_bytes: int
    isa: tuple[str, ...] = ()
    caches: tuple[tuple[str, int], ...] = ()  # ("l1d", bytes), ("l2", bytes), ("l3", bytes)
    compatible: tuple[str, ...] = ()  # older capabilities whose rules hold here too, the newest first
    shared_bytes: int = 0  # shared memory (LDS) that one block may have; 0: none, or not known
    shared_per_core_bytes: int = 0  # and what all blocks on one SM or CU have together
    bandwidth_bytes_s: float = 0.0  # of the memory; 0: not known


@dataclass(frozen=True, slots=True)
class Part:
    """One named fact of an environment, and what a difference in it means."""

    name: str
    value: Any
    match: Match


@dataclass(frozen=True, slots=True)
class Environment:
    """All facts of an environment, in order. A row from another environment is never an exact answer; it is a seed."""

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        seen = set[str]()
        for part in self.parts:
            if part.name in seen or part.name == "decision" or part.name.startswith(("problem.", "policy.")):
                raise InvalidDecision(f"the environment part {part.name!r} has the name of another part; rename it")
            seen.add(part.name)

    @property
    def must(self) -> dict[str, Any]:
        """The facts that must be equal for a measurement to count."""
        return self._of("must")

    @property
    def warn(self) -> dict[str, Any]:
        """The facts whose difference is worth a warning."""
        return self._of("warn")

    @property
    def ignore(self) -> dict[str, Any]:
        """The facts kept for the record only."""
        return self._of("ignore")

    def _of(self, match: Match) -> dict[str, Any]:
        return {part.name: part.value for part in self.parts if part.match == match}


def detect(device: str = "cpu") -> Hardware:
    """Return the device named `cpu`, a torch device such as `cuda:0` if torch is imported already, or an OpenCL one.

    `opencl` is the device that the settings choose, `opencl:1` or `opencl:intel` one by its number or name.
    """
    if device == "cpu":
        return _cpu()
    return _opencl_device(device) if device.partition(":")[0] == "opencl" else _torch_device(device)


def environment(
    hardware: Hardware,
    *,
    libraries: Iterable[str] = (),
    variables: Iterable[str] = (),
    must: Mapping[str, Any] | None = None,
) -> Environment:
    """Return this process's environment: the device, versions of `libraries`, the environment `variables`, `must`.

    `must` holds further facts that have to match, such as a compiler version or the hash of a kernel's source. Of what
    must match or warns, nothing depends on what else the process has imported, where it runs, or who runs it.
    """
    parts = [
        Part("hardware.kind", hardware.kind, "must"),
        Part("hardware.name", hardware.name, "must"),
        Part("hardware.capability", hardware.capability, "must"),
        Part("hardware.cores", hardware.cores, "must"),
        Part("hardware.isa", " ".join(hardware.isa), "must"),
        # A GPU's caches follow from its name; and where they come from our table, a better one must void nothing.
        *(Part(f"hardware.{n}", size, "must") for n, size in hardware.caches if hardware.kind not in _GPU_KINDS),
        Part("os", platform.system(), "must"),
        Part("python", f"{platform.python_implementation()} {sys.version_info.major}.{sys.version_info.minor}", "must"),
        *(Part(f"library.{name}", _version(name), "must") for name in sorted(set(libraries))),
        *(Part(f"variable.{name}", _discreet(settings.variable(name)), "must") for name in sorted(set(variables))),
        *(Part(name, value, "must") for name, value in sorted((must or {}).items())),
        Part("hardware.memory_gib", round(hardware.memory_bytes / 2**30), "warn"),
        Part("os.release", platform.release(), "warn"),
        Part("libc", _libc(), "warn"),
        Part("python.patch", platform.python_version(), "ignore"),
        *(Part(f"torch.{name}", value, "ignore") for name, value in _torch_facts().items()),
    ]
    return Environment(tuple(parts))


@functools.cache
def _cpu() -> Hardware:
    info = _cpuinfo()
    flags = set((info.get("flags") or info.get("Features") or "").split())
    return Hardware(
        kind="cpu",
        name=_cpu_name(info),
        capability=platform.machine(),
        cores=system.cores(),
        memory_bytes=_memory_bytes(),
        isa=tuple(flag for flag in _ISA if flag in flags),
        caches=_caches(),
    )


def _cpuinfo() -> dict[str, str]:
    try:
        text = _CPUINFO.read_text(errors="replace")
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in text.strip().split("\n\n")[0].splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def _cpu_name(info: Mapping[str, str]) -> str:
    """Return the model's name; where the kernel knows only numbers (aarch64), those."""
    for field in ("model name", "Model Name", "cpu model", "cpu", "uarch"):
        if info.get(field):
            return info[field]
    numbers = [info.get(f"CPU {field}", "") for field in ("implementer", "architecture", "variant", "part", "revision")]
    return " ".join(["arm", *numbers]) if any(numbers) else info.get("Hardware") or "unknown"


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # a system that does not say
        return 0


def _caches() -> tuple[tuple[str, int], ...]:
    found = {}
    for entry in sorted(_CACHES.glob("index*")):
        try:
            level, kind, size = ((entry / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:  # a cache that is off line
            continue
        if kind != "Instruction" and re.fullmatch(r"\d+K", size):
            found["l1d" if level == "1" else f"l{level}"] = int(size[:-1]) << 10
    return tuple(sorted(found.items()))


@functools.cache
def _libc() -> str:
    return "-".join(platform.libc_ver())


def _discreet(value: str | None) -> str | None:
    """Return a number or a switch as it is, anything else as a digest: parts travel, and a path or a token must not."""
    if value is None or re.fullmatch(r"[0-9.,]{0,16}|on|off|true|false|yes|no", value, re.IGNORECASE):
        return value
    return "sha256:" + hashlib.sha256(value.encode(errors="surrogateescape")).hexdigest()[:16]


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except (metadata.PackageNotFoundError, ValueError):
        return None


def _torch_facts() -> dict[str, Any]:
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "__version__"):
        return {}
    # Asking a device that nobody has used yet would start it, and no forked worker could use it after that.
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return {"version": str(torch.__version__)}
    names = {f"cuda.{i}": cuda.get_device_name(i) for i in range(cuda.device_count())}
    return {"version": str(torch.__version__), **names}


def _opencl_device(device: str) -> Hardware:
    from tunewise.decision import opencl  # starts a process, so only where somebody asks for such a device

    found = opencl.choose(device)
    return Hardware(
        kind="opencl",
        name=found.name,
        capability=found.version,
        cores=found.units,
        memory_bytes=found.memory_bytes,
        caches=(("local", found.local_bytes),),
        shared_bytes=found.local_bytes,
    )


def _torch_device(device: str) -> Hardware:
    torch = sys.modules.get("torch")
    if torch is None:
        raise MissingPart(f"device {device!r} needs torch: import it before the decision is used")
    if not device.startswith("cuda") or not torch.cuda.is_available():
        raise MissingPart(f"device {device!r} is not there; torch sees {torch.cuda.device_count()} CUDA devices")
    try:
        properties = torch.cuda.get_device_properties(device)
    except (AssertionError, RuntimeError, ValueError) as error:
        raise MissingPart(f"device {device!r} is not there: {error}") from None
    return _described(properties, is_hip=bool(getattr(getattr(torch, "version", None), "hip", None)))


def _described(properties: Any, *, is_hip: bool) -> Hardware:
    """Return a GPU as its driver tells it through torch, the rest from our table.

    Torch calls an AMD device `cuda` too, and numbers its architecture like a capability: gfx90a would pass for 9.0.
    """
    from tunewise.decision.devices import completed  # which knows this module

    capability = f"{properties.major}.{properties.minor}"
    l2 = int(getattr(properties, "L2_cache_size", 0))
    return completed(
        Hardware(
            kind="hip" if is_hip else "cuda",
            name=properties.name,
            capability=str(properties.gcnArchName).partition(":")[0] if is_hip else capability,
            cores=properties.multi_processor_count,
            memory_bytes=properties.total_memory,
            caches=(("l2", l2),) if l2 else (),
            shared_bytes=int(getattr(properties, "shared_memory_per_block_optin", 0)),
            shared_per_core_bytes=int(getattr(properties, "shared_memory_per_multiprocessor", 0)),
        )
    )
