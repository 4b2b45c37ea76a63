"""Gradient descent by PyTorch: a small net fitted to rows, watched on rows it does not see; equal seeds, equal nets."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np

from tunewise.errors import MissingPart
from tunewise.eventlog import logger
from tunewise.formats.dataset import Floats
from tunewise.learn.options import Epoch
from tunewise.models import Layer

_log = logger(__name__)

_FEWEST_STEPS, _FEWEST_EPOCHS = 1_500, 10
_LOOKS = 20  # how often a run looks at the rows held out
_PATIENCE = 6  # looks without anything better: a run that is watched ends


@dataclass(frozen=True, eq=False)
class Examples:
    """What a net is shown: its inputs, a row an example; the numbers it should say; and how much each counts."""

    inputs: Floats
    wanted: Floats
    weight: Floats

    def __len__(self) -> int:
        return len(self.wanted)


@dataclass(frozen=True, eq=False)
class Watch:
    """What a run is watched on: inputs it does not learn from, and what it loses by its guesses of them."""

    inputs: Floats
    loss: Callable[[Floats], float]


@dataclass(frozen=True, kw_only=True)
class Descent:
    """How to go downhill; `noise` is added to inputs, in deviations, so that a net does not learn rows by heart."""

    widths: tuple[int, ...]
    epochs: int | None = None  # None: as many as the examples need
    batch_size: int = 512
    learning_rate: float = 3e-3
    decay: float = 1e-2
    noise: float = 0.1
    seed: int = 0

    def batches(self, examples: Examples) -> int:
        """Return how many steps one epoch takes."""
        return ceil(len(examples) / self.batch_size)

    def length(self, examples: Examples) -> int:
        """Return how many epochs a run has at most."""
        return self.epochs or max(ceil(_FEWEST_STEPS / self.batches(examples)), _FEWEST_EPOCHS)


@dataclass(frozen=True, eq=False)
class Run:
    """What came of a run: its layers when they did best on what was held out, and after which share of the epochs."""

    layers: tuple[Layer, ...]
    share: float = 1.0


def descend(
    examples: Examples,
    descent: Descent,
    watch: Watch | None = None,
    hear: Callable[[Epoch], None] | None = None,
) -> Run:
    """Return a net fitted to examples; one that is watched ends when it gets no better there.

    Raises MissingPart without PyTorch.
    """
    torch = torch_module()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(descent.seed)
        descending = _Descending(torch, examples, descent)
        length = descent.length(examples)
        every = max(length // _LOOKS, 1)
        least, best, best_epoch = float("inf"), descending.layers(), 0
        for epoch in range(1, length + 1):
            loss = descending.epoch()
            if epoch % every and epoch != length:
                continue
            lost = None if watch is None else watch.loss(descending.guesses(watch.inputs))
            _tell(Epoch(epoch, length, loss, lost), hear)
            if lost is None or lost <= least:
                least, best, best_epoch = least if lost is None else lost, descending.layers(), epoch
            elif epoch - best_epoch >= _PATIENCE * every:
                break
    return Run(best, best_epoch / length)


class _Descending:
    """A net on its way down."""

    def __init__(self, torch: Any, examples: Examples, descent: Descent) -> None:
        self._torch, self._descent = torch, descent
        # A net that starts at the mean need not learn it.
        self._base = float(np.average(examples.wanted, weights=examples.weight))
        self._given, self._wanted, self._weight = _tensors(torch, examples, self._base)
        self._net = _sequential(torch, (self._given.shape[1], *descent.widths))
        rate = descent.learning_rate
        self._optimizer = torch.optim.AdamW(self._net.parameters(), lr=rate, weight_decay=descent.decay, fused=True)
        steps = descent.length(examples) * descent.batches(examples)
        self._schedule = torch.optim.lr_scheduler.OneCycleLR(self._optimizer, max_lr=rate, total_steps=steps)

    def epoch(self) -> float:
        """Show every example once, in an order by chance; return the mean loss."""
        order = self._torch.randperm(len(self._given))
        losses = [self._step(rows) for rows in order.split(self._descent.batch_size)]
        return float(self._torch.stack(losses).mean())

    def _step(self, rows: Any) -> Any:
        given = self._given[rows]
        if self._descent.noise:
            given = given + self._descent.noise * self._torch.randn_like(given)
        loss = (self._weight[rows] * (self._net(given)[:, 0] - self._wanted[rows]) ** 2).mean()
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        self._schedule.step()
        return loss.detach()

    def guesses(self, inputs: Floats) -> Floats:
        """Return what the net says now of some inputs, without its base."""
        with self._torch.inference_mode():
            said = self._net(self._torch.from_numpy(inputs.astype(np.float32)))[:, 0]
        guessed: Floats = said.numpy().astype(np.float64)
        return guessed

    def layers(self) -> tuple[Layer, ...]:
        """Return the net as it is now, as plain numbers."""
        *hidden, last = [part for part in self._net if isinstance(part, self._torch.nn.Linear)]
        return (*(_layer(part) for part in hidden), _layer(last, self._base))


def torch_module() -> Any:
    """Return PyTorch; raises MissingPart where it cannot be imported."""
    try:
        import torch
    except (ImportError, OSError) as error:
        raise MissingPart(f"this learner needs PyTorch ({error}): pip install 'tunewise[learn,torch]'") from None
    return torch


def _tell(epoch: Epoch, hear: Callable[[Epoch], None] | None) -> None:
    _log.debug("%s", epoch)
    if hear is not None:
        hear(epoch)


def _tensors(torch: Any, examples: Examples, base: float) -> list[Any]:
    weight = examples.weight / examples.weight.mean()
    arrays = (examples.inputs, examples.wanted - base, weight)
    return [torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)) for array in arrays]


def _sequential(torch: Any, widths: tuple[int, ...]) -> Any:
    hidden = [part for before, after in pairwise(widths) for part in (torch.nn.Linear(before, after), torch.nn.ReLU())]
    return torch.nn.Sequential(*hidden, torch.nn.Linear(widths[-1], 1))


def _layer(linear: Any, base: float = 0.0) -> Layer:
    weights, biases = (part.detach().numpy() + added for part, added in ((linear.weight, 0.0), (linear.bias, base)))
    weights, biases = weights.astype("<f4"), biases.astype("<f4")
    return Layer(weights.shape[1], weights.shape[0], weights.tobytes(), biases.tobytes())
