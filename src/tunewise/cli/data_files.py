"""Data sets as the command line names them: files of measurements, or what the store remembers of a decision."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tunewise.cli.home import sound_store
from tunewise.cli.screen import Screen, count
from tunewise.errors import MissingPart, NotFound
from tunewise.formats.layout import Naming
from tunewise.formats.units import UNITS_S
from tunewise.session.recall import unknown

if TYPE_CHECKING:
    from tunewise.formats.dataset import DataSet


@dataclass(frozen=True, slots=True)
class Request:
    """Which data a verb was asked to work on."""

    files: tuple[Path, ...]
    decision: str | None = None
    default: str | None = None
    naming: Naming = field(default_factory=Naming)
    is_strict: bool = False


class Columns(click.ParamType[tuple[str, ...]]):
    """Names of columns with commas between them."""

    name = "a,b,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the names in order; none at all is a usage error."""
        names = tuple(dict.fromkeys(name.strip() for name in str(value).split(",") if name.strip()))
        if not names:
            self.fail(f"{value!r} names no column; write a,b,c.", param, ctx)
        return names


_OPTIONS = (
    click.argument("files", metavar="DATA...", nargs=-1, type=click.Path(path_type=Path)),
    click.option("--decision", help="The decision: picks one from the store or an export of several; names files."),
    click.option("--default", help="The config to fall back to, where the data does not tell: its value, or a=1,b=2."),
    click.option("--problem", type=Columns(), help="Columns that are features."),
    click.option("--config", type=Columns(), help="Columns that are parameters."),
    click.option("--samples", type=Columns(), help="Columns that are times."),
    click.option("--unit", type=click.Choice(list(UNITS_S)), help="Unit of the times; seconds if nothing tells."),
    click.option("--strict", is_flag=True, help="Refuse a file with malformed rows instead of skipping them."),
)


def data_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb DATA and the options that say how to read it, as one argument `request`."""

    def wrapped(*given: Any, **named: Any) -> Any:
        columns = [named.pop(name) or () for name in ("problem", "config", "samples")]
        request = Request(
            files=tuple(named.pop("files")),
            decision=named.pop("decision"),
            default=named.pop("default"),
            naming=Naming(columns[0], columns[1], columns[2], named.pop("unit")),
            is_strict=named.pop("strict"),
        )
        return verb(*given, request=request, **named)

    wrapped.__doc__, wrapped.__name__ = verb.__doc__, verb.__name__
    wrapped.__dict__.update(vars(verb))  # the options that were given to the verb before
    for option in reversed(_OPTIONS):
        option(wrapped)
    return wrapped


def gather(screen: Screen, request: Request) -> "DataSet":
    """Return the data asked for, and remark on what its reader had to leave out.

    Without files it is what the store remembers of the decision, or of the only one it knows. Raises MissingPart
    without numpy and pyarrow.
    """
    try:
        from tunewise.formats.datasets import read, with_default
        from tunewise.learn.store_data import from_store
    except ImportError as error:
        raise MissingPart(f"data sets need {error.name}; run: pip install 'tunewise[learn]'") from None
    if request.files:
        data = read(
            request.files,
            decision=request.decision,
            default=request.default,
            naming=request.naming,
            is_strict=request.is_strict,
        )
    else:
        data = from_store(sound_store(), _remembered(request.decision))
        data = data if request.default is None else with_default(data, request.default)
    _remark(screen, data.notes)
    return data


def _remembered(decision: str | None) -> str:
    """Return the decision of the store that is meant; raises NotFound where that is none or not told."""
    names = sound_store().decisions()
    if decision is None and len(names) != 1:
        known = f"the store knows {', '.join(names)}" if names else "the store is empty"
        raise NotFound(f"no data is named: give DATA files or a remembered --decision; {known}")
    if decision is not None and decision not in names:
        raise NotFound(unknown(decision))
    return decision or names[0]


def _remark(screen: Screen, notes: Any) -> None:
    if notes.get("malformed"):
        screen.say(f"warning: {count(notes['malformed'], 'malformed row')} passed over; --strict names them")
    if notes.get("outdated"):
        screen.say(f"warning: {count(notes['outdated'], 'trial')} of an older declaration left out")


def listed(words: Sequence[str], most: int) -> str:
    """Return words with commas between them, the last ones as a number."""
    left = len(words) - most
    return ", ".join(words[:most]) + (f" and {left} more" if left > 0 else "")
