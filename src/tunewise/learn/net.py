"""The neural net: a small PyTorch regression on centred log time, kept as plain numbers that need no PyTorch."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tunewise.errors import MissingPart
from tunewise.formats.dataset import DataSet, Floats
from tunewise.learn.derived import expand, needed
from tunewise.learn.keeping import Loss, folds_of, lost, offer, together
from tunewise.learn.options import Training
from tunewise.learn.pairs import Pairs, pairs
from tunewise.learn.ranker import Made
from tunewise.models import Columns, Layer, Model, Net, Scale, Word
from tunewise.models.net import FAR

_MOST_ROWS, _ROWS_TO_CHOOSE = 100_000, 16_000
_COLUMNS = 48  # derived ones
_WIDTHS = (48, 32)
_BATCH = 512
_MOST_CHOICES = 256
_WIDE = 8.0  # values that reach so many times their median are better seen as logarithms


@dataclass(frozen=True)
class Prepared:
    """A table as a net sees it: its columns, and how each is scaled."""

    columns: Columns
    scales: tuple[Scale, ...]

    def inputs(self, table: Pairs) -> Floats:
        """Return what the first layer is given: the numbers that `Scale.value` has for every row."""
        columns = expand(table.values, self.columns.derived)
        return np.stack([_scaled(columns[scale.column], scale) for scale in self.scales], axis=1)


class NetLearner:
    """Trains a net of two hidden layers; for large spaces, where a forest would be large too."""

    name = "net"
    steps = 1_500  # of gradient descent

    def fit(self, data: DataSet, options: Training) -> Model:
        """Return a model whose body is a net; raises MissingPart without PyTorch."""
        torch = _torch()
        table = pairs(data, options, _MOST_ROWS)
        sample = table.sampled(_ROWS_TO_CHOOSE, options.seed)
        folds = list(folds_of(sample, options.seed))
        losses = [self._held_out(torch, known, held_out, options.seed) for known, held_out in folds]
        ready = _prepared(sample, options.seed)
        body = _net(torch, table, ready, self.steps, options.seed)
        made = Made(self.name, ready.columns, body, together(losses).scores if losses else {})
        return made.model(data, table, options, _MOST_CHOICES)

    def _held_out(self, torch: Any, known: Pairs, held_out: Pairs, seed: int) -> Loss:
        ready = _prepared(known, seed)
        return lost(held_out, _guesses(_net(torch, known, ready, self.steps, seed), ready, held_out))


def _prepared(table: Pairs, seed: int) -> Prepared:
    offered = offer(table, seed)
    helpful = [number for number in offered.ranked if number >= len(table.inputs)][:_COLUMNS]
    columns, places = needed(table, offered.derived, helpful)
    numbers = [*range(len(table.inputs)), *sorted(places[number] for number in helpful)]
    values = expand(table.values, columns.derived)
    return Prepared(columns, tuple(scale for number in numbers for scale in _scales(columns, number, values[number])))


def _scales(columns: Columns, number: int, values: Floats) -> list[Scale]:
    column = columns.inputs[number] if number < len(columns.inputs) else None
    if isinstance(column, Word):
        return [_fitted(Scale(number, 0.0, 1.0, word=word), values) for word in range(len(column.words))]
    is_log = bool(np.abs(values).max() > _WIDE * max(float(np.median(np.abs(values))), 1.0))
    return [_fitted(Scale(number, 0.0, 1.0, is_log=is_log), values)]


def _fitted(scale: Scale, values: Floats) -> Scale:
    seen = _scaled(values, scale, is_clipped=False)
    deviation = float(seen.std())
    return Scale(scale.column, float(seen.mean()), deviation if deviation > 1e-6 else 1.0, scale.is_log, scale.word)


def _scaled(values: Floats, scale: Scale, *, is_clipped: bool = True) -> Floats:
    if scale.word is not None:
        values = (values == scale.word).astype(np.float64)
    elif scale.is_log:
        values = np.copysign(np.log1p(np.abs(values)), values)
    standard: Floats = (values - scale.mean) / scale.deviation
    return np.clip(standard, -FAR, FAR) if is_clipped else standard


def _net(torch: Any, table: Pairs, ready: Prepared, steps: int, seed: int) -> Net:
    """Return a net trained on a table; equal tables and seeds give equal nets."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = _layers(torch, len(ready.scales))
        _descend(torch, net, ready.inputs(table), table, steps)
    linear = [layer for layer in net if isinstance(layer, torch.nn.Linear)]
    return Net(ready.scales, tuple(_layer(layer) for layer in linear))


def _layers(torch: Any, inputs: int) -> Any:
    widths = (inputs, *_WIDTHS)
    hidden = [part for before, after in pairwise(widths) for part in (torch.nn.Linear(before, after), torch.nn.ReLU())]
    return torch.nn.Sequential(*hidden, torch.nn.Linear(widths[-1], 1))


def _descend(torch: Any, net: Any, inputs: Floats, table: Pairs, steps: int) -> None:
    given = torch.from_numpy(inputs.astype(np.float32))
    wanted = torch.from_numpy(table.target.astype(np.float32))
    weight = torch.from_numpy((table.weight / table.weight.mean()).astype(np.float32))
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    for _ in range(steps):
        rows = torch.randint(len(given), (min(_BATCH, len(given)),))
        loss = (weight[rows] * (net(given[rows])[:, 0] - wanted[rows]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def _layer(linear: Any) -> Layer:
    weights, biases = (part.detach().numpy().astype("<f4") for part in (linear.weight, linear.bias))
    return Layer(weights.shape[1], weights.shape[0], weights.tobytes(), biases.tobytes())


def _guesses(net: Net, ready: Prepared, table: Pairs) -> Floats:
    """Return the guess for every row: what `Net.guess` returns for each."""
    values = ready.inputs(table)
    for number, layer in enumerate(net.layers):
        weights, biases = _unpacked(layer)
        values = values @ weights.T + biases
        if number < len(net.layers) - 1:
            values = np.maximum(values, 0.0)
    guessed: Floats = values[:, 0]
    return guessed


def _unpacked(layer: Layer) -> Sequence[Floats]:
    weights = np.frombuffer(layer.weights, dtype="<f4").astype(np.float64).reshape(layer.outputs, layer.inputs)
    return weights, np.frombuffer(layer.biases, dtype="<f4").astype(np.float64)


def _torch() -> Any:
    try:
        import torch
    except (ImportError, OSError) as error:
        raise MissingPart(f"this learner needs PyTorch ({error}): pip install 'tunewise[learn,torch]'") from None
    return torch
