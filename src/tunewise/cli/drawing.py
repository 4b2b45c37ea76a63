"""Problems drawn on the command line: `--grid`, `--log-uniform`, `--log-normal` and `--one-of`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from tunewise.cli.problems import Features, Pairs, value_of
from tunewise.decision.draws import Draw, LogNormal, LogUniform, OneOf, drawn, grid
from tunewise.errors import InvalidProblem

_KINDS: dict[str, tuple[str, str]] = {
    "grid": ("m=64:128:256,n=64:128", "Every combination of these values."),
    "log_uniform": ("m=16:4096,n=16:4096", "Sizes from low:high, every order of magnitude as likely."),
    "log_normal": ("m=6.5:2.5,n=6:1.7", "Sizes whose logarithm has this mean:deviation."),
    "one_of": ("dtype=float32:float64", "One of these values, beside sizes that are drawn."),
}


def draw_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options that draw problems; they arrive as keyword arguments for `drawn_problems`."""
    seed = click.option("--draw-seed", type=int, default=0, show_default=True, help="Seed of the problems drawn.")
    multiple = click.option(
        "--multiple-of", type=click.IntRange(min=1), default=1, show_default=True, help="Round drawn sizes to this."
    )
    number = click.option(
        "--num-problems", type=click.IntRange(min=1), default=100, show_default=True, help="How many to draw."
    )
    for option in (seed, multiple, number):
        verb = option(verb)
    for name, (sample, sense) in reversed(_KINDS.items()):
        flag = "--" + name.replace("_", "-")
        verb = click.option(flag, name, type=Pairs(), multiple=True, help=f"{sense} Such as {sample}.")(verb)
    return verb


def drawn_problems(
    *,
    grid: Sequence[Features],
    log_uniform: Sequence[Features],
    log_normal: Sequence[Features],
    one_of: Sequence[Features],
    num_problems: int,
    multiple_of: int,
    draw_seed: int,
) -> list[Features]:
    """Return the problems that the options draw; none where no option does."""
    features: dict[str, Draw] = {}
    for name, text in _pairs(log_uniform):
        features[name] = LogUniform(*_two(name, text, "log-uniform", "16:4096"), multiple_of)
    for name, text in _pairs(log_normal):
        features[name] = LogNormal(*_two(name, text, "log-normal", "6.5:2.5"), multiple_of)
    for name, text in _pairs(one_of):
        features[name] = OneOf(tuple(_values(text)))
    problems = [dict(problem) for problem in _gridded(grid)]
    if features:
        problems += [dict(problem) for problem in drawn(features, num_problems, draw_seed)]
    return list(problems)


def _gridded(grids: Sequence[Features]) -> list[Mapping[str, Any]]:
    return [problem for given in grids for problem in grid({name: _values(text) for name, text in given.items()})]


def _pairs(given: Sequence[Features]) -> list[tuple[str, Any]]:
    return [pair for features in given for pair in features.items()]


def _values(text: object) -> list[Any]:
    return [value_of(part) for part in str(text).split(":")]


def _two(name: str, text: object, kind: str, sample: str) -> tuple[Any, Any]:
    values = _values(text)
    if len(values) != 2 or not all(isinstance(value, int | float) for value in values):
        raise InvalidProblem(f"--{kind} {name}={text} is not two numbers; write --{kind} {name}={sample}")
    return values[0], values[1]
