"""The group of all verbs, and the border where every error becomes one line and an exit code."""

from typing import IO, Any

import click

import tunewise
from tunewise.cli.best import best
from tunewise.cli.collect import collect
from tunewise.cli.dataset import dataset
from tunewise.cli.demo import demo
from tunewise.cli.doctor import doctor
from tunewise.cli.explain import explain
from tunewise.cli.exporting import export
from tunewise.cli.fleet import fleet
from tunewise.cli.generate import generate
from tunewise.cli.heuristics import heuristics
from tunewise.cli.home import FORGETS, at_home
from tunewise.cli.importing import import_
from tunewise.cli.learn import learn
from tunewise.cli.live import live
from tunewise.cli.metrics import metrics
from tunewise.cli.misses import misses
from tunewise.cli.models import models
from tunewise.cli.pin import pin
from tunewise.cli.replay import replay
from tunewise.cli.report import report
from tunewise.cli.screen import Screen, harmless, one_line, warnings_as_lines
from tunewise.cli.store import store
from tunewise.cli.table import table
from tunewise.cli.torch import torch
from tunewise.cli.train import train
from tunewise.cli.trials import trials
from tunewise.cli.tune import tune
from tunewise.cli.validate import validate
from tunewise.errors import TunewiseError

VERBS = (
    demo,
    tune,
    collect,
    best,
    trials,
    explain,
    misses,
    pin,
    heuristics,
    replay,
    dataset,
    train,
    learn,
    validate,
    generate,
    report,
    live,
    models,
    table,
    import_,
    export,
    torch,
    fleet,
    store,
    doctor,
    metrics,
)
_MEASURING = ("demo", "tune", "collect", "torch", "fleet")


class Ended(click.ClickException):
    """The command cannot go on: one line on stderr and an exit code."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line, and nothing around it."""
        click.echo(harmless(self.message), file=file, err=True)


class Interrupted(Ended):
    """Somebody pressed Ctrl-C."""

    exit_code = 130


class App(click.Group):
    """All verbs. What goes wrong inside one comes out as a sentence; `--traceback` shows the rest."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb and return what it returns; any trouble is raised as Ended."""
        ctx.obj = screen = Screen()
        with warnings_as_lines(screen):
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                raise Interrupted(_interrupted(ctx)) from None
            except Exception as error:
                if ctx.params.get("traceback") or _is_clicks_own(error):
                    raise
                raise Ended(_sentence(error, ctx.invoked_subcommand)) from error


@click.group(
    cls=App,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExamples:\n  tunewise doctor\n  tunewise tune gemm --problem m=64,n=64,k=64 --budget 4",
)
@click.version_option(tunewise.__version__, prog_name="tunewise", message="%(prog)s %(version)s")
@click.option(
    "--home",
    type=click.Path(file_okay=False),
    help="Directory of the store and the compiled kernels, instead of TUNEWISE_HOME.",
)
@click.option("--traceback", is_flag=True, help="Show where an error happened.")
@click.pass_context
def app(ctx: click.Context, home: str | None, traceback: bool) -> None:
    """Give every performance decision a memory and good judgement."""
    if home == "":
        raise click.BadParameter("'' is not a directory.", ctx, param_hint="'--home'")
    if home is not None:
        ctx.with_resource(at_home(home))


for _verb in VERBS:
    app.add_command(_verb)


def _is_clicks_own(error: Exception) -> bool:
    is_pipe = isinstance(error, BrokenPipeError)  # whoever read our output has seen enough: click ends quietly
    return is_pipe or isinstance(error, click.ClickException | click.exceptions.Exit | click.Abort)


def _sentence(error: Exception, verb: str | None) -> str:
    if isinstance(error, TunewiseError):
        return f"error: {error}"
    return f"error: {type(error).__name__}: {one_line(str(error))}; to see where, run: tunewise --traceback {verb} ..."


def _interrupted(ctx: click.Context) -> str:
    if ctx.invoked_subcommand in _MEASURING and not ctx.meta.get(FORGETS):
        return "interrupted: everything measured so far is kept; run the same command again to go on from there"
    return "interrupted"
