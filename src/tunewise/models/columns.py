"""What a model looks at: features of a problem, values of a config, and small sums derived from both.

Everything is a double, and every operation means the same in Python, in generated code and in C: a model accepts
values within the bounds of its inputs only, and with those no division by zero and no overflow can happen.
"""

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import isfinite
from typing import Literal, assert_never

import msgspec

from tunewise.decision import canonical
from tunewise.errors import InvalidModel

MAX_OPERANDS, MAX_WORDS = 8, 20_000
LONG_FORMULA = 60  # characters: formulas of formulas of formulas would grow without end
LONG_QUESTION = 36  # characters of a formula that something is asked about, in a drawing

Op = Literal["product", "ratio", "sum", "difference", "remainder", "whole", "tiles", "windows"]
Side = Literal["problem", "config", "both"]

SIGNS: dict[Op, str] = {"product": "*", "ratio": "/", "sum": "+", "difference": "-", "remainder": "%", "whole": "//"}
_NUMBERS = (int, float, bool)


class Number(msgspec.Struct, frozen=True, tag="number", forbid_unknown_fields=True):
    """A numeric input, and the bounds within which the model knows something."""

    name: str
    low: float
    high: float

    def value(self, given: object) -> float | None:
        """Return what was given as a double, or None where it is no number within the bounds."""
        try:
            plain = given if type(given) in _NUMBERS else canonical.scalar(given)  # numpy's numbers are numbers too
            number = plain * 1.0 if isinstance(plain, int | float) else None
        except (ValueError, OverflowError):
            return None
        if number is None:
            return None
        return number if self.low <= number <= self.high else None

    @property
    def unlike(self) -> str:
        """What is wrong with a value that is refused."""
        return f"is not between {self.low:g} and {self.high:g}"


class Word(msgspec.Struct, frozen=True, tag="word", forbid_unknown_fields=True, dict=True):
    """A categorical input: one of the words the model has seen; its value is the word's number."""

    name: str
    words: tuple[str, ...]

    def value(self, given: object) -> float | None:
        """Return the number of the word, or None where it is not known."""
        return self._numbers.get(given) if isinstance(given, str) else None

    @cached_property
    def _numbers(self) -> dict[str, float]:
        return {word: float(number) for number, word in enumerate(self.words)}

    @property
    def unlike(self) -> str:
        """What is wrong with a value that is refused."""
        return f"is none of {reprlib.repr(list(self.words))}"


Input = Number | Word


class Derived(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A number worked out from earlier columns: `of` has their numbers, and `by` may be a constant right operand.

    `whole` is how many pieces of the right size are in the left one: the quotient rounded down. `tiles` is how many
    cover it: the quotient rounded up. `windows` is how many places a window of the right size has within the left one:
    one more than the difference, and never less than one. Where it is the nanoseconds that a choice is expected to
    take, `about` has the number of that choice, for those who read it; the default may be none of the choices.
    """

    op: Op
    of: tuple[int, ...]
    by: float | None = None
    about: int | Literal["default"] | None = None

    def value(self, row: Sequence[float]) -> float:
        """Return the number for a row that has all earlier columns."""
        if self.by is None and len(self.of) == 2:  # nearly all are, and one ranking asks for thousands
            return apply(self.op, row[self.of[0]], row[self.of[1]])
        if self.by is not None and len(self.of) == 1:
            return apply(self.op, row[self.of[0]], self.by)
        operands = [row[column] for column in self.of]
        if self.by is not None:
            operands.append(self.by)
        result = operands[0]
        for operand in operands[1:]:
            result = apply(self.op, result, operand)
        return result


class Columns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All columns of a model, numbered through: a problem's inputs, a config's, then the derived ones."""

    problem: tuple[Input, ...]
    config: tuple[Input, ...] = ()
    derived: tuple[Derived, ...] = ()

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The columns that are given, not derived."""
        return (*self.problem, *self.config)

    @property
    def names(self) -> tuple[str, ...]:
        """What people call each column; a derived one reads like a formula, in which long parts stand by number."""
        names = [column.name for column in self.inputs]
        called = list(names)
        for number, derived in enumerate(self.derived, start=len(names)):
            names.append(_formula(derived, called))
            called.append(self._called(number, names[-1], LONG_FORMULA))
        return tuple(names)

    @property
    def brief(self) -> tuple[str, ...]:
        """What each column is called in a drawn question: its name, or its number where that is a long formula."""
        return tuple(self._called(number, name, LONG_QUESTION) for number, name in enumerate(self.names))

    def parts(self, asked: Iterable[int]) -> dict[str, str]:
        """Return what stands for formulas in drawn questions about some columns, and in these formulas, with each."""
        names, first, seen = self.names, len(self.inputs), set(asked)
        called = {number: self._called(number, names[number], LONG_QUESTION) for number in seen}
        waiting = [number for number in seen if number >= first]
        while waiting:
            made_of = {number for number in self.derived[waiting.pop() - first].of if number >= first}
            called |= {number: self._called(number, names[number], LONG_FORMULA) for number in made_of - seen}
            waiting += made_of - seen
            seen |= made_of
        return {called[number]: names[number] for number in sorted(called) if called[number] != names[number]}

    def _called(self, number: int, name: str, longest: int) -> str:
        """Return what stands for a column where a long name has no place: a number, or whose time it is."""
        if number < len(self.inputs):
            return name
        about = self.derived[number - len(self.inputs)].about
        short = name if len(name) <= longest else f"[{number}]"
        return short if about is None else f"time[{about}]"

    @property
    def sides(self) -> tuple[Side, ...]:
        """Of each column, whether the problem alone tells its value, the config alone, or only both together."""
        sides: list[Side] = ["problem" for _ in self.problem]
        sides += ["config" for _ in self.config]
        for derived in self.derived:
            found = {sides[number] for number in derived.of}
            sides.append(found.pop() if len(found) == 1 else "both")
        return tuple(sides)

    @property
    def operations(self) -> int:
        """How many operations make all derived columns."""
        return sum(len(derived.of) - (derived.by is None) for derived in self.derived)

    def known(self, features: Mapping[str, object]) -> list[float] | None:
        """Return the values of the problem's inputs, or None where one is missing or outside what was learned from."""
        return _values(self.problem, features)

    def why_unknown(self, features: Mapping[str, object]) -> str | None:
        """Return why `known` is None for a problem: the first input that is missing or unlike all seen; else None."""
        for column in self.problem:
            given = features.get(column.name)
            if column.value(given) is None:
                unlike = f"={reprlib.repr(given)} {column.unlike}"
                return column.name + (unlike if column.name in features else " is missing")
        return None

    def row(self, known: Sequence[float], config: Sequence[float] = ()) -> list[float]:
        """Return all columns, the inputs being given."""
        row = [*known, *config]
        for derived in self.derived:
            row.append(derived.value(row))
        return row

    def setting(self, config: Mapping[str, object]) -> list[float]:
        """Return the values of a config's inputs; raises InvalidModel where the model cannot know them."""
        values = _values(self.config, config)
        if values is None:
            raise InvalidModel(f"the config {dict(config)} is outside the columns of its model")
        return values

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Between which numbers each column is; raises InvalidModel where one has no bounds."""
        bounds = [_bounds(column) for column in self.inputs]
        for derived in self.derived:
            bounds.append(_derived_bounds(derived, bounds))
        return bounds

    def check(self) -> None:
        """Raise InvalidModel unless every column makes sense and every derived one has a value."""
        for given in (self.problem, self.config):
            names = [column.name for column in given]
            if len(set(names)) < len(names) or not all(names):
                raise InvalidModel(f"the model's inputs {reprlib.repr(names)} are not distinct names")
        words = {number for number, column in enumerate(self.inputs) if isinstance(column, Word)}
        for number, derived in enumerate(self.derived, start=len(self.inputs)):
            if not all(0 <= column < number and column not in words for column in derived.of):
                columns = reprlib.repr(derived.of)
                raise InvalidModel(f"derived column {number} is made of columns {columns}: not of numbers before it")
        _ = self.bounds

    def check_about(self, choices: int) -> None:
        """Raise InvalidModel unless what is about a choice is about one of so many, and no two are about the same."""
        about = [derived.about for derived in self.derived if derived.about is not None]
        if len(set(about)) < len(about) or not all(one == "default" or 0 <= one < choices for one in about):
            raise InvalidModel(f"columns about {reprlib.repr(about)} are not about one each of {choices} choices")


def apply(op: Op, left: float, right: float) -> float:
    """Return the result of one operation on two doubles."""
    match op:
        case "product":
            return left * right
        case "ratio":
            return left / right
        case "sum":
            return left + right
        case "difference":
            return left - right
        case "remainder":
            return left % right
        case "whole":
            return left // right
        case "tiles":
            return -(-left // right)
        case "windows":
            room = left - right
            return (room + abs(room)) * 0.5 + 1.0  # of whole arrays too, which have no max
        case _:
            assert_never(op)


def _apply_bounds(op: Op, left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    if op in ("ratio", "remainder", "whole", "tiles") and right[0] <= 0:
        raise InvalidModel(f"a {op} would divide by what may be {right[0]:g}")
    if op in ("remainder", "whole", "tiles") and left[0] < 0:
        raise InvalidModel(f"a {op} of what may be {left[0]:g} is not defined")
    if op == "remainder":
        return 0.0, min(left[1], right[1])
    corners = [apply(op, a, b) for a in left for b in right]
    return min(corners), max(corners)


def _derived_bounds(derived: Derived, bounds: Sequence[tuple[float, float]]) -> tuple[float, float]:
    given = [bounds[column] for column in derived.of]
    if derived.by is not None:
        given.append((derived.by, derived.by))
    most = MAX_OPERANDS if derived.op in ("product", "sum") else 2
    if not 2 <= len(given) <= most:
        raise InvalidModel(f"a {derived.op} takes 2 to {most} operands and has {len(given)}")
    result = given[0]
    for operand in given[1:]:
        result = _apply_bounds(derived.op, result, operand)
        if not (isfinite(result[0]) and isfinite(result[1])):
            raise InvalidModel(f"a {derived.op} of columns {derived.of} may be without bounds")
    return result


def _bounds(column: Input) -> tuple[float, float]:
    if isinstance(column, Word):
        if not 0 < len(column.words) <= MAX_WORDS or len(set(column.words)) < len(column.words):
            raise InvalidModel(f"the words of {column.name!r} are not 1 to {MAX_WORDS} distinct ones")
        return 0.0, float(len(column.words) - 1)
    if not (isfinite(column.low) and isfinite(column.high) and column.low <= column.high):
        raise InvalidModel(f"{column.name!r} has the bounds {column.low} and {column.high}")
    return column.low, column.high


def _values(inputs: Sequence[Input], given: Mapping[str, object]) -> list[float] | None:
    values = []
    for column in inputs:
        value = column.value(given.get(column.name))
        if value is None:
            return None
        values.append(value)
    return values


def _formula(derived: Derived, names: Sequence[str]) -> str:
    parts = [_bracketed(names[column]) for column in derived.of]
    if derived.by is not None:
        parts.append(f"{derived.by:g}")
    if derived.op == "tiles":
        return f"ceil({parts[0]} / {parts[1]})"
    if derived.op == "windows":
        return f"max({parts[0]} - {parts[1]} + 1, 1)"
    return f" {SIGNS[derived.op]} ".join(parts)


def _bracketed(name: str) -> str:
    return f"({name})" if " " in name and not name.startswith(("ceil(", "max(")) else name
