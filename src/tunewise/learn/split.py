"""Which problems to learn from and which to hold out: by problem or by device, never by row."""

from collections.abc import Iterator

import numpy as np

from tunewise.decision import canonical
from tunewise.errors import InvalidData
from tunewise.formats.dataset import DataSet, Flags, Floats, Numbers

_DIGITS = 3  # problems whose numbers agree so far are the same one measured again, and would leak over a split
_LEAST = -300  # orders of magnitude: what is smaller is as good as zero
_AS_NEAR = 0.02  # of the problems: devices measured on almost as many are equally good to hold out, so the seed chooses


def by_problem(data: DataSet, share: float = 0.3, seed: int = 0) -> tuple[DataSet, DataSet]:
    """Return the data to learn from and, with about `share` of the problems, the data held out.

    Repeats of a problem, also on another device or with almost the same numbers, stay on one side. Equal seeds give
    equal splits. Raises InvalidData where there is nothing to put on one of the sides.
    """
    return _two_sides(data, groups(data), share, seed, "problems")


def by_device(data: DataSet, share: float = 0.3, seed: int = 0) -> tuple[DataSet, DataSet]:
    """Return the data to learn from and, of devices with nearest to `share` of the problems, the data held out.

    The seed picks among all sets of devices that come as near, give or take two problems in a hundred.
    """
    return _two_sides(data, device_groups(data), share, seed, "devices", is_few=True)


def folds(data: DataSet, count: int = 5, seed: int = 0) -> Iterator[tuple[DataSet, DataSet]]:
    """Yield the data to learn from and the data held out, `count` times; every problem is held out once."""
    fold = fold_of(data, count, seed)
    for number in range(count):
        yield data.take(fold != number), data.take(fold == number)


def fold_of(data: DataSet, count: int = 5, seed: int = 0) -> Numbers:
    """Return for every problem the number of the fold that holds it out; repeats of a problem are in one fold."""
    group = groups(data)
    sizes = np.bincount(group)
    if not 2 <= count <= len(sizes):
        raise InvalidData(f"{data.decision}: {len(sizes)} different problems cannot be cut into {count} folds")
    order = np.random.default_rng(seed).permutation(len(sizes))
    fold = np.empty(len(sizes), dtype=np.int64)
    fold[order] = np.arange(len(sizes)) % count
    return fold[group]


def parts_of(data: DataSet) -> int:
    """Return into how many parts the problems can be cut: how many different ones there are."""
    return int(groups(data).max(initial=-1)) + 1


def groups(data: DataSet) -> Numbers:
    """Return for every problem the number of its group: problems of equal words whose numbers agree in three digits.

    Where that would leave less than half of the problems apart, as in a narrow sweep, only equal ones form a group.
    """
    exact = _alike([column.values for column in data.features], len(data))
    near = _alike([c.values if c.is_word else _rounded(c.values) for c in data.features], len(data))
    is_narrow = 2 * (near.max(initial=-1) + 1) < exact.max(initial=-1) + 1
    return exact if is_narrow else near


def device_groups(data: DataSet) -> Numbers:
    """Return for every problem the number of its device; one device in two environments is one."""
    known: dict[str, int] = {}
    hardware = [{name: facts[name] for name in facts if name.startswith("hardware.")} for facts in data.devices]
    numbers = [known.setdefault(canonical.encode(facts), len(known)) for facts in hardware]
    if data.device is None:
        return np.zeros(len(data), dtype=np.int64)
    return np.array(numbers, dtype=np.int64)[data.device]


def _two_sides(
    data: DataSet, group: Numbers, share: float, seed: int, things: str, *, is_few: bool = False
) -> tuple[DataSet, DataSet]:
    if not 0 < share < 1:
        raise InvalidData(f"a share of {share} cannot be held out; give one between 0 and 1")
    sizes = np.bincount(group)
    present = np.flatnonzero(sizes)
    if len(present) < 2:
        lacks = f"a split takes two different {things}, and the data have {len(present)}"
        raise InvalidData(f"{data.decision}: {lacks}; give data of more")
    chance = np.random.default_rng(seed)
    order = chance.permutation(present)
    is_held = np.zeros(len(sizes), dtype=np.bool_)
    is_held[order] = _nearest(sizes[order], share, chance) if is_few else _first(sizes[order], share)
    return data.take(~is_held[group]), data.take(is_held[group])


def _first(sizes: Numbers, share: float) -> Flags:
    """Return the first of many groups until they have the share; one of them at least, and never all."""
    before = np.cumsum(sizes) - sizes
    held: Flags = before < round(share * int(sizes.sum()))
    held[0], held[-1] = True, False
    return held


def _nearest(sizes: Numbers, share: float, chance: np.random.Generator) -> Flags:
    """Return groups, never none or all, that together are nearest to the share; of several such sets one by chance."""
    reached = [1]  # bit n says whether some of the groups so far have n problems together
    for size in sizes.tolist():
        reached.append(reached[-1] | reached[-1] << size)
    total = int(sizes.sum())
    bits = np.frombuffer(bin(reached[-1])[:1:-1].encode(), dtype=np.uint8)
    sums = np.flatnonzero(bits == ord("1"))[1:-1]
    apart = np.abs(sums - share * total)
    left = int(chance.choice(sums[apart <= apart.min() + _AS_NEAR * total]))
    held = np.zeros(len(sizes), dtype=np.bool_)
    for place in reversed(range(len(sizes))):
        held[place] = not reached[place] >> left & 1
        left -= int(sizes[place]) * int(held[place])
    return held


def _alike(columns: list[Floats], count: int) -> Numbers:
    number = np.zeros(count, dtype=np.int64)
    for values in columns:
        distinct, codes = np.unique(values, return_inverse=True)
        _, number = np.unique(number * len(distinct) + codes, return_inverse=True)
    return number.astype(np.int64)


def _rounded(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        size = np.floor(np.log10(np.abs(values)))
    scale = 10.0 ** (_DIGITS - 1 - np.where(np.isfinite(size), np.maximum(size, _LEAST), 0.0))
    rounded: Floats = np.round(values * scale) / scale
    return rounded
