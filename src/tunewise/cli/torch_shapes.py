"""Which products a torch verb is about: drawn in a few ways, of a shapeset, or those that a script computes."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tunewise.cli.screen import Screen, count
from tunewise.deploy.inductor.datafiles import Size, decision_of, size_of
from tunewise.deploy.inductor.recording import record_script
from tunewise.deploy.inductor.shapes import OPS, SAMPLERS, Limits, Shape, shapeset_shapes
from tunewise.errors import InvalidData

DTYPES = ("float32", "bfloat16", "float16")
_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The shapes asked for; nothing is drawn, read or run before `shapes` is called."""

    ops: tuple[str, ...]
    dtypes: tuple[str, ...]
    sampler: str
    shapeset: Path | None
    script: Path | None
    arguments: tuple[str, ...]
    number: int | None
    seed: int
    limits: Limits

    def shapes(self, screen: Screen, known: Collection[Size] = ()) -> list[Shape]:
        """Return the shapes that are not among the known ones; raises InvalidData where none is left."""
        found = self._all(screen, len(known))
        fresh = [shape for shape in found if _size(shape) not in known]
        if len(fresh) < len(found) and (self.shapeset or self.script):
            screen.say(f"{count(len(found) - len(fresh), 'shape')} left out: in the training data already")
        if not fresh:
            raise InvalidData("no shape is left to measure: the training data have them all" if found else _NONE)
        return fresh if self.number is None else fresh[: self.number]

    def _all(self, screen: Screen, more: int) -> list[Shape]:
        """Return shapes as they come, so many more than asked for that known ones may be dropped."""
        if self.script is not None:
            screen.say(f"running {self.script} to see what it computes")
            used = record_script(self.script, self.arguments)
            return self._fitting(screen, [one for one in used if not self.dtypes or one.dtype in self.dtypes])
        if self.shapeset is not None:
            return self._fitting(screen, shapeset_shapes(self.shapeset, dtypes=self.dtypes, limits=WIDE))
        ops, dtypes = self.ops or ("linear", "bmm"), self.dtypes or ("float32",)
        return SAMPLERS[self.sampler]((self.number or _NUMBER) + more, ops, dtypes, self.seed, self.limits)

    def _fitting(self, screen: Screen, shapes: Sequence[Shape]) -> list[Shape]:
        """Return the shapes of the ops asked for that are within the limits; how many are not is said."""
        decisions = {decision_of(op) for op in self.ops}
        asked = [shape for shape in shapes if not decisions or decision_of(shape.op) in decisions]
        fitting = [shape for shape in asked if self.limits.why_not(shape) is None]
        if len(fitting) < len(asked):
            first = next(shape for shape in asked if self.limits.why_not(shape) is not None)
            why = f"{shown(first)}: {self.limits.why_not(first)}"
            screen.say(f"{count(len(asked) - len(fitting), 'shape')} beyond the limits left out, such as {why}")
        return fitting


WIDE = Limits(high=1 << 40, batch=1 << 40, memory_bytes=1 << 60)
_NUMBER = 20
_NONE = "no shape is there to measure: nothing fits --op, --dtype and the limits, or the script compiled no product"
_OPTIONS = (
    click.option("--op", "ops", multiple=True, type=click.Choice(OPS), help="Only this product; repeatable."),
    click.option("--dtype", "dtypes", multiple=True, type=click.Choice(DTYPES), help="In this type; repeatable."),
    click.option("--random", is_flag=True, help="Every order of magnitude as likely as any other."),
    click.option("--power-of-two", is_flag=True, help="Sizes that are powers of two."),
    click.option("--log-normal", is_flag=True, help="As real programs have them; the default."),
    click.option("--shapeset", type=_FILE, help="Those of a shapeset, in diode's format."),
    click.option("--script", type=_FILE, help="Those that this Python script computes, most used first."),
    click.option("--num-shapes", "number", type=click.IntRange(min=1), help="At most so many; 20 are drawn."),
    click.option("--min-size", type=click.IntRange(min=1), default=1, show_default=True, help="Least m, n and k."),
    click.option("--max-size", type=click.IntRange(min=1), default=4096, show_default=True, help="Most m, n and k."),
    click.option("--max-batch", type=click.IntRange(min=1), default=64, show_default=True, help="Most matrices."),
    click.option(
        "--max-work",
        type=click.IntRange(min=1),
        default=10**9,
        show_default=True,
        help="Most multiplications of one product.",
    ),
)


def shape_options(seed: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a verb the options that say which shapes are wanted, as one argument `wanted`; `seed` unless told."""

    def add(verb: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **named: Any) -> Any:
            return verb(*given, wanted=_wanted(named), **named)

        wrapped.__doc__, wrapped.__name__ = verb.__doc__, verb.__name__
        wrapped.__dict__.update(vars(verb))  # the options that were given to the verb before
        click.option(
            "--seed",
            type=click.IntRange(min=0),
            default=seed,
            show_default=True,
            help="Equal seeds draw equal shapes.",
        )(wrapped)
        for option in reversed(_OPTIONS):
            option(wrapped)
        click.argument("arguments", nargs=-1)(wrapped)
        return wrapped

    return add


def _wanted(named: dict[str, Any]) -> Wanted:
    """Return what the options say, taken out of all that were given; two sources of shapes are a usage error."""
    samplers = [name for name in SAMPLERS if named.pop(name.replace("-", "_"))]
    shapeset, script = named.pop("shapeset"), named.pop("script")
    if len(samplers) + (shapeset is not None) + (script is not None) > 1:
        raise click.UsageError("give one of --random, --power-of-two, --log-normal, --shapeset and --script")
    arguments = tuple(named.pop("arguments"))
    if arguments and script is None:
        raise click.UsageError(f"{arguments[0]!r} is an argument for a script; give --script SCRIPT too")
    least, most = named.pop("min_size"), named.pop("max_size")
    limits = Limits(least, most, named.pop("max_batch"), multiply_adds=named.pop("max_work"))
    return Wanted(
        named.pop("ops"),
        named.pop("dtypes"),
        samplers[0] if samplers else "log-normal",
        shapeset,
        script,
        arguments,
        named.pop("number"),
        named.pop("seed"),
        limits,
    )


def shown(shape: Shape) -> str:
    """Return a shape as people name it: `linear 96 x 64 x 256 float32`."""
    batch = f"{shape.b} x " if shape.op == "bmm" else ""
    return f"{shape.op} {batch}{shape.m} x {shape.n} x {shape.k} {shape.dtype}"


def of_shape(shape: Shape) -> dict[str, Any]:
    """Return a shape as plain values; `weight` is how often a program computes it."""
    return {"op": shape.op, **shape.features, "weight": shape.weight}


def sizes(shapes: Sequence[Shape]) -> set[Size]:
    """Return what products shapes are, however their factors lie."""
    return {_size(shape) for shape in shapes}


def _size(shape: Shape) -> Size:
    return size_of(decision_of(shape.op), {"b": shape.b, **shape.features})
