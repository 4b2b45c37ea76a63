"""Machines that promise matrix units (AMX) and die of using them: some virtual machines do."""

import functools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tunewise.deploy.inductor import torchside

VARIABLE, WITHOUT_AMX = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"
_CPUINFO = Path("/proc/cpuinfo")
_TRIAL = "import torch; a = torch.ones(64, 64, dtype=torch.bfloat16); torch.nn.functional.linear(a, a)"
_PATIENCE_S = 120


@functools.cache
def is_broken(cpuinfo: Path = _CPUINFO, trial: str = _TRIAL) -> bool:
    """Return whether the processor is said to have matrix units, and a child process that uses them is killed."""
    try:
        flags = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    if "amx_tile" not in flags:
        return False
    try:
        child = subprocess.run([sys.executable, "-c", trial], capture_output=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return child.returncode < 0


@contextmanager
def hidden_from_inductor() -> Iterator[None]:
    """Let Inductor write no code for matrix units inside the block."""
    cpu = torchside.need("torch.cpu")
    before = getattr(cpu, "_is_amx_tile_supported", None)
    if before is None:
        yield
        return
    cpu._is_amx_tile_supported = lambda: False
    try:
        yield
    finally:
        cpu._is_amx_tile_supported = before
