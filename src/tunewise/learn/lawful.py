"""How far a law is true of some measurements, and what it leaves for others to learn."""

from dataclasses import dataclass

import numpy as np

from tunewise.formats.dataset import Floats
from tunewise.learn.blocks import blocked
from tunewise.learn.derived import Formulas
from tunewise.learn.keeping import cuts_of
from tunewise.learn.law import Law, held_out, law_of, trust
from tunewise.learn.pairs import Pairs
from tunewise.learn.rates import short
from tunewise.models import Work

_ROWS_TO_CHOOSE = 5_000  # to see what cuts which size: more add seconds
_FASTEST = 100.0  # of log seconds: what is done faster, or slower, than that is not done at all
_DIGITS = 4  # of a rate and of a share


@dataclass(frozen=True, eq=False)
class Lawful:
    """A law, how much of what it says is true, and so much of what laws that did not see a row's problem said of it."""

    law: Law
    share: float
    told: Floats

    def tells(self, values: Floats) -> Floats:
        """Return what is to be added to the guesses of those who learned what the law misses, for rows of inputs."""
        said: Floats = self.share * self.law.log_seconds(values)
        return said

    def work(self, formulas: Formulas, settings: Floats) -> Work:
        """Return the law as a part of a model of configs, a row each; the columns it needs are added."""
        amounts = self.law.counted.amounts
        rates = np.exp(self.law.log_rates(settings).clip(-_FASTEST, _FASTEST))
        columns = self.law.counted.columns(formulas)
        order = sorted(range(len(amounts)), key=lambda place: bool(amounts[place]))  # what is done once comes first
        rounded = tuple(tuple(short(row[place], _DIGITS) for place in order) for row in rates)
        return Work(tuple(columns[place] for place in order if amounts[place]), rounded, short(self.share, _DIGITS))


def lawful(table: Pairs, seed: int) -> Lawful | None:
    """Return how far a table follows a law; None where it does not."""
    sample = table.sampled(_ROWS_TO_CHOOSE, seed)
    cuts = blocked(sample, cuts_of(sample, seed))
    said = held_out(table, cuts, seed)
    if said is None:
        return None
    share = trust(table, said)
    law = law_of(table, cuts) if share else None
    return None if law is None else Lawful(law, share, share * said)
