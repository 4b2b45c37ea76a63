"""Derived columns as formulas: which are written where they are asked for, and which are worked out ahead."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tunewise.codegen.literals import python_float
from tunewise.models import Columns, Derived, Op

_SIGNS: dict[Op, str] = {"product": "*", "ratio": "/", "sum": "+", "difference": "-", "remainder": "%"}

Fold = Callable[[Op, str, str], str]


@dataclass(frozen=True)
class Formulas:
    """How the columns of a model are written: inputs by their identifiers, derived ones as formulas.

    A derived column that others are made of gets a name of its own, so that no text grows beyond the model; `kept`
    writes an operation whose result is kept that way.
    """

    columns: Columns
    inputs: tuple[str, ...]
    fold: Fold
    kept: Fold
    named: str = "d{}"

    def written(self, column: int, ahead: frozenset[int]) -> str:
        """Return the text of a column, given those that were worked out ahead."""
        if column < len(self.inputs):
            return self.inputs[column]
        return self.named.format(column) if column in ahead else self.formula(column, self.fold)

    def formula(self, column: int, fold: Fold) -> str:
        """Return how a derived column is worked out; those it is made of must have names."""
        derived = self.columns.derived[column - len(self.inputs)]
        operands = [self._name(number) for number in derived.of]
        if derived.by is not None:
            operands.append(python_float(derived.by))
        result = operands[0]
        for operand in operands[1:]:
            result = fold(derived.op, result, operand)
        return result

    def ahead(self, used: Iterable[int]) -> frozenset[int]:
        """Return the derived columns that the used ones are made of, however far back."""
        waiting, found = list(used), set[int]()
        while waiting:
            for number in self._derived(waiting.pop()):
                if number not in found:
                    found.add(number)
                    waiting.append(number)
        return frozenset(found)

    def assignments(self, ahead: Iterable[int]) -> Iterator[tuple[str, str]]:
        """Yield the names and formulas of columns worked out ahead, in the order that they need each other."""
        for column in sorted(ahead):
            yield self.named.format(column), self.formula(column, self.kept)

    def _name(self, column: int) -> str:
        return self.inputs[column] if column < len(self.inputs) else self.named.format(column)

    def _derived(self, column: int) -> Sequence[int]:
        if column < len(self.inputs):
            return ()
        derived: Derived = self.columns.derived[column - len(self.inputs)]
        return [number for number in derived.of if number >= len(self.inputs)]


def in_python(op: Op, left: str, right: str) -> str:
    """Return one operation in Python; it reads from left to right."""
    return f"-(-{left} // {right})" if op == "tiles" else f"{left} {_SIGNS[op]} {right}"


def in_c(prefix: str) -> Fold:
    """Return how one operation is written in C, by the functions of a header where Python does more than C would."""

    def fold(op: Op, left: str, right: str) -> str:
        if op == "tiles":
            return f"-{prefix}_floor_div(-{left}, {right})"
        return f"{prefix}_rest({left}, {right})" if op == "remainder" else f"{left} {_SIGNS[op]} {right}"

    return fold


def kept_in_c(prefix: str) -> Fold:
    """Return the same for results that others are made of: a compiler may not fuse a product with a sum."""
    plain = in_c(prefix)
    return lambda op, left, right: f"{prefix}_product({left}, {right})" if op == "product" else plain(op, left, right)
