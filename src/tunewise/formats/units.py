"""Units of time: seconds inside, always."""

from tunewise.errors import InvalidData

UNITS_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def unit_s(name: str) -> float:
    """Return how many seconds a unit is; raises InvalidData for one that does not exist."""
    if name not in UNITS_S:
        raise InvalidData(f"the time unit {name!r} is not one of {', '.join(UNITS_S)}")
    return UNITS_S[name]
