"""Vector registers of a CPU: how many there are, and how many floats one holds."""

from tunewise.decision.hardware import Hardware


def vector_widths(machine: Hardware) -> list[int]:
    """Return the vectors worth trying, in floats. Wider ones than the machine has compile, and run ten times slower."""
    return [4, 8, 16] if "avx512f" in machine.isa else [4, 8]


def native_width(machine: Hardware) -> int:
    """Return how many floats one vector register holds."""
    if "avx512f" in machine.isa:
        return 16
    return 8 if "avx" in machine.isa else 4


def register_count(machine: Hardware) -> int:
    """Return how many vector registers there are."""
    return 32 if {"avx512f", "asimd", "sve"} & set(machine.isa) else 16
