"""A small table out of many measurements: problems that one config serves well share a rule, and its price is told."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import exp, log, sqrt

from tunewise.decision import Config, Feature, Problem, Scalar
from tunewise.errors import InvalidData
from tunewise.heuristics.table import Rule, Table
from tunewise.heuristics.table_conditions import Between, Condition, OneOf

_UNTRIED = log(2.0)  # a config that was never measured on a problem counts as twice as slow there, or as the slowest
_TOP = 8  # configs of a problem that may become a rule's
_LEAST_GAIN = 1e-9


@dataclass(frozen=True, slots=True)
class Known:
    """What was measured of one problem: how much slower each config is than the best, 1 for the best itself."""

    problem: Problem
    costs: Mapping[int, float]  # by the number of the config


@dataclass(frozen=True, slots=True)
class Built:
    """A table, and what following it costs on the problems it was made of; 1 is the best known.

    `untried` counts the problems whose answer was never measured there; they are not in `regrets`. `left_out` counts
    those that were measured and have other features, so that no rule is about them.
    """

    table: Table
    regrets: tuple[float, ...]
    untried: int = 0
    left_out: int = 0

    @property
    def regret(self) -> float:
        """The geometric mean of the regrets; 1 where there are none."""
        return exp(sum(map(log, self.regrets)) / len(self.regrets)) if self.regrets else 1.0

    def at(self, share: float) -> float:
        """Return the regret that so large a share of the problems do not exceed."""
        ordered = sorted(self.regrets)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 1.0


@dataclass
class _Box:
    """Some problems, and what bounds them: a range of every number, the words of every other feature."""

    members: list[int]
    numbers: dict[str, tuple[float, float]]
    words: dict[str, tuple[Feature, ...]]
    choice: int = 0
    loss: float = 0.0
    is_settled: bool = False
    below: list["_Box"] = field(default_factory=list)


def build(
    decision: str,
    known: Sequence[Known],
    configs: Sequence[Config],
    *,
    tolerance: float = 0.05,
    max_rules: int = 32,
    hardware: Mapping[str, Scalar] | None = None,
    about: str = "",
) -> Built:
    """Return a table of at most `max_rules` rules; problems whose shared config loses at most `tolerance` share one.

    Beyond what was measured, no rule answers: every range ends at the smallest and largest number that was. Raises
    InvalidData where problems do not have the same features.
    """
    if not known or any(set(one.problem) != set(known[0].problem) for one in known):
        raise InvalidData(f"{decision}: problems with different features cannot share a table")
    maker = _Maker(known, tolerance)
    boxes = maker.boxes(max_rules)
    rules = tuple(Rule(maker.when(box), (configs[box.choice],)) for box in boxes)
    table = Table(decision, rules, None, dict(hardware or {}), about=about)
    return _judged(table, known, configs)


def _judged(table: Table, known: Sequence[Known], configs: Sequence[Config]) -> Built:
    regrets, untried = [], 0
    for one in known:
        answers = table.rank(dict(one.problem))
        cost = next((cost for number, cost in one.costs.items() if configs[number] in answers[:1]), None)
        if cost is None:
            untried += 1
        else:
            regrets.append(cost)
    return Built(table, tuple(regrets), untried)


class _Maker:
    """Cuts the problems into boxes, the one that loses most first."""

    def __init__(self, known: Sequence[Known], tolerance: float) -> None:
        self.known, self.limit = known, log(1 + tolerance)
        self.candidates = sorted({number for one in known for number in _best(one, 1 + tolerance)})
        self.losses = [_losses(one, self.candidates) for one in known]

    def boxes(self, most: int) -> list[_Box]:
        """Return the boxes, neighbours next to each other."""
        root = self._settled(self._hull())
        leaves = [root]
        while len(leaves) < most:
            open_ = [box for box in leaves if not box.is_settled]
            if not open_:
                break
            worst = max(open_, key=lambda box: box.loss)
            worst.below = self._halves(worst)
            worst.is_settled = True
            leaves = list(_leaves(root))
        return leaves

    def when(self, box: _Box) -> dict[str, Condition]:
        """Return the conditions that hold in a box and nowhere else."""
        found: dict[str, Condition] = {}
        for name in self.known[0].problem:
            if name in box.numbers:
                low, high = box.numbers[name]
                found[name] = OneOf((_whole(low),)) if low == high else Between(_whole(low), _whole(high))
            else:
                found[name] = OneOf(box.words[name])
        return found

    def _hull(self) -> _Box:
        first = self.known[0].problem
        numbers = {name: [float(one.problem.numeric[name]) for one in self.known] for name in self._numeric(first)}
        words = [name for name in first if name not in numbers]
        return _Box(
            list(range(len(self.known))),
            {name: (min(values), max(values)) for name, values in numbers.items()},
            {name: tuple(sorted({one.problem[name] for one in self.known}, key=str)) for name in words},
        )

    def _numeric(self, first: Problem) -> list[str]:
        return [name for name in first if all(name in one.problem.numeric for one in self.known)]

    def _settled(self, box: _Box) -> _Box:
        """Return a box with its config: the one that loses least, and no further cut where that is little anywhere."""
        sums = [sum(column) for column in zip(*(self.losses[member] for member in box.members), strict=True)]
        fits = [n for n in range(len(sums)) if all(self.losses[member][n] <= self.limit for member in box.members)]
        place = min(fits or range(len(sums)), key=lambda number: (sums[number], number))
        box.choice, box.loss, box.is_settled = self.candidates[place], sums[place], bool(fits)
        return box

    def _halves(self, box: _Box) -> list[_Box]:
        best, halves = box.loss - _LEAST_GAIN, list[_Box]()
        for left, right in self._cuts(box):
            both = [self._settled(left), self._settled(right)]
            if both[0].loss + both[1].loss < best:
                best, halves = both[0].loss + both[1].loss, both
        return halves

    def _cuts(self, box: _Box) -> Iterator[tuple[_Box, _Box]]:
        for name, (low, high) in box.numbers.items():
            values = {member: float(self.known[member].problem.numeric[name]) for member in box.members}
            for below, above in pairwise(sorted(set(values.values()))):
                end, begin = _between(below, above)
                left = [member for member in box.members if values[member] <= below]
                right = [member for member in box.members if values[member] > below]
                yield (
                    _Box(left, {**box.numbers, name: (low, end)}, box.words),
                    _Box(right, {**box.numbers, name: (begin, high)}, box.words),
                )
        for name, words in box.words.items():
            for word in words if len(words) > 1 else ():
                left = [member for member in box.members if self.known[member].problem[name] == word]
                right = [member for member in box.members if self.known[member].problem[name] != word]
                if left and right:
                    rest = tuple(other for other in words if other != word)
                    yield (
                        _Box(left, box.numbers, {**box.words, name: (word,)}),
                        _Box(right, box.numbers, {**box.words, name: rest}),
                    )


def _best(one: Known, limit: float) -> list[int]:
    near = [number for number, cost in one.costs.items() if cost <= limit]
    return sorted(near, key=lambda number: (one.costs[number], number))[:_TOP]


def _losses(one: Known, candidates: Sequence[int]) -> list[float]:
    untried = max(_UNTRIED, *(log(cost) for cost in one.costs.values()))
    return [log(one.costs[number]) if number in one.costs else untried for number in candidates]


def _leaves(box: _Box) -> Iterator[_Box]:
    if not box.below:
        yield box
    for part in box.below:
        yield from _leaves(part)


def _between(below: float, above: float) -> tuple[float, float]:
    """Return where one box ends and the next begins: half way by ratio, and nothing between them that is whole."""
    middle = sqrt(below * above) if below > 0 else (below + above) / 2
    if not (below.is_integer() and above.is_integer()):
        return middle, middle
    end = min(max(float(int(middle // 1)), below), above - 1)
    return end, end + 1


def _whole(value: float) -> float:
    """Return a number without a point where it needs none, as people write it."""
    return int(value) if value.is_integer() else value
