"""Derived columns as formulas: which are written where they are asked for, and which are worked out ahead."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tunewise.codegen.literals import python_float
from tunewise.models import SIGNS, Columns, Derived, Op

Fold = Callable[[Op, str, str], str]


@dataclass(frozen=True)
class Formulas:
    """How the columns of a model are written: inputs by their identifiers, derived ones as formulas.

    A derived column that others are made of gets a name of its own, so that no text grows beyond the model; `kept`
    writes an operation whose result is kept that way. Those in `within` stand in the one formula that has them.
    """

    columns: Columns
    inputs: tuple[str, ...]
    fold: Fold
    kept: Fold
    places: str | None = None  # how all derived columns are called, by number; None: by what each is
    within: frozenset[int] = frozenset()

    def asked(self, used: Sequence[int]) -> "Formulas":
        """Return formulas for some columns only: a product that is but a term of one sum is written in that sum."""
        derived = {number: self.columns.derived[number - len(self.inputs)] for number in self._all(used)}
        users = Counter(part for one in derived.values() for part in one.of)
        terms = {part for one in derived.values() if one.op == "sum" for part in one.of if users[part] == 1}
        terms = {part for part in terms.difference(used).intersection(derived) if derived[part].op == "product"}
        return replace(self, within=frozenset(terms))

    def written(self, column: int, ahead: frozenset[int]) -> str:
        """Return the text of a column, given those that were worked out ahead."""
        if column < len(self.inputs):
            return self.inputs[column]
        return self.name(column) if column in ahead else self.formula(column, self.fold)

    def name(self, column: int) -> str:
        """Return what a derived column is called: part7, or time_3 where it is the time expected of choice 3."""
        if self.places is not None:
            return self.places.format(column)
        about = self.columns.derived[column - len(self.inputs)].about
        return f"part{column}" if about is None else f"time_{about}"

    def formula(self, column: int, fold: Fold) -> str:
        """Return how a derived column is worked out; those it is made of must have names."""
        derived = self.columns.derived[column - len(self.inputs)]
        operands = [self._operand(number) for number in derived.of]
        if derived.by is not None:
            operands.append(python_float(derived.by))
        *others, last = operands[1:]
        result = operands[0]
        for operand in others:
            result = self.fold(derived.op, result, operand)
        return fold(derived.op, result, last)

    def ahead(self, used: Iterable[int]) -> frozenset[int]:
        """Return the derived columns that the used ones are made of, however far back, and that need names."""
        made = (part for number in self._all(used) for part in self._derived(number))
        return frozenset(made) - self.within

    def assignments(self, ahead: Iterable[int]) -> Iterator[tuple[str, str]]:
        """Yield the names and formulas of columns worked out ahead, in the order that they need each other."""
        for column in sorted(ahead):
            yield self.name(column), self.formula(column, self.kept)

    def _operand(self, column: int) -> str:
        if column in self.within:
            return self.formula(column, self.kept)
        return self.inputs[column] if column < len(self.inputs) else self.name(column)

    def _all(self, used: Iterable[int]) -> set[int]:
        """Return the derived columns among the used ones, and those that they are made of, however far back."""
        waiting = [number for number in used if number >= len(self.inputs)]
        found = set(waiting)
        while waiting:
            new = [number for number in self._derived(waiting.pop()) if number not in found]
            found.update(new)
            waiting += new
        return found

    def _derived(self, column: int) -> Sequence[int]:
        if column < len(self.inputs):
            return ()
        derived: Derived = self.columns.derived[column - len(self.inputs)]
        return [number for number in derived.of if number >= len(self.inputs)]


def in_python(op: Op, left: str, right: str) -> str:
    """Return one operation in Python; it reads from left to right."""
    match op:
        case "tiles":
            return f"-(-{left} // {right})"
        case "windows":
            return f"({left} - {right} + 1.0 if {left} > {right} else 1.0)"
        case _:
            return f"{left} {SIGNS[op]} {right}"


def in_c(prefix: str) -> Fold:
    """Return how one operation is written in C, by the functions of a header where Python does more than C would."""

    def fold(op: Op, left: str, right: str) -> str:
        match op:
            case "tiles":
                return f"-{prefix}_floor_div(-{left}, {right})"
            case "windows":
                return f"({left} > {right} ? {left} - {right} + 1.0 : 1.0)"
            case "remainder":
                return f"{prefix}_rest({left}, {right})"
            case "whole":
                return f"{prefix}_floor_div({left}, {right})"
            case _:
                return f"{left} {SIGNS[op]} {right}"

    return fold


def kept_in_c(prefix: str) -> Fold:
    """Return the same for results that others are made of: a compiler may not fuse a product with a sum."""
    plain = in_c(prefix)
    return lambda op, left, right: f"{prefix}_product({left}, {right})" if op == "product" else plain(op, left, right)
