"""Hardware and environment: where a measurement was made, sorted into what must match, what warns, what is ignored."""

import functools
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from tunewise.errors import MissingPart

Match = Literal["must", "warn", "ignore"]

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
    """Return the device named `cpu`, or a torch device such as `cuda:0` if torch is imported already."""
    return _cpu() if device == "cpu" else _torch_device(device)


def environment(
    hardware: Hardware,
    *,
    libraries: Iterable[str] = (),
    variables: Iterable[str] = (),
    must: Mapping[str, Any] | None = None,
) -> Environment:
    """Return this process's environment: the device, versions of `libraries`, the environment `variables`, `must`.

    `must` holds further facts that have to match, such as a compiler version or the hash of a kernel's source. Nothing
    in it depends on what else the process has imported, where it runs, or who runs it.
    """
    parts = [
        Part("hardware.kind", hardware.kind, "must"),
        Part("hardware.name", hardware.name, "must"),
        Part("hardware.capability", hardware.capability, "must"),
        Part("hardware.cores", hardware.cores, "must"),
        Part("hardware.isa", list(hardware.isa), "must"),
        *(Part(f"hardware.{name}", size, "must") for name, size in hardware.caches),
        Part("os", platform.system(), "must"),
        Part("python", f"{platform.python_implementation()} {sys.version_info.major}.{sys.version_info.minor}", "must"),
        *(Part(f"library.{name}", _version(name), "must") for name in sorted(set(libraries))),
        *(Part(f"variable.{name}", os.environ.get(name), "must") for name in sorted(set(variables))),
        *(Part(name, value, "must") for name, value in sorted((must or {}).items())),
        Part("hardware.memory_gib", round(hardware.memory_bytes / 2**30), "warn"),
        Part("os.release", platform.release(), "warn"),
        Part("libc", "-".join(platform.libc_ver()), "warn"),
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
        name=info.get("model name") or info.get("Hardware") or platform.processor() or "unknown",
        capability=platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        isa=tuple(flag for flag in _ISA if flag in flags),
        caches=_caches(),
    )


def _cpuinfo() -> dict[str, str]:
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def _caches() -> tuple[tuple[str, int], ...]:
    found = {}
    for entry in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = ((entry / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction" and size.endswith("K"):
            found["l1d" if level == "1" else f"l{level}"] = int(size[:-1]) << 10
    return tuple(sorted(found.items()))


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def _torch_facts() -> dict[str, Any]:
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "cuda"):
        return {}
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    return {"version": str(torch.__version__), **{f"cuda.{i}": torch.cuda.get_device_name(i) for i in devices}}


def _torch_device(device: str) -> Hardware:
    torch = sys.modules.get("torch")
    if torch is None:
        raise MissingPart(f"device {device!r} needs torch: import it before the decision is used")
    if not device.startswith("cuda") or not torch.cuda.is_available():
        raise MissingPart(f"device {device!r} is not there; torch sees {torch.cuda.device_count()} CUDA devices")
    properties = torch.cuda.get_device_properties(device)
    return Hardware(
        kind="cuda",
        name=properties.name,
        capability=f"{properties.major}.{properties.minor}",
        cores=properties.multi_processor_count,
        memory_bytes=properties.total_memory,
    )
