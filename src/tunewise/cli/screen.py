"""What people and programs see: tables or JSON on stdout; progress, warnings and remarks on stderr."""

import functools
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import isnan
from typing import Any, TextIO

import click
import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tunewise.errors import TunewiseWarning
from tunewise.escaping import harmless as harmless
from tunewise.escaping import one_line as one_line
from tunewise.report.wording import seconds as seconds
from tunewise.report.wording import size as size

_PIPE_WIDTH = 400  # a file has no edge to wrap at


class Amount(click.FloatRange):
    """A number in a range; not a number is none, whatever Python says."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; anything else is a usage error."""
        number: float = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


class Screen:
    """The two streams of one command. Colours and moving lines appear on terminals only."""

    def __init__(self) -> None:
        self.out, self.err = _console(stderr=False), _console(stderr=True)

    def say(self, text: str) -> None:
        """Print a remark of one line to stderr."""
        self.err.print(Text(one_line(text)), soft_wrap=True)

    def show(self, text: str, style: str = "") -> None:
        """Print a line of data to stdout."""
        self.out.print(Text(one_line(text), style=style), soft_wrap=True)

    def columns(self, heading: str, pairs: Iterable[tuple[str, str]]) -> None:
        """Print pairs below a heading, one a line, the second ones below each other."""
        self.show(heading)
        rows = list(pairs)
        width = max((len(left) for left, _ in rows), default=0)
        for left, right in rows:
            self.show(f"  {left:{width}}  # {right}")

    def json(self, document: object) -> None:
        """Print one JSON document to stdout."""
        try:
            text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
        except UnicodeEncodeError:  # half a character, as in the name of a file that is no UTF-8
            text = json.dumps(msgspec.to_builtins(document), indent=2)
        click.echo(plain_json(text))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()) -> None:
        """Print a table to stdout; columns named in `right` hold numbers, which are never broken."""
        lined, gap = (box.SIMPLE_HEAD, 1) if self.out.is_terminal else (None, 2)  # a box has gaps of its own
        table = Table(box=lined, pad_edge=False, padding=(0, gap, 0, 0))
        for column in columns:
            is_number = column in right
            table.add_column(column, justify="right" if is_number else "left", overflow="fold", no_wrap=is_number)
        for row in rows:
            table.add_row(*(Text(one_line(str(cell))) for cell in row))
        if self.out.is_terminal:
            self.out.print(table)
            return
        with self.out.capture() as drawn:
            self.out.print(table)
        click.echo("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def plain_json(text: str) -> str:
    """Return a JSON text with what cannot be printed written out: it stands inside of strings, where JSON can."""
    return "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text)


def json_option(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb `--json`, as the argument `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")(verb)


pass_screen = click.make_pass_decorator(Screen)


@contextmanager
def warnings_as_lines(screen: Screen) -> Iterator[None]:
    """Show our own warnings as one line each, and all others as Python does."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", TunewiseWarning)
        warnings.showwarning = functools.partial(_show_warning, screen, warnings.showwarning)
        yield


def example(*lines: str) -> str:
    """Return the end of a help text: examples that run as they stand."""
    return "\n".join(["\b", "Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)])


def count(number: int, thing: str) -> str:
    """Return `1 trial`, `3 trials` or `2 misses`."""
    plural = f"{thing}es" if thing.endswith("s") else f"{thing}s"
    return f"{number} {thing if number == 1 else plural}"


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    return console


def _show_warning(
    screen: Screen,
    otherwise: Callable[..., None],
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, TunewiseWarning):
        screen.say(f"warning: {message}")
    else:
        otherwise(message, category, filename, lineno, file, line)
