"""Common GPUs by name, from their makers' data sheets: rules of thumb and their tests need no GPU to know one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tunewise.decision.hardware import Hardware

# Capability -> KiB of shared memory of one SM, and of one block at most. Oldest first.
_NVIDIA = {
    "7.0": (96, 96),
    "7.5": (64, 64),
    "8.0": (164, 163),
    "8.6": (100, 99),
    "8.7": (164, 163),
    "8.9": (100, 99),
    "9.0": (228, 227),
    "10.0": (228, 227),
    "10.3": (228, 227),
    "12.0": (100, 99),
    "12.1": (100, 99),
}
# Each architecture of AMD -> the older ones with the same matrix instructions, or more shared memory than they had.
_AMD = {
    "gfx908": (),
    "gfx90a": ("gfx908",),
    "gfx942": ("gfx90a", "gfx908"),
    "gfx1032": (),
    "gfx1100": ("gfx1032",),
}
_LDS = 64  # KiB that one work-group may have, on all of these
_KIB, _GIB = 1 << 10, 1 << 30


@dataclass(frozen=True, slots=True)
class _Device:
    """A line of the table. `cores` are SMs or CUs; 0 stands for what is not certain."""

    name: str  # as the driver says it
    model: str  # how people write it, without maker and series; of several with one model, the first is meant
    capability: str
    cores: int
    memory_gib: int
    bandwidth_gb_s: int
    l2_kib: int = 0
    form: str = ""  # `sxm` or `pcie`, where that makes a difference


_TABLE = (
    _Device("Tesla V100-SXM2-16GB", "v100", "7.0", 80, 16, 900, 6144),
    _Device("Tesla V100-SXM2-32GB", "v100", "7.0", 80, 32, 900, 6144),
    _Device("Tesla T4", "t4", "7.5", 40, 16, 320, 4096),
    _Device("NVIDIA GeForce RTX 2080 Ti", "2080ti", "7.5", 68, 11, 616, 5632),
    _Device("NVIDIA A100-SXM4-40GB", "a100", "8.0", 108, 40, 1555, 40960),
    _Device("NVIDIA A100-SXM4-80GB", "a100", "8.0", 108, 80, 2039, 40960, "sxm"),
    _Device("NVIDIA A100 80GB PCIe", "a100", "8.0", 108, 80, 1935, 40960, "pcie"),
    _Device("NVIDIA A10", "a10", "8.6", 72, 24, 600, 6144),
    _Device("NVIDIA RTX A4000", "a4000", "8.6", 48, 16, 448, 4096),
    _Device("NVIDIA RTX A6000", "a6000", "8.6", 84, 48, 768, 6144),
    _Device("NVIDIA GeForce RTX 3090", "3090", "8.6", 82, 24, 936, 6144),
    _Device("NVIDIA L4", "l4", "8.9", 58, 24, 300, 49152),
    _Device("NVIDIA L40S", "l40s", "8.9", 142, 48, 864, 98304),
    _Device("NVIDIA GeForce RTX 4090", "4090", "8.9", 128, 24, 1008, 73728),
    _Device("NVIDIA H100 80GB HBM3", "h100", "9.0", 132, 80, 3350, 51200, "sxm"),
    _Device("NVIDIA H100 PCIe", "h100", "9.0", 114, 80, 2039, 51200, "pcie"),
    _Device("NVIDIA H200", "h200", "9.0", 132, 141, 4800, 51200),
    _Device("NVIDIA GH200 480GB", "gh200480gb", "9.0", 132, 96, 4000),  # 480 GB is the memory of its CPU
    _Device("NVIDIA GH200 480GB", "gh200", "9.0", 132, 96, 4000),
    _Device("NVIDIA B200", "b200", "10.0", 148, 180, 8000, 129024),
    _Device("NVIDIA GeForce RTX 5090", "5090", "12.0", 170, 32, 1792, 98304),
    _Device("AMD Instinct MI100", "mi100", "gfx908", 120, 32, 1228, 8192),
    _Device("AMD Instinct MI210", "mi210", "gfx90a", 104, 64, 1638, 8192),
    _Device("AMD Instinct MI250X", "mi250x", "gfx90a", 110, 64, 1638, 8192),  # each of its two dies is a device
    _Device("AMD Instinct MI300X", "mi300x", "gfx942", 304, 192, 5300),  # each of its eight dies has its own L2
    _Device("AMD Radeon PRO W6600", "w6600", "gfx1032", 28, 8, 224, 2048),
    _Device("AMD Radeon PRO W7800", "w7800", "gfx1100", 70, 32, 576, 6144),
    _Device("AMD Radeon RX 7900 XTX", "7900xtx", "gfx1100", 96, 24, 960, 6144),
)

_MAKER = re.compile(r"(?:nvidia|geforce|tesla|quadro|rtx|amd|radeon|instinct|pro|rx)*")
# A digit right before `80gb` belongs to that, the one in `sxm4-80gb` does not.
_REST = re.compile(r"(?:(?P<form>sxm|pcie)(?:[2-6](?!\d?gb))?|hbm(?:\de?(?!\d?gb))?|(?P<memory>\d{1,5})gb)")


def known_device(name: str) -> Hardware | None:
    """Return a GPU of the table by its name, such as `NVIDIA H100 80GB HBM3`, `h100` or `RTX3090`; None for others.

    A name that says more than the table knows, such as `RTX 4090 Laptop GPU`, is another device.
    """
    written = _MAKER.sub("", re.sub(r"[^a-z0-9]", "", name.lower()), count=1)
    for device in sorted(_TABLE, key=lambda device: -len(device.model)):
        if written.startswith(device.model) and _is_meant(device, written.removeprefix(device.model)):
            return _hardware(device)
    return None


def known_devices() -> tuple[Hardware, ...]:
    """Return all GPUs of the table, each once."""
    return tuple({device.name: _hardware(device) for device in _TABLE}.values())


def completed(hardware: Hardware) -> Hardware:
    """Return a detected GPU with what its driver did not tell filled in from the table, where that knows it."""
    known = known_device(hardware.name)
    shared = _shared(hardware.capability) or (0, 0)
    return replace(
        hardware,
        caches=hardware.caches or (known.caches if known else ()),
        compatible=hardware.compatible or compatible_with(hardware.capability),
        shared_bytes=hardware.shared_bytes or shared[1] * _KIB,
        shared_per_core_bytes=hardware.shared_per_core_bytes or shared[0] * _KIB,
        bandwidth_bytes_s=hardware.bandwidth_bytes_s or (known.bandwidth_bytes_s if known else 0.0),
    )


def compatible_with(capability: str) -> tuple[str, ...]:
    """Return the older capabilities whose rules hold on this one too, the newest first; none for unknown ones.

    A rule is about sizes: it holds where the instructions that it counts on are still there and a block has at least
    the shared memory that it had. So 9.0 takes the rules of 8.0, and 8.6 and 12.0, with less shared memory, do not;
    and 10.0 takes those of 9.0 as far as tiles, stages and clusters go. A rule that needs the warp-group instructions
    of 9.0 itself names the devices it is for.
    """
    if capability in _AMD:
        return _AMD[capability]
    if capability not in _NVIDIA:
        return ()
    older = list(_NVIDIA)[: list(_NVIDIA).index(capability)]
    return tuple(old for old in reversed(older) if _NVIDIA[old][1] <= _NVIDIA[capability][1])


def _is_meant(device: _Device, rest: str) -> bool:
    """Return whether what follows the model in a name fits a device: its form, and the size and kind of its memory."""
    for found in _words(rest):
        if found is None:
            return False
        form, memory = found["form"], found["memory"]
        if form and device.form not in ("", form):
            return False
        if memory and int(memory) != device.memory_gib:
            return False
    return True


def _words(rest: str) -> Iterator[re.Match[str] | None]:
    """Yield the words of the rest of a name one by one, and None at the first that says something unknown."""
    place = 0
    while place < len(rest):
        found = _REST.match(rest, place)
        yield found
        if found is None:
            return
        place = found.end()


def _shared(capability: str) -> tuple[int, int] | None:
    return (_LDS, _LDS) if capability in _AMD else _NVIDIA.get(capability)


def _hardware(device: _Device) -> Hardware:
    per_core, per_block = _shared(device.capability) or (0, 0)
    return Hardware(
        kind="hip" if device.capability in _AMD else "cuda",
        name=device.name,
        capability=device.capability,
        cores=device.cores,
        memory_bytes=device.memory_gib * _GIB,
        caches=(("l2", device.l2_kib * _KIB),) if device.l2_kib else (),
        compatible=compatible_with(device.capability),
        shared_bytes=per_block * _KIB,
        shared_per_core_bytes=per_core * _KIB,
        bandwidth_bytes_s=device.bandwidth_gb_s * 1e9,
    )
