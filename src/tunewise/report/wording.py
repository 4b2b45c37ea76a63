"""Numbers in the words of a report."""

from math import isfinite


def count(number: int, thing: str) -> str:
    """Return `1 problem` or `1,200 problems`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def factor(value: float) -> str:
    """Return a regret or a speed-up with as many digits as mean something; a dash where there is none."""
    if not isfinite(value):
        return "fails" if value > 0 else "-"
    return f"{value:.3f}" if value < 2 else f"{value:.2f}" if value < 20 else f"{value:,.0f}"


def percent(share: float) -> str:
    """Return a share, never rounded up to all or down to none."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    if 0.999 < share < 1:
        return "> 99.9 %"
    digits = f"{100 * share:.0f}" if 0.095 <= share < 0.995 else f"{100 * share:.1f}".removesuffix(".0")
    return f"{digits} %"


def amount(value: float) -> str:
    """Return a number with groups of three digits where that helps."""
    if not 1e-3 <= abs(value) < 1e12:
        return f"{value:.4g}"
    return f"{value:,.1f}".removesuffix(".0") if abs(value) >= 1000 else f"{value:.6g}"


def seconds(value: float | None) -> str:
    """Return a time as people read it: `12.3 us`, `4.56 ms`, `7.8 s`; a dash if there is none."""
    if value is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def span(value: float) -> str:
    """Return how long something goes on in one round number: `8 s`, `3 min`, `5 h`, `2 days`."""
    for unit, size, until in (("s", 1, 120), ("min", 60, 7_200), ("h", 3_600, 172_800)):
        if value < until:
            return f"{max(0, int(value / size))} {unit}"
    return f"{int(value / 86_400)} days"


def size(number: int) -> str:
    """Return a number of bytes as people read it."""
    value = float(number)
    for unit in ("bytes", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"
