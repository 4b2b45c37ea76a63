"""The neural net: a small PyTorch regression on centred log time, kept as plain numbers that need no PyTorch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tunewise.formats.dataset import DataSet, Floats
from tunewise.learn.columns import needed, worked_out
from tunewise.learn.descent import Descent, Examples, Run, Watch, descend, torch_module
from tunewise.learn.keeping import Loss, folds_of, lost, offer, together
from tunewise.learn.options import Epoch, Training
from tunewise.learn.pairs import Pairs, pairs
from tunewise.learn.ranker import Made, check_leafless, ranked_choices, scores_of
from tunewise.models import Columns, Level, Model, Net, Scale, Word
from tunewise.models.scoring import inputs, outputs, seen

_MOST_ROWS, _ROWS_TO_CHOOSE = 300_000, 16_000
_COLUMNS = 48  # derived ones
_WIDTHS = (48, 32)  # most of the time of a ranking goes into these products
_LEVEL_WIDTHS, _LEVEL_EPOCHS = (32,), 500
_MOST_CHOICES = 500
_WIDE = 8.0  # values that reach so many times their median are better seen as logarithms


@dataclass(frozen=True)
class Prepared:
    """A table as a net sees it: its columns, and how each is scaled."""

    columns: Columns
    scales: tuple[Scale, ...]

    def examples(self, table: Pairs) -> Examples:
        """Return what a net learns from: every pair, and how it compares with the others of its problem."""
        return Examples(inputs(self.columns, self.scales, table.values), table.target, table.weight)


class NetLearner:
    """Trains a net of two hidden layers; for large spaces, where a forest would be large too.

    How long to train is found on problems that are held out; the net itself then learns from all of them.
    """

    name = "net"

    def fit(self, data: DataSet, options: Training) -> Model:
        """Return a model whose body is a net; raises MissingPart without PyTorch."""
        check_leafless(self.name, options)
        torch_module()
        table = pairs(data, options, _MOST_ROWS)
        sample = table.sampled(_ROWS_TO_CHOOSE, options.seed)
        folds = [_fold(*fold, number, options) for number, fold in enumerate(folds_of(sample, options.seed), start=1)]
        ready = _prepared(sample, options.seed)
        examples = ready.examples(table)
        descent = _shortened(descent_of(options), examples, [run.share for run, _ in folds])
        run = descend(examples, descent, hear=_hearing(options, "net"))
        body = Net(ready.scales, run.layers, level=_level(ready, table, options))
        scores = scores_of(together([loss for _, loss in folds]) if folds else None, options)
        chosen = ranked_choices(data, table, options, _MOST_CHOICES)
        return Made(self.name, ready.columns, body, scores).model(data, chosen)


def _fold(known: Pairs, held_out: Pairs, number: int, options: Training) -> tuple[Run, Loss]:
    """Return a net that learned from some problems until it got no better on others, and what it loses on those."""
    ready = _prepared(known, options.seed)
    hear = _hearing(options, f"fold {number}")
    asked = inputs(ready.columns, ready.scales, held_out.values)
    watch = Watch(asked, lambda guesses: lost(held_out, guesses).mean)
    run = descend(ready.examples(known), descent_of(options), watch, hear)
    return run, lost(held_out, outputs(run.layers, asked))


def descent_of(options: Training) -> Descent:
    """Return how a net is trained by some options."""
    return Descent(
        widths=_WIDTHS,
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=options.learning_rate,
        seed=options.seed,
    )


def _shortened(descent: Descent, examples: Examples, shares: Sequence[float]) -> Descent:
    """Return the descent with as large a share of its epochs as did best on problems held out."""
    share = float(np.mean(shares)) if shares else 1.0
    return replace(descent, epochs=max(round(share * descent.length(examples)), 1))


def _level(ready: Prepared, table: Pairs, options: Training) -> Level:
    """Return what the net's guesses are relative to, learned from one row of every problem."""
    sides = ready.columns.sides
    scales = tuple(scale for scale in ready.scales if sides[scale.column] == "problem")
    level = table.level
    given = inputs(ready.columns, scales, table.values[table.first])
    descent = Descent(widths=_LEVEL_WIDTHS, epochs=_LEVEL_EPOCHS, seed=options.seed)
    run = descend(Examples(given, level, np.ones(len(level))), descent, hear=_hearing(options, "level"))
    return Level(scales, run.layers)


def _hearing(options: Training, part: str) -> Callable[[Epoch], None] | None:
    listener = options.listener
    return None if listener is None else lambda epoch: listener(replace(epoch, part=part))


def _prepared(table: Pairs, seed: int) -> Prepared:
    offered = offer(table, seed)
    helpful = [number for number in offered.ranked if number >= len(table.inputs)][:_COLUMNS]
    columns, places = needed(table.problem_inputs, table.config_inputs, offered.derived, helpful)
    numbers = [*range(len(table.inputs)), *sorted(places[number] for number in helpful)]
    values = worked_out(table.values, columns.derived)
    return Prepared(columns, tuple(scale for number in numbers for scale in _scales(columns, number, values[number])))


def _scales(columns: Columns, number: int, values: Floats) -> list[Scale]:
    column = columns.inputs[number] if number < len(columns.inputs) else None
    if isinstance(column, Word):
        return [_fitted(Scale(number, 0.0, 1.0, word=word), values) for word in range(len(column.words))]
    is_log = bool(np.abs(values).max() > _WIDE * max(float(np.median(np.abs(values))), 1.0))
    return [_fitted(Scale(number, 0.0, 1.0, is_log=is_log), values)]


def _fitted(scale: Scale, values: Floats) -> Scale:
    shown = seen(values, scale)
    unit = 2.0 ** max(int(np.frexp(np.abs(shown).max())[1]) - 1, 0)  # squares of larger numbers are beyond all doubles
    mean, deviation = (float(told) * unit for told in ((shown / unit).mean(), (shown / unit).std()))
    return Scale(scale.column, mean, deviation if deviation > 1e-6 else 1.0, scale.is_log, scale.word)
