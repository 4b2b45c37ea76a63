"""A small decision with data, a model and trials, whose every name may be chosen by a test."""

from collections.abc import Sequence

import numpy as np

from tunewise.decision import Environment, Failure, Problem, Scalar, Subject, Timing, Trial
from tunewise.formats.dataset import Column, DataSet, Rows
from tunewise.models import Card, Columns, Derived, Forest, Guess, Leaf, Model, Number, Split, Tree, Word
from tunewise.session.recall import Measured

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
CHOICES = 3
SLOTS = ("way", "n", "kind", "flat", "round", "tile", "value", "cpu", "fast", "odd", "tree", "regret")

Name = str | Sequence[str]  # in front of every word, or one for each of the slots


def said(name: Name, word: str) -> str:
    """Return a word as a test wants it."""
    return f"{name if isinstance(name, str) else name[SLOTS.index(word)]}{word}"


def data(name: Name = "") -> DataSet:
    """Eight sizes of two kinds, three configs: the first is best for small ones, the last never; one run failed."""
    count = 2 * len(SIZES)
    sizes = np.array(SIZES * 2, dtype=np.float64)
    kinds = np.repeat([0.0, 1.0], len(SIZES))
    times = np.stack([sizes, np.full(count, 10.0), 3 * np.maximum(sizes, 10.0)], axis=1) * 1e-6
    rows = count * CHOICES
    status = np.zeros(rows, dtype=np.int8)
    status[-1] = 1
    samples = np.where(status == 0, times.reshape(-1), np.nan)
    kept = status == 0
    starts = np.concatenate([[0], np.cumsum(2 * kept)]).astype(np.int64)
    return DataSet(
        decision=said(name, "way"),
        features=(
            Column(said(name, "n"), sizes),
            Column(said(name, "kind"), kinds, (said(name, "flat"), said(name, "round"))),
        ),
        configs=tuple(configs(name)),
        rows=Rows(
            np.repeat(np.arange(count), CHOICES),
            np.tile(np.arange(CHOICES), count),
            status,
            np.repeat(samples[kept], 2) * np.tile([1.0, 1.02], int(kept.sum())),
            starts,
        ),
        default=1,
        devices=({said(name, "cpu"): said(name, "fast")},),
        notes={said(name, "odd"): 3},
    )


def configs(name: Name = "") -> list[dict[str, Scalar]]:
    return [{said(name, "tile"): f"{said(name, 'value')}{tile}", said(name, "way"): 1} for tile in range(CHOICES)]


def model(name: Name = "", fingerprint: str = "0" * 64) -> Model:
    """Small problems take the first config; of the others one kind takes the second, and the other abstains."""
    nodes = (
        Split(column=2, low=1, high=2, threshold=256.0),
        Leaf(ranking=(0, 1), support=8, regret=1.01, default_regret=3.5),
        Split(column=1, low=3, high=4, words=(0,)),
        Leaf(ranking=(1, 0), support=5, regret=1.0, default_regret=1.0),
        Leaf(support=3, default_regret=1.2),
    )
    return _model(name, Tree(nodes), fingerprint=fingerprint)


def forest(name: Name = "", trees: int = 2) -> Model:
    """The first config for small problems, another one for large ones, each by a guess of its time."""
    nodes = (
        Split(column=1, low=1, high=2, words=(0,)),
        Split(column=0, low=3, high=4, threshold=10.0),
        Guess(0.0, support=16),
        Guess(-1.0, support=4),
        Guess(1.0, support=4),
    )
    columns = Columns(
        problem=_inputs(name)[:1],
        config=(Word(said(name, "tile"), tuple(f"{said(name, 'value')}{n}" for n in range(3))),),
    )
    return _model(name, Forest((nodes, *[(Guess(0.0),)] * (trees - 1))), columns)


def measured(name: Name = "", problems: int = 2) -> list[Measured]:
    """Three configs of every problem: the second one fails, the third is twice as fast as the first."""
    found = []
    for number in range(problems):
        problem = Problem({said(name, "n"): number, said(name, "kind"): said(name, "flat")})
        subject = Subject(said(name, "way"), problem, (), Environment(()))
        outcomes = (Timing((2e-6, 2e-6)), Failure("crash", said(name, "odd")), Timing((1e-6,)))
        found += [
            Measured(subject, Trial(config, outcome)) for config, outcome in zip(configs(name), outcomes, strict=True)
        ]
    return found


def _inputs(name: Name) -> tuple[Number, Word]:
    return Number(said(name, "n"), 1.0, 200.0), Word(said(name, "kind"), (said(name, "flat"), said(name, "round")))


def _model(name: Name, body: Tree | Forest, columns: Columns | None = None, fingerprint: str = "") -> Model:
    made = Model(
        card=Card(
            decision=said(name, "way"),
            fence={said(name, "cpu"): said(name, "fast")},
            fingerprint=fingerprint,
            created="2026-01-31",
            learner=said(name, "tree"),
            scores={said(name, "regret"): 1.05},
        ),
        choices=tuple(configs(name)),
        default=1,
        columns=columns or Columns(problem=_inputs(name), derived=(Derived("product", (0, 0)),)),
        body=body,
    )
    made.check()
    return made
