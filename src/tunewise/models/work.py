"""Work as a part of a guess: what a choice has to do on a problem, and what each of that takes."""

from collections.abc import Sequence

import msgspec

from tunewise.errors import InvalidModel
from tunewise.models.columns import Columns, Word

E = 2.718281828459045
MAX_SECONDS, MIN_SECONDS = 1e80, 1e-80  # and their powers, times e to the power of a guess, stay finite
MAX_AMOUNTS = 500


class Work(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Amounts of work by their columns, and for every choice the rates at which it does them: what is done once first.

    Seconds are their sum. How much of what they say of differences between choices is true is their `share`.
    """

    amounts: tuple[int, ...]
    rates: tuple[tuple[float, ...], ...]
    share: float

    def seconds(self, row: Sequence[float], choice: int) -> float:
        """Return how long the work of a row takes a choice, by its number."""
        once, *rates = self.rates[choice]
        total = once
        for column, rate in zip(self.amounts, rates, strict=True):
            total += row[column] * rate
        return total

    def check(self, columns: Columns, choices: int) -> None:
        """Raise InvalidModel unless there is a time, and one within bounds, for every row and choice."""
        bounds, words = columns.bounds, [isinstance(column, Word) for column in columns.inputs]
        if len(self.rates) != choices or not len(self.amounts) <= MAX_AMOUNTS or not 0 < self.share <= 1:
            raise InvalidModel(
                f"work of {len(self.amounts)} amounts and {len(self.rates)} choices, of which a share of {self.share} "
                f"is true; the model has {choices} choices"
            )
        for column in self.amounts:
            if not 0 <= column < len(bounds) or (column < len(words) and words[column]) or bounds[column][0] < 0:
                raise InvalidModel(f"an amount of work is column {column}, which is no number that is never negative")
        most = [1.0, *(bounds[column][1] for column in self.amounts)]
        for rates in self.rates:
            if len(rates) != len(most) or not all(0 <= rate <= MAX_SECONDS for rate in rates):
                raise InvalidModel(f"{len(rates)} rates of work between 0 and {MAX_SECONDS:g} for {len(most)} amounts")
            longest = sum(amount * rate for amount, rate in zip(most, rates, strict=True))
            if not (rates[0] >= MIN_SECONDS and longest <= MAX_SECONDS):
                raise InvalidModel(f"work that takes {rates[0]:g} to {longest:g} seconds")
